//! A credential plugin of a kubeconfig (`client.authentication.k8s.io`): what it is, and how it is run.
//!
//! The plugin gets no shell, 60 s and 1 MiB of output; standard input only if its configuration asks
//! for it and ours is a terminal, and then five minutes, because somebody has to type. Arguments,
//! environment and output hold credentials, so they never get into an error or a log; its standard
//! error goes to ours. Which plugins may run at all is a [policy](ExecPolicy). Absent:
//! `client.authentication.k8s.io/v1alpha1`, kubectl's file of preferences (`kuberc`).

mod policy;
mod run;

use std::fmt;
use std::path::PathBuf;

use serde_json::Value;

pub use policy::ExecPolicy;
pub(crate) use run::ExecCredential;

use super::secret::Secret;
use super::tls::Pem;

pub(crate) const V1: &str = "client.authentication.k8s.io/v1";
pub(crate) const V1BETA1: &str = "client.authentication.k8s.io/v1beta1";

/// Does a [credential plugin](ExecPlugin) get our standard input?
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum InteractiveMode {
    /// No: its standard input is empty.
    #[default]
    Never,
    /// If it is a terminal.
    IfAvailable,
    /// Yes, and it is an error where it is no terminal.
    Always,
}

/// A credential plugin: a program that prints a token or a client certificate, as `kubectl` runs it
/// too. Its `Debug` shows neither arguments nor environment.
///
/// A kubeconfig names one under `exec`; in code:
///
/// ```
/// use windlass::client::{ClientConfig, ExecPlugin};
///
/// # fn main() -> Result<(), windlass::Error> {
/// let plugin = ExecPlugin::new("cloud-login").arg("token").arg("--cluster=shop");
/// let config = ClientConfig::new("https://api.example:6443")?.with_exec(plugin);
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct ExecPlugin {
    pub(crate) command: PathBuf,
    pub(crate) args: Vec<Secret>,
    pub(crate) env: Vec<(String, Secret)>,
    pub(crate) api_version: &'static str,
    pub(crate) interactive: InteractiveMode,
    /// Does it want to be told about the cluster?
    pub(crate) wants_cluster: bool,
    /// What the cluster's kubeconfig entry says to the plugin.
    pub(crate) extension: Value,
    pub(crate) install_hint: String,
    /// What it is told about the cluster, if it wants to be.
    pub(crate) cluster: Option<ClusterInfo>,
    /// Whether it may run.
    pub(crate) policy: ExecPolicy,
    /// Where it is configured, for error texts.
    pub(crate) origin: String,
}

/// `spec.cluster` of what a plugin is told.
#[derive(Clone)]
pub(crate) struct ClusterInfo {
    pub(crate) spec: Value,
    /// Read when the plugin is run.
    pub(crate) ca: Option<Pem>,
}

impl ExecPlugin {
    /// The program `command`, of version `client.authentication.k8s.io/v1`. A bare name is looked
    /// for in `PATH`. It gets no arguments and no standard input.
    pub fn new(command: impl Into<PathBuf>) -> Self {
        Self {
            command: command.into(),
            args: Vec::new(),
            env: Vec::new(),
            api_version: V1,
            interactive: InteractiveMode::Never,
            wants_cluster: false,
            extension: Value::Null,
            install_hint: String::new(),
            cluster: None,
            policy: ExecPolicy::AllowAll,
            origin: String::new(),
        }
    }

    /// Adds an argument.
    #[must_use]
    pub fn arg(mut self, argument: impl Into<Secret>) -> Self {
        self.args.push(argument.into());
        self
    }

    /// Adds a variable to the environment, which is ours besides.
    #[must_use]
    pub fn env(mut self, name: &str, value: impl Into<Secret>) -> Self {
        self.env.push((name.to_owned(), value.into()));
        self
    }

    /// The plugin speaks version `client.authentication.k8s.io/v1beta1`.
    #[must_use]
    pub fn v1beta1(mut self) -> Self {
        self.api_version = V1BETA1;
        self
    }

    /// Whether it gets our standard input. Default: never.
    #[must_use]
    pub fn interactive(mut self, mode: InteractiveMode) -> Self {
        self.interactive = mode;
        self
    }

    /// Tells it the cluster's address, CA and proxy.
    #[must_use]
    pub fn with_cluster_info(mut self) -> Self {
        self.wants_cluster = true;
        self
    }

    /// What to tell somebody who does not have the program.
    #[must_use]
    pub fn install_hint(mut self, hint: &str) -> Self {
        self.install_hint = hint.to_owned();
        self
    }
}

impl fmt::Debug for ExecPlugin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ExecPlugin")
            .field("command", &self.command)
            .field("api_version", &self.api_version)
            .field("interactive", &self.interactive)
            .finish_non_exhaustive()
    }
}
