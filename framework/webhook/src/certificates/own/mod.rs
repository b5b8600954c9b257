//! Certificates that the operator makes by itself, in a Secret that its replicas share.
//!
//! Files: `material` reads the Secret and decides, without I/O; `pair` has a certificate with its
//! key and validity; `issue` makes certificates; `verifier` judges certificates that others wrote;
//! `temporary` has those of an operator outside of a cluster.

// DESIGN.md, 203: Certificates of the operator's own are steps of one Secret, and the first writer
// takes each
// DESIGN.md, 308: Authorities of the own certificates are compared with those that API servers
// trust

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
use self::material::{Material, RenewalStep, bundle};
pub(crate) use self::temporary::TemporaryCertificates;
use self::verifier::Verifier;
use super::{CertificateContext, CertificateSource, ServingCertificate, SourceFuture, secret_name};

/// Pause between two readings of the Secret.
const PERIOD: Duration = Duration::from_secs(60);
/// Pause after a failure.
const AGAIN: Duration = Duration::from_secs(5);
/// Pause after a conflict with another replica.
const CONFLICT_PAUSE: Duration = Duration::from_millis(200);

/// Certificates that the operator makes by itself: the default of a webhook server.
///
/// An authority, which is a CA valid for a year, and a serving certificate (90 days) for
/// `<operator>-webhooks.<namespace>.svc` are kept in the Secret `<operator>-webhook-certificates`
/// of the operator's namespace. Replicas share it; the first one creates it. Each is replaced
/// once less than a fifth of its validity is left. A new authority is trusted for an hour before it
/// signs, and it signs once all configurations have it, or when the present one ends; the old one
/// is trusted until its end. So a request meets a certificate that is not trusted only if a
/// configuration is still without the new authority when the present one ends.
///
/// A serving certificate that cannot be read, does not match its key or its names, or was not
/// signed by the authority, is signed again. If the Secret was deleted, or its authority cannot be
/// used, everything is issued again, and the old authority stays trusted.
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

    /// Reads the Secret, renews what is due, and begins to serve the certificate as soon as
    /// [`LastReading::may_show`] permits; false when another replica wrote first.
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
        let (material, step) = due(stored.as_ref(), (&names, cx), verifier, (seen, now)).await?;
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
        // First the authorities, then the certificate: API servers must trust an authority before
        // they meet what it signed.
        certificate.trust(&seen.trusted(&material));
        let may_show = seen.may_show(&material, (cx, now)).await?;
        let is_new = seen.shown.as_ref() != Some(&material);
        let last = seen.last.insert(material);
        if is_new && may_show {
            if let Some(begin) = last.begins_later(now) {
                return Err(too_early(cx, begin));
            }
            let (chain, key) = last.serving();
            let set = certificate.set(chain.as_bytes(), key.as_bytes());
            set.map_err(|error| unusable(cx, error))?;
            seen.shown = Some(last.clone());
        }
        certificate.clear_problem();
        Ok(true)
    }
}

/// Memory of a source between two readings of the Secret.
#[derive(Default)]
struct LastReading {
    /// The content of the Secret at the last reading.
    last: Option<Material>,
    /// The material whose serving certificate the server presents.
    shown: Option<Material>,
    /// The text about the next authority, while it waits.
    reported: Option<String>,
}

impl LastReading {
    /// Returns the authorities to trust, PEM: those of the Secret, and the one that signed what the
    /// server still shows. A Secret that was deleted or restored may be without it.
    fn trusted(&self, material: &Material) -> String {
        let mut trusted = material.bundle();
        if let Some(shown) = self.shown.as_ref().filter(|it| !it.is_trusted_by(material)) {
            trusted.push_str(shown.authority().trim());
            trusted.push('\n');
        }
        trusted
    }

    /// Whether a certificate can be shown: the configurations have its authority since the last
    /// reading, or else nothing better is shown.
    async fn may_show(
        &self,
        material: &Material,
        (cx, now): (&CertificateContext, Timestamp),
    ) -> Result<bool, Error> {
        let shown = self.shown.as_ref().filter(|shown| !shown.is_over(now));
        let Some(shown) = shown.filter(|shown| shown.authority() != material.authority()) else {
            return Ok(true);
        };
        // API servers learn of a configuration with some delay.
        let was_trusted = self.last.as_ref().unwrap_or(shown);
        if !material.is_trusted_by(was_trusted) {
            return Ok(false);
        }
        Ok(lacking(cx, material.authority()).await?.is_none())
    }

    /// Logs once that the next authority waits.
    fn report_waiting(&mut self, object: Option<String>) {
        let is_new = object.is_some() && self.reported != object;
        if let Some(object) = object.as_deref().filter(|_| is_new) {
            tracing::warn!(
                object,
                "the next authority of webhooks does not sign yet: this object is without it; it signs \
                 once all have it, and at the latest when the present authority ends"
            );
        }
        self.reported = object;
    }
}

