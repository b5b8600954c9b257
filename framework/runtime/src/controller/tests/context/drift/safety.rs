//! Random intents and foreign edits: whenever the comparison finds nothing to do, a forced apply changes nothing but
//! owners.
//!
//! `WINDLASS_DRIFT_CASES` sets the number of objects per kind, `WINDLASS_DRIFT_SEED` the seed.

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::Service;
use windlass_cache::store::{Cached, Core, Mode};
use windlass_client::api::Api;
use windlass_core::resource::{DynamicObject, Resource};
use windlass_core::wire::MetadataScan;

use super::*;
use crate::controller::state::{applied_in, comparable, difference};

const US: &str = "ours";
const CASES: u64 = 6;
const ROUNDS: usize = 12;

/// Choices by a seed, and the uids of two objects that may own others.
struct Choices(Rng, [String; 2]);

impl Choices {
    fn below(&self, bound: usize) -> usize {
        usize::try_from(self.0.below(bound as u64)).unwrap_or_default()
    }

    fn one_in(&self, bound: usize) -> bool {
        self.below(bound) == 0
    }

    fn of(&self, values: &[Value]) -> Value {
        values[self.below(values.len())].clone()
    }

    /// Inserts one of the values, or none.
    fn put(&self, object: &mut Value, name: &str, values: &[Value]) {
        if !self.one_in(3) {
            object[name] = self.of(values);
        }
    }

    /// Returns some of the values, mostly in order.
    fn some(&self, values: &[Value]) -> Vec<Value> {
        let mut some: Vec<Value> = values.iter().filter(|_| !self.one_in(3)).cloned().collect();
        if self.one_in(6) {
            some.reverse();
        }
        some
    }
}

fn metadata(choices: &Choices) -> Value {
    let mut metadata = json!({ "name": "x" });
    choices.put(
        &mut metadata,
        "labels",
        &[json!({ "a": "1" }), json!({ "a": "2", "b": "" }), json!({})],
    );
    choices.put(&mut metadata, "annotations", &[json!({ "n": "1" }), json!({ "m/n": "2" })]);
    choices.put(&mut metadata, "finalizers", &[json!(["x.io/a"]), json!(["x.io/a", "x.io/b"])]);
    let owner = |at: usize| {
        let (name, uid) = (format!("owner-{at}"), &choices.1[at]);
        json!([{ "apiVersion": "v1", "kind": "ConfigMap", "name": name, "uid": uid, "controller": true }])
    };
    choices.put(&mut metadata, "ownerReferences", &[owner(0), owner(1)]);
    metadata
}

fn container(choices: &Choices, name: &str) -> Value {
    let mut container = json!({ "name": name, "image": choices.of(&[json!("a"), json!("b")]) });
    choices.put(&mut container, "args", &[json!(["x"]), json!(["x", "y"]), json!([])]);
    let env = [
        json!({ "name": "A", "value": "1" }),
        json!({ "name": "B", "value": "1000m" }),
        json!({ "name": "C", "valueFrom": { "fieldRef": { "fieldPath": "metadata.name" } } }),
        json!({ "name": "D", "valueFrom": { "resourceFieldRef": { "resource": "limits.cpu" } } }),
        json!({ "name": "E", "value": "" }),
    ];
    if !choices.one_in(3) {
        container["env"] = choices.some(&env).into();
    }
    let ports = [
        json!({ "containerPort": 80 }),
        json!({ "containerPort": 80, "protocol": "UDP" }),
        json!({ "containerPort": 81, "name": "b", "protocol": "TCP" }),
    ];
    if !choices.one_in(3) {
        container["ports"] = choices.some(&ports).into();
    }
    let limits = [
        json!({ "cpu": "1000m" }),
        json!({ "cpu": "1", "memory": "1Gi" }),
        json!({ "cpu": "0.5", "memory": "1024Mi" }),
        json!({}),
    ];
    choices.put(
        &mut container,
        "resources",
        &[json!({}), json!({ "limits": choices.of(&limits) })],
    );
    choices.put(&mut container, "securityContext", &[json!({}), json!({ "privileged": false })]);
    choices.put(&mut container, "stdin", &[json!(false), json!(true)]);
    let mounts = [
        json!({ "name": "v", "mountPath": "/a" }),
        json!({ "name": "v", "mountPath": "/b", "readOnly": false }),
    ];
    choices.put(&mut container, "volumeMounts", &[json!(choices.some(&mounts))]);
    container
}

