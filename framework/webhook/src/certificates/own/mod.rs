//! Certificates that the operator makes by itself, in a Secret that its replicas share.
//!
//! Files: `material` reads the Secret and decides, without I/O; `issue` makes certificates;
//! `verifier` judges what others wrote; `temporary` has those of an operator outside of a cluster.

// DESIGN.md, 203: The operator's own certificates are steps of one Secret, taken by whoever is
// first

mod issue;
mod material;
mod pair;
mod temporary;
mod verifier;

use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Secret;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use windlass_core::{Error, ErrorKind};

use self::issue::CertificateNames;
#[cfg(test)]
pub(crate) use self::material::OVERLAP;
use self::material::{Material, RenewalStep, bundle};
pub(crate) use self::temporary::TemporaryCertificates;
use self::verifier::Verifier;
use super::{CertificateContext, CertificateSource, ServingCertificate, SourceFuture, secret_name};

/// Pause between two readings of the Secret.
const PERIOD: Duration = Duration::from_secs(60);
/// Pause after a write that another replica was faster with.
const SOON: Duration = Duration::from_millis(200);

/// Certificates that the operator makes by itself: the default of a webhook server.
///
/// An authority (a year) and a serving certificate (90 days) for
/// `<operator>-webhooks.<namespace>.svc` are kept in the Secret `<operator>-webhook-certificates`
/// of the operator's namespace. Replicas share it; the first one creates it. Each is replaced
/// before less than a fifth of its life is left: a new authority is trusted for an hour before it
/// signs, and the old one until its end, so no request meets a certificate that is not trusted. A
/// serving certificate that was spoilt, whose key or names are others or which the authority did
/// not sign, is signed again; a Secret that was deleted, or whose authority was spoilt, is made
/// anew, and the old authority stays trusted.
///
/// The server writes the authorities into the operator's printed configurations, and puts back what
/// others change in them.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct OwnCertificates {}

impl OwnCertificates {
    /// Returns the source, for [`WebhookServer::certificates`](crate::WebhookServer::certificates).
    pub fn new() -> Self {
        Self::default()
    }

    /// Reads the Secret, takes a step if one is due, and shows the certificate; false when another
    /// replica was faster.
    async fn pass(
        certificate: &ServingCertificate,
        cx: &CertificateContext,
        seen: &mut LastReading,
    ) -> Result<bool, Error> {
        let names = CertificateNames::new(&cx.operator, &cx.namespace);
        let verifier = Verifier::new(certificate.provider());
        let api = cx.client.namespace::<Secret>(&cx.namespace);
        let stored = api.get_opt(&secret_name(&cx.operator)).await?;
        let now = cx.client.environment().clock.wall();
        let (material, step) = due(stored.as_ref(), (&names, cx), verifier, (seen, now))?;
        if step != RenewalStep::Keep {
            tracing::info!(?step, "the certificates of webhooks are renewed");
            let written = match stored {
                Some(secret) => api.replace(&material.write(secret)).await,
                None => api.create(&material.write(empty(cx))).await,
            };
            match written {
                Ok(_) => {}
                Err(error) if error.is_conflict() || error.is_already_exists() => return Ok(false),
                Err(error) => return Err(error),
            }
        }
        certificate.trust(&material.bundle());
        let is_new = seen.shown.as_ref() != Some(&material);
        if is_new && seen.may_show(&material, now) {
            let (chain, key) = material.serving();
            let set = certificate.set(chain.as_bytes(), key.as_bytes());
            set.map_err(|error| unusable(cx, error))?;
            seen.shown = Some(material.clone());
        }
        seen.last = Some(material);
        certificate.is_current();
        Ok(true)
    }
}

/// Memory of a source between two readings of the Secret.
#[derive(Default)]
struct LastReading {
    /// The content of the Secret at the last reading.
    last: Option<Material>,
    /// The certificates of which the server shows one.
    shown: Option<Material>,
}

impl LastReading {
    /// Whether a certificate can be shown: the configurations have its authority since the last
    /// reading, or else nothing better is shown.
    fn may_show(&self, material: &Material, now: Timestamp) -> bool {
        let shown = self.shown.as_ref().filter(|shown| !shown.is_over(now));
        let is_trusted = self.last.as_ref().is_none_or(|last| material.is_trusted_by(last));
        shown.is_none() || is_trusted
    }
}

/// Returns the certificates after the step that is due.
fn due(
    stored: Option<&Secret>,
    (names, cx): (&CertificateNames, &CertificateContext),
    verifier: Verifier<'_>,
    (seen, now): (&LastReading, Timestamp),
) -> Result<(Material, RenewalStep), Error> {
    let fault = match stored.map(|secret| Material::read(secret, names, verifier)) {
        Some(Ok(material)) => {
            let step = material.step(now);
            let material = material.take(step, names, now)?;
            if material.is_accepted(names, verifier) {
                return Ok((material, step));
            }
            "`signing-ca.crt` is no authority that signs"
        }
        Some(Err(fault)) => fault,
        None => "the Secret is not there",
    };
    if stored.is_some() || seen.last.is_some() {
        let secret = secret_of(cx);
        tracing::warn!(secret, fault, "the certificates of webhooks are made anew");
    }
    let known = seen.last.as_ref().map(Material::bundle).unwrap_or_default();
    let before = [known, stored.map(bundle).unwrap_or_default()];
    Ok((Material::anew(names, now, &[&before[0], &before[1]])?, RenewalStep::Anew))
}

/// Returns namespace and name of the Secret.
fn secret_of(cx: &CertificateContext) -> String {
    format!("{}/{}", cx.namespace, secret_name(&cx.operator))
}

fn unusable(cx: &CertificateContext, error: Error) -> Error {
    let text = format!(
        "the certificates in the Secret {:?} cannot be used: delete it, and they are made anew",
        secret_of(cx)
    );
    Error::new(ErrorKind::Config, text).because(error)
}

impl CertificateSource for OwnCertificates {
    fn maintain<'a>(
        &'a self,
        certificate: &'a ServingCertificate,
        cx: &'a CertificateContext,
    ) -> SourceFuture<'a> {
        Box::pin(async move {
            let clock = &cx.client.environment().clock;
            let mut seen = LastReading::default();
            loop {
                let is_done = Self::pass(certificate, cx, &mut seen).await?;
                clock.sleep(if is_done { PERIOD } else { SOON }).await;
            }
        })
    }

    fn is_own(&self) -> bool {
        true
    }
}

/// Returns the Secret without certificates.
fn empty(cx: &CertificateContext) -> Secret {
    let labels = [("app.kubernetes.io/name".to_owned(), cx.operator.clone())].into();
    Secret {
        metadata: ObjectMeta {
            name: Some(secret_name(&cx.operator)),
            namespace: Some(cx.namespace.clone()),
            labels: Some(labels),
            ..ObjectMeta::default()
        },
        type_: Some("Opaque".to_owned()),
        ..Secret::default()
    }
}

/// Adds a time to another one; a sum that cannot be written counts as the first.
fn after(time: Timestamp, more: Duration) -> Timestamp {
    jiff::SignedDuration::try_from(more)
        .ok()
        .and_then(|more| time.checked_add(more).ok())
        .unwrap_or(time)
}

/// Takes a time from another one; a difference that cannot be written counts as the first.
fn before(time: Timestamp, less: Duration) -> Timestamp {
    jiff::SignedDuration::try_from(less)
        .ok()
        .and_then(|less| time.checked_sub(less).ok())
        .unwrap_or(time)
}
