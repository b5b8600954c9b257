//! Bundles of authorities, PEM.

use rustls_pki_types::CertificateDer;
use rustls_pki_types::pem::PemObject;

use super::validity::Validity;

/// Most authorities that are trusted beside those of today: earlier ones, and those of others.
pub(crate) const MOST_TRUSTED: usize = 4;

/// Returns the validity of a certificate; `None` when the certificate cannot be read.
pub(crate) fn validity(certificate: &str) -> Option<Validity> {
    Validity::of(&CertificateDer::from_pem_slice(certificate.as_bytes()).ok()?)
}

/// Returns the certificates of a PEM bundle; spoilt ones, which API servers would refuse, are left
/// out.
pub(crate) fn certificates(bundle: &str) -> impl Iterator<Item = String> + '_ {
    const BEGIN: &str = "-----BEGIN CERTIFICATE-----";
    const END: &str = "-----END CERTIFICATE-----";
    bundle
        .split_inclusive(END)
        .filter(|one| one.ends_with(END))
        // Some files have text between the certificates.
        .filter_map(|one| Some(format!("{}\n", &one[one.rfind(BEGIN)?..])))
        .filter(|one| validity(one).is_some())
}

/// Whether a bundle has a certificate, PEM.
pub(crate) fn has(bundle: &str, certificate: &str) -> bool {
    certificates(bundle).any(|one| one.trim() == certificate.trim())
}
