//! Kubernetes types that a definition keeps whole and unchecked.

use k8s_openapi::Resource;
use k8s_openapi::api::{
    admissionregistration::v1 as admission, apps::v1 as apps, autoscaling::v2 as autoscaling,
    batch::v1 as batch, core::v1 as core, networking::v1 as networking, policy::v1 as policy,
    rbac::v1 as rbac, storage::v1 as storage,
};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1 as apiextensions;
use k8s_openapi::apimachinery::pkg::apis::meta::v1 as meta;
use k8s_openapi::apimachinery::pkg::runtime::RawExtension;
use schemars::{Schema, SchemaGenerator};
use serde_json::{Value, json};

use super::{KubernetesSchema, object};
use crate::crd::shapes::{EMBEDDED, OPAQUE, UNCHECKED};

/// Any object, kept whole.
fn opaque() -> Value {
    json!({ "type": "object", "x-kubernetes-preserve-unknown-fields": true, UNCHECKED: OPAQUE })
}

/// Any object, of a type that reads all of them.
fn raw() -> Value {
    json!({ "type": "object", "x-kubernetes-preserve-unknown-fields": true })
}

/// Any value, kept whole.
fn preserved() -> Value {
    json!({ "x-kubernetes-preserve-unknown-fields": true })
}

/// A whole Kubernetes object: the server checks `metadata`, and `apiVersion` and `kind`, of which
/// serde reads no others.
fn embedded<K: Resource>() -> Value {
    json!({
        "type": "object",
        "properties": {
            "apiVersion": { "type": "string", "enum": [K::API_VERSION] },
            "kind": { "type": "string", "enum": [K::KIND] }
        },
        "x-kubernetes-embedded-resource": true,
        "x-kubernetes-preserve-unknown-fields": true,
        UNCHECKED: EMBEDDED
    })
}

macro_rules! kept {
    ($($ty:ty: $schema:ident),* $(,)?) => {$(
        impl KubernetesSchema for $ty {
            fn kubernetes_schema(_: &mut SchemaGenerator) -> Schema {
                object($schema())
            }
        }
    )*};
}

macro_rules! whole {
    ($($ty:ty),* $(,)?) => {$(
        impl KubernetesSchema for $ty {
            fn kubernetes_schema(_: &mut SchemaGenerator) -> Schema {
                object(embedded::<Self>())
            }
        }
    )*};
}

/// Metadata of an embedded object: the fields that the author writes are checked, all are kept.
fn metadata() -> Value {
    let texts = json!({ "type": "object", "additionalProperties": { "type": "string" } });
    json!({
        "type": "object",
        "properties": {
            "name": { "type": "string" },
            "namespace": { "type": "string" },
            "labels": texts,
            "annotations": texts,
            "finalizers": { "type": "array", "items": { "type": "string" } }
        },
        "x-kubernetes-preserve-unknown-fields": true,
        UNCHECKED: "an API server does not check the other fields of the metadata; serde refuses those of other types"
    })
}

kept! {
    meta::ObjectMeta: metadata,
    RawExtension: raw,
    apiextensions::JSON: preserved,

    admission::RuleWithOperations: opaque,
    apps::DaemonSetSpec: opaque, apps::DeploymentSpec: opaque, apps::DeploymentStrategy: opaque,
    apps::DaemonSetUpdateStrategy: opaque, apps::StatefulSetSpec: opaque,
    apps::StatefulSetUpdateStrategy: opaque,
    apps::StatefulSetPersistentVolumeClaimRetentionPolicy: opaque,


    autoscaling::HorizontalPodAutoscalerBehavior: opaque,
    autoscaling::HorizontalPodAutoscalerSpec: opaque, autoscaling::MetricSpec: opaque,
    batch::CronJobSpec: opaque, batch::JobSpec: opaque,
    batch::JobTemplateSpec: opaque,
    core::Affinity: opaque, core::Capabilities: opaque,
    core::ConfigMapEnvSource: opaque, core::ConfigMapVolumeSource: opaque,
    core::ContainerPort: opaque, core::ContainerStatus: opaque, core::EmptyDirVolumeSource: opaque,
    core::EnvFromSource: opaque, core::EnvVarSource: opaque,
    core::EphemeralContainer: opaque, core::HTTPGetAction: opaque, core::HostAlias: opaque,
    core::HostPathVolumeSource: opaque, core::KeyToPath: opaque, core::Lifecycle: opaque,
    core::LoadBalancerIngress: opaque, core::LoadBalancerStatus: opaque, core::NFSVolumeSource: opaque,
    core::NodeAffinity: opaque, core::NodeSelector: opaque,
    core::NodeSelectorTerm: opaque, core::ObjectFieldSelector: opaque,
    core::PersistentVolumeClaimSpec: opaque,
    core::PersistentVolumeClaimTemplate: opaque, core::PersistentVolumeClaimVolumeSource: opaque,
    core::PersistentVolumeSpec: opaque, core::PodAffinity: opaque,
    core::PodAffinityTerm: opaque, core::PodAntiAffinity: opaque, core::PodDNSConfig: opaque,
    core::PodSecurityContext: opaque, core::PodSpec: opaque, core::PodStatus: opaque,
    core::PodTemplateSpec: opaque, core::Probe: opaque, core::ProjectedVolumeSource: opaque,
    core::SeccompProfile: opaque, core::SecretEnvSource: opaque,
    core::SecretVolumeSource: opaque, core::SecurityContext: opaque,
    core::ServicePort: opaque, core::ServiceSpec: opaque,
    core::ServiceStatus: opaque, core::Taint: opaque, core::TopologySpreadConstraint: opaque,

    core::VolumeResourceRequirements: opaque,
    networking::HTTPIngressPath: opaque,
    networking::IngressBackend: opaque, networking::IngressRule: opaque, networking::IngressSpec: opaque,
    networking::IngressTLS: opaque,
    networking::NetworkPolicyEgressRule: opaque, networking::NetworkPolicyIngressRule: opaque,
    networking::NetworkPolicyPeer: opaque, networking::NetworkPolicyPort: opaque,
    networking::NetworkPolicySpec: opaque,
    policy::PodDisruptionBudgetSpec: opaque,
    rbac::PolicyRule: opaque,
    rbac::RoleRef: opaque, rbac::Subject: opaque,

}

whole! {
    apps::DaemonSet, apps::Deployment, apps::ReplicaSet, apps::StatefulSet, autoscaling::HorizontalPodAutoscaler, batch::CronJob, batch::Job, core::ConfigMap, core::Namespace, core::PersistentVolume, core::PersistentVolumeClaim, core::Pod, core::Secret, core::Service, core::ServiceAccount, networking::Ingress, networking::NetworkPolicy, policy::PodDisruptionBudget, rbac::ClusterRole, rbac::Role, rbac::RoleBinding, storage::StorageClass,
}
