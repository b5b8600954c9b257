//! Certificates of an operator outside of a cluster, kept in memory only.

use windlass_core::Error;

use super::issue::{CertificateNames, authority, serving};
use crate::certificates::{
    CertificateContext, CertificateSource, ServingCertificate, SourceFuture,
};

/// An authority and a certificate (90 days) for one host, made at each start.
#[derive(Clone, Debug)]
pub(crate) struct TemporaryCertificates {
    host: String,
}

impl TemporaryCertificates {
    /// Returns the source for a host: a name or an address.
    pub(crate) fn new(host: impl Into<String>) -> Self {
        Self { host: host.into() }
    }

    fn set(&self, certificate: &ServingCertificate, cx: &CertificateContext) -> Result<(), Error> {
        let names = CertificateNames::new(&cx.operator, &cx.namespace).host(&self.host);
        let now = cx.client.environment().clock.wall();
        let authority = authority(&names, now)?;
        let serving = serving(&names, &authority, now)?;
        certificate.set(serving.certificate.as_bytes(), serving.key.as_bytes())?;
        certificate.trust(&authority.certificate);
        Ok(())
    }
}

impl CertificateSource for TemporaryCertificates {
    fn maintain<'a>(
        &'a self,
        certificate: &'a ServingCertificate,
        cx: &'a CertificateContext,
    ) -> SourceFuture<'a> {
        Box::pin(async move {
            self.set(certificate, cx)?;
            std::future::pending().await
        })
    }
}
