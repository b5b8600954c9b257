//! What a program says itself, over what it found configured.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use http::HeaderMap;
use http::header::{HeaderName, HeaderValue};

use super::{ClientConfig, config_error, parse_server};
use crate::client::auth::AuthSource;
use crate::client::exec::ExecPlugin;
use crate::client::proxy::{Proxy, ProxyChoice};
use crate::client::secret::Secret;
use crate::client::tls::Pem;
use crate::error::Error;

/// Whom to act as: a user, and perhaps its uid, groups and extra fields. The API server asks whether
/// the user of the credentials may `impersonate` each of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Impersonation {
    user: String,
    uid: Option<String>,
    groups: Vec<String>,
    extra: BTreeMap<String, Vec<String>>,
}

impl Impersonation {
    /// A user, such as `jane` or `system:serviceaccount:shop:robot`.
    pub fn user(user: &str) -> Self {
        Self { user: user.to_owned(), uid: None, groups: Vec::new(), extra: BTreeMap::new() }
    }

    /// The user's uid.
    #[must_use]
    pub fn uid(mut self, uid: &str) -> Self {
        self.uid = Some(uid.to_owned());
        self
    }

    /// Adds groups.
    #[must_use]
    pub fn groups(mut self, groups: impl IntoIterator<Item = String>) -> Self {
        self.groups.extend(groups);
        self
    }

    /// Adds values of an extra field. The API server reads `key` in lower case.
    #[must_use]
    pub fn extra(mut self, key: &str, values: impl IntoIterator<Item = String>) -> Self {
        self.extra.entry(key.to_owned()).or_default().extend(values);
        self
    }

    pub(super) fn headers(&self, origin: &str) -> Result<HeaderMap, Error> {
        let mut headers = HeaderMap::new();
        let mut add = |name: &str, value: &str| {
            let wrong = || {
                config_error(format!(
                    "{origin}: {value:?} cannot be impersonated: it fits no HTTP header; remove \
                     line breaks and control characters"
                ))
            };
            let value = HeaderValue::from_bytes(value.as_bytes()).map_err(|_| wrong())?;
            let name = HeaderName::from_bytes(name.as_bytes()).map_err(|_| wrong())?;
            headers.append(name, value);
            Ok(())
        };
        if self.user.is_empty() {
            let text = "{origin}: an impersonation needs a user that is not empty";
            return Err(config_error(text.replace("{origin}", origin)));
        }
        add("impersonate-user", &self.user)?;
        self.uid.iter().try_for_each(|uid| add("impersonate-uid", uid))?;
        self.groups.iter().try_for_each(|group| add("impersonate-group", group))?;
        for (key, values) in &self.extra {
            let name = format!("impersonate-extra-{}", escaped(key));
            values.iter().try_for_each(|value| add(&name, value))?;
        }
        Ok(headers)
    }
}

/// A key as part of a header's name, as client-go writes it: what a name cannot hold, and `%`, as
/// `%XX`.
fn escaped(key: &str) -> String {
    let mut text = String::new();
    for byte in key.bytes() {
        if byte.is_ascii_alphanumeric() || b"!#$&'*+-.^_`|~".contains(&byte) {
            text.push(char::from(byte));
        } else {
            text.push_str(&format!("%{byte:02X}"));
        }
    }
    text
}

impl ClientConfig {
    /// The API server at `server` (`https://host:port`, perhaps with a path), with the credentials
    /// that are here already.
    ///
    /// # Errors
    /// [`ErrorKind::Config`](crate::ErrorKind::Config) when `server` is not such an address.
    pub fn with_server(mut self, server: &str) -> Result<Self, Error> {
        self.server = parse_server(server, "the program")?;
        Ok(self)
    }

    /// Uses `namespace` where none is named.
    #[must_use]
    pub fn with_namespace(mut self, namespace: &str) -> Self {
        self.namespace = namespace.to_owned();
        self
    }

    /// Authenticates by `token`.
    #[must_use]
    pub fn with_token(mut self, token: impl Into<Secret>) -> Self {
        self.auth = AuthSource::Token(token.into());
        self
    }

