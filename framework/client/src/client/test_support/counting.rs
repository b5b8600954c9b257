//! A gate that counts writes.

use std::time::Duration;

use crate::client::{InFlightWrites, WriteGate, WritePermit};
use windlass_core::error::Error;

/// Gate that permits every write for 7.5 s, and counts it.
#[derive(Debug)]
pub struct Counting(
    /// Writes in flight.
    pub InFlightWrites,
);

impl WriteGate for Counting {
    fn admit(&self) -> Result<Option<Duration>, Error> {
        Ok(Some(Duration::from_millis(7_500)))
    }

    fn begin_write(&self) -> Result<WritePermit, Error> {
        Ok(WritePermit::counted(self.admit()?, self.0.begin()))
    }
}
