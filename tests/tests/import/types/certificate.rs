// Rust types of certificates.cert-manager.io, version v1, printed by `windlass import`.
//
// Differences from the imported definition:
// - 23 optional fields accept null as well (`--exact` prevents it)
// - 2 numbers get the format of their Rust type (`--exact` prevents it)

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use windlass::CustomResource;

#[derive(CustomResource, Clone, Debug, PartialEq)]
#[resource(group = "cert-manager.io", version = "v1", namespaced, plural = "certificates", short = ["cert", "certs"], category = "cert-manager")]
#[resource(column(name = "Ready", path = r#".status.conditions[?(@.type == "Ready")].status"#, type = "string"))]
#[resource(column(name = "Secret", path = ".spec.secretName", type = "string"))]
#[resource(column(name = "Issuer", path = ".spec.issuerRef.name", type = "string", priority = 1))]
#[resource(column(name = "Age", path = ".metadata.creationTimestamp", type = "date", description = "Time since its creation."))]
pub struct Certificate {
    pub metadata: ObjectMeta,
    /// Desired state of the certificate.
    /// See the documentation for each field.
    pub spec: CertificateSpec,
    pub status: Option<CertificateStatus>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CertificateSpec {
    /// Requested common name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub common_name: Option<String>,
    /// DNS names of the certificate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dns_names: Option<Vec<String>>,
    /// Life time, such as `2160h`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub duration: Option<String>,
    #[serde(rename = "isCA", default, skip_serializing_if = "Option::is_none")]
    pub is_ca: Option<bool>,
    /// Issuer that signs the certificate.
    pub issuer_ref: CertificateSpecIssuerRef,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub keystores: Option<CertificateSpecKeystores>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub private_key: Option<CertificateSpecPrivateKey>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub renew_before_percentage: Option<i32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub revision_history_limit: Option<i32>,
    /// Name of the Secret with the signed certificate.
    pub secret_name: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usages: Option<Vec<CertificateSpecUsage>>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CertificateSpecIssuerRef {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// Name of the issuer.
    pub name: String,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CertificateSpecKeystores {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub jks: Option<CertificateSpecKeystoresJks>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CertificateSpecKeystoresJks {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 250))]
    pub alias: Option<String>,
    pub create: bool,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CertificateSpecPrivateKey {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub algorithm: Option<CertificateSpecPrivateKeyAlgorithm>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rotation_policy: Option<CertificateSpecPrivateKeyRotationPolicy>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size: Option<i64>,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize, Deserialize, JsonSchema)]
pub enum CertificateSpecPrivateKeyAlgorithm {
    #[serde(rename = "RSA")]
    Rsa,
    #[serde(rename = "ECDSA")]
    Ecdsa,
    Ed25519,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize, Deserialize, JsonSchema)]
pub enum CertificateSpecPrivateKeyRotationPolicy {
    Never,
    Always,
}

/// Usage of a key, by its name in RFC 5280.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize, Deserialize, JsonSchema)]
pub enum CertificateSpecUsage {
    #[serde(rename = "signing")]
    Signing,
    #[serde(rename = "digital signature")]
    DigitalSignature,
    #[serde(rename = "content commitment")]
    ContentCommitment,
    #[serde(rename = "key encipherment")]
    KeyEncipherment,
    #[serde(rename = "any")]
    Any,
    #[serde(rename = "s/mime")]
    SMime,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CertificateStatus {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-kubernetes-list-map-keys" = ["type"], "x-kubernetes-list-type" = "map"))]
    pub conditions: Option<Vec<CertificateStatusCondition>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("format" = "date-time"))]
    pub not_after: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revision: Option<i64>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CertificateStatusCondition {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("format" = "date-time"))]
    pub last_transition_time: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub observed_generation: Option<i64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    pub status: CertificateStatusConditionStatus,
    #[schemars(length(max = 316))]
    pub r#type: String,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize, Deserialize, JsonSchema)]
pub enum CertificateStatusConditionStatus {
    True,
    False,
    Unknown,
}
