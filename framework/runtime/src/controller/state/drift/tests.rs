//! The comparison of children with their intents.

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::ConfigMap;
use serde_json::json;

use super::*;

fn fields(api_version: &str, fields: Value) -> FieldTree {
    FieldTree { api_version: api_version.to_owned(), fields }
}

/// Returns the difference of an intent and a child, of which these fields were applied.
fn compared<K: Resource>(intent: Value, live: &Value, applied: Value) -> Option<String> {
    let info = K::static_info().expect("a kind");
    difference(&info, &intent, live, &fields(&info.api_version(), applied))
}

fn app(intent: Value, live: Value, applied: Value) -> Option<String> {
    let spec = |spec| json!({ "spec": spec });
    compared::<Deployment>(spec(intent), &spec(live), json!({ "f:spec": applied }))
}

#[test]
fn a_child_with_all_fields_of_the_intent_and_others_of_others_is_as_intended() {
    let intent = json!({ "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": { "name": "a", "namespace": "b", "resourceVersion": "1", "labels": { "x": "1" } },
        "data": { "host": "a" } });
    let live = json!({ "metadata": { "name": "a", "labels": { "x": "1", "theirs": "2" } },
        "data": { "host": "a", "theirs": "b" } });
    let applied =
        json!({ "f:metadata": { "f:labels": { "f:x": {} } }, "f:data": { "f:host": {} } });
    assert_eq!(compared::<ConfigMap>(intent.clone(), &live, applied.clone()), None);
    let older = fields("v1beta1", applied.clone());
    let info = ResourceInfo::of::<ConfigMap>();
    assert_eq!(difference(&info, &intent, &live, &older).as_deref(), Some(".apiVersion"));
    for (path, value) in [("/data/host", json!("b")), ("/metadata/labels", json!({}))] {
        let mut changed = live.clone();
        *changed.pointer_mut(path).expect("it is there") = value;
        let found = compared::<ConfigMap>(intent.clone(), &changed, applied.clone());
        let expected = if path == "/data/host" { ".data.host" } else { ".metadata.labels.x" };
        assert_eq!(found.as_deref(), Some(expected));
    }
}

#[test]
fn a_field_that_left_the_intent_or_that_another_manager_took_is_a_difference() {
    let live = json!({ "replicas": 2, "paused": true });
    let both = json!({ "f:replicas": {}, "f:paused": {} });
    let one = json!({ "f:replicas": {} });
    assert_eq!(app(live.clone(), live.clone(), both.clone()), None);
    assert_eq!(app(json!({ "replicas": 2 }), live.clone(), both).as_deref(), Some(".spec.paused"));
    assert_eq!(app(live.clone(), live.clone(), one).as_deref(), Some(".spec.paused"));
}

#[test]
fn items_are_found_by_their_keys_and_their_order_counts() {
    let item = |name: &str, image: &str| json!({ "name": name, "image": image });
    let owned = json!({ ".": {}, "f:name": {}, "f:image": {} });
    let applied = json!({ "f:containers": {
        "k:{\"name\":\"web\"}": owned, "k:{\"name\":\"log\"}": owned } });
    let list = |items: &[Value]| json!({ "containers": items });
    let (web, log) = (item("web", "a"), item("log", "b"));
    let compare = |intent: &[Value], live: &[Value]| app(list(intent), list(live), applied.clone());
    let intent = [web.clone(), log.clone()];
    assert_eq!(compare(&intent, &intent), None);
    let theirs = json!({ "name": "theirs" });
    assert_eq!(compare(&intent, &[web.clone(), theirs.clone(), log.clone()]), None);
    let differs = |intent: &[Value], live: &[Value]| compare(intent, live).expect("a difference");
    assert_eq!(differs(&intent, &[log.clone(), web.clone()]), ".spec.containers[name=log]");
    assert_eq!(
        differs(&intent, &[item("web", "c"), log.clone()]),
        ".spec.containers[name=web].image"
    );
    assert_eq!(
        differs(&[web.clone(), log.clone(), theirs.clone()], &intent),
        ".spec.containers[name=theirs]"
    );
    assert_eq!(differs(std::slice::from_ref(&web), &intent), ".spec.containers");
    assert_eq!(differs(&intent, &[web.clone(), web.clone(), log.clone()]), ".spec.containers");
    assert_eq!(differs(&[web.clone(), web.clone()], &intent), ".spec.containers[name=web]");
}

