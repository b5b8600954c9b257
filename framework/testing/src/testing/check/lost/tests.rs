//! Kinds that lose fields, and kinds whose fields are lost rightly.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::num::NonZeroU16;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::super::try_check;
use super::{FieldObservations, RenameEvidence, moved, shown};

macro_rules! kind {
    ($kind:ident, $plural:literal, $spec:ident) => {
        #[derive(windlass_macros::CustomResource, Clone, Debug)]
        #[resource(group = "check.windlass.dev", version = "v1", namespaced, plural = $plural)]
        struct $kind {
            metadata: ObjectMeta,
            spec: $spec,
        }
    };
}

mod converted;

/// Asserts that the check of a kind reports a field.
async fn loses<K: windlass_core::crd::CustomResource>(place: &str) {
    let error = try_check::<K>().await.expect_err(place).to_string();
    assert!(error.contains(&format!("serde never writes `{place}`: ")), "{error}");
}

/// Asserts that the check of a kind reports nothing.
async fn keeps<K: windlass_core::crd::CustomResource>() {
    try_check::<K>().await.expect("a kind that keeps its fields");
}

// In this order `Sized` takes every value of `Named`.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
enum Choice {
    Sized {
        #[serde(default)]
        size: i32,
    },
    Named {
        name: String,
    },
}

#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
struct ChoiceSpec {
    choices: Vec<Choice>,
}

kind!(Chosen, "chosens", ChoiceSpec);

#[derive(Clone, Debug, Serialize, Deserialize, windlass_macros::Schema)]
#[serde(untagged)]
enum Target {
    Address { host: Option<String>, port: Option<u16> },
    Named { name: String, port: Option<u16> },
}

#[derive(Clone, Debug, Serialize, Deserialize, windlass_macros::Schema)]
struct TargetSpec {
    targets: BTreeMap<String, Target>,
}

kind!(Targeted, "targeteds", TargetSpec);

#[tokio::test]
async fn a_field_of_a_variant_that_is_never_taken_is_an_error_with_its_place() {
    loses::<Chosen>(".spec.choices[].name").await;
    loses::<Targeted>(".spec.targets.*.name").await;
}

#[derive(windlass_macros::CustomResource, Clone, Debug)]
#[resource(group = "check.windlass.dev", version = "v1", namespaced, plural = "writtens")]
struct Written {
    metadata: ObjectMeta,
    spec: ApartSpec,
    status: Option<WrittenStatus>,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
struct WrittenStatus {
    #[serde(default, skip_serializing)]
    #[allow(dead_code, reason = "read by serde")]
    seen: Option<String>,
    #[serde(default)]
    count: i32,
}

#[tokio::test]
async fn a_field_of_a_status_that_is_never_written_is_an_error_with_its_place() {
    loses::<Written>(".seen").await;
}

#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
enum Apart {
    Named { name: String, port: Option<u16> },
    Sized { size: i32, unit: Option<String> },
}

#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
struct ApartSpec {
    apart: Option<Apart>,
}

kind!(Disjoint, "disjoints", ApartSpec);

/// Needs all of its fields; otherwise all of them are lost.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
struct Login {
    user: String,
    password: String,
    realm: String,
    host: String,
    port: u16,
    path: String,
    query: String,
    token: String,
}

#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "camelCase")]
enum Tagged {
    One { one: i32 },
    Two { two: i32 },
    Three { three: i32 },
    Four { four: i32 },
    Five { five: i32, deep: Option<Box<Deep>> },
}

#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
struct Deep {
    items: Vec<Apart>,
}

/// Hardly any value fits all the fields of a variant, and the whole is optional.
#[derive(Clone, Debug, Serialize, Deserialize, windlass_macros::Schema)]
#[serde(tag = "kind")]
enum Strict {
    Address { address: Net, gateway: Net, port: NonZeroU16, size: Net },
    Name { name: NonZeroU16, address: String, size: bool, port: Vec<String> },
}

#[derive(Clone, Debug, Serialize, Deserialize, windlass_macros::Schema)]
struct Net {
    first: IpAddr,
    last: IpAddr,
    mask: NonZeroU16,
}

#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
struct RareSpec {
    #[serde(flatten)]
    login: Option<Login>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    is_rare: bool,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    hosts: Vec<String>,
    tagged: Option<Tagged>,
}

#[derive(Clone, Debug, Serialize, Deserialize, windlass_macros::Schema)]
struct StrictSpec {
    #[serde(flatten)]
    strict: Option<Strict>,
}

kind!(Strictly, "strictlies", StrictSpec);

kind!(Rarely, "rarelies", RareSpec);

#[derive(Clone, Debug, Serialize, Deserialize, windlass_macros::Schema)]
struct OtherSpec {
    #[serde(default, alias = "of")]
    other: i32,
    #[serde(alias = "labels")]
    tags: Option<BTreeMap<String, String>>,
}

kind!(Renamed, "renameds", OtherSpec);

/// Both forms are read, and the new one is written.
#[derive(Clone, Debug, Serialize, Deserialize, windlass_macros::Schema)]
#[serde(from = "Forms")]
struct Hosts {
    hosts: Vec<String>,
}

#[derive(Clone, Debug, Serialize, Deserialize, windlass_macros::Schema)]
#[serde(untagged)]
enum Forms {
    New { hosts: Vec<String> },
    Former { host: String },
}

impl From<Forms> for Hosts {
    fn from(forms: Forms) -> Self {
        match forms {
            Forms::New { hosts } => Self { hosts },
            Forms::Former { host } => Self { hosts: vec![host] },
        }
    }
}

#[derive(Clone, Debug, Serialize, Deserialize, windlass_macros::Schema)]
struct FormerSpec {
    hosts: Option<Hosts>,
}

kind!(Former, "formers", FormerSpec);

/// More values than any check writes, and no variants of anything.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Level(String);

impl JsonSchema for Level {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Level".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        let values: Vec<String> = (0..1_000).map(|number| format!("l{number}")).collect();
        schemars::json_schema!({ "type": "string", "enum": values })
    }
}

