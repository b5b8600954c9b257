//! A real kube-apiserver with a separate etcd, on loopback, ended when the owning value or the test
//! process ends.
//!
//! The server takes 3 s to start, so tests share a server per process, and only tests that stop or
//! replace a server start their own. Clients authenticate by client certificates, tokens of a file,
//! and tokens of service accounts. Not included: controllers (no process acts on stored objects),
//! and kubelets.

mod folder;
mod guard;
mod pki;
mod program;
mod server;

pub use pki::ClientCertificate;
pub use server::RealServer;

use http::HeaderValue;

use windlass_client::client::ClientConfig;
use windlass_core::error::{Error, ErrorKind};

/// Whether tests want the real server.
///
/// # Errors
/// When `WINDLASS_TEST_SERVER` is an unknown word: a typing error must not turn tests of the real
/// server into tests of the embedded one.
pub(super) fn wanted() -> Result<bool, Error> {
    match std::env::var("WINDLASS_TEST_SERVER").unwrap_or_default().as_str() {
        "real" => Ok(true),
        "" | "embedded" => Ok(false),
        other => Err(Error::new(
            ErrorKind::Config,
            format!("WINDLASS_TEST_SERVER is {other:?}; set it to `real` or `embedded`"),
        )),
    }
}

/// Returns `config` with headers that impersonate `user` in `groups`.
///
/// # Errors
/// [`ErrorKind::Usage`] for a name that no HTTP header can carry.
pub(super) fn as_user(
    mut config: ClientConfig,
    user: &str,
    groups: &[&str],
) -> Result<ClientConfig, Error> {
    let value = |text: &str| {
        HeaderValue::from_str(text).map_err(|error| {
            let text = format!("cannot act as {text:?}: no HTTP header can carry that");
            Error::new(ErrorKind::Usage, text).because(error)
        })
    };
    // The request is sent with the administrator's credentials, and the server grants the request
    // the rights of the impersonated user only.
    config.headers.insert("impersonate-user", value(user)?);
    for group in groups {
        // Appended: a user may have several groups, each in a separate header.
        config.headers.append("impersonate-group", value(group)?);
    }
    Ok(config)
}

/// An error of the test equipment.
///
/// The error is of kind [`Config`](ErrorKind::Config): the environment of the tests lacks a part.
fn failed(text: impl Into<String>) -> Error {
    Error::new(ErrorKind::Config, text)
}
