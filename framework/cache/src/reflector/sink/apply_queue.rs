//! Types of the queue between the reflectors of an informer and the store.

use crate::delta::Delta;
use crate::store::{Observed, StreamMark};

/// A change or a mark on the way to a store.
pub(crate) type StoreDelta = Delta<Observed, StreamMark>;

/// The queue between the reflectors of an informer and the task that applies their deltas.
pub(crate) type StoreApplyQueue = crate::delta::ApplyQueue<Observed, StreamMark>;
