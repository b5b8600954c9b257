//! Names that most operators import: `use windlass::prelude::*`.

pub use crate::client::Client;
pub use crate::conditions::{Conditions, met, unknown, unmet};
pub use crate::controller::{
    Action, Context, Controller, ControllerBuilder, Failure, Finalize, Reconciler, Result,
};
pub use crate::crd::CustomResource;
pub use crate::events::{Normal, Warning};
pub use crate::manager::Manager;
pub use crate::resource::{ObjectKey, Resource, ResourceExt};
pub use crate::store::{Cached, Index};
pub use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
pub use windlass_macros::{Controller, CustomResource, Projection};
