//! A command in a container, from the caller's side.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::io::AsyncReadExt;
use tokio::sync::{mpsc, watch};
use tokio_util::task::AbortOnDropHandle;

use super::driver::{self, Control, Conversation, SessionIo};
use super::streams::{EndReceiver, OutputReader, Stdin};
use super::verdict::{ExitStatus, SessionEnd};
use crate::client::Upgraded;
use windlass_core::error::{Error, ErrorKind};

/// The protocol that can signal the end of input.
pub(super) const V5: &str = "v5.channel.k8s.io";
/// The protocol before that, of servers before Kubernetes 1.29.
pub(super) const V4: &str = "v4.channel.k8s.io";

/// A running command, or a command that was attached to.
///
/// The streams can be taken out and used on their own, also from other tasks. **Dropping the
/// session closes the connection**, and thereby the streams; the effect on the command depends on
/// the container runtime: mostly the command continues.
///
/// Read `stdout` and `stderr` at the same time, or drop the unnecessary stream: both share a
/// connection, and an unread message holds back everything behind that message.
pub struct Session {
    what: String,
    protocol: &'static str,
    stdin: Option<Stdin>,
    stdout: Option<OutputReader>,
    stderr: Option<OutputReader>,
    control: mpsc::Sender<Control>,
    tty: bool,
    /// Kind of the error after a broken connection: ambiguous for a command that was started.
    lost: ErrorKind,
    ended: EndReceiver,
    /// Ends the task, and thereby the connection, when the session is dropped.
    _driving: AbortOnDropHandle<()>,
}

/// The whole output of a command, and the exit status.
#[derive(Clone, PartialEq, Eq)]
pub struct Captured {
    /// Exit status of the command.
    pub status: ExitStatus,
    /// Bytes that the command wrote to its standard output.
    pub stdout: Vec<u8>,
    /// Bytes that the command wrote to its standard error; empty with a terminal, which has one
    /// output.
    pub stderr: Vec<u8>,
}

/// The streams of a session.
#[derive(Clone, Copy, Debug)]
pub(super) struct Streams {
    pub(super) stdin: bool,
    pub(super) stdout: bool,
    pub(super) stderr: bool,
    pub(super) tty: bool,
}

impl Session {
    /// Starts the task of a session on an upgraded connection.
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
        // A single control message: `tell` waits until the driver has taken the previous message.
        let (control, controls) = mpsc::channel(1);
        let (stdin, input) = streams.stdin.then(|| Stdin::new(&ended, half_close)).unzip();
        let (stdout, printed) = streams.stdout.then(|| OutputReader::new(&ended)).unzip();
        let (stderr, complained) = streams.stderr.then(|| OutputReader::new(&ended)).unzip();
        let session_io = SessionIo {
            readers: vec![printed, complained],
            input,
            control: Some(controls),
            half_close,
            ended: ended_sender,
        };
        let driving = driver::start(upgraded, conversation, session_io);
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

    /// Takes the command's input; `None` when the input was not requested, or was taken before.
    pub fn stdin(&mut self) -> Option<Stdin> {
        self.stdin.take()
    }

    /// Takes the command's output; `None` when the output was not requested, or was taken before.
    pub fn stdout(&mut self) -> Option<OutputReader> {
        self.stdout.take()
    }

    /// Takes the command's error output; `None` when the stream was not requested (a terminal has
    /// none), or was taken before.
    pub fn stderr(&mut self) -> Option<OutputReader> {
        self.stderr.take()
    }

    /// Sets the size of the command's terminal, in characters.
    ///
    /// # Errors
    /// [`ErrorKind::Usage`] without a terminal; otherwise as [`wait`](Self::wait), when the session
    /// has ended.
    /// # Cancel safety
    /// Safe: the size is sent or not.
    pub async fn resize(&self, width: u16, height: u16) -> Result<(), Error> {
        if !self.tty {
            let text = format!("cannot {}: only a terminal has a size; ask for a tty", self.what);
            return Err(Error::usage(text));
        }
        self.send_control(Control::Resize { width, height }).await
    }

