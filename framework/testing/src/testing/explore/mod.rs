//! Exploration of faults: a workload is run again and again, each time with another crash, lost
//! answer, late event or foreign edit, and must always come to the end of the undisturbed run.
//!
//! Each run has an embedded server, a paused clock and a thread of its own. Undisturbed runs show
//! what is expected; places that differ between their seeds are masked. The other runs use the
//! first seed, so that each of them equals the undisturbed run up to its disturbance.
//!
//! Files: `world` is what a workload sees; `monitor` records a run and disturbs it from inside the
//! server; `plan` has the disturbances, `patterns` chooses them; `run` makes one run, `search` all;
//! `oracle` judges, and `oracle/renewed` finds values that never come to rest; `state` compares
//! objects, `varying` names and values that differ without a fault; `line` cuts connections;
//! `external` has systems outside of Kubernetes, `declared` workloads from a schema; `report` tells
//! findings, `saved` keeps them as files. `simulate` makes runs with seeded faults instead.
//!
//! Leader election is off but in runs with hand-overs: renewals of leases would be most requests.
//!
//! Not included: faults of single calls of webhooks, edits of specs by others, conflicts of applies
//! without a change, panics of tasks outside of reconciles.

// DESIGN.md, 252: Calls of webhooks are disturbed only with their operator
// DESIGN.md, 195: Disturbances are caused inside the server, by an observer of requests and changes

mod declared;
mod external;
mod line;
mod monitor;
mod oracle;
mod outcome;
mod patterns;
mod report;
mod run;
mod saved;
mod schedule;
mod search;
mod setting;
mod simulate;
mod state;
#[cfg(test)]
mod tests;
mod varying;
mod world;

use std::future::Future;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use jiff::Timestamp;

use self::oracle::RunVerdict;
use self::run::SharedByRuns;
use self::schedule::Schedule;
use self::search::{Reference, Search, SearchCounts};
use self::setting::Setting;
use windlass_core::rng::Rng;

pub use self::external::ExternalWorld;
pub use self::report::{ExplorationReport, Finding};
pub use self::simulate::{Simulation, SimulationReport, simulate};
pub use self::world::World;

use super::EPOCH;
use super::paused::on_thread;

/// Variable that names one run, `SEED:PLAN`: it alone is made, and its writes are printed.
const REPLAY: &str = "WINDLASS_EXPLORE";
/// Variable that names a folder into which findings are saved.
const SAVE: &str = "WINDLASS_EXPLORE_SAVE";
/// Virtual time in which an operator must come to rest after the last disturbance: two of its
/// longest backoffs.
const REST: Duration = Duration::from_secs(600);

/// Explores the faults of an operator with the default settings, and fails the test at a finding.
///
/// `workload` starts the operator by [`World::operator`] and acts as its users do. It is called
/// once per run, so it must do the same in each; steps should wait by [`World::eventually`] for the
/// effect of the one before. The call takes 60 s at most, or a little longer, and uses all
/// processors; in a `#[tokio::test]` it blocks that test's thread.
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
/// | [`stale_starts`](Self::stale_starts) | off |
/// | [`rest_within`](Self::rest_within) | 600 s |
/// | [`replay`](Self::replay) | none |
#[derive(Clone, Debug)]
#[must_use = "an exploration does nothing until it is run"]
pub struct Exploration {
    seed: u64,
    budget: Duration,
    runs: usize,
    threads: usize,
    first_only: bool,
    stale_starts: bool,
    rest_within: Duration,
    files: Vec<PathBuf>,
}

impl Default for Exploration {
    fn default() -> Self {
        let threads = std::thread::available_parallelism().map_or(1, usize::from);
        Self {
            seed: 1,
            budget: Duration::from_secs(60),
            runs: 2000,
            threads,
            first_only: false,
            stale_starts: false,
            rest_within: REST,
            files: Vec::new(),
        }
    }
}

/// Returns real time, of which the budget is a part; runs have a paused clock.
#[expect(clippy::disallowed_methods, reason = "the budget is of real time, which no run reads")]
fn now() -> Instant {
    Instant::now()
}

