//! Webhooks as typed handlers: [`Validate`] judges writes of a kind, [`Mutate`] changes objects
//! before they are stored, and [`Webhooks::converting`] converts objects between the versions of
//! their kind.
//!
//! | type | has |
//! |---|---|
//! | [`Validate`], [`Mutate`] | the rules of a kind, in code of the operator |
//! | [`Admission`] | the request: operation, user, dry run; no client |
//! | [`AdmissionResponse`] | the answer: allowed, errors of fields, warnings |
//! | [`Webhooks`] | the handlers of an operator by path |
//! | [`AdmissionHandler`] | their answers to requests of API servers |
//! | [`WebhookServer`] | the HTTPS server, a runnable of the manager |
//! | [`CertificateSource`], [`MountedFiles`] | the serving certificate |
//! | [`WebhookRegistration`], [`Configurations`] | the requests that API servers ask about |
//! | [`AdmissionPolicy`], [`cel!`] | rules in CEL, which API servers evaluate without a webhook |
//!
//! A rule that CEL can express belongs to the schema of an own kind, or to a policy about a kind of
//! others: neither needs a webhook. Tests ask handlers without a socket: see
//! [`AdmissionHandler::handle`].

// DESIGN.md, 185: Admission is a crate below the manager, and answers without a socket
// DESIGN.md, 186: The response of a handler is a value, and its errors are those of the API server
// DESIGN.md, 187: A mutation is the difference of two writings of its type

// Examples name the crate as users do.
#[doc(hidden)]
pub mod webhook {
    pub use crate::*;
}

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
