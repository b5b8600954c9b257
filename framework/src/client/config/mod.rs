//! How to reach a cluster, read from kubeconfig files or from the Pod that we run in.
//!
//! Files are few and small and are read at start, with blocking calls. Token files, CA files and
//! client certificates are named here and read again while the client runs. Absent: writing a
//! kubeconfig, the legacy `auth-provider` (a configuration that asks for it is refused), and prompts
//! for what is missing.

mod environment;
mod format;
mod kubeconfig;
mod overrides;

use std::fmt;
use std::path::Path;
use std::sync::Arc;

use http::{HeaderMap, Uri};
use serde_json::json;

use super::auth::AuthSource;
use super::exec::{ClusterInfo, ExecPlugin, ExecPolicy};
use super::proxy::ProxyChoice;
use super::tls::TlsSettings;
use crate::error::{Error, ErrorKind};
use environment::Env;
use format::Kubeconfig;
pub use overrides::Impersonation;
pub(super) use overrides::{IMPERSONATION_RULE, is_sent_whole};

/// Address, credentials and default namespace of one cluster. Its `Debug` shows no secret.
///
/// # Where it comes from
///
/// [`infer`](Self::infer) and [`find`](Self::find) take the first of these that exists, in the order
/// of controller-runtime:
///
/// | | source | when something is wrong with it |
/// |---|---|---|
/// | 1 | `--kubeconfig FILE` of the command line ([`from_file`](Self::from_file)) | an error |
/// | 2 | the files that `KUBECONFIG` lists, merged | a missing file is skipped with a warning; an error when all are missing or any other cannot be read |
/// | 3 | the Pod's service account ([`in_cluster`](Self::in_cluster)), where `KUBERNETES_SERVICE_HOST` is set | an error, also without a token: `~/.kube/config` is not read in a Pod |
/// | 4 | `~/.kube/config`, outside of Pods | an error |
///
/// Files are merged as by kubectl: the first file that has a cluster, user or context of a name
/// decides all of that entry, the first that sets `current-context` decides it, and relative paths
/// count from the folder of their file. A file that names something twice is an error.
///
/// # What is read again
///
/// | what | from | read again |
/// |---|---|---|
/// | address, namespace, names of files | kubeconfig, environment | never |
/// | token | `tokenFile`, the Pod's account | each minute; at once after a 401 |
/// | token or client certificate | `exec` plugin | 10 s before it expires; at once after a 401; but not twice within 5 s |
/// | CA | `certificate-authority`, the Pod's account | each minute; at once when a TLS handshake fails |
/// | client certificate | `client-certificate`, `client-key` | each minute; at once after a 401 or when a TLS handshake fails |
/// | inline tokens, passwords and `-data` | kubeconfig | never |
///
/// A minute is measured when a request is made; nothing runs in the background. A file that cannot
/// be read or used while it is being replaced changes nothing: what worked goes on, with a warning.
/// After a change of CA or client certificate new requests get new connections, and requests that
/// are under way, watches too, end on theirs.
///
/// # Who we are
///
/// Of several kinds of credentials in a kubeconfig's user these count, as with kubectl: `tokenFile`
/// (`token` until it can be read), `token`, `username`, a client certificate, an `exec` plugin. A
/// client certificate is presented besides a token, too. A plugin of version v1 must say its
/// `interactiveMode`. In a Pod a plugin that a kubeconfig names does not run, unless the program
/// [allows it](Self::with_exec_policy). Credentials are never sent over plain HTTP, but to this machine
/// itself; that holds for headers of single requests, for those that layers add, and for a
/// [connector](super::ClientBuilder::connector) of the program's own, too.
///
/// # Which way
///
/// A cluster's `proxy-url` (or [`with_proxy`](Self::with_proxy)) counts; without one `HTTPS_PROXY`,
/// or `HTTP_PROXY` for a server that speaks plain HTTP, or `ALL_PROXY`; each also in lower case, and
/// with the exceptions that `NO_PROXY` lists: `*`, a name with all below it (`example.com`), only what
/// is below it (`.example.com`), an address or a network (`10.0.0.0/8`), each but `*` and networks
/// perhaps with a port. `localhost` and loopback addresses are never reached through a proxy of the
/// environment; a Pod's service account is, so list the cluster's Service network in `NO_PROXY`.
/// Schemes are `http`, `https` and `socks5` (or `socks5h`: names are looked up by the proxy in both);
/// all of them tunnel, to plain-HTTP servers too. An `https` proxy is checked against the system's
/// roots and the cluster's CA, and gets no client certificate.
///
/// # Example
///
/// ```
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
    pub(crate) server: Uri,
    pub(crate) namespace: String,
    pub(crate) tls: TlsSettings,
    pub(crate) auth: AuthSource,
    /// Impersonation.
    pub(crate) headers: HeaderMap,
    pub(crate) proxy: ProxyChoice,
    /// May answers come compressed?
    compression: bool,
    /// Did the program itself ask for no verification?
    insecure_by_program: bool,
    /// Which plugins may run, if the program said so.
    exec_policy: Option<ExecPolicy>,
    /// Did the program itself name the plugin?
    exec_by_program: bool,
    /// Where it comes from, for error texts.
    origin: String,
}