    /// Authenticates by the token in a file, which is read again each minute and after a 401.
    #[must_use]
    pub fn with_token_file(mut self, path: impl AsRef<Path>) -> Self {
        self.auth = AuthSource::TokenFile(path.as_ref().to_owned(), None);
        self
    }

    /// Authenticates by user and password.
    #[must_use]
    pub fn with_basic_auth(mut self, user: &str, password: impl Into<Secret>) -> Self {
        self.auth = AuthSource::Basic(user.to_owned(), password.into());
        self
    }

    /// Authenticates by what a credential plugin prints.
    #[must_use]
    pub fn with_exec(mut self, plugin: ExecPlugin) -> Self {
        self.auth = AuthSource::Exec(Arc::new(plugin));
        self
    }

    /// Authenticates by a client certificate; certificate (chain) and key as PEM.
    #[must_use]
    pub fn with_identity(mut self, certificate: &str, key: impl Into<Secret>) -> Self {
        self.tls.identity = Some((Pem::Inline(certificate.into()), Pem::Inline(key.into())));
        self
    }

    /// Authenticates by a client certificate in PEM files, which are looked at again each minute and
    /// after a 401.
    #[must_use]
    pub fn with_identity_files(
        mut self,
        certificate: impl AsRef<Path>,
        key: impl AsRef<Path>,
    ) -> Self {
        let file = |path: &Path| Pem::File(path.to_owned());
        self.tls.identity = Some((file(certificate.as_ref()), file(key.as_ref())));
        self
    }

    /// Acts as somebody else.
    ///
    /// # Errors
    /// [`ErrorKind::Config`](crate::ErrorKind::Config) when a value fits no HTTP header, or the user
    /// is empty.
    pub fn with_impersonation(mut self, who: &Impersonation) -> Result<Self, Error> {
        self.headers = who.headers("the program")?;
        Ok(self)
    }

    /// Trusts the roots in `pem` instead of the system's.
    #[must_use]
    pub fn with_ca(mut self, pem: &str) -> Self {
        self.tls.ca = Some(Pem::Inline(pem.into()));
        self.tls.insecure = false;
        self
    }

    /// Trusts the roots in a PEM file instead of the system's; it is looked at again each minute, and
    /// when a handshake fails.
    #[must_use]
    pub fn with_ca_file(mut self, path: impl AsRef<Path>) -> Self {
        self.tls.ca = Some(Pem::File(path.as_ref().to_owned()));
        self.tls.insecure = false;
        self
    }

    /// The server's certificate must carry `name` instead of the address's host.
    #[must_use]
    pub fn with_tls_server_name(mut self, name: &str) -> Self {
        self.tls.server_name = Some(name.to_owned());
        self
    }

    /// Trusts whoever answers at the address, also inside a Pod: anybody on the way can read and
    /// change everything, credentials too. For experiments.
    #[must_use]
    pub fn with_insecure_skip_tls_verify(mut self) -> Self {
        self.tls.ca = None;
        self.tls.insecure = true;
        self.insecure_by_program = true;
        self
    }

    /// Connects through a proxy: `http://`, `https://` or `socks5://`, perhaps with
    /// `user:password@`. What the environment says about proxies no longer counts.
    ///
    /// # Errors
    /// [`ErrorKind::Config`](crate::ErrorKind::Config) when `url` is no such address.
    pub fn with_proxy(mut self, url: &str) -> Result<Self, Error> {
        let proxy = Proxy::parse(url, "named by the program")
            .map_err(|why| config_error(format!("the address that the program gives {why}")))?;
        self.proxy = ProxyChoice::Through(Arc::new(proxy));
        Ok(self)
    }

    /// Connects without a proxy, whatever kubeconfig and environment say.
    #[must_use]
    pub fn without_proxy(mut self) -> Self {
        self.proxy = ProxyChoice::Direct;
        self
    }

    /// Whether answers may come compressed. Default: yes, unless the kubeconfig's
    /// `disable-compression` says no.
    #[must_use]
    pub fn with_compression(mut self, compression: bool) -> Self {
        self.compression = compression;
        self
    }
}
