//! Permissions as types and as RBAC rules.
//!
//! The derive `#[controller(…)]` implements the traits from the same words from which the derive
//! prints the rules, so that code which compiles has the permissions in the manifest.
//!
//! ```
//! # extern crate windlass_core as windlass;
//! use k8s_openapi::api::core::v1::Pod;
//! use windlass::rbac::{Rule, merge};
//! use windlass::resource::ResourceInfo;
//!
//! let pods = ResourceInfo::of::<Pod>();
//! let rules = merge([Rule::new(&pods, None, &["get"]), Rule::new(&pods, None, &["list", "get"])]);
//! assert_eq!(rules.len(), 1);
//! assert_eq!(rules[0].verbs.iter().copied().collect::<Vec<_>>(), ["get", "list"]);
//! ```

mod grants;
mod rules;
pub mod subresources;
pub mod verbs;

pub use grants::{
    Can, CanCache, CanCreate, CanDelete, CanDeleteCollection, CanEvict, CanGet, CanGetScale,
    CanList, CanPatch, CanPatchScale, CanPatchStatus, CanReadLog, CanRequestToken, CanUpdate,
    CanUpdateStatus, Owns, OwnsCache, OwnsObject,
};
pub use rules::{Rule, event_rules, main_rules, merge, owned_rules, verb_name, watched_rules};
pub use subresources::SubresourceOf;
