//! The state of a server for readiness.

// DESIGN.md, 242: A server is ready once definitions name it after the installation

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;
use windlass_core::{Error, ErrorKind};
use windlass_runtime::manager::Check;

use crate::certificates::ServingCertificate;

/// Name of the check of readiness about conversions.
pub(super) const CONVERSION: &str = "webhook conversion";

/// State of a server for readiness, once it runs.
#[derive(Debug, Default)]
pub(crate) struct ServerStatus {
    pub(super) shown: OnceLock<ServedTls>,
    /// Faults of configurations and conversions, by a key of each.
    faults: Mutex<BTreeMap<String, Check>>,
    /// `None` for a server that converts nothing.
    looks: Mutex<Option<ConversionLooks>>,
}

/// The looks at the conversions in definitions.
#[derive(Debug)]
struct ConversionLooks {
    /// Cancelled once the operator has installed its definitions.
    installed: CancellationToken,
    /// Whether a look has ended that began before the installation, and one that began after it.
    has_ended: (bool, bool),
}

impl ConversionLooks {
    /// Whether definitions may have conversions that are wrong: they were not looked at, or
    /// installed since.
    fn are_due(&self) -> bool {
        let (early, late) = self.has_ended;
        !(late || early && !self.installed.is_cancelled())
    }
}

/// A look at all conversions.
pub(super) struct ConversionLook<'a> {
    status: &'a ServerStatus,
    /// Whether the definitions were installed before.
    pub(super) is_late: bool,
    has_result: bool,
}

impl ConversionLook<'_> {
    /// Takes in the outcome for one definition.
    pub(super) fn note(&mut self, looked: &Result<(), Error>) {
        self.has_result &= !looked.as_ref().is_err_and(is_passing);
    }

    /// Ends the look.
    pub(super) fn end(self) {
        if let Some(looks) = self.status.looks.lock().as_mut().filter(|_| self.has_result) {
            match self.is_late {
                true => looks.has_ended.1 = true,
                false => looks.has_ended.0 = true,
            }
        }
    }
}

/// Whether a further look may have another outcome, without a change by a person: a definition that
/// is absent, or that may not be read, does not hold up readiness.
fn is_passing(error: &Error) -> bool {
    error.is_conflict()
        || matches!(
            error.kind(),
            ErrorKind::Ambiguous
                | ErrorKind::Connect
                | ErrorKind::Server
                | ErrorKind::Timeout
                | ErrorKind::TooManyRequests
                | ErrorKind::Transport
        )
}

/// The certificate of a server.
#[derive(Debug)]
pub(super) enum ServedTls {
    Certificate(Arc<ServingCertificate>),
    /// Connections come through memory, without TLS.
    Plain,
}

impl ServerStatus {
    /// Returns the checks of readiness.
    pub(crate) fn checks(&self) -> Vec<Check> {
        let mut checks = match self.shown.get() {
            None => vec![Check {
                name: "webhook certificate".to_owned(),
                ok: false,
                detail: "the server has not started".to_owned(),
            }],
            Some(ServedTls::Certificate(certificate)) => vec![certificate.check()],
            Some(ServedTls::Plain) => Vec::new(),
        };
        checks.extend(self.faults.lock().values().cloned());
        if self.looks.lock().as_ref().is_some_and(ConversionLooks::are_due) {
            checks.push(Check {
                name: CONVERSION.to_owned(),
                ok: false,
                detail: "the conversions in the definitions are not written yet".to_owned(),
            });
        }
        checks
    }

    /// Lets readiness wait for a look at the conversions, and for one after the installation.
    pub(super) fn expect_looks(&self, installed: &CancellationToken) {
        let installed = installed.clone();
        *self.looks.lock() = Some(ConversionLooks { installed, has_ended: (false, false) });
    }

    /// Begins a look at all conversions.
    pub(super) fn look(&self) -> ConversionLook<'_> {
        let looks = self.looks.lock();
        let is_late = looks.as_ref().is_none_or(|looks| looks.installed.is_cancelled());
        ConversionLook { status: self, is_late, has_result: true }
    }

    /// Waits for the installation; for ever if that was before the last look.
    pub(super) async fn installed_after(&self, is_late: bool) {
        let installed = self.looks.lock().as_ref().map(|looks| looks.installed.clone());
        match installed.filter(|_| !is_late) {
            Some(installed) => installed.cancelled().await,
            None => std::future::pending().await,
        }
    }

    /// Shows a fault, `false` for one that ends readiness.
    pub(super) fn show(&self, key: String, name: &str, ok: bool, detail: String) {
        let check = Check { name: name.to_owned(), ok, detail };
        self.faults.lock().insert(key, check);
    }

    /// Whether a fault is shown.
    pub(super) fn shows(&self, key: &str) -> bool {
        self.faults.lock().contains_key(key)
    }

    /// Shows a fault no more.
    pub(super) fn hide(&self, key: &str) {
        self.faults.lock().remove(key);
    }
}

#[cfg(test)]
impl ServerStatus {
    /// Returns the certificate that the server shows.
    pub(crate) fn certificate(&self) -> Option<&ServingCertificate> {
        match self.shown.get() {
            Some(ServedTls::Certificate(certificate)) => Some(certificate),
            _ => None,
        }
    }
}
