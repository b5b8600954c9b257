use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::CustomResource;
use crate::ErrorKind;
use windlass_cache::store::Index;
use windlass_core::resource::{Resource, Scope};

/// A static site,
/// served under one host name.
#[derive(CustomResource, Clone, Debug)]
#[resource(group = "example.dev", version = "v1", namespaced, short = "ws", category = "all")]
#[resource(column(spec.host), column("Wanted", spec.replicas, priority = 1))]
#[resource(column(name = "Age", path = ".metadata.creationTimestamp"))]
#[resource(scale(spec.replicas, status = ".status.replicas"))]
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
    assert_eq!(schema["description"], "A static site,\nserved under one host name.");
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

mod facade {
    pub(super) use crate as windlass_of_a_facade;
}

const GROUP: &str = "example.dev";

type Maybe<T> = Option<T>;

/// Read by the compiler:
#[doc = concat!("- one\n", "- two")]
#[derive(CustomResource, Clone, Debug)]
#[resource(group = GROUP, version = concat!("v", "1"), namespaced, kind = "Odd", plural = "odds")]
#[resource(crate = facade::windlass_of_a_facade, rule("self.metadata.name != 'x'"))]
#[resource(column("Kind", r#type.name), column(extra.name))]
#[index(r#type = r#type.name, by_name = names, by_label = spec.labels.values(), by_key = spec.labels.keys())]
#[index(by_item = spec.items[0])]
struct r#Odd {
    metadata: ObjectMeta,
    #[serde(rename = "data")]
    spec: OddSpec,
    r#type: Named,
    extra: Maybe<Named>,
    names: Option<std::collections::HashSet<String>>,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
