//! A watch, with or without the current state as the first part (a streaming list).

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use tokio::time::Instant;

use super::machine::{AttemptEnd, EndedRequest, judge};
use super::sink::{RawObject, ReflectorSink, StreamProgress};
use super::source::{Chunks, Read, describe_request, open};
use super::stream::Stream;
use super::{NO_PROGRESS, Reflector};
use windlass_client::client::{Verb, at_once};
use windlass_core::error::Error;
use windlass_core::metrics::names;
use windlass_core::wire::{EventType, Frame, FrameDecoder, Malformed, MetadataScan, StreamPiece};

/// Most chunks that are read before their objects are handed over. Servers often send a chunk per
/// event, so a burst of events is a burst of chunks.
const MAX_CHUNKS: u32 = 64;

/// The event for which a watch waited.
enum WatchInput {
    Chunk(Option<Result<Bytes, Error>>),
    VersionRead(Result<String, Error>),
    Timer,
    /// Another component noted a hint of a store that was set back.
    CheckRequested,
}

/// Returns the request by which errors of the stream are judged.
fn request_of(stream: &Stream) -> EndedRequest {
    if stream.is_listing { EndedRequest::StreamingList } else { EndedRequest::Watch }
}

impl<T: ReflectorSink> Reflector<T> {
    /// Follows changes until the stream that `read` asks for ends; returns the reason of the end.
    /// A streaming list begins a list of the sink.
    /// `open_for` becomes the time for which the stream was open.
    pub(super) async fn watch(&mut self, read: Read, open_for: &mut Duration) -> AttemptEnd {
        let (during, timeout) = match &read {
            Read::Watch { timeout, .. } => (EndedRequest::Watch, *timeout),
            Read::StreamingList { resource_version, timeout } => {
                self.begin_list(resource_version.clone());
                (EndedRequest::StreamingList, *timeout)
            }
            // Unreachable: `list` reads pages.
            Read::Page { .. } => {
                return AttemptEnd::Failed("internal error: a page is not a stream".to_owned());
            }
        };
        let labels = [self.subject.resource.as_str()];
        self.environment.metrics.count(&names::INFORMER_WATCHES, &labels, 1);
        self.machine.stream_opens();
        let opened = open(&*self.source, read, &self.environment.clock, &self.subject.what).await;
        let mut chunks = match opened {
            Ok(chunks) => chunks,
            Err(error) => return judge(&error, during),
        };
        let is_listing = during == EndedRequest::StreamingList;
        let mut stream = Stream::new(self.environment.clock.now(), timeout, is_listing);
        self.check_hints();
        // Only after the answer: an unreachable server is not asked.
        self.begin_check(stream.opened);
        let end = self.follow(&mut chunks, &mut stream).await;
        *open_for = self.environment.clock.now() - stream.opened;
        end
    }

    /// Returns the time of the next check of the stream when nothing arrives.
    fn next_check_at(&self, stream: &Stream) -> Instant {
        // A resync needs a complete list, and a version read a version to compare with.
        let resync = self.resync_at.filter(|_| !stream.is_listing);
        let check = self.rollback.due().filter(|_| !stream.is_listing);
        let relist_at = self.machine.relist_at();
        [relist_at, resync, check].into_iter().flatten().fold(stream.wake(), Instant::min)
    }

