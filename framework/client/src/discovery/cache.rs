//! The catalog of a client: read by a single caller at a time, shared by all, and invalidated on
//! demand.
//!
//! Reads are numbered. A caller accepts a lowest number and an oldest moment, so that
//! "invalidated", "newer than the last one seen" and "not too old" are a single comparison.
//!
//! Lock order: `refresh_lock` before `state`. `state` is held for comparisons and copies only,
//! never across an await; the caller that holds `refresh_lock` reads the server, and callers behind
//! it check again whether that read is good enough for them before reading.

// DESIGN.md, 23: Discovery is one cache per client with numbered reads

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

use super::catalog::Catalog;
use super::fetch::{self, Tags};
use crate::client::Client;
use windlass_core::error::{BoxError, Error};

/// Time after a failed read in which an aged catalog is used without another attempt.
const FAILED_PAUSE: Duration = Duration::from_secs(30);

/// State that all handles of a client share.
#[derive(Default)]
pub(crate) struct CatalogCache {
    /// Never held across an await.
    state: Mutex<State>,
    /// Held by the caller that reads, so that a single read runs at a time.
    refresh_lock: tokio::sync::Mutex<()>,
}

/// The catalog, the last failure and the numbers of reads.
#[derive(Default)]
struct State {
    /// Number of the last read that was started.
    begun: u64,
    /// Number of the last read that ended.
    ended: u64,
    /// Reads below this number were invalidated.
    valid_from: u64,
    /// The newest catalog.
    kept: Option<CachedCatalog>,
    /// The last failure, until a read succeeds.
    failed: Option<FailedRead>,
    /// Entity tags of the last successful read.
    tags: Tags,
}

/// A catalog with the number and the start time of the read.
#[derive(Clone)]
pub(super) struct CachedCatalog {
    pub(super) number: u64,
    pub(super) asked_at: Instant,
    pub(super) catalog: Arc<Catalog>,
}

/// A failed read, for callers that share the error.
struct FailedRead {
    number: u64,
    at: Instant,
    error: Arc<Error>,
}

/// Requirements of a caller.
#[derive(Clone, Copy, Debug)]
pub(super) struct ReadRequirements {
    /// Lowest accepted number.
    from: u64,
    /// Earliest accepted start of the read.
    oldest: Option<Instant>,
    /// A failure with this number or a later number is the caller's failure too.
    shares_failure_from: u64,
    /// Whether an aged catalog is accepted after a failure.
    bends: bool,
}

impl CatalogCache {
    /// Accepts a valid catalog whose read began no earlier than `oldest`.
    pub(super) fn want(&self, oldest: Option<Instant>) -> ReadRequirements {
        let state = self.state.lock();
        let from = state.valid_from;
        // A failure that ended before this call is not shared: the fault may be over.
        ReadRequirements {
            from,
            oldest,
            shares_failure_from: from.max(state.ended + 1),
            bends: true,
        }
    }

    /// Accepts only a catalog whose read begins after now.
    pub(super) fn want_newer(&self) -> ReadRequirements {
        let state = self.state.lock();
        let from = state.begun + 1;
        // A read that is running may have seen the server before this call.
        ReadRequirements { from, oldest: None, shares_failure_from: from, bends: false }
    }

    /// Accepts a valid catalog that is newer than read `number`. A running read is good enough, and
    /// so is a read that failed after `since`.
    pub(super) fn want_after(&self, number: u64, since: Option<Instant>) -> ReadRequirements {
        let state = self.state.lock();
        let from = state.valid_from.max(number + 1);
        let failed = state.failed.as_ref();
        let just_failed = failed.filter(|failed| since.is_none_or(|since| failed.at > since));
        let shares_failure_from = just_failed.map_or(state.ended + 1, |failed| failed.number);
        ReadRequirements {
            from,
            oldest: None,
            shares_failure_from: from.max(shares_failure_from),
            bends: false,
        }
    }

    /// Invalidates all reads so far, a running read included.
    pub(super) fn invalidate(&self) {
        let mut state = self.state.lock();
        state.valid_from = state.begun + 1;
    }

