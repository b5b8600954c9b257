use std::collections::BTreeMap;

use parking_lot::Mutex;
use tokio::sync::Semaphore;
use tokio::task::yield_now;

use super::*;
use crate::workqueue::QueueSettings;
use windlass_core::clock::Clock;
use windlass_core::metrics::{Metrics, names};
use windlass_core::rng::Rng;

mod attempts;

/// Acts as the name of the key says, and counts.
#[derive(Default)]
struct Script {
    runs: Mutex<BTreeMap<String, Vec<tokio::time::Instant>>>,
    now: Mutex<(usize, usize)>,
    gate: Option<Semaphore>,
    reported: Mutex<Vec<String>>,
    /// Number of each attempt.
    attempts: Mutex<Vec<u32>>,
    /// Follow-up that is returned for every key.
    left: Mutex<Option<FollowUp>>,
    /// Whether conditions show failures, and whether they could be written.
    shows: Option<bool>,
}

impl Script {
    fn runs(&self, name: &str) -> usize {
        self.runs.lock().get(name).map_or(0, Vec::len)
    }

    /// The greatest number of steps that ran at once.
    fn most(&self) -> usize {
        self.now.lock().1
    }

    async fn play(&self, name: &str, attempt: &ReconcileAttempt) -> ReconcileOutcome {
        match name.split('-').next().unwrap_or_default() {
            "panics" => panic!("no such luck"),
            "hangs" => std::future::pending().await,
            "fails" => ReconcileOutcome::Failed(Failure::from("on purpose")),
            "terminal" => ReconcileOutcome::Failed(Failure::terminal("on purpose")),
            "later" => ReconcileOutcome::Done(Action::requeue_after(Duration::from_secs(60))),
            "slow" => {
                tokio::time::sleep(Duration::from_secs(10)).await;
                ReconcileOutcome::Done(Action::done())
            }
            "minds" => {
                attempt.cancel.token().cancelled().await;
                ReconcileOutcome::Done(Action::done())
            }
            "poison" => {
                if attempt.number > 0 {
                    tokio::time::sleep(Duration::from_secs(100)).await;
                }
                ReconcileOutcome::Failed(Failure::from("on purpose"))
            }
            "gated" => {
                let gate = self.gate.as_ref().expect("a gate");
                gate.acquire().await.expect("open").forget();
                ReconcileOutcome::Done(Action::done())
            }
            _ => ReconcileOutcome::Done(Action::done()),
        }
    }
}

impl KeyHandler for Script {
    fn run<'a>(&'a self, key: &'a ObjectKey, attempt: ReconcileAttempt) -> HandlerFuture<'a> {
        Box::pin(async move {
            let name = key.name();
            self.runs.lock().entry(name.into()).or_default().push(tokio::time::Instant::now());
            struct ThrottleDecision<'a>(&'a Script);
            impl Drop for ThrottleDecision<'_> {
                fn drop(&mut self) {
                    self.0.now.lock().0 -= 1;
                }
            }
            {
                let mut now = self.now.lock();
                now.0 += 1;
                now.1 = now.1.max(now.0);
            }
            let _leave = ThrottleDecision(self);
            self.attempts.lock().push(attempt.number);
            self.play(name, &attempt).await
        })
    }

    fn own_follow_up(&self, _: &ObjectKey) -> Option<FollowUp> {
        *self.left.lock()
    }

    fn finish(&self, _: &ObjectKey, _: FollowUp) {}

    fn spec_version(&self, _: &ObjectKey) -> Option<SpecVersion> {
        None
    }

    fn failed<'a>(
        &'a self,
        key: &'a ObjectKey,
        reported: ReportedFailure<'a>,
        attempt: ReconcileAttempt,
    ) -> Option<ReportFuture<'a>> {
        let text = format!("{} {} {}", key.name(), reported.failure, reported.gave_up);
        self.reported.lock().push(text);
        self.shows.map(|is_written| -> ReportFuture<'a> {
            if is_written {
                attempt.cancel.shown();
            }
            Box::pin(std::future::ready(Ok(())))
        })
    }

    fn keeps_conditions(&self) -> bool {
        self.shows.is_some()
    }

    fn waits<'a>(
        &'a self,
        key: &'a ObjectKey,
        (wait, is_new): (&'a Wait, bool),
        _: ReconcileAttempt,
    ) -> Option<ReportFuture<'a>> {
        if is_new {
            self.reported.lock().push(format!("{} waits: {}", key.name(), wait.text));
        }
        None
    }
}

