//! Definitions of several versions, and round trips of objects.

#![allow(clippy::unwrap_used, reason = "the objects are made here")]

mod places;
mod random;
mod times;
mod types;

use serde_json::{Value, json};

use self::random::Random;
use self::types::{v1, v1alpha1, v1beta1};
use super::{KEPT_FIELDS, MOST_KEPT, Versions};
use crate::crd::CustomResource;
use crate::rng::Rng;

const ALL: [&str; 3] = ["v1", "v1beta1", "v1alpha1"];

fn versions() -> Versions {
    Versions::of::<v1::Job>().unwrap()
}

/// Returns the number of random objects: `WINDLASS_CONVERSIONS`, or five thousand.
fn count() -> u64 {
    let set = std::env::var("WINDLASS_CONVERSIONS").ok();
    set.map_or(5_000, |text| text.parse().unwrap())
}

/// Returns an object without what conversions keep in it.
fn plain(object: Value) -> Value {
    Versions::without_kept(object)
}

/// Returns an object without null fields: those of other names become absent.
fn without_nulls(mut object: Value) -> Value {
    match &mut object {
        Value::Object(fields) => {
            fields.retain(|_, value| !value.is_null());
            fields.values_mut().for_each(|value| *value = without_nulls(value.take()));
        }
        Value::Array(list) => {
            list.iter_mut().for_each(|value| *value = without_nulls(value.take()));
        }
        _ => {}
    }
    object
}

/// Returns an object without the fields of ports that no type knows: to conversions a removed one
/// was pruned by an API server.
fn without_unknown(mut object: Value) -> Value {
    let ports = object.pointer_mut("/spec/ports").and_then(Value::as_array_mut);
    for port in ports.into_iter().flatten() {
        if let Some(fields) = port.as_object_mut() {
            fields.remove("since");
        }
    }
    object
}

#[test]
fn one_definition_has_all_versions() {
    let definition = serde_json::to_value(v1::Job::crd().unwrap()).unwrap();
    let versions = definition["spec"]["versions"].as_array().unwrap();
    let of = |place: usize, field: &str| versions[place][field].clone();
    let names: Vec<_> = versions.iter().map(|version| &version["name"]).collect();
    assert_eq!(names, ALL);
    assert_eq!([0, 1, 2].map(|place| of(place, "storage")), [true, false, false]);
    assert_eq!([0, 1, 2].map(|place| of(place, "served")), [true, true, false]);
    assert_eq!(of(1, "deprecationWarning"), "use v1");
    assert_eq!(of(0, "additionalPrinterColumns")[0]["jsonPath"], ".spec.host");
    assert_eq!(of(1, "additionalPrinterColumns")[0]["jsonPath"], ".spec.url");
    assert_eq!(of(1, "subresources"), json!({ "status": {} }));
    assert_eq!(of(2, "subresources"), Value::Null);
    let properties = &of(1, "schema")["openAPIV3Schema"]["properties"]["spec"]["properties"];
    assert_eq!(properties["schedule"]["type"], "string");
    let conversion = &definition["spec"]["conversion"];
    assert_eq!(conversion["strategy"], "Webhook");
    assert_eq!(conversion["webhook"]["conversionReviewVersions"], json!(["v1"]));
    let service = &conversion["webhook"]["clientConfig"]["service"];
    assert_eq!(service["path"], "/convert-example-dev-job");
    assert_eq!(definition["metadata"]["name"], "jobs.example.dev");
}

#[test]
fn every_version_has_the_definition_and_the_place_of_the_hub() {
    use k8s_openapi::Resource;
    let hub = v1::Job::crd().unwrap();
    assert_eq!(v1beta1::Job::crd().unwrap(), hub);
    assert_eq!(v1alpha1::Job::crd().unwrap(), hub);
    assert_eq!(v1beta1::Job::API_VERSION, "example.dev/v1beta1");
    assert_eq!(v1beta1::Job::URL_PATH_SEGMENT, "jobs");
    let older = Versions::of::<v1beta1::Job>().unwrap();
    assert!(older.names().eq(ALL));
}

