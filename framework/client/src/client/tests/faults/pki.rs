//! Server certificates that are swapped while a server runs.

use rcgen::{CertificateParams, Issuer, KeyPair};
use rustls::ServerConfig;
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, PrivateKeyDer};

use super::super::*;

/// A certificate authority for a single test.
pub(super) struct Authority {
    pub(super) pem: String,
    issuer: Issuer<'static, KeyPair>,
}

impl Authority {
    pub(super) fn new() -> Self {
        let mut params = CertificateParams::new(Vec::<String>::new()).unwrap();
        params.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
        let key = KeyPair::generate().unwrap();
        let pem = params.self_signed(&key).unwrap().pem();
        Self { pem, issuer: Issuer::new(params, key) }
    }

    /// Settings of a server on this machine for TLS.
    pub(super) fn server(&self, protocols: &[&str]) -> Arc<ServerConfig> {
        let params = CertificateParams::new(vec!["127.0.0.1".to_owned()]).unwrap();
        let key = KeyPair::generate().unwrap();
        let pem = params.signed_by(&key, &self.issuer).unwrap().pem();
        let certificate = CertificateDer::from_pem_slice(pem.as_bytes()).unwrap();
        let key = PrivateKeyDer::from_pem_slice(key.serialize_pem().as_bytes()).unwrap();
        let provider = crate::client::transport::default_provider().unwrap();
        let mut config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![certificate], key)
            .unwrap();
        config.alpn_protocols = protocols.iter().map(|name| name.as_bytes().to_vec()).collect();
        Arc::new(config)
    }
}

/// Certificate for new connections.
#[derive(Debug)]
pub(super) struct Swap(Mutex<Arc<ServerConfig>>);

impl Swap {
    pub(super) fn new(config: Arc<ServerConfig>) -> Arc<Self> {
        Arc::new(Self(Mutex::new(config)))
    }

    pub(super) fn to(&self, config: Arc<ServerConfig>) {
        *self.0.lock() = config;
    }

    pub(super) fn current(&self) -> Arc<ServerConfig> {
        Arc::clone(&self.0.lock())
    }
}
