//! Exploration of faults: a workload is run again and again, each time with another crash, lost answer,
//! late event or foreign edit, and must always come to the end of the undisturbed run.
//!
//! Each run has an embedded server, a paused clock and a thread of its own. Undisturbed runs show what is
//! expected; places that differ between their seeds are masked. The other runs use the first seed, so that
//! each of them equals the undisturbed run up to its disturbance.
//!
//! Files: `world` is what a workload sees; `monitor` records a run and disturbs it from inside the server;
//! `plan` has the disturbances; `run` makes one run; `oracle` judges it; `state` compares objects; `line` cuts
//! connections; `report` tells findings.
//!
//! Leader election is off: one process runs at a time, and the renewals of leases would be most requests.
//!
//! Not included: first views that are stale (caches begin with consistent reads), two replicas and their
//! hand-over, deletion and recreation by others, faults of webhooks, the framework's monitors of
//! its own guarantees as oracles, conflicts without a change, panics of tasks outside of reconciles, reasons
//! of reconciles in findings, shrinking of pairs, and files of findings to be run again by later tests.

// DESIGN.md, 195: Disturbances are caused inside the server, by an observer of requests and changes

mod line;
mod monitor;
mod oracle;
mod plan;
mod report;
mod run;
mod state;
#[cfg(test)]
mod tests;
mod world;

use std::future::Future;
use std::io::IsTerminal;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use jiff::Timestamp;
use parking_lot::Mutex;

use self::oracle::{Expectation, Verdict};
use self::plan::Plan;
use self::run::{Outcome, Setting, Shared};
use windlass_core::rng::Rng;

pub use self::report::{ExplorationReport, Finding};
pub use self::world::World;

use super::EPOCH;

/// Variable that names one run, `SEED:PLAN`: it alone is made, and its writes are printed.
const REPLAY: &str = "WINDLASS_EXPLORE";
/// Delay of events in the undisturbed run that shows how many writes lateness alone can cause.
const LATENESS: Duration = Duration::from_millis(100);
/// Stack of a thread, in bytes: futures of operators without optimization are large.
const STACK: usize = 16 << 20;

/// Explores the faults of an operator with the default settings, and fails the test at a finding.
///
/// `workload` starts the operator by [`World::operator`] and acts as its users do. It is called once per
/// run, so it must do the same in each; steps should wait by [`World::eventually`] for the effect of the one
/// before. The call takes 60 s at most, or a little longer, and uses all processors; in a
/// `#[tokio::test]` it blocks that test's thread.
///
/// ```no_run
/// # extern crate windlass_testing as windlass;
/// use k8s_openapi::api::core::v1::ConfigMap;
/// use windlass::manager::Manager;
/// use windlass::testing::explore;
///
/// # fn operator(client: windlass::client::Client) -> Manager { Manager::new(client) }
/// explore(|world| async move {
///     world.operator(operator);
///     let maps = world.client().namespace::<ConfigMap>("default");
///     let mut map = ConfigMap::default();
///     map.metadata.name = Some("settings".into());
///     maps.create(&map).await.unwrap();
///     world.eventually("the copy is there", async || maps.get("copy").await.is_ok()).await;
/// });
/// ```
///
/// # Panics
/// At a finding; the text is the [report](ExplorationReport).
pub fn explore<F, W>(workload: F)
where
    F: Fn(World) -> W + Send + Sync,
    W: Future<Output = ()>,
{
    let report = Exploration::new().run(workload);
    assert!(report.findings().is_empty(), "{report}");
}

/// Settings of an exploration.
///
/// | setting | default |
/// |---|---|
/// | [`seed`](Self::seed) | 1 |
/// | [`budget`](Self::budget) | 60 s |
/// | [`runs`](Self::runs) | 2,000 |
/// | [`threads`](Self::threads) | processors |
/// | [`first_only`](Self::first_only) | off |
#[derive(Clone, Copy, Debug)]
#[must_use = "an exploration does nothing until it is run"]
pub struct Exploration {
    seed: u64,
    budget: Duration,
    runs: usize,
    threads: usize,
    first_only: bool,
}

impl Default for Exploration {
    fn default() -> Self {
        let threads = std::thread::available_parallelism().map_or(1, usize::from);
        Self { seed: 1, budget: Duration::from_secs(60), runs: 2000, threads, first_only: false }
    }
}

/// Returns real time, of which the budget is a part; runs have a paused clock.
#[expect(clippy::disallowed_methods, reason = "the budget is of real time, which no run reads")]
fn now() -> Instant {
    Instant::now()
}

/// Start of simulated time.
fn epoch() -> Timestamp {
    Timestamp::from_second(EPOCH).unwrap_or(Timestamp::UNIX_EPOCH)
}

