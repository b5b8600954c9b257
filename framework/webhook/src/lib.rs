//! Webhooks as typed handlers: [`Validate`] judges writes of a kind, [`Mutate`] changes objects
//! before they are stored, and [`Webhooks::converting`] converts objects between the versions of
//! their kind.
//!
//! | type | purpose |
//! |---|---|
//! | [`Validate`], [`Mutate`] | the rules of a kind, in code of the operator |
//! | [`Admission`] | the request: operation, user, dry run; no client |
//! | [`AdmissionResponse`] | the answer: allowed, errors of fields, warnings |
//! | [`Webhooks`] | the handlers of an operator by path |
//! | [`AdmissionHandler`] | answers the requests of API servers by these handlers |
//! | [`WebhookServer`] | the HTTPS server, a runnable of the manager |
//! | [`CertificateSource`], [`MountedFiles`] | the serving certificate |
//! | [`WebhookRegistration`], [`Configurations`] | the objects that say which requests API servers send here |
//! | [`AdmissionPolicy`], [`cel!`] | rules in CEL, which API servers evaluate without a webhook |
//!
//! A rule that CEL can express belongs into the schema of your own kind, or into an
//! [`AdmissionPolicy`] about a kind of somebody else: neither needs a webhook. Tests ask handlers
//! without a socket: see [`AdmissionHandler::handle`].

// DESIGN.md, 185: Admission is a crate below the manager, and answers without a socket
// DESIGN.md, 186: The response of a handler is a value, and its errors are those of the API server
// DESIGN.md, 187: A mutation is the difference of two writings of its type

// Doc tests write `windlass::webhook::…`, as users of the façade do; this module makes those paths
// valid.
#[doc(hidden)]
pub mod webhook {
    pub use crate::*;
}

// For the code that `cel!` expands to.
#[doc(hidden)]
pub use windlass_runtime::expansion;

mod admission;
mod certificates;
mod change;
mod configuration;
mod conversion;
mod cut;
mod field;
mod handlers;
mod hook;
mod judge;
mod meter;
mod outside;
mod patch;
mod policy;
mod response;
mod review;
mod server;
mod size;
#[cfg(test)]
mod tests;
mod webhooks;

pub use admission::{Admission, Operation, User};
#[cfg(any(feature = "ring", feature = "aws-lc-rs"))]
pub use certificates::OwnCertificates;
pub use certificates::{
    CertificateContext, CertificateSource, MountedFiles, ServingCertificate, SourceFuture,
};
pub use configuration::{ConfigurationOptions, Configurations, FailurePolicy, WebhookRegistration};
pub use field::Field;
pub use handlers::{Mutate, Validate};
pub use policy::{
    AdmissionPolicies, AdmissionPolicy, CelExpression, DenialReason, PolicyRule, ValidationAction,
};
pub use response::AdmissionResponse;
pub use server::WebhookServer;
pub use size::{MAX_BODY, MAX_CONVERTED};
pub use webhooks::{AdmissionHandler, Webhooks};
#[doc(inline)]
pub use windlass_runtime::manager::{AcceptFuture, WebhookListener};
