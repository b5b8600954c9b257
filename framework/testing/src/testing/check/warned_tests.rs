//! Kinds of which a definition only warns: the check agrees.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde::{Deserialize, Serialize};

use super::check;

fn five() -> i32 {
    5
}

fn is_zero(value: &i32) -> bool {
    *value == 0
}

#[derive(Clone, Debug, Serialize, Deserialize, windlass_macros::Schema)]
struct RefilledSpec {
    #[serde(default = "five", skip_serializing_if = "is_zero")]
    count: i32,
    lists: Vec<Refill>,
    name: String,
}

#[derive(Clone, Debug, Serialize, Deserialize, windlass_macros::Schema)]
struct Refill {
    #[schema(default = "x")]
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<String>,
}

#[derive(windlass_macros::CustomResource, Clone, Debug)]
#[resource(group = "check.windlass.dev", version = "v1", namespaced, plural = "refilleds")]
struct Refilled {
    metadata: ObjectMeta,
    spec: RefilledSpec,
}

#[tokio::test]
async fn a_default_of_which_the_definition_warns_is_named_in_the_report_and_no_difference() {
    let report = check::<Refilled>().await;
    for place in [".spec.count: serde leaves", ".spec.lists.[].text: serde leaves"] {
        let is_named = report.unchecked().iter().any(|warning| warning.starts_with(place));
        assert!(is_named, "{place} in {report}");
    }
}
