//! Certificates that the operator makes by itself, in a Secret that its replicas share.
//!
//! Files: `material` reads the Secret and decides, without I/O; `issue` makes certificates;
//! `temporary` has those of an operator outside of a cluster.

// DESIGN.md, 203: The operator's own certificates are steps of one Secret, taken by whoever is
// first

mod issue;
mod material;
mod pair;
mod temporary;

use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Secret;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use windlass_core::Error;

use self::issue::Names;
#[cfg(test)]
pub(crate) use self::material::OVERLAP;
use self::material::{Material, Step};
pub(crate) use self::temporary::TemporaryCertificates;
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
/// Secret that was emptied or spoilt is made anew.
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
        shown: &mut Option<Material>,
    ) -> Result<bool, Error> {
        let names = Names::new(&cx.operator, &cx.namespace);
        let api = cx.client.namespace::<Secret>(&cx.namespace);
        let stored = api.get_opt(&secret_name(&cx.operator)).await?;
        let now = cx.client.environment().clock.wall();
        let read = stored.as_ref().and_then(Material::read);
        let (material, step) = match read {
            Some(material) => {
                let step = material.step(now);
                (material.take(step, &names, now)?, step)
            }
            None => (Material::anew(&names, now)?, Step::Anew),
        };
        if step != Step::Keep {
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
        if shown.as_ref() != Some(&material) {
            let (chain, key) = material.serving();
            certificate.set(chain.as_bytes(), key.as_bytes())?;
            *shown = Some(material);
        }
        certificate.is_current();
        Ok(true)
    }
}

impl CertificateSource for OwnCertificates {
    fn maintain<'a>(
        &'a self,
        certificate: &'a ServingCertificate,
        cx: &'a CertificateContext,
    ) -> SourceFuture<'a> {
        Box::pin(async move {
            let clock = &cx.client.environment().clock;
            let mut shown = None;
            loop {
                let is_done = Self::pass(certificate, cx, &mut shown).await?;
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
