//! Certificates from files, such as those that cert-manager keeps in a mounted Secret.

// DESIGN.md, 258: Mounted authorities are written into definitions, and into no configuration

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustls_pki_types::CertificateDer;
use rustls_pki_types::pem::PemObject;
use tokio::io::AsyncReadExt;
use windlass_core::{Error, ErrorKind};
use zeroize::Zeroizing;

use super::{CertificateContext, CertificateSource, ServingCertificate, SourceFuture};

/// Pause between two readings. The kubelet itself takes up to a minute to update a mounted Secret.
const PERIOD: Duration = Duration::from_secs(5);
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
/// definitions of [converted](crate::Webhooks::converting) kinds. Configurations get theirs from
/// the manifests, or from the component that made the certificate.
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

    async fn read(&self) -> Result<(Zeroizing<Vec<u8>>, Zeroizing<Vec<u8>>), Error> {
        let chain = read_bounded(&self.folder.join("tls.crt")).await?;
        Ok((chain, read_bounded(&self.folder.join("tls.key")).await?))
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
            let mut last = None;
            let mut told = String::new();
            loop {
                let outcome = match self.read().await {
                    Ok(pair) if last.as_ref() == Some(&pair) => {
                        certificate.is_current();
                        Ok(())
                    }
                    Ok(pair) => certificate.set(&pair.0, &pair.1).map(|()| last = Some(pair)),
                    Err(error) => Err(error),
                };
                if outcome.is_ok()
                    && let Some(authorities) = self.authorities().await
                {
                    certificate.trust(&authorities);
                }
                match outcome {
                    Ok(()) => told.clear(),
                    Err(error) => {
                        certificate.report(&error);
                        // Once for each series of failures of one kind.
                        let text = error.to_string();
                        if told != text {
                            tracing::warn!(
                                %error,
                                "the serving certificate cannot be read again; the previous one \
                                 stays in use"
                            );
                            told = text;
                        }
                    }
                }
                clock.sleep(PERIOD).await;
            }
        })
    }

    fn has_authorities(&self) -> bool {
        true
    }

    fn mounted(&self) -> Option<(String, String)> {
        Some((self.secret.clone()?, self.folder.display().to_string()))
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
