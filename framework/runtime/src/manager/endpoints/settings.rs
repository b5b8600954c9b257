//! Addresses of probes and metrics, as settings of a manager.

use std::net::{Ipv4Addr, SocketAddr};

use crate::manager::Manager;

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

impl Manager {
    /// Sets the address at which `/healthz` and `/readyz` are served; port 0 picks a free port.
    /// Default `[::]:8081`: every interface, by IPv6 and IPv4, or by IPv4 alone on a machine
    /// without IPv6.
    ///
    /// A page is `ok` when all checks pass, and names the checks when a check fails or with
    /// `?verbose`. An address in use is an [`ErrorKind::Config`](windlass_core::ErrorKind::Config)
    /// of [`run`](Self::run).
    pub fn health(mut self, addr: SocketAddr) -> Self {
        self.health = Bind::At(addr);
        self
    }

    /// Serves no probes.
    pub fn without_health(mut self) -> Self {
        self.health = Bind::Off;
        self
    }

    /// Sets the address at which `/metrics` is served; port 0 picks a free port, the probes'
    /// address shares their server. Default 127.0.0.1:8080.
    ///
    /// The page is not authenticated: an address beyond the loopback interface is a decision for
    /// the network policy, too.
    pub fn metrics(mut self, addr: SocketAddr) -> Self {
        self.metrics = Bind::At(addr);
        self
    }

    /// Serves the debug page on every address at which metrics are served. Default: only on the
    /// loopback interface. The page shows names of objects and texts of errors.
    pub fn debug_everywhere(mut self) -> Self {
        self.debug = true;
        self
    }

    /// Serves no metrics, and no debug page.
    pub fn without_metrics(mut self) -> Self {
        self.metrics = Bind::Off;
        self
    }

    /// Opens no socket and listens to no signal unless asked to: for operators inside a test.
    #[doc(hidden)]
    pub fn quiet(mut self) -> Self {
        for bind in [&mut self.health, &mut self.metrics] {
            if matches!(bind, Bind::Default(_)) {
                *bind = Bind::Off;
            }
        }
        self
    }

    /// Adapts the defaults to a developer's machine: no probes, and metrics, debug page and
    /// webhooks on free ports, so that several operators can run at once. Explicit settings stay.
    #[doc(hidden)]
    pub fn on_free_ports(mut self) -> Self {
        if matches!(self.health, Bind::Default(_)) {
            self.health = Bind::Off;
        }
        if matches!(self.metrics, Bind::Default(_)) {
            self.metrics = Bind::At((Ipv4Addr::LOCALHOST, 0).into());
        }
        self
    }
}
