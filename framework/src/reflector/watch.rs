//! A watch, with or without the current state as its first part.

use std::cmp::Ordering;
use std::time::Duration;

use tokio::time::Instant;

use super::setback::{During, Setback, judge};
use super::source::{Read, tried};
use super::{NO_PROGRESS, Reflector, State};
use crate::client::Verb;
use crate::error::Error;
use crate::metrics::names;
use crate::store::{Milestone, order};
use crate::wire::{EventType, Frame, FrameDecoder, Malformed, Part, Skim};

/// A watch asks the server to end it after 5 to 10 minutes, so that clients spread over servers.
const SHORTEST_WATCH_SECONDS: u64 = 300;
/// A watch that ended within this and told nothing is a failure, not an end.
const VERY_SHORT: Duration = Duration::from_secs(1);

/// One watch under way.
struct Stream {
    opened: Instant,
    timeout: Duration,
    /// Still in the first part of a streaming list?
    is_listing: bool,
    last_frame: Instant,
    /// Since when a frame is begun and not ended.
    partial_since: Option<Instant>,
    /// Versions gone forward.
    progress: usize,
    /// Has it told something, or stayed open, so that it may be called healthy?
    is_confirmed: bool,
}

impl Stream {
    /// When the next frame must have come.
    fn deadline(&self) -> Instant {
        let patience = if self.is_listing { NO_PROGRESS } else { self.timeout + NO_PROGRESS };
        let deadline = self.last_frame + patience;
        // A6: a frame that drips in is a connection that hangs.
        self.partial_since.map_or(deadline, |since| deadline.min(since + NO_PROGRESS))
    }

    /// When to look at it again without a frame.
    fn wake(&self) -> Instant {
        let deadline = self.deadline();
        if self.is_confirmed { deadline } else { deadline.min(self.opened + VERY_SHORT) }
    }
}

impl Reflector {
    /// Follows changes until the stream ends, however it ends.
    pub(super) async fn watch(&mut self) -> Setback {
        let seconds = self.seams.entropy.below(SHORTEST_WATCH_SECONDS + 1);
        let timeout = Duration::from_secs(SHORTEST_WATCH_SECONDS + seconds);
        let (read, during) = match &self.resume {
            Some(version) => {
                (Read::Watch { resource_version: version.clone(), timeout }, During::Watch)
            }
            None => (Read::StreamingList { timeout }, During::StreamingList),
        };
        if during == During::StreamingList {
            self.begin_list();
        }
        let resource = self.feed.store.info().group_resource();
        self.seams.metrics.count(&names::INFORMER_WATCHES, &[&resource], 1);
        let mut chunks = match self.open(read, during).await {
            Ok(chunks) => chunks,
            Err(setback) => return setback,
        };
        let now = self.seams.clock.now();
        let mut stream = Stream {
            opened: now,
            timeout,
            is_listing: during == During::StreamingList,
            last_frame: now,
            partial_since: None,
            progress: 0,
            is_confirmed: false,
        };
        let setback = self.follow(&mut chunks, &mut stream).await;
        self.lived = self.seams.clock.now() - stream.opened;
        setback
    }

    /// When to look up although nothing came.
    fn wake(&self, stream: &Stream) -> Instant {
        let wake = stream.wake();
        self.again_at.map_or(wake, |at| wake.min(at))
    }

    async fn follow(&mut self, chunks: &mut super::Chunks, stream: &mut Stream) -> Setback {
        let clock = self.seams.clock.clone();
        let mut frames = FrameDecoder::new();
        loop {
            let next = tokio::select! {
                biased;
                next = chunks.next() => next,
                () = clock.sleep_until(self.wake(stream)) => {
                    if self.again_at.is_some_and(|at| clock.now() >= at) {
                        return Setback::InPart;
                    }
                    if clock.now() >= stream.deadline() {
                        return self.silent(stream);
                    }
                    self.confirm(stream);
                    continue;
                }
            };
            let chunk = match next {
                None => return self.ended(stream),
                Some(Err(error)) => return judge(&error, During::Watch),
                Some(Ok(chunk)) => chunk,
            };
            self.confirm(stream);
            let before = stream.progress;
            let mut outcome = Ok(());
            let mut has_ended_one = false;
            frames.push(&chunk, &mut |part| {
                has_ended_one = true;
                if outcome.is_ok() {
                    stream.last_frame = clock.now();
                    outcome = self.frame(part, stream);
                }
            });
            // The frame that is begun now is another one if one has ended.
            let begun = stream.partial_since.filter(|_| !has_ended_one);
            stream.partial_since = frames.is_inside().then(|| begun.unwrap_or_else(|| clock.now()));
            if stream.progress > before
                && let Some(version) = self.resume.clone()
            {
                self.feed.mark(Milestone::Reached, &version);
            }
            self.feed.flush().await;
            if let Err(setback) = outcome {
                return setback;
            }
        }
    }

