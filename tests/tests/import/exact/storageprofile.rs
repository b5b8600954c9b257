// Rust types of storageprofiles.shapes.example.dev, version v1, printed by `windlass import`.
//
// Differences from the imported definition:
// - .allowExpansion: it accepts null as well, as it is optional
// - .mountOptions: it accepts null as well, as it is optional
// - .reclaimPolicy: it accepts null as well, as it is optional
// - .topology: it accepts null as well, as it is optional

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use windlass::{CustomResource, Schema};

/// A profile of storage.
#[derive(CustomResource, Clone, Debug, PartialEq)]
#[resource(group = "shapes.example.dev", version = "v1", cluster, plural = "storageprofiles")]
pub struct StorageProfile {
    pub metadata: ObjectMeta,
    pub allow_expansion: Option<bool>,
    pub mount_options: Option<StorageProfileMountOptions>,
    pub parameters: BTreeMap<String, String>,
    /// Name of the driver.
    pub provisioner: StorageProfileProvisioner,
    pub reclaim_policy: Option<StorageProfileReclaimPolicy>,
    pub topology: Option<StorageProfileTopology>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, Schema)]
pub struct StorageProfileMountOptions(#[schema(each(length(max = 5)), set)] pub Vec<String>);

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, Schema)]
pub struct StorageProfileProvisioner(#[schema(length(min = 1))] pub String);

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, Schema)]
pub enum StorageProfileReclaimPolicy {
    Retain,
    Delete,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, Schema)]
pub struct StorageProfileTopology(#[schema(preserve)] pub Value);
