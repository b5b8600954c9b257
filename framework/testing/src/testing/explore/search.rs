//! The search: undisturbed runs, then those of the plans on all threads.

// DESIGN.md, 233: A finding of several disturbances is made shorter while runs still fail

use std::future::Future;
use std::io::IsTerminal;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use super::monitor::{RecordedChange, Recording, words};
use super::oracle::{self, Expectation, RunVerdict, renewed};
use super::outcome::Outcome;
use super::report::{ExplorationReport, Finding};
use super::run::{self, SharedByRuns};
use super::schedule::Schedule;
use super::setting::{REPLICAS, Setting};
use super::state::Masks;
use super::{Exploration, REPLAY, World, saved};
use crate::testing::paused::{STACK, on_thread};

/// Delay of events in the undisturbed run that shows how many writes lateness alone can cause.
const LATENESS: Duration = Duration::from_millis(100);
/// Delays of events in the runs that show which values delays increase: durations.
const SLOW: [Duration; 2] = [Duration::from_secs(7), Duration::from_secs(29)];
/// Refused attempts of each write in the runs that show which values failures increase: numbers of
/// attempts.
const REFUSALS: [usize; 2] = [1, 2];
/// Schedule of two replicas whose hand-over never comes.
const UNDISTURBED: &str = "hand-over@4294967295";

/// Results of undisturbed runs.
pub(super) struct Reference {
    pub(super) first: Outcome,
    pub(super) expected: Expectation,
    /// The run of two replicas, whose numbers hand-overs have.
    pub(super) replicated: Option<Outcome>,
}

impl Reference {
    /// Returns the recording whose requests and changes a plan numbers.
    fn of(&self, plan: &Schedule) -> &Recording {
        self.recording(plan.is_replicated())
    }

    /// Returns the recording of one process or of two replicas.
    pub(super) fn recording(&self, is_replicated: bool) -> &Recording {
        let replicated = self.replicated.as_ref().filter(|_| is_replicated);
        &replicated.unwrap_or(&self.first).recording
    }
}

/// Makes the undisturbed runs; `None` when they fail or do not agree, which is the finding then.
pub(super) fn undisturbed<F, W>(
    shared: &SharedByRuns<'_, F>,
    seed: u64,
    within: Duration,
    began: Instant,
    report: &mut ExplorationReport,
) -> Option<Reference>
where
    F: Fn(World) -> W + Send + Sync,
    W: Future<Output = ()>,
{
    report.renewed = renewed(shared, seed, report);
    let settings = [
        (0, Duration::ZERO, false),
        (0, Duration::ZERO, false),
        (1, Duration::ZERO, false),
        (3, Duration::ZERO, true),
        (2, LATENESS, false),
    ];
    let mut outcomes = Vec::new();
    for (more, lag, is_elsewhere) in settings {
        let seed = seed.wrapping_add(more);
        let setting = Setting { seed, lag, is_elsewhere, ..Setting::default() };
        let outcome = on_thread(|| run::run(shared, &setting, None));
        let outcome = outcome
            .unwrap_or_else(|failure| Outcome { failure: Some(failure), ..Outcome::default() });
        report.runs += 1;
        report.longest_rest = report.longest_rest.max(outcome.rest());
        let late_changes = oracle::late_changes(&outcome);
        let (heading, details) = match &outcome.failure {
            Some(failure) => ("the run failed", vec![failure.clone()]),
            None if late_changes.is_empty() => {
                outcomes.push(outcome);
                continue;
            }
            None => ("the end is not a fixpoint", late_changes),
        };
        report.add(finding(&setting, &RunVerdict::of(heading, details), began));
        return None;
    }
    let [first, same, other, elsewhere, late] = <[Outcome; 5]>::try_from(outcomes).ok()?;
    report.is_random = !oracle::are_equal(&first, &same);
    let worse = worse(shared, seed, report);
    match Expectation::new(&first, &[same, other, elsewhere], &[late], &worse, within) {
        Ok(expected) => Some(Reference { first, expected, replicated: None }),
        Err(details) => {
            let verdict = RunVerdict::of("two undisturbed runs end differently", details);
            report.add(finding(&Setting { seed, ..Setting::default() }, &verdict, began));
            None
        }
    }
}

