//! One catalog per client: read by one caller at a time, shared by all, forgotten on demand.
//!
//! Reads are numbered. What a caller accepts is a lowest number and an oldest moment, so "made
//! invalid", "newer than what I saw" and "not too old" are one comparison.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

use super::catalog::Catalog;
use super::fetch::{self, Tags};
use crate::client::Client;
use crate::error::{BoxError, Error};

/// So long after a read failed, an aged catalog is used without another try.
const FAILED_PAUSE: Duration = Duration::from_secs(30);

/// What all handles of a client share.
#[derive(Default)]
pub(crate) struct Cache {
    state: Mutex<State>,
    /// Held by the caller who reads.
    turn: tokio::sync::Mutex<()>,
}

#[derive(Default)]
struct State {
    /// Number of the last read that was begun.
    begun: u64,
    /// Number of the last read that came to its end.
    ended: u64,
    /// Reads below this number are not used any more.
    valid_from: u64,
    kept: Option<Kept>,
    failed: Option<Failed>,
    tags: Tags,
}

/// A catalog and when it was asked for.
#[derive(Clone)]
pub(super) struct Kept {
    pub(super) number: u64,
    pub(super) asked_at: Instant,
    pub(super) catalog: Arc<Catalog>,
}

struct Failed {
    number: u64,
    at: Instant,
    error: Arc<Error>,
}

/// What a caller accepts.
#[derive(Clone, Copy, Debug)]
pub(super) struct Want {
    /// The lowest number.
    from: u64,
    /// Asked for no earlier than this.
    oldest: Option<Instant>,
    /// A failure of this number or later is the caller's failure too.
    shares_failure_from: u64,
    /// An aged catalog is better than none.
    bends: bool,
}

impl Cache {
    /// A valid catalog that was asked for no earlier than `oldest`.
    pub(super) fn want(&self, oldest: Option<Instant>) -> Want {
        let state = self.state.lock();
        let from = state.valid_from;
        Want { from, oldest, shares_failure_from: from.max(state.ended + 1), bends: true }
    }

    /// A catalog whose reading begins after now.
    pub(super) fn want_newer(&self) -> Want {
        let state = self.state.lock();
        let from = state.begun + 1;
        Want { from, oldest: None, shares_failure_from: from, bends: false }
    }

    /// A valid catalog that is newer than read `number`; a read under way will do, and so will one
    /// that failed after `since`.
    pub(super) fn want_after(&self, number: u64, since: Option<Instant>) -> Want {
        let state = self.state.lock();
        let from = state.valid_from.max(number + 1);
        let failed = state.failed.as_ref();
        let just_failed = failed.filter(|failed| since.is_none_or(|since| failed.at > since));
        let shares_failure_from = just_failed.map_or(state.ended + 1, |failed| failed.number);
        Want {
            from,
            oldest: None,
            shares_failure_from: from.max(shares_failure_from),
            bends: false,
        }
    }

    pub(super) fn invalidate(&self) {
        let mut state = self.state.lock();
        state.valid_from = state.begun + 1;
    }

    /// What is wanted, read by this caller or by another one.
    pub(super) async fn get(&self, client: &Client, want: Want) -> Result<Kept, Error> {
        let clock = &client.seams().clock;
        if let Some(kept) = self.state.lock().good(want, clock.now()) {
            return Ok(kept);
        }
        let turn = self.turn.lock().await;
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
        let asked_at = clock.now();
        let outcome = fetch::catalog(client, tags).await;
        let mut state = self.state.lock();
        state.ended = number;
        let result = match outcome {
            Ok((catalog, tags)) => {
                let kept = Kept { number, asked_at, catalog: Arc::new(catalog) };
                state.tags = tags;
                state.failed = None;
                state.kept = Some(kept.clone());
                Ok(kept)
            }
            Err(error) => state.fail(number, clock.now(), error, want),
        };
        drop(state);
        drop(turn);
        result
    }
}

impl State {
    fn good(&self, want: Want, now: Instant) -> Option<Kept> {
        let kept = self.kept.as_ref().filter(|kept| kept.number >= want.from)?;
        let is_young = want.oldest.is_none_or(|oldest| kept.asked_at >= oldest);
        let just_failed = || {
            let failed = self.failed.as_ref();
            failed.is_some_and(|failed| now.saturating_duration_since(failed.at) < FAILED_PAUSE)
        };
        (is_young || want.bends && just_failed()).then(|| kept.clone())
    }

    fn shared_failure(&self, want: Want) -> Option<Error> {
        let failed = self.failed.as_ref().filter(|f| f.number >= want.shares_failure_from)?;
        let error = Error::new(failed.error.kind(), failed.error.to_string());
        let error = error.with_retry_after(failed.error.retry_after());
        Some(match std::error::Error::source(&*failed.error) {
            Some(_) => error.because(Box::new(Cause(Arc::clone(&failed.error))) as BoxError),
            None => error,
        })
    }

    fn fail(&mut self, number: u64, at: Instant, error: Error, want: Want) -> Result<Kept, Error> {
        let error = Arc::new(error);
        self.failed = Some(Failed { number, at, error: Arc::clone(&error) });
        if let Some(kept) = self.good(want, at) {
            tracing::warn!(%error, "what the server serves cannot be read anew: what is known is used on");
            return Ok(kept);
        }
        let copy = self.shared_failure(Want { shares_failure_from: number, ..want });
        Err(copy.unwrap_or_else(|| Error::new(error.kind(), error.to_string())))
    }
}

impl fmt::Debug for Cache {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = self.state.lock();
        f.debug_struct("Cache")
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