fn deployment(choices: &Choices) -> Value {
    let containers = ["web", "log", "side"].map(|name| container(choices, name));
    let mut some = choices.some(&containers);
    if some.is_empty() {
        some.push(containers[0].clone());
    }
    let mut pod = json!({ "containers": some });
    let volumes = [
        json!({ "name": "v", "emptyDir": choices.of(&[json!({}), json!({ "sizeLimit": "1024Mi" }), json!({ "medium": "" })]) }),
        json!({ "name": "w", "projected": { "sources": [{ "serviceAccountToken": { "path": "t" } }] } }),
    ];
    pod["volumes"] = json!([volumes[0].clone()]);
    choices.put(&mut pod, "volumes", &[json!(volumes)]);
    choices.put(
        &mut pod,
        "nodeSelector",
        &[json!({ "a": "1" }), json!({ "a": "1", "b": "2" }), json!({})],
    );
    choices.put(
        &mut pod,
        "tolerations",
        &[json!([{ "key": "a", "operator": "Exists" }]), json!([])],
    );
    choices.put(&mut pod, "hostNetwork", &[json!(false)]);
    choices.put(&mut pod, "securityContext", &[json!({}), json!({ "runAsUser": 0 })]);
    choices.put(&mut pod, "terminationGracePeriodSeconds", &[json!(30), json!(5)]);
    choices.put(&mut pod, "serviceAccountName", &[json!(""), json!("x")]);
    let mut spec = json!({ "selector": { "matchLabels": { "app": "x" } },
        "template": { "metadata": { "labels": { "app": "x" } }, "spec": pod } });
    choices.put(&mut spec, "replicas", &[json!(0), json!(1), json!(2)]);
    choices.put(
        &mut spec,
        "strategy",
        &[json!({}), json!({ "type": "Recreate" }), json!({ "type": "RollingUpdate" })],
    );
    choices.put(&mut spec, "paused", &[json!(false), json!(true)]);
    choices.put(&mut spec, "minReadySeconds", &[json!(0), json!(5)]);
    json!({ "metadata": metadata(choices), "spec": spec })
}

fn service(choices: &Choices) -> Value {
    let ports = [
        json!({ "port": 80, "name": "a" }),
        json!({ "port": 80, "name": "b", "protocol": "UDP" }),
        json!({ "port": 81, "name": "c", "targetPort": "http" }),
    ];
    let mut some = choices.some(&ports);
    if some.is_empty() {
        some.push(ports[0].clone());
    }
    let mut spec = json!({ "ports": some });
    choices.put(
        &mut spec,
        "selector",
        &[json!({ "a": "1" }), json!({ "a": "1", "b": "2" }), json!({})],
    );
    choices.put(&mut spec, "sessionAffinity", &[json!("None"), json!("ClientIP"), json!("")]);
    choices.put(&mut spec, "publishNotReadyAddresses", &[json!(false), json!(true)]);
    json!({ "metadata": metadata(choices), "spec": spec })
}

fn config_map(choices: &Choices) -> Value {
    let mut map = json!({ "metadata": metadata(choices) });
    choices.put(&mut map, "data", &[json!({ "a": "1" }), json!({ "a": "1", "b": "" }), json!({})]);
    choices.put(&mut map, "binaryData", &[json!({ "c": "AAAA" })]);
    map
}

