//! Changes that cause reconciles, their reasons, and filters that suppress them.

use super::*;
use crate::controller::predicates::{
    annotations_changed, field_changed, generation_changed, labelled as labelled_with,
    labels_changed,
};
use crate::controller::{PAUSED, Predicate, Timer};
use windlass_core::resource::Selector;

fn noting() -> ControllerBuilder<Noting> {
    ControllerBuilder::new().owns::<ConfigMap>()
}

async fn labelled(world: &World, name: &str, value: &str) {
    world.patch(name, json!({ "metadata": { "labels": { "by": value } } })).await;
}

async fn annotated(world: &World, name: &str, key: &str, value: Value) {
    world.patch(name, json!({ "metadata": { "annotations": { key: value } } })).await;
}

#[tokio::test(start_paused = true)]
async fn a_reconcile_has_every_reason_that_was_merged_into_it() {
    let (world, noting_) = (World::start().await, Noting::default());
    world.create("home", "has a child").await;
    let running = world.run(noting().build(noting_.clone())).await;
    let first = noting_.noted();
    assert_eq!(first[0], "home: started");
    assert!(first[1..].iter().all(|note| note == "home: owned configmaps"), "{first:?}");
    // Both changes are there before a worker runs.
    let patch = Patch::Merge(json!({ "data": { "host": "y" } }));
    let (sites, maps) = (world.sites(), world.maps());
    let label = Patch::Merge(json!({ "metadata": { "labels": { "by": "us" } } }));
    let (one, two) = tokio::join!(async { sites.patch("home", label).await }, async {
        maps.patch("home", patch).await
    });
    one.expect("patched");
    two.expect("patched");
    running.settled().await;
    let reported = noting_.noted().join(", ");
    assert!(reported.contains("changed") && reported.contains("owned configmaps"), "{reported}");
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn retries_requeues_and_requests_of_other_reconciles_are_named_as_reasons() {
    let (world, notes) = (World::start().await, Noting::default());
    let running = world.run(noting().build(notes.clone())).await;
    world.create("home", "requeues").await;
    running.settled().await;
    assert_eq!(notes.noted(), ["home: changed"]);
    tokio::time::sleep(Duration::from_secs(61)).await;
    assert_eq!(notes.noted(), ["home: requeue"]);
    world.create("other", "asks").await;
    running.settled().await;
    let asked = notes.noted();
    assert_eq!(asked[0], "other: changed");
    assert!(asked[1].starts_with("home: ") && asked[1].contains("asked by another reconcile"));
    world.create("bad", "fails").await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    let failed = notes.noted();
    assert_eq!(failed[..2], ["bad: changed", "bad: retry"]);
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn reasons_stand_in_the_span_of_every_reconcile() {
    let (logged, _guard) = Captured::at(tracing::Level::DEBUG);
    let (world, notes) = (World::start().await, Noting::default());
    let running = world.run(noting().build(notes.clone())).await;
    world.create("home", "a").await;
    running.settled().await;
    let spans = logged.with("reasons=changed");
    assert!(!spans.is_empty(), "{}", logged.text());
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_predicate_decides_which_changes_count() {
    let (world, notes) = (World::start().await, Noting::default());
    let builder =
        ControllerBuilder::<Noting>::new().when(generation_changed().or(labels_changed()));
    let running = world.run(builder.build(notes.clone())).await;
    world.create("home", "a").await;
    running.settled().await;
    assert_eq!(notes.noted(), ["home: changed"], "creations pass");
    annotated(&world, "home", "note", json!("x")).await;
    running.settled().await;
    assert!(notes.noted().is_empty(), "an annotation is neither");
    labelled(&world, "home", "us").await;
    running.settled().await;
    assert_eq!(notes.noted(), ["home: changed"]);
    world.patch("home", json!({ "spec": { "host": "b" } })).await;
    running.settled().await;
    assert_eq!(notes.noted(), ["home: changed"]);
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn two_predicates_of_one_builder_both_have_to_pass_a_change() {
    let (world, notes) = (World::start().await, Noting::default());
    let builder =
        ControllerBuilder::<Noting>::new().when(labels_changed()).when(annotations_changed());
    let running = world.run(builder.build(notes.clone())).await;
    world.create("home", "a").await;
    running.settled().await;
    notes.noted();
    labelled(&world, "home", "us").await;
    annotated(&world, "home", "note", json!("x")).await;
    running.settled().await;
    assert!(notes.noted().is_empty());
    let both =
        json!({ "metadata": { "labels": { "by": "them" }, "annotations": { "note": "y" } } });
    world.patch("home", both).await;
    running.settled().await;
    assert_eq!(notes.noted(), ["home: changed"]);
    running.stop().await;
}

/// If a predicate could hold back deletions, as controller-runtime's predicates do, the object
/// would stay for ever.
#[tokio::test(start_paused = true)]
async fn no_predicate_keeps_a_clean_up_from_running() {
    let (world, notes) = (World::start().await, Noting::default());
    let never = Predicate::new(|_| false);
    let builder = ControllerBuilder::<Noting>::new().finalizer(FINALIZER).when(never);
    let running = world.run(builder.build(notes.clone())).await;
    let mut site = Site::new("home", SiteSpec { host: "a".into(), config: None });
    site.metadata.finalizers = Some(vec![FINALIZER.into()]);
    world.sites().create(&site).await.expect("created");
    running.settled().await;
    assert!(notes.noted().is_empty(), "its creation does not pass");
    world.sites().delete("home").await.expect("deleted");
    running.settled().await;
    assert_eq!(notes.noted(), ["home: changed, cleaned up"]);
    assert!(world.sites().get_opt("home").await.expect("an answer").is_none());
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_field_of_a_child_or_of_a_watched_object_decides() {
    let (world, notes) = (World::start().await, Noting::default());
    let builder = ControllerBuilder::<Noting>::new()
        .owns_when::<ConfigMap>(field_changed(&["data", "host"]))
        .watches_when::<ConfigMap>(field_changed(&["data", "color"]), |_| {
            vec![ObjectKey::new(Some("shop"), "other")]
        });
    let running = world.run(builder.build(notes.clone())).await;
    world.create("home", "has a child").await;
    world.create("other", "a").await;
    running.settled().await;
    notes.noted();
    let set = |key: &str, value: &str| Patch::Merge(json!({ "data": { key: value } }));
    world.maps().patch("home", set("unrelated", "1")).await.expect("patched");
    running.settled().await;
    assert!(notes.noted().is_empty());
    world.maps().patch("home", set("host", "z")).await.expect("patched");
    running.settled().await;
    let reported = notes.noted();
    assert!(
        reported.iter().all(|note| note == "home: owned configmaps") && !reported.is_empty(),
        "{reported:?}"
    );
    world.maps().patch("home", set("color", "red")).await.expect("patched");
    running.settled().await;
    assert_eq!(notes.noted(), ["other: watched configmaps"]);
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_predicate_of_ones_own_sees_both_states_and_may_panic() {
    let (world, notes) = (World::start().await, Noting::default());
    let moved = Predicate::<Site>::new(|change| match change {
        windlass_cache::informer::Change::Updated { old, new } => {
            let (old, new) = (old.get().expect("decodes"), new.get().expect("decodes"));
            assert_ne!(new.spec.host, "panics", "on purpose");
            old.spec.host.len() != new.spec.host.len()
        }
        _ => true,
    });
    assert_eq!(format!("{:?}", moved.clone().not()), "not custom");
    let running =
        world.run(ControllerBuilder::<Noting>::new().when(moved).build(notes.clone())).await;
    world.create("home", "a").await;
    running.settled().await;
    notes.noted();
    for (host, passes) in [("b", false), ("long", true), ("tall", false), ("panics", true)] {
        world.patch("home", json!({ "spec": { "host": host } })).await;
        running.settled().await;
        assert_eq!(notes.noted().len(), usize::from(passes), "{host}");
    }
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_paused_object_is_skipped_logged_once_and_reconciled_when_its_pause_ends() {
    let (logged, _guard) = Captured::at(tracing::Level::INFO);
    let (world, notes) = (World::start().await, Noting::default());
    let builder =
        ControllerBuilder::<Noting>::new().finalizer(FINALIZER).when(generation_changed());
    let running = world.run(builder.build(notes.clone())).await;
    world.create("home", "a").await;
    running.settled().await;
    notes.noted();
    annotated(&world, "home", PAUSED, json!("true")).await;
    for host in ["b", "c"] {
        world.patch("home", json!({ "spec": { "host": host } })).await;
        running.settled().await;
    }
    assert!(notes.noted().is_empty());
    let metrics = &world.client.environment().metrics;
    assert_eq!(metrics.level(&names::PAUSED, &["site"]), Some(1.0));
    assert_eq!(logged.with("the object is paused while").len(), 1, "{}", logged.text());
    // The clean-up is paused, too.
    world.sites().delete("home").await.expect("deleted");
    running.settled().await;
    assert!(world.sites().get_opt("home").await.expect("an answer").is_some());
    assert!(notes.noted().is_empty());
    // Another value than "true" ends the pause, whatever the predicate returns.
    annotated(&world, "home", PAUSED, json!("no")).await;
    running.settled().await;
    assert_eq!(notes.noted(), ["home: changed, cleaned up"]);
    assert_eq!(metrics.level(&names::PAUSED, &["site"]), Some(0.0));
    assert!(world.sites().get_opt("home").await.expect("an answer").is_none());
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_burst_is_one_reconcile_after_it_ended() {
    let (world, notes) = (World::start().await, Noting::default());
    let second = Duration::from_secs(1);
    let builder = noting().debounce(10 * second, 60 * second);
    let running = world.run(builder.build(notes.clone())).await;
    world.create("home", "a").await;
    for n in 0..5 {
        tokio::time::sleep(second).await;
        labelled(&world, "home", &n.to_string()).await;
    }
    tokio::time::sleep(9 * second).await;
    assert!(notes.noted().is_empty());
    tokio::time::sleep(2 * second).await;
    assert_eq!(notes.noted(), ["home: changed"]);
    // An endless burst is cut off.
    for n in 0..65 {
        tokio::time::sleep(second).await;
        labelled(&world, "home", &format!("again{n}")).await;
    }
    assert_eq!(notes.noted(), ["home: changed"]);
    running.settled().await;
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn every_object_is_looked_at_once_per_period_and_not_all_at_once() {
    let (world, notes) = (World::start().await, Noting::default());
    let builder = ControllerBuilder::<Noting>::new().resync(Duration::from_secs(600));
    for n in 0..20 {
        world.create(&format!("site{n}"), "a").await;
    }
    let running = world.run(builder.build(notes.clone())).await;
    let first = notes.noted();
    assert_eq!(first.len(), 20);
    tokio::time::sleep(Duration::from_secs(300)).await;
    let half = notes.noted();
    assert!((1..20).contains(&half.len()), "{half:?}");
    // Objects of the first part had just been reconciled at the start: they are due in the first
    // part of the next period.
    assert!(first.iter().all(|note| note.ends_with(": started")), "{first:?}");
    tokio::time::sleep(Duration::from_secs(337)).await;
    let rest = notes.noted();
    let all = half.iter().chain(&rest);
    assert!(all.clone().all(|note| note.ends_with(": resync")), "{half:?} {rest:?}");
    let mut names: Vec<_> = all.map(|note| note.split(':').next()).collect();
    assert_eq!(names.len(), 20, "{names:?}");
    names.sort();
    names.dedup();
    assert_eq!(names.len(), 20);
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn the_default_period_is_controller_runtimes_and_none_is_possible() {
    let (world, notes, quiet) = (World::start().await, Noting::default(), Noting::default());
    world.create("home", "a").await;
    let running = world.run(ControllerBuilder::<Noting>::new().build(notes.clone())).await;
    let without =
        ControllerBuilder::<Noting>::new().name("quiet").without_resync().build(quiet.clone());
    let other = world.run(without).await;
    tokio::time::sleep(Duration::from_secs(10 * 3600 + 300)).await;
    assert_eq!(notes.noted(), ["home: started", "home: resync"]);
    assert_eq!(quiet.noted(), ["home: started"]);
    running.stop().await;
    other.stop().await;
}

/// Objects found at the start do not delay changes.
#[tokio::test(start_paused = true)]
async fn changes_are_reconciled_before_objects_found_at_the_start() {
    let (world, notes) = (World::start().await, Noting::default());
    for n in 0..5 {
        world.create(&format!("site{n}"), "a").await;
    }
    let handle = ControllerBuilder::<Noting>::new().workers(1).build(notes.clone());
    let informers = InformerRegistry::new(world.client.clone(), vec![]);
    handle.attach(&informers).expect("the sources can be attached");
    let stop = CancellationToken::new();
    let caches = tokio::spawn({
        let (informers, stop) = (informers.clone(), stop.clone());
        async move { informers.run(stop).await }
    });
    informers.synced().await;
    labelled(&world, "site4", "us").await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    let (client, drain) = (world.client.clone(), Duration::from_secs(5));
    let run = ControllerRun { client, informers, stop: stop.clone(), drain };
    let work = tokio::spawn(async move { handle.run(run).await });
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(notes.noted()[..2], ["site4: started, changed", "site0: started"]);
    stop.cancel();
    assert!(work.await.expect("no panic"));
    caches.await.expect("no panic");
}

/// Operators that share a kind by labels.
#[tokio::test(start_paused = true)]
async fn resyncs_and_timers_skip_objects_that_the_predicate_does_not_pass() {
    let (world, notes) = (World::start().await, Noting::default());
    let ours = labelled_with(Selector::everything().equals("by", "us"));
    let builder = ControllerBuilder::<Noting>::new()
        .when(generation_changed().or(labels_changed()))
        .when(ours)
        .resync(Duration::from_secs(60))
        .timer(Timer::every(Duration::from_secs(60), "probe"));
    let running = world.run(builder.build(notes.clone())).await;
    world.create("home", "a").await;
    tokio::time::sleep(Duration::from_secs(300)).await;
    assert!(notes.noted().is_empty());
    labelled(&world, "home", "us").await;
    running.settled().await;
    assert_eq!(notes.noted(), ["home: changed"]);
    tokio::time::sleep(Duration::from_secs(180)).await;
    let reported = notes.noted().join(", ");
    assert!(reported.contains("resync") && reported.contains("timer probe"), "{reported}");
    running.stop().await;
}

/// A burst and a rate limit together.
#[tokio::test(start_paused = true)]
async fn the_reasons_of_a_burst_that_has_to_wait_are_named_by_its_reconcile() {
    let (world, notes) = (World::start().await, Noting::default());
    let second = Duration::from_secs(1);
    let builder = noting().debounce(second, 5 * second).rate_limit(1, 60 * second);
    let running = world.start_only(builder.build(notes.clone())).await;
    world.create("home", "has a child").await;
    tokio::time::sleep(70 * second).await;
    assert_eq!(notes.noted(), ["home: changed", "home: owned configmaps"]);
    labelled(&world, "home", "us").await;
    // The key is in the queue already: the burst alone holds this reason.
    let patch = Patch::Merge(json!({ "data": { "more": "y" } }));
    world.maps().patch("home", patch).await.expect("patched");
    tokio::time::sleep(40 * second).await;
    assert!(notes.noted().is_empty());
    tokio::time::sleep(20 * second).await;
    assert_eq!(notes.noted(), ["home: changed, owned configmaps"]);
    running.stop.cancel();
}
