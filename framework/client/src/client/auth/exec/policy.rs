//! Restrictions on the credential plugins that may run.
//!
//! A kubeconfig names a program, and each reader of the kubeconfig runs that program: a file that
//! was downloaded, generated or planted can start any program. So the application may restrict
//! plugins, as kubectl's `credentialPluginPolicy` does since Kubernetes 1.35. The rules are
//! client-go's: an entry of the list and the plugin's command are both resolved as for running
//! them, and the paths must be equal; links are not followed, and a part of a path does not match.

// DESIGN.md, 81: Credential plugins have a policy, and run in Pods only by permission

use std::path::{Path, PathBuf};

use super::ExecPlugin;
use super::run::resolve;
use windlass_core::error::Error;

/// Credential plugins that may run; set by
/// [`ClientConfig::with_exec_policy`](crate::client::ClientConfig::with_exec_policy).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum ExecPolicy {
    /// All plugins. client-go's `AllowAll`.
    #[default]
    AllowAll,
    /// These programs: absolute paths, or bare names that are searched in `PATH`. An empty list is
    /// refused. client-go's `Allowlist`.
    AllowList(Vec<PathBuf>),
    /// No plugin. client-go's `DenyAll`.
    Deny,
}

impl ExecPolicy {
    /// Allows only these programs: absolute paths, or bare names that are searched in `PATH`.
    pub fn allow_list<P: Into<PathBuf>>(programs: impl IntoIterator<Item = P>) -> Self {
        Self::AllowList(programs.into_iter().map(Into::into).collect())
    }
}

impl ExecPlugin {
    /// Refuses a plugin that may not run. A missing program is reported only at a run.
    pub(crate) fn check(&self) -> Result<(), Error> {
        match (&self.policy, self.program()) {
            (ExecPolicy::AllowList(list), Err(_)) if !list.is_empty() => Ok(()),
            (_, found) => self.admit(&found.unwrap_or_default()),
        }
    }

    /// Refuses `program`, an absolute path, if it may not run.
    pub(super) fn admit(&self, program: &Path) -> Result<(), Error> {
        match &self.policy {
            ExecPolicy::AllowAll => Ok(()),
            ExecPolicy::Deny => Err(self.error(format!("it may not be run. {ALLOW}"))),
            ExecPolicy::AllowList(list) if list.is_empty() => Err(self.error(
                "the list of plugins that may run is empty; add the program to it, or say Deny",
            )),
            ExecPolicy::AllowList(list) => {
                if list.iter().any(|entry| resolve(entry).is_some_and(|path| path == program)) {
                    return Ok(());
                }
                let program = program.display().to_string();
                Err(self.error(format!(
                    "{} is not in the list of plugins that may run. {ALLOW}",
                    program.escape_debug()
                )))
            }
        }
    }
}

/// Advice for a plugin that is refused.
const ALLOW: &str = "In a Pod no plugin of a kubeconfig runs by default, and elsewhere the program may \
                     limit them: if you trust this one, name it (`ClientConfig::with_exec_policy`, or \
                     --credential-plugins on the command line); otherwise use a token file or the \
                     Pod's service account";

#[cfg(test)]
#[cfg(unix)]
mod tests;
