//! Limits the rate of requests on the client's side.
//!
//! Off unless a client is given one: API servers have priority and fairness, which know more. A
//! permit is awaited before each attempt; watches need none. Permits are given in the order in which
//! they were asked for.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

use crate::clock::Clock;
use crate::error::{Error, ErrorKind};

/// What [`RateLimiter::accept`] resolves to.
pub type Permit<'a> = Pin<Box<dyn Future<Output = Result<(), Error>> + Send + 'a>>;

/// Gives out permits to send. One limiter may serve several clients.
pub trait RateLimiter: fmt::Debug + Send + Sync + 'static {
    /// Takes a permit if there is one now.
    fn try_accept(&self) -> bool;

    /// Waits for a permit.
    ///
    /// # Errors
    /// At once, without taking a permit, when none can come before `deadline`; the text names the
    /// limit, the wait and the deadline.
    /// # Cancel safety
    /// Dropping it while it waits takes no permit from those who come later.
    fn accept(&self, deadline: Option<Instant>) -> Permit<'_>;

    /// Permits a second, in the long run.
    fn qps(&self) -> f64;
}

/// Gives `burst` permits at once and `qps` a second in the long run.
pub struct TokenBucket {
    qps: f64,
    burst: u32,
    clock: Clock,
    bucket: Mutex<Bucket>,
}

/// Permits are counted from a moment at which the bucket was full, so that no rounding adds up.
struct Bucket {
    full_at: Instant,
    used: u64,
}

/// A permit that is due later.
struct Reservation<'a> {
    owner: &'a TokenBucket,
    number: u64,
    full_at: Instant,
    due: Instant,
    kept: bool,
}

impl TokenBucket {
    /// A full bucket. A `qps` that is not above zero never refills; a `burst` of 0 counts as 1.
    pub fn new(qps: f64, burst: u32, clock: Clock) -> Self {
        let bucket = Mutex::new(Bucket { full_at: clock.now(), used: 0 });
        Self { qps: if qps > 0.0 { qps } else { 0.0 }, burst: burst.max(1), clock, bucket }
    }

    /// Takes the next permit, if it is due by `deadline`.
    fn reserve(&self, deadline: Option<Instant>) -> Result<Reservation<'_>, Option<Duration>> {
        let now = self.clock.now();
        let mut bucket = self.bucket.lock();
        if self.after(bucket.full_at, bucket.used).is_some_and(|full| full <= now) {
            *bucket = Bucket { full_at: now, used: 0 };
        }
        let number = bucket.used;
        let late = (number + 1).saturating_sub(u64::from(self.burst));
        let due = self.after(bucket.full_at, late).ok_or(None)?.max(now);
        if deadline.is_some_and(|deadline| due > deadline) {
            return Err(Some(due - now));
        }
        bucket.used += 1;
        Ok(Reservation { owner: self, number, full_at: bucket.full_at, due, kept: false })
    }

    /// When `permits` have been refilled since `from`; `None` for never.
    fn after(&self, from: Instant, permits: u64) -> Option<Instant> {
        if permits == 0 {
            return Some(from);
        }
        let wait = Duration::try_from_secs_f64(permits as f64 / self.qps).ok()?;
        from.checked_add(wait)
    }
}

impl Drop for Reservation<'_> {
    fn drop(&mut self) {
        let mut bucket = self.owner.bucket.lock();
        // Those who came later have their moments already; only the last can be taken back.
        if !self.kept && bucket.full_at == self.full_at && bucket.used == self.number + 1 {
            bucket.used -= 1;
        }
    }
}

impl RateLimiter for TokenBucket {
    fn try_accept(&self) -> bool {
        match self.reserve(Some(self.clock.now())) {
            Ok(mut reservation) => {
                reservation.kept = true;
                true
            }
            Err(_) => false,
        }
    }

    fn accept(&self, deadline: Option<Instant>) -> Permit<'_> {
        Box::pin(async move {
            let mut reservation = self.reserve(deadline).map_err(|wait| {
                let wait = wait.map_or("never comes".to_owned(), |wait| {
                    format!("comes in {:.1} s", wait.as_secs_f64())
                });
                let left = deadline.map_or(0.0, |deadline| {
                    deadline.saturating_duration_since(self.clock.now()).as_secs_f64()
                });
                let text = format!(
                    "the next permit of the client's rate limit ({} a second, {} at once) {wait}, \
                     and the deadline is in {left:.1} s; raise the limit or the timeout",
                    self.qps, self.burst
                );
                Error::new(ErrorKind::Timeout, text)
            })?;
            if reservation.due > self.clock.now() {
                self.clock.sleep_until(reservation.due).await;
            }
            reservation.kept = true;
            Ok(())
        })
    }

    fn qps(&self) -> f64 {
        self.qps
    }
}

impl fmt::Debug for TokenBucket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TokenBucket")
            .field("qps", &self.qps)
            .field("burst", &self.burst)
            .finish_non_exhaustive()
    }
}

/// No limit.
#[derive(Clone, Copy, Debug)]
pub struct AlwaysAllow;

impl RateLimiter for AlwaysAllow {
    fn try_accept(&self) -> bool {
        true
    }

    fn accept(&self, _: Option<Instant>) -> Permit<'_> {
        Box::pin(async { Ok(()) })
    }

    fn qps(&self) -> f64 {
        f64::INFINITY
    }
}

/// Refuses everything: for tests.
#[derive(Clone, Copy, Debug)]
pub struct NeverAllow;

impl RateLimiter for NeverAllow {
    fn try_accept(&self) -> bool {
        false
    }

    fn accept(&self, _: Option<Instant>) -> Permit<'_> {
        let text = "the client's rate limiter allows no request at all";
        Box::pin(async move { Err(Error::new(ErrorKind::Timeout, text)) })
    }

    fn qps(&self) -> f64 {
        0.0
    }
}

/// How loud a line about a long wait may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Loudness {
    Info,
    Debug,
    Silent,
}

/// Keeps lines about long waits few: at INFO one in ten seconds, at DEBUG one a second.
#[derive(Debug, Default)]
pub(super) struct ThrottledLog {
    info: Option<Instant>,
    debug: Option<Instant>,
}

impl ThrottledLog {
    const INFO: Duration = Duration::from_secs(10);
    const DEBUG: Duration = Duration::from_secs(1);

    pub(super) fn admit(&mut self, now: Instant) -> Loudness {
        let passed = |last: Option<Instant>, pause| last.is_none_or(|last| now >= last + pause);
        if passed(self.info, Self::INFO) {
            (self.info, self.debug) = (Some(now), Some(now));
            return Loudness::Info;
        }
        if passed(self.debug, Self::DEBUG) {
            self.debug = Some(now);
            return Loudness::Debug;
        }
        Loudness::Silent
    }
}
