//! Connections of a client, and the exchange of a request over these connections.
//!
//! [`Transport`] is the innermost service of a client's stack. It takes a connection from the
//! [`Pool`], which opens new connections by a [`Connect`]: a [`Dialer`] with TCP, a proxy and TLS,
//! or the user's own.

mod body;
mod connect;
mod connection_driver;
pub(in crate::client) mod dial;
pub(in crate::client) mod gzip;
mod message;
mod payload;
mod pool;
mod proxy;
mod self_wake;
mod service;
mod tls;
mod tuning;

pub(in crate::client) use body::{BodyEnd, BoundedReader, ERROR_BODY_LIMIT};
pub use connect::{BoxIo, Connect, ConnectFuture, ConnectedStream, Io};
pub(in crate::client) use connect::{Nowhere, Offline};
pub(crate) use dial::{Dialer, IdentityFuture, IdentitySource};
pub use gzip::inflate;
pub use message::{HttpRequest, HttpResponse, ResponseBody, Stack};
pub(in crate::client) use payload::MAX_BODY;
pub use payload::{BodyReader, RequestBody};
pub(crate) use pool::Pool;
pub(crate) use proxy::{Proxy, ProxyChoice, Scheme};
pub(crate) use service::{Attempt, Transport, TransportError};
#[cfg(feature = "ws")]
pub(in crate::client) use service::{failed, for_http1};
pub(crate) use tls::{Identity, Pem, Tls, TlsSettings, default_provider, proxy_config};
pub(crate) use tuning::Tuning;
