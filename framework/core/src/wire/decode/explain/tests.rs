use std::collections::BTreeMap;

use k8s_openapi::ByteString;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use serde::Deserialize;
use serde_json::json;

use super::*;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(dead_code, reason = "decoded only")]
struct Spec {
    mode: Mode,
    small: u8,
    #[serde(default)]
    names: BTreeMap<u32, String>,
    #[serde(default)]
    refused: Option<Even>,
    #[serde(default)]
    bytes: Vec<ByteString>,
}

#[derive(Debug, Deserialize)]
enum Mode {
    Open,
    Shut,
    #[expect(dead_code, reason = "decoded only")]
    Ajar(u8),
}

#[derive(Debug, Deserialize)]
#[serde(try_from = "String")]
struct Even;

impl TryFrom<String> for Even {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        Err(format!("{text} has no even number of letters"))
    }
}

#[derive(Debug, Deserialize)]
#[expect(dead_code, reason = "decoded only")]
struct Object {
    spec: Spec,
}

fn why<T: DeserializeOwned + fmt::Debug>(value: &Value) -> String {
    let text = value.to_string();
    let error = serde_json::from_str::<T>(&text).expect_err("it does not decode");
    let told = Undecodable::explain::<T>(text.as_bytes(), &error);
    let by_value = serde_json::from_value::<T>(value.clone()).expect_err("it does not decode");
    let by_value = Undecodable::explain_value::<T>(value, &by_value);
    assert_eq!(told.to_string(), by_value.to_string());
    for shown in [told.to_string(), format!("{told:?}"), Undecodable::of(&error).to_string()] {
        assert!(!shown.contains("CANARY"), "{shown}");
    }
    told.to_string()
}

#[test]
fn errors_name_path_and_types_and_no_value() {
    let spec = |spec: Value| {
        let mut whole = json!({"mode": "Open", "small": 1});
        whole.as_object_mut().unwrap().extend(spec.as_object().unwrap().clone());
        why::<Object>(&json!({ "spec": whole }))
    };
    let modes = "unknown variant, expected one of `Open`, `Shut`, `Ajar`";
    for (member, wanted) in [
        (json!({"small": "CANARY"}), ".spec.small: invalid type: string, expected u8"),
        (json!({"small": 4711}), ".spec.small: invalid value: integer, expected u8"),
        (json!({"small": null}), ".spec.small: invalid type: null, expected u8"),
        (json!({"mode": "CANARY"}), &format!(".spec.mode: {modes}")),
        (json!({"mode": {"CANARY": 1}}), &format!(".spec.mode: {modes}")),
        (json!({"mode": {"Ajar": "CANARY"}}), ".spec.mode.Ajar: invalid type: string, expected u8"),
        (json!({"names": {"CANARY": "a"}}), ".spec.names.*: invalid type: string, expected u32"),
        (
            json!({"names": {"7": ["CANARY"]}}),
            ".spec.names.*: invalid type: array, expected a string",
        ),
        (json!({"refused": "CANARY"}), ".spec.refused: a value that its type refuses"),
        (
            json!({"CANARY": 7}),
            ".spec: unknown field, expected one of `mode`, `small`, `names`, `refused`, `bytes`",
        ),
    ] {
        assert_eq!(spec(member), wanted);
    }
    let base64 = spec(json!({"bytes": ["aaaa", "CANARY!"]}));
    assert!(base64.starts_with(".spec.bytes[1]: "), "{base64}");
    assert_eq!(why::<Object>(&json!({"spec": {"mode": "Shut"}})), ".spec: missing field `small`");
    assert_eq!(why::<Object>(&json!({})), "missing field `spec`");
    assert_eq!(why::<Object>(&json!("CANARY")), "invalid type: string, expected struct Object");
}

#[test]
fn the_types_of_kubernetes_are_explained_as_well() {
    let secret = why::<Secret>(&json!({"metadata": {}, "data": {"CANARY": "CANARY"}}));
    assert!(secret.starts_with(".data.*: "), "{secret}");
    let map = why::<ConfigMap>(&json!({"metadata": {"labels": {"CANARY": 7}}}));
    assert_eq!(map, ".metadata.labels.*: invalid type: integer, expected a string");
    let lease = why::<Lease>(&json!({"metadata": {}, "spec": {"renewTime": "CANARY"}}));
    assert!(lease.starts_with(".spec.renewTime: "), "{lease}");
}

#[test]
fn invalid_json_is_reported_by_its_position() {
    let bytes = br#"{"spec": CANARY}"#;
    let error = serde_json::from_slice::<Object>(bytes).expect_err("it is not JSON");
    let told = Undecodable::explain::<Object>(bytes, &error).to_string();
    assert_eq!(told, "expected value at line 1 column 10");
}

/// A map that has a name twice has the name once in the second attempt.
#[test]
fn errors_that_the_second_try_does_not_meet_are_reported_by_their_position() {
    let bytes = br#"{"spec": {"mode": "Open", "mode": "Open", "small": 1}}"#;
    let error = serde_json::from_slice::<Object>(bytes).expect_err("a field is there twice");
    let told = Undecodable::explain::<Object>(bytes, &error).to_string();
    assert!(told.starts_with("a value at line 1, column "), "{told}");
}

#[test]
fn a_member_that_is_missing_is_missing_in_the_object_and_not_in_its_last_member() {
    #[derive(Debug, Deserialize)]
    #[expect(dead_code, reason = "decoded only")]
    struct Spec {
        containers: Vec<Container>,
        pair: Option<(u8, u8)>,
    }
    #[derive(Debug, Deserialize)]
    #[expect(dead_code, reason = "decoded only")]
    struct Container {
        name: String,
        size: Option<u8>,
    }
    for (value, path) in [
        (json!({"containers": [{"name": "a"}, {"image": "i"}]}), ".containers[1]: missing"),
        (json!({"containers": [{}]}), ".containers[0]: missing"),
        (json!({"other": [1]}), "missing"),
        (json!({"containers": [{"name": "a", "size": 300}]}), ".containers[0].size: invalid"),
        (json!({"containers": [{"name": 7}]}), ".containers[0].name: invalid"),
        (json!({"containers": [], "pair": [1]}), ".pair: invalid length"),
        (json!({"containers": [], "pair": [1, true]}), ".pair[1]: invalid"),
        (json!({"containers": {}}), ".containers: invalid"),
    ] {
        let told = why::<Spec>(&value);
        assert!(told.starts_with(path), "{value}: {told}");
    }
}
