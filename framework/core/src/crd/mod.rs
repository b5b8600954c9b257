//! Custom resource definitions from Rust types.
//!
//! schemars describes the values that serde accepts; API servers accept only *structural* schemas,
//! a narrower form in which every field has a single type. [`structural_schema`] translates the
//! first into the second, shape by shape, and names the field if that is impossible. Types without
//! a schemars schema, such as those of `k8s_openapi`, are described by the functions of [`shapes`]
//! through `#[schemars(schema_with = "windlass::crd::object")]`.
//!
//! A kind may have several versions, each with a Rust type: [`Versions`] converts objects between
//! them.
//!
//! ```
//! # extern crate windlass_core as windlass;
//! use windlass::crd::structural_schema;
//!
//! #[derive(schemars::JsonSchema)]
//! #[allow(dead_code)]
//! struct Spec {
//!     host: String,
//!     replicas: Option<i32>,
//! }
//!
//! let schema = structural_schema::<Spec>()?.schema;
//! assert_eq!(schema["properties"]["host"]["type"], "string");
//! assert_eq!(schema["required"], serde_json::json!(["host"]));
//! # Ok::<(), windlass::Error>(())
//! ```

#[doc(hidden)]
pub mod compat;
pub(crate) mod definition;
pub(crate) mod derived;
pub(crate) mod faults;
mod files;
mod kubernetes;
mod schema;
pub mod shapes;
mod verdict;
pub(crate) mod versions;

#[doc(inline)]
pub use compat::{
    ChangeKind, DefinitionChange, DefinitionChanges, assert_compatible, changes, changes_since,
};
#[doc(hidden)]
pub use definition::conversion_path;
#[doc(hidden)]
pub use definition::places::{column_type_at, field_type_at};
pub use files::{APPLY_LIMIT, cut_descriptions, definitions_from_yaml, json_size};
pub use schema::{FORMATS, misfit};
#[doc(hidden)]
pub(crate) use schema::{INSIDE, STRUCTURAL};
pub use schema::{StructuralSchema, structural_schema};
pub use shapes::{any, conditions, embedded_object, int_or_string, object, objects, optional};
pub use versions::{ConversionError, Convertible, KEPT_FIELDS, MOST_KEPT, Versions};

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;

use crate::error::Error;
use crate::resource::Resource;

/// A kind of your own; implemented by `#[derive(CustomResource)]`.
///
/// The text of the definition is the same in each call; `Manager` installs it, and the command
/// `manifests` prints it.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a custom resource",
    note = "derive `windlass::CustomResource` on the struct with `metadata`, `spec` and `status`"
)]
pub trait CustomResource: Resource {
    /// Returns the definition that makes an API server serve this kind, with all versions.
    ///
    /// # Errors
    /// [`ErrorKind::Usage`](crate::ErrorKind::Usage) when a type has no structural schema; the text
    /// names every wrong field and the necessary change.
    fn crd() -> Result<CustomResourceDefinition, Error>;

    /// Version of the package that declares the kind, so that a process of an older version does
    /// not replace the definition that a newer process installed. Default: `None`, unknown.
    fn package_version() -> Option<&'static str> {
        None
    }

    /// Returns the versions of the kind; see [`Versions::of`]. Default: `None`, a single version.
    #[doc(hidden)]
    fn versions() -> Option<Versions> {
        None
    }
}

/// Returns the fields of a kind that an API server checks less strictly than serde, with the
/// reasons, and remarks on the size of the kind's definition.
///
/// [`CustomResource::crd`] logs the same texts as warnings; those about opaque types, of which any
/// object is stored, in debug logs.
///
/// # Errors
/// Those of [`CustomResource::crd`].
pub fn warnings<K: CustomResource>() -> Result<Vec<String>, Error> {
    let (definition, warnings) = faults::collect_warnings(K::crd);
    definition.map(|_| warnings)
}
