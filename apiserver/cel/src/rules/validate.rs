//! Rules run on an object, in the order and with the budget of kube-apiserver.

use serde_json::Value as Json;

use super::compile::CompiledRule;
use super::correlation::{Correlated, MapList};
use super::field_path::FieldPath;
use super::rule::Rule;
use super::validator::NodeRules;
use super::violation::{self, Reason, Violation};
use crate::eval::{EvalError, Limits, Outcome, Program, Value, Variables};

/// Cost that an expression may use: `PerCallLimit` of kube-apiserver.
pub const PER_CALL_LIMIT: u64 = 1_000_000;

/// Cost that all rules of an object may use together: `RuntimeCELCostBudget` of kube-apiserver.
pub const OBJECT_BUDGET: u64 = 10_000_000;

/// Largest message that a `messageExpression` may give, in bytes.
const MAX_MESSAGE: usize = 5 * 1024;

/// Outcome of the rules of an object.
#[derive(Debug, Default)]
pub struct Report {
    /// The errors, in the order of evaluation.
    pub violations: Vec<Violation>,
    /// Errors that are tolerated because the value has not changed since before the rule was there;
    /// a server sends them as warnings.
    pub tolerated: Vec<Violation>,
    /// Cost of all expressions that were run.
    pub cost: u64,
}

/// Rules were cut off: the budget is used up, or a fault allows no further rules.
struct RulesCutOff;

/// The old values that belong to a node: those of the node, or those of the nearest node above with
/// old values.
#[derive(Clone, Copy, Default)]
struct Ratchet<'r, 'a> {
    own: Option<&'r Correlated<'a>>,
    above: Option<&'r Correlated<'a>>,
}

impl<'r, 'a> Ratchet<'r, 'a> {
    fn tolerates(self) -> bool {
        self.own.or(self.above).is_some_and(Correlated::is_unchanged)
    }

    /// The ratchet of a node below, whose old value is `own`.
    fn below<'n>(self, own: Option<&'n Correlated<'a>>) -> Ratchet<'n, 'a>
    where
        'r: 'n,
    {
        match self.own {
            Some(above) => Ratchet { own, above: Some(above) },
            None => self,
        }
    }

    /// The old value of a property. Type and version of the object are not compared: both objects
    /// are converted to the same version before.
    fn key(self, key: &str) -> Option<Correlated<'a>> {
        let is_converted = self.above.is_none() && matches!(key, "apiVersion" | "kind");
        self.own.filter(|_| !is_converted)?.key(key)
    }
}

/// The values at a node of the object.
#[derive(Clone, Copy)]
struct NodeValues<'r, 'a> {
    new: &'a Json,
    old: Option<&'a Json>,
    ratchet: Ratchet<'r, 'a>,
}

/// A run over an object.
pub(super) struct ValidationProgress {
    pub(super) report: Report,
    budget: u64,
    /// Steps that are left for all rules.
    work: u64,
}

impl ValidationProgress {
    pub(super) fn new(budget: u64) -> ValidationProgress {
        let work = Limits::new(budget).work_limit;
        ValidationProgress { report: Report::default(), budget, work }
    }

    /// Evaluates an expression with the steps that are left.
    fn evaluate<'a>(&mut self, program: &'a Program, variables: &Variables<'a>) -> Outcome<'a> {
        let limits = Limits::new(PER_CALL_LIMIT);
        let work_limit = limits.work_limit.min(self.work);
        let outcome = program.evaluate(variables, Limits { work_limit, ..limits });
        self.work = self.work.saturating_sub(outcome.work);
        outcome
    }

    /// Runs all rules of an object; `old` is the object before an update, and `schema` its schema.
    pub(super) fn object(
        &mut self,
        node: &NodeRules,
        new: &Json,
        old: Option<&Json>,
        schema: &Json,
    ) {
        let correlated = old.map(|old| Correlated::new(new, old, schema));
        let ratchet = Ratchet { own: correlated.as_ref(), above: None };
        // A stop is in the report already.
        let _ = self.node(node, &FieldPath::root(), NodeValues { new, old, ratchet });
    }

    /// Runs the rules of a node, of its `allOf`, and of the nodes below. The recursion is as deep
    /// as the schema.
    fn node(
        &mut self,
        node: &NodeRules,
        path: &FieldPath,
        at: NodeValues<'_, '_>,
    ) -> Result<(), RulesCutOff> {
        // Rules about null stand at the node above, which may ask for null.
        if at.new.is_null() {
            return Ok(());
        }
        let at = NodeValues { old: at.old.filter(|old| !old.is_null()), ..at };
        self.rules(node, path, at)?;
        for branch in &node.all_of {
            // Branches of allOf are tolerated only with the node above, as the schema's own checks
            // are.
            let ratchet = Ratchet { own: None, above: at.ratchet.above };
            self.node(branch, path, NodeValues { ratchet, ..at })?;
        }
        match at.new {
            Json::Array(items) => self.items(node, path, items, at),
            Json::Object(entries) => self.entries(node, path, entries, at),
            _ => Ok(()),
        }
    }

