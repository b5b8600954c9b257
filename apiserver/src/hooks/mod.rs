//! Calls to webhooks: the address from a configuration, the connection, the exchange, and the
//! answers that a request has so far.
//!
//! Verbs run without waiting, so none of them awaits a webhook. A verb that needs an answer asks
//! the [`WebhookSession`] of the request. Without that answer the verb ends with
//! [`suspended`](crate::status::ApiError::suspended), having changed nothing; the questions are put
//! to the webhooks while no lock is held, and the verb runs again with the answers. The webhooks
//! that concern a request, and the meaning of an answer, are decided in `verbs::admit::webhooks`
//! and in `verbs::suspend::convert`.

// DESIGN.md, 146: A verb that needs a webhook ends, and runs again with the answer

mod client;
mod configurations;
mod connector;
mod failure;
mod session;
mod target;
mod tls;

pub(crate) use client::Client;
pub(crate) use configurations::{AdmissionPhase, Configurations, Hook};
pub(crate) use connector::is_allowed;
pub use connector::{Connecting, Connector, Destination, TcpConnector, WebhookStream};
pub(crate) use session::{CallFailure, HookResponse, Progress, Question, WebhookSession};
