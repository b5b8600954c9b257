//! Configuration of a client, from kubeconfig files or from the Pod in which the process runs.
//!
//! Files are few and small and are read at start, with blocking calls. Token files, CA files and
//! client certificates are only named here and read again while the client runs. Not included:
//! writing a kubeconfig, the legacy `auth-provider` (a configuration with an `auth-provider` is
//! refused), and prompts for missing values.

mod env_vars;
mod format;
mod kubeconfig;
mod overrides;

use std::fmt;
use std::path::Path;
use std::sync::Arc;

use http::{HeaderMap, Uri};
use serde_json::json;

use crate::client::auth::{AuthSource, ClusterInfo, ExecPlugin, ExecPolicy};
use crate::client::transport::{ProxyChoice, TlsSettings};
use env_vars::Env;
use format::Kubeconfig;
pub use overrides::Impersonation;
use windlass_core::error::{Error, ErrorKind};

/// Address, credentials and default namespace of a cluster. `Debug` shows no secret.
///
/// # Sources
///
/// [`infer`](Self::infer) and [`find`](Self::find) take the first of these that exists, in the
/// order of controller-runtime:
///
/// | | source | when something is wrong with the source |
/// |---|---|---|
/// | 1 | `--kubeconfig FILE` of the command line ([`from_file`](Self::from_file)) | an error |
/// | 2 | the files that `KUBECONFIG` lists, merged | a missing file is skipped with a warning; an error when all are missing or any other cannot be read |
/// | 3 | the Pod's service account ([`in_cluster`](Self::in_cluster)), where `KUBERNETES_SERVICE_HOST` is set | an error, also without a token: `~/.kube/config` is not read in a Pod |
/// | 4 | `~/.kube/config`, outside of Pods | an error |
///
/// Files are merged as by kubectl: the first file with a cluster, user or context of a name decides
/// all of that entry, the first that sets `current-context` decides the current context, and
/// relative paths are relative to the folder of their file. A file with two entries of the same
/// name is an error.
///
/// # Rotation
///
/// | value | source | read again |
/// |---|---|---|
/// | address, namespace, names of files | kubeconfig, environment | never |
/// | token | `tokenFile`, the Pod's account | each minute; at once after a 401 |
/// | token or client certificate | `exec` plugin | 10 s before the expiry; at once after a 401; but not twice within 5 s |
/// | CA | `certificate-authority`, the Pod's account | each minute; at once when a TLS handshake fails |
/// | client certificate | `client-certificate`, `client-key` | each minute; at once after a 401 or when a TLS handshake fails |
/// | inline tokens, passwords and `-data` | kubeconfig | never |
///
/// The minute is measured when a request is made; no task runs in the background. A file that
/// cannot be read or used during a replacement changes nothing: the earlier value remains in use,
/// with a warning. After a change of CA or client certificate new requests get new connections;
/// requests under way, watches too, end on theirs.
///
/// # Credentials
///
/// If a kubeconfig's user has several kinds of credentials, the first of these is used, as by
/// kubectl (a token beside a user name is refused): `tokenFile` (`token` until the file can be
/// read), `token`, `username`, a client certificate, an `exec` plugin. A client certificate is
/// presented besides a token, too. A plugin of version v1 must have an `interactiveMode`. In a Pod
/// a plugin of a kubeconfig does not run, unless the program [allows it](Self::with_exec_policy).
/// Credentials are never sent over plain HTTP, except to this machine; that holds for headers of
/// single requests, for those that layers add, and for a
/// [connector](super::ClientBuilder::connector) of the program's own, too.
///
/// # Proxies
///
/// A cluster's `proxy-url` (or [`with_proxy`](Self::with_proxy)) is used; without such a proxy
/// `HTTPS_PROXY`, or `HTTP_PROXY` for a server that speaks plain HTTP, or `ALL_PROXY`; each also in
/// lower case, and with the exceptions of `NO_PROXY`: `*`, a name including all names below it
/// (`example.com`), only the names below it (`.example.com`), an address or a network
/// (`10.0.0.0/8`); all but `*` and networks may have a port. `localhost` and loopback addresses are
/// never reached through a proxy of the environment; a Pod's service account is, so list the
/// cluster's Service network in `NO_PROXY`. Schemes are `http`, `https` and `socks5` (or `socks5h`:
/// the proxy resolves host names in both cases); all of them tunnel, to plain-HTTP servers too. An
/// `https` proxy is verified against the system's roots and the cluster's CA, and gets no client
/// certificate.
///
/// # Example
///
/// ```
/// # extern crate windlass_client as windlass;
/// use windlass::client::{ClientConfig, Impersonation};
///
/// # fn main() -> Result<(), windlass::Error> {
/// let config = ClientConfig::new("https://api.example:6443")?
///     .with_ca_file("/etc/shop/ca.crt")
///     .with_token_file("/etc/shop/token")
///     .with_impersonation(&Impersonation::user("jane"))?
///     .with_proxy("socks5://bastion:1080")?;
/// assert_eq!(config.namespace(), "default");
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct ClientConfig {
    /// Address of the API server.
    pub(crate) server: Uri,
    /// Namespace of the context, or `default`.
    pub(crate) namespace: String,
    /// Roots, client certificate and name of the server.
    pub(crate) tls: TlsSettings,
    /// Source of the credentials, before [`auth_source`](Self::auth_source) completes a plugin.
    pub(crate) auth: AuthSource,
    /// Headers of an impersonation.
    #[doc(hidden)]
    pub headers: HeaderMap,
    /// The environment's, none, or a proxy of the configuration.
    pub(crate) proxy: ProxyChoice,
    /// Whether answers may be compressed.
    compression: bool,
    /// Whether the program disabled the verification of the server.
    insecure_by_program: bool,
    /// Plugins that may run, if the program restricts them.
    exec_policy: Option<ExecPolicy>,
    /// Whether the program set the plugin.
    exec_by_program: bool,
    /// Source of the configuration, for error texts.
    origin: String,
}

