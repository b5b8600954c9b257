//! What a listener is told.

use std::sync::Arc;

use crate::resource::{ObjectKey, Resource};
use crate::store::{Cached, Event};

/// One change of an object, with the old and the new state in hand.
///
/// A listener that is slower than the cache is told fewer, larger steps: `old` is then what it was
/// told last, and `new` the latest. A deletion is never left out, and stands before the successor's
/// addition.
#[derive(Clone, Debug)]
pub enum Change<K> {
    /// New in the cache.
    Added {
        /// The object.
        new: Cached<K>,
        /// Part of the first list, or of what a late listener is told at first?
        is_initial: bool,
    },
    /// Another version of a cached object; or the same one again, when a listener's resync period
    /// is over: see [`is_resync`](Self::is_resync).
    Updated {
        /// Before.
        old: Cached<K>,
        /// After.
        new: Cached<K>,
    },
    /// Gone.
    Deleted {
        /// The last state that the cache held. A listener that was behind may not have been told of
        /// it, nor of the object.
        last: Cached<K>,
        /// The deletion itself was missed (found by a relist, or by a successor of the same name):
        /// `last` may be stale.
        final_state_unknown: bool,
    },
}

impl<K> Change<K> {
    pub(crate) fn of(event: &Event) -> Self {
        match event {
            Event::Added { new, is_initial } => {
                Self::Added { new: Cached::new(Arc::clone(new)), is_initial: *is_initial }
            }
            Event::Updated { old, new } => Self::Updated {
                old: Cached::new(Arc::clone(old)),
                new: Cached::new(Arc::clone(new)),
            },
            Event::Deleted { last, final_state_unknown } => Self::Deleted {
                last: Cached::new(Arc::clone(last)),
                final_state_unknown: *final_state_unknown,
            },
        }
    }
}

impl<K: Resource> Change<K> {
    /// Namespace and name of the object.
    pub fn key(&self) -> &ObjectKey {
        match self {
            Self::Added { new, .. } | Self::Updated { new, .. } => new.key(),
            Self::Deleted { last, .. } => last.key(),
        }
    }

    /// Nothing changed: a listener that asked for it is shown the cached objects again, one period
    /// after the other.
    pub fn is_resync(&self) -> bool {
        matches!(self, Self::Updated { old, new } if old.is_same(new))
    }
}
