//! `x-kubernetes-validations`: rules of a schema, compiled with the server's limits and run on objects.

mod compile;
mod correlation;
mod definition;
pub mod field_path;
mod rule;
mod validate;
mod validator;
mod violation;

pub use definition::check_definition;
pub use field_path::FieldPath;
pub use rule::Rule;
pub use validate::{OBJECT_BUDGET, PER_CALL_LIMIT, Report};
pub use validator::Validator;
pub use violation::{Reason, Violation};
