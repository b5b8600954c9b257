// Rust types of workflows.argoproj.io, version v1alpha1, printed by `windlass import`.
//
// Differences from the imported definition:
// - the status becomes a subresource, as each derived status is

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use windlass::CustomResource;

#[derive(CustomResource, Clone, Debug, PartialEq)]
#[resource(group = "argoproj.io", version = "v1alpha1", namespaced, plural = "workflows", short = "wf")]
#[resource(column(name = "Status", path = ".status.phase", type = "string"))]
pub struct Workflow {
    pub metadata: ObjectMeta,
    /// Steps of the workflow.
    pub spec: WorkflowSpec,
    pub status: Option<WorkflowStatus>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
#[schemars(extend("type" = "object", "x-kubernetes-preserve-unknown-fields" = true))]
pub struct WorkflowSpec(pub Value);

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
#[schemars(extend("type" = "object", "x-kubernetes-map-type" = "atomic", "x-kubernetes-preserve-unknown-fields" = true))]
pub struct WorkflowStatus(pub Value);
