//! Unusual things that a derive says about a kind, as a server serves them.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use windlass::ErrorKind;
use windlass::api::Patch;
use windlass::prelude::*;
use windlass::resource::{ApiTime, DynamicObject, ResourceInfo};
use windlass::testing::{TestCluster, check, try_check};

const GROUP: &str = "derived.windlass.dev";

/// A ship.
///
/// - one mast
/// - two masts
///
/// ```yaml
/// spec:
///   rig: Sloop
/// ```
#[derive(CustomResource, Clone, Debug)]
#[resource(group = GROUP, version = concat!("v", "1"), namespaced)]
#[resource(column("Object", ".kind"), column("Version", ".apiVersion"), column(spec.tons))]
struct Ship {
    metadata: ObjectMeta,
    spec: ShipSpec,
}

#[derive(Clone, Debug, Serialize, Deserialize, Schema)]
struct ShipSpec {
    /// Sails:
    ///
    /// 1. main
    /// 2. jib
    rig: Option<Rig>,
    #[serde(default)]
    tons: u64,
}

#[derive(Clone, Debug, Serialize, Deserialize, Schema)]
enum Rig {
    Sloop,
    Ketch,
}

/// Returns the schema of ships in the server's OpenAPI document, which `kubectl explain` reads.
async fn explained(cluster: &TestCluster) -> Value {
    let client = cluster.client();
    let clock = client.environment().clock.clone();
    let read = async {
        loop {
            let path = ["openapi", "v3", "apis", GROUP, "v1"];
            let answer = client.get().abs_path(path).send().await;
            // A server publishes the document a moment after the definition is served.
            if let Ok(answer) = answer {
                let document: Value = answer.json().unwrap();
                let schemas = document["components"]["schemas"].as_object().unwrap();
                let found = schemas.iter().find(|(name, _)| name.ends_with(".Ship"));
                if let Some((_, schema)) = found {
                    return schema.clone();
                }
            }
            clock.sleep(std::time::Duration::from_millis(100)).await;
        }
    };
    let found = clock.timeout(std::time::Duration::from_secs(60), read).await;
    found.expect("the schema of ships")
}

#[tokio::test]
async fn values_of_an_optional_enum_and_lines_of_descriptions_are_explained() {
    let cluster = TestCluster::start().await;
    cluster.install::<Ship>().await;
    let schema = explained(&cluster).await;
    let text = "A ship.\n\n- one mast\n- two masts\n\n```yaml\nspec:\n  rig: Sloop\n```";
    assert_eq!(schema["description"], text);
    let rig = &schema["properties"]["spec"]["properties"]["rig"];
    assert_eq!(rig["description"], "Sails:\n\n1. main\n2. jib");
    // With `allOf` around the values kubectl shows `<Object>`.
    assert_eq!(rig["type"], "string", "{rig}");
    assert_eq!(rig["anyOf"], json!([{ "enum": ["Sloop", "Ketch"] }]), "{rig}");
}

#[tokio::test]
async fn an_optional_enum_takes_null_by_every_verb_and_no_other_value() {
    let cluster = TestCluster::start().await;
    cluster.install::<Ship>().await;
    let ships = cluster.client().namespace::<Ship>(cluster.namespace());
    let spec = ShipSpec { rig: Some(Rig::Ketch), tons: 0 };
    ships.create(&Ship::new("argo", spec)).await.unwrap();
    let with = |rig: Value| json!({ "spec": { "rig": rig } });
    let mut applied = with(Value::Null);
    applied["apiVersion"] = json!("derived.windlass.dev/v1");
    applied["kind"] = json!("Ship");
    ships.patch("argo", Patch::Apply(applied)).force().await.unwrap();
    let error = ships.patch("argo", Patch::Merge(with(json!("Yawl")))).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Invalid, "{error}");
    ships.patch("argo", Patch::Merge(with(json!("Sloop")))).await.unwrap();
    let mut ship = ships.get("argo").await.unwrap();
    ship.spec.rig = None;
    let ship = ships.replace(&ship).await.unwrap();
    assert!(ship.spec.rig.is_none());
}

