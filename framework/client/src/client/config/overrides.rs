//! Settings of the program that override the configuration found.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use http::HeaderMap;
use http::header::{HeaderName, HeaderValue};

use super::{ClientConfig, config_error, parse_server};
use crate::client::auth::{AuthSource, ExecPlugin, ExecPolicy};
use crate::client::policy::{IMPERSONATION_RULE, is_sent_whole};
use crate::client::secret::SecretString;
use crate::client::transport::{Pem, Proxy, ProxyChoice};
use windlass_core::error::Error;

/// Identity to act as: a user, and optionally the uid, groups and extra fields. The API server
/// checks whether the user of the credentials may `impersonate` each of them.
///
/// Each value must be printable ASCII, not empty, without a blank at either end.
/// [`with_impersonation`](ClientConfig::with_impersonation) refuses any other value, because a
/// server could read such a value differently and run the request with the rights of the
/// credentials. A check of the name (may a tenant who wrote the name into an object act as that
/// user?) is the caller's task.
///
/// ```no_run
/// # extern crate windlass_client as windlass;
/// use windlass::client::{ClientConfig, Impersonation};
///
/// # fn main() -> Result<(), windlass::Error> {
/// let jane = Impersonation::user("jane")
///     .groups(["developers".to_owned()])
///     .extra("scopes", ["view".to_owned()]);
/// let config = ClientConfig::infer()?.with_impersonation(&jane)?;
/// # let _ = config;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Impersonation {
    user: String,
    uid: Option<String>,
    groups: Vec<String>,
    extra: BTreeMap<String, Vec<String>>,
}

impl Impersonation {
    /// Creates an impersonation of a user, such as `jane` or `system:serviceaccount:shop:robot`.
    pub fn user(user: &str) -> Self {
        Self { user: user.to_owned(), uid: None, groups: Vec::new(), extra: BTreeMap::new() }
    }

    /// Sets the user's uid.
    ///
    /// Default: none.
    #[must_use]
    pub fn uid(mut self, uid: &str) -> Self {
        self.uid = Some(uid.to_owned());
        self
    }

    /// Adds groups.
    ///
    /// Default: none. Later calls add to earlier values.
    #[must_use]
    pub fn groups(mut self, groups: impl IntoIterator<Item = String>) -> Self {
        self.groups.extend(groups);
        self
    }

    /// Adds values of an extra field. The API server reads `key` in lower case.
    ///
    /// Later calls with the same key add to earlier values.
    #[must_use]
    pub fn extra(mut self, key: &str, values: impl IntoIterator<Item = String>) -> Self {
        self.extra.entry(key.to_owned()).or_default().extend(values);
        self
    }

    /// Returns the headers of the impersonation, or refuses a value that servers misread.
    pub(super) fn headers(&self, origin: &str) -> Result<HeaderMap, Error> {
        let mut headers = HeaderMap::new();
        let mut add = |what: &str, name: &str, text: &str| {
            let wrong = || {
                config_error(format!(
                    "{origin}: the {what} {text:?} cannot be impersonated: {IMPERSONATION_RULE}"
                ))
            };
            let value = HeaderValue::from_str(text).ok();
            let value = value.filter(|_| is_sent_whole(text.as_bytes())).ok_or_else(wrong)?;
            let name = HeaderName::from_bytes(name.as_bytes()).map_err(|_| wrong())?;
            headers.append(name, value);
            Ok::<_, Error>(())
        };
        add("user", "impersonate-user", &self.user)?;
        self.uid.iter().try_for_each(|uid| add("uid", "impersonate-uid", uid))?;
        self.groups.iter().try_for_each(|group| add("group", "impersonate-group", group))?;
        for (key, values) in &self.extra {
            if key.is_empty() {
                let text = "an extra field without a name cannot be impersonated; name it";
                return Err(config_error(format!("{origin}: {text}")));
            }
            let name = format!("impersonate-extra-{}", escaped(key));
            values.iter().try_for_each(|value| add("extra", &name, value))?;
        }
        Ok(headers)
    }
}

