//! Simulations: each seed is a run with its own latencies, crashes and other faults at its own
//! moments.

// DESIGN.md, 234: A simulation draws faults as requests come, so that fewer faults are a prefix of
// more

use std::collections::BTreeSet;
use std::fmt;
use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use super::monitor::words;
use super::outcome::Outcome;
use super::report::{self, ExplorationReport, Finding};
use super::run::{self, SharedByRuns};
use super::search::{self, Reference};
use super::setting::Setting;
use super::state::Masks;
use super::{World, now};
use crate::testing::paused::on_thread;

/// Variable that names one run, `SEED` or `SEED:FAULTS`: it alone is made, and its exchange is
/// printed.
const REPLAY: &str = "WINDLASS_SIMULATE";
/// Seed of the undisturbed runs.
const REFERENCE: u64 = 1;
/// One of this number of seeds is run twice, and both runs must exchange the same bytes.
const TWICE: usize = 100;

/// Runs a workload once per seed with the default settings, and fails the test at a finding.
///
/// Each seed has latencies of its own, and up to five faults at moments of its own: crashes, lost
/// and late answers, refusals, late events. The end must be that of undisturbed runs, as in an
/// [exploration](super::explore), which is thorough where a simulation is broad: it tries every
/// single moment, and a simulation many combinations. The workload is written in the same way.
///
/// ```no_run
/// # extern crate windlass_testing as windlass;
/// use windlass::testing::simulate;
///
/// # fn operator(client: windlass::client::Client) -> windlass::manager::Manager {
/// #     windlass::manager::Manager::new(client)
/// # }
/// simulate(1..=200, |world| async move {
///     world.operator(operator);
///     // Objects are created and changed here.
/// });
/// ```
///
/// # Panics
/// At a finding; the text is the [report](SimulationReport).
pub fn simulate<F, W>(seeds: impl IntoIterator<Item = u64>, workload: F)
where
    F: Fn(World) -> W + Send + Sync,
    W: Future<Output = ()>,
{
    let report = Simulation::new().run(seeds, workload);
    assert!(report.findings().is_empty(), "{report}");
}

/// Settings of a simulation.
///
/// | setting | default |
/// |---|---|
/// | [`faults`](Self::faults) | 5 |
/// | [`threads`](Self::threads) | processors |
/// | [`budget`](Self::budget) | none |
#[derive(Clone, Debug)]
#[must_use = "a simulation does nothing until it is run"]
pub struct Simulation {
    faults: usize,
    threads: usize,
    budget: Option<Duration>,
}

impl Default for Simulation {
    fn default() -> Self {
        let threads = std::thread::available_parallelism().map_or(1, usize::from);
        Self { faults: 5, threads, budget: None }
    }
}

impl Simulation {
    /// Returns the default settings.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the largest number of faults of a seed; 0 leaves the latencies alone. Default: 5.
    pub fn faults(mut self, faults: usize) -> Self {
        self.faults = faults;
        self
    }

    /// Sets the number of threads; 0 counts as 1. Default: that of the processors.
    pub fn threads(mut self, threads: usize) -> Self {
        self.threads = threads.max(1);
        self
    }

    /// Sets the real time after which no further seed is run. Default: none.
    pub fn budget(mut self, budget: Duration) -> Self {
        self.budget = Some(budget);
        self
    }

