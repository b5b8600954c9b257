use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::CustomResource;
use crate::ErrorKind;
use crate::resource::{Resource, Scope};
use crate::store::Index;

/// A static site,
/// served under one host name.
#[derive(CustomResource, Clone, Debug)]
#[resource(group = "example.dev", version = "v1", namespaced, short = "ws", category = "all")]
#[resource(column(name = "Host", path = ".spec.host"))]
#[resource(column(name = "Wanted", path = ".spec.replicas", priority = 1))]
#[resource(column(name = "Age", path = ".metadata.creationTimestamp"))]
#[resource(scale(spec = ".spec.replicas", status = ".status.replicas"))]
#[index(by_host = spec.host, by_tag = spec.tags, by_path = ".spec.host")]
#[index(by_phase: Phase = status?.phase, by_port: i32 = spec.ports[].number)]
struct Website {
    metadata: ObjectMeta,
    spec: WebsiteSpec,
    status: Option<WebsiteStatus>,
}

#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
struct WebsiteSpec {
    /// Host name that the site answers to.
    host: String,
    #[schemars(range(min = 1, max = 50))]
    replicas: i32,
    #[serde(default)]
    tags: Vec<String>,
    #[serde(default)]
    ports: Vec<Port>,
}

#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
struct Port {
    number: i32,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct WebsiteStatus {
    replicas: i32,
    phase: Option<Phase>,
    observed_generation: Option<i64>,
}

#[derive(Clone, Copy, Debug, Serialize, Deserialize, JsonSchema)]
enum Phase {
    Up,
    Down,
}

impl std::fmt::Display for Phase {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        std::fmt::Debug::fmt(self, f)
    }
}

fn website() -> Website {
    let port = Port { number: 80 };
    let spec = WebsiteSpec {
        host: "a.example".into(),
        replicas: 2,
        tags: vec!["x".into(), "y".into()],
        ports: vec![port],
    };
    Website::new("home", spec)
}

#[test]
fn a_derived_resource_knows_its_identity() {
    let info = Website::static_info().unwrap();
    assert_eq!(info.group_resource(), "websites.example.dev");
    assert_eq!(info.api_version(), "example.dev/v1");
    assert_eq!((info.kind.as_ref(), info.scope), ("Website", Scope::Namespaced));
    assert_eq!(Resource::metadata(&website()).name.as_deref(), Some("home"));
}

#[test]
fn an_object_is_written_with_its_type_and_without_an_absent_status() {
    let json = serde_json::to_value(website()).unwrap();
    let expected = json!({
        "apiVersion": "example.dev/v1",
        "kind": "Website",
        "metadata": { "name": "home" },
        "spec": {
            "host": "a.example",
            "replicas": 2,
            "tags": ["x", "y"],
            "ports": [{ "number": 80 }]
        }
    });
    assert_eq!(json, expected);
    let back: Website = serde_json::from_value(json).unwrap();
    assert_eq!(back.spec.host, "a.example");
}

#[test]
fn an_item_of_a_list_is_read_without_type_and_another_version_of_the_group_is_read_too() {
    let spec = json!({ "host": "a", "replicas": 1 });
    let without: Website = serde_json::from_value(json!({ "spec": spec })).unwrap();
    assert!(without.metadata.name.is_none() && without.status.is_none());
    let other = json!({ "apiVersion": "example.dev/v2", "kind": "", "spec": spec, "extra": 1 });
    assert!(serde_json::from_value::<Website>(other).is_ok());
}

#[test]
fn an_object_of_another_kind_is_not_read() {
    let spec = json!({ "host": "a", "replicas": 1 });
    let kind = json!({ "apiVersion": "example.dev/v1", "kind": "Page", "spec": spec });
    let fault = serde_json::from_value::<Website>(kind).unwrap_err().to_string();
    assert!(fault.contains("Page") && fault.contains("Website"), "{fault}");
    let group = json!({ "apiVersion": "example.org/v1", "kind": "Website", "spec": spec });
    assert!(serde_json::from_value::<Website>(group).is_err());
}

#[test]
fn an_index_takes_a_field_an_option_or_every_element_of_a_list() {
    use crate::__private::IndexField;
    assert_eq!(Website::BY_HOST.name(), "by_host");
    assert_eq!(Website::BY_PATH.name(), "by_path");
    let _typed: (Index<Website, Phase>, Index<Website, i32>) =
        (Website::BY_PHASE, Website::BY_PORT);
    let site = website();
    assert_eq!(IndexField::<String>::index_values(&site.spec.host), ["a.example"]);
    assert_eq!(IndexField::<String>::index_values(&site.spec.tags), ["x", "y"]);
    assert!(IndexField::<i32>::index_values(&None::<i32>).is_empty());
}

#[test]
fn the_definition_says_what_the_attributes_and_the_types_say() {
    let crd = serde_json::to_value(Website::crd().unwrap()).unwrap();
    assert_eq!(crd["metadata"]["name"], "websites.example.dev");
    let spec = &crd["spec"];
    assert_eq!(spec["scope"], "Namespaced");
    assert_eq!(spec["conversion"], json!({ "strategy": "None" }));
    assert_eq!(
        spec["names"],
        json!({
            "kind": "Website",
            "listKind": "WebsiteList",
            "plural": "websites",
            "singular": "website",
            "shortNames": ["ws"],
            "categories": ["all"]
        })
    );
    let version = &spec["versions"][0];
    assert_eq!((&version["served"], &version["storage"]), (&json!(true), &json!(true)));
    assert_eq!(
        version["additionalPrinterColumns"],
        json!([
            { "name": "Host", "type": "string", "jsonPath": ".spec.host" },
            { "name": "Wanted", "type": "integer", "jsonPath": ".spec.replicas", "priority": 1 },
            { "name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp" }
        ])
    );
    assert_eq!(
        version["subresources"],
        json!({
            "status": {},
            "scale": {
                "specReplicasPath": ".spec.replicas",
                "statusReplicasPath": ".status.replicas"
            }
        })
    );
    let schema = &version["schema"]["openAPIV3Schema"];
    assert_eq!(schema["description"], "A static site, served under one host name.");
    assert_eq!(schema["required"], json!(["spec"]));
    assert_eq!(schema["properties"]["spec"]["properties"]["replicas"]["minimum"], json!(1.0));
    let status = &schema["properties"]["status"];
    assert_eq!(status["nullable"], Value::Bool(true));
    assert!(status["properties"]["observedGeneration"].is_object());
}

#[derive(CustomResource, Clone, Debug)]
#[resource(group = "example.dev", version = "v1", cluster)]
#[resource(column(name = "Host", path = ".spec.hots"))]
#[index(by_host = ".spec.Host")]
struct Misspelt {
    metadata: ObjectMeta,
    spec: WebsiteSpec,
}

#[test]
fn paths_to_fields_that_do_not_exist_are_all_named() {
    let fault = Misspelt::crd().unwrap_err();
    assert_eq!(fault.kind(), ErrorKind::Usage);
    let text = fault.to_string();
    assert!(text.contains("misspelts.example.dev"), "{text}");
    assert!(text.contains("column `Host`: there is no `.spec.hots`"), "{text}");
    assert!(text.contains("index `by_host`: there is no `.spec.Host`"), "{text}");
    assert!(text.contains("host, ports, replicas, tags"), "{text}");
}
