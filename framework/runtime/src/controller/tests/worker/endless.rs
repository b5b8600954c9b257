//! Reconciles that cause themselves.

use super::*;
use crate::controller::{LoopGuard, Timer};

/// Writes something new each time.
#[derive(Clone, Default)]
struct Restless {
    runs: Arc<AtomicU32>,
}

impl Reconciler for Restless {
    type Object = Site;

    async fn reconcile(&self, site: &Site, cx: &Context<Self>) -> Result {
        let run = self.runs.fetch_add(1, Ordering::SeqCst);
        match site.spec.host.as_str() {
            // Without the context, so that the write is not known as an own write.
            "label" | "slow label" => {
                if site.spec.host != "label" {
                    pass_ms(200).await;
                }
                let patch = json!({ "metadata": { "labels": { "run": run.to_string() } } });
                cx.client()
                    .namespace::<Site>("shop")
                    .patch(site.name(), Patch::Merge(patch))
                    .await?;
            }
            "status" => cx.patch_status(json!({ "seen": run })).await?,
            _ => {}
        }
        Ok(Action::done())
    }
}

impl Restless {
    fn runs(&self) -> u32 {
        self.runs.load(Ordering::SeqCst)
    }
}

async fn pass_ms(millis: u64) {
    tokio::time::sleep(Duration::from_millis(millis)).await;
}

async fn pass(seconds: u64) {
    tokio::time::sleep(Duration::from_secs(seconds)).await;
}

#[tokio::test(start_paused = true)]
async fn c4_a_planted_loop_is_slowed_down_logged_once_and_ends_with_its_cause() {
    let (logged, _guard) = Captured::at(tracing::Level::WARN);
    let (world, restless) = (World::start().await, Restless::default());
    let running = world.run(ControllerBuilder::new().build(restless.clone())).await;
    world.create("home", "label").await;
    world.create("other", "quiet").await;
    pass(600).await;
    assert!((600..=665).contains(&restless.runs()), "{}", restless.runs());
    assert_eq!(logged.with("limit=50 times within 60s, then once in 1s").len(), 1);
    assert_eq!(world.counted(&names::RECONCILE_THROTTLED), 1);
    let reported = running.handle.busy_report();
    assert_eq!((reported.now.len(), reported.endless.len()), (1, 1));
    assert!(reported.endless[0].starts_with("shop/home: reconciled 6"), "{reported:?}");
    assert!(reported.endless[0].ends_with("because: changed"), "{reported:?}");

    world.patch("home", json!({ "spec": { "host": "quiet" } })).await;
    running.settled().await;
    let runs = restless.runs();
    pass(120).await;
    assert_eq!(restless.runs(), runs);
    world.patch("home", json!({ "metadata": { "labels": { "run": "x" } } })).await;
    running.settled().await;
    assert!(running.handle.busy_report().now.is_empty());
    assert_eq!(logged.with("limit=50 times within 60s, then once in 1s").len(), 1);
}

#[tokio::test(start_paused = true)]
#[should_panic(expected = "it reconciles without end")]
async fn c4_a_test_that_leaves_a_controller_that_loops_fails() {
    let (world, restless) = (World::start().await, Restless::default());
    let running = world.run(ControllerBuilder::new().build(restless.clone())).await;
    world.create("home", "label").await;
    pass(30).await;
    drop(running);
}

#[tokio::test(start_paused = true)]
async fn a_timer_of_a_second_is_no_loop() {
    let (world, restless) = (World::start().await, Restless::default());
    let timer = Timer::every(Duration::from_secs(1), "probe");
    let running = world.run(ControllerBuilder::new().timer(timer).build(restless.clone())).await;
    world.create("home", "quiet").await;
    pass(200).await;
    assert!(restless.runs() > 170, "{}", restless.runs());
    assert_eq!(world.counted(&names::RECONCILE_THROTTLED), 0);
    assert_eq!(running.handle.busy_report().endless, [""; 0]);
    running.stop.cancel();
}

