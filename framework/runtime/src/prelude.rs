//! The sixteen names that nearly every operator imports: `use windlass::prelude::*`.
//!
//! All other names are imported from their modules.

// Without a name: its methods are those of declared conditions.
pub use crate::controller::SetCondition as _;
pub use crate::controller::{Action, Context, Controller, Reconciler, Result};
pub use crate::events::Normal;
pub use crate::manager::Manager;
pub use crate::object;
pub use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
pub use windlass_client::client::Client;
pub use windlass_core::conditions::{Conditions, met, unmet};
pub use windlass_core::crd::CustomResource;
pub use windlass_core::resource::ResourceExt;
pub use windlass_macros::{Conditions, Controller, CustomResource, Schema};
