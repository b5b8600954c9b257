//! Detection of a server's store that was set back: restored from a backup, or emptied.
//!
//! A kube-apiserver answers a watch from a version that its store has not reached by 200 and
//! silence. A reflector that resumes from its position would then follow nothing, and show objects
//! that are gone. After a lost connection, as soon as a watch is open again, one object is
//! therefore listed as a consistent read: the version of that list is one that the store has. The
//! watch does not wait for this look, and a server that cannot be reached is not asked.
//!
//! Only versions are compared. Once they have passed the position again, this look detects nothing;
//! the book (`cache/reflector.md`) lists the other signs.

use std::cmp::Ordering;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use super::machine::AttemptEnd;
use super::machine::Backoff;
use super::sink::{ReflectorSink, StreamProgress};
use super::source::PageReader;
use super::source::{ListWatch, Read};
use super::{LONGEST_RETRY_AFTER, Reflector, ReflectorOptions};
use crate::clock::Clock;
use crate::error::{Error, ErrorKind};
use crate::metrics::names;
use crate::rng::Rng;
use crate::store::order;

/// Deadline of a look.
const LONGEST_LOOK: Duration = Duration::from_secs(10);
/// Shortest interval between looks that a mere sign causes: repeated frames and slow answers to
/// writes happen on healthy stores, too.
const SIGNS_APART: Duration = Duration::from_secs(120);

/// A look under way; its result is the version of a list, read to its end.
type Look = Pin<Box<dyn Future<Output = Result<String, Error>> + Send>>;

/// A suspicion about the server's store, and the look that resolves it.
pub(super) struct RollbackCheck {
    /// Time of the next look; `None` when there is no suspicion.
    due: Option<Instant>,
    /// A version that the store had, perhaps of another kind, beside the reflector's own.
    had: Option<Arc<str>>,
    look: Option<Look>,
    /// The position when the look began.
    position: String,
    backoff: Backoff,
    /// Time of the last look that a sign caused.
    heeded_at: Option<Instant>,
    /// Time of the last report, of this or another reflector, that the store was set back.
    pub(super) warned_at: Option<Instant>,
}

impl fmt::Debug for RollbackCheck {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RollbackCheck").field("due", &self.due).finish_non_exhaustive()
    }
}

impl RollbackCheck {
    pub(super) fn new(options: &ReflectorOptions, rng: Rng) -> Self {
        Self {
            due: None,
            had: None,
            look: None,
            position: String::new(),
            backoff: Backoff::new(options, rng),
            heeded_at: None,
            warned_at: None,
        }
    }

    /// Notes that the store may have been set back before `now`.
    pub(super) fn raise(&mut self, now: Instant) {
        // A look that began earlier may have been answered before the store was set back.
        self.look = None;
        self.due = Some(now);
    }

    /// Notes a sign that has only two causes: a store that was set back, or a network that repeats
    /// frames.
    pub(super) fn sign(&mut self, now: Instant) {
        let is_early = self.heeded_at.is_some_and(|last| now < last + SIGNS_APART);
        // A look that is due or under way answers this sign, too.
        if !is_early && self.due.is_none() && !self.is_looking() {
            self.heeded_at = Some(now);
            self.raise(now);
        }
    }

    /// Ends the suspicion, because a list has resolved it.
    pub(super) fn settle(&mut self) {
        (self.due, self.had, self.look) = (None, None, None);
    }

    /// Returns the time of the next look, if there is one.
    pub(super) fn due(&self) -> Option<Instant> {
        self.due
    }

    /// Returns whether a look is under way.
    pub(super) fn is_looking(&self) -> bool {
        self.look.is_some()
    }

    /// Waits for the result of the look under way; for ever, when there is none.
    ///
    /// # Cancel safety
    /// Safe: the look goes on with the next call.
    pub(super) async fn told(&mut self) -> Result<String, Error> {
        let Some(look) = &mut self.look else { return std::future::pending().await };
        let told = look.await;
        self.look = None;
        told
    }
}

