//! Tasks that live as long as their object.

use super::*;
use crate::controller::Predicate;
use windlass_cache::informer::Change;

/// The tasks note the versions that they see.
#[derive(Clone, Default)]
struct Attending {
    log: Arc<Mutex<Vec<String>>>,
}

impl Attending {
    fn say(&self, what: impl Into<String>) {
        self.log.lock().push(what.into());
    }

    fn log(&self) -> Vec<String> {
        std::mem::take(&mut *self.log.lock())
    }
}

impl Reconciler for Attending {
    type Object = Site;

    async fn reconcile(&self, site: &Site, cx: &Context<Self>) -> Result {
        match site.spec.host.as_str() {
            "asks" => {
                self.say(cx.reasons().to_string());
                Ok(Action::done())
            }
            "fails" => Err("on purpose".into()),
            _ => Ok(Action::done()),
        }
    }
}

impl Finalize for Attending {
    async fn cleanup(&self, _: &Site, _: &Context<Self>) -> Result<()> {
        self.say("cleanup");
        Ok(())
    }
}

impl ObjectTask for Attending {
    async fn run(&self, mut task: TaskContext<Self>) -> Result<()> {
        let host = task.object()?.spec.host.clone();
        self.say(format!("starts {} {host}", task.key().name()));
        match host.as_str() {
            "panics" => panic!("on purpose"),
            "short" => return Ok(()),
            "asks" => task.requeue(),
            "stubborn" => std::future::pending().await,
            _ => {}
        }
        while task.changed().await {
            self.say(format!("sees {}", task.object()?.spec.host));
        }
        tokio::time::sleep(Duration::from_secs(1)).await;
        self.say("ends");
        Ok(())
    }
}

async fn pass(seconds: u64) {
    tokio::time::sleep(Duration::from_secs(seconds)).await;
}

async fn start(builder: ControllerBuilder<Attending>, host: &str) -> (World, Attending, Running) {
    let (world, attending) = (World::start().await, Attending::default());
    let builder = builder.task_per_object();
    let running = world.start_only(builder.build(attending.clone())).await;
    world.create("home", host).await;
    pass(1).await;
    (world, attending, running)
}

fn running_tasks(world: &World) -> Option<f64> {
    world.client.environment().metrics.level(&names::OBJECT_TASKS, &["site"])
}

#[tokio::test(start_paused = true)]
async fn a_task_lives_as_long_as_its_object_and_sees_its_versions() {
    let (world, attending, running) = start(ControllerBuilder::new(), "a").await;
    assert_eq!(attending.log(), ["starts home a"]);
    assert_eq!(running_tasks(&world), Some(1.0));
    world.patch("home", json!({ "spec": { "host": "b" } })).await;
    pass(1).await;
    assert_eq!(attending.log(), ["sees b"]);
    world.sites().delete("home").await.expect("deleted");
    pass(2).await;
    assert_eq!(attending.log(), ["ends"]);
    assert_eq!(running_tasks(&world), Some(0.0));
    world.create("home", "c").await;
    pass(1).await;
    assert_eq!(attending.log(), ["starts home c"], "the next of that name has its own");
    assert!(running.stop().await);
    assert_eq!(attending.log(), ["ends"], "a stop waits for it");
}

#[tokio::test(start_paused = true)]
async fn a_task_has_ended_before_the_clean_up_begins() {
    let (world, attending, running) =
        start(ControllerBuilder::new().finalizer(FINALIZER), "a").await;
    assert_eq!(attending.log(), ["starts home a"]);
    world.sites().delete("home").await.expect("deleted");
    pass(3).await;
    assert_eq!(attending.log(), ["ends", "cleanup"]);
    assert!(running.stop().await);
}

#[tokio::test(start_paused = true)]
async fn a_task_starts_with_the_first_success() {
    let (world, attending, running) = start(ControllerBuilder::new(), "fails").await;
    pass(100).await;
    assert!(attending.log().is_empty());
    world.patch("home", json!({ "spec": { "host": "a" } })).await;
    pass(1).await;
    assert_eq!(attending.log(), ["starts home a"]);
    assert!(running.stop().await);
}

