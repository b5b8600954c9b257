//! client-go's rate limiters, under client-go's names: the delay of a key's next try.
//!
//! A queue has a [`RetryPolicy`](windlass_runtime::workqueue::RetryPolicy) of its own, which suits
//! operators: the state of a key is in the key's slot and is dropped with the slot. A limiter
//! serves cases that a policy cannot express, such as a limit over all keys; a
//! [`RateLimitingQueue`](super::RateLimitingQueue) uses one. A limiter keeps an entry per failing
//! key until [`forget`](RateLimiter::forget).
//!
//! Locks: each limiter has a lock, held for a map access or a subtraction and never while another
//! limiter is called.

use std::collections::HashMap;
use std::fmt::{self, Debug};
use std::hash::Hash;
use std::time::Duration;

use tokio::time::Instant;

use windlass_core::clock::Clock;
use windlass_core::sync::Mutex;

/// Decides the delay of a key's next try: client-go's `TypedRateLimiter`.
///
/// A limiter of your own decides by any rule and must not block, because the queue calls it on the
/// task that adds the key:
///
/// ```
/// # extern crate windlass_fifo as windlass;
/// use std::time::Duration;
/// use windlass::fifo::RateLimiter;
///
/// /// The same delay for every try; remembers nothing.
/// #[derive(Debug)]
/// struct Constant(Duration);
///
/// impl RateLimiter<String> for Constant {
///     fn when(&self, _: &String) -> Duration {
///         self.0
///     }
///     fn forget(&self, _: &String) {}
///     fn num_requeues(&self, _: &String) -> u32 {
///         0
///     }
/// }
/// let limiter = Constant(Duration::from_secs(5));
/// assert_eq!(limiter.when(&"home".to_owned()), Duration::from_secs(5));
/// ```
pub trait RateLimiter<T>: Debug + Send + Sync {
    /// Returns the delay of `key` and counts one more try of the key.
    ///
    /// Zero means at once.
    fn when(&self, key: &T) -> Duration;

    /// Forgets the tries of `key`: the key succeeded, or will not be tried again.
    ///
    /// Without this call the entry of a key stays for ever: call `forget` after each success and
    /// each surrender.
    fn forget(&self, key: &T);

    /// Returns the number of calls of [`when`](Self::when) for `key` since `key` was last
    /// forgotten.
    ///
    /// For a limit on the number of tries. Zero for limiters that keep no keys.
    fn num_requeues(&self, key: &T) -> u32;
}

/// Tries per key.
struct Tries<T>(Mutex<HashMap<T, u32>>);

impl<T: Hash + Eq + Clone> Tries<T> {
    /// Creates an empty map.
    fn new() -> Self {
        // No code iterates over the map, so the map's random order is never visible.
        Self(Mutex::new(HashMap::new()))
    }

    /// Counts a try; returns the number of tries before this try.
    fn next(&self, key: &T) -> u32 {
        let mut tries = self.0.lock();
        // Looked up by reference first: only a new key is cloned.
        match tries.get_mut(key) {
            Some(count) => {
                let before = *count;
                *count = count.saturating_add(1);
                before
            }
            None => {
                tries.insert(key.clone(), 1);
                0
            }
        }
    }

    /// Drops the entry of a key.
    fn forget(&self, key: &T) {
        self.0.lock().remove(key);
    }

    /// Number of tries of a key.
    fn count(&self, key: &T) -> u32 {
        self.0.lock().get(key).copied().unwrap_or(0)
    }
}

impl<T> Debug for Tries<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} keys", self.0.lock().len())
    }
}

