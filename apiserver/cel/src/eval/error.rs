//! The error of an evaluation.

use std::fmt;
use std::sync::Arc;

use crate::schema::MAX_DEPTH;

/// An error that an expression evaluates to, or the end of an evaluation whose budget is used up.
/// Cheap to clone: a comprehension such as `all` carries an error from item to item.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EvalError {
    /// A fixed text.
    Static(&'static str),
    /// A text with parts of the data.
    Message(Arc<str>),
    /// A fault of cel-go that an expression reaches: the server reports it, and no `||` and no `&&`
    /// absorbs it.
    Internal(&'static str),
    /// The cost limit is used up. No `||` and no `&&` absorbs the error.
    CostLimitExceeded,
}

/// Returns `depth + 1`; an error beyond `MAX_DEPTH`.
pub(crate) fn deeper(depth: usize) -> Result<usize, EvalError> {
    if depth < MAX_DEPTH { Ok(depth + 1) } else { Err(EvalError::too_deep()) }
}

impl EvalError {
    /// An error with this text.
    pub fn new(message: impl Into<Arc<str>>) -> EvalError {
        EvalError::Message(message.into())
    }

    /// Returns the error of a call whose arguments match no overload.
    pub const fn no_such_overload() -> EvalError {
        EvalError::Static("no such overload")
    }

    /// Returns the error for data that are nested deeper than `MAX_DEPTH`. The limit protects the
    /// stack of functions that recurse.
    pub const fn too_deep() -> EvalError {
        EvalError::Internal("internal error: data is nested too deeply")
    }

    /// The text, in the words of cel-go.
    pub fn message(&self) -> &str {
        match self {
            EvalError::Static(text) | EvalError::Internal(text) => text,
            EvalError::Message(text) => text,
            EvalError::CostLimitExceeded => "operation cancelled: actual cost limit exceeded",
        }
    }

    /// Whether the evaluation ends here, whatever the surrounding expression is.
    pub fn is_fatal(&self) -> bool {
        matches!(self, EvalError::CostLimitExceeded | EvalError::Internal(_))
    }
}

impl fmt::Display for EvalError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.message())
    }
}

impl std::error::Error for EvalError {}
