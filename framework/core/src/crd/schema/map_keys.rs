//! Keys of maps: serde reads them as values of the type of the keys, an API server as texts.

// DESIGN.md, 291: The keys of a map with a bound are checked by a rule
// DESIGN.md, 304: Types of keys are known by their identity once they were described

mod readable;

use std::borrow::Cow;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::net::{SocketAddr, SocketAddrV4, SocketAddrV6};
use std::num::{
    NonZeroI8, NonZeroI16, NonZeroI32, NonZeroI64, NonZeroIsize, NonZeroU8, NonZeroU16, NonZeroU32,
    NonZeroU64, NonZeroUsize,
};

use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde_json::{Value, json};
use windlass_cel::rules::check_definition;

use super::lower::Lower;
use super::marks::{ALIASES, REST};
use super::node::{RULES, SchemaObject, append};
use readable::{ReadableKeys, of_schema, one_of};

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
    if mark.remove(OPEN).is_some() {
        open_names(map);
    }
    if !mark.is_empty() {
        map.insert(KEYS.to_owned(), mark.into());
    }
}

/// Makes the fields of a map by an enum, which all have the schema of the values, any keys.
fn open_names(map: &mut SchemaObject) {
    if let Some(Value::Object(fields)) = map.remove("properties")
        && let Some((_, values)) = fields.into_iter().next()
    {
        map.insert("additionalProperties".to_owned(), values);
    }
}

/// Marks the maps in a schema by schemars' name of a type, which contains the names of the type's
/// parts: so maps in the containers of other crates are found, too.
pub(in crate::crd) fn mark_keys(schema: &mut schemars::Schema, id: &str) {
    if let Some(schema) = schema.as_object_mut() {
        mark_below(schema, id);
    }
}

/// Marks the maps in the containers of schemars that the name shows. The name of another type is a
/// path, and that type has marked the maps inside of it.
fn mark_below(node: &mut SchemaObject, id: &str) {
    let node = value_of_option(node);
    let Some((container, parts)) = arguments(id) else { return };
    match (container, parts.as_slice()) {
        ("Option", [value]) => mark_below(node, value),
        ("[", [.., item]) | ("Set", [item]) => {
            if let Some(Value::Object(items)) = node.get_mut("items") {
                mark_below(items, item);
            }
        }
        ("(", values) => {
            if let Some(Value::Array(places)) = node.get_mut("prefixItems") {
                for (place, value) in places.iter_mut().zip(values) {
                    if let Value::Object(place) = place {
                        mark_below(place, value);
                    }
                }
            }
        }
        // A map by texts has the name of the values alone.
        ("Map", [values]) => each_value(node, &mut |below| mark_below(below, values)),
        ("Map", [key, values]) => {
            if is_object(node)
                && !node.contains_key(KEYS)
                && let Some(mark) = mark_of_id(key)
            {
                insert_mark(node, Some(mark));
            }
            each_value(node, &mut |below| mark_below(below, values));
        }
        _ => {}
    }
}

/// The container of schemars that a name begins with, and the names of the container's parts;
/// `None` for the name of another type.
fn arguments(id: &str) -> Option<(&str, Vec<&str>)> {
    let start = id.find(['<', '(', '['])?;
    if !id.ends_with(['>', ')', ']']) {
        return None;
    }
    let (name, inside) = (&id[..start], &id[start + 1..id.len() - 1]);
    let container = if name.is_empty() { &id[..1] } else { name };
    let (mut parts, mut from, mut depth) = (Vec::new(), 0, 0_usize);
    for (at, letter) in inside.char_indices() {
        match letter {
            '<' | '(' | '[' => depth += 1,
            // The arrow in the name of a function's type.
            '>' if inside[..at].ends_with('-') => {}
            '>' | ')' | ']' => depth = depth.saturating_sub(1),
            ',' | ';' if depth == 0 => {
                parts.push(inside[from..at].trim());
                from = at + 1;
            }
            _ => {}
        }
    }
    parts.push(inside[from..].trim());
    Some((container, parts))
}

/// The mark for keys of a type with that identity.
fn mark_of_id(id: &str) -> Option<Value> {
    if let Some(mark) = of_std(id) {
        return mark();
    }
    if matches!(id, "ip" | "ipv4" | "ipv6") {
        return Some(json!({ "words": "IP addresses" }));
    }
    let known = KEY_TYPES.with_borrow(|types| types.get(id).copied());
    if let Some(mark) = known.and_then(|known| known.mark) {
        return mark();
    }
    let path = id.split('<').next().unwrap_or_default();
    let (_, name) = path.rsplit_once("::")?;
    Some(values_of(name.trim()))
}

