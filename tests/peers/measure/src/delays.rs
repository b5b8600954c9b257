//! Very many delayed keys, of which some fall due: the request to a driver, and the result.

use std::time::Duration;

/// From the last add until the first key falls due: memory is read meanwhile.
const LEAD: Duration = Duration::from_secs(2);
/// The others wait so long and longer.
const FAR: Duration = Duration::from_secs(3600);

/// Keys that wait in a work queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Delays {
    /// All of them.
    pub keys: u64,
    /// Number of keys that fall due, evenly over `seconds`; the others do not.
    pub due: u64,
    /// Over how long.
    pub seconds: u64,
}

/// Outcome of the delayed keys.
#[derive(Clone, Debug, Default)]
pub struct Delayed {
    /// Distance from the due time of each key that was handed out, in nanoseconds.
    pub late: Vec<u64>,
    /// Keys that still wait.
    pub left: u64,
    /// Memory that the delayed keys took, without the keys' own text.
    pub bytes: u64,
    /// Nanoseconds of CPU for all adds.
    pub cpu: u64,
    /// Did the first key fall due before memory was read?
    pub is_too_late: bool,
}

impl Delays {
    /// Those that do not fall due: added first, all over an hour that begins in an hour.
    pub fn far(&self) -> impl Iterator<Item = (u64, Duration)> + use<> {
        let Self { keys, due, .. } = *self;
        let step = FAR / u32::try_from((keys - due).max(1)).unwrap_or(u32::MAX);
        (due..keys).map(move |key| (key, FAR + step * u32::try_from(key - due).unwrap_or(0)))
    }

    /// Time at which key `key` falls due, after the moment at which the far ones were added.
    pub fn due_at(&self, key: u64) -> Duration {
        let every = Duration::from_secs(self.seconds) / u32::try_from(self.due).unwrap_or(u32::MAX);
        LEAD + every * u32::try_from(key).unwrap_or(u32::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_that_fall_due_lie_evenly_and_the_others_an_hour_away() {
        let delays = Delays { keys: 1000, due: 100, seconds: 5 };
        let far: Vec<_> = delays.far().collect();
        assert_eq!((far.len(), far[0]), (900, (100, FAR)));
        assert_eq!(far[899], (999, FAR + 899 * Duration::from_secs(4)));
        assert_eq!(delays.due_at(0), LEAD);
        assert_eq!(delays.due_at(99), LEAD + Duration::from_millis(4950));
    }
}
