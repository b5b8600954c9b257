//! Input and output of the store: observed objects and marks of a stream, and the changes that they
//! make.

use std::cmp::Ordering;
use std::sync::Arc;

use super::object::Object;
use super::version::order;
use crate::delta::DeltaItem;
use windlass_core::resource::ObjectKey;

/// A single pass over a scope: a list and the following watch. Run numbers count up. A new epoch
/// begins when the server's versions went backwards; versions of two epochs do not compare.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct ListGeneration {
    /// Counts the times that the server's versions went backwards.
    pub(crate) epoch: u32,
    #[doc(hidden)]
    pub number: u32,
}

/// An object as received by a reflector.
#[derive(Clone, Debug)]
pub struct Observed {
    #[doc(hidden)]
    pub object: Arc<Object>,
    #[doc(hidden)]
    pub run: ListGeneration,
    /// The first list showed the object.
    #[doc(hidden)]
    pub is_initial: bool,
}

impl DeltaItem for Observed {
    fn key(&self) -> &ObjectKey {
        self.object.key()
    }

    fn order(&self, other: &Self) -> Option<Ordering> {
        match self.run.epoch.cmp(&other.run.epoch) {
            Ordering::Equal => order(self.object.version(), other.object.version()),
            epoch => Some(epoch),
        }
    }

    fn seen_again(&mut self, again: &Self) {
        self.run = self.run.max(again.run);
    }
}

/// A milestone of a scope's stream, in order with the stream's objects.
#[derive(Clone, Debug)]
pub struct StreamMark {
    /// The reflector that sent the mark.
    pub(crate) scope: usize,
    /// The reflector's namespace; `None` for all.
    pub(crate) namespace: Option<Arc<str>>,
    pub(crate) run: ListGeneration,
    pub(crate) resource_version: Arc<str>,
    pub(crate) what: MarkKind,
}

impl StreamMark {
    /// Whether objects may be gone for which no deletion was delivered.
    pub(in crate::store) fn sweeps(&self) -> bool {
        matches!(self.what, MarkKind::Listed | MarkKind::Absent)
    }

    /// Whether an object that was last seen in `run` is gone.
    pub(in crate::store) fn takes(&self, run: ListGeneration) -> bool {
        run < self.run || self.what == MarkKind::Absent
    }
}

/// The kind of a mark.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MarkKind {
    /// Everything up to this version was delivered.
    Reached,
    /// The list is complete: objects that it did not show are gone.
    Listed,
    /// The list is complete but for items whose name could not be read: objects that the list did
    /// not show stay.
    ListedInPart,
    /// The kind is not served: all its objects are gone.
    Absent,
    /// The server's versions went backwards: earlier own writes cannot be waited for.
    NewEpoch,
}

/// A change of an object.
#[derive(Clone, Debug)]
pub enum StoreEvent {
    /// The store did not have the object.
    Added {
        /// State of the object.
        new: Arc<Object>,
        /// The first list showed the object.
        is_initial: bool,
    },
    /// The store had an older state.
    Updated {
        /// The older state.
        old: Arc<Object>,
        /// State of the object.
        new: Arc<Object>,
    },
    /// The object is gone.
    Deleted {
        /// Last cached state.
        last: Arc<Object>,
        /// A list did not show the object: the last state was not seen.
        final_state_unknown: bool,
    },
}

impl StoreEvent {
    #[doc(hidden)]
    pub fn key(&self) -> &ObjectKey {
        match self {
            Self::Added { new, .. } | Self::Updated { new, .. } => new.key(),
            Self::Deleted { last, .. } => last.key(),
        }
    }
}

/// The outcome of a batch.
#[derive(Debug, Default)]
pub struct BatchOutcome {
    /// Changes in order.
    #[doc(hidden)]
    pub events: Vec<StoreEvent>,
    /// Marks in order; the events of all deltas before a mark are in `events`.
    pub(crate) marks: Vec<StreamMark>,
    /// States that were not newer than the cached states.
    pub(crate) dropped: u64,
    /// Dropped states; freed with this value, outside of the lock.
    pub(in crate::store) stale: Vec<Observed>,
}

/// Recycles objects that were replaced, deleted or dropped, unless a listener still holds them.
impl Drop for BatchOutcome {
    fn drop(&mut self) {
        for event in self.events.drain(..) {
            match event {
                StoreEvent::Added { .. } => {}
                StoreEvent::Updated { old, .. } => Object::give_back(old),
                StoreEvent::Deleted { last, .. } => Object::give_back(last),
            }
        }
        self.stale.drain(..).for_each(|seen| Object::give_back(seen.object));
    }
}

impl BatchOutcome {
    /// Counts a state that was not newer, and keeps that state to be freed outside of the lock.
    pub(in crate::store) fn drop_stale(&mut self, seen: Observed) {
        self.dropped += 1;
        self.stale.push(seen);
    }
}