/// Reads the version of the store by a list of one object, because a limit of 0 means a list of
/// all.
async fn newest(
    source: Arc<dyn ListWatch>,
    clock: Clock,
    what: String,
    limit: usize,
) -> Result<String, Error> {
    let read = Read::Page { resource_version: None, limit: Some(1), continue_token: None };
    let look = async {
        let mut reader = PageReader::open(&*source, read, &clock, &what, limit).await?;
        while let Some(piece) = reader.next().await? {
            reader.split(&piece, &mut |_| {})?;
        }
        Ok(reader.finish()?.resource_version)
    };
    clock.within(LONGEST_LOOK, look).await.unwrap_or_else(|| {
        let seconds = LONGEST_LOOK.as_secs();
        Err(Error::new(ErrorKind::Timeout, format!("no list of {what} within {seconds} s")))
    })
}

impl<T: ReflectorSink> Reflector<T> {
    /// Begins the look that is due at `now`, if there is one.
    pub(super) fn begin_look(&mut self, now: Instant) {
        let Some(position) = self.position.resume() else { return };
        if self.doubt.is_looking() || self.doubt.due.is_none_or(|due| due > now) {
            return;
        }
        // The position advances while the look is under way; the result is compared with this one.
        position.clone_into(&mut self.doubt.position);
        self.doubt.due = None;
        let (source, clock) = (Arc::clone(&self.source), self.environment.clock.clone());
        let look = newest(source, clock, self.what.clone(), self.options.frame_limit);
        self.doubt.look = Some(Box::pin(look));
    }

    /// Judges the result of a look.
    pub(super) fn judge_look(&mut self, told: Result<String, Error>) -> Result<(), AttemptEnd> {
        let version = match told {
            Ok(version) => version,
            Err(error) => {
                // A failed look proves nothing: it is repeated after a pause.
                let pause = self.doubt.backoff.pause(Duration::ZERO);
                let asked = error.retry_after().unwrap_or_default();
                let pause = pause + asked.min(LONGEST_RETRY_AFTER);
                self.doubt.due = Some(self.environment.clock.now() + pause);
                let what = &self.what;
                tracing::debug!(resource = what, %error, "whether the store was set back is not known");
                return Ok(());
            }
        };
        let is_below = |known: &str| order(&version, known) == Some(Ordering::Less);
        let known = Some(&*self.doubt.position).filter(|known| is_below(known));
        let known = known.or_else(|| self.doubt.had.as_deref().filter(|known| is_below(known)));
        match known.map(str::to_owned) {
            Some(known) => Err(self.set_back(&version, &known)),
            None => {
                self.doubt.settle();
                // The pauses begin anew after a successful look.
                self.doubt.backoff = self.new_backoff();
                Ok(())
            }
        }
    }

    /// Begins a new epoch, because the store is at `version` although it had `known` (B8: versions
    /// that go back): everything is read and delivered anew.
    pub(super) fn set_back(&mut self, version: &str, known: &str) -> AttemptEnd {
        let now = self.environment.clock.now();
        tracing::warn!(
            resource = self.what,
            version,
            known,
            "the server's versions went backwards: its store was set back, by a restored backup perhaps, \
             or emptied; everything is read anew, and what is gone is told as deleted"
        );
        self.environment.metrics.count(&names::INFORMER_SET_BACK, &[&self.resource], 1);
        self.habits.found_set_back(now, known);
        self.doubt.warned_at = Some(now);
        self.target.reached(StreamProgress::NewEpoch, version);
        self.position.forget();
        self.doubt.settle();
        AttemptEnd::NewEpoch
    }

    /// Takes in the signs of others: own writes with older versions than the cached ones, and
    /// reflectors of other kinds on the same server that found its store set back.
    pub(super) fn heed(&mut self) {
        let now = self.environment.clock.now();
        if self.status.take_sign() {
            self.doubt.sign(now);
        }
        let Some((found_at, had)) = self.habits.set_back() else { return };
        let is_known = self.doubt.warned_at.is_some_and(|warned| warned >= found_at);
        if !is_known && self.position.resume().is_some() {
            self.doubt.warned_at = Some(found_at);
            // A list that began later has already checked this.
            if self.list_began <= found_at {
                self.doubt.raise(now);
                self.doubt.had = Some(had);
            }
        }
    }

    /// Returns a backoff by the present options.
    pub(super) fn new_backoff(&self) -> Backoff {
        Backoff::new(&self.options, self.environment.rng.clone())
    }
}
