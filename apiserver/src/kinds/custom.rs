//! Custom kinds, made from a `CustomResourceDefinition`.

use std::sync::Arc;

use serde_json::{Value, json};

use super::conversion::ConversionWebhook;
use super::{Generation, Kind, KindStrategy};
use crate::crd_schema::{Budget, Schema};
use crate::names;
use crate::served::{Cause, Column, Served, Subresource};
use crate::status::invalid_value;
use crate::typed::TypeSchema;

/// Data of a kind that only custom kinds have.
#[derive(Debug)]
pub(crate) struct Custom {
    /// Name of the definition.
    pub(crate) definition: String,
    /// Groups with all versions that the definition has, whether or not they are served.
    pub(crate) versions: Vec<String>,
    /// Schema of this version.
    pub(crate) schema: Schema,
    /// Schema of the version in which objects are stored, if different.
    pub(crate) stored: Option<Schema>,
    /// Paths of the scale subresource: replicas in spec, in status, selector (may be empty).
    pub(crate) scale: Option<[String; 3]>,
    /// The webhook that converts objects between versions; without one, objects are relabelled.
    pub(crate) conversion: Option<ConversionWebhook>,
}

/// Verbs of custom kinds, in discovery's order.
const VERBS: &str = "delete deletecollection get list patch create update watch";

/// Returns the text at a JSON pointer; empty if absent.
fn text(value: &Value, pointer: &str) -> String {
    value.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned()
}

/// Returns the texts of a list at a JSON pointer.
fn texts(value: &Value, pointer: &str) -> Vec<String> {
    let list = value.pointer(pointer).and_then(Value::as_array);
    list.into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
}

/// Returns the name of a custom resource in the store.
pub(crate) fn storage(definition: &Value) -> String {
    format!("{}.{}", text(definition, "/spec/names/plural"), text(definition, "/spec/group"))
}

/// Returns a kind for every served version of a definition.
pub(crate) fn kinds(definition: &Value) -> Vec<Kind> {
    let versions = definition["spec"]["versions"].as_array();
    let served = versions.into_iter().flatten().filter(|version| version["served"] == true);
    let patterns = Budget::default();
    served.map(|version| kind(definition, version, &patterns)).collect()
}

/// Returns the kind of a version.
fn kind(definition: &Value, version: &Value, patterns: &Budget) -> Kind {
    let group = text(definition, "/spec/group");
    let versions = definition["spec"]["versions"].as_array();
    // Objects are stored in a single version, whichever version a request names.
    let stored = versions.into_iter().flatten().find(|version| version["storage"] == true);
    let schema = version.pointer("/schema/openAPIV3Schema").cloned().unwrap_or(Value::Null);
    let status = &version["subresources"]["status"];
    let scale = version.pointer("/subresources/scale").map(|scale| {
        ["/specReplicasPath", "/statusReplicasPath", "/labelSelectorPath"]
            .map(|path| text(scale, path))
    });
    let served = served(definition, version, &schema, scale.as_ref(), status.is_object());
    let stored_version =
        stored.map_or_else(|| served.version.clone(), |stored| text(stored, "/name"));
    Kind {
        storage: storage(definition),
        stored_as: format!("{group}/{stored_version}"),
        // Custom kinds have a generation, and refuse updates without a resourceVersion.
        facts: KindStrategy {
            generation: Generation::Spec,
            unconditional: false,
            ..KindStrategy::PLAIN
        },
        types: Arc::new(
            TypeSchema::from_openapi(&schema).with_status_subresource(status.is_object()),
        ),
        custom: Some(Custom {
            definition: text(definition, "/metadata/name"),
            versions: all_versions(definition, &group),
            schema: Schema::compile_within(&schema, patterns),
            stored: stored
                .filter(|stored| stored["name"] != version["name"])
                .map(|stored| &stored["schema"]["openAPIV3Schema"])
                .filter(|stored| **stored != schema)
                .map(|stored| Schema::compile_within(stored, patterns)),
            scale,
            conversion: ConversionWebhook::of(definition),
        }),
        served,
    }
}

/// Returns a group with all versions of a definition.
fn all_versions(definition: &Value, group: &str) -> Vec<String> {
    let versions = definition["spec"]["versions"].as_array().into_iter().flatten();
    versions.map(|version| format!("{group}/{}", text(version, "/name"))).collect()
}

