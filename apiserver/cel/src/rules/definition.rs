//! Rules of a definition: the errors that kube-apiserver reports when a custom resource definition
//! is created.

use serde_json::Value;

use super::compile::{CompiledRule, Compiler};
use super::correlation::is_correlatable_map;
use super::field_path::FieldPath;
use super::rule::Rule;
use super::violation::{Reason, Violation};
use crate::schema::{Declaration, is_set, is_too_deep, text};

/// Estimated cost that a rule may have: `StaticEstimatedCostLimit` of kube-apiserver.
const RULE_LIMIT: u64 = 10_000_000;

/// Estimated cost that all rules of a definition may have: `StaticEstimatedCRDCostLimit` of
/// kube-apiserver.
const TOTAL_LIMIT: u64 = 100_000_000;

/// Largest number of rules that the message about the total names.
const MAX_NAMED: usize = 4;

/// Message about a schema that cannot be read without exhausting the stack.
pub(super) const TOO_DEEP: &str = "schema is nested too deeply";

/// Checks the rules of a structural schema, that of a whole resource.
///
/// The paths are relative to the schema. The schema's own errors are another check's; with one of
/// them kube-apiserver does not compile rules at all.
///
/// A schema that is nested deeper than 256 levels is refused as a whole, before any part is read.
pub fn check_definition(schema: &Value) -> Vec<Violation> {
    if is_too_deep(schema) {
        return vec![Violation::without_value(FieldPath::root(), Reason::Invalid, TOO_DEEP)];
    }
    let mut check = DefinitionCheck::default();
    let root = SchemaScope { path: FieldPath::root(), cardinality: Some(1), uncorrelatable: None };
    let declaration = Declaration::of_schema(schema, true);
    check.node(schema, declaration.as_ref(), &root);
    check.finish()
}

/// A schema node on the way down.
#[derive(Clone)]
struct SchemaScope {
    path: FieldPath,
    /// Largest number of such values in an object; `None` without a bound.
    cardinality: Option<u64>,
    /// The node whose parts have no old values, if there is such a node above.
    uncorrelatable: Option<FieldPath>,
}

impl SchemaScope {
    fn below(&self, schema: &Value, path: FieldPath, is_correlatable: bool) -> SchemaScope {
        let elements = max_elements(schema);
        let cardinality =
            self.cardinality.zip(elements).map(|(count, elements)| count.saturating_mul(elements));
        let own = || (!is_correlatable).then(|| self.path.clone());
        // kube-apiserver names the innermost such node.
        let uncorrelatable = own().or_else(|| self.uncorrelatable.clone());
        SchemaScope { path, cardinality, uncorrelatable }
    }
}

/// Largest number of values of a part per value of a node; `None` without a bound.
fn max_elements(schema: &Value) -> Option<u64> {
    let limit = |name: &str| schema.get(name).and_then(Value::as_u64);
    match text(schema, "type") {
        "object" if schema.get("additionalProperties").is_some() => limit("maxProperties"),
        "array" => limit("maxItems"),
        _ => Some(1),
    }
}

/// The errors that were found, and the cost of the rules so far.
#[derive(Default)]
struct DefinitionCheck {
    texts: Vec<Violation>,
    found: Vec<Violation>,
    total: u64,
    most_expensive: Vec<(FieldPath, u64)>,
}

impl DefinitionCheck {
    /// Checks the parts of a node, then its own rules.
    fn node(&mut self, schema: &Value, declaration: Option<&Declaration>, scope: &SchemaScope) {
        if let Some(values) = schema.get("additionalProperties").filter(|values| values.is_object())
        {
            let inner = scope.below(schema, scope.path.child("additionalProperties"), true);
            self.part(values, declaration.and_then(Declaration::element), &inner);
        }
        let properties = schema.get("properties").and_then(Value::as_object);
        for (name, property) in properties.into_iter().flatten() {
            let path = scope.path.child("properties").key(name);
            let inner = scope.below(schema, path, is_correlatable_map(schema));
            let escaped = crate::syntax::identifiers::escape(name);
            let field = escaped.and_then(|name| declaration?.field(&name));
            self.part(property, field, &inner);
        }
        if let Some(items) = schema.get("items").filter(|items| items.is_object()) {
            let is_map = text(schema, "x-kubernetes-list-type") == "map";
            let inner = scope.below(schema, scope.path.child("items"), is_map);
            self.part(items, declaration.and_then(Declaration::element), &inner);
        }
        self.rules(schema, declaration, scope);
    }

    fn part(&mut self, schema: &Value, declaration: Option<&Declaration>, scope: &SchemaScope) {
        if declaration.is_some() {
            return self.node(schema, declaration, scope);
        }
        // A property whose name expressions cannot write has a declaration of its own.
        let is_resource = is_set(schema, "x-kubernetes-embedded-resource");
        let own = Declaration::of_schema(schema, is_resource);
        self.node(schema, own.as_ref(), scope);
    }

