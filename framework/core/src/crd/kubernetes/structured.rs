//! Kubernetes types with upstream's structure.

use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::{
    ConfigMapKeySelector, Container, EnvVar, LocalObjectReference, ObjectReference, ResourceClaim,
    ResourceRequirements, SecretKeySelector, SecretReference, Toleration,
    TypedLocalObjectReference, Volume, VolumeDevice, VolumeMount,
};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{
    Condition, LabelSelector, LabelSelectorRequirement, MicroTime, OwnerReference, Time,
};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use schemars::{Schema, SchemaGenerator};
use serde_json::{Value, json};

use super::{KubernetesSchema, object};
use crate::crd::shapes;
use crate::crd::shapes::UNCHECKED;

impl KubernetesSchema for IntOrString {
    fn kubernetes_schema(generator: &mut SchemaGenerator) -> Schema {
        shapes::int_or_string(generator)
    }
}

impl KubernetesSchema for ByteString {
    fn kubernetes_schema(_: &mut SchemaGenerator) -> Schema {
        object(json!({ "type": "string", "format": "byte" }))
    }
}

impl KubernetesSchema for Quantity {
    fn kubernetes_schema(generator: &mut SchemaGenerator) -> Schema {
        shapes::quantity(generator)
    }
}

impl KubernetesSchema for Time {
    fn kubernetes_schema(generator: &mut SchemaGenerator) -> Schema {
        shapes::time(generator)
    }
}

impl KubernetesSchema for MicroTime {
    fn kubernetes_schema(generator: &mut SchemaGenerator) -> Schema {
        shapes::time(generator)
    }
}

impl KubernetesSchema for Condition {
    fn kubernetes_schema(generator: &mut SchemaGenerator) -> Schema {
        let list = shapes::conditions(generator);
        object(list.get("items").cloned().unwrap_or_default())
    }

    fn list_schema(generator: &mut SchemaGenerator) -> Schema {
        shapes::conditions(generator)
    }
}

/// Implements the schema of objects with scalar fields, and of others with the given schemas.
macro_rules! structured {
    ($($ty:ty { $($required:literal),* } { $($name:literal: $schema:expr),* $(,)? } $($map_type:literal)?)*) => {$(
        impl KubernetesSchema for $ty {
            fn kubernetes_schema(_: &mut SchemaGenerator) -> Schema {
                let required: &[&str] = &[$($required),*];
                let mut schema = object(json!({ "type": "object", "properties": { $($name: $schema),* } }));
                if !required.is_empty() {
                    schema.insert("required".to_owned(), json!(required));
                }
                $(schema.insert("x-kubernetes-map-type".to_owned(), $map_type.into());)?
                schema
            }
        }
    )*};
}

/// Optional fields of Kubernetes types are left out by serde when they are absent: never null.
fn text() -> Value {
    json!({ "type": "string" })
}

/// A name that the server fills in when the name is absent, as upstream does.
fn name() -> Value {
    json!({ "type": "string", "default": "" })
}

fn boolean() -> Value {
    json!({ "type": "boolean" })
}

fn texts() -> Value {
    json!({ "type": "array", "items": text(), "x-kubernetes-list-type": "atomic" })
}

fn quantities() -> Value {
    json!({ "type": "object", "additionalProperties": shapes::quantity(&mut SchemaGenerator::default()) })
}

fn requirements() -> Value {
    json!({
        "type": "array",
        "items": LabelSelectorRequirement::kubernetes_schema(&mut SchemaGenerator::default()),
        "x-kubernetes-list-type": "atomic"
    })
}

fn claims() -> Value {
    json!({
        "type": "array",
        "items": ResourceClaim::kubernetes_schema(&mut SchemaGenerator::default()),
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["name"]
    })
}

structured! {
    LabelSelectorRequirement { "key", "operator" } { "key": text(), "operator": text(), "values": texts() }
    LabelSelector {} {
        "matchExpressions": requirements(),
        "matchLabels": json!({ "type": "object", "additionalProperties": text() }),
    } "atomic"
    LocalObjectReference {} { "name": name() } "atomic"
    SecretReference {} { "name": text(), "namespace": text() } "atomic"
    SecretKeySelector { "key" } {
        "key": text(), "name": name(), "optional": boolean(),
    } "atomic"
    ConfigMapKeySelector { "key" } {
        "key": text(), "name": name(), "optional": boolean(),
    } "atomic"
    ObjectReference {} {
        "apiVersion": text(), "fieldPath": text(), "kind": text(), "name": text(), "namespace": text(),
        "resourceVersion": text(), "uid": text(),
    } "atomic"
    TypedLocalObjectReference { "kind", "name" } { "apiGroup": text(), "kind": text(), "name": text() } "atomic"
    OwnerReference { "apiVersion", "kind", "name", "uid" } {
        "apiVersion": text(), "blockOwnerDeletion": boolean(), "controller": boolean(), "kind": text(),
        "name": text(), "uid": text(),
    } "atomic"
    Toleration {} {
        "effect": text(), "key": text(), "operator": text(), "value": text(),
        "tolerationSeconds": json!({ "type": "integer", "format": "int64" }),
    }
    ResourceClaim { "name" } { "name": text(), "request": text() }
    ResourceRequirements {} {
        "claims": claims(),
        "limits": quantities(),
        "requests": quantities(),
    }
}

/// Implements the schema of objects that are kept whole and stand in lists kept apart by a field.
macro_rules! listed {
    ($($ty:ty: $key:literal),* $(,)?) => {$(
        impl KubernetesSchema for $ty {
            fn kubernetes_schema(_: &mut SchemaGenerator) -> Schema {
                object(json!({
                    "type": "object",
                    "required": [$key],
                    "properties": { $key: text() },
                    "x-kubernetes-preserve-unknown-fields": true,
                    UNCHECKED: concat!("an API server checks nothing of this object but its `", $key, "`; serde refuses one that its type does not fit")
                }))
            }

            fn list_schema(generator: &mut SchemaGenerator) -> Schema {
                object(json!({
                    "type": "array",
                    "items": Self::kubernetes_schema(generator),
                    "x-kubernetes-list-type": "map",
                    "x-kubernetes-list-map-keys": [$key]
                }))
            }
        }
    )*};
}

listed! {
    Container: "name",
    EnvVar: "name",
    Volume: "name",
    VolumeDevice: "devicePath",
    VolumeMount: "mountPath",
}
