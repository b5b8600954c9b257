//! The fields that controllers have applied, beside the objects of a store.

use super::*;
use crate::store::Representation;

const MANAGER: &str = "pages";

/// Returns an object that `MANAGER` has applied for the owner `uid`, and that others have written,
/// too.
fn applied(kind: (&str, &str), name: &str, uid: &str, content: Value, fields: Value) -> Value {
    let (api_version, kind) = kind;
    let mut fields = fields;
    fields["f:metadata"]["f:ownerReferences"] =
        json!({ format!("k:{}", json!({ "uid": uid })): {} });
    let entry = |manager: &str, operation: &str, fields: &Value| {
        json!({ "manager": manager, "operation": operation, "apiVersion": api_version,
            "time": "2026-01-01T00:00:00Z", "fieldsType": "FieldsV1", "fieldsV1": fields })
    };
    let status = json!({ "f:status": { "f:replicas": {}, "f:conditions": { ".": {},
        "k:{\"type\":\"Available\"}": { ".": {}, "f:status": {}, "f:reason": {}, "f:message": {} } } } });
    let mut object = content;
    object["apiVersion"] = api_version.into();
    object["kind"] = kind.into();
    object["metadata"] = json!({ "namespace": "n", "name": name, "uid": format!("of-{name}"),
        "resourceVersion": "7", "labels": { "app": "web" },
        "managedFields": [entry(MANAGER, "Apply", &fields), entry("kube", "Update", &status)],
        "ownerReferences": [{ "apiVersion": "example.dev/v1", "kind": "Site", "name": name, "uid": uid,
            "controller": true, "blockOwnerDeletion": true }] });
    object
}

fn deployment(name: &str, uid: &str) -> Value {
    let owned = json!({ ".": {}, "f:name": {}, "f:image": {}, "f:args": {},
        "f:resources": { "f:limits": { "f:cpu": {}, "f:memory": {} } },
        "f:ports": { "k:{\"containerPort\":80,\"protocol\":\"TCP\"}": { ".": {}, "f:containerPort": {} } } });
    let fields = json!({ "f:metadata": { "f:labels": { "f:app": {} } }, "f:spec": { "f:replicas": {}, "f:selector": {},
        "f:template": { "f:metadata": { "f:labels": { "f:app": {} } }, "f:spec": { "f:serviceAccountName": {},
            "f:containers": { "k:{\"name\":\"web\"}": owned } } } } });
    let container = json!({ "name": "web", "image": "nginx", "args": ["-g", "daemon off;"],
        "resources": { "limits": { "cpu": "1", "memory": "1Gi" } },
        "ports": [{ "containerPort": 80, "protocol": "TCP" }], "imagePullPolicy": "Always",
        "terminationMessagePath": "/dev/termination-log", "terminationMessagePolicy": "File" });
    let spec = json!({ "replicas": 2, "selector": { "matchLabels": { "app": "web" } },
        "template": { "metadata": { "labels": { "app": "web" } }, "spec": { "serviceAccountName": "web",
            "containers": [container], "dnsPolicy": "ClusterFirst", "restartPolicy": "Always" } } });
    applied(("apps/v1", "Deployment"), name, uid, json!({ "spec": spec }), fields)
}

fn page(name: &str, uid: &str) -> Value {
    let fields =
        json!({ "f:metadata": { "f:labels": { "f:app": {} } }, "f:data": { "f:index.html": {} } });
    applied(
        ("v1", "ConfigMap"),
        name,
        uid,
        json!({ "data": { "index.html": "<h1>Welcome</h1>" } }),
        fields,
    )
}

/// As `page`, with a separate key.
fn own_page(name: &str, uid: &str) -> Value {
    let key = format!("{name}.html");
    let fields = json!({ "f:metadata": { "f:labels": { "f:app": {} } }, "f:data": { format!("f:{key}"): {} } });
    applied(("v1", "ConfigMap"), name, uid, json!({ "data": { key: "<h1>Welcome</h1>" } }), fields)
}

fn uid(number: usize) -> String {
    format!("3b2c0d1e-0000-4000-8000-{number:012}")
}

/// Returns the bytes of an entry per object, of an object's `managedFields`, and of an object in
/// the cache.
fn cost(make: fn(&str, &str) -> Value) -> [usize; 3] {
    const OBJECTS: usize = 1000;
    let resident = |is_kept: bool| {
        let core = core();
        if is_kept {
            core.keep_applied_fields(MANAGER);
        }
        for number in 0..OBJECTS {
            put(&core, &make(&format!("web-{number}"), &uid(number)));
        }
        core.stats().resident_bytes
    };
    let (with, without) = (resident(true), resident(false));
    let managed = make("web-1", &uid(1))["metadata"]["managedFields"].to_string().len();
    [(with - without) / OBJECTS, managed, without / OBJECTS]
}

/// The rows of BENCHMARKS.md: `cargo test -p windlass-cache --lib applied_fields -- --nocapture`.
#[test]
fn children_of_one_shape_cost_a_pointer_and_others_their_own_entry() {
    for (name, make, most) in [
        ("Deployment", deployment as fn(&str, &str) -> Value, 34),
        ("ConfigMap", page, 34),
        ("ConfigMap with a key of its own", own_page, 260),
    ] {
        let [entry, managed, object] = cost(make);
        println!("{name}: {entry} bytes beside {object}; managedFields have {managed}");
        assert!(entry <= most, "{name}: {entry}");
    }
}

#[test]
fn the_entry_of_an_object_follows_it_through_every_form_and_ends_with_it() {
    let forms = [Representation::Compact, Representation::Typed, Representation::Cold];
    for representation in forms {
        let settings = StoreSettings::of::<ConfigMap>(representation, None);
        let core =
            StoreCore::with_settings(ResourceInfo::of::<ConfigMap>(), Clock::system(), settings, 1);
        core.keep_applied_fields(MANAGER);
        let mut object = page("a", &uid(1));
        put(&core, &object);
        let cached = store(&core).get(&key("a")).expect("it is cached");
        let fields = cached.applied_fields(MANAGER).expect("they are kept");
        assert_eq!(fields.fields, object["metadata"]["managedFields"][0]["fieldsV1"]);
        assert_eq!((fields.api_version.as_str(), cached.applied_fields("kube")), ("v1", None));
        drop(cached);
        object["metadata"]["resourceVersion"] = "8".into();
        object["metadata"]["managedFields"] = json!([]);
        put(&core, &object);
        let cached = store(&core).get(&key("a")).expect("it is cached");
        assert_eq!(cached.applied_fields(MANAGER), None, "the entry is gone: {representation:?}");
        drop(cached);
        delete(&core, &object);
        assert_eq!(core.shared.beside(), 0, "{representation:?}");
    }
}
