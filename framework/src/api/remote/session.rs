//! A command in a container, as its caller holds it.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::io::AsyncReadExt;
use tokio::sync::{mpsc, watch};
use tokio_util::task::AbortOnDropHandle;

use super::driver::{self, Control, Conversation, Wiring};
use super::streams::{Ended, OutputReader, Stdin};
use super::verdict::{End, ExitStatus};
use crate::client::Upgraded;
use crate::error::{Error, ErrorKind};

/// The protocol that can tell the end of input.
pub(super) const V5: &str = "v5.channel.k8s.io";
/// The one before it, of servers before Kubernetes 1.29.
pub(super) const V4: &str = "v4.channel.k8s.io";

/// A running command, or one that was attached to.
///
/// Its streams are taken out of it and used on their own, from other tasks if need be. **Dropping
/// the session closes the connection**, and the streams with it; what that does to the command is
/// the container runtime's affair, and mostly it goes on.
///
/// Read `stdout` and `stderr` at the same time, or drop the one that is not wanted: they share a
/// connection, and what nobody reads holds back everything behind it.
pub struct Session {
    what: String,
    protocol: &'static str,
    stdin: Option<Stdin>,
    stdout: Option<OutputReader>,
    stderr: Option<OutputReader>,
    control: mpsc::Sender<Control>,
    tty: bool,
    /// What a broken connection means: for a command that was started, doubt.
    lost: ErrorKind,
    ended: Ended,
    _driving: AbortOnDropHandle<()>,
}

/// Everything that a command printed, and how it ended.
#[derive(Clone, PartialEq, Eq)]
pub struct Captured {
    /// How it ended.
    pub status: ExitStatus,
    /// All of `stdout`.
    pub stdout: Vec<u8>,
    /// All of `stderr`.
    pub stderr: Vec<u8>,
}

/// Which streams a session has.
#[derive(Clone, Copy, Debug)]
pub(super) struct Streams {
    pub(super) stdin: bool,
    pub(super) stdout: bool,
    pub(super) stderr: bool,
    pub(super) tty: bool,
}

impl Session {
    pub(super) fn start(
        upgraded: Upgraded,
        what: String,
        streams: Streams,
        lost: ErrorKind,
        conversation: impl Conversation,
    ) -> Self {
        let protocol = upgraded.protocol;
        let half_close = protocol == V5;
        let (ended_sender, ended) = watch::channel(None);
        let (control, controls) = mpsc::channel(1);
        let (stdin, input) = streams.stdin.then(|| Stdin::new(&ended, half_close)).unzip();
        let (stdout, printed) = streams.stdout.then(|| OutputReader::new(&ended)).unzip();
        let (stderr, complained) = streams.stderr.then(|| OutputReader::new(&ended)).unzip();
        let wiring = Wiring {
            readers: vec![printed, complained],
            input,
            control: Some(controls),
            half_close,
            ended: ended_sender,
        };
        let driving = driver::start(upgraded, conversation, wiring);
        Self {
            what,
            protocol,
            stdin,
            stdout,
            stderr,
            control,
            tty: streams.tty,
            lost,
            ended,
            _driving: driving,
        }
    }

    /// The WebSocket subprotocol that the server chose: `v5.channel.k8s.io` or `v4.channel.k8s.io`.
    pub fn protocol(&self) -> &str {
        self.protocol
    }

    /// The command's input; `None` when it was not asked for, or was taken before.
    pub fn stdin(&mut self) -> Option<Stdin> {
        self.stdin.take()
    }

    /// The command's output; `None` when it was not asked for, or was taken before.
    pub fn stdout(&mut self) -> Option<OutputReader> {
        self.stdout.take()
    }

    /// The command's error output; `None` when it was not asked for (a terminal has none), or was
    /// taken before.
    pub fn stderr(&mut self) -> Option<OutputReader> {
        self.stderr.take()
    }

    /// Tells a command on a terminal how large that is, in characters.
    ///
    /// # Errors
    /// [`ErrorKind::Usage`] without a terminal; otherwise as [`wait`](Self::wait), when the session
    /// has ended.
    /// # Cancel safety
    /// Safe: it is told or not.
    pub async fn resize(&self, width: u16, height: u16) -> Result<(), Error> {
        if !self.tty {
            let text = format!("cannot {}: only a terminal has a size; ask for a tty", self.what);
            return Err(Error::new(ErrorKind::Usage, text));
        }
        self.tell(Control::Resize { width, height }).await
    }

