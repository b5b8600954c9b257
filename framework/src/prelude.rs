//! The sixteen names that nearly every operator imports: `use windlass::prelude::*`.
//!
//! All other names are imported from their modules.

pub use crate::client::Client;
pub use crate::conditions::{Conditions, met, unmet};
pub use crate::controller::{Action, Context, Controller, ControllerBuilder, Reconciler, Result};
pub use crate::crd::CustomResource;
pub use crate::events::{Normal, Warning};
pub use crate::manager::Manager;
pub use crate::resource::ResourceExt;
pub use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
pub use windlass_macros::{Controller, CustomResource};
