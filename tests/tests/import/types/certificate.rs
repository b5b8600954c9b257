// Rust types of certificates.cert-manager.io, version v1, printed by `windlass import`.
//
// Differences from the imported definition:
// - 23 optional fields accept null as well (`--exact` prevents it)
// - 2 numbers get the format of their Rust type (`--exact` prevents it)

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde::{Deserialize, Serialize};
use windlass::resource::ApiTime;
use windlass::{CustomResource, Schema};

#[derive(CustomResource, Clone, Debug, PartialEq)]
#[resource(
    group = "cert-manager.io",
    version = "v1",
    namespaced,
    plural = "certificates",
    short = ["cert", "certs"],
    category = "cert-manager"
)]
#[resource(column(name = "Ready", path = r#".status.conditions[?(@.type == "Ready")].status"#))]
#[resource(column("Secret", spec.secret_name))]
#[resource(column("Issuer", spec.issuer_ref.name, priority = 1))]
#[resource(column("Age", metadata.creation_timestamp, description = "Time since its creation."))]
pub struct Certificate {
    pub metadata: ObjectMeta,
    /// Desired state of the certificate.
    /// See the documentation for each field.
    pub spec: CertificateSpec,
    pub status: Option<CertificateStatus>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, Schema)]
#[serde(rename_all = "camelCase")]
pub struct CertificateSpec {
    /// Requested common name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub common_name: Option<String>,
    /// DNS names of the certificate.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dns_names: Option<Vec<String>>,
    /// Life time, such as `2160h`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub duration: Option<String>,
    #[serde(rename = "isCA", skip_serializing_if = "Option::is_none")]
    pub is_ca: Option<bool>,
    /// Issuer that signs the certificate.
    pub issuer_ref: CertificateIssuerRef,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub keystores: Option<CertificateKeystores>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub private_key: Option<CertificatePrivateKey>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub renew_before_percentage: Option<i32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(min = 1)]
    pub revision_history_limit: Option<i32>,
    /// Name of the Secret with the signed certificate.
    pub secret_name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub usages: Option<Vec<CertificateUsage>>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, Schema)]
pub struct CertificateIssuerRef {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub group: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// Name of the issuer.
    pub name: String,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, Schema)]
pub struct CertificateKeystores {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub jks: Option<CertificateKeystoresJks>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, Schema)]
pub struct CertificateKeystoresJks {
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(length(max = 250))]
    pub alias: Option<String>,
    pub create: bool,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, Schema)]
#[serde(rename_all = "camelCase")]
pub struct CertificatePrivateKey {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub algorithm: Option<CertificatePrivateKeyAlgorithm>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rotation_policy: Option<CertificatePrivateKeyRotationPolicy>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub size: Option<i64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, Schema)]
pub enum CertificatePrivateKeyAlgorithm {
    #[serde(rename = "RSA")]
    Rsa,
    #[serde(rename = "ECDSA")]
    Ecdsa,
    Ed25519,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, Schema)]
pub enum CertificatePrivateKeyRotationPolicy {
    Never,
    Always,
}

/// Usage of a key, by its name in RFC 5280.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, Schema)]
pub enum CertificateUsage {
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

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, Schema)]
#[serde(rename_all = "camelCase")]
pub struct CertificateStatus {
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(list(map, keys(r#type)))]
    pub conditions: Option<Vec<CertificateStatusCondition>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub not_after: Option<ApiTime>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub revision: Option<i64>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Schema)]
#[serde(rename_all = "camelCase")]
pub struct CertificateStatusCondition {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_transition_time: Option<ApiTime>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(min = 0)]
    pub observed_generation: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    pub status: CertificateStatusConditionStatus,
    #[schema(length(max = 316))]
    pub r#type: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, Schema)]
pub enum CertificateStatusConditionStatus {
    True,
    False,
    Unknown,
}
