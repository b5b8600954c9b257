//! Schemas of custom kinds, completed by the fields that every object has.

use serde_json::{Map, Value, json};

use super::{META, reference};
use crate::served::Served;

/// The texts about versions, kinds and metadata, from the documentation of Kubernetes' types
/// (Apache-2.0).
const CONVENTIONS: &str = "More info: https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md";

/// The object whose head is described.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Head {
    /// An object.
    Object,
    /// A list of objects.
    List,
    /// An object inside of another object.
    Embedded,
}

impl Head {
    /// Returns the descriptions of version, kind and metadata.
    fn texts(self) -> [String; 3] {
        let metadata = match self {
            Self::List => format!("Standard list metadata. {CONVENTIONS}#types-kinds"),
            _ => format!("Standard object's metadata. {CONVENTIONS}#metadata"),
        };
        if self == Self::Embedded {
            return [
                format!(
                    "apiVersion defines the versioned schema of this representation of an object. {CONVENTIONS}#resources"
                ),
                format!(
                    "kind is a string value representing the type of this object. In CamelCase. {CONVENTIONS}#types-kinds"
                ),
                metadata,
            ];
        }
        [
            format!(
                "APIVersion defines the versioned schema of this representation of an object. Servers should convert recognized schemas to the latest internal value, and may reject unrecognized values. {CONVENTIONS}#resources"
            ),
            format!(
                "Kind is a string value representing the REST resource this object represents. Servers may infer this from the endpoint the client submits requests to. Cannot be updated. In CamelCase. {CONVENTIONS}#types-kinds"
            ),
            metadata,
        ]
    }
}

/// Returns the schema of a list of a kind; `kind` is that of the list.
pub(super) fn list(kind: &str, one: &Served, items: &Value) -> Value {
    json!({
        "type": "object",
        "description": format!("{kind} is a list of {}", one.kind),
        "required": ["items"],
        "properties": {"items": {
            "type": "array",
            "description": format!("List of {}. {CONVENTIONS}", one.plural),
            "items": items,
        }},
    })
}

/// Adds the fields that every object has to a schema.
pub(super) fn add_head(map: &mut Map<String, Value>, head: Head) {
    let [version, kind, metadata] = head.texts();
    let meta = if head == Head::List { "ListMeta" } else { "ObjectMeta" };
    let properties = map.entry("properties").or_insert_with(|| json!({}));
    properties["apiVersion"] = json!({"type": "string", "description": version});
    properties["kind"] = json!({"type": "string", "description": kind});
    properties["metadata"] = json!({
        "description": metadata,
        "allOf": [reference(&format!("{META}.{meta}"))],
    });
}

/// Adds the fields of an embedded object, which has a type.
fn add_embedded(map: &mut Map<String, Value>) {
    add_head(map, Head::Embedded);
    let required = map.entry("required").or_insert_with(|| json!([]));
    for field in ["kind", "apiVersion"] {
        if let Value::Array(required) = required
            && !required.iter().any(|one| one == field)
        {
            required.push(field.into());
        }
    }
}

/// Writes parts that definitions may leave out: the two types of numbers that may be texts, and the
/// head of embedded objects.
pub(super) fn complete(schema: &mut Value) {
    let Value::Object(map) = schema else { return };
    if map.get("x-kubernetes-embedded-resource") == Some(&json!(true)) {
        add_embedded(map);
    }
    if map.get("x-kubernetes-int-or-string") == Some(&json!(true)) && !map.contains_key("anyOf") {
        map.remove("type");
        map.insert("anyOf".to_owned(), json!([{"type": "integer"}, {"type": "string"}]));
    }
    for (key, value) in map.iter_mut() {
        match (key.as_str(), value) {
            ("properties", Value::Object(properties)) => {
                properties.values_mut().for_each(complete);
            }
            ("items" | "additionalProperties", inner) => complete(inner),
            _ => {}
        }
    }
}