/// Makes the run that shows which places the operator renews all the time, and returns these. A
/// failure of that run is one of the undisturbed runs as well.
fn renewed<F, W>(
    shared: &SharedByRuns<'_, F>,
    seed: u64,
    report: &mut ExplorationReport,
) -> Arc<Masks>
where
    F: Fn(World) -> W + Send + Sync,
    W: Future<Output = ()>,
{
    if let Some(known) = shared.renewed.get() {
        return Arc::clone(known);
    }
    let setting = Setting { seed, goes_on: true, ..Setting::default() };
    report.runs += 1;
    let found = match on_thread(|| run::run(shared, &setting, None)) {
        Ok(outcome) if outcome.failure.is_none() => {
            renewed::learn(&outcome.recording.changes, outcome.restart)
        }
        _ => Masks::new(),
    };
    Arc::clone(shared.renewed.get_or_init(|| Arc::new(found)))
}

/// Makes the runs that show which values grow with delays, and which ones with failures: of each,
/// a run and a worse one. A failure of such a run is no finding, since the plans have the same
/// disturbances one by one; nothing is learned then.
fn worse<F, W>(
    shared: &SharedByRuns<'_, F>,
    seed: u64,
    report: &mut ExplorationReport,
) -> Vec<Vec<Outcome>>
where
    F: Fn(World) -> W + Send + Sync,
    W: Future<Output = ()>,
{
    let late = SLOW.map(|lag| Setting { seed, lag, ..Setting::default() });
    let refused = REFUSALS.map(|refusals| Setting { seed, refusals, ..Setting::default() });
    let mut run = |setting: &Setting| {
        report.runs += 1;
        let outcome = on_thread(|| run::run(shared, setting, None)).ok()?;
        outcome.failure.is_none().then_some(outcome)
    };
    [late, refused].iter().filter_map(|both| both.iter().map(&mut run).collect()).collect()
}

/// Makes the undisturbed run of two replicas; what is wrong with it is a finding.
pub(super) fn replicate<F, W>(
    shared: &SharedByRuns<'_, F>,
    seed: u64,
    began: Instant,
    reference: &mut Reference,
    report: &mut ExplorationReport,
) where
    F: Fn(World) -> W + Send + Sync,
    W: Future<Output = ()>,
{
    let setting = Setting { seed, replicas: REPLICAS, ..Setting::default() };
    let Ok(outcome) = on_thread(|| run::run(shared, &setting, Some(&reference.expected))) else {
        return;
    };
    report.runs += 1;
    match reference.expected.judge(&outcome) {
        Some(mut verdict) => {
            verdict.details.insert(0, "two replicas with a lease, undisturbed".to_owned());
            // A hand-over that never comes: its run has two replicas.
            let finding = finding(&setting, &verdict, began);
            report.add(Finding { replay: format!("{seed}:{UNDISTURBED}"), ..finding });
        }
        None => {
            reference.expected.admit(&outcome);
            reference.replicated = Some(outcome);
        }
    }
}

/// State that the threads of a search share.
pub(super) struct Search<'a, F> {
    pub(super) shared: &'a SharedByRuns<'a, F>,
    pub(super) reference: &'a Reference,
    pub(super) plans: &'a [Schedule],
    pub(super) seed: u64,
    pub(super) began: Instant,
    pub(super) tally: SearchCounts,
}

/// Counts of a search.
#[derive(Debug, Default)]
pub(super) struct SearchCounts {
    runs: AtomicUsize,
    longest_rest: Mutex<Duration>,
}

