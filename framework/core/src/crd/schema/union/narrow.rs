//! The conditions of an alternative, beyond the shape that all of them share.
//!
//! Inside of `oneOf`, `anyOf` and `not` a structural schema has no types. Types are checked there
//! by keywords that apply to values of a single kind: `pattern` to texts, `minimum` to numbers,
//! `minItems` to lists, `minProperties` to objects. A condition that no value of a kind meets says
//! "not of this kind", and its negation says "of this kind". A condition that cannot be expressed
//! becomes a warning.

// DESIGN.md, 127: Alternatives are checked by the kinds of values, without a type

use serde_json::{Value, json};

use super::super::lower::Lower;
use super::super::node::{
    CHECKS, CLOSED, KEEP, NEEDED_FIELD, PARTLY_CLOSED, SchemaKind, SchemaObject, append, is_any,
    is_nullable, property, takes_null,
};

/// A pattern that no text matches.
const NEVER: &str = r"[^\x00-\x{10FFFF}]";

impl Lower<'_> {
    /// The conditions of `inner` that `outer`, which allows at least as much, does not make.
    pub(super) fn narrow(&mut self, inner: &SchemaObject, outer: &SchemaObject) -> SchemaObject {
        let mut checks = SchemaObject::new();
        if SchemaKind::of(inner) == SchemaKind::Any {
            return checks;
        }
        type_check(inner, outer, &mut checks);
        if !own_checks(inner, outer, &mut checks) {
            self.lose(
                "an API server cannot check the alternatives of this field for one variant only",
            );
        }
        // An enum without null refuses null without a further check.
        if is_nullable(outer) && !is_nullable(inner) && !inner.contains_key("enum") {
            self.lose(
                "an API server takes null for each variant, where serde takes it for some only",
            );
        }
        self.field_checks(inner, outer, &mut checks);
        self.name_checks(inner, outer, &mut checks);
        self.value_checks(inner, outer);
        self.item_checks(inner, outer, &mut checks);
        checks
    }

    /// Translates `not`, and warns of keywords without a counterpart.
    pub(in crate::crd::schema) fn unsupported(
        &mut self,
        raw: &SchemaObject,
        node: &mut SchemaObject,
    ) {
        for key in ["if", "dependentRequired", "dependentSchemas", "contains", "propertyNames"] {
            if raw.contains_key(key) {
                self.warn(&format!(
                    "`{key}` has no counterpart in a definition: it is not checked"
                ));
            }
        }
        let Some(refused) = raw.get("not") else { return };
        let losses = self.losses;
        let mut inner = match refused {
            Value::Object(refused) => self.object(refused),
            _ => SchemaObject::new(),
        };
        // Null is judged apart from all alternatives.
        inner.remove("nullable");
        let check = self.narrow(&inner, node);
        // Half of a condition would refuse more than the whole.
        if self.losses > losses || check.is_empty() {
            self.warn("`not` cannot be expressed in a definition here: it is not checked");
        } else {
            node.insert("not".to_owned(), Value::Object(check));
        }
    }

    /// Warns of a condition that cannot be expressed.
    fn lose(&mut self, message: &str) {
        self.losses += 1;
        self.warn(message);
    }

    /// Adds the conditions of fields, and the names that are required.
    fn field_checks(
        &mut self,
        inner: &SchemaObject,
        outer: &SchemaObject,
        checks: &mut SchemaObject,
    ) {
        let mut fields = SchemaObject::new();
        let Some(Value::Object(properties)) = inner.get("properties") else {
            return require(inner, outer, checks);
        };
        let are_free = properties.values().filter_map(Value::as_object).all(is_any);
        if !outer.contains_key("properties") && !are_free {
            self.lose(
                "an API server cannot check the fields of this object, since it may be a value of another type or \
                 have free names",
            );
            return require(inner, outer, checks);
        }
        for (name, field) in properties {
            let Value::Object(field) = field else { continue };
            self.enter(name);
            match property(outer, name) {
                Some(outside) => {
                    let check = self.narrow(field, outside);
                    if name == "metadata" && !check.is_empty() {
                        self.lose("a definition cannot check `metadata` for one variant only");
                    } else if !check.is_empty() {
                        fields.insert(name.clone(), Value::Object(check));
                    }
                }
                None if is_any(field) => {}
                None => self.lose("an API server cannot check this field for one variant only"),
            }
            self.leave();
        }
        if !fields.is_empty() {
            checks.insert("properties".to_owned(), Value::Object(fields));
        }
        require(inner, outer, checks);
    }

    /// Forbids the names of other alternatives, where serde does.
    fn name_checks(
        &mut self,
        inner: &SchemaObject,
        outer: &SchemaObject,
        checks: &mut SchemaObject,
    ) {
        if inner.get(CLOSED) != Some(&Value::Bool(true)) {
            return self.partly_closed(inner, outer);
        }
        let empty = SchemaObject::new();
        let of =
            |node: &'_ SchemaObject| node.get("properties").and_then(Value::as_object).cloned();
        let (mine, all) = (of(inner).unwrap_or_else(|| empty.clone()), of(outer).unwrap_or(empty));
        let others: Vec<Value> = all
            .keys()
            .filter(|name| !mine.contains_key(*name))
            .map(|name| json!({ "required": [name] }))
            .collect();
        match others.as_slice() {
            [] => {}
            [one] => put(checks, "not", one.clone()),
            _ => put(checks, "not", json!({ "anyOf": others })),
        }
        // Where unknown names are kept they must be counted.
        if outer.contains_key(KEEP) {
            put(checks, "maxProperties", mine.len().into());
            let required = inner.get("required").and_then(Value::as_array).map_or(0, Vec::len);
            if required < mine.len() {
                self.lose("an API server keeps unknown fields here, where serde refuses them");
            }
        }
    }

    /// Warns of names of other alternatives that some variants of a nested enum refuse.
    fn partly_closed(&mut self, inner: &SchemaObject, outer: &SchemaObject) {
        let of = |node: &SchemaObject| node.get("properties").and_then(Value::as_object).cloned();
        let (mine, all) = (of(inner).unwrap_or_default(), of(outer).unwrap_or_default());
        let has_more = all.keys().any(|name| !mine.contains_key(name));
        let keeps_more = outer.contains_key(KEEP) && !inner.contains_key(KEEP);
        if inner.contains_key(PARTLY_CLOSED) && (has_more || keeps_more) {
            self.lose(
                "an API server keeps fields of the other alternatives here, where serde refuses them for some variants",
            );
        }
    }

    /// Warns of values under free names, which alternatives cannot check.
    fn value_checks(&mut self, inner: &SchemaObject, outer: &SchemaObject) {
        let Some(Value::Object(values)) = inner.get("additionalProperties") else { return };
        let outside = outer.get("additionalProperties").and_then(Value::as_object);
        self.enter("*");
        let is_checked = match outside {
            Some(outside) => {
                let losses = self.losses;
                let is_same = self.narrow(values, outside).is_empty();
                is_same || self.losses > losses
            }
            None => is_any(values),
        };
        if !is_checked {
            self.lose("an API server cannot check values under free names for one variant only");
        }
        self.leave();
    }

    /// Adds the conditions of items.
    fn item_checks(
        &mut self,
        inner: &SchemaObject,
        outer: &SchemaObject,
        checks: &mut SchemaObject,
    ) {
        let Some(Value::Object(items)) = inner.get("items") else { return };
        self.enter("[]");
        let mut outside = outer.get("items").and_then(Value::as_object).cloned();
        // Where a list may be a value of another type, API servers keep unknown fields of the
        // list's items, too.
        if outer.contains_key(KEEP)
            && let Some(outside) = &mut outside
        {
            outside.insert(KEEP.to_owned(), true.into());
        }
        match &outside {
            Some(outside) => {
                if takes_null(outside) && !is_nullable(items) && !is_any(items) {
                    self.lose(
                        "an API server takes null for items of each variant, where serde takes it for some only",
                    );
                }
                let check = self.narrow(items, outside);
                if !check.is_empty() {
                    checks.insert("items".to_owned(), Value::Object(check));
                }
            }
            None if is_any(items) => {}
            None => self.lose(
                "an API server cannot check these items, since their list may be a value of another type",
            ),
        }
        self.leave();
    }
}