    /// Runs the seeds, and returns what was found.
    pub fn run<F, W>(self, seeds: impl IntoIterator<Item = u64>, workload: F) -> SimulationReport
    where
        F: Fn(World) -> W + Send + Sync,
        W: Future<Output = ()>,
    {
        let began = now();
        let replay = replayed();
        let (seeds, faults) = match replay {
            Some((seed, faults)) => (vec![seed], faults.unwrap_or(self.faults)),
            None => (seeds.into_iter().collect(), self.faults),
        };
        let settings = Self { faults, ..self };
        let prepared = on_thread(run::prepared).ok().flatten();
        let shared = SharedByRuns::new(&workload, prepared);
        let mut reference = ExplorationReport::default();
        let within = super::REST;
        let found = search::undisturbed(&shared, REFERENCE, within, began, &mut reference);
        let ExplorationReport { findings, renewed, .. } = reference;
        let mut report = SimulationReport { findings, renewed, ..Default::default() };
        for finding in &mut report.findings {
            (finding.variable, finding.replay) = (REPLAY, format!("{}:0", finding.seed));
        }
        if let Some(reference) = found {
            let is_alone = replay.is_some();
            let sweep = SharedBySimulation {
                shared: &shared,
                reference: &reference,
                settings,
                began,
                is_alone,
            };
            sweep.run(&seeds, &mut report);
        }
        report.elapsed = began.elapsed();
        report
    }
}

/// Returns the seed that alone is asked for, and its number of faults.
fn replayed() -> Option<(u64, Option<usize>)> {
    let text = std::env::var(REPLAY).ok()?;
    let parsed = seed_and_faults(&text);
    assert!(parsed.is_some(), "{REPLAY} is `{text}`, which is not a SEED or SEED:FAULTS");
    parsed
}

/// Reads `SEED` or `SEED:FAULTS`.
fn seed_and_faults(text: &str) -> Option<(u64, Option<usize>)> {
    match text.split_once(':') {
        Some((seed, faults)) => Some((seed.parse().ok()?, Some(faults.parse().ok()?))),
        None => Some((text.parse().ok()?, None)),
    }
}

/// State that the threads of a simulation share.
struct SharedBySimulation<'a, F> {
    shared: &'a SharedByRuns<'a, F>,
    reference: &'a Reference,
    settings: Simulation,
    began: Instant,
    /// Whether one seed alone is run, and its exchange printed.
    is_alone: bool,
}

impl<F> SharedBySimulation<'_, F> {
    /// Runs the seeds on all threads.
    fn run<W>(&self, seeds: &[u64], report: &mut SimulationReport)
    where
        F: Fn(World) -> W + Send + Sync,
        W: Future<Output = ()>,
    {
        let (next, made, faults) = (AtomicUsize::new(0), AtomicUsize::new(0), AtomicUsize::new(0));
        // Relaxed throughout: counts, and a sum in which the order does not matter; they are read
        // after the threads have been joined.
        let trace = AtomicU64::new(0);
        let found: Mutex<Vec<(usize, Finding)>> = Mutex::default();
        let diverged: Mutex<BTreeSet<u64>> = Mutex::default();
        let is_in_time = || self.settings.budget.is_none_or(|time| self.began.elapsed() < time);
        search::in_parallel(self.settings.threads, || {
            while is_in_time() {
                let index = next.fetch_add(1, Ordering::Relaxed);
                let Some(seed) = seeds.get(index).copied() else { return };
                let outcome = self.outcome(seed, self.settings.faults);
                made.fetch_add(1, Ordering::Relaxed);
                faults.fetch_add(outcome.recording.caused.len(), Ordering::Relaxed);
                trace.fetch_xor(outcome.recording.trace, Ordering::Relaxed);
                if index.is_multiple_of(TWICE) {
                    let again = self.outcome(seed, self.settings.faults);
                    let is_same = again.recording.trace == outcome.recording.trace;
                    diverged.lock().extend((!is_same).then_some(seed));
                }
                let finding = self.judged(seed, outcome);
                found.lock().extend(finding.map(|finding| (index, finding)));
                search::progress(index + 1, seeds.len(), "seeds");
            }
        });
        let mut found = found.into_inner();
        found.sort_by_key(|(index, _)| *index);
        let mut grouped = ExplorationReport::default();
        found.into_iter().for_each(|(_, finding)| grouped.add(finding));
        report.findings.extend(grouped.findings);
        report.seeds = made.into_inner();
        report.faults = faults.into_inner();
        report.trace = trace.into_inner();
        report.diverged = diverged.into_inner();
    }

    /// Makes the run of a seed.
    fn outcome<W>(&self, seed: u64, faults: usize) -> Outcome
    where
        F: Fn(World) -> W + Send + Sync,
        W: Future<Output = ()>,
    {
        let setting = Setting { seed, chaos: Some(faults), ..Setting::default() };
        run::run(self.shared, &setting, Some(&self.reference.expected))
    }

    /// Judges the run of a seed; the finding of a run that fails has the fewest of its first
    /// faults that suffice.
    fn judged<W>(&self, seed: u64, outcome: Outcome) -> Option<Finding>
    where
        F: Fn(World) -> W + Send + Sync,
        W: Future<Output = ()>,
    {
        let expected = &self.reference.expected;
        let caused = |outcome: &Outcome| words::caused(&outcome.recording, &[]);
        if self.is_alone {
            search::print_run(&outcome, &caused(&outcome));
        }
        let verdict = expected.judge(&outcome)?;
        let all = outcome.recording.caused.len();
        let mut prefixes = (0..all).map(|faults| (faults, self.outcome(seed, faults)));
        let shortest = prefixes
            .find_map(|(faults, outcome)| Some((faults, expected.judge(&outcome)?, outcome)));
        let (faults, verdict, outcome) = shortest.unwrap_or((all, verdict, outcome));
        let setting = Setting { seed, ..Setting::default() };
        Some(Finding {
            caused: caused(&outcome),
            variable: REPLAY,
            replay: format!("{seed}:{faults}"),
            ..search::finding(&setting, &verdict, self.began)
        })
    }
}

