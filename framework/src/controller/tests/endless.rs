//! Reconciles that wake themselves.

use super::*;

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
            // Past the context, so that nobody knows it for an own write.
            "label" => {
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

async fn pass(seconds: u64) {
    tokio::time::sleep(Duration::from_secs(seconds)).await;
}

#[tokio::test(start_paused = true)]
async fn c4_a_planted_loop_is_slowed_down_told_once_and_ends_with_its_cause() {
    let (logged, _guard) = Captured::at(tracing::Level::WARN);
    let (world, restless) = (World::start().await, Restless::default());
    let running = world.run(Wiring::new().build(restless.clone())).await;
    world.create("home", "label").await;
    world.create("other", "quiet").await;
    pass(600).await;
    assert!((600..=665).contains(&restless.runs()), "{}", restless.runs());
    assert_eq!(logged.with("more than 50 times within a minute").len(), 1);
    assert_eq!(world.counted(&names::RECONCILE_THROTTLED), 1);
    let told = running.handle.unrest();
    assert_eq!((told.now.len(), told.endless.len()), (1, 1));
    assert!(told.endless[0].starts_with("shop/home: reconciled 6"), "{told:?}");
    assert!(told.endless[0].ends_with("because: changed"), "{told:?}");

    world.patch("home", json!({ "spec": { "host": "quiet" } })).await;
    running.settled().await;
    let runs = restless.runs();
    pass(120).await;
    assert_eq!(restless.runs(), runs);
    world.patch("home", json!({ "metadata": { "labels": { "run": "x" } } })).await;
    running.settled().await;
    assert!(running.handle.unrest().now.is_empty());
    assert_eq!(logged.with("more than 50 times within a minute").len(), 1);
}

#[tokio::test(start_paused = true)]
#[should_panic(expected = "it reconciles without end")]
async fn c4_a_test_that_leaves_a_controller_that_loops_fails() {
    let (world, restless) = (World::start().await, Restless::default());
    let running = world.run(Wiring::new().build(restless.clone())).await;
    world.create("home", "label").await;
    pass(30).await;
    drop(running);
}

#[tokio::test(start_paused = true)]
async fn c4_a_status_that_is_new_each_time_wakes_nobody() {
    let (world, restless) = (World::start().await, Restless::default());
    let running = world.run(Wiring::new().build(restless.clone())).await;
    world.create("home", "status").await;
    pass(600).await;
    assert!(restless.runs() <= 2, "{}", restless.runs());
    assert!(running.stop().await);
}

#[tokio::test(start_paused = true)]
async fn an_object_whose_spec_is_changed_often_is_reconciled_as_often() {
    let (world, restless) = (World::start().await, Restless::default());
    let running = world.run(Wiring::new().build(restless.clone())).await;
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
