//! TLS settings of a connection: roots, client certificate, server name.
//!
//! No process-wide crypto provider is read or set; the provider is a value.

use std::fmt;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::CryptoProvider;
use rustls::{ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme};
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use tokio::time::Instant;

use super::auth::Identity;
use super::secret::Secret;
use crate::error::{Error, ErrorKind};

/// Files are read again when they were read so long ago.
const FILE_AGE: Duration = Duration::from_secs(60);

/// PEM text, or the file that holds it.
#[derive(Clone, Debug)]
pub(crate) enum Pem {
    Inline(Secret),
    File(PathBuf),
}

impl Pem {
    fn read(&self) -> Result<Secret, Error> {
        match self {
            Self::Inline(text) => Ok(text.clone()),
            Self::File(path) => std::fs::read_to_string(path)
                .map(Secret::from)
                .map_err(|error| config(format!("cannot read {}", path.display())).because(error)),
        }
    }
}

/// What a kubeconfig says about TLS.
#[derive(Clone, Debug, Default)]
pub(crate) struct TlsSettings {
    /// Roots to trust; the system's when `None`.
    pub(crate) ca: Option<Pem>,
    /// Client certificate and key.
    pub(crate) identity: Option<(Pem, Pem)>,
    /// Trust everybody.
    pub(crate) insecure: bool,
    /// Name that the server's certificate must carry, if not the host's.
    pub(crate) server_name: Option<String>,
    /// Offer HTTP/1.1 only.
    pub(crate) http1_only: bool,
}

/// Makes TLS configurations, and remembers the last one for a minute.
pub(crate) struct Tls {
    settings: TlsSettings,
    provider: Arc<CryptoProvider>,
    last: Mutex<Option<Last>>,
}

struct Last {
    made: Instant,
    identity: Option<Identity>,
    config: Arc<ClientConfig>,
}

impl Tls {
    pub(crate) fn new(settings: TlsSettings, provider: Arc<CryptoProvider>) -> Self {
        Self { settings, provider, last: Mutex::default() }
    }

    /// The name that the certificate of `host` must carry.
    pub(crate) fn server_name(&self, host: &str) -> Result<ServerName<'static>, Error> {
        let name = self.settings.server_name.as_deref().unwrap_or(host);
        let name = name.trim_start_matches('[').trim_end_matches(']').to_owned();
        ServerName::try_from(name.clone()).map_err(|error| {
            config(format!("`{name}` can be no name in a server certificate")).because(error)
        })
    }

    /// The configuration for a handshake now; `identity` overrides the client certificate.
    pub(crate) fn config(&self, identity: Option<Identity>) -> Result<Arc<ClientConfig>, Error> {
        let now = Instant::now();
        if let Some(last) = &*self.last.lock()
            && now < last.made + FILE_AGE
            && last.identity.as_ref().map(Arc::as_ptr) == identity.as_ref().map(Arc::as_ptr)
        {
            return Ok(Arc::clone(&last.config));
        }
        let made = Arc::new(self.make(identity.as_deref())?);
        *self.last.lock() = Some(Last { made: now, identity, config: Arc::clone(&made) });
        Ok(made)
    }

    /// Does the client certificate come from a file, which somebody may rotate?
    pub(crate) fn rotates(&self) -> bool {
        matches!(&self.settings.identity, Some((Pem::File(_), _) | (_, Pem::File(_))))
    }

    /// A handshake failed, or the server refused the client: the next one reads the files again.
    pub(crate) fn forget(&self) {
        *self.last.lock() = None;
    }

    fn make(&self, identity: Option<&(Secret, Secret)>) -> Result<ClientConfig, Error> {
        let builder = ClientConfig::builder_with_provider(Arc::clone(&self.provider))
            .with_safe_default_protocol_versions()
            .map_err(|error| config("the TLS provider is unusable").because(error))?;
        let builder = if self.settings.insecure {
            let verifier = Arc::new(TrustAnybody(Arc::clone(&self.provider)));
            builder.dangerous().with_custom_certificate_verifier(verifier)
        } else {
            builder.with_root_certificates(self.roots()?)
        };
        let read;
        let identity = match (identity, &self.settings.identity) {
            (Some(identity), _) => Some(identity),
            (None, Some((certificate, key))) => {
                read = (certificate.read()?, key.read()?);
                Some(&read)
            }
            (None, None) => None,
        };
        let mut made = match identity {
            Some((certificate, key)) => builder
                .with_client_auth_cert(certificates(certificate)?, private_key(key)?)
                .map_err(|error| config("the client certificate is unusable").because(error))?,
            None => builder.with_no_client_auth(),
        };
        made.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        if self.settings.http1_only {
            made.alpn_protocols.remove(0);
        }
        Ok(made)
    }

    fn roots(&self) -> Result<RootCertStore, Error> {
        let mut roots = RootCertStore::empty();
        let Some(ca) = &self.settings.ca else {
            let found = rustls_native_certs::load_native_certs();
            let (added, _) = roots.add_parsable_certificates(found.certs);
            if added == 0 {
                return Err(config(
                    "this machine has no trusted root certificates, and the cluster names no \
                     certificate-authority; name one, or install the ca-certificates package",
                ));
            }
            return Ok(roots);
        };
        for certificate in certificates(&ca.read()?)? {
            roots
                .add(certificate)
                .map_err(|error| config("a CA certificate is unusable").because(error))?;
        }
        Ok(roots)
    }
}

impl fmt::Debug for Tls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tls").field("settings", &self.settings).finish_non_exhaustive()
    }
}

fn certificates(pem: &Secret) -> Result<Vec<CertificateDer<'static>>, Error> {
    let found: Result<Vec<_>, _> =
        CertificateDer::pem_slice_iter(pem.expose().as_bytes()).collect();
    let found = found.map_err(|error| config("a certificate is not PEM").because(error))?;
    if found.is_empty() {
        return Err(config("there is no PEM certificate where one was expected"));
    }
    Ok(found)
}

fn private_key(pem: &Secret) -> Result<PrivateKeyDer<'static>, Error> {
    // The parser's error does not quote the key, but nothing here needs it either.
    PrivateKeyDer::from_pem_slice(pem.expose().as_bytes())
        .map_err(|_| config("the client key is no PEM private key"))
}

fn config(message: impl Into<String>) -> Error {
    Error::new(ErrorKind::Config, message)
}

/// An [`Error`] where an `io::Error` is asked for.
pub(crate) fn into_io(error: Error) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, error)
}

/// The provider of this build: ring, or aws-lc-rs without it; `None` when neither is built in.
pub(crate) fn default_provider() -> Option<Arc<CryptoProvider>> {
    #[cfg(feature = "ring")]
    let provider = Some(Arc::new(rustls::crypto::ring::default_provider()));
    #[cfg(all(feature = "aws-lc-rs", not(feature = "ring")))]
    let provider = Some(Arc::new(rustls::crypto::aws_lc_rs::default_provider()));
    #[cfg(not(any(feature = "ring", feature = "aws-lc-rs")))]
    let provider = None;
    provider
}

/// `insecure-skip-tls-verify`.
#[derive(Debug)]
struct TrustAnybody(Arc<CryptoProvider>);

impl ServerCertVerifier for TrustAnybody {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.0.signature_verification_algorithms;
        rustls::crypto::verify_tls12_signature(message, certificate, signed, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.0.signature_verification_algorithms;
        rustls::crypto::verify_tls13_signature(message, certificate, signed, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}