#[tokio::test]
async fn a_number_beyond_those_that_a_server_keeps_is_refused() {
    let cluster = TestCluster::start().await;
    cluster.install::<Ship>().await;
    let ship = |tons: u64| -> DynamicObject {
        let object = json!({
            "apiVersion": "derived.windlass.dev/v1",
            "kind": "Ship",
            "metadata": { "name": "argo" },
            "spec": { "tons": tons },
        });
        serde_json::from_value(object).unwrap()
    };
    let resource = ResourceInfo::of::<Ship>();
    let api = cluster.client().dynamic(resource, Some(cluster.namespace()));
    let error = api.create(&ship(u64::MAX)).await.unwrap_err();
    assert!(error.to_string().contains("spec.tons"), "{error}");
    api.create(&ship(9_223_372_036_854_774_784)).await.unwrap();
    let ships = cluster.client().namespace::<Ship>(cluster.namespace());
    assert_eq!(ships.get("argo").await.unwrap().spec.tons, 9_223_372_036_854_774_784);
}

#[tokio::test]
async fn columns_show_the_kind_and_its_version() {
    let cluster = TestCluster::start().await;
    cluster.install::<Ship>().await;
    let client = cluster.client();
    let ships = client.namespace::<Ship>(cluster.namespace());
    ships.create(&Ship::new("argo", ShipSpec { rig: None, tons: 7 })).await.unwrap();
    let path = ["apis", GROUP, "v1", "namespaces", cluster.namespace(), "ships"];
    let table = "application/json;as=Table;v=v1;g=meta.k8s.io";
    let table: Value =
        client.get().abs_path(path).accept(table).send().await.unwrap().json().unwrap();
    let expected = json!(["argo", "Ship", "derived.windlass.dev/v1", 7]);
    assert_eq!(table["rows"][0]["cells"], expected, "{table}");
}

#[derive(CustomResource, Clone, Debug)]
#[resource(group = "derived.windlass.dev", version = "v1", namespaced)]
#[resource(column(spec.hull), column(spec.decks), column("Crates", spec.hold[].name))]
#[resource(column("First", spec.hold[0].name), column(spec.labels))]
#[resource(column(spec.flag), column(spec.pilot))]
struct Barge {
    metadata: ObjectMeta,
    spec: BargeSpec,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize, Schema)]
struct BargeSpec {
    hull: Option<Hull>,
    #[serde(default)]
    decks: Vec<String>,
    #[serde(default)]
    hold: Vec<Crate>,
    labels: Option<BTreeMap<String, String>>,
    flag: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pilot: Option<String>,
}

#[derive(Clone, Debug, Serialize, Deserialize, Schema)]
struct Hull {
    length: i32,
    steel: bool,
}

#[derive(Clone, Debug, Serialize, Deserialize, Schema)]
struct Crate {
    name: String,
}

