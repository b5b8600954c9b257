//! Changes of a value at one place, each of which may break a rule of its schema.

use serde_json::{Map, Value, json};

/// Longest text or list that is made to break a bound.
const LONGEST: u64 = 4096;
/// Deepest place that is changed.
const DEPTH: usize = 12;

/// A change at one place.
#[derive(Clone, Debug)]
pub(super) struct ValueChange {
    /// JSON pointer.
    pub(super) place: String,
    /// Name of the change among those of a place.
    pub(super) name: &'static str,
    /// The new value; `None` removes the field.
    to: Option<Value>,
}

impl ValueChange {
    /// Returns a value with the change.
    pub(super) fn of(&self, base: &Value) -> Value {
        let mut value = base.clone();
        let Some((parent, name)) = self.place.rsplit_once('/') else { return value };
        let name = name.replace("~1", "/").replace("~0", "~");
        match (value.pointer_mut(parent), &self.to) {
            (Some(Value::Object(fields)), Some(to)) => drop(fields.insert(name, to.clone())),
            (Some(Value::Object(fields)), None) => drop(fields.remove(&name)),
            (Some(Value::Array(items)), Some(to)) => {
                let item = name.parse().ok().and_then(|at: usize| items.get_mut(at));
                item.into_iter().for_each(|item| *item = to.clone());
            }
            _ => {}
        }
        value
    }
}

/// Returns the changes of a value; fields that it does not have are taken from `other`.
pub(super) fn changes(value: &Value, schema: &Value, other: &Value) -> Vec<ValueChange> {
    let mut found = FoundChanges::default();
    found.value(value, schema, Some(other), 0);
    found.changes
}

#[derive(Debug, Default)]
struct FoundChanges {
    here: String,
    changes: Vec<ValueChange>,
}

impl FoundChanges {
    fn add(&mut self, name: &'static str, to: impl Into<Option<Value>>) {
        // The object as a whole is not changed.
        if !self.here.is_empty() {
            self.changes.push(ValueChange { place: self.here.clone(), name, to: to.into() });
        }
    }

    fn value(&mut self, value: &Value, schema: &Value, other: Option<&Value>, depth: usize) {
        if depth == DEPTH {
            return;
        }
        if let Some(Value::Array(values)) = schema.get("enum") {
            let others = values.iter().filter(|it| *it != value);
            others.take(3).for_each(|it| self.add("another", it.clone()));
        }
        match value {
            Value::Bool(is_set) => self.add("not", json!(!is_set)),
            Value::Number(number) => self.number(number.as_f64().unwrap_or_default(), schema),
            Value::String(text) => self.text(text, schema),
            Value::Array(items) => self.list(items, schema, other, depth),
            Value::Object(fields) => self.fields(fields, schema, other, depth),
            Value::Null => {}
        }
    }

    fn number(&mut self, number: f64, schema: &Value) {
        let is_integer = schema["type"] == "integer" || number.fract() == 0.0;
        let json = |number: f64| match is_integer {
            true => json!(number as i64),
            false => json!(number),
        };
        let bound = |key: &str| schema.get(key).and_then(Value::as_f64);
        if let Some(least) = bound("minimum") {
            self.add("below the minimum", json(least - 1.0));
            self.add("the minimum", json(least));
        }
        if let Some(most) = bound("maximum") {
            self.add("above the maximum", json(most + 1.0));
            self.add("the maximum", json(most));
        }
        self.add("one more", json(number + 1.0));
        self.add("one less", json(number - 1.0));
        self.add("none", json(0.0));
        self.add("many", json(1_000_000.0));
        self.add("negative", json(-1_000_000.0));
    }

    fn text(&mut self, text: &str, schema: &Value) {
        let bound = |key: &str| schema.get(key).and_then(Value::as_u64);
        let long = |length: u64| json!("a".repeat(usize::try_from(length).unwrap_or_default()));
        if let Some(most) = bound("maxLength").filter(|most| *most < LONGEST) {
            self.add("too long", long(most + 1));
            self.add("longest", long(most));
        }
        if let Some(least) = bound("minLength").filter(|least| *least > 0 && *least < LONGEST) {
            self.add("too short", long(least - 1));
        }
        self.add("empty", json!(""));
        self.add("a sign", json!(format!("{text}!")));
        self.add("a capital", json!(format!("A{text}")));
        self.add("a letter", json!("a"));
        self.add("a name", json!("abc.example"));
        self.add("a number", json!("7"));
    }