/// Returns a start of simulated time.
fn time_of(epoch: i64) -> Timestamp {
    Timestamp::from_second(epoch).unwrap_or(Timestamp::UNIX_EPOCH)
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

    /// Sets the largest number of plans. Default: 2,000. Undisturbed runs, and those that make a
    /// finding shorter, come on top.
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

    /// Adds starts of the operator on caches that lag behind: after a crash, they show for twenty
    /// seconds the state of one to three changes of an object before. Default: off.
    ///
    /// The caches of this framework begin with consistent reads, so a real operator never starts in
    /// this way. An operator that survives it takes no view for the present, however old.
    pub fn stale_starts(mut self, on: bool) -> Self {
        self.stale_starts = on;
        self
    }

    /// Sets the virtual time from the last disturbance in which the operator must come to rest,
    /// beyond the time that it needs in undisturbed runs. Default: 600 s.
    pub fn rest_within(mut self, time: Duration) -> Self {
        self.rest_within = time;
        self
    }

    /// Makes the run of a finding that was [saved](Finding::save), instead of a search; of all
    /// files that end with `.json` for a folder. The seed is that of the file. May be called
    /// several times.
    ///
    /// A file that cannot be read, or whose moment the undisturbed run does not have any more, is a
    /// finding: such a file tests nothing.
    pub fn replay(mut self, path: impl AsRef<Path>) -> Self {
        self.files.push(path.as_ref().to_owned());
        self
    }

    /// Explores, and returns what was found.
    ///
    /// With the variable `WINDLASS_EXPLORE_SAVE` the findings are saved in the folder that it
    /// names.
    pub fn run<F, W>(self, workload: F) -> ExplorationReport
    where
        F: Fn(World) -> W + Send + Sync,
        W: Future<Output = ()>,
    {
        let began = now();
        let mut report = ExplorationReport { seed: self.seed, ..ExplorationReport::default() };
        let prepared = on_thread(run::prepared).ok().flatten();
        let shared = SharedByRuns::new(&workload, prepared);
        if let Some((seed, plan)) = replayed() {
            report.seed = seed;
            self.explore(&shared, seed, began, &mut report, |_, _| Ok(vec![plan]));
        } else if self.files.is_empty() {
            let chosen = |reference: &Reference, seed| Ok(self.plans(reference, seed));
            self.explore(&shared, self.seed, began, &mut report, chosen);
        } else {
            self.replay_files(&shared, began, &mut report);
        }
        report.elapsed = began.elapsed();
        save(&report);
        report
    }

    /// Makes the runs of saved findings.
    fn replay_files<F, W>(
        &self,
        shared: &SharedByRuns<'_, F>,
        began: Instant,
        report: &mut ExplorationReport,
    ) where
        F: Fn(World) -> W + Send + Sync,
        W: Future<Output = ()>,
    {
        for read in self.files.iter().flat_map(|path| saved::read(path)) {
            match read {
                Ok(found) => {
                    report.seed = found.seed;
                    self.explore(shared, found.seed, began, report, |reference, _| {
                        let recording = reference.recording(found.is_replicated());
                        saved::plan(&found.moments, recording).map(|plan| vec![plan])
                    });
                }
                Err(error) => {
                    let verdict = RunVerdict::of("a file is no finding", vec![error]);
                    report.add(search::finding(&Setting::default(), &verdict, began));
                }
            }
        }
    }

    /// Makes undisturbed runs, and those of the plans that are chosen by them.
    fn explore<F, W>(
        &self,
        shared: &SharedByRuns<'_, F>,
        seed: u64,
        began: Instant,
        report: &mut ExplorationReport,
        chosen: impl FnOnce(&Reference, u64) -> Result<Vec<Schedule>, String>,
    ) where
        F: Fn(World) -> W + Send + Sync,
        W: Future<Output = ()>,
    {
        let within = self.rest_within;
        let found = search::undisturbed(shared, seed, within, began, report);
        let Some(mut reference) = found else { return };
        if replayed().is_none() {
            search::replicate(shared, seed, began, &mut reference, report);
        }
        let plans = match chosen(&reference, seed) {
            Ok(plans) => plans,
            Err(missing) => {
                let heading = "the undisturbed run does not have the moment of a saved finding";
                let verdict = RunVerdict::of(heading, vec![missing]);
                report.add(search::finding(&Setting::default(), &verdict, began));
                return;
            }
        };
        report.plans += plans.len();
        let (reference, plans) = (&reference, plans.as_slice());
        let search =
            Search { shared, reference, plans, seed, began, tally: SearchCounts::default() };
        search.run(self, report);
    }

    /// Returns the plans, single disturbances first.
    fn plans(&self, reference: &Reference, seed: u64) -> Vec<Schedule> {
        let replicated = reference.replicated.as_ref().map(|outcome| &outcome.recording);
        let mut plans = patterns::single(&reference.first.recording, replicated, self.stale_starts);
        let pairs = self.runs.saturating_sub(plans.len());
        plans.extend(patterns::pairs(&plans, pairs, &Rng::seeded(seed).fork("pairs")));
        plans.truncate(self.runs);
        plans
    }
}

/// Returns the seed and the plan of the run that alone is asked for.
fn replayed() -> Option<(u64, Schedule)> {
    let text = std::env::var(REPLAY).ok()?;
    let parsed = seed_and_plan(&text);
    assert!(
        parsed.is_some(),
        "{REPLAY} is `{text}`, which is not a SEED:PLAN; copy it from a finding"
    );
    parsed
}

/// Reads `SEED:PLAN`.
fn seed_and_plan(text: &str) -> Option<(u64, Schedule)> {
    let (seed, plan) = text.split_once(':')?;
    Some((seed.parse().ok()?, plan.parse().ok()?))
}

/// Saves findings in the folder that the variable names, by the name of the test.
fn save(report: &ExplorationReport) {
    let Some(folder) = std::env::var_os(SAVE) else { return };
    let test = std::thread::current().name().unwrap_or("test").replace("::", "-");
    for (index, finding) in report.findings().iter().enumerate() {
        let file = Path::new(&folder).join(format!("{test}-{}.json", index + 1));
        match finding.save(&file) {
            Ok(()) => eprintln!("finding {} is saved as {}", index + 1, file.display()),
            Err(error) => eprintln!("cannot save {}: {error}", file.display()),
        }
    }
}