    /// Reads the stream until the end, with checks in between.
    async fn follow(&mut self, chunks: &mut Chunks, stream: &mut Stream) -> AttemptEnd {
        let clock = self.environment.clock.clone();
        let mut frames = FrameDecoder::with_limit(self.options.frame_limit);
        // The timer stays armed while chunks arrive, and may fire early: arming the timer again
        // for each chunk would cost more than most chunks do.
        let mut armed = self.next_check_at(stream);
        let mut timer = pin!(clock.sleep_until(armed));
        let capabilities = Arc::clone(&self.capabilities);
        let mut check_request = pin!(capabilities.check_requested());
        loop {
            let due = self.next_check_at(stream);
            if due < armed {
                armed = due;
                timer.set(clock.sleep_until(armed));
            }
            let next = tokio::select! {
                biased;
                // Biased: the rare version read goes first, then data; the timer and a requested
                // check wait until no chunk is ready.
                result = self.rollback.result(), if self.rollback.is_reading() => {
                    WatchInput::VersionRead(result)
                }
                next = chunks.next() => WatchInput::Chunk(next),
                () = timer.as_mut() => WatchInput::Timer,
                () = check_request.as_mut() => WatchInput::CheckRequested,
            };
            let outcome = match next {
                // A chunk may hold many frames: they are handed over together.
                WatchInput::Chunk(next) => self.arrived(next, chunks, &mut frames, stream).await,
                WatchInput::VersionRead(result) => self.finish_check(result),
                WatchInput::CheckRequested => {
                    // Registered before the check: a request in between is not lost.
                    check_request.set(capabilities.check_requested());
                    self.check_hints();
                    Ok(())
                }
                WatchInput::Timer => {
                    // The timer may fire for a deadline that has moved since.
                    let outcome = match clock.now() >= due {
                        true => self.run_due_checks(stream, clock.now()).await,
                        false => Ok(()),
                    };
                    armed = self.next_check_at(stream);
                    timer.set(clock.sleep_until(armed));
                    outcome
                }
            };
            if let Err(end) = outcome {
                return end;
            }
        }
    }

    /// Handles a chunk; further chunks that are available at once are read and handed over with the
    /// chunk.
    async fn arrived(
        &mut self,
        first: Option<Result<Bytes, Error>>,
        chunks: &mut Chunks,
        frames: &mut FrameDecoder,
        stream: &mut Stream,
    ) -> Result<(), AttemptEnd> {
        let now = self.environment.clock.now();
        let before = stream.progress;
        let mut outcome = Ok(());
        let (mut next, mut count) = (Some(first), 0);
        while let Some(chunk) = next.take() {
            outcome = match chunk {
                None => Err(self.ended(stream)),
                Some(Err(error)) => Err(judge(&error, request_of(stream))),
                Some(Ok(chunk)) => self.read(&chunk, now, frames, stream),
            };
            count += 1;
            if outcome.is_ok() && count < MAX_CHUNKS {
                next = chunks.at_once().await;
            }
        }
        let has_advanced = stream.progress > before;
        self.status.note_received(now, has_advanced);
        self.count_items();
        // A single mark per read, not per event.
        if has_advanced && let Some(version) = self.machine.resume() {
            self.sink.reached(StreamProgress::Reached, version);
        }
        self.hand_over(stream).await;
        // After the hand-over: events that were read before an error are delivered.
        outcome?;
        // The `select!` prefers chunks, so a flood would starve the timer: deadlines are checked
        // here, too.
        if now >= self.next_check_at(stream) {
            self.run_due_checks(stream, now).await
        } else {
            Ok(())
        }
    }

    /// Waits until the target takes more. The stream's deadlines are extended by that time, which
    /// is not the server's.
    async fn hand_over(&mut self, stream: &mut Stream) {
        let mut handed_over = pin!(self.sink.hand_over());
        // Usually there is space, and the clock need not be read.
        if at_once(handed_over.as_mut()).await.is_none() {
            let began = self.environment.clock.now();
            handed_over.await;
            stream.extend(self.environment.clock.now() - began);
        }
    }

    /// Reads the frames of a chunk.
    fn read(
        &mut self,
        chunk: &Bytes,
        now: Instant,
        frames: &mut FrameDecoder,
        stream: &mut Stream,
    ) -> Result<(), AttemptEnd> {
        self.mark_healthy(stream);
        let mut outcome = Ok(());
        let mut has_complete_frame = false;
        frames.push(chunk, &mut |frame| {
            has_complete_frame = true;
            if outcome.is_ok() {
                // After a failure the rest of the chunk is skipped, because the stream ends.
                outcome = self.frame(frame, now, stream);
            }
        });
        stream.partial(now, frames.is_inside(), has_complete_frame);
        outcome
    }

