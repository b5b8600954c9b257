//! Setters of the defaults of calls: media types, timeout, rate limit, backoff, warnings.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use http::HeaderValue;

use super::ClientBuilder;
use crate::client::call::{Defaults, SHOWN};
use crate::client::policy::backoff::{self, BackoffFactory, UrlBackoff};
use crate::client::policy::{RequestLimiter, TokenBucket};
use crate::client::request::{LogWarnings, WarningHandler};
use windlass_core::clock::Clock;

/// Timeout of a call that names none.
const TIMEOUT: Duration = Duration::from_secs(30);
/// Requests that may be sent at once under a rate limit; client-go's value.
const BURST: u32 = 10;
const JSON: &str = "application/json";

/// Settings of the builder, before the environment and the defaults fill the gaps.
#[derive(Default)]
pub(in crate::client) struct UnresolvedSettings {
    timeout: Option<Duration>,
    accept: Option<String>,
    content_type: Option<String>,
    /// Requests a second, in the long run.
    qps: Option<f64>,
    /// Requests that may be sent at once.
    burst: Option<u32>,
    limiter: Option<Arc<dyn RequestLimiter>>,
    backoff: Option<BackoffFactory>,
    /// First and longest wait of the backoff that the environment asks for.
    env_backoff: Option<(Duration, Duration)>,
    warnings: Option<Arc<dyn WarningHandler>>,
    /// Bytes of a body that are shown at TRACE level.
    shown: Option<usize>,
}

impl UnresolvedSettings {
    /// Reads the variables of the backoff, which count where the builder sets none.
    pub(in crate::client) fn read_env(&mut self, variable: &dyn Fn(&str) -> Option<String>) {
        self.env_backoff = backoff::from_env(variable);
    }

    /// Returns the effective settings.
    pub(in crate::client) fn defaults(self, clock: &Clock) -> Defaults {
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
            shown: self.shown.unwrap_or(SHOWN),
        }
    }

    /// Returns the token bucket of `qps` and `burst`, if there is a limit.
    fn bucket(&self, clock: &Clock) -> Option<Arc<dyn RequestLimiter>> {
        // Zero or less means no limit.
        let qps = self.qps.filter(|qps| *qps > 0.0)?;
        let burst = self.burst.unwrap_or(BURST);
        Some(Arc::new(TokenBucket::new(qps, burst, clock.clone())))
    }

    /// Returns the header `Accept`: the media types set by [`ClientBuilder::accept`], else the
    /// content type and `*/*`.
    fn accepted(&self) -> Option<HeaderValue> {
        let text = match (self.accept.as_deref().unwrap_or_default(), self.media_type()) {
            ("", "") => return None,
            ("", content_type) => format!("{content_type}, */*"),
            (accept, _) => accept.to_owned(),
        };
        // Media types that fit no header are dropped: the server then chooses.
        HeaderValue::try_from(text).ok()
    }

    /// Returns the media type of bodies that name none.
    fn media_type(&self) -> &str {
        self.content_type.as_deref().unwrap_or(JSON)
    }
}

impl fmt::Debug for UnresolvedSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("UnresolvedSettings")
            .field("timeout", &self.timeout)
            .field("qps", &self.qps)
            .field("burst", &self.burst)
            .field("limiter", &self.limiter)
            .field("warnings", &self.warnings)
            .finish_non_exhaustive()
    }
}

