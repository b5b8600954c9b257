//! Names of fields: those that serde treats in another way than an API server.

use serde_json::Value;

use super::contracts::{DROPPED, LEFT_OUT, OTHER_TYPE, UNWRITTEN, WRITTEN};
use super::lower::Lower;
use super::map_keys::{KEYS, dropped};
use super::node::SchemaObject;

impl Lower<'_> {
    /// Warns of names that serde writes and reads differently.
    pub(super) fn contracts(&mut self, raw: &SchemaObject) {
        let names = |mark: &str| match raw.get(mark) {
            Some(Value::Array(names)) => names.clone(),
            _ => Vec::new(),
        };
        for name in names(WRITTEN) {
            self.warn(&format!(
                "serde writes {name} and does not read it, so the API server drops it; use one name for both"
            ));
        }
        for name in names(UNWRITTEN) {
            self.warn(&format!(
                "serde never writes {name} (`skip_serializing`) and cannot read an object without it, so an object that is \
                 written back is refused; give it `#[serde(default)]`"
            ));
        }
        for name in names(DROPPED) {
            self.warn(&format!(
                "serde never writes {name} (`skip_serializing`), so an object that is written back loses the stored value; \
                 change such objects by patches or server-side apply"
            ));
        }
        if let Some(written) = raw.get(OTHER_TYPE).and_then(Value::as_str) {
            let read = raw.get("type").and_then(Value::as_str).unwrap_or_default();
            self.warn(&format!(
                "serde reads values of type {read} and writes values of type {written}, which an API server refuses: \
                 let `from` and `into` name one type"
            ));
        }
        for name in names(LEFT_OUT) {
            self.warn(&format!(
                "serde leaves {name} out at times (`skip_serializing_if`), and an object without it is refused, so an \
                 object that is written back may be; give it `#[serde(default)]`, and no `#[schema(required)]`"
            ));
        }
    }

    /// Warns of names that serde checks and the API server does not.
    pub(super) fn names(&mut self, raw: &SchemaObject, named: &SchemaObject) {
        if raw.contains_key(KEYS) {
            return;
        }
        if let Some(Value::Object(patterns)) = raw.get("patternProperties")
            && let Some(pattern) = patterns.keys().next()
            && named.is_empty()
        {
            self.warn(&format!(
                "an API server does not check that the keys of a map match {pattern}"
            ));
        }
        let mut schemas = named.values();
        let is_map = raw.get("additionalProperties") == Some(&Value::Bool(false))
            && !raw.contains_key("required")
            && named.len() > 1
            && schemas.next().is_some_and(|first| {
                // A struct has options; in a map by the variants of an enum all values have the
                // same type.
                first.get("nullable") != Some(&Value::Bool(true)) && schemas.all(|it| it == first)
            });
        if is_map {
            let known: Vec<&str> = named.keys().map(String::as_str).collect();
            self.warn(&dropped(&known));
        }
    }
}

/// Whether this is the schema of `std::time::Duration`, whose schema allows unknown fields where
/// `Deserialize` refuses such fields.
pub(super) fn is_std_duration(raw: &SchemaObject) -> bool {
    let names = ["nanos", "secs"];
    let fields = raw.get("properties").and_then(Value::as_object);
    let has = |name: &&str| {
        let format = fields.and_then(|fields| fields.get(*name)?.get("format")?.as_str());
        format == Some(if *name == "secs" { "uint64" } else { "uint32" })
    };
    fields.is_some_and(|fields| fields.len() == names.len()) && names.iter().all(has)
}