#[test]
fn every_round_trip_gives_the_object_back() {
    let (versions, random) = (versions(), Random(Rng::seeded(1)));
    for case in 0..count() {
        let from = ALL[random.below(3)];
        let object = random.object(from);
        let mut there = object.clone();
        let mut way = vec![from];
        for _ in 0..=random.below(3) {
            let to = ALL[random.below(3)];
            there = versions.convert(there, to).unwrap();
            way.push(to);
            assert_eq!(there["apiVersion"], format!("example.dev/{to}"));
        }
        let back = versions.convert(there, from).unwrap();
        // Values are kept for versions on the way.
        assert_eq!(without_nulls(plain(back)), without_nulls(object), "case {case}, by {way:?}");
    }
}

#[test]
fn a_change_in_another_version_wins_over_kept_values() {
    let (versions, random) = (versions(), Random(Rng::seeded(2)));
    for case in 0..count() {
        let (from, to) = (ALL[random.below(3)], ALL[random.below(3)]);
        let object = random.object(from);
        let mut there = versions.convert(object.clone(), to).unwrap();
        let other = random.object(to);
        random.change(&mut there, &other);
        let back = versions.convert(there.clone(), from).unwrap();
        let again = versions.convert(back, to).unwrap();
        let seen = |object| without_unknown(without_nulls(plain(object)));
        let (again, there) = (seen(again), seen(there));
        assert_eq!(again, there, "case {case}: {object} from {from} to {to}");
    }
}

/// Returns a job of the hub with values that v1beta1 cannot hold.
fn job() -> Value {
    json!({
        "apiVersion": "example.dev/v1", "kind": "Job", "metadata": { "name": "a" },
        "spec": {
            "minute": "5", "hour": "4", "host": "h", "path": "p", "startingDeadlineSeconds": 7,
            "concurrency": { "queue": 3 }, "replicas": 2, "timeZone": "Etc/UTC", "suspend": false,
            "limits": {}, "nested": null,
            "ports": [
                { "name": "web", "number": 80, "tls": "a" },
                { "name": "api", "number": 81, "tls": "b" },
            ],
            "steps": [
                { "image": "x", "args": [], "weight": 5 }, { "image": "y", "args": [], "weight": 6 },
            ],
        },
    })
}

#[test]
fn fields_are_renamed_split_and_joined() {
    let older = versions().convert(job(), "v1beta1").unwrap();
    let spec = &older["spec"];
    assert_eq!((&spec["schedule"], &spec["url"]), (&json!("5 4"), &json!("h/p")));
    assert_eq!(spec["deadline"], 7);
    assert_eq!(spec["concurrency"], "allow");
    assert_eq!(spec["ports"][1], json!({ "name": "api", "number": 81 }));
    assert!(older["metadata"]["annotations"][KEPT_FIELDS].is_string());
    assert_eq!(versions().convert(older, "v1").unwrap(), job());
}

#[test]
fn kept_values_of_untouched_fields_survive_a_change_beside_them() {
    let mut older = versions().convert(job(), "v1beta1").unwrap();
    older["spec"]["deadline"] = json!(9);
    older["spec"]["ports"].as_array_mut().unwrap().reverse();
    older["spec"]["ports"][0]["number"] = json!(82);
    older["spec"]["steps"].as_array_mut().unwrap().remove(0);
    let hub = versions().convert(older, "v1").unwrap();
    let spec = &hub["spec"];
    assert_eq!(
        (&spec["startingDeadlineSeconds"], &spec["timeZone"]),
        (&json!(9), &json!("Etc/UTC"))
    );
    assert_eq!(spec["concurrency"], json!({ "queue": 3 }));
    let ports = json!([
        { "name": "api", "number": 82, "tls": "b" }, { "name": "web", "number": 80, "tls": "a" },
    ]);
    assert_eq!(spec["ports"], ports);
    assert_eq!(spec["steps"], json!([{ "image": "y", "args": [], "weight": 6 }]));
    assert_eq!(hub["metadata"], json!({ "name": "a" }), "nothing is left of the annotation");
}

