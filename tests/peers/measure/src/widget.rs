//! The status of the custom resource: both Rust drivers decode into the same types. The spec is
//! declared by each driver, because the drivers derive the kind from the spec in different ways.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Status of a Widget.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct WidgetStatus {
    conditions: Vec<WidgetCondition>,
    observed_generation: i64,
    ready_replicas: i32,
}

/// One condition of a Widget. Its time is decoded as one, as Go's `metav1.Condition` does.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct WidgetCondition {
    #[schemars(with = "String")]
    last_transition_time: Time,
    message: String,
    reason: String,
    status: String,
    r#type: String,
}
