//! Waits before an attempt: the backoff of the host, and a permit of the rate limiter.

use std::time::Duration;

use super::Call;
use tracing::Level;
use windlass_core::error::{Error, ErrorKind};
use windlass_core::metrics::names::REST_RATE_LIMITER_SECONDS;
use windlass_core::resource::Verb;

/// Target of the log, beside `windlass_client::client::call`: the quickstart shows that target at
/// DEBUG.
const TARGET: &str = "windlass_client::throttle";
const WAITED: &str = "a request waited for its permit";
/// Waits for a permit beyond this are logged at DEBUG; client-go's value.
const LONG: Duration = Duration::from_millis(50);
/// Waits for a permit beyond this are logged at INFO, at a limited rate; client-go's value.
const VERY_LONG: Duration = Duration::from_secs(1);

impl Call<'_> {
    /// Returns the wait that the backoff manager asks for before a request to this host.
    pub(in crate::client) fn backoff(&self) -> Duration {
        self.backoff.as_ref().map_or(Duration::ZERO, |backoff| backoff.delay(&self.uri))
    }

    /// Waits for the backoff before the first attempt.
    pub(in crate::client) async fn back_off(&self) -> Result<(), Error> {
        let wait = self.backoff();
        if wait.is_zero() {
            return Ok(());
        }
        // Fails now instead of at the deadline: the wait would use up the whole time.
        if wait >= self.remaining() {
            let (what, seconds) = (&self.request.what, wait.as_secs());
            let (host, left) = (&self.shared.host, self.remaining().as_secs());
            let text = format!(
                "cannot {what}: requests to {host} are delayed {seconds} s after errors of this host, and only \
                 {left} s are left; raise the timeout, or try later"
            );
            return Err(Error::new(ErrorKind::Timeout, text));
        }
        self.shared.environment.clock.sleep(wait).await;
        Ok(())
    }

    /// Waits for a permit of the rate limiter; watches need none.
    pub(in crate::client) async fn permit(&self) -> Result<(), Error> {
        let limiter = self.request.extra.limiter.as_ref();
        let shared = self.shared.defaults.limiter.as_ref();
        let limiter = limiter.or(shared.filter(|_| !self.is_urgent()));
        let Some(limiter) = limiter.filter(|_| self.request.verb != Verb::Watch) else {
            return Ok(());
        };
        let clock = &self.shared.environment.clock;
        let started = clock.now();
        // A custom limiter may ignore the deadline that the client passes, so the wait is bounded
        // as well.
        let permit = clock.timeout(self.remaining(), limiter.accept(Some(self.deadline))).await;
        let waited = clock.now() - started;
        self.metrics().observe(&REST_RATE_LIMITER_SECONDS, &self.labels(), waited);
        self.log_wait(waited, limiter.qps());
        let why = match permit {
            Some(Ok(())) => return Ok(()),
            Some(Err(error)) => error,
            None => Error::new(ErrorKind::Timeout, "the rate limiter gave no permit in time"),
        };
        let text = format!("cannot {}: {why}", self.request.what);
        Err(self.in_doubt(Error::new(why.kind(), text)))
    }

    /// Logs long waits at DEBUG, and very long waits at INFO, at a limited rate.
    fn log_wait(&self, waited: Duration, qps: f64) {
        if waited <= LONG {
            return;
        }
        let url = self.request.template();
        let reason = match self.attempt {
            0 => format!("the client's rate limit of {qps} a second, not the API server"),
            n => format!("the client's rate limit of {qps} a second, before retry {n}"),
        };
        let now = self.shared.environment.clock.now();
        let very = waited > VERY_LONG;
        // Limited across all calls of the client: under a rate limit nearly every call waits.
        match very.then(|| self.shared.slow.lock().admit(now)) {
            Some(Some(Level::INFO)) => {
                tracing::info!(target: TARGET, ?waited, reason, url, "{WAITED}")
            }
            Some(None) => {}
            _ => tracing::debug!(target: TARGET, ?waited, reason, url, "{WAITED}"),
        }
    }
}