struct OddSpec {
    labels: Option<std::collections::BTreeMap<String, String>>,
    #[serde(default)]
    items: Vec<String>,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
struct Named {
    name: Option<String>,
}

#[test]
fn constants_aliases_raw_names_and_other_crates_are_understood() {
    let odd = Odd::new("a", OddSpec::default(), Named::default(), None);
    let json = serde_json::to_value(&odd).unwrap();
    let expected = json!({
        "apiVersion": "example.dev/v1",
        "kind": "Odd",
        "metadata": { "name": "a" },
        "data": { "labels": null, "items": [] },
        "type": { "name": null },
    });
    assert_eq!(json, expected);
    let back: Odd = serde_json::from_value(json).unwrap();
    assert!(back.extra.is_none() && back.names.is_none());
    let crd = serde_json::to_value(Odd::crd().unwrap()).unwrap();
    assert_eq!(crd["metadata"]["name"], "odds.example.dev");
    let version = &crd["spec"]["versions"][0];
    assert_eq!(version["name"], "v1");
    let schema = &version["schema"]["openAPIV3Schema"];
    assert_eq!(schema["required"], json!(["data", "type"]));
    assert_eq!(schema["description"], "Read by the compiler:\n- one\n- two");
    let columns = version["additionalPrinterColumns"].as_array().unwrap();
    let paths: Vec<_> = columns.iter().map(|column| &column["jsonPath"]).collect();
    assert_eq!(paths, [".type.name", ".extra.name"]);
    let names = [Odd::TYPE.name(), Odd::BY_NAME.name(), Odd::BY_KEY.name(), Odd::BY_ITEM.name()];
    assert_eq!(names, ["type", "by_name", "by_key", "by_item"]);
}

#[test]
fn the_root_has_a_table_of_its_names() {
    let path = crate::path!(Odd: spec.labels["a"]);
    assert_eq!(path.json_path().unwrap(), ".data.labels.a");
    let mut odd = Odd::new("a", OddSpec::default(), Named::default(), None);
    assert_eq!(path.get(&odd), None);
    odd.spec.labels = Some([("a".to_owned(), "b".to_owned())].into());
    assert_eq!(path.get(&odd).map(String::as_str), Some("b"));
}

#[derive(CustomResource, Clone, Debug)]
#[resource(group = "example.dev", version = "v1", namespaced, column(spec.outer.it.deep_name))]
struct Wrapping {
    metadata: ObjectMeta,
    spec: WrappingSpec,
}

#[derive(Clone, Debug, Serialize, Deserialize, crate::Schema)]
struct WrappingSpec {
    outer: Outer,
}

#[derive(Clone, Debug, Serialize, Deserialize, crate::Schema)]
#[serde(transparent)]
struct Outer {
    it: Inner,
}

#[derive(Clone, Debug, Serialize, Deserialize, crate::Schema)]
#[serde(rename_all = "kebab-case")]
struct Inner {
    deep_name: String,
}

#[test]
fn the_field_of_a_transparent_struct_has_no_name_in_a_path() {
    let path = crate::path!(Wrapping: spec.outer.it.deep_name).json_path().unwrap();
    assert_eq!(path, ".spec.outer.deep-name");
    let crd = serde_json::to_value(Wrapping::crd().unwrap()).unwrap();
    let column = &crd["spec"]["versions"][0]["additionalPrinterColumns"][0];
    assert_eq!(column["jsonPath"], ".spec.outer.deep-name");
}

/// A rule on the type, as `#[schemars(extend(…))]` writes it.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[schemars(extend("x-kubernetes-validations" = [{ "rule": "self.min <= self.max", "message": "in order" }]))]
struct Range {
    #[schemars(extend("x-kubernetes-validations" = [{ "rule": "self >= 0" }]))]
    min: i64,
    max: i64,
}

#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(extend("x-kubernetes-validations" = [{ "rule": "self.note != ''" }]))]
struct Flat {
    note: String,
}

#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(extend("x-kubernetes-validations" = [{ "rule": "self.name == oldSelf.name" }]))]
struct RuledSpec {
    #[schemars(extend("x-kubernetes-validations" = [{ "rule": "self != ''", "reason": "FieldValueRequired" }]))]
    name: String,
    range: Range,
    optional: Option<Range>,
    #[schemars(extend("x-kubernetes-validations" = [{ "rule": "self.max < 9" }]))]
    narrow: Range,
    #[schemars(extend("x-kubernetes-validations" = [{ "rule": "self.max < 9" }]))]
    optional_and_narrow: Option<Range>,
    #[schemars(extend("x-kubernetes-validations" = [{ "rule": "size(self) < 5" }]))]
    list: Vec<Range>,
    map: std::collections::BTreeMap<String, Range>,
    kind: RuledKind,
    nested: Nested,
}

#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
struct Nested {
    #[serde(flatten)]
    flat: Flat,
}

#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type")]
#[schemars(extend("x-kubernetes-validations" = [{ "rule": "self.type != ''" }]))]
enum RuledKind {
    A(VariantA),
    B {
        #[schemars(extend("x-kubernetes-validations" = [{ "rule": "self != 'B'" }]))]
        b: String,
    },
}

#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
struct VariantA {
    #[schemars(extend("x-kubernetes-validations" = [{ "rule": "self != 'A'" }]))]
    a: String,
}

#[derive(CustomResource, Clone, Debug)]
#[resource(group = "example.dev", version = "v1", namespaced)]
struct Ruled {
    metadata: ObjectMeta,
    spec: RuledSpec,
    status: Option<Range>,
}

/// With a lost rule the API server accepts objects that the rule should reject.
#[test]
fn rules_on_fields_on_types_and_on_the_roots_of_spec_and_status_are_in_the_definition() {
    let crd = serde_json::to_value(Ruled::crd().unwrap()).unwrap();
    let root = &crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"];
    let rules = |pointer: &str| -> Vec<String> {
        let node = root.pointer(pointer).unwrap_or_else(|| panic!("no {pointer} in {root:#}"));
        let rules = node["x-kubernetes-validations"].as_array().cloned().unwrap_or_default();
        rules.iter().map(|rule| rule["rule"].as_str().unwrap().to_owned()).collect()
    };
    let in_order = "self.min <= self.max";
    let spec = "/spec/properties";
    assert_eq!(rules("/spec"), ["self.name == oldSelf.name"]);
    assert_eq!(rules(&format!("{spec}/name")), ["self != ''"]);
    for place in ["range", "optional", "list/items", "map/additionalProperties"] {
        assert_eq!(rules(&format!("{spec}/{place}")), [in_order], "{place}");
        assert_eq!(rules(&format!("{spec}/{place}/properties/min")), ["self >= 0"], "{place}");
    }
    for place in ["narrow", "optional_and_narrow"] {
        let mut both = rules(&format!("{spec}/{place}"));
        both.sort();
        assert_eq!(both, ["self.max < 9", in_order], "of the field and of its type: {place}");
    }
    assert_eq!(rules(&format!("{spec}/list")), ["size(self) < 5"]);
    assert_eq!(rules(&format!("{spec}/nested")), ["self.note != ''"]);
    assert_eq!(rules(&format!("{spec}/kind")), ["self.type != ''"]);
    assert_eq!(rules(&format!("{spec}/kind/properties/a")), ["self != 'A'"]);
    assert_eq!(rules(&format!("{spec}/kind/properties/b")), ["self != 'B'"]);
    assert_eq!(rules("/status"), [in_order]);
    assert_eq!(rules("/status/properties/min"), ["self >= 0"]);
    let first = &root["spec"]["properties"]["range"]["x-kubernetes-validations"][0];
    assert_eq!(first["message"], "in order");
    let named = &root["spec"]["properties"]["name"]["x-kubernetes-validations"][0];
    assert_eq!(named["reason"], "FieldValueRequired");
}

/// The first write of a status is mostly a condition, and no other field exists then.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct Demanding {
    conditions: windlass_core::conditions::Conditions,
    public_url: String,
    parts: Vec<DemandingPart>,
    #[serde(default = "five")]
    with_default: i64,
}

