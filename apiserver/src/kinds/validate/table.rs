//! The table of rules, and the visit of the fields that they are about.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use serde_json::Value;

use super::fields::{self, FieldCheck};
use crate::served::Cause;

/// The text of the table.
const TEXT: &str = include_str!("rules.txt");

/// A rule of a section.
#[derive(Debug)]
enum FieldRule {
    /// Check of the fields at a path.
    Field(Vec<FieldStep>, FieldCheck),
    /// All rules of a named section, below a path.
    Use(Vec<FieldStep>, &'static str),
}

/// A step of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct FieldStep {
    name: &'static str,
    /// Whether every item of the list is visited.
    each: bool,
    /// Whether an absent field ends the visit.
    optional: bool,
}

/// Rules by section: a group and a kind, or `@` and a name.
static RULES: LazyLock<BTreeMap<String, Vec<FieldRule>>> = LazyLock::new(parse);

/// Returns the sections of the table.
fn parse() -> BTreeMap<String, Vec<FieldRule>> {
    let mut sections: BTreeMap<String, Vec<FieldRule>> = BTreeMap::new();
    let mut names: Vec<String> = Vec::new();
    for line in TEXT.lines().map(str::trim) {
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        if let Some(title) = line.strip_prefix('[').and_then(|line| line.strip_suffix(']')) {
            let mut words = title.split(' ');
            let first = words.next().unwrap_or_default();
            names = words.map(|kind| format!("{first} {kind}")).collect();
            if names.is_empty() {
                names.push(first.to_owned());
            }
            continue;
        }
        for name in &names {
            sections.entry(name.clone()).or_default().extend(rule(line));
        }
    }
    sections
}

/// Returns the rule of a line.
fn rule(line: &'static str) -> Option<FieldRule> {
    let (path, rest) = line.split_once(' ')?;
    let (name, arguments) = rest.split_once(' ').unwrap_or((rest, ""));
    let steps = path.split('.').map(step).collect();
    match name {
        "use" => Some(FieldRule::Use(steps, arguments)),
        _ => Some(FieldRule::Field(steps, FieldCheck::parse(name, arguments)?)),
    }
}

/// Returns a step of a path.
fn step(text: &'static str) -> FieldStep {
    let optional = text.ends_with('?');
    let text = text.trim_end_matches('?');
    let each = text.ends_with("[]");
    FieldStep { name: text.trim_end_matches("[]"), each, optional }
}

/// Returns the faults of an object's fields.
pub(super) fn check(group: &str, kind: &str, object: &Value) -> Vec<Cause> {
    let group = if group.is_empty() { "core" } else { group };
    let mut causes = Vec::new();
    section(&format!("{group} {kind}"), object, "", &mut causes);
    causes
}

/// Appends the faults of the fields of a pod spec at a path.
pub(super) fn pod(spec: &Value, at: &str, causes: &mut Vec<Cause>) {
    section("@pod", spec, at, causes);
}

/// Applies the rules of a section to a value at a path.
fn section(name: &str, value: &Value, at: &str, causes: &mut Vec<Cause>) {
    for rule in RULES.get(name).into_iter().flatten() {
        match rule {
            FieldRule::Field(steps, check) => {
                visit(steps, value, at, &mut |value, at| fields::judge(check, value, at, causes));
            }
            FieldRule::Use(steps, included) => visit(steps, value, at, &mut |value, at| {
                section(&format!("@{included}"), value, at, causes);
            }),
        }
    }
}

/// Calls `found` with each value at a path; absent fields are null.
fn visit(steps: &[FieldStep], value: &Value, at: &str, found: &mut dyn FnMut(&Value, &str)) {
    let Some((step, rest)) = steps.split_first() else {
        return found(value, at);
    };
    let field = value.get(step.name).unwrap_or(&Value::Null);
    let at = if at.is_empty() { step.name.to_owned() } else { format!("{at}.{}", step.name) };
    if step.optional && field.is_null() {
        return;
    }
    if !step.each {
        return visit(rest, field, &at, found);
    }
    for (index, item) in field.as_array().into_iter().flatten().enumerate() {
        visit(rest, item, &format!("{at}[{index}]"), found);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn every_line_of_the_table_is_a_rule_and_every_used_section_exists() {
        for line in TEXT.lines().map(str::trim) {
            if !line.is_empty() && !line.starts_with(['#', '[']) {
                assert!(rule(line).is_some(), "{line}");
            }
        }
        for rule in RULES.values().flatten() {
            if let FieldRule::Use(_, name) = rule {
                assert!(RULES.contains_key(&format!("@{name}")), "{name}");
            }
        }
    }

    #[test]
    fn a_rule_names_the_item_that_breaks_it() {
        let service = json!({"spec": {"ports": [{"port": 80}, {"port": 70000}]}});
        let causes = check("", "Service", &service);
        let fields: Vec<&str> = causes.iter().map(|cause| cause.field.as_str()).collect();
        assert_eq!(fields, ["spec.ports[1].port"]);
    }

    #[test]
    fn fields_below_an_absent_optional_object_are_not_judged() {
        let binding = json!({"spec": {"policyName": "p", "validationActions": ["Deny"]}});
        let kind = "ValidatingAdmissionPolicyBinding";
        assert!(check("admissionregistration.k8s.io", kind, &binding).is_empty());
    }
}
