//! Documentation of built-in types and their fields, for the descriptions of the API.
//!
//! The file was written by `tests/kube-apiserver/describe-types.py` from the sources of the crate
//! k8s-openapi (Apache-2.0). The file stays compressed until a client requests a description of the
//! API, which few programs do.

// DESIGN.md, 153: Documentation of built-in fields is compressed text from a crate

use std::collections::BTreeMap;
use std::io::Read;
use std::sync::LazyLock;

use flate2::read::GzDecoder;
use serde_json::{Value, json};

/// The file.
static COMPRESSED: &[u8] = include_bytes!("descriptions.gz");
/// Decompressed text.
static TEXT: LazyLock<String> = LazyLock::new(|| {
    let mut text = String::new();
    match GzDecoder::new(COMPRESSED).read_to_string(&mut text) {
        Ok(_) => text,
        Err(error) => {
            tracing::warn!(%error, "the descriptions of types cannot be read; the API has none");
            String::new()
        }
    }
});
/// The lines of each type: its own, and those of its fields.
static TYPES: LazyLock<BTreeMap<&'static str, &'static str>> = LazyLock::new(|| {
    let mut types = BTreeMap::new();
    let mut rest: &'static str = &TEXT;
    while !rest.is_empty() {
        let end = own_end(rest);
        let (lines, others) = rest.split_at(end);
        types.insert(lines.split('\t').next().unwrap_or_default(), lines);
        rest = others;
    }
    types
});

/// Returns the end of the lines of the first type, behind which another name begins.
fn own_end(text: &str) -> usize {
    let mut at = 0;
    for line in text.split_inclusive('\n') {
        if at > 0 && !line.starts_with('\t') {
            break;
        }
        at += line.len();
    }
    at
}

/// Adds the texts of a named type with its fields to the schema.
pub(crate) fn describe(name: &str, schema: &mut Value) {
    let Some(lines) = TYPES.get(name) else { return };
    let mut lines = lines.lines();
    let own = lines.next().and_then(|line| line.split_once('\t'));
    if let Some((_, text)) = own.filter(|(_, text)| !text.is_empty()) {
        schema["description"] = plain(text);
    }
    for line in lines {
        let mut parts = line.splitn(3, '\t').skip(1);
        let (Some(field), Some(text)) = (parts.next(), parts.next()) else { continue };
        let property = schema.get_mut("properties").and_then(|all| all.get_mut(field));
        let Some(Value::Object(property)) = property else { continue };
        // Nothing may stand beside a reference.
        if let Some(target) = property.remove("$ref") {
            property.insert("allOf".to_owned(), json!([{ "$ref": target }]));
        }
        property.insert("description".to_owned(), plain(text));
    }
}

/// Returns a text without escapes.
fn plain(text: &str) -> Value {
    serde_json::from_str(&format!("\"{text}\"")).unwrap_or(Value::Null)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_and_fields_have_their_texts() {
        let mut schema = json!({"properties": {"data": {"type": "object"},
            "metadata": {"$ref": "#/x"}, "unknown": {}}});
        describe("io.k8s.api.core.v1.ConfigMap", &mut schema);
        let text = "ConfigMap holds configuration data for pods to consume.";
        assert_eq!(schema["description"], text);
        let data = schema["properties"]["data"]["description"].as_str();
        assert!(data.is_some_and(|text| text.starts_with("Data contains")), "{schema}");
        assert_eq!(schema["properties"]["metadata"]["allOf"], json!([{"$ref": "#/x"}]));
        assert_eq!(schema["properties"]["unknown"], json!({}));
    }

    #[test]
    fn every_built_in_kind_with_fields_has_a_text() {
        for (version, kind) in crate::typed::TypeSchema::builtin_kinds() {
            let schema = crate::typed::TypeSchema::builtin(&version, &kind).unwrap();
            let name = schema.openapi_name().unwrap_or_default();
            // Lists are generic in that crate.
            assert!(kind.ends_with("List") || TYPES.contains_key(name), "{name}");
        }
    }
}
