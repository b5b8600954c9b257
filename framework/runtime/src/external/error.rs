//! Error of a creation, with the knowledge whether the resource may exist.

use std::fmt;

use crate::controller::Failure;

/// A failed creation. Made by `?` it has an unknown outcome: the resource may exist, and is
/// searched for before the next attempt.
///
/// ```
/// # extern crate windlass_runtime as windlass;
/// use windlass::external::CreateError;
///
/// fn answered(status: u16) -> Result<(), CreateError> {
///     match status {
///         200 => Ok(()),
///         // The provider has looked at the request and created nothing.
///         400..500 => Err(CreateError::refused("the provider refuses the size")),
///         _ => Err("the provider does not answer")?,
///     }
/// }
/// assert!(answered(422).unwrap_err().is_refused());
/// assert!(!answered(503).unwrap_err().is_refused());
/// ```
pub struct CreateError {
    pub(super) failure: Failure,
    is_refused: bool,
}

impl CreateError {
    /// Creates an error that proves that nothing was created.
    ///
    /// The next attempt has another token. A [terminal](Failure::terminal) failure is attempted
    /// again after a change of the object only.
    pub fn refused(error: impl Into<Failure>) -> Self {
        Self { failure: error.into(), is_refused: true }
    }

    /// Whether it proves that nothing was created.
    pub fn is_refused(&self) -> bool {
        self.is_refused
    }
}

impl<E: Into<Failure>> From<E> for CreateError {
    fn from(error: E) -> Self {
        Self { failure: error.into(), is_refused: false }
    }
}

impl fmt::Debug for CreateError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl fmt::Display for CreateError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.failure, f)
    }
}