impl Exploration {
    /// Returns the default settings.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the seed of all runs and of the choice of pairs. Default: 1.
    pub fn seed(mut self, seed: u64) -> Self {
        self.seed = seed;
        self
    }

    /// Sets the real time after which no run begins any more. Default: 60 s.
    pub fn budget(mut self, budget: Duration) -> Self {
        self.budget = budget;
        self
    }

    /// Sets the largest number of disturbed runs. Default: 2,000.
    pub fn runs(mut self, runs: usize) -> Self {
        self.runs = runs;
        self
    }

    /// Sets the number of threads; 0 counts as 1. Default: that of the processors.
    pub fn threads(mut self, threads: usize) -> Self {
        self.threads = threads.max(1);
        self
    }

    /// Ends at the first finding. Default: off.
    pub fn first_only(mut self, on: bool) -> Self {
        self.first_only = on;
        self
    }

    /// Explores, and returns what was found.
    pub fn run<F, W>(self, workload: F) -> ExplorationReport
    where
        F: Fn(World) -> W + Send + Sync,
        W: Future<Output = ()>,
    {
        let began = now();
        let replay = replayed();
        let seed = replay.as_ref().map_or(self.seed, |(seed, _)| *seed);
        let mut report = ExplorationReport { seed, ..ExplorationReport::default() };
        let prepared = on_thread(run::prepared).ok().flatten();
        let shared = Shared { workload: &workload, prepared };
        if let Some((first, expected)) = self.undisturbed(&shared, seed, began, &mut report) {
            let plans = match replay {
                Some((_, plan)) => vec![plan],
                None => self.plans(&first, seed),
            };
            report.plans = plans.len();
            let search = Search {
                shared: &shared,
                first: &first,
                expected: &expected,
                plans: &plans,
                seed,
                began,
            };
            self.search(&search, &mut report);
        }
        report.elapsed = began.elapsed();
        report
    }

    /// Returns the plans, single disturbances first.
    fn plans(&self, first: &Outcome, seed: u64) -> Vec<Plan> {
        let mut plans = plan::single(&first.recording);
        let pairs = self.runs.saturating_sub(plans.len());
        plans.extend(plan::pairs(&plans, pairs, &Rng::seeded(seed).fork("pairs")));
        plans.truncate(self.runs);
        plans
    }

    /// Makes the undisturbed runs; `None` when they fail or do not agree, which is the finding then.
    fn undisturbed<F, W>(
        &self,
        shared: &Shared<'_, F>,
        seed: u64,
        began: Instant,
        report: &mut ExplorationReport,
    ) -> Option<(Outcome, Expectation)>
    where
        F: Fn(World) -> W + Send + Sync,
        W: Future<Output = ()>,
    {
        let settings =
            [(0, Duration::ZERO), (0, Duration::ZERO), (1, Duration::ZERO), (2, LATENESS)];
        let mut outcomes = Vec::new();
        for (more, lag) in settings {
            let setting = Setting { seed: seed.wrapping_add(more), plan: Plan::default(), lag };
            let outcome = on_thread(|| run::run(shared, &setting, None));
            let outcome = outcome
                .unwrap_or_else(|failure| Outcome { failure: Some(failure), ..Outcome::default() });
            report.runs += 1;
            let restless = oracle::restless(&outcome);
            let (heading, details) = match &outcome.failure {
                Some(failure) => ("the run failed", vec![failure.clone()]),
                None if restless.is_empty() => {
                    outcomes.push(outcome);
                    continue;
                }
                None => ("the end is not a fixpoint", restless),
            };
            let verdict = Verdict { heading, details, first: String::new() };
            report.add(finding(&setting, Vec::new(), verdict, began));
            return None;
        }
        let [first, same, other, late] = <[Outcome; 4]>::try_from(outcomes).ok()?;
        report.is_random = !oracle::are_equal(&first, &same);
        match Expectation::new(&first, &[same, other], &[late]) {
            Ok(expected) => Some((first, expected)),
            Err(details) => {
                let heading = "two undisturbed runs end differently";
                let verdict = Verdict { heading, details, first: String::new() };
                let setting = Setting { seed, ..Setting::default() };
                report.add(finding(&setting, Vec::new(), verdict, began));
                None
            }
        }
    }

