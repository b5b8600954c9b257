//! The check of kinds that agree with their schema, and of kinds that do not.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use k8s_openapi::api::core::v1::{Pod, PodTemplateSpec};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;

use super::{check, check_from, try_check};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

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

#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct ShopSpec {
    #[schemars(length(min = 1, max = 20), regex(pattern = "^[a-z]+$"))]
    host: String,
    #[serde(default = "one")]
    #[schemars(range(min = 1, max = 9))]
    replicas: i32,
    source: Source,
    port: Option<Port>,
    labels: BTreeMap<String, String>,
    #[schemars(extend("x-kubernetes-validations" = [{ "rule": "self.min <= self.max" }]))]
    size: Size,
}

#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", deny_unknown_fields)]
enum Source {
    Git {
        url: String,
        #[serde(default)]
        depth: u16,
    },
    Image {
        image: String,
    },
}

#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
enum Port {
    Number(u16),
    Name(String),
}

#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
struct Size {
    min: i32,
    max: i32,
}

fn one() -> i32 {
    1
}

kind!(Shop, "shops", ShopSpec);

#[tokio::test]
async fn a_kind_that_agrees_with_its_schema_passes_and_nothing_is_unchecked() {
    let report = check::<Shop>().await;
    assert!(report.unchecked().is_empty(), "{report}");
    let (tried, stored) = report.tried();
    assert!(tried == 200 && stored > 20 && stored < 180, "{report}");
    assert!(report.bytes() > 500, "{report}");
    let text = report.to_string();
    assert!(text.contains("Shop: definition accepted") && text.contains("1 rules"), "{text}");
}

/// A name that is checked by its type and not by its schema.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(try_from = "String")]
struct Lowercase(String);

impl TryFrom<String> for Lowercase {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        if text == "a" { Ok(Self(text)) } else { Err("not a".to_owned()) }
    }
}

impl JsonSchema for Lowercase {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Lowercase".into()
    }

    fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
        String::json_schema(generator)
    }
}

#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
struct LooseSpec {
    name: Lowercase,
}

kind!(Loose, "looses", LooseSpec);

#[tokio::test]
async fn a_type_that_checks_more_than_its_schema_is_an_error_with_the_object() {
    let error = try_check::<Loose>().await.unwrap_err().to_string();
    assert!(
        error.contains("Loose is read by serde and checked by the API server differently"),
        "{error}"
    );
    assert!(error.contains("and serde refuses it: "), "{error}");
}

#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
struct OpenSpec {
    a: String,
    #[serde(flatten)]
    rest: BTreeMap<String, i32>,
}

kind!(Open, "opens", OpenSpec);

#[tokio::test]
async fn a_place_that_only_serde_checks_is_in_the_report() {
    let report = check::<Open>().await;
    assert_eq!(report.unchecked().len(), 1, "{report}");
    assert!(report.to_string().contains("not checked by the API server:\n- .spec: "), "{report}");
}

#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
struct Halves {
    #[serde(flatten)]
    halves: Half,
}

#[derive(Clone, Debug, JsonSchema)]
#[schemars(with = "BTreeMap<String, i32>")]
struct Half(BTreeMap<String, i32>);

impl Serialize for Half {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Half {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let read = BTreeMap::<String, i32>::deserialize(deserializer)?;
        Ok(Self(read.into_iter().map(|(name, value)| (name, value / 2)).collect()))
    }
}

kind!(Halved, "halveds", Halves);

#[tokio::test]
async fn a_value_that_serde_reads_otherwise_than_it_wrote_it_is_an_error() {
    let error = try_check::<Halved>().await.unwrap_err().to_string();
    assert!(error.contains("serde writes {"), "{error}");
    assert!(error.contains(" and reads that as {"), "{error}");
}

#[derive(windlass_macros::CustomResource, Clone, Debug)]
#[resource(group = "check.windlass.dev", version = "v1", namespaced, plural = "reports")]
struct Report {
    metadata: ObjectMeta,
    spec: Size,
    status: Option<Found>,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
struct Found {
    #[serde(default)]
    ready: bool,
    name: Option<String>,
}

#[tokio::test]
async fn a_status_is_tried_as_the_object_is() {
    let report = check::<Report>().await;
    let (tried, stored) = report.tried_status();
    assert!(tried == 200 && stored > 80 && stored < 200, "{report}");
    assert!(report.to_string().contains("of 200 values of the status stored"), "{report}");
}

#[derive(windlass_macros::CustomResource, Clone, Debug)]
#[resource(group = "check.windlass.dev", version = "v1", namespaced, plural = "vaguenesses")]
struct Vagueness {
    metadata: ObjectMeta,
    spec: Size,
    status: Option<LooseStatus>,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
struct LooseStatus {
    name: Option<Lowercase>,
}

#[tokio::test]
async fn a_status_that_checks_more_than_its_schema_is_an_error_with_its_value() {
    let error = try_check::<Vagueness>().await.unwrap_err().to_string();
    assert!(error.contains("- of its status, the API server stores {\"name\":"), "{error}");
}

#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
struct StampSpec {
    #[schemars(extend(
        "x-kubernetes-embedded-resource" = true,
        "x-kubernetes-preserve-unknown-fields" = true
    ))]
    object: serde_json::Map<String, serde_json::Value>,
    #[schemars(regex(pattern = "^[A-Z]{3}-[0-9]{4}(/[a-z]+)?$"))]
    serial: String,
}

