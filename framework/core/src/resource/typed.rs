//! The status of a kind as a type.
//!
//! The relation is a trait of the status with the kind as a parameter, and no associated type of
//! the kind: a status may be private where its kind is public, and Rust refuses an associated type
//! that is more private than the trait's implementor.

// DESIGN.md, 140: The status of a kind is a trait of the status

use k8s_openapi::api::apps::v1 as apps;
use k8s_openapi::api::autoscaling::v2 as autoscaling;
use k8s_openapi::api::batch::v1 as batch;
use k8s_openapi::api::certificates::v1 as certificates;
use k8s_openapi::api::core::v1 as core;
use k8s_openapi::api::flowcontrol::v1 as flowcontrol;
use k8s_openapi::api::networking::v1 as networking;
use k8s_openapi::api::policy::v1 as policy;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1 as apiextensions;
use k8s_openapi::kube_aggregator::pkg::apis::apiregistration::v1 as apiregistration;
use serde_json::Value;

use super::{ApplyConfiguration, DynamicObject};

/// The type of the status of kind `K`.
///
/// Implemented by `#[derive(CustomResource)]` for the type of the field `status`, for the statuses
/// of built-in kinds, for references to all of them, and for `Value` as the status of a
/// [`DynamicObject`].
#[diagnostic::on_unimplemented(
    message = "the status of `{K}` is not a `{Self}`",
    label = "no status of `{K}`",
    note = "the status is the type of the field `status: Option<…>` of the kind",
    note = "`patch_status(json!({{ … }}))` writes single fields, of every kind"
)]
// No bound such as `Serialize`: a status without the bound would be reported here and at the status
// field.
pub trait StatusOf<K> {}

#[diagnostic::do_not_recommend]
impl<K, S: StatusOf<K>> StatusOf<K> for &S {}

impl StatusOf<DynamicObject> for Value {}

/// A change of the status of kind `K`: a `Value`, or the apply configuration of the status type.
#[diagnostic::on_unimplemented(
    message = "the status of `{K}` cannot be patched with a `{Self}`",
    label = "no change of the status of `{K}`",
    note = "use `json!({{ … }})`, or the apply configuration of the status, such as \
            `WebsiteStatusApply::new().replicas(2)`"
)]
pub trait StatusPatch<K> {}

impl<K> StatusPatch<K> for Value {}

#[diagnostic::do_not_recommend]
impl<K, A: ApplyConfiguration<Type: StatusOf<K>>> StatusPatch<K> for A {}

/// Implements [`StatusOf`] for kinds of Kubernetes.
macro_rules! statuses {
    ($($kind:ty: $status:ty;)*) => {$(
        impl StatusOf<$kind> for $status {}
    )*};
}

statuses! {
    apps::DaemonSet: apps::DaemonSetStatus;
    apps::Deployment: apps::DeploymentStatus;
    apps::ReplicaSet: apps::ReplicaSetStatus;
    apps::StatefulSet: apps::StatefulSetStatus;
    autoscaling::HorizontalPodAutoscaler: autoscaling::HorizontalPodAutoscalerStatus;
    batch::CronJob: batch::CronJobStatus;
    batch::Job: batch::JobStatus;
    certificates::CertificateSigningRequest: certificates::CertificateSigningRequestStatus;
    core::Namespace: core::NamespaceStatus;
    core::Node: core::NodeStatus;
    core::PersistentVolume: core::PersistentVolumeStatus;
    core::PersistentVolumeClaim: core::PersistentVolumeClaimStatus;
    core::Pod: core::PodStatus;
    core::ReplicationController: core::ReplicationControllerStatus;
    core::ResourceQuota: core::ResourceQuotaStatus;
    core::Service: core::ServiceStatus;
    flowcontrol::FlowSchema: flowcontrol::FlowSchemaStatus;
    flowcontrol::PriorityLevelConfiguration: flowcontrol::PriorityLevelConfigurationStatus;
    networking::Ingress: networking::IngressStatus;
    policy::PodDisruptionBudget: policy::PodDisruptionBudgetStatus;
    apiextensions::CustomResourceDefinition: apiextensions::CustomResourceDefinitionStatus;
    apiregistration::APIService: apiregistration::APIServiceStatus;
}
