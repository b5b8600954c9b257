//! A certificate with its key.

use jiff::Timestamp;
use zeroize::Zeroizing;

use crate::certificates::bundle::validity;
use crate::certificates::validity::Validity;

/// Part of a life, in percent, below which a certificate is replaced.
const RENEW_BELOW: i64 = 20;

/// A certificate and its key, PEM.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct CertificatePair {
    pub(super) certificate: String,
    pub(super) key: Zeroizing<String>,
    pub(super) validity: Validity,
}

impl CertificatePair {
    /// Returns a pair; `None` when the certificate cannot be read.
    pub(super) fn new(certificate: String, key: Zeroizing<String>) -> Option<Self> {
        let validity = validity(&certificate)?;
        Some(Self { certificate, key, validity })
    }

    /// Whether the certificate is to be replaced.
    pub(super) fn is_due(&self, now: Timestamp) -> bool {
        self.validity.left_percent(now) < RENEW_BELOW
    }

    /// Whether the certificate has ended.
    pub(super) fn is_over(&self, now: Timestamp) -> bool {
        self.validity.not_after <= now
    }
}
