//! Keys of maps: serde reads them as values of the type of the keys, an API server as texts.

// DESIGN.md, 291: The keys of a map with a bound are checked by a rule
// DESIGN.md, 304: Types of keys are known by their identity once they were described

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::net::{SocketAddr, SocketAddrV4, SocketAddrV6};

use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde_json::{Value, json};
use windlass_cel::rules::check_definition;

use super::lower::Lower;
use super::marks::{ALIASES, PARSED, REST, is_described};
use super::node::{RULES, SchemaObject, append};

/// Mark of a map whose keys serde checks; its value has the words of messages, and the condition of
/// a `key` in CEL if there is one.
pub(super) const KEYS: &str = "x-windlass-keys";

/// Keyword in the mark: serde reads more names than schemars lists as the fields of the map.
const OPEN: &str = "open";

/// A type that keys of maps may have.
#[derive(Clone, Copy)]
struct KeyType {
    /// Name of the type by the compiler.
    name: &'static str,
    /// The mark of maps by it; `None` for several types with one identity.
    mark: Option<fn() -> Option<Value>>,
}

thread_local! {
    /// Types that were described, by schemars' identity. A map asks its type of keys for the schema
    /// before the map is marked, on the same thread.
    static KEY_TYPES: RefCell<BTreeMap<String, KeyType>> = const { RefCell::new(BTreeMap::new()) };
}

/// Notes a type that keys of maps may have.
pub fn key_type<K: JsonSchema>() {
    note_key_type(&K::schema_id(), std::any::type_name::<K>(), mark_of::<K>);
}

/// The part of [`key_type`] that is compiled once.
fn note_key_type(id: &str, name: &'static str, mark: fn() -> Option<Value>) {
    KEY_TYPES.with_borrow_mut(|types| match types.get_mut(id) {
        // Types of two functions of a module: schemars' identity has no function.
        Some(known) if known.name != name => known.mark = None,
        Some(_) => {}
        None => {
            types.insert(id.to_owned(), KeyType { name, mark: Some(mark) });
        }
    });
}

/// Marks the schema of a map with keys of type `K`.
pub(in crate::crd) fn mark_key_type<K: JsonSchema>(map: &mut SchemaObject) {
    insert_mark(map, mark_of::<K>());
}

/// Marks the schema of a map, or removes the mark. The variants of an enum that schemars lists as
/// fields become any keys if serde reads further names.
fn insert_mark(map: &mut SchemaObject, mark: Option<Value>) {
    map.remove(KEYS);
    let Some(Value::Object(mut mark)) = mark else { return };
    if mark.remove(OPEN).is_some()
        && map.get("additionalProperties") == Some(&Value::Bool(false))
        && let Some(Value::Object(fields)) = map.remove("properties")
        && let Some((_, values)) = fields.into_iter().next()
    {
        map.insert("additionalProperties".to_owned(), values);
    }
    if !mark.is_empty() {
        map.insert(KEYS.to_owned(), mark.into());
    }
}

/// Marks the schema of a map by schemars' name of a type, which contains the names of the type's
/// parts: so maps in the containers of other crates are found, too.
pub(in crate::crd) fn mark_keys(schema: &mut schemars::Schema, id: &str) {
    let Some(schema) = schema.as_object_mut() else { return };
    for (others, (at, _)) in id.match_indices(MAP).enumerate() {
        // Names of generic types are paths, with the paths of their arguments: a map among these is
        // none of the value itself. schemars' own containers have no path.
        if id[..at].contains("::") || id[..at].ends_with(char::is_alphanumeric) {
            break;
        }
        let arguments = &id[at + MAP.len()..];
        // A map by texts has the name of the values alone.
        let end = arguments.find([',', '<', '>']).unwrap_or_default();
        let key = &arguments[..end];
        if !arguments[end..].starts_with(',') {
            continue;
        }
        let mark = match key {
            "boolean" => mark_of::<bool>(),
            "char" => mark_of::<char>(),
            "ip" | "ipv4" | "ipv6" => Some(json!({ "words": "IP addresses" })),
            _ => of_described(key),
        };
        each_map_below(schema, others, &mut |map| {
            if mark.is_some() && !map.contains_key(KEYS) {
                insert_mark(map, mark.clone());
            }
        });
    }
}

