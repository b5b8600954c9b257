//! Certificates are made: authorities and those that they sign.

use std::time::Duration;

use jiff::Timestamp;
use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose,
};
use windlass_core::{Error, ErrorKind};
use zeroize::Zeroizing;

use super::pair::CertificatePair;
use super::{after, before};

/// Life of an authority.
const AUTHORITY: Duration = Duration::from_secs(365 * 24 * 3600);
/// Life of a serving certificate.
const SERVING: Duration = Duration::from_secs(90 * 24 * 3600);
/// Time by which the clock of an API server may be slow.
pub(super) const SKEW: Duration = Duration::from_secs(300);

/// Names in the certificates of an operator.
#[derive(Clone, Debug)]
pub(super) struct CertificateNames {
    operator: String,
    service: String,
    namespace: String,
    /// Host of an operator outside of the cluster.
    host: Option<String>,
}

impl CertificateNames {
    pub(super) fn new(operator: &str, namespace: &str) -> Self {
        let service = format!("{operator}-webhooks");
        Self { operator: operator.to_owned(), service, namespace: namespace.to_owned(), host: None }
    }

    /// Adds a host: a name or an address.
    pub(super) fn host(mut self, host: &str) -> Self {
        self.host = Some(host.to_owned());
        self
    }

    /// Returns the subject of the authority of a moment. Two authorities have different ones, so
    /// that verifiers do not take one for the other.
    fn subject(&self, not_before: Timestamp) -> String {
        format!("{} webhooks {}", cut(&self.operator), not_before.as_second())
    }

    /// Returns the names that a serving certificate has.
    pub(super) fn hosts(&self) -> Vec<String> {
        let (service, namespace) = (&self.service, &self.namespace);
        let of_service = [
            format!("{service}.{namespace}.svc"),
            format!("{service}.{namespace}.svc.cluster.local"),
            "localhost".to_owned(),
            "127.0.0.1".to_owned(),
        ];
        of_service.into_iter().chain(self.host.clone()).collect()
    }
}

/// Returns the start of a name: a common name has at most 64 characters.
fn cut(name: &str) -> &str {
    name.char_indices().nth(40).map_or(name, |(end, _)| &name[..end])
}

fn unmade(error: rcgen::Error) -> Error {
    Error::new(ErrorKind::Other, "cannot make a certificate for webhooks").because(error)
}

fn unreadable() -> Error {
    Error::new(ErrorKind::Other, "cannot read the certificate that was made for webhooks")
}

/// Returns the parameters of an authority that begins at a moment.
fn authority_params(names: &CertificateNames, from: Timestamp) -> CertificateParams {
    let mut params = CertificateParams::default();
    params.distinguished_name.push(DnType::CommonName, names.subject(from));
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    params
}

/// Returns a time for the library; one before 1970 becomes 1970.
fn set_life(params: &mut CertificateParams, from: Timestamp, to: Timestamp) {
    let seconds = |time: Timestamp| u64::try_from(time.as_second()).unwrap_or_default();
    let epoch = rcgen::date_time_ymd(1970, 1, 1);
    params.not_before = epoch + Duration::from_secs(seconds(from));
    params.not_after = epoch + Duration::from_secs(seconds(to));
}

/// Makes an authority.
pub(super) fn authority(
    names: &CertificateNames,
    now: Timestamp,
) -> Result<CertificatePair, Error> {
    let from = before(now, SKEW);
    let mut params = authority_params(names, from);
    set_life(&mut params, from, after(from, AUTHORITY));
    let key = KeyPair::generate().map_err(unmade)?;
    let certificate = params.self_signed(&key).map_err(unmade)?.pem();
    CertificatePair::new(certificate, Zeroizing::new(key.serialize_pem())).ok_or_else(unreadable)
}

/// Makes a serving certificate, which does not outlive its authority.
pub(super) fn serving(
    names: &CertificateNames,
    authority: &CertificatePair,
    now: Timestamp,
) -> Result<CertificatePair, Error> {
    let from = before(now, SKEW).max(authority.validity.not_before);
    let to = after(from, SERVING).min(authority.validity.not_after);
    let mut params = CertificateParams::new(names.hosts()).map_err(unmade)?;
    params.distinguished_name.push(DnType::CommonName, cut(&names.service));
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    params.use_authority_key_identifier_extension = true;
    set_life(&mut params, from, to);
    let signing = KeyPair::from_pem(&authority.key).map_err(unmade)?;
    // The parameters are those that the authority was made of: its certificate is not parsed.
    let issuer = Issuer::new(authority_params(names, authority.validity.not_before), signing);
    let key = KeyPair::generate().map_err(unmade)?;
    let certificate = params.signed_by(&key, &issuer).map_err(unmade)?.pem();
    CertificatePair::new(certificate, Zeroizing::new(key.serialize_pem())).ok_or_else(unreadable)
}
