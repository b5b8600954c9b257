//! Handling of failed reconciles: retries, reports, conflicts.

use std::sync::atomic::AtomicBool;

use super::*;
use crate::controller::Timer;

/// Reconciler whose behaviour is selected by `spec.host`.
#[derive(Clone, Default)]
struct Failing {
    attempts: Arc<Mutex<Vec<u32>>>,
    tries: Arc<Mutex<Vec<tokio::time::Instant>>>,
    reports: Arc<Mutex<Vec<String>>>,
    is_well: Arc<AtomicBool>,
    /// Makes reports panic (1), hang (2) or fail (3).
    reports_badly: Arc<AtomicU32>,
}

impl Failing {
    fn tries(&self) -> usize {
        self.tries.lock().len()
    }

    fn reports(&self) -> Vec<String> {
        self.reports.lock().clone()
    }
}

impl Reconciler for Failing {
    type Object = Site;

    async fn reconcile(&self, site: &Site, cx: &Context<Self>) -> Result {
        self.tries.lock().push(tokio::time::Instant::now());
        self.attempts.lock().push(cx.attempt());
        if self.is_well.load(Ordering::SeqCst) {
            return Ok(Action::done());
        }
        match site.spec.host.as_str() {
            "panics" => panic!("on purpose"),
            "hangs" => std::future::pending().await,
            "waits" if self.tries() <= 4 => {
                Err(Failure::retry_after(Duration::from_secs(40), "the zone is being made"))
            }
            "waits" => Ok(Action::done()),
            "terminal" => Err(Failure::terminal("no such zone")),
            "counts" => Err(format!("try {}", cx.attempt()).into()),
            "differs" => Err(format!("request {}", self.tries()).into()),
            "sets a condition" => {
                let text = format!("request {}", self.tries());
                cx.set_condition(unmet("Ready", "Own", &text)).await?;
                Err(text.into())
            }
            "slow" => {
                tokio::time::sleep(Duration::from_secs(5)).await;
                Err("too slow".into())
            }
            "own" => {
                cx.set_condition(unmet("Ready", "Own", "says so itself")).await?;
                Ok(Action::done())
            }
            _ => Err("no route to the registry").tried("pulling the image").tried("starting")?,
        }
    }
}

impl OnFailure for Failing {
    async fn failed(&self, failure: &Failure, cx: &Context<Self>) -> Result<()> {
        let gave_up = if failure.gave_up() { " for good" } else { "" };
        self.reports.lock().push(format!("{}{gave_up}: {failure}", cx.object().name()));
        match self.reports_badly.load(Ordering::SeqCst) {
            1 => panic!("while reporting"),
            2 => std::future::pending().await,
            3 => Err("nobody listens".into()),
            _ => Ok(()),
        }
    }
}

async fn pass(seconds: u64) {
    tokio::time::sleep(Duration::from_secs(seconds)).await;
}

async fn start(
    world: &World,
    failing: &Failing,
    builder: ControllerBuilder<Failing>,
    host: &str,
) -> Running {
    let running = world.start_only(builder.build(failing.clone())).await;
    world.create("home", host).await;
    running
}

async fn condition(world: &World, type_: &str) -> Option<(String, String, String)> {
    let status = world.sites().get("home").await.expect("it is there").status?;
    let found = status.conditions.get(type_)?.clone();
    Some((found.status, found.reason, found.message))
}

async fn events(world: &World, reason: &str) -> Vec<String> {
    let events = world.client.namespace::<Event>("shop").list().await.expect("events").items;
    let of_reason = events.into_iter().filter(|event| event.reason.as_deref() == Some(reason));
    of_reason.filter_map(|event| event.note).collect()
}

#[tokio::test(start_paused = true)]
async fn mechanism_68_an_object_is_given_up_after_its_retries_and_that_is_reported_everywhere() {
    let (world, failing) = (World::start().await, Failing::default());
    let builder = ControllerBuilder::new().retry(RetryPolicy::at_most(3)).report_failures();
    let running = start(&world, &failing, builder, "fails").await;
    pass(3600).await;
    assert_eq!(failing.tries(), 4, "once, and three retries");
    let text = "starting: pulling the image: no route to the registry";
    assert_eq!(failing.reports(), [format!("home: {text}"), format!("home for good: {text}")]);
    assert_eq!(events(&world, "GaveUp").await, [format!("gave up after 4 failures: {text}")]);
    assert_eq!(world.counted(&names::RECONCILE_GIVEN_UP), 1);
    assert_eq!(running.handle.state().backing_off, 0);

    failing.is_well.store(true, Ordering::SeqCst);
    world.patch("home", json!({ "spec": { "host": "b" } })).await;
    pass(1).await;
    assert_eq!(failing.tries(), 5, "a change has it reconciled");
    assert!(running.stop().await);
}

