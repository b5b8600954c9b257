//! Objects of a kind whose schema has every form that was once checked wrongly: stored as serde
//! wrote them, refused where serde refuses them.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::PodTemplateSpec;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use windlass::api::{Api, Patch};
use windlass::crd::CustomResource as _;
use windlass::prelude::*;
use windlass::resource::{DynamicObject, ResourceInfo, Scope};
use windlass::testing::{TestCluster, check};

#[derive(CustomResource, Clone, Debug)]
#[resource(group = "schemas.windlass.dev", version = "v1", namespaced, plural = "forms")]
struct Form {
    metadata: ObjectMeta,
    spec: FormSpec,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
struct FormSpec {
    #[schemars(schema_with = "windlass::crd::object")]
    template: Option<PodTemplateSpec>,
    colour: Option<Colour>,
    source: Option<Source>,
    value: Option<Typed>,
    port: Option<Port>,
    mode: Option<Mode>,
    address: Option<std::net::IpAddr>,
    large: u64,
    #[schemars(extend("not" = { "enum": ["root"] }))]
    user: String,
}

#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
enum Colour {
    Red,
    Green,
}

#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "t", deny_unknown_fields)]
enum Source {
    Git {
        #[serde(default = "main_branch")]
        branch: String,
    },
    Image {
        tag: String,
    },
}

fn main_branch() -> String {
    "main".to_owned()
}

#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind")]
enum Typed {
    Num { value: i64, at: Point },
    Text { value: String },
}

#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
struct Point {
    x: i32,
}

#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
enum Port {
    Number(u16),
    Name(String),
    Several(Vec<u16>),
}

#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
enum Mode {
    Off,
    Timed { hours: u8 },
}

/// A cluster with the kind, and the kind's API.
async fn forms() -> (TestCluster, Api<DynamicObject>) {
    let cluster = TestCluster::start().await;
    cluster.install::<Form>().await;
    let info = ResourceInfo {
        group: "schemas.windlass.dev".into(),
        version: "v1".into(),
        kind: "Form".into(),
        plural: "forms".into(),
        scope: Scope::Namespaced,
    };
    let api = cluster.client().dynamic(info, Some(cluster.namespace()));
    (cluster, api)
}

fn form(spec: &Value) -> Value {
    json!({
        "apiVersion": "schemas.windlass.dev/v1",
        "kind": "Form",
        "metadata": { "name": "form" },
        "spec": spec
    })
}

/// The stored spec.
async fn stored(api: &Api<DynamicObject>, spec: &Value) -> Result<Value, String> {
    let object: DynamicObject = serde_json::from_value(form(spec)).unwrap();
    let stored = api.create(&object).dry_run().await.map_err(|error| error.to_string())?;
    Ok(serde_json::to_value(&stored).unwrap()["spec"].take())
}

#[tokio::test]
async fn a_server_keeps_every_form_of_value_that_serde_writes() {
    let (_cluster, api) = forms().await;
    for spec in [
        json!({ "template": { "spec": { "containers": [] } } }),
        json!({ "template": null, "colour": null, "mode": null, "source": null }),
        json!({ "colour": "Red" }),
        json!({ "source": { "t": "Image", "tag": "x" } }),
        json!({ "source": { "t": "Git", "branch": "x" } }),
        json!({ "value": { "kind": "Num", "value": 1, "at": { "x": 1 } } }),
        json!({ "value": { "kind": "Text", "value": "1" } }),
        json!({ "port": 80 }),
        json!({ "port": "http" }),
        json!({ "port": [80, 81] }),
        json!({ "mode": "Off" }),
        json!({ "mode": { "Timed": { "hours": 3 } } }),
        json!({ "address": "::1" }),
        json!({ "large": 9_007_199_254_740_993_u64 }),
    ] {
        let found = stored(&api, &spec).await.unwrap();
        for (name, value) in spec.as_object().unwrap() {
            assert_eq!(&found[name], value, "{name} of {spec}");
        }
        let nulls = api.patch("form", Patch::Apply(form(&spec))).dry_run();
        assert!(nulls.await.is_ok(), "server-side apply of {spec}");
    }
}

#[tokio::test]
async fn a_server_refuses_every_form_of_value_that_serde_refuses() {
    let (_cluster, api) = forms().await;
    for spec in [
        json!({ "colour": "Blue" }),
        json!({ "source": { "t": "Image", "tag": "x", "branch": "y" } }),
        json!({ "value": { "kind": "Num", "value": "1", "at": { "x": 1 } } }),
        json!({ "value": { "kind": "Num", "value": 1, "at": {} } }),
        json!({ "value": { "kind": "Text", "value": 1 } }),
        json!({ "port": 70_000 }),
        json!({ "port": true }),
        json!({ "port": ["x"] }),
        json!({ "port": {} }),
        json!({ "mode": "Loud" }),
        json!({ "mode": { "Timed": {} } }),
        json!({ "mode": { "Timed": { "hours": 3 }, "more": 1 } }),
        json!({ "address": "localhost" }),
    ] {
        assert!(serde_json::from_value::<FormSpec>(spec.clone()).is_err(), "serde takes {spec}");
        assert!(stored(&api, &spec).await.is_err(), "the server takes {spec}");
    }
    assert!(stored(&api, &json!({ "user": "root" })).await.is_err());
}

#[tokio::test]
async fn the_check_of_a_kind_with_every_form_finds_no_difference() {
    let report = check::<Form>().await;
    let places: Vec<_> =
        report.unchecked().iter().map(|it| it.split(':').next().unwrap()).collect();
    assert_eq!(places, [".spec.template"], "{report}");
}

/// A kind whose definition passes, with many fields of which none is selectable.
#[derive(CustomResource, Clone, Debug)]
#[resource(group = "schemas.windlass.dev", version = "v1", namespaced, plural = "selections")]
#[resource(deprecated = "use v2")]
struct Selection {
    metadata: ObjectMeta,
    spec: SelectionSpec,
}

#[derive(Clone, Debug, Serialize, Deserialize, Schema)]
struct SelectionSpec {
    a: Row,
    b: Row,
    c: Row,
    port: IntOrString,
    labels: BTreeMap<String, String>,
}

#[derive(Clone, Debug, Serialize, Deserialize, Schema)]
struct Row {
    x: String,
    y: i32,
    z: bool,
}

#[tokio::test]
async fn a_server_refuses_the_versions_of_a_definition_that_are_errors_before() {
    let cluster = TestCluster::start().await;
    let definitions: Api<CustomResourceDefinition> = cluster.client().all();
    let all: Vec<String> = ["a", "b", "c"]
        .iter()
        .flat_map(|row| ["x", "y", "z"].map(|field| format!(".spec.{row}.{field}")))
        .collect();
    let all: Vec<&str> = all.iter().map(String::as_str).collect();
    let fields = |paths: &[&str]| -> Value {
        paths.iter().map(|path| json!({ "jsonPath": path })).collect::<Vec<_>>().into()
    };
    // The same values as in the unit test of `crd::verdict`, which compares with `crd()`.
    for (key, value, is_good) in [
        ("selectableFields", fields(&all[1..]), true),
        ("selectableFields", fields(&all), false),
        ("selectableFields", fields(&[".spec.port"]), false),
        ("selectableFields", fields(&[".spec.labels.app"]), true),
        ("selectableFields", fields(&[".metadata.name"]), false),
        ("selectableFields", fields(&[".spec.a.x", ".spec.a.x"]), false),
        ("deprecationWarning", json!("use v2: \u{e9}"), true),
        ("deprecationWarning", json!("use\u{a0}v2"), false),
        ("deprecationWarning", json!("\u{e9}".repeat(200)), false),
        ("deprecationWarning", json!(""), false),
    ] {
        let mut definition = serde_json::to_value(Selection::crd().unwrap()).unwrap();
        definition["spec"]["versions"][0][key] = value.clone();
        let definition: CustomResourceDefinition = serde_json::from_value(definition).unwrap();
        let created = definitions.create(&definition).dry_run().await;
        assert_eq!(created.is_ok(), is_good, "{key} {value}: {created:?}");
        if let Err(error) = created {
            assert_eq!(error.kind(), windlass::ErrorKind::Invalid, "{error}");
        }
    }
}
