//! Keeps one kind in one scope in step with the API server: list, watch, resume, list again.
//!
//! The first view and each later one is a consistent read, by a streaming list where the server
//! speaks it and by pages otherwise. Nothing the server answers is fatal: each failure is judged
//! (`setback`) and answered by resuming, by listing again, or by waiting.
//!
//! It knows nothing of listeners and decodes no object; it hands deltas to the store's task.

mod backoff;
mod feed;
mod handoff;
mod list;
#[cfg(test)]
pub(crate) mod script;
mod setback;
mod source;
mod status;
mod watch;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use self::backoff::Backoff;
use self::setback::{During, Setback, judge};
use crate::metrics::names;
use crate::seams::Seams;
use crate::store::{Milestone, order};

pub(crate) use feed::{Feed, Sink};
pub(crate) use handoff::{Handoff, StoreDelta};
pub(crate) use source::{ApiServer, Chunks, ListWatch, Read};
pub(crate) use status::{State, Status};

/// A request that brought nothing for so long has failed.
const NO_PROGRESS: Duration = Duration::from_secs(30);
/// Longest pause that a server's `Retry-After` can ask for.
const LONGEST_RETRY_AFTER: Duration = Duration::from_secs(60);
/// An absent kind is looked for at least so often.
const ABSENT_PAUSE: Duration = Duration::from_secs(5);
/// A list that is complete in part only is made again after so long.
const IN_PART_PAUSE: Duration = Duration::from_secs(300);
/// After so many streaming lists that broke, one list in pages is tried.
const MOST_BROKEN_STREAMS: u32 = 2;

/// What one server has been found to speak; shared by all reflectors on it.
#[derive(Debug)]
pub(crate) struct Habits {
    streaming_lists: AtomicBool,
}

impl Default for Habits {
    fn default() -> Self {
        Self { streaming_lists: AtomicBool::new(true) }
    }
}

/// The reflector of one scope.
pub(crate) struct Reflector {
    source: Arc<dyn ListWatch>,
    feed: Feed,
    seams: Seams,
    status: Arc<Status>,
    habits: Arc<Habits>,
    backoff: Backoff,
    /// The version to watch from; `None`: list first.
    resume: Option<String>,
    /// The newest version seen in this epoch.
    newest: Option<String>,
    /// Why the next list is made.
    cause: &'static str,
    /// Streaming lists that ended before their end mark, in a row.
    broken_streams: u32,
    /// Pages expire faster than they are read: the next list is made without a limit.
    unpaged: bool,
    /// Items of this list whose name could not be read.
    unreadable: usize,
    /// When to list again because the last list was complete in part only.
    again_at: Option<Instant>,
    /// How long the last stream was open.
    lived: Duration,
}

impl Reflector {
    pub(crate) fn new(
        source: Arc<dyn ListWatch>,
        feed: Feed,
        seams: Seams,
        status: Arc<Status>,
        habits: Arc<Habits>,
    ) -> Self {
        let backoff = Backoff::new(seams.entropy.clone());
        Self {
            source,
            feed,
            seams,
            status,
            habits,
            backoff,
            resume: None,
            newest: None,
            cause: "initial",
            broken_streams: 0,
            unpaged: false,
            unreadable: 0,
            again_at: None,
            lived: Duration::ZERO,
        }
    }

    /// Runs until `stop`, which ends whatever request or pause is under way.
    pub(crate) async fn run(mut self, stop: CancellationToken) {
        let status = Arc::clone(&self.status);
        tokio::select! {
            biased;
            () = stop.cancelled() => {}
            () = self.run_forever() => {}
        }
        status.set(State::Stopped);
    }

    async fn run_forever(&mut self) {
        loop {
            self.lived = Duration::ZERO;
            let setback = self.attempt().await;
            // Whatever was read before the end counts.
            self.feed.flush().await;
            if let Some(pause) = self.answer(setback) {
                self.feed.flush().await;
                self.seams.clock.sleep(pause).await;
            }
        }
    }

    async fn attempt(&mut self) -> Setback {
        if self.resume.is_none()
            && !self.lists_by_stream()
            && let Err(setback) = self.list().await
        {
            return setback;
        }
        self.watch().await
    }

    fn lists_by_stream(&self) -> bool {
        self.habits.streaming_lists.load(Ordering::Relaxed)
            && self.broken_streams < MOST_BROKEN_STREAMS
    }

