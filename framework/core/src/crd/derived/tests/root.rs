//! Fields of a kind's root struct.

#![allow(dead_code)]

use k8s_openapi::api::core::v1::{PodTemplateSpec, Toleration};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, ObjectMeta};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use windlass_macros::{CustomResource, Schema};

use crate::crd::CustomResource;

#[derive(CustomResource, Clone, Debug)]
#[resource(group = "example.dev", version = "v1", namespaced)]
struct Batch {
    metadata: ObjectMeta,
    template: PodTemplateSpec,
    fallback: Option<PodTemplateSpec>,
    tolerations: Vec<Toleration>,
}

#[test]
fn a_field_of_a_kind_is_a_kubernetes_type_without_an_attribute() {
    let definition = serde_json::to_value(Batch::crd().unwrap()).unwrap();
    let schema: &Value = &definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"];
    let fields = &schema["properties"];
    let kept = json!({ "type": "object", "x-kubernetes-preserve-unknown-fields": true });
    assert_eq!(fields["template"], kept);
    assert_eq!(fields["fallback"]["nullable"], true);
    assert_eq!(fields["tolerations"]["x-kubernetes-list-type"], "atomic");
    assert_eq!(schema["required"], json!(["template", "tolerations"]));
}

#[derive(Clone, Debug, Serialize, Deserialize, Schema)]
#[serde(rename_all = "camelCase")]
struct Address {
    #[schema(column, selectable)]
    host_name: String,
    #[schema(column("Port", priority = 1, description = "TCP port"))]
    port: Option<i32>,
}

#[derive(Clone, Debug, Serialize, Deserialize, Schema)]
#[serde(tag = "type")]
enum Source {
    Git {
        #[schema(column = "Repository")]
        url: String,
    },
    Image {
        image: String,
    },
}

#[derive(Clone, Debug, Serialize, Deserialize, Schema)]
struct ShopSpec {
    address: Option<Address>,
    source: Source,
    #[schema(column)]
    since: crate::resource::ApiTime,
}

#[derive(CustomResource, Clone, Debug)]
#[resource(group = "example.dev", version = "v1", namespaced, column("Origin", spec.source))]
struct Shop {
    metadata: ObjectMeta,
    spec: ShopSpec,
}

#[test]
fn nested_types_ask_for_columns_and_selectable_fields_of_the_kind() {
    let definition = serde_json::to_value(Shop::crd().unwrap()).unwrap();
    let version = &definition["spec"]["versions"][0];
    let columns = json!([
        { "name": "Origin", "type": "string", "jsonPath": ".spec.source" },
        { "name": "Host Name", "type": "string", "jsonPath": ".spec.address.hostName" },
        { "name": "Port", "type": "integer", "jsonPath": ".spec.address.port", "priority": 1, "description": "TCP port" },
        { "name": "Since", "type": "date", "jsonPath": ".spec.since" },
        { "name": "Repository", "type": "string", "jsonPath": ".spec.source.url" },
    ]);
    assert_eq!(version["additionalPrinterColumns"], columns);
    assert_eq!(version["selectableFields"], json!([{ "jsonPath": ".spec.address.hostName" }]));
    assert!(!definition.to_string().contains("x-windlass"), "{definition}");
}

#[derive(CustomResource, Clone, Debug)]
#[resource(group = "example.dev", version = "v1", namespaced)]
struct Mall {
    metadata: ObjectMeta,
    first: Address,
    second: Address,
    more: Vec<Address>,
}

#[test]
fn a_column_that_a_definition_cannot_have_is_an_error_with_its_path() {
    let fault = Mall::crd().unwrap_err().to_string();
    let expected = ".second.hostName: there is a column `Host Name` already, of `.first.hostName`";
    assert!(fault.contains(expected), "{fault}");
    assert!(!fault.contains(".more"), "{fault}");
}

#[derive(CustomResource, Clone, Debug)]
#[resource(
    group = "example.dev", version = "v1", namespaced, plural = "arcades",
    column("Host Name", second.host_name), column("Port", first.port)
)]
struct Arcade {
    metadata: ObjectMeta,
    first: Address,
    second: Address,
}

#[test]
fn a_column_of_the_kind_stands_for_those_of_the_same_heading() {
    let definition = serde_json::to_value(Arcade::crd().unwrap()).unwrap();
    let columns = definition["spec"]["versions"][0]["additionalPrinterColumns"].as_array().unwrap();
    let paths: Vec<_> = columns.iter().map(|column| column["jsonPath"].as_str().unwrap()).collect();
    assert_eq!(paths, [".second.hostName", ".first.port"]);
}

#[derive(Clone, Debug, Serialize, Deserialize, Schema)]
struct Row {
    #[schema(selectable)]
    a: String,
    #[schema(selectable)]
    b: bool,
    #[schema(selectable)]
    c: u8,
}

