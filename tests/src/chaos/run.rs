//! A whole run: rounds of faults and rest until enough versions were made.

use std::fmt;

use super::Stats;
use super::driver::World;
use super::stats::Progress;
use crate::oracle::Violation;

/// Largest number of versions of a round; a round ends with the world at rest.
const ROUND: u64 = 12_000;

/// Options of a run.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// Seed from which everything follows.
    pub seed: u64,
    /// Least number of versions of objects that are made.
    pub versions: u64,
    /// Number of keys of the kind that most writes go to; the others have a quarter.
    pub keys: u64,
}

impl Options {
    /// Returns the options of a run of `versions` versions.
    pub fn new(seed: u64, versions: u64) -> Self {
        Self { seed, versions, keys: 240 }
    }
}

/// A run in which every promise was kept.
#[derive(Clone, Debug)]
pub struct Report {
    /// Progress at the end.
    pub progress: Progress,
    /// Counters of events and faults.
    pub stats: Stats,
    /// Hash of all that was committed and delivered, in order and with times.
    pub trace: u64,
}

/// A run in which a promise was broken.
#[derive(Clone, Debug)]
pub struct Failure {
    /// Options of the run.
    pub options: Options,
    /// The violations, in the order in which they were found.
    pub violations: Vec<Violation>,
    /// Progress until then.
    pub progress: Progress,
    /// Counters of events and faults until then.
    pub stats: Stats,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "after {}", self.progress)?;
        for violation in &self.violations {
            writeln!(f, "{violation}")?;
        }
        write!(
            f,
            "replay it: cargo run --release -p windlass-tests --bin oracle -- --seed {} --versions {}",
            self.options.seed, self.options.versions
        )
    }
}

impl std::error::Error for Failure {}

/// Runs a world to the end; `progress` is called between rounds.
///
/// # Errors
/// The promises that were broken.
pub fn run(options: Options, mut progress: impl FnMut(&Progress)) -> Result<Report, Box<Failure>> {
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
    let runtime = match runtime {
        Ok(runtime) => runtime,
        Err(error) => panic!("cannot start a runtime: {error}"),
    };
    runtime.block_on(live(options, &mut progress))
}

async fn live(
    options: Options,
    progress: &mut dyn FnMut(&Progress),
) -> Result<Report, Box<Failure>> {
    let mut world = match World::new(&options) {
        Ok(world) => world,
        Err(error) => panic!("cannot start the world: {error}"),
    };
    let mut round = 0_u64;
    loop {
        let made = world.progress().counts.commits;
        if made >= options.versions || world.is_broken() {
            break;
        }
        round += 1;
        let versions = ROUND / (1 + round % 4);
        world.round(versions.min(options.versions - made)).await;
        world.settle().await;
        world.mend().await;
        if round % 3 == 1 && !world.is_broken() {
            world.fall_ill().await;
        }
        if round % 4 == 3 && !world.is_broken() {
            world.restore().await;
        }
        if round % 4 == 2 && !world.is_broken() {
            world.lose_a_kind().await;
        }
        if round % 5 == 2 && !world.is_broken() {
            world.list_in_part().await;
        }
        world.back_up();
        progress(&world.progress());
    }
    world.stop().await;
    let (violations, trace) = {
        let book = world.ledger.book();
        (book.violations().to_vec(), book.trace())
    };
    let (progress, stats) = (world.progress(), world.stats.clone());
    if violations.is_empty() {
        return Ok(Report { progress, stats, trace });
    }
    Err(Box::new(Failure { options, violations, progress, stats }))
}