fn widget(choices: &Choices) -> Value {
    let mut spec = json!({});
    choices.put(&mut spec, "name", &[json!(""), json!("a"), json!("b")]);
    choices.put(&mut spec, "count", &[json!(0), json!(1), json!(2)]);
    choices.put(&mut spec, "flag", &[json!(false), json!(true)]);
    let ports = [
        json!({ "port": 80 }),
        json!({ "port": 80, "protocol": "UDP" }),
        json!({ "port": 81, "note": "" }),
    ];
    if !choices.one_in(3) {
        spec["ports"] = choices.some(&ports).into();
    }
    if !choices.one_in(3) {
        spec["tags"] = choices.some(&[json!("a"), json!("b"), json!("c")]).into();
    }
    choices.put(&mut spec, "args", &[json!(["a"]), json!(["a", "b"]), json!([])]);
    choices.put(
        &mut spec,
        "whole",
        &[json!({ "a": "1" }), json!({ "a": "1", "b": "2" }), json!({})],
    );
    choices.put(
        &mut spec,
        "parts",
        &[json!({ "x": { "a": 1 } }), json!({ "x": { "b": 1 }, "y": {} }), json!({ "x": {} })],
    );
    choices.put(
        &mut spec,
        "free",
        &[
            json!({ "limits": { "cpu": "1000m" } }),
            json!({ "limits": { "cpu": "1" } }),
            json!([1, { "a": 0 }]),
        ],
    );
    choices.put(&mut spec, "nothing", &[Value::Null, json!("a")]);
    json!({ "metadata": metadata(choices), "spec": spec })
}

fn widget_definition() -> CustomResourceDefinition {
    let text = json!({ "type": "string" });
    let parts = json!({ "type": "object", "properties": { "a": { "type": "integer" }, "b": { "type": "integer" } } });
    let port = json!({ "type": "object", "required": ["port"], "properties": { "port": { "type": "integer" },
        "protocol": { "type": "string", "default": "TCP" }, "note": text } });
    let spec = json!({ "type": "object", "properties": {
        "name": text, "count": { "type": "integer", "default": 1 }, "flag": { "type": "boolean" },
        "ports": { "type": "array", "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["port", "protocol"], "items": port },
        "tags": { "type": "array", "x-kubernetes-list-type": "set", "items": text },
        "args": { "type": "array", "items": text },
        "whole": { "type": "object", "additionalProperties": text, "x-kubernetes-map-type": "atomic" },
        "parts": { "type": "object", "additionalProperties": parts },
        "free": { "x-kubernetes-preserve-unknown-fields": true },
        "nothing": { "type": "string", "nullable": true } } });
    let schema = json!({ "openAPIV3Schema": { "type": "object", "properties": { "spec": spec } } });
    let version = json!({ "name": "v1", "served": true, "storage": true, "schema": schema });
    let definition = json!({ "metadata": { "name": "widgets.example.dev" }, "spec": { "group": "example.dev",
        "scope": "Namespaced", "versions": [version],
        "names": { "plural": "widgets", "singular": "widget", "kind": "Widget", "listKind": "WidgetList" } } });
    serde_json::from_value(definition).expect("a definition")
}

/// Returns all paths to scalars and lists of an object.
fn paths(value: &Value, at: &str, found: &mut Vec<String>) {
    match value {
        Value::Object(members) if !members.is_empty() => {
            for (name, value) in members {
                let name = name.replace('~', "~0").replace('/', "~1");
                paths(value, &format!("{at}/{name}"), found);
            }
        }
        Value::Array(items) => {
            found.push(at.to_owned());
            for (place, item) in items.iter().enumerate() {
                paths(item, &format!("{at}/{place}"), found);
            }
        }
        _ => found.push(at.to_owned()),
    }
}

/// A walk of one object through intents and edits.
struct Walk<'a, K> {
    api: &'a Api<K>,
    info: &'a ResourceInfo,
    choices: &'a Choices,
    make: fn(&Choices) -> Value,
    cache: &'a Arc<Core>,
}

