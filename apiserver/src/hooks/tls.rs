//! TLS towards webhooks: the authorities that a configuration names, and failures in Go's words.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rustls::crypto::ring;
use rustls::time_provider::TimeProvider;
use rustls::{CertificateError, ClientConfig, RootCertStore};
use rustls_pki_types::pem::PemObject as _;
use rustls_pki_types::{CertificateDer, ServerName, UnixTime};
use tokio_rustls::TlsConnector;

use super::connector::Io;
use crate::clock::Clock;

/// Returns the TLS settings for the `caBundle` of a configuration.
pub(super) fn config(bundle: &str, clock: &Clock) -> Result<Arc<ClientConfig>, String> {
    let pem = STANDARD.decode(bundle).unwrap_or_default();
    let roots = if pem.is_empty() { system() } else { Arc::new(roots(&pem)?) };
    let provider = Arc::new(ring::default_provider());
    let builder = ClientConfig::builder_with_details(provider, Arc::new(clock.clone()))
        .with_safe_default_protocol_versions()
        .map_err(|error| format!("cannot set up TLS: {error}"))?;
    let mut config = builder.with_root_certificates(roots).with_no_client_auth();
    // As upstream: connections to the several addresses of a Service share no HTTP/2 connection.
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(Arc::new(config))
}

impl TimeProvider for Clock {
    fn current_time(&self) -> Option<UnixTime> {
        let seconds = u64::try_from(self.seconds()).ok()?;
        Some(UnixTime::since_unix_epoch(Duration::from_secs(seconds)))
    }
}

/// Returns the authorities of a bundle.
fn roots(pem: &[u8]) -> Result<RootCertStore, String> {
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(pem).flatten() {
        // An authority that cannot be read verifies nothing; the others do.
        drop(roots.add(certificate));
    }
    if roots.is_empty() {
        return Err(
            "unable to load root certificates: unable to parse bytes as PEM block".to_owned()
        );
    }
    Ok(roots)
}

/// Returns the authorities of the operating system, read once.
fn system() -> Arc<RootCertStore> {
    static SYSTEM: OnceLock<Arc<RootCertStore>> = OnceLock::new();
    let load = || {
        let mut roots = RootCertStore::empty();
        let found = rustls_native_certs::load_native_certs();
        for error in &found.errors {
            tracing::debug!(%error, "an authority of the operating system cannot be read");
        }
        roots.add_parsable_certificates(found.certs);
        Arc::new(roots)
    };
    SYSTEM.get_or_init(load).clone()
}

/// Makes a TLS connection; the error is in Go's words.
pub(super) async fn handshake(
    config: Arc<ClientConfig>,
    host: &str,
    io: Box<dyn Io>,
) -> Result<Box<dyn Io>, String> {
    let name = ServerName::try_from(host.to_owned())
        .map_err(|_| format!("tls: {host:?} is not a name of a server"))?;
    match TlsConnector::from(config).connect(name, io).await {
        Ok(stream) => Ok(Box::new(stream)),
        Err(error) => Err(text(&error, host)),
    }
}

/// Returns the failure of a handshake in Go's words.
fn text(error: &std::io::Error, host: &str) -> String {
    let inner = error.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>());
    let Some(inner) = inner else {
        if error.kind() == std::io::ErrorKind::UnexpectedEof {
            return "EOF".to_owned();
        }
        return error.to_string();
    };
    let why = match inner {
        rustls::Error::InvalidCertificate(fault) => certificate(fault, host),
        rustls::Error::InvalidMessage(_) => {
            return "http: server gave HTTP response to HTTPS client".to_owned();
        }
        rustls::Error::AlertReceived(alert) => return format!("remote error: tls: {alert:?}"),
        other => return format!("tls: {other}"),
    };
    format!("tls: failed to verify certificate: x509: {why}")
}

fn certificate(fault: &CertificateError, host: &str) -> String {
    match fault {
        // A bad signature is that of another authority with the same name.
        CertificateError::UnknownIssuer | CertificateError::BadSignature => {
            "certificate signed by unknown authority".to_owned()
        }
        CertificateError::Expired | CertificateError::ExpiredContext { .. } => {
            "certificate has expired or is not yet valid".to_owned()
        }
        CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => {
            "certificate has expired or is not yet valid".to_owned()
        }
        CertificateError::NotValidForNameContext { presented, .. } => valid_for(presented, host),
        CertificateError::NotValidForName => format!("certificate is not valid for {host}"),
        other => other.to_string(),
    }
}

/// Returns the fault of a certificate for other names: those of the kind that was asked for.
fn valid_for(presented: &[String], host: &str) -> String {
    let is_address = host.parse::<std::net::IpAddr>().is_ok();
    let wanted = if is_address { "IpAddress(" } else { "DnsName(" };
    let names: Vec<&str> = presented
        .iter()
        .filter_map(|name| name.strip_prefix(wanted)?.strip_suffix(')'))
        .map(|name| name.trim_matches('"'))
        .collect();
    match (names.as_slice(), is_address) {
        ([], true) => {
            format!("cannot validate certificate for {host} because it doesn't contain any IP SANs")
        }
        ([], false) => {
            format!("certificate is not valid for any names, but wanted to match {host}")
        }
        (names, _) => format!("certificate is valid for {}, not {host}", names.join(", ")),
    }
}
