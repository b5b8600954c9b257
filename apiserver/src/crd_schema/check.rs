//! Validation of custom resource definitions.
//!
//! The answers follow a real server, including a quirk: parts that all versions share are reported
//! at the top level (`spec.validation`), where the server's internal form keeps these parts.

use serde_json::{Value, json};

use super::cause::{
    child, duplicate, forbidden, index, invalid, invalid_printed, not_supported, required, too_many,
};
use super::{client_config, names, openapi};
use crate::served::Cause;

/// Returns every fault of a CRD; an empty list means that the CRD may be stored.
///
/// `old` is the stored CRD on update. The rules for names in general are checked for every kind
/// alike and not here. Names may be left to their defaults (`singular`, `listKind`).
pub fn check_crd(crd: &Value, old: Option<&Value>) -> Vec<Cause> {
    let mut out = Vec::new();
    let spec = &crd["spec"];
    let group = string(spec, "group");
    let plural = string(&spec["names"], "plural");
    // Names never change, so only a creation needs the check.
    if old.is_none() {
        for field in ["generateName", "name"] {
            let name = string(&crd["metadata"], field);
            if !name.is_empty() && name != format!("{plural}.{group}") {
                let text = "must be spec.names.plural+\".\"+spec.group";
                out.push(invalid(&format!("metadata.{field}"), &json!(name), text));
            }
        }
    }
    check_spec(spec, &mut out);
    if let Some(old) = old {
        immutable(spec, old, &mut out);
    }
    stored_versions(crd, old.is_some(), &mut out);
    approval(crd, group, &mut out);
    if spec["preserveUnknownFields"] == true {
        let text = "cannot set to true, set x-kubernetes-preserve-unknown-fields to true in spec.versions[*].schema instead";
        out.push(invalid("spec.preserveUnknownFields", &json!(true), text));
    }
    out
}

/// Returns a text; empty when absent.
fn string<'a>(value: &'a Value, key: &str) -> &'a str {
    value.get(key).and_then(Value::as_str).unwrap_or_default()
}

/// Returns a list; empty when absent.
fn list<'a>(value: &'a Value, key: &str) -> &'a [Value] {
    value.get(key).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

/// Returns the value that all versions have under `key`, if the same for all versions.
fn shared<'a>(versions: &'a [Value], key: &str) -> Option<&'a Value> {
    let present = |v: &&Value| match v {
        Value::Null => false,
        Value::Array(items) => !items.is_empty(),
        _ => true,
    };
    let first = versions.first()?.get(key).filter(present)?;
    versions.iter().all(|v| v.get(key) == Some(first)).then_some(first)
}

/// Checks `spec`.
fn check_spec(spec: &Value, out: &mut Vec<Cause>) {
    let group = string(spec, "group");
    if group.is_empty() {
        out.push(required("spec.group", ""));
    } else if let faults @ [_, ..] = names::subdomain(group).as_slice() {
        out.push(invalid("spec.group", &json!(group), &faults.join(",")));
    } else if !group.contains('.') {
        let text = "should be a domain with at least one dot";
        out.push(invalid("spec.group", &json!(group), text));
    }
    one_of("spec.scope", string(spec, "scope"), &["Cluster", "Namespaced"], out);
    let versions = list(spec, "versions");
    for (i, version) in versions.iter().enumerate() {
        if version.get("schema").and_then(|s| s.get("openAPIV3Schema")).is_none_or(Value::is_null) {
            let at = index("spec.versions", i);
            out.push(required(&child(&at, "schema.openAPIV3Schema"), ""));
        }
    }
    // Parts shared by all versions are checked once, at the top level, and not per version.
    let lifted = ["schema", "subresources", "additionalPrinterColumns", "selectableFields"]
        .map(|key| shared(versions, key));
    for (i, version) in versions.iter().enumerate() {
        check_version(version, &index("spec.versions", i), &lifted, out);
    }
    version_flags(spec, versions, &lifted, out);
    check_names(&spec["names"], "spec.names", out);
    let status = versions.iter().any(|v| v["subresources"].get("status").is_some());
    if let Some(schema) = lifted[0].and_then(|s| s.get("openAPIV3Schema")) {
        out.extend(openapi::check(schema, status, "spec.validation.openAPIV3Schema"));
    }
    subresources(lifted[1], "spec.subresources", out);
    columns(lifted[2], "spec.additionalPrinterColumns", out);
    let schema = lifted[0].and_then(|s| s.get("openAPIV3Schema"));
    match (lifted[3], schema) {
        (Some(fields), Some(schema)) => selectable(fields, schema, "spec.selectableFields", out),
        (Some(_), None) => {
            let text = "may only be set when validations.schema is included";
            out.push(invalid("spec.selectableFields", &json!(""), text));
        }
        _ => {}
    }
    conversion(spec, out);
}

