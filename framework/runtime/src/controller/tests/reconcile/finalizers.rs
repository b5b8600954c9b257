//! The finalizer and the clean-up.

use super::*;

#[tokio::test(start_paused = true)]
async fn the_finalizer_is_there_before_the_first_reconcile_and_others_keep_theirs() {
    let (world, sites) = (World::start().await, Sites::default());
    let running = world.run(finalizing(&sites)).await;
    let mut site = Site::new("home", SiteSpec { host: "a".into(), config: None });
    site.metadata.finalizers = Some(vec!["other.dev/x".into()]);
    world.sites().create(&site).await.expect("created");
    running.settled().await;
    assert!(sites.finalizer_seen.lock().iter().all(|seen| *seen));
    let site = world.sites().get("home").await.expect("it is there");
    assert_eq!(site.metadata.finalizers, Some(vec!["other.dev/x".into(), FINALIZER.into()]));
    assert!(sites.runs("home") <= 2, "{:?}", sites.log.lock());
}

#[tokio::test(start_paused = true)]
async fn c6_the_removal_of_a_finalizer_returns_the_version_that_carried_it() {
    let world = World::start().await;
    let mut site = Site::new("home", SiteSpec { host: "a".into(), config: None });
    site.metadata.finalizers = Some(vec![FINALIZER.into()]);
    let stale = world.sites().create(&site).await.expect("created");
    let theirs = world.patch("home", json!({ "metadata": { "labels": { "by": "them" } } })).await;
    let remove = || async {
        let left = crate::finalizer::remove_from(&world.sites(), &stale, FINALIZER).await;
        left.expect("removed").expect("still there")
    };
    assert_eq!(
        remove().await.from.as_deref(),
        Some(theirs.resource_version()),
        "not the stale one"
    );
    assert_eq!(remove().await.from, None, "nothing was written");
}

#[tokio::test(start_paused = true)]
async fn a_failing_clean_up_keeps_the_object_and_a_successful_one_lets_it_go() {
    let (world, sites) = (World::start().await, Sites::default());
    let running = world.run(finalizing(&sites)).await;
    world.create("home", "a").await;
    running.settled().await;
    sites.failing_cleanups.store(1_000, Ordering::SeqCst);
    world.sites().delete("home").await.expect("deleted");
    tokio::time::sleep(Duration::from_secs(60)).await;
    let site = world.sites().get("home").await.expect("still there");
    assert!(site.is_terminating() && site.has_finalizer(FINALIZER));
    assert!(sites.runs("cleanup home") > 1, "it is tried again");
    let runs = sites.runs("home");
    sites.failing_cleanups.store(0, Ordering::SeqCst);
    tokio::time::sleep(Duration::from_secs(300)).await;
    assert!(world.sites().get_opt("home").await.expect("an answer").is_none());
    assert_eq!(sites.runs("home"), runs, "a terminating object is not reconciled");
    running.settled().await;
}

#[tokio::test(start_paused = true)]
async fn c6_a_clean_up_removes_only_our_finalizer() {
    let (world, sites) = (World::start().await, Sites::default());
    let running = world.run(finalizing(&sites)).await;
    world.create("home", "a").await;
    running.settled().await;
    let both = json!({ "metadata": { "finalizers": [FINALIZER, "other.dev/x"] } });
    world.patch("home", both).await;
    running.settled().await;
    world.sites().delete("home").await.expect("deleted");
    running.settled().await;
    let site = world.sites().get("home").await.expect("still there");
    assert_eq!(site.metadata.finalizers, Some(vec!["other.dev/x".into()]));
    let runs = sites.runs("cleanup home");
    world.patch("home", json!({ "metadata": { "finalizers": null } })).await;
    running.settled().await;
    assert!(world.sites().get_opt("home").await.expect("an answer").is_none());
    assert_eq!(sites.runs("cleanup home"), runs);
}

/// Another writer takes the finalizer off while the clean-up runs.
struct Raced(Client);

impl Reconciler for Raced {
    type Object = Site;

    async fn reconcile(&self, _: &Site, _: &Context<Self>) -> Result<Action> {
        Ok(Action::done())
    }
}

impl Finalize for Raced {
    async fn cleanup(&self, site: &Site, _: &Context<Self>) -> Result<()> {
        let left = json!({ "metadata": { "finalizers": ["old.dev/x"] } });
        self.0.namespace::<Site>("shop").patch(site.name(), Patch::Merge(left)).await?;
        Ok(())
    }
}

#[tokio::test(start_paused = true)]
async fn a_finalizer_that_another_writer_took_off_keeps_no_other_from_being_removed() {
    let world = World::start().await;
    let builder = ControllerBuilder::<Raced>::new().finalizer(FINALIZER);
    let builder = builder.former_finalizer("old.dev/x");
    // No change of the finalizers alone reconciles the object.
    let builder = builder.when(predicates::generation_changed());
    let running = world.run(builder.build(Raced(world.client.clone()))).await;
    let mut site = Site::new("home", SiteSpec { host: "a".into(), config: None });
    site.metadata.finalizers = Some(vec![FINALIZER.into(), "old.dev/x".into()]);
    world.sites().create(&site).await.expect("created");
    running.settled().await;
    world.sites().delete("home").await.expect("deleted");
    running.settled().await;
    let left = world.sites().get_opt("home").await.expect("an answer");
    assert!(left.is_none(), "{:?}", left.map(|site| site.metadata.finalizers));
}