    /// Returns an accepted catalog, read by this caller or by another caller.
    pub(super) async fn get(
        &self,
        client: &Client,
        want: ReadRequirements,
    ) -> Result<CachedCatalog, Error> {
        let clock = &client.environment().clock;
        // Without the refresh lock: most callers find a good catalog.
        if let Some(kept) = self.state.lock().good(want, clock.now()) {
            return Ok(kept);
        }
        // A caller that is dropped during a read releases the lock: the next caller starts anew.
        let refreshing = self.refresh_lock.lock().await;
        // Compared again under the lock: the caller that held the lock before may have read a good
        // catalog.
        let (number, tags) = {
            let mut state = self.state.lock();
            if let Some(kept) = state.good(want, clock.now()) {
                return Ok(kept);
            }
            if let Some(error) = state.shared_failure(want) {
                return Err(error);
            }
            state.begun += 1;
            (state.begun, state.tags.clone())
        };
        // Taken before the request: the answer may be that old.
        let asked_at = clock.now();
        let outcome = fetch::catalog(client, tags).await;
        let mut state = self.state.lock();
        state.ended = number;
        let result = match outcome {
            Ok((catalog, tags)) => {
                let kept = CachedCatalog { number, asked_at, catalog: Arc::new(catalog) };
                state.tags = tags;
                state.failed = None;
                state.kept = Some(kept.clone());
                Ok(kept)
            }
            Err(error) => state.fail(number, clock.now(), error, want),
        };
        // Released before the refresh lock: the next caller takes the state right after that lock.
        drop(state);
        drop(refreshing);
        result
    }
}

impl State {
    /// Returns the stored catalog if it satisfies `want`.
    fn good(&self, want: ReadRequirements, now: Instant) -> Option<CachedCatalog> {
        let kept = self.kept.as_ref().filter(|kept| kept.number >= want.from)?;
        let is_fresh = want.oldest.is_none_or(|oldest| kept.asked_at >= oldest);
        let just_failed = || {
            let failed = self.failed.as_ref();
            failed.is_some_and(|failed| now.saturating_duration_since(failed.at) < FAILED_PAUSE)
        };
        (is_fresh || want.bends && just_failed()).then(|| kept.clone())
    }

    /// A copy of the last failure, if the caller shares that failure; errors cannot be cloned.
    fn shared_failure(&self, want: ReadRequirements) -> Option<Error> {
        let failed = self.failed.as_ref().filter(|f| f.number >= want.shares_failure_from)?;
        let error = Error::new(failed.error.kind(), failed.error.to_string());
        let error = error.with_retry_after(failed.error.retry_after());
        Some(match std::error::Error::source(&*failed.error) {
            Some(_) => error.because(Box::new(Cause(Arc::clone(&failed.error))) as BoxError),
            None => error,
        })
    }

    /// Stores a failure; returns an aged catalog if the caller accepts such a catalog.
    fn fail(
        &mut self,
        number: u64,
        at: Instant,
        error: Error,
        want: ReadRequirements,
    ) -> Result<CachedCatalog, Error> {
        let error = Arc::new(error);
        self.failed = Some(FailedRead { number, at, error: Arc::clone(&error) });
        // With the failure just stored, an aged catalog is good for callers that accept such a
        // catalog.
        if let Some(kept) = self.good(want, at) {
            tracing::warn!(%error, "discovery failed; the cached API list stays in use");
            return Ok(kept);
        }
        let copy = self.shared_failure(ReadRequirements { shares_failure_from: number, ..want });
        Err(copy.unwrap_or_else(|| Error::new(error.kind(), error.to_string())))
    }
}

impl fmt::Debug for CatalogCache {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = self.state.lock();
        f.debug_struct("CatalogCache")
            .field("reads", &state.ended)
            .field("is_valid", &state.kept.as_ref().is_some_and(|k| k.number >= state.valid_from))
            .field("has_failed", &state.failed.is_some())
            .finish()
    }
}

/// The cause of an error that several callers share.
#[derive(Debug)]
struct Cause(Arc<Error>);

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match std::error::Error::source(&*self.0) {
            Some(source) => fmt::Display::fmt(source, f),
            None => fmt::Display::fmt(&self.0, f),
        }
    }
}

impl std::error::Error for Cause {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        std::error::Error::source(&*self.0)?.source()
    }
}
