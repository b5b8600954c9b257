//! Every shape becomes a schema that the embedded API server accepts, and that keeps the values
//! that serde writes.

mod defects;
mod exact;
mod types;

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Value, json};
use windlass_apiserver::crd_schema::{Schema, check_crd};

use super::{StructuralSchema, structural_schema};
use crate::error::Error;

/// A type's schema, and values of the type as serde writes them.
pub(super) struct Shape {
    name: &'static str,
    schema: Result<StructuralSchema, Error>,
    values: Vec<Value>,
}

fn shape<T: JsonSchema + Serialize>(name: &'static str, values: &[T]) -> Shape {
    let values = values.iter().map(|value| serde_json::to_value(value).unwrap()).collect();
    Shape { name, schema: structural_schema::<T>(), values }
}

/// A definition whose `spec.field` has the schema.
fn crd(field: &Value) -> Value {
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
                "schema": { "openAPIV3Schema": root(field) }
            }]
        }
    })
}

fn root(field: &Value) -> Value {
    json!({
        "type": "object",
        "properties": {
            "spec": { "type": "object", "properties": { "field": field } }
        }
    })
}

#[test]
fn every_shape_becomes_a_schema_that_the_server_accepts() {
    let shapes = types::shapes();
    assert!(shapes.len() > 90);
    for shape in &shapes {
        let schema = &shape.schema.as_ref().unwrap().schema;
        let faults = check_crd(&crd(schema), None);
        assert!(faults.is_empty(), "{}: {faults:#?}\n{schema:#}", shape.name);
    }
}

#[test]
fn what_serde_writes_passes_the_schema_and_loses_nothing() {
    for shape in &types::shapes() {
        let schema = &shape.schema.as_ref().unwrap().schema;
        let compiled = Schema::compile(&root(schema));
        for value in &shape.values {
            let object = json!({ "spec": { "field": value } });
            let faults = compiled.validate(&object, None).causes;
            assert!(faults.is_empty(), "{} {value}: {faults:#?}\n{schema:#}", shape.name);
            let mut pruned = object.clone();
            let unknown = compiled.prune(&mut pruned);
            assert!(unknown.is_empty(), "{} {value}: {unknown:?}\n{schema:#}", shape.name);
            assert_eq!(pruned, object, "{}", shape.name);
        }
    }
}
