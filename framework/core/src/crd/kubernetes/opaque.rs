//! Kubernetes types that a definition keeps whole and unchecked.

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

/// Any object, kept whole.
fn opaque() -> Value {
    json!({ "type": "object", "x-kubernetes-preserve-unknown-fields": true })
}

/// Any value, kept whole.
fn preserved() -> Value {
    json!({ "x-kubernetes-preserve-unknown-fields": true })
}

/// A whole Kubernetes object: the server checks `apiVersion`, `kind` and `metadata`.
fn embedded() -> Value {
    json!({
        "type": "object",
        "x-kubernetes-embedded-resource": true,
        "x-kubernetes-preserve-unknown-fields": true
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

/// Metadata of an embedded object: the fields that its author writes are checked, all are kept.
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
        "x-kubernetes-preserve-unknown-fields": true
    })
}

kept! {
    meta::ObjectMeta: metadata,
    RawExtension: opaque,
    apiextensions::JSON: preserved,

    admission::RuleWithOperations: opaque,
    apps::DaemonSetSpec: opaque, apps::DeploymentSpec: opaque, apps::DeploymentStrategy: opaque,
    apps::DaemonSetUpdateStrategy: opaque, apps::StatefulSetSpec: opaque,
    apps::StatefulSetUpdateStrategy: opaque,
    apps::StatefulSetPersistentVolumeClaimRetentionPolicy: opaque,
    apps::DaemonSet: embedded, apps::Deployment: embedded, apps::ReplicaSet: embedded,
    apps::StatefulSet: embedded,
    autoscaling::HorizontalPodAutoscaler: embedded, autoscaling::HorizontalPodAutoscalerBehavior: opaque,
    autoscaling::HorizontalPodAutoscalerSpec: opaque, autoscaling::MetricSpec: opaque,
    batch::CronJob: embedded, batch::CronJobSpec: opaque, batch::Job: embedded, batch::JobSpec: opaque,
    batch::JobTemplateSpec: opaque,
    core::Affinity: opaque, core::Capabilities: opaque, core::ConfigMap: embedded,
    core::ConfigMapEnvSource: opaque, core::ConfigMapVolumeSource: opaque,
    core::ContainerPort: opaque, core::ContainerStatus: opaque, core::EmptyDirVolumeSource: opaque,
    core::EnvFromSource: opaque, core::EnvVarSource: opaque,
    core::EphemeralContainer: opaque, core::HTTPGetAction: opaque, core::HostAlias: opaque,
    core::HostPathVolumeSource: opaque, core::KeyToPath: opaque, core::Lifecycle: opaque,
    core::LoadBalancerIngress: opaque, core::LoadBalancerStatus: opaque, core::NFSVolumeSource: opaque,
    core::Namespace: embedded, core::NodeAffinity: opaque, core::NodeSelector: opaque,
    core::NodeSelectorTerm: opaque, core::ObjectFieldSelector: opaque, core::PersistentVolume: embedded,
    core::PersistentVolumeClaim: embedded, core::PersistentVolumeClaimSpec: opaque,
    core::PersistentVolumeClaimTemplate: opaque, core::PersistentVolumeClaimVolumeSource: opaque,
    core::PersistentVolumeSpec: opaque, core::Pod: embedded, core::PodAffinity: opaque,
    core::PodAffinityTerm: opaque, core::PodAntiAffinity: opaque, core::PodDNSConfig: opaque,
    core::PodSecurityContext: opaque, core::PodSpec: opaque, core::PodStatus: opaque,
    core::PodTemplateSpec: opaque, core::Probe: opaque, core::ProjectedVolumeSource: opaque,
    core::SeccompProfile: opaque, core::Secret: embedded, core::SecretEnvSource: opaque,
    core::SecretVolumeSource: opaque, core::SecurityContext: opaque, core::Service: embedded,
    core::ServiceAccount: embedded, core::ServicePort: opaque, core::ServiceSpec: opaque,
    core::ServiceStatus: opaque, core::Taint: opaque, core::TopologySpreadConstraint: opaque,

    core::VolumeResourceRequirements: opaque,
    networking::HTTPIngressPath: opaque, networking::Ingress: embedded,
    networking::IngressBackend: opaque, networking::IngressRule: opaque, networking::IngressSpec: opaque,
    networking::IngressTLS: opaque, networking::NetworkPolicy: embedded,
    networking::NetworkPolicyEgressRule: opaque, networking::NetworkPolicyIngressRule: opaque,
    networking::NetworkPolicyPeer: opaque, networking::NetworkPolicyPort: opaque,
    networking::NetworkPolicySpec: opaque,
    policy::PodDisruptionBudget: embedded, policy::PodDisruptionBudgetSpec: opaque,
    rbac::ClusterRole: embedded, rbac::PolicyRule: opaque, rbac::Role: embedded,
    rbac::RoleBinding: embedded, rbac::RoleRef: opaque, rbac::Subject: opaque,
    storage::StorageClass: embedded,
}