/// Defaults of calls.
impl ClientBuilder {
    /// Sets the total time of a call without a timeout, with all retries. Default: 30 s.
    ///
    /// A timeout that is set here is sent to the server, too, as the query parameter `timeout`; the
    /// default is not.
    #[must_use]
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.unresolved.timeout = Some(timeout);
        self
    }

    /// Sets the media types of answers. Default: the [content type](Self::content_type), and `*/*`.
    #[must_use]
    pub fn accept(mut self, media_types: &str) -> Self {
        self.unresolved.accept = Some(media_types.to_owned());
        self
    }

    /// Sets the media type of bodies that name none. Default: `application/json`. When both the
    /// content type and [`accept`](Self::accept) are empty, no header `Accept` is sent.
    #[must_use]
    pub fn content_type(mut self, media_type: &str) -> Self {
        self.unresolved.content_type = Some(media_type.to_owned());
        self
    }

    /// Limits the rate to `qps` requests a second in the long run, watches not counted; zero or
    /// less means no limit. Default: no limit, since API servers have priority and fairness.
    ///
    /// client-go's default is 5 a second with a burst of 10.
    #[must_use]
    pub fn qps(mut self, qps: f64) -> Self {
        self.unresolved.qps = Some(qps);
        self
    }

    /// Sets the number of requests that may be sent at once under a limit by [`qps`](Self::qps).
    /// Default: 10.
    ///
    /// client-go's value. Without [`qps`](Self::qps) the burst has no effect.
    #[must_use]
    pub fn burst(mut self, burst: u32) -> Self {
        self.unresolved.burst = Some(burst);
        self
    }

    /// Sets the rate limiter, in place of [`qps`](Self::qps) and [`burst`](Self::burst). All clones
    /// of the client share the limiter.
    ///
    /// ```no_run
    /// # extern crate windlass_client as windlass;
    /// use std::sync::Arc;
    /// use windlass::client::{Client, ClientConfig, TokenBucket};
    /// use windlass::clock::Clock;
    ///
    /// # fn main() -> Result<(), windlass::Error> {
    /// // One budget for two clusters.
    /// let budget = Arc::new(TokenBucket::new(20.0, 40, Clock::system()));
    /// let one = ClientConfig::new("https://one.example:6443")?;
    /// let other = ClientConfig::new("https://other.example:6443")?;
    /// let one = Client::builder().config(one).rate_limiter(budget.clone()).build()?;
    /// let other = Client::builder().config(other).rate_limiter(budget).build()?;
    /// # let _ = (one, other);
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn rate_limiter(mut self, limiter: Arc<dyn RequestLimiter>) -> Self {
        self.unresolved.limiter = Some(limiter);
        self
    }

    /// Sets the factory of the backoff manager of each request. A factory that returns clones of a
    /// single manager makes requests share it. Default: no backoff, unless
    /// `KUBE_CLIENT_BACKOFF_BASE` and `KUBE_CLIENT_BACKOFF_DURATION` ask for it (first and longest
    /// wait in whole seconds).
    #[must_use]
    pub fn backoff(mut self, factory: BackoffFactory) -> Self {
        self.unresolved.backoff = Some(factory);
        self
    }

    /// Sets the handler of the warnings of API servers. Default: logs each text once.
    ///
    /// [`NoWarnings`](crate::client::NoWarnings) drops them,
    /// [`WriteWarnings`](crate::client::WriteWarnings) writes them out.
    #[must_use]
    pub fn warning_handler(mut self, handler: Arc<dyn WarningHandler>) -> Self {
        self.unresolved.warnings = Some(handler);
        self
    }

    /// Sets the number of bytes of a body that are shown at TRACE level, target
    /// `windlass_client::body`. Default: 1024.
    ///
    /// 0 shows none. Values with names of credentials are left out.
    #[must_use]
    pub fn trace_bodies(mut self, bytes: usize) -> Self {
        self.unresolved.shown = Some(bytes);
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
        let delay = |unresolved: UnresolvedSettings| {
            let manager = unresolved.defaults(&clock).backoff.map(|make| make())?;
            manager.observe(&url, Some(500));
            Some(manager.delay(&url).as_secs())
        };
        assert_eq!(delay(UnresolvedSettings::default()), None);
        let mut unresolved = UnresolvedSettings::default();
        unresolved.read_env(&env);
        assert_eq!(delay(unresolved), Some(3));
        let mut unresolved = UnresolvedSettings {
            backoff: Some(Arc::new(|| Arc::new(backoff::NoBackoff))),
            ..UnresolvedSettings::default()
        };
        unresolved.read_env(&env);
        assert_eq!(delay(unresolved), Some(0));
    }
}