struct Stage {
    worker: Worker,
    script: Arc<Script>,
    running: tokio::task::JoinHandle<bool>,
}

impl Stage {
    fn start(workers: usize, drain: Duration) -> Self {
        Self::playing(Script::default(), workers, drain)
    }

    fn playing(script: Script, workers: usize, drain: Duration) -> Self {
        let script = Arc::new(script);
        let environment =
            Environment { clock: Clock::system(), rng: Rng::seeded(7), metrics: Metrics::new() };
        let worker = Worker {
            controller: "test".into(),
            queue: WorkQueue::new(QueueSettings::new("test").workers(workers), &environment),
            step: Arc::clone(&script) as Arc<dyn KeyHandler>,
            timeout: Duration::from_secs(300),
            retry: RetryPolicy::forever(),
            after_max_retries: AfterMaxRetries::Rest,
            last_errors: Arc::default(),
            waits: Arc::default(),
            loop_guard: Arc::default(),
            trigger_names: Arc::default(),
            meter: WorkerMeter::new(&environment.metrics, "test", workers),
            environment,
            stop: Arc::default(),
            namespaces: Arc::default(),
        };
        let running = tokio::spawn({
            let worker = worker.clone();
            async move { run_workers(&worker, workers, drain).await }
        });
        Self { worker, script, running }
    }

    fn add(&self, name: &str) {
        self.worker.queue.add(ObjectKey::new(Some("shop"), name));
    }

    fn counted(
        &self,
        definition: &windlass_core::metrics::MetricDefinition,
        labels: &[&str],
    ) -> u64 {
        self.worker.environment.metrics.counted(definition, labels)
    }

    async fn stop(self) -> bool {
        self.worker.stop.cancel();
        self.running.await.expect("the run does not panic")
    }
}

async fn pass(duration: Duration) {
    tokio::time::sleep(duration).await;
}

const LONG: Duration = Duration::from_secs(25);

#[tokio::test(start_paused = true)]
async fn c3_a_reconciler_that_panics_takes_nothing_else_down() {
    let stage = Stage::start(2, LONG);
    stage.add("panics");
    stage.add("fine");
    pass(Duration::from_secs(1)).await;
    stage.add("fine");
    pass(Duration::from_secs(1)).await;
    assert_eq!(stage.script.runs("fine"), 2);
    assert!(stage.script.runs("panics") > 1, "it is retried");
    let panics = stage.counted(&names::RECONCILE_PANICS, &["test"]);
    assert_eq!(panics as usize, stage.script.runs("panics"));
    assert_eq!(stage.counted(&names::RECONCILE_ERRORS, &["test"]), panics);
    assert!(stage.stop().await);
}

#[tokio::test(start_paused = true)]
async fn c8_a_reconcile_that_never_returns_is_ended_by_its_deadline_and_retried() {
    let stage = Stage::start(2, LONG);
    stage.add("hangs");
    stage.add("fine");
    pass(Duration::from_secs(299)).await;
    assert_eq!((stage.script.runs("hangs"), stage.script.runs("fine")), (1, 1));
    assert_eq!(stage.counted(&names::RECONCILE_TIMEOUTS, &["test"]), 0);
    pass(Duration::from_secs(2)).await;
    assert_eq!(stage.counted(&names::RECONCILE_TIMEOUTS, &["test"]), 1);
    assert_eq!(stage.script.runs("hangs"), 2);
}