/// Returns the position of the first character that Go does not print (`unicode.IsPrint`):
/// controls, formats, blanks other than the space, private and unassigned characters.
///
/// std escapes the same characters, except those that its Unicode tables assign and the older ones
/// of upstream's Go do not: these pass.
fn unprintable(text: &str) -> Option<usize> {
    let is_odd = |letter: char| {
        // At the beginning of a text std also escapes the marks that extend a letter.
        let text = String::from_iter(['a', letter]);
        !matches!(letter, '\'' | '"' | '\\') && text.escape_debug().nth(1) == Some('\\')
    };
    text.find(is_odd)
}

/// Checks a version; `lifted` parts are checked at the top level.
fn check_version(version: &Value, path: &str, lifted: &[Option<&Value>; 4], out: &mut Vec<Cause>) {
    let name = string(version, "name");
    if let faults @ [_, ..] = names::dns1035(name).as_slice() {
        out.push(invalid(&child(path, "name"), &json!(name), &faults.join(",")));
    }
    if let Some(warning) = version.get("deprecationWarning").filter(|w| !w.is_null()) {
        let text = warning.as_str().unwrap_or_default();
        let mut fault = |detail: &str| {
            out.push(invalid(&child(path, "deprecationWarning"), warning, detail));
        };
        if version["deprecated"] != true {
            fault("can only be set for deprecated versions");
        } else if text.len() > 256 {
            fault("must be <= 256 characters long");
        } else if let Some(at) = unprintable(text) {
            fault(&format!(
                "must only contain printable UTF-8 characters; non-printable character found at index {at}"
            ));
        } else if text.is_empty() {
            fault("must not be an empty string");
        }
    }
    let own =
        |i: usize, key: &str| version.get(key).filter(|v| !v.is_null() && lifted[i].is_none());
    let status = version["subresources"].get("status").is_some();
    let schema = version["schema"].get("openAPIV3Schema");
    if lifted[0].is_none()
        && let Some(schema) = schema
    {
        out.extend(openapi::check(schema, status, &child(path, "schema.openAPIV3Schema")));
    }
    subresources(own(1, "subresources"), &child(path, "subresources"), out);
    columns(own(2, "additionalPrinterColumns"), &child(path, "additionalPrinterColumns"), out);
    if let (Some(fields), Some(schema)) = (own(3, "selectableFields"), schema) {
        selectable(fields, schema, &child(path, "selectableFields"), out);
    }
}

/// Checks names and flags across all versions.
fn version_flags(
    spec: &Value,
    versions: &[Value],
    lifted: &[Option<&Value>; 4],
    out: &mut Vec<Cause>,
) {
    let printed = match spec.get("versions") {
        Some(Value::Array(_)) => {
            let each: Vec<String> = versions.iter().map(|v| internal(v, lifted)).collect();
            format!("[{}]", each.join(","))
        }
        _ => "null".to_owned(),
    };
    let mut seen: Vec<&str> = versions.iter().map(|v| string(v, "name")).collect();
    seen.sort_unstable();
    if seen.windows(2).any(|pair| pair[0] == pair[1]) {
        out.push(invalid_printed("spec.versions", &printed, "must contain unique version names"));
    }
    if versions.iter().filter(|v| v["storage"] == true).count() != 1 {
        let text = "must have exactly one version marked as storage version";
        out.push(invalid_printed("spec.versions", &printed, text));
    }
    // The deprecated field `spec.version` is the name of the first version, so the fault appears
    // twice.
    let first = versions.first().map(|v| string(v, "name")).unwrap_or_default();
    if !first.is_empty()
        && let faults @ [_, ..] = names::dns1035(first).as_slice()
    {
        out.push(invalid("spec.version", &json!(first), &faults.join(",")));
    }
}