impl<F> Search<'_, F> {
    /// Runs the plans on all threads, and adds the findings in the order of the plans.
    pub(super) fn run<W>(&self, settings: &Exploration, report: &mut ExplorationReport)
    where
        F: Fn(World) -> W + Send + Sync,
        W: Future<Output = ()>,
    {
        let next = AtomicUsize::new(0);
        // The threads add findings in any order; the indices sort them afterwards.
        let found: Mutex<Vec<(usize, Finding)>> = Mutex::default();
        in_parallel(settings.threads, || {
            while self.began.elapsed() < settings.budget {
                if settings.first_only && !found.lock().is_empty() {
                    return;
                }
                // Relaxed: the count alone gives each plan to one thread.
                let index = next.fetch_add(1, Ordering::Relaxed);
                let Some(plan) = self.plans.get(index) else { return };
                let finding = self.one(plan);
                found.lock().extend(finding.map(|finding| (index, finding)));
                progress(index + 1, self.plans.len(), "plans");
            }
        });
        // Relaxed: the threads have been joined.
        report.runs += self.tally.runs.load(Ordering::Relaxed);
        report.longest_rest = report.longest_rest.max(*self.tally.longest_rest.lock());
        let mut found = found.into_inner();
        found.sort_by_key(|(index, _)| *index);
        found.into_iter().for_each(|(_, finding)| report.add(finding));
    }

    /// Makes the run of a plan; returns what was wrong with it, of the fewest disturbances that
    /// show it.
    fn one<W>(&self, plan: &Schedule) -> Option<Finding>
    where
        F: Fn(World) -> W + Send + Sync,
        W: Future<Output = ()>,
    {
        let mut finding = self.judged(plan)?;
        let mut left = plan.shorter();
        while let Some(shorter) = left.pop() {
            if let Some(found) = self.judged(&shorter) {
                (finding, left) = (found, shorter.shorter());
            }
        }
        Some(finding)
    }

    /// Makes the run of a plan, and returns what was wrong with it.
    fn judged<W>(&self, plan: &Schedule) -> Option<Finding>
    where
        F: Fn(World) -> W + Send + Sync,
        W: Future<Output = ()>,
    {
        let Reference { expected, .. } = self.reference;
        let setting = Setting::of(self.seed, plan);
        let outcome = run::run(self.shared, &setting, Some(expected));
        // Relaxed: a count, read after the threads have been joined.
        self.tally.runs.fetch_add(1, Ordering::Relaxed);
        let reference = self.reference.of(plan);
        let caused = words::caused(&outcome.recording, &reference.requests);
        if std::env::var_os(REPLAY).is_some() {
            print_run(&outcome, &caused);
            if caused.len() < plan.steps.len() {
                eprintln!(
                    "of `{plan}` a request or change was not made: the text is from another state of the code"
                );
            }
        }
        let Some(verdict) = expected.judge(&outcome) else {
            let mut longest = self.tally.longest_rest.lock();
            *longest = longest.max(outcome.rest());
            return None;
        };
        let moments = saved::moments(plan, reference);
        Some(Finding { caused, moments, ..finding(&setting, &verdict, self.began) })
    }
}

/// Returns the finding that a verdict is about, without its disturbances.
pub(super) fn finding(setting: &Setting, verdict: &RunVerdict, began: Instant) -> Finding {
    Finding {
        cause: verdict.cause(),
        heading: verdict.heading.to_owned(),
        caused: Vec::new(),
        first: verdict.first.clone(),
        because: verdict.because.clone(),
        details: verdict.details.clone(),
        seed: setting.seed,
        moments: Vec::new(),
        variable: REPLAY,
        replay: format!("{}:{}", setting.seed, setting.plan),
        others: Vec::new(),
        after: began.elapsed(),
    }
}

/// Runs work on a number of threads with large stacks, and waits for all.
pub(super) fn in_parallel(threads: usize, work: impl Fn() + Sync) {
    std::thread::scope(|scope| {
        for _ in 0..threads {
            let thread = std::thread::Builder::new().name("explore".to_owned()).stack_size(STACK);
            // Without a thread the others do its work; with none at all no run is reported.
            drop(thread.spawn_scoped(scope, &work));
        }
    });
}

/// Prints the requests and changes of a run that is replayed, in their order.
pub(super) fn print_run(outcome: &Outcome, caused: &[String]) {
    let Recording { requests, changes, .. } = &outcome.recording;
    let print = |change: &RecordedChange| {
        let by = if change.by_operator { "operator" } else { "others  " };
        let mark = if change.is_relevant { ' ' } else { '.' };
        eprintln!("{:>9.3} s {mark} {by} {} {}", change.at.as_secs_f64(), change.verb, change.key);
    };
    for (number, request) in requests.iter().enumerate() {
        changes.iter().filter(|change| change.requests == number).for_each(print);
        if request.is_disturbed() {
            let text = words::request_text(request, request.key.as_deref());
            eprintln!("{:>9.3} s   asks for {text}", request.at.as_secs_f64());
        }
    }
    changes.iter().filter(|change| change.requests >= requests.len()).for_each(print);
    caused.iter().for_each(|caused| eprintln!("disturbed: {caused}"));
}

/// Shows the progress on a terminal.
pub(super) fn progress(count: usize, of: usize, noun: &str) {
    if count.is_multiple_of(50) && std::io::stderr().is_terminal() {
        eprint!("\rexplored {count} of {of} {noun}");
    }
}
