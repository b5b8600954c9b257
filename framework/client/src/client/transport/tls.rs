//! TLS settings of a connection: roots, client certificate, server name.
//!
//! Certificate files are read when the client is built, and checked at most once a minute while the
//! client sends requests; `auth` retires the open connections when the files changed. No
//! process-wide crypto provider is read or set; the provider is a value.

// DESIGN.md, 21: Certificate and token files are checked on requests, at most once a minute

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

use crate::client::secret::SecretString;
use windlass_core::clock::Clock;
use windlass_core::error::{Error, ErrorKind};

/// Age at which files are checked again.
const FILE_AGE: Duration = Duration::from_secs(60);
/// The same after files that could not be used: they may be in the middle of a replacement.
const BROKEN_FILE_AGE: Duration = Duration::from_secs(5);

/// Largest PEM file; bundles of all public roots have a quarter of a MiB.
const FILE_LIMIT: usize = 4 << 20;

/// A client certificate and the key, PEM.
pub(crate) type Identity = Arc<(SecretString, SecretString)>;

/// PEM text, or the file that holds it.
#[derive(Clone, Debug)]
pub(crate) enum Pem {
    Inline(SecretString),
    File(PathBuf),
}

impl Pem {
    /// Reads the text; a file with a blocking call.
    fn read(&self) -> Result<SecretString, Error> {
        match self {
            Self::Inline(text) => Ok(text.clone()),
            Self::File(path) => {
                SecretString::read(path, FILE_LIMIT).map_err(|error| self.unreadable(error))
            }
        }
    }

    /// As `read`, without blocking the thread.
    pub(crate) async fn load(&self) -> Result<SecretString, Error> {
        match self {
            Self::Inline(text) => Ok(text.clone()),
            Self::File(path) => {
                let read = SecretString::load(path, FILE_LIMIT).await;
                read.map_err(|error| self.unreadable(error))
            }
        }
    }

    /// Returns the error of a file that cannot be read.
    fn unreadable(&self, error: io::Error) -> Error {
        let Self::File(path) = self else { return config("PEM text is unreadable") };
        config(format!("cannot read {}: {error}; correct the path", path.display())).because(error)
    }

    /// Returns the name for error texts: `certificate-authority /etc/ca.crt`.
    fn called(&self, key: &str) -> String {
        match self {
            Self::Inline(_) => format!("{key}-data"),
            Self::File(path) => format!("{key} {}", path.display()),
        }
    }

    /// Whether the text can change while the client runs.
    fn is_file(&self) -> bool {
        matches!(self, Self::File(_))
    }
}

/// TLS settings of a kubeconfig.
#[derive(Clone, Debug, Default)]
pub(crate) struct TlsSettings {
    /// Roots to trust; the system's when `None`.
    pub(crate) ca: Option<Pem>,
    /// Client certificate and key.
    pub(crate) identity: Option<(Pem, Pem)>,
    /// Whether any server certificate is trusted.
    pub(crate) insecure: bool,
    /// Name that the server's certificate must carry, if not the host's.
    pub(crate) server_name: Option<String>,
    /// Whether to offer HTTP/1.1 only.
    pub(crate) http1_only: bool,
}

/// Contents of the PEM texts and files when they were last read.
#[derive(Clone, Default, PartialEq, Eq)]
struct Material {
    ca: Option<SecretString>,
    identity: Option<(SecretString, SecretString)>,
}

/// Factory of TLS configurations; notices changes of the files behind them.
pub(crate) struct Tls {
    settings: TlsSettings,
    provider: Arc<CryptoProvider>,
    clock: Clock,
    state: Mutex<State>,
    /// Held while files are read, so that a single request reads them for all.
    reading: tokio::sync::Mutex<()>,
}

/// The material in use, replaced as a whole after the files changed.
struct State {
    material: Material,
    roots: Arc<RootCertStore>,
    /// Instant of the next check of the files.
    due: Instant,
    /// Whether the files were unusable at the last check.
    broken: bool,
    /// Last configuration; shared by handshakes, because building a configuration parses
    /// certificates.
    made: Option<IdentityConfig>,
}

/// A configuration, and the plugin's client certificate in that configuration.
struct IdentityConfig {
    identity: Option<Identity>,
    config: Arc<ClientConfig>,
}

