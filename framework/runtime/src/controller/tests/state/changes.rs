//! Changes since the last successful reconcile.

use super::*;

#[derive(Clone, Default)]
struct Curious {
    log: Arc<Mutex<Vec<String>>>,
}

impl Reconciler for Curious {
    type Object = Site;

    async fn reconcile(&self, site: &Site, cx: &Context<Self>) -> Result {
        let reported = match cx.changes() {
            None => "unknown".to_owned(),
            Some(changes) => {
                let old = changes.old()?.spec.host.clone();
                let (host, map) = (changes.touches("spec.host"), changes.touches("spec.config"));
                let new = changes.now()?.spec.host.clone();
                format!("{old} to {new}, {:?}, {host} {map}", changes.paths())
            }
        };
        self.log.lock().push(reported);
        if site.spec.host == "fails" {
            return Err("on purpose".into());
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
    let builder = ControllerBuilder::new().track_changes().finalizer(FINALIZER);
    let running = world.run(builder.build(curious.clone())).await;
    for (name, host) in [("home", "a"), ("other", "writes")] {
        world.create(name, host).await;
        running.settled().await;
        world.patch(name, json!({ "spec": { "host": "b" } })).await;
        running.settled().await;
        let reported = curious.log();
        assert_eq!((reported.len(), reported[0].as_str()), (2, "unknown"));
        assert!(
            reported[1].contains("spec.host") && !reported[1].contains("finalizers"),
            "{reported:?}"
        );
    }
    assert!(running.stop().await);
}

#[tokio::test(start_paused = true)]
async fn a_reconcile_has_the_changes_since_the_last_successful_one() {
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
    let reported = curious.log();
    assert!(reported[0].contains(r#"metadata.labels"#), "{reported:?}");

    world.patch("home", json!({ "spec": { "host": "fails" } })).await;
    tokio::time::sleep(Duration::from_secs(2)).await;
    world.patch("home", json!({ "spec": { "host": "c" } })).await;
    running.settled().await;
    assert!(curious.log().last().is_some_and(|reported| reported.starts_with("b to c")));
    world.sites().delete("home").await.expect("deleted");
    running.settled().await;
    world.create("home", "d").await;
    running.settled().await;
    assert_eq!(curious.log(), ["unknown"], "another object of the same name");
    assert!(running.stop().await);
}

#[tokio::test(start_paused = true)]
async fn no_state_is_kept_without_the_setting_and_a_state_that_does_not_fit_is_unknown() {
    for builder in [ControllerBuilder::new(), ControllerBuilder::new().track_changes_within(100)] {
        let (world, curious) = (World::start().await, Curious::default());
        let running = world.run(builder.build(curious.clone())).await;
        world.create("home", "a").await;
        running.settled().await;
        world.patch("home", json!({ "spec": { "host": "b" } })).await;
        running.settled().await;
        assert_eq!(curious.log(), ["unknown", "unknown"]);
        assert!(running.stop().await);
    }
}
