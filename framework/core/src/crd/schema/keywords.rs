//! Keywords that a schema may have, and those that are spelt almost like a keyword.
//!
//! An unknown keyword is dropped on the way to an API server, which then checks nothing. So
//! an unknown `x-kubernetes-…` keyword, an unknown key of a rule, and a keyword that is almost a
//! keyword of JSON Schema are errors with the word that was probably meant.

use serde_json::{Value, json};

use super::lower::Lower;
use super::node::{RULES, SchemaObject, tighten};

/// Formats that the API server knows; it drops others with a warning.
///
/// A format outside of this list is left out of the schema, so that installing the definition gives
/// no warning.
pub const FORMATS: &[&str] = &[
    "int32",
    "int64",
    "float",
    "double",
    "byte",
    "password",
    "date",
    "date-time",
    "duration",
    "email",
    "hostname",
    "ipv4",
    "ipv6",
    "cidr",
    "mac",
    "uri",
    "uuid",
    "uuid3",
    "uuid4",
    "uuid5",
    "bsonobjectid",
    "isbn",
    "isbn10",
    "isbn13",
    "creditcard",
    "ssn",
    "hexcolor",
    "rgbcolor",
    // Since Kubernetes 1.34; older servers ignore them.
    "k8s-short-name",
    "k8s-long-name",
];

/// Keywords with the same meaning in JSON Schema and in structural schemas.
///
/// They are copied as they are; only an empty `required` is left out.
const COPIED: &[&str] = &[
    "description",
    "example",
    "externalDocs",
    "maxItems",
    "maxLength",
    "maxProperties",
    "maximum",
    "minItems",
    "minLength",
    "minProperties",
    "minimum",
    "multipleOf",
    "required",
    "title",
];

/// Kubernetes' keywords of a definition's schema.
const EXTENSIONS: &[&str] = &[
    "x-kubernetes-embedded-resource",
    "x-kubernetes-int-or-string",
    "x-kubernetes-list-map-keys",
    "x-kubernetes-list-type",
    "x-kubernetes-map-type",
    "x-kubernetes-preserve-unknown-fields",
    RULES,
];

/// Kubernetes' keywords of published schemas of built-in types; a definition has no place for them.
const PUBLISHED: &[&str] = &[
    "x-kubernetes-action",
    "x-kubernetes-group-version-kind",
    "x-kubernetes-patch-merge-key",
    "x-kubernetes-patch-strategy",
    "x-kubernetes-unions",
];

/// Keys of a rule in `x-kubernetes-validations`.
const RULE_KEYS: &[&str] =
    &["fieldPath", "message", "messageExpression", "optionalOldSelf", "reason", "rule"];

/// Keywords of JSON Schema, those of OpenAPI beside them, and marks of this crate.
const KEYWORDS: &[&str] = &[
    "$anchor",
    "$comment",
    "$defs",
    "$id",
    "$ref",
    "$schema",
    "additionalProperties",
    "allOf",
    "anyOf",
    "const",
    "contains",
    "contentEncoding",
    "contentMediaType",
    "contentSchema",
    "default",
    "definitions",
    "dependentRequired",
    "dependentSchemas",
    "deprecated",
    "description",
    "else",
    "enum",
    "example",
    "examples",
    "exclusiveMaximum",
    "exclusiveMinimum",
    "externalDocs",
    "format",
    "if",
    "items",
    "maxContains",
    "maxItems",
    "maxLength",
    "maxProperties",
    "maximum",
    "minContains",
    "minItems",
    "minLength",
    "minProperties",
    "minimum",
    "multipleOf",
    "not",
    "nullable",
    "oneOf",
    "pattern",
    "patternProperties",
    "prefixItems",
    "properties",
    "propertyNames",
    "readOnly",
    "required",
    "then",
    "title",
    "type",
    "unevaluatedItems",
    "unevaluatedProperties",
    "uniqueItems",
    "writeOnly",
];

/// Formats of numbers; the other formats that an API server knows are those of texts.
const NUMBERS: &[&str] = &["int32", "int64", "float", "double"];

/// Mark of a format that comes from a key of the field, not from the field's type.
pub(in crate::crd) const OWN_FORMAT: &str = "x-windlass-format";

/// Keywords that restrict values of some types only.
const OF_TYPES: [(&[&str], &[&str]); 4] = [
    (&["string"], &["minLength", "maxLength", "pattern"]),
    (&["array"], &["minItems", "maxItems"]),
    (&["object"], &["minProperties", "maxProperties"]),
    (
        &["integer", "number"],
        &["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"],
    ),
];

/// Mark of keywords for the items of a list whose schema belongs to another type.
pub(in crate::crd) const EACH: &str = "x-windlass-each";

/// Mark of a value that server-side apply replaces as a whole.
const ATOMIC: &str = "x-windlass-atomic";

/// The single type of a schema beside null.
fn only_type(raw: &SchemaObject) -> Option<&str> {
    match raw.get("type")? {
        Value::String(name) => Some(name),
        Value::Array(names) => {
            let mut names = names.iter().filter_map(Value::as_str).filter(|name| *name != "null");
            names.next().filter(|_| names.next().is_none())
        }
        _ => None,
    }
}

