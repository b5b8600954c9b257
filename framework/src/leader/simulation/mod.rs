//! Elections in a world that goes wrong, and an oracle that counts framework writes of two processes
//! that the server executes at the same time: there may be none.
//!
//! It runs the election's own [`Machine`](super::machine::Machine) and the arithmetic of its gate,
//! millions of times, without tasks and sockets. Real time is counted in microseconds; every node has
//! clocks of its own, which run slower than real time, stand still while the machine sleeps, or are
//! set by somebody. The server is one versioned record. Nodes freeze, sleep, crash, start again and
//! give the lease back; requests and answers come late or never; strangers write the record, too, and
//! delete the Lease, mostly while its holder hangs.
//! Every node writes all the time, as a leader's work would, and leaves it to the gate to refuse. A write
//! takes time to the server, which works on it for as long as it was told, by its own clock and from its
//! arrival on, whatever became of the node meanwhile. Some writes are given up by their callers before
//! they are answered.
//!
//! Two things are counted. *Overlaps* are writes that began while a write of another node was
//! executing. *Chances* are moments at which a gate was open while a write that another node had
//! admitted could still have been executing, had it taken as long as it may; they are what makes an
//! unsafe world show long before an overlap does. A [`Defect`] breaks the framework on purpose: the
//! same oracle must then count.
//!
//! Absent from safe worlds: writes that are longer on their way from the gate to the server than the
//! promise covers ([`Elections::late`] has them, and the oracle counts), a server that goes back in time.

mod events;
mod oracle;
#[cfg(test)]
mod tests;
mod world;

use std::time::Duration;

pub use oracle::Tally;

use super::settings::Timing;

/// Elections of one world hold this many before the next seed's world begins.
const PER_WORLD: u64 = 50;

/// A framework that is broken on purpose.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Defect {
    /// Writes go on until the lease could pass to another.
    NoMargin,
    /// Validity counts from the answer to a renewal instead of from before it was sent.
    CountedFromAnswer,
    /// Whoever was told to lead writes, until told otherwise.
    GateNotAsked,
    /// Durations are differences of the wall clock, which people and programs set.
    WallClock,
    /// Durations leave out the time that the machine slept.
    SleepNotCounted,
    /// The lease is written without its version: the last writer wins.
    NoVersions,
    /// The lease is given back while writes are under way.
    ReleasedEarly,
    /// The lease is given back when all work has ended, though the server may still execute a write that
    /// its caller gave up.
    DroppedWritesForgotten,
    /// Whoever makes the lease leads at once.
    MakersDoNotWait,
}

impl Defect {
    /// All of them.
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

/// Elections to hold: how clocks run, and how long a write may be on its way from the gate to the server
/// (pauses of its process included), inside the bounds that the promise names or beyond.
#[derive(Clone, Copy, Debug)]
pub struct Elections {
    pub(super) timing: Timing,
    /// Clocks run at rates between 1/`rate` and 1.
    pub(super) rate: f64,
    pub(super) pause: Duration,
    /// Beyond what is promised.
    pub(super) late: Duration,
    pub(super) defect: Option<Defect>,
}

impl Elections {
    /// Clocks whose rates differ by up to 1.15, and writes that are at the server at once.
    pub fn skewed() -> Self {
        let (pause, late) = (Duration::ZERO, Duration::ZERO);
        Self { timing: Timing::default(), rate: 1.15, pause, late, defect: None }
    }

    /// Clocks whose rates differ by up to 1.02, and writes that are up to 1.7 s on their way from the gate
    /// to the server.
    pub fn paused() -> Self {
        Self { rate: 1.02, pause: Duration::from_millis(1_700), ..Self::skewed() }
    }

    /// The same, and a write may be on its way for up to `late` more: nothing is promised then.
    #[must_use]
    pub fn late(mut self, late: Duration) -> Self {
        self.late = late;
        self
    }

    /// The same world with a framework that is broken on purpose.
    #[must_use]
    pub fn broken(mut self, defect: Defect) -> Self {
        if defect == Defect::NoMargin {
            self.timing.margin = Duration::ZERO;
        }
        self.defect = Some(defect);
        self
    }

    /// Holds at least `count` elections, in worlds of two to five nodes that follow from `seed`.
    /// What it counts is the same on every machine.
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
