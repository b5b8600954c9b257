//! CPU, memory and time of this process.

use std::fs;
use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};
use serde_json::{Map, Value};

/// Nanoseconds of the monotonic clock, the same in all processes of a machine.
pub fn nanos() -> u64 {
    of(ClockId::Monotonic)
}

/// CPU time of this process, user and system, in nanoseconds.
fn cpu() -> u64 {
    of(ClockId::ProcessCPUTime)
}

fn of(clock: ClockId) -> u64 {
    let time = clock_gettime(clock);
    let seconds = u64::try_from(time.tv_sec).unwrap_or_default();
    seconds * 1_000_000_000 + u64::try_from(time.tv_nsec).unwrap_or_default()
}

/// Resident memory now and at the peak, in bytes.
pub fn resident() -> (u64, u64) {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let field = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name));
        let digits = line.and_then(|line| line.trim().strip_suffix(" kB"));
        digits.and_then(|digits| digits.parse::<u64>().ok()).unwrap_or_default() * 1024
    };
    (field("VmRSS:"), field("VmHWM:"))
}

/// Forgets the highest resident memory so far.
pub(crate) fn forget_peak() {
    // Fails only where the kernel lacks the file; the peak is then the process' own, and too high.
    let _ = fs::write("/proc/self/clear_refs", "5");
}

/// CPU and time since the window began.
#[derive(Clone, Copy, Debug)]
pub struct Window {
    cpu: u64,
    wall: Instant,
}

impl Window {
    /// Begins now.
    pub fn begin() -> Self {
        Self { cpu: cpu(), wall: Instant::now() }
    }

    /// Nanoseconds of CPU since.
    pub fn cpu(&self) -> u64 {
        cpu() - self.cpu
    }

    /// Time since.
    pub fn wall(&self) -> Duration {
        self.wall.elapsed()
    }
}

/// A line of a driver's output.
#[derive(Clone, Debug)]
pub struct Line(Map<String, Value>);

impl Line {
    /// The line of a phase.
    pub fn of(phase: &str) -> Self {
        let mut line = Self(Map::new());
        line.0.insert("phase".to_owned(), phase.into());
        line
    }

    /// Adds a figure.
    #[must_use]
    pub fn with(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.0.insert(name.to_owned(), value.into());
        self
    }

    /// Prints the line.
    pub fn print(self) {
        println!("{}", Value::Object(self.0));
    }
}
