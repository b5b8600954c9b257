//! Certificates of one server: a generated authority, the server's certificate, client certificates.
//!
//! Everything is made at start and kept in memory; nothing is read from or written to disk here.
//! Certificates do not expire, for tests freeze and move clocks.

use std::io;
use std::net::IpAddr;
use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, ExtendedKeyUsagePurpose, IsCa,
    KeyPair, KeyUsagePurpose, SanType,
};
use rustls::RootCertStore;
use rustls::server::WebPkiClientVerifier;
use rustls_pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};

/// Names under which clients reach the server, besides the address that it listens on.
const NAMES: &[&str] = &["localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc"];

/// A certificate authority.
pub(crate) struct Authority {
    issuer: CertifiedIssuer<'static, KeyPair>,
}

/// A certificate and its key.
#[derive(Clone)]
pub(crate) struct Identity {
    /// The certificate, PEM.
    pub(crate) certificate: String,
    /// The key, PEM (PKCS#8).
    pub(crate) key: String,
    der: CertificateDer<'static>,
    key_der: Vec<u8>,
}

impl std::fmt::Debug for Authority {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Authority")
    }
}

impl std::fmt::Debug for Identity {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Identity(key not shown)")
    }
}

impl Authority {
    /// A new authority with a key of its own.
    ///
    /// # Errors
    /// When the operating system gives no randomness.
    pub(crate) fn new() -> io::Result<Self> {
        let mut params = CertificateParams::default();
        // Java refuses certificates whose issuer has no name.
        params.distinguished_name.push(DnType::CommonName, "windlass-apiserver-ca");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![
            KeyUsagePurpose::KeyCertSign,
            KeyUsagePurpose::DigitalSignature,
            KeyUsagePurpose::CrlSign,
        ];
        let key = KeyPair::generate().map_err(io::Error::other)?;
        Ok(Self { issuer: CertifiedIssuer::self_signed(params, key).map_err(io::Error::other)? })
    }

    /// The authority's certificate, PEM.
    pub(crate) fn certificate(&self) -> String {
        self.issuer.pem()
    }

    /// A client certificate: the user in the common name, one group in the organization.
    ///
    /// # Errors
    /// When the name cannot stand in a certificate.
    pub(crate) fn client(&self, user: &str, group: &str) -> io::Result<Identity> {
        let mut params = CertificateParams::default();
        params.distinguished_name.push(DnType::CommonName, user);
        params.distinguished_name.push(DnType::OrganizationName, group);
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
        self.issue(&params)
    }

    /// TLS settings of a server at `address`: client certificates are asked for, not required.
    ///
    /// # Errors
    /// When certificates cannot be made.
    pub(crate) fn server_config(&self, address: IpAddr) -> io::Result<Arc<rustls::ServerConfig>> {
        let identity = self.server(address)?;
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let mut roots = RootCertStore::empty();
        roots.add(self.issuer.der().clone()).map_err(io::Error::other)?;
        let verifier =
            WebPkiClientVerifier::builder_with_provider(Arc::new(roots), Arc::clone(&provider))
                .allow_unauthenticated()
                .build()
                .map_err(io::Error::other)?;
        let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(identity.key_der));
        let mut config = rustls::ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(io::Error::other)?
            .with_client_cert_verifier(verifier)
            .with_single_cert(vec![identity.der, self.issuer.der().clone()], key)
            .map_err(io::Error::other)?;
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        Ok(Arc::new(config))
    }

    fn server(&self, address: IpAddr) -> io::Result<Identity> {
        let mut params =
            CertificateParams::new(NAMES.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>())
                .map_err(io::Error::other)?;
        let loopback = [IpAddr::from([127, 0, 0, 1]), IpAddr::from([0, 0, 0, 0, 0, 0, 0, 1])];
        for ip in loopback.into_iter().chain([address]).filter(|ip| !ip.is_unspecified()) {
            if !params.subject_alt_names.contains(&SanType::IpAddress(ip)) {
                params.subject_alt_names.push(SanType::IpAddress(ip));
            }
        }
        params.distinguished_name.push(DnType::CommonName, "windlass-apiserver");
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        self.issue(&params)
    }

    fn issue(&self, params: &CertificateParams) -> io::Result<Identity> {
        let key = KeyPair::generate().map_err(io::Error::other)?;
        let certificate = params.signed_by(&key, &self.issuer).map_err(io::Error::other)?;
        Ok(Identity {
            certificate: certificate.pem(),
            key: key.serialize_pem(),
            der: certificate.der().clone(),
            key_der: key.serialize_der(),
        })
    }
}

/// A kubeconfig with everything inline: authority, client certificate and token of one user.
pub(crate) fn kubeconfig(
    server: &str,
    authority: &Authority,
    client: &Identity,
    token: &str,
) -> String {
    let encode = |text: &str| STANDARD.encode(text);
    format!(
        r#"apiVersion: v1
kind: Config
clusters:
- name: windlass
  cluster:
    server: {server}
    certificate-authority-data: {ca}
users:
- name: admin
  user:
    client-certificate-data: {certificate}
    client-key-data: {key}
    token: "{token}"
contexts:
- name: windlass
  context:
    cluster: windlass
    user: admin
    namespace: default
current-context: windlass
"#,
        ca = encode(&authority.certificate()),
        certificate = encode(&client.certificate),
        key = encode(&client.key),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::auth::user_of_certificate;

    #[test]
    fn a_client_certificate_names_its_user_and_groups() {
        let authority = Authority::new().unwrap();
        let identity = authority.client("ann", "dev").unwrap();
        let user = user_of_certificate(&identity.der).unwrap();
        assert_eq!((user.name.as_str(), user.is_in("dev")), ("ann", true));
    }

    #[test]
    fn neither_keys_nor_tokens_show_in_debug_output() {
        let identity = Authority::new().unwrap().client("ann", "dev").unwrap();
        assert!(!format!("{identity:?}").contains("PRIVATE"));
    }

    #[test]
    fn the_server_offers_both_http_versions() {
        let config = Authority::new().unwrap().server_config(IpAddr::from([127, 0, 0, 1])).unwrap();
        assert_eq!(config.alpn_protocols, [b"h2".to_vec(), b"http/1.1".to_vec()]);
    }
}
