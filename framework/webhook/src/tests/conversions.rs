//! Reviews of conversions.

use bytes::Bytes;
use http::Request;
use serde_json::{Value, json};
use windlass_core::environment::Environment;

use super::versions::v1;
use crate::{AdmissionHandler, Webhooks};

const PATH: &str = "/convert-example-dev-parcel";

fn handler() -> AdmissionHandler {
    Webhooks::new().converting::<v1::Parcel>().build(&Environment::system()).unwrap()
}

fn parcel(version: &str, name: &str, spec: Value) -> Value {
    json!({
        "apiVersion": format!("example.dev/{version}"), "kind": "Parcel",
        "metadata": { "name": name, "namespace": "shop" }, "spec": spec,
    })
}

fn review(desired: &str, objects: &[Value]) -> Value {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "ConversionReview",
        "request": { "uid": "7", "desiredAPIVersion": desired, "objects": objects },
    })
}

/// Asks the handler; returns the status of HTTP and the body.
async fn ask(review: &Value) -> (u16, Value) {
    let request = Request::post(PATH).header("content-type", "application/json");
    let request = request.body(Bytes::from(review.to_string())).unwrap();
    let answer = handler().handle(request).await;
    (answer.status().as_u16(), serde_json::from_slice(answer.body()).unwrap())
}

async fn result(review: &Value) -> Value {
    let (code, answer) = ask(review).await;
    assert_eq!(code, 200, "{answer}");
    assert_eq!(answer["kind"], "ConversionReview");
    assert_eq!(answer["response"]["uid"], "7");
    answer["response"].clone()
}

#[tokio::test]
async fn a_list_of_several_versions_is_converted_to_one() {
    let objects = [
        parcel("v1", "a", json!({ "grams": 5, "fragile": true })),
        parcel("v1beta1", "b", json!({ "weight": 6 })),
    ];
    let response = result(&review("example.dev/v1beta1", &objects)).await;
    assert_eq!(response["result"], json!({ "status": "Success" }));
    let converted = response["convertedObjects"].as_array().unwrap();
    assert_eq!(converted[0]["spec"], json!({ "weight": 5 }));
    assert_eq!(converted[1], objects[1]);
    let back = result(&review("example.dev/v1", converted)).await;
    assert_eq!(back["convertedObjects"][0], objects[0]);
    assert_eq!(back["convertedObjects"][1]["spec"], json!({ "grams": 6, "fragile": false }));
}

#[tokio::test]
async fn an_object_without_an_equal_fails_its_review_with_its_name_and_field() {
    let objects = [
        parcel("v1", "a", json!({ "grams": 5, "fragile": true })),
        parcel("v1", "b", json!({ "grams": 5_000_000_000_i64, "fragile": true })),
    ];
    let response = result(&review("example.dev/v1beta1", &objects)).await;
    let (failed, objects) = (&response["result"], &response["convertedObjects"]);
    assert_eq!((&failed["status"], &failed["code"]), (&json!("Failure"), &json!(422)));
    let text = failed["message"].as_str().unwrap();
    assert!(
        text.starts_with("cannot convert Parcel \"shop/b\" to v1beta1: spec.weight: "),
        "{text}"
    );
    assert_eq!(objects, &json!([]));
}

#[tokio::test]
async fn an_answer_longer_than_its_request_is_whole() {
    let objects: Vec<Value> = (100..2100)
        .map(|at| parcel("v1", &format!("p{at}"), json!({ "grams": at, "fragile": true })))
        .collect();
    let response = result(&review("example.dev/v1beta1", &objects)).await;
    let converted = response["convertedObjects"].as_array().unwrap();
    assert_eq!(converted.len(), objects.len());
    assert_eq!(
        (&converted[1999]["spec"], &converted[7]["metadata"]["name"]),
        (&json!({ "weight": 2099 }), &json!("p107"))
    );
    let back = result(&review("example.dev/v1", converted)).await;
    assert_eq!(back["convertedObjects"], json!(objects));
    assert_eq!(result(&review("example.dev/v1", &[])).await["convertedObjects"], json!([]));
}