#[tokio::test(start_paused = true)]
async fn a_failure_with_a_delay_is_tried_again_after_it_and_counts_for_nothing() {
    let (world, failing) = (World::start().await, Failing::default());
    let builder = ControllerBuilder::new().retry(RetryPolicy::at_most(1)).report_failures();
    let running = start(&world, &failing, builder, "waits").await;
    pass(3600).await;
    let tries = failing.tries.lock().clone();
    let pauses: Vec<f64> = tries.windows(2).map(|two| (two[1] - two[0]).as_secs_f64()).collect();
    assert_eq!(pauses.len(), 4, "{pauses:?}");
    assert!(pauses.iter().all(|pause| (40.0..41.0).contains(pause)), "{pauses:?}");
    assert_eq!(*failing.attempts.lock(), [0; 5]);
    assert!(
        failing.reports().iter().all(|report| !report.contains("for good")),
        "{:?}",
        failing.reports()
    );
    assert_eq!(world.counted(&names::RECONCILE_GIVEN_UP), 0);
    assert!(running.stop().await);
}

#[tokio::test(start_paused = true)]
async fn an_object_whose_retries_are_used_up_can_be_tried_slowly_for_ever() {
    let (world, failing) = (World::start().await, Failing::default());
    let slowly = AfterMaxRetries::Every(Duration::from_secs(600));
    let builder = ControllerBuilder::new().retry(RetryPolicy::at_most(2)).after_max_retries(slowly);
    let running = start(&world, &failing, builder.report_failures(), "fails").await;
    pass(10).await;
    assert_eq!(failing.tries(), 3);
    // The server keeps Events for an hour.
    pass(3000).await;
    assert_eq!((failing.reports().len(), events(&world, "GaveUp").await.len()), (2, 1));
    pass(600).await;
    assert_eq!(failing.tries(), 3 + 6);
    assert_eq!(world.counted(&names::RECONCILE_GIVEN_UP), 1, "given up once");
    failing.is_well.store(true, Ordering::SeqCst);
    pass(600).await;
    assert_eq!(running.handle.state().backing_off, 0);
    assert!(running.stop().await);
}

#[tokio::test(start_paused = true)]
async fn a_function_may_choose_the_delay_after_the_last_retry() {
    let (world, failing) = (World::start().await, Failing::default());
    // Tries after the last retry are not counted as failures, so 2 is the number each time.
    let ask = |_: &Failure, failures: u32| match failures {
        2 => Some(Duration::from_secs(100)),
        _ => None,
    };
    let builder = ControllerBuilder::new()
        .retry(RetryPolicy::at_most(1))
        .after_max_retries(AfterMaxRetries::Ask(ask));
    let running = start(&world, &failing, builder, "fails").await;
    pass(50).await;
    assert_eq!(failing.tries(), 2);
    pass(1000).await;
    assert!(failing.tries() >= 10, "{}", failing.tries());
    assert!(running.stop().await);
}

#[tokio::test(start_paused = true)]
async fn a_failure_is_reported_once_until_it_says_something_else_or_happens_anew() {
    let (world, failing) = (World::start().await, Failing::default());
    let running =
        start(&world, &failing, ControllerBuilder::new().report_failures(), "fails").await;
    pass(600).await;
    assert!(failing.tries() > 10);
    assert_eq!(failing.reports().len(), 1);
    world.patch("home", json!({ "spec": { "host": "panics" } })).await;
    pass(60).await;
    assert_eq!(failing.reports()[1..], ["home: the reconciler panicked: on purpose"]);
    failing.is_well.store(true, Ordering::SeqCst);
    pass(400).await;
    failing.is_well.store(false, Ordering::SeqCst);
    world.patch("home", json!({ "metadata": { "labels": { "touched": "yes" } } })).await;
    pass(60).await;
    assert_eq!(failing.reports().len(), 3, "it had been well meanwhile");
    assert!(running.stop().await);
}

