//! Certificates of the server: the one that is shown, and the sources that keep it current.

// DESIGN.md, 201: Certificates are put into a place that handshakes read

mod bundle;
mod files;
#[cfg(any(feature = "ring", feature = "aws-lc-rs"))]
mod own;
// Only certificates of the operator's own ask for it.
#[cfg_attr(not(any(feature = "ring", feature = "aws-lc-rs")), expect(dead_code))]
mod trusted;
mod validity;

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use parking_lot::Mutex;
use rustls::crypto::CryptoProvider;
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, PrivateKeyDer};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;
use windlass_client::client::Client;
use windlass_core::clock::Clock;
use windlass_core::metrics::{Metrics, names};
use windlass_core::{Error, ErrorKind};
use windlass_runtime::manager::Check;

pub(crate) use self::bundle::{MOST_TRUSTED, certificates};
pub use self::files::MountedFiles;
pub(crate) use self::files::read_bounded;
#[cfg(any(feature = "ring", feature = "aws-lc-rs"))]
pub use self::own::OwnCertificates;
#[cfg(any(feature = "ring", feature = "aws-lc-rs"))]
pub(crate) use self::own::TemporaryCertificates;
pub(crate) use self::trusted::TrustingObjects;
use self::validity::Validity;

/// Time for which an authority is trusted though it signs nothing that this process shows: a new
/// one before it signs, and a mounted one after another took its place.
pub(crate) const OVERLAP: Duration = Duration::from_secs(3600);
/// Time in which each replica reads the Secret of the own certificates twice.
pub(crate) const TWO_READINGS: Duration = Duration::from_secs(150);

/// Part of a certificate's life, in percent, below which readiness warns.
const WARN_BELOW: i64 = 20;

/// Future of [`CertificateSource::maintain`].
pub type SourceFuture<'a> = Pin<Box<dyn Future<Output = Result<(), Error>> + Send + 'a>>;

/// The operator whose server needs a certificate.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct CertificateContext {
    /// The client of the operator, with its clock.
    pub client: Client,
    /// Name of the operator in its manifests.
    pub operator: String,
    /// Namespace of the operator: `POD_NAMESPACE`, else that of the client.
    pub namespace: String,
    /// The objects by which API servers may ask the operator.
    pub(crate) objects: TrustingObjects,
}

impl CertificateContext {
    /// Returns the context of an operator.
    pub(crate) fn new(client: &Client, operator: &str, objects: TrustingObjects) -> Self {
        let of_pod = std::env::var("POD_NAMESPACE").ok().filter(|value| !value.is_empty());
        let namespace = of_pod.unwrap_or_else(|| client.default_namespace().to_owned());
        Self { client: client.clone(), operator: operator.to_owned(), namespace, objects }
    }
}

/// Returns the name of the Secret of an operator's own certificates.
pub(crate) fn secret_name(operator: &str) -> String {
    format!("{operator}-webhook-certificates")
}

/// Keeps the certificate of a server current.
///
/// Sources replace a certificate while connections live: those go on with the old one, and new
/// handshakes show the new one.
pub trait CertificateSource: Send + Sync + 'static {
    /// Sets `certificate`, and replaces it in time, until the future is dropped.
    ///
    /// # Errors
    /// Any error is shown by readiness, and the source is called again after 5 s. The certificate
    /// that was set before stays.
    /// # Cancel safety
    /// The future is dropped when the server stops.
    fn maintain<'a>(
        &'a self,
        certificate: &'a ServingCertificate,
        cx: &'a CertificateContext,
    ) -> SourceFuture<'a>;

    /// Whether the server writes the authorities into the configurations.
    #[doc(hidden)]
    fn is_own(&self) -> bool {
        false
    }

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
    /// Wakes the task that writes configurations.
    trusted: Notify,
}

#[derive(Default)]
struct State {
    shown: Option<(Arc<CertifiedKey>, Validity)>,
    /// Reason why the certificate could not be replaced at the last attempt.
    problem: Option<String>,
    /// Authorities that clients are to trust, PEM.
    authorities: Option<String>,
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
        Self { provider, clock, metrics, state, is_set, trusted: Notify::new() }
    }

    /// Returns the cryptography of the server.
    #[cfg(any(feature = "ring", feature = "aws-lc-rs"))]
    pub(crate) fn provider(&self) -> &CryptoProvider {
        &self.provider
    }

    /// Shows this certificate, PEM with its chain, in handshakes from now on.
    ///
    /// # Errors
    /// [`ErrorKind::Config`] when a text is no PEM, key and certificate do not belong together, or
    /// the certificate has expired or is not valid yet: the one that was set before stays. The
    /// error has no part of the key.
    pub fn set(&self, chain: &[u8], key: &[u8]) -> Result<(), Error> {
        let (key, validity) = match self.make(chain, key) {
            Ok(made) => made,
            Err(error) => {
                self.report(&error);
                return Err(error);
            }
        };
        let not_after = validity.not_after;
        {
            let mut state = self.state.lock();
            (state.shown, state.problem) = (Some((key, validity)), None);
        }
        // After the lock: a subscriber of logs and the woken tasks may ask for the certificate.
        self.metrics.set(&names::CERTIFICATE_EXPIRES, &[], not_after.as_second() as f64);
        tracing::info!(%not_after, "a serving certificate is shown");
        self.is_set.cancel();
        Ok(())
    }

    /// Shows the reason why the certificate could not be replaced in readiness, until one is set.
    pub fn report(&self, problem: &Error) {
        self.state.lock().problem = Some(problem.to_string());
    }

    /// Waits until a certificate is shown.
    pub(crate) async fn shown(&self) {
        self.is_set.cancelled().await;
    }

    /// Whether a certificate is shown.
    pub(crate) fn is_shown(&self) -> bool {
        self.is_set.is_cancelled()
    }

    /// Lets the server write these authorities, PEM, into the configurations of its webhooks.
    pub(crate) fn trust(&self, authorities: &str) {
        {
            let mut state = self.state.lock();
            if state.authorities.as_deref() == Some(authorities) {
                return;
            }
            state.authorities = Some(authorities.to_owned());
        }
        self.trusted.notify_one();
    }

    /// Returns the authorities.
    pub(crate) fn authorities(&self) -> Option<String> {
        self.state.lock().authorities.clone()
    }

    /// Waits until the authorities change. For one task.
    pub(crate) async fn authorities_changed(&self) {
        self.trusted.notified().await;
    }

    /// Forgets the reason that was reported: the certificate that is shown is the right one.
    pub(crate) fn clear_problem(&self) {
        self.state.lock().problem = None;
    }

    /// Whether a certificate is shown that has not expired.
    pub(crate) fn is_live(&self) -> bool {
        self.not_after().is_some_and(|end| end > self.clock.wall())
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
        if validity.not_before > self.clock.wall() {
            let text = format!(
                "the serving certificate is valid only from {}, and is not shown before",
                validity.not_before
            );
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
