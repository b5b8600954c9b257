//! Changes since the last successful reconcile.

use super::*;

#[derive(Clone, Default)]
struct Curious {
    log: Arc<Mutex<Vec<String>>>,
}

impl Reconciler for Curious {
    type Object = Site;

    async fn reconcile(&self, site: &Site, cx: &Context<Self>) -> Result {
        let told = match cx.changes() {
            None => "unknown".to_owned(),
            Some(changes) => {
                let old = changes.old()?.spec.host.clone();
                let (host, map) = (changes.touches("spec.host"), changes.touches("spec.config"));
                let new = changes.now()?.spec.host.clone();
                format!("{old} to {new}, {:?}, {host} {map}", changes.paths())
            }
        };
        self.log.lock().push(told);
        if site.spec.host == "fails" {
            return Err("as told".into());
        }
        if site.spec.host == "writes" {
            cx.patch_status(json!({ "seen": 1 })).await?;
        }
        Ok(Action::done())
    }
}

impl Finalize for Curious {
    async fn cleanup(&self, _: &Site, _: &Context<Self>) -> Result<()> {
        Ok(())
    }
}

impl Curious {
    fn log(&self) -> Vec<String> {
        std::mem::take(&mut *self.log.lock())
    }
}

#[tokio::test(start_paused = true)]
async fn the_finalizer_that_the_first_reconcile_put_on_its_object_is_no_change() {
    let (world, curious) = (World::start().await, Curious::default());
    let wiring = ControllerBuilder::new().track_changes().finalizer(FINALIZER);
    let running = world.run(wiring.build(curious.clone())).await;
    for (name, host) in [("home", "a"), ("other", "writes")] {
        world.create(name, host).await;
        running.settled().await;
        world.patch(name, json!({ "spec": { "host": "b" } })).await;
        running.settled().await;
        let told = curious.log();
        assert_eq!((told.len(), told[0].as_str()), (2, "unknown"));
        assert!(told[1].contains("spec.host") && !told[1].contains("finalizers"), "{told:?}");
    }
    assert!(running.stop().await);
}

#[tokio::test(start_paused = true)]
async fn a_reconcile_knows_what_changed_since_the_last_successful_one() {
    let (world, curious) = (World::start().await, Curious::default());
    let running = world.run(ControllerBuilder::new().track_changes().build(curious.clone())).await;
    world.create("home", "a").await;
    running.settled().await;
    assert_eq!(curious.log(), ["unknown"]);
    world.patch("home", json!({ "spec": { "host": "b" } })).await;
    running.settled().await;
    assert_eq!(curious.log(), [r#"a to b, ["spec.host"], true false"#]);
    let labels = json!({ "metadata": { "labels": { "app.kubernetes.io/name": "x" } } });
    world.patch("home", labels).await;
    running.settled().await;
    let told = curious.log();
    assert!(told[0].contains(r#"metadata.labels"#), "{told:?}");

    world.patch("home", json!({ "spec": { "host": "fails" } })).await;
    tokio::time::sleep(Duration::from_secs(2)).await;
    world.patch("home", json!({ "spec": { "host": "c" } })).await;
    running.settled().await;
    assert!(curious.log().last().is_some_and(|told| told.starts_with("b to c")));
    world.sites().delete("home").await.expect("deleted");
    running.settled().await;
    world.create("home", "d").await;
    running.settled().await;
    assert_eq!(curious.log(), ["unknown"], "another object of the same name");
    assert!(running.stop().await);
}

#[tokio::test(start_paused = true)]
async fn who_does_not_ask_has_nothing_kept_and_what_does_not_fit_is_unknown() {
    for wiring in [ControllerBuilder::new(), ControllerBuilder::new().track_changes_within(100)] {
        let (world, curious) = (World::start().await, Curious::default());
        let running = world.run(wiring.build(curious.clone())).await;
        world.create("home", "a").await;
        running.settled().await;
        world.patch("home", json!({ "spec": { "host": "b" } })).await;
        running.settled().await;
        assert_eq!(curious.log(), ["unknown", "unknown"]);
        assert!(running.stop().await);
    }
}