    /// Draws the consequences of an attempt's end; returns the pause before the next one.
    fn answer(&mut self, setback: Setback) -> Option<Duration> {
        match setback {
            Setback::Ended => None,
            Setback::NewEpoch => self.list_again("new_epoch", None),
            Setback::InPart => self.list_again("in_part", None),
            Setback::Unsupported(why) => {
                tracing::info!(resource = %self.feed.store.info(), why, "no streaming lists: listing in pages");
                self.habits.streaming_lists.store(false, Ordering::Relaxed);
                self.list_again(self.cause, None)
            }
            Setback::Failed(why) => {
                if self.resume.is_none() {
                    self.broken_streams = self.broken_streams.saturating_add(1);
                }
                self.status.set(State::Retrying(why));
                Some(self.backoff.pause(self.lived))
            }
            Setback::Stale { cause, why } => {
                self.status.set(State::Retrying(why));
                let pause = self.backoff.pause(self.lived);
                self.list_again(cause, Some(pause))
            }
            Setback::Throttled { after, why } => {
                self.status.set(State::Retrying(why));
                let pause = self.backoff.pause(self.lived);
                Some(pause + after.unwrap_or_default().min(LONGEST_RETRY_AFTER))
            }
            Setback::Refused(why) => {
                let info = self.feed.store.info();
                let why = format!("{why}; grant the verbs list and watch on {info}");
                self.status.set(State::Degraded(why));
                Some(self.backoff.pause(self.lived))
            }
            Setback::Absent(why) => self.absent(why),
        }
    }

    fn list_again(&mut self, cause: &'static str, pause: Option<Duration>) -> Option<Duration> {
        self.resume = None;
        self.cause = cause;
        pause
    }

    /// B13: an absent kind has no objects, and may come any time.
    fn absent(&mut self, why: String) -> Option<Duration> {
        if !matches!(self.status.get(), State::Absent(_)) {
            self.feed.begin_run();
            self.feed.mark(Milestone::Absent, self.newest.as_deref().unwrap_or_default());
        }
        self.status.set(State::Absent(why));
        let pause = ABSENT_PAUSE / 2 + self.backoff.jitter(ABSENT_PAUSE / 2);
        self.list_again("absent", Some(pause))
    }

    /// Begins a list.
    fn begin_list(&mut self) {
        self.feed.begin_run();
        self.unreadable = 0;
        self.again_at = None;
        let resource = self.feed.store.info().group_resource();
        self.seams.metrics.count(&names::INFORMER_RELISTS, &[&resource, self.cause], 1);
        // An absent or refused kind stays so until the list succeeds: no log line per attempt.
        if matches!(self.status.get(), State::Idle | State::Watching) {
            self.status.set(State::Listing);
        }
    }

    /// The list is complete as of `version`.
    fn end_list(&mut self, version: &str) -> Result<(), Setback> {
        if let Some(newest) = &self.newest
            && order(version, newest) == Some(std::cmp::Ordering::Less)
        {
            tracing::warn!(
                resource = %self.feed.store.info(), version, newest,
                "the server's versions went backwards (a restored backup?): everything is read anew"
            );
            self.feed.run.epoch = self.feed.run.epoch.saturating_add(1);
            self.feed.reuse = false;
            self.feed.mark(Milestone::NewEpoch, version);
            self.newest = None;
            return Err(Setback::NewEpoch);
        }
        let what = if self.unreadable == 0 { Milestone::Listed } else { Milestone::ListedInPart };
        // Nothing tells that an object is gone which vanished before such a list: a later one may.
        self.again_at = (self.unreadable > 0).then(|| self.seams.clock.now() + IN_PART_PAUSE);
        self.feed.mark(what, version);
        self.feed.reuse = true;
        self.feed.is_initial = false;
        self.resume = Some(version.to_owned());
        self.newest = Some(version.to_owned());
        self.broken_streams = 0;
        self.unpaged = false;
        self.status.set(State::Watching);
        Ok(())
    }

    /// An item or event whose name cannot be read.
    fn unreadable(&mut self, why: &crate::wire::Malformed) {
        self.unreadable += 1;
        self.feed.dropped("unreadable");
        tracing::error!(resource = %self.feed.store.info(), %why, "an object's metadata cannot be read");
    }

    /// Sends a request; fails when no answer begins in time.
    async fn open(&self, read: Read, during: During) -> Result<Chunks, Setback> {
        let opening = self.source.open(read);
        match self.seams.clock.within(NO_PROGRESS, opening).await {
            Some(Ok(chunks)) => Ok(chunks),
            Some(Err(error)) => Err(judge(&error, during)),
            None => Err(Setback::Failed(format!(
                "no answer within {} s to {during:?} of {}",
                NO_PROGRESS.as_secs(),
                self.feed.store.info()
            ))),
        }
    }
}
