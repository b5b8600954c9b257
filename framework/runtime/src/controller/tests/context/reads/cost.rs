//! The cost of registered reads beside that of plain reads.

use super::*;

/// Reconciles of a measurement.
const RUNS: usize = 20_000;

/// Reads a map in each reconcile, and asks for the next reconcile.
struct Loop {
    is_watched: bool,
    runs: AtomicU32,
}

impl Can<verbs::List, ConfigMap> for Loop {}
impl Can<verbs::Watch, ConfigMap> for Loop {}

impl Reconciler for Loop {
    type Object = Site;

    async fn reconcile(&self, site: &Site, cx: &Context<Self>) -> Result {
        let map = if self.is_watched {
            cx.watch::<ConfigMap>("app").await?
        } else {
            cx.watched::<ConfigMap>().get(&ObjectKey::new(site.namespace(), "app"))
        };
        assert!(map.is_some());
        if self.runs.fetch_add(1, Ordering::Relaxed) < RUNS as u32 {
            cx.requeue(site.key());
        }
        Ok(Action::done())
    }
}

/// Returns the time of a reconcile.
async fn measure(world: &World, is_watched: bool) -> Duration {
    let controller = Loop { is_watched, runs: AtomicU32::new(0) };
    let builder = ControllerBuilder::<Loop>::new().watches::<ConfigMap>(|_| Vec::new());
    let handle = builder.loop_guard(LoopGuard::off()).build(controller);
    let running = world.start_only(handle).await;
    while running.handle.state().reconciles < 100 {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    let clock = &world.client.environment().clock;
    let (began, first) = (clock.now(), running.handle.state().reconciles);
    while running.handle.state().reconciles < RUNS as u64 {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    let runs = running.handle.state().reconciles - first;
    let took = clock.now() - began;
    running.stop().await;
    took / u32::try_from(runs).expect("few")
}

#[tokio::test]
#[ignore = "a measurement, to be run alone: --ignored --nocapture"]
async fn the_cost_of_a_registered_read_beside_that_of_a_plain_one() {
    let world = World::start().await;
    world.maps().create(&child("app", "x")).await.expect("created");
    world.create("home", "-").await;
    for turn in 0..5 {
        let (plain, watched) = (measure(&world, false).await, measure(&world, true).await);
        println!("{turn}: plain {plain:?}, watched {watched:?} for each reconcile");
    }
}