/// Formats a version in the server's internal form.
fn internal(version: &Value, lifted: &[Option<&Value>; 4]) -> String {
    let get = |key: &str, empty: Value, lifted: bool| {
        version.get(key).filter(|_| !lifted).cloned().unwrap_or(empty)
    };
    let fields = [
        ("Name", get("name", json!(""), false)),
        ("Served", get("served", json!(false), false)),
        ("Storage", get("storage", json!(false), false)),
        ("Deprecated", get("deprecated", json!(false), false)),
        ("DeprecationWarning", get("deprecationWarning", Value::Null, false)),
        ("Schema", get("schema", Value::Null, lifted[0].is_some())),
        ("Subresources", get("subresources", Value::Null, lifted[1].is_some())),
        (
            "AdditionalPrinterColumns",
            get("additionalPrinterColumns", Value::Null, lifted[2].is_some()),
        ),
        ("SelectableFields", get("selectableFields", Value::Null, lifted[3].is_some())),
    ];
    let fields: Vec<String> = fields.iter().map(|(k, v)| format!("\"{k}\":{v}")).collect();
    format!("{{{}}}", fields.join(","))
}

/// Checks that a value is given and is among those allowed.
fn one_of(path: &str, value: &str, allowed: &[&str], out: &mut Vec<Cause>) {
    if value.is_empty() {
        out.push(required(path, ""));
    } else if !allowed.contains(&value) {
        out.push(not_supported(path, &json!(value), allowed));
    }
}

/// Checks the names of a definition.
fn check_names(given: &Value, path: &str, out: &mut Vec<Cause>) {
    let kind = string(given, "kind");
    let or = |key: &str, default: String| match string(given, key) {
        // Without a kind there is no default either.
        "" if !kind.is_empty() => default,
        text => text.to_owned(),
    };
    let singular = or("singular", kind.to_lowercase());
    let list_kind = or("listKind", format!("{kind}List"));
    let plural = string(given, "plural");
    for (key, value) in
        [("plural", plural), ("singular", &singular), ("kind", kind), ("listKind", &list_kind)]
    {
        if value.is_empty() {
            out.push(required(&child(path, key), ""));
        }
    }
    let label = |key: &str, value: &str, out: &mut Vec<Cause>| {
        if let faults @ [_, ..] = names::dns1035(value).as_slice() {
            out.push(invalid(&child(path, key), &json!(value), &faults.join(",")));
        }
    };
    for (key, value) in [("plural", plural), ("singular", singular.as_str())] {
        if !value.is_empty() {
            label(key, value, out);
        }
    }
    for (key, value) in [("kind", kind), ("listKind", &list_kind)] {
        let faults = names::dns1035(&value.to_lowercase());
        if !value.is_empty() && !faults.is_empty() {
            let text =
                format!("may have mixed case, but should otherwise match: {}", faults.join(","));
            out.push(invalid(&child(path, key), &json!(value), &text));
        }
    }
    for (i, name) in list(given, "shortNames").iter().filter_map(Value::as_str).enumerate() {
        label(&index("shortNames", i), name, out);
    }
    if !kind.is_empty() && kind == list_kind {
        let text = "kind and listKind may not be the same";
        out.push(invalid(&child(path, "listKind"), &json!(list_kind), text));
    }
    for (i, name) in list(given, "categories").iter().filter_map(Value::as_str).enumerate() {
        label(&index("categories", i), name, out);
    }
}

/// Checks that a JSON path begins with a dot.
fn simple_path(path: &str, text: &str, out: &mut Vec<Cause>) -> bool {
    if text.starts_with('.') {
        return true;
    }
    out.push(invalid(path, &json!(text), "must be a simple json path starting with ."));
    false
}

/// Checks the paths of the scale subresource.
fn subresources(given: Option<&Value>, path: &str, out: &mut Vec<Cause>) {
    let Some(scale) = given.and_then(|s| s.get("scale")).filter(|s| !s.is_null()) else { return };
    let rules: [(&str, &[&str], &str); 2] = [
        ("specReplicasPath", &[".spec."], "should be a json path under .spec"),
        ("statusReplicasPath", &[".status."], "should be a json path under .status"),
    ];
    for (key, roots, detail) in rules {
        let text = string(scale, key);
        let at = child(path, &format!("scale.{key}"));
        if text.is_empty() {
            out.push(required(&at, ""));
        } else if simple_path(&at, text, out) && !roots.iter().any(|r| text.starts_with(r)) {
            out.push(invalid(&at, &json!(text), detail));
        }
    }
    let text = string(scale, "labelSelectorPath");
    let at = child(path, "scale.labelSelectorPath");
    if !text.is_empty()
        && simple_path(&at, text, out)
        && !text.starts_with(".spec.")
        && !text.starts_with(".status.")
    {
        let detail = "should be a json path under either .spec or .status";
        out.push(invalid(&at, &json!(text), detail));
    }
}