/// The function for the mark of a type of std with that identity.
fn of_std(id: &str) -> Option<fn() -> Option<Value>> {
    /// A function for the identity of a type, and one for the mark.
    type KnownType = (fn() -> Cow<'static, str>, fn() -> Option<Value>);
    macro_rules! types {
        ($($ty:ty)*) => { &[$((<$ty>::schema_id, mark_of::<$ty>)),*] };
    }
    const KNOWN: &[KnownType] = types! {
        bool char i8 i16 i32 i64 isize u8 u16 u32 u64 usize
        NonZeroI8 NonZeroI16 NonZeroI32 NonZeroI64 NonZeroIsize
        NonZeroU8 NonZeroU16 NonZeroU32 NonZeroU64 NonZeroUsize
    };
    KNOWN.iter().find(|(known, _)| known() == id).map(|(_, mark)| *mark)
}

/// The mark for keys of a type of which no more than the name is known.
fn values_of(name: &str) -> Value {
    json!({ "words": format!("values of `{name}`") })
}

fn is_object(node: &SchemaObject) -> bool {
    match node.get("type") {
        Some(Value::Array(types)) => types.iter().any(|one| one == "object"),
        one => one.is_some_and(|one| one == "object"),
    }
}

/// Visits the schemas of the values of a map. A map by numbers describes its values by a pattern,
/// one by an enum each value by the name of the key.
pub(in crate::crd) fn each_value(map: &mut SchemaObject, visit: &mut dyn FnMut(&mut SchemaObject)) {
    if let Some(Value::Object(values)) = map.get_mut("additionalProperties") {
        visit(values);
    }
    for keyword in ["patternProperties", "properties"] {
        let Some(Value::Object(all)) = map.get_mut(keyword) else { continue };
        all.values_mut().filter_map(Value::as_object_mut).for_each(&mut *visit);
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
    let has_more =
        |it: &SchemaObject| [REST, ALIASES, "anyOf"].iter().any(|key| it.contains_key(*key));
    if schema.is_some_and(has_more) {
        mark.insert(OPEN.to_owned(), true.into());
    }
    (!mark.is_empty()).then_some(Value::Object(mark))
}

impl Lower<'_> {
    /// Makes a map by the names of an enum one by any keys if a rule can check the keys: other keys
    /// are refused then, as serde refuses them, and not dropped.
    pub(super) fn checked_names(&self, raw: &mut SchemaObject) {
        let Some(names) = raw.get(KEYS).and_then(|mark| mark["listed"].as_array()) else { return };
        let names: Vec<String> =
            names.iter().filter_map(Value::as_str).map(str::to_owned).collect();
        let ReadableKeys::Checked(words, condition) = one_of(&names) else { return };
        let Some(most) = raw.get("maxProperties").filter(|_| self.is_alone()) else { return };
        let map = json!({
            "type": "object",
            "maxProperties": most,
            "additionalProperties": { "type": "boolean" },
        });
        let Value::Object(map) = map else { return };
        if is_affordable(&map, &rule(&words, &condition)) {
            open_names(raw);
            raw.insert(KEYS.to_owned(), json!({ "words": words, "condition": condition }));
        }
    }

    /// Checks the keys of a map by a rule, or warns that they are not checked.
    ///
    /// A rule needs a bound on the number of keys: its cost is estimated for the largest map. Below
    /// a list or a map the costs multiply.
    pub(super) fn map_keys(&mut self, raw: &SchemaObject, node: &mut SchemaObject) {
        let Some(mark) = raw.get(KEYS) else { return };
        let has_bound = node.contains_key("maxProperties");
        if let Some(names) = mark["listed"].as_array() {
            let names: Vec<&str> = names.iter().filter_map(Value::as_str).collect();
            let mut text = dropped(&names);
            if self.is_alone() && !has_bound {
                text.push_str(&format!(
                    "; a rule refuses them in a map with a bound: {}",
                    self.bound()
                ));
            }
            self.warn(&text);
            return;
        }
        let words = mark["words"].as_str().unwrap_or_default();
        let mut text = format!("an API server does not check that the keys of a map are {words}");
        if let Some(condition) = mark["condition"].as_str().filter(|_| self.is_alone()) {
            let rule = rule(words, condition);
            if !has_bound {
                text.push_str(&format!(
                    "; a rule checks the keys of a map with a bound: {}",
                    self.bound()
                ));
            } else if is_affordable(node, &rule) {
                append(node.entry(RULES).or_insert_with(|| json!([])), rule);
                return;
            }
        }
        self.warn(&text);
    }

    /// Whether the current position is no part of a list or of a map.
    fn is_alone(&self) -> bool {
        !self.path().iter().any(|step| step == "[]" || step == "*")
    }

    /// The way to give the current map a bound. Fields of a kind, and values of a map by names,
    /// have no `#[schema(…)]`.
    fn bound(&self) -> &'static str {
        if self.is_at_root() || self.named_maps > 0 {
            "give it a type of its own, `struct Name(#[schema(properties(max = 100))] BTreeMap<…>);`"
        } else {
            "`#[schema(properties(max = 100))]`"
        }
    }
}

/// The rule of keys, in a list.
fn rule(words: &str, condition: &str) -> Value {
    json!([{
        "rule": format!("self.all(key, {condition})"),
        "message": format!("the keys of the map must be {words}"),
    }])
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
