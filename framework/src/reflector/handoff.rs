//! The hand-off of one informer, with its types.

use crate::delta::Delta;
use crate::store::{Mark, Sighting};

pub(crate) type StoreDelta = Delta<Sighting, Mark>;

/// The hand-off of one informer.
pub(crate) type Handoff = crate::delta::Handoff<Sighting, Mark>;