impl Tls {
    /// Reads the files, with blocking calls.
    ///
    /// # Errors
    /// [`ErrorKind::Config`] that names the file that cannot be read or used.
    pub(crate) fn new(
        settings: TlsSettings,
        provider: Arc<CryptoProvider>,
        clock: Clock,
    ) -> Result<Self, Error> {
        let identity = match &settings.identity {
            Some((certificate, key)) => Some((certificate.read()?, key.read()?)),
            None => None,
        };
        let ca = settings.ca.as_ref().map(Pem::read).transpose()?;
        let material = Material { ca, identity };
        let roots = settings.roots(&material)?;
        let state = Mutex::new(State {
            material,
            roots,
            due: clock.now() + FILE_AGE,
            broken: false,
            made: None,
        });
        let tls = Self { settings, provider, clock, state, reading: tokio::sync::Mutex::default() };
        // Fails early if certificate and key do not belong together.
        tls.config(None)?;
        Ok(tls)
    }

    /// Returns the name that the certificate of `host` must carry.
    pub(crate) fn server_name(&self, host: &str) -> Result<ServerName<'static>, Error> {
        server_name(self.settings.server_name.as_deref().unwrap_or(host))
    }

    /// Returns the configuration for a handshake now; `identity` overrides the client certificate.
    pub(crate) fn config(&self, identity: Option<Identity>) -> Result<Arc<ClientConfig>, Error> {
        let mut state = self.state.lock();
        // Compared by pointer: the plugin's certificate is the same `Arc` until the renewal.
        if let Some(made) = &state.made
            && made.identity.as_ref().map(Arc::as_ptr) == identity.as_ref().map(Arc::as_ptr)
        {
            return Ok(Arc::clone(&made.config));
        }
        let shown = identity.as_deref().or(state.material.identity.as_ref());
        let config = Arc::new(self.make(Arc::clone(&state.roots), shown)?);
        state.made = Some(IdentityConfig { identity, config: Arc::clone(&config) });
        Ok(config)
    }

    /// Returns whether the client certificate comes from a file, which may be rotated.
    pub(crate) fn rotates(&self) -> bool {
        let pair = self.settings.identity.as_ref();
        pair.is_some_and(|(certificate, key)| certificate.is_file() || key.is_file())
    }

    /// Returns whether the settings contain a client certificate.
    pub(crate) fn has_identity(&self) -> bool {
        self.settings.identity.is_some()
    }

    /// Returns whether any certificate comes from a file.
    fn has_files(&self) -> bool {
        self.rotates() || self.settings.ca.as_ref().is_some_and(Pem::is_file)
    }

    /// Checks the files if a minute has passed since the last check, and calls `retire` when they
    /// changed, because open connections use the earlier files. Unusable files (they may be in the
    /// middle of a replacement) change nothing and are checked again after 5 s.
    ///
    /// Lock order: the lock of the reader (`reading`) before the state, which is never held across
    /// an await.
    ///
    /// # Cancel safety
    /// Safe: the next call begins again.
    pub(crate) async fn renew(&self, retire: impl Fn()) {
        if !self.has_files() || self.clock.now() < self.state.lock().due {
            return;
        }
        // Another request is reading the files already: this request continues instead of waiting
        // for a disk.
        let Ok(_reading) = self.reading.try_lock() else { return };
        self.reread(retire).await;
    }

    /// As [`renew`](Self::renew), but at once: after a failed handshake or a refused client.
    /// Returns whether the files had changed; then `retire` was called before the return, here or
    /// by a concurrent call.
    pub(crate) async fn renew_now(&self, retire: impl Fn()) -> bool {
        if !self.has_files() {
            return false;
        }
        // Taken before the wait for the lock, so that a concurrent read is noticed.
        let before = self.state.lock().material.clone();
        let _reading = self.reading.lock().await;
        // Another connection may have read the files while the present connection waited for the
        // lock.
        let other = self.state.lock().material != before;
        other || self.reread(retire).await
    }

    /// Reads the files; the caller holds the lock `reading`.
    async fn reread(&self, retire: impl Fn()) -> bool {
        match self.load().await {
            Ok(None) => {
                let mut state = self.state.lock();
                (state.due, state.broken) = (self.clock.now() + FILE_AGE, false);
                false
            }
            Ok(Some((material, roots, config))) => {
                let mut state = self.state.lock();
                state.made = Some(IdentityConfig { identity: None, config });
                (state.material, state.roots) = (material, roots);
                (state.due, state.broken) = (self.clock.now() + FILE_AGE, false);
                // The new state is in place before connections are retired, so that no new
                // connection uses the old certificates; released first, because `retire` takes the
                // pool's lock.
                drop(state);
                retire();
                tracing::info!("certificates changed: new connections are made with the new ones");
                true
            }
            Err(error) => {
                let mut state = self.state.lock();
                state.due = self.clock.now() + BROKEN_FILE_AGE;
                // Logged once for each series of failures.
                let was_broken = std::mem::replace(&mut state.broken, true);
                drop(state);
                if !was_broken {
                    tracing::warn!(
                        %error,
                        "the certificates cannot be read again; the previous ones stay in use"
                    );
                }
                false
            }
        }
    }

    /// Reads and checks the files; `None` when they are unchanged.
    #[allow(clippy::type_complexity)]
    async fn load(
        &self,
    ) -> Result<Option<(Material, Arc<RootCertStore>, Arc<ClientConfig>)>, Error> {
        let identity = match &self.settings.identity {
            Some((certificate, key)) => Some((certificate.load().await?, key.load().await?)),
            None => None,
        };
        let ca = match &self.settings.ca {
            Some(ca) => Some(ca.load().await?),
            None => None,
        };
        let read = Material { ca, identity };
        if read == self.state.lock().material {
            return Ok(None);
        }
        let roots = self.settings.roots(&read)?;
        let config = self.make(Arc::clone(&roots), read.identity.as_ref())?;
        Ok(Some((read, roots, Arc::new(config))))
    }

    /// Builds a configuration.
    fn make(
        &self,
        roots: Arc<RootCertStore>,
        identity: Option<&(SecretString, SecretString)>,
    ) -> Result<ClientConfig, Error> {
        let builder = builder(&self.provider)?;
        let builder = if self.settings.insecure {
            let verifier = Arc::new(AcceptAnyCertificate(Arc::clone(&self.provider)));
            builder.dangerous().with_custom_certificate_verifier(verifier)
        } else {
            builder.with_root_certificates(roots)
        };
        let mut made = match identity {
            Some((certificate, key)) => {
                let (first, second) = self.settings.identity_called();
                let certificates = certificates(certificate, &first)?;
                builder.with_client_auth_cert(certificates, private_key(key, &second)?).map_err(
                    |error| {
                        let text = format!("{first} and {second} do not make a client certificate");
                        config(format!("{text}: {error}; do they belong together?")).because(error)
                    },
                )?
            }
            None => builder.with_no_client_auth(),
        };
        made.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        if self.settings.http1_only {
            made.alpn_protocols.remove(0);
        }
        Ok(made)
    }
}

