//! Certificates for the real API server and the server's clients.
//!
//! Keys are made anew for each server and never leave the server's folder; every
//! other server rejects the certificates of one server.

use std::fmt;
use std::time::Duration;

use jiff::Timestamp;
use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose,
};

use super::failed;
use windlass_client::client::SecretString;
use windlass_core::error::Error;

/// A client certificate with the key, PEM.
#[derive(Clone, Debug)]
pub struct ClientCertificate {
    /// The certificate, PEM: the form that [`ClientConfig`](windlass_client::client::ClientConfig)
    /// expects.
    pub certificate: String,
    /// Private key.
    pub key: SecretString,
}

/// A certificate authority.
pub(super) struct Authority {
    /// Signs certificates with the authority's name and key.
    issuer: Issuer<'static, KeyPair>,
    /// Certificate of the authority, PEM.
    pub(super) certificate: String,
}

/// A certificate and the private key, PEM.
pub(super) struct PemIdentity {
    /// The certificate.
    pub(super) certificate: String,
    /// Private key of the certificate.
    pub(super) key: String,
}

impl Authority {
    /// Creates an authority with a new key.
    ///
    /// `name` is the common name in the certificate, by which a failed verification is recognized.
    pub(super) fn new(name: &str) -> Result<Self, Error> {
        let make = || -> Result<Self, rcgen::Error> {
            let mut params = named(name);
            params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
            // Verifiers reject a CA whose certificate lists usages without that of signing
            // certificates.
            params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
            let key = KeyPair::generate()?;
            let certificate = params.self_signed(&key)?.pem();
            Ok(Self { issuer: Issuer::new(params, key), certificate })
        };
        make().map_err(|error| failed(format!("cannot make the CA {name}")).because(error))
    }

    /// Creates a certificate for a server on loopback.
    ///
    /// The certificate is valid for `127.0.0.1` and `localhost`, and for no other host.
    pub(super) fn server(&self) -> Result<PemIdentity, Error> {
        let hosts = vec!["127.0.0.1".to_owned(), "localhost".to_owned()];
        let params = CertificateParams::new(hosts).map_err(cannot_make)?;
        self.sign(params, ExtendedKeyUsagePurpose::ServerAuth)
    }

    /// Creates a client certificate of `user` in `group`, valid until `until`.
    ///
    /// User and group are the subject's common name and organization, from which kube-apiserver
    /// takes them.
    pub(super) fn client(
        &self,
        user: &str,
        group: Option<&str>,
        until: Timestamp,
    ) -> Result<ClientCertificate, Error> {
        let mut params = named(user);
        if let Some(group) = group {
            params.distinguished_name.push(DnType::OrganizationName, group);
        }
        // A time before 1970 becomes 1970: such a certificate has expired either way.
        let since_1970 = Duration::from_secs(until.as_second().try_into().unwrap_or_default());
        params.not_after = rcgen::date_time_ymd(1970, 1, 1) + since_1970;
        let pair = self.sign(params, ExtendedKeyUsagePurpose::ClientAuth)?;
        Ok(ClientCertificate { certificate: pair.certificate, key: pair.key.into() })
    }

    /// Signs a certificate of a new key for this usage.
    fn sign(
        &self,
        mut params: CertificateParams,
        usage: ExtendedKeyUsagePurpose,
    ) -> Result<PemIdentity, Error> {
        // A single usage: a client's certificate must not pass for a server's.
        params.extended_key_usages = vec![usage];
        let key = KeyPair::generate().map_err(cannot_make)?;
        let certificate = params.signed_by(&key, &self.issuer).map_err(cannot_make)?;
        Ok(PemIdentity { certificate: certificate.pem(), key: key.serialize_pem() })
    }
}

impl fmt::Debug for Authority {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Authority").finish_non_exhaustive()
    }
}

/// Parameters of a certificate with this common name. kube-apiserver reads the name of a client
/// certificate as the user.
fn named(name: &str) -> CertificateParams {
    let mut params = CertificateParams::default();
    // The default's own common name is replaced.
    params.distinguished_name.push(DnType::CommonName, name);
    params
}

/// The error of a certificate that cannot be made.
pub(super) fn cannot_make(error: rcgen::Error) -> Error {
    failed("cannot make a certificate").because(error)
}
