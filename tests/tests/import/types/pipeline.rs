// Rust types of pipelines.tekton.dev, version v1, printed by `windlass import`.
//
// Differences from the imported definition:
// - 20 optional fields accept null as well (`--exact` prevents it)
// - 1 number gets the format of its Rust type (`--exact` prevents it)

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use windlass::{CustomResource, Schema};

#[derive(CustomResource, Clone, Debug, PartialEq)]
#[resource(
    group = "tekton.dev",
    version = "v1",
    namespaced,
    plural = "pipelines",
    category = ["tekton", "tekton-pipelines"]
)]
pub struct Pipeline {
    pub metadata: ObjectMeta,
    pub spec: Option<PipelineSpec>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, Schema)]
pub struct PipelineSpec {
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(atomic)]
    pub params: Option<Vec<PipelineParam>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(atomic)]
    pub tasks: Option<Vec<PipelineTask>>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, Schema)]
pub struct PipelineParam {
    /// Value for runs that give none.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(preserve)]
    pub default: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub r#enum: Option<Vec<String>>,
    pub name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub r#type: Option<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, Schema)]
#[serde(rename_all = "camelCase")]
pub struct PipelineTask {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub matrix: Option<PipelineTaskMatrix>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retries: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(atomic)]
    pub run_after: Option<Vec<String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub task_ref: Option<PipelineTaskTaskRef>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub task_spec: Option<Map<String, Value>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub when: Option<Vec<PipelineTaskWhenItem>>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, Schema)]
pub struct PipelineTaskMatrix {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub include: Option<Vec<PipelineTaskMatrixIncludeItem>>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, Schema)]
pub struct PipelineTaskMatrixIncludeItem {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, Schema)]
pub struct PipelineTaskTaskRef {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, Schema)]
pub struct PipelineTaskWhenItem {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cel: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub input: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub operator: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub values: Option<Vec<String>>,
}
