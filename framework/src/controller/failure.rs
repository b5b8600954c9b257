//! What a reconcile returns when it failed.

use std::fmt;
use std::time::Duration;

use crate::error::BoxError;

/// A failed reconcile. Any error becomes one through `?`; it is retried with backoff unless it says
/// otherwise.
pub struct Failure {
    pub(crate) source: BoxError,
    pub(crate) retry: Retry,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Retry {
    Backoff,
    After(Duration),
    Never,
}

impl Failure {
    /// Not to be retried until the object changes.
    pub fn terminal(source: impl Into<BoxError>) -> Self {
        Self { source: source.into(), retry: Retry::Never }
    }

    /// To be retried after `delay` instead of the backoff.
    pub fn retry_after(delay: Duration, source: impl Into<BoxError>) -> Self {
        Self { source: source.into(), retry: Retry::After(delay) }
    }

    /// The error.
    pub fn cause(&self) -> &(dyn std::error::Error + 'static) {
        &*self.source
    }
}

impl<E: Into<BoxError>> From<E> for Failure {
    fn from(source: E) -> Self {
        Self { source: source.into(), retry: Retry::Backoff }
    }
}

impl fmt::Debug for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.source)?;
        let mut cause = self.source.source();
        while let Some(source) = cause {
            write!(f, ": {source}")?;
            cause = source.source();
        }
        Ok(())
    }
}
