//! The compiled rules of a schema, and their run on an object.

use serde_json::Value;

use super::compile::{CompiledRule, Compiler, SELF_TYPE};
use super::correlation::{is_correlatable_map, map_keys};
use super::definition::TOO_DEEP;
use super::field_path::FieldPath;
use super::rule::Rule;
use super::validate::{OBJECT_BUDGET, Report, ValidationProgress};
use super::violation::{Reason, Violation};
use crate::schema::{Declaration, is_set, is_too_deep, text};
use crate::syntax::identifiers::escape;
use crate::types::shape::Shape;

/// The rules of a schema, ready to judge objects. Compile once, use for every object.
#[derive(Debug)]
pub struct Validator {
    root: Option<NodeRules>,
    schema: Value,
    is_too_deep: bool,
}

/// The compiled rules of a schema node and of the nodes below.
#[derive(Debug)]
pub(super) struct NodeRules {
    pub(super) rules: Vec<(Rule, CompiledRule)>,
    /// Name of the type that messages show instead of a value: `object`.
    pub(super) type_name: String,
    pub(super) shape: Shape,
    pub(super) map_keys: Option<Vec<String>>,
    pub(super) is_correlatable_map: bool,
    pub(super) items: Option<Box<NodeRules>>,
    /// The properties with rules, sorted by name.
    pub(super) properties: Vec<(String, NodeRules)>,
    pub(super) additional: Option<Box<NodeRules>>,
    pub(super) all_of: Vec<NodeRules>,
}

impl Validator {
    /// Compiles the rules of a structural schema, that of a whole resource. A rule that cannot be
    /// compiled is an error of every object; [`check_definition`](super::check_definition) finds
    /// such rules before.
    pub fn new(schema: &Value) -> Validator {
        if is_too_deep(schema) {
            return Validator { root: None, schema: Value::Null, is_too_deep: true };
        }
        let declaration = Declaration::of_schema(schema, true);
        let root = node(schema, schema, declaration.as_ref());
        Validator { root, schema: schema.clone(), is_too_deep: false }
    }

    /// Whether there is no rule to run.
    pub fn is_empty(&self) -> bool {
        self.root.is_none() && !self.is_too_deep
    }

    /// Judges an object that fits the schema, with the budget of kube-apiserver; `old` is the
    /// object before an update.
    ///
    /// The object is read in place, and no part of it is copied but values that messages show.
    pub fn validate(&self, new: &Value, old: Option<&Value>) -> Report {
        let mut run = ValidationProgress::new(OBJECT_BUDGET);
        self.run_rules(&mut run, new, old);
        run.report
    }

    /// Runs the rules on a new object with a budget that is given.
    #[cfg(test)]
    pub(super) fn run(&self, run: &mut ValidationProgress, new: &Value) {
        self.run_rules(run, new, None);
    }

    fn run_rules(&self, run: &mut ValidationProgress, new: &Value, old: Option<&Value>) {
        if self.is_too_deep {
            let path = FieldPath::root();
            run.report.violations.push(Violation::without_value(path, Reason::Invalid, TOO_DEEP));
        }
        if let Some(root) = &self.root {
            run.object(root, new, old, &self.schema);
        }
    }
}

/// The node of a schema; `None` if no rule is inside. `rules` is the schema that has the rules:
/// another schema within `allOf`, where types are those of the schema around.
fn node(rules: &Value, schema: &Value, declaration: Option<&Declaration>) -> Option<NodeRules> {
    let own = Rule::of_schema(rules);
    let compiled = declaration.map(|declaration| {
        let compiler = Compiler::new(declaration);
        own.into_iter()
            .map(|rule| {
                let compiled = compiler.compile(&rule, schema);
                (rule, compiled)
            })
            .collect::<Vec<_>>()
    });
    let rules_of_node = compiled.unwrap_or_default();
    let element = declaration.and_then(Declaration::element);
    let items = rules.get("items").zip(schema.get("items"));
    let items = items.and_then(|(rules, schema)| node(rules, schema, element));
    let additional = rules.get("additionalProperties").zip(schema.get("additionalProperties"));
    let additional = additional.and_then(|(rules, schema)| node(rules, schema, element));
    let properties = properties(rules, schema, declaration);
    let branches = rules.get("allOf").and_then(Value::as_array);
    let all_of: Vec<NodeRules> = branches
        .into_iter()
        .flatten()
        .filter_map(|branch| node(branch, schema, declaration))
        .collect();
    let has_rules = !rules_of_node.is_empty()
        || items.is_some()
        || additional.is_some()
        || !properties.is_empty()
        || !all_of.is_empty();
    has_rules.then(|| NodeRules {
        rules: rules_of_node,
        type_name: text(schema, "type").to_owned(),
        shape: declaration
            .map_or(Shape::Dyn, |declaration| declaration.to_type_and_shape(SELF_TYPE).1),
        map_keys: map_keys(schema),
        is_correlatable_map: is_correlatable_map(schema),
        items: items.map(Box::new),
        properties,
        additional: additional.map(Box::new),
        all_of,
    })
}

fn properties(
    rules: &Value,
    schema: &Value,
    declaration: Option<&Declaration>,
) -> Vec<(String, NodeRules)> {
    let mut found = Vec::new();
    let all = rules.get("properties").and_then(Value::as_object);
    for (name, rules) in all.into_iter().flatten() {
        let Some(property) = schema.get("properties").and_then(|all| all.get(name)) else {
            continue;
        };
        let inner = match escape(name) {
            Some(escaped) => declaration
                .and_then(|declaration| declaration.field(&escaped))
                .and_then(|field| node(rules, property, Some(field))),
            // A name that expressions cannot write has no place in the declaration around.
            None => {
                let is_resource = is_set(property, "x-kubernetes-embedded-resource");
                let own = Declaration::of_schema(property, is_resource);
                own.and_then(|own| node(rules, property, Some(&own)))
            }
        };
        found.extend(inner.map(|inner| (name.clone(), inner)));
    }
    found.sort_by(|left, right| left.0.cmp(&right.0));
    found
}
