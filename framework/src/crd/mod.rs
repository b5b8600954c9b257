//! Custom resource definitions from types.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;

use crate::error::Error;
use crate::resource::Resource;

/// A kind of your own; implemented by `#[derive(CustomResource)]`.
pub trait CustomResource: Resource {
    /// The definition that makes an API server serve this kind.
    ///
    /// # Errors
    /// [`ErrorKind::Usage`](crate::ErrorKind::Usage) when a type has no structural schema; the text
    /// names the field and says what to change.
    fn crd() -> Result<CustomResourceDefinition, Error>;
}
