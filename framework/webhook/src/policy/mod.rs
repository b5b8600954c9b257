//! Admission policies: rules in CEL that API servers evaluate by themselves, without a webhook.
//!
//! Files: `expression` has checked texts of CEL, `keys` a policy with its rules, `objects` makes
//! the objects, `runnable` prints them, `outside` has those of a process outside of a cluster.

// DESIGN.md, 261: A rule of CEL about kinds of others is a policy of the API server, and always
// fails closed
// DESIGN.md, 262: Fields of an expression are checked by the compiler, as walks over the kind's
// type

mod expression;
mod keys;
mod objects;
mod outside;
mod runnable;

pub use self::expression::CelExpression;
pub use self::keys::{AdmissionPolicy, DenialReason, PolicyRule, ValidationAction};
pub use self::objects::AdmissionPolicies;