#[tokio::test]
async fn an_object_that_would_take_much_memory_fails_its_review() {
    let mut wide = parcel("v1", "wide", json!({ "grams": 5, "fragile": true }));
    wide["spec"]["more"] = json!(vec![0; 250_000]);
    let mut long = parcel("v1", "long", json!({ "grams": 5, "fragile": true }));
    long["spec"]["more"] = json!("x".repeat(4 << 20));
    for object in [wide, long] {
        let response = result(&review("example.dev/v1beta1", &[object])).await;
        let text = response["result"]["message"].as_str().unwrap();
        assert!(text.contains("at most 3670016 and 250000 are converted"), "{text}");
    }
    // Commas in a text are no values.
    let mut text = parcel("v1", "text", json!({ "grams": 5, "fragile": true }));
    text["metadata"]["annotations"] = json!({ "note": "\\\",[{".repeat(100_000) });
    let response = result(&review("example.dev/v1beta1", &[text])).await;
    assert_eq!(response["result"]["status"], "Success", "{}", response["result"]);
}

/// `WINDLASS_MEMORY=5` gives the MiB of a review; 23 by default, the most that is read:
/// `cargo test -p windlass-webhook --release memory_of -- --ignored --nocapture`.
#[tokio::test]
#[ignore = "measures the memory of its process: to be run alone, and optimized"]
async fn the_memory_of_a_long_conversion_is_bounded() {
    let size =
        std::env::var("WINDLASS_MEMORY").map_or(23, |size| size.parse::<usize>().unwrap()) << 20;
    let peak = || {
        let status = std::fs::read_to_string("/proc/self/status").unwrap();
        let line = status.lines().find(|line| line.starts_with("VmHWM")).unwrap();
        line.split_whitespace().nth(1).unwrap().parse::<usize>().unwrap() / 1024
    };
    for (what, more) in [("small", json!("x".repeat(100))), ("large", json!(vec![7; 200_000]))] {
        let mut object = parcel("v1", "a", json!({ "grams": 20, "fragile": true }));
        object["spec"]["more"] = more;
        let object = object.to_string();
        let objects = vec![object.as_str(); size / (object.len() + 1)].join(",");
        let body = format!(
            r#"{{"apiVersion":"apiextensions.k8s.io/v1","kind":"ConversionReview","request":{{"uid":"7","desiredAPIVersion":"example.dev/v1beta1","objects":[{objects}]}}}}"#
        );
        drop(objects);
        let request = Request::post(format!("{PATH}?timeout=30s"));
        let request = request.header("content-type", "application/json");
        let body = Bytes::from(body);
        let length = body.len() >> 20;
        std::fs::write("/proc/self/clear_refs", "5").unwrap();
        let before = peak();
        let answer = handler().handle(request.body(body).unwrap()).await;
        assert_eq!(answer.status().as_u16(), 200);
        let (more, answered) = (peak() - before, answer.body().len() >> 20);
        eprintln!(
            "{what}: {length} MiB of JSON, {answered} MiB of answer, {more} MiB beside the body"
        );
        assert!(more < 256, "{more} MiB");
    }
}

#[tokio::test]
async fn other_versions_groups_and_kinds_fail_their_review() {
    let object = parcel("v1", "a", json!({ "grams": 5, "fragile": true }));
    let mut crate_of_another_kind = object.clone();
    crate_of_another_kind["kind"] = json!("Crate");
    let unknown = parcel("v0", "a", json!({}));
    for (desired, object, text) in [
        ("example.dev/v3", &object, "Parcel has no version \"v3\""),
        ("v1", &object, "cannot convert to \"v1\": Parcel is of example.dev"),
        ("example.dev/v1beta1", &crate_of_another_kind, "it is a \"Crate\""),
        ("example.dev/v1beta1", &unknown, "Parcel has no version \"v0\""),
        ("example.dev/v1beta1", &json!(1), "it is no object"),
    ] {
        let response = result(&review(desired, std::slice::from_ref(object))).await;
        let message = response["result"]["message"].as_str().unwrap();
        assert!(message.contains(text), "{desired}: {message}");
    }
}

