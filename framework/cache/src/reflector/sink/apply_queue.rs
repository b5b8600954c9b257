//! Types of the queue between the reflectors of an informer and its store.

use crate::delta::Delta;
use crate::store::{Observed, StreamMark};

/// A change or a mark on its way to a store.
pub(crate) type StoreDelta = Delta<Observed, StreamMark>;

/// The queue between the reflectors of one informer and the task that applies their deltas.
pub(crate) type ApplyQueue = crate::delta::ApplyQueue<Observed, StreamMark>;