    fn rules(&mut self, schema: &Value, declaration: Option<&Declaration>, scope: &SchemaScope) {
        let rules = Rule::of_schema(schema);
        let at = scope.path.child("x-kubernetes-validations");
        let before = self.texts.len();
        for (index, rule) in rules.iter().enumerate() {
            rule.check_texts(&at.index(index), schema, &mut self.texts);
        }
        if rules.is_empty() || self.texts.len() > before {
            return;
        }
        let Some(declaration) = declaration else {
            let detail = "internal error: failed to construct type information for x-kubernetes-validations rules: \
                          unable to convert structural schema to CEL declarations";
            self.found.push(Violation::without_value(at, Reason::Internal, detail));
            return;
        };
        let compiler = Compiler::new(declaration);
        for (index, rule) in rules.iter().enumerate() {
            let compiled = compiler.compile(rule, schema);
            self.compiled(rule, &compiled, &at.index(index), (scope, compiler.max_cardinality()));
        }
    }

    /// Reports the errors of a compiled rule, those of the cost first.
    fn compiled(
        &mut self,
        rule: &Rule,
        compiled: &CompiledRule,
        at: &FieldPath,
        bounds: (&SchemaScope, u64),
    ) {
        let (scope, max_cardinality) = bounds;
        let cardinality = scope.cardinality.unwrap_or(max_cardinality);
        let shown = || Some(rule.shown());
        let invalid = |path: FieldPath, detail: &str| Violation {
            path,
            reason: Reason::Invalid,
            shown: shown(),
            detail: detail.to_owned(),
        };
        self.observe(
            at.child("rule"),
            "estimated rule cost",
            compiled.max_cost.saturating_mul(cardinality),
        );
        if let Some(Err(error)) = &compiled.program {
            self.found.push(invalid(at.child("rule"), error));
        }
        match &compiled.message {
            Some(Err(error)) => self.found.push(invalid(at.child("messageExpression"), error)),
            Some(Ok(_)) => {
                let path = at.child("messageExpression");
                self.observe(path, "estimated messageExpression cost", compiled.max_message_cost);
            }
            None => {}
        }
        if let (true, Some(path)) = (compiled.uses_old_self, &scope.uncorrelatable) {
            let detail =
                "oldSelf cannot be used on the uncorrelatable portion of the schema within";
            let detail =
                format!("{detail} {ROOT}{}{path}", if path.as_str().is_empty() { "" } else { "." });
            self.found.push(Violation::invalid(
                at.child("rule"),
                Value::from(rule.rule.as_str()),
                detail,
            ));
        } else if let (false, Some(value)) = (compiled.uses_old_self, rule.optional_old_self) {
            let detail = "may not be set if oldSelf is not used in rule";
            self.found.push(Violation::invalid(
                at.child("optionalOldSelf"),
                Value::from(value),
                detail,
            ));
        }
    }

    /// Adds a cost to the total, and reports a cost that alone is too large.
    fn observe(&mut self, path: FieldPath, name: &str, cost: u64) {
        if cost > RULE_LIMIT {
            let detail = over_budget(name, cost, RULE_LIMIT);
            self.found.push(Violation::without_value(path.clone(), Reason::Forbidden, detail));
        }
        self.total = self.total.saturating_add(cost);
        if cost >= TOTAL_LIMIT / 100 {
            self.most_expensive.push((path, cost));
            self.most_expensive.sort_by_key(|(_, cost)| std::cmp::Reverse(*cost));
            self.most_expensive.truncate(MAX_NAMED);
        }
    }

    fn finish(mut self) -> Vec<Violation> {
        let mut all = self.texts;
        all.append(&mut self.found);
        if self.total > TOTAL_LIMIT {
            for (path, _) in self.most_expensive {
                let detail = "contributed to estimated rule cost total exceeding cost limit for entire OpenAPIv3 schema";
                all.push(Violation::without_value(path, Reason::Forbidden, detail));
            }
            let name =
                "x-kubernetes-validations estimated rule cost total for entire OpenAPIv3 schema";
            let detail = over_budget(name, self.total, TOTAL_LIMIT);
            all.push(Violation::without_value(FieldPath::root(), Reason::Forbidden, detail));
        }
        all
    }
}

/// Path of a definition's schema, as a message about old values names it.
const ROOT: &str = "spec.validation.openAPIV3Schema";

fn over_budget(name: &str, cost: u64, limit: u64) -> String {
    let factor = cost as f64 / limit as f64;
    let factor = if factor > 100.0 {
        "more than 100x".to_owned()
    } else if factor < 1.5 {
        // With one digit the factor could read 1.0.
        format!("{factor:.6}x")
    } else {
        format!("{factor:.1}x")
    };
    format!(
        "{name} exceeds budget by factor of {factor} (try simplifying the rule, or adding maxItems, maxProperties, and \
         maxLength where arrays, maps, and strings are declared)"
    )
}
