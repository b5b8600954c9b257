//! The keys of `#[schema(…)]`, written into a schema.

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::Serialize;
use serde_json::{Map, Value, json};

use super::shape::FieldSchema;
use crate::crd::schema::{
    EACH, OWN_FORMAT, each_value, mark_key_type, second_type, tighten, value_of_option,
};

/// Rules of the API server in CEL.
const RULES: &str = "x-kubernetes-validations";

/// Receiver of keys. Those of an object or an enum apply to the field or variant that was added
/// last; behind `whole`, to the type.
pub trait Keys: Sized {
    /// The schema to which keys apply.
    fn node(&mut self) -> &mut Map<String, Value>;

    /// Adds documentation: a heading in the first line becomes the title.
    #[must_use]
    fn doc(mut self, text: &str) -> Self {
        document(self.node(), text);
        self
    }

    /// Sets a keyword; of a bound that the type has, too, the tighter bound holds.
    #[must_use]
    fn keyword(mut self, name: &str, value: impl Into<Value>) -> Self {
        set(self.node(), name, value.into());
        self
    }

    /// Sets a keyword of the items of the list.
    #[must_use]
    fn item(mut self, name: &str, value: impl Into<Value>) -> Self {
        match self.node().get_mut("items") {
            Some(Value::Object(items)) => set(items, name, value.into()),
            // The list is behind a name: the schema of the list is known later.
            _ => {
                let each = self.node().entry(EACH).or_insert_with(|| json!({}));
                if let Value::Object(each) = each {
                    set(each, name, value.into());
                }
            }
        }
        self
    }

    /// Adds an example.
    #[must_use]
    fn example<T: Serialize>(mut self, value: T) -> Self {
        if let Some(value) = in_json(&value)
            && let Value::Array(examples) =
                self.node().entry("examples").or_insert_with(|| json!([]))
        {
            examples.push(value);
        }
        self
    }

    /// Adds a rule behind those that the type has; `extras` are the rule's other fields.
    #[must_use]
    fn rule(mut self, rule: &str, extras: &[(&str, &str)]) -> Self {
        add_rule(self.node(), rule, extras);
        self
    }

    /// The rule that was added last is evaluated when an object is created, too.
    #[must_use]
    fn optional_old_self(mut self) -> Self {
        let rules = self.node().get_mut(RULES).and_then(Value::as_array_mut);
        if let Some(Value::Object(rule)) = rules.and_then(|rules| rules.last_mut()) {
            rule.insert("optionalOldSelf".to_owned(), true.into());
        }
        self
    }

    /// Makes server-side apply merge the list item by item, kept apart by these fields.
    #[must_use]
    fn list_map(self, keys: &[String]) -> Self {
        self.keyword("x-kubernetes-list-type", "map")
            .keyword("x-kubernetes-list-map-keys", keys.to_vec())
    }

    /// Marks the type of the keys of a map below these steps, in lists, maps and options.
    #[must_use]
    fn map_keys<K: JsonSchema>(mut self, steps: &[&str]) -> Self {
        each_below(self.node(), steps, &mut mark_key_type::<K>);
        self
    }

    /// Replaces the schema, but not the documentation.
    #[must_use]
    fn replace(mut self, mut keywords: Value) -> Self {
        let node = self.node();
        let is_nullable =
            node.get("nullable").cloned().or_else(|| allows_null(node).then_some(true.into()));
        if let (Value::Object(keywords), Some(nullable)) = (&mut keywords, is_nullable) {
            keywords.insert("nullable".to_owned(), nullable);
        }
        node.retain(|key, _| matches!(key.as_str(), "title" | "description"));
        if let Value::Object(keywords) = keywords {
            node.extend(keywords);
        }
        self
    }

    /// Changes the schema by a function.
    #[must_use]
    fn transform(mut self, change: impl FnOnce(&mut Schema)) -> Self {
        let mut schema = Schema::from(std::mem::take(self.node()));
        change(&mut schema);
        *self.node() = object_of(schema);
        self
    }
}

/// Visits the schemas below these steps: of the items of a list (`items`), or of the values of a
/// map.
fn each_below(
    node: &mut Map<String, Value>,
    steps: &[&str],
    visit: &mut dyn FnMut(&mut Map<String, Value>),
) {
    let node = value_of_option(node);
    match steps.split_first() {
        None => visit(node),
        Some((&"items", rest)) => {
            if let Some(Value::Object(items)) = node.get_mut("items") {
                each_below(items, rest, visit);
            }
        }
        Some((_, rest)) => each_value(node, &mut |values| each_below(values, rest, visit)),
    }
}

/// Whether schemars' schema of an option is in the node.
fn allows_null(node: &Map<String, Value>) -> bool {
    let is_null = |branch: &Value| branch["type"] == "null";
    let has_null = |key: &str| {
        node.get(key)
            .and_then(Value::as_array)
            .is_some_and(|all| all.iter().any(|one| is_null(one) || one == "null"))
    };
    has_null("anyOf") || has_null("type")
}