impl ClientConfig {
    /// Creates the configuration of a cluster at `server` (`https://host:port`, perhaps with a
    /// path), without credentials.
    ///
    /// An address without a scheme means plain HTTP, as in kubectl without TLS settings; no
    /// credentials are sent over such a connection.
    ///
    /// # Errors
    /// [`ErrorKind::Config`] when `server` is not such an address.
    pub fn new(server: &str) -> Result<Self, Error> {
        Self::at(server, "the program")
    }

    /// Creates a configuration of which everything but the address is a default.
    fn at(server: &str, origin: &str) -> Result<Self, Error> {
        Ok(Self {
            server: parse_server(server, origin)?,
            namespace: "default".to_owned(),
            tls: TlsSettings::default(),
            auth: AuthSource::None,
            headers: HeaderMap::new(),
            proxy: ProxyChoice::Environment,
            compression: true,
            insecure_by_program: false,
            exec_policy: None,
            exec_by_program: false,
            origin: origin.to_owned(),
        })
    }

    /// Reads the files of `KUBECONFIG`, the service account of the Pod, or `~/.kube/config`: the
    /// first of them that exists.
    ///
    /// ```no_run
    /// # extern crate windlass_client as windlass;
    /// use windlass::client::ClientConfig;
    ///
    /// # fn main() -> Result<(), windlass::Error> {
    /// let config = ClientConfig::infer()?;
    /// println!("{} from {}", config.server(), config.origin());
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`ErrorKind::Config`] when there is no configuration, or a wrong one.
    pub fn infer() -> Result<Self, Error> {
        Self::find()?.ok_or_else(|| {
            config_error(
                "no cluster is configured: set KUBECONFIG, or write ~/.kube/config (`kubectl \
                 config current-context` prints the current context), or run in a Pod",
            )
        })
    }

    /// As [`infer`](Self::infer), but returns `None` without any configuration.
    ///
    /// ```no_run
    /// # extern crate windlass_client as windlass;
    /// use windlass::client::ClientConfig;
    ///
    /// # fn main() -> Result<(), windlass::Error> {
    /// match ClientConfig::find()? {
    ///     Some(config) => println!("{}", config.origin()),
    ///     None => println!("no cluster is configured"),
    /// }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`ErrorKind::Config`] when there is a configuration, but a wrong one: a wrong configuration
    /// is never treated as none.
    pub fn find() -> Result<Option<Self>, Error> {
        Env::process().find()
    }

    /// Reads a context of a single kubeconfig file; `None` selects the current context.
    ///
    /// Relative paths in the file are relative to its folder.
    ///
    /// # Errors
    /// [`ErrorKind::Config`] when the file cannot be read, or the context is missing or wrong.
    pub fn from_file(path: impl AsRef<Path>, context: Option<&str>) -> Result<Self, Error> {
        Kubeconfig::read(path.as_ref())?.resolve(context)
    }

    /// Reads a context of several kubeconfig files, merged as those of `KUBECONFIG`; `None` selects
    /// their current context.
    ///
    /// # Errors
    /// As [`from_file`](Self::from_file); also when any of the files is missing.
    pub fn from_files<P: AsRef<Path>>(
        paths: impl IntoIterator<Item = P>,
        context: Option<&str>,
    ) -> Result<Self, Error> {
        let mut merged = Kubeconfig::default();
        for path in paths {
            merged.merge(Kubeconfig::read(path.as_ref())?);
        }
        merged.resolve(context)
    }

    /// Reads a context of a kubeconfig in memory; relative paths are relative to the working
    /// directory.
    ///
    /// ```no_run
    /// # extern crate windlass_client as windlass;
    /// use windlass::client::ClientConfig;
    ///
    /// # fn main() -> Result<(), windlass::Error> {
    /// let text = std::fs::read_to_string("kubeconfig.yaml").unwrap_or_default();
    /// let config = ClientConfig::from_yaml(&text, Some("prod"))?;
    /// assert!(config.server().starts_with("https://"));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`ErrorKind::Config`] when the text is no kubeconfig, or the context is missing or wrong.
    pub fn from_yaml(text: &str, context: Option<&str>) -> Result<Self, Error> {
        Kubeconfig::parse(text, "a kubeconfig in memory", Path::new("."))?.resolve(context)
    }

    /// Reads the service account of the Pod in which the process runs.
    ///
    /// Token and CA are the mounted files of the Pod, which are read again when they change.
    ///
    /// # Errors
    /// [`ErrorKind::Config`] outside of a Pod, or without a mounted token.
    pub fn in_cluster() -> Result<Self, Error> {
        Env::process().in_pod()
    }

    /// Returns the API server's address.
    ///
    /// With the path, if the address has one.
    pub fn server(&self) -> String {
        self.server.to_string()
    }

    /// Returns the namespace of the context, or `default`.
    pub fn namespace(&self) -> &str {
        &self.namespace
    }

    /// Returns the source of the configuration: `context "dev" of /home/me/.kube/config`.
    pub fn origin(&self) -> &str {
        &self.origin
    }

    /// Returns whether answers may be compressed.
    pub fn compression(&self) -> bool {
        self.compression
    }

    /// Refuses unusable credentials, and credentials over an unencrypted connection.
    pub(crate) fn check(&self) -> Result<(), Error> {
        self.auth.check().map_err(|error| error.preface(&self.origin))?;
        match self.cleartext() {
            Some(why) if !matches!(self.auth, AuthSource::None) => Err(config_error(why)),
            _ => Ok(()),
        }
    }

    /// Returns the reason why no credentials may be sent to this server; `None` if they may.
    pub(crate) fn cleartext(&self) -> Option<String> {
        let plain = self.server.scheme_str() == Some("http");
        // Behind a proxy, `localhost` is another machine.
        let here = is_loopback(self.server.host().unwrap_or_default())
            && !matches!(self.proxy, ProxyChoice::Through(_));
        (plain && !here).then(|| {
            let Self { origin, server, .. } = self;
            format!("{origin}: credentials are not sent over plain HTTP to {server}; use https://")
        })
    }

    /// Refuses a server without verification in a Pod, unless the program disabled the
    /// verification.
    pub(crate) fn check_insecure(&self) -> Result<(), Error> {
        self.check_insecure_in(&Env::process())
    }

    /// As [`check_insecure`](Self::check_insecure), for a given environment.
    fn check_insecure_in(&self, env: &Env) -> Result<(), Error> {
        if !self.tls.insecure || self.insecure_by_program || !env.is_pod() {
            return Ok(());
        }
        Err(config_error(format!(
            "{}: insecure-skip-tls-verify is not obeyed in a Pod, where anybody on the network could \
             pose as the API server; name its certificate-authority, or have the program call \
             with_insecure_skip_tls_verify",
            self.origin
        )))
    }

    /// Refuses a plugin that may not run, before any request is sent.
    pub(crate) fn check_exec(&self) -> Result<(), Error> {
        match self.auth_source() {
            AuthSource::Exec(plugin) => plugin.check(),
            _ => Ok(()),
        }
    }

    /// Returns the source of the credentials; a plugin is completed with the origin, the policy,
    /// and the cluster if the plugin asked for the cluster.
    pub(crate) fn auth_source(&self) -> AuthSource {
        self.auth_source_in(&Env::process())
    }

    /// As [`auth_source`](Self::auth_source), for a given environment.
    fn auth_source_in(&self, env: &Env) -> AuthSource {
        let AuthSource::Exec(plugin) = &self.auth else { return self.auth.clone() };
        // A kubeconfig in a Pod may come from an image or a volume that others can write.
        let by_default = match env.is_pod() && !self.exec_by_program {
            true => ExecPolicy::Deny,
            false => ExecPolicy::AllowAll,
        };
        AuthSource::Exec(Arc::new(ExecPlugin {
            origin: self.origin.clone(),
            policy: self.exec_policy.clone().unwrap_or(by_default),
            cluster: plugin.wants_cluster.then(|| self.cluster_info()),
            ..(**plugin).clone()
        }))
    }

    /// Returns the cluster in the form that plugins receive.
    fn cluster_info(&self) -> ClusterInfo {
        // Without the final slash, as in kubeconfigs: `https://host:port` has no path.
        let server = self.server();
        let mut spec = json!({ "server": server.trim_end_matches('/'), "config": null });
        if let Some(name) = &self.tls.server_name {
            spec["tls-server-name"] = json!(name);
        }
        if self.tls.insecure {
            spec["insecure-skip-tls-verify"] = json!(true);
        }
        if let ProxyChoice::Through(proxy) = &self.proxy {
            spec["proxy-url"] = json!(proxy.url().expose());
        }
        if !self.compression {
            spec["disable-compression"] = json!(true);
        }
        ClusterInfo { spec, ca: self.tls.ca.clone() }
    }
}

