//! Reconciles that outlive the state that they were started for.

use super::*;

/// Takes a minute, and notes whether the reconcile was superseded.
#[derive(Clone, Default)]
struct Slow {
    log: Arc<Mutex<Vec<String>>>,
    minds: bool,
}

impl Reconciler for Slow {
    type Object = Site;

    async fn reconcile(&self, site: &Site, cx: &Context<Self>) -> Result {
        let say = |what: &str| self.log.lock().push(format!("{what} {}", site.spec.host));
        say("begins");
        let work = tokio::time::sleep(Duration::from_secs(60));
        if self.minds {
            tokio::select! {
                biased;
                () = cx.until_superseded() => say("notified"),
                () = work => say(if cx.superseded() { "late" } else { "ends" }),
            }
        } else {
            work.await;
            say(if cx.superseded() { "late" } else { "ends" });
        }
        Ok(Action::done())
    }
}

impl Slow {
    fn log(&self) -> Vec<String> {
        std::mem::take(&mut *self.log.lock())
    }
}

async fn pass(seconds: u64) {
    tokio::time::sleep(Duration::from_secs(seconds)).await;
}

async fn start(builder: ControllerBuilder<Slow>, minds: bool) -> (World, Slow, Running) {
    let (world, slow) = (World::start().await, Slow { minds, ..Slow::default() });
    let running = world.run(builder.build(slow.clone())).await;
    world.create("home", "a").await;
    pass(10).await;
    (world, slow, running)
}

#[tokio::test(start_paused = true)]
async fn a_running_reconcile_is_notified_when_its_object_changes() {
    let (world, slow, running) = start(ControllerBuilder::new(), true).await;
    world.patch("home", json!({ "spec": { "host": "b" } })).await;
    pass(1).await;
    assert_eq!(slow.log(), ["begins a", "notified a", "begins b"]);
    pass(70).await;
    assert_eq!(slow.log(), ["ends b"]);
    assert!(running.stop().await);
}

#[tokio::test(start_paused = true)]
async fn a_running_reconcile_is_notified_when_its_object_is_deleted() {
    let (world, slow, running) = start(ControllerBuilder::new(), true).await;
    world.sites().delete("home").await.expect("deleted");
    pass(1).await;
    assert_eq!(slow.log(), ["begins a", "notified a"]);
    assert!(running.stop().await);
}

#[tokio::test(start_paused = true)]
async fn changes_of_labels_or_status_do_not_supersede_a_reconcile() {
    let (world, slow, running) = start(ControllerBuilder::new(), true).await;
    world.patch("home", json!({ "metadata": { "labels": { "touched": "yes" } } })).await;
    let status = Patch::Merge(json!({ "status": { "seen": 7 } }));
    world.sites().patch("home", status).status().await.expect("patched");
    pass(60).await;
    assert_eq!(slow.log()[..2], ["begins a", "ends a"]);
    running.stop.cancel();
}

#[tokio::test(start_paused = true)]
async fn a_reconcile_that_ignores_its_cancellation_runs_on_and_can_check_for_changes() {
    let (world, slow, running) = start(ControllerBuilder::new(), false).await;
    world.patch("home", json!({ "spec": { "host": "b" } })).await;
    pass(60).await;
    assert_eq!(slow.log()[..3], ["begins a", "late a", "begins b"]);
    running.stop.cancel();
}

#[tokio::test(start_paused = true)]
async fn a_superseded_reconcile_is_dropped_and_begins_again_at_once() {
    let (world, slow, running) = start(ControllerBuilder::new().cancel_superseded(), false).await;
    world.patch("home", json!({ "spec": { "host": "b" } })).await;
    pass(1).await;
    assert_eq!(slow.log(), ["begins a", "begins b"]);
    pass(60).await;
    assert_eq!(slow.log(), ["ends b"]);
    assert_eq!(world.counted(&names::RECONCILE_ERRORS), 0);
    assert!(running.stop().await);
}

#[tokio::test(start_paused = true)]
async fn an_object_that_never_rests_is_reconciled_to_the_end_now_and_then() {
    let (world, slow, running) = start(ControllerBuilder::new().cancel_superseded(), false).await;
    for n in 0..40 {
        world.patch("home", json!({ "spec": { "host": n.to_string() } })).await;
        pass(10).await;
    }
    let log = slow.log();
    assert!(log.iter().any(|entry| entry.starts_with("late")), "{log:?}");
    running.stop.cancel();
}
