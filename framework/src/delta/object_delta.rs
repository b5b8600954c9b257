//! One change of one object, as [`DeltaFifo`](super::DeltaFifo) and [`RealFifo`](super::RealFifo)
//! hand it out.

use std::fmt;

/// What kind of change a delta is. These are all there are, so that a `match` can be whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum DeltaType {
    /// The object came.
    Added,
    /// The object changed.
    Updated,
    /// The object went.
    Deleted,
    /// A list shows the object; it may be new, changed or the same.
    Replaced,
    /// Nothing happened; the object is told again.
    Sync,
    /// A whole list as one change. Only in an atomic `RealFifo`.
    ReplacedAll,
    /// All that is known is told again. Only in an atomic `RealFifo`.
    SyncAll,
    /// The source has come to a version, without a change. Only in a `RealFifo`.
    Bookmark,
}

impl fmt::Display for DeltaType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, f)
    }
}

/// A deletion.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Deleted<T> {
    /// The last state that is known, if any is.
    pub last_known: Option<T>,
    /// Was the deletion itself seen? Then `last_known` is the object's final state. If not, a list
    /// lacked the object: it may have changed, or gone and come again under another uid, unseen.
    pub certain: bool,
}

impl<T> Deleted<T> {
    /// A deletion that was seen, with the final state.
    pub fn seen(last: T) -> Self {
        Self { last_known: Some(last), certain: true }
    }

    /// A deletion that a list implies: a tombstone.
    pub fn missed(last_known: Option<T>) -> Self {
        Self { last_known, certain: false }
    }
}

/// One change of one object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ObjectDelta<T> {
    /// The object came.
    Added(T),
    /// The object changed.
    Updated(T),
    /// The object went.
    Deleted(Deleted<T>),
    /// A list shows the object.
    Replaced(T),
    /// The object is told again.
    Sync(T),
}

impl<T> ObjectDelta<T> {
    /// What kind of change this is.
    pub fn delta_type(&self) -> DeltaType {
        match self {
            Self::Added(_) => DeltaType::Added,
            Self::Updated(_) => DeltaType::Updated,
            Self::Deleted(_) => DeltaType::Deleted,
            Self::Replaced(_) => DeltaType::Replaced,
            Self::Sync(_) => DeltaType::Sync,
        }
    }

    /// The object: its new state, or the last known one of a deletion.
    pub fn object(&self) -> Option<&T> {
        match self {
            Self::Added(object)
            | Self::Updated(object)
            | Self::Replaced(object)
            | Self::Sync(object) => Some(object),
            Self::Deleted(deleted) => deleted.last_known.as_ref(),
        }
    }

    /// The object's state after this change; `None` after a deletion.
    pub(super) fn state(&self) -> Option<&T> {
        match self {
            Self::Deleted(_) => None,
            _ => self.object(),
        }
    }
}