    fn list(&mut self, items: &[Value], schema: &Value, other: Option<&Value>, depth: usize) {
        let bound = |key: &str| schema.get(key).and_then(Value::as_u64);
        if let Some(last) = items.last() {
            let mut more = items.to_vec();
            more.push(last.clone());
            self.add("an item twice", json!(more));
            self.add("an item less", json!(items[..items.len() - 1]));
            if let Some(most) = bound("maxItems").filter(|most| *most < LONGEST) {
                more.resize(usize::try_from(most + 1).unwrap_or_default(), last.clone());
                self.add("too many items", json!(more));
            }
        }
        self.add("no item", json!([]));
        let others = other.and_then(Value::as_array);
        for (at, item) in items.iter().enumerate().take(2) {
            let other = others.and_then(|others| others.first());
            self.below(&at.to_string(), |it| it.value(item, &schema["items"], other, depth + 1));
        }
    }

    fn fields(
        &mut self,
        fields: &Map<String, Value>,
        schema: &Value,
        other: Option<&Value>,
        depth: usize,
    ) {
        let properties = schema.get("properties").and_then(Value::as_object);
        for (name, value) in fields {
            let named = properties.and_then(|all| all.get(name));
            let below = named.unwrap_or(&schema["additionalProperties"]);
            let other = other.and_then(|other| other.get(name));
            self.below(name, |it| {
                it.add("no field", None);
                it.value(value, below, other, depth + 1);
            });
        }
        for name in properties.into_iter().flatten().map(|(name, _)| name) {
            let other = other.and_then(|other| other.get(name));
            if let Some(other) = other.filter(|_| !fields.contains_key(name)) {
                self.below(name, |it| it.add("a field more", other.clone()));
            }
        }
        if schema.get("additionalProperties").is_some()
            && let Some(value) = fields.values().next()
        {
            self.below("more", |it| it.add("a key more", value.clone()));
        }
    }

    /// Adds changes below a name.
    fn below(&mut self, name: &str, add: impl FnOnce(&mut Self)) {
        let length = self.here.len();
        self.here.push('/');
        self.here.push_str(&name.replace('~', "~0").replace('/', "~1"));
        add(self);
        self.here.truncate(length);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_bound_of_a_schema_is_broken_by_a_change_at_its_place() {
        let schema = json!({ "properties": { "spec": { "properties": {
            "count": { "type": "integer", "minimum": 1, "maximum": 9 },
            "host": { "type": "string", "minLength": 2, "maxLength": 5 },
            "tier": { "type": "string", "enum": ["free", "paid"] },
            "ports": { "type": "array", "maxItems": 2, "items": { "type": "integer", "maximum": 7 } },
            "extra": { "type": "boolean" },
        } } } });
        let value = json!({ "spec": { "count": 3, "host": "abc", "tier": "free", "ports": [1] } });
        let other = json!({ "spec": { "extra": true } });
        let made: Vec<(String, Value)> = changes(&value, &schema, &other)
            .into_iter()
            .map(|change| (format!("{} {}", change.place, change.name), change.of(&value)))
            .collect();
        let changed = |name: &str, pointer: &str| {
            let found = made.iter().find(|(known, _)| known == name);
            found.unwrap_or_else(|| panic!("{name}")).1.pointer(pointer).cloned()
        };
        for (name, pointer, wanted) in [
            ("/spec/count below the minimum", "/spec/count", json!(0)),
            ("/spec/count above the maximum", "/spec/count", json!(10)),
            ("/spec/host too long", "/spec/host", json!("aaaaaa")),
            ("/spec/host too short", "/spec/host", json!("a")),
            ("/spec/tier another", "/spec/tier", json!("paid")),
            ("/spec/ports too many items", "/spec/ports", json!([1, 1, 1])),
            ("/spec/ports/0 above the maximum", "/spec/ports/0", json!(8)),
            ("/spec/extra a field more", "/spec/extra", json!(true)),
        ] {
            assert_eq!(changed(name, pointer), Some(wanted), "{name}");
        }
        assert_eq!(changed("/spec/host no field", "/spec/host"), None);
    }
}
