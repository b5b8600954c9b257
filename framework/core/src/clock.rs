//! Time that tests can move.
//!
//! The framework reads time only here. Monotonic time is tokio's, so a paused runtime moves this
//! time; wall time is the system's, or in a simulation a fixed epoch plus the monotonic time that
//! passed. There is no third way to wait.
//!
//! | need | call | moves while the machine sleeps |
//! |---|---|---|
//! | a pause, a deadline of a wait | [`Clock::now`], [`Clock::sleep_until`] | no |
//! | a time stamp in an object | [`Clock::wall`] | yes |
//! | a duration that must not look too short | [`Clock::reading`], [`ClockReading::longest_until`] | yes |
//!
//! `clippy.toml` forbids the standard library's `Instant::now` and `SystemTime::now`, so that no
//! component can read another clock by mistake.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use parking_lot::Mutex;
use tokio::time::Instant;

/// A source of monotonic and wall time; cheap to clone.
///
/// Default: [`system`](Self::system). A clock of a test is [`simulated`](Self::simulated): with a
/// paused tokio runtime an hour of waiting takes no time, and wall time follows.
///
/// ```
/// # extern crate windlass_core as windlass;
/// use std::time::Duration;
/// use windlass::clock::Clock;
///
/// #[tokio::main(flavor = "current_thread", start_paused = true)]
/// async fn main() -> Result<(), jiff::Error> {
///     let epoch: jiff::Timestamp = "2026-01-01T00:00:00Z".parse()?;
///     let clock = Clock::simulated(epoch);
///     clock.sleep(Duration::from_secs(3600)).await;
///     assert!(clock.wall().duration_since(epoch).as_secs() >= 3600);
///     Ok(())
/// }
/// ```
#[derive(Clone, Debug)]
pub struct Clock {
    /// Shared, so that a simulated sleep of the machine concerns all clones.
    wall: Arc<Wall>,
}

/// Source of wall time: the system, or a simulation.
///
/// A simulated time is `epoch`, plus the runtime's time since `started`, plus the time for which
/// the machine is said to have slept.
#[derive(Debug)]
enum Wall {
    System,
    Simulated { epoch: Timestamp, started: Instant, slept: Mutex<Duration> },
}

/// A reading of every clock of the machine at the same moment, so that a stopped process or
/// machine, or a changed wall clock, cannot make a duration look shorter than the real duration.
///
/// A lease is the typical use: a process that was stopped for a minute must notice that the lease
/// ran out, although the monotonic clock may have stood still.
///
/// ```
/// # extern crate windlass_core as windlass;
/// use std::time::Duration;
/// use windlass::clock::Clock;
///
/// #[tokio::main(flavor = "current_thread", start_paused = true)]
/// async fn main() {
///     let clock = Clock::simulated(jiff::Timestamp::UNIX_EPOCH);
///     let before = clock.reading();
///     clock.sleep_machine(Duration::from_secs(60));
///     let after = clock.reading();
///     assert_eq!(before.longest_until(&after), Duration::from_secs(60));
///     assert_eq!(before.steady_until(&after), Duration::ZERO);
/// }
/// ```
#[derive(Clone, Copy, Debug)]
pub struct ClockReading {
    /// Monotonic time; on Linux this clock stands still while the machine sleeps.
    steady: Instant,
    /// Time since the machine started, sleep included; `None` if the machine does not report this
    /// time.
    boot: Option<Duration>,
    /// Wall time; an administrator or NTP may set the clock forward or back.
    wall: Timestamp,
}

impl ClockReading {
    /// Returns the reading of three clocks; `boot` is the time since the machine started, sleep
    /// included, if the machine reports that time. Made by [`Clock::reading`]; public for
    /// simulations.
    pub fn new(steady: Instant, boot: Option<Duration>, wall: Timestamp) -> Self {
        Self { steady, boot, wall }
    }

    /// Returns the longest time that can have passed until `later`: the largest of monotonic,
    /// boot-time and wall-clock difference. For deadlines, which must not be exceeded.
    ///
    /// A boot time that only one of the two readings has is left out. An earlier `later` gives
    /// zero.
    pub fn longest_until(&self, later: &ClockReading) -> Duration {
        let boot = match (self.boot, later.boot) {
            (Some(from), Some(to)) => to.saturating_sub(from),
            _ => Duration::ZERO,
        };
        // A wall clock that was set back counts as no time.
        let wall = Duration::try_from(later.wall.duration_since(self.wall)).unwrap_or_default();
        self.steady_until(later).max(boot).max(wall)
    }

    /// Returns the time that the monotonic clock counted until `later`; the count may leave out the
    /// machine's sleep. For waits, which must be long enough.
    ///
    /// An earlier `later` gives zero.
    pub fn steady_until(&self, later: &ClockReading) -> Duration {
        later.steady.saturating_duration_since(self.steady)
    }
}

impl Default for Clock {
    fn default() -> Self {
        Self::system()
    }
}

impl Clock {
    /// Returns the system's clock.
    pub fn system() -> Self {
        Self { wall: Arc::new(Wall::System) }
    }

    /// Returns a clock whose wall time is `epoch` plus the runtime's elapsed time: with a paused
    /// runtime the wall time is the same in every run. To be called inside the runtime that the
    /// clock serves.
    ///
    /// Outside of a paused runtime the simulated time runs as fast as real time.
    pub fn simulated(epoch: Timestamp) -> Self {
        let started = Instant::now();
        Self { wall: Arc::new(Wall::Simulated { epoch, started, slept: Mutex::default() }) }
    }