/// Returns the schema with lengths of a list as numbers of items, with the keywords for items
/// moved to the items, and with the keyword by which a list or a map is atomic: a macro does not
/// see that an alias or a newtype is a list.
pub(super) fn lengths(raw: &SchemaObject) -> SchemaObject {
    let mut raw = raw.clone();
    if let Some(atomic) = raw.remove(ATOMIC) {
        let is_list = only_type(&raw) == Some("array");
        let keyword = if is_list { "x-kubernetes-list-type" } else { "x-kubernetes-map-type" };
        raw.insert(keyword.to_owned(), atomic);
    }
    if only_type(&raw) == Some("array") {
        for (length, items) in [("minLength", "minItems"), ("maxLength", "maxItems")] {
            if let Some(limit) = raw.remove(length)
                && !tighten(&mut raw, items, &limit)
            {
                raw.insert(items.to_owned(), limit);
            }
        }
        if let Some(Value::Object(each)) = raw.remove(EACH) {
            describe_items(&mut raw, &each);
        }
    }
    raw
}

/// Copies keywords of the same meaning, and those written for Kubernetes.
pub(super) fn copy(raw: &SchemaObject, node: &mut SchemaObject) {
    for (key, value) in raw {
        let own = key.starts_with("x-kubernetes-") || key == "nullable";
        if COPIED.contains(&key.as_str()) || own {
            node.insert(key.clone(), value.clone());
        }
    }
    // JSON Schema has a list of examples, OpenAPI a single example.
    if let Some(Value::Array(examples)) = raw.get("examples")
        && let Some(first) = examples.first()
        && !node.contains_key("example")
    {
        node.insert("example".to_owned(), first.clone());
    }
    if node.get("required").is_some_and(|required| *required == json!([])) {
        node.remove("required");
    }
}

/// Adds keywords to the items of a list; to those at all positions of a tuple.
fn describe_items(list: &mut SchemaObject, each: &SchemaObject) {
    let describe = |item: &mut Value| {
        // Any value, in schemars' spelling, null among them.
        if *item == Value::Bool(true) {
            *item = json!({ "nullable": true });
        }
        let Value::Object(item) = item else { return };
        for (key, value) in each {
            if !tighten(item, key, value) {
                item.insert(key.clone(), value.clone());
            }
        }
    };
    let key = if list.contains_key("prefixItems") { "prefixItems" } else { "items" };
    match list.entry(key).or_insert(Value::Bool(true)) {
        Value::Array(places) => places.iter_mut().for_each(describe),
        item => describe(item),
    }
}

/// The first number above the integers of 64 bits.
const TWO_TO_63: f64 = 9_223_372_036_854_775_808.0;