/// Other causes reconcile a failing object earlier, and do not lengthen the backoff.
#[tokio::test(start_paused = true)]
async fn g_q9_the_backoff_is_not_advanced_by_unrelated_events() {
    let (world, failing) = (World::start().await, Failing::default());
    let builder = ControllerBuilder::new().retry(RetryPolicy::at_most(100)).report_every_failure();
    let running = start(&world, &failing, builder, "counts").await;
    pass(1200).await;
    let last_attempt = |failing: &Failing| {
        let last = failing.reports().pop().expect("a report");
        last.rsplit(' ').next().and_then(|n| n.parse::<u32>().ok()).expect("a number")
    };
    let (tries, attempt) = (failing.tries(), last_attempt(&failing));
    for n in 0..40 {
        world.patch("home", json!({ "metadata": { "labels": { "n": n.to_string() } } })).await;
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert!(failing.tries() >= tries + 40, "each is looked at");
    assert!(last_attempt(&failing) <= attempt + 2, "{attempt} and {}", last_attempt(&failing));
    assert_eq!(world.counted(&names::RECONCILE_GIVEN_UP), 0);
    let tries = failing.tries();
    pass(310).await;
    assert!(failing.tries() > tries, "the retry comes when it was to come");
    running.stop.cancel();
}

#[tokio::test(start_paused = true)]
async fn every_failure_is_reported_if_the_controller_asks_for_it() {
    let (world, failing) = (World::start().await, Failing::default());
    let running =
        start(&world, &failing, ControllerBuilder::new().report_every_failure(), "fails").await;
    pass(60).await;
    assert_eq!(failing.reports().len(), failing.tries());
    assert!(running.stop().await);
}

#[tokio::test(start_paused = true)]
async fn c8_a_reconcile_that_never_returns_is_reported_with_its_deadline() {
    let (world, failing) = (World::start().await, Failing::default());
    let running =
        start(&world, &failing, ControllerBuilder::new().report_failures(), "hangs").await;
    pass(301).await;
    assert_eq!(failing.reports(), ["home: the reconcile hit its deadline of 300s"]);
    assert_eq!(failing.tries(), 2);
    failing.is_well.store(true, Ordering::SeqCst);
    running.stop.cancel();
}

#[tokio::test(start_paused = true)]
async fn a_report_that_fails_panics_or_hangs_disturbs_nothing() {
    for how in [1, 2, 3] {
        let (world, failing) = (World::start().await, Failing::default());
        failing.reports_badly.store(how, Ordering::SeqCst);
        let running =
            start(&world, &failing, ControllerBuilder::new().report_failures(), "counts").await;
        pass(100).await;
        let reports = failing.reports().len();
        assert!(reports > 5, "{how}: {reports}");
        // A reconcile may be running.
        let errors = world.counted(&names::RECONCILE_ERRORS);
        assert!(failing.tries() as u64 - errors <= 1, "{how}: {errors}");
        assert_eq!(world.counted(&names::RECONCILE_PANICS), 0);
        running.stop.cancel();
    }
}

#[tokio::test(start_paused = true)]
async fn a_condition_shows_the_outcome_of_the_last_reconcile_and_retries_write_nothing() {
    let (world, failing) = (World::start().await, Failing::default());
    let running =
        start(&world, &failing, ControllerBuilder::new().outcome_condition("Ready"), "fails").await;
    pass(600).await;
    let text = "starting: pulling the image: no route to the registry";
    let reported = condition(&world, "Ready").await.expect("a condition");
    assert_eq!(reported, ("False".into(), "ReconcileFailed".into(), text.into()));
    let writes = world.writes().into_iter().filter(|write| write == "patch sites/status");
    assert_eq!(writes.count(), 1, "retries write nothing");

    failing.is_well.store(true, Ordering::SeqCst);
    pass(400).await;
    let reported = condition(&world, "Ready").await.expect("a condition");
    assert_eq!(reported, ("True".into(), "Reconciled".into(), String::new()));
    let tries = failing.tries();
    pass(400).await;
    assert_eq!(failing.tries(), tries, "its own writes enqueue nothing");
    assert!(running.stop().await);
}

#[tokio::test(start_paused = true)]
async fn the_outcome_condition_keeps_a_status_that_the_reconciler_set() {
    let (world, failing) = (World::start().await, Failing::default());
    let running =
        start(&world, &failing, ControllerBuilder::new().outcome_condition("Ready"), "own").await;
    pass(10).await;
    assert_eq!(condition(&world, "Ready").await.expect("a condition").1, "Own");
    world.patch("home", json!({ "spec": { "host": "terminal" } })).await;
    pass(10).await;
    assert_eq!(condition(&world, "Ready").await.expect("a condition").1, "TerminalError");
    assert!(running.stop().await);
}

#[tokio::test(start_paused = true)]
async fn the_last_errors_are_known_until_the_object_is_well_or_gone() {
    let (world, failing) = (World::start().await, Failing::default());
    let running = start(&world, &failing, ControllerBuilder::new(), "fails").await;
    pass(100).await;
    let busy_report = running.handle.busy_report().now;
    assert_eq!(busy_report.len(), 1);
    assert!(busy_report[0].starts_with("shop/home: failed "), "{busy_report:?}");
    assert!(busy_report[0].ends_with("no route to the registry"), "{busy_report:?}");
    let reported = running.handle.dump(10)["lastErrors"][0].clone();
    assert_eq!(
        (&reported["key"], &reported["reconciledSince"]),
        (&json!("shop/home"), &json!(false)),
        "{reported}"
    );
    world.sites().delete("home").await.expect("deleted");
    pass(400).await;
    assert!(running.handle.busy_report().now.is_empty());
    assert!(running.stop().await);
}

/// Writes a label of the site upon the version at the start of the reconcile.
#[derive(Clone, Default)]
struct Labelling {
    tries: Arc<AtomicU32>,
    done: Arc<AtomicU32>,
}

impl Reconciler for Labelling {
    type Object = Site;

    async fn reconcile(&self, site: &Site, cx: &Context<Self>) -> Result {
        self.tries.fetch_add(1, Ordering::SeqCst);
        tokio::time::sleep(Duration::from_millis(10)).await;
        let patch = json!({ "metadata": {
            "resourceVersion": site.resource_version(),
            "labels": { "host": site.spec.host },
        } });
        cx.api::<Site>().patch(site.name(), Patch::Merge(patch)).await?;
        self.done.fetch_add(1, Ordering::SeqCst);
        Ok(Action::requeue_after(Duration::from_secs(10)))
    }
}

/// The watch lags: a retry before the watch has caught up loses again.
#[tokio::test(start_paused = true)]
async fn c5_after_a_conflict_the_next_try_waits_until_the_cache_shows_the_winner() {
    let (world, labelling) = (World::start().await, Labelling::default());
    let running = world.run(ControllerBuilder::<Labelling>::new().build(labelling.clone())).await;
    world.create("home", "a").await;
    running.settled().await;
    let count = |of: &AtomicU32| of.load(Ordering::SeqCst);
    let done = count(&labelling.done);
    world.server.faults().pause_watches("sites");
    world.patch("home", json!({ "spec": { "host": "b" } })).await;
    let tries = count(&labelling.tries);
    // The requeue comes every 10 s, and sees the old state.
    while count(&labelling.tries) == tries {
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    tokio::time::sleep(Duration::from_millis(2500)).await;
    assert!(count(&labelling.tries) <= tries + 3, "no blind retries");
    assert_eq!(count(&labelling.done), done);
    world.server.faults().resume_watches("sites");
    tokio::time::sleep(Duration::from_millis(50)).await;
    assert!(count(&labelling.done) > done, "at once when the winner is seen");
    let site = world.sites().get("home").await.expect("it is there");
    assert_eq!(site.label("host"), Some("b"));
    assert!(running.stop().await);
}

#[tokio::test(start_paused = true)]
async fn a_change_gives_an_object_that_was_given_up_all_its_retries() {
    let (world, failing) = (World::start().await, Failing::default());
    let slowly = AfterMaxRetries::Every(Duration::from_secs(3600));
    let builder = ControllerBuilder::new().retry(RetryPolicy::at_most(3)).after_max_retries(slowly);
    let running = start(&world, &failing, builder.report_failures(), "fails").await;
    let reported = |failing: &Failing| {
        (failing.tries(), world.counted(&names::RECONCILE_GIVEN_UP), failing.reports().len())
    };
    pass(10).await;
    assert_eq!(reported(&failing), (4, 1, 2));
    pass(3600).await;
    assert_eq!(reported(&failing), (5, 1, 2), "slowly");
    world.patch("home", json!({ "metadata": { "labels": { "by": "us" } } })).await;
    pass(10).await;
    assert_eq!(reported(&failing), (9, 1, 2), "all its retries, and nothing new to tell");
    assert_eq!(failing.attempts.lock()[5..], [0, 1, 2, 3]);
    world.patch("home", json!({ "spec": { "config": "another" } })).await;
    pass(10).await;
    assert_eq!(reported(&failing), (13, 2, 4), "another spec is another failure");
    pass(3600).await;
    assert_eq!(reported(&failing), (14, 2, 4));
    running.stop.cancel();
}

#[tokio::test(start_paused = true)]
async fn time_that_passes_gives_an_object_that_was_given_up_no_new_retries() {
    let (world, failing) = (World::start().await, Failing::default());
    let (minute, day) = (Duration::from_secs(60), Duration::from_secs(24 * 3600));
    let builder = ControllerBuilder::new()
        .retry(RetryPolicy::at_most(9))
        .after_max_retries(AfterMaxRetries::Every(day));
    let builder = builder.timer(Timer::every(minute, "probe")).resync(10 * minute);
    let running = start(&world, &failing, builder, "fails").await;
    pass(3600).await;
    let tries = failing.tries();
    assert!((60..80).contains(&tries), "{tries}: ten, and one whenever it is time");
    running.stop.cancel();
}

/// The watch delivers the write before the answer arrives.
#[tokio::test(start_paused = true)]
async fn c2_writes_of_a_failing_reconcile_do_not_repeat_it_before_its_backoff() {
    let mut tries = Vec::new();
    for (host, sets_condition) in
        [("fails", false), ("fails", true), ("differs", true), ("sets a condition", false)]
    {
        let (world, failing) = (World::start().await, Failing::default());
        let mut builder = ControllerBuilder::new();
        if sets_condition {
            builder = builder.outcome_condition("Ready");
        }
        let running = start(&world, &failing, builder, host).await;
        pass(600).await;
        tries.push((host, failing.tries()));
        running.stop.cancel();
    }
    let (_, usual) = tries[0];
    assert!(usual > 10, "{tries:?}");
    assert!(tries.iter().all(|(_, tries)| tries.abs_diff(usual) <= 5), "{tries:?}");
}

#[tokio::test(start_paused = true)]
async fn c2_the_report_that_an_object_is_given_up_gives_it_no_new_retries() {
    for (host, at_most) in [("differs", 3), ("terminal", 1)] {
        let (world, failing) = (World::start().await, Failing::default());
        let builder =
            ControllerBuilder::new().retry(RetryPolicy::at_most(2)).outcome_condition("Ready");
        let running = start(&world, &failing, builder, host).await;
        pass(600).await;
        assert_eq!(failing.tries(), at_most, "{host}");
        assert!(running.stop().await);
    }
}

/// The condition with the failure is written after the user's change, before that change is
/// reconciled.
#[tokio::test(start_paused = true)]
async fn a_change_during_a_reconcile_that_fails_is_reconciled_at_once() {
    let (world, failing) = (World::start().await, Failing::default());
    let builder =
        ControllerBuilder::new().outcome_condition("Ready").retry(RetryPolicy::at_most(0));
    let running = start(&world, &failing, builder, "slow").await;
    pass(2).await;
    assert_eq!(failing.tries(), 1);
    world.patch("home", json!({ "spec": { "config": "another" } })).await;
    pass(4).await;
    assert_eq!(condition(&world, "Ready").await.expect("a condition").1, "ReconcileGaveUp");
    assert_eq!(failing.tries(), 2, "the change was not reconciled");
    pass(60).await;
    assert_eq!(failing.tries(), 2);
    assert!(running.stop().await);
}

#[tokio::test(start_paused = true)]
async fn an_object_that_is_given_up_again_for_another_reason_is_reported_again() {
    let (world, failing) = (World::start().await, Failing::default());
    let builder =
        ControllerBuilder::new().retry(RetryPolicy::at_most(1)).outcome_condition("Ready");
    let running = start(&world, &failing, builder.report_failures(), "differs").await;
    for n in 1..=3 {
        pass(60).await;
        assert_eq!(world.counted(&names::RECONCILE_GIVEN_UP), n);
        assert_eq!(condition(&world, "Ready").await.expect("a condition").1, "ReconcileGaveUp");
        world.patch("home", json!({ "metadata": { "labels": { "n": n.to_string() } } })).await;
    }
    pass(60).await;
    assert!(running.stop().await);
}

/// A reconcile without a change does not restart the retries of an object that was given up.
#[tokio::test(start_paused = true)]
async fn time_that_passes_gives_an_object_that_rests_no_new_retries() {
    let (world, failing) = (World::start().await, Failing::default());
    let builder =
        ControllerBuilder::new().retry(RetryPolicy::at_most(9)).resync(Duration::from_secs(600));
    let running = start(&world, &failing, builder, "fails").await;
    pass(3650).await;
    let tries = failing.tries();
    assert!((15..=17).contains(&tries), "{tries}: ten, and one for each resync");
    assert_eq!(world.counted(&names::RECONCILE_GIVEN_UP), 1);
    assert_eq!(running.handle.state().backing_off, 0);
    world.patch("home", json!({ "metadata": { "labels": { "by": "us" } } })).await;
    pass(30).await;
    assert!(failing.tries() >= tries + 10, "a change gives it all");
    assert!(running.stop().await);
}
