//! A configuration of a nested type that is not the field's.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use windlass::{ApplyConfiguration, CustomResource};

#[derive(CustomResource, Clone, Debug)]
#[resource(group = "example.dev", version = "v1", namespaced)]
struct Website {
    metadata: ObjectMeta,
    spec: Spec,
}

#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema, ApplyConfiguration)]
struct Spec {
    host: String,
}

#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema, ApplyConfiguration)]
struct Other {
    host: String,
}

fn main() {
    let _ = WebsiteApply::new("home").spec(OtherApply::new().host("a"));
}
