use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde::{Deserialize, Serialize};
use windlass::Schema;
use windlass::prelude::*;

#[derive(CustomResource, Clone, Debug)]
#[resource(group = "example.dev", version = "v1", namespaced)]
#[index(by_host = spec.host)]
pub struct Website {
    pub metadata: ObjectMeta,
    pub spec: Spec,
}

#[derive(Clone, Debug, Serialize, Deserialize, Schema)]
pub struct Spec {
    pub host: String,
}

#[derive(Controller)]
#[controller(for = Website)]
struct Sites;

impl Reconciler for Sites {
    type Object = Website;

    async fn reconcile(&self, _: &Website, cx: &Context<Self>) -> Result {
        let found = cx.watch_by(Website::BY_HOST, &80).await?;
        println!("{}", found.len());
        Ok(Action::done())
    }
}

fn main() {}
