//! The conditions that a reconcile has set, until its end.

use parking_lot::Mutex;

use windlass_core::conditions::Condition;

/// A condition that is set or removed.
#[derive(Clone, Debug, PartialEq)]
pub(in crate::controller) enum Change {
    Set(Condition),
    /// The condition of that type is removed.
    Clear(String),
}

impl Change {
    fn type_(&self) -> &str {
        match self {
            Self::Set(condition) => &condition.type_,
            Self::Clear(type_) => type_,
        }
    }

    /// Whether it sets the condition of that type.
    pub(in crate::controller) fn is_set(&self, type_: &str) -> bool {
        matches!(self, Self::Set(condition) if condition.type_ == type_)
    }
}

/// The changes of one attempt, at most one per declared type. They outlive its context, so that a failure is
/// written together with them.
#[derive(Debug, Default)]
pub(in crate::controller) struct Collected(Mutex<Vec<Change>>);

impl Collected {
    /// Adds a change; it replaces an earlier one of the same type.
    pub(in crate::controller) fn add(&self, change: Change) {
        let mut changes = self.0.lock();
        match changes.iter_mut().find(|before| before.type_() == change.type_()) {
            Some(before) => *before = change,
            None => changes.push(change),
        }
    }

    /// Returns the changes.
    pub(in crate::controller) fn all(&self) -> Vec<Change> {
        self.0.lock().clone()
    }

    /// Takes the changes of another attempt, which this one reports.
    pub(in crate::controller) fn take_from(&self, other: &Self) {
        // One lock at a time: no order of locks between attempts.
        let changes = std::mem::take(&mut *other.0.lock());
        *self.0.lock() = changes;
    }
}
