//! An editor finds the documentation of a key by the name at its position: with a framework that
//! documents none, the compiler says at each key that its name is not found.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde::{Deserialize, Serialize};
use windlass::prelude::*;
use windlass::{Controller, CustomResource, Projection, Schema};

pub mod undocumented {
    pub use ::windlass::*;
    pub mod __private {
        pub use ::windlass::__private::*;
        pub mod keys {
            pub mod resource {}
            pub mod schema {}
            pub mod controller {}
            pub mod projection {}
        }
    }
}

#[derive(Clone, Debug, CustomResource)]
#[resource(
    group = "example.dev",
    version = "v1",
    namespaced,
    column(spec.host, priority = 1),
    crate = crate::undocumented
)]
pub struct Site {
    pub metadata: ObjectMeta,
    pub spec: SiteSpec,
}

#[derive(Clone, Debug, Serialize, Deserialize, Schema)]
#[schema(
    rule("self.host != ''", message = "no host"),
    crate = crate::undocumented
)]
pub struct SiteSpec {
    #[schema(pattern = "^a", length(max = 9))]
    pub host: String,
    #[schema(each(min = 1))]
    pub ports: Vec<i32>,
}

#[derive(Controller)]
#[controller(for = Site, workers = 2, crate = crate::undocumented)]
pub struct Sites;

impl Reconciler for Sites {
    type Object = Site;

    async fn reconcile(&self, _: &Site, _: &Context<Self>) -> Result<Action> {
        Ok(Action::done())
    }
}

#[derive(Clone, Debug, Projection)]
#[projection(of = Site, skip(annotations), crate = crate::undocumented)]
pub struct Slim {
    pub metadata: ObjectMeta,
    #[projection(path = spec.host)]
    pub host: String,
}

fn main() {}