/// Encodes a key as part of a header's name, as client-go does: characters that a name cannot
/// contain, and `%`, become `%XX`.
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
    /// Sets the API server to `server` (`https://host:port`, perhaps with a path); the credentials
    /// remain.
    ///
    /// # Errors
    /// [`ErrorKind::Config`](windlass_core::ErrorKind::Config) when `server` is not such an
    /// address.
    pub fn with_server(mut self, server: &str) -> Result<Self, Error> {
        self.server = parse_server(server, "the program")?;
        Ok(self)
    }

    /// Sets the namespace of calls that name none.
    ///
    /// Default: the namespace of the context, or `default`.
    #[must_use]
    pub fn with_namespace(mut self, namespace: &str) -> Self {
        self.namespace = namespace.to_owned();
        self
    }

    /// Authenticates with `token`.
    ///
    /// Replaces the configuration's credentials, except a client certificate. The token is never
    /// read again: for a token that expires use [`with_token_file`](Self::with_token_file).
    #[must_use]
    pub fn with_token(mut self, token: impl Into<SecretString>) -> Self {
        self.auth = AuthSource::Token(token.into());
        self
    }

    /// Authenticates with the token in a file, which is read again each minute and after a 401.
    ///
    /// Service accounts' tokens live about an hour; the kubelet replaces the file before that.
    #[must_use]
    pub fn with_token_file(mut self, path: impl AsRef<Path>) -> Self {
        self.auth = AuthSource::TokenFile(path.as_ref().to_owned(), None);
        self
    }

    /// Authenticates with user and password.
    ///
    /// Kubernetes accepts no password since 1.19; proxies in front of the API server may.
    #[must_use]
    pub fn with_basic_auth(mut self, user: &str, password: impl Into<SecretString>) -> Self {
        self.auth = AuthSource::Basic(user.to_owned(), password.into());
        self
    }

    /// Authenticates with the output of a credential plugin. Unless a
    /// [policy](Self::with_exec_policy) was set, the plugin runs in a Pod, too, because the program
    /// names the plugin.
    #[must_use]
    pub fn with_exec(mut self, plugin: ExecPlugin) -> Self {
        self.auth = AuthSource::Exec(Arc::new(plugin));
        self.exec_by_program = true;
        self
    }

    /// Sets the credential plugins that may run, also of those that the program sets. Default: all;
    /// but in a Pod (`KUBERNETES_SERVICE_HOST` is set) none of a kubeconfig, because a user who can
    /// write that file could start programs with the operator's rights.
    ///
    /// ```
    /// # extern crate windlass_client as windlass;
    /// use windlass::client::{ClientConfig, ExecPolicy};
    ///
    /// # const KUBECONFIG: &str = "{current-context: c, contexts: [{name: c, context: {cluster: c}}],
    /// #   clusters: [{name: c, cluster: {server: 'https://c.example'}}]}";
    /// # fn main() -> Result<(), windlass::Error> {
    /// let config = ClientConfig::from_yaml(KUBECONFIG, None)?
    ///     .with_exec_policy(ExecPolicy::allow_list(["/usr/local/bin/cloud-login"]));
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn with_exec_policy(mut self, policy: ExecPolicy) -> Self {
        self.exec_policy = Some(policy);
        self
    }

    /// Authenticates with a client certificate; certificate (chain) and key as PEM.
    ///
    /// A PEM that is unusable is an error of
    /// [`ClientBuilder::build`](crate::client::ClientBuilder::build).
    #[must_use]
    pub fn with_identity(mut self, certificate: &str, key: impl Into<SecretString>) -> Self {
        self.tls.identity = Some((Pem::Inline(certificate.into()), Pem::Inline(key.into())));
        self
    }

    /// Authenticates with a client certificate in PEM files, which are checked again each minute
    /// and after a 401.
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

    /// Acts as another user.
    ///
    /// The credentials stay those of the configuration; they need the verb `impersonate`. Replaces
    /// an earlier impersonation.
    ///
    /// # Errors
    /// [`ErrorKind::Config`](windlass_core::ErrorKind::Config) when a user, uid, group or extra
    /// value is empty, begins or ends with a blank, or is more than printable ASCII.
    pub fn with_impersonation(mut self, who: &Impersonation) -> Result<Self, Error> {
        self.headers = who.headers("the program")?;
        Ok(self)
    }

    /// Trusts the roots in `pem` instead of the system's.
    ///
    /// The system's roots are then not trusted.
    #[must_use]
    pub fn with_ca(mut self, pem: &str) -> Self {
        self.tls.ca = Some(Pem::Inline(pem.into()));
        self.tls.insecure = false;
        self
    }

    /// Trusts the roots in a PEM file instead of the system's; the file is checked again each
    /// minute, and when a handshake fails.
    #[must_use]
    pub fn with_ca_file(mut self, path: impl AsRef<Path>) -> Self {
        self.tls.ca = Some(Pem::File(path.as_ref().to_owned()));
        self.tls.insecure = false;
        self
    }

    /// Sets the name that the server's certificate must carry, in place of the address's host.
    ///
    /// For a server that is reached by an address which the certificate does not name.
    #[must_use]
    pub fn with_tls_server_name(mut self, name: &str) -> Self {
        self.tls.server_name = Some(name.to_owned());
        self
    }

    /// Trusts any server at the address, also inside a Pod: an attacker on the network can read and
    /// change everything, credentials too. For experiments.
    #[must_use]
    pub fn with_insecure_skip_tls_verify(mut self) -> Self {
        self.tls.ca = None;
        self.tls.insecure = true;
        self.insecure_by_program = true;
        self
    }

    /// Sets the proxy: `http://`, `https://` or `socks5://`, perhaps with `user:password@`. The
    /// proxy variables of the environment are then ignored.
    ///
    /// # Errors
    /// [`ErrorKind::Config`](windlass_core::ErrorKind::Config) when `url` is no such address.
    pub fn with_proxy(mut self, url: &str) -> Result<Self, Error> {
        let proxy = Proxy::parse(url, "named by the program")
            .map_err(|why| config_error(format!("the address that the program gives {why}")))?;
        self.proxy = ProxyChoice::Through(Arc::new(proxy));
        Ok(self)
    }

    /// Connects without a proxy, regardless of kubeconfig and environment.
    #[must_use]
    pub fn without_proxy(mut self) -> Self {
        self.proxy = ProxyChoice::Direct;
        self
    }

    /// Sets whether answers may be compressed. Default: yes, unless the kubeconfig sets
    /// `disable-compression`.
    #[must_use]
    pub fn with_compression(mut self, compression: bool) -> Self {
        self.compression = compression;
        self
    }
}