/// `base` × 2^tries, at most `max`; each key apart. Without jitter, as in client-go.
///
/// ```
/// # extern crate windlass_fifo as windlass;
/// use std::time::Duration;
/// use windlass::fifo::{ItemExponentialFailureRateLimiter, RateLimiter};
///
/// let (base, max) = (Duration::from_millis(5), Duration::from_millis(15));
/// let limiter = ItemExponentialFailureRateLimiter::new(base, max);
/// let delays: Vec<_> = (0..4).map(|_| limiter.when(&"home").as_millis()).collect();
/// assert_eq!(delays, [5, 10, 15, 15]);
/// limiter.forget(&"home");
/// assert_eq!(limiter.num_requeues(&"home"), 0);
/// ```
#[derive(Debug)]
pub struct ItemExponentialFailureRateLimiter<T> {
    /// Delay of the first retry.
    base: Duration,
    /// Largest delay.
    max: Duration,
    /// Tries of each key.
    tries: Tries<T>,
}

impl<T: Hash + Eq + Clone> ItemExponentialFailureRateLimiter<T> {
    /// Returns a limiter with delays from `base` to `max`.
    pub fn new(base: Duration, max: Duration) -> Self {
        Self { base, max, tries: Tries::new() }
    }
}

impl<T: Hash + Eq + Clone + Debug + Send> RateLimiter<T> for ItemExponentialFailureRateLimiter<T> {
    fn when(&self, key: &T) -> Duration {
        let before = self.tries.next(key);
        let base = self.base.as_nanos();
        // Caps the exponent: a shift by 128 or more would overflow.
        let nanos = if before < 64 { base.saturating_mul(1 << before) } else { base << 64 };
        let seconds = u64::try_from(nanos / 1_000_000_000).unwrap_or(u64::MAX);
        Duration::new(seconds, (nanos % 1_000_000_000) as u32).min(self.max)
    }

    fn forget(&self, key: &T) {
        self.tries.forget(key);
    }

    fn num_requeues(&self, key: &T) -> u32 {
        self.tries.count(key)
    }
}

/// `fast` for the first tries of a key, `slow` for all later tries.
///
/// ```
/// # extern crate windlass_fifo as windlass;
/// use std::time::Duration;
/// use windlass::fifo::{ItemFastSlowRateLimiter, RateLimiter};
///
/// let (fast, slow) = (Duration::from_millis(100), Duration::from_secs(60));
/// let limiter = ItemFastSlowRateLimiter::new(fast, slow, 2);
/// let delays: Vec<_> = (0..3).map(|_| limiter.when(&"home")).collect();
/// assert_eq!(delays, [fast, fast, slow]);
/// ```
#[derive(Debug)]
pub struct ItemFastSlowRateLimiter<T> {
    /// Delay of the first tries.
    fast: Duration,
    /// Delay of the later tries.
    slow: Duration,
    /// Number of fast tries.
    most_fast: u32,
    /// Tries of each key.
    tries: Tries<T>,
}

impl<T: Hash + Eq + Clone> ItemFastSlowRateLimiter<T> {
    /// Returns a limiter with the delay `fast` for `most_fast` tries, then `slow`.
    pub fn new(fast: Duration, slow: Duration, most_fast: u32) -> Self {
        Self { fast, slow, most_fast, tries: Tries::new() }
    }
}

impl<T: Hash + Eq + Clone + Debug + Send> RateLimiter<T> for ItemFastSlowRateLimiter<T> {
    fn when(&self, key: &T) -> Duration {
        if self.tries.next(key) < self.most_fast { self.fast } else { self.slow }
    }

    fn forget(&self, key: &T) {
        self.tries.forget(key);
    }

    fn num_requeues(&self, key: &T) -> u32 {
        self.tries.count(key)
    }
}

