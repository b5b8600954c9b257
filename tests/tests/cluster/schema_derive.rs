//! Definitions with every key of `#[derive(Schema)]`: the server accepts them and acts by them.

#![allow(dead_code, reason = "fields are there for the definition")]

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{
    EnvVar, LocalObjectReference, PodTemplateSpec, ResourceRequirements, Toleration,
};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, LabelSelector, Time};
use k8s_openapi::apimachinery::pkg::runtime::RawExtension;
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use windlass::ErrorKind;
use windlass::api::Api;
use windlass::prelude::*;
use windlass::resource::{ApiDuration, DynamicObject};
use windlass::testing::TestCluster;

#[derive(CustomResource, Clone, Debug)]
#[resource(group = "schemas.windlass.dev", version = "v1", namespaced)]
struct Keyed {
    metadata: ObjectMeta,
    spec: KeyedSpec,
}

#[derive(Clone, Debug, Serialize, Deserialize, Schema)]
#[serde(rename_all = "camelCase")]
#[schema(
    one_of(by_name, by_label),
    at_most_one_of(first, second),
    at_least_one_of(by_name, by_label)
)]
#[schema(rule("self.minSize <= self.maxSize", message = "min is above max", path = min_size))]
#[schema(title = "The wanted state", properties(min = 1), docs = "https://example.dev")]
struct KeyedSpec {
    #[schema(pattern = "^[a-z]+$", length(min = 1, max = 63), title = "Host", example = "a")]
    host: String,
    #[schema(min = 1, default = 1, multiple_of = 1)]
    min_size: i32,
    #[schema(range(max = 50), exclusive_min = 0, default = 3)]
    max_size: i32,
    by_name: Option<String>,
    by_label: Option<BTreeMap<String, String>>,
    first: Option<i32>,
    second: Option<Port>,
    #[schema(immutable, length(max = 63))]
    class: Option<String>,
    #[serde(default)]
    #[schema(list(map, keys(name)), items(max = 9))]
    ports: Vec<Port>,
    #[serde(default)]
    #[schema(set, each(length(max = 9), format = "hostname"))]
    names: Vec<String>,
    #[serde(default)]
    #[schema(atomic)]
    fixed: Vec<String>,
    #[serde(default)]
    #[schema(map(granular), properties(max = 9))]
    labels: BTreeMap<String, String>,
    #[schema(opaque)]
    anything: Option<Value>,
    #[schema(embedded)]
    object: Option<Value>,
    #[schema(int_or_string)]
    either: Option<Value>,
    #[schema(preserve, map(atomic))]
    preserved: Option<Port>,
    #[schema(with = String)]
    address: Option<std::net::IpAddr>,
    #[schema(extend("x-kubernetes-map-type" = "atomic"))]
    extended: Option<BTreeMap<String, i32>>,
    #[schema(rule(
        "!oldSelf.hasValue() || self >= oldSelf.value()",
        message_expression = "self > 3 ? 'below the old value' : 'far below the old value'",
        reason = "FieldValueForbidden",
        optional_old_self
    ))]
    growing: Option<i32>,
    source: Option<Source>,
    pause: Option<ApiDuration>,
    template: Option<PodTemplateSpec>,
    conditions: Option<Vec<Condition>>,
    quantity: Option<Quantity>,
    selector: Option<LabelSelector>,
    resources: Option<ResourceRequirements>,
    port: Option<IntOrString>,
    raw: Option<RawExtension>,
    time: Option<Time>,
    env: Option<Vec<EnvVar>>,
    pull_secrets: Option<Vec<LocalObjectReference>>,
    tolerations: Option<Vec<Toleration>>,
    #[schema(with = Level)]
    level: Option<ForeignLevel>,
    #[schema(pattern = "^10[.]")]
    local: Option<std::net::Ipv4Addr>,
    #[schema(each(pattern = "^[a-z]+$"))]
    args: Option<Vec<Value>>,
}

#[derive(Clone, Debug, Serialize, Deserialize, Schema)]
enum Level {
    Low,
    High,
}

/// As `Level`, without a schema.
#[derive(Clone, Debug, Serialize, Deserialize)]
enum ForeignLevel {
    Low,
    High,
}

#[derive(Clone, Debug, Serialize, Deserialize, Schema)]
#[schema(rule("self.number > 0", message = "a port is positive"))]
struct Port {
    #[schema(length(max = 63))]
    name: String,
    number: i32,
}

#[derive(Clone, Debug, Serialize, Deserialize, Schema)]
#[serde(tag = "kind")]
enum Source {
    /// From a repository.
    Git {
        url: String,
    },
    #[schema(title = "Image")]
    Image {
        name: String,
        tag: Option<String>,
    },
    None,
}

struct Place {
    cluster: TestCluster,
    keyed: Api<Keyed>,
}

impl Place {
    async fn new() -> Self {
        let cluster = TestCluster::start().await;
        cluster.install::<Keyed>().await;
        let keyed = cluster.client().namespace::<Keyed>(cluster.namespace());
        Self { cluster, keyed }
    }

    /// Creates an object with the fields of `spec` beside those that are needed.
    async fn create(&self, name: &str, spec: Value) -> Result<Keyed, windlass::Error> {
        let mut whole = json!({ "host": "a", "byName": "b" });
        if let (Some(whole), Some(spec)) = (whole.as_object_mut(), spec.as_object()) {
            whole.extend(spec.clone());
            whole.retain(|_, value| *value != "-");
        }
        let object: DynamicObject = serde_json::from_value(json!({
            "apiVersion": "schemas.windlass.dev/v1",
            "kind": "Keyed",
            "metadata": { "name": name },
            "spec": whole,
        }))
        .unwrap();
        let resource = windlass::resource::ResourceInfo::of::<Keyed>();
        let api = self.cluster.client().dynamic(resource, Some(self.cluster.namespace()));
        api.create(&object).await?;
        self.keyed.get(name).await
    }