#[derive(CustomResource, Clone, Debug)]
#[resource(group = "example.dev", version = "v1", namespaced)]
struct Table {
    metadata: ObjectMeta,
    first: Row,
    second: Row,
    third: Row,
}

#[test]
fn more_selectable_fields_of_nested_types_than_a_server_takes_are_an_error() {
    let fault = Table::crd().unwrap_err().to_string();
    assert!(
        fault.contains("there are 9 fields, and an API server selects by 8 at most"),
        "{fault}"
    );
    assert!(fault.contains(".first.a, .first.b"), "{fault}");
}

#[derive(Clone, Debug, Serialize, Deserialize, Schema)]
struct Port {
    #[schema(selectable)]
    number: IntOrString,
}

#[derive(CustomResource, Clone, Debug)]
#[resource(group = "example.dev", version = "v1", namespaced)]
struct Gate {
    metadata: ObjectMeta,
    port: Port,
}

#[test]
fn a_nested_selectable_field_without_a_single_type_is_an_error() {
    let fault = Gate::crd().unwrap_err().to_string();
    assert!(fault.contains("selectable: `.port.number` has no single type"), "{fault}");
}

#[derive(Clone, Debug, Serialize, Deserialize, Schema)]
struct Visit {
    #[schema(column("Since", type = "date"))]
    since: String,
    #[schema(column("Until", type = "date"))]
    until: crate::resource::ApiTime,
}

#[derive(CustomResource, Clone, Debug)]
#[resource(group = "example.dev", version = "v1", namespaced)]
struct Museum {
    metadata: ObjectMeta,
    last: Visit,
    rooms: Vec<Address>,
    wings: std::collections::BTreeMap<String, Address>,
}

#[test]
fn marks_of_nested_fields_without_an_effect_are_warned_of() {
    let found = crate::crd::warnings::<Museum>().unwrap();
    let has = |place: &str, text: &str| {
        found.iter().any(|it| it.starts_with(&format!("{place}: ")) && it.contains(text))
    };
    assert!(has(".last.since", "kubectl shows `<invalid>`"), "{found:?}");
    assert!(has(".rooms.[].hostName", "`selectable` has no effect below a list"), "{found:?}");
    assert!(has(".wings.*.hostName", "`selectable` has no effect below a list"), "{found:?}");
    assert_eq!(found.len(), 7, "{found:?}");
}

fn three() -> i32 {
    3
}

#[derive(CustomResource, Clone, Debug)]
#[resource(group = "example.dev", version = "v1", namespaced, column(age), plural = "horses")]
#[serde(rename_all = "snake_case")]
struct Horse {
    #[serde(default)]
    metadata: ObjectMeta,
    #[serde(default)]
    spec: Tack,
    age: i32,
    #[serde(default = "three")]
    wins_of_season: i32,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    old_names: Vec<String>,
    #[serde(default = "three", skip_serializing_if = "is_three")]
    shoes: i32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    status: Option<Tack>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, Schema)]
struct Tack {
    #[serde(default)]
    saddle: String,
}

fn is_three(value: &i32) -> bool {
    *value == 3
}

#[test]
fn the_attributes_of_serde_on_the_root_hold_for_objects_and_for_the_definition() {
    let object = json!({
        "apiVersion": "example.dev/v1", "kind": "Horse", "metadata": { "name": "a" }, "age": 4
    });
    let horse: Horse = serde_json::from_value(object).unwrap();
    assert_eq!((horse.wins_of_season, horse.shoes, horse.spec.saddle.as_str()), (3, 3, ""));
    let expected = json!({
        "apiVersion": "example.dev/v1", "kind": "Horse", "metadata": { "name": "a" },
        "spec": { "saddle": "" }, "age": 4, "wins_of_season": 3
    });
    assert_eq!(serde_json::to_value(&horse).unwrap(), expected);

    let definition = serde_json::to_value(Horse::crd().unwrap()).unwrap();
    let version = &definition["spec"]["versions"][0];
    let schema = &version["schema"]["openAPIV3Schema"];
    assert_eq!(schema["required"], json!(["age"]));
    let default = |name: &str| schema["properties"][name]["default"].clone();
    assert_eq!(default("spec"), json!({ "saddle": "" }));
    assert_eq!(default("wins_of_season"), json!(3));
    // Serde leaves these out.
    assert_eq!((default("old_names"), default("shoes")), (Value::Null, Value::Null));
    assert_eq!(version["additionalPrinterColumns"][0]["jsonPath"], ".age");
    assert_eq!(version["additionalPrinterColumns"][0]["type"], "integer");
}

fn some_three() -> Option<i32> {
    Some(3)
}

