//! A kind in another kind, applied by the inner kind's apply configuration.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde::{Deserialize, Serialize};
use windlass::{ApplyConfiguration, CustomResource, Schema};

#[derive(CustomResource, Clone, Debug)]
#[resource(group = "example.dev", version = "v1", namespaced)]
pub struct Inner {
    pub metadata: ObjectMeta,
    pub spec: InnerSpec,
}

#[derive(Clone, Debug, Serialize, Deserialize, Schema, ApplyConfiguration)]
pub struct InnerSpec {
    pub host: String,
}

#[derive(CustomResource, Clone, Debug)]
#[resource(group = "example.dev", version = "v1", namespaced)]
pub struct Outer {
    pub metadata: ObjectMeta,
    pub spec: OuterSpec,
}

#[derive(Clone, Debug, Serialize, Deserialize, Schema, ApplyConfiguration)]
pub struct OuterSpec {
    pub child: Inner,
    pub others: Option<Vec<Inner>>,
}

pub fn main() {
    let inner = || InnerApply::new("c").spec(InnerSpecApply::new().host("a"));
    let outer = OuterApply::new("o").spec(OuterSpecApply::new().child(inner()).others([inner()]));
    let text = serde_json::to_string(&outer).unwrap_or_default();
    assert!(text.contains(r#""child":{"#) && text.contains(r#""kind":"Inner""#), "{text}");
}