#[test]
fn a_changed_variant_takes_nothing_of_the_kept_one() {
    let mut older = versions().convert(job(), "v1beta1").unwrap();
    older["spec"]["concurrency"] = json!({ "replace": { "seconds": 4 } });
    let hub = versions().convert(older, "v1").unwrap();
    assert_eq!(hub["spec"]["concurrency"], json!({ "replace": { "grace": 4, "force": false } }));
}

#[test]
fn fields_that_no_type_knows_go_through_a_conversion() {
    let mut object = job();
    object["spec"]["future"] = json!({ "a": 1 });
    object["spec"]["ports"][1]["since"] = json!(7);
    object["status"] = json!({ "phase": "Ready" });
    let older = versions().convert(object.clone(), "v1beta1").unwrap();
    assert_eq!(older["spec"]["future"], json!({ "a": 1 }));
    assert_eq!(older["spec"]["ports"][1]["since"], 7);
    assert_eq!(older["status"]["phase"], "Ready");
    let back = versions().convert(older.clone(), "v1").unwrap();
    assert_eq!(plain(back), object);

    let mut changed = older;
    changed["spec"]["future"] = json!({ "a": 2 });
    changed["spec"]["ports"].as_array_mut().unwrap().remove(1);
    let hub = versions().convert(changed, "v1").unwrap();
    assert_eq!(hub["spec"]["future"], json!({ "a": 2 }), "a change wins");
    assert_eq!(hub["spec"]["ports"].as_array().unwrap().len(), 1);
}

#[test]
fn fields_that_no_type_knows_are_restored_after_an_api_server_pruned_them() {
    let mut object = job();
    object["spec"]["future"] = json!({ "a": 1 });
    object["spec"]["ports"][1]["since"] = json!(7);
    let mut older = versions().convert(object.clone(), "v1beta1").unwrap();
    older["spec"].as_object_mut().unwrap().remove("future");
    older["spec"]["ports"][1].as_object_mut().unwrap().remove("since");
    older["spec"]["deadline"] = json!(9);
    object["spec"]["startingDeadlineSeconds"] = json!(9);
    assert_eq!(versions().convert(older, "v1").unwrap(), object);
}

#[test]
fn a_field_that_only_the_other_version_knows_is_not_taken_for_it() {
    let mut object = job();
    object["spec"]["comment"] = json!(5);
    let older = versions().convert(object.clone(), "v1beta1").unwrap();
    assert_eq!(older["spec"].get("comment"), None, "the older version reads a text there");
    assert_eq!(versions().convert(older, "v1").unwrap(), object);
}

#[test]
fn nulls_and_defaults_that_nobody_wrote_are_in_no_version() {
    let mut object = job();
    let spec = object["spec"].as_object_mut().unwrap();
    spec.remove("nested");
    spec.remove("startingDeadlineSeconds");
    let older = versions().convert(object.clone(), "v1beta1").unwrap();
    let names: Vec<&String> = older["spec"].as_object().unwrap().keys().collect();
    for absent in ["nested", "retries", "tier", "comment", "deadline"] {
        assert!(!names.iter().any(|name| *name == absent), "{absent}: {names:?}");
    }
    assert_eq!(versions().convert(older, "v1").unwrap(), object);
    // One that was written stays.
    object["spec"]["retries"] = json!(0);
    object["spec"]["nested"] = json!(null);
    let older = versions().convert(object, "v1beta1").unwrap();
    assert_eq!(older["spec"]["retries"], 0);
    assert!(older["spec"].as_object().unwrap().contains_key("nested"));
}

#[test]
fn a_value_that_stays_the_same_keeps_its_spelling() {
    let mut object = job();
    object["spec"]["tier"] = json!("GOLD");
    let mut older = versions().convert(object.clone(), "v1beta1").unwrap();
    assert_eq!(older["spec"]["tier"], "GOLD");
    assert_eq!(versions().convert(older.clone(), "v1").unwrap(), object);
    older["spec"]["tier"] = json!("Silver");
    assert_eq!(versions().convert(older, "v1").unwrap()["spec"]["tier"], "Silver");
}

