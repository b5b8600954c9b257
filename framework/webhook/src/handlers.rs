//! The traits of handlers.

use std::future::{Future, ready};

use windlass_core::resource::{DynamicObject, Resource};

use crate::{Admission, AdmissionResponse};

/// Judges writes of a kind.
///
/// `Object` is a derived kind, a type of `k8s_openapi`, or [`DynamicObject`] for any kind and for
/// sub-resources with an object of their own, such as `scale`. Caches and settings are fields of
/// the implementing type; the [`Admission`] has no client, since a webhook that writes is called
/// again by its own writes.
///
/// ```
/// # extern crate windlass_webhook as windlass;
/// use k8s_openapi::api::core::v1::ConfigMap;
/// use windlass::webhook::{Admission, AdmissionResponse, Validate};
///
/// /// Settings need a host, which never changes.
/// struct SettingsRules;
///
/// fn host(map: &ConfigMap) -> Option<&String> {
///     map.data.as_ref()?.get("host")
/// }
///
/// impl Validate for SettingsRules {
///     type Object = ConfigMap;
///
///     async fn validate(&self, map: &ConfigMap, _: &Admission) -> AdmissionResponse {
///         let mut response = AdmissionResponse::allowed();
///         if host(map).is_none() {
///             response.required("data[host]", "settings need a host");
///         }
///         response
///     }
///
///     async fn validate_update(
///         &self,
///         old: &ConfigMap,
///         map: &ConfigMap,
///         cx: &Admission,
///     ) -> AdmissionResponse {
///         let mut response = self.validate(map, cx).await;
///         if host(old) != host(map) {
///             response.forbidden("data[host]", "cannot be changed");
///         }
///         response
///     }
/// }
/// ```
///
/// # Cancel safety
/// The future of each method is dropped at the deadline that the API server gave, and when it hangs
/// up. A panic is logged and fails the one request.
#[diagnostic::on_unimplemented(
    message = "`{Self}` does not validate",
    note = "implement `windlass::webhook::Validate`: `type Object` and `async fn validate`"
)]
pub trait Validate: Send + Sync + 'static {
    /// The judged kind.
    type Object: Resource;

    /// Judges a new object, and by default the new state of a changed one.
    fn validate(
        &self,
        object: &Self::Object,
        cx: &Admission,
    ) -> impl Future<Output = AdmissionResponse> + Send;

    /// Judges a change. Default: [`validate`](Self::validate) with the new state.
    ///
    /// Also called for changes of metadata, such as the end of a finalizer: a rule that old objects
    /// break compares `old` and `object`, so that those can still be changed and deleted. Not
    /// called when the type cannot read `old` or `object`: a change of nothing but `metadata` and
    /// `status` is then allowed with a warning, and a repair is judged by
    /// [`validate`](Self::validate).
    fn validate_update(
        &self,
        old: &Self::Object,
        object: &Self::Object,
        cx: &Admission,
    ) -> impl Future<Output = AdmissionResponse> + Send {
        let _ = old;
        self.validate(object, cx)
    }

    /// Judges a deletion. Default: allowed, and so is one of an object that the type cannot read.
    /// API servers ask about deletions when
    /// [`WebhookRegistration::operations`](crate::WebhookRegistration::operations) names them.
    fn validate_delete(
        &self,
        old: &Self::Object,
        cx: &Admission,
    ) -> impl Future<Output = AdmissionResponse> + Send {
        let _ = (old, cx);
        ready(AdmissionResponse::allowed())
    }

    /// Judges a session, such as `pods/exec`, by its options (`PodExecOptions`). Default: allowed.
    fn validate_connect(
        &self,
        options: &DynamicObject,
        cx: &Admission,
    ) -> impl Future<Output = AdmissionResponse> + Send {
        let _ = (options, cx);
        ready(AdmissionResponse::allowed())
    }
}

/// Changes objects before they are validated and stored: defaults that depend on other fields,
/// labels.
///
/// The change is sent as a JSON patch with the changed fields only, or with the whole of a list or
/// map with more than 1000 changes; fields that the type does not know stay. Without a change no
/// patch is sent. To be called twice must change nothing more: the API server calls again after
/// changes by other webhooks.
///
/// ```
/// # extern crate windlass_webhook as windlass;
/// use k8s_openapi::api::apps::v1::Deployment;
/// use windlass::webhook::{Admission, AdmissionResponse, Mutate};
///
/// /// Deployments keep three old revisions.
/// struct FewRevisions;
///
/// impl Mutate for FewRevisions {
///     type Object = Deployment;
///
///     async fn mutate(&self, web: &mut Deployment, _: &Admission) -> AdmissionResponse {
///         if let Some(spec) = &mut web.spec {
///             spec.revision_history_limit.get_or_insert(3);
///         }
///         AdmissionResponse::allowed()
///     }
/// }
/// ```
///
/// # Cancel safety
/// As for [`Validate`].
#[diagnostic::on_unimplemented(
    message = "`{Self}` does not mutate",
    note = "implement `windlass::webhook::Mutate`: `type Object` and `async fn mutate`"
)]
pub trait Mutate: Send + Sync + 'static {
    /// The changed kind.
    type Object: Resource;

    /// Changes the object of a creation or of an update. Nothing is changed by a response that
    /// denies. Not called for deletions and sessions, which have nothing to change.
    fn mutate(
        &self,
        object: &mut Self::Object,
        cx: &Admission,
    ) -> impl Future<Output = AdmissionResponse> + Send;
}