/// The mark for keys of a type with that identity, whose schema is known if the type was described.
fn of_described(id: &str) -> Option<Value> {
    let (_, name) = id.rsplit_once("::")?;
    let known = KEY_TYPES.with_borrow(|types| types.get(id).copied());
    known.and_then(|known| known.mark).map_or_else(|| Some(values_of(name)), |mark| mark())
}

/// The beginning of schemars' name of a map.
const MAP: &str = "Map<";

/// The mark for keys of a type of which no more than the name is known.
fn values_of(name: &str) -> Value {
    json!({ "words": format!("values of `{name}`") })
}

/// Visits the schemas of a map in lists, options and so many other maps. A map by numbers describes
/// its values by a pattern, one by an enum each value by the name of the key. Nothing is visited
/// where a step is missing, as below a tuple: the mark would land on another map.
fn each_map_below(
    node: &mut SchemaObject,
    others: usize,
    visit: &mut dyn FnMut(&mut SchemaObject),
) {
    let node = value_of_option(node);
    if let Some(Value::Object(items)) = node.get_mut("items") {
        return each_map_below(items, others, visit);
    }
    if others == 0 {
        let is_map = match &node.get("type") {
            Some(Value::Array(types)) => types.iter().any(|one| one == "object"),
            one => one.is_some_and(|one| one == "object"),
        };
        if is_map {
            visit(node);
        }
        return;
    }
    if let Some(Value::Object(values)) = node.get_mut("additionalProperties") {
        each_map_below(values, others - 1, visit);
    }
    for keyword in ["patternProperties", "properties"] {
        let Some(Value::Object(all)) = node.get_mut(keyword) else { continue };
        for values in all.values_mut().filter_map(Value::as_object_mut) {
            each_map_below(values, others - 1, visit);
        }
    }
}

/// The schema of the value in an option, in schemars' spelling.
pub(in crate::crd) fn value_of_option(node: &mut SchemaObject) -> &mut SchemaObject {
    let is_null = |branch: &Value| branch["type"] == "null";
    let branches = node.get("anyOf").and_then(Value::as_array).map(Vec::as_slice);
    let place = match branches {
        Some([value, null]) if value.is_object() && is_null(null) => 0,
        Some([null, value]) if value.is_object() && is_null(null) => 1,
        _ => return node,
    };
    match &mut node["anyOf"][place] {
        Value::Object(value) => value,
        _ => unreachable!("the branch is an object"),
    }
}

/// Returns the mark for keys of type `K`; `None` if serde reads every text.
fn mark_of<K: JsonSchema>() -> Option<Value> {
    let name = std::any::type_name::<K>();
    let sockets = [
        std::any::type_name::<SocketAddr>(),
        std::any::type_name::<SocketAddrV4>(),
        std::any::type_name::<SocketAddrV6>(),
    ];
    // schemars calls them `string`, as it calls texts.
    if sockets.contains(&name) {
        return Some(json!({ "words": "addresses with ports" }));
    }
    mark_by(&K::schema_name(), K::json_schema)
}

/// The part of [`mark_of`] that is compiled once.
fn mark_by(name: &str, schema: fn(&mut SchemaGenerator) -> Schema) -> Option<Value> {
    let settings = SchemaSettings::draft2020_12().with(|settings| {
        settings.inline_subschemas = true;
    });
    let schema = schema(&mut settings.into_generator()).to_value();
    let schema = schema.as_object();
    let mark = match schema.map_or(ReadableKeys::Other, of_schema) {
        ReadableKeys::Any => json!({}),
        ReadableKeys::Listed(names) => json!({ "listed": names }),
        ReadableKeys::Checked(words, condition) => {
            json!({ "words": words, "condition": condition })
        }
        ReadableKeys::Unchecked(words) => json!({ "words": words }),
        ReadableKeys::Other => values_of(name),
    };
    let Value::Object(mut mark) = mark else { return None };
    if schema.is_some_and(|it| it.contains_key(REST) || it.contains_key(ALIASES)) {
        mark.insert(OPEN.to_owned(), true.into());
    }
    (!mark.is_empty()).then_some(Value::Object(mark))
}

/// The texts that serde reads as keys.
enum ReadableKeys {
    Any,
    /// Names of variants without remarks, which schemars lists as fields.
    Listed(Vec<String>),
    /// Words for those that it reads, and their condition in CEL.
    Checked(String, String),
    /// Words for those that it reads.
    Unchecked(String),
    /// Those that no schema describes.
    Other,
}

