//! A change of an object, as [`DeltaFifo`](super::DeltaFifo) and [`RealFifo`](super::RealFifo) hand
//! changes out.

use std::fmt;

/// The kind of a change. The list is complete, so that a `match` can be exhaustive.
///
/// client-go's `DeltaType`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum DeltaType {
    /// The object is new.
    Added,
    /// The object changed.
    Updated,
    /// The object was deleted.
    Deleted,
    /// A list shows the object, which may be new, changed or the same.
    Replaced,
    /// Nothing happened; the object is delivered again.
    Sync,
    /// A whole list as a single change. Only in an atomic `RealFifo`.
    ReplacedAll,
    /// All known objects are to be delivered again. Only in an atomic `RealFifo`.
    SyncAll,
    /// The source has reached a version, without a change. Only in a `RealFifo`.
    Bookmark,
}

impl fmt::Display for DeltaType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, f)
    }
}

/// A deletion.
///
/// client-go's `DeletedFinalStateUnknown` is a deletion that is not certain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Deleted<T> {
    /// The last known state, if there is any.
    pub last_known: Option<T>,
    /// Whether the deletion itself was seen; then `last_known` is the object's final state. If not,
    /// a list lacked the object, which may have changed, or gone and come again under another uid,
    /// unseen.
    pub certain: bool,
}

impl<T> Deleted<T> {
    /// A deletion that was seen, with the final state.
    pub fn seen(last: T) -> Self {
        Self { last_known: Some(last), certain: true }
    }

    /// A tombstone: a deletion that a list implies.
    pub fn missed(last_known: Option<T>) -> Self {
        Self { last_known, certain: false }
    }
}

/// A change of an object.
///
/// client-go's `Delta`. A consumer applies it to a store by [`object`](Self::object):
///
/// ```
/// # extern crate windlass_fifo as windlass;
/// use windlass::fifo::{Deleted, DeltaType, ObjectDelta};
///
/// let delta = ObjectDelta::Deleted(Deleted::missed(Some("last state")));
/// assert_eq!(delta.delta_type(), DeltaType::Deleted);
/// assert_eq!(delta.object(), Some(&"last state"));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ObjectDelta<T> {
    /// The object is new.
    Added(T),
    /// The object changed.
    Updated(T),
    /// The object was deleted.
    Deleted(Deleted<T>),
    /// A list shows the object.
    Replaced(T),
    /// The object is delivered again.
    Sync(T),
}

impl<T> ObjectDelta<T> {
    /// Returns the kind of this change.
    pub fn delta_type(&self) -> DeltaType {
        match self {
            Self::Added(_) => DeltaType::Added,
            Self::Updated(_) => DeltaType::Updated,
            Self::Deleted(_) => DeltaType::Deleted,
            Self::Replaced(_) => DeltaType::Replaced,
            Self::Sync(_) => DeltaType::Sync,
        }
    }

    /// Returns the object: the new state, or the last known state of a deleted one.
    ///
    /// `None` only for a deletion without a known state.
    pub fn object(&self) -> Option<&T> {
        match self {
            Self::Added(object)
            | Self::Updated(object)
            | Self::Replaced(object)
            | Self::Sync(object) => Some(object),
            Self::Deleted(deleted) => deleted.last_known.as_ref(),
        }
    }

    /// Returns the object's state after this change; `None` after a deletion.
    pub(super) fn state(&self) -> Option<&T> {
        match self {
            Self::Deleted(_) => None,
            _ => self.object(),
        }
    }
}
