//! Simulated elections under faults, and an oracle that counts framework writes of two processes
//! that the server executes at the same time: there may be none.
//!
//! The simulation runs the election's own `Machine`, handing over included, and the
//! arithmetic of its gate, millions of times, without tasks and sockets. Real time is counted in microseconds;
//! every node has clocks of its own, which run slower than real time, stand still while the machine
//! sleeps, or are set by hand. The server is one versioned record. Nodes freeze, sleep, crash,
//! start again and give the lease back; requests and answers come late or never; strangers write
//! the record, too, and delete the Lease, mostly while its holder hangs. Every node writes all the
//! time, as a leader's work would, and leaves it to the gate to refuse. A write takes time to the
//! server, which works on it for as long as the request allows, by its own clock and from the
//! arrival on, even if the node dies meanwhile. Some writes are given up by their callers before
//! they are answered.
//!
//! Two things are counted. *Overlaps* are writes that began while a write of another node was
//! executing. *Chances* are moments at which a gate was open while a write that another node had
//! admitted could still have been executing, had it taken as long as it may; they reveal an unsafe
//! world long before an overlap does. A [`Defect`] breaks the framework on purpose: the same oracle
//! must then count.
//!
//! Absent from safe worlds: writes that are longer on their way from the gate to the server than
//! the promise covers ([`Elections::late`] has them, and the oracle counts), a server that goes
//! back in time.

mod events;
mod oracle;
#[cfg(test)]
mod tests;
mod world;

use std::time::Duration;

pub use oracle::Tally;

use super::settings::Timing;

/// Number of elections in one world before the next seed's world begins.
const PER_WORLD: u64 = 50;

/// A framework that is broken on purpose.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Defect {
    /// Writes go on until the lease could pass to another.
    NoMargin,
    /// Validity counts from the answer to a renewal instead of from before it was sent.
    CountedFromAnswer,
    /// A process that was notified that it leads writes until it is notified of the end.
    GateNotAsked,
    /// Durations are differences of the wall clock, which people and programs set.
    WallClock,
    /// Durations leave out the time that the machine slept.
    SleepNotCounted,
    /// The lease is written without its version: the last writer wins.
    NoVersions,
    /// The lease is given back while writes are under way.
    ReleasedEarly,
    /// The lease is given back when all work has ended, though the server may still execute a write
    /// that its caller gave up.
    DroppedWritesForgotten,
    /// A process that creates the lease leads at once.
    MakersDoNotWait,
}

impl Defect {
    /// All defects.
    pub const ALL: [Self; 9] = [
        Self::NoMargin,
        Self::CountedFromAnswer,
        Self::GateNotAsked,
        Self::WallClock,
        Self::SleepNotCounted,
        Self::NoVersions,
        Self::ReleasedEarly,
        Self::DroppedWritesForgotten,
        Self::MakersDoNotWait,
    ];
}

/// Elections to hold: rates of clocks, and the time that a write may be on its way from the gate to
/// the server (pauses of its process included), inside the bounds that the promise names or beyond.
#[derive(Clone, Copy, Debug)]
pub struct Elections {
    pub(super) timing: Timing,
    /// Clocks run at rates between 1/`rate` and 1.
    pub(super) rate: f64,
    /// Time on the way that the promise covers.
    pub(super) pause: Duration,
    /// Time on the way beyond the promise.
    pub(super) late: Duration,
    pub(super) defect: Option<Defect>,
}

impl Elections {
    /// Returns elections whose clocks differ in rate by up to 1.15, and whose writes are at the
    /// server at once.
    pub fn skewed() -> Self {
        let (pause, late) = (Duration::ZERO, Duration::ZERO);
        Self { timing: Timing::default(), rate: 1.15, pause, late, defect: None }
    }

    /// Returns elections whose clocks differ in rate by up to 1.02, and whose writes are up to 1.7
    /// s on their way from the gate to the server.
    pub fn paused() -> Self {
        Self { rate: 1.02, pause: Duration::from_millis(1_700), ..Self::skewed() }
    }

    /// Adds up to `late` to the time that a write may be on its way: nothing is promised then.
    #[must_use]
    pub fn late(mut self, late: Duration) -> Self {
        self.late = late;
        self
    }

    /// Breaks the framework in this world on purpose.
    #[must_use]
    pub fn broken(mut self, defect: Defect) -> Self {
        if defect == Defect::NoMargin {
            self.timing.margin = Duration::ZERO;
        }
        self.defect = Some(defect);
        self
    }

    /// Holds at least `count` elections, in worlds of two to five nodes that follow from `seed`.
    /// The counts are the same on every machine.
    pub fn hold(&self, seed: u64, count: u64) -> Tally {
        let mut tally = Tally::default();
        let mut world = seed.wrapping_mul(1_000_003);
        while tally.elections < count {
            let left = (count - tally.elections).min(PER_WORLD);
            tally.add(&world::hold(world, *self, left));
            world = world.wrapping_add(1);
        }
        tally
    }
}
