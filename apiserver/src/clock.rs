//! The server's wall clock: a start time plus what tokio's clock says has passed.
//!
//! One source of time makes a paused test clock move timestamps too. It holds no timers; those are
//! tokio's.

use std::time::Duration;

use jiff::Timestamp;
use tokio::time::Instant;

/// Wall time, advancing with tokio's clock.
#[derive(Clone, Debug)]
pub(crate) struct Clock {
    start: Timestamp,
    origin: Instant,
}

impl Clock {
    /// A clock that shows the system's time now.
    pub(crate) fn system() -> Self {
        Self { start: Timestamp::now(), origin: Instant::now() }
    }

    /// A clock that shows `seconds` since 1970 now.
    pub(crate) fn at(seconds: i64) -> Self {
        let start = Timestamp::from_second(seconds).unwrap_or(Timestamp::UNIX_EPOCH);
        Self { start, origin: Instant::now() }
    }

    fn now(&self) -> Timestamp {
        let passed = Instant::now().saturating_duration_since(self.origin);
        self.start.checked_add(passed).unwrap_or(Timestamp::MAX)
    }

    /// Whole seconds since 1970.
    pub(crate) fn seconds(&self) -> i64 {
        self.now().as_second()
    }

    /// Since the server started.
    pub(crate) fn elapsed(&self) -> Duration {
        Instant::now().saturating_duration_since(self.origin)
    }

    /// `2026-01-02T03:04:05Z`, the form of metadata timestamps.
    pub(crate) fn rfc3339(&self) -> String {
        self.rfc3339_after(0)
    }

    /// The same, `seconds` from now.
    pub(crate) fn rfc3339_after(&self, seconds: i64) -> String {
        let at = self.seconds().saturating_add(seconds);
        Timestamp::from_second(at).unwrap_or(Timestamp::MAX).to_string()
    }
}

/// Seconds since 1970 of an RFC 3339 timestamp.
pub(crate) fn parse(text: &str) -> Option<i64> {
    text.parse::<Timestamp>().ok().map(Timestamp::as_second)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn wall_time_moves_with_tokios_clock_and_prints_whole_seconds() {
        let clock = Clock::at(1_767_323_045);
        assert_eq!(clock.rfc3339(), "2026-01-02T03:04:05Z");
        tokio::time::advance(Duration::from_millis(61_500)).await;
        assert_eq!(clock.rfc3339(), "2026-01-02T03:05:06Z");
        assert_eq!(clock.rfc3339_after(-1), "2026-01-02T03:05:05Z");
        assert_eq!(parse("2026-01-02T03:05:06Z"), Some(clock.seconds()));
    }
}
