use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet, HashMap};

use k8s_openapi::ByteString;
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{
    ConfigMap, Container, ContainerPort, Pod, PodSpec, PodTemplateSpec, Secret, Service, Volume,
};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::JSONSchemaProps;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, ObjectMeta};
use serde_json::{Value, from_value, json, to_value};

/// `windlass::object!`, which a crate above this crate declares.
macro_rules! object {
    ($($literal:tt)*) => {
        windlass_macros::object_literal!(::windlass; $($literal)*)
    };
}

/// Compares a literal with the same object read from JSON.
#[track_caller]
fn same<T>(literal: T, expected: Value)
where
    T: serde::Serialize + serde::de::DeserializeOwned,
{
    let expected: T = from_value(expected).unwrap();
    assert_eq!(to_value(literal).unwrap(), to_value(expected).unwrap());
}

#[derive(Clone, Debug, Default, PartialEq)]
struct Tuning {
    level: Option<u8>,
    limit: u64,
    ratio: Option<f64>,
    names: BTreeSet<String>,
    weights: HashMap<String, i64>,
    boxed: Box<Limits>,
    kind: Option<Mode>,
    r#type: Option<String>,
}

#[derive(Clone, Debug, Default, PartialEq)]
struct Limits {
    low: i32,
    high: Option<i32>,
}

#[derive(Clone, Debug, PartialEq)]
enum Mode {
    Fast,
}

#[test]
fn a_deployment_is_written_as_in_yaml() {
    let (name, image) = (String::from("home"), "nginx:1.29");
    let replicas: i32 = 3;
    let deployment = object!(Deployment {
        metadata: { name: &name, labels: { app: &name, "example.dev/tier": "web" } },
        spec: {
            replicas: replicas,
            selector: { matchLabels: { app: &name } },
            template: {
                metadata: { labels: { app: &name } },
                spec: {
                    containers: [{
                        name: "nginx",
                        image: image,
                        ports: [{ containerPort: 80 }, { containerPort: 443, name: "tls" }],
                        resources: { requests: { cpu: "100m", memory: format!("{}Mi", 64) } },
                        livenessProbe: { httpGet: { path: "/", port: 80 } },
                        readinessProbe: { httpGet: { path: "/", port: "tls" } },
                    }],
                    volumes: [{ name: "tmp", emptyDir: {} }],
                },
            },
        },
    });
    same(
        deployment,
        json!({
            "metadata": { "name": "home", "labels": { "app": "home", "example.dev/tier": "web" } },
            "spec": {
                "replicas": 3,
                "selector": { "matchLabels": { "app": "home" } },
                "template": {
                    "metadata": { "labels": { "app": "home" } },
                    "spec": {
                        "containers": [{
                            "name": "nginx",
                            "image": "nginx:1.29",
                            "ports": [{ "containerPort": 80 }, { "containerPort": 443, "name": "tls" }],
                            "resources": { "requests": { "cpu": "100m", "memory": "64Mi" } },
                            "livenessProbe": { "httpGet": { "path": "/", "port": 80 } },
                            "readinessProbe": { "httpGet": { "path": "/", "port": "tls" } },
                        }],
                        "volumes": [{ "name": "tmp", "emptyDir": {} }],
                    },
                },
            },
        }),
    );
}

#[test]
fn names_that_rust_spells_otherwise_are_written_as_in_yaml() {
    let service = object!(Service {
        spec: { type: "ClusterIP", clusterIP: "None", externalIPs: ["10.0.0.1"] },
    });
    let expected = json!({
        "spec": { "type": "ClusterIP", "clusterIP": "None", "externalIPs": ["10.0.0.1"] },
    });
    same(service, expected);
    let schema = object!(JSONSchemaProps {
        $ref: "#/x",
        x-kubernetes-list-type: "map",
        x-kubernetes-list-map-keys: ["type"],
    });
    let expected = json!({
        "$ref": "#/x", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["type"],
    });
    same(schema, expected);
}

#[test]
fn an_option_takes_values_options_and_none() {
    let (some, none): (Option<&str>, Option<String>) = (Some("a"), None);
    let metadata = object!(ObjectMeta {
        name: some,
        namespace: none,
        generateName: None,
        uid: Some("u"),
        generation: 7,
        deletionGracePeriodSeconds: 30_i32,
    });
    let expected = json!({
        "name": "a", "uid": "u", "generation": 7, "deletionGracePeriodSeconds": 30,
    });
    same(metadata, expected);
}