#[test]
fn an_object_that_has_no_equal_is_refused_with_its_field() {
    let refuse = |change: &dyn Fn(&mut Value), to: &str| {
        let mut object = job();
        change(&mut object);
        versions().convert(object, to).unwrap_err().to_string()
    };
    let wide =
        refuse(&|job| job["spec"]["ports"][1]["number"] = json!(5_000_000_000_i64), "v1beta1");
    assert!(wide.starts_with("spec.ports[1].number: out of range"), "{wide}");
    let unreadable = refuse(&|job| job["spec"]["replicas"] = json!("2"), "v1beta1");
    assert!(
        unreadable.contains("it cannot be read: ") && unreadable.contains("spec.replicas"),
        "{unreadable}"
    );
    assert_eq!(
        refuse(&|_| {}, "v3"),
        "Job has no version \"v3\"; its versions are [\"v1\", \"v1beta1\", \"v1alpha1\"]"
    );
    let of_another_kind = refuse(&|job| job["kind"] = json!("Task"), "v1beta1");
    assert_eq!(
        of_another_kind,
        "it is a \"Task\" of \"example.dev/v1\", and not a Job of example.dev"
    );
    let mut older = versions().convert(job(), "v1beta1").unwrap();
    older["spec"]["schedule"] = json!("never");
    let split = versions().convert(older, "v1").unwrap_err().to_string();
    assert_eq!(split, "spec: \"never\" has no ' '");
}

#[test]
fn more_than_an_annotation_may_keep_is_refused_and_not_lost() {
    let mut object = job();
    object["spec"]["timeZone"] = "x".repeat(MOST_KEPT).into();
    let error = versions().convert(object, "v1beta1").unwrap_err().to_string();
    assert!(error.contains("read it in another version"), "{error}");
}

#[test]
fn an_annotation_that_somebody_wrote_changes_no_identity() {
    let mut older = versions().convert(job(), "v1beta1").unwrap();
    let forged = |name: &str, value: Value| json!({ "p": [name], "k": [value] });
    let kept = [
        forged("metadata", json!({ "name": "evil" })),
        forged("kind", json!("Secret")),
        forged("apiVersion", json!("v1")),
    ];
    let text = json!({ "v1": { "of": 0, "kept": kept } }).to_string();
    older["metadata"]["annotations"][KEPT_FIELDS] = json!(text);
    let hub = versions().convert(older.clone(), "v1").unwrap();
    assert_eq!(hub["metadata"]["name"], older["metadata"]["name"]);
    assert_eq!((&hub["kind"], &hub["apiVersion"]), (&job()["kind"], &job()["apiVersion"]));
}

#[test]
fn an_annotation_of_many_places_takes_few_attempts_of_a_large_object() {
    let mut older = versions().convert(job(), "v1beta1").unwrap();
    let leaf = json!({ "p": ["spec", "suspend"], "k": [false] });
    let text = json!({ "v1": { "of": 0, "kept": vec![leaf; 3000] } }).to_string();
    older["metadata"]["annotations"][KEPT_FIELDS] = json!(text);
    older["metadata"]["labels"] = json!({});
    let hub = versions().convert(older, "v1").unwrap();
    assert_eq!(hub["spec"]["suspend"], true);
}

#[test]
fn a_spoilt_annotation_restores_nothing() {
    let mut older = versions().convert(job(), "v1beta1").unwrap();
    for text in ["{", "[1]", "{\"v1\":{\"of\":0,\"kept\":[{\"p\":[],\"k\":[1]}]}}"] {
        older["metadata"]["annotations"][KEPT_FIELDS] = json!(text);
        let hub = versions().convert(older.clone(), "v1").unwrap();
        assert_eq!(hub["spec"]["timeZone"], Value::Null, "{text}");
        assert_eq!(hub["spec"]["suspend"], true);
    }
}
