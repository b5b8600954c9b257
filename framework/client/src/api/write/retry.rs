//! Retries after a conflict.

use std::future::Future;
use std::time::Duration;

use crate::client::Client;
use windlass_core::environment::Environment;
use windlass_core::error::Error;

/// Number of attempts, and the waits between them.
///
/// ```no_run
/// # extern crate windlass_client as windlass;
/// use std::time::Duration;
/// use windlass::api::Retries;
///
/// // Three attempts, after 100 ms and 200 ms, each up to 10 % longer.
/// let patient = Retries {
///     steps: 3,
///     first: Duration::from_millis(100),
///     factor: 2.0,
///     jitter: 0.1,
/// };
/// # let _ = patient;
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Retries {
    /// Number of attempts, the first included; at least one attempt is made.
    ///
    /// 0 counts as 1.
    pub steps: u32,
    /// Wait before the second attempt, to which `jitter` is added.
    pub first: Duration,
    /// Factor from each wait to the next.
    ///
    /// 1 keeps the wait constant.
    pub factor: f64,
    /// Largest random addition, as a part of the wait.
    ///
    /// 0.1 makes waits up to a tenth longer, so that writers which met once do not meet again.
    pub jitter: f64,
}

impl Retries {
    /// For a conflict with other writers that finish soon: 5 attempts, 10 ms apart (client-go's
    /// `retry.DefaultRetry`).
    pub const DEFAULT_RETRY: Self =
        Self { steps: 5, first: Duration::from_millis(10), factor: 1.0, jitter: 0.1 };
    /// For a conflict with other controllers of the same object: 4 attempts after 10, 50 and
    /// 250 ms (client-go's `retry.DefaultBackoff`).
    pub const DEFAULT_BACKOFF: Self =
        Self { steps: 4, first: Duration::from_millis(10), factor: 5.0, jitter: 0.1 };

    /// The wait after `failures` failed attempts, without the random part.
    fn wait(&self, failures: u32) -> Duration {
        // The first wait is without the factor.
        let exponent = i32::try_from(failures.saturating_sub(1)).unwrap_or(i32::MAX);
        let seconds = self.first.as_secs_f64() * self.factor.powi(exponent);
        Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX)
    }

    /// Waits after `failures` failed attempts; returns false, at once, when no attempt is left.
    pub(crate) async fn pause(&self, environment: &Environment, failures: u32) -> bool {
        if failures >= self.steps {
            return false;
        }
        let wait = self.wait(failures);
        let jitter = self.jitter * environment.rng.unit();
        let jitter = Duration::try_from_secs_f64(wait.as_secs_f64() * jitter).unwrap_or_default();
        environment.clock.sleep(wait.saturating_add(jitter)).await;
        true
    }
}

/// Runs `attempt` until an attempt ends without a [conflict](Error::is_conflict), at most as often
/// as `backoff` allows; then returns the last conflict.
///
/// Each attempt must read the object anew. A conflict about the ownership of fields
/// ([`Error::is_field_conflict`]) is not retried: the conflict would be the same.
///
/// ```no_run
/// # extern crate windlass_client as windlass;
/// # use k8s_openapi::api::core::v1::ConfigMap;
/// # use windlass::api::{Retries, retry_on_conflict};
/// # async fn example(client: windlass::client::Client) -> Result<(), windlass::Error> {
/// let maps = client.namespace::<ConfigMap>("shop");
/// retry_on_conflict(&client, Retries::DEFAULT_RETRY, || async {
///     let mut map = maps.get("counter").await?;
///     map.data.get_or_insert_default().insert("seen".into(), "yes".into());
///     maps.replace(&map).await
/// })
/// .await?;
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// Those of `attempt`.
/// # Cancel safety
/// Dropping the future drops the current attempt.
pub async fn retry_on_conflict<T, F>(
    client: &Client,
    backoff: Retries,
    mut attempt: impl FnMut() -> F,
) -> Result<T, Error>
where
    F: Future<Output = Result<T, Error>>,
{
    let mut failures = 0;
    loop {
        match attempt().await {
            Err(error) if error.is_conflict() && !error.is_field_conflict() => {
                failures += 1;
                if !backoff.pause(client.environment(), failures).await {
                    return Err(error.note(&format!("tried {failures} times")));
                }
            }
            result => return result,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use tokio::time::Instant;

    use super::*;
    use windlass_core::error::{ApiStatus, ErrorKind, StatusCause, StatusDetails};

    async fn run(backoff: Retries, error: impl Fn() -> Error, good: u32) -> (u32, Duration, bool) {
        let client = Client::offline();
        let (calls, started) = (Cell::new(0), Instant::now());
        let result = retry_on_conflict(&client, backoff, || async {
            calls.set(calls.get() + 1);
            if calls.get() == good { Ok(()) } else { Err(error()) }
        })
        .await;
        (calls.get(), started.elapsed(), result.is_ok())
    }

    fn conflict() -> Error {
        Error::new(ErrorKind::Conflict, "somebody wrote")
    }

    #[tokio::test(start_paused = true)]
    async fn a_conflict_is_tried_again_ten_milliseconds_apart_and_five_times_at_most() {
        let (calls, took, good) = run(Retries::DEFAULT_RETRY, conflict, 3).await;
        assert!(good && calls == 3);
        assert!((20..=24).contains(&took.as_millis()), "{took:?}");
        let (calls, took, good) = run(Retries::DEFAULT_RETRY, conflict, 99).await;
        assert!(!good && calls == 5);
        assert!((40..=48).contains(&took.as_millis()), "{took:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn the_longer_backoff_grows_fivefold() {
        let (calls, took, _) = run(Retries::DEFAULT_BACKOFF, conflict, 99).await;
        assert_eq!(calls, 4);
        assert!((310..=345).contains(&took.as_millis()), "{took:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn nothing_but_a_conflict_that_may_pass_is_tried_again() {
        let other = || Error::new(ErrorKind::Forbidden, "no");
        assert_eq!(run(Retries::DEFAULT_RETRY, other, 99).await.0, 1);
        let owned = || {
            let cause = StatusCause { reason: "FieldManagerConflict".into(), ..Default::default() };
            let details = StatusDetails { causes: vec![cause], ..Default::default() };
            let status = ApiStatus { code: 409, details: Some(details), ..ApiStatus::default() };
            Error::from_status("apply it", status)
        };
        assert_eq!(run(Retries::DEFAULT_RETRY, owned, 99).await.0, 1);
    }
}
