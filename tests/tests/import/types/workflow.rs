// Rust types of workflows.argoproj.io, version v1alpha1, printed by `windlass import`.
//
// Differences from the imported definition:
// - the status becomes a subresource, as each derived status is

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use windlass::{CustomResource, Schema};

#[derive(CustomResource, Clone, Debug, PartialEq)]
#[resource(
    group = "argoproj.io",
    version = "v1alpha1",
    namespaced,
    plural = "workflows",
    short = "wf"
)]
#[resource(column(name = "Status", path = ".status.phase"))]
pub struct Workflow {
    pub metadata: ObjectMeta,
    /// Steps of the workflow.
    pub spec: Map<String, Value>,
    pub status: Option<WorkflowStatus>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, Schema)]
pub struct WorkflowStatus(#[schema(atomic)] pub Map<String, Value>);
