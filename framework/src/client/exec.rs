//! Runs a credential plugin of a kubeconfig (`client.authentication.k8s.io`).
//!
//! The plugin gets no shell, no standard input, 60 s and 1 MiB of output. Its output holds
//! credentials, so it never gets into an error or a log; its standard error goes to ours.

use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

use jiff::Timestamp;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::io::AsyncReadExt;
use tokio::process::Command;

use super::secret::Secret;
use crate::clock::Clock;
use crate::error::{Error, ErrorKind};

const TIME_LIMIT: Duration = Duration::from_secs(60);
const OUTPUT_LIMIT: usize = 1024 * 1024;

/// A credential plugin, as a kubeconfig names it.
#[derive(Clone, Debug)]
pub(crate) struct ExecPlugin {
    /// Program; a bare name is looked for in `PATH`.
    pub(crate) command: PathBuf,
    /// Arguments; some plugins take secrets there.
    pub(crate) args: Vec<Secret>,
    /// Added to our environment.
    pub(crate) env: Vec<(String, Secret)>,
    /// `client.authentication.k8s.io/v1` or `…/v1beta1`.
    pub(crate) api_version: String,
    /// `spec.cluster` of what the plugin is told, if it asked for it.
    pub(crate) cluster: Option<Value>,
    /// What to tell somebody who does not have the program.
    pub(crate) install_hint: String,
}

