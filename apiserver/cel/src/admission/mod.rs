//! `ValidatingAdmissionPolicy` and match conditions: compiled with the checks of the server,
//! evaluated with the server's limits.
//!
//! ```
//! use serde_json::json;
//! use windlass_cel::admission::{Attributes, Binding, Policy, check_policy};
//!
//! let spec = json!({"matchConstraints": {"resourceRules": [
//!     {"apiGroups": ["apps"], "apiVersions": ["v1"], "resources": ["deployments"], "operations": ["CREATE"]},
//! ]}, "validations": [
//!     {"expression": "object.spec.replicas <= 5", "messageExpression": "'too many: ' + string(object.spec.replicas)"},
//! ]});
//! assert!(check_policy("limit", &spec).is_empty());
//!
//! let request = json!({"operation": "CREATE"});
//! let object = json!({"spec": {"replicas": 7}});
//! let attributes = Attributes::new(&request).object(&object);
//! let evaluation = Policy::new(&spec).evaluate(&attributes);
//! let denial = Binding::new("limit", "everywhere").enforce(&evaluation).denial.unwrap();
//! assert_eq!(
//!     denial.message,
//!     "ValidatingAdmissionPolicy 'limit' with binding 'everywhere' denied request: too many: 7"
//! );
//! ```

mod activation;
mod attributes;
mod binding;
mod check;
mod compile;
mod conditions;
mod constraints;
mod environment;
mod mutating;
mod mutation;
mod names;
mod policy;
#[cfg(test)]
mod tests;

pub use attributes::Attributes;
pub use binding::{Binding, Denial, Enforcement, ValidationAction};
pub use check::{check_match_conditions, check_policy};
pub use conditions::{Match, MatchConditions};
pub use mutating::check_mutating_policy;
pub use mutation::{MutatingPolicy, Patch};
pub use policy::{
    AuditAnnotation, Evaluation, FailurePolicy, Policy, PolicyDecision, PolicyDecisionEvaluation,
};
