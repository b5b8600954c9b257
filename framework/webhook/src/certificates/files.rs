//! Certificates from files, such as those that cert-manager keeps in a mounted Secret.

// DESIGN.md, 258: Mounted authorities are written into definitions, and into no configuration
// DESIGN.md, 309: Authorities that other replicas wrote are kept until all have read the same

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustls_pki_types::CertificateDer;
use rustls_pki_types::pem::PemObject;
use tokio::io::AsyncReadExt;
use tokio::time::Instant;
use windlass_core::clock::Clock;
use windlass_core::{Error, ErrorKind};
use zeroize::Zeroizing;

use super::bundle::{MOST_TRUSTED, certificates};
use super::{CertificateContext, CertificateSource, OVERLAP, ServingCertificate, SourceFuture};

/// Pause between two readings. The kubelet itself takes up to a minute to update a mounted Secret.
const PERIOD: Duration = Duration::from_secs(5);
/// Time in which definitions get a new authority, and API servers read them, before a certificate
/// of that authority is shown.
const SOON: Duration = Duration::from_secs(2);
/// Largest file, in bytes: an API server stores Secrets of at most one MiB.
const LARGEST: u64 = 1 << 20;

/// The files `tls.crt` and `tls.key` of a folder, such as a mounted Secret of type
/// `kubernetes.io/tls`, and `ca.crt` where it is there.
///
/// They are read every 5 s, and replaced without a lost connection. A pair that does not belong
/// together, such as one that is half written, changes nothing: readiness and the log have the
/// reason, and the pair is read again.
///
/// The authorities of `ca.crt`, or else those of `WebhookServer::ca_bundle`, are written into the
/// definitions of [converted](crate::Webhooks::converting) kinds. An authority that leaves `ca.crt`
/// stays in the definitions for an hour, since other replicas read their files later; the
/// certificate of another authority is shown two seconds after the definitions have the authority.
/// While neither is known, authorities that others write into the definitions stay there; when
/// there are none, readiness and the log say so.
/// Configurations get theirs from the manifests, or from the component that made the certificate.
///
/// ```
/// # extern crate windlass_webhook as windlass;
/// use windlass::webhook::MountedFiles;
///
/// let files = MountedFiles::new("/tls").secret("website-webhooks");
/// # let _ = files;
/// ```
#[derive(Clone, Debug)]
pub struct MountedFiles {
    folder: PathBuf,
    secret: Option<String>,
}

impl MountedFiles {
    /// Returns the files of `folder`.
    pub fn new(folder: impl Into<PathBuf>) -> Self {
        Self { folder: folder.into(), secret: None }
    }

    /// Lets the manifests mount this Secret at the folder. Default: a mount of your own.
    #[must_use]
    pub fn secret(mut self, name: impl Into<String>) -> Self {
        self.secret = Some(name.into());
        self
    }

    async fn read(&self) -> Result<MountedPair, Error> {
        let chain = read_bounded(&self.folder.join("tls.crt")).await?;
        Ok((chain, read_bounded(&self.folder.join("tls.key")).await?))
    }

    /// Reads the files once, and shows a new pair; returns the pause until the next reading.
    async fn pass(
        &self,
        certificate: &ServingCertificate,
        clock: &Clock,
        state: &mut FilesState,
    ) -> Result<Duration, Error> {
        let pair = self.read().await?;
        let is_new = state.shown.as_ref() != Some(&pair);
        if let Some(pem) = self.authorities().await {
            let has_new = state.authorities.take(&pem, clock.now());
            if is_new && has_new && certificate.is_live() {
                certificate.trust(&state.authorities.bundle());
                return Ok(SOON);
            }
        }
        if is_new {
            certificate.set(&pair.0, &pair.1)?;
            state.shown = Some(pair);
        }
        certificate.clear_problem();
        if state.authorities.is_known() {
            certificate.trust(&state.authorities.bundle());
        }
        Ok(PERIOD)
    }

