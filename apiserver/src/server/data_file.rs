//! Content of the data file beside objects.

#[cfg(feature = "data-file")]
use std::fmt;

#[cfg(feature = "data-file")]
use crate::data::Writer;
use crate::tls;

/// Data file of a server, and its content beside objects.
#[cfg(feature = "data-file")]
pub(crate) struct ServerDataFile {
    /// The authority that signs all certificates.
    pub(crate) authority: tls::PemIdentity,
    /// The administrator's token.
    pub(crate) token: String,
    /// The thread that writes the file.
    pub(crate) writer: Writer,
}

#[cfg(feature = "data-file")]
impl ServerDataFile {
    /// Returns the authority and the administrator's token.
    pub(super) fn identity(&self) -> (tls::PemIdentity, String) {
        (self.authority.clone(), self.token.clone())
    }

    /// Waits until the file is closed.
    pub(super) async fn closed(&self) {
        self.writer.closed().await;
    }
}

/// Shows no key and no token.
#[cfg(feature = "data-file")]
impl fmt::Debug for ServerDataFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServerDataFile").field("writer", &self.writer).finish_non_exhaustive()
    }
}

/// Data file of a server that is built without files: there is none.
#[cfg(not(feature = "data-file"))]
#[derive(Debug)]
pub(crate) enum ServerDataFile {}

#[cfg(not(feature = "data-file"))]
impl ServerDataFile {
    pub(super) fn identity(&self) -> (tls::PemIdentity, String) {
        match *self {}
    }

    pub(super) async fn closed(&self) {
        match *self {}
    }
}
