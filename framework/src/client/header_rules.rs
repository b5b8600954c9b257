//! What no header of a request may say, wherever it comes from.
//!
//! Configured credentials and impersonations are checked once, when they are set. A request may bring
//! others: in a header of its own, or in one that a user's layer adds. So what is about to be sent is
//! looked at in the last place that sees it: the transport, and the upgrade, which goes past it.

use std::sync::Arc;

use http::header::{
    AUTHORIZATION, COOKIE, HeaderMap, HeaderName, HeaderValue, PROXY_AUTHORIZATION,
};

use super::config::{ClientConfig, IMPERSONATION_RULE, is_sent_whole};
use crate::error::{Error, ErrorKind};

/// The rules for requests of one client. Cheap to clone.
#[derive(Clone, Debug)]
pub(super) struct HeaderRules {
    /// Why no credentials may be sent.
    cleartext: Option<Arc<str>>,
}

impl HeaderRules {
    /// By the address that `config` names. A client without one goes through a connector, to no
    /// address at all.
    pub(super) fn of(config: Option<&ClientConfig>) -> Self {
        Self { cleartext: config.and_then(ClientConfig::cleartext).map(Arc::from) }
    }

    /// Refuses credentials in the clear, and impersonations that a server would read as another one or
    /// as none.
    pub(super) fn check(&self, headers: &HeaderMap) -> Result<(), Error> {
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

fn is_credential(name: &HeaderName, value: &HeaderValue) -> bool {
    value.is_sensitive() || [AUTHORIZATION, PROXY_AUTHORIZATION, COOKIE].contains(name)
}