impl Lower<'_> {
    /// Warns of bounds of numbers that are a fraction or exceed 64 bits: kube-openapi compares
    /// whole numbers, such as `1` and `1.0` as API servers store it, by integers, with the bound
    /// cut towards 0. For bounds that this moves away from the permitted numbers nothing changes.
    pub(super) fn fractions(&mut self, raw: &SchemaObject) {
        for key in ["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"] {
            let number = raw.get(key).and_then(Value::as_f64).unwrap_or_default();
            let is_moved = match key {
                "minimum" | "exclusiveMaximum" => number > 0.0,
                "maximum" | "exclusiveMinimum" => number < 0.0,
                _ => true,
            };
            // Bounds of integers are checked with the type.
            if number >= TWO_TO_63 && only_type(raw) != Some("integer") {
                self.warn(&format!(
                    "API servers compare whole numbers with -9223372036854775808 instead of {number:e}, which exceeds 64 \
                     bits, and then take or refuse them otherwise than said; leave the bound out"
                ));
                continue;
            }
            match raw.get(key).filter(|_| is_moved && number.fract() != 0.0) {
                Some(bound) if key == "multipleOf" && number > 1.0 => self.warn(&format!(
                    "API servers compare whole numbers with {} instead of {bound}; write the field in a smaller unit, as an \
                     integer",
                    number.trunc()
                )),
                Some(bound) if key == "multipleOf" => self.warn(&format!(
                    "API servers refuse every whole number as a multiple of {bound}; write the field in a smaller unit, as an \
                     integer"
                )),
                Some(bound) => self.warn(&format!(
                    "API servers cut the bound {bound} to an integer for whole numbers, which they then take or refuse \
                     otherwise than said; use a whole bound"
                )),
                None => {}
            }
        }
    }

    /// Warns of keywords that restrict no value of the type.
    pub(super) fn without_effect(&mut self, raw: &SchemaObject) {
        let name = only_type(raw);
        if raw.contains_key(EACH) {
            let found = name.unwrap_or("a value of several types");
            self.warn(&format!(
                "`each` is for lists, and the type is {found}, so it has no effect"
            ));
        }
        let Some(name) = name else { return };
        for (types, keywords) in OF_TYPES {
            let idle = keywords.iter().find(|keyword| raw.contains_key(**keyword));
            if let Some(keyword) = idle.filter(|_| !types.contains(&name)) {
                self.warn(&format!(
                    "`{keyword}` restricts no value of type {name}, so it has no effect"
                ));
            }
        }
    }

    /// Reports a format of values that the type does not have, which an API server would not look
    /// at.
    pub(super) fn format(&mut self, raw: &SchemaObject) {
        let (Some(name), Some(format)) =
            (only_type(raw), raw.get("format").and_then(Value::as_str))
        else {
            return;
        };
        let is_number = matches!(name, "integer" | "number");
        let is_of_numbers = NUMBERS.contains(&format);
        if FORMATS.contains(&format)
            && (is_of_numbers != is_number || !is_number && name != "string")
        {
            let what = if is_of_numbers { "numbers" } else { "texts" };
            self.fault(&format!(
                "the format `{format}` is for {what}, and the type is {name}, so an API server would check nothing; \
                 remove it, or give the field another type"
            ));
        }
    }

    /// Reports keywords of `raw` that no API server would see.
    pub(super) fn spelling(&mut self, raw: &SchemaObject) {
        for (key, value) in raw {
            if key == RULES {
                self.rule_keys(value);
            } else if EXTENSIONS.contains(&key.as_str()) || KEYWORDS.contains(&key.as_str()) {
                // Known.
            } else if PUBLISHED.contains(&key.as_str()) {
                self.warn(&format!("`{key}` has no meaning in a definition: it is left out"));
            } else if key.starts_with("x-kubernetes") {
                self.fault(&unknown("keyword", key, EXTENSIONS, EXTENSIONS));
            } else if let Some(near) =
                nearest(key, EXTENSIONS).or_else(|| nearest(key, KEYWORDS)).filter(|_| !is_own(key))
            {
                self.fault(&format!(
                    "there is no keyword `{key}`; did you mean `{near}`? An API server would drop it"
                ));
            }
        }
    }

    /// Reports keys that a rule does not have, and values of a wrong type.
    fn rule_keys(&mut self, rules: &Value) {
        let Some(rules) = rules.as_array() else {
            return self.fault(&format!(
                "`{RULES}` is {rules}; it must be a list such as [{{ \"rule\": \"self > 0\" }}]"
            ));
        };
        for rule in rules {
            let Some(rule) = rule.as_object() else {
                self.fault(&format!(
                    "{rule} in `{RULES}` is not a rule; write {{ \"rule\": \"self > 0\" }}"
                ));
                continue;
            };
            for (key, value) in rule {
                let fits = match key.as_str() {
                    "optionalOldSelf" => value.is_boolean(),
                    _ => value.is_string(),
                };
                if !RULE_KEYS.contains(&key.as_str()) {
                    self.fault(&unknown("key of a rule", key, RULE_KEYS, RULE_KEYS));
                } else if !fits {
                    let wanted = if key == "optionalOldSelf" { "true or false" } else { "a text" };
                    self.fault(&format!("`{key}` of a rule is {value}; it must be {wanted}"));
                }
            }
        }
    }
}

/// Whether a keyword is a mark of this crate or a vendor's extension.
fn is_own(key: &str) -> bool {
    key.starts_with('$') || key.starts_with("x-windlass-")
}

/// The error text for a word that is not in `known`.
fn unknown(kind: &str, word: &str, near: &[&'static str], known: &[&str]) -> String {
    match nearest(word, near) {
        Some(near) => format!(
            "there is no {kind} `{word}`; did you mean `{near}`? An API server would drop it"
        ),
        None => format!(
            "there is no {kind} `{word}`, and an API server would drop it; there are {}",
            known.join(", ")
        ),
    }
}

/// The word of `known` that `word` was probably meant to be.
fn nearest(word: &str, known: &[&'static str]) -> Option<&'static str> {
    // Dashes and capital letters are the usual mistakes, so the comparison ignores them.
    let plain = |text: &str| text.to_lowercase().replace(['-', '_'], "");
    let limit = (word.len() / 4).clamp(1, 4);
    let near = known.iter().map(|known| (distance(&plain(word), &plain(known)), *known));
    near.filter(|(distance, _)| *distance <= limit).min().map(|(_, known)| known)
}

/// The number of letters to insert, remove, replace or swap until `a` is `b`.
fn distance(a: &str, b: &str) -> usize {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    let mut rows: Vec<Vec<usize>> = vec![(0..=b.len()).collect()];
    for i in 1..=a.len() {
        let mut row = vec![i];
        for j in 1..=b.len() {
            let replaced = rows[i - 1][j - 1] + usize::from(a[i - 1] != b[j - 1]);
            let mut least = replaced.min(rows[i - 1][j] + 1).min(row[j - 1] + 1);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                least = least.min(rows[i - 2][j - 2] + 1);
            }
            row.push(least);
        }
        rows.push(row);
    }
    rows[a.len()][b.len()]
}