/// A token bucket over all keys together: a number of tries per second, and a burst on top.
///
/// golang.org/x/time/rate's `Limiter` behind client-go's interface. The bucket keeps no keys:
/// `forget` has no effect.
///
/// ```
/// # extern crate windlass_fifo as windlass;
/// use std::time::Duration;
/// use windlass::clock::Clock;
/// use windlass::fifo::{BucketRateLimiter, RateLimiter};
///
/// let limiter = BucketRateLimiter::new(10.0, 1, Clock::system());
/// assert_eq!(limiter.when(&"home"), Duration::ZERO);
/// assert!(limiter.when(&"shop") > Duration::ZERO, "the burst is used up");
/// ```
#[derive(Debug)]
pub struct BucketRateLimiter {
    /// Time per token.
    token_interval: Duration,
    /// Tokens that the full bucket holds.
    burst: u32,
    /// Clock by which tokens are added.
    clock: Clock,
    /// Time at which the bucket was, or will be, empty and without debt.
    empty: Mutex<Instant>,
}

impl BucketRateLimiter {
    /// Returns a limiter of `per_second` tries a second with bursts of `burst`, at least 1; the
    /// bucket begins full. A rate that is below one try in a thousand seconds, or is not a number,
    /// counts as that.
    pub fn new(per_second: f64, burst: u32, clock: Clock) -> Self {
        let rate = if per_second > 0.001 { per_second } else { 0.001 };
        let token_interval = Duration::from_secs_f64(1.0 / rate);
        let burst = burst.max(1);
        let full = token_interval.saturating_mul(burst);
        let now = clock.now();
        let empty = Mutex::new(now.checked_sub(full).unwrap_or(now));
        Self { token_interval, burst, clock, empty }
    }
}

impl<T> RateLimiter<T> for BucketRateLimiter {
    fn when(&self, _: &T) -> Duration {
        let now = self.clock.now();
        let mut empty = self.empty.lock();
        // A bucket holds at most a burst, however long the limiter was unused.
        let full =
            now.checked_sub(self.token_interval.saturating_mul(self.burst)).unwrap_or(*empty);
        *empty = (*empty).max(full) + self.token_interval;
        empty.saturating_duration_since(now)
    }

    fn forget(&self, _: &T) {}

    fn num_requeues(&self, _: &T) -> u32 {
        0
    }
}

/// The longest wait that any of several limiters asks for.
///
/// Each limiter counts the try, also those whose delay is not the longest.
#[derive(Debug)]
pub struct MaxOfRateLimiter<T> {
    /// Asked in order, in sequence.
    limiters: Vec<Box<dyn RateLimiter<T>>>,
}

impl<T> MaxOfRateLimiter<T> {
    /// Returns a limiter that asks all of `limiters` every time.
    pub fn new(limiters: Vec<Box<dyn RateLimiter<T>>>) -> Self {
        Self { limiters }
    }
}

impl<T: Debug> RateLimiter<T> for MaxOfRateLimiter<T> {
    fn when(&self, key: &T) -> Duration {
        self.limiters.iter().map(|limiter| limiter.when(key)).max().unwrap_or_default()
    }

    fn forget(&self, key: &T) {
        for limiter in &self.limiters {
            limiter.forget(key);
        }
    }

    fn num_requeues(&self, key: &T) -> u32 {
        self.limiters.iter().map(|limiter| limiter.num_requeues(key)).max().unwrap_or(0)
    }
}

/// The delay of another limiter, cut off at `max`.
///
/// The inner limiter counts as without the bound, so the delay after a
/// [`forget`](RateLimiter::forget) is the same.
#[derive(Debug)]
pub struct WithMaxWaitRateLimiter<T> {
    /// Limiter whose delay is cut off.
    limiter: Box<dyn RateLimiter<T>>,
    /// Largest delay.
    max: Duration,
}

impl<T> WithMaxWaitRateLimiter<T> {
    /// Returns `limiter`, cut off at `max`.
    pub fn new(limiter: Box<dyn RateLimiter<T>>, max: Duration) -> Self {
        Self { limiter, max }
    }
}

impl<T: Debug> RateLimiter<T> for WithMaxWaitRateLimiter<T> {
    fn when(&self, key: &T) -> Duration {
        self.limiter.when(key).min(self.max)
    }

    fn forget(&self, key: &T) {
        self.limiter.forget(key);
    }

