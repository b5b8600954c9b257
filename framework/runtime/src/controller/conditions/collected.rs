//! The conditions that a reconcile has set, and its remarks, until its end.

// DESIGN.md, 248: The outcome leaves a condition alone that the same reconcile has set

use parking_lot::Mutex;

use super::accepted::MESSAGE_LIMIT;
use windlass_core::conditions::Condition;
use windlass_core::text::shorten;

/// Longest remark, in bytes.
const REMARK_LIMIT: usize = 1024;
/// Most remarks of one attempt.
const MOST_REMARKS: usize = 16;
/// Most types of conditions of one attempt that are kept as written by it.
const MOST_WRITTEN: usize = 64;

/// A condition that is set or removed.
#[derive(Clone, Debug, PartialEq)]
pub(in crate::controller) enum ConditionChange {
    Set(Condition),
    /// The condition of that type is removed.
    Clear(String),
}

impl ConditionChange {
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

/// The changes of one attempt, at most one per declared type, and its remarks. They outlive its
/// context, so that a failure is written together with them.
#[derive(Debug, Default)]
pub(in crate::controller) struct AttemptConditions(Mutex<CollectedChanges>);

#[derive(Debug, Default)]
struct CollectedChanges {
    changes: Vec<ConditionChange>,
    /// Types of the conditions that the reconciler has written itself.
    written: Vec<String>,
    /// Texts for the message of a success.
    remarks: Vec<String>,
}

impl AttemptConditions {
    /// Adds a change; it replaces an earlier one of the same type.
    pub(in crate::controller) fn add(&self, change: ConditionChange) {
        let changes = &mut self.0.lock().changes;
        match changes.iter_mut().find(|before| before.type_() == change.type_()) {
            Some(before) => *before = change,
            None => changes.push(change),
        }
    }

    /// Returns the changes.
    pub(in crate::controller) fn all(&self) -> Vec<ConditionChange> {
        self.0.lock().changes.clone()
    }

    /// Notes that the reconciler has written the condition of that type.
    pub(in crate::controller) fn wrote(&self, type_: &str) {
        let written = &mut self.0.lock().written;
        if written.len() < MOST_WRITTEN && !written.iter().any(|one| one == type_) {
            written.push(type_.to_owned());
        }
    }

    /// Whether the reconciler has written the condition of that type.
    pub(in crate::controller) fn has_written(&self, type_: &str) -> bool {
        self.0.lock().written.iter().any(|one| one == type_)
    }

    /// Adds a text to the message of the root after a success.
    pub(in crate::controller) fn remark(&self, text: String) {
        let remarks = &mut self.0.lock().remarks;
        let text = shorten(text, REMARK_LIMIT);
        if remarks.len() < MOST_REMARKS && !remarks.contains(&text) {
            remarks.push(text);
        }
    }

    /// Returns the remarks as one text.
    pub(in crate::controller) fn remarks(&self) -> String {
        shorten(self.0.lock().remarks.join("; "), MESSAGE_LIMIT)
    }

    /// Takes the changes of another attempt, which this one reports.
    pub(in crate::controller) fn take_from(&self, other: &Self) {
        // One lock at a time: no order of locks between attempts.
        let notes = std::mem::take(&mut *other.0.lock());
        *self.0.lock() = notes;
    }
}
