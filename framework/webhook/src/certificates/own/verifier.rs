//! Whether certificates can be used together: each with its key, its names and its authority.

use rustls::client::{verify_server_cert_signed_by_trust_anchor, verify_server_name};
use rustls::crypto::CryptoProvider;
use rustls::server::ParsedCertificate;
use rustls::sign::CertifiedKey;
use rustls::{Error, RootCertStore};
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};

use super::pair::CertificatePair;

/// Judges the pairs of a Secret.
#[derive(Clone, Copy)]
pub(super) struct Verifier<'a> {
    provider: &'a CryptoProvider,
}

impl<'a> Verifier<'a> {
    pub(super) fn new(provider: &'a CryptoProvider) -> Self {
        Self { provider }
    }

    /// Whether the key belongs to the certificate.
    pub(super) fn is_pair(&self, pair: &CertificatePair) -> bool {
        let Some(certificate) = der(&pair.certificate) else { return false };
        let Ok(key) = PrivateKeyDer::from_pem_slice(pair.key.as_bytes()) else { return false };
        CertifiedKey::from_der(vec![certificate], key, self.provider).is_ok()
    }

    /// Returns the reason why API servers would refuse a certificate; `None` for one that they
    /// accept. Its end is not judged.
    pub(super) fn fault(
        &self,
        serving: &CertificatePair,
        authority: &CertificatePair,
        hosts: &[String],
    ) -> Option<&'static str> {
        if !self.is_pair(serving) {
            return Some("its key does not belong to the certificate");
        }
        let certificate = der(&serving.certificate)?;
        let Ok(parsed) = ParsedCertificate::try_from(&certificate) else {
            return Some("the certificate cannot be read");
        };
        if self.is_signed(&parsed, serving, authority).is_err() {
            return Some("its authority did not sign it for a server");
        }
        let has = |host: &String| {
            let name = ServerName::try_from(host.as_str());
            name.is_ok_and(|name| verify_server_name(&parsed, &name).is_ok())
        };
        (!hosts.iter().all(has)).then_some("the certificate is not for the names of the operator")
    }

    fn is_signed(
        &self,
        parsed: &ParsedCertificate<'_>,
        serving: &CertificatePair,
        authority: &CertificatePair,
    ) -> Result<(), Error> {
        let mut roots = RootCertStore::empty();
        roots.add_parsable_certificates(der(&authority.certificate));
        // At a moment of its life: a certificate that ended is replaced for that reason.
        let seconds = u64::try_from(serving.validity.not_before.as_second()).unwrap_or_default();
        let at = UnixTime::since_unix_epoch(std::time::Duration::from_secs(seconds));
        let algorithms = self.provider.signature_verification_algorithms.all;
        verify_server_cert_signed_by_trust_anchor(parsed, &roots, &[], at, algorithms)
    }
}

fn der(certificate: &str) -> Option<CertificateDer<'static>> {
    CertificateDer::from_pem_slice(certificate.as_bytes()).ok()
}
