//! A create whose answer is awaited: what it ends with decides what a view may still lack.

use tokio::time::Instant;

use super::{ExpectationTracker, KindExpectations, ParentRef, WriteEffect, WrittenKind};
use windlass_core::resource::ObjectKey;

/// A create under way.
#[must_use]
pub(crate) struct PendingCreate<'a> {
    pub(super) tracker: &'a ExpectationTracker,
    pub(super) parent: ParentRef<'a>,
    pub(super) kind: WrittenKind,
    pub(super) is_over: bool,
}

impl PendingCreate<'_> {
    /// Ends with success: the object of that key and uid exists.
    pub(crate) fn succeeded(mut self, key: &ObjectKey, uid: &str, now: Instant) {
        let has_appeared = self.end(|expected| expected.unclaimed.remove(uid));
        // If the watch was quicker than the answer, nothing is left to expect.
        if !has_appeared {
            let created = (WriteEffect::Created, key, uid);
            self.tracker.sent(self.parent, self.kind.clone(), created, now);
        }
    }

    /// Ends with a refusal: there is no object.
    pub(crate) fn refused(mut self) {
        self.end(|_| false);
    }

    /// Ends the create: updates the expectations by `how`, and returns the result of `how`.
    fn end(&mut self, how: impl FnOnce(&mut KindExpectations) -> bool) -> bool {
        self.is_over = true;
        let mut parents = self.tracker.parents.of(self.parent.key).lock();
        let Some(known) = parents.get_mut(self.parent.key) else { return false };
        let mut kinds = known.kinds.iter_mut();
        // There is none when the expectation expired, or the parent is another object by now.
        let Some(expected) = kinds.find(|expected| expected.kind.name == self.kind.name) else {
            return false;
        };
        let mut answer = false;
        self.tracker.change(expected, |expected| {
            answer = how(expected);
            expected.in_flight = expected.in_flight.saturating_sub(1);
        });
        answer
    }
}

impl Drop for PendingCreate<'_> {
    fn drop(&mut self) {
        if !self.is_over {
            self.end(|expected| {
                expected.unnamed += 1;
                false
            });
        }
    }
}
