//! A step from an object or list to a part, in the notation of managedFields.

use std::cmp::Ordering;
use std::fmt;
use std::sync::Arc;

use serde_json::{Map, Number, Value};

/// A step of a path.
///
/// Steps are copied from set to set with every write, so a copy shares the text.
#[derive(Clone, Debug)]
pub(crate) enum PathElement {
    /// `f:name`: a key of a map.
    Field(Arc<str>),
    /// `k:{…}`: the item of a list with these values of the key fields, sorted by name.
    Key(Arc<[(String, Value)]>),
    /// `v:…`: the item of a set.
    Value(Arc<Value>),
    /// `i:n`: the item at a position.
    Index(i64),
}

impl PathElement {
    /// Parses `f:…`, `k:…`, `v:…` or `i:…`.
    ///
    /// # Errors
    ///
    /// A description of the fault in the text.
    pub(crate) fn parse(text: &str) -> Result<PathElement, String> {
        let (sign, rest) = text.split_once(':').ok_or_else(|| format!("missing colon: {text}"))?;
        match sign {
            "f" => Ok(PathElement::field(rest)),
            "v" => {
                let value: Value = serde_json::from_str(rest).map_err(|e| e.to_string())?;
                Ok(PathElement::Value(Arc::new(value)))
            }
            "k" => {
                let fields: Map<String, Value> =
                    serde_json::from_str(rest).map_err(|e| e.to_string())?;
                Ok(PathElement::key(fields.into_iter().collect()))
            }
            "i" => rest.parse().map(PathElement::Index).map_err(|_| format!("bad index: {text}")),
            _ => Err("unknown path element type".to_owned()),
        }
    }

    /// Returns the step to the item with these key fields.
    pub(crate) fn key(mut fields: Vec<(String, Value)>) -> PathElement {
        fields.sort_by(|a, b| a.0.cmp(&b.0));
        PathElement::Key(fields.into())
    }

    /// Returns the step to a field.
    pub(crate) fn field(name: &str) -> PathElement {
        PathElement::Field(name.into())
    }

    /// Returns the step in the notation of managedFields.
    pub(crate) fn serialize(&self) -> String {
        match self {
            PathElement::Field(name) => format!("f:{name}"),
            PathElement::Value(value) => format!("v:{value}"),
            PathElement::Index(index) => format!("i:{index}"),
            PathElement::Key(fields) => {
                let fields: Vec<String> = fields
                    .iter()
                    .map(|(name, value)| format!("{}:{value}", Value::from(name.as_str())))
                    .collect();
                format!("k:{{{}}}", fields.join(","))
            }
        }
    }

    /// Returns the place of the step's form in the order of steps.
    fn rank(&self) -> u8 {
        match self {
            PathElement::Field(_) => 0,
            PathElement::Key(_) => 1,
            PathElement::Value(_) => 2,
            PathElement::Index(_) => 3,
        }
    }
}

impl fmt::Display for PathElement {
    /// Formats the step as in messages: `.name`, `[a=1,b="x"]`, `[="x"]`, `[0]`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PathElement::Field(name) => write!(f, ".{name}"),
            PathElement::Value(value) => write!(f, "[={value}]"),
            PathElement::Index(index) => write!(f, "[{index}]"),
            PathElement::Key(fields) => {
                let fields: Vec<String> =
                    fields.iter().map(|(name, value)| format!("{name}={value}")).collect();
                write!(f, "[{}]", fields.join(","))
            }
        }
    }
}

impl Ord for PathElement {
    fn cmp(&self, other: &Self) -> Ordering {
        match (self, other) {
            (PathElement::Field(a), PathElement::Field(b)) => a.cmp(b),
            (PathElement::Key(a), PathElement::Key(b)) => {
                // Key fields are sorted by name, so that pairs correspond.
                for ((an, av), (bn, bv)) in a.iter().zip(b.iter()) {
                    let order = an.cmp(bn).then_with(|| compare(av, bv));
                    if order != Ordering::Equal {
                        return order;
                    }
                }
                a.len().cmp(&b.len())
            }
            (PathElement::Value(a), PathElement::Value(b)) => compare(a, b),
            (PathElement::Index(a), PathElement::Index(b)) => a.cmp(b),
            _ => self.rank().cmp(&other.rank()),
        }
    }
}

impl PartialOrd for PathElement {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for PathElement {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for PathElement {}

/// Whether two values are equal. Unlike with `==`, `1` and `1.0` are.
pub(crate) fn equal(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Number(a), Value::Number(b)) => compare_numbers(a, b) == Ordering::Equal,
        (Value::Array(a), Value::Array(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| equal(a, b))
        }
        (Value::Object(a), Value::Object(b)) => {
            a.len() == b.len() && a.iter().all(|(k, a)| b.get(k).is_some_and(|b| equal(a, b)))
        }
        _ => a == b,
    }
}

/// Compares two values in a total order: numbers, strings, booleans, lists, maps, null.
fn compare(a: &Value, b: &Value) -> Ordering {
    match (a, b) {
        (Value::Number(a), Value::Number(b)) => compare_numbers(a, b),
        (Value::String(a), Value::String(b)) => a.cmp(b),
        (Value::Bool(a), Value::Bool(b)) => a.cmp(b),
        (Value::Array(a), Value::Array(b)) => {
            let orders = a.iter().zip(b).map(|(a, b)| compare(a, b));
            first_difference(orders).unwrap_or_else(|| a.len().cmp(&b.len()))
        }
        (Value::Object(a), Value::Object(b)) => {
            let orders =
                a.iter().zip(b).map(|((ak, av), (bk, bv))| ak.cmp(bk).then(compare(av, bv)));
            first_difference(orders).unwrap_or_else(|| a.len().cmp(&b.len()))
        }
        _ => rank(a).cmp(&rank(b)),
    }
}

/// Returns the first order that is not equal.
fn first_difference(mut orders: impl Iterator<Item = Ordering>) -> Option<Ordering> {
    orders.find(|order| *order != Ordering::Equal)
}

/// Compares two numbers by value.
fn compare_numbers(a: &Number, b: &Number) -> Ordering {
    match (a.as_i64(), b.as_i64()) {
        // Integers are compared exactly: as floats, large integers would fall together.
        (Some(a), Some(b)) => a.cmp(&b),
        _ => {
            let (a, b) = (a.as_f64().unwrap_or(0.0), b.as_f64().unwrap_or(0.0));
            a.total_cmp(&b)
        }
    }
}

/// Returns the place of a value's type in the order of values.
fn rank(value: &Value) -> u8 {
    match value {
        Value::Number(_) => 0,
        Value::String(_) => 1,
        Value::Bool(_) => 2,
        Value::Array(_) => 3,
        Value::Object(_) => 4,
        Value::Null => 5,
    }
}