    async fn refused(&self, spec: Value, text: &str) {
        let error = self.create("refused", spec.clone()).await.expect_err(&spec.to_string());
        assert_eq!(error.kind(), ErrorKind::Invalid, "{error}");
        assert!(error.to_string().contains(text), "{spec}: {error}");
    }
}

#[tokio::test]
async fn a_definition_with_every_key_is_served() {
    let place = Place::new().await;
    let object = place.create("home", json!({})).await.unwrap();
    assert_eq!((object.spec.min_size, object.spec.max_size), (1, 3), "defaults are filled in");
    // Serde writes null for each option.
    let again = place.keyed.replace(&object).await.unwrap();
    assert_eq!(again.spec.by_name.as_deref(), Some("b"));
}

#[tokio::test]
async fn keys_refuse_other_values() {
    let place = Place::new().await;
    place.refused(json!({ "host": "A" }), "should match").await;
    place.refused(json!({ "minSize": 0 }), "greater than or equal to 1").await;
    place.refused(json!({ "minSize": 4 }), "min is above max").await;
    place.refused(json!({ "maxSize": 51 }), "less than or equal to 50").await;
    place
        .refused(
            json!({ "byLabel": { "a": "b" } }),
            "exactly one of the fields in [byName byLabel]",
        )
        .await;
    place.refused(json!({ "byName": "-" }), "exactly one of the fields in [byName byLabel]").await;
    let both = json!({ "first": 1, "second": { "name": "a", "number": 1 } });
    place.refused(both, "at most one of the fields in [first second]").await;
    place.refused(json!({ "ports": [{ "name": "a", "number": 0 }] }), "a port is positive").await;
    let twice = json!({ "ports": [{ "name": "a", "number": 1 }, { "name": "a", "number": 2 }] });
    place.refused(twice, "Duplicate value").await;
    place.refused(json!({ "names": ["a", "a"] }), "Duplicate value").await;
    place.refused(json!({ "names": ["0123456789"] }), "Too long").await;
    place.refused(json!({ "object": { "metadata": {} } }), "apiVersion").await;
    place.refused(json!({ "pause": "1 day" }), "should match").await;
    place.refused(json!({ "quantity": "1 GB" }), "should match").await;
    place.refused(json!({ "source": { "kind": "Hg" } }), "Unsupported value").await;
    place.refused(json!({ "level": "Mid" }), "Unsupported value").await;
    place.refused(json!({ "local": "11.1.2.3" }), "should match").await;
    // The type has a condition beside that of the field.
    place.refused(json!({ "local": "10.01.2.3" }), "should match").await;
    place.refused(json!({ "args": ["A"] }), "should match").await;
}

#[tokio::test]
async fn values_that_serde_writes_come_back_whole() {
    let place = Place::new().await;
    let spec = json!({
        "template": { "metadata": { "labels": { "a": "b" } }, "spec": { "containers": [{ "name": "c" }] } },
        "conditions": [{
            "type": "Ready", "status": "True", "reason": "Up", "message": "",
            "lastTransitionTime": "2026-01-02T03:04:05Z"
        }],
        "quantity": "500m",
        "selector": {
            "matchLabels": { "a": "b" },
            "matchExpressions": [{ "key": "k", "operator": "In", "values": ["v"] }]
        },
        "resources": { "limits": { "cpu": "1" }, "requests": { "cpu": 1 }, "claims": [{ "name": "gpu" }] },
        "port": "http",
        "raw": { "any": { "x": 1 } },
        "time": "2026-01-02T03:04:05Z",
        "env": [{ "name": "A", "valueFrom": { "fieldRef": { "fieldPath": "metadata.name" } } }],
        "pullSecrets": [{ "name": "s" }],
        "tolerations": [{ "key": "k", "operator": "Exists", "tolerationSeconds": 3 }],
        "pause": "1h30m0s",
        "source": { "kind": "Image", "name": "nginx", "tag": "1" },
        "anything": { "x": [1, "a"] },
        "object": { "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": "c" }, "data": { "a": "b" } },
        "either": 5,
        "address": "::1",
        "preserved": { "name": "a", "number": 1 },
        "growing": 5,
        "class": "gold",
        "level": "High",
        "local": "10.1.2.3",
        "args": ["a"],
    });
    let object = place.create("home", spec.clone()).await.unwrap();
    let stored = serde_json::to_value(&object).unwrap();
    for (name, value) in spec.as_object().unwrap() {
        let mut expected = value.clone();
        if name == "resources" {
            // The type of a quantity is a text.
            expected["requests"]["cpu"] = "1".into();
        }
        assert_eq!(stored["spec"][name], expected, "{name}");
    }
    let mut other = object.clone();
    other.spec.class = Some("silver".to_owned());
    let error = place.keyed.replace(&other).await.unwrap_err();
    assert!(error.to_string().contains("field is immutable"), "{error}");
    let mut other = object;
    other.spec.growing = Some(4);
    let error = place.keyed.replace(&other).await.unwrap_err();
    assert!(error.to_string().contains("below the old value"), "{error}");
}
