//! The condition of a handler needs a declared enum.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use windlass::prelude::*;

#[derive(CustomResource, Clone, Debug)]
#[resource(group = "example.dev", version = "v1", namespaced)]
pub struct Website {
    pub metadata: ObjectMeta,
    pub spec: WebsiteSpec,
    pub status: Option<WebsiteStatus>,
}

#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct WebsiteSpec {
    pub host: String,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct WebsiteStatus {
    pub conditions: Conditions,
}

#[derive(Conditions)]
#[conditions(ready(all(HostReady)))]
pub enum WebsiteCondition {
    HostReady,
}

#[derive(Controller)]
#[controller(for = Website)]
#[controller(on_change(spec.host = rehost, condition = HostReady))]
struct Sites;

impl Sites {
    async fn rehost(&self, _: &Website, _: &Context<Self>) -> Result<()> {
        Ok(())
    }
}

impl Reconciler for Sites {
    type Object = Website;

    async fn reconcile(&self, _: &Website, _: &Context<Self>) -> Result {
        Ok(Action::done())
    }
}

fn main() {}
