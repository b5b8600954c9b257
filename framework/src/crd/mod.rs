//! Custom resource definitions from types.
//!
//! schemars describes what serde accepts; API servers accept only *structural* schemas, a narrower
//! form in which every field has one type. [`structural_schema`] translates the first into the
//! second, shape by shape, and names the field where that is impossible. Types that have no
//! schemars schema, such as those of `k8s_openapi`, are described by the functions of
//! [`shapes`] through `#[schemars(schema_with = "windlass::crd::object")]`.
//!
//! There is no conversion between versions here: one version is served and stored.

pub(crate) mod definition;
mod schema;
pub mod shapes;

pub use schema::{StructuralSchema, structural_schema};
pub use shapes::{any, conditions, embedded_object, int_or_string, object, objects};

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;

use crate::error::Error;
use crate::resource::Resource;

/// A kind of your own; implemented by `#[derive(CustomResource)]`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no custom resource",
    note = "derive `windlass::CustomResource` on the struct with `metadata`, `spec` and `status`"
)]
pub trait CustomResource: Resource {
    /// The definition that makes an API server serve this kind.
    ///
    /// # Errors
    /// [`ErrorKind::Usage`](crate::ErrorKind::Usage) when a type has no structural schema; the text
    /// names every field that is wrong and says what to change.
    fn crd() -> Result<CustomResourceDefinition, Error>;

    /// Version of the package that declares the kind, so that a process of an older version does not
    /// replace the definition that a newer one installed. `None`: not known, as is the default.
    fn package_version() -> Option<&'static str> {
        None
    }
}
