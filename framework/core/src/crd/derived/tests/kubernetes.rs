//! Kubernetes types as fields, without an attribute.

#![allow(dead_code)]

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use k8s_openapi::api::core::v1::{
    EnvVar, LocalObjectReference, Pod, PodTemplateSpec, ResourceRequirements, SecretKeySelector,
    Toleration,
};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{
    Condition, LabelSelector, MicroTime, ObjectMeta, Time,
};
use k8s_openapi::apimachinery::pkg::runtime::RawExtension;
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use serde::{Deserialize, Serialize};
use serde_json::json;
use windlass_macros::Schema;

use windlass_apiserver::crd_schema::check_crd;

use super::{definition, schema};
use crate::crd::{conditions, structural_schema};

#[derive(Serialize, Deserialize, Schema)]
struct S {
    /// The Pods.
    template: Option<PodTemplateSpec>,
    conditions: Vec<Condition>,
    quantity: Quantity,
    quantities: BTreeMap<String, Quantity>,
    selector: LabelSelector,
    resources: Option<ResourceRequirements>,
    port: IntOrString,
    raw: RawExtension,
    time: Time,
    micro: Option<MicroTime>,
    metadata: ObjectMeta,
    env: Option<Vec<EnvVar>>,
    pull_secrets: Vec<LocalObjectReference>,
    key: Option<Box<SecretKeySelector>>,
    tolerations: Vec<Toleration>,
    pod: Pod,
}

#[test]
fn an_optional_template_is_neither_required_nor_checked() {
    let found = structural_schema::<S>().unwrap().schema;
    let template = json!({
        "type": "object",
        "x-kubernetes-preserve-unknown-fields": true,
        "nullable": true,
        "description": "The Pods."
    });
    assert_eq!(found["properties"]["template"], template);
    let required = [
        "conditions",
        "quantity",
        "quantities",
        "selector",
        "port",
        "raw",
        "time",
        "metadata",
        "pull_secrets",
        "tolerations",
        "pod",
    ];
    assert_eq!(found["required"], json!(required));
}

#[test]
fn each_type_has_its_form() {
    let found = structural_schema::<S>().unwrap().schema;
    let field = |name: &str| found["properties"][name].clone();
    let mut plain = conditions(&mut schemars::SchemaGenerator::default()).to_value();
    let time = plain["items"]["properties"]["lastTransitionTime"].as_object_mut().unwrap();
    time.extend([("minItems".to_owned(), json!(1)), ("maxItems".to_owned(), json!(0))]);
    assert_eq!(field("conditions"), plain);
    assert_eq!(field("quantity")["x-kubernetes-int-or-string"], true);
    assert!(field("quantity")["pattern"].is_string());
    assert_eq!(field("quantities")["additionalProperties"], field("quantity"));
    assert_eq!(field("selector")["x-kubernetes-map-type"], "atomic");
    assert_eq!(
        field("selector")["properties"]["matchExpressions"]["items"]["required"],
        json!(["key", "operator"])
    );
    assert_eq!(
        field("resources")["properties"]["limits"]["additionalProperties"],
        field("quantity")
    );
    assert_eq!(field("port"), json!({ "x-kubernetes-int-or-string": true }));
    assert_eq!(
        field("time"),
        json!({ "type": "string", "format": "date-time", "minItems": 1, "maxItems": 0 })
    );
    assert_eq!(field("micro")["nullable"], true);
    assert_eq!(field("env")["x-kubernetes-list-map-keys"], json!(["name"]));
    assert_eq!(field("pull_secrets")["x-kubernetes-list-type"], "atomic");
    assert_eq!(field("key")["required"], json!(["key"]));
    assert_eq!(field("pod")["x-kubernetes-embedded-resource"], true);
    assert_eq!(field("metadata")["properties"]["labels"]["additionalProperties"]["type"], "string");
}

#[test]
fn a_server_accepts_all_of_them() {
    let found = structural_schema::<S>().unwrap();
    let faults = check_crd(&definition(&found.schema), None);
    assert!(faults.is_empty(), "{faults:#?}");
}

/// Places of the warnings of a type.
fn places<T: schemars::JsonSchema>() -> Vec<String> {
    let warnings = structural_schema::<T>().unwrap().warnings;
    let place = |warning: &String| warning.split_once(": ").unwrap().0.to_owned();
    warnings.iter().map(place).collect()
}

