//! A single run of a plugin: the input, the limits, and the parsing of the output.

use std::ffi::OsStr;
use std::fmt;
use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::pin::pin;
use std::process::Stdio;
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use jiff::Timestamp;
use serde::Deserialize;
use serde_json::json;
use tokio::io::AsyncReadExt;
use tokio::process::Command;
use zeroize::Zeroizing;

use super::{ExecPlugin, InteractiveMode};
use crate::client::secret::SecretString;
use windlass_core::clock::Clock;
use windlass_core::error::{Error, ErrorKind};
use windlass_core::wire::times;

/// Longest run of a plugin.
const TIME_LIMIT: Duration = Duration::from_secs(60);
/// Longest run of a plugin that interacts with a person.
const INTERACTIVE_TIME_LIMIT: Duration = Duration::from_secs(300);
/// Largest output, in bytes.
const OUTPUT_LIMIT: usize = 1024 * 1024;
/// Time for the rest of the output once the plugin has ended. A process that the plugin left behind
/// may keep the pipe open for ever.
const OUTPUT_DRAIN_TIMEOUT: Duration = Duration::from_secs(1);

/// Credentials from a plugin.
#[derive(Clone, Debug, Default)]
pub(crate) struct ExecCredential {
    /// Bearer token.
    pub(crate) token: Option<SecretString>,
    /// Client certificate and key, PEM.
    pub(crate) identity: Option<(SecretString, SecretString)>,
    /// Expiry; `None` never.
    pub(crate) expires: Option<Timestamp>,
}

/// Output of a plugin: an `ExecCredential`.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct PluginOutput {
    #[serde(default)]
    api_version: String,
    #[serde(default)]
    kind: String,
    #[serde(default)]
    status: Option<ExecCredentialStatus>,
}

/// The field `status` of an `ExecCredential`.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct ExecCredentialStatus {
    token: Option<SecretString>,
    client_certificate_data: Option<SecretString>,
    client_key_data: Option<SecretString>,
    expiration_timestamp: Option<Timestamp>,
}

impl InteractiveMode {
    /// Returns whether the plugin gets standard input, or the reason why the plugin cannot run.
    fn takes_input(self, terminal: bool) -> Result<bool, &'static str> {
        match self {
            Self::Never => Ok(false),
            Self::IfAvailable => Ok(terminal),
            Self::Always if terminal => Ok(true),
            Self::Always => {
                Err("the plugin needs an interactive terminal (interactiveMode: Always), and \
                                 standard input is not a terminal; log in with another method")
            }
        }
    }
}

impl ExecPlugin {
    /// Runs the plugin once.
    ///
    /// # Cancel safety
    /// Dropping the future kills the plugin.
    pub(crate) async fn run(&self, clock: &Clock) -> Result<ExecCredential, Error> {
        let terminal = std::io::stdin().is_terminal();
        let input = self.interactive.takes_input(terminal).map_err(|why| self.error(why))?;
        let limit = if input { INTERACTIVE_TIME_LIMIT } else { TIME_LIMIT };
        match clock.timeout(limit, self.output(clock, input)).await {
            Some(output) => self.read(&output?),
            None => Err(self.error(format!("it did not end within {} s", limit.as_secs()))),
        }
    }

