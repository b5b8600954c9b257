//! Schemas of derived types: the forms of serde beside schemars' own derive, the keys, the
//! Kubernetes types.

mod aliases;
mod contradictions;
mod defaults;
mod flattened;
mod forms;
#[cfg(feature = "full-schemas")]
mod full;
mod inner_keys;
mod items;
mod kept;
mod keys;
mod kubernetes;
mod map_keys;
mod newtypes;
mod options;
mod root;

use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde_json::{Value, json};

/// The schema in the form that `crd()` requests: without references.
fn schema<T: JsonSchema>() -> Value {
    let settings = SchemaSettings::draft2020_12().with(|it| it.inline_subschemas = true);
    T::json_schema(&mut settings.into_generator()).to_value()
}

/// Removes the marks that schemars does not know.
fn without_marks(schema: &mut Value) {
    match schema {
        Value::Object(node) => {
            node.retain(|key, _| !key.starts_with("x-windlass-"));
            node.values_mut().for_each(without_marks);
        }
        Value::Array(items) => items.iter_mut().for_each(without_marks),
        _ => {}
    }
}

/// The schema of the values that serde writes.
fn written<T: JsonSchema>() -> Value {
    let settings = SchemaSettings::draft2020_12().for_serialize();
    let settings = settings.with(|it| it.inline_subschemas = true);
    T::json_schema(&mut settings.into_generator()).to_value()
}

/// The schema of a field.
fn field<T: JsonSchema>(name: &str) -> Value {
    schema::<T>()["properties"][name].clone()
}

/// A definition whose `spec` has the schema.
fn definition(spec: &Value) -> Value {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": { "name": "shapes.example.dev" },
        "spec": {
            "group": "example.dev",
            "scope": "Namespaced",
            "names": { "kind": "Shape", "plural": "shapes" },
            "versions": [{
                "name": "v1",
                "served": true,
                "storage": true,
                "schema": {
                    "openAPIV3Schema": { "type": "object", "properties": { "spec": spec } }
                }
            }]
        }
    })
}
