//! Client-side rate limits.
//!
//! A client has no limit by default: API Priority and Fairness limits requests with knowledge of
//! the server's load. An attempt waits for a permit before sending; watches need none. Permits are
//! granted in the order of the requests for them, but the next caller takes a permit that a
//! cancelled waiter returned.

use std::collections::BTreeSet;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;
use tracing::Level;

use windlass_core::clock::Clock;
use windlass_core::error::{Error, ErrorKind};

/// Future of [`RequestLimiter::accept`].
pub type Permit<'a> = Pin<Box<dyn Future<Output = Result<(), Error>> + Send + 'a>>;

/// Source of permits to send. A limiter may serve several clients.
///
/// Waits of requests are recorded in `rest_client_rate_limiter_duration_seconds`.
pub trait RequestLimiter: fmt::Debug + Send + Sync + 'static {
    /// Takes a permit if one is available now; returns whether a permit was taken.
    fn try_accept(&self) -> bool;

    /// Waits for a permit.
    ///
    /// # Errors
    /// At once, without taking a permit, when none can be granted by `deadline`; the text names
    /// the limit, the wait and the deadline.
    /// # Cancel safety
    /// Dropping the future during the wait takes no permit from later callers.
    fn accept(&self, deadline: Option<Instant>) -> Permit<'_>;

    /// Returns the permits per second, in the long run.
    fn qps(&self) -> f64;
}

/// Rate limiter that grants `burst` permits at once and `qps` a second in the long run.
///
/// ```no_run
/// # extern crate windlass_client as windlass;
/// use windlass::client::{RequestLimiter, TokenBucket};
/// use windlass::clock::Clock;
///
/// let bucket = TokenBucket::new(5.0, 2, Clock::system());
/// assert!(bucket.try_accept() && bucket.try_accept());
/// // The burst is used up; the next permit comes in 200 ms.
/// assert!(!bucket.try_accept());
/// ```
pub struct TokenBucket {
    qps: f64,
    burst: u32,
    clock: Clock,
    /// Locked only briefly: waiters sleep outside of the lock.
    bucket: Mutex<Bucket>,
}

/// State of a bucket. Permits are counted from an instant at which the bucket was full, so that
/// rounding errors do not add up.
struct Bucket {
    /// Instant at which the bucket was full.
    full_at: Instant,
    /// Permits taken since then.
    used: u64,
    /// Numbers below `used` that cancelled waiters returned; at most the number of concurrent
    /// waiters.
    returned: BTreeSet<u64>,
}

impl Bucket {
    /// A bucket that is full at `at`.
    fn full(at: Instant) -> Self {
        Self { full_at: at, used: 0, returned: BTreeSet::new() }
    }
}

/// A permit that is due later; returned when dropped before it is used.
struct Reservation<'a> {
    owner: &'a TokenBucket,
    /// Number of the permit since the bucket was full.
    number: u64,
    full_at: Instant,
    /// Instant from which the permit may be used.
    due: Instant,
    /// Whether the permit was used, so that the drop does not return the permit.
    used: bool,
}

impl TokenBucket {
    /// Creates a full bucket. A `qps` that is not above zero never refills; a `burst` of 0 counts
    /// as 1.
    pub fn new(qps: f64, burst: u32, clock: Clock) -> Self {
        let bucket = Mutex::new(Bucket::full(clock.now()));
        Self { qps: if qps > 0.0 { qps } else { 0.0 }, burst: burst.max(1), clock, bucket }
    }

    /// Reserves the next permit, if the permit is due by `deadline`; the error is the wait, `None`
    /// for ever.
    fn reserve(&self, deadline: Option<Instant>) -> Result<Reservation<'_>, Option<Duration>> {
        let now = self.clock.now();
        let mut bucket = self.bucket.lock();
        // A bucket that has refilled completely begins to count anew, which keeps numbers small.
        if self.refilled_at(bucket.full_at, bucket.used).is_some_and(|full| full <= now) {
            *bucket = Bucket::full(now);
        }
        // Returned permits beyond a full burst are dropped.
        let refilled = now.saturating_duration_since(bucket.full_at).as_secs_f64() * self.qps;
        if !bucket.returned.is_empty() {
            bucket.returned = bucket.returned.split_off(&(refilled as u64));
        }
        let number = bucket.returned.first().copied().unwrap_or(bucket.used);
        // The first `burst` permits are due at once.
        let late = (number + 1).saturating_sub(u64::from(self.burst));
        let due = self.refilled_at(bucket.full_at, late).ok_or(None)?.max(now);
        // Refused before a permit is taken, so that waiting callers lose nothing.
        if deadline.is_some_and(|deadline| due > deadline) {
            return Err(Some(due - now));
        }
        if !bucket.returned.remove(&number) {
            bucket.used += 1;
        }
        Ok(Reservation { owner: self, number, full_at: bucket.full_at, due, used: false })
    }

    /// Returns the instant at which `permits` have been refilled since `from`; `None` for never.
    fn refilled_at(&self, from: Instant, permits: u64) -> Option<Instant> {
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
        // Waiters behind this reservation keep their due times; the next caller takes the returned
        // permit.
        if !self.used && bucket.full_at == self.full_at {
            bucket.returned.insert(self.number);
        }
    }
}

