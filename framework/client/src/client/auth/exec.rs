//! Credential plugins of a kubeconfig (`client.authentication.k8s.io`), and their execution.
//!
//! A plugin runs without a shell and has 60 s and 1 MiB of output. The plugin gets standard input
//! only if the configuration asks for input and the process's own standard input is a terminal;
//! then the limit is five minutes, because a person has to type. Arguments, environment and output
//! contain credentials, so they never appear in an error or a log; the plugin's standard error goes
//! to the process's own. A [policy](ExecPolicy) decides which plugins may run at all. Not included:
//! `client.authentication.k8s.io/v1alpha1`, kubectl's file of preferences (`kuberc`).

mod policy;
mod run;

use std::fmt;
use std::path::PathBuf;

use serde_json::Value;

pub use policy::ExecPolicy;
pub(crate) use run::ExecCredential;

use crate::client::secret::SecretString;
use crate::client::transport::Pem;

pub(crate) const V1: &str = "client.authentication.k8s.io/v1";
pub(crate) const V1BETA1: &str = "client.authentication.k8s.io/v1beta1";

/// Policy for the standard input of a [credential plugin](ExecPlugin).
///
/// kubeconfig's `interactiveMode`; a plugin of a kubeconfig with version v1 must name a mode.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum InteractiveMode {
    /// The plugin's standard input is empty.
    #[default]
    Never,
    /// The plugin gets standard input if that is a terminal.
    IfAvailable,
    /// The plugin gets standard input, which must be a terminal.
    Always,
}

/// A credential plugin: a program that prints a token or a client certificate; `kubectl` runs the
/// same plugins. `Debug` shows neither arguments nor environment.
///
/// A kubeconfig names a plugin under `exec`; in code:
///
/// ```
/// # extern crate windlass_client as windlass;
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
    /// Path, or bare name that is searched in `PATH`.
    pub(crate) command: PathBuf,
    pub(crate) args: Vec<SecretString>,
    /// Variables in addition to the inherited ones; secret, because the values may hold
    /// credentials.
    pub(crate) env: Vec<(String, SecretString)>,
    /// Version of the input and the output.
    pub(crate) api_version: &'static str,
    pub(crate) interactive: InteractiveMode,
    /// Whether the plugin receives information about the cluster.
    pub(crate) wants_cluster: bool,
    /// Settings for the plugin in the cluster's kubeconfig entry.
    pub(crate) extension: Value,
    /// Advice in the error for a missing program.
    pub(crate) install_hint: String,
    /// Information about the cluster for the plugin, if it asked for the information.
    pub(crate) cluster: Option<ClusterInfo>,
    /// Plugins that may run.
    pub(crate) policy: ExecPolicy,
    /// Place of the configuration, for error texts.
    pub(crate) origin: String,
}

/// `spec.cluster` in the plugin's input.
#[derive(Clone)]
pub(crate) struct ClusterInfo {
    /// Members other than the CA.
    pub(crate) spec: Value,
    /// CA; files are read when the plugin runs.
    pub(crate) ca: Option<Pem>,
}

impl ExecPlugin {
    /// Creates a plugin that runs the program `command` with version
    /// `client.authentication.k8s.io/v1`. A bare name is searched in `PATH`. The program gets no
    /// arguments and no standard input.
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
    ///
    /// Arguments follow in the order of the calls.
    #[must_use]
    pub fn arg(mut self, argument: impl Into<SecretString>) -> Self {
        self.args.push(argument.into());
        self
    }

    /// Adds a variable to the environment that the plugin inherits.
    #[must_use]
    pub fn env(mut self, name: &str, value: impl Into<SecretString>) -> Self {
        self.env.push((name.to_owned(), value.into()));
        self
    }

    /// Sets the version to `client.authentication.k8s.io/v1beta1`.
    ///
    /// Default: v1.
    #[must_use]
    pub fn v1beta1(mut self) -> Self {
        self.api_version = V1BETA1;
        self
    }

    /// Sets whether the plugin gets standard input. Default: never.
    #[must_use]
    pub fn interactive(mut self, mode: InteractiveMode) -> Self {
        self.interactive = mode;
        self
    }

    /// Passes the cluster's address, CA and proxy to the plugin.
    ///
    /// Default: off. kubeconfig's `provideClusterInfo`.
    #[must_use]
    pub fn with_cluster_info(mut self) -> Self {
        self.wants_cluster = true;
        self
    }

    /// Sets the advice in the error for a missing program.
    ///
    /// Default: none. kubeconfig's `installHint`.
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