#[derive(Clone, Debug, Serialize, Deserialize, windlass_macros::Schema)]
struct LevelSpec {
    target: Target,
    level: Level,
}

kind!(Levelled, "levelleds", LevelSpec);

/// As [`Level`], in the schema of the field itself, and not behind a name.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct InlineLevel(String);

impl JsonSchema for InlineLevel {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> std::borrow::Cow<'static, str> {
        "InlineLevel".into()
    }

    fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
        Level::json_schema(generator)
    }
}

#[derive(Clone, Debug, Serialize, Deserialize, windlass_macros::Schema)]
struct MaybeLevelSpec {
    targets: Vec<Target>,
    level: Option<InlineLevel>,
}

kind!(MaybeLevelled, "maybelevelleds", MaybeLevelSpec);

/// Keeps the count for a single one of many levels.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(from = "Counted", into = "Counted")]
struct CountOfOne(Counted);

impl From<Counted> for CountOfOne {
    fn from(counted: Counted) -> Self {
        let is_counted = counted.level.as_ref().is_some_and(|Level(level)| level == "l777");
        Self(Counted { count: counted.count.filter(|_| is_counted), ..counted })
    }
}

impl From<CountOfOne> for Counted {
    fn from(CountOfOne(counted): CountOfOne) -> Self {
        counted
    }
}

#[derive(Clone, Debug, Serialize, Deserialize, windlass_macros::Schema)]
struct Counted {
    level: Option<Level>,
    count: Option<i32>,
}

#[derive(Clone, Debug, Serialize, Deserialize, windlass_macros::Schema)]
struct CountedSpec {
    #[schema(with = Counted)]
    of_one: CountOfOne,
}

kind!(CountedOnce, "countedonces", CountedSpec);

#[tokio::test]
async fn a_field_is_lost_beside_an_enum_that_decides_about_no_variant() {
    loses::<Levelled>(".spec.target.name").await;
    loses::<MaybeLevelled>(".spec.targets[].name").await;
}

#[tokio::test]
async fn a_field_that_one_variant_of_many_keeps_is_not_lost() {
    keeps::<CountedOnce>().await;
}

#[tokio::test]
async fn fields_of_other_variants_defaults_aliases_and_former_forms_are_lost_rightly() {
    keeps::<Disjoint>().await;
    keeps::<Rarely>().await;
    keeps::<Strictly>().await;
    keeps::<Renamed>().await;
    keeps::<Former>().await;
}

/// Observations of one pair of values, as places that were kept and lost.
fn observed(stored: Value, written: Value) -> (Vec<String>, Vec<String>) {
    let schema = json!({ "properties": {
        "a": { "properties": { "b": {}, "c": {} } },
        "list": { "items": { "properties": { "d": {} } } },
        "set": { "items": { "properties": { "d": {} } }, "x-kubernetes-list-type": "set" },
        "map": { "additionalProperties": { "properties": { "e": {} } } },
    } });
    let mut losses = FieldObservations::default();
    losses.note(&stored, &written, &schema);
    let places = |is_kept| {
        let all = losses.places.iter().filter(move |(_, seen)| seen.is_kept == is_kept);
        all.map(|(place, _)| shown(place)).collect()
    };
    (places(true), places(false))
}

#[test]
fn named_fields_are_followed_and_keys_of_maps_items_of_sets_and_nulls_are_not() {
    let stored = json!({
        "a": { "b": 1, "c": null, "unknown": 1 },
        "list": [{ "d": 1 }, {}],
        "set": [{ "d": 1 }],
        "map": { "x": { "e": 1 }, "y": { "e": 1 } },
    });
    let written = json!({ "a": {}, "list": [{ "d": 1 }, {}], "set": [{}], "map": { "x": {} } });
    let (kept, lost) = observed(stored, written);
    assert_eq!(kept, [".a", ".list", ".list[].d", ".map", ".map.*", ".set"]);
    assert_eq!(lost, [".a.b", ".map.*.e"]);
}

#[test]
fn a_value_under_another_name_is_not_lost() {
    let stored = json!({ "of": 1, "kept": 2 });
    let moved = |value, written| moved(&value, &stored, &written);
    assert_eq!(moved(json!(1), json!({ "other": [1], "kept": 2 })), RenameEvidence::Away);
    assert_eq!(moved(json!(1), json!({ "other": 5, "kept": 2 })), RenameEvidence::Perhaps);
    assert_eq!(moved(json!(0), json!({ "other": 0, "kept": 2 })), RenameEvidence::Perhaps);
    assert_eq!(moved(json!("a"), json!({ "other": 1, "kept": "a" })), RenameEvidence::No);
}
