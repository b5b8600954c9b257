use serde_json::{Value, json};

use super::support::*;
use crate::http::test_support::*;

/// Returns the recorded cases of a text.
fn cases(text: &str) -> impl Iterator<Item = Value> {
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    lines.map(|line| serde_json::from_str(line).unwrap())
}

#[tokio::test(start_paused = true)]
async fn configurations_are_checked_as_upstream_does() {
    let (_server, mut client) = start().await;
    for case in cases(include_str!("configurations.txt")) {
        let field = case[0].as_str().unwrap();
        let mut webhook = hook("h", json!({}));
        webhook[field] = case[1].clone();
        if case[1].is_null() {
            webhook.as_object_mut().unwrap().remove(field);
        }
        for (url, kind) in [
            (VALIDATING, "ValidatingWebhookConfiguration"),
            (MUTATING, "MutatingWebhookConfiguration"),
        ] {
            // A policy that only mutating webhooks have.
            if field == "reinvocationPolicy" && url == VALIDATING {
                continue;
            }
            let body = json!({"metadata": {"name": "c"}, "webhooks": [webhook]});
            let reply = client.post(url, body).await;
            let faults = case[2].as_str().unwrap();
            let text = format!("{kind}.admissionregistration.k8s.io \"c\" is invalid: {faults}");
            assert_eq!((reply.code, reply.message()), (422, &*text));
        }
    }
}

#[tokio::test(start_paused = true)]
async fn webhooks_of_a_configuration_have_different_names() {
    let (_server, mut client) = start().await;
    let twice = [hook("h", json!({})), hook("h", json!({}))];
    let reply = client.post(MUTATING, json!({"metadata": {"name": "c"}, "webhooks": twice})).await;
    assert_eq!(
        reply.message(),
        "MutatingWebhookConfiguration.admissionregistration.k8s.io \"c\" is invalid: webhooks[1].name: Duplicate value: \"h.example.com\""
    );
}

#[tokio::test(start_paused = true)]
async fn defaults_of_webhooks_are_stored() {
    let (_server, mut client) = start().await;
    configure(&mut client, MUTATING, "c", &[hook("h", json!({}))]).await;
    let held = client.get(&format!("{MUTATING}/c")).await;
    let webhook = &held.value["webhooks"][0];
    let defaults = json!({"failurePolicy": "Fail", "matchPolicy": "Equivalent", "timeoutSeconds": 10,
        "reinvocationPolicy": "Never", "namespaceSelector": {}, "objectSelector": {}});
    for (field, value) in defaults.as_object().unwrap() {
        assert_eq!(&webhook[field], value, "{field}");
    }
    assert_eq!(webhook["rules"][0]["scope"], "*");
}

#[tokio::test(start_paused = true)]
async fn conversions_of_definitions_are_checked_as_upstream_does() {
    for case in cases(include_str!("conversions.txt")) {
        let (_server, mut client) = start().await;
        let mut definition = widgets();
        definition["spec"]["conversion"] = case[0].clone();
        let reply = client.post(CRDS, definition).await;
        let Some(faults) = case[1].as_str() else {
            assert_eq!(reply.code, 201, "{}", reply.text);
            continue;
        };
        let text = format!(
            "CustomResourceDefinition.apiextensions.k8s.io \"widgets.g.io\" is invalid: {faults}"
        );
        assert_eq!((reply.code, reply.message()), (422, &*text));
    }
}