/// Checks the additional printer columns.
fn columns(given: Option<&Value>, path: &str, out: &mut Vec<Cause>) {
    const TYPES: [&str; 5] = ["boolean", "date", "integer", "number", "string"];
    const FORMATS: [&str; 8] =
        ["byte", "date", "date-time", "double", "float", "int32", "int64", "password"];
    for (i, column) in given.and_then(Value::as_array).into_iter().flatten().enumerate() {
        let at = index(path, i);
        if string(column, "name").is_empty() {
            out.push(required(&child(&at, "name"), ""));
        }
        let kind = string(column, "type");
        let detail = format!("must be one of {}", TYPES.join(","));
        if kind.is_empty() {
            out.push(required(&child(&at, "type"), &detail));
        } else if !TYPES.contains(&kind) {
            out.push(invalid(&child(&at, "type"), &json!(kind), &detail));
        }
        let format = string(column, "format");
        if !format.is_empty() && !FORMATS.contains(&format) {
            let detail = format!("must be one of {}", FORMATS.join(","));
            out.push(invalid(&child(&at, "format"), &json!(format), &detail));
        }
        let text = string(column, "jsonPath");
        if text.is_empty() {
            out.push(required(&child(&at, "JSONPath"), ""));
        } else {
            simple_path(&child(&at, "JSONPath"), text, out);
        }
    }
}

/// Returns the schema of a listed field, or that of a map's values: the API server takes a key of a
/// map for a field.
fn below<'a>(schema: &'a Value, name: &str) -> Option<&'a Value> {
    let listed = schema.get("properties").and_then(|fields| fields.get(name));
    listed.or_else(|| schema.get("additionalProperties").filter(|values| values.is_object()))
}

/// Checks the selectable fields: each must exist in the schema and hold a scalar.
fn selectable(fields: &Value, schema: &Value, path: &str, out: &mut Vec<Cause>) {
    let mut seen: Vec<&str> = Vec::new();
    for (i, field) in fields.as_array().into_iter().flatten().enumerate() {
        let text = string(field, "jsonPath");
        let at = child(&index(path, i), "jsonPath");
        let value = json!(text);
        if text.is_empty() {
            out.push(required(&at, ""));
            continue;
        }
        // The text is upstream's parser error for a path that does not begin at the object.
        let Some(rest) = text.strip_prefix('.') else {
            let token = text.split(['.', '[']).next().unwrap_or_default();
            let detail = format!("is an invalid path: expected [ or . but got: {token}");
            out.push(invalid(&at, &value, &detail));
            continue;
        };
        if rest.is_empty() {
            let detail = "is an invalid path: unexpected end of JSON path";
            out.push(invalid(&at, &value, detail));
            continue;
        }
        if rest.contains('[') {
            let detail = "is an invalid path: array notation is not allowed";
            out.push(invalid(&at, &value, detail));
            continue;
        }
        let found = rest.split('.').try_fold(schema, below);
        let Some(found) = found else {
            let detail = "is an invalid path: does not refer to a valid field";
            out.push(invalid(&at, &value, detail));
            continue;
        };
        // Metadata can be selected by name and namespace only.
        if rest == "metadata" || rest.starts_with("metadata.") {
            out.push(invalid(&at, &value, "must not point to fields in metadata"));
        }
        if !matches!(string(found, "type"), "string" | "boolean" | "integer") {
            let detail = "must point to a field of type string, boolean or integer. Enum string fields and strings with formats are allowed.";
            out.push(invalid(&at, &value, detail));
        }
        if seen.contains(&text) {
            out.push(duplicate(&at, &value));
        } else {
            seen.push(text);
        }
    }
    // Upstream's limit.
    if seen.len() > 8 {
        out.push(too_many(path, seen.len(), 8));
    }
}