#[tokio::test]
async fn a_review_that_cannot_be_read_is_no_review() {
    let mut of_admission = review("example.dev/v1", &[]);
    of_admission["kind"] = json!("AdmissionReview");
    let mut without_uid = review("example.dev/v1", &[]);
    without_uid["request"]["uid"] = json!("");
    for (review, text) in [
        (json!({}), "and not ConversionReview"),
        (of_admission, "and not ConversionReview"),
        (without_uid, "has no uid"),
        (
            json!({ "apiVersion": "apiextensions.k8s.io/v1", "kind": "ConversionReview" }),
            "no request",
        ),
        (
            json!({
                "apiVersion": "apiextensions.k8s.io/v1",
                "kind": "ConversionReview",
                "request": "CANARY",
            }),
            "cannot read the body as ConversionReview of apiextensions.k8s.io/v1: line 1",
        ),
        (
            json!({
                "apiVersion": "apiextensions.k8s.io/v1",
                "kind": "ConversionReview",
                "request": { "uid": { "CANARY": 1 } },
            }),
            "line 1",
        ),
    ] {
        let (code, answer) = ask(&review).await;
        assert_eq!(code, 400);
        assert!(!answer.to_string().contains("CANARY"), "{answer}");
        assert!(answer["message"].as_str().unwrap().contains(text), "{answer}");
    }
}

#[tokio::test]
async fn a_review_with_a_longer_name_than_api_servers_send_is_refused_without_it() {
    for field in ["/request/uid", "/request/desiredAPIVersion"] {
        for (length, wanted) in [(1024, 200), (1025, 400), (1 << 20, 400)] {
            let mut asked = review("example.dev/v1", &[]);
            *asked.pointer_mut(field).unwrap() = json!("n".repeat(length));
            let (code, answer) = ask(&asked).await;
            assert_eq!(code, wanted, "{field}, {length} bytes");
            assert!(answer.to_string().len() < 2048, "{field}, {length} bytes");
        }
    }
    for field in ["/kind", "/apiVersion"] {
        let mut asked = review("example.dev/v1", &[]);
        *asked.pointer_mut(field).unwrap() = json!("n".repeat(1 << 20));
        let (code, answer) = ask(&asked).await;
        assert_eq!(code, 400);
        assert!(answer.to_string().len() < 2048, "{field}");
    }
}

#[tokio::test]
async fn a_panic_of_a_conversion_is_500_and_tells_no_value() {
    let object = parcel("v1beta1", "a", json!({ "weight": 13 }));
    let (code, answer) = ask(&review("example.dev/v1", &[object])).await;
    assert_eq!(code, 500);
    assert!(!answer.to_string().contains("13"), "{answer}");
}

#[tokio::test(start_paused = true)]
async fn a_review_that_takes_too_long_is_504() {
    let clock = windlass_core::clock::Clock::system();
    let object = parcel("v1", "a", json!({ "grams": 5, "fragile": true }));
    let body = Bytes::from(review("example.dev/v1beta1", &[object]).to_string());
    let request = Request::post(format!("{PATH}?timeout=1s"));
    let request = request.header("content-type", "application/json").body(()).unwrap();
    let (parts, ()) = request.into_parts();
    // The time for the body counts.
    let read = async |_, _| {
        clock.sleep(std::time::Duration::from_millis(900)).await;
        Ok((body.clone(), ()))
    };
    let answer = handler().handle_read(&parts, read).await;
    assert_eq!(answer.status().as_u16(), 504);
}

#[test]
fn a_kind_with_one_version_is_refused() {
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
    use windlass_runtime::{CustomResource, Schema};

    #[derive(CustomResource, Clone, Debug)]
    #[resource(group = "example.dev", version = "v1", namespaced, crate = windlass_runtime)]
    struct Letter {
        metadata: ObjectMeta,
        spec: LetterSpec,
    }

    #[derive(Clone, Debug, serde::Serialize, serde::Deserialize, Schema)]
    #[schema(crate = windlass_runtime)]
    struct LetterSpec {
        text: String,
    }

    let letter = Letter::new("a", LetterSpec { text: String::new() });
    assert_eq!(letter.spec.text, "");
    let webhooks = Webhooks::new().converting::<Letter>();
    let error = webhooks.build(&Environment::system()).unwrap_err();
    assert!(error.to_string().contains("the kind has one version"), "{error}");
}
