//! Waits that grow with each failure of the same thing, and the manager that keeps one per host.
//!
//! A backoff manager is a second brake beside the client's own jittered retries: off unless it is
//! asked for, by the builder or by the environment variables that client-go reads.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use http::Uri;
use parking_lot::Mutex;
use tokio::time::Instant;

use crate::clock::Clock;
use crate::entropy::Entropy;

/// Whole seconds that the first wait lasts.
const ENV_BASE: &str = "KUBE_CLIENT_BACKOFF_BASE";
/// Whole seconds that a wait lasts at most.
const ENV_MAX: &str = "KUBE_CLIENT_BACKOFF_DURATION";
/// Ids beyond this make room by dropping those that are not used.
const MANY: usize = 1024;

/// Waits per id: doubled by each failure up to a bound, forgotten when an id was not seen for twice
/// the bound.
pub struct Backoff {
    base: Duration,
    max: Duration,
    jitter: Option<(f64, Entropy)>,
    clock: Clock,
    entries: Mutex<BTreeMap<String, Entry>>,
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    wait: Duration,
    updated: Instant,
}

impl Backoff {
    /// The first wait is `base`, the longest `max`.
    pub fn new(base: Duration, max: Duration, clock: Clock) -> Self {
        Self { base, max, jitter: None, clock, entries: Mutex::default() }
    }

    /// Adds up to `factor` times the last wait, at random.
    #[must_use]
    pub fn with_jitter(mut self, factor: f64, entropy: Entropy) -> Self {
        self.jitter = (factor > 0.0).then_some((factor, entropy));
        self
    }

    /// The wait that `id` has reached; zero when it has none.
    pub fn get(&self, id: &str) -> Duration {
        self.entries.lock().get(id).map_or(Duration::ZERO, |entry| entry.wait)
    }

    /// Counts a failure of `id` at `at`.
    pub fn next(&self, id: &str, at: Instant) {
        let mut entries = self.entries.lock();
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
        let entry = Entry { wait: wait.min(self.max), updated: self.clock.now() };
        entries.insert(id.to_owned(), entry);
    }

    /// Forgets the failures of `id`.
    pub fn reset(&self, id: &str) {
        self.entries.lock().remove(id);
    }

    /// Has less time passed since `event` than `id` has to wait?
    pub fn is_waiting_since(&self, id: &str, event: Instant) -> bool {
        let now = self.clock.now();
        self.entry(id).is_some_and(|entry| {
            !self.is_expired(&entry, event) && now.saturating_duration_since(event) < entry.wait
        })
    }

    /// Does `at` lie in the wait that the last failure of `id` began?
    pub fn is_waiting_at(&self, id: &str, at: Instant) -> bool {
        self.entry(id).is_some_and(|entry| {
            !self.is_expired(&entry, at) && at.saturating_duration_since(entry.updated) < entry.wait
        })
    }

    /// Drops ids that were not seen for twice the bound.
    pub fn collect_garbage(&self) {
        self.drop_unused(&mut self.entries.lock());
    }

    /// Ids that are remembered.
    pub fn len(&self) -> usize {
        self.entries.lock().len()
    }

    /// Is no id remembered?
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn entry(&self, id: &str) -> Option<Entry> {
        self.entries.lock().get(id).copied()
    }

    fn drop_unused(&self, entries: &mut BTreeMap<String, Entry>) {
        let now = self.clock.now();
        entries.retain(|_, entry| !self.is_expired(entry, now));
    }

    fn is_expired(&self, entry: &Entry, at: Instant) -> bool {
        at.saturating_duration_since(entry.updated) > self.max.saturating_mul(2)
    }

    fn jitter(&self, wait: Duration) -> Duration {
        self.jitter.as_ref().map_or(Duration::ZERO, |(factor, entropy)| {
            Duration::try_from_secs_f64(wait.as_secs_f64() * factor * entropy.unit())
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

/// Decides how long requests to a host wait after trouble with it.
pub trait BackoffManager: fmt::Debug + Send + Sync + 'static {
    /// How long the next request to `url` waits.
    fn delay(&self, url: &Uri) -> Duration;

    /// A request to `url` was answered by `code`, or by nothing.
    fn observe(&self, url: &Uri, code: Option<u16>);
}

/// Makes the backoff manager of each request.
pub type BackoffFactory = Arc<dyn Fn() -> Arc<dyn BackoffManager> + Send + Sync>;

/// Waits for nothing.
#[derive(Clone, Copy, Debug)]
pub struct NoBackoff;

impl BackoffManager for NoBackoff {
    fn delay(&self, _: &Uri) -> Duration {
        Duration::ZERO
    }

    fn observe(&self, _: &Uri, _: Option<u16>) {}
}

/// A wait per scheme and host: it grows with each 429 and each code above 499, and any other outcome
/// ends it.
#[derive(Debug)]
pub struct UrlBackoff {
    hosts: Backoff,
}

impl UrlBackoff {
    /// The first wait is `base`, the longest `max`.
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

fn host_of(url: &Uri) -> String {
    let scheme = url.scheme_str().unwrap_or_default();
    let host = url.authority().map(|authority| authority.as_str()).unwrap_or_default();
    format!("{scheme}://{}", host.rsplit('@').next().unwrap_or_default())
}

/// What the environment asks for: base and longest wait. `None` when one of the two is unset or no
/// whole number of seconds.
pub(super) fn from_env(variable: &dyn Fn(&str) -> Option<String>) -> Option<(Duration, Duration)> {
    let seconds = |name| Some(Duration::from_secs(variable(name)?.trim().parse().ok()?));
    Some((seconds(ENV_BASE)?, seconds(ENV_MAX)?))
}