    /// Runs the checks that are due at `now`: the new list after a partial one, the stream's
    /// deadline, warnings, version reads, resyncs, and the healthy state of a quiet watch.
    async fn run_due_checks(
        &mut self,
        stream: &mut Stream,
        now: Instant,
    ) -> Result<(), AttemptEnd> {
        if self.machine.relist_at().is_some_and(|at| now >= at) {
            return Err(AttemptEnd::RelistDue);
        }
        if now >= stream.deadline() {
            return Err(self.silent(stream, now));
        }
        if let Some(since) = stream.overdue(now) {
            tracing::warn!(
                resource = self.subject.what,
                seconds = since.as_secs(),
                objects = self.machine.items(),
                "the bookmark that ends the streaming list has not arrived"
            );
        }
        if !stream.is_listing {
            self.begin_check(now);
        }
        if self.resync_at.is_some_and(|at| now >= at) && !stream.is_listing {
            self.resync(stream).await?;
        }
        if now - stream.opened >= super::stream::VERY_SHORT {
            self.mark_healthy(stream);
        }
        Ok(())
    }

    /// Asks the target for a resync and schedules the next resync.
    async fn resync(&mut self, stream: &mut Stream) -> Result<(), AttemptEnd> {
        self.resync_at = self.options.resync.map(|period| self.environment.clock.after(period));
        if self.sink.should_resync()
            && let Err(error) = self.sink.resync()
        {
            let why = format!("the resync of {} failed: {error}", self.subject.what);
            return Err(AttemptEnd::Stale { cause: "resync", why });
        }
        self.hand_over(stream).await;
        Ok(())
    }

    /// Sets the healthy state once the watch has delivered something or stood for a second. A watch
    /// that is closed at once was never healthy, and the state must not flap. In a streaming list
    /// the end of the list sets the state.
    fn mark_healthy(&self, stream: &mut Stream) {
        if !stream.is_confirmed && !stream.is_listing {
            self.status.set(self.machine.watching_state());
        }
        stream.is_confirmed = true;
    }

    /// Judges the end of a stream.
    fn ended(&mut self, stream: &Stream) -> AttemptEnd {
        let what = &self.subject.what;
        if stream.is_listing {
            let text = format!("the streaming list of {what} ended before its end mark");
            return AttemptEnd::Failed(text);
        }
        let now = self.environment.clock.now();
        if stream.was_very_short(now) {
            let labels = [self.subject.resource.as_str()];
            self.environment.metrics.count(&names::INFORMER_VERY_SHORT, &labels, 1);
            return AttemptEnd::Failed(format!("the watch of {what} was closed at once"));
        }
        // A stream that ended before its timeout may come from a server that restarts on a restored
        // store: the store's version is compared.
        if !stream.was_orderly(now) {
            self.rollback.request_check(now);
        }
        AttemptEnd::Ended
    }

    /// Judges a stream whose deadline has passed.
    fn silent(&self, stream: &Stream, now: Instant) -> AttemptEnd {
        let what = &self.subject.what;
        if stream.is_listing {
            // B5 (no end of the initial events): servers that do not know streaming lists send the
            // objects and no end mark.
            return AttemptEnd::Unsupported(format!(
                "the streaming list of {what} made no progress for {} s",
                NO_PROGRESS.as_secs()
            ));
        }
        let silence = stream.silence(now).as_secs();
        AttemptEnd::Failed(format!(
            "the watch of {what} delivered no complete frame for {silence} s"
        ))
    }

    /// Handles a frame.
    fn frame(
        &mut self,
        frame: StreamPiece<'_>,
        now: Instant,
        stream: &mut Stream,
    ) -> Result<(), AttemptEnd> {
        let result = match frame {
            StreamPiece::Whole(line) => Frame::scanned(line).and_then(|(frame, scan)| {
                stream.frame(now, frame.event == EventType::Added);
                self.event(frame, scan, now, stream)
            }),
            StreamPiece::TooLarge(line) => {
                stream.frame(now, true);
                self.large_event(line, stream).map(Ok)
            }
        };
        match result {
            Ok(outcome) => outcome,
            Err(why) => {
                stream.frame(now, true);
                self.unreadable(&why);
                // A list goes on without this object, and is incomplete. In a watch the change
                // behind the frame can be found only by a list.
                if stream.is_listing {
                    return Ok(());
                }
                let why = format!("a watch frame of {} cannot be read: {why}", self.subject.what);
                Err(AttemptEnd::Stale { cause: "unreadable", why })
            }
        }
    }