    /// A watch that was closed at once was never healthy: the state is not to flap.
    fn confirm(&self, stream: &mut Stream) {
        if !stream.is_confirmed && !stream.is_listing {
            self.status.set(State::Watching);
        }
        stream.is_confirmed = true;
    }

    fn ended(&self, stream: &Stream) -> Setback {
        let lived = self.seams.clock.now() - stream.opened;
        let info = self.feed.store.info();
        if stream.is_listing {
            return Setback::Failed(format!(
                "the streaming list of {info} ended before its end mark"
            ));
        }
        if lived < VERY_SHORT && stream.progress == 0 {
            return Setback::Failed(format!("the watch of {info} was closed at once"));
        }
        Setback::Ended
    }

    fn silent(&self, stream: &Stream) -> Setback {
        let info = self.feed.store.info();
        if stream.is_listing {
            // B5: servers that do not know streaming lists send the objects and no end mark.
            return Setback::Unsupported(format!(
                "the streaming list of {info} made no progress for {} s",
                NO_PROGRESS.as_secs()
            ));
        }
        let quiet = (self.seams.clock.now() - stream.last_frame).as_secs();
        Setback::Failed(format!("the watch of {info} brought no complete frame for {quiet} s"))
    }

    fn frame(&mut self, part: Part<'_>, stream: &mut Stream) -> Result<(), Setback> {
        let told = match part {
            Part::Whole(line) => Frame::of(line).and_then(|frame| self.event(frame, stream)),
            Part::TooLarge(line) => Frame::of_beginning(line).and_then(|frame| {
                let skim = Skim::of_beginning(frame.object)?;
                match frame.event {
                    EventType::Deleted => self.feed.delete(&skim),
                    _ => self.too_large(&skim),
                }
                self.advance(&skim.resource_version, stream);
                Ok(Ok(()))
            }),
        };
        match told {
            Ok(outcome) => outcome,
            Err(why) => {
                self.unreadable(&why);
                // In a list the others still count; later, what this was must be found by listing.
                if stream.is_listing {
                    return Ok(());
                }
                let why =
                    format!("a watch frame of {} cannot be read: {why}", self.feed.store.info());
                Err(Setback::Stale { cause: "unreadable", why })
            }
        }
    }

    fn event(
        &mut self,
        frame: Frame<'_>,
        stream: &mut Stream,
    ) -> Result<Result<(), Setback>, Malformed> {
        match frame.event {
            EventType::Error => {
                let during = if stream.is_listing { During::StreamingList } else { During::Watch };
                return Ok(Err(self.error_frame(&frame, during)));
            }
            EventType::Bookmark => {
                let skim = Skim::version_of(frame.object)?;
                if stream.is_listing && skim.ends_initial_events() {
                    stream.is_listing = false;
                    return Ok(self.end_list(&skim.resource_version));
                }
                self.advance(&skim.resource_version, stream);
            }
            EventType::Added | EventType::Modified => {
                let skim = Skim::of(frame.object)?;
                if stream.is_listing {
                    self.feed.listed(&skim);
                } else {
                    self.feed.changed(&skim);
                }
                self.advance(&skim.resource_version, stream);
            }
            EventType::Deleted => {
                let skim = Skim::of(frame.object)?;
                self.feed.delete(&skim);
                self.advance(&skim.resource_version, stream);
            }
            EventType::Unknown => self.feed.dropped("unknown_type"),
        }
        Ok(Ok(()))
    }

    /// The stream has reached `version`; within the first part of a streaming list that says
    /// nothing yet, because objects come in no order.
    fn advance(&mut self, version: &str, stream: &mut Stream) {
        if stream.is_listing || version.is_empty() {
            return;
        }
        let before = self.resume.as_deref().unwrap_or_default();
        if !matches!(order(version, before), Some(Ordering::Less | Ordering::Equal)) {
            self.resume = Some(version.to_owned());
            self.newest = Some(version.to_owned());
            stream.progress += 1;
        }
    }

    fn error_frame(&self, frame: &Frame<'_>, during: During) -> Setback {
        let status = frame.status();
        if status.code == 0 && status.reason.is_empty() {
            let why = format!("an ERROR frame that is no Status: {}", status.message);
            return Setback::Stale { cause: "refused", why };
        }
        let tried = tried(Verb::Watch, self.feed.store.info(), self.feed.namespace.as_deref());
        judge(&Error::from_status(&tried, status), during)
    }
}
