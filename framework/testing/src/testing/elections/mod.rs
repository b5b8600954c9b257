//! Simulated elections under faults, and an oracle that counts framework writes of two processes
//! that the server executes at the same time. The promise is that there are none.
//!
//! The simulation runs the election's own `Machine` with `Handover`, and the arithmetic of the
//! gate, millions of times, without tasks and sockets. Real time is counted in microseconds. Every
//! node has separate clocks: they run slower than real time, stop while the machine sleeps, or are
//! set by hand. The server stores a single versioned record.
//!
//! Faults: nodes freeze, sleep, crash, restart and release the lease; requests and answers are
//! delayed or lost; other writers change the record, and delete the Lease, mostly while the holder
//! hangs.
//!
//! Every node attempts writes all the time, as the work of a leader does, and the node's gate
//! admits or refuses them. An admitted write takes time to reach the server. The server executes it
//! for at most the write's timeout, counted from the arrival by the server's clock, even if the
//! node crashes meanwhile. Some writes are given up by callers before the answer.
//!
//! The oracle has two counts. *Overlaps* are writes that began while a write of another node was
//! executing. *Chances* are moments at which a gate was open while a write that another node had
//! admitted could still have been executing, had that write lasted for the whole timeout; they
//! reveal an unsafe world long before an overlap does. A [`Defect`] breaks the framework on
//! purpose: the oracle must then count overlaps.
//!
//! Absent from safe worlds: writes that take longer from the gate to the server than the promise
//! covers ([`Elections::late`] adds them, and the oracle counts), and a server that is restored
//! from an older state.

mod events;
mod oracle;
#[cfg(test)]
mod tests;
mod world;

use std::time::Duration;

pub use oracle::ElectionCounts;

use windlass_runtime::leader::simulated::LeaseDurations;

/// Number of elections in a world before the next seed's world begins.
///
/// Many short worlds cover more combinations of clock rates and numbers of nodes than a single long
/// world; a fault that needs a long history still has dozens of terms.
const PER_WORLD: u64 = 50;

/// A framework that is broken on purpose.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Defect {
    /// Writes go on until another process could take the lease: there is no margin.
    NoMargin,
    /// Validity counts from the answer to a renewal instead of from before the request was sent.
    CountedFromAnswer,
    /// A leader writes until notified of the end of its term, and does not ask the gate.
    GateNotChecked,
    /// Durations are differences of the wall clock, which can be set.
    WallClock,
    /// Durations leave out the time that the machine slept.
    SleepNotCounted,
    /// The lease is written without the resourceVersion: the last writer wins.
    NoVersions,
    /// The lease is released while writes are in flight.
    ReleasedEarly,
    /// The lease is released when all work has ended, though the server may still execute a write
    /// that the caller gave up.
    DroppedWritesForgotten,
    /// A process that creates the lease leads at once, without the wait of a lease duration.
    MakersDoNotWait,
}

impl Defect {
    /// All defects.
    pub const ALL: [Self; 9] = [
        Self::NoMargin,
        Self::CountedFromAnswer,
        Self::GateNotChecked,
        Self::WallClock,
        Self::SleepNotCounted,
        Self::NoVersions,
        Self::ReleasedEarly,
        Self::DroppedWritesForgotten,
        Self::MakersDoNotWait,
    ];
}

/// Settings of simulated elections: rates of clocks, and the time that a write may take from the
/// gate to the server (pauses of the node's process included), within the bounds of the promise or
/// beyond them.
#[derive(Clone, Copy, Debug)]
pub struct Elections {
    /// Lease duration, renewal and margin of all nodes; the defaults of the framework.
    pub(super) timing: LeaseDurations,
    /// Clocks run at rates between 1/`rate` and 1.
    pub(super) rate: f64,
    /// Time from the gate to the server that the promise covers.
    pub(super) pause: Duration,
    /// Time from the gate to the server beyond the promise.
    pub(super) late: Duration,
    /// The defect that all nodes have; `None` for the framework without a defect.
    pub(super) defect: Option<Defect>,
}

impl Elections {
    /// Returns elections whose clocks differ in rate by up to 1.15, and whose writes reach the
    /// server at once.
    pub fn skewed() -> Self {
        let (pause, late) = (Duration::ZERO, Duration::ZERO);
        Self { timing: LeaseDurations::default(), rate: 1.15, pause, late, defect: None }
    }

    /// Returns elections whose clocks differ in rate by up to 1.02, and whose writes take up to 1.7
    /// s from the gate to the server.
    pub fn paused() -> Self {
        Self { rate: 1.02, pause: Duration::from_millis(1_700), ..Self::skewed() }
    }

    /// Adds up to `late` to the time that a write takes to the server, for which no promise holds.
    #[must_use]
    pub fn late(mut self, late: Duration) -> Self {
        self.late = late;
        self
    }

    /// Breaks the framework in these elections on purpose.
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
    pub fn hold(&self, seed: u64, count: u64) -> ElectionCounts {
        let mut tally = ElectionCounts::default();
        // A prime factor keeps the worlds of neighbouring seeds apart: seed 1 with many elections
        // does not repeat the worlds of seed 2.
        let mut world = seed.wrapping_mul(1_000_003);
        while tally.elections < count {
            // The last world is cut short, so that the number of elections is close to `count`.
            let left = (count - tally.elections).min(PER_WORLD);
            tally.add(&world::run(world, *self, left));
            world = world.wrapping_add(1);
        }
        tally
    }
}
