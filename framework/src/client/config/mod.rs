//! How to reach a cluster, read from kubeconfig files or from the Pod that we run in.
//!
//! Files are few and small and are read at start, with blocking calls. Token files, CA files and
//! client certificates are named here and read again while the client runs. Proxies and the legacy
//! `auth-provider` are not supported; a configuration that asks for them is refused.

mod kubeconfig;

use std::ffi::OsString;
use std::fmt;
use std::path::{Path, PathBuf};

use http::header::{HeaderName, HeaderValue};
use http::{HeaderMap, Uri};

use super::auth::AuthSource;
use super::secret::Secret;
use super::tls::{Pem, TlsSettings};
use crate::error::{Error, ErrorKind};
use kubeconfig::Kubeconfig;

const SERVICE_ACCOUNT: &str = "/var/run/secrets/kubernetes.io/serviceaccount";

/// Address, credentials and default namespace of one cluster. Its `Debug` shows no secret.
#[derive(Clone)]
pub struct ClientConfig {
    pub(crate) server: Uri,
    pub(crate) namespace: String,
    pub(crate) tls: TlsSettings,
    pub(crate) auth: AuthSource,
    /// Impersonation.
    pub(crate) headers: HeaderMap,
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
            origin: origin.to_owned(),
        })
    }

    /// The configuration that kubectl would use, or the one of the Pod that we run in.
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
        Self::find_in(&Env::process())
    }

    fn find_in(env: &Env) -> Result<Option<Self>, Error> {
        if let Some(kubeconfig) = env.kubeconfig()? {
            return kubeconfig.resolve(None).map(Some);
        }
        if env.service_host.is_some() && env.service_port.is_some() {
            return Self::in_pod(env).map(Some);
        }
        Ok(None)
    }

    /// A context of one kubeconfig file; `None` is its current context.
    ///
    /// # Errors
    /// [`ErrorKind::Config`] when the file cannot be read, or the context is missing or wrong.
    pub fn from_file(path: impl AsRef<Path>, context: Option<&str>) -> Result<Self, Error> {
        Kubeconfig::read(path.as_ref())?.resolve(context)
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
        Self::in_pod(&Env::process())
    }

    fn in_pod(env: &Env) -> Result<Self, Error> {
        let (Some(host), Some(port)) = (&env.service_host, &env.service_port) else {
            return Err(config_error(
                "this is no Pod: KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT are not set",
            ));
        };
        let host = if host.contains(':') { format!("[{host}]") } else { host.clone() };
        let mut config = Self::at(&format!("https://{host}:{port}"), "the Pod's service account")?;
        let token = env.service_account.join("token");
        if !token.is_file() {
            return Err(config_error(format!(
                "this is a Pod, but it has no token at {}; set automountServiceAccountToken",
                token.display()
            )));
        }
        config.auth = AuthSource::TokenFile(token);
        config.tls.ca = Some(Pem::File(env.service_account.join("ca.crt")));
        let file = std::fs::read_to_string(env.service_account.join("namespace")).ok();
        let namespace = env.pod_namespace.clone().or(file).map(|text| text.trim().to_owned());
        if let Some(namespace) = namespace.filter(|namespace| !namespace.is_empty()) {
            config.namespace = namespace;
        }
        Ok(config)
    }

    /// Authenticates by `token`.
    #[must_use]
    pub fn with_token(mut self, token: impl Into<Secret>) -> Self {
        self.auth = AuthSource::Token(token.into());
        self
    }

    /// Authenticates by a client certificate; certificate (chain) and key as PEM.
    #[must_use]
    pub fn with_identity(mut self, certificate: &str, key: impl Into<Secret>) -> Self {
        self.tls.identity = Some((Pem::Inline(certificate.into()), Pem::Inline(key.into())));
        self
    }

    /// Trusts the roots in `pem` instead of the system's.
    #[must_use]
    pub fn with_ca(mut self, pem: &str) -> Self {
        self.tls.ca = Some(Pem::Inline(pem.into()));
        self
    }

    /// Uses `namespace` where none is named.
    #[must_use]
    pub fn with_namespace(mut self, namespace: &str) -> Self {
        self.namespace = namespace.to_owned();
        self
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

    /// Refuses what would hand credentials to whoever listens on the wire.
    pub(crate) fn check(&self) -> Result<(), Error> {
        let plain = self.server.scheme_str() == Some("http");
        let anonymous = matches!(self.auth, AuthSource::None);
        if plain && !anonymous && !is_loopback(self.server.host().unwrap_or_default()) {
            return Err(config_error(format!(
                "{}: credentials are not sent over plain HTTP to {}; use https://",
                self.origin, self.server
            )));
        }
        Ok(())
    }
}

