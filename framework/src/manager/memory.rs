//! How much memory the process may use, and a word before it is too much.
//!
//! Queues and frames have bounds; caches are as large as what they cache. A process that uses more than
//! its container may is killed without a word, so this one says in time what fills its memory. The budget
//! is the limit of its control group, which is the container's, or what the program says.
//!
//! Absent: doing something about it. A cache that left objects out would show a cluster that is not there.

use std::fmt::Write;
use std::time::Duration;

use tokio_util::task::AbortOnDropHandle;
use tracing::warn;

use super::health::{SharedVitals, Vitals};
use super::process;
use crate::clock::Clock;
use crate::metrics::names;

/// From this part of the budget on it is said.
const MUCH: f64 = 0.8;
/// Below this part it may be said anew.
const LITTLE: f64 = 0.7;
/// How often it is looked at: a first list of a large cluster takes longer.
const PERIOD: Duration = Duration::from_secs(10);
/// Caches that are named, the largest first.
const NAMED: usize = 3;
/// Where the limit of a control group stands: of version 2, of version 1.
const LIMITS: [&str; 2] =
    ["/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"];
/// Version 1 writes a number that no machine has when there is no limit.
const NO_LIMIT: u64 = 1 << 60;

/// Bytes that the process may use, by what the program said; `None` when there is no limit.
pub(super) fn budget(said: Option<u64>) -> Option<u64> {
    said.or_else(limit).filter(|bytes| *bytes > 0)
}

/// The limit of this process's control group in bytes; `None` when there is none.
fn limit() -> Option<u64> {
    LIMITS.iter().find_map(|path| bytes_of(&std::fs::read_to_string(path).ok()?))
}

/// `max` is what version 2 writes when there is no limit.
fn bytes_of(text: &str) -> Option<u64> {
    text.trim().parse().ok().filter(|bytes| (1..NO_LIMIT).contains(bytes))
}

/// Tells the budget, and watches what is used of it until the handle is dropped.
pub(super) fn mind(budget: u64, vitals: &SharedVitals) -> AbortOnDropHandle<()> {
    let seams = vitals.client.seams();
    seams.metrics.set(&names::MEMORY_BUDGET, &[&vitals.name], budget as f64);
    let (clock, vitals) = (seams.clock.clone(), SharedVitals::clone(vitals));
    let tell = move |used| {
        warn!(
            used_mib = mebibytes(used),
            budget_mib = mebibytes(budget),
            largest = %largest(&vitals),
            "memory is nearly used up; give the process more, or cache less: selectors, metadata only, \
             projections, compressed kinds"
        );
    };
    AbortOnDropHandle::new(tokio::spawn(watch(clock, budget, process::resident, tell)))
}

/// Calls `tell` when much of `budget` is in use, and again once it was less in between. Ends where the
/// use cannot be read.
async fn watch(clock: Clock, budget: u64, used: impl Fn() -> Option<u64>, tell: impl Fn(u64)) {
    let mut is_told = false;
    while let Some(bytes) = used() {
        let part = bytes as f64 / budget as f64;
        if part >= MUCH && !is_told {
            tell(bytes);
            is_told = true;
        } else if part < LITTLE {
            is_told = false;
        }
        clock.sleep(PERIOD).await;
    }
}

/// The largest caches and what they hold: `pods 310 MiB, secrets 12 MiB`.
fn largest(vitals: &Vitals) -> String {
    let mut caches: Vec<(usize, String)> = vitals
        .registries()
        .into_iter()
        .flat_map(|(_, informers)| informers.status())
        .map(|cache| (cache.bytes, cache.name))
        .collect();
    caches.sort_by(|a, b| b.0.cmp(&a.0).then_with(|| a.1.cmp(&b.1)));
    let mut text = String::new();
    for (bytes, name) in caches.iter().take(NAMED) {
        let comma = if text.is_empty() { "" } else { ", " };
        let _ = write!(text, "{comma}{name} {} MiB", mebibytes(*bytes as u64));
    }
    text
}

/// Rounded up.
fn mebibytes(bytes: u64) -> u64 {
    bytes.div_ceil(1 << 20)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use parking_lot::Mutex;

    use super::*;

    #[test]
    fn a_limit_is_a_number_that_a_machine_could_have() {
        assert_eq!(bytes_of("134217728\n"), Some(128 << 20));
        assert_eq!(bytes_of("max\n"), None);
        assert_eq!(bytes_of("9223372036854771712\n"), None);
        assert_eq!(bytes_of("0\n"), None);
        assert_eq!(bytes_of(""), None);
    }

    #[tokio::test(start_paused = true)]
    async fn d8_memory_that_is_nearly_used_up_is_told_once_until_there_is_room_again() {
        let uses = Mutex::new([50, 79, 80, 95, 75, 85, 69, 80, 99].into_iter());
        let told = Arc::new(Mutex::new(Vec::new()));
        let tell = |bytes| told.lock().push(bytes);
        watch(Clock::system(), 100, || uses.lock().next(), tell).await;
        assert_eq!(*told.lock(), [80, 80]);
    }
}