impl TlsSettings {
    /// Returns the roots to trust.
    fn roots(&self, material: &Material) -> Result<Arc<RootCertStore>, Error> {
        let mut roots = RootCertStore::empty();
        match (&self.ca, &material.ca) {
            // Roots are not needed, and the machine may have none.
            _ if self.insecure => {}
            (Some(ca), Some(text)) => add_roots(&mut roots, text, &ca.called(CA))?,
            _ if add_system_roots(&mut roots) == 0 => return Err(no_system_roots()),
            _ => {}
        }
        Ok(Arc::new(roots))
    }

    /// Returns the names of client certificate and key for error texts.
    fn identity_called(&self) -> (String, String) {
        self.identity.as_ref().map_or_else(
            || ("the plugin's client certificate".to_owned(), "its key".to_owned()),
            |(certificate, key)| {
                (certificate.called("client-certificate"), key.called("client-key"))
            },
        )
    }
}

/// Key of the CA in a kubeconfig, for error texts.
const CA: &str = "certificate-authority";

/// Returns the TLS settings for an `https://` proxy: the system's roots and the cluster's, no
/// client certificate.
///
/// # Errors
/// [`ErrorKind::Config`] when there are no roots at all.
pub(crate) fn proxy_config(
    settings: &TlsSettings,
    provider: &Arc<CryptoProvider>,
) -> Result<Arc<ClientConfig>, Error> {
    let mut roots = RootCertStore::empty();
    let added = add_system_roots(&mut roots);
    match &settings.ca {
        Some(ca) => add_roots(&mut roots, &ca.read()?, &ca.called(CA))?,
        None if added == 0 => return Err(no_system_roots()),
        None => {}
    }
    Ok(Arc::new(builder(provider)?.with_root_certificates(roots).with_no_client_auth()))
}