#[test]
fn texts_of_every_kind_become_strings() {
    let owned = "b".to_owned();
    let list = ["c"];
    let config = object!(ConfigMap {
        data: {
            a: Cow::Borrowed("a"),
            b: &owned,
            c: list.first().copied().unwrap_or_default(),
            d: format_args!("{}-{}", 1, 2),
            e: 'e',
        },
        binaryData: { raw: b"\x01".to_vec(), literal: b"\x02" },
    });
    let expected = json!({
        "data": { "a": "a", "b": "b", "c": "c", "d": "1-2", "e": "e" },
        "binaryData": { "raw": ByteString(vec![1]), "literal": ByteString(vec![2]) },
    });
    same(config, expected);
    let secret = object!(Secret { data: { token: "t".as_bytes() }, stringData: { user: owned } });
    assert_eq!(secret.data.unwrap()["token"], ByteString(b"t".to_vec()));
}

#[test]
fn keys_as_texts_are_keys_as_written() {
    for short in [true, false] {
        let map = object!(ConfigMap {
            data: { NAME: "a", "Name": "b", if short { fooBar: "1" } else { foo_bar: "2" } },
        });
        let key = if short { "fooBar" } else { "foo_bar" };
        let value = if short { "1" } else { "2" };
        same(map, json!({ "data": { "NAME": "a", "Name": "b", key: value } }));
    }
}