#[tokio::test]
async fn columns_show_json_of_structs_lists_and_maps_the_first_element_and_a_stored_null() {
    let cluster = TestCluster::start().await;
    cluster.install::<Barge>().await;
    let client = cluster.client();
    let barges = client.namespace::<Barge>(cluster.namespace());
    let hold = ["tea", "rice"].map(|name| Crate { name: name.to_owned() });
    let spec = BargeSpec {
        hull: Some(Hull { length: 7, steel: true }),
        decks: vec!["upper".to_owned(), "lower".to_owned()],
        hold: hold.to_vec(),
        labels: Some(BTreeMap::from([("port".to_owned(), "Ulm".to_owned())])),
        flag: None,
        pilot: None,
    };
    barges.create(&Barge::new("a", spec)).await.unwrap();
    let path = ["apis", GROUP, "v1", "namespaces", cluster.namespace(), "barges"];
    let table = "application/json;as=Table;v=v1;g=meta.k8s.io";
    let table: Value =
        client.get().abs_path(path).accept(table).send().await.unwrap().json().unwrap();
    let types = table["columnDefinitions"].as_array().unwrap().iter().map(|it| &it["type"]);
    assert!(types.clone().all(|it| it == "string"), "{table}");
    let (hull, decks) = (r#"{"length":7,"steel":true}"#, r#"["upper","lower"]"#);
    let expected = json!(["a", hull, decks, "tea", "tea", r#"{"port":"Ulm"}"#, "<no value>", null]);
    assert_eq!(table["rows"][0]["cells"], expected, "{table}");
}

#[derive(CustomResource, Clone, Debug)]
#[resource(group = "derived.windlass.dev", version = "v1", namespaced)]
struct Crane {
    metadata: ObjectMeta,
    spec: CraneSpec,
}

#[derive(Clone, Debug, Serialize, Deserialize, Schema)]
struct CraneSpec {
    #[schema(with = String)]
    load: i32,
}

#[derive(CustomResource, Clone, Debug)]
#[resource(group = "derived.windlass.dev", version = "v1", namespaced)]
struct Derrick {
    metadata: ObjectMeta,
    spec: DerrickSpec,
}

#[derive(Clone, Debug, Serialize, Deserialize, Schema)]
struct DerrickSpec {
    booms: Vec<Boom>,
}

#[derive(Clone, Debug, Serialize, Deserialize, Schema)]
struct Boom {
    #[schema(with = i32)]
    reach: Option<String>,
}

#[tokio::test]
async fn the_check_finds_a_schema_that_is_borrowed_from_a_type_with_other_values() {
    for (error, place) in [
        (try_check::<Crane>().await.unwrap_err(), "spec.load"),
        (try_check::<Derrick>().await.unwrap_err(), "spec.booms[0].reach"),
    ] {
        let error = error.to_string();
        assert!(error.contains("and serde refuses it") && error.contains(place), "{error}");
    }
}

#[derive(CustomResource, Clone, Debug)]
#[resource(group = "derived.windlass.dev", version = "v1", namespaced)]
struct Voyage {
    metadata: ObjectMeta,
    spec: VoyageSpec,
    status: Option<VoyageStatus>,
}

#[derive(Clone, Debug, Serialize, Deserialize, Schema)]
struct VoyageSpec {
    #[schema(length(max = 9))]
    port: String,
}

/// The fields of a certificate's status, for whose generated values a list once came to stand at a
/// time.
#[derive(Clone, Debug, Default, Serialize, Deserialize, Schema)]
#[serde(rename_all = "camelCase")]
struct VoyageStatus {
    #[schema(list(map, keys(r#type)))]
    conditions: Option<Vec<VoyageCondition>>,
    failed_issuance_attempts: Option<i64>,
    last_failure_time: Option<ApiTime>,
    next_private_key_secret_name: Option<String>,
    not_after: Option<ApiTime>,
    not_before: Option<ApiTime>,
    renewal_time: Option<ApiTime>,
    revision: Option<i64>,
}

#[derive(Clone, Debug, Serialize, Deserialize, Schema)]
#[serde(rename_all = "camelCase")]
struct VoyageCondition {
    last_transition_time: Option<ApiTime>,
    message: Option<String>,
    observed_generation: Option<i64>,
    reason: Option<String>,
    status: VoyageConditionStatus,
    r#type: String,
}

#[derive(Clone, Debug, Serialize, Deserialize, Schema)]
enum VoyageConditionStatus {
    True,
    False,
    Unknown,
}

#[tokio::test]
async fn times_of_a_status_agree_with_its_schema() {
    let report = check::<Voyage>().await;
    assert!(report.tried_status().1 > 20, "{report}");
}
