//! Schemas of custom resources: validation of definitions, and pruning, defaulting and validation
//! of objects.
//!
//! A CRD's `openAPIV3Schema` is compiled once to a [`Schema`], which prunes, defaults and validates
//! objects with the texts of a real API server. [`check_crd`] refuses CRDs that a real server
//! refuses. Not supported: evaluation of `x-kubernetes-validations`; their rules are kept
//! ([`Schema::rules`]) and their form is checked, but no expression is compiled or run.

// DESIGN.md, 86: The embedded API server stores CEL rules, evaluates none, and warns

mod cause;
mod check;
mod formats;
mod lists;
mod names;
mod node;
mod openapi;
mod pattern;
mod prune;
mod structural;
#[cfg(test)]
mod tests;
mod validate;

pub use check::check_crd;
pub use node::Rule;

use serde_json::Value;

use crate::served::Cause;
use node::Node;

/// The compiled schema of one version of a custom resource.
#[derive(Clone, Debug, Default)]
pub struct Schema {
    /// The compiled schema of the object.
    root: Node,
    /// Rules of all nodes.
    rules: Vec<Rule>,
}

impl Schema {
    /// Compiles an `openAPIV3Schema`. Never fails: parts that [`check_crd`] would refuse are
    /// ignored.
    pub fn compile(openapi: &Value) -> Schema {
        let root = Node::compile(openapi);
        let mut rules = Vec::new();
        root.collect_rules("", &mut rules);
        Schema { root, rules }
    }

    /// Removes unknown fields, and nulls that are neither allowed nor replaced by a default.
    ///
    /// Returns the sorted paths of the unknown fields (`spec.bogus`), for warnings and strict
    /// errors.
    pub fn prune(&self, object: &mut Value) -> Vec<String> {
        let mut unknown = Vec::new();
        prune::prune(object, Some(&self.root), true, "", &mut unknown);
        prune::drop_nulls(object, Some(&self.root));
        unknown.sort();
        unknown
    }

    /// Fills in the schema's defaults.
    pub fn default(&self, object: &mut Value) {
        prune::default(object, &self.root);
    }

    /// Validates an object against the schema; an empty list means that the object is valid.
    ///
    /// With `old`, the object's stored state, invalid values that did not change are tolerated.
    pub fn validate(&self, new: &Value, old: Option<&Value>) -> Vec<Cause> {
        let mut causes = validate::validate(&self.root, new, old);
        // These checks are not part of JSON schema, and follow it.
        lists::embedded(new, &self.root, "", &mut causes);
        // Lists that already had duplicates are tolerated as well.
        let mut before = Vec::new();
        if let Some(old) = old {
            lists::unique(old, &self.root, "", &mut before);
        }
        if before.is_empty() {
            lists::unique(new, &self.root, "", &mut causes);
        }
        if !self.rules.is_empty() && causes.iter().any(blocks_rules) {
            let text = "some validation rules were not checked because the object was invalid; \
                        correct the existing errors to complete validation";
            causes.push(cause::invalid("", &Value::Null, text));
        }
        causes
    }

    /// Returns the fault of an embedded resource whose head cannot be read: `PATH: Invalid value:
    /// …`.
    ///
    /// A real server finds such faults during decoding, before validation.
    pub fn embedded_fault(&self, object: &Value) -> Option<String> {
        lists::embedded_fault(object, &self.root, true, "")
    }

    /// Returns the rules of `x-kubernetes-validations`, which this server does not evaluate.
    pub fn rules(&self) -> &[Rule] {
        &self.rules
    }
}

/// Whether this fault keeps a real server from evaluating rules.
fn blocks_rules(cause: &Cause) -> bool {
    matches!(
        cause.reason.as_str(),
        "FieldValueNotSupported"
            | "FieldValueRequired"
            | "FieldValueTooLong"
            | "FieldValueTooMany"
            | "FieldValueTypeInvalid"
    )
}