/// Returns a version in the form for discovery and handlers.
fn served(
    definition: &Value,
    version: &Value,
    schema: &Value,
    scale: Option<&[String; 3]>,
    status: bool,
) -> Served {
    let kind = text(definition, "/spec/names/kind");
    let or = |given: String, default: String| if given.is_empty() { default } else { given };
    let group = text(definition, "/spec/group");
    let name = text(version, "/name");
    let deprecated = (version["deprecated"] == true)
        .then(|| or(text(version, "/deprecationWarning"), deprecation(definition, &name)));
    Served {
        list_kind: or(text(definition, "/spec/names/listKind"), format!("{kind}List")),
        plural: text(definition, "/spec/names/plural"),
        singular: or(text(definition, "/spec/names/singular"), kind.to_lowercase()),
        short_names: texts(definition, "/spec/names/shortNames"),
        categories: texts(definition, "/spec/names/categories"),
        namespaced: text(definition, "/spec/scope") == "Namespaced",
        verbs: VERBS.split(' ').map(str::to_owned).collect(),
        subresources: subresources(&group, &name, &kind, scale, status),
        custom: true,
        schema: (!schema.is_null()).then(|| Arc::new(schema.clone())),
        columns: columns(version),
        selectable: selectable(version),
        stored_as: format!("{group}/{}/{kind}", stored_version(definition).unwrap_or(&name)),
        deprecated,
        group,
        version: name,
        kind,
    }
}

/// Returns the name of the version in which objects are stored.
fn stored_version(definition: &Value) -> Option<&str> {
    let mut versions = definition["spec"]["versions"].as_array().into_iter().flatten();
    versions.find(|version| version["storage"] == true)?["name"].as_str()
}

/// Returns the warning of a deprecated version, which names the newest version that is not
/// deprecated.
fn deprecation(definition: &Value, name: &str) -> String {
    let (group, kind) = (text(definition, "/spec/group"), text(definition, "/spec/names/kind"));
    let versions = definition["spec"]["versions"].as_array().into_iter().flatten();
    let better = versions
        .filter(|version| version["served"] == true && version["deprecated"] != true)
        .filter_map(|version| version["name"].as_str())
        .filter(|other| names::version_rank(other) > names::version_rank(name))
        .max_by_key(|other| names::version_rank(other));
    let advice = better.map(|better| format!("; use {group}/{better} {kind}"));
    format!("{group}/{name} {kind} is deprecated{}", advice.unwrap_or_default())
}

/// Returns the subresources of a version.
fn subresources(
    group: &str,
    version: &str,
    kind: &str,
    scale: Option<&[String; 3]>,
    status: bool,
) -> Vec<Subresource> {
    let make =
        |name: &str, group: &str, version: &str, kind: &str, paths: Vec<String>| Subresource {
            name: name.to_owned(),
            group: group.to_owned(),
            version: version.to_owned(),
            kind: kind.to_owned(),
            verbs: ["get", "patch", "update"].map(str::to_owned).to_vec(),
            paths,
        };
    let mut out = Vec::new();
    if status {
        out.push(make("status", group, version, kind, Vec::new()));
    }
    if let Some(paths) = scale {
        out.push(make("scale", "autoscaling", "v1", "Scale", paths.to_vec()));
    }
    out
}

/// Returns the printer columns of a version.
fn columns(version: &Value) -> Vec<Column> {
    let Some(list) = version["additionalPrinterColumns"].as_array().filter(|list| !list.is_empty())
    else {
        // A kind without columns shows the age.
        return vec![Column {
            name: "Age".to_owned(),
            kind: "date".to_owned(),
            format: String::new(),
            description: "CreationTimestamp is a timestamp representing the server time when this object was created. It is not guaranteed to be set in happens-before order across separate operations. Clients may not set this value. It is represented in RFC3339 form and is in UTC.\n\nPopulated by the system. Read-only. Null for lists. More info: https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#metadata".to_owned(),
            priority: 0,
            json_path: ".metadata.creationTimestamp".to_owned(),
        }];
    };
    let column = |column: &Value| Column {
        name: text(column, "/name"),
        kind: text(column, "/type"),
        format: text(column, "/format"),
        description: text(column, "/description"),
        priority: column["priority"].as_i64().unwrap_or(0),
        json_path: text(column, "/jsonPath"),
    };
    list.iter().map(column).collect()
}

