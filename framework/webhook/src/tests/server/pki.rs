//! Authorities and certificates of tests.

use std::sync::Arc;
use std::time::Duration;

use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair};
use rustls::client::WantsClientCert;
use rustls::time_provider::TimeProvider;
use rustls::{ClientConfig, ConfigBuilder, RootCertStore};
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, PrivateKeyDer, UnixTime};
use windlass_core::clock::Clock;

/// Name of the server.
pub(super) const NAME: &str = "hooks.shop.svc";

/// A certificate authority.
pub(super) struct Authority {
    pub(super) pem: String,
    issuer: Issuer<'static, KeyPair>,
}

impl Authority {
    pub(super) fn new(name: &str) -> Self {
        let mut params = CertificateParams::new(Vec::<String>::new()).unwrap();
        params.distinguished_name.push(DnType::CommonName, name);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().unwrap();
        let pem = params.self_signed(&key).unwrap().pem();
        Self { pem, issuer: Issuer::new(params, key) }
    }

    /// Returns a certificate for [`NAME`] and its key, PEM.
    pub(super) fn issue(&self) -> (String, String) {
        self.issue_between((1975, 1, 1), (4096, 1, 1))
    }

    /// Returns a certificate with a period of validity, in days.
    pub(super) fn issue_between(&self, from: (i32, u8, u8), to: (i32, u8, u8)) -> (String, String) {
        let mut params = CertificateParams::new(vec![NAME.to_owned()]).unwrap();
        params.not_before = rcgen::date_time_ymd(from.0, from.1, from.2);
        params.not_after = rcgen::date_time_ymd(to.0, to.1, to.2);
        let key = KeyPair::generate().unwrap();
        (params.signed_by(&key, &self.issuer).unwrap().pem(), key.serialize_pem())
    }

    /// Returns a certificate of a client and its key, PEM.
    pub(super) fn issue_for_client(&self) -> (String, String) {
        let mut params = CertificateParams::new(Vec::<String>::new()).unwrap();
        params.distinguished_name.push(DnType::CommonName, "kube-apiserver");
        params.extended_key_usages = vec![rcgen::ExtendedKeyUsagePurpose::ClientAuth];
        let key = KeyPair::generate().unwrap();
        (params.signed_by(&key, &self.issuer).unwrap().pem(), key.serialize_pem())
    }

    /// Returns the settings of a client that trusts this authority.
    pub(super) fn client(&self, protocols: &[&str]) -> ClientConfig {
        self.client_with(protocols, None)
    }

    /// Returns the settings of a client that shows a certificate.
    pub(super) fn client_with(
        &self,
        protocols: &[&str],
        identity: Option<(String, String)>,
    ) -> ClientConfig {
        let builder = trusting(&self.pem);
        let mut config = match identity {
            None => builder.with_no_client_auth(),
            Some((chain, key)) => {
                let chain = CertificateDer::from_pem_slice(chain.as_bytes()).unwrap();
                let key = PrivateKeyDer::from_pem_slice(key.as_bytes()).unwrap();
                builder.with_client_auth_cert(vec![chain], key).unwrap()
            }
        };
        config.alpn_protocols = protocols.iter().map(|name| name.as_bytes().to_vec()).collect();
        config
    }
}

fn trusting(authorities: &str) -> ConfigBuilder<ClientConfig, WantsClientCert> {
    let roots = roots(authorities);
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
}

fn roots(authorities: &str) -> RootCertStore {
    let mut roots = RootCertStore::empty();
    for authority in CertificateDer::pem_slice_iter(authorities.as_bytes()) {
        roots.add(authority.unwrap()).unwrap();
    }
    roots
}

/// Returns the settings of a client that trusts authorities, PEM.
pub(super) fn client_of(authorities: &str) -> ClientConfig {
    trusting(authorities).with_no_client_auth()
}

/// The time of a client that judges certificates.
#[derive(Debug)]
struct Simulated(Clock);

impl TimeProvider for Simulated {
    fn current_time(&self) -> Option<UnixTime> {
        let seconds = u64::try_from(self.0.wall().as_second()).ok()?;
        Some(UnixTime::since_unix_epoch(Duration::from_secs(seconds)))
    }
}

/// Returns the settings of a client that trusts authorities, PEM, and has another time.
pub(super) fn client_at(authorities: &str, clock: &Clock) -> ClientConfig {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    ClientConfig::builder_with_details(provider, Arc::new(Simulated(clock.clone())))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots(authorities))
        .with_no_client_auth()
}
