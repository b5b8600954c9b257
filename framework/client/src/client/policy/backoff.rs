//! Waits that grow with each failure, and the backoff manager, which has a wait per host.
//!
//! A backoff manager adds to the client's own jittered retries, and is off unless the builder or
//! the environment variables that client-go reads set it.

// DESIGN.md, 119: Parts that look superfluous and stay

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use http::Uri;
use parking_lot::Mutex;
use tokio::time::Instant;

use windlass_core::clock::Clock;
use windlass_core::rng::Rng;

/// Variable with the first wait, in whole seconds.
const ENV_BASE: &str = "KUBE_CLIENT_BACKOFF_BASE";
/// Variable with the longest wait, in whole seconds.
const ENV_MAX: &str = "KUBE_CLIENT_BACKOFF_DURATION";
/// Largest number of ids; beyond this number unused ids are dropped, then the first.
const MANY: usize = 1024;

/// Waits per id: doubled by each failure up to a bound, and forgotten when an id was not seen for
/// twice the bound.
///
/// At most 1024 ids are remembered.
///
/// ```no_run
/// # extern crate windlass_client as windlass;
/// use std::time::Duration;
/// use windlass::client::Backoff;
/// use windlass::clock::Clock;
///
/// let clock = Clock::system();
/// let waits = Backoff::new(Duration::from_secs(1), Duration::from_secs(10), clock.clone());
/// waits.next("a", clock.now());
/// waits.next("a", clock.now());
/// assert_eq!(waits.get("a"), Duration::from_secs(2));
/// waits.reset("a");
/// assert_eq!(waits.get("a"), Duration::ZERO);
/// ```
pub struct Backoff {
    /// First wait.
    base: Duration,
    /// Longest wait.
    max: Duration,
    /// Largest random part, as a factor of the last wait, and the source of randomness.
    jitter: Option<(f64, Rng)>,
    clock: Clock,
    /// Waits by id.
    entries: Mutex<BTreeMap<String, BackoffEntry>>,
}

/// State of an id.
#[derive(Clone, Copy, Debug)]
struct BackoffEntry {
    /// Current wait, jitter included.
    wait: Duration,
    /// Instant of the last failure.
    updated: Instant,
}

impl Backoff {
    /// Creates waits that begin with `base` and are at most `max`.
    pub fn new(base: Duration, max: Duration, clock: Clock) -> Self {
        Self { base, max, jitter: None, clock, entries: Mutex::default() }
    }

    /// Adds a random time of up to `factor` times the last wait.
    ///
    /// Default: none. A `factor` of zero or less means none. The sum never exceeds the bound.
    #[must_use]
    pub fn with_jitter(mut self, factor: f64, rng: Rng) -> Self {
        self.jitter = (factor > 0.0).then_some((factor, rng));
        self
    }

    /// Returns the wait that `id` has reached; zero without a failure.
    pub fn get(&self, id: &str) -> Duration {
        self.entries.lock().get(id).map_or(Duration::ZERO, |entry| entry.wait)
    }

    /// Records a failure of `id` at `at`.
    pub fn next(&self, id: &str, at: Instant) {
        let mut entries = self.entries.lock();
        // Bounded, because callers choose the ids.
        if entries.len() >= MANY && !entries.contains_key(id) {
            self.drop_unused(&mut entries);
            if entries.len() >= MANY {
                entries.pop_first();
            }
        }
        let known = entries.get(id).copied().filter(|entry| !self.is_expired(entry, at));
        let wait = match known {
            None => self.base.saturating_add(self.jitter(self.base)),
            Some(entry) => entry.wait.saturating_mul(2).saturating_add(self.jitter(entry.wait)),
        };
        let entry = BackoffEntry { wait: wait.min(self.max), updated: self.clock.now() };
        entries.insert(id.to_owned(), entry);
    }

    /// Forgets the failures of `id`.
    pub fn reset(&self, id: &str) {
        self.entries.lock().remove(id);
    }

    /// Returns whether less time has passed since `event` than the wait of `id`.
    pub fn is_waiting_since(&self, id: &str, event: Instant) -> bool {
        let now = self.clock.now();
        self.entry(id).is_some_and(|entry| {
            !self.is_expired(&entry, event) && now.saturating_duration_since(event) < entry.wait
        })
    }

    /// Returns whether `at` lies within the wait that the last failure of `id` began.
    pub fn is_waiting_at(&self, id: &str, at: Instant) -> bool {
        self.entry(id).is_some_and(|entry| {
            !self.is_expired(&entry, at) && at.saturating_duration_since(entry.updated) < entry.wait
        })
    }

    /// Drops ids that were not seen for twice the bound.
    pub fn collect_garbage(&self) {
        self.drop_unused(&mut self.entries.lock());
    }

    /// Returns the number of remembered ids.
    pub fn len(&self) -> usize {
        self.entries.lock().len()
    }

