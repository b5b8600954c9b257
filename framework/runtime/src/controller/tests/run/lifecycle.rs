//! Life of an object: children, finalizer, restarts, panics.

use super::*;

#[tokio::test(start_paused = true)]
async fn an_object_gets_its_child_its_condition_and_an_event() {
    let (world, sites) = (World::start().await, Sites::default());
    let running = world.run(plain(&sites)).await;
    let site = world.create("home", "a.example").await;
    running.settled().await;
    let map = world.maps().get("home").await.expect("the child");
    let owner = &map.metadata.owner_references.as_ref().expect("an owner")[0];
    assert_eq!((owner.uid.as_str(), owner.controller), (site.uid(), Some(true)));
    assert_eq!(map.data.expect("data")["host"], "a.example");
    let status = world.sites().get("home").await.expect("it is there").status.expect("a status");
    assert!(status.conditions.is_met("Ready"));
    assert_eq!(status.conditions[0].observed_generation, Some(1));
    assert_eq!(status.seen, Some(1));
    let events = world.client.namespace::<Event>("shop").list().await.expect("events").items;
    let notes: Vec<_> = events.iter().filter_map(|event| event.note.as_deref()).collect();
    assert_eq!(notes, ["host a.example"]);
    assert!(running.stop().await);
}

#[tokio::test(start_paused = true)]
async fn k2_a_child_that_vanishes_or_is_changed_is_put_right() {
    let (world, sites) = (World::start().await, Sites::default());
    let running = world.run(plain(&sites)).await;
    world.create("home", "a.example").await;
    running.settled().await;
    world.maps().delete("home").await.expect("deleted");
    running.settled().await;
    assert!(world.maps().get_opt("home").await.expect("an answer").is_some(), "it is back");
    let patch = Patch::Merge(json!({ "data": { "host": "b.example" } }));
    world.maps().patch("home", patch).await.expect("patched");
    running.settled().await;
    let map = world.maps().get("home").await.expect("the child");
    assert_eq!(map.data.expect("data")["host"], "a.example");
}

#[tokio::test(start_paused = true)]
async fn k6_when_nothing_would_change_nothing_is_written() {
    let (world, sites) = (World::start().await, Sites::default());
    let running = world.run(plain(&sites)).await;
    world.create("home", "a.example").await;
    running.settled().await;
    let runs = sites.runs("home");
    assert!(runs <= 2, "own writes enqueue nothing: {:?}", sites.log.lock());
    world.writes();
    world.patch("home", json!({ "metadata": { "labels": { "touched": "yes" } } })).await;
    running.settled().await;
    assert_eq!(sites.runs("home"), runs + 1);
    assert_eq!(world.writes(), ["patch sites/"], "only the test's own write");
}

#[tokio::test(start_paused = true)]
async fn k3_k6_after_a_restart_every_object_is_reconciled_and_nothing_is_changed() {
    let (world, sites) = (World::start().await, Sites::default());
    let running = world.run(plain(&sites)).await;
    world.create("home", "a.example").await;
    running.settled().await;
    assert!(running.stop().await);
    let before = world.maps().get("home").await.expect("the child");
    let again = Sites::default();
    let running = world.run(plain(&again)).await;
    assert_eq!(again.runs("home"), 1);
    let after = world.maps().get("home").await.expect("the child");
    assert_eq!(before.resource_version(), after.resource_version());
    assert!(running.stop().await);
}

#[tokio::test(start_paused = true)]
async fn c3_a_reconciler_that_panics_takes_no_other_object_down() {
    let (world, sites) = (World::start().await, Sites::default());
    let running = world.run(plain(&sites)).await;
    world.create("bad", "panics").await;
    world.create("good", "a.example").await;
    tokio::time::sleep(Duration::from_secs(10)).await;
    assert!(world.maps().get_opt("good").await.expect("an answer").is_some());
    assert!(world.counted(&names::RECONCILE_PANICS) > 3);
    world.patch("bad", json!({ "spec": { "host": "fine" } })).await;
    running.settled().await;
    assert!(world.maps().get_opt("bad").await.expect("an answer").is_some());
}

/// Requests requeues with spread delays.
#[derive(Clone, Default)]
struct Spreading(Arc<Mutex<Vec<Duration>>>);

impl Reconciler for Spreading {
    type Object = Site;

    async fn reconcile(&self, _: &Site, cx: &Context<Self>) -> Result {
        let delay = cx.spread(Duration::from_secs(100));
        self.0.lock().push(delay);
        assert_eq!(cx.spread(Duration::ZERO), Duration::ZERO);
        assert_eq!(cx.spread(Duration::MAX), Duration::MAX);
        Ok(Action::requeue_after(delay))
    }
}

#[tokio::test(start_paused = true)]
async fn spread_times_are_up_to_a_tenth_later_and_never_earlier() {
    let (world, spreading) = (World::start().await, Spreading::default());
    let running = world.run(ControllerBuilder::<Spreading>::new().build(spreading.clone())).await;
    world.create("home", "a").await;
    tokio::time::sleep(Duration::from_secs(10_000)).await;
    let mut delays = spreading.0.lock().clone();
    let (least, most) = (Duration::from_secs(100), Duration::from_secs(110));
    assert!(delays.iter().all(|delay| (least..most).contains(delay)), "{delays:?}");
    delays.sort();
    delays.dedup();
    assert!(delays.len() > 80, "each is drawn: {}", delays.len());
    assert!(delays.last() > delays.first().map(|first| *first + Duration::from_secs(8)).as_ref());
    running.stop.cancel();
}