/// Returns an object of the operator whose authorities are without one, PEM.
async fn lacking(cx: &CertificateContext, authority: &str) -> Result<Option<String>, Error> {
    cx.objects.lacking((&cx.client, &cx.namespace), authority).await
}

/// Returns the certificates after the step that is due.
async fn due(
    stored: Option<&Secret>,
    (names, cx): (&CertificateNames, &CertificateContext),
    verifier: Verifier<'_>,
    (seen, now): (&mut LastReading, Timestamp),
) -> Result<(Material, RenewalStep), Error> {
    let fault = match stored.map(|secret| Material::read(secret, names, verifier)) {
        Some(Ok(material)) => {
            let step = step(&material, cx, (seen, now)).await?;
            let material = material.take(step, names, now)?;
            if material.is_accepted(names, verifier) {
                return Ok((material, step));
            }
            "`signing-ca.crt` is not a CA certificate that can sign"
        }
        Some(Err(fault)) => fault,
        None => "the Secret is not there",
    };
    if stored.is_some() || seen.last.is_some() {
        let secret = secret_of(cx);
        tracing::warn!(secret, fault, "the certificates of webhooks are issued again");
    }
    let mut before: Vec<String> = seen.last.iter().map(Material::bundle).collect();
    before.extend(stored.map(bundle));
    // Other replicas still present certificates signed by these, even to a process that has just
    // started.
    let trusted = cx.objects.bundles(&cx.client, &cx.namespace).await?;
    before.extend(trusted.into_iter().map(|bundle| bundle.pem));
    Ok((Material::issue(names, now, &before)?, RenewalStep::IssueAll))
}

/// Returns the step that is due. The next authority signs once every configuration has it, or when
/// the present one expires.
async fn step(
    material: &Material,
    cx: &CertificateContext,
    (seen, now): (&mut LastReading, Timestamp),
) -> Result<RenewalStep, Error> {
    let step = material.step(now);
    let waiting = material.waiting_authority(now).filter(|_| step == RenewalStep::SwitchAuthority);
    let lacking = match waiting {
        Some(next) => lacking(cx, next).await?,
        None => None,
    };
    let waits = lacking.is_some();
    seen.report_waiting(lacking);
    Ok(if waits { material.step_of_serving(now) } else { step })
}

/// Returns namespace and name of the Secret.
fn secret_of(cx: &CertificateContext) -> String {
    format!("{}/{}", cx.namespace, secret_name(&cx.operator))
}

fn unusable(cx: &CertificateContext, error: Error) -> Error {
    let text = format!(
        "the certificates in the Secret {:?} cannot be used: delete it, and they are issued again",
        secret_of(cx)
    );
    Error::new(ErrorKind::Config, text).because(error)
}

/// Returns the error about a certificate of a replica whose clock is ahead of this one.
fn too_early(cx: &CertificateContext, begin: Timestamp) -> Error {
    let text = format!(
        "the certificate in the Secret {:?} is valid only from {begin}, and is not shown before: \
         compare the clocks of the nodes; if that of the replica which made it was wrong, delete \
         the Secret",
        secret_of(cx)
    );
    Error::new(ErrorKind::Config, text)
}

impl CertificateSource for OwnCertificates {
    fn maintain<'a>(
        &'a self,
        certificate: &'a ServingCertificate,
        cx: &'a CertificateContext,
    ) -> SourceFuture<'a> {
        Box::pin(async move {
            let clock = &cx.client.environment().clock;
            // Survives errors: other replicas may present certificates of earlier authorities.
            let (mut seen, mut reported) = (LastReading::default(), None);
            loop {
                let pause = match Self::pass(certificate, cx, &mut seen).await {
                    Ok(true) => PERIOD,
                    Ok(false) => CONFLICT_PAUSE,
                    Err(error) => {
                        certificate.report(&error);
                        // Once for each series of failures of one kind.
                        let text = Some(error.to_string());
                        if reported != text {
                            tracing::warn!(%error, "the certificates of webhooks are not current");
                        }
                        reported = text;
                        clock.sleep(AGAIN).await;
                        continue;
                    }
                };
                reported = None;
                clock.sleep(pause).await;
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

/// Returns `time` plus `more`; `time` if the sum is out of range.
fn after(time: Timestamp, more: Duration) -> Timestamp {
    jiff::SignedDuration::try_from(more)
        .ok()
        .and_then(|more| time.checked_add(more).ok())
        .unwrap_or(time)
}

/// Returns `time` minus `less`; `time` if the difference is out of range.
fn before(time: Timestamp, less: Duration) -> Timestamp {
    jiff::SignedDuration::try_from(less)
        .ok()
        .and_then(|less| time.checked_sub(less).ok())
        .unwrap_or(time)
}
