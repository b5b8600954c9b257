//! What a call waits for before it is sent: the backoff of its host, and a permit of the limiter.

use std::time::Duration;

use super::Verb;
use super::call::Call;
use super::limit::Loudness;
use crate::error::{Error, ErrorKind};
use crate::metrics::names::REST_RATE_LIMITER_SECONDS;

/// Waits for a permit that are logged, at DEBUG; client-go's.
const LONG: Duration = Duration::from_millis(50);
/// Waits for a permit that are logged at INFO, now and then; client-go's.
const VERY_LONG: Duration = Duration::from_secs(1);

impl Call<'_> {
    /// How long the backoff manager has requests to this host wait.
    pub(super) fn backoff(&self) -> Duration {
        self.backoff.as_ref().map_or(Duration::ZERO, |backoff| backoff.delay(&self.uri))
    }

    /// Waits as the backoff manager says, before the first attempt.
    pub(super) async fn back_off(&self) -> Result<(), Error> {
        let wait = self.backoff();
        if wait.is_zero() {
            return Ok(());
        }
        if wait >= self.remaining() {
            let (what, seconds) = (&self.request.what, wait.as_secs());
            let (host, left) = (&self.shared.host, self.remaining().as_secs());
            let text = format!(
                "cannot {what}: requests to {host} wait {seconds} s after its trouble, and only \
                 {left} s are left; raise the timeout, or try later"
            );
            return Err(Error::new(ErrorKind::Timeout, text));
        }
        self.shared.seams.clock.sleep(wait).await;
        Ok(())
    }

    /// Waits for a permit of the rate limiter; watches need none.
    pub(super) async fn permit(&self) -> Result<(), Error> {
        let limiter = self.request.extra.limiter.as_ref();
        let shared = self.shared.defaults.limiter.as_ref();
        let limiter = limiter.or(shared.filter(|_| !self.is_urgent()));
        let Some(limiter) = limiter.filter(|_| self.request.verb != Verb::Watch) else {
            return Ok(());
        };
        let clock = &self.shared.seams.clock;
        let started = clock.now();
        // The limiter is told the deadline, and held to it.
        let permit = clock.within(self.remaining(), limiter.accept(Some(self.deadline))).await;
        let waited = clock.now() - started;
        self.metrics().observe(&REST_RATE_LIMITER_SECONDS, &self.labels(), waited);
        self.tell_wait(waited, limiter.qps());
        let why = match permit {
            Some(Ok(())) => return Ok(()),
            Some(Err(error)) => error,
            None => Error::new(ErrorKind::Timeout, "the rate limiter gave no permit in time"),
        };
        let text = format!("cannot {}: {why}", self.request.what);
        Err(self.in_doubt(Error::new(why.kind(), text)))
    }

    /// Logs long waits, the very long ones for everybody to see, but not each of them.
    fn tell_wait(&self, waited: Duration, qps: f64) {
        if waited <= LONG {
            return;
        }
        let url = self.request.template();
        let reason = match self.attempt {
            0 => format!("the client's rate limit of {qps} a second, not the API server"),
            n => format!("the client's rate limit of {qps} a second, before retry {n}"),
        };
        let now = self.shared.seams.clock.now();
        let very = waited > VERY_LONG;
        match very.then(|| self.shared.slow.lock().admit(now)) {
            Some(Loudness::Info) => {
                tracing::info!(?waited, reason, url, "a request waited for its permit");
            }
            Some(Loudness::Silent) => {}
            _ => tracing::debug!(?waited, reason, url, "a request waited for its permit"),
        }
    }
}