fn five() -> i64 {
    5
}

#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
struct DemandingPart {
    name: String,
}

#[derive(CustomResource, Clone, Debug)]
#[resource(group = "example.dev", version = "v1", namespaced)]
struct Trap {
    metadata: ObjectMeta,
    spec: DemandingPart,
    status: Option<Demanding>,
}

#[test]
fn a_status_may_be_stored_in_part_and_is_read_with_the_default_of_its_type() {
    let crd = serde_json::to_value(Trap::crd().unwrap()).unwrap();
    let root = &crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"];
    let status = &root["properties"]["status"];
    assert_eq!(status.get("required"), None);
    assert_eq!(status["properties"]["withDefault"].get("default"), None, "nobody wrote it");
    let part = &status["properties"]["parts"]["items"];
    assert_eq!(part["required"], json!(["name"]), "what is below the status is whole");
    assert_eq!(root["required"], json!(["spec"]), "and so is the spec");
    assert_eq!(root["properties"]["spec"]["required"], json!(["name"]));
    let read = |status: Value| {
        let object = json!({ "metadata": {}, "spec": { "name": "a" }, "status": status });
        serde_json::from_value::<Trap>(object)
    };
    let status = read(json!({ "conditions": [] })).unwrap().status.unwrap();
    assert_eq!((status.public_url.as_str(), status.parts.len(), status.with_default), ("", 0, 5));
    assert!(read(json!({ "parts": [{}] })).is_err());
    assert!(read(Value::Null).unwrap().status.is_none());
    let doubled = r#"{"metadata":{},"spec":{"name":"a"},"status":{},"status":{}}"#;
    assert!(serde_json::from_str::<Trap>(doubled).is_err());
}

#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct NoDefault {
    conditions: windlass_core::conditions::Conditions,
    public_url: String,
}

#[derive(CustomResource, Clone, Debug)]
#[resource(group = "example.dev", version = "v1", namespaced)]
struct Stuck {
    metadata: ObjectMeta,
    spec: DemandingPart,
    status: Option<NoDefault>,
}

#[test]
fn a_status_that_could_not_be_read_after_its_first_write_is_refused_with_what_to_do() {
    let fault = Stuck::crd().unwrap_err();
    assert_eq!(fault.kind(), ErrorKind::Usage);
    let text = fault.to_string();
    for part in [
        ".status: ",
        "missing field `publicUrl`",
        "derive `Default`",
        "#[serde(default)]",
        "`Option`",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
}
