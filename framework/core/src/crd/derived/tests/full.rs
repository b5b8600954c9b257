//! Kubernetes types with all of their fields; with the feature `full-schemas` only.

#![allow(dead_code)]

use k8s_openapi::api::core::v1::{PodTemplateSpec, Service};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use windlass_apiserver::crd_schema::check_crd;
use windlass_macros::Schema;

use super::definition;
use crate::crd::structural_schema;

#[derive(Serialize, Deserialize, Schema)]
struct Whole {
    #[schema(full)]
    template: PodTemplateSpec,
    #[schema(full)]
    service: Option<Service>,
    plain: Option<PodTemplateSpec>,
}

fn pod(schema: &Value) -> &Value {
    &schema["properties"]["template"]["properties"]["spec"]
}

#[test]
fn a_full_type_has_upstreams_fields_list_types_and_descriptions() {
    let found = structural_schema::<Whole>().unwrap();
    // The two fields with the key are checked to their leaves; the field without the key is not.
    let opaque = ".plain: an API server stores any object here; serde refuses one that its type does not fit";
    assert_eq!(found.warnings, [opaque]);
    let pod = pod(&found.schema);
    let list = |list: &Value| {
        (list["x-kubernetes-list-type"].clone(), list["x-kubernetes-list-map-keys"].clone())
    };
    let containers = &pod["properties"]["containers"];
    assert_eq!(list(containers), (json!("map"), json!(["name"])));
    assert!(containers["description"].as_str().unwrap().starts_with("List of containers"));
    let container = &containers["items"]["properties"];
    assert_eq!(list(&container["ports"]), (json!("map"), json!(["containerPort", "protocol"])));
    assert_eq!(container["ports"]["items"]["properties"]["protocol"]["default"], "TCP");
    assert_eq!(list(&container["args"]), (json!("atomic"), Value::Null));
    let limits = &container["resources"]["properties"]["limits"]["additionalProperties"];
    assert_eq!(*limits, json!({ "x-kubernetes-int-or-string": true }));
    let selector = &pod["properties"]["affinity"]["properties"]["podAffinity"]["properties"]["requiredDuringSchedulingIgnoredDuringExecution"]
        ["items"]["properties"]["labelSelector"];
    assert_eq!(selector["x-kubernetes-map-type"], "atomic");
    // Without the key a type is kept whole, regardless of the feature.
    let plain = &found.schema["properties"]["plain"];
    assert_eq!(plain["x-kubernetes-preserve-unknown-fields"], true);
    assert_eq!(plain["properties"], Value::Null);
}

#[test]
fn a_server_accepts_the_full_types() {
    let found = structural_schema::<Whole>().unwrap();
    assert_eq!(found.schema["required"], json!(["template"]));
    let faults = check_crd(&definition(&found.schema), None);
    assert!(faults.is_empty(), "{faults:#?}");
}

#[derive(Serialize, Deserialize, Schema)]
struct Objects {
    #[schema(full)]
    service: Service,
    #[schema(full)]
    role: k8s_openapi::api::rbac::v1::Role,
}

#[test]
fn a_full_object_has_the_version_and_kind_that_serde_reads() {
    let found = structural_schema::<Objects>().unwrap();
    let only = |field: &str, key: &str| {
        found.schema["properties"][field]["properties"][key]["enum"].clone()
    };
    assert_eq!(only("service", "apiVersion"), json!(["v1"]));
    assert_eq!(only("service", "kind"), json!(["Service"]));
    assert_eq!(only("role", "apiVersion"), json!(["rbac.authorization.k8s.io/v1"]));
    assert_eq!(only("role", "kind"), json!(["Role"]));
    let other = json!({ "apiVersion": "v1", "kind": "Pod", "metadata": {} });
    assert!(serde_json::from_value::<Service>(other).is_err());
}