/// Returns the selectable fields of a version.
fn selectable(version: &Value) -> Vec<String> {
    let list = version["selectableFields"].as_array();
    list.into_iter().flatten().map(|field| text(field, "/jsonPath")).collect()
}

/// Returns faults of a custom resource's fields at the paths of the scale.
pub(crate) fn check_scale(kind: &Kind, object: &Value) -> Vec<Cause> {
    let Some(scale) = kind.custom.as_ref().and_then(|custom| custom.scale.as_ref()) else {
        return Vec::new();
    };
    let mut causes = Vec::new();
    for (path, whole) in scale.iter().zip([true, true, false]).filter(|(path, _)| !path.is_empty())
    {
        match seek(object, path, whole) {
            Err(why) => {
                let none = if whole { json!(0) } else { json!("") };
                causes.push(invalid_value(path, &none, &format!("{path} accessor error: {why}")));
            }
            Ok(Some(number)) if number < 0 => {
                causes.push(invalid_value(
                    path,
                    &number.into(),
                    "should be a non-negative integer",
                ));
            }
            Ok(Some(number)) if number > i64::from(i32::MAX) => {
                let why = format!("should be less than or equal to {}", i32::MAX);
                causes.push(invalid_value(path, &number.into(), &why));
            }
            Ok(_) => {}
        }
    }
    causes
}

/// Returns the number at a path, if present; the error describes a value of another type. Null is
/// one at the end of the path, where a definition with `nullable` keeps null, and absent above.
fn seek(object: &Value, path: &str, whole: bool) -> Result<Option<i64>, String> {
    let mut held = object;
    for part in path.split('.').filter(|part| !part.is_empty()) {
        held = match held {
            Value::Null => return Ok(None),
            Value::Object(members) => match members.get(part) {
                Some(member) => member,
                None => return Ok(None),
            },
            other => return Err(is_of(other, "map[string]interface{}")),
        };
    }
    match (held, whole) {
        (Value::String(_), false) => Ok(None),
        (Value::Number(number), true) if number.is_i64() => Ok(number.as_i64()),
        (other, true) => Err(is_of(other, "int64")),
        (other, false) => Err(is_of(other, "string")),
    }
}

/// Returns `5 is of the type int64, expected string`.
fn is_of(value: &Value, wanted: &str) -> String {
    let (shown, found) = match value {
        Value::String(text) => (text.clone(), "string"),
        Value::Bool(_) => (value.to_string(), "bool"),
        Value::Number(number) if number.is_f64() => (value.to_string(), "float64"),
        Value::Number(_) => (value.to_string(), "int64"),
        Value::Array(_) => (value.to_string(), "[]interface {}"),
        Value::Object(_) => (value.to_string(), "map[string]interface {}"),
        Value::Null => ("<nil>".to_owned(), "<nil>"),
    };
    format!("{shown} is of the type {found}, expected {wanted}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn each_served_version_becomes_a_kind_that_stores_as_the_storage_version() {
        let definition = json!({
            "metadata": {"name": "widgets.g.io"},
            "spec": {
                "group": "g.io", "scope": "Namespaced",
                "names": {"plural": "widgets", "kind": "Widget", "shortNames": ["w"]},
                "versions": [
                    {"name": "v1", "served": true, "storage": false, "deprecated": true,
                     "subresources": {"status": {}, "scale": {"specReplicasPath": ".spec.n", "statusReplicasPath": ".status.n"}}},
                    {"name": "v2", "served": true, "storage": true, "selectableFields": [{"jsonPath": ".spec.host"}]},
                    {"name": "v3", "served": false, "storage": false},
                ],
            },
        });
        let kinds = kinds(&definition);
        let versions: Vec<_> = kinds.iter().map(|kind| kind.served.version.as_str()).collect();
        assert_eq!(versions, ["v1", "v2"]);
        assert!(
            kinds.iter().all(|kind| kind.stored_as == "g.io/v2" && kind.storage == "widgets.g.io")
        );
        let subs: Vec<_> =
            kinds[0].served.subresources.iter().map(|sub| sub.name.as_str()).collect();
        assert_eq!(subs, ["status", "scale"]);
        assert_eq!(
            kinds[0].served.deprecated.as_deref(),
            Some("g.io/v1 Widget is deprecated; use g.io/v2 Widget")
        );
        assert_eq!(kinds[1].served.selectable, [".spec.host"]);
        assert_eq!(kinds[1].served.list_kind, "WidgetList");
    }
}