    /// Reads the authorities; `None` without the file, or while it is half written.
    async fn authorities(&self) -> Option<String> {
        let pem = read_bounded(&self.folder.join("ca.crt")).await.ok()?;
        let authorities: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&pem).collect();
        authorities.ok().filter(|all| !all.is_empty())?;
        // Authorities become readable by everybody: a file with a key is none of them.
        String::from_utf8(pem.to_vec()).ok().filter(|text| !text.contains("PRIVATE KEY"))
    }
}

impl CertificateSource for MountedFiles {
    fn maintain<'a>(
        &'a self,
        certificate: &'a ServingCertificate,
        cx: &'a CertificateContext,
    ) -> SourceFuture<'a> {
        Box::pin(async move {
            let clock = &cx.client.environment().clock;
            let mut state = FilesState::default();
            let mut logged = String::new();
            loop {
                let pause = match self.pass(certificate, clock, &mut state).await {
                    Ok(pause) => {
                        logged.clear();
                        pause
                    }
                    Err(error) => {
                        certificate.report(&error);
                        // Once for each series of failures of one kind.
                        let text = error.to_string();
                        if logged != text {
                            tracing::warn!(
                                %error,
                                "the serving certificate cannot be read again; the previous one \
                                 stays in use"
                            );
                            logged = text;
                        }
                        PERIOD
                    }
                };
                clock.sleep(pause).await;
            }
        })
    }

    fn mounted(&self) -> Option<(String, String)> {
        Some((self.secret.clone()?, self.folder.display().to_string()))
    }
}

/// Certificates and key, PEM.
type MountedPair = (Zeroizing<Vec<u8>>, Zeroizing<Vec<u8>>);

/// Memory of a source between two readings.
#[derive(Default)]
struct FilesState {
    /// The pair that is shown.
    shown: Option<MountedPair>,
    authorities: MountedAuthorities,
}

/// The authorities of `ca.crt`, and those that were there a short time ago.
#[derive(Default)]
struct MountedAuthorities {
    /// The file; empty before the first reading.
    pem: String,
    /// Authorities that left the file, newest first.
    former: Vec<(String, Instant)>,
}

impl MountedAuthorities {
    fn is_known(&self) -> bool {
        !self.pem.is_empty()
    }

    /// Takes in the file; returns whether it has an authority that it had not at the reading
    /// before.
    fn take(&mut self, pem: &str, now: Instant) -> bool {
        let (old, new): (Vec<_>, Vec<_>) =
            (certificates(&self.pem).collect(), certificates(pem).collect());
        let left = old.iter().filter(|one| !new.contains(one));
        let left: Vec<_> = left.map(|one| (one.clone(), now)).collect();
        self.former.splice(0..0, left);
        self.former.retain(|(one, since)| now - *since < OVERLAP && !new.contains(one));
        self.former.truncate(MOST_TRUSTED);
        let has_new = self.is_known() && new.iter().any(|one| !old.contains(one));
        self.pem = pem.to_owned();
        has_new
    }

    /// Returns the authorities to trust, PEM.
    fn bundle(&self) -> String {
        let mut bundle = self.pem.clone();
        if !self.former.is_empty() && !bundle.ends_with('\n') {
            bundle.push('\n');
        }
        bundle.extend(self.former.iter().map(|(one, _)| one.as_str()));
        bundle
    }
}

/// Reads a file of at most one MiB.
pub(crate) async fn read_bounded(path: &Path) -> Result<Zeroizing<Vec<u8>>, Error> {
    let read = async {
        let file = tokio::fs::File::open(path).await?;
        let mut bytes = Zeroizing::new(Vec::new());
        file.take(LARGEST + 1).read_to_end(&mut bytes).await?;
        if bytes.len() as u64 > LARGEST {
            return Err(io::Error::other("it has more than one MiB"));
        }
        Ok(bytes)
    };
    read.await.map_err(|error| {
        let text = format!("cannot read {}: {error}; correct the path or mount", path.display());
        Error::new(ErrorKind::Config, text).because(error)
    })
}