/// Verdicts by whether the apply changed the object.
#[derive(Debug, Default)]
struct Verdicts {
    /// Nothing to do, and nothing was changed.
    settled: usize,
    /// Something to do, and something was changed.
    applied: usize,
    /// Something to do, and nothing was changed: a request that was not needed.
    needless: usize,
    /// Nothing to do, and the apply changed owners alone.
    unowned: usize,
}

impl<K: Resource> Walk<'_, K> {
    /// Edits the object as somebody else; edits that the server refuses are none.
    async fn edit(&self, intent: &Value) {
        let (choices, name) = (self.choices, "x");
        let Some(live) = self.api.get_opt(name).await.expect("an answer") else { return };
        let live = serde_json::to_value(&live).expect("it encodes");
        let mut found = Vec::new();
        paths(&live["spec"], "/spec", &mut found);
        paths(&live["data"], "/data", &mut found);
        found.push("/metadata/labels".to_owned());
        let path = found[choices.below(found.len())].clone();
        let value = live.pointer(&path).cloned().unwrap_or_default();
        let other = match &value {
            Value::String(text) => json!(format!("{text}1")),
            Value::Number(number) => json!(number.as_i64().unwrap_or_default() + 1),
            Value::Bool(on) => json!(!on),
            Value::Array(items) => items.iter().rev().cloned().collect(),
            _ => json!({}),
        };
        let op = |op: &str, value: Value| json!([{ "op": op, "path": path, "value": value }]);
        let patch = |patch: Patch| self.api.patch(name, patch).manager("them");
        let outcome = match choices.below(8) {
            0 => patch(Patch::Merge(json!({ "metadata": { "labels": { "theirs": "1" } } }))).await,
            1 => patch(Patch::Json(op("remove", Value::Null))).await,
            2 | 3 => patch(Patch::Json(op("replace", other))).await,
            4 => {
                // Changed and changed back: the value is right, and its owner another.
                let changed = patch(Patch::Json(op("replace", other))).await;
                if changed.is_ok() {
                    patch(Patch::Json(op("replace", value))).await
                } else {
                    changed
                }
            }
            5 => {
                let mut theirs = (self.make)(choices);
                theirs["metadata"] = json!({ "annotations": { "theirs": "1" } });
                self.api.apply(name, &theirs).manager("them").force().await
            }
            6 => self.api.apply(name, intent).manager("others").force().await,
            _ => {
                let mut added = value;
                if let Value::Array(items) = &mut added {
                    items.insert(
                        0,
                        json!({ "name": "theirs", "image": "x", "port": 9, "value": "1" }),
                    );
                }
                patch(Patch::Json(op("replace", added))).await
            }
        };
        drop(outcome);
    }

    /// Compares the intent with the object, as decoded and as cached.
    fn difference(&self, live: &K, intent: &Value) -> Option<String> {
        let direct = applied_in(live, US);
        let bytes = serde_json::to_vec(live).expect("it encodes");
        let scan = MetadataScan::of(&bytes).expect("an object");
        let cached: Cached<K> = Cached::new(self.cache.object(&scan));
        assert_eq!(cached.applied_fields(US), direct, "the cache keeps what the object says");
        let cached = comparable(&*cached.get().expect("it decodes")).expect("it encodes");
        assert_eq!(Some(&cached), comparable(live).as_ref());
        let Some(fields) = direct else { return Some("nothing was applied".to_owned()) };
        difference(self.info, intent, &cached, &fields)
    }

    async fn run(&self, verdicts: &mut Verdicts) {
        let mut intent = (self.make)(self.choices);
        if self.api.apply("x", &intent).manager(US).force().await.is_err() {
            return;
        }
        for _ in 0..ROUNDS {
            match self.choices.below(4) {
                0 => intent = (self.make)(self.choices),
                1 | 2 => self.edit(&intent).await,
                _ => {}
            }
            let before = self.api.get("x").await.expect("it is there");
            let found = self.difference(&before, &intent);
            let Ok(after) = self.api.apply("x", &intent).manager(US).force().await else {
                // Refused, as two edits together may be; the comparison must not call that settled.
                assert!(found.is_some(), "refused: {intent}");
                continue;
            };
            let is_changed = before.resource_version() != after.resource_version();
            match (found, is_changed) {
                (None, false) => verdicts.settled += 1,
                (Some(_), true) => verdicts.applied += 1,
                (Some(path), false) => {
                    verdicts.needless += 1;
                    if std::env::var_os("WINDLASS_DRIFT_NEEDLESS").is_some() {
                        println!("needless: {path} of {intent}");
                    }
                }
                // Others have filled in an object that we had applied empty: its values are as intended.
                (None, true) if comparable(&before) == comparable(&after) => verdicts.unowned += 1,
                (None, true) => panic!(
                    "{}: an apply changed what was thought to be settled\nintent {intent}\nbefore {}\nafter {}",
                    self.info,
                    serde_json::to_string(&before).expect("it encodes"),
                    serde_json::to_string(&after).expect("it encodes"),
                ),
            }
        }
        let free = json!({ "metadata": { "finalizers": null } });
        self.api.patch("x", Patch::Merge(free)).await.expect("freed");
        self.api.delete("x").await.expect("deleted");
    }
}