/// Outcome of a simulation.
#[derive(Clone, Debug, Default)]
pub struct SimulationReport {
    findings: Vec<Finding>,
    seeds: usize,
    faults: usize,
    trace: u64,
    diverged: BTreeSet<u64>,
    elapsed: Duration,
    /// Places that the operator renews all the time.
    renewed: Arc<Masks>,
}

impl SimulationReport {
    /// Returns the findings, one for each cause.
    pub fn findings(&self) -> &[Finding] {
        &self.findings
    }

    /// Returns the number of seeds that were run.
    pub fn seeds(&self) -> usize {
        self.seeds
    }

    /// Returns the number of faults in all runs.
    pub fn faults(&self) -> usize {
        self.faults
    }

    /// Returns a hash of all bytes that the operator exchanged with the server in all runs: equal
    /// code and seeds have equal hashes.
    pub fn trace(&self) -> u64 {
        self.trace
    }

    /// Returns the seeds whose second run exchanged other bytes than the first; one of a hundred is
    /// run twice.
    pub fn diverged(&self) -> impl Iterator<Item = u64> {
        self.diverged.iter().copied()
    }

    /// Returns the real time of the simulation.
    pub fn elapsed(&self) -> Duration {
        self.elapsed
    }
}

impl fmt::Display for SimulationReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { findings, seeds, faults, trace, diverged, elapsed, renewed } = self;
        let (count, seconds) = (findings.len(), elapsed.as_secs_f64());
        write!(
            f,
            "{count} findings in {seeds} seeds with {faults} faults, {seconds:.1} s, trace {trace:016x}"
        )?;
        write!(f, "{}", report::not_compared(renewed))?;
        if !diverged.is_empty() {
            write!(
                f,
                "\ntwo runs of one seed differed, of {diverged:?}: the operator reads real time, real randomness or a \
                 real network, so that findings may not repeat"
            )?;
        }
        for (index, finding) in findings.iter().enumerate() {
            write!(f, "\n\n{}. {finding}", index + 1)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_text_of_a_run_is_a_seed_and_a_number_of_faults() {
        assert_eq!(seed_and_faults("7"), Some((7, None)));
        assert_eq!(seed_and_faults("7:2"), Some((7, Some(2))));
        for text in ["", "x", "7:", "7:x", ":2"] {
            assert_eq!(seed_and_faults(text), None, "{text}");
        }
    }
}
