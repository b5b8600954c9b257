//! The OpenAPI v2 document: all documents of version 3 combined, in the older form.
//!
//! Version 2 has no alternatives (`oneOf`, `anyOf`, `not`) and no null. Like upstream, the document
//! leaves them out.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use super::v3_document;
use crate::served::Served;

/// Returns the document.
pub(super) fn document(served: &[Served]) -> Value {
    let versions: BTreeSet<(&str, &str)> =
        served.iter().map(|one| (one.group.as_str(), one.version.as_str())).collect();
    let (mut paths, mut definitions) = (Map::new(), Map::new());
    for (group, version) in versions {
        let Some(mut document) = v3_document(served, group, version) else { continue };
        if let Value::Object(found) = document["paths"].take() {
            paths.extend(found.into_iter().map(|(path, item)| (path, path_item(item))));
        }
        if let Value::Object(found) = document["components"]["schemas"].take() {
            definitions.extend(found.into_iter().map(|(name, one)| (name, schema(one))));
        }
    }
    json!({
        "swagger": "2.0",
        "info": {"title": "Kubernetes", "version": "v1.36.3"},
        "paths": paths,
        "definitions": definitions,
    })
}

/// Returns the operations of a path.
fn path_item(item: Value) -> Value {
    let Value::Object(fields) = item else { return item };
    let fields = fields.into_iter().map(|(key, value)| {
        let value = if key == "parameters" { parameters(value) } else { operation(value) };
        (key, value)
    });
    Value::Object(fields.collect())
}

/// Returns an operation: a body becomes a parameter, and media types stand beside the parameters.
fn operation(mut operation: Value) -> Value {
    let body = operation["requestBody"].take();
    let keys = |content: &Value| -> Vec<String> {
        content.as_object().into_iter().flatten().map(|(key, _)| key.clone()).collect()
    };
    let first = |content: &mut Value| {
        content
            .as_object_mut()
            .and_then(|map| map.values_mut().next())
            .map(|one| one["schema"].take())
    };
    let mut consumes = keys(&body["content"]);
    let mut produces = Vec::new();
    if let Value::Object(responses) = &mut operation["responses"] {
        for response in responses.values_mut() {
            let mut content = response["content"].take();
            produces.extend(keys(&content));
            let mut plain = json!({"description": response["description"]});
            if let Some(found) = first(&mut content) {
                plain["schema"] = schema(found);
            }
            *response = plain;
        }
    }
    let mut all = parameters(operation["parameters"].take());
    if let (Value::Array(all), Value::Object(_)) = (&mut all, &body) {
        let mut parameter = json!({"name": "body", "in": "body"});
        if body["required"] == true {
            parameter["required"] = json!(true);
        }
        let mut content = body["content"].clone();
        parameter["schema"] = schema(first(&mut content).unwrap_or_default());
        all.insert(0, parameter);
    }
    if consumes.is_empty() {
        consumes.push("*/*".to_owned());
    }
    // Several responses name the same types.
    produces.sort();
    produces.dedup();
    if let Value::Object(fields) = &mut operation {
        fields.remove("requestBody");
    }
    operation["parameters"] = all;
    operation["consumes"] = json!(consumes);
    operation["produces"] = json!(produces);
    operation["schemes"] = json!(["https"]);
    operation
}

/// Returns parameters whose types stand in the parameters themselves.
fn parameters(parameters: Value) -> Value {
    let Value::Array(mut list) = parameters else { return json!([]) };
    for parameter in &mut list {
        let Value::Object(fields) = parameter else { continue };
        if let Some(Value::Object(schema)) = fields.remove("schema") {
            fields.extend(schema);
        }
    }
    Value::Array(list)
}

/// Returns a schema without the keywords that version 2 does not have.
fn schema(schema: Value) -> Value {
    let Value::Object(mut fields) = schema else { return schema };
    // A reference with a description or a default beside it.
    let single = fields.get("allOf").and_then(Value::as_array).filter(|all| all.len() == 1);
    if let Some(target) = single.and_then(|all| all[0].get("$ref")).cloned() {
        fields.remove("allOf");
        fields.insert("$ref".to_owned(), target);
    }
    if fields.contains_key("oneOf") && !fields.contains_key("type") {
        // An integer or a text, or a quantity: both may be texts.
        fields.insert("type".to_owned(), json!("string"));
    }
    for key in ["oneOf", "anyOf", "not", "nullable", "writeOnly", "deprecated"] {
        fields.remove(key);
    }
    if let Some(Value::String(target)) = fields.get_mut("$ref") {
        *target = target.replacen("#/components/schemas/", "#/definitions/", 1);
    }
    for (key, value) in &mut fields {
        match key.as_str() {
            "items" | "additionalProperties" => *value = self::schema(value.take()),
            "properties" => value.as_object_mut().into_iter().flatten().for_each(|(_, value)| {
                *value = self::schema(value.take());
            }),
            "allOf" => value.as_array_mut().into_iter().flatten().for_each(|value| {
                *value = self::schema(value.take());
            }),
            _ => {}
        }
    }
    Value::Object(fields)
}
