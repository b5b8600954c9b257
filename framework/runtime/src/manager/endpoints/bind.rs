//! Address of a server: a default, an address of the program, or none.

use std::net::SocketAddr;

/// Address of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Bind {
    /// Not set by the program.
    Default(SocketAddr),
    /// Set by the program.
    At(SocketAddr),
    /// Nothing is served.
    Off,
}

impl Bind {
    /// Returns the address; `None` when the server is off.
    pub(crate) fn addr(self) -> Option<SocketAddr> {
        match self {
            Self::Default(addr) | Self::At(addr) => Some(addr),
            Self::Off => None,
        }
    }
}