mod port {
    pub(super) fn is_none(value: &Option<i32>) -> bool {
        *value == Some(0)
    }
}

type Maybe = Option<i32>;

#[derive(CustomResource, Clone, Debug)]
#[resource(group = "example.dev", version = "v1", namespaced)]
struct Donkey {
    metadata: ObjectMeta,
    #[serde(default = "some_three")]
    shoes: Option<i32>,
    #[serde(default = "some_three")]
    teeth: Maybe,
    #[serde(default = "some_three", skip_serializing_if = "Option::is_none")]
    bells: Option<i32>,
    #[serde(skip_serializing_if = "port::is_none")]
    port: Option<i32>,
}

#[test]
fn a_null_of_the_root_is_written_where_an_absent_field_has_a_default() {
    let head = json!({ "apiVersion": "example.dev/v1", "kind": "Donkey", "metadata": {} });
    let with = |fields: Value| {
        let mut object = head.clone();
        object.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
        object
    };
    let absent: Donkey = serde_json::from_value(head.clone()).unwrap();
    assert_eq!((absent.shoes, absent.teeth, absent.port), (Some(3), Some(3), None));
    let nulls = with(json!({ "shoes": null, "teeth": null, "bells": null, "port": 0 }));
    let read: Donkey = serde_json::from_value(nulls).unwrap();
    assert_eq!((read.shoes, read.teeth, read.bells, read.port), (None, None, None, Some(0)));
    // As serde's own derive: a value is left out by a function that is named.
    let written = serde_json::to_value(&read).unwrap();
    assert_eq!(written, with(json!({ "shoes": null, "teeth": null })));
    let again: Donkey = serde_json::from_value(written).unwrap();
    assert_eq!((again.shoes, again.teeth), (None, None));

    let definition = serde_json::to_value(Donkey::crd().unwrap()).unwrap();
    let schema = &definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"];
    for name in ["shoes", "teeth"] {
        assert_eq!(
            (&schema[name]["default"], &schema[name]["nullable"]),
            (&json!(3), &json!(true))
        );
    }
}

#[derive(CustomResource, Clone, Debug)]
#[resource(group = "example.dev", version = "v1", namespaced)]
struct Mule {
    metadata: ObjectMeta,
    #[serde(default = "three", skip_serializing_if = "is_zero")]
    shoes: i32,
    #[serde(default = "three", skip_serializing_if = "is_three")]
    teeth: i32,
    #[serde(default = "three")]
    bells: i32,
    #[serde(default = "some_three", skip_serializing_if = "Option::is_none")]
    ears: Option<i32>,
}

fn is_zero(value: &i32) -> bool {
    *value == 0
}

#[test]
fn a_default_of_the_root_in_the_place_of_a_value_that_serde_leaves_out_is_a_warning() {
    let found = crate::crd::warnings::<Mule>().unwrap();
    let places: Vec<&str> = found.iter().filter_map(|text| text.split(": ").next()).collect();
    assert_eq!(places, [".shoes", ".ears"], "{found:#?}");
    assert!(
        found.iter().all(|it| it.contains("an API server stores the default 3 in their place")),
        "{found:#?}"
    );
}

macro_rules! kinds_with_a_status {
    ($($kind:ident: $rule:literal),*) => { $(
        const _: () = {
            #[derive(Clone, Debug, Default, Serialize, Deserialize, Schema)]
            #[schema(rule($rule))]
            struct Status {
                replicas: i32,
                conditions: Option<Vec<Condition>>,
            }

            #[derive(CustomResource, Clone, Debug)]
            #[resource(group = "example.dev", version = "v1", namespaced)]
            struct $kind {
                metadata: ObjectMeta,
                status: Option<Status>,
            }

            impl StatusWarnings for Kind<{ $rule.len() }> {
                fn warnings() -> Vec<String> {
                    crate::crd::warnings::<$kind>().unwrap()
                }
            }
        };
    )* };
}

/// A kind of the macro above, by the length of its rule.
struct Kind<const N: usize>;

trait StatusWarnings {
    fn warnings() -> Vec<String>;
}

kinds_with_a_status!(Demanding: "self.replicas > 2", Careful: "!has(self.replicas) || self.replicas > 2");

#[test]
fn a_rule_that_refuses_the_first_write_of_a_status_is_warned_of() {
    let found = Kind::<{ "self.replicas > 2".len() }>::warnings();
    let text = ".status: an API server refuses a status with a condition alone";
    assert!(found.iter().any(|it| it.contains(text) && it.contains("replicas")), "{found:?}");
    let found = Kind::<{ "!has(self.replicas) || self.replicas > 2".len() }>::warnings();
    assert!(!found.iter().any(|it| it.contains(text)), "{found:?}");
}
