//! Type check of values, with the texts of the real server.

use serde_json::Value;

use super::items;
use super::path::PathElement;
use crate::typed::{Id, ListMerge, ScalarType, TypeTable, ValueTreatment};

/// Checks a whole object. `duplicates` allows lists to hold an item twice.
///
/// # Errors
///
/// All faults, joined in one text.
pub(crate) fn validate(
    table: &TypeTable,
    root: Id,
    value: &Value,
    duplicates: bool,
) -> Result<(), String> {
    let mut walker = ValidatingWalker { table, duplicates, path: Vec::new(), faults: Vec::new() };
    walker.value(root, value);
    join(&walker.faults)
}

/// Returns a single fault unchanged, and several as a list.
pub(crate) fn join(faults: &[String]) -> Result<(), String> {
    match faults {
        [] => Ok(()),
        [one] => Err(one.clone()),
        many => Err(format!("errors:\n  {}", many.join("\n  "))),
    }
}

/// A walk over a value that collects faults with their paths.
struct ValidatingWalker<'a> {
    table: &'a TypeTable,
    duplicates: bool,
    path: Vec<CheckedStep<'a>>,
    faults: Vec<String>,
}

/// A step of the present path. It becomes a text at a fault only: nearly all values have none.
enum CheckedStep<'a> {
    Field(&'a str),
    Item(PathElement),
}

impl<'a> ValidatingWalker<'a> {
    /// Checks a value of a type.
    fn value(&mut self, id: Id, value: &'a Value) {
        match (self.table.kind(id, Some(value)), value) {
            // Null stands for an absent value of any type.
            (_, Value::Null) => {}
            (ValueTreatment::Map(object), Value::Object(map)) => {
                for (key, value) in map {
                    let step = CheckedStep::Field(key);
                    let Some(child) = TypeTable::child(object, key) else {
                        self.below(step, |walker| walker.fault("field not declared in schema"));
                        // Upstream stops at the first undeclared field of a map.
                        return;
                    };
                    self.below(step, |walker| walker.value(child, value));
                }
            }
            (ValueTreatment::Map(_), other) => {
                self.fault(&format!("expected map, got &{{{}}}", plain(other)))
            }
            (ValueTreatment::List(kind, items), Value::Array(list)) => self.list(kind, items, list),
            (ValueTreatment::List(..), other) => {
                self.fault(&format!("expected list, got &{{{}}}", plain(other)));
            }
            (ValueTreatment::Scalar(scalar), value) => {
                if let Err(text) = check_scalar(scalar, value) {
                    self.fault(&text);
                }
            }
        }
    }

    /// Checks the items of a list, and that their keys are unique where that is asked for.
    fn list(&mut self, kind: &ListMerge, items: Id, list: &'a [Value]) {
        let mut seen = std::collections::BTreeSet::new();
        for (index, item) in list.iter().enumerate() {
            let step = if kind.is_atomic() {
                PathElement::Index(i64::try_from(index).unwrap_or(i64::MAX))
            } else {
                match items::step(self.table, kind, items, item) {
                    Ok(step) => step,
                    Err(text) => {
                        self.fault(&format!("element {index}: {text}"));
                        return;
                    }
                }
            };
            if !kind.is_atomic() && !seen.insert(step.clone()) && !self.duplicates {
                self.fault(&format!("duplicate entries for key {step}"));
            }
            self.below(CheckedStep::Item(step), |walker| walker.value(items, item));
        }
    }

    /// Runs a check with the path extended by a step.
    fn below(&mut self, step: CheckedStep<'a>, run: impl FnOnce(&mut Self)) {
        self.path.push(step);
        run(self);
        self.path.pop();
    }

    /// Records a fault at the present path.
    fn fault(&mut self, text: &str) {
        let step = |step: &CheckedStep<'_>| match step {
            CheckedStep::Field(name) => PathElement::field(name).to_string(),
            CheckedStep::Item(item) => item.to_string(),
        };
        let path: String = self.path.iter().map(step).collect();
        self.faults.push(match path.as_str() {
            "" => text.to_owned(),
            path => format!("{path}: {text}"),
        });
    }
}

/// Checks that a value is a scalar of a kind (`None` for any kind). Null always passes.
///
/// # Errors
///
/// A description of the value that was found instead.
pub(crate) fn check_scalar(scalar: Option<ScalarType>, value: &Value) -> Result<(), String> {
    let fine = match (scalar, value) {
        (_, Value::Null) | (Some(ScalarType::IntOrStringExtension), _) => true,
        (Some(ScalarType::String), other) => other.is_string(),
        (Some(ScalarType::Integer | ScalarType::Number), other) => other.is_number(),
        (Some(ScalarType::Boolean), other) => other.is_boolean(),
        (Some(ScalarType::IntOrString | ScalarType::Quantity) | None, other) => {
            !other.is_array() && !other.is_object()
        }
    };
    if fine {
        return Ok(());
    }
    Err(match scalar {
        Some(ScalarType::String) => {
            format!("expected string, got &value.valueUnstructured{{Value:{}}}", syntax(value))
        }
        Some(ScalarType::Integer | ScalarType::Number) => {
            format!("expected numeric (int or float), got {}", type_name(value))
        }
        Some(ScalarType::Boolean) => format!("expected boolean, got &{{{}}}", plain(value)),
        Some(ScalarType::IntOrString | ScalarType::IntOrStringExtension | ScalarType::Quantity)
        | None => {
            format!("expected any scalar, got &{{{}}}", plain(value))
        }
    })
}

/// Returns the name of a value's type in Go.
fn type_name(value: &Value) -> &'static str {
    match value {
        Value::Null => "<nil>",
        Value::Bool(_) => "bool",
        Value::Number(number) if number.is_f64() => "float64",
        Value::Number(_) => "int64",
        Value::String(_) => "string",
        Value::Array(_) => "[]interface {}",
        Value::Object(_) => "map[string]interface {}",
    }
}

/// Formats a value like Go's `%v`.
pub(crate) fn plain(value: &Value) -> String {
    match value {
        Value::Null => "<nil>".to_owned(),
        Value::String(text) => text.clone(),
        Value::Array(list) => {
            format!("[{}]", list.iter().map(plain).collect::<Vec<_>>().join(" "))
        }
        Value::Object(map) => {
            let mut entries: Vec<String> =
                map.iter().map(|(key, value)| format!("{key}:{}", plain(value))).collect();
            entries.sort();
            format!("map[{}]", entries.join(" "))
        }
        other => other.to_string(),
    }
}

/// Formats a value like Go's `%#v`.
fn syntax(value: &Value) -> String {
    match value {
        Value::Null => "interface {}(nil)".to_owned(),
        Value::Array(list) => {
            let items: Vec<String> = list.iter().map(syntax).collect();
            format!("[]interface {{}}{{{}}}", items.join(", "))
        }
        Value::Object(map) => {
            let mut entries: Vec<String> =
                map.iter().map(|(key, value)| format!("{key:?}:{}", syntax(value))).collect();
            entries.sort();
            format!("map[string]interface {{}}{{{}}}", entries.join(", "))
        }
        other => other.to_string(),
    }
}
