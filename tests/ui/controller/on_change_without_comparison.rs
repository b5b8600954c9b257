//! A field whose type cannot be compared.

use serde::{Deserialize, Serialize};
use windlass::prelude::*;

#[derive(CustomResource, Clone, Debug)]
#[resource(group = "example.dev", version = "v1", namespaced)]
pub struct Site {
    metadata: ObjectMeta,
    spec: SiteSpec,
}

#[derive(Clone, Debug, Serialize, Deserialize, Schema)]
pub struct SiteSpec {
    template: Option<Template>,
}

#[derive(Clone, Debug, Serialize, Deserialize, Schema)]
pub struct Template {
    image: String,
}

#[derive(Controller)]
#[controller(for = Site, on_change(spec.template.image = pull, spec.template = redo))]
struct Sites;

impl Sites {
    async fn pull(&self, _: &Site, _: &Context<Self>) -> Result<()> {
        Ok(())
    }

    async fn redo(&self, _: &Site, _: &Context<Self>) -> Result<()> {
        Ok(())
    }
}

impl Reconciler for Sites {
    type Object = Site;

    async fn reconcile(&self, _: &Site, _: &Context<Self>) -> Result {
        Ok(Action::done())
    }
}

fn main() {}
