//! Schemas of custom resources: validation of definitions, and pruning, defaulting and validation
//! of objects.
//!
//! A CRD's `openAPIV3Schema` is compiled once to a [`Schema`], which prunes, defaults and validates
//! objects with the texts of a real API server. [`check_crd`] refuses CRDs that a real server
//! refuses, rules that do not compile or cost too much included; [`Schema::validate`] runs the
//! rules.

// DESIGN.md, 86: Rules are compiled when the first object is validated

mod cause;
mod check;
pub(crate) mod client_config;
mod formats;
mod lists;
mod names;
mod node;
mod numbers;
mod openapi;
mod pattern;
mod prune;
mod structural;
#[cfg(test)]
mod tests;
mod validate;

pub use check::check_crd;
pub(crate) use pattern::Budget;

use std::collections::BTreeSet;
use std::sync::{Arc, OnceLock};

use serde_json::Value;
use windlass_cel::rules::{Validator, Violation};

use crate::served::Cause;
use node::SchemaNode;

/// The compiled schema of a version of a custom resource.
#[derive(Clone, Debug, Default)]
pub struct Schema {
    /// The compiled schema of the object.
    root: SchemaNode,
    /// The schema as written.
    source: Arc<Value>,
    /// The compiled rules, of `source`.
    rules: Arc<OnceLock<Validator>>,
}

/// The result of the validation of an object.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ValidationResult {
    /// The faults; none for a valid object.
    pub causes: Vec<Cause>,
    /// Broken rules that are tolerated because the values did not change, as texts of warnings.
    pub tolerated: Vec<String>,
}

impl Schema {
    /// Compiles an `openAPIV3Schema`. Never fails: parts that [`check_crd`] would refuse are
    /// ignored.
    pub fn compile(openapi: &Value) -> Schema {
        Self::compile_within(openapi, &Budget::default())
    }

    /// Compiles a schema whose patterns share a budget with those of other versions.
    pub(crate) fn compile_within(openapi: &Value, budget: &Budget) -> Schema {
        let root = SchemaNode::compile(openapi, budget);
        Schema { root, source: Arc::new(openapi.clone()), rules: Arc::default() }
    }

    /// Removes unknown fields, and nulls that are neither allowed nor replaced by a default.
    ///
    /// Returns the sorted paths of the unknown fields (`spec.bogus`), for warnings and strict
    /// errors.
    pub fn prune(&self, object: &mut Value) -> Vec<String> {
        let unknown = self.prune_unknown(object);
        prune::drop_nulls(object, Some(&self.root));
        unknown
    }

    /// Removes unknown fields alone, and returns their sorted paths.
    pub(crate) fn prune_unknown(&self, object: &mut Value) -> Vec<String> {
        let mut unknown = Vec::new();
        prune::prune(object, Some(&self.root), true, "", &mut unknown);
        unknown.sort();
        unknown
    }

    /// Fills in the schema's defaults.
    pub fn default(&self, object: &mut Value) {
        prune::default(object, &self.root);
    }

    /// Validates an object against the schema and the rules.
    ///
    /// With `old`, the object's stored state, invalid values that did not change are tolerated.
    pub fn validate(&self, new: &Value, old: Option<&Value>) -> ValidationResult {
        self.validate_after(&[], new, old)
    }

    /// Validates an object whose metadata has these faults, which can keep rules from being
    /// checked.
    pub(crate) fn validate_after(
        &self,
        metadata: &[Cause],
        new: &Value,
        old: Option<&Value>,
    ) -> ValidationResult {
        let mut causes = validate::validate(&self.root, new, old);
        // These checks are not part of JSON schema, and follow those of JSON schema.
        lists::embedded(new, &self.root, "", &mut causes);
        // Lists that already had duplicates are tolerated as well.
        let mut before = Vec::new();
        if let Some(old) = old {
            lists::unique(old, &self.root, "", &mut before);
        }
        if before.is_empty() {
            lists::unique(new, &self.root, "", &mut causes);
        }
        let rules = self.rules.get_or_init(|| Validator::new(&self.source));
        if rules.is_empty() {
            return ValidationResult { causes, tolerated: Vec::new() };
        }
        if metadata.iter().chain(&causes).any(blocks_rules) {
            let text = "some validation rules were not checked because the object was invalid; \
                        correct the existing errors to complete validation";
            causes.push(cause::invalid("", &Value::Null, text));
            return ValidationResult { causes, tolerated: Vec::new() };
        }
        let report = rules.validate(new, old);
        causes.extend(report.violations.iter().map(|broken| broken_rule("", broken)));
        let tolerated = report.tolerated.iter().map(Violation::to_string).collect();
        ValidationResult { causes, tolerated }
    }

    /// Calls `visit` with each embedded resource and the path.
    pub(crate) fn each_embedded(
        &self,
        object: &mut Value,
        visit: &mut dyn FnMut(&str, &mut Value),
    ) {
        lists::each_embedded(object, &self.root, true, "", visit);
    }

    /// Returns the fault of an embedded resource whose head cannot be read: `PATH: Invalid value:
    /// …`.
    ///
    /// A real server finds such faults during decoding, before validation.
    pub fn embedded_fault(&self, object: &Value) -> Option<String> {
        lists::embedded_fault(object, &self.root, true, "")
    }
}

/// Returns the formats that a definition's schemas name without a check, sorted.
pub(crate) fn unknown_formats(crd: &Value) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for version in crd["spec"]["versions"].as_array().into_iter().flatten() {
        collect_formats(&version["schema"]["openAPIV3Schema"], &mut found);
    }
    found
}

/// Adds the unknown formats of a schema and of all schemas below.
fn collect_formats(schema: &Value, found: &mut BTreeSet<String>) {
    let Some(map) = schema.as_object() else { return };
    if let Some(format) = node::text(map, "format").filter(|format| !format.is_empty()) {
        let is_known = match node::text(map, "type").unwrap_or_default() {
            "" | "string" => formats::known(format),
            "integer" => matches!(format, "int32" | "int64"),
            "number" => matches!(format, "float" | "double"),
            _ => false,
        };
        if !is_known {
            found.insert(format.to_owned());
        }
    }
    for key in ["items", "additionalProperties", "not"] {
        collect_formats(&schema[key], found);
    }
    for child in map.get("properties").and_then(Value::as_object).into_iter().flatten() {
        collect_formats(child.1, found);
    }
    for key in ["allOf", "anyOf", "oneOf"] {
        node::list(map, key).iter().for_each(|schema| collect_formats(schema, found));
    }
}

/// Returns the cause of a broken rule, or of a rule that is none, at a path below `place`.
fn broken_rule(place: &str, broken: &Violation) -> Cause {
    let path = broken.path.as_str();
    let field = match (place.is_empty(), path.is_empty()) {
        (false, false) => format!("{place}.{path}"),
        (false, true) => place.to_owned(),
        (true, _) => broken.path.to_string(),
    };
    Cause { reason: broken.reason.name().to_owned(), message: broken.body(), field }
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
