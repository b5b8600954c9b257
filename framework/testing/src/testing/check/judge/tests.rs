//! Differences beside places with a warning.

use k8s_openapi::api::core::v1::PodTemplateSpec;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde::{Deserialize, Serialize};

use super::super::try_check;

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

/// Hides from the derive that the value is a text.
type Words = String;

#[derive(Clone, Debug, Serialize, Deserialize, windlass_macros::Schema)]
struct MaskedSpec {
    #[schema(optional)]
    text: Words,
    template: PodTemplateSpec,
}

kind!(Masked, "maskeds", MaskedSpec);

#[tokio::test]
async fn a_place_that_only_serde_checks_excuses_no_missing_field_beside_it() {
    let error = try_check::<Masked>().await.unwrap_err().to_string();
    assert!(error.contains("and serde refuses it: .spec: missing field `text`"), "{error}");
}

#[derive(Clone, Debug, Serialize, Deserialize, windlass_macros::Schema)]
struct OuterSpec {
    text: String,
    #[serde(flatten)]
    more: More,
}

#[derive(Clone, Debug, Serialize, Deserialize, windlass_macros::Schema)]
struct More {
    #[schema(opaque)]
    inner: Option<Inner>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
struct Inner {
    text: Words,
}

kind!(Outer, "outers", OuterSpec);

// Serde reads flattened fields from a buffer, and reports what is missing in them at the object.
#[tokio::test]
async fn a_missing_field_that_the_object_has_is_that_of_a_flattened_value() {
    try_check::<Outer>().await.unwrap();
}

/// Reads nothing.
#[derive(Clone, Debug, Serialize)]
struct Never {}

impl<'de> Deserialize<'de> for Never {
    fn deserialize<D: serde::Deserializer<'de>>(_: D) -> Result<Self, D::Error> {
        Err(serde::de::Error::custom("never"))
    }
}

#[derive(Clone, Debug, Serialize, Deserialize, windlass_macros::Schema)]
struct UnreadSpec {
    #[schema(opaque)]
    never: Never,
}

kind!(Unread, "unreads", UnreadSpec);

#[tokio::test]
async fn a_kind_of_which_no_object_is_readable_is_an_error_with_the_reason() {
    let error = try_check::<Unread>().await.unwrap_err().to_string();
    assert!(error.contains("serde read none of"), "{error}");
    assert!(error.contains("never"), "{error}");
}

#[derive(Clone, Debug, Serialize, Deserialize, windlass_macros::Schema)]
struct UntilSpec {
    until: Option<k8s_openapi::apimachinery::pkg::apis::meta::v1::Time>,
}

kind!(Until, "untils", UntilSpec);

#[test]
fn a_time_after_the_last_of_jiff_is_read_and_written_as_the_client_does() {
    let object = serde_json::json!({
        "apiVersion": "check.windlass.dev/v1",
        "kind": "Until",
        "metadata": { "name": "a" },
        "spec": { "until": "9999-12-31T23:59:59Z" },
    });
    let written = crate::testing::check::rewritten::<Until>(&object).unwrap();
    assert_eq!(written["spec"], object["spec"]);
}
