//! The server's wall clock: a start time plus the time that has passed on tokio's clock.
//!
//! With this single source of time a paused test clock stops timestamps too. The clock holds no
//! timers; those are tokio's.

use std::time::Duration;

use jiff::Timestamp;
use tokio::time::Instant;

/// Wall time that advances with tokio's clock.
#[derive(Clone, Debug)]
pub(crate) struct Clock {
    start: Timestamp,
    origin: Instant,
}

impl Clock {
    /// Returns a clock that shows the system's time now.
    pub(crate) fn system() -> Self {
        Self { start: Timestamp::now(), origin: Instant::now() }
    }

    /// Returns a clock that shows `seconds` since 1970 now.
    pub(crate) fn at(seconds: i64) -> Self {
        // A time that cannot be represented counts as the beginning of 1970.
        let start = Timestamp::from_second(seconds).unwrap_or(Timestamp::UNIX_EPOCH);
        Self { start, origin: Instant::now() }
    }

    /// Returns the present time; an overflow stays at the largest time.
    fn now(&self) -> Timestamp {
        let passed = Instant::now().saturating_duration_since(self.origin);
        self.start.checked_add(passed).unwrap_or(Timestamp::MAX)
    }

    /// Returns whole seconds since 1970.
    pub(crate) fn seconds(&self) -> i64 {
        self.now().as_second()
    }

    /// Returns the time since the server started.
    pub(crate) fn elapsed(&self) -> Duration {
        Instant::now().saturating_duration_since(self.origin)
    }

    /// Returns the time as `2026-01-02T03:04:05Z`, the form of metadata timestamps.
    pub(crate) fn rfc3339(&self) -> String {
        self.rfc3339_after(0)
    }

    /// Returns the time with microseconds.
    pub(crate) fn rfc3339_micros(&self) -> String {
        self.now().strftime("%Y-%m-%dT%H:%M:%S.%6fZ").to_string()
    }

    /// Returns the time `seconds` from now, in the same form.
    pub(crate) fn rfc3339_after(&self, seconds: i64) -> String {
        let at = self.seconds().saturating_add(seconds);
        Timestamp::from_second(at).unwrap_or(Timestamp::MAX).to_string()
    }

    /// Returns the time `seconds` from now in the form of headers.
    pub(crate) fn http_date(&self, seconds: i64) -> String {
        let at = Timestamp::from_second(self.seconds().saturating_add(seconds));
        at.unwrap_or(Timestamp::MAX).strftime("%a, %d %b %Y %H:%M:%S GMT").to_string()
    }
}

/// Returns a time, in seconds since 1970, in Go's form `UnixDate`: `Mon Jan  2 15:04:05 UTC 2006`.
pub(crate) fn unix_date(seconds: i64) -> String {
    let at = Timestamp::from_second(seconds).unwrap_or(Timestamp::MAX);
    at.strftime("%a %b %e %H:%M:%S UTC %Y").to_string()
}

/// Returns the seconds since 1970 of an RFC 3339 timestamp; `None` if the text is none.
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
        assert_eq!(clock.rfc3339_micros(), "2026-01-02T03:05:06.500000Z");
        assert_eq!(clock.rfc3339_after(-1), "2026-01-02T03:05:05Z");
        assert_eq!(parse("2026-01-02T03:05:06Z"), Some(clock.seconds()));
    }
}