    /// Tells the command that there is no more input, also when [`stdin`](Self::stdin) was taken:
    /// what it has accepted is sent, further writes fail.
    ///
    /// # Errors
    /// [`ErrorKind::Usage`] when the server speaks a protocol that cannot say it (before Kubernetes
    /// 1.29), or there is no input; otherwise as [`wait`](Self::wait), when the session has ended.
    /// # Cancel safety
    /// Safe: it is told or not.
    pub async fn close_stdin(&mut self) -> Result<(), Error> {
        if self.protocol != V5 {
            let text = format!(
                "cannot {}: this server speaks {}, which cannot tell the end of input; drop the \
                 session instead",
                self.what, self.protocol
            );
            return Err(Error::new(ErrorKind::Usage, text));
        }
        if self.stdin.take().is_some() {
            return Ok(());
        }
        self.tell(Control::CloseInput).await
    }

    async fn tell(&self, control: Control) -> Result<(), Error> {
        match self.control.send(control).await {
            Ok(()) => Ok(()),
            Err(_) => {
                let error = self.outcome().err();
                Err(error.unwrap_or_else(|| self.error(ErrorKind::Usage, "the command has ended")))
            }
        }
    }

    /// Waits until the command has ended. Output that was not taken is thrown away from now on, and
    /// input that was not taken is closed.
    ///
    /// # Errors
    /// The server's [status](Error::status) when it could not run the command, or lost it;
    /// [`ErrorKind::Ambiguous`] when the connection broke, so that nobody knows whether and how a
    /// command ended ([`ErrorKind::Transport`] for one that was only attached to).
    /// # Cancel safety
    /// Safe: it can be called again, and says the same again.
    pub async fn wait(&mut self) -> Result<ExitStatus, Error> {
        self.stdin = None;
        self.stdout = None;
        self.stderr = None;
        // An error says that the task is gone; it then has left an end, unless it was aborted.
        let _ = self.ended.wait_for(Option::is_some).await;
        self.outcome()
    }

    /// Reads everything that the command prints, at most `limit` bytes together, until it ends.
    /// Input that was not taken is closed.
    ///
    /// # Errors
    /// As [`wait`](Self::wait); [`ErrorKind::Decode`] when there is more, and then the session is
    /// given up.
    /// # Cancel safety
    /// Dropping it closes the connection.
    pub async fn output(mut self, limit: usize) -> Result<Captured, Error> {
        self.stdin = None;
        let (stdout, stderr) = (self.stdout.take(), self.stderr.take());
        let left = AtomicUsize::new(limit);
        let read = tokio::try_join!(read_all(stdout, &left), read_all(stderr, &left));
        let Ok((stdout, stderr)) = read else {
            let text = format!("it prints more than {limit} bytes; read its streams instead");
            return Err(self.error(ErrorKind::Decode, &text));
        };
        let status = self.wait().await?;
        Ok(Captured { status, stdout, stderr })
    }

    fn outcome(&self) -> Result<ExitStatus, Error> {
        match &*self.ended.borrow() {
            Some(End::Exit(status)) => Ok(*status),
            Some(End::Failed(status)) => Err(Error::from_status(&self.what, (**status).clone())),
            Some(End::Broken { why, source }) => {
                let text = format!("{why}; how it ended is unknown");
                let error = self.error(self.lost, &text);
                Err(match source {
                    Some(source) => error.because(Arc::clone(source)),
                    None => error,
                })
            }
            Some(End::Closed) | None => Err(self.error(self.lost, "how it ended is unknown")),
        }
    }

    fn error(&self, kind: ErrorKind, text: &str) -> Error {
        Error::new(kind, format!("cannot {}: {text}", self.what))
    }
}

/// More was printed than is wanted.
struct TooMuch;

/// Reads to the end; a broken end is told by the session.
async fn read_all(reader: Option<OutputReader>, left: &AtomicUsize) -> Result<Vec<u8>, TooMuch> {
    let mut read = Vec::new();
    let Some(mut reader) = reader else { return Ok(read) };
    let mut buffer = vec![0; 16 << 10];
    while let Ok(length @ 1..) = reader.read(&mut buffer).await {
        let order = Ordering::Relaxed;
        left.fetch_update(order, order, |left| left.checked_sub(length)).map_err(|_| TooMuch)?;
        read.extend_from_slice(&buffer[..length]);
    }
    Ok(read)
}

impl fmt::Debug for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Session")
            .field("what", &self.what)
            .field("protocol", &self.protocol)
            .field("ended", &*self.ended.borrow())
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for Captured {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Captured")
            .field("status", &self.status)
            .field("stdout", &format_args!("{} bytes", self.stdout.len()))
            .field("stderr", &format_args!("{} bytes", self.stderr.len()))
            .finish()
    }
}
