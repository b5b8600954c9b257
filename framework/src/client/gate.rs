//! The question that every write asks first.

use std::fmt::Debug;
use std::time::Duration;

use super::flights::LetOut;
use crate::error::Error;

/// Says whether a write may be sent now. Leader election is one: without a valid lease it refuses.
pub trait WriteGate: Debug + Send + Sync + 'static {
    /// `Ok(Some(limit))`: send it, and it must have ended within `limit`; `Ok(None)`: no limit of ours.
    ///
    /// # Errors
    /// [`ErrorKind::NotLeader`](crate::ErrorKind::NotLeader) when the write must not be sent.
    fn admit(&self) -> Result<Option<Duration>, Error>;

    /// The same question, asked once more for each attempt when there is a connection and nothing is
    /// left to do but to send.
    ///
    /// The gate of a lease counts what it lets out here: a call that is dropped does not stop the
    /// server, and a lease must not be given back before. A gate in front of another one hands this
    /// question on, too. By default it is [`admit`](Self::admit), and nobody counts.
    ///
    /// # Errors
    /// As [`admit`](Self::admit).
    fn let_out(&self) -> Result<LetOut, Error> {
        self.admit().map(LetOut::within)
    }
}