    fn items<'a>(
        &mut self,
        node: &NodeRules,
        path: &FieldPath,
        items: &'a [Json],
        at: NodeValues<'_, 'a>,
    ) -> Result<(), RulesCutOff> {
        let Some(inner) = &node.items else { return Ok(()) };
        let old_items = at.old.and_then(Json::as_array);
        let old_items =
            old_items.zip(node.map_keys.clone()).map(|(old, keys)| MapList::new(keys, old));
        for (index, new) in items.iter().enumerate() {
            let old = old_items.as_ref().and_then(|list| list.get(new));
            let own = at.ratchet.own.and_then(|own| own.index(index));
            let ratchet = at.ratchet.below(own.as_ref());
            self.node(inner, &path.index(index), NodeValues { new, old, ratchet })?;
        }
        Ok(())
    }

    fn entries<'a>(
        &mut self,
        node: &NodeRules,
        path: &FieldPath,
        entries: &'a serde_json::Map<String, Json>,
        at: NodeValues<'_, 'a>,
    ) -> Result<(), RulesCutOff> {
        let old_entries = at.old.and_then(Json::as_object).filter(|_| node.is_correlatable_map);
        let mut run = |inner: &NodeRules, path: FieldPath, key: &str, new| {
            let old = old_entries.and_then(|old| old.get(key));
            let own = at.ratchet.key(key);
            // The ratchet ends at type and version: not even the object above counts for them.
            let is_converted = at.ratchet.above.is_none() && matches!(key, "apiVersion" | "kind");
            let below = at.ratchet.below(own.as_ref());
            let ratchet = if is_converted { Ratchet::default() } else { below };
            self.node(inner, &path, NodeValues { new, old, ratchet })
        };
        if let Some(inner) = &node.additional {
            for (key, new) in entries {
                run(inner, path.key(key), key, new)?;
            }
        }
        for (key, new) in entries {
            if let Ok(found) = node.properties.binary_search_by(|(name, _)| name.as_str().cmp(key))
            {
                run(&node.properties[found].1, path.child(key), key, new)?;
            }
        }
        Ok(())
    }

    fn rules(
        &mut self,
        node: &NodeRules,
        path: &FieldPath,
        at: NodeValues<'_, '_>,
    ) -> Result<(), RulesCutOff> {
        if node.rules.is_empty() {
            return Ok(());
        }
        if self.budget == 0 {
            return self.stop(path, node, OUT_OF_BUDGET);
        }
        let variables = match Bindings::new(node, at.new, at.old) {
            Ok(variables) => variables,
            Err(error) => {
                // Data that does not fit its schema: each rule that reads such data has this error.
                for (rule, _) in &node.rules {
                    self.refuse(path, node, format!("{error} evaluating rule: {}", rule.text()));
                }
                return Ok(());
            }
        };
        for (rule, compiled) in &node.rules {
            match &compiled.program {
                Some(Err(error)) => self.refuse(path, node, format!("rule compile error: {error}")),
                None => {}
                Some(Ok(program)) => {
                    let is_optional = rule.optional_old_self == Some(true);
                    if compiled.uses_old_self && at.old.is_none() && !is_optional {
                        continue;
                    }
                    let outcome = self.evaluate(program, variables.of(is_optional));
                    self.charge(path, node, outcome.cost)?;
                    if self.holds(path, node, rule, outcome.result)? {
                        continue;
                    }
                    // The message sees `oldSelf` unchanged, also where the rule sees an optional.
                    self.fail(path, node, (rule, compiled), at, &variables.plain)?;
                }
            }
        }
        Ok(())
    }

    /// Takes the cost of an expression from the budget.
    fn charge(&mut self, path: &FieldPath, node: &NodeRules, cost: u64) -> Result<(), RulesCutOff> {
        self.report.cost = self.report.cost.saturating_add(cost);
        match self.budget.checked_sub(cost) {
            Some(left) => {
                self.budget = left;
                Ok(())
            }
            None => self.stop(path, node, OUT_OF_BUDGET),
        }
    }

    /// Whether a rule holds, or has an error, which is reported here.
    fn holds(
        &mut self,
        path: &FieldPath,
        node: &NodeRules,
        rule: &Rule,
        result: Result<Value<'_>, EvalError>,
    ) -> Result<bool, RulesCutOff> {
        let error = match result {
            Ok(value) => return Ok(matches!(value, Value::Bool(true))),
            Err(error) => error.to_string(),
        };
        let text = rule.text();
        if error.starts_with("no such overload") {
            let reason =
                "call arguments did not match a supported operator, function or macro signature";
            self.refuse(path, node, format!("'{error}': {reason} for rule: {text}"));
        } else if error.starts_with(COST_LIMIT) {
            let reason = "no further validation rules will be run due to call cost exceeds limit";
            return self
                .stop(path, node, &format!("'{error}': {reason} for rule: {text}"))
                .map(|()| true);
        } else {
            self.refuse(path, node, format!("{error} evaluating rule: {text}"));
        }
        Ok(true)
    }

    /// Reports a rule that does not hold, with the message of its expression if that gives a
    /// message.
    fn fail(
        &mut self,
        path: &FieldPath,
        node: &NodeRules,
        (rule, compiled): (&Rule, &CompiledRule),
        at: NodeValues<'_, '_>,
        variables: &Variables<'_>,
    ) -> Result<(), RulesCutOff> {
        let path = &compiled
            .field_path
            .iter()
            .fold(path.clone(), |path, inner| path.child(inner.as_str()));
        let is_tolerated = !compiled.uses_old_self && at.ratchet.tolerates();
        let mut detail = None;
        if let Some(Ok(program)) = &compiled.message {
            let outcome = self.evaluate(program, variables);
            let left = self.budget.checked_sub(outcome.cost);
            self.report.cost = self.report.cost.saturating_add(outcome.cost);
            let stopped = match (&outcome.result, left) {
                (_, None) => Some(format!(
                    "messageExpression evaluation failed due to running out of cost budget, {NO_FURTHER}"
                )),
                (Err(error), _) if error.to_string().starts_with(COST_LIMIT) => Some(format!(
                    "{NO_FURTHER} due to call cost exceeds limit for messageExpression: {:?}",
                    rule.message_expression
                )),
                _ => None,
            };
            if let Some(text) = stopped {
                let value = Json::from(node.type_name.clone());
                self.add(is_tolerated, Violation::invalid(path.clone(), value, text));
                return Err(RulesCutOff);
            }
            self.budget = left.unwrap_or_default();
            detail = outcome.result.ok().as_ref().and_then(message);
        }
        let is_compound = matches!(node.type_name.as_str(), "object" | "array");
        let reason = rule.reason.as_deref().map_or(Reason::Invalid, Reason::from_name);
        // A duplicate is named by its value alone.
        if reason == Reason::Duplicate {
            detail = Some(String::new());
        }
        self.add(
            is_tolerated,
            Violation {
                path: path.clone(),
                reason,
                shown: (!is_compound).then(|| violation::shown(at.new)),
                detail: detail.unwrap_or_else(|| rule.message_or_default()),
            },
        );
        Ok(())
    }

    fn add(&mut self, is_tolerated: bool, violation: Violation) {
        let list =
            if is_tolerated { &mut self.report.tolerated } else { &mut self.report.violations };
        list.push(violation);
    }

    fn refuse(&mut self, path: &FieldPath, node: &NodeRules, detail: impl Into<String>) {
        let value = Json::from(node.type_name.clone());
        self.report.violations.push(Violation::invalid(path.clone(), value, detail));
    }

    fn stop(
        &mut self,
        path: &FieldPath,
        node: &NodeRules,
        detail: &str,
    ) -> Result<(), RulesCutOff> {
        self.refuse(path, node, detail);
        Err(RulesCutOff)
    }
}