/// Whether checks say no more than "a number or a text".
pub(super) fn is_int_or_string(checks: &[SchemaObject]) -> bool {
    let of = |condition: Value| {
        checks.iter().any(|check| check.len() == 1 && check.get("not") == Some(&condition))
    };
    of(json!({ "pattern": NEVER })) && of(json!({ "minimum": 1, "maximum": 0 }))
}

/// Whether `outer` describes every field and item that a condition names: otherwise a server
/// refuses the condition.
fn is_described(check: &Value, outer: &SchemaObject) -> bool {
    let below = |check: &Value, outer: Option<&Value>| {
        outer.and_then(Value::as_object).is_some_and(|outer| is_described(check, outer))
    };
    let list = |key: &str| check.get(key).and_then(Value::as_array).into_iter().flatten();
    let fields = check.get("properties").and_then(Value::as_object).into_iter().flatten();
    let outside = outer.get("properties");
    fields.into_iter().all(|(name, check)| below(check, outside.and_then(|it| it.get(name))))
        && check.get("items").is_none_or(|check| below(check, outer.get("items")))
        && check.get("not").is_none_or(|check| is_described(check, outer))
        && ["allOf", "anyOf", "oneOf"].iter().all(|key| list(key).all(|it| is_described(it, outer)))
}