    fn num_requeues(&self, key: &T) -> u32 {
        self.limiter.num_requeues(key)
    }
}

/// Returns client-go's `DefaultTypedControllerRateLimiter`: 5 ms doubling to 1000 s per key, and 10
/// tries a second with bursts of 100 over all keys.
///
/// The burst of 100 lets the objects that are found at the start through at once.
pub fn default_controller_rate_limiter<T>(clock: Clock) -> MaxOfRateLimiter<T>
where
    T: Hash + Eq + Clone + Debug + Send + 'static,
{
    MaxOfRateLimiter::new(vec![
        Box::new(ItemExponentialFailureRateLimiter::new(
            Duration::from_millis(5),
            Duration::from_secs(1000),
        )),
        Box::new(BucketRateLimiter::new(10.0, 100, clock)),
    ])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn millis(
        limiter: &impl RateLimiter<&'static str>,
        key: &'static str,
        times: usize,
    ) -> Vec<u128> {
        (0..times).map(|_| limiter.when(&key).as_millis()).collect()
    }

    #[test]
    fn the_exponential_limiter_doubles_per_key_up_to_its_maximum_until_forgotten() {
        let (base, max) = (Duration::from_millis(1), Duration::from_secs(1));
        let limiter = ItemExponentialFailureRateLimiter::new(base, max);
        assert_eq!(millis(&limiter, "one", 5), [1, 2, 4, 8, 16]);
        assert_eq!(limiter.num_requeues(&"one"), 5);
        assert_eq!(millis(&limiter, "two", 2), [1, 2]);
        limiter.forget(&"one");
        assert_eq!((limiter.num_requeues(&"one"), limiter.num_requeues(&"two")), (0, 2));
        assert_eq!(millis(&limiter, "one", 70)[69], 1000, "no overflow");
    }

    #[test]
    fn the_fast_slow_limiter_turns_slow_after_its_fast_tries() {
        let (fast, slow) = (Duration::from_millis(5), Duration::from_secs(10));
        let limiter = ItemFastSlowRateLimiter::new(fast, slow, 3);
        assert_eq!(millis(&limiter, "one", 5), [5, 5, 5, 10_000, 10_000]);
        assert_eq!(limiter.num_requeues(&"one"), 5);
        limiter.forget(&"one");
        assert_eq!(millis(&limiter, "one", 1), [5]);
    }

    #[tokio::test(start_paused = true)]
    async fn the_bucket_lets_a_burst_through_and_then_a_steady_rate() {
        let limiter = BucketRateLimiter::new(10.0, 3, Clock::system());
        assert_eq!(millis(&limiter, "any", 5), [0, 0, 0, 100, 200]);
        tokio::time::advance(Duration::from_secs(60)).await;
        assert_eq!(millis(&limiter, "any", 4), [0, 0, 0, 100], "no more than a burst is saved");
        assert_eq!(RateLimiter::num_requeues(&limiter, &"any"), 0);
    }

    #[tokio::test(start_paused = true)]
    async fn the_longest_wait_wins_and_a_maximum_cuts_it() {
        let clock = Clock::system();
        let limiter = default_controller_rate_limiter::<&'static str>(clock);
        assert_eq!(millis(&limiter, "one", 5), [5, 10, 20, 40, 80]);
        for _ in 0..95 {
            limiter.when(&"other");
        }
        assert_eq!(millis(&limiter, "third", 1), [100], "the bucket is empty");
        assert_eq!(limiter.num_requeues(&"one"), 5);
        limiter.forget(&"one");
        assert_eq!(limiter.num_requeues(&"one"), 0);

        let slow = Duration::from_secs(9);
        let inner = ItemFastSlowRateLimiter::new(slow, slow, 0);
        let limiter = WithMaxWaitRateLimiter::new(Box::new(inner), Duration::from_secs(1));
        assert_eq!(millis(&limiter, "one", 1), [1000]);
        assert_eq!(limiter.num_requeues(&"one"), 1);
    }
}