impl fmt::Debug for ClientConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClientConfig")
            .field("server", &self.server)
            .field("namespace", &self.namespace)
            .field("tls", &self.tls)
            .field("auth", &self.auth)
            .field("proxy", &self.proxy)
            .field("origin", &self.origin)
            .finish_non_exhaustive()
    }
}

/// Parses the address of a server.
fn parse_server(server: &str, origin: &str) -> Result<Uri, Error> {
    let wrong = || {
        // The part before an `@`, or a query, may contain a password or a token.
        let shown = if server.contains(['@', '?']) { "that" } else { server };
        config_error(format!(
            "{origin}: `{shown}` is not a server address; write https://host:port"
        ))
    };
    // As kubectl: an address without a scheme means plain HTTP.
    let full = if server.contains("://") { server.to_owned() } else { format!("http://{server}") };
    let uri: Uri = full.trim_end_matches('/').parse().map_err(|error| wrong().because(error))?;
    if uri.authority().is_some_and(|authority| authority.as_str().contains('@')) {
        return Err(config_error(format!(
            "{origin}: the server address holds a user or a password; write https://host:port, and \
             the credentials under the user's `username`, `token` or `exec`"
        )));
    }
    match uri.scheme_str() {
        Some("http" | "https") if uri.authority().is_some() && uri.query().is_none() => Ok(uri),
        _ => Err(wrong()),
    }
}

/// Returns whether `host` is this machine.
fn is_loopback(host: &str) -> bool {
    let host = host.trim_start_matches('[').trim_end_matches(']');
    host == "localhost" || host.parse::<std::net::IpAddr>().is_ok_and(|ip| ip.is_loopback())
}

/// Returns an error of kind [`ErrorKind::Config`].
fn config_error(message: impl Into<String>) -> Error {
    Error::new(ErrorKind::Config, message)
}

#[cfg(test)]
mod tests;
