//! Certificate authority of a server, with a server certificate and the administrator's.

use std::net::IpAddr;
use std::sync::Arc;

use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose, SanType, date_time_ymd,
};
use rustls::ServerConfig;
use rustls::crypto::ring;
use rustls::server::WebPkiClientVerifier;
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};

use super::clients::Clients;
use super::sec1;

/// A certificate with the key, in PEM. Has no `Debug`.
#[derive(Clone)]
pub(crate) struct PemIdentity {
    /// The certificate, in PEM.
    pub(crate) certificate: String,
    /// The key of the certificate, in PEM.
    pub(crate) key: String,
}

/// A generated authority with the certificates that it signed.
pub(crate) struct Authority {
    /// Certificate of the authority, in PEM, which clients trust.
    pub(crate) certificate: String,
    /// Client certificate of the administrator.
    pub(crate) admin: PemIdentity,
    /// Certificate of the authority, in DER, and those of further authorities of clients.
    clients: Vec<CertificateDer<'static>>,
    /// Certificate of the server, in DER.
    pub(super) server: CertificateDer<'static>,
    /// Key of the server, in PKCS #8.
    server_key: Vec<u8>,
}

/// Returns the certificates of authorities in a text of PEM blocks, or why they cannot be used.
pub(crate) fn authorities(pem: &str) -> std::io::Result<Vec<CertificateDer<'static>>> {
    let read = "read the authorities of clients";
    let found = CertificateDer::pem_slice_iter(pem.as_bytes()).collect::<Result<Vec<_>, _>>();
    let found = found.map_err(|error| failed(read, error))?;
    if found.is_empty() && !pem.is_empty() {
        return Err(failed(read, "the text holds no certificate in PEM"));
    }
    let mut roots = rustls::RootCertStore::empty();
    for certificate in &found {
        roots.add(certificate.clone()).map_err(|error| failed(read, error))?;
    }
    Ok(found)
}

impl std::fmt::Debug for Authority {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Authority").finish_non_exhaustive()
    }
}

/// Returns an I/O error about a step that failed.
fn failed(what: &str, error: impl std::fmt::Display) -> std::io::Error {
    std::io::Error::other(format!("cannot {what}: {error}"))
}

/// Returns parameters with a name, and with a validity that does not depend on the clock.
fn params(common_name: &str, organization: Option<&str>) -> CertificateParams {
    let mut params = CertificateParams::default();
    params.distinguished_name.push(DnType::CommonName, common_name);
    if let Some(organization) = organization {
        params.distinguished_name.push(DnType::OrganizationName, organization);
    }
    // Fixed dates: a paused or shifted test clock must not invalidate the certificates.
    params.not_before = date_time_ymd(2020, 1, 1);
    params.not_after = date_time_ymd(2049, 12, 31);
    params
}

/// Returns the names and addresses under which the server is reached.
fn names(addr: IpAddr) -> Result<Vec<SanType>, rcgen::Error> {
    let mut names = Vec::new();
    for name in [
        "localhost",
        "kubernetes",
        "kubernetes.default",
        "kubernetes.default.svc",
        "kubernetes.default.svc.cluster.local",
    ] {
        names.push(SanType::DnsName(name.try_into()?));
    }
    let mut addresses: Vec<IpAddr> =
        vec![[127, 0, 0, 1].into(), std::net::Ipv6Addr::LOCALHOST.into()];
    // No client can name the unspecified address.
    if !addr.is_unspecified() && !addresses.contains(&addr) {
        addresses.push(addr);
    }
    names.extend(addresses.into_iter().map(SanType::IpAddress));
    Ok(names)
}

/// Returns the parameters of an authority. They do not change, because the issuer is made from them
/// again.
fn own_params() -> CertificateParams {
    let mut own = params("windlass-apiserver-ca", None);
    own.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    own.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    own
}

impl PemIdentity {
    /// Generates a certificate that signs others, and the key.
    pub(crate) fn generate_authority() -> std::io::Result<Self> {
        let made = KeyPair::generate().and_then(|key| {
            let certificate = own_params().self_signed(&key)?.pem();
            Ok(Self { certificate, key: key.serialize_pem() })
        });
        made.map_err(|error| failed("make an authority", error))
    }
}

impl Authority {
    /// Makes an authority from certificate and key, and generates a server certificate (also for
    /// `addr`) and the administrator's certificate. Clients of further authorities are accepted,
    /// too.
    pub(crate) fn new(
        own: &PemIdentity,
        addr: IpAddr,
        further: Vec<CertificateDer<'static>>,
    ) -> std::io::Result<Self> {
        let der = CertificateDer::from_pem_slice(own.certificate.as_bytes())
            .map_err(|error| failed("read the authority's certificate", error))?;
        let clients = std::iter::once(der).chain(further).collect();
        Self::try_new(own, clients, addr).map_err(|error| failed("make certificates", error))
    }

    /// Generates the certificates.
    fn try_new(
        own: &PemIdentity,
        clients: Vec<CertificateDer<'static>>,
        addr: IpAddr,
    ) -> Result<Self, rcgen::Error> {
        let issuer = Issuer::new(own_params(), KeyPair::from_pem(&own.key)?);
        let mut server = params("windlass-apiserver", None);
        server.subject_alt_names = names(addr)?;
        server.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        let server_key = KeyPair::generate()?;
        let server = server.signed_by(&server_key, &issuer)?;

        let mut admin = params("kubernetes-admin", Some(crate::rbac::MASTERS));
        admin.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
        let admin_key = KeyPair::generate()?;
        let admin = admin.signed_by(&admin_key, &issuer)?;
        // The form that the most clients read; PKCS #8 if the key were of another kind.
        let key =
            sec1::pem(&admin_key.serialize_der()).unwrap_or_else(|| admin_key.serialize_pem());
        Ok(Self {
            certificate: own.certificate.clone(),
            admin: PemIdentity { certificate: admin.pem(), key },
            clients,
            server: server.der().clone(),
            server_key: server_key.serialize_der(),
        })
    }

    /// Returns the verifier of client certificates of this authority and of further authorities.
    pub(super) fn clients(&self) -> std::io::Result<Arc<Clients>> {
        let mut roots = rustls::RootCertStore::empty();
        for certificate in &self.clients {
            roots.add(certificate.clone()).map_err(|e| failed("trust an authority", e))?;
        }
        let provider = Arc::new(ring::default_provider());
        let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider)
            .build()
            .map_err(|e| failed("verify client certificates", e))?;
        Ok(Arc::new(Clients::new(verifier)))
    }

    /// Returns the TLS settings of the server: HTTP/2 and HTTP/1.1, with optional client
    /// certificates.
    pub(super) fn server_config(&self, clients: Arc<Clients>) -> std::io::Result<ServerConfig> {
        let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(self.server_key.clone()));
        let mut config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .map_err(|e| failed("set up TLS", e))?
            .with_client_cert_verifier(clients)
            .with_single_cert(vec![self.server.clone()], key)
            .map_err(|e| failed("use the server certificate", e))?;
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        Ok(config)
    }
}
