//! The read of the version that the server's store has.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use super::machine::RollbackCheck;
use super::source::{ListWatch, PageReader, Read};
use windlass_core::clock::Clock;
use windlass_core::error::{Error, ErrorKind};

/// Deadline of a version read.
const VERSION_READ_TIMEOUT: Duration = Duration::from_secs(10);

/// A read of the store's version: the result is the version of a list that is read to the end.
pub(super) type VersionRead = Pin<Box<dyn Future<Output = Result<String, Error>> + Send>>;

impl RollbackCheck<VersionRead> {
    /// Waits for the result of the version read in flight; for ever, when there is none. The result
    /// must be passed to `compare` or `failed` before the next call.
    ///
    /// # Cancel safety
    /// Safe: the read goes on with the next call.
    pub(super) async fn result(&mut self) -> Result<String, Error> {
        let Some(read) = self.read() else { return std::future::pending().await };
        read.await
    }
}

/// Reads the version of the store by a list of a single object, because a limit of 0 means a list
/// of all.
pub(super) async fn newest(
    source: Arc<dyn ListWatch>,
    clock: Clock,
    what: String,
    limit: usize,
) -> Result<String, Error> {
    let read = Read::Page { resource_version: None, limit: Some(1), continue_token: None };
    let reading = async {
        let mut reader = PageReader::open(&*source, read, &clock, &what, limit).await?;
        while let Some(piece) = reader.next().await? {
            reader.split(&piece, &mut |_| {})?;
        }
        Ok(reader.finish()?.resource_version)
    };
    clock.timeout(VERSION_READ_TIMEOUT, reading).await.unwrap_or_else(|| {
        let seconds = VERSION_READ_TIMEOUT.as_secs();
        Err(Error::new(ErrorKind::Timeout, format!("no list of {what} within {seconds} s")))
    })
}
