//! The result of a conversion, written onto the JSON that was received: what neither type knows,
//! and the spelling of what stayed the same, is the received one's.

use serde_json::{Map, Value};

/// The three forms of an object from which its result is made.
#[derive(Clone, Copy)]
pub(super) struct Forms<'a> {
    /// As it was received.
    pub(super) received: &'a Value,
    /// As the type of its version writes it.
    pub(super) read: &'a Value,
    /// As the type of the other version writes it.
    pub(super) made: &'a Value,
}

/// The choices of a merge.
#[derive(Clone, Copy)]
struct Choices {
    /// Whether fields that no type knows are in the result.
    passes: bool,
    /// Whether nulls that were not received are left out.
    drops_nulls: bool,
}

impl Forms<'_> {
    /// Returns the result with received fields that no type knows. `rewrite` writes it as the type
    /// of the other version does: a result that the type reads differently is not taken.
    pub(super) fn result(self, rewrite: impl Fn(&Value) -> Option<Value>) -> Value {
        self.first(&[(true, true), (true, false), (false, true), (false, false)], rewrite)
    }

    /// Returns the result without fields that no type knows: an API server prunes those that the
    /// other version has not.
    pub(super) fn bare(self, rewrite: impl Fn(&Value) -> Option<Value>) -> Value {
        self.first(&[(false, true), (false, false)], rewrite)
    }

    /// Whether the received form has fields that its type does not know.
    pub(super) fn has_unknown(self) -> bool {
        is_wider(self.received, self.read)
    }

    fn first(self, order: &[(bool, bool)], rewrite: impl Fn(&Value) -> Option<Value>) -> Value {
        let merged = order.iter().map(|(passes, drops_nulls)| {
            let choices = Choices { passes: *passes, drops_nulls: *drops_nulls };
            choices.value(Some(self.received), Some(self.read), Some(self.made)).unwrap_or_default()
        });
        let mut fitting = merged.filter(|merged| rewrite(merged).as_ref() == Some(self.made));
        fitting.next().unwrap_or_else(|| self.made.clone())
    }
}

impl Choices {
    /// Merges a value: where the conversion changed nothing, the received one is the result.
    fn value(
        self,
        received: Option<&Value>,
        read: Option<&Value>,
        made: Option<&Value>,
    ) -> Option<Value> {
        match (received, read, made) {
            (received, None, None) => received.filter(|_| self.passes).cloned(),
            (
                Some(Value::Object(received)),
                Some(Value::Object(read)),
                Some(Value::Object(made)),
            ) => Some(Value::Object(self.fields(received, read, made))),
            (Some(Value::Array(received)), Some(Value::Array(read)), Some(Value::Array(made)))
                if received.len() == made.len() && read.len() == made.len() =>
            {
                Some(Value::Array(self.elements(received, read, made)))
            }
            (received, Some(read), Some(made)) if read == made => received.cloned(),
            (_, _, Some(Value::Null)) if self.drops_nulls => None,
            (_, _, made) => made.map(|made| self.written(made)),
        }
    }

    fn fields(
        self,
        received: &Map<String, Value>,
        read: &Map<String, Value>,
        made: &Map<String, Value>,
    ) -> Map<String, Value> {
        let more = received.keys().filter(|name| !made.contains_key(*name));
        let merged = made.keys().chain(more).filter_map(|name| {
            let value = self.value(received.get(name), read.get(name), made.get(name))?;
            Some((name.clone(), value))
        });
        merged.collect()
    }

    /// Merges the elements of lists of one length. Elements of different names are different ones.
    fn elements(self, received: &[Value], read: &[Value], made: &[Value]) -> Vec<Value> {
        let merged = received.iter().zip(read).zip(made).map(|((received, read), made)| {
            if read.get("name") != made.get("name") {
                return self.written(made);
            }
            self.value(Some(received), Some(read), Some(made)).unwrap_or_default()
        });
        merged.collect()
    }

    /// Returns a value that only the conversion wrote.
    fn written(self, made: &Value) -> Value {
        match made {
            Value::Object(fields) => {
                let kept = fields.iter().filter(|(_, value)| !self.drops_nulls || !value.is_null());
                Value::Object(
                    kept.map(|(name, value)| (name.clone(), self.written(value))).collect(),
                )
            }
            Value::Array(list) => {
                Value::Array(list.iter().map(|element| self.written(element)).collect())
            }
            other => other.clone(),
        }
    }
}

/// Whether an object has a field that another one lacks, at any depth.
fn is_wider(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::Object(one), Value::Object(other)) => one
            .iter()
            .any(|(name, value)| other.get(name).is_none_or(|below| is_wider(value, below))),
        (Value::Array(one), Value::Array(other)) => {
            one.len() == other.len()
                && one.iter().zip(other).any(|(one, other)| is_wider(one, other))
        }
        _ => false,
    }
}