/// Returns a configuration builder with the default protocol versions.
fn builder(
    provider: &Arc<CryptoProvider>,
) -> Result<rustls::ConfigBuilder<ClientConfig, rustls::WantsVerifier>, Error> {
    ClientConfig::builder_with_provider(Arc::clone(provider))
        .with_safe_default_protocol_versions()
        .map_err(|error| config("the TLS provider is unusable").because(error))
}

/// Parses a server name; brackets of an IPv6 address are removed.
pub(crate) fn server_name(name: &str) -> Result<ServerName<'static>, Error> {
    let name = name.trim_start_matches('[').trim_end_matches(']').to_owned();
    ServerName::try_from(name.clone()).map_err(|error| {
        let text = format!(
            "`{name}` can be no name in a server certificate; give a host name or an IP address as \
             tls-server-name"
        );
        config(text).because(error)
    })
}

impl fmt::Debug for Tls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tls").field("settings", &self.settings).finish_non_exhaustive()
    }
}

/// Adds the roots of the system and returns their number.
fn add_system_roots(roots: &mut RootCertStore) -> usize {
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs).0
}

/// Returns the error of a machine without trusted roots.
fn no_system_roots() -> Error {
    config(
        "this machine has no trusted root certificates, and the cluster names no \
         certificate-authority; name one, or install the ca-certificates package",
    )
}

/// Adds the certificates of `pem` to the trusted roots.
fn add_roots(roots: &mut RootCertStore, pem: &SecretString, called: &str) -> Result<(), Error> {
    for certificate in certificates(pem, called)? {
        roots.add(certificate).map_err(|error| {
            let text =
                format!("{called} holds a certificate that is not a CA: {error}; replace it");
            config(text).because(error)
        })?;
    }
    Ok(())
}

/// Parses the certificates of `pem`.
fn certificates(pem: &SecretString, called: &str) -> Result<Vec<CertificateDer<'static>>, Error> {
    // The parser's errors may quote a line of the input, which may be part of a key.
    let found: Result<Vec<_>, _> =
        CertificateDer::pem_slice_iter(pem.expose().as_bytes()).collect();
    match found {
        Ok(found) if !found.is_empty() => Ok(found),
        _ => Err(config(format!(
            "{called} holds no PEM certificate; it must begin with -----BEGIN CERTIFICATE-----"
        ))),
    }
}

/// Parses the first private key of `pem`.
fn private_key(pem: &SecretString, called: &str) -> Result<PrivateKeyDer<'static>, Error> {
    PrivateKeyDer::from_pem_slice(pem.expose().as_bytes()).map_err(|_| {
        config(format!(
            "{called} holds no PEM private key; it must begin with -----BEGIN PRIVATE KEY----- (or \
             RSA, or EC) and not be encrypted"
        ))
    })
}

fn config(message: impl Into<String>) -> Error {
    Error::new(ErrorKind::Config, message)
}

/// Converts an [`Error`] into an `io::Error`. The text is copied, because code that prints only the
/// innermost cause would lose the text.
pub(crate) fn into_io(error: Error) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, error.to_string())
}

/// Returns the crypto provider of this build: ring, or aws-lc-rs without ring; `None` when neither
/// is built in.
pub(crate) fn default_provider() -> Option<Arc<CryptoProvider>> {
    #[cfg(feature = "ring")]
    let provider = Some(Arc::new(rustls::crypto::ring::default_provider()));
    #[cfg(all(feature = "aws-lc-rs", not(feature = "ring")))]
    let provider = Some(Arc::new(rustls::crypto::aws_lc_rs::default_provider()));
    #[cfg(not(any(feature = "ring", feature = "aws-lc-rs")))]
    let provider = None;
    provider
}

/// Certificate verifier for `insecure-skip-tls-verify`.
#[derive(Debug)]
struct AcceptAnyCertificate(Arc<CryptoProvider>);

impl ServerCertVerifier for AcceptAnyCertificate {
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
