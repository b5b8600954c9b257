//! Objects whose kind is known at run time only.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::{Reads, Resource, ResourceInfo, Whole, reads};

/// Any object: metadata typed, the rest as JSON.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DynamicObject {
    /// `group/version`.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub api_version: String,
    /// Kind.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub kind: String,
    /// Metadata.
    #[serde(default)]
    pub metadata: ObjectMeta,
    /// Everything else: `spec`, `status`, `data`, …
    #[serde(flatten)]
    pub rest: Map<String, Value>,
}

/// An object's type and metadata, without its content: what [`Api::metadata`] reads. The type is that
/// of the object, not `PartialObjectMetadata`.
///
/// [`Api::metadata`]: crate::api::Api::metadata
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PartialObject {
    /// `group/version`.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub api_version: String,
    /// Kind.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub kind: String,
    /// Metadata.
    #[serde(default)]
    pub metadata: ObjectMeta,
}

#[diagnostic::do_not_recommend]
impl Whole for DynamicObject {}

/// Of a write of metadata alone the API says so when it is sent.
#[diagnostic::do_not_recommend]
impl Whole for PartialObject {}

impl Resource for DynamicObject {
    fn static_info() -> Option<ResourceInfo> {
        None
    }

    fn metadata(&self) -> &ObjectMeta {
        &self.metadata
    }

    fn metadata_mut(&mut self) -> &mut ObjectMeta {
        &mut self.metadata
    }

    fn set_type(&mut self, info: &ResourceInfo) {
        if self.api_version.is_empty() {
            self.api_version = info.api_version();
            self.kind = info.kind.to_string();
        }
    }

    /// It keeps whatever there is.
    fn kind_reads(_: &[&str]) -> Reads {
        Reads::Value
    }
}

impl Resource for PartialObject {
    fn static_info() -> Option<ResourceInfo> {
        None
    }

    fn metadata(&self) -> &ObjectMeta {
        &self.metadata
    }

    fn metadata_mut(&mut self) -> &mut ObjectMeta {
        &mut self.metadata
    }

    fn set_type(&mut self, info: &ResourceInfo) {
        // A metadata-only answer is of that kind, whatever it is about.
        if self.api_version.is_empty() || self.kind == "PartialObjectMetadata" {
            self.api_version = info.api_version();
            self.kind = info.kind.to_string();
        }
    }

    /// What the objects have besides metadata is not known.
    fn kind_reads(path: &[&str]) -> Reads {
        if path.first() == Some(&"metadata") { reads::<Self>(path) } else { Reads::Unknown }
    }
}
