//! Changes of objects, as listeners receive them.

use std::sync::Arc;

use crate::store::{Cached, StoreEvent};
use windlass_core::resource::{ObjectKey, Resource};

/// A change of an object, with the old and the new state.
///
/// A listener that is slower than the cache receives fewer, larger steps: `old` is then the state
/// that the listener received last, and `new` the latest. A deletion is never left out, and
/// precedes the successor's addition.
///
/// client-go's `ResourceEventHandler` has a function for each variant; client-go's
/// `DeletedFinalStateUnknown` is the flag of [`Deleted`](Self::Deleted).
#[derive(Clone, Debug)]
pub enum Change<K> {
    /// The object is new in the cache.
    Added {
        /// The object.
        new: Cached<K>,
        /// Whether the addition is part of the first list, or of the content that a late listener
        /// receives first.
        is_initial: bool,
    },
    /// A cached object has another version; or the same version is delivered again, when a
    /// listener's resync period is over: see [`is_resync`](Self::is_resync).
    Updated {
        /// The state before.
        old: Cached<K>,
        /// The state after.
        new: Cached<K>,
    },
    /// The object is gone.
    Deleted {
        /// The last state that the cache held. A slow listener may not have received that state,
        /// nor any state of the object.
        last: Cached<K>,
        /// Whether the deletion was missed (and found by a relist, or by a successor of the same
        /// name): `last` may be stale.
        final_state_unknown: bool,
    },
}

impl<K> Change<K> {
    #[doc(hidden)]
    pub fn of(event: &StoreEvent) -> Self {
        match event {
            StoreEvent::Added { new, is_initial } => {
                Self::Added { new: Cached::new(Arc::clone(new)), is_initial: *is_initial }
            }
            StoreEvent::Updated { old, new } => Self::Updated {
                old: Cached::new(Arc::clone(old)),
                new: Cached::new(Arc::clone(new)),
            },
            StoreEvent::Deleted { last, final_state_unknown } => Self::Deleted {
                last: Cached::new(Arc::clone(last)),
                final_state_unknown: *final_state_unknown,
            },
        }
    }
}

impl<K: Resource> Change<K> {
    /// Returns namespace and name of the object.
    pub fn key(&self) -> &ObjectKey {
        match self {
            Self::Added { new, .. } | Self::Updated { new, .. } => new.key(),
            Self::Deleted { last, .. } => last.key(),
        }
    }

    /// Returns whether nothing changed: a listener with a resync period receives the cached objects
    /// again after each period.
    ///
    /// client-go's idiom of comparing the two resourceVersions.
    pub fn is_resync(&self) -> bool {
        matches!(self, Self::Updated { old, new } if old.is_same(new))
    }
}
