//! Reconciles and clean-ups that wait, and conditions whose reasons are those of waits.

use super::*;
use crate::controller::conditions::reasons;

/// Waits as the host of the site says: `REASON` and a number of runs, before readiness.
#[derive(Clone, Default)]
struct Waits {
    tries: Arc<Mutex<Vec<tokio::time::Instant>>>,
    reports: Arc<AtomicU32>,
    cleanups: Arc<AtomicU32>,
}

impl Waits {
    fn tries(&self) -> usize {
        self.tries.lock().len()
    }

    fn pauses(&self) -> Vec<f64> {
        let tries = self.tries.lock();
        tries.windows(2).map(|two| (two[1] - two[0]).as_secs_f64()).collect()
    }
}

impl Reconciler for Waits {
    type Object = Site;

    async fn reconcile(&self, site: &Site, cx: &Context<Self>) -> Result {
        self.tries.lock().push(tokio::time::Instant::now());
        if let Some(reason) = site.spec.host.strip_prefix("own ") {
            cx.set_condition(unmet("Ready", reason, "says so itself")).await?;
            return Ok(Action::done());
        }
        Ok(match site.spec.host.as_str() {
            "ready" => Action::done(),
            "deep" => Err(Failure::wait_for("Certificate", "not issued")).tried("serving")?,
            "counts" => Action::wait_for("Rollout", format!("{} of 3", self.tries())),
            "often" => {
                Action::wait_for("Rollout", "1 of 3").check_after(Duration::from_millis(500))
            }
            "fails" if self.tries() % 2 == 1 => Err("the registry is away")?,
            _ => Action::wait_for("Rollout", "1 of 3"),
        })
    }
}

impl Finalize for Waits {
    async fn cleanup(&self, _: &Site, _: &Context<Self>) -> Result<()> {
        if self.cleanups.fetch_add(1, Ordering::SeqCst) < 3 {
            return Err(Failure::wait_for("Backup", "is being written"));
        }
        Ok(())
    }
}

impl OnFailure for Waits {
    async fn failed(&self, _: &Failure, _: &Context<Self>) -> Result<()> {
        self.reports.fetch_add(1, Ordering::SeqCst);
        Ok(())
    }
}

fn builder() -> ControllerBuilder<Waits> {
    ControllerBuilder::new()
        .retry(RetryPolicy::at_most(2))
        .outcome_condition("Ready")
        .report_failures()
}

async fn start(
    world: &World,
    waits: &Waits,
    builder: ControllerBuilder<Waits>,
    host: &str,
) -> Running {
    let running = world.start_only(builder.build(waits.clone())).await;
    world.create("home", host).await;
    running
}

async fn ready(world: &World) -> Option<(String, String, String)> {
    let status = world.sites().get("home").await.expect("it is there").status?;
    let found = status.conditions.get("Ready")?.clone();
    Some((found.status, found.reason, found.message))
}

fn waiting(world: &World) -> Option<f64> {
    world.client.environment().metrics.level(&names::WAITING, &["site"])
}

async fn pass(seconds: u64) {
    tokio::time::sleep(Duration::from_secs(seconds)).await;
}

#[tokio::test(start_paused = true)]
async fn a_reconcile_that_waits_is_no_failure_and_is_shown_with_its_reason() {
    let (captured, _logging) = Captured::at(tracing::Level::WARN);
    let (world, waits) = (World::start().await, Waits::default());
    let running = start(&world, &waits, builder(), "waits").await;
    pass(3600).await;
    assert!(waits.tries() > 60, "it is checked for ever: {}", waits.tries());
    assert_eq!(waits.reports.load(Ordering::SeqCst), 0);
    assert_eq!(world.counted(&names::RECONCILE_ERRORS), 0);
    assert_eq!(world.counted(&names::RECONCILE_GIVEN_UP), 0);
    let expected = ("False".into(), "Waiting".into(), "Rollout: 1 of 3".into());
    assert_eq!(ready(&world).await, Some(expected));
    assert_eq!(waiting(&world), Some(1.0));
    let shown = running.handle.dump(10)["waiting"][0].clone();
    assert_eq!((&shown["key"], &shown["reason"]), (&json!("shop/home"), &json!("Rollout")));
    assert!(running.handle.dump(10)["lastErrors"].as_array().expect("a list").is_empty());
    let writes = world.writes().into_iter().filter(|write| write == "patch sites/status");
    assert_eq!(writes.count(), 1, "checks write nothing");
    assert!(captured.with("stalled").is_empty(), "it waits: {}", captured.text());

    world.patch("home", json!({ "spec": { "host": "ready" } })).await;
    pass(5).await;
    let expected = ("True".into(), "Reconciled".into(), String::new());
    assert_eq!(ready(&world).await, Some(expected));
    assert_eq!(waiting(&world), Some(0.0));
    assert!(running.handle.dump(10)["waiting"].as_array().expect("a list").is_empty());
    assert!(running.stop().await);
}

#[tokio::test(start_paused = true)]
async fn a_condition_that_a_success_has_set_stays_whatever_its_reason() {
    for reason in reasons::ALL {
        let (world, waits) = (World::start().await, Waits::default());
        let running = start(&world, &waits, builder(), &format!("own {reason}")).await;
        pass(5).await;
        let own = ("False".into(), reason.into(), "says so itself".into());
        assert_eq!(ready(&world).await, Some(own));
        world.patch("home", json!({ "spec": { "host": "waits" } })).await;
        pass(5).await;
        let expected = ("False".into(), "Waiting".into(), "Rollout: 1 of 3".into());
        assert_eq!(ready(&world).await, Some(expected), "after {reason}");
        world.patch("home", json!({ "spec": { "host": "ready" } })).await;
        pass(5).await;
        let expected = ("True".into(), "Reconciled".into(), String::new());
        assert_eq!(ready(&world).await, Some(expected), "after {reason}");
        assert!(running.stop().await);
    }
}