/// The schema of a type or a value as a whole.
#[derive(Clone, Debug, Default)]
pub struct SchemaNode(pub(super) Map<String, Value>);

impl SchemaNode {
    /// Marks a value that serde converts into another type, which may refuse some of them.
    #[must_use]
    pub fn parsed(mut self, name: &str) -> Self {
        let mark = crate::crd::schema::parsed(name, &self.0);
        self.0.insert("x-windlass-parsed".to_owned(), mark);
        self
    }

    /// Returns the finished schema.
    #[must_use]
    pub fn finish(self) -> Schema {
        self.0.into()
    }
}

impl Keys for SchemaNode {
    fn node(&mut self) -> &mut Map<String, Value> {
        &mut self.0
    }
}

/// Begins the schema of a type that is written as another type.
pub fn same_as(generator: &mut SchemaGenerator, shape: FieldSchema) -> SchemaNode {
    SchemaNode(object_of((shape.schema)(generator)))
}

/// The schema as an object: `true` becomes a schema without keywords.
pub(super) fn object_of(mut schema: Schema) -> Map<String, Value> {
    std::mem::take(schema.ensure_object())
}

/// Adds title and description.
pub(super) fn document(node: &mut Map<String, Value>, text: &str) {
    let text = text.trim_matches(|c: char| c.is_ascii_whitespace());
    let (title, description) = match text.strip_prefix('#') {
        Some(heading) => {
            let (title, rest) = heading.split_once('\n').unwrap_or((heading, ""));
            (title.trim_start_matches('#').trim(), rest.trim())
        }
        None => ("", text),
    };
    for (key, value) in [("title", title), ("description", description)] {
        if !value.is_empty() {
            node.insert(key.to_owned(), value.into());
        }
    }
}

/// Sets a keyword, or tightens a bound.
fn set(node: &mut Map<String, Value>, name: &str, value: Value) {
    if name == "type" && second_type(node, &value) {
        return;
    }
    if name == "format" {
        // The text of a user stands unchanged, beside the form of addresses: see `Lower::texts`.
        node.insert(OWN_FORMAT.to_owned(), true.into());
    }
    if !tighten(node, name, &value) {
        node.insert(name.to_owned(), value);
    }
}

/// Adds a rule, once.
fn add_rule(node: &mut Map<String, Value>, rule: &str, extras: &[(&str, &str)]) {
    let mut new = Map::new();
    new.insert("rule".to_owned(), rule.into());
    new.extend(extras.iter().map(|(key, value)| ((*key).to_owned(), (*value).into())));
    let new = Value::Object(new);
    if let Value::Array(rules) = node.entry(RULES).or_insert_with(|| json!([]))
        && !rules.contains(&new)
    {
        rules.push(new);
    }
}

/// A value in JSON, with the digits that a number of 32 bits has in Rust: `0.1` and not
/// `0.10000000149011612`, which is the same number in 64 bits.
pub(super) fn in_json<T: Serialize>(value: &T) -> Option<Value> {
    written(serde_json::to_value(value).ok(), |text| value.serialize(text))
}

/// The serializer of texts in JSON.
pub type TextSerializer = serde_json::Serializer<Vec<u8>>;

/// As `in_json`, of a value that a function writes: the result, and the same as a text, of which
/// the digits are taken.
pub fn written(
    value: Option<Value>,
    text: impl FnOnce(&mut TextSerializer) -> serde_json::Result<()>,
) -> Option<Value> {
    let mut found = value?;
    if has_fraction(&found) {
        let mut written = TextSerializer::new(Vec::new());
        text(&mut written).ok()?;
        shorten(&mut found, &serde_json::from_slice(&written.into_inner()).ok()?);
    }
    Some(found)
}

/// Whether a value has a number with a fraction.
fn has_fraction(value: &Value) -> bool {
    match value {
        Value::Number(number) => number.is_f64(),
        Value::Array(items) => items.iter().any(has_fraction),
        Value::Object(fields) => fields.values().any(has_fraction),
        _ => false,
    }
}

/// Takes the numbers of `written` that are the same in 32 bits.
fn shorten(value: &mut Value, written: &Value) {
    match (value, written) {
        (Value::Array(items), Value::Array(others)) => {
            items.iter_mut().zip(others).for_each(|(item, other)| shorten(item, other));
        }
        (Value::Object(fields), Value::Object(others)) => {
            for (name, field) in fields {
                shorten(field, others.get(name).unwrap_or(&Value::Null));
            }
        }
        (value, Value::Number(other)) => {
            let is_same = |wide: f64, short: f64| wide != short && wide == f64::from(short as f32);
            if let (Some(wide), Some(short)) = (value.as_f64(), other.as_f64())
                && value.is_f64()
                && is_same(wide, short)
            {
                *value = Value::Number(other.clone());
            }
        }
        _ => {}
    }
}