/// Checks the conversion between versions.
fn conversion(spec: &Value, out: &mut Vec<Cause>) {
    let Some(conversion) = spec.get("conversion").filter(|c| !c.is_null()) else { return };
    let strategy = string(conversion, "strategy");
    one_of("spec.conversion.strategy", strategy, &["None", "Webhook"], out);
    let webhook = conversion.get("webhook").filter(|w| !w.is_null());
    let client = webhook.and_then(|w| w.get("clientConfig")).filter(|c| !c.is_null());
    let reviews = webhook.map(|w| list(w, "conversionReviewVersions")).unwrap_or_default();
    let client_at = "spec.conversion.webhookClientConfig";
    let reviews_at = "spec.conversion.conversionReviewVersions";
    // The settings of a webhook are refused where none is called.
    if strategy != "Webhook" {
        let text = "should not be set when strategy is not set to Webhook";
        if client.is_some() {
            out.push(forbidden(client_at, text));
        }
        if !reviews.is_empty() {
            out.push(forbidden(reviews_at, text));
        }
        return;
    }
    match client {
        None => out.push(required(client_at, "required when strategy is set to Webhook")),
        Some(client) => client_config::check(client, client_at, out),
    }
    client_config::check_versions(&json!(reviews), reviews_at, "", out);
}

/// Checks the fields that must not change; scope and kind are fixed once the names are established.
fn immutable(spec: &Value, old: &Value, out: &mut Vec<Cause>) {
    let old_spec = &old["spec"];
    let established = list(&old["status"], "conditions")
        .iter()
        .any(|c| c["type"] == "Established" && c["status"] == "True");
    let mut same = |path: &str, new: &Value, old: &Value| {
        if new != old {
            out.push(invalid(path, new, "field is immutable"));
        }
    };
    if established {
        same("spec.scope", &spec["scope"], &old_spec["scope"]);
        same("spec.names.kind", &spec["names"]["kind"], &old_spec["names"]["kind"]);
    }
    same("spec.group", &spec["group"], &old_spec["group"]);
    same("spec.names.plural", &spec["names"]["plural"], &old_spec["names"]["plural"]);
}

/// Checks that versions with stored objects are not removed.
fn stored_versions(crd: &Value, update: bool, out: &mut Vec<Cause>) {
    let path = "status.storedVersions";
    let versions = list(&crd["spec"], "versions");
    let storage: Vec<&str> =
        versions.iter().filter(|v| v["storage"] == true).map(|v| string(v, "name")).collect();
    // A new definition has no status yet, so the server enters the storage version.
    let stored: Vec<&str> = match update {
        true => list(&crd["status"], "storedVersions").iter().filter_map(Value::as_str).collect(),
        false => storage.iter().take(1).copied().collect(),
    };
    if stored.is_empty() {
        return out.push(invalid(path, &Value::Null, "must have at least one stored version"));
    }
    for name in storage.iter().filter(|name| !update && !stored.contains(name)) {
        let text = format!("must have the storage version {name}");
        out.push(invalid(path, &json!(stored), &text));
    }
    for (i, name) in stored.iter().enumerate() {
        if !versions.iter().any(|v| string(v, "name") == *name) {
            let text = format!(
                "missing from spec.versions; {name} was previously a storage version, and must remain in spec.versions until a storage migration ensures no data remains persisted in {name} and removes {name} from status.storedVersions"
            );
            out.push(invalid(&index(path, i), &json!(name), &text));
        }
    }
}

/// Checks the approval annotation that groups of the Kubernetes project need.
fn approval(crd: &Value, group: &str, out: &mut Vec<Cause>) {
    let protected = ["k8s.io", "kubernetes.io"]
        .iter()
        .any(|domain| group == *domain || group.ends_with(&format!(".{domain}")));
    if !protected {
        return;
    }
    let annotation = string(&crd["metadata"]["annotations"], "api-approved.kubernetes.io");
    let at = "metadata.annotations[api-approved.kubernetes.io]";
    let see = "see https://github.com/kubernetes/enhancements/pull/1111";
    let text = "protected groups must have approval annotation \"api-approved.kubernetes.io\"";
    if annotation.is_empty() {
        out.push(required(at, &format!("{text}, {see}")));
    } else if !annotation.starts_with("unapproved") && !annotation.contains("://") {
        let detail =
            format!("{text} with either a URL or a reason starting with \"unapproved\", {see}");
        out.push(invalid(at, &json!(annotation), &detail));
    }
}
