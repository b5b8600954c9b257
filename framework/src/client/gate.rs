//! The question that every write asks first.

use std::fmt::Debug;
use std::time::Duration;

use crate::error::Error;

/// Says whether a write may be sent now. Leader election is one: without a valid lease it refuses.
pub trait WriteGate: Debug + Send + Sync + 'static {
    /// `Ok(Some(limit))`: send it, and it must have ended within `limit`; `Ok(None)`: no limit of ours.
    ///
    /// # Errors
    /// [`ErrorKind::NotLeader`](crate::ErrorKind::NotLeader) when the write must not be sent.
    fn admit(&self) -> Result<Option<Duration>, Error>;
}