kind!(Stamp, "stamps", StampSpec);

#[tokio::test]
async fn embedded_objects_and_texts_of_a_pattern_are_generated() {
    let report = check::<Stamp>().await;
    assert!(report.tried().1 > 50, "{report}");
}

#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(extend("x-kubernetes-validations" = [{ "rule": "self.one + self.two == 4711" }]))]
struct RareSpec {
    #[schemars(range(min = 0, max = 9999))]
    one: i32,
    #[schemars(range(min = 0, max = 9999))]
    two: i32,
}

kind!(Rare, "rares", RareSpec);

#[tokio::test]
async fn a_kind_without_a_stored_object_is_an_error_with_the_refusal() {
    let error = try_check::<Rare>().await.unwrap_err().to_string();
    assert!(error.contains("cannot check Rare: the API server stored none of 200"), "{error}");
    assert!(error.contains("self.one + self.two == 4711"), "{error}");
}

#[tokio::test]
async fn objects_are_made_from_an_example() {
    let example = Rare::new("example", RareSpec { one: 4700, two: 11 });
    let report = check_from([example]).await;
    assert!(report.tried().1 > 50, "{report}");
}

#[tokio::test]
async fn an_example_that_the_server_refuses_is_named() {
    let good = Rare::new("good", RareSpec { one: 4700, two: 11 });
    let bad = Rare::new("bad", RareSpec { one: 1, two: 1 });
    let error = super::try_check_from([good, bad]).await.unwrap_err();
    let text = format!("{error:?}");
    assert!(text.contains("the API server refuses example 2 (`bad`)"), "{text}");
    assert!(text.contains("self.one + self.two == 4711"), "{text}");
}

#[derive(windlass_macros::CustomResource, Clone, Debug)]
#[resource(group = "check.windlass.dev", version = "v1", namespaced, plural = "namesakes")]
#[resource(rule("self.metadata.name == self.spec.name"))]
struct Namesake {
    metadata: ObjectMeta,
    spec: NamesakeSpec,
}

#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
struct NamesakeSpec {
    name: String,
}

#[tokio::test]
async fn objects_have_the_metadata_of_an_example() {
    let spec = NamesakeSpec { name: "me".to_owned() };
    let report = check_from([Namesake::new("me", spec)]).await;
    assert!(report.tried().1 > 50, "{report}");
}

#[derive(windlass_macros::CustomResource, Clone, Debug)]
#[resource(group = "check.windlass.dev", version = "v1", namespaced, plural = "judgements")]
struct Judgement {
    metadata: ObjectMeta,
    spec: Size,
    status: Option<RareStatus>,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(extend("x-kubernetes-validations" = [{ "rule": "self.one + self.two == 4711" }]))]
struct RareStatus {
    one: i32,
    two: i32,
}

#[tokio::test]
async fn a_status_of_which_nothing_was_stored_is_an_error_and_examples_help() {
    let error = try_check::<Judgement>().await.unwrap_err().to_string();
    assert!(error.contains("stored none of 200 generated statuses"), "{error}");
    let mut example = Judgement::new("example", Size { min: 1, max: 2 });
    example.status = Some(RareStatus { one: 4700, two: 11 });
    let report = check_from([example]).await;
    assert!(report.tried_status().1 > 50, "{report}");
}

#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
struct TaggedSpec {
    tags: std::collections::HashSet<String>,
}

kind!(Tagged, "taggeds", TaggedSpec);

#[tokio::test]
async fn the_order_of_a_set_is_no_difference() {
    // Each set has a separate order: of 200 objects some would differ.
    let report = check::<Tagged>().await;
    assert!(report.tried().1 > 50, "{report}");
}

#[derive(Clone, Debug, Serialize, Deserialize, windlass_macros::Schema)]
struct PodsSpec {
    template: PodTemplateSpec,
    port: Option<IntOrString>,
    pod: Option<Pod>,
}

kind!(Pods, "pods", PodsSpec);

