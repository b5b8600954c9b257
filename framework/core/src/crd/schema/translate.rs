//! Translation of a schema, keyword by keyword.

use serde_json::{Value, json};

use super::super::kubernetes::address;
use super::super::shapes::{NEEDED, OPTIONAL, RULES_OF_OPTION};
use super::keywords::{FORMATS, OWN_FORMAT, copy, lengths};
use super::lower::Lower;
use super::map_keys::KEYS;
use super::merge::merge;
use super::names::is_std_duration;
use super::node::{
    CLOSED, KEEP, NEEDED_FIELD, STRUCTURAL, SchemaObject, all_of, any, append, is_any,
    not_required, takes_null,
};
use super::reference::option_of;

/// Largest bound of an integer: a floating number that is an integer of 64 bits with a sign.
const MOST_INTEGER: i64 = i64::MAX - 1023;

/// Most schemas of values in a root field: no definition of 1 MiB has as many.
const MOST_NODES: usize = 50_000;

impl Lower<'_> {
    /// Translates a schema into the structural form.
    ///
    /// `true` and anything that is no schema allow any value; `false` is an error.
    pub(super) fn schema(&mut self, raw: &Value) -> SchemaObject {
        match raw {
            Value::Object(raw) => self.object(raw),
            Value::Bool(false) => {
                self.fault("its schema allows no value at all; give the field another type");
                any()
            }
            _ => any(),
        }
    }

    /// Translates the schema of a field.
    pub(super) fn field(&mut self, step: &str, raw: &Value) -> SchemaObject {
        self.enter(step);
        let node = self.schema(raw);
        self.leave();
        node
    }

    /// Translates a schema that is an object.
    ///
    /// A reference is resolved first. The result has no keyword that structural schemas lack: those
    /// are translated, or reported.
    pub(super) fn object(&mut self, raw: &SchemaObject) -> SchemaObject {
        self.nodes += 1;
        if self.nodes > MOST_NODES {
            self.faults.add(format!(
                "{}: its type has more than {MOST_NODES} fields, one inside of another, and no definition has \
                 room for them; describe a part of it by `windlass::crd::object`",
                self.path.first().map_or_else(|| "the type".to_owned(), |field| format!(".{field}"))
            ));
            return any();
        }
        if let Some(Value::String(reference)) = raw.get("$ref") {
            return self.reference(raw, reference);
        }
        if let Some(inner) = option_of(raw) {
            let mut node = self.object(&inner);
            node.insert("nullable".to_owned(), true.into());
            return node;
        }
        if raw.contains_key(STRUCTURAL) {
            return raw.clone();
        }
        let mut raw = lengths(raw);
        self.checked_names(&mut raw);
        let raw = &raw;
        self.spelling(raw);
        self.without_effect(raw);
        self.format(raw);
        self.marks(raw);
        let mut node = SchemaObject::new();
        let combined = ["allOf", "anyOf", "oneOf"].iter().any(|key| raw.contains_key(*key));
        // A schema of remarks alone allows any value.
        if raw.keys().all(|key| is_remark(key)) {
            node = any();
            copy(raw, &mut node);
            Self::default(raw, &mut node);
            return node;
        }
        copy(raw, &mut node);
        self.types(raw, &mut node, combined);
        self.numbers(raw, &mut node);
        self.texts(raw, &mut node);
        self.properties(raw, &mut node);
        self.items(raw, &mut node);
        self.combinations(raw, &mut node);
        self.map_keys(raw, &mut node);
        Self::default(raw, &mut node);
        let closed = |key: &str| raw.get(key) == Some(&Value::Bool(false));
        // A map by numbers or by texts of a pattern has any number of names.
        let is_closed = (closed("additionalProperties") || closed("unevaluatedProperties"))
            && !raw.contains_key("patternProperties");
        if is_closed || is_std_duration(raw) {
            if raw.get("x-kubernetes-preserve-unknown-fields") == Some(&Value::Bool(true)) {
                self.warn(
                    "an API server keeps fields that the type does not list (`preserve`), and serde refuses them \
                     (`deny_unknown_fields`); remove one of the two",
                );
            }
            node.insert(CLOSED.to_owned(), true.into());
        }
        self.unsupported(raw, &mut node);
        let says = |key: &str| node.get(key) == Some(&Value::Bool(true));
        if says(KEEP) && says("x-kubernetes-int-or-string") {
            self.fault(
                "x-kubernetes-preserve-unknown-fields must be false if x-kubernetes-int-or-string is true: remove `preserve`",
            );
        }
        node
    }

    /// Translates `default`.
    fn default(raw: &SchemaObject, node: &mut SchemaObject) {
        match raw.get("default") {
            // Only an `Option` writes null, whatever describes the type.
            Some(Value::Null) => drop(node.insert("nullable".to_owned(), true.into())),
            Some(default) => drop(node.insert("default".to_owned(), default.clone())),
            None => {}
        }
    }

    /// Translates `type`: a single type, `nullable` for null, and int-or-string.
    ///
    /// `combined` says that the schema has parts or alternatives, which then may give the type.
    fn types(&mut self, raw: &SchemaObject, node: &mut SchemaObject, combined: bool) {
        let mut types: Vec<&str> = match raw.get("type") {
            Some(Value::String(name)) => vec![name],
            Some(Value::Array(names)) => names.iter().filter_map(Value::as_str).collect(),
            _ => Vec::new(),
        };
        if types.contains(&"null") {
            node.insert("nullable".to_owned(), true.into());
            types.retain(|name| *name != "null");
            // A field that is always null: structural schemas need a type, and no object fits here.
            if types.is_empty() && !combined {
                types.push("object");
                node.insert("minProperties".to_owned(), 1.into());
                node.insert("maxProperties".to_owned(), 0.into());
            }
        }
        if let Some(values) = choices(raw) {
            self.choices(values, node, &mut types);
        }
        if types.is_empty() {
            types.extend(implied_type(raw));
        }
        // Sorted, so that each combination has a single order below.
        types.sort_unstable();
        match types.as_slice() {
            [] => {}
            [name] => drop(node.insert("type".to_owned(), (*name).into())),
            // Every integer is a number.
            ["integer", "number"] => drop(node.insert("type".to_owned(), "number".into())),
            // The only union of types that structural schemas have.
            ["integer", "string"] => {
                // A definition has one of both keywords; `enum` still checks a value that is kept.
                if node.get(KEEP) != Some(&Value::Bool(true)) {
                    node.insert("x-kubernetes-int-or-string".to_owned(), true.into());
                }
            }
            _ => {
                self.warn("it may be of several types: the API server checks none of them");
                node.insert("x-kubernetes-preserve-unknown-fields".to_owned(), true.into());
            }
        }
    }

    /// Translates `enum` and `const`; null among the values means nullable.
    fn choices(&mut self, values: Vec<Value>, node: &mut SchemaObject, types: &mut Vec<&str>) {
        let has_null = values.contains(&Value::Null);
        let values: Vec<Value> = values.into_iter().filter(|value| !value.is_null()).collect();
        if has_null {
            node.insert("nullable".to_owned(), true.into());
        }
        if types.is_empty() {
            for value in &values {
                // Without `type`, the values imply it.
                let name = type_of(value);
                if !types.contains(&name) {
                    types.push(name);
                }
            }
        }
        if !values.is_empty() {
            node.insert("enum".to_owned(), Value::Array(values));
        }
    }

    /// Translates bounds, and adds explicit bounds for formats that the server does not know.
    ///
    /// JSON Schema writes an exclusive bound as a number, a structural schema as a flag beside the
    /// bound. `uint32` is unknown to the server: its maximum replaces the format.
    fn numbers(&mut self, raw: &SchemaObject, node: &mut SchemaObject) {
        for (exclusive, bound) in [("exclusiveMinimum", "minimum"), ("exclusiveMaximum", "maximum")]
        {
            match raw.get(exclusive) {
                Some(Value::Number(limit)) => {
                    node.insert(bound.to_owned(), limit.clone().into());
                    node.insert(exclusive.to_owned(), true.into());
                }
                Some(Value::Bool(true)) => drop(node.insert(exclusive.to_owned(), true.into())),
                _ => {}
            }
        }
        let is_fraction =
            |factor: &Value| factor.as_f64().is_some_and(|factor| factor.fract() != 0.0);
        if node.get("type").is_some_and(|name| name == "integer")
            && raw.get("multipleOf").is_some_and(is_fraction)
        {
            self.fault("its `multipleOf` is a fraction, of which no integer is a multiple for an API server");
        }
        if node.get("type").is_some_and(|name| name == "number") {
            self.fractions(raw);
        }
        match raw.get("format").and_then(Value::as_str) {
            Some(known) if FORMATS.contains(&known) => {
                node.insert("format".to_owned(), known.into());
            }
            Some("uint32") => drop(node.entry("maximum").or_insert(json!(u32::MAX))),
            // An API server reads integers of 64 bits with a sign, and bounds as floating numbers.
            Some("uint64" | "uint" | "uint128") => {
                node.entry("maximum").or_insert(json!(MOST_INTEGER));
            }
            Some("int" | "int128") => drop(node.insert("format".to_owned(), "int64".into())),
            _ => {}
        }
    }

    /// Translates patterns and formats of texts.
    ///
    /// The server's regular expressions run in linear time and know less: a pattern that they
    /// cannot read is an error, in the server's words.
    fn texts(&mut self, raw: &SchemaObject, node: &mut SchemaObject) {
        if let Some(pattern) = raw.get("pattern").and_then(Value::as_str) {
            let unknown = ["(?=", "(?!", "(?<=", "(?<!", "(?>"];
            if let Some(group) = unknown.iter().find(|group| pattern.contains(**group)) {
                self.fault(&format!(
                    "its pattern uses `{group}`, which the API server's regular expressions do not \
                     have; say it without looking around"
                ));
            } else if let Err(error) = windlass_cel::library::regex::Regex::compile(pattern) {
                self.fault(&format!(
                    "its pattern \"{pattern}\" must be a valid regular expression, but isn't: {error}; \
                     API servers read the syntax of RE2 (https://github.com/google/re2/wiki/Syntax)"
                ));
            }
            node.insert("pattern".to_owned(), pattern.into());
        }
        if node.get("type").and_then(Value::as_str) != Some("string") {
            return;
        }
        // Only the types of std have such a format without a key; they refuse octets with leading
        // zeros.
        if let Some(pattern) = raw.get("format").and_then(Value::as_str).and_then(address)
            && !raw.contains_key(OWN_FORMAT)
        {
            // A pattern of the user holds beside that of the type.
            if *node.entry("pattern").or_insert_with(|| pattern.into()) != pattern {
                append(all_of(node), json!([{ "pattern": pattern }]));
            }
        }
        match raw.get("format").and_then(Value::as_str) {
            // Addresses of both families have no format of their own.
            Some("ip") => {
                let either = json!([{ "anyOf": [{ "format": "ipv4" }, { "format": "ipv6" }] }]);
                append(all_of(node), either);
            }
            Some(format) if !FORMATS.contains(&format) => self.warn(&format!(
                "API servers do not know the format `{format}`: the text is not checked"
            )),
            _ => {}
        }
    }

    /// Translates `properties`, and the schemas of all other names.
    ///
    /// With both listed names and others, the others are kept without a check.
    fn properties(&mut self, raw: &SchemaObject, node: &mut SchemaObject) {
        let mut named = SchemaObject::new();
        let is_map = raw.contains_key(KEYS);
        self.named_maps += usize::from(is_map);
        if let Some(Value::Object(properties)) = raw.get("properties") {
            for (name, schema) in properties {
                let mut field = self.field(name, schema);
                if schema.get(OPTIONAL) == Some(&Value::Bool(true)) {
                    field.insert("nullable".to_owned(), true.into());
                    not_required(node, name);
                }
                if schema.get(NEEDED) == Some(&Value::Bool(true)) {
                    field.insert(NEEDED_FIELD.to_owned(), true.into());
                }
                named.insert(name.clone(), Value::Object(field));
            }
        }
        self.named_maps -= usize::from(is_map);
        self.contracts(raw);
        if raw.contains_key(RULES_OF_OPTION) {
            self.warn(
                "the rules of a flattened option hold for objects without it as well; begin them with `!has(self.…) ||`",
            );
        }
        self.names(raw, &named);
        match self.other_properties(raw) {
            // Structural schemas have either `properties` or `additionalProperties`.
            Some(value) if named.is_empty() && !is_any(&value) => {
                node.insert("additionalProperties".to_owned(), Value::Object(value));
            }
            Some(value) => {
                if !is_any(&value) {
                    self.warn(
                        "an API server cannot check values under free names beside listed ones: it keeps \
                         those values unchecked",
                    );
                }
                node.insert("x-kubernetes-preserve-unknown-fields".to_owned(), true.into());
            }
            None => {}
        }
        if !named.is_empty() {
            node.insert("properties".to_owned(), Value::Object(named));
        }
    }

    /// The schema of the values under unlisted names; `None` when there are none.
    fn other_properties(&mut self, raw: &SchemaObject) -> Option<SchemaObject> {
        let other = |key: &str| raw.get(key).filter(|value| **value != Value::Bool(false));
        let patterns = match raw.get("patternProperties") {
            Some(Value::Object(patterns)) => patterns.values().collect(),
            _ => Vec::new(),
        };
        let schemas: Vec<&Value> = patterns
            .into_iter()
            .chain(other("additionalProperties"))
            .chain(other("unevaluatedProperties").filter(|value| !value.is_null()))
            .collect();
        let first = schemas.first()?;
        // A single schema describes all other names: different ones become any value.
        if schemas.iter().all(|schema| schema == first) {
            Some(self.field("*", first))
        } else {
            Some(any())
        }
    }

    /// Translates `items`, tuples and sets.
    fn items(&mut self, raw: &SchemaObject, node: &mut SchemaObject) {
        if node.get("type").and_then(Value::as_str) != Some("array") {
            return;
        }
        // Structural schemas have a single schema for all items of a list.
        let tuple = raw.get("prefixItems").or(raw.get("items").filter(|items| items.is_array()));
        let item = if let Some(Value::Array(places)) = tuple {
            let places: Vec<SchemaObject> =
                places.iter().map(|place| self.field("[]", place)).collect();
            self.places(&places)
        } else {
            match raw.get("items") {
                Some(items) => self.field("[]", items),
                None => any(),
            }
        };
        if takes_null(&item) && !is_any(&item) {
            self.enter("[]");
            self.warn(
                "an API server takes null for items that are values of several types, where serde refuses it",
            );
            self.leave();
        }
        // Definitions must not have `uniqueItems`: a set is the counterpart.
        if raw.get("uniqueItems") == Some(&Value::Bool(true)) && is_set_item(&item) {
            node.insert("x-kubernetes-list-type".to_owned(), "set".into());
        }
        node.insert("items".to_owned(), Value::Object(item));
    }

    /// Translates `allOf`, `oneOf` and `anyOf`.
    fn combinations(&mut self, raw: &SchemaObject, node: &mut SchemaObject) {
        let list = |key: &str| match raw.get(key) {
            Some(Value::Array(list)) => list.as_slice(),
            _ => &[],
        };
        for part in list("allOf") {
            let part = self.part(part, node);
            merge(self, node, part, false);
        }
        for key in ["oneOf", "anyOf"] {
            let branches = list(key);
            if !branches.is_empty() {
                let union = self.union(key, branches, node);
                // Alternatives beside fields come from a flattened enum.
                merge(self, node, union, true);
            }
        }
    }

    /// Translates a part of `allOf` beside `node`: a part that only adds alternatives to an object
    /// is no complete schema.
    fn part(&mut self, raw: &Value, node: &SchemaObject) -> SchemaObject {
        let combination = raw
            .as_object()
            .and_then(|raw| ["oneOf", "anyOf"].into_iter().find(|key| raw.contains_key(*key)));
        match (raw, combination) {
            (Value::Object(object), Some(key)) if object.len() == 1 => match object.get(key) {
                Some(Value::Array(branches)) => self.union(key, branches, node),
                _ => SchemaObject::new(),
            },
            _ => self.schema(raw),
        }
    }
}