#[tokio::test(start_paused = true)]
async fn checks_become_rarer_while_nothing_changes() {
    let (world, waits) = (World::start().await, Waits::default());
    let running = start(&world, &waits, builder(), "waits").await;
    pass(300).await;
    let pauses = waits.pauses();
    for (pause, most) in pauses.iter().zip([1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 60.0, 60.0]) {
        assert!((most * 0.9..=most + 0.01).contains(pause), "{pauses:?}");
    }
    assert!(running.stop().await);
}

#[tokio::test(start_paused = true)]
async fn progress_is_checked_soon_and_reported() {
    let (world, waits) = (World::start().await, Waits::default());
    let running = start(&world, &waits, builder(), "counts").await;
    pass(20).await;
    assert!(waits.pauses().iter().all(|pause| *pause < 1.1), "{:?}", waits.pauses());
    let message = ready(&world).await.expect("a condition").2;
    assert_eq!(message, format!("Rollout: {} of 3", waits.tries()));
    running.stop.cancel();
}

#[tokio::test(start_paused = true)]
async fn a_wait_may_name_the_time_of_its_next_check() {
    let (world, waits) = (World::start().await, Waits::default());
    let running = start(&world, &waits, builder(), "often").await;
    pass(10).await;
    let pauses = waits.pauses();
    assert!(pauses.len() > 15 && pauses.iter().all(|it| (0.5..0.6).contains(it)), "{pauses:?}");
    running.stop.cancel();
}

#[tokio::test(start_paused = true)]
async fn a_wait_passes_through_functions_that_return_no_action() {
    let (world, waits) = (World::start().await, Waits::default());
    let running = start(&world, &waits, builder(), "deep").await;
    pass(60).await;
    let expected = ("False".into(), "Waiting".into(), "Certificate: serving: not issued".into());
    assert_eq!(ready(&world).await, Some(expected));
    assert_eq!(world.counted(&names::RECONCILE_ERRORS), 0);
    assert!(running.stop().await);
}

#[tokio::test(start_paused = true)]
async fn a_wait_ends_the_failures_in_a_row() {
    let (world, waits) = (World::start().await, Waits::default());
    let running = start(&world, &waits, builder(), "fails").await;
    pass(600).await;
    assert!(world.counted(&names::RECONCILE_ERRORS) > 5);
    assert!(waits.tries() < 60, "checks become rarer all the same: {}", waits.tries());
    assert_eq!(world.counted(&names::RECONCILE_GIVEN_UP), 0, "two retries are never used up");
    assert!(running.stop().await);
}

#[tokio::test(start_paused = true)]
async fn a_change_of_the_object_is_not_delayed_by_a_wait() {
    let (world, waits) = (World::start().await, Waits::default());
    let running = start(&world, &waits, builder(), "waits").await;
    pass(100).await;
    let tries = waits.tries();
    world.patch("home", json!({ "spec": { "host": "other" } })).await;
    tokio::time::sleep(Duration::from_millis(500)).await;
    assert_eq!(waits.tries(), tries + 1);
    assert!(running.stop().await);
}

#[tokio::test(start_paused = true)]
async fn a_clean_up_that_waits_is_no_failure_and_keeps_the_object() {
    let (world, waits) = (World::start().await, Waits::default());
    let running = start(&world, &waits, builder().finalizer(FINALIZER), "ready").await;
    pass(5).await;
    world.sites().delete("home").await.expect("deleted");
    tokio::time::sleep(Duration::from_millis(500)).await;
    let expected = ("False".into(), "Terminating".into(), "Backup: is being written".into());
    assert_eq!(ready(&world).await, Some(expected));
    assert_eq!(waiting(&world), Some(1.0));
    pass(60).await;
    assert!(world.sites().get_opt("home").await.expect("an answer").is_none());
    assert_eq!(waits.cleanups.load(Ordering::SeqCst), 4);
    assert_eq!(world.counted(&names::RECONCILE_ERRORS), 0);
    assert_eq!(waits.reports.load(Ordering::SeqCst), 0);
    assert_eq!(waiting(&world), Some(0.0), "an object that is gone does not wait");
    assert!(running.stop().await);
}

#[tokio::test(start_paused = true)]
async fn a_replica_that_does_not_lead_any_more_shows_no_waiting_and_no_paused_objects() {
    let (world, waits) = (World::start().await, Waits::default());
    let running = start(&world, &waits, builder(), "waits").await;
    world.create("other", "waits").await;
    world.patch("other", json!({ "metadata": { "annotations": { PAUSED: "true" } } })).await;
    pass(5).await;
    let paused = || world.client.environment().metrics.level(&names::PAUSED, &["site"]);
    assert_eq!((waiting(&world), paused()), (Some(1.0), Some(1.0)));
    let handle = Arc::clone(&running.handle);
    assert!(running.stop().await);
    assert_eq!((waiting(&world), paused()), (Some(0.0), Some(0.0)));
    assert!(handle.dump(10)["waiting"].as_array().expect("a list").is_empty());
}