#[tokio::test]
async fn a_kind_with_opaque_types_passes_and_their_places_are_named() {
    let report = check::<Pods>().await;
    let places: Vec<_> =
        report.unchecked().iter().map(|it| it.split(':').next().unwrap()).collect();
    assert_eq!(places, [".spec.pod", ".spec.port", ".spec.template"], "{report}");
}

#[derive(Clone, Debug, Serialize, Deserialize, windlass_macros::Schema)]
#[schema(properties(min = 1))]
struct Routes {
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    hosts: Vec<String>,
}

kind!(Router, "routers", Routes);

#[tokio::test]
async fn an_object_that_the_server_stores_and_refuses_when_it_is_written_back_is_an_error() {
    let error = try_check::<Router>().await.unwrap_err().to_string();
    assert!(error.contains("and writes {\"spec\":{}}, and the API server refuses it: "), "{error}");
}

/// A text that is read whatever it is but `luck`, and is written as `luck`.
#[derive(Clone, Debug)]
struct Lucky;

impl Serialize for Lucky {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str("luck")
    }
}

impl<'de> Deserialize<'de> for Lucky {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let read = String::deserialize(deserializer)?;
        if read == "luck" { Err(serde::de::Error::custom("too much luck")) } else { Ok(Self) }
    }
}

impl JsonSchema for Lucky {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Lucky".into()
    }

    fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
        String::json_schema(generator)
    }
}

#[derive(Clone, Debug, Serialize, Deserialize, windlass_macros::Schema)]
struct LuckySpec {
    luck: Lucky,
    #[serde(default, alias = "of")]
    other: i32,
}

kind!(Luck, "lucks", LuckySpec);

#[tokio::test]
async fn a_warning_about_another_place_excuses_no_difference() {
    let error = try_check::<Luck>().await.unwrap_err().to_string();
    assert!(error.contains("serde writes {"), "{error}");
    assert!(error.contains(", and serde refuses that: .spec.luck: "), "{error}");
}

/// A long description: `kubectl apply` fails for the definition.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Described(Lowercase);

impl JsonSchema for Described {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Described".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({ "type": "string", "description": "x".repeat(300 << 10) })
    }
}

#[derive(Clone, Debug, Serialize, Deserialize, windlass_macros::Schema)]
struct LongSpec {
    name: Described,
}

#[derive(Clone, Debug, Serialize, Deserialize, windlass_macros::Schema)]
struct AgeSpec {
    #[schema(column("Age", type = "date"))]
    name: Lowercase,
}

#[derive(Clone, Debug, Serialize, Deserialize, windlass_macros::Schema)]
struct ShelfSpec<T: JsonSchema> {
    books: Vec<T>,
}

#[derive(Clone, Debug, Serialize, Deserialize, windlass_macros::Schema)]
struct ColumnBook {
    #[schema(column)]
    name: Lowercase,
}

#[derive(Clone, Debug, Serialize, Deserialize, windlass_macros::Schema)]
struct FieldBook {
    #[schema(selectable)]
    name: Lowercase,
}

type ColumnShelfSpec = ShelfSpec<ColumnBook>;
type FieldShelfSpec = ShelfSpec<FieldBook>;

kind!(Long, "longs", LongSpec);
kind!(Aged, "ageds", AgeSpec);
kind!(ColumnShelf, "columnshelves", ColumnShelfSpec);
kind!(FieldShelf, "fieldshelves", FieldShelfSpec);

#[derive(windlass_macros::CustomResource, Clone, Debug)]
#[resource(
    group = "check.windlass.dev", version = "v1", namespaced, plural = "dateds",
    column("Since", spec.name, type = "date")
)]
struct Dated {
    metadata: ObjectMeta,
    spec: LooseSpec,
}

/// Asserts that a kind has a remark, and that its check is an error in spite of that.
async fn differs_with<K: windlass_core::crd::CustomResource>(remark: &str) {
    let remarks = windlass_core::crd::warnings::<K>().unwrap();
    assert!(remarks.iter().any(|it| it.contains(remark)), "{remarks:?}");
    let error = try_check::<K>().await.expect_err(remark).to_string();
    assert!(error.contains("and serde refuses it: "), "{error}");
}

#[tokio::test]
async fn a_remark_about_size_columns_or_selectable_fields_excuses_no_difference() {
    differs_with::<Long>("bytes, and `kubectl apply` fails").await;
    differs_with::<Aged>(".spec.name: kubectl shows `<invalid>`").await;
    differs_with::<Dated>("column `Since`: kubectl shows `<invalid>`").await;
    differs_with::<ColumnShelf>(".name: `column` has no effect").await;
    differs_with::<FieldShelf>(".name: `selectable` has no effect").await;
}
