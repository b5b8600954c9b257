//! Expectations of a case.

use std::time::Duration;

use serde_json::Value;

use super::given::GivenObject;

/// Expected effects of a reconcile.
#[derive(Clone, Debug, Default)]
pub(super) struct ExpectedEffects {
    pub(super) changes: Vec<ExpectedChange>,
    pub(super) status: Option<Value>,
    pub(super) requeue_after: Option<Duration>,
    /// Reason of a wait.
    pub(super) waits: Option<String>,
    /// Part of the text of an error.
    pub(super) fails: Option<String>,
    /// Kinds and reasons.
    pub(super) events: Vec<String>,
    pub(super) reads: Vec<String>,
    pub(super) calls: Vec<String>,
}

/// An expected change of one object.
#[derive(Clone, Debug)]
pub(super) struct ExpectedChange {
    pub(super) effect: Effect,
    /// Its fields; those that are absent are not compared.
    pub(super) object: GivenObject,
}

/// Effect of a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Effect {
    Create { is_owned: bool },
    Update,
    Delete,
}

impl Effect {
    /// Returns the verb of a report.
    pub(super) fn verb(self) -> &'static str {
        match self {
            Self::Create { .. } => "create",
            Self::Update => "update",
            Self::Delete => "delete",
        }
    }
}
