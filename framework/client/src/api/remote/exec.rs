//! Exec and attach: their options, and the channels of their protocol.

use std::time::Duration;

use bytes::Bytes;
use k8s_openapi::api::core::v1::Pod;

use super::driver::Conversation;
use super::session::{Session, Streams, V4, V5};
use super::verdict::{SessionEnd, of_status};
use crate::api::Api;
use crate::api::draft::Draft;
use crate::client::{Prepared, Verb};
use windlass_core::error::{Error, ErrorKind};

/// Longest accepted verdict, the `Status` at the end of a session, in bytes.
const VERDICT_LIMIT: usize = 64 << 10;
/// Channel of the output.
const STDOUT_CHANNEL: u8 = 1;
/// Channel of the error output.
const STDERR_CHANNEL: u8 = 2;
/// Channel of the `Status` at the end.
const VERDICT_CHANNEL: u8 = 3;

/// Options of a command: the container and the streams.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExecOptions {
    /// The container; `None` for a pod with a single container.
    pub container: Option<String>,
    /// Connects standard input. Default: no.
    pub stdin: bool,
    /// Connects standard output. Default: yes.
    pub stdout: bool,
    /// Connects the error output. Default: yes. A terminal prints both as `stdout`.
    pub stderr: bool,
    /// Gives the command a terminal. Default: no.
    pub tty: bool,
    /// Time until the command is started or attached to. Default: the client's, 30 s. The session
    /// has no time limit.
    pub timeout: Option<Duration>,
}

impl Default for ExecOptions {
    fn default() -> Self {
        Self {
            container: None,
            stdin: false,
            stdout: true,
            stderr: true,
            tty: false,
            timeout: None,
        }
    }
}

impl Api<Pod> {
    /// Starts `command` in a container of the pod. The command is executed unchanged, without a
    /// shell.
    ///
    /// ```no_run
    /// # extern crate windlass_client as windlass;
    /// use k8s_openapi::api::core::v1::Pod;
    /// use tokio::io::AsyncWriteExt;
    /// use windlass::api::remote::ExecOptions;
    ///
    /// # async fn example(
    /// #     client: windlass::client::Client,
    /// # ) -> Result<(), Box<dyn std::error::Error>> {
    /// let pods = client.namespace::<Pod>("shop");
    ///
    /// // The whole output, and the exit status.
    /// let printed = pods.exec("db-0", &["pg_isready"], ExecOptions::default()).await?;
    /// let printed = printed.output(1 << 20).await?;
    /// if !printed.status.success() {
    ///     println!("{}: {}", printed.status, String::from_utf8_lossy(&printed.stderr));
    /// }
    ///
    /// // Or stream by stream.
    /// let options = ExecOptions { stdin: true, ..ExecOptions::default() };
    /// let mut restore = pods.exec("db-0", &["psql"], options).await?;
    /// let mut stdin = restore.stdin().ok_or("no stdin")?;
    /// stdin.write_all(b"select 1;").await?;
    /// stdin.shutdown().await?;
    /// println!("{}", restore.wait().await?);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// Those of [`Client::send`](crate::client::Client::send); [`ErrorKind::Usage`] without a
    /// command or with no stream; [`ErrorKind::BadRequest`] for a pod of several containers when no
    /// container is named; [`ErrorKind::Ambiguous`] when the command may have been started. A
    /// command that cannot be started is mostly reported by [`Session::wait`].
    /// # Cancel safety
    /// Dropping the future closes the connection; the command may have been started.
    pub async fn exec(
        &self,
        name: &str,
        command: &[&str],
        options: ExecOptions,
    ) -> Result<Session, Error> {
        let mut request = self.remote_request(name, "exec", "run a command in")?;
        if command.is_empty() {
            return Err(refuse(&request, "there is no command"));
        }
        // Although the request is a GET: a repetition would start the command a second time.
        request.repeatable = false;
        request.query.extend(command.iter().map(|word| ("command".into(), (*word).to_owned())));
        self.open_session(request, options, ErrorKind::Ambiguous).await
    }