/// Reads the schema of the keys' type.
fn of_schema(key: &SchemaObject) -> ReadableKeys {
    if key.get(PARSED).is_some_and(|mark| !is_described(key, &mark["had"])) {
        return ReadableKeys::Other;
    }
    if let Some(variants) = key.get("oneOf").and_then(Value::as_array) {
        // Variants with remarks.
        let names: Option<Vec<Vec<String>>> = variants.iter().map(names_of).collect();
        return names.map_or(ReadableKeys::Other, |names| of_variants(key, names.concat()));
    }
    let kind = match key.get("type") {
        Some(Value::Array(kinds)) => kinds.iter().find(|kind| **kind != "null"),
        kind => kind,
    };
    match kind.and_then(Value::as_str) {
        Some("boolean") => {
            ReadableKeys::Checked("`true` or `false`".into(), "key in ['true', 'false']".into())
        }
        Some("integer") => match key.get("enum").and_then(Value::as_array) {
            Some(numbers) => one_of(&numbers.iter().map(Value::to_string).collect::<Vec<_>>()),
            None => numbers(key),
        },
        Some("string") => match names_of(&Value::Object(key.clone())) {
            Some(names) if key.contains_key(REST) || key.contains_key(ALIASES) => {
                of_variants(key, names)
            }
            Some(names) => ReadableKeys::Listed(names),
            None => texts(key),
        },
        _ => ReadableKeys::Other,
    }
}

/// Keys that are the names of variants, or further names that serde reads.
fn of_variants(key: &SchemaObject, mut names: Vec<String>) -> ReadableKeys {
    if key.contains_key(REST) {
        return ReadableKeys::Any;
    }
    let aliases = key.get(ALIASES).and_then(Value::as_array).into_iter().flatten();
    names.extend(aliases.filter_map(Value::as_str).map(str::to_owned));
    one_of(&names)
}

/// Returns the names that the schema of a unit variant, or of several, lists.
fn names_of(schema: &Value) -> Option<Vec<String>> {
    let text = |value: &Value| value.as_str().map(str::to_owned);
    match (&schema["const"], &schema["enum"]) {
        (Value::String(name), _) => Some(vec![name.clone()]),
        (_, Value::Array(names)) => names.iter().map(text).collect(),
        _ => None,
    }
}

/// Keys that are one of these.
fn one_of(names: &[String]) -> ReadableKeys {
    let quoted: Vec<String> = names.iter().map(|name| quoted(name)).collect();
    ReadableKeys::Checked(names.join(", "), format!("key in [{}]", quoted.join(", ")))
}

/// Keys that are whole numbers, within the bounds of their type.
fn numbers(key: &SchemaObject) -> ReadableKeys {
    let (least, most): (i128, i128) = match key.get("format").and_then(Value::as_str) {
        Some("int8") => (i8::MIN.into(), i8::MAX.into()),
        Some("int16") => (i16::MIN.into(), i16::MAX.into()),
        Some("int32") => (i32::MIN.into(), i32::MAX.into()),
        Some("uint8") => (0, u8::MAX.into()),
        Some("uint16") => (0, u16::MAX.into()),
        Some("uint32") => (0, u32::MAX.into()),
        Some("uint64" | "uint") => (0, u64::MAX.into()),
        Some("int64" | "int") => (i64::MIN.into(), i64::MAX.into()),
        _ => return ReadableKeys::Other,
    };
    // A conversion may refuse what these do not allow, and no condition below says so.
    const OTHER: &[&str] =
        &["multipleOf", "exclusiveMinimum", "exclusiveMaximum", "allOf", "anyOf", RULES];
    if key.contains_key(PARSED) && OTHER.iter().any(|keyword| key.contains_key(*keyword)) {
        return ReadableKeys::Other;
    }
    let is_zero_refused = match key.get("not") {
        None => false,
        Some(refused) if refused["const"] == 0 => true,
        Some(_) => return ReadableKeys::Other,
    };
    let bound = |name: &str| key.get(name).and_then(Value::as_i64).map(i128::from);
    let least = bound("minimum").map_or(least, |bound| bound.max(least));
    let most = bound("maximum").map_or(most, |bound| bound.min(most));
    let mut words = format!("whole numbers from {least} to {most}");
    let digits = if least < 0 { "^(0|-?[1-9][0-9]*)$" } else { "^(0|[1-9][0-9]*)$" };
    // A conversion of more digits than the type has is an error, and refuses the key.
    let (read, end) = if most > i64::MAX.into() { ("uint", "u") } else { ("int", "") };
    let mut condition = format!("key.matches('{digits}') && {read}(key) <= {most}{end}");
    if least != 0 {
        condition.push_str(&format!(" && {read}(key) >= {least}{end}"));
    }
    if is_zero_refused {
        words.push_str(" without 0");
        condition.push_str(" && key != '0'");
    }
    ReadableKeys::Checked(words, condition)
}