impl ClientConfig {
    /// A cluster at `server` (`https://host:port`, perhaps with a path), without credentials.
    ///
    /// # Errors
    /// [`ErrorKind::Config`] when `server` is not such an address.
    pub fn new(server: &str) -> Result<Self, Error> {
        Self::at(server, "the program")
    }

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

    /// What `KUBECONFIG` says, or the Pod that we run in, or `~/.kube/config`: the first of them that
    /// is there.
    ///
    /// # Errors
    /// [`ErrorKind::Config`] when nothing is configured, or what is configured is wrong.
    pub fn infer() -> Result<Self, Error> {
        Self::find()?.ok_or_else(|| {
            config_error(
                "no cluster is configured: set KUBECONFIG, or write ~/.kube/config (`kubectl \
                 config current-context` shows what it says), or run in a Pod",
            )
        })
    }

    /// As [`infer`](Self::infer), and `None` when nothing at all is configured.
    ///
    /// # Errors
    /// [`ErrorKind::Config`] when something is configured, but wrong: it is never taken for nothing.
    pub fn find() -> Result<Option<Self>, Error> {
        Env::process().find()
    }

    /// A context of one kubeconfig file; `None` is its current context.
    ///
    /// # Errors
    /// [`ErrorKind::Config`] when the file cannot be read, or the context is missing or wrong.
    pub fn from_file(path: impl AsRef<Path>, context: Option<&str>) -> Result<Self, Error> {
        Kubeconfig::read(path.as_ref())?.resolve(context)
    }

    /// A context of several kubeconfig files, merged as those of `KUBECONFIG` are; `None` is their
    /// current context.
    ///
    /// # Errors
    /// As [`from_file`](Self::from_file); also when one of the files is missing.
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

    /// A context of a kubeconfig in memory; relative paths count from the working directory.
    ///
    /// # Errors
    /// [`ErrorKind::Config`] when the text is no kubeconfig, or the context is missing or wrong.
    pub fn from_yaml(text: &str, context: Option<&str>) -> Result<Self, Error> {
        Kubeconfig::parse(text, "a kubeconfig in memory", Path::new("."))?.resolve(context)
    }

    /// The service account of the Pod that we run in.
    ///
    /// # Errors
    /// [`ErrorKind::Config`] outside of a Pod, or without a mounted token.
    pub fn in_cluster() -> Result<Self, Error> {
        Env::process().in_pod()
    }

    /// The API server's address.
    pub fn server(&self) -> String {
        self.server.to_string()
    }

    /// Namespace of the context, or `default`.
    pub fn namespace(&self) -> &str {
        &self.namespace
    }

    /// Where this comes from: `context "dev" of /home/me/.kube/config`.
    pub fn origin(&self) -> &str {
        &self.origin
    }

    /// May answers come compressed?
    pub fn compression(&self) -> bool {
        self.compression
    }

    /// Refuses what would hand credentials to whoever listens on the wire.
    pub(crate) fn check(&self) -> Result<(), Error> {
        self.auth.check().map_err(|error| error.preface(&self.origin))?;
        match self.cleartext() {
            Some(why) if !matches!(self.auth, AuthSource::None) => Err(config_error(why)),
            _ => Ok(()),
        }
    }

    /// Why no credentials may be sent to this server; `None` where they may.
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

    /// Refuses a server that nobody verifies, in a Pod, unless the program itself said so.
    pub(crate) fn check_insecure(&self) -> Result<(), Error> {
        self.check_insecure_in(&Env::process())
    }

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

    /// Refuses a plugin that may not run, before anything is sent.
    pub(crate) fn check_exec(&self) -> Result<(), Error> {
        match self.auth_source() {
            AuthSource::Exec(plugin) => plugin.check(),
            _ => Ok(()),
        }
    }

    /// The credentials' source; a plugin knows where it is configured, whether it may run, and the
    /// cluster if it asked.
    pub(crate) fn auth_source(&self) -> AuthSource {
        self.auth_source_in(&Env::process())
    }

    fn auth_source_in(&self, env: &Env) -> AuthSource {
        let AuthSource::Exec(plugin) = &self.auth else { return self.auth.clone() };
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

    fn cluster_info(&self) -> ClusterInfo {
        // As kubeconfigs have it: `https://host:port` has no path.
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

fn parse_server(server: &str, origin: &str) -> Result<Uri, Error> {
    let wrong = || {
        // What stands before an `@`, or in a query, may be a password or a token.
        let shown = if server.contains(['@', '?']) { "that" } else { server };
        config_error(format!("{origin}: `{shown}` is no server address; write https://host:port"))
    };
    // kubectl takes an address without a scheme for a plain one.
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

fn is_loopback(host: &str) -> bool {
    let host = host.trim_start_matches('[').trim_end_matches(']');
    host == "localhost" || host.parse::<std::net::IpAddr>().is_ok_and(|ip| ip.is_loopback())
}

fn config_error(message: impl Into<String>) -> Error {
    Error::new(ErrorKind::Config, message)
}

#[cfg(test)]
mod tests;
