//! Reconciles that are dropped before their end, and the tasks that they left behind.

use super::*;
use windlass_core::error::ErrorKind;

/// Spawns a task that writes every ten seconds, and acts as the host says.
#[derive(Clone, Default)]
struct Leaving {
    /// Results of the task's writes, by the host.
    log: Arc<Mutex<Vec<String>>>,
}

impl Leaving {
    fn log(&self) -> Vec<String> {
        std::mem::take(&mut *self.log.lock())
    }
}

impl Reconciler for Leaving {
    type Object = Site;

    async fn reconcile(&self, site: &Site, cx: &Context<Self>) -> Result {
        let (log, host) = (Arc::clone(&self.log), site.spec.host.clone());
        let (client, api) = (cx.client().clone(), cx.api::<ConfigMap>());
        tokio::spawn(async move {
            for turn in 0..9 {
                tokio::time::sleep(Duration::from_secs(10)).await;
                let name = format!("{host}-{turn}");
                let by_api = api.create(&child(&name, "api")).await.err().map(|e| e.kind());
                let maps = client.namespace::<ConfigMap>("shop");
                let by_client = maps.delete(&name).await.err().map(|e| e.kind());
                log.lock().push(format!("{host}: {by_api:?} {by_client:?}"));
            }
        });
        if site.spec.host != "ends" {
            std::future::pending::<()>().await;
        }
        Ok(Action::done())
    }
}

const WRITES: &str = "None None";

async fn pass(seconds: u64) {
    tokio::time::sleep(Duration::from_secs(seconds)).await;
}

async fn start(builder: ControllerBuilder<Leaving>, host: &str) -> (World, Leaving, Running) {
    let (world, leaving) = (World::start().await, Leaving::default());
    let retry = RetryPolicy::at_most(0);
    let builder = builder.reconcile_timeout(Duration::from_secs(35)).retry(retry);
    let running = world.run(builder.build(leaving.clone())).await;
    world.create("home", host).await;
    (world, leaving, running)
}

fn refused() -> String {
    let refused = Some(ErrorKind::Cancelled);
    format!("{refused:?} {refused:?}")
}

#[tokio::test(start_paused = true)]
async fn k5_a_task_of_a_reconcile_that_hit_its_deadline_writes_nothing_more() {
    let (_world, leaving, running) = start(ControllerBuilder::new(), "hangs").await;
    pass(34).await;
    assert_eq!(leaving.log(), [0, 1, 2].map(|_| format!("hangs: {WRITES}")));
    pass(12).await;
    assert_eq!(leaving.log(), [format!("hangs: {}", refused())]);
    running.stop.cancel();
}

#[tokio::test(start_paused = true)]
async fn k5_a_task_of_a_reconcile_that_the_drain_cut_writes_nothing_more() {
    let builder = ControllerBuilder::new().reconcile_timeout(Duration::from_secs(3_600));
    let (world, leaving) = (World::start().await, Leaving::default());
    let running = world.run(builder.build(leaving.clone())).await;
    world.create("home", "hangs").await;
    pass(12).await;
    assert_eq!(leaving.log(), [format!("hangs: {WRITES}")]);
    assert!(!running.stop().await, "it was cut after 25 s");
    assert_eq!(leaving.log().len(), 2, "it may write while it drains");
    pass(20).await;
    assert_eq!(leaving.log(), [0, 1].map(|_| format!("hangs: {}", refused())));
}

#[tokio::test(start_paused = true)]
async fn k5_a_task_of_a_reconcile_that_was_superseded_writes_nothing_more() {
    let builder = ControllerBuilder::new().cancel_superseded();
    let (world, leaving, running) = start(builder, "hangs").await;
    pass(15).await;
    assert_eq!(leaving.log(), [format!("hangs: {WRITES}")]);
    world.patch("home", json!({ "spec": { "host": "ends" } })).await;
    pass(11).await;
    let mut log = leaving.log();
    log.sort();
    assert_eq!(log, [format!("ends: {WRITES}"), format!("hangs: {}", refused())]);
    running.stop.cancel();
}

#[tokio::test(start_paused = true)]
async fn a_task_of_a_reconcile_that_ended_by_itself_may_go_on() {
    let (_world, leaving, running) = start(ControllerBuilder::new(), "ends").await;
    pass(95).await;
    assert_eq!(leaving.log(), [0; 9].map(|_| format!("ends: {WRITES}")));
    assert!(running.stop().await);
}