    /// Runs the plans on all threads, and adds the findings in the order of the plans.
    fn search<F, W>(&self, search: &Search<'_, F>, report: &mut ExplorationReport)
    where
        F: Fn(World) -> W + Send + Sync,
        W: Future<Output = ()>,
    {
        let (next, made) = (AtomicUsize::new(0), AtomicUsize::new(0));
        let found: Mutex<Vec<(usize, Finding)>> = Mutex::default();
        let work = || {
            while search.began.elapsed() < self.budget {
                if self.first_only && !found.lock().is_empty() {
                    return;
                }
                let index = next.fetch_add(1, Ordering::Relaxed);
                let Some(plan) = search.plans.get(index) else { return };
                let finding = search.one(plan);
                let count = made.fetch_add(1, Ordering::Relaxed) + 1;
                found.lock().extend(finding.map(|finding| (index, finding)));
                progress(count, search.plans.len());
            }
        };
        std::thread::scope(|scope| {
            for _ in 0..self.threads {
                let thread =
                    std::thread::Builder::new().name("explore".to_owned()).stack_size(STACK);
                // Without a thread the others do its work; with none at all no run is reported.
                drop(thread.spawn_scoped(scope, work));
            }
        });
        report.runs += made.load(Ordering::Relaxed);
        let mut found = found.into_inner();
        found.sort_by_key(|(index, _)| *index);
        found.into_iter().for_each(|(_, finding)| report.add(finding));
    }
}

/// Returns the seed and the plan of the run that alone is asked for.
fn replayed() -> Option<(u64, Plan)> {
    let text = std::env::var(REPLAY).ok()?;
    let parsed = seed_and_plan(&text);
    assert!(
        parsed.is_some(),
        "{REPLAY} is `{text}`, which is not a SEED:PLAN; copy it from a finding"
    );
    parsed
}

/// Reads `SEED:PLAN`.
fn seed_and_plan(text: &str) -> Option<(u64, Plan)> {
    let (seed, plan) = text.split_once(':')?;
    Some((seed.parse().ok()?, plan.parse().ok()?))
}

/// State that the threads of a search share.
struct Search<'a, F> {
    shared: &'a Shared<'a, F>,
    first: &'a Outcome,
    expected: &'a Expectation,
    plans: &'a [Plan],
    seed: u64,
    began: Instant,
}

impl<F> Search<'_, F> {
    /// Makes the run of a plan, and returns what was wrong with it.
    fn one<W>(&self, plan: &Plan) -> Option<Finding>
    where
        F: Fn(World) -> W + Send + Sync,
        W: Future<Output = ()>,
    {
        let setting = Setting { seed: self.seed, plan: plan.clone(), lag: Duration::ZERO };
        let outcome = run::run(self.shared, &setting, Some(self.expected));
        if std::env::var_os(REPLAY).is_some() {
            let caused = self.caused(&outcome);
            print_writes(&outcome, &caused);
            if caused.len() < plan.steps.len() {
                eprintln!(
                    "of `{plan}` a request or change was not made: the text is from another state of the code"
                );
            }
        }
        let verdict = self.expected.judge(&outcome, plan)?;
        Some(finding(&setting, self.caused(&outcome), verdict, self.began))
    }

    fn caused(&self, outcome: &Outcome) -> Vec<String> {
        state::caused(&outcome.recording, &self.first.recording.requests)
    }
}

/// Returns the finding that a verdict is about.
fn finding(setting: &Setting, caused: Vec<String>, verdict: Verdict, began: Instant) -> Finding {
    Finding {
        cause: verdict.cause(),
        heading: verdict.heading.to_owned(),
        caused,
        first: verdict.first,
        details: verdict.details,
        replay: format!("{}:{}", setting.seed, setting.plan),
        others: Vec::new(),
        after: began.elapsed(),
    }
}

/// Runs work on a thread with a large stack: a test's own one may be inside of a runtime.
fn on_thread<T: Send>(work: impl FnOnce() -> T + Send) -> Result<T, String> {
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().name("explore".to_owned()).stack_size(STACK);
        match thread.spawn_scoped(scope, work).map(std::thread::ScopedJoinHandle::join) {
            Ok(Ok(done)) => Ok(done),
            Ok(Err(_)) => Err("the run panicked outside of its workload".to_owned()),
            Err(error) => Err(format!("cannot start a thread: {error}")),
        }
    })
}

/// Prints the changes of a run that is replayed.
fn print_writes(outcome: &Outcome, caused: &[String]) {
    for change in &outcome.recording.changes {
        let by = if change.by_operator { "operator" } else { "others  " };
        let mark = if change.is_relevant { ' ' } else { '.' };
        eprintln!("{:>9.3} s {mark} {by} {} {}", change.at.as_secs_f64(), change.verb, change.key);
    }
    caused.iter().for_each(|caused| eprintln!("disturbed: {caused}"));
}

/// Shows the progress on a terminal.
fn progress(count: usize, of: usize) {
    if count.is_multiple_of(50) && std::io::stderr().is_terminal() {
        eprint!("\rexplored {count} of {of} plans");
    }
}
