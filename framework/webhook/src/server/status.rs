//! The state of a server for readiness.

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

use parking_lot::Mutex;
use windlass_runtime::manager::Check;

use crate::certificates::ServingCertificate;

/// State of a server for readiness, once it runs.
#[derive(Debug, Default)]
pub(crate) struct ServerStatus {
    pub(super) shown: OnceLock<ServedTls>,
    /// Faults of configurations and conversions, by a key of each.
    faults: Mutex<BTreeMap<String, Check>>,
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
        checks
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
