//! Comparison of a derived definition with the imported definition.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use serde_json::{Map, Value, json};
use windlass::cli::{ImportOptions, import_definitions};
use windlass::crd::definitions_from_yaml;

/// Checks that `derived` equals the definition of `text`, but for the differences that the
/// generator names.
pub(crate) fn check(text: &str, derived: &CustomResourceDefinition, exact: bool) {
    let imported = definitions_from_yaml(text).unwrap().remove(0);
    let warnings = warnings(text, exact);
    let version = derived.spec.versions[0].name.clone();
    let of = |definition: &CustomResourceDefinition| {
        let mut value = serde_json::to_value(&definition.spec).unwrap();
        let versions = value["versions"].as_array().unwrap();
        let selected = versions.iter().find(|one| one["name"] == version.as_str()).unwrap().clone();
        for key in ["versions", "conversion"] {
            value.as_object_mut().unwrap().remove(key);
        }
        let schema = normal(&selected["schema"]["openAPIV3Schema"], true);
        let columns = selected["additionalPrinterColumns"].as_array().cloned().unwrap_or_default();
        (value, schema, columns, selected["subresources"].clone())
    };
    let (old, new) = (of(&imported), of(derived));
    assert_eq!(old.0, new.0, "names and scope");
    let is_named = |column: &Value| {
        warnings.iter().any(|text| text.contains(&format!("the column {}", column["name"])))
    };
    let kept: Vec<&Value> = old.2.iter().filter(|column| !is_named(column)).collect();
    assert_eq!(kept, new.2.iter().collect::<Vec<_>>(), "columns");
    let is_status_named = warnings.iter().any(|text| text.contains("the status"));
    assert!(old.3 == new.3 || is_status_named, "subresources: {} {}", old.3, new.3);
    compare(&old.1, &new.1, &warnings, exact);
}

fn warnings(text: &str, exact: bool) -> Vec<String> {
    let output = import_definitions(text, &ImportOptions::default().exact(exact)).unwrap();
    for warning in &output.warnings {
        let (_, warning) = warning.split_once(": ").unwrap();
        assert!(output.source.contains(&format!("// - {warning}\n")), "no comment: {warning}");
    }
    output.warnings
}

/// A difference: path, keyword, old and new value.
type Difference = (String, String, Value, Value);

fn compare(old: &Value, new: &Value, warnings: &[String], exact: bool) {
    let mut differences = Vec::new();
    diff(old, new, "", &mut differences);
    report(&differences, warnings, exact);
}

/// Fails for each difference that no warning names.
fn report(differences: &[Difference], warnings: &[String], exact: bool) {
    let is_allowed = |(path, key, old, new): &Difference| {
        let is_implied = (key == "nullable" && *new == true && old.is_null())
            || (key == "format" && old.is_null() && (*new == "int64" || *new == "double"));
        // Optional fields of the kind allow null in any case.
        let is_own = path.matches('.').count() == 1 && key == "nullable";
        (is_implied && (!exact || is_own))
            || warnings.iter().any(|text| text.contains(&format!(" {path}: ")))
            || (path.is_empty()
                && key == "required"
                && warnings.iter().any(|text| text.contains(".status: it is not")))
    };
    let named: Vec<&Difference> = differences.iter().filter(|one| !is_allowed(one)).collect();
    assert!(named.is_empty(), "differences that no comment names: {named:#?}");
}

/// Collects the keywords in which two schemas differ.
fn diff(old: &Value, new: &Value, path: &str, found: &mut Vec<Difference>) {
    let empty = Map::new();
    let (old, new) = (old.as_object().unwrap_or(&empty), new.as_object().unwrap_or(&empty));
    let mut keys: Vec<&String> = old.keys().chain(new.keys()).collect();
    keys.sort();
    keys.dedup();
    for key in keys {
        let (before, after) = (old.get(key), new.get(key));
        match (key.as_str(), before, after) {
            ("properties", Some(Value::Object(before)), Some(Value::Object(after)))
                if before.keys().eq(after.keys()) =>
            {
                for (name, schema) in before {
                    diff(schema, &after[name], &format!("{path}.{name}"), found);
                }
            }
            ("items", Some(before), Some(after)) => {
                diff(before, after, &format!("{path}[]"), found);
            }
            ("additionalProperties", Some(before), Some(after)) => {
                diff(before, after, &format!("{path}.*"), found);
            }
            _ if before != after => {
                let value = |value: Option<&Value>| value.cloned().unwrap_or_default();
                found.push((path.to_owned(), key.clone(), value(before), value(after)));
            }
            _ => {}
        }
    }
}

/// Returns a schema in normal form, which is equal for schemas of the same meaning.
fn normal(schema: &Value, is_root: bool) -> Value {
    let mut value = schema.clone();
    windlass::crd::compat::plain_numbers(&mut value);
    if is_root {
        let properties = value["properties"].as_object_mut().unwrap();
        properties.retain(|name, _| name != "apiVersion" && name != "kind");
        properties.insert("metadata".to_owned(), json!({ "type": "object" }));
        // The macro joins the lines of a paragraph.
        let join = |node: &mut Value| {
            if let Some(text) = node.get("description").and_then(Value::as_str) {
                let words: Vec<&str> = text.split_whitespace().collect();
                node["description"] = words.join(" ").into();
            }
        };
        properties.values_mut().for_each(join);
        if let Some(required) = value["required"].as_array_mut() {
            required.retain(|name| name != "metadata");
        }
        join(&mut value);
    }
    reduce(&mut value);
    value
}

/// Removes whatever means nothing, in a schema and in the schemas below.
fn reduce(value: &mut Value) {
    let Value::Object(node) = value else { return };
    node.retain(|_, value| *value != Value::Bool(false));
    if let Some(Value::Array(required)) = node.get_mut("required") {
        required.sort_by_key(Value::to_string);
    }
    if node.get("required") == Some(&json!([])) {
        node.remove("required");
    }
    // Texts with a format refuse lists by bounds that a definition need not have.
    if node.get("type").is_some_and(|name| name != "array") {
        node.retain(|key, _| key != "minItems" && key != "maxItems");
    }
    let union = json!([{ "type": "integer" }, { "type": "string" }]);
    if node.contains_key("x-kubernetes-int-or-string") && node.get("anyOf") == Some(&union) {
        node.remove("anyOf");
    }
    // An optional enum has the values in a single alternative, so that null passes.
    let values = node.get("anyOf").and_then(Value::as_array).filter(|parts| parts.len() == 1);
    if let Some(values) = values.and_then(|parts| parts[0].get("enum")).cloned() {
        node.remove("anyOf");
        node.insert("enum".to_owned(), values);
    }
    if let Some(Value::Array(rules)) = node.get_mut("x-kubernetes-validations") {
        for rule in rules.iter_mut().filter_map(Value::as_object_mut) {
            rule.retain(|key, value| key != "fieldPath" || *value != "");
        }
    }
    if let Some(Value::Array(parts)) = node.remove("allOf") {
        for part in parts {
            node.extend(part.as_object().cloned().unwrap_or_default());
        }
    }
    if let Some(Value::Array(values)) = node.get_mut("enum") {
        values.retain(|value| !value.is_null());
    }
    if let Some(Value::Object(properties)) = node.get_mut("properties") {
        properties.values_mut().for_each(reduce);
    }
    for key in ["items", "additionalProperties"] {
        node.get_mut(key).into_iter().for_each(reduce);
    }
}
