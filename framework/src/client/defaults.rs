//! What calls do that say nothing else: media types, time, limits, backoff, warnings.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use http::HeaderValue;

use super::ClientBuilder;
use super::backoff::{self, BackoffFactory, UrlBackoff};
use super::limit::{RateLimiter, TokenBucket};
use super::trace;
use super::warning::{LogWarnings, WarningHandler};
use crate::clock::Clock;

/// Time of a call that names none.
const TIMEOUT: Duration = Duration::from_secs(30);
/// Requests that may be sent at once under a limit; client-go's.
const BURST: u32 = 10;
const JSON: &str = "application/json";

/// What a builder was told.
#[derive(Default)]
pub(super) struct Wishes {
    timeout: Option<Duration>,
    accept: Option<String>,
    content_type: Option<String>,
    qps: Option<f64>,
    burst: Option<u32>,
    limiter: Option<Arc<dyn RateLimiter>>,
    backoff: Option<BackoffFactory>,
    env_backoff: Option<(Duration, Duration)>,
    warnings: Option<Arc<dyn WarningHandler>>,
    shown: Option<usize>,
}

/// What a client does.
pub(super) struct Defaults {
    pub(super) timeout: Duration,
    /// The timeout that the builder was given; servers are told it.
    pub(super) asked_timeout: Option<Duration>,
    pub(super) accept: Option<HeaderValue>,
    /// Of bodies that name none.
    pub(super) content_type: String,
    pub(super) limiter: Option<Arc<dyn RateLimiter>>,
    pub(super) backoff: Option<BackoffFactory>,
    pub(super) warnings: Arc<dyn WarningHandler>,
    /// Bytes of a body that are shown at TRACE level.
    pub(super) shown: usize,
}

impl Wishes {
    /// Lets the environment speak where the builder was told nothing.
    pub(super) fn read_env(&mut self, variable: &dyn Fn(&str) -> Option<String>) {
        self.env_backoff = backoff::from_env(variable);
    }

    pub(super) fn defaults(self, clock: &Clock) -> Defaults {
        Defaults {
            timeout: self.timeout.unwrap_or(TIMEOUT),
            asked_timeout: self.timeout,
            accept: self.accepted(),
            content_type: self.media_type().to_owned(),
            limiter: self.limiter.clone().or_else(|| self.bucket(clock)),
            backoff: self.backoff.or_else(|| {
                let ((base, max), clock) = (self.env_backoff?, clock.clone());
                let manager = move || UrlBackoff::new(base, max, clock.clone());
                Some(Arc::new(move || Arc::new(manager())))
            }),
            warnings: self.warnings.unwrap_or_else(|| Arc::new(LogWarnings::default())),
            shown: self.shown.unwrap_or(trace::SHOWN),
        }
    }

    fn bucket(&self, clock: &Clock) -> Option<Arc<dyn RateLimiter>> {
        let qps = self.qps.filter(|qps| *qps > 0.0)?;
        let burst = self.burst.unwrap_or(BURST);
        Some(Arc::new(TokenBucket::new(qps, burst, clock.clone())))
    }

    /// What answers may be: what was asked for; else what is sent, and anything.
    fn accepted(&self) -> Option<HeaderValue> {
        let text = match (self.accept.as_deref().unwrap_or_default(), self.media_type()) {
            ("", "") => return None,
            ("", content_type) => format!("{content_type}, */*"),
            (accept, _) => accept.to_owned(),
        };
        HeaderValue::try_from(text).ok()
    }

    fn media_type(&self) -> &str {
        self.content_type.as_deref().unwrap_or(JSON)
    }
}

impl fmt::Debug for Wishes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Wishes")
            .field("timeout", &self.timeout)
            .field("qps", &self.qps)
            .field("burst", &self.burst)
            .field("limiter", &self.limiter)
            .field("warnings", &self.warnings)
            .finish_non_exhaustive()
    }
}

/// What calls do that say nothing else.
impl ClientBuilder {
    /// Total time of a call that names none, with all its retries. Default: 30 s.
    #[must_use]
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.wishes.timeout = Some(timeout);
        self
    }

    /// Media types of answers. Default: the [content type](Self::content_type), and `*/*`.
    #[must_use]
    pub fn accept(mut self, media_types: &str) -> Self {
        self.wishes.accept = Some(media_types.to_owned());
        self
    }

    /// Media type of bodies that name none. Default: `application/json`. When it and
    /// [`accept`](Self::accept) are empty, no header `Accept` is sent.
    #[must_use]
    pub fn content_type(mut self, media_type: &str) -> Self {
        self.wishes.content_type = Some(media_type.to_owned());
        self
    }

    /// Sends at most so many requests a second in the long run, watches not counted; zero or less
    /// is no limit. Default: no limit, since API servers have priority and fairness.
    #[must_use]
    pub fn qps(mut self, qps: f64) -> Self {
        self.wishes.qps = Some(qps);
        self
    }

    /// Requests that may be sent at once when there is a limit by [`qps`](Self::qps). Default: 10.
    #[must_use]
    pub fn burst(mut self, burst: u32) -> Self {
        self.wishes.burst = Some(burst);
        self
    }

    /// Limits the rate of requests, instead of [`qps`](Self::qps) and [`burst`](Self::burst). All
    /// clones of the client share it.
    #[must_use]
    pub fn rate_limiter(mut self, limiter: Arc<dyn RateLimiter>) -> Self {
        self.wishes.limiter = Some(limiter);
        self
    }

    /// Makes the backoff manager of each request; one that returns clones of the same manager makes
    /// requests share it. Default: no backoff, unless `KUBE_CLIENT_BACKOFF_BASE` and
    /// `KUBE_CLIENT_BACKOFF_DURATION` ask for one (first and longest wait in whole seconds).
    #[must_use]
    pub fn backoff(mut self, factory: BackoffFactory) -> Self {
        self.wishes.backoff = Some(factory);
        self
    }

    /// Is told what API servers warn of. Default: logs each text once.
    #[must_use]
    pub fn warning_handler(mut self, handler: Arc<dyn WarningHandler>) -> Self {
        self.wishes.warnings = Some(handler);
        self
    }

    /// Bytes of a body that are shown at TRACE level, target `windlass::client::body`. Default: 1024.
    #[must_use]
    pub fn trace_bodies(mut self, bytes: usize) -> Self {
        self.wishes.shown = Some(bytes);
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mechanism_11_a_builder_that_was_told_a_backoff_does_not_ask_the_environment() {
        let env = |_: &str| Some("3".to_owned());
        let clock = Clock::system();
        let url = "https://a/".parse().unwrap();
        let delay = |wishes: Wishes| {
            let manager = wishes.defaults(&clock).backoff.map(|make| make())?;
            manager.observe(&url, Some(500));
            Some(manager.delay(&url).as_secs())
        };
        assert_eq!(delay(Wishes::default()), None);
        let mut wishes = Wishes::default();
        wishes.read_env(&env);
        assert_eq!(delay(wishes), Some(3));
        let mut wishes = Wishes {
            backoff: Some(Arc::new(|| Arc::new(backoff::NoBackoff))),
            ..Wishes::default()
        };
        wishes.read_env(&env);
        assert_eq!(delay(wishes), Some(0));
    }
}
