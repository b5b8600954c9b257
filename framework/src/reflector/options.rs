//! What can be said about how a reflector reads.

use std::time::Duration;

use super::NO_PROGRESS;

/// Items a page, as kubectl and client-go ask for.
pub(super) const PAGE: u32 = 500;
/// The largest object that is taken, unless told otherwise: client-go's watch frames are limited so.
const FRAME_LIMIT: usize = 16 * 1024 * 1024;
/// Shortest time after which a watch asks the server to end it.
const MIN_WATCH_TIMEOUT: Duration = Duration::from_secs(300);
/// The longest such time: servers end watches within hours, and what waits for one is kept so long.
const MAX_WATCH_TIMEOUT: Duration = Duration::from_secs(24 * 3600);

/// How a reflector reads; the defaults are right for nearly everybody.
///
/// ```
/// use std::time::Duration;
/// use windlass::reflector::ReflectorOptions;
///
/// let options = ReflectorOptions::new()
///     .page_size(100)
///     .resync(Duration::from_secs(600))
///     .backoff(Duration::from_secs(1), Duration::from_secs(60));
/// # let _ = options;
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReflectorOptions {
    pub(crate) page_size: Option<u32>,
    pub(crate) stale_ok: bool,
    pub(crate) streaming: bool,
    pub(crate) frame_limit: usize,
    pub(crate) min_watch_timeout: Duration,
    pub(crate) first_pause: Duration,
    pub(crate) largest_pause: Duration,
    pub(crate) quiet: Duration,
    pub(crate) resync: Option<Duration>,
    pub(crate) internal_errors_for: Option<Duration>,
}

impl Default for ReflectorOptions {
    fn default() -> Self {
        Self {
            page_size: None,
            stale_ok: false,
            streaming: true,
            frame_limit: FRAME_LIMIT,
            min_watch_timeout: MIN_WATCH_TIMEOUT,
            first_pause: Duration::from_millis(800),
            largest_pause: Duration::from_secs(30),
            quiet: Duration::from_secs(120),
            resync: None,
            internal_errors_for: None,
        }
    }
}

impl ReflectorOptions {
    /// A watch that brings nothing is given up within this: the server was asked to end it before.
    pub(crate) fn longest_silence(&self) -> Duration {
        self.min_watch_timeout.saturating_mul(2).saturating_add(NO_PROGRESS)
    }

    /// The defaults.
    pub fn new() -> Self {
        Self::default()
    }

    /// Items a page of a list that is not streamed; 0 asks for the whole list at once. Default: 500
    /// for consistent lists, and no limit for lists that name a version, which servers answer from
    /// memory.
    #[must_use]
    pub fn page_size(mut self, items: u32) -> Self {
        self.page_size = Some(items);
        self
    }

    /// Lets the first view be any that the server has in memory, which may be an old one: the
    /// objects that were deleted meanwhile are seen, and newer ones are not, until the watch has
    /// caught up. It spares the server a read of its storage. Later lists are at least as new as
    /// what was seen. Default: every list is a consistent read.
    #[must_use]
    pub fn stale_ok(mut self, stale_ok: bool) -> Self {
        self.stale_ok = stale_ok;
        self
    }

    /// Whether lists are streamed where the server speaks that. Default: true; servers that do not
    /// are found out, remembered, and listed in pages.
    #[must_use]
    pub fn streaming(mut self, streaming: bool) -> Self {
        self.streaming = streaming;
        self
    }

    /// Largest object in bytes; the new state of a larger one is left out, and said so. Default:
    /// 16 MiB.
    #[must_use]
    pub fn frame_limit(mut self, bytes: usize) -> Self {
        self.frame_limit = bytes;
        self
    }

    /// Each watch asks the server to end it after this and up to twice this, so that clients spread
    /// over servers. Default and least: 5 min; what is shorter is raised to it, and what is longer
    /// than a day is cut to it.
    #[must_use]
    pub fn min_watch_timeout(mut self, timeout: Duration) -> Self {
        self.min_watch_timeout = timeout.clamp(MIN_WATCH_TIMEOUT, MAX_WATCH_TIMEOUT);
        self
    }

    /// Bounds of the first and of the longest pause after a failure; the bound doubles in between,
    /// and the pause is a random part of it. Default: 800 ms and 30 s.
    #[must_use]
    pub fn backoff(mut self, first: Duration, longest: Duration) -> Self {
        self.first_pause = first;
        self.largest_pause = longest.max(first);
        self
    }

    /// After so long without a failure the next one is a first one. Default: 2 min.
    #[must_use]
    pub fn backoff_reset(mut self, quiet: Duration) -> Self {
        self.quiet = quiet;
        self
    }

    /// How often the target is asked to tell its content again
    /// ([`Target::resync`](super::Target::resync)); at least 1 s apart. Default: never.
    #[must_use]
    pub fn resync(mut self, period: Duration) -> Self {
        self.resync = Some(period.max(Duration::from_secs(1)));
        self
    }

    /// For how long a watch that the server answers with internal errors goes on from where it was;
    /// then the state is listed anew. Default: for ever.
    #[must_use]
    pub fn internal_errors_for(mut self, window: Duration) -> Self {
        self.internal_errors_for = Some(window);
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What may be silent for as long must outlive every watch: the server ends it within twice its
    /// least time, and is given half a minute more.
    #[test]
    fn a_watch_may_be_silent_for_twice_its_least_time_and_half_a_minute() {
        let seconds = Duration::from_secs;
        assert_eq!(ReflectorOptions::new().longest_silence(), seconds(630));
        let options = ReflectorOptions::new().min_watch_timeout(seconds(1000));
        assert_eq!(options.longest_silence(), seconds(2030));
    }
}