impl RequestLimiter for TokenBucket {
    fn try_accept(&self) -> bool {
        match self.reserve(Some(self.clock.now())) {
            Ok(mut reservation) => {
                reservation.used = true;
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
                let deadline = deadline.map_or_else(String::new, |deadline| {
                    let left = deadline.saturating_duration_since(self.clock.now());
                    format!(", and the deadline is in {:.1} s", left.as_secs_f64())
                });
                let text = format!(
                    "the next permit of the client's rate limit ({} a second, {} at once) \
                     {wait}{deadline}; raise the limit or the timeout",
                    self.qps, self.burst
                );
                Error::new(ErrorKind::Timeout, text)
            })?;
            // Dropped during the sleep, the reservation returns the permit.
            if reservation.due > self.clock.now() {
                self.clock.sleep_until(reservation.due).await;
            }
            reservation.used = true;
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

/// Rate limiter without a limit.
///
/// Switches the limit of a client off for a single [request](crate::client::Request::throttle).
#[derive(Clone, Copy, Debug)]
pub struct AlwaysAllow;

impl RequestLimiter for AlwaysAllow {
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

/// Rate limiter that refuses every request, for tests.
#[derive(Clone, Copy, Debug)]
pub struct NeverAllow;

impl RequestLimiter for NeverAllow {
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

/// Limiter of log lines about long waits: at INFO one line in ten seconds, at DEBUG one line a
/// second.
#[derive(Debug, Default)]
pub(in crate::client) struct ThrottledLog {
    info: Option<Instant>,
    debug: Option<Instant>,
}

impl ThrottledLog {
    const INFO: Duration = Duration::from_secs(10);
    const DEBUG: Duration = Duration::from_secs(1);

    /// Returns the level at which a line may be logged now; `None` if at no level.
    pub(in crate::client) fn admit(&mut self, now: Instant) -> Option<Level> {
        let passed = |last: Option<Instant>, pause| last.is_none_or(|last| now >= last + pause);
        if passed(self.info, Self::INFO) {
            (self.info, self.debug) = (Some(now), Some(now));
            return Some(Level::INFO);
        }
        if passed(self.debug, Self::DEBUG) {
            self.debug = Some(now);
            return Some(Level::DEBUG);
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn bucket(qps: f64, burst: u32) -> Arc<TokenBucket> {
        Arc::new(TokenBucket::new(qps, burst, Clock::system()))
    }

    /// Upstream: `TestBasicThrottle`.
    #[tokio::test(start_paused = true)]
    async fn mechanism_10_a_bucket_gives_its_burst_at_once_and_then_nothing() {
        let bucket = bucket(1.0, 3);
        for _ in 0..3 {
            assert!(bucket.try_accept());
        }
        assert!(!bucket.try_accept());
        tokio::time::advance(SECOND).await;
        assert!(bucket.try_accept() && !bucket.try_accept());
        tokio::time::advance(SECOND * 100).await;
        let taken = (0..100).filter(|_| bucket.try_accept()).count();
        assert_eq!(taken, 3, "no more than the burst is saved up");
        assert_eq!(bucket.qps(), 1.0);
    }

    /// Upstream: `TestThrottle`.
    #[tokio::test(start_paused = true)]
    async fn mechanism_10_beyond_the_burst_permits_come_at_the_steady_rate() {
        let bucket = bucket(10.0, 5);
        let started = Instant::now();
        let mut times = Vec::new();
        for _ in 0..10 {
            bucket.accept(None).await.unwrap();
            // tokio's timer ticks each millisecond.
            times.push((started.elapsed().as_millis() + 5) / 10 * 10);
        }
        assert_eq!(times, [0, 0, 0, 0, 0, 100, 200, 300, 400, 500]);
    }

    /// Upstream: `TestMultithreadedThrottling`.
    #[tokio::test(start_paused = true)]
    async fn mechanism_10_parallel_takers_never_exceed_the_rate_and_go_in_order() {
        let bucket = bucket(100.0, 1);
        let started = Instant::now();
        let taken = Arc::new(Mutex::new(Vec::new()));
        let tasks: Vec<_> = (0..300)
            .map(|i| {
                let (bucket, taken) = (Arc::clone(&bucket), Arc::clone(&taken));
                tokio::spawn(async move {
                    bucket.accept(None).await.unwrap();
                    taken.lock().push((i, started.elapsed()));
                })
            })
            .collect();
        for task in tasks {
            task.await.unwrap();
        }
        let taken = taken.lock();
        for (n, (i, at)) in taken.iter().enumerate() {
            assert_eq!(n, *i);
            assert!(*at >= Duration::from_millis(10) * n as u32, "{n} came at {at:?}");
        }
        assert!(started.elapsed() < SECOND * 3);
    }

    /// Upstream: `TestWait`.
    #[tokio::test(start_paused = true)]
    async fn mechanism_10_a_deadline_shorter_than_the_wait_is_an_error_at_once_and_costs_nothing() {
        let bucket = bucket(1.0, 1);
        bucket.accept(None).await.unwrap();
        let started = Instant::now();
        for _ in 0..5 {
            let error = bucket.accept(Some(started + SECOND / 2)).await.unwrap_err();
            let text = error.to_string();
            assert!(text.contains("(1 a second, 1 at once) comes in 1.0 s"), "{text}");
            assert!(text.contains("the deadline is in 0.5 s"), "{text}");
        }
        assert_eq!(started.elapsed(), Duration::ZERO);
        bucket.accept(Some(started + SECOND)).await.unwrap();
        assert_eq!(started.elapsed(), SECOND);
    }

    #[tokio::test(start_paused = true)]
    async fn mechanism_10_a_cancelled_waiter_takes_no_permit_from_later_callers() {
        let bucket = bucket(1.0, 1);
        bucket.accept(None).await.unwrap();
        let started = Instant::now();
        for _ in 0..10 {
            let gave_up = tokio::time::timeout(Duration::ZERO, bucket.accept(None)).await;
            assert!(gave_up.is_err());
        }
        bucket.accept(None).await.unwrap();
        assert!(started.elapsed() < SECOND + SECOND / 100, "{:?}", started.elapsed());
    }

    #[tokio::test(start_paused = true)]
    async fn mechanism_10_waiters_cancelled_in_any_order_cost_later_callers_nothing() {
        let bucket = bucket(1.0, 2);
        assert!(bucket.try_accept() && bucket.try_accept());
        let started = Instant::now();
        let mut waiting: Vec<_> = (0..20).map(|_| Box::pin(bucket.accept(None))).collect();
        for one in &mut waiting {
            let mut cx = std::task::Context::from_waker(std::task::Waker::noop());
            assert!(one.as_mut().poll(&mut cx).is_pending());
        }
        // The next caller gets the permit of the first waiter; the last waiter keeps its due time.
        let last = waiting.pop().unwrap();
        drop(waiting);
        bucket.accept(None).await.unwrap();
        assert!(started.elapsed() < SECOND + SECOND / 100, "{:?}", started.elapsed());
        last.await.unwrap();
        // Returned permits fill no more than a burst, however long no caller came.
        let bucket = self::bucket(1.0, 2);
        assert!(bucket.try_accept() && bucket.try_accept());
        let mut waiting: Vec<_> = (0..20).map(|_| Box::pin(bucket.accept(None))).collect();
        for one in &mut waiting {
            let mut cx = std::task::Context::from_waker(std::task::Waker::noop());
            assert!(one.as_mut().poll(&mut cx).is_pending());
        }
        drop(waiting);
        tokio::time::advance(SECOND * 15).await;
        assert_eq!((0..20).filter(|_| bucket.try_accept()).count(), 2);
    }

    /// Upstream: `TestRatePrecisionBug`.
    #[tokio::test(start_paused = true)]
    async fn mechanism_10_no_rounding_of_time_adds_up() {
        let bucket = bucket(3.0, 1);
        let from = bucket.bucket.lock().full_at;
        for n in 1..=3_000_000_u64 {
            let due = bucket.refilled_at(from, n).unwrap() - from;
            if n % 3 == 0 {
                assert_eq!(due.as_secs_f64(), (n / 3) as f64, "{n}");
            }
        }
        // Taken in sequence on the clock: 3000 permits come in 1000 s.
        let started = Instant::now();
        for _ in 0..3001 {
            bucket.accept(None).await.unwrap();
        }
        assert!(started.elapsed().abs_diff(SECOND * 1000) <= Duration::from_millis(2));
    }

    #[tokio::test(start_paused = true)]
    async fn mechanism_10_odd_rates_never_panic() {
        for qps in [0.0, -1.0, f64::NAN, f64::MIN_POSITIVE] {
            let bucket = bucket(qps, 0);
            assert!(bucket.try_accept() && !bucket.try_accept(), "{qps}");
            let error = bucket.accept(Some(Instant::now() + SECOND)).await.unwrap_err();
            assert!(error.to_string().contains("never comes"), "{error}");
        }
        let bucket = bucket(f64::INFINITY, 1);
        for _ in 0..100 {
            bucket.accept(None).await.unwrap();
        }
    }

    #[tokio::test(start_paused = true)]
    async fn mechanism_10_always_and_never() {
        assert!(AlwaysAllow.try_accept() && AlwaysAllow.accept(None).await.is_ok());
        assert!(!NeverAllow.try_accept() && NeverAllow.accept(None).await.is_err());
    }

    /// Upstream: `TestThrottledLogger`.
    #[tokio::test(start_paused = true)]
    async fn mechanism_10_lines_about_waits_are_few() {
        let mut log = ThrottledLog::default();
        let mut loud = [0, 0];
        for _ in 0..600 {
            match log.admit(Instant::now()) {
                Some(Level::INFO) => loud[0] += 1,
                Some(_) => loud[1] += 1,
                None => {}
            }
            tokio::time::advance(Duration::from_millis(100)).await;
        }
        assert_eq!(loud, [6, 54], "a minute: one each ten seconds, one each second");
    }
}
