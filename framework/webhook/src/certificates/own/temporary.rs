//! Certificates of an operator outside of a cluster, kept in memory only.

// DESIGN.md, 225: Certificates at a URL take the steps of those in a cluster, in memory

use std::time::Duration;

use windlass_client::client::Client;
use windlass_core::Error;

use super::issue::CertificateNames;
use super::material::{Material, RenewalStep};
use crate::certificates::{
    CertificateContext, CertificateSource, ServingCertificate, SourceFuture, TrustingObjects,
};

/// Pause between two looks at the certificates.
const PERIOD: Duration = Duration::from_secs(60);
/// Pause after a failure.
const AGAIN: Duration = Duration::from_secs(5);

/// An authority (a year) and a certificate (90 days) for one host, made at each start and replaced
/// while the process runs.
#[derive(Clone, Debug)]
pub(crate) struct TemporaryCertificates {
    host: String,
    client: Client,
    /// The objects by which API servers ask at the URL.
    objects: TrustingObjects,
}

impl TemporaryCertificates {
    /// Returns the source for a host, a name or an address; `client` reads the objects.
    pub(crate) fn new(
        host: impl Into<String>,
        (client, objects): (Client, TrustingObjects),
    ) -> Self {
        Self { host: host.into(), client, objects }
    }

    /// Takes the step that is due, and shows a certificate that is new.
    async fn pass(
        &self,
        certificate: &ServingCertificate,
        cx: &CertificateContext,
        (held, is_trusted): &mut (Option<Material>, bool),
    ) -> Result<(), Error> {
        let names = CertificateNames::new(&cx.operator, &cx.namespace).host(&self.host);
        let now = cx.client.environment().clock.wall();
        let next = match held.as_ref() {
            None => Material::issue(&names, now, &[])?,
            Some(material) => {
                let step = self.step(material, cx, is_trusted).await?;
                if step == RenewalStep::Keep {
                    certificate.clear_problem();
                    return Ok(());
                }
                tracing::info!(?step, "the certificates of webhooks at a URL are renewed");
                material.clone().take(step, &names, now)?
            }
        };
        // First the authorities, then the certificate, as in a cluster.
        certificate.trust(&next.bundle());
        if held.as_ref().map(Material::serving) != Some(next.serving()) {
            let (chain, key) = next.serving();
            certificate.set(chain.as_bytes(), key.as_bytes())?;
        }
        certificate.clear_problem();
        *held = Some(next);
        Ok(())
    }

    /// Returns the step that is due. An authority that an object is without, or was at the last
    /// look, does not sign before the present one ends: the machine may have slept since it was
    /// made, and API servers learn of a configuration with some delay.
    async fn step(
        &self,
        material: &Material,
        cx: &CertificateContext,
        is_trusted: &mut bool,
    ) -> Result<RenewalStep, Error> {
        let now = cx.client.environment().clock.wall();
        let step = material.step(now);
        let waiting = material.waiting_authority(now);
        let Some(next) = waiting.filter(|_| step == RenewalStep::SwitchAuthority) else {
            return Ok(step);
        };
        let lacking = self.objects.lacking((&self.client, &cx.namespace), next).await?;
        let was_trusted = std::mem::replace(is_trusted, lacking.is_none());
        if *is_trusted && was_trusted {
            *is_trusted = false;
            return Ok(step);
        }
        Ok(material.step_of_serving(now))
    }
}

impl CertificateSource for TemporaryCertificates {
    fn maintain<'a>(
        &'a self,
        certificate: &'a ServingCertificate,
        cx: &'a CertificateContext,
    ) -> SourceFuture<'a> {
        Box::pin(async move {
            // Kept over errors: API servers trust the authority of before.
            let (mut held, mut reported) = ((None, false), None);
            loop {
                let pause = match self.pass(certificate, cx, &mut held).await {
                    Ok(()) => {
                        reported = None;
                        PERIOD
                    }
                    Err(error) => {
                        certificate.report(&error);
                        // Once for each series of failures of one kind.
                        let text = Some(error.to_string());
                        if reported != text {
                            tracing::warn!(%error, "the certificates of webhooks are not current");
                        }
                        reported = text;
                        AGAIN
                    }
                };
                cx.client.environment().clock.sleep(pause).await;
            }
        })
    }
}