    /// Starts the program and returns its output.
    async fn output(&self, clock: &Clock, input: bool) -> Result<Zeroizing<Vec<u8>>, Error> {
        let program = self.program()?;
        // Checked again at each run: the file that a bare name resolves to may have changed.
        self.admit(&program)?;
        tracing::debug!(program = %program.display(), input, "the credential plugin is started");
        let mut command = Command::new(program);
        command
            .args(self.args.iter().map(SecretString::expose))
            .envs(self.env.iter().map(|(name, value)| (name, value.expose())))
            .env("KUBERNETES_EXEC_INFO", self.exec_info(input).await?.expose())
            .stdin(if input { Stdio::inherit() } else { Stdio::null() })
            .stdout(Stdio::piped())
            .stderr(Stdio::inherit())
            // A call that is cancelled must not leave the program behind.
            .kill_on_drop(true);
        let mut child = command.spawn().map_err(|error| {
            if error.kind() == std::io::ErrorKind::NotFound {
                return self.missing().because(error);
            }
            let advice = match error.kind() {
                std::io::ErrorKind::PermissionDenied => "; make it executable (chmod +x)",
                _ => "",
            };
            self.error(format!("it does not start: {error}{advice}")).because(error)
        })?;
        // Large enough for tokens and certificates, so that no smaller buffer with secrets is freed
        // on growth.
        let mut output = Zeroizing::new(Vec::with_capacity(32 * 1024));
        let stdout = child.stdout.take();
        let status = {
            let reading = async {
                let Some(stdout) = stdout else { return Ok(()) };
                // A single byte beyond the limit is enough to notice too much output.
                let mut stdout = stdout.take(OUTPUT_LIMIT as u64 + 1);
                match stdout.read_to_end(&mut output).await {
                    Err(error) => Err(self.error("its output cannot be read").because(error)),
                    Ok(length) if length > OUTPUT_LIMIT => {
                        Err(self.error("it printed more than 1 MiB"))
                    }
                    Ok(_) => Ok(()),
                }
            };
            let mut reading = pin!(reading);
            tokio::select! {
                biased;
                // Biased: complete output needs no time limit for the rest.
                read = &mut reading => {
                    read?;
                    child.wait().await
                }
                status = child.wait() => {
                    clock.timeout(OUTPUT_DRAIN_TIMEOUT, reading).await.transpose()?;
                    status
                }
            }
        };
        let status = status.map_err(|error| self.error("its end was not seen").because(error))?;
        if !status.success() {
            return Err(self.error(format!("it ended with {status}; its output is above")));
        }
        Ok(output)
    }

    /// Returns the program's absolute path.
    pub(super) fn program(&self) -> Result<PathBuf, Error> {
        resolve(&self.command).ok_or_else(|| self.missing())
    }

    /// Returns the error of a program that does not exist.
    fn missing(&self) -> Error {
        let hint: String = self.install_hint.trim().chars().map(printable).collect();
        let hint = if hint.is_empty() { hint } else { format!(": {hint}") };
        self.error(format!("there is no such program; install it, or correct its path{hint}"))
    }

    /// Returns the input of the plugin. A secret, because the input may contain a proxy's password.
    async fn exec_info(&self, input: bool) -> Result<SecretString, Error> {
        let mut spec = json!({ "interactive": input });
        if let Some(cluster) = &self.cluster {
            spec["cluster"] = cluster.spec.clone();
            if let Some(ca) = &cluster.ca {
                let ca = ca.load().await.map_err(|error| self.error(error))?;
                let ca = STANDARD.encode(ca.expose().as_bytes());
                spec["cluster"]["certificate-authority-data"] = json!(ca);
            }
            if !self.extension.is_null() {
                spec["cluster"]["config"] = self.extension.clone();
            }
        }
        let info =
            json!({ "apiVersion": self.api_version, "kind": "ExecCredential", "spec": spec });
        Ok(info.to_string().into())
    }

    /// Parses the output.
    fn read(&self, output: &[u8]) -> Result<ExecCredential, Error> {
        // serde_json's message may quote the value, so the error contains only the position.
        let output: PluginOutput = times::from_slice(output).map_err(|error| {
            let (line, column) = (error.line(), error.column());
            self.error(format!(
                "its output is not an ExecCredential (line {line}, column {column}); run it by hand to \
                 see what it prints"
            ))
        })?;
        if output.kind != "ExecCredential" || output.api_version != self.api_version {
            return Err(self.error(format!(
                "its output is not of kind ExecCredential and apiVersion {}",
                self.api_version
            )));
        }
        let status = output.status.unwrap_or_default();
        let token = status.token.filter(|token| !token.is_empty());
        let given = |pem: Option<SecretString>| pem.filter(|pem| !pem.is_empty());
        let certificate = given(status.client_certificate_data);
        let identity = match (certificate, given(status.client_key_data)) {
            (Some(certificate), Some(key)) => Some((certificate, key)),
            (None, None) => None,
            _ => return Err(self.error("it gave a client certificate or key without the other")),
        };
        if token.is_none() && identity.is_none() {
            return Err(self.error("it gave neither a token nor a client certificate"));
        }
        Ok(ExecCredential { token, identity, expires: status.expiration_timestamp })
    }

