//! `x-kubernetes-validations`: rules of a schema, compiled with the server's limits and run on
//! objects.
//!
//! ```
//! use serde_json::json;
//! use windlass_cel::rules::{Validator, check_definition};
//!
//! let schema = json!({"type": "object", "properties": {"spec": {
//!     "type": "object",
//!     "properties": {"min": {"type": "integer"}, "max": {"type": "integer"}},
//!     "x-kubernetes-validations": [{"rule": "self.min <= self.max", "message": "min exceeds max"}],
//! }}});
//! assert!(check_definition(&schema).is_empty());
//!
//! let report = Validator::new(&schema).validate(&json!({"spec": {"min": 3, "max": 1}}), None);
//! assert_eq!(report.violations[0].to_string(), "spec: Invalid value: min exceeds max");
//! ```

mod compile;
mod correlation;
mod definition;
pub mod field_path;
mod rule;
#[cfg(test)]
mod tests;
mod validate;
mod validator;
mod violation;

pub use definition::check_definition;
pub use field_path::FieldPath;
pub use rule::Rule;
pub(crate) use rule::go_json;
pub use validate::{OBJECT_BUDGET, PER_CALL_LIMIT, Report};
pub(crate) use validate::{OUT_OF_BUDGET, message};
pub use validator::Validator;
pub use violation::{Reason, Violation};
