//! Shapes of answers: whole objects, tables, metadata alone.

use serde_json::{Value, json};

use super::codec::{Accepted, ResponseShape};
use crate::kinds::Kind;
use crate::status::ApiError;
use crate::table::{IncludeObject, table};
use crate::verbs::options::Query;

/// Content of table rows.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rows {
    /// Part of the object that each row carries.
    pub(super) include: IncludeObject,
    /// Whether the table has column headings.
    pub(super) headers: bool,
}

impl Rows {
    /// Value for shapes without rows.
    pub(super) const PLAIN: Self = Self { include: IncludeObject::Metadata, headers: true };

    /// Reads `includeObject`.
    pub(super) fn of(query: &Query) -> Result<Self, ApiError> {
        let include = match query.get("includeObject") {
            Some("None") => IncludeObject::None,
            Some("Object") => IncludeObject::Object,
            None | Some("Metadata") => IncludeObject::Metadata,
            Some(other) => {
                let text = format!(
                    "Unable to convert to Table as requested: includeObject: Invalid value: {other:?}: must be 'Metadata', 'Object', 'None', or empty"
                );
                return Err(ApiError::bad_request(text));
            }
        };
        Ok(Self { include, headers: true })
    }
}

/// Whether an object is the list of the kind.
pub(super) fn is_list(kind: &Kind, value: &Value) -> bool {
    value["kind"] == kind.served.list_kind.as_str()
        && value.get("items").is_some_and(Value::is_array)
}

/// Checks that the shape fits: a list has no single metadata, an object is no list.
pub(super) fn check_shape(kind: &Kind, shape: ResponseShape, list: bool) -> Result<(), ApiError> {
    let served = &kind.served;
    let package = if served.group.is_empty() {
        "core"
    } else {
        served.group.split('.').next().unwrap_or_default()
    };
    let name = match (served.custom, list) {
        (true, true) => "*unstructured.UnstructuredList".to_owned(),
        (true, false) => "*unstructured.Unstructured".to_owned(),
        (false, true) => format!("*{package}.{}", served.list_kind),
        (false, false) => format!("*{package}.{}", served.kind),
    };
    let text = match (shape, list) {
        (ResponseShape::Partial, true) => {
            format!(
                "you requested PartialObjectMetadata, but the requested object is a list ({name})"
            )
        }
        (ResponseShape::PartialList, false) => {
            format!(
                "you requested PartialObjectMetadataList, but the requested object is not a list ({name})"
            )
        }
        _ => return Ok(()),
    };
    Err(ApiError::custom(406, "NotAcceptable", text))
}

/// Returns an object or list in the requested shape and version.
pub(super) fn shaped(kind: &Kind, accepted: Accepted, rows: Rows, value: Value, now: i64) -> Value {
    let mut made = in_shape(kind, accepted.shape, rows, value, now);
    if accepted.is_older {
        let older = json!("meta.k8s.io/v1beta1");
        for list in ["rows", "items"] {
            let parts = made.get_mut(list).and_then(Value::as_array_mut);
            for part in parts.into_iter().flatten() {
                let object = if list == "rows" { &mut part["object"] } else { part };
                if object["kind"] == "PartialObjectMetadata" {
                    object["apiVersion"] = older.clone();
                }
            }
        }
        made["apiVersion"] = older;
    }
    made
}

/// Returns an object or list in the requested shape.
fn in_shape(kind: &Kind, shape: ResponseShape, rows: Rows, value: Value, now: i64) -> Value {
    let is_list = is_list(kind, &value);
    match shape {
        ResponseShape::Whole => value,
        ResponseShape::Table => {
            let mut list = if is_list {
                value
            } else {
                let metadata = json!({"resourceVersion": value["metadata"]["resourceVersion"]});
                json!({"metadata": metadata, "items": [value]})
            };
            for item in list["items"].as_array_mut().into_iter().flatten() {
                if rows.include == IncludeObject::Metadata {
                    strip(kind, &mut item["metadata"]);
                }
            }
            let mut table = table(&kind.served, &list, rows.include, now);
            if !rows.headers {
                // Null, and not left out: upstream's field has no `omitempty`.
                table["columnDefinitions"] = Value::Null;
            }
            table
        }
        ResponseShape::Partial | ResponseShape::PartialList if is_list => {
            let items = value["items"].as_array().into_iter().flatten();
            let items: Vec<Value> = items.map(|item| partial(kind, item)).collect();
            let mut metadata = value["metadata"].clone();
            if let Value::Object(fields) = &mut metadata {
                fields.retain(|_, value| value != "");
            }
            json!({
                "kind": "PartialObjectMetadataList", "apiVersion": "meta.k8s.io/v1",
                "metadata": metadata,
                // Go's list without items is nil.
                "items": if items.is_empty() { Value::Null } else { items.into() },
            })
        }
        ResponseShape::Partial | ResponseShape::PartialList => partial(kind, &value),
    }
}

/// Returns the metadata of an object as `PartialObjectMetadata`.
fn partial(kind: &Kind, object: &Value) -> Value {
    let mut metadata = object["metadata"].clone();
    strip(kind, &mut metadata);
    json!({
        "kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": metadata,
    })
}

/// Removes a part that only the whole object has: upstream adds the annotation when writing a
/// `DaemonSet`.
fn strip(kind: &Kind, metadata: &mut Value) {
    if !kind.is("apps", "daemonsets") {
        return;
    }
    if let Some(Value::Object(entries)) = metadata.get_mut("annotations") {
        entries.remove("deprecated.daemonset.template.generation");
        if entries.is_empty()
            && let Value::Object(fields) = metadata
        {
            fields.remove("annotations");
        }
    }
}