    /// Returns the current monotonic time.
    ///
    /// tokio's clock: a paused runtime and `tokio::time::advance` move it.
    pub fn now(&self) -> Instant {
        Instant::now()
    }

    /// Returns the monotonic time `time` from now; a time that no clock can represent counts as a
    /// century.
    #[doc(hidden)]
    pub fn after(&self, time: Duration) -> Instant {
        /// Far beyond the life of a process, and near enough to be added to any clock.
        const CENTURY: Duration = Duration::from_secs(100 * 365 * 24 * 3600);
        self.now().checked_add(time).unwrap_or_else(|| self.now() + CENTURY)
    }

    /// Returns the current wall-clock time, for time stamps in objects; never for measuring
    /// durations.
    ///
    /// The system's wall clock may jump in both directions; [`reading`](Self::reading) is for
    /// durations.
    /// A simulated time beyond the range of [`Timestamp`] counts as the epoch.
    pub fn wall(&self) -> Timestamp {
        match &*self.wall {
            Wall::System => Timestamp::now(),
            Wall::Simulated { epoch, started, slept } => {
                // No other lock is taken under this lock.
                let elapsed = started.elapsed() + *slept.lock();
                let elapsed = jiff::SignedDuration::try_from(elapsed).unwrap_or_default();
                epoch.checked_add(elapsed).unwrap_or(*epoch)
            }
        }
    }

    /// Reads every clock.
    ///
    /// Reads a file of `/proc` on the system's clock: some microseconds, without blocking on I/O.
    /// Not for hot paths.
    pub fn reading(&self) -> ClockReading {
        let boot = match &*self.wall {
            Wall::System => boot_time(),
            Wall::Simulated { started, slept, .. } => Some(started.elapsed() + *slept.lock()),
        };
        ClockReading { steady: self.now(), boot, wall: self.wall() }
    }

    /// Makes a simulated clock behave as if the machine had slept: boot time and wall time move
    /// ahead, the monotonic clock does not. The system's clock ignores the call.
    pub fn sleep_machine(&self, duration: Duration) {
        if let Wall::Simulated { slept, .. } = &*self.wall {
            *slept.lock() += duration;
        }
    }

    /// Waits for `duration`.
    ///
    /// The resolution is a millisecond, tokio's. Needs a tokio runtime with the time driver.
    ///
    /// # Cancel safety
    /// Safe: dropping the future stops the wait.
    pub async fn sleep(&self, duration: Duration) {
        tokio::time::sleep(duration).await;
    }

    /// Waits until `deadline`.
    ///
    /// A `deadline` in the past returns at once.
    ///
    /// # Cancel safety
    /// Safe: dropping the future stops the wait.
    pub async fn sleep_until(&self, deadline: Instant) {
        tokio::time::sleep_until(deadline).await;
    }

    /// Runs `future` for at most `limit`; `None` when the future did not finish in time (and was
    /// dropped).
    ///
    /// The future is polled before the limit is checked: a future that is ready wins even with a
    /// limit of zero.
    ///
    /// ```
    /// # extern crate windlass_core as windlass;
    /// use std::time::Duration;
    /// use windlass::clock::Clock;
    ///
    /// #[tokio::main(flavor = "current_thread", start_paused = true)]
    /// async fn main() {
    ///     let clock = Clock::system();
    ///     let limit = Duration::from_millis(10);
    ///     assert_eq!(clock.timeout(limit, async { 1 }).await, Some(1));
    ///     assert_eq!(clock.timeout(limit, std::future::pending::<()>()).await, None);
    /// }
    /// ```
    ///
    /// # Cancel safety
    /// As `future`, which is dropped together with the call.
    pub async fn timeout<F: Future>(&self, limit: Duration, future: F) -> Option<F::Output> {
        tokio::time::timeout(limit, future).await.ok()
    }
}

/// Returns the time since the machine started, sleep included, in steps of 10 ms; `None` where
/// `/proc/uptime` cannot be read.
fn boot_time() -> Option<Duration> {
    let text = std::fs::read_to_string("/proc/uptime").ok()?;
    let seconds: f64 = text.split_whitespace().next()?.parse().ok()?;
    Duration::try_from_secs_f64(seconds).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_machine_that_slept_shows_in_the_longest_but_not_in_the_steady_time() {
        let clock = Clock::simulated(Timestamp::UNIX_EPOCH);
        let before = clock.reading();
        clock.sleep(Duration::from_secs(2)).await;
        clock.sleep_machine(Duration::from_secs(60));
        let after = clock.reading();
        assert_eq!(before.steady_until(&after), Duration::from_secs(2));
        assert_eq!(before.longest_until(&after), Duration::from_secs(62));
    }

    #[tokio::test(start_paused = true)]
    async fn a_wall_clock_set_back_shortens_nothing() {
        let steady = Instant::now();
        let before = ClockReading::new(steady, None, Timestamp::from_second(1_000).unwrap());
        let later = steady + Duration::from_secs(5);
        let after = ClockReading::new(later, None, Timestamp::from_second(10).unwrap());
        assert_eq!(before.longest_until(&after), Duration::from_secs(5));
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn the_machine_tells_its_boot_time() {
        assert!(boot_time().is_some_and(|since| since > Duration::ZERO));
    }
}
