//! Memory budget of the process, and a warning before exhaustion.
//!
//! Queues and frames have bounds; caches are as large as the objects in them. A process that uses
//! more than its container may is killed without a message, so this module reports in time which
//! caches fill the memory. The budget is the limit of the process's control group, which is the
//! container's, or the number that the program gives.
//!
//! Not included: any countermeasure. A cache that left objects out would show a cluster that does
//! not exist.

use std::fmt::Write;
use std::time::Duration;

use tokio_util::task::AbortOnDropHandle;
use tracing::warn;

use super::health::{OperatorStatus, SharedStatus};
use super::process;
use windlass_core::clock::Clock;
use windlass_core::metrics::names;

/// Used part of the budget from which on a warning is logged.
const WARN_FROM: f64 = 0.8;
/// Used part of the budget below which a further warning may be logged.
const REARM_BELOW: f64 = 0.7;
/// Time between two checks: a first list of a large cluster takes longer.
const PERIOD: Duration = Duration::from_secs(10);
/// Number of caches that the warning names, the largest first.
const MOST_NAMED: usize = 3;
/// Paths of the limit of a control group: of version 2, of version 1.
const LIMITS: [&str; 2] =
    ["/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"];
/// Version 1 writes a number that no machine has when there is no limit.
const NO_LIMIT: u64 = 1 << 60;

/// Returns the bytes that the process may use: the number that the program `configured`, else the
/// limit of the control group; `None` when there is no limit.
pub(crate) fn budget(configured: Option<u64>) -> Option<u64> {
    configured.or_else(limit).filter(|bytes| *bytes > 0)
}

/// Returns the limit of this process's control group in bytes; `None` when there is none.
fn limit() -> Option<u64> {
    LIMITS.iter().find_map(|path| bytes_of(&std::fs::read_to_string(path).ok()?))
}

/// Reads a limit; version 2 writes `max` when there is none.
fn bytes_of(text: &str) -> Option<u64> {
    text.trim().parse().ok().filter(|bytes| (1..NO_LIMIT).contains(bytes))
}

/// Publishes the budget, and watches the memory in use until the handle is dropped.
pub(crate) fn watch_budget(budget: u64, status: &SharedStatus) -> AbortOnDropHandle<()> {
    let environment = status.client.environment();
    environment.metrics.set(&names::MEMORY_BUDGET, &[&status.name], budget as f64);
    let (clock, status) = (environment.clock.clone(), SharedStatus::clone(status));
    let warn = move |used| {
        warn!(
            used_mib = mebibytes(used),
            budget_mib = mebibytes(budget),
            largest = %largest(&status),
            "memory is nearly used up; give the process more, or cache less: selectors, metadata only, \
             projections, compressed kinds"
        );
    };
    AbortOnDropHandle::new(tokio::spawn(watch(clock, budget, process::resident, warn)))
}

/// Calls `warn` when much of `budget` is in use, and again once the use was lower in between. Ends
/// if the use cannot be read.
async fn watch(clock: Clock, budget: u64, used: impl Fn() -> Option<u64>, warn: impl Fn(u64)) {
    let mut has_warned = false;
    while let Some(bytes) = used() {
        let part = bytes as f64 / budget as f64;
        // Two thresholds: use that swings around a single threshold would be logged at each check.
        if part >= WARN_FROM && !has_warned {
            warn(bytes);
            has_warned = true;
        } else if part < REARM_BELOW {
            has_warned = false;
        }
        clock.sleep(PERIOD).await;
    }
}

/// Names the largest caches and their sizes: `pods 310 MiB, secrets 12 MiB`.
fn largest(status: &OperatorStatus) -> String {
    let mut caches: Vec<(usize, String)> = status
        .registries()
        .into_iter()
        .flat_map(|(_, informers)| informers.status())
        .map(|cache| (cache.bytes, cache.name))
        .collect();
    // By name among equals, so that the order is the same each time.
    caches.sort_by(|a, b| b.0.cmp(&a.0).then_with(|| a.1.cmp(&b.1)));
    let mut text = String::new();
    for (bytes, name) in caches.iter().take(MOST_NAMED) {
        let comma = if text.is_empty() { "" } else { ", " };
        let _ = write!(text, "{comma}{name} {} MiB", mebibytes(*bytes as u64));
    }
    text
}

/// Converts bytes to mebibytes, rounded up.
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
    async fn d8_memory_that_is_nearly_used_up_is_reported_once_until_enough_is_free_again() {
        let uses = Mutex::new([50, 79, 80, 95, 75, 85, 69, 80, 99].into_iter());
        let warned = Arc::new(Mutex::new(Vec::new()));
        let warn = |bytes| warned.lock().push(bytes);
        watch(Clock::system(), 100, || uses.lock().next(), warn).await;
        assert_eq!(*warned.lock(), [80, 80]);
    }
}