#[tokio::test(start_paused = true)]
async fn a_long_reconcile_shows_in_the_gauges_before_it_ends() {
    let stage = Stage::start(1, LONG);
    stage.add("hangs");
    pass(Duration::from_secs(61)).await;
    let text = stage.worker.environment.metrics.encode();
    let line = r#"workqueue_longest_running_processor_seconds{name="test",controller="test"} 60.0"#;
    assert!(text.lines().any(|l| l.starts_with(&line[..line.len() - 4])), "{text}");
    assert!(text.contains(line), "{text}");
    assert!(text.contains(r#"controller_runtime_active_workers{controller="test"} 1.0"#));
}

#[tokio::test(start_paused = true)]
async fn c2_a_failing_key_backs_off_alone_and_others_go_on() {
    let stage = Stage::start(2, LONG);
    stage.add("fails");
    for _ in 0..60 {
        stage.add("fine");
        pass(Duration::from_secs(60)).await;
    }
    assert_eq!(stage.script.runs("fine"), 60);
    // Full jitter under a bound of at most 5 min: an hour holds 17 doublings and some 24 retries at
    // the cap; without backoff there would be thousands.
    let runs = stage.script.runs("fails");
    assert!((20..=90).contains(&runs), "{runs}");
    assert_eq!(stage.worker.queue.counts().backing_off, 1);
}

#[tokio::test(start_paused = true)]
async fn k4_a_panic_an_error_and_a_deadline_are_retried_after_the_same_waits() {
    let waits = async |name: &str, takes: Duration| {
        let stage = Stage::start(1, LONG);
        stage.add(name);
        pass(Duration::from_secs(3 * 3600)).await;
        let runs = stage.script.runs.lock()[name].clone();
        let waits = runs.windows(2).map(|pair| (pair[1] - pair[0]).saturating_sub(takes));
        waits.take(10).collect::<Vec<_>>()
    };
    let failed = waits("fails", Duration::ZERO).await;
    assert_eq!(failed.len(), 10);
    for (name, seconds) in [("panics", 0), ("hangs", 300)] {
        let others = waits(name, Duration::from_secs(seconds)).await;
        // Timers end at whole milliseconds.
        let same = |(a, b): (&Duration, &Duration)| a.abs_diff(*b) <= Duration::from_millis(2);
        assert!(failed.iter().zip(&others).all(same), "{name}: {others:?} {failed:?}");
        assert_eq!(others.len(), 10);
    }
}

#[tokio::test(start_paused = true)]
async fn a_terminal_failure_is_not_retried_until_the_key_is_added() {
    let stage = Stage::start(1, LONG);
    stage.add("terminal");
    pass(Duration::from_secs(3600)).await;
    assert_eq!(stage.script.runs("terminal"), 1);
    assert_eq!(stage.counted(&names::RECONCILE_TERMINAL_ERRORS, &["test"]), 1);
    stage.add("terminal");
    pass(Duration::from_secs(1)).await;
    assert_eq!(stage.script.runs("terminal"), 2);
}

#[tokio::test(start_paused = true)]
async fn a_requeue_after_success_comes_at_its_time_and_is_no_failure() {
    let stage = Stage::start(1, LONG);
    stage.add("later");
    pass(Duration::from_secs(1)).await;
    let counts = stage.worker.queue.counts();
    assert_eq!((counts.delayed, counts.backing_off), (1, 0));
    pass(Duration::from_secs(60)).await;
    assert_eq!(stage.script.runs("later"), 2);
    assert_eq!(stage.counted(&names::RECONCILE, &["test", "requeue_after"]), 2);
    assert_eq!(stage.counted(&names::RECONCILE, &["test", "error"]), 0);
}

#[tokio::test(start_paused = true)]
async fn c2_poisoned_keys_hold_at_most_half_of_the_workers() {
    let stage = Stage::start(4, LONG);
    for n in 0..10 {
        stage.add(&format!("poison-{n}"));
    }
    pass(Duration::from_secs(20)).await;
    assert_eq!(stage.worker.queue.counts().working, 2);
    stage.add("fine");
    pass(Duration::from_secs(1)).await;
    assert_eq!(stage.script.runs("fine"), 1);
}

#[tokio::test(start_paused = true)]
async fn a_key_that_wakes_itself_is_slowed_down_and_disturbs_no_other() {
    let stage = Stage::start(2, LONG);
    for _ in 0..600 {
        stage.add("hot");
        pass(Duration::from_millis(100)).await;
    }
    let runs = stage.script.runs("hot");
    assert!(runs <= 51 + 60, "{runs}");
    stage.add("hot");
    stage.add("hot");
    pass(Duration::from_millis(10)).await;
    stage.add("fine");
    pass(Duration::from_secs(2)).await;
    assert_eq!(stage.script.runs("fine"), 1);
    assert_eq!(stage.counted(&names::RECONCILE_ERRORS, &["test"]), 0);
}

#[tokio::test(start_paused = true)]
async fn as_many_reconciles_run_at_once_as_there_are_workers() {
    let script = Script { gate: Some(Semaphore::new(0)), ..Script::default() };
    let stage = Stage::playing(script, 3, LONG);
    for n in 0..10 {
        stage.add(&format!("gated-{n}"));
    }
    pass(Duration::from_secs(1)).await;
    assert_eq!(stage.worker.queue.counts().working, 3);
    stage.script.gate.as_ref().expect("a gate").add_permits(10);
    pass(Duration::from_secs(1)).await;
    assert_eq!(stage.script.most(), 3);
    assert_eq!(stage.worker.meter.reconciles(), 10);
}

#[tokio::test(start_paused = true)]
async fn a_stop_during_a_reconcile_drains() {
    let stage = Stage::start(1, LONG);
    stage.add("slow");
    stage.add("fine");
    pass(Duration::from_secs(1)).await;
    let (script, queue) = (Arc::clone(&stage.script), stage.worker.queue.clone());
    let started = tokio::time::Instant::now();
    assert!(stage.stop().await);
    assert!(started.elapsed() >= Duration::from_secs(9), "it waited for the slow one");
    assert_eq!(script.runs("fine"), 0, "nothing new was started");
    assert_eq!(queue.counts().queued, 1, "and nothing was lost");
}

#[tokio::test(start_paused = true)]
async fn a_running_reconcile_is_notified_of_a_stop() {
    let stage = Stage::start(1, LONG);
    stage.add("minds");
    pass(Duration::from_secs(1)).await;
    let started = tokio::time::Instant::now();
    assert!(stage.stop().await);
    assert!(started.elapsed() < Duration::from_secs(1));
}

#[tokio::test(start_paused = true)]
async fn a_reconcile_that_outlives_the_drain_is_dropped_and_its_key_is_due_again() {
    let stage = Stage::start(1, Duration::from_secs(5));
    stage.add("hangs");
    pass(Duration::from_secs(1)).await;
    let queue = stage.worker.queue.clone();
    let started = tokio::time::Instant::now();
    assert!(!stage.stop().await);
    assert!(started.elapsed() < Duration::from_secs(7));
    let counts = queue.counts();
    assert_eq!((counts.working, counts.backing_off + counts.queued), (0, 1));
}

#[tokio::test(start_paused = true)]
async fn the_same_controller_can_run_again_after_a_stop() {
    let stage = Stage::start(1, LONG);
    let mut worker = stage.worker.clone();
    let script = Arc::clone(&stage.script);
    assert!(stage.stop().await);
    worker.queue.add(ObjectKey::new(None, "fine"));
    worker.stop = Arc::default();
    let running = tokio::spawn({
        let worker = worker.clone();
        async move { run_workers(&worker, 1, LONG).await }
    });
    pass(Duration::from_secs(1)).await;
    assert_eq!(script.runs("fine"), 1);
    worker.stop.cancel();
    assert!(running.await.expect("no panic"));
}

#[tokio::test(start_paused = true)]
async fn every_series_is_there_before_the_first_reconcile() {
    let stage = Stage::start(3, LONG);
    yield_now().await;
    let text = stage.worker.environment.metrics.encode();
    for line in [
        r#"controller_runtime_reconcile_total{controller="test",result="requeue"} 0"#,
        r#"controller_runtime_reconcile_errors_total{controller="test"} 0"#,
        r#"controller_runtime_terminal_reconcile_errors_total{controller="test"} 0"#,
        r#"controller_runtime_reconcile_panics_total{controller="test"} 0"#,
        r#"controller_runtime_reconcile_timeouts_total{controller="test"} 0"#,
        r#"controller_runtime_max_concurrent_reconciles{controller="test"} 3.0"#,
        r#"controller_runtime_active_workers{controller="test"} 0.0"#,
    ] {
        assert!(text.lines().any(|l| l == line), "{line} is not in\n{text}");
    }
}

#[test]
fn c3_a_program_that_cannot_catch_panics_logs_a_warning_at_its_start() {
    let (logged, _guard) =
        windlass_client::client::test_support::Captured::at(tracing::Level::WARN);
    warn_of_aborts("test", false);
    assert!(logged.lines().is_empty());
    warn_of_aborts("test", true);
    assert_eq!(logged.with("a panic in one reconcile will end the process").len(), 1);
}
