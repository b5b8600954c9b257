//! What most operators import: `use windlass::prelude::*`.

pub use crate::client::Client;
pub use crate::controller::{
    Action, Context, Controller, Failure, Finalize, Reconciler, Result, Wiring,
};
pub use crate::crd::CustomResource;
pub use crate::manager::Manager;
pub use crate::resource::{ObjectKey, Resource, ResourceExt};
pub use crate::store::{Cached, Index};
pub use windlass_macros::{Controller, CustomResource};