#[test]
fn each_place_of_which_the_server_checks_a_part_is_named() {
    assert_eq!(
        places::<S>(),
        [".env.[]", ".metadata", ".pod", ".port", ".template"],
        "{:?}",
        structural_schema::<S>().unwrap().warnings
    );
}

#[derive(Serialize, Deserialize, Schema)]
struct Kept {
    #[schema(opaque)]
    template: Option<PodTemplateSpec>,
    #[schema(opaque)]
    templates: BTreeMap<String, PodTemplateSpec>,
    #[schema(int_or_string)]
    port: IntOrString,
    raw: Option<RawExtension>,
    value: serde_json::Value,
}

#[test]
fn values_that_are_opaque_by_a_key_are_named_too() {
    assert_eq!(places::<Kept>(), [".port", ".template", ".templates.*"]);
}

#[derive(Serialize, Deserialize, Schema)]
struct Addressed {
    v4: Ipv4Addr,
    v6: Option<Ipv6Addr>,
    any: Vec<IpAddr>,
    by_address: BTreeMap<IpAddr, String>,
    by_socket: BTreeMap<SocketAddr, String>,
}

#[test]
fn addresses_are_those_that_serde_reads() {
    let found = structural_schema::<Addressed>().unwrap();
    let pattern = |path: &str| {
        let pattern = found.schema["properties"].pointer(path).unwrap().as_str().unwrap();
        windlass_cel::library::regex::Regex::compile(pattern).unwrap()
    };
    let texts = [
        "1.2.3.4",
        "01.2.3.4",
        "0.0.0.0",
        "1.2.3.04",
        "::1",
        "fe80::0012",
        "::",
        "::ffff:1.2.3.4",
        "::ffff:1.02.3.4",
        "1:2:3:4:5:6:7:8",
        "1:2:3:4:5:6:1.2.3.4",
    ];
    for text in texts {
        assert_eq!(
            pattern("/v4/pattern").is_match(text),
            text.parse::<Ipv4Addr>().is_ok(),
            "{text}"
        );
        assert_eq!(
            pattern("/v6/pattern").is_match(text),
            text.parse::<Ipv6Addr>().is_ok(),
            "{text}"
        );
        let is_any = pattern("/any/items/pattern").is_match(text);
        assert_eq!(is_any, text.parse::<IpAddr>().is_ok(), "{text}");
    }
    assert_eq!(places::<Addressed>(), [".by_address", ".by_socket"]);
}

#[test]
fn a_definition_with_kubernetes_types_is_small() {
    let size = schema::<S>().to_string().len();
    assert!(size < 8_000, "{size} bytes");
}

#[test]
fn a_list_of_kubernetes_types_has_the_keys_that_the_field_names() {
    #[derive(Serialize, Deserialize, Schema)]
    struct S {
        #[schema(list(map, keys(key, toleration_seconds)))]
        tolerations: Vec<Toleration>,
        #[schema(list(map, keys(type_)))]
        conditions: Vec<Condition>,
    }
    let found = schema::<S>();
    let keys = |name: &str| found["properties"][name]["x-kubernetes-list-map-keys"].clone();
    assert_eq!(keys("tolerations"), json!(["key", "tolerationSeconds"]));
    assert_eq!(keys("conditions"), json!(["type"]));
}

#[derive(Serialize, Deserialize, Schema)]
struct Maps {
    map: serde_json::Map<String, serde_json::Value>,
    option: Option<serde_json::Map<String, serde_json::Value>>,
    value: BTreeMap<String, serde_json::Value>,
}

#[test]
fn a_map_of_values_is_null_only_behind_an_option() {
    let found = structural_schema::<Maps>().unwrap().schema;
    let nullable = |field: &str| found["properties"][field]["nullable"].clone();
    assert_eq!(
        [nullable("map"), nullable("option"), nullable("value")],
        [json!(null), json!(true), json!(null)]
    );
}

#[test]
fn a_whole_object_has_the_version_and_kind_that_serde_reads() {
    let found = schema::<S>();
    let pod = &found["properties"]["pod"];
    assert_eq!(pod["x-kubernetes-embedded-resource"], true);
    assert_eq!(pod["properties"]["apiVersion"]["enum"], json!(["v1"]));
    assert_eq!(pod["properties"]["kind"]["enum"], json!(["Pod"]));
    let other = json!({ "apiVersion": "v1", "kind": "Service", "metadata": {} });
    assert!(serde_json::from_value::<Pod>(other).is_err());
}