fn setting(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}

async fn walks<K: Resource>(
    world: &World,
    api: Api<K>,
    info: ResourceInfo,
    make: fn(&Choices) -> Value,
) {
    let rng = Rng::seeded(setting("WINDLASS_DRIFT_SEED", 1)).fork(&info.kind);
    let clock = world.client.environment().clock.clone();
    let cache = Core::with_mode(info.clone(), clock, Mode::default(), 1);
    cache.keep_applied_fields(US);
    let mut owners = [String::new(), String::new()];
    for (at, uid) in owners.iter_mut().enumerate() {
        let name = format!("owner-{at}");
        let maps = world.maps();
        let owner = match maps.get_opt(&name).await.expect("an answer") {
            Some(owner) => owner,
            None => maps.create(&child(&name, "x")).await.expect("created"),
        };
        owner.uid().clone_into(uid);
    }
    let choices = Choices(rng, owners);
    let mut verdicts = Verdicts::default();
    for _ in 0..setting("WINDLASS_DRIFT_CASES", CASES) {
        let walk = Walk { api: &api, info: &info, choices: &choices, make, cache: &cache };
        walk.run(&mut verdicts).await;
        world.server.clear_requests();
    }
    println!("{info}: {verdicts:?}");
    let Verdicts { settled, applied, .. } = verdicts;
    assert!(settled > 0 && applied > 0, "{info}: {verdicts:?}");
}

#[tokio::test(start_paused = true)]
async fn an_apply_that_is_not_sent_would_have_changed_nothing() {
    let world = World::with(widget_definition()).await;
    let client = &world.client;
    walks::<ConfigMap>(
        &world,
        client.namespace("shop"),
        ResourceInfo::of::<ConfigMap>(),
        config_map,
    )
    .await;
    walks::<Service>(&world, client.namespace("shop"), ResourceInfo::of::<Service>(), service)
        .await;
    walks::<Deployment>(
        &world,
        client.namespace("shop"),
        ResourceInfo::of::<Deployment>(),
        deployment,
    )
    .await;
    let info = ResourceInfo {
        group: "example.dev".into(),
        version: "v1".into(),
        kind: "Widget".into(),
        plural: "widgets".into(),
        scope: windlass_core::resource::Scope::Namespaced,
    };
    walks::<DynamicObject>(&world, client.dynamic(info.clone(), Some("shop")), info, widget).await;
}
