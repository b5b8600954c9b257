//! Texts of CEL, with the kind and the value that they are about.

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;

/// An expression of CEL about objects of the kind `K`, whose value is a `T`.
///
/// [`cel!`](crate::cel) makes one from a text that the compiler has checked. [`bool`] stands for a
/// truth value, [`String`] for a text, and `()` for any other value.
pub struct CelExpression<K, T> {
    text: Cow<'static, str>,
    of: PhantomData<fn() -> (K, T)>,
}

impl<K, T> Clone for CelExpression<K, T> {
    fn clone(&self) -> Self {
        Self { text: self.text.clone(), of: PhantomData }
    }
}

impl<K, T> fmt::Debug for CelExpression<K, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("CelExpression").field(&self.text).finish()
    }
}

impl<K, T> CelExpression<K, T> {
    /// Returns an expression that `cel!` has checked.
    #[doc(hidden)]
    pub const fn checked(text: &'static str) -> Self {
        Self { text: Cow::Borrowed(text), of: PhantomData }
    }

    /// Returns an expression that was made at run time, such as one with a number from the
    /// settings. [`AdmissionPolicies::objects`](crate::AdmissionPolicies::objects) checks it.
    /// Values of others have no place in the text: they would be code.
    pub fn from_text(text: impl Into<String>) -> Self {
        Self { text: Cow::Owned(text.into()), of: PhantomData }
    }

    /// Returns the text.
    pub fn text(&self) -> &str {
        &self.text
    }
}

/// An expression of CEL for an [`AdmissionPolicy`](crate::AdmissionPolicy), checked by the
/// compiler: `cel!(Deployment: "object.spec.replicas <= 5")` is a
/// [`CelExpression<Deployment, bool>`](crate::CelExpression).
///
/// The text is parsed and its types are checked as the API server does: functions, and the
/// variables `object`, `oldObject`, `request`, `namespaceObject`, `authorizer` and `variables`.
/// Fields of `object` and `oldObject` are looked up in the type, by their names in JSON; keys of a
/// map stand in brackets.
///
/// ```
/// # extern crate windlass_webhook as windlass;
/// use k8s_openapi::api::apps::v1::Deployment;
/// use windlass::webhook::{CelExpression, cel};
///
/// const FEW: CelExpression<Deployment, bool> = cel!(Deployment: "object.spec.replicas <= 5");
/// let images: CelExpression<Deployment, bool> = cel!(
///     Deployment: "object.spec.template.spec.containers.all(it, it.image.startsWith('shop/'))"
/// );
/// let team: CelExpression<Deployment, String> =
///     cel!(Deployment: "'the team is ' + object.metadata.labels['team']");
/// # let _ = (FEW, images, team);
/// ```
///
/// A name that is no field is an error of the compiler:
///
/// ```compile_fail,E0609
/// # extern crate windlass_webhook as windlass;
/// # use k8s_openapi::api::apps::v1::Deployment;
/// # use windlass::webhook::{CelExpression, cel};
/// let few: CelExpression<Deployment, bool> = cel!(Deployment: "object.spec.replica <= 5");
/// ```
///
/// Without a type no field is looked up: for objects that are not of the kind, such as the `Scale`
/// of `deployments/scale`, and for fields that a type renames by other rules than Kubernetes'
/// types.
///
/// ```
/// # extern crate windlass_webhook as windlass;
/// # use k8s_openapi::api::apps::v1::Deployment;
/// # use windlass::webhook::{CelExpression, cel};
/// let few: CelExpression<Deployment, bool> = cel!("object.spec.replicas <= 5");
/// ```
#[macro_export]
macro_rules! cel {
    ($($expression:tt)*) => {
        $crate::expansion::cel_expression!($crate; $($expression)*)
    };
}