    /// Ends the command's input, also when [`stdin`](Self::stdin) was taken: accepted input is
    /// still sent, further writes fail.
    ///
    /// # Errors
    /// [`ErrorKind::Usage`] when the server's protocol cannot signal the end (before
    /// Kubernetes 1.29), or there is no input; otherwise as [`wait`](Self::wait), when the session
    /// has ended.
    /// # Cancel safety
    /// Safe: the end is sent or not.
    pub async fn close_stdin(&mut self) -> Result<(), Error> {
        if self.protocol != V5 {
            let text = format!(
                "cannot {}: this server speaks {}, which cannot signal the end of input; drop the \
                 session instead",
                self.what, self.protocol
            );
            return Err(Error::usage(text));
        }
        // Dropping the input ends the command's input: the driver sends the end after the last
        // message.
        if self.stdin.take().is_some() {
            return Ok(());
        }
        self.send_control(Control::CloseInput).await
    }

    /// Sends a control message to the session; fails when the session has ended.
    async fn send_control(&self, control: Control) -> Result<(), Error> {
        match self.control.send(control).await {
            Ok(()) => Ok(()),
            Err(_) => {
                let error = self.outcome().err();
                Err(error.unwrap_or_else(|| self.error(ErrorKind::Usage, "the command has ended")))
            }
        }
    }

    /// Waits until the command has ended. Output that was not taken is discarded from now on, and
    /// input that was not taken is closed.
    ///
    /// # Errors
    /// The server's [status](Error::status) when the server could not run the command, or lost the
    /// command; [`ErrorKind::Ambiguous`] when the connection broke, so that the fate of the command
    /// is unknown ([`ErrorKind::Transport`] for a command that was only attached to).
    /// # Cancel safety
    /// Safe: another call continues the wait, and returns the same result.
    pub async fn wait(&mut self) -> Result<ExitStatus, Error> {
        // Dropped first: a full stream would hold back the exit status behind the stream's data.
        self.stdin = None;
        self.stdout = None;
        self.stderr = None;
        // An error means that the task is gone; the task has published an end, unless aborted.
        let _ = self.ended.wait_for(Option::is_some).await;
        self.outcome()
    }

    /// Reads the whole output of the command until the command ends, at most `limit` bytes of both
    /// streams together. Input that was not taken is closed.
    ///
    /// # Errors
    /// As [`wait`](Self::wait); [`ErrorKind::Decode`] when there is more output, and then the
    /// session is given up.
    /// # Cancel safety
    /// Dropping the future closes the connection.
    pub async fn output(mut self, limit: usize) -> Result<Captured, Error> {
        self.stdin = None;
        let (stdout, stderr) = (self.stdout.take(), self.stderr.take());
        let left = AtomicUsize::new(limit);
        // Both at once: a reader that waited for the other stream's end would block the session.
        let read = tokio::try_join!(read_all(stdout, &left), read_all(stderr, &left));
        let Ok((stdout, stderr)) = read else {
            let text = format!("it prints more than {limit} bytes; read its streams instead");
            return Err(self.error(ErrorKind::Decode, &text));
        };
        let status = self.wait().await?;
        Ok(Captured { status, stdout, stderr })
    }

    /// The exit status, or the error of any other end.
    fn outcome(&self) -> Result<ExitStatus, Error> {
        match &*self.ended.borrow() {
            Some(SessionEnd::Exit(status)) => Ok(*status),
            Some(SessionEnd::Failed(status)) => {
                Err(Error::from_status(&self.what, (**status).clone()))
            }
            Some(SessionEnd::Broken { why, source }) => {
                let text = format!("{why}; how it ended is unknown");
                let error = self.error(self.lost, &text);
                Err(match source {
                    Some(source) => error.because(Arc::clone(source)),
                    None => error,
                })
            }
            Some(SessionEnd::Closed) | None => {
                Err(self.error(self.lost, "how it ended is unknown"))
            }
        }
    }

    fn error(&self, kind: ErrorKind, text: &str) -> Error {
        Error::new(kind, format!("cannot {}: {text}", self.what))
    }
}

/// The output exceeds the limit.
struct TooMuch;

/// Reads to the end. The session reports a broken end.
async fn read_all(reader: Option<OutputReader>, left: &AtomicUsize) -> Result<Vec<u8>, TooMuch> {
    let mut read = Vec::new();
    let Some(mut reader) = reader else { return Ok(read) };
    let mut buffer = vec![0; 16 << 10];
    while let Ok(length @ 1..) = reader.read(&mut buffer).await {
        // Relaxed: the counter publishes no other memory, and both readers run in a single task.
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
