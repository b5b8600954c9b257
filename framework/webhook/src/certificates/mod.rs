//! Certificates of the server: the one that is shown, and the sources that keep it current.

// DESIGN.md, 201: Certificates are put into a place that handshakes read

mod files;
mod validity;

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use jiff::Timestamp;
use parking_lot::Mutex;
use rustls::crypto::CryptoProvider;
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, PrivateKeyDer};
use tokio_util::sync::CancellationToken;
use windlass_client::client::Client;
use windlass_core::clock::Clock;
use windlass_core::metrics::{Metrics, names};
use windlass_core::{Error, ErrorKind};
use windlass_runtime::manager::Check;

pub use self::files::MountedFiles;
pub(crate) use self::files::read_bounded;
use self::validity::Validity;

/// Part of a certificate's life, in percent, below which readiness warns.
const WARN_BELOW: i64 = 20;

/// Future of [`CertificateSource::maintain`].
pub type Maintaining<'a> = Pin<Box<dyn Future<Output = Result<(), Error>> + Send + 'a>>;

/// Keeps the certificate of a server current.
///
/// Sources replace a certificate while connections live: those go on with the old one, and new
/// handshakes show the new one.
pub trait CertificateSource: Send + Sync + 'static {
    /// Sets `certificate`, and replaces it in time, until the future is dropped.
    ///
    /// # Errors
    /// Any error is shown by readiness, and the source is called again after 5 s. The certificate that
    /// was set before stays.
    /// # Cancel safety
    /// The future is dropped when the server stops.
    fn maintain<'a>(
        &'a self,
        certificate: &'a ServingCertificate,
        client: &'a Client,
    ) -> Maintaining<'a>;

    /// Returns the Secret that the manifests mount, and the path; `None` without a mount.
    #[doc(hidden)]
    fn mounted(&self) -> Option<(String, String)> {
        None
    }
}

/// The certificate and key that a server shows in handshakes.
pub struct ServingCertificate {
    provider: Arc<CryptoProvider>,
    clock: Clock,
    metrics: Metrics,
    state: Mutex<State>,
    /// Cancelled once a certificate is shown.
    is_set: CancellationToken,
}

#[derive(Default)]
struct State {
    shown: Option<(Arc<CertifiedKey>, Validity)>,
    /// Reason why the certificate could not be replaced at the last attempt.
    problem: Option<String>,
}

impl fmt::Debug for ServingCertificate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = self.state.lock();
        let validity = state.shown.as_ref().map(|(_, validity)| validity);
        f.debug_struct("ServingCertificate")
            .field("validity", &validity)
            .field("problem", &state.problem)
            .finish_non_exhaustive()
    }
}

impl ServingCertificate {
    /// Returns an empty place: handshakes fail until a certificate is set.
    pub(crate) fn new(provider: Arc<CryptoProvider>, clock: Clock, metrics: Metrics) -> Self {
        let (state, is_set) = (Mutex::default(), CancellationToken::new());
        Self { provider, clock, metrics, state, is_set }
    }

    /// Shows this certificate, PEM with its chain, in handshakes from now on.
    ///
    /// # Errors
    /// [`ErrorKind::Config`] when a text is no PEM, key and certificate do not belong together, or the
    /// certificate has expired: the one that was set before stays. The error has no part of the key.
    pub fn set(&self, chain: &[u8], key: &[u8]) -> Result<(), Error> {
        let made = self.make(chain, key);
        let mut state = self.state.lock();
        match made {
            Ok((key, validity)) => {
                let end = validity.not_after.as_second() as f64;
                self.metrics.set(&names::CERTIFICATE_EXPIRES, &[], end);
                tracing::info!(not_after = %validity.not_after, "a serving certificate is shown");
                *state = State { shown: Some((key, validity)), problem: None };
                self.is_set.cancel();
                Ok(())
            }
            Err(error) => {
                state.problem = Some(error.to_string());
                Err(error)
            }
        }
    }

    /// Shows the reason why the certificate could not be replaced in readiness, until one is set.
    pub fn report(&self, problem: &Error) {
        self.state.lock().problem = Some(problem.to_string());
    }

    /// Waits until a certificate is shown.
    pub(crate) async fn shown(&self) {
        self.is_set.cancelled().await;
    }

    /// Forgets the reason that was reported: the certificate that is shown is the right one.
    pub(crate) fn is_current(&self) {
        self.state.lock().problem = None;
    }

    /// Returns the end of the life of the certificate; `None` before one is set.
    pub fn not_after(&self) -> Option<Timestamp> {
        self.state.lock().shown.as_ref().map(|(_, validity)| validity.not_after)
    }

    fn make(&self, chain: &[u8], key: &[u8]) -> Result<(Arc<CertifiedKey>, Validity), Error> {
        let refuse = |text: String| Error::new(ErrorKind::Config, text);
        let certificates = CertificateDer::pem_slice_iter(chain).collect::<Result<Vec<_>, _>>();
        // Causes of errors about keys are left out: some quote the text.
        let certificates = certificates
            .map_err(|_| refuse("cannot read the serving certificate: it is no PEM".to_owned()))?;
        let Some(first) = certificates.first() else {
            return Err(refuse("the serving certificate is empty: it needs PEM".to_owned()));
        };
        let validity = Validity::of(first).ok_or_else(|| {
            refuse("cannot read the serving certificate: it has no period of validity".to_owned())
        })?;
        if validity.not_after <= self.clock.wall() {
            let text = format!("the serving certificate expired at {}", validity.not_after);
            return Err(refuse(text));
        }
        let key = PrivateKeyDer::from_pem_slice(key)
            .map_err(|_| refuse("cannot read the key of the serving certificate".to_owned()))?;
        let made = CertifiedKey::from_der(certificates, key, &self.provider).map_err(|error| {
            let text =
                "the serving certificate and its key cannot be used; do they belong together?";
            refuse(text.to_owned()).because(error)
        })?;
        Ok((Arc::new(made), validity))
    }

    /// Returns the check of readiness.
    pub(crate) fn check(&self) -> Check {
        let state = self.state.lock();
        let problem = state.problem.as_ref();
        let because = problem.map(|why| format!("; {why}")).unwrap_or_default();
        let (ok, detail) = match &state.shown {
            None => (false, format!("there is no certificate yet{because}")),
            Some((_, validity)) => {
                let now = self.clock.wall();
                let left = validity.left_percent(now);
                let end = validity.not_after;
                match left {
                    _ if end <= now => {
                        (false, format!("the certificate expired at {end}{because}"))
                    }
                    left if left < WARN_BELOW => {
                        (true, format!("the certificate ends soon, at {end}{because}"))
                    }
                    _ => (true, format!("certificate until {end}{because}")),
                }
            }
        };
        Check { name: "webhook certificate".to_owned(), ok, detail }
    }
}

impl ResolvesServerCert for ServingCertificate {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        self.state.lock().shown.as_ref().map(|(key, _)| Arc::clone(key))
    }
}