#[tokio::test(start_paused = true)]
async fn a_task_that_panics_is_started_again_with_backoff() {
    let (world, attending, running) = start(ControllerBuilder::new(), "panics").await;
    pass(600).await;
    let starts = attending.log().len();
    assert!((8..20).contains(&starts), "{starts}");
    let restarts = world.counted(&names::OBJECT_TASK_RESTARTS);
    assert_eq!(restarts as usize, starts - 1);
    assert_eq!(world.counted(&names::RECONCILE_PANICS), 0);
    world.patch("home", json!({ "spec": { "host": "a" } })).await;
    pass(301).await;
    assert_eq!(attending.log().last().map(String::as_str), Some("starts home a"));
    assert!(running.stop().await);
}

#[tokio::test(start_paused = true)]
async fn a_task_that_is_done_stays_done() {
    let (world, attending, running) = start(ControllerBuilder::new(), "short").await;
    world.patch("home", json!({ "spec": { "host": "a" } })).await;
    pass(600).await;
    assert_eq!(attending.log(), ["starts home short"]);
    assert_eq!(running_tasks(&world), Some(0.0));
    assert!(running.stop().await);
}

#[tokio::test(start_paused = true)]
async fn a_task_that_does_not_end_is_dropped_after_ten_seconds() {
    let (world, _attending, running) = start(ControllerBuilder::new(), "stubborn").await;
    let began = tokio::time::Instant::now();
    assert!(!running.stop().await, "and the run says so");
    assert!((9..12).contains(&began.elapsed().as_secs()), "{:?}", began.elapsed());
    pass(1).await;
    assert_eq!(running_tasks(&world), Some(0.0));
}

#[tokio::test(start_paused = true)]
async fn a_task_that_asks_for_a_reconcile_says_so() {
    // Without a separate reason the request would be taken for part of another cause.
    let (_world, attending, running) = start(ControllerBuilder::new(), "asks").await;
    let asked = ["changed", "starts home asks", "asked by another reconcile", "sees asks"];
    assert_eq!(attending.log(), asked);
    assert!(running.stop().await);
}

#[tokio::test(start_paused = true)]
async fn a_task_does_not_outlive_a_reconcile_that_waited_for_its_end_and_was_cut() {
    let builder =
        ControllerBuilder::new().finalizer(FINALIZER).reconcile_timeout(Duration::from_secs(2));
    let (world, attending, running) = start(builder, "stubborn").await;
    assert_eq!(attending.log(), ["starts home stubborn"]);
    world.sites().delete("home").await.expect("deleted");
    pass(8).await;
    assert_eq!(attending.log(), ["cleanup"]);
    assert_eq!(running_tasks(&world), Some(0.0), "it works on what was cleaned up");
    assert!(running.stop().await);
}

#[tokio::test(start_paused = true)]
async fn tasks_start_anew_when_the_controller_runs_again() {
    let (world, attending) = (World::start().await, Attending::default());
    world.create("home", "a").await;
    let handle = ControllerBuilder::new().task_per_object().build(attending.clone());
    let informers = InformerRegistry::new(world.client.clone(), vec![]);
    handle.attach(&informers).expect("the sources can be attached");
    let over = CancellationToken::new();
    let _over = over.clone().drop_guard();
    tokio::spawn({
        let informers = informers.clone();
        async move { informers.run(over).await }
    });
    informers.synced().await;
    for _term in 0..2 {
        let (client, stop) = (world.client.clone(), CancellationToken::new());
        let drain = Duration::from_secs(25);
        let run = ControllerRun { client, informers: informers.clone(), stop, drain };
        let stop = run.stop.clone();
        let (work, _) = tokio::join!(handle.run(run), async {
            pass(2).await;
            assert_eq!(attending.log(), ["starts home a"]);
            stop.cancel();
        });
        assert!(work);
        assert_eq!(attending.log(), ["ends"]);
    }
}

#[tokio::test(start_paused = true)]
async fn a_task_ends_with_its_object_even_if_a_predicate_drops_the_deletion() {
    let alive = Predicate::new(|change| !matches!(change, Change::Deleted { .. }));
    let (world, attending, running) = start(ControllerBuilder::new().when(alive), "a").await;
    assert_eq!(attending.log(), ["starts home a"]);
    world.sites().delete("home").await.expect("deleted");
    pass(3).await;
    assert_eq!(attending.log(), ["ends"]);
    assert_eq!(running_tasks(&world), Some(0.0));
    assert!(running.stop().await);
}
