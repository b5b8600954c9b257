//! Timing of a watch: deadlines, silence and the time of the end.

use std::time::Duration;

use tokio::time::Instant;

use super::NO_PROGRESS;

/// A watch that ended within this time without progress counts as a failure, not as an end.
pub(super) const VERY_SHORT: Duration = Duration::from_secs(1);
/// A watch that ends earlier before its timeout than this plus a sixty-fourth of the timeout was
/// not ended by the watch's own timer: clocks differ, and the server's timer began when the request
/// arrived.
const EARLY: Duration = Duration::from_secs(1);
/// Interval of warnings that the end of a streaming list is missing.
///
/// Long enough for the list of a large kind on a healthy server; the list is not ended by this
/// interval.
const MISSING_END_INTERVAL: Duration = Duration::from_secs(10);

/// Times of a watch's events, and of the next check when nothing arrives.
#[derive(Debug)]
pub(super) struct Stream {
    /// Time at which the stream was opened.
    pub(super) opened: Instant,
    /// Timeout that the request asked the server for.
    timeout: Duration,
    /// Whether the stream is still in the first part of a streaming list.
    pub(super) is_listing: bool,
    /// Time of the last complete frame; in the first part of a streaming list of the last object.
    last_frame: Instant,
    /// Time since which a frame is incomplete.
    partial_since: Option<Instant>,
    /// Time of the next warning that the end of the list is missing.
    ///
    /// Counts only while `is_listing`.
    next_reminder: Instant,
    /// Number of frames that advanced the version.
    pub(super) progress: usize,
    /// Whether any frame has come. A server sends bookmarks about once a minute.
    has_received: bool,
    /// Whether the stream has sent something or stayed open, and so counts as healthy.
    pub(super) is_confirmed: bool,
}

impl Stream {
    /// Begins the timing of a stream that was opened at `now`.
    pub(super) fn new(now: Instant, timeout: Duration, is_listing: bool) -> Self {
        Self {
            opened: now,
            timeout,
            is_listing,
            last_frame: now,
            partial_since: None,
            next_reminder: now + MISSING_END_INTERVAL,
            progress: 0,
            has_received: false,
            is_confirmed: false,
        }
    }

    /// Notes a frame that ended at `now`. During a list only the list's objects are progress: a
    /// server that does not know streaming lists may send changes for ever.
    pub(super) fn frame(&mut self, now: Instant, is_object: bool) {
        self.has_received = true;
        if is_object || !self.is_listing {
            self.last_frame = now;
        }
    }

    /// Notes the state after a read at `now`: whether a frame is incomplete, and whether it differs
    /// from the frame before.
    pub(super) fn partial(&mut self, now: Instant, is_inside: bool, is_another: bool) {
        // A frame that ended and another that began in the same read is progress: the new frame has
        // a new half minute.
        let begun = self.partial_since.filter(|_| !is_another);
        self.partial_since = is_inside.then(|| begun.unwrap_or(now));
    }

    /// Extends the deadlines by a time in which the stream was not read, which is not the server's
    /// silence.
    pub(super) fn extend(&mut self, waited: Duration) {
        self.last_frame += waited;
        self.partial_since = self.partial_since.map(|since| since + waited);
    }

    /// Returns the deadline of the next frame.
    ///
    /// A stream whose deadline has passed hangs: the caller drops the stream and opens another.
    pub(super) fn deadline(&self) -> Instant {
        let patience = match self.is_listing {
            true => NO_PROGRESS,
            // A watch may be silent until the server's own timer ends the watch.
            false => self.timeout.saturating_add(NO_PROGRESS),
        };
        let deadline = self.last_frame + patience;
        // A6 (an answer that trickles): a frame that trickles in means a connection that hangs.
        self.partial_since.map_or(deadline, |since| deadline.min(since + NO_PROGRESS))
    }

    /// Returns the time of the next check without a frame.
    ///
    /// The time is no later than the moment at which a stream that stays open counts as healthy, so
    /// that the status changes then without a frame.
    pub(super) fn wake(&self) -> Instant {
        let mut wake = self.deadline();
        if !self.is_confirmed {
            wake = wake.min(self.opened + VERY_SHORT);
        }
        if self.is_listing { wake.min(self.next_reminder) } else { wake }
    }

    /// Returns the age of a list whose end is missing, if a warning is due.
    pub(super) fn overdue(&mut self, now: Instant) -> Option<Duration> {
        if !self.is_listing || now < self.next_reminder {
            return None;
        }
        self.next_reminder = now + MISSING_END_INTERVAL;
        Some(now - self.opened)
    }