const NO_FURTHER: &str = "no further validation rules will be run";
/// The text of an evaluation whose budget is used up.
pub(crate) const OUT_OF_BUDGET: &str =
    "validation failed due to running out of cost budget, no further validation rules will be run";
const COST_LIMIT: &str = "operation cancelled: actual cost limit exceeded";

/// The message of a `messageExpression`, unless the text is empty, too long or of several lines:
/// then the message of the rule stands in.
pub(crate) fn message(value: &Value<'_>) -> Option<String> {
    let Value::String(text) = value else { return None };
    let text = text.trim();
    let is_fit = !text.is_empty() && text.len() <= MAX_MESSAGE && !text.contains('\n');
    is_fit.then(|| text.to_owned())
}

/// `self` and `oldSelf` as rules see them; `oldSelf` is an optional for rules that ask for it.
struct Bindings<'a> {
    plain: Variables<'a>,
    optional: Variables<'a>,
}

impl<'a> Bindings<'a> {
    fn new(
        node: &'a NodeRules,
        new: &'a Json,
        old: Option<&'a Json>,
    ) -> Result<Bindings<'a>, EvalError> {
        let value = Value::json(new, &node.shape)?;
        let base = Variables::new().bind("self", value);
        // A message alone that reads oldSelf does not make the server bind it.
        if !node.rules.iter().any(|(_, compiled)| compiled.uses_old_self) {
            return Ok(Bindings { plain: base.clone(), optional: base });
        }
        let old = old.map(|old| Value::json(old, &node.shape)).transpose()?;
        let optional = old.clone().map_or(Value::Optional(None), Value::some);
        let plain = old.into_iter().fold(base.clone(), |base, old| base.bind("oldSelf", old));
        Ok(Bindings { plain, optional: base.bind("oldSelf", optional) })
    }

    fn of(&self, is_optional: bool) -> &Variables<'a> {
        if is_optional { &self.optional } else { &self.plain }
    }
}