impl fmt::Debug for ClientConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClientConfig")
            .field("server", &self.server)
            .field("namespace", &self.namespace)
            .field("tls", &self.tls)
            .field("auth", &self.auth)
            .field("origin", &self.origin)
            .finish_non_exhaustive()
    }
}

/// What of the process's surroundings counts; a value, so that tests need no environment.
#[derive(Debug)]
struct Env {
    kubeconfig: Option<OsString>,
    home: Option<PathBuf>,
    service_host: Option<String>,
    service_port: Option<String>,
    pod_namespace: Option<String>,
    service_account: PathBuf,
}

impl Env {
    fn process() -> Self {
        let text = |name| std::env::var(name).ok().filter(|value| !value.is_empty());
        Self {
            kubeconfig: std::env::var_os("KUBECONFIG").filter(|value| !value.is_empty()),
            home: std::env::home_dir(),
            service_host: text("KUBERNETES_SERVICE_HOST"),
            service_port: text("KUBERNETES_SERVICE_PORT"),
            pod_namespace: text("POD_NAMESPACE"),
            service_account: SERVICE_ACCOUNT.into(),
        }
    }

    /// The files of `KUBECONFIG` merged, or `~/.kube/config`; `None` when they say nothing.
    fn kubeconfig(&self) -> Result<Option<Kubeconfig>, Error> {
        let Some(list) = &self.kubeconfig else {
            let path = self.home.as_ref().map(|home| home.join(".kube/config"));
            let Some(path) = path.filter(|path| path.exists()) else { return Ok(None) };
            return Ok(Some(Kubeconfig::read(&path)?).filter(|read| !read.is_empty()));
        };
        let named = std::env::split_paths(list).filter(|path| !path.as_os_str().is_empty());
        let (there, missing): (Vec<_>, Vec<_>) = named.partition(|path| path.exists());
        if there.is_empty() && !missing.is_empty() {
            return Err(config_error(format!(
                "KUBECONFIG names {}, which does not exist; correct or unset it",
                list.to_string_lossy()
            )));
        }
        for path in missing {
            tracing::warn!(path = %path.display(), "KUBECONFIG names a file that does not exist");
        }
        let mut merged = Kubeconfig::default();
        for path in there {
            merged.merge(Kubeconfig::read(&path)?);
        }
        if merged.is_empty() {
            // Whoever sets KUBECONFIG means a cluster: nothing else may take its place.
            return Err(config_error(format!(
                "KUBECONFIG names {}, which holds no cluster; correct or unset it",
                list.to_string_lossy()
            )));
        }
        Ok(Some(merged))
    }
}

fn parse_server(server: &str, origin: &str) -> Result<Uri, Error> {
    let wrong = || {
        // What stands before an `@` may be a password.
        let shown = if server.contains('@') { "that" } else { server };
        config_error(format!("{origin}: `{shown}` is no server address; write https://host:port"))
    };
    // kubectl takes an address without a scheme for a plain one.
    let full = if server.contains("://") { server.to_owned() } else { format!("http://{server}") };
    let uri: Uri = full.trim_end_matches('/').parse().map_err(|error| wrong().because(error))?;
    let userinfo = uri.authority().is_none_or(|authority| authority.as_str().contains('@'));
    match uri.scheme_str() {
        Some("http" | "https") if !userinfo && uri.query().is_none() => Ok(uri),
        _ => Err(wrong()),
    }
}

fn is_loopback(host: &str) -> bool {
    let host = host.trim_start_matches('[').trim_end_matches(']');
    host == "localhost" || host.parse::<std::net::IpAddr>().is_ok_and(|ip| ip.is_loopback())
}

fn impersonation(name: &str, value: &str) -> Result<(HeaderName, HeaderValue), Error> {
    let wrong =
        |_| config_error(format!("`{value}` cannot be impersonated: it fits no HTTP header"));
    let value = HeaderValue::from_str(value).map_err(wrong)?;
    let name = HeaderName::from_bytes(name.as_bytes())
        .map_err(|_| config_error(format!("`{name}` is no HTTP header")))?;
    Ok((name, value))
}

fn config_error(message: impl Into<String>) -> Error {
    Error::new(ErrorKind::Config, message)
}

#[cfg(test)]
mod tests;
