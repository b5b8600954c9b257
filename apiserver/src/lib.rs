//! A Kubernetes API server as a library: for tests, quickstarts and development.
//!
//! The crate imports nothing of the operator framework: client and server are two independent
//! readings of the Kubernetes API. The server behaves like kube-apiserver 1.36, keeps everything in
//! memory or in a file ([`Builder::start_on`]), shares tokio's clock and draws all randomness from
//! a single seed, so that tests can pause time and repeat runs.
//!
//! | there | not there |
//! |---|---|
//! | built-in kinds and definitions; JSON, YAML, protobuf; patches, server-side apply, watches over HTTP and WebSocket | aggregated APIs, CBOR |
//! | defaults, validation, immutable fields and warnings of built-in kinds, with selectors of devices | `tests/conformance/differences.txt` names what is known to differ |
//! | objects that a kube-apiserver makes by itself: addresses of Services, `APIServices`, priorities, flow control | a controller that makes new `ServiceCIDRs` ready |
//! | RBAC, validating and mutating admission policies and webhooks, conversion webhooks, quotas, garbage collection, namespaces | admission for writes of the server's own controllers |
//! | [`ControllerSet`]: stand-ins for workloads, Endpoints, volumes, scheduler and kubelet | containers, networks |
//! | logs from annotations, `exec`, `attach` and forwarded ports that echo, over WebSocket | SPDY without a WebSocket |
//! | storage in memory or in a file, an audit log, administration over a Unix socket | etcd |
//!
//! | feature, all on by default | without it |
//! |---|---|
//! | `admin` | no `ApiServer::serve_admin` |
//! | `data-file` | no [`Builder::start_on`]; nothing outlives the process |
//! | `websocket` | sessions with Pods are answered 501, and watches go on over HTTP |
//! | `program` | no `windlass-apiserver`, the program |

#![cfg_attr(
    not(all(unix, feature = "admin", feature = "data-file", feature = "websocket")),
    allow(dead_code, unused_imports, reason = "the parts that are left out use them")
)]

#[cfg(all(unix, feature = "admin"))]
mod admin;
pub mod apply;
mod audit;
mod auth;
mod clock;
mod controllers;
mod core;
pub mod crd_schema;
mod crds;
#[cfg(feature = "data-file")]
mod data;
mod direct;
pub mod discovery;
#[cfg(feature = "data-file")]
mod durable;
pub mod faults;
#[cfg(any(feature = "admin", feature = "data-file"))]
mod files;
mod go;
mod hooks;
mod http;
mod kinds;
mod long_work;
mod metrics;
mod names;
pub mod openapi;
pub mod patch;
mod policies;
#[doc(hidden)]
pub mod protobuf;
mod rbac;
mod requests;
mod seed;
mod selectors;
pub mod served;
mod server;
mod signal;
mod status;
mod storage;
pub mod table;
mod tls;
pub mod typed;
mod verbs;

pub use auth::User;
pub use controllers::ControllerSet;
pub use direct::Backup;
pub use hooks::{Connecting, Connector, Destination, TcpConnector, WebhookStream};
pub use requests::Request;
pub use server::{ApiServer, Builder};
pub use status::ApiError;
pub use tls::Listening;
