//! TLS of the server: versions, protocols, client certificates.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use rustls::crypto::CryptoProvider;
use rustls::server::danger::ClientCertVerifier;
use rustls::server::{NoServerSessionStorage, WebPkiClientVerifier};
use rustls::time_provider::TimeProvider;
use rustls::{RootCertStore, ServerConfig};
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, UnixTime};
use windlass_core::clock::Clock;
use windlass_core::{Error, ErrorKind};

use super::status::ServerStatus;
use crate::certificates::{ServingCertificate, read_bounded};

/// Name of the check of readiness.
const CHECK: &str = "webhook client CA";
/// Pause between two readings of the client CA.
const PERIOD: Duration = Duration::from_secs(5);

/// Settings of TLS.
#[derive(Clone, Debug, Default)]
pub(super) struct TlsSettings {
    pub(super) provider: Option<Arc<CryptoProvider>>,
    /// Whether HTTP/2 is offered.
    pub(super) http2: bool,
    /// Whether TLS 1.2 is refused.
    pub(super) tls13_only: bool,
    /// File with the authorities of client certificates; without it clients need none.
    pub(super) client_ca: Option<PathBuf>,
}

impl TlsSettings {
    /// Returns the cryptography.
    pub(super) fn provider(&self) -> Result<Arc<CryptoProvider>, Error> {
        self.provider.clone().or_else(default_provider).ok_or_else(|| {
            let text = "there is no cryptography for TLS: build with the feature `ring` or `aws-lc-rs`, or \
                        give the webhook server a crypto_provider";
            Error::new(ErrorKind::Config, text)
        })
    }
}

/// Returns the provider that the features chose.
fn default_provider() -> Option<Arc<CryptoProvider>> {
    #[cfg(feature = "ring")]
    let provider = Some(Arc::new(rustls::crypto::ring::default_provider()));
    #[cfg(all(feature = "aws-lc-rs", not(feature = "ring")))]
    let provider = Some(Arc::new(rustls::crypto::aws_lc_rs::default_provider()));
    #[cfg(not(any(feature = "ring", feature = "aws-lc-rs")))]
    let provider = None;
    provider
}

/// The configuration of handshakes, replaced when the client CA changes.
#[derive(Debug)]
pub(super) struct ServerTls {
    settings: TlsSettings,
    provider: Arc<CryptoProvider>,
    certificate: Arc<ServingCertificate>,
    clock: Clock,
    config: Mutex<Option<Arc<ServerConfig>>>,
}

impl ServerTls {
    pub(super) fn new(
        settings: TlsSettings,
        certificate: Arc<ServingCertificate>,
        clock: Clock,
    ) -> Result<Self, Error> {
        let provider = settings.provider()?;
        let tls = Self { settings, provider, certificate, clock, config: Mutex::default() };
        if tls.settings.client_ca.is_none() {
            let config = tls.make(WebPkiClientVerifier::no_client_auth())?;
            *tls.config.lock() = Some(Arc::new(config));
        }
        Ok(tls)
    }

    /// Returns the configuration for a handshake now; `None` before the client CA was read.
    pub(super) fn config(&self) -> Option<Arc<ServerConfig>> {
        self.config.lock().clone()
    }

    /// Reads the client CA again and again. A file that cannot be used changes nothing, and is
    /// shown by readiness.
    pub(super) async fn follow_client_ca(&self, status: &ServerStatus) {
        let Some(path) = &self.settings.client_ca else { return std::future::pending().await };
        let mut last = None;
        let mut is_told = false;
        loop {
            let made = match read_bounded(path).await {
                Ok(pem) if last.as_ref() == Some(&pem) => Ok(()),
                Ok(pem) => self.trust(&pem).map(|()| last = Some(pem)),
                Err(error) => Err(error),
            };
            match made {
                Ok(()) => {
                    status.hide(CHECK);
                    is_told = false;
                }
                Err(error) => {
                    let is_used = self.config().is_some();
                    let meanwhile = match is_used {
                        true => "the one before stays in use",
                        false => "no connection is accepted until it can be read",
                    };
                    status.show(CHECK.to_owned(), CHECK, is_used, format!("{error}; {meanwhile}"));
                    if !is_told {
                        tracing::warn!(%error, meanwhile, "cannot use the CA of client certificates");
                    }
                    is_told = true;
                }
            }
            self.clock.sleep(PERIOD).await;
        }
    }

    /// Trusts the authorities of a PEM bundle, and no others, from now on.
    pub(super) fn trust(&self, pem: &[u8]) -> Result<(), Error> {
        let refuse = |why: String| {
            let text = format!("cannot use the CA of client certificates: {why}");
            Error::new(ErrorKind::Config, text)
        };
        let mut roots = RootCertStore::empty();
        for certificate in CertificateDer::pem_slice_iter(pem) {
            let certificate = certificate.map_err(|error| refuse(error.to_string()))?;
            roots.add(certificate).map_err(|error| refuse(error.to_string()))?;
        }
        let provider = Arc::clone(&self.provider);
        let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider)
            .build()
            .map_err(|error| refuse(error.to_string()))?;
        let config = self.make(verifier)?;
        *self.config.lock() = Some(Arc::new(config));
        Ok(())
    }

    fn make(&self, verifier: Arc<dyn ClientCertVerifier>) -> Result<ServerConfig, Error> {
        let versions: &[_] = match self.settings.tls13_only {
            true => &[&rustls::version::TLS13],
            false => rustls::ALL_VERSIONS,
        };
        let time = Arc::new(WallTime(self.clock.clone()));
        let builder = ServerConfig::builder_with_details(Arc::clone(&self.provider), time);
        let builder = builder.with_protocol_versions(versions).map_err(|error| {
            Error::new(ErrorKind::Config, "the TLS provider is unusable").because(error)
        })?;
        let resolver = Arc::clone(&self.certificate);
        let mut config = builder.with_client_cert_verifier(verifier).with_cert_resolver(resolver);
        // A resumed session would pass by a client CA that was replaced. API servers keep
        // connections.
        config.session_storage = Arc::new(NoServerSessionStorage {});
        config.send_tls13_tickets = 0;
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        if self.settings.http2 {
            config.alpn_protocols.insert(0, b"h2".to_vec());
        }
        Ok(config)
    }
}

/// The time at which client certificates are judged.
struct WallTime(Clock);

impl fmt::Debug for WallTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("WallTime").finish()
    }
}

impl TimeProvider for WallTime {
    fn current_time(&self) -> Option<UnixTime> {
        let seconds = u64::try_from(self.0.wall().as_second()).ok()?;
        Some(UnixTime::since_unix_epoch(Duration::from_secs(seconds)))
    }
}
