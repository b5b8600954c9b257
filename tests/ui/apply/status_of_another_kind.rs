//! A status of another type.

use k8s_openapi::api::core::v1::PodStatus;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use windlass::CustomResource;
use windlass::controller::{Action, Context, Reconciler, Result};

#[derive(CustomResource, Clone, Debug)]
#[resource(group = "example.dev", version = "v1", namespaced)]
struct Website {
    metadata: ObjectMeta,
    status: Option<WebsiteStatus>,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
struct WebsiteStatus {
    replicas: i32,
}

struct Sites;

impl Reconciler for Sites {
    type Object = Website;

    async fn reconcile(&self, _: &Website, cx: &Context<Self>) -> Result {
        cx.set_status(PodStatus::default()).await?;
        Ok(Action::done())
    }
}

fn main() {}