#[test]
fn an_item_is_ours_with_its_keys_and_not_by_its_fields_alone() {
    let item = json!({ "name": "web", "image": "a" });
    let list = json!({ "containers": [item] });
    let of = |below: Value| json!({ "f:containers": { "k:{\"name\":\"web\"}": below } });
    let whole = of(json!({ ".": {}, "f:name": {}, "f:image": {} }));
    assert_eq!(app(list.clone(), list.clone(), whole), None);
    // Another manager removed the item and made the item anew: the item's end would not be ours.
    let fields = of(json!({ "f:name": {}, "f:image": {} }));
    let found = app(list.clone(), list.clone(), fields);
    assert_eq!(found.as_deref(), Some(".spec.containers[name=web]"));
    // Another manager has taken a field of the item.
    let taken = of(json!({ ".": {}, "f:name": {} }));
    let found = app(list.clone(), list.clone(), taken);
    assert_eq!(found.as_deref(), Some(".spec.containers[name=web].image"));
    // The object has only the others of the list.
    let theirs = json!({ "containers": [{ "name": "theirs" }] });
    let applied = of(json!({ ".": {}, "f:name": {}, "f:image": {} }));
    assert_eq!(app(list, theirs, applied).as_deref(), Some(".spec.containers[name=web]"));
}

#[test]
fn a_member_of_a_set_that_another_manager_removed_is_a_difference() {
    let applied = json!({ "f:tags": { "v:\"a\"": {}, "v:\"b\"": {} } });
    let tags = |tags: &[&str]| json!({ "tags": tags });
    let compare = |live: &[&str]| app(tags(&["a", "b"]), tags(live), applied.clone());
    assert_eq!(compare(&["theirs", "a", "b"]), None);
    assert_eq!(compare(&["a", "theirs"]).as_deref(), Some(".spec.tags[b]"));
    // Another manager has taken the item.
    let fewer = json!({ "f:tags": { "v:\"a\"": {} } });
    let found = app(tags(&["a", "b"]), tags(&["a", "b"]), fewer);
    assert_eq!(found.as_deref(), Some(".spec.tags[b]"));
}

#[test]
fn keys_with_defaults_may_be_left_out_while_one_item_fits() {
    let port = |protocol: &str| json!({ "port": 80, "protocol": protocol });
    let key = |protocol: &str| format!("k:{}", port(protocol));
    let tcp = json!({ "f:ports": { key("TCP"): { ".": {}, "f:port": {} } } });
    let intent = json!({ "ports": [{ "port": 80 }] });
    let live = json!({ "ports": [port("TCP"), port("UDP")] });
    assert_eq!(app(intent.clone(), live.clone(), tcp), None);
    let both = json!({ "f:ports": { key("TCP"): { ".": {}, "f:port": {} },
        key("UDP"): { ".": {}, "f:port": {}, "f:protocol": {} } } });
    assert!(app(intent, live.clone(), both.clone()).is_some(), "it may be either");
    let intent = json!({ "ports": [{ "port": 80 }, { "port": 80, "protocol": "UDP" }] });
    assert_eq!(app(intent, live, both), None, "no two items are equal");
}

#[test]
fn sets_are_compared_by_their_members() {
    let live = json!({ "tags": ["a", "theirs", "b"] });
    let applied = json!({ "f:tags": { "v:\"a\"": {}, "v:\"b\"": {} } });
    let tags = |tags: &[&str]| json!({ "tags": tags });
    assert_eq!(app(tags(&["a", "b"]), live.clone(), applied.clone()), None);
    for other in [&["b", "a"][..], &["a"], &["a", "b", "theirs"], &["a", "c"]] {
        assert!(app(tags(other), live.clone(), applied.clone()).is_some(), "{other:?}");
    }
}