    /// Handles an event whose object is too large to be read whole: only the beginning of the line
    /// is known. The kind of the object is not compared, because it may stand behind that part.
    fn large_event(&mut self, line: &[u8], stream: &mut Stream) -> Result<(), Malformed> {
        let frame = Frame::of_beginning(line)?;
        match frame.event {
            EventType::Added | EventType::Modified | EventType::Deleted => {}
            EventType::Unknown => {
                self.dropped("unknown_type");
                return Ok(());
            }
            // Neither the code of an error nor a version can be taken from a part.
            EventType::Error | EventType::Bookmark => {
                return Err(Malformed::new("an ERROR or BOOKMARK frame above the limit"));
            }
        }
        let scan = MetadataScan::of_beginning(frame.object)?;
        let seen = RawObject::new(&scan, frame.object);
        match frame.event {
            EventType::Deleted => self.sink.deleted(&seen),
            _ => self.too_large(&seen),
        }
        self.machine.count_item();
        self.advance(&scan.resource_version, stream);
        Ok(())
    }

    /// Handles an event. The outer error is a frame that cannot be read, the inner error the end of
    /// the watch.
    fn event(
        &mut self,
        frame: Frame<'_>,
        scan: Option<MetadataScan<'_>>,
        now: Instant,
        stream: &mut Stream,
    ) -> Result<Result<(), AttemptEnd>, Malformed> {
        match frame.event {
            EventType::Error => {
                return Ok(Err(self.error_frame(&frame, request_of(stream))));
            }
            EventType::Unknown => self.dropped("unknown_type"),
            EventType::Bookmark => {
                let scan = MetadataScan::version_of(frame.object)?;
                if stream.is_listing && scan.ends_initial_events() {
                    if scan.resource_version.is_empty() {
                        return Err(Malformed::new("the end mark has no resourceVersion"));
                    }
                    stream.is_listing = false;
                    return Ok(self.end_list(&scan.resource_version));
                }
                self.advance(&scan.resource_version, stream);
            }
            EventType::Added | EventType::Modified | EventType::Deleted => {
                if let Some(other) = self.subject.expected.other(frame.object) {
                    self.unexpected(&other);
                    // If this is a list, the list is now incomplete.
                    self.machine.count_unreadable();
                    return Ok(Ok(()));
                }
                let scan = scan.map_or_else(|| MetadataScan::of(frame.object), Ok)?;
                let seen = RawObject::new(&scan, frame.object);
                if stream.is_listing {
                    self.listed(frame.event, &seen);
                    return Ok(Ok(()));
                }
                match frame.event {
                    EventType::Deleted => self.sink.deleted(&seen),
                    // B6 (older or repeated frames): an old state must not bring back a deleted
                    // object. The store drops tombstones with the next list, and when there are too
                    // many, so the stream's position decides. A repeated deletion finds nothing.
                    _ if self.machine.has_passed(&scan.resource_version) => {
                        self.repeated(&scan.resource_version, now);
                    }
                    _ => self.sink.changed(&seen),
                }
                self.advance(&scan.resource_version, stream);
            }
        }
        Ok(Ok(()))
    }

    /// Handles an event of the first part of a streaming list.
    fn listed(&mut self, event: EventType, seen: &RawObject<'_>) {
        self.machine.count_item();
        match event {
            EventType::Deleted => self.sink.deleted(seen),
            _ => self.sink.listed(seen),
        }
    }

    /// Drops a repeated frame. No correct server sends a frame from before the start of the watch;
    /// a server that was set back may.
    fn repeated(&mut self, version: &str, now: Instant) {
        self.dropped("not_newer");
        if self.machine.is_before_stream(version) {
            self.rollback.hint(now);
        }
    }

    /// Advances the position to `version`. During the first part of a streaming list the version
    /// has no meaning yet, because objects come in no order.
    fn advance(&mut self, version: &str, stream: &mut Stream) {
        if !stream.is_listing && self.machine.advance(version) {
            stream.progress += 1;
        }
    }

    /// Judges an ERROR frame.
    fn error_frame(&self, frame: &Frame<'_>, during: EndedRequest) -> AttemptEnd {
        let status = frame.status();
        if status.code == 0 && status.reason.is_empty() {
            let why = format!("an ERROR frame that is not a Status: {}", status.message);
            return AttemptEnd::Stale { cause: "refused", why };
        }
        let request =
            describe_request(Verb::Watch, &self.subject.info, self.subject.namespace.as_deref());
        judge(&Error::from_status(&request, status), during)
    }
}
