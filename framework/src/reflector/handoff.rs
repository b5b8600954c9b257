//! Types of an informer's hand-off.

use crate::delta::Delta;
use crate::store::{Mark, Sighting};

/// A change or a mark on its way to a store.
pub(crate) type StoreDelta = Delta<Sighting, Mark>;

/// The queue between the reflectors of one informer and the task that applies their deltas.
pub(crate) type Handoff = crate::delta::Handoff<Sighting, Mark>;