#[test]
fn an_integer_takes_the_type_of_its_field() {
    let tls = true;
    let tuning = object!(Tuning {
        level: 200,
        limit: 18_000_000_000_000_000_000,
        ratio: 1.5,
        names: ["b", "a"],
        weights: { "x": -3, "y": 4_i64 },
        boxed: { low: -1, high: if tls { 443 } else { 80 } },
        kind: Mode::Fast,
        r#type: "t",
    });
    assert_eq!((tuning.level, tuning.limit), (Some(200), 18_000_000_000_000_000_000));
    assert_eq!(tuning.names.iter().collect::<Vec<_>>(), ["a", "b"]);
    assert_eq!(tuning.weights["x"], -3);
    assert_eq!(*tuning.boxed, Limits { low: -1, high: Some(443) });
    assert_eq!((tuning.kind, tuning.r#type.as_deref()), (Some(Mode::Fast), Some("t")));
    let port: u16 = 8080;
    assert_eq!(object!(ContainerPort { containerPort: port }).container_port, 8080);
}

#[test]
fn words_in_flat_braces_are_fields_or_keys_as_the_type_is() {
    let rolling = true;
    let limits = object!(Tuning { boxed: { low: 1 } });
    assert_eq!(limits.boxed.low, 1);
    let selector = object!(LabelSelector {
        matchLabels: { app: "a", if rolling { track: "canary" } else { track: "stable", x: "y" } },
    });
    same(selector, json!({ "matchLabels": { "app": "a", "track": "canary" } }));
}

/// Maps with names that Kubernetes has for structs.
#[derive(Clone, Debug, Default, PartialEq)]
struct Own {
    resources: BTreeMap<String, String>,
    config_map: Option<BTreeMap<String, String>>,
    metadata: BTreeMap<String, String>,
    status: BTreeMap<String, String>,
}

#[test]
fn a_map_of_ones_own_may_have_the_name_of_a_kubernetes_struct() {
    let own = object!(Own {
        resources: { cpu: "1", gpu: "2" },
        configMap: { mode: "a" },
        metadata: { owner: "b" },
        status: { "phase": "c" },
    });
    let map = |entries: &[(&str, &str)]| {
        entries.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
    };
    let expected = Own {
        resources: map(&[("cpu", "1"), ("gpu", "2")]),
        config_map: Some(map(&[("mode", "a")])),
        metadata: map(&[("owner", "b")]),
        status: map(&[("phase", "c")]),
    };
    assert_eq!(own, expected);
}

#[test]
fn keys_of_maps_may_be_computed_and_repeated() {
    let labels = BTreeMap::from([("a".to_owned(), "1".to_owned())]);
    let key = "example.dev/owner";
    let metadata = object!(ObjectMeta {
        labels: { (key): "me", for (name, value) in &labels { (format!("x-{name}")): value } },
        annotations: { note: "n", ..&labels },
    });
    let expected = json!({
        "labels": { "example.dev/owner": "me", "x-a": "1" },
        "annotations": { "a": "1", "note": "n" },
    });
    same(metadata, expected);
}

#[test]
fn conditions_select_fields_and_items() {
    let build = |tls: bool, extra: &[&str], node: Option<&str>| {
        object!(PodSpec {
            containers: [
                { name: "web" },
                if tls { { name: "tls", image: "tls:1" } } else { { name: "plain" } }
                for name in extra { { name: name } }
            ],
            nodeName?: node,
            if tls {
                volumes: [{ name: "certificates" }],
            }
        })
    };
    let expected = json!({
        "containers": [{ "name": "web" }, { "name": "tls", "image": "tls:1" }, { "name": "x" }],
        "nodeName": "n",
        "volumes": [{ "name": "certificates" }],
    });
    same(build(true, &["x"], Some("n")), expected);
    let expected = json!({ "containers": [{ "name": "web" }, { "name": "plain" }] });
    same(build(false, &[], None), expected);
}

#[test]
fn a_base_keeps_the_fields_that_are_not_written() {
    let base = object!(Pod {
        metadata: { name: "a", namespace: "shop", labels: { app: "a" } },
        spec: { nodeName: "n", containers: [{ name: "x" }] },
    });
    let pod = object!(Pod {
        metadata: { name: "b", labels: { tier: "web" } },
        spec: { containers: [{ name: "y" }] },
        ..&base
    });
    let expected = json!({
        "metadata": { "name": "b", "namespace": "shop", "labels": { "app": "a", "tier": "web" } },
        "spec": { "nodeName": "n", "containers": [{ "name": "y" }] },
    });
    same(pod, expected);
    let first = object!(Container { name: "x", image: "i" });
    let spec = object!(PodTemplateSpec {
        metadata: base.metadata,
        spec: { containers: [{ name: "z", ..&first }, ..[first]], ..PodSpec::default() },
    });
    let names = spec.spec.unwrap().containers.into_iter().map(|c| (c.name, c.image.unwrap()));
    assert_eq!(names.collect::<Vec<_>>(), [("z".into(), "i".into()), ("x".into(), "i".into())]);
}

#[test]
fn whole_values_of_the_fields_own_types_are_taken() {
    let volume = Volume { name: "v".into(), ..Volume::default() };
    let names: Vec<&str> = vec!["a", "b"];
    let spec = object!(PodSpec {
        containers: [Container { name: "c".into(), ..Container::default() }],
        volumes: vec![volume],
        nodeSelector: BTreeMap::from([("disk".to_owned(), "ssd".to_owned())]),
        initContainers: [{ name: "i", args: [..&names], command: names }],
    });
    let expected = json!({
        "containers": [{ "name": "c" }],
        "volumes": [{ "name": "v" }],
        "nodeSelector": { "disk": "ssd" },
        "initContainers": [{ "name": "i", "args": ["a", "b"], "command": ["a", "b"] }],
    });
    same(spec, expected);
}

#[test]
fn a_field_may_be_short_for_a_variable_of_its_name() {
    let (name, host_ip) = ("http", "10.0.0.1");
    let port = object!(ContainerPort { containerPort: 80, name, hostIP: host_ip });
    same(port, json!({ "containerPort": 80, "name": "http", "hostIP": "10.0.0.1" }));
}

#[test]
fn variables_of_the_user_are_not_hidden_by_generated_ones() {
    let (this, list, map, item, key, some) = ("this", "list", "map", "item", "key", Some("some"));
    let metadata = object!(ObjectMeta {
        name: this,
        namespace?: some,
        labels: { (key): map, "list": list },
        finalizers: [item, list],
    });
    let expected = json!({
        "name": "this", "namespace": "some",
        "labels": { "key": "map", "list": "list" }, "finalizers": ["item", "list"],
    });
    same(metadata, expected);
}

#[test]
fn errors_inside_of_a_literal_leave_the_function() {
    fn build(text: &str) -> Result<ContainerPort, std::num::ParseIntError> {
        Ok(object!(ContainerPort { containerPort: text.parse::<i32>()? }))
    }
    assert_eq!(build("80").unwrap().container_port, 80);
    assert!(build("x").is_err());
}