    /// Attaches to the running program in a container of the pod: to the program's output from now
    /// on, and to the input, if the container was made with `stdin: true`.
    ///
    /// # Errors
    /// As [`exec`](Self::exec), never [`ErrorKind::Ambiguous`].
    /// # Cancel safety
    /// Dropping the future closes the connection.
    pub async fn attach(&self, name: &str, options: ExecOptions) -> Result<Session, Error> {
        let request = self.remote_request(name, "attach", "attach to")?;
        self.open_session(request, options, ErrorKind::Transport).await
    }

    /// Upgrades a request and starts the session; `lost` is the kind of error for a broken
    /// connection.
    async fn open_session(
        &self,
        mut request: Prepared,
        options: ExecOptions,
        lost: ErrorKind,
    ) -> Result<Session, Error> {
        let ExecOptions { container, stdin, stdout, stderr, tty, timeout } = options;
        // A terminal has a single output for both.
        let streams = Streams { stdin, stdout, stderr: stderr && !tty, tty };
        if !streams.stdin && !streams.stdout && !streams.stderr {
            return Err(refuse(&request, "of stdin, stdout and stderr at least one is needed"));
        }
        request.timeout = timeout;
        request.query.extend(container.map(|container| ("container".into(), container)));
        let wanted = [
            ("stdin", streams.stdin),
            ("stdout", streams.stdout),
            ("stderr", streams.stderr),
            ("tty", tty),
        ];
        // All are sent: for some of them the server's default is on.
        request.query.extend(wanted.map(|(stream, on)| (stream.into(), on.to_string())));
        let upgraded = self.target.client.upgrade(&request, &[V5, V4]).await?;
        Ok(Session::start(upgraded, request.what, streams, lost, Commands::default()))
    }

    /// A request for a subresource that is upgraded; `doing` names the purpose in error texts.
    pub(super) fn remote_request(
        &self,
        name: &str,
        subresource: &str,
        doing: &str,
    ) -> Result<Prepared, Error> {
        let mut request = Draft::named(&self.target, Verb::Get, name).finish()?;
        request.path = format!("{}/{subresource}", request.path);
        request.what = format!("{doing} {}", request.what.trim_start_matches("get "));
        Ok(request)
    }
}

/// The error of a request that cannot be sent.
pub(super) fn refuse(request: &Prepared, why: &str) -> Error {
    Error::usage(format!("cannot {}: {why}", request.what))
}

/// The channels of exec and attach: output, error output, and a `Status` at the end.
#[derive(Debug, Default)]
pub(super) struct Commands {
    verdict: Vec<u8>,
}

impl Conversation for Commands {
    fn sort(&mut self, channel: u8, data: Bytes) -> Result<Option<(usize, Bytes)>, SessionEnd> {
        match channel {
            STDOUT_CHANNEL => Ok(Some((0, data))),
            STDERR_CHANNEL => Ok(Some((1, data))),
            VERDICT_CHANNEL => {
                self.verdict.extend_from_slice(&data);
                // A verdict without an end must not fill the memory.
                if self.verdict.len() > VERDICT_LIMIT {
                    return Err(SessionEnd::broken("the server's final message does not end"));
                }
                // A complete verdict ends the session.
                of_status(&self.verdict).map_or(Ok(None), Err)
            }
            _ => {
                tracing::debug!(channel, "the server sent something on an unknown channel");
                Ok(None)
            }
        }
    }

    fn closed(&mut self, how: Result<(), String>) -> SessionEnd {
        let why = how.err().unwrap_or_else(|| "the server closed the connection".to_owned());
        match self.verdict.is_empty() {
            true => SessionEnd::broken(why),
            false => SessionEnd::broken(format!("{why} in the middle of its final message")),
        }
    }
}