/// Whether a keyword restricts no value.
fn is_remark(key: &str) -> bool {
    key.starts_with("x-windlass-")
        || matches!(
            key,
            "title"
                | "description"
                | "default"
                | "examples"
                | "example"
                | "externalDocs"
                | "deprecated"
                | "$comment"
                | "readOnly"
                | "writeOnly"
                | "$schema"
                | "$id"
        )
}

/// The allowed values, if the schema lists them.
fn choices(raw: &SchemaObject) -> Option<Vec<Value>> {
    match (raw.get("const"), raw.get("enum")) {
        (Some(value), _) => Some(vec![value.clone()]),
        (None, Some(Value::Array(values))) => Some(values.clone()),
        _ => None,
    }
}

/// The type that keywords without `type` imply.
fn implied_type(raw: &SchemaObject) -> Option<&'static str> {
    let has = |keys: &[&str]| keys.iter().any(|key| raw.contains_key(*key));
    if has(&["properties", "additionalProperties", "patternProperties", "required"]) {
        Some("object")
    } else if has(&["items", "prefixItems"]) {
        Some("array")
    } else if has(&["pattern", "minLength", "maxLength"]) && !has(&["x-kubernetes-int-or-string"]) {
        Some("string")
    } else {
        None
    }
}

/// The JSON type of a value.
fn type_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(number) if number.is_f64() => "number",
        Value::Number(_) => "integer",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

/// Whether items can form a set: API servers have sets of scalars, none of them null.
fn is_set_item(item: &SchemaObject) -> bool {
    let scalar = matches!(
        item.get("type").and_then(Value::as_str),
        Some("string" | "integer" | "number" | "boolean")
    );
    (scalar || item.contains_key("x-kubernetes-int-or-string"))
        && item.get("nullable") != Some(&Value::Bool(true))
}
