//! Options of a reflector.

use std::time::Duration;

use super::NO_PROGRESS;

/// Items per page, as in kubectl and client-go.
pub(super) const PAGE: u32 = 500;
/// Default limit of an object's size: that of client-go's watch frames.
const FRAME_LIMIT: usize = 16 * 1024 * 1024;
/// Lower bound of a watch's timeout.
const MIN_WATCH_TIMEOUT: Duration = Duration::from_secs(300);
/// Upper bound of the shortest timeout of a watch: servers end watches within hours, and records
/// that wait for a watch are kept for that time.
const MAX_WATCH_TIMEOUT: Duration = Duration::from_secs(24 * 3600);

/// Options of a reflector; the defaults suit nearly all programs.
///
/// ```
/// # extern crate windlass_cache as windlass;
/// use std::time::Duration;
/// use windlass::reflector::ReflectorOptions;
///
/// let options = ReflectorOptions::new()
///     .page_size(100)
///     .resync(Duration::from_secs(600))
///     .backoff(Duration::from_secs(1), Duration::from_secs(60));
/// # let _ = options;
/// ```
///
/// | setting | default | client-go |
/// |---|---|---|
/// | [`page_size`](Self::page_size) | 500 in consistent lists | `WatchListPageSize`: unset, the pager's 500 |
/// | [`streaming`](Self::streaming) | yes | feature `WatchListClient` |
/// | [`stale_ok`](Self::stale_ok) | no | lists at version 0: yes |
/// | [`min_watch_timeout`](Self::min_watch_timeout) | 5 min | `MinWatchTimeout`: 5 min |
/// | [`backoff`](Self::backoff) | 800 ms to 30 s | 800 ms to 30 s |
/// | [`backoff_reset`](Self::backoff_reset) | 2 min | 2 min |
/// | [`internal_errors_for`](Self::internal_errors_for) | for ever | `MaxInternalErrorRetryDuration`: 0 |
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReflectorOptions {
    /// Items per page; `None` for the default of each kind of list.
    pub(crate) page_size: Option<u32>,
    /// Whether the first list may be an old list.
    pub(crate) stale_ok: bool,
    /// Whether streaming lists are tried.
    pub(crate) streaming: bool,
    /// Largest object, in bytes.
    pub(crate) frame_limit: usize,
    /// Shortest timeout that a watch asks for.
    pub(crate) min_watch_timeout: Duration,
    /// Bound of the pause after the first failure.
    pub(crate) first_pause: Duration,
    /// Largest bound of a pause.
    pub(crate) largest_pause: Duration,
    /// Time without a failure that resets the bound.
    pub(crate) healthy_after: Duration,
    /// Interval of resyncs; `None` for never.
    pub(crate) resync: Option<Duration>,
    /// Time for which internal errors are answered by resuming; `None` for ever.
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
            healthy_after: Duration::from_secs(120),
            resync: None,
            internal_errors_for: None,
        }
    }
}

impl ReflectorOptions {
    /// Returns the time after which a silent watch has been given up: the server was asked to end
    /// the watch earlier.
    pub(crate) fn longest_silence(&self) -> Duration {
        self.min_watch_timeout.saturating_mul(2).saturating_add(NO_PROGRESS)
    }

    /// Returns the defaults.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the items per page of a list that is not streamed; 0 asks for the whole list at once.
    /// Default: 500 for consistent lists, and no limit for lists that name a version, which servers
    /// answer from memory.
    ///
    /// Pages bound the memory of a single answer, here and in the server; the objects of all pages
    /// are kept in any case.
    #[must_use]
    pub fn page_size(mut self, items: u32) -> Self {
        self.page_size = Some(items);
        self
    }

    /// Allows any first view that the server has in memory, which may be an old view: objects that
    /// were deleted meanwhile are seen, and newer objects are not, until the watch has caught up.
    /// This spares the server a read of its storage. Later lists are at least as new as the newest
    /// version seen. Default: every list is a consistent read.
    #[must_use]
    pub fn stale_ok(mut self, stale_ok: bool) -> Self {
        self.stale_ok = stale_ok;
        self
    }

    /// Sets whether lists are streamed if the server supports that. Default: true; servers without
    /// support are detected, remembered, and listed in pages.
    ///
    /// A streamed list needs memory for a single object at a time, and the watch that follows needs
    /// no separate request.
    #[must_use]
    pub fn streaming(mut self, streaming: bool) -> Self {
        self.streaming = streaming;
        self
    }

    /// Sets the largest object in bytes; the new state of a larger object is dropped and logged.
    /// Default: 16 MiB.
    ///
    /// etcd refuses objects of more than 1.5 MiB by default, so only aggregated servers send larger
    /// objects.
    #[must_use]
    pub fn frame_limit(mut self, bytes: usize) -> Self {
        self.frame_limit = bytes;
        self
    }

    /// Sets the shortest timeout of a watch. Each watch asks the server to end the watch after a
    /// time between this and twice this, so that clients spread over servers. Default and minimum:
    /// 5 min; a shorter time is raised to the minimum, and a time longer than a day is cut to a
    /// day.
    #[must_use]
    pub fn min_watch_timeout(mut self, timeout: Duration) -> Self {
        self.min_watch_timeout = timeout.clamp(MIN_WATCH_TIMEOUT, MAX_WATCH_TIMEOUT);
        self
    }

    /// Sets the bounds of the first and of the longest pause after a failure; the bound doubles in
    /// between, and the pause is a random part of the bound. Default: 800 ms and 30 s.
    #[must_use]
    pub fn backoff(mut self, first: Duration, longest: Duration) -> Self {
        self.first_pause = first;
        self.largest_pause = longest.max(first);
        self
    }

    /// Sets the time without a failure after which the next failure counts as a first failure.
    /// Default: 2 min.
    #[must_use]
    pub fn backoff_reset(mut self, healthy_after: Duration) -> Self {
        self.healthy_after = healthy_after;
        self
    }

    /// Sets the interval of resyncs, at which the target is asked to deliver the content again
    /// ([`ReflectorSink::resync`](super::ReflectorSink::resync)); at least 1 s. Default: never.
    #[must_use]
    pub fn resync(mut self, period: Duration) -> Self {
        self.resync = Some(period.max(Duration::from_secs(1)));
        self
    }

    /// Sets the time for which a watch that the server answers with internal errors is resumed;
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

    /// Records that wait for a watch must outlive every silent watch: the server ends a watch
    /// within twice the shortest timeout, and has half a minute more.
    #[test]
    fn a_watch_may_be_silent_for_twice_its_least_time_and_half_a_minute() {
        let seconds = Duration::from_secs;
        assert_eq!(ReflectorOptions::new().longest_silence(), seconds(630));
        let options = ReflectorOptions::new().min_watch_timeout(seconds(1000));
        assert_eq!(options.longest_silence(), seconds(2030));
    }
}