/// Requires the names of `inner`, if `outer` does not.
fn require(inner: &SchemaObject, outer: &SchemaObject, checks: &mut SchemaObject) {
    let list = |node: &SchemaObject| node.get("required").and_then(Value::as_array).cloned();
    let mut names = list(inner).unwrap_or_default();
    // A default of the schema is not written into a single variant, and serde has none.
    let fields = inner.get("properties").and_then(Value::as_object).into_iter().flatten();
    for (name, field) in fields {
        let is_filled = property(outer, name).is_some_and(|field| field.contains_key("default"));
        if field.get(NEEDED_FIELD).is_some() && !is_filled && !names.contains(&name.as_str().into())
        {
            names.push(name.as_str().into());
        }
    }
    let outside = list(outer).unwrap_or_default();
    if names.iter().any(|name| !outside.contains(name)) {
        checks.insert("required".to_owned(), Value::Array(names));
    }
}

/// Adds the check of a type that the outer schema does not make.
fn type_check(inner: &SchemaObject, outer: &SchemaObject, checks: &mut SchemaObject) {
    let kind = SchemaKind::of(inner);
    // Listed values have their types.
    if kind == SchemaKind::of(outer) || inner.contains_key("enum") {
        return;
    }
    let not = |condition: Value| ("not", condition);
    let (key, value) = match kind {
        SchemaKind::Any | SchemaKind::Mixture => return,
        SchemaKind::Scalar("string") => not(json!({ "pattern": NEVER })),
        SchemaKind::Scalar("boolean") => return put_choices(checks, inner, &json!([true, false])),
        SchemaKind::Scalar(name) => {
            if name == "integer" && SchemaKind::of(outer) != SchemaKind::IntOrString {
                put(checks, "multipleOf", 1.into());
            }
            if SchemaKind::of(outer) == SchemaKind::Scalar("number") {
                return;
            }
            not(json!({ "minimum": 1, "maximum": 0 }))
        }
        SchemaKind::Array => not(json!({ "minItems": 1, "maxItems": 0 })),
        SchemaKind::Object => not(json!({ "minProperties": 1, "maxProperties": 0 })),
        SchemaKind::IntOrString => {
            // `multipleOf` holds for texts, which are no numbers.
            put(checks, "multipleOf", 1.into());
            let either = json!([
                { "not": { "pattern": NEVER } },
                { "not": { "minimum": 1, "maximum": 0 } }
            ]);
            ("anyOf", either)
        }
    };
    put(checks, key, value);
}

/// Adds the checks of a schema that the outer schema does not make.
///
/// Compared by keyword and value: a bound that differs from the outer bound stays. Returns whether
/// all of them could be added.
fn own_checks(inner: &SchemaObject, outer: &SchemaObject, checks: &mut SchemaObject) -> bool {
    let kind = SchemaKind::of(inner);
    let mut is_whole = true;
    let differs = |key: &str| inner.contains_key(key) && inner.get(key) != outer.get(key);
    for (key, value) in inner.iter().filter(|(key, _)| CHECKS.contains(&key.as_str())) {
        let is_flag = key.starts_with("exclusive");
        let pair = match key.as_str() {
            "minimum" => "exclusiveMinimum",
            "maximum" => "exclusiveMaximum",
            "exclusiveMinimum" => "minimum",
            "exclusiveMaximum" => "maximum",
            key => key,
        };
        if !differs(key) && !differs(pair) {
            continue;
        }
        match key.as_str() {
            "enum" => put_choices(checks, inner, value),
            "format" => format_check(kind, value, inner, checks),
            // A flag without the bound says nothing.
            _ if is_flag && !inner.contains_key(pair) => {}
            "allOf" | "anyOf" | "oneOf" | "not" if !is_described(&json!({ key: value }), outer) => {
                is_whole = false;
            }
            _ => put(checks, key, value.clone()),
        }
    }
    is_whole
}

/// Adds the values that are allowed.
///
/// `enum` is checked against null even where null is allowed, but not inside of `allOf`.
fn put_choices(checks: &mut SchemaObject, inner: &SchemaObject, values: &Value) {
    if is_nullable(inner) {
        put(checks, "allOf", json!([{ "enum": values }]));
    } else {
        put(checks, "enum", values.clone());
    }
}

/// Adds a format. Without a type beside them, the server knows formats of texts only.
fn format_check(
    kind: SchemaKind<'_>,
    format: &Value,
    inner: &SchemaObject,
    checks: &mut SchemaObject,
) {
    match (kind, format.as_str()) {
        (SchemaKind::Scalar("string"), _) => put(checks, "format", format.clone()),
        (SchemaKind::Scalar("integer"), Some("int32")) => {
            for (key, bound) in [("minimum", i32::MIN), ("maximum", i32::MAX)] {
                if !inner.contains_key(key) {
                    put(checks, key, bound.into());
                }
            }
        }
        _ => {}
    }
}

/// Adds a condition; a second condition under the same keyword stands in `allOf`.
fn put(checks: &mut SchemaObject, key: &str, value: Value) {
    match checks.get(key) {
        None => drop(checks.insert(key.to_owned(), value)),
        Some(same) if *same == value => {}
        Some(_) => {
            let more = if key == "allOf" { value } else { json!([{ key: value }]) };
            let all = checks.entry("allOf").or_insert_with(|| json!([]));
            append(all, more);
        }
    }
}