/// Keys that are texts with conditions.
fn texts(key: &SchemaObject) -> ReadableKeys {
    let text = |name: &str| key.get(name).and_then(Value::as_str);
    let length = |name: &str| key.get(name).and_then(Value::as_u64);
    let (mut words, mut conditions) = (Vec::new(), Vec::new());
    match (length("minLength"), length("maxLength")) {
        (Some(1), Some(1)) => {
            words.push("single characters".to_owned());
            conditions.push("size(key) == 1".to_owned());
        }
        (least, most) => {
            if let Some(least) = least {
                words.push(format!("texts of at least {least} characters"));
                conditions.push(format!("size(key) >= {least}"));
            }
            if let Some(most) = most {
                words.push(format!("texts of at most {most} characters"));
                conditions.push(format!("size(key) <= {most}"));
            }
        }
    }
    if let Some(pattern) = text("pattern") {
        words.push(format!("texts that match {pattern}"));
        conditions.push(format!("key.matches({})", quoted(pattern)));
    }
    let has_other =
        ["not", "allOf", "anyOf", RULES].iter().any(|keyword| key.contains_key(*keyword));
    match text("format") {
        Some("ip" | "ipv4" | "ipv6") => return ReadableKeys::Unchecked("IP addresses".to_owned()),
        Some(_) => return ReadableKeys::Other,
        None if has_other => return ReadableKeys::Other,
        None if conditions.is_empty() => return ReadableKeys::Any,
        None => {}
    }
    ReadableKeys::Checked(words.join(" and "), conditions.join(" && "))
}

/// Returns a text as a literal of CEL.
fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\\', "\\\\").replace('\'', "\\'").replace('\n', "\\n"))
}

impl Lower<'_> {
    /// Checks the keys of a map by a rule, or warns that they are not checked.
    ///
    /// A rule needs a bound on the number of keys: its cost is estimated for the largest map. Below
    /// a list or a map the costs multiply.
    pub(super) fn map_keys(&mut self, raw: &SchemaObject, node: &mut SchemaObject) {
        let Some(mark) = raw.get(KEYS) else { return };
        if let Some(names) = mark["listed"].as_array() {
            let names: Vec<&str> = names.iter().filter_map(Value::as_str).collect();
            self.warn(&dropped(&names));
            return;
        }
        let words = mark["words"].as_str().unwrap_or_default();
        let mut text = format!("an API server does not check that the keys of a map are {words}");
        let is_alone = !self.path().iter().any(|step| step == "[]" || step == "*");
        if let Some(condition) = mark["condition"].as_str().filter(|_| is_alone) {
            let rule = json!([{
                "rule": format!("self.all(key, {condition})"),
                "message": format!("the keys of the map must be {words}"),
            }]);
            if !node.contains_key("maxProperties") {
                text.push_str("; a rule checks the keys of a map with a bound: `#[schema(properties(max = 100))]`");
            } else if is_affordable(node, &rule) {
                append(node.entry(RULES).or_insert_with(|| json!([])), rule);
                return;
            }
        }
        self.warn(&text);
    }
}

/// The text about keys that are listed as fields.
pub(super) fn dropped(known: &[&str]) -> String {
    format!(
        "an API server drops keys other than {} from the map, where serde refuses them",
        known.join(", ")
    )
}

/// Whether an API server takes a rule, whose cost it estimates.
fn is_affordable(node: &SchemaObject, rule: &Value) -> bool {
    let mut node = node.clone();
    node.insert(RULES.to_owned(), rule.clone());
    check_definition(&json!({ "type": "object", "properties": { "map": node } })).is_empty()
}
