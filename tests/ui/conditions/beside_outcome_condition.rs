//! The outcome is shown once.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use windlass::prelude::*;

#[derive(CustomResource, Clone, Debug)]
#[resource(group = "example.dev", version = "v1", namespaced)]
pub struct Website {
    pub metadata: ObjectMeta,
    pub status: Option<WebsiteStatus>,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct WebsiteStatus {
    pub conditions: Conditions,
}

#[derive(Conditions)]
#[conditions(ready(all(Applied)))]
enum WebsiteCondition {
    Applied,
}

#[derive(Controller)]
#[controller(for = Website, conditions(WebsiteCondition), outcome_condition = "Ready")]
struct Sites;

impl Reconciler for Sites {
    type Object = Website;

    async fn reconcile(&self, _: &Website, _: &Context<Self>) -> Result {
        Ok(Action::done())
    }
}

fn main() {}