#[test]
fn values_that_are_owned_as_a_whole_may_have_the_servers_defaults_and_spelling() {
    let claim = |more: Value| {
        let mut claim = json!({ "metadata": { "name": "data" }, "spec": {
            "accessModes": ["ReadWriteOnce"], "resources": { "requests": { "storage": "1024Mi" } } } });
        if let (Value::Object(claim), Value::Object(more)) = (&mut claim, more) {
            claim.extend(more);
        }
        json!({ "volumeClaimTemplates": [claim] })
    };
    let mut live = claim(json!({ "apiVersion": "v1", "kind": "PersistentVolumeClaim",
        "status": { "phase": "Pending" } }));
    let spec = &mut live["volumeClaimTemplates"][0]["spec"];
    spec["volumeMode"] = "Filesystem".into();
    spec["resources"]["requests"]["storage"] = "1Gi".into();
    let applied = json!({ "f:volumeClaimTemplates": {} });
    assert_eq!(app(claim(json!({})), live.clone(), applied.clone()), None);
    live["volumeClaimTemplates"][0]["spec"]["volumeMode"] = "Block".into();
    assert!(app(claim(json!({})), live, applied).is_some(), "a member that left the intent");
    let host = json!({ "f:template": { "f:hostNetwork": {} } });
    let of = |on: bool| json!({ "template": { "hostNetwork": on } });
    assert_eq!(app(of(false), json!({ "template": {} }), host.clone()), None, "it is left out");
    assert!(app(of(true), json!({ "template": {} }), host).is_some());
    let empty = json!({ "template": { "securityContext": {} } });
    let owned = json!({ "f:template": { "f:securityContext": {} } });
    assert_eq!(app(empty.clone(), empty.clone(), owned.clone()), None);
    assert!(app(empty, json!({ "template": {} }), owned).is_some(), "it was removed");
    let map = json!({ "template": { "nodeSelector": {} } });
    let owned = json!({ "f:template": { "f:nodeSelector": {} } });
    assert_eq!(app(map, json!({ "template": {} }), owned), None, "an empty map is left out");
}

#[test]
fn an_empty_object_of_the_intent_is_there_and_leaves_its_members_to_others() {
    let owned = |name: &str| json!({ format!("f:{name}"): {} });
    let empty = |name: &str| json!({ name: {} });
    for (name, members) in [
        ("ordinals", json!({ "start": 0 })),
        ("strategy", json!({ "type": "RollingUpdate", "rollingUpdate": { "maxSurge": "25%" } })),
    ] {
        let live = json!({ name: members });
        assert_eq!(app(empty(name), live.clone(), owned(name)), None, "{name}");
        let path = format!(".spec.{name}");
        assert_eq!(app(empty(name), json!({}), owned(name)), Some(path.clone()), "it is gone");
        assert_eq!(app(empty(name), live, json!({})), Some(".spec".into()), "it is not ours");
    }
    // A map that is replaced as a whole: the members may be those of the last intent.
    let live = json!({ "nodeSelector": { "a": "1" } });
    assert!(app(empty("nodeSelector"), live, owned("nodeSelector")).is_some());
    let custom = fields("example.dev/v1", json!({ "f:spec": { "f:strategy": {} } }));
    let info = ResourceInfo {
        group: "example.dev".into(),
        version: "v1".into(),
        ..ResourceInfo::of::<Deployment>()
    };
    let live = json!({ "spec": { "strategy": { "type": "a" } } });
    let intent = json!({ "spec": { "strategy": {} } });
    assert!(difference(&info, &intent, &live, &custom).is_some(), "its schema is not known");
}

#[test]
fn within_a_value_that_is_owned_as_a_whole_zero_and_none_differ() {
    let applied = json!({ "f:template": { "f:tolerations": {} } });
    let of = |toleration: Value| json!({ "template": { "tolerations": [toleration] } });
    let live = of(json!({ "key": "a" }));
    let seconds = of(json!({ "key": "a", "tolerationSeconds": 0 }));
    let found = app(seconds.clone(), live.clone(), applied.clone());
    assert_eq!(
        found.as_deref(),
        Some(".spec.template.tolerations"),
        "without seconds it never ends"
    );
    assert_eq!(app(seconds.clone(), seconds, applied.clone()), None);
    for zero in [json!(false), json!("")] {
        let intent = of(json!({ "key": "a", "more": zero }));
        assert!(app(intent, live.clone(), applied.clone()).is_some(), "{zero}");
    }
    let empty = of(json!({ "key": "a", "items": [] }));
    assert_eq!(app(empty, live, applied), None, "an empty list is left out");
}

#[test]
fn what_is_not_understood_is_a_difference() {
    let live = json!({ "a": [1, { "b": 2 }] });
    for applied in [
        json!({ "f:a": { "i:0": {} } }),
        json!({ "f:a": { "k:no JSON": {} } }),
        json!({ "f:a": { "k:{\"b\":2}": {}, "v:1": {} } }),
        json!({ "f:a": { "k:{\"b\":2}": {}, "k:{\"c\":2}": {} } }),
        json!({ "f:a": 7 }),
        json!({ "f:a": { "f:b": {} } }),
        json!({ "a": {} }),
        json!({ "f:é": { "é": {} } }),
        json!([]),
    ] {
        assert!(app(live.clone(), live.clone(), applied.clone()).is_some(), "{applied}");
    }
}

