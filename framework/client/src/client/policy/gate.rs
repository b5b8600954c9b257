//! The check that every write passes before sending.

use std::fmt::Debug;
use std::time::Duration;

use super::in_flight::WritePermit;
use windlass_core::error::Error;

/// Decides whether a write may be sent now. Leader election implements this trait: without a valid
/// lease the gate refuses.
pub trait WriteGate: Debug + Send + Sync + 'static {
    /// Permits or refuses a write. `Ok(Some(limit))`: the write may be sent and must have ended
    /// within `limit`. `Ok(None)`: the gate sets no limit.
    ///
    /// # Errors
    /// [`ErrorKind::NotLeader`](windlass_core::ErrorKind::NotLeader) when the write must not be
    /// sent.
    fn admit(&self) -> Result<Option<Duration>, Error>;

    /// Permits or refuses a write for the last time, once for each attempt, when a connection is
    /// open and only the sending remains.
    ///
    /// The gate of a lease counts the writes that the gate admits here: dropping a call does not
    /// stop the server, and a lease must not be released before the server has ended. A gate in
    /// front of another gate has to forward this method, too. The default is
    /// [`admit`](Self::admit), and writes are not counted.
    ///
    /// # Errors
    /// As [`admit`](Self::admit).
    fn begin_write(&self) -> Result<WritePermit, Error> {
        self.admit().map(WritePermit::within)
    }
}