/// What a plugin handed out.
#[derive(Clone, Debug, Default)]
pub(crate) struct ExecCredential {
    pub(crate) token: Option<Secret>,
    /// Client certificate and key, PEM.
    pub(crate) identity: Option<(Secret, Secret)>,
    pub(crate) expires: Option<Timestamp>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Answer {
    #[serde(default)]
    api_version: String,
    #[serde(default)]
    kind: String,
    #[serde(default)]
    status: Option<AnswerStatus>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct AnswerStatus {
    token: Option<Secret>,
    client_certificate_data: Option<Secret>,
    client_key_data: Option<Secret>,
    expiration_timestamp: Option<Timestamp>,
}

impl ExecPlugin {
    /// Runs the plugin once.
    ///
    /// # Cancel safety
    /// Dropping it kills the plugin.
    pub(crate) async fn run(&self, clock: &Clock) -> Result<ExecCredential, Error> {
        let output = match clock.within(TIME_LIMIT, self.output()).await {
            Some(output) => output?,
            None => {
                let seconds = TIME_LIMIT.as_secs();
                return Err(self.error(format!("it did not end within {seconds} s")));
            }
        };
        self.read(&output)
    }

    async fn output(&self) -> Result<Vec<u8>, Error> {
        let mut command = Command::new(&self.command);
        command
            .args(self.args.iter().map(Secret::expose))
            .envs(self.env.iter().map(|(name, value)| (name, value.expose())))
            .env("KUBERNETES_EXEC_INFO", self.exec_info())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::inherit())
            .kill_on_drop(true);
        let mut child = command.spawn().map_err(|error| {
            let hint = if self.install_hint.is_empty() {
                String::new()
            } else {
                format!("; {}", self.install_hint.trim())
            };
            self.error(format!("it does not start{hint}")).because(error)
        })?;
        let mut output = Vec::new();
        if let Some(stdout) = child.stdout.take() {
            let mut stdout = stdout.take(OUTPUT_LIMIT as u64 + 1);
            stdout
                .read_to_end(&mut output)
                .await
                .map_err(|error| self.error("its output cannot be read").because(error))?;
        }
        if output.len() > OUTPUT_LIMIT {
            return Err(self.error("it printed more than 1 MiB"));
        }
        let status = child
            .wait()
            .await
            .map_err(|error| self.error("its end was not seen").because(error))?;
        if !status.success() {
            return Err(self.error(format!("it ended with {status}; see what it printed above")));
        }
        Ok(output)
    }

    fn exec_info(&self) -> String {
        let mut spec = json!({ "interactive": false });
        if let Some(cluster) = &self.cluster {
            spec["cluster"] = cluster.clone();
        }
        json!({ "apiVersion": self.api_version, "kind": "ExecCredential", "spec": spec })
            .to_string()
    }

    fn read(&self, output: &[u8]) -> Result<ExecCredential, Error> {
        // serde_json's text may quote the value, so only the place is told.
        let answer: Answer = serde_json::from_slice(output).map_err(|error| {
            let (line, column) = (error.line(), error.column());
            self.error(format!("its output is no ExecCredential (line {line}, column {column})"))
        })?;
        if answer.kind != "ExecCredential" || answer.api_version != self.api_version {
            return Err(self.error(format!(
                "its output is not of kind ExecCredential and apiVersion {}",
                self.api_version
            )));
        }
        let status = answer.status.unwrap_or_default();
        let token = status.token.filter(|token| !token.is_empty());
        let identity = match (status.client_certificate_data, status.client_key_data) {
            (Some(certificate), Some(key)) => Some((certificate, key)),
            (None, None) => None,
            _ => return Err(self.error("it gave a client certificate or key without the other")),
        };
        if token.is_none() && identity.is_none() {
            return Err(self.error("it gave neither a token nor a client certificate"));
        }
        Ok(ExecCredential { token, identity, expires: status.expiration_timestamp })
    }

    fn error(&self, why: impl std::fmt::Display) -> Error {
        let command = self.command.display();
        Error::new(
            ErrorKind::Config,
            format!("cannot get credentials from the plugin {command}: {why}"),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str) -> ExecPlugin {
        ExecPlugin {
            command: "/bin/sh".into(),
            args: vec!["-c".into(), script.into()],
            env: vec![("PLUGIN_SECRET".into(), "canary-env".into())],
            api_version: "client.authentication.k8s.io/v1".into(),
            cluster: None,
            install_hint: String::new(),
        }
    }

    const HEAD: &str = r#"{"apiVersion":"client.authentication.k8s.io/v1","kind":"ExecCredential""#;

    #[tokio::test]
    async fn a_plugins_token_and_expiry_are_read() {
        let script = format!(
            r#"printf '%s' '{HEAD},"status":{{"token":"t","expirationTimestamp":"2030-01-02T03:04:05Z"}}}}'"#
        );
        let credential = shell(&script).run(&Clock::system()).await.unwrap();
        assert_eq!(credential.token.unwrap().expose(), "t");
        assert_eq!(credential.expires.unwrap().to_string(), "2030-01-02T03:04:05Z");
    }

    #[tokio::test]
    async fn a_plugin_is_told_its_api_version_and_gets_its_environment() {
        let script = format!(
            r#"case "$KUBERNETES_EXEC_INFO" in *'"interactive":false'*) ;; *) exit 9;; esac
               printf '%s"status":{{"token":"%s"}}}}' '{HEAD},' "$PLUGIN_SECRET""#
        );
        let credential = shell(&script).run(&Clock::system()).await.unwrap();
        assert_eq!(credential.token.unwrap().expose(), "canary-env");
    }

    #[tokio::test]
    async fn what_a_plugin_printed_is_in_no_error() {
        let scripts = [
            "echo canary-output; exit 3",
            "echo canary-output",
            r#"echo '{"apiVersion":"canary-output","kind":"ExecCredential"}'"#,
            r#"echo '{"status":"canary-output"}'"#,
        ];
        for script in scripts {
            let error = shell(script).run(&Clock::system()).await.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Config);
            assert!(!format!("{error} {error:?}").contains("canary"), "{error:?}");
        }
    }

    #[tokio::test]
    async fn a_plugin_that_prints_without_end_is_stopped_at_a_mebibyte() {
        let error = shell("yes canary").run(&Clock::system()).await.unwrap_err();
        assert!(error.to_string().contains("1 MiB"), "{error}");
    }

    #[tokio::test]
    async fn a_missing_plugin_tells_how_to_install_it() {
        let mut plugin = shell("");
        plugin.command = "/nonexistent/plugin".into();
        plugin.install_hint = "install it with: example".into();
        let error = plugin.run(&Clock::system()).await.unwrap_err();
        assert!(error.to_string().contains("install it with: example"), "{error}");
    }
}