#[test]
fn the_hash_of_what_was_applied_changes_with_it_and_with_nothing_else() {
    let applied = fields(
        "v1",
        json!({ "f:a": {}, "f:list": {
        "k:{\"name\":\"x\"}": { ".": {}, "f:v": {} }, "k:{\"name\":\"y\"}": {} } }),
    );
    let live = json!({ "a": 1, "list": [{ "name": "x", "v": 1 }, { "name": "y" }] });
    let before = owned_content(&applied, &live);
    let theirs = json!({ "a": 1, "b": 2, "list": [
        { "name": "x", "v": 1, "w": 3 }, { "name": "z" }, { "name": "y" }] });
    assert_eq!(owned_content(&applied, &theirs), before);
    for (path, value) in [
        ("/a", json!(2)),
        ("/list/0/v", json!(2)),
        ("/list/1/more", json!(2)),
        ("/list", json!([{ "name": "y" }, { "name": "x", "v": 1 }])),
        ("/list", json!([{ "name": "x", "v": 1 }])),
        ("/list", json!(null)),
    ] {
        let mut changed = live.clone();
        match changed.pointer_mut(path) {
            Some(place) => *place = value,
            None => changed["list"][1]["more"] = value,
        }
        assert_ne!(owned_content(&applied, &changed), before, "{path}");
    }
    let fewer = fields("v1", json!({ "f:a": {} }));
    assert_ne!(owned_content(&fewer, &live), before);
}

#[test]
fn an_empty_object_that_an_apply_removed_is_lost_and_an_empty_map_is_not() {
    let intent = |pod: Value| json!({ "spec": { "containers": [pod] } });
    let owned = json!({ "f:spec": { "f:containers": { "k:{\"name\":\"web\"}": {
        ".": {}, "f:name": {}, "f:securityContext": {}, "f:nodeSelector": {} } } } });
    let applied = FieldTree { api_version: "apps/v1".into(), fields: owned };
    let info = ResourceInfo::of::<k8s_openapi::api::apps::v1::Deployment>();
    let lost =
        |wanted: Value, live: Value| has_lost(&info, &intent(wanted), &intent(live), &applied);
    let bare = json!({ "name": "web" });
    assert!(lost(json!({ "name": "web", "securityContext": {} }), bare.clone()));
    let kept = json!({ "name": "web", "securityContext": {} });
    assert!(!lost(kept.clone(), kept), "it is there");
    assert!(!lost(json!({ "name": "web", "nodeSelector": {} }), bare), "the server leaves it out");
}

#[test]
fn an_empty_list_that_an_apply_removed_is_lost_though_nobody_owns_it() {
    let info = ResourceInfo { group: "example.dev".into(), ..ResourceInfo::of::<Deployment>() };
    let owned = fields("example.dev/v1", json!({ "f:spec": { "f:name": {}, "f:free": {} } }));
    let lost = |intent: Value, live: Value| {
        let spec = |spec| json!({ "spec": spec });
        has_lost(&info, &spec(intent), &spec(live), &owned)
    };
    let name = || json!({ "name": "a" });
    assert!(lost(json!({ "name": "a", "ports": [] }), name()));
    assert!(lost(json!({ "name": "a", "ports": [] }), json!({ "name": "a", "ports": null })));
    assert!(lost(json!({ "name": "a", "part": { "ports": [] } }), name()), "with its object");
    assert!(!lost(json!({ "name": "a", "ports": [] }), json!({ "name": "a", "ports": [] })));
    assert!(!lost(json!({ "name": "a", "ports": [{ "port": 1 }] }), name()), "it was refused");
    let whole = json!({ "free": { "list": [] } });
    assert!(!lost(whole, json!({ "free": {} })), "it is owned as a whole");
    let kind = ResourceInfo::of::<Deployment>();
    let (intent, live) = (json!({ "spec": { "ports": [] } }), json!({ "spec": {} }));
    assert!(!has_lost(&kind, &intent, &live, &owned), "the server leaves it out");
}

#[test]
fn empty_maps_and_lists_of_the_metadata_are_never_lost() {
    let info = ResourceInfo { group: "example.dev".into(), ..ResourceInfo::of::<Deployment>() };
    let owned = json!({ "f:metadata": { "f:labels": { "f:a": {} } }, "f:spec": { "f:name": {} } });
    let owned = fields("example.dev/v1", owned);
    let metadata = json!({ "annotations": {}, "finalizers": [], "labels": { "a": "b" } });
    let intent = json!({ "metadata": metadata, "spec": { "name": "a" }, "status": {} });
    let live = json!({ "metadata": { "labels": { "a": "b" } }, "spec": { "name": "a" } });
    assert!(!has_lost(&info, &intent, &live, &owned), "the server leaves them out");
}