    /// Returns the time since the last complete frame.
    pub(super) fn silence(&self, now: Instant) -> Duration {
        now.saturating_duration_since(self.last_frame)
    }

    /// Returns whether the watch was ended by the watch's own timer, after some data. Any other end
    /// may be that of a server whose store is set back before the restart, and silence may come
    /// from such a server.
    pub(super) fn was_orderly(&self, now: Instant) -> bool {
        // The server's timer runs by the server's clock: the tolerance grows with the timeout, as
        // the difference of two clocks does.
        let slack = EARLY + self.timeout / 64;
        self.has_received && now.saturating_duration_since(self.opened) + slack >= self.timeout
    }

    /// Returns whether the watch ended at once, without progress.
    pub(super) fn was_very_short(&self, now: Instant) -> bool {
        now - self.opened < VERY_SHORT && self.progress == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TIMEOUT: Duration = Duration::from_secs(400);
    const PATIENCE: Duration = NO_PROGRESS;

    fn seconds(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    fn began(is_listing: bool) -> (Instant, Stream) {
        let start = Instant::now();
        (start, Stream::new(start, TIMEOUT, is_listing))
    }

    /// B5 (no end of the initial events): a server that does not know streaming lists sends changes
    /// and no end mark.
    #[test]
    fn b5_while_a_list_lasts_only_its_objects_are_progress_and_later_every_frame_is() {
        let (start, mut stream) = began(true);
        stream.frame(start + seconds(10), false);
        assert_eq!(stream.deadline(), start + PATIENCE);
        stream.frame(start + seconds(20), true);
        assert_eq!(stream.deadline(), start + seconds(20) + PATIENCE);
        stream.is_listing = false;
        stream.frame(start + seconds(40), false);
        assert_eq!(stream.deadline(), start + seconds(40) + TIMEOUT + PATIENCE);
        assert_eq!(stream.silence(start + seconds(45)), seconds(5));
    }

    #[test]
    fn a6_a_frame_that_drips_in_has_half_a_minute_and_each_other_one_has_its_own() {
        let (start, mut stream) = began(false);
        let whole = start + TIMEOUT + PATIENCE;
        stream.partial(start + seconds(10), true, false);
        assert_eq!(stream.deadline(), start + seconds(10) + PATIENCE);
        stream.partial(start + seconds(20), true, false);
        assert_eq!(stream.deadline(), start + seconds(10) + PATIENCE, "the same frame goes on");
        stream.partial(start + seconds(25), true, true);
        assert_eq!(stream.deadline(), start + seconds(25) + PATIENCE, "that is another one");
        stream.partial(start + seconds(28), false, true);
        assert_eq!(stream.deadline(), whole, "none is begun");
    }

    #[test]
    fn time_in_which_a_stream_was_not_read_counts_for_neither_deadline() {
        let (start, mut stream) = began(false);
        stream.partial(start + seconds(10), true, false);
        stream.extend(seconds(60));
        assert_eq!(stream.deadline(), start + seconds(70) + PATIENCE);
        stream.partial(start + seconds(75), false, true);
        assert_eq!(stream.deadline(), start + seconds(60) + TIMEOUT + PATIENCE);
        assert_eq!(stream.silence(start + seconds(90)), seconds(30));
    }

    #[test]
    fn that_the_end_of_a_list_is_missing_is_said_each_ten_seconds_until_it_has_come() {
        let (start, mut stream) = began(true);
        let told: Vec<_> = (0..=25)
            .filter_map(|second| stream.overdue(start + seconds(second)))
            .map(|since| since.as_secs())
            .collect();
        assert_eq!(told, [10, 20]);
        stream.is_listing = false;
        assert_eq!(stream.overdue(start + seconds(300)), None);
    }

    /// B1 (a watch that is closed at once), and the check for a store that was set back.
    #[test]
    fn a_watch_was_very_short_below_a_second_without_progress_and_orderly_at_its_own_time() {
        let (start, mut stream) = began(false);
        let second = seconds(1);
        assert!(stream.was_very_short(start + second - Duration::from_nanos(1)));
        assert!(!stream.was_very_short(start + second));
        let end = start + TIMEOUT - EARLY - TIMEOUT / 64;
        assert!(!stream.was_orderly(end), "it has told nothing");
        stream.frame(start, false);
        assert!(stream.was_orderly(end) && !stream.was_orderly(end - Duration::from_nanos(1)));
        stream.progress = 1;
        assert!(!stream.was_very_short(start));
    }
}
