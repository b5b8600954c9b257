//! Places that are searched for a configuration: the environment, the home folder, the Pod.

// DESIGN.md, 105: Pods without a token do not fall back to `~/.kube/config`

use std::ffi::OsString;
use std::path::PathBuf;

use super::format::Kubeconfig;
use super::{ClientConfig, config_error};
use crate::client::auth::AuthSource;
use crate::client::transport::Pem;
use windlass_core::error::Error;

/// Folder in which the kubelet mounts the service account.
const SERVICE_ACCOUNT: &str = "/var/run/secrets/kubernetes.io/serviceaccount";

/// Advice for a Pod, in which the home folder is not searched.
const INSTEAD: &str = "name a kubeconfig by KUBECONFIG or --kubeconfig (~/.kube/config is not read in \
                       a Pod unless it is named)";

/// Relevant parts of the process's environment; a value, so that tests need no environment.
#[derive(Debug)]
pub(super) struct Env {
    /// `KUBECONFIG`, a list of files.
    pub(super) kubeconfig: Option<OsString>,
    /// Home folder, for `~/.kube/config`.
    pub(super) home: Option<PathBuf>,
    /// `KUBERNETES_SERVICE_HOST`, which indicates a Pod.
    pub(super) service_host: Option<String>,
    pub(super) service_port: Option<String>,
    /// `POD_NAMESPACE`.
    pub(super) pod_namespace: Option<String>,
    /// Folder of the service account.
    pub(super) service_account: PathBuf,
}

impl Env {
    /// Reads the environment of the process; empty variables count as unset.
    pub(super) fn process() -> Self {
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

    /// Returns the first configuration found; `None` when there is none.
    pub(super) fn find(&self) -> Result<Option<ClientConfig>, Error> {
        if let Some(listed) = self.listed()? {
            return listed.resolve(None).map(Some);
        }
        if self.is_pod() {
            // No fallback without a token: the image or a volume may contain a foreign
            // `~/.kube/config`, whose plugin would run.
            return self.in_pod().map(Some);
        }
        self.home_kubeconfig()?.map(|home| home.resolve(None)).transpose()
    }

    /// Returns whether the process runs in a Pod.
    pub(super) fn is_pod(&self) -> bool {
        self.service_host.is_some()
    }

    /// Returns the configuration of the Pod's service account. This configuration never runs a
    /// credential plugin.
    pub(super) fn in_pod(&self) -> Result<ClientConfig, Error> {
        let Some(host) = &self.service_host else {
            return Err(config_error(
                "this is not a Pod: KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT are not set; \
                 outside of a cluster use a kubeconfig",
            ));
        };
        let Some(port) = &self.service_port else {
            return Err(config_error(format!(
                "this is a Pod, but KUBERNETES_SERVICE_PORT is not set beside \
                 KUBERNETES_SERVICE_HOST; {INSTEAD}"
            )));
        };
        // An IPv6 address needs brackets in a URL.
        let host = if host.contains(':') { format!("[{host}]") } else { host.clone() };
        let address = format!("https://{host}:{port}");
        let mut config = ClientConfig::at(&address, "the Pod's service account")?;
        let token = self.service_account.join("token");
        if !token.is_file() {
            return Err(config_error(format!(
                "this is a Pod, but it has no token at {}; set automountServiceAccountToken, or \
                 {INSTEAD}",
                token.display()
            )));
        }
        config.auth = AuthSource::TokenFile(token, None);
        config.tls.ca = Some(Pem::File(self.service_account.join("ca.crt")));
        let file = std::fs::read_to_string(self.service_account.join("namespace")).ok();
        // `POD_NAMESPACE` takes precedence over the mounted file.
        let namespace = self.pod_namespace.clone().or(file).map(|text| text.trim().to_owned());
        if let Some(namespace) = namespace.filter(|namespace| !namespace.is_empty()) {
            config.namespace = namespace;
        }
        Ok(config)
    }

    /// Reads `~/.kube/config`, unless that file is missing or empty.
    fn home_kubeconfig(&self) -> Result<Option<Kubeconfig>, Error> {
        let path = self.home.as_ref().map(|home| home.join(".kube/config"));
        let Some(path) = path.filter(|path| path.exists()) else { return Ok(None) };
        Ok(Some(Kubeconfig::read(&path)?).filter(|read| !read.is_empty()))
    }

    /// Reads and merges the files of `KUBECONFIG`; `None` when the variable is not set.
    fn listed(&self) -> Result<Option<Kubeconfig>, Error> {
        let Some(list) = &self.kubeconfig else { return Ok(None) };
        let named = std::env::split_paths(list).filter(|path| !path.as_os_str().is_empty());
        let (there, missing): (Vec<_>, Vec<_>) = named.partition(|path| path.exists());
        if there.is_empty() && !missing.is_empty() {
            return Err(config_error(format!(
                "KUBECONFIG names {}, which does not exist; correct or unset it",
                list.to_string_lossy()
            )));
        }
        // As kubectl, which skips missing files of a list.
        for path in missing {
            tracing::warn!(path = %path.display(), "KUBECONFIG names a file that does not exist");
        }
        let mut merged = Kubeconfig::default();
        for path in there {
            merged.merge(Kubeconfig::read(&path)?);
        }
        if merged.is_empty() {
            // A set `KUBECONFIG` is meant to name a cluster: no other configuration may replace it.
            return Err(config_error(format!(
                "KUBECONFIG names {}, which holds no cluster; correct or unset it",
                list.to_string_lossy()
            )));
        }
        Ok(Some(merged))
    }
}