#[tokio::test(start_paused = true)]
async fn c4_a_status_that_is_new_each_time_enqueues_nothing() {
    let (world, restless) = (World::start().await, Restless::default());
    let running = world.run(ControllerBuilder::new().build(restless.clone())).await;
    world.create("home", "status").await;
    pass(600).await;
    assert!(restless.runs() <= 2, "{}", restless.runs());
    assert!(running.stop().await);
}

#[tokio::test(start_paused = true)]
async fn an_object_whose_spec_is_changed_often_is_reconciled_as_often() {
    let (world, restless) = (World::start().await, Restless::default());
    let running = world.run(ControllerBuilder::new().build(restless.clone())).await;
    world.create("home", "quiet").await;
    for n in 0..200 {
        world.patch("home", json!({ "spec": { "config": n.to_string() } })).await;
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    running.settled().await;
    assert!(restless.runs() >= 200, "{}", restless.runs());
    assert_eq!(world.counted(&names::RECONCILE_THROTTLED), 0);
    assert!(running.stop().await);
}

#[tokio::test(start_paused = true)]
async fn a_controller_may_have_a_guard_of_its_own_or_none() {
    for (guard, expected) in [
        (LoopGuard::new(5, Duration::from_secs(60)).spacing(Duration::from_secs(10)), 15..=20),
        (LoopGuard::off(), 500..=u32::MAX),
    ] {
        let (world, restless) = (World::start().await, Restless::default());
        let builder = ControllerBuilder::new().loop_guard(guard);
        let running = world.start_only(builder.build(restless.clone())).await;
        world.create("home", "slow label").await;
        pass(120).await;
        assert!(expected.contains(&restless.runs()), "{guard}: {}", restless.runs());
        let is_reported = !running.handle.busy_report().endless.is_empty();
        assert_eq!(is_reported, guard != LoopGuard::off(), "{guard}");
        world.patch("home", json!({ "spec": { "host": "quiet" } })).await;
        running.settled().await;
        assert!(running.stop().await);
    }
}

#[tokio::test(start_paused = true)]
async fn an_object_that_is_gone_does_not_wait_for_its_rate() {
    let (world, notes) = (World::start().await, Noting::default());
    let builder = ControllerBuilder::<Noting>::new().rate_limit(1, Duration::from_secs(600));
    let running = world.start_only(builder.build(notes.clone())).await;
    world.create("home", "a").await;
    pass(1).await;
    world.patch("home", json!({ "spec": { "config": "x" } })).await;
    pass(1).await;
    assert_eq!(notes.noted(), ["home: changed"]);
    assert_eq!(running.handle.state().backing_off, 1);
    world.sites().delete("home").await.expect("deleted");
    pass(1).await;
    assert_eq!(running.handle.state().backing_off, 0, "it is forgotten at once");
    world.create("home", "a").await;
    pass(1).await;
    assert_eq!(notes.noted(), ["home: changed"], "and another of its name is not it");
    assert!(running.stop().await);
}

/// Reasons that wait for the rate limit are not lost.
#[tokio::test(start_paused = true)]
async fn an_object_with_a_rate_is_reconciled_no_more_often_and_not_less() {
    let (world, notes) = (World::start().await, Noting::default());
    let builder = ControllerBuilder::<Noting>::new().owns::<ConfigMap>();
    let builder = builder.rate_limit(2, Duration::from_secs(60));
    let running = world.start_only(builder.build(notes.clone())).await;
    world.create("home", "a").await;
    pass(1).await;
    for n in 0..20 {
        world.patch("home", json!({ "spec": { "config": n.to_string() } })).await;
        pass(1).await;
    }
    assert_eq!(notes.noted(), ["home: changed", "home: changed"]);
    world.create("other", "a").await;
    pass(1).await;
    assert_eq!(notes.noted(), ["other: changed"], "each object has its own");
    pass(39).await;
    assert_eq!(notes.noted(), ["home: changed"], "one for all that came");
    pass(120).await;
    assert!(notes.noted().is_empty());
    assert_eq!(world.counted(&names::RECONCILE_THROTTLED), 0);
    assert!(running.stop().await);
}