    /// Returns an error that names the plugin and its origin.
    pub(super) fn error(&self, why: impl fmt::Display) -> Error {
        let command: String = self.command.display().to_string().chars().map(printable).collect();
        let origin = match self.origin.as_str() {
            "" => String::new(),
            origin => format!("{origin}: "),
        };
        let text = format!("{origin}cannot get credentials from the plugin {command}: {why}");
        Error::new(ErrorKind::Config, text)
    }
}

/// Returns the absolute path of `command`: a path unchanged, a bare name from `PATH`.
pub(super) fn resolve(command: &Path) -> Option<PathBuf> {
    if command.components().count() > 1 || command.is_absolute() {
        let absolute = std::path::absolute(command);
        return Some(absolute.unwrap_or_else(|_| command.to_owned()));
    }
    find(&std::env::var_os("PATH").unwrap_or_default(), command)
}

/// Finds the first program `name` in the absolute folders of `path`. As in Go, relative folders are
/// skipped, so that no program of the working directory is run.
fn find(path: &OsStr, name: &Path) -> Option<PathBuf> {
    std::env::split_paths(path)
        .filter(|folder| folder.is_absolute())
        .map(|folder| folder.join(name))
        .find(|file| is_program(file))
}

#[cfg(unix)]
fn is_program(file: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    file.metadata().is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0)
}

#[cfg(not(unix))]
fn is_program(file: &Path) -> bool {
    file.is_file() || file.with_extension("exe").is_file()
}