    /// Returns whether no id is remembered.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn entry(&self, id: &str) -> Option<BackoffEntry> {
        self.entries.lock().get(id).copied()
    }

    /// Drops the ids that were not seen for twice the bound.
    fn drop_unused(&self, entries: &mut BTreeMap<String, BackoffEntry>) {
        let now = self.clock.now();
        entries.retain(|_, entry| !self.is_expired(entry, now));
    }

    /// Returns whether an entry was not updated for twice the bound before `at`.
    fn is_expired(&self, entry: &BackoffEntry, at: Instant) -> bool {
        at.saturating_duration_since(entry.updated) > self.max.saturating_mul(2)
    }

    /// Returns the random part that is added to a wait.
    fn jitter(&self, wait: Duration) -> Duration {
        self.jitter.as_ref().map_or(Duration::ZERO, |(factor, rng)| {
            Duration::try_from_secs_f64(wait.as_secs_f64() * factor * rng.unit())
                .unwrap_or(self.max)
        })
    }
}

impl fmt::Debug for Backoff {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Backoff")
            .field("base", &self.base)
            .field("max", &self.max)
            .field("ids", &self.len())
            .finish_non_exhaustive()
    }
}

/// Policy for the waits of requests to a host after failures.
///
/// Both methods are called for each attempt and must not block.
pub trait BackoffManager: fmt::Debug + Send + Sync + 'static {
    /// Returns the wait of the next request to `url`.
    fn delay(&self, url: &Uri) -> Duration;

    /// Records that a request to `url` was answered by `code`, or not at all.
    fn observe(&self, url: &Uri, code: Option<u16>);
}

/// Factory of the backoff manager of each request.
pub type BackoffFactory = Arc<dyn Fn() -> Arc<dyn BackoffManager> + Send + Sync>;

/// Backoff manager without waits.
///
/// The default of clients.
#[derive(Clone, Copy, Debug)]
pub struct NoBackoff;

impl BackoffManager for NoBackoff {
    fn delay(&self, _: &Uri) -> Duration {
        Duration::ZERO
    }

    fn observe(&self, _: &Uri, _: Option<u16>) {}
}

/// Backoff manager with a wait per scheme and host: the wait grows with each 429 and each code
/// above 499, and any other outcome ends the wait.
///
/// client-go's `URLBackoff`.
#[derive(Debug)]
pub struct UrlBackoff {
    hosts: Backoff,
}

impl UrlBackoff {
    /// Creates a manager whose first wait is `base` and whose longest is `max`.
    pub fn new(base: Duration, max: Duration, clock: Clock) -> Self {
        Self { hosts: Backoff::new(base, max, clock) }
    }
}

impl BackoffManager for UrlBackoff {
    fn delay(&self, url: &Uri) -> Duration {
        self.hosts.get(&host_of(url))
    }

    fn observe(&self, url: &Uri, code: Option<u16>) {
        let host = host_of(url);
        match code {
            Some(429 | 500..) => self.hosts.next(&host, self.hosts.clock.now()),
            _ => self.hosts.reset(&host),
        }
    }
}

/// Returns scheme, host and port of `url`, without credentials.
fn host_of(url: &Uri) -> String {
    let scheme = url.scheme_str().unwrap_or_default();
    let host = url.authority().map(|authority| authority.as_str()).unwrap_or_default();
    format!("{scheme}://{}", host.rsplit('@').next().unwrap_or_default())
}

