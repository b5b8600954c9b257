//! Checks of the headers of a request before sending.
//!
//! Configured credentials and impersonations are checked once, when they are set. A request may
//! contain others: in an explicit header, or in a header that a layer of the user adds. So the
//! headers are checked in the last place that sees every header: the transport, and the upgrade,
//! which bypasses the transport.

// DESIGN.md, 82: The transport checks headers for credentials in clear text

use std::sync::Arc;

use http::header::{
    AUTHORIZATION, COOKIE, HeaderMap, HeaderName, HeaderValue, PROXY_AUTHORIZATION,
};

use windlass_core::error::{Error, ErrorKind};

/// Header rules of a client. Cheap to clone.
#[derive(Clone, Debug)]
pub(in crate::client) struct HeaderRules {
    /// Reason why no credentials may be sent, if there is any.
    cleartext: Option<Arc<str>>,
}

impl HeaderRules {
    /// Returns the rules for an address; `cleartext` is the reason why no credentials may be sent
    /// to the address. A client without a configuration uses a connector and has no address, and
    /// may therefore send credentials.
    pub(in crate::client) fn new(cleartext: Option<String>) -> Self {
        Self { cleartext: cleartext.map(Arc::from) }
    }

    /// Refuses credentials in the clear, and impersonations that a server would read as another
    /// identity or ignore.
    pub(in crate::client) fn check(&self, headers: &HeaderMap) -> Result<(), Error> {
        // All headers are checked, because layers may have added credentials under any name.
        for (name, value) in headers {
            if let Some(why) = self.cleartext.as_ref().filter(|_| is_credential(name, value)) {
                let text = format!("{why} (the header `{name}` of this request holds some)");
                return Err(Error::new(ErrorKind::Config, text));
            }
            if name.as_str().starts_with("impersonate-") && !is_sent_whole(value.as_bytes()) {
                let text = format!(
                    "the header `{name}` of this request is not sent: {IMPERSONATION_RULE}"
                );
                return Err(Error::new(ErrorKind::Usage, text));
            }
        }
        Ok(())
    }
}

/// Rule for the values of impersonation headers, with the reason.
pub(in crate::client) const IMPERSONATION_RULE: &str = "write printable ASCII that is not empty and neither begins nor ends with a space; servers trim \
     or drop anything else, and the request would run with the caller's own rights";

/// Returns whether every server reads a header value as written. HTTP lets servers trim blanks,
/// which leaves a value of blanks empty, and does not define the meaning of bytes beyond ASCII.
pub(in crate::client) fn is_sent_whole(value: &[u8]) -> bool {
    !value.is_empty()
        && value.trim_ascii() == value
        && value.iter().all(|byte| matches!(byte, b' '..=b'~'))
}

/// Returns whether a header carries credentials.
fn is_credential(name: &HeaderName, value: &HeaderValue) -> bool {
    value.is_sensitive() || [AUTHORIZATION, PROXY_AUTHORIZATION, COOKIE].contains(name)
}