/// Replaces control characters: text from a file must not control the user's terminal.
fn printable(c: char) -> char {
    if c.is_control() && c != '\n' && c != '\t' { '?' } else { c }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::super::{ClusterInfo, V1};
    use super::*;
    use crate::client::transport::Pem;

    fn shell(script: &str) -> ExecPlugin {
        ExecPlugin::new("/bin/sh").arg("-c").arg(script).env("PLUGIN_SECRET", "canary-env")
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
    async fn a_credential_that_never_expires_is_one_that_expires_at_the_end_of_time() {
        for never in ["9999-12-31T23:59:59Z", "9999-12-31T23:59:59.999999Z"] {
            let script = format!(
                r#"printf '%s' '{HEAD},"status":{{"token":"t","expirationTimestamp":"{never}"}}}}'"#
            );
            let credential = shell(&script).run(&Clock::system()).await.unwrap();
            assert!(credential.expires.unwrap().to_string().starts_with("9999-12-30T22:00:00"));
        }
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
        let plugin =
            ExecPlugin::new("/nonexistent/plugin").install_hint("install it with: example");
        let error = plugin.run(&Clock::system()).await.unwrap_err();
        assert!(error.to_string().contains("install it with: example"), "{error}");
    }

    #[tokio::test]
    async fn a_missing_plugin_of_a_bare_name_is_told_without_control_characters() {
        let mut plugin =
            ExecPlugin::new("windlass-no-such-plugin").install_hint("run \u{1b}[1mthis");
        plugin.origin = "context \"dev\" of /etc/config".to_owned();
        let text = plugin.run(&Clock::system()).await.unwrap_err().to_string();
        assert!(text.contains("context \"dev\" of /etc/config"), "{text}");
        assert!(text.contains("install it") && text.contains("run ?[1mthis"), "{text}");
    }

    #[test]
    fn a_bare_name_is_looked_for_in_the_absolute_folders_of_path_alone() {
        let path = std::env::join_paths(["", ".", "/nonexistent", "/bin"]).unwrap();
        assert_eq!(find(&path, Path::new("sh")).unwrap(), Path::new("/bin/sh"));
        let path = std::env::join_paths(["", ".", "src"]).unwrap();
        assert_eq!(find(&path, Path::new("sh")), None);
        // A folder or a file that cannot be executed is no program.
        assert_eq!(find(OsStr::new("/"), Path::new("etc")), None);
        assert_eq!(find(OsStr::new("/etc"), Path::new("passwd")), None);
    }

    #[test]
    fn a_plugin_gets_standard_input_as_its_mode_says() {
        use InteractiveMode::{Always, IfAvailable, Never};
        let table = [
            (Never, true, Ok(false)),
            (Never, false, Ok(false)),
            (IfAvailable, true, Ok(true)),
            (IfAvailable, false, Ok(false)),
            (Always, true, Ok(true)),
        ];
        for (mode, terminal, input) in table {
            assert_eq!(mode.takes_input(terminal), input, "{mode:?} {terminal}");
        }
        assert!(Always.takes_input(false).unwrap_err().contains("not a terminal"));
    }

    #[tokio::test]
    async fn a_plugin_without_input_reads_nothing() {
        let script = format!(r#"cat; printf '%s' '{HEAD},"status":{{"token":"t"}}}}'"#);
        let credential = shell(&script).run(&Clock::system()).await.unwrap();
        assert_eq!(credential.token.unwrap().expose(), "t");
    }

    #[tokio::test]
    async fn a_plugin_that_asks_is_told_the_cluster_with_the_content_of_the_ca_file() {
        let folder = std::env::temp_dir().join(format!("windlass-exec-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join("ca.crt"), "PEM").unwrap();
        let mut plugin = shell("").with_cluster_info();
        plugin.extension = json!({"audience": "shop"});
        let spec = json!({"server": "https://one.example", "config": null});
        let ca = Some(Pem::File(folder.join("ca.crt")));
        plugin.cluster = Some(ClusterInfo { spec, ca });
        let info: Value =
            serde_json::from_str(plugin.exec_info(true).await.unwrap().expose()).unwrap();
        assert_eq!(
            info,
            json!({
                "apiVersion": V1,
                "kind": "ExecCredential",
                "spec": {
                    "interactive": true,
                    "cluster": {
                        "server": "https://one.example",
                        "certificate-authority-data": "UEVN",
                        "config": {"audience": "shop"},
                    },
                },
            })
        );
        std::fs::remove_file(folder.join("ca.crt")).unwrap();
        let text = plugin.exec_info(true).await.unwrap_err().to_string();
        assert!(text.contains("ca.crt"), "{text}");
    }

    /// The pipe's other end is closed when the plugin is dead; a surviving plugin would write to
    /// the pipe again.
    #[cfg(unix)]
    #[tokio::test(start_paused = true)]
    async fn a_plugin_that_does_not_end_is_killed_after_a_minute() {
        use std::io::Read;

        let name = format!("windlass-pipe-{}", std::process::id());
        let pipe = std::env::temp_dir().join(name);
        let _ = std::fs::remove_file(&pipe);
        assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        let script = "exec 3>PIPE; echo begins >&3; sleep 5 3>&-; echo lives >&3";
        let plugin = shell(&script.replace("PIPE", &pipe.display().to_string()));
        // The clock stands still until the plugin has begun.
        let far_end = tokio::task::spawn_blocking(move || {
            let mut file = std::fs::File::open(&pipe).unwrap();
            file.read_exact(&mut [0; 7]).unwrap();
            std::fs::remove_file(&pipe).unwrap();
            file
        });
        let began = tokio::time::Instant::now();
        let clock = Clock::system();
        let (error, far_end) = tokio::join!(plugin.run(&clock), far_end);
        let error = error.unwrap_err();
        assert!(error.to_string().contains("it did not end within 60 s"), "{error}");
        assert_eq!(began.elapsed(), Duration::from_secs(60));
        let mut rest = String::new();
        far_end.unwrap().read_to_string(&mut rest).unwrap();
        assert_eq!(rest, "");
    }
}