/// Returns base and longest wait of the environment. `None` when either variable is unset or no
/// whole number of seconds.
pub(in crate::client) fn from_env(
    variable: &dyn Fn(&str) -> Option<String>,
) -> Option<(Duration, Duration)> {
    let seconds = |name| Some(Duration::from_secs(variable(name)?.trim().parse().ok()?));
    Some((seconds(ENV_BASE)?, seconds(ENV_MAX)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn backoff() -> Backoff {
        Backoff::new(SECOND, SECOND * 50, Clock::system())
    }

    /// Upstream: `TestSlowBackoff`, `TestBackoffHighWaterMark`.
    #[tokio::test(start_paused = true)]
    async fn mechanism_11_a_wait_doubles_per_id_and_stays_at_its_bound() {
        let backoff = backoff();
        assert_eq!(backoff.get("a"), Duration::ZERO);
        for seconds in [1, 2, 4, 8, 16, 32, 50, 50, 50] {
            backoff.next("a", Instant::now());
            assert_eq!(backoff.get("a").as_secs(), seconds);
            tokio::time::advance(SECOND).await;
        }
        backoff.next("b", Instant::now());
        assert_eq!(backoff.get("b").as_secs(), 1);
        for _ in 0..10_000 {
            backoff.next("a", Instant::now());
        }
        assert_eq!(backoff.get("a").as_secs(), 50, "and nothing overflows");
        backoff.reset("a");
        assert_eq!((backoff.get("a").as_secs(), backoff.get("b").as_secs()), (0, 1));
    }

    /// Upstream: `TestBackoffReset`.
    #[tokio::test(start_paused = true)]
    async fn mechanism_11_an_id_that_was_not_seen_for_twice_the_bound_begins_anew() {
        let backoff = backoff();
        for _ in 0..4 {
            backoff.next("a", Instant::now());
        }
        tokio::time::advance(SECOND * 100).await;
        backoff.next("a", Instant::now());
        assert_eq!(backoff.get("a").as_secs(), 16, "not yet");
        tokio::time::advance(SECOND * 101).await;
        backoff.next("a", Instant::now());
        assert_eq!(backoff.get("a").as_secs(), 1);
    }

    /// Upstream: `TestBackoffGC`.
    #[tokio::test(start_paused = true)]
    async fn mechanism_11_ids_that_are_not_used_are_dropped() {
        let backoff = backoff();
        backoff.next("old", Instant::now());
        tokio::time::advance(SECOND * 100).await;
        backoff.next("new", Instant::now());
        backoff.collect_garbage();
        assert_eq!(backoff.len(), 2);
        tokio::time::advance(SECOND).await;
        backoff.collect_garbage();
        assert_eq!((backoff.get("old").as_secs(), backoff.get("new").as_secs()), (0, 1));
        assert!(backoff.len() == 1 && !backoff.is_empty());
        for i in 0..3 * MANY {
            backoff.next(&i.to_string(), Instant::now());
        }
        assert_eq!(backoff.len(), MANY, "never more than so many");
    }

    /// Upstream: `TestIsInBackOffSinceUpdate`.
    #[tokio::test(start_paused = true)]
    async fn mechanism_11_an_id_waits_from_its_last_failure_on() {
        let backoff = backoff();
        let start = Instant::now();
        assert!(!backoff.is_waiting_at("a", start) && !backoff.is_waiting_since("a", start));
        // (seconds, whether a failure happens then, whether a wait is expected before this entry)
        for (at, fails, waits) in [
            (0, true, false),
            (0, false, true),
            (1, true, false),
            (2, false, true),
            (3, true, false),
            (6, false, true),
            (7, true, false),
            (14, false, true),
            (15, false, false),
            (120, false, false),
        ] {
            let now = start + SECOND * at;
            tokio::time::advance(now - Instant::now()).await;
            assert_eq!(backoff.is_waiting_at("a", now), waits, "{at}");
            if fails {
                backoff.next("a", now);
            }
        }
        backoff.next("b", Instant::now());
        let failed = Instant::now();
        assert!(backoff.is_waiting_since("b", failed));
        tokio::time::advance(SECOND).await;
        assert!(!backoff.is_waiting_since("b", failed));
    }

    /// Upstream: `TestBackoffWithJitter`.
    #[tokio::test(start_paused = true)]
    async fn mechanism_11_jitter_stays_inside_its_bounds_and_follows_from_the_seed() {
        let run = |seed| {
            let backoff = backoff().with_jitter(0.5, Rng::seeded(seed));
            let mut before = Duration::ZERO;
            let mut waits = Vec::new();
            for _ in 0..8 {
                backoff.next("a", Instant::now());
                let wait = backoff.get("a");
                let least = if before.is_zero() { SECOND } else { before * 2 };
                let most = least + before.max(SECOND / 2).max(before / 2);
                assert!(wait >= least.min(SECOND * 50) && wait <= most.min(SECOND * 50));
                waits.push(wait);
                before = wait;
            }
            waits
        };
        assert_eq!(run(1), run(1));
        assert_ne!(run(1), run(2));
    }

    /// Upstream: `TestCreateBackoffManager`.
    #[test]
    fn mechanism_11_the_environment_asks_for_a_backoff_in_whole_seconds_or_for_none() {
        for (base, max, expected) in [
            (Some("1"), Some("2"), Some((1, 2))),
            (Some(" 5 "), Some("60"), Some((5, 60))),
            (None, Some("2"), None),
            (Some("1"), None, None),
            (None, None, None),
            (Some(""), Some("2"), None),
            (Some("1s"), Some("2"), None),
            (Some("1.5"), Some("2"), None),
            (Some("1"), Some("-2"), None),
        ] {
            let read = from_env(&|name| match name {
                "KUBE_CLIENT_BACKOFF_BASE" => base.map(str::to_owned),
                "KUBE_CLIENT_BACKOFF_DURATION" => max.map(str::to_owned),
                other => panic!("asked for {other}"),
            });
            let seconds = read.map(|(base, max)| (base.as_secs(), max.as_secs()));
            assert_eq!(seconds, expected, "{base:?} {max:?}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn mechanism_11_hosts_are_kept_apart_by_scheme_host_and_port() {
        let manager = UrlBackoff::new(SECOND, SECOND * 10, Clock::system());
        let uri = |text: &str| text.parse::<Uri>().unwrap();
        manager.observe(&uri("https://a:1/x"), Some(500));
        assert_eq!(manager.delay(&uri("https://a:1/other?y")), SECOND);
        for other in ["https://a:2/x", "http://a:1/x", "https://b:1/x"] {
            assert_eq!(manager.delay(&uri(other)), Duration::ZERO, "{other}");
        }
        manager.observe(&uri("https://a:1/x"), None);
        assert_eq!(
            manager.delay(&uri("https://a:1/x")),
            Duration::ZERO,
            "no answer is not an overload"
        );
        assert_eq!(NoBackoff.delay(&uri("https://a")), Duration::ZERO);
    }
}
