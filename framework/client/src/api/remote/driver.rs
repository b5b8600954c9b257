//! Moves messages between a WebSocket and the streams of a session, in a single task.
//!
//! At most one message waits for a reader; until the message is taken nothing else is read, which
//! makes the server wait. At most one message waits to be sent. So memory is bounded whatever
//! either side does, and sending continues while receiving waits.

use std::future::poll_fn;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use tokio::sync::{mpsc, watch};
use tokio::time::Instant;
use tokio_tungstenite::tungstenite;
use tokio_util::sync::PollSender;
use tokio_util::task::AbortOnDropHandle;
use tungstenite::protocol::{Message, Role};

use super::socket::{MESSAGE_LIMIT, Socket};
use super::verdict::SessionEnd;
use crate::client::Upgraded;
use windlass_core::clock::Clock;

/// Interval of pings.
const PING: Duration = Duration::from_secs(15);
/// Time without a message after which a connection counts as dead.
const SILENCE: Duration = Duration::from_secs(45);
/// The same while the program may not have read the input: servers read no ping before that.
const INPUT_IDLE_TIMEOUT: Duration = Duration::from_secs(600);
/// Steps before the task yields to others.
const STEPS: usize = 64;
/// Channel whose message names another channel that ends (protocol version 5).
const CLOSE_CHANNEL: u8 = 255;
/// Channel of input, and of the data of a port.
pub(super) const INPUT_CHANNEL: u8 = 0;
/// Channel of terminal sizes.
const RESIZE_CHANNEL: u8 = 4;

/// Meaning of the channels of a protocol.
pub(super) trait Conversation: Send + 'static {
    /// Returns the reader of a message, if any; the end for the last message of the session.
    fn sort(&mut self, channel: u8, data: Bytes) -> Result<Option<(usize, Bytes)>, SessionEnd>;

    /// Handles a closed WebSocket: `Ok` for a regular close, otherwise the complaint.
    fn closed(&mut self, how: Result<(), String>) -> SessionEnd;
}

/// A caller's request besides input.
#[derive(Clone, Copy, Debug)]
pub(super) enum Control {
    Resize {
        width: u16,
        height: u16,
    },
    /// Accepts no more input; accepted input is still sent.
    CloseInput,
}

/// The caller's ends of a session's streams.
pub(super) struct SessionIo {
    pub(super) readers: Vec<Option<mpsc::Sender<Bytes>>>,
    /// Complete messages for the input channel.
    pub(super) input: Option<mpsc::Receiver<Bytes>>,
    pub(super) control: Option<mpsc::Receiver<Control>>,
    /// Whether the protocol can signal the end of input.
    pub(super) half_close: bool,
    /// Receives the end before the readers are closed.
    pub(super) ended: watch::Sender<Option<SessionEnd>>,
}

/// Runs a session until the end; dropping the handle closes the connection.
pub(super) fn start(
    upgraded: Upgraded,
    conversation: impl Conversation,
    session_io: SessionIo,
) -> AbortOnDropHandle<()> {
    let SessionIo { readers, input, control, half_close, ended } = session_io;
    let now = upgraded.clock.now();
    let mut driver = Driver {
        socket: Socket::new(upgraded.io, Role::Client),
        conversation,
        readers: readers.into_iter().map(|reader| reader.map(PollSender::new)).collect(),
        held: None,
        input,
        control,
        half_close,
        pulse: KeepAlive::new(upgraded.clock, now),
    };
    // A separate task: pings go on while no stream of the session is polled.
    AbortOnDropHandle::new(tokio::spawn(async move {
        let end = poll_fn(|cx| driver.poll(cx)).await;
        tracing::debug!(?end, "a session with a pod ended");
        // Published before `driver`, and thereby the readers' senders, is dropped: a reader that
        // sees a closed channel can read the reason.
        ended.send_replace(Some(end));
    }))
}

/// The state of the task of a session.
struct Driver<C> {
    socket: Socket,
    conversation: C,
    readers: Vec<Option<PollSender<Bytes>>>,
    /// A message whose reader's channel is full.
    held: Option<(usize, Bytes)>,
    input: Option<mpsc::Receiver<Bytes>>,
    control: Option<mpsc::Receiver<Control>>,
    half_close: bool,
    pulse: KeepAlive,
}

impl<C: Conversation> Driver<C> {
    /// Moves messages until neither side can go on, or the session ends.
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<SessionEnd> {
        for _ in 0..STEPS {
            match self.step(cx) {
                Ok(true) => {}
                Ok(false) => return Poll::Pending,
                Err(end) => {
                    self.socket.close(cx);
                    return Poll::Ready(end);
                }
            }
        }
        // Out of steps: yields so that a busy session does not starve other tasks of the thread.
        cx.waker().wake_by_ref();
        Poll::Pending
    }

    /// Advances the timer, sending and receiving; returns whether any of them moved.
    fn step(&mut self, cx: &mut Context<'_>) -> Result<bool, SessionEnd> {
        let ticked = self.pulse.poll(cx, self.held.is_some())?;
        let sent = self.send(cx)?;
        let received = self.receive(cx)?;
        Ok(ticked || sent || received)
    }

    /// Writes out the buffer, then the next message; returns whether a message was sent.
    fn send(&mut self, cx: &mut Context<'_>) -> Result<bool, SessionEnd> {
        match self.socket.poll_flush(cx) {
            Poll::Pending => return Ok(false),
            // Messages that arrived before are still to be read, and say more than this error.
            Poll::Ready(Err(error)) => return self.cannot_send(error),
            Poll::Ready(Ok(())) => {}
        }
        let Some(message) = self.next_message(cx) else { return Ok(false) };
        match self.socket.start_send(cx, message) {
            Ok(()) => Ok(true),
            Err(error) => self.cannot_send(error),
        }
    }

    /// The next message: a ping, a control message or input, in this order.
    fn next_message(&mut self, cx: &mut Context<'_>) -> Option<Message> {
        // Pings go first: endless input must not hold them back.
        if let Some(payload) = self.pulse.ping() {
            return Some(Message::Ping(payload));
        }
        while let Some(Poll::Ready(asked)) = self.control.as_mut().map(|asked| asked.poll_recv(cx))
        {
            match asked {
                Some(Control::Resize { width, height }) => return Some(resize(width, height)),
                Some(Control::CloseInput) => self.input.iter_mut().for_each(mpsc::Receiver::close),
                None => self.control = None,
            }
        }
        let Poll::Ready(input) = self.input.as_mut()?.poll_recv(cx) else { return None };
        if let Some(message) = input {
            self.pulse.input_sent();
            return Some(Message::Binary(message));
        }
        self.input = None;
        let close = Bytes::from_static(&[CLOSE_CHANNEL, INPUT_CHANNEL]);
        self.half_close.then_some(Message::Binary(close))
    }

    /// Stops sending. The server may already have sent the reason, or a regular end.
    fn cannot_send(&mut self, error: tungstenite::Error) -> Result<bool, SessionEnd> {
        tracing::debug!(%error, "the session accepts no more input");
        self.input = None;
        self.control = None;
        self.pulse.give_up();
        Ok(false)
    }

    /// Delivers the held message, or reads one; returns whether there was progress.
    fn receive(&mut self, cx: &mut Context<'_>) -> Result<bool, SessionEnd> {
        if let Some((reader, data)) = self.held.take() {
            return Ok(self.deliver(cx, reader, data));
        }
        let message = match self.socket.poll_read(cx) {
            Poll::Pending => return Ok(false),
            Poll::Ready(Ok(message)) => message,
            Poll::Ready(Err(error)) => return Err(self.broken(error)),
        };
        self.pulse.received();
        match message {
            Message::Binary(data) if data.len() > 1 => {
                self.held = self.conversation.sort(data[0], data.slice(1..))?;
            }
            Message::Pong(payload) => self.pulse.answered(&payload),
            Message::Text(_) => {
                return Err(SessionEnd::broken(
                    "the server sent text where only bytes are allowed",
                ));
            }
            Message::Close(None) => return Err(self.conversation.closed(Ok(()))),
            Message::Close(Some(frame)) => {
                let code = u16::from(frame.code);
                // 1000 is a regular end; 1005 stands for a frame without a code.
                let how = match code {
                    1000 | 1005 => Ok(()),
                    _ => Err(format!("the server closed with code {code} {:?}", &*frame.reason)),
                };
                return Err(self.conversation.closed(how));
            }
            // Empty messages announce the beginning of the session; the socket answers pings.
            Message::Binary(_) | Message::Ping(_) | Message::Frame(_) => {}
        }
        Ok(true)
    }

    /// Hands a message to the reader; returns false when the reader's channel is full. Without a
    /// reader the message is dropped.
    fn deliver(&mut self, cx: &mut Context<'_>, reader: usize, data: Bytes) -> bool {
        let Some(Some(sender)) = self.readers.get_mut(reader) else { return true };
        match sender.poll_reserve(cx) {
            Poll::Pending => {
                self.held = Some((reader, data));
                return false;
            }
            Poll::Ready(Ok(())) if sender.send_item(data).is_ok() => {}
            Poll::Ready(_) => self.readers[reader] = None,
        }
        // Time that the reader took is no silence of the server.
        self.pulse.received();
        true
    }

    /// The end for a connection that failed.
    fn broken(&mut self, error: tungstenite::Error) -> SessionEnd {
        use tungstenite::Error;
        use tungstenite::error::{CapacityError, ProtocolError};
        let why = match &error {
            Error::ConnectionClosed | Error::AlreadyClosed => "it was closed",
            Error::Capacity(CapacityError::MessageTooLong { .. }) => {
                let text = format!("the server sent a message of more than {MESSAGE_LIMIT} bytes");
                return SessionEnd::because(text, error);
            }
            Error::Protocol(ProtocolError::ResetWithoutClosingHandshake) => {
                "the connection ended without a word"
            }
            Error::Protocol(_) | Error::Utf8(_) => "the server violates the WebSocket protocol",
            _ => "the connection broke",
        };
        match self.conversation.closed(Err(why.to_owned())) {
            SessionEnd::Broken { why, source: None } => SessionEnd::because(why, error),
            end => end,
        }
    }
}

/// Builds a message for the resize channel.
fn resize(width: u16, height: u16) -> Message {
    let mut message = vec![RESIZE_CHANNEL];
    message.extend(format!("{{\"Width\":{width},\"Height\":{height}}}").into_bytes());
    Message::Binary(message.into())
}

/// Monitors whether the other end is alive.
struct KeepAlive {
    clock: Clock,
    timer: Pin<Box<dyn Future<Output = ()> + Send>>,
    next_ping: Instant,
    ping_due: bool,
    last_received: Instant,
    /// Pings sent.
    sent: u64,
    /// Highest number of an answered ping.
    answered: u64,
    /// Pings sent when input was last sent.
    input_at: Option<u64>,
    /// Whether nothing can be sent any more.
    pings_disabled: bool,
}

impl KeepAlive {
    fn new(clock: Clock, now: Instant) -> Self {
        let next_ping = now + PING;
        Self {
            timer: alarm(&clock, next_ping),
            clock,
            next_ping,
            ping_due: false,
            last_received: now,
            sent: 0,
            answered: 0,
            input_at: None,
            pings_disabled: false,
        }
    }

    /// Polls the timer; returns whether the timer fired. `stalled`: the session is waiting for a
    /// reader.
    fn poll(&mut self, cx: &mut Context<'_>, stalled: bool) -> Result<bool, SessionEnd> {
        if self.timer.as_mut().poll(cx).is_pending() {
            return Ok(false);
        }
        let now = self.clock.now();
        let limit = if self.input_was_read() { SILENCE } else { INPUT_IDLE_TIMEOUT };
        // A stalled session reads nothing, so that silence proves nothing about the server.
        if !stalled && now >= self.last_received + limit {
            let seconds = limit.as_secs();
            return Err(SessionEnd::broken(format!("the server said nothing for {seconds} s")));
        }
        if now >= self.next_ping {
            self.ping_due = !self.pings_disabled;
            self.next_ping = now + PING;
        }
        let dead = if stalled { self.next_ping } else { self.last_received + limit };
        self.timer = alarm(&self.clock, self.next_ping.min(dead));
        Ok(true)
    }

    /// Returns the payload of a ping, when one is due.
    fn ping(&mut self) -> Option<Bytes> {
        if !std::mem::take(&mut self.ping_due) {
            return None;
        }
        self.sent += 1;
        Some(Bytes::copy_from_slice(&self.sent.to_be_bytes()))
    }

    /// Notes an answered ping.
    fn answered(&mut self, payload: &[u8]) {
        if let Ok(number) = payload.try_into().map(u64::from_be_bytes) {
            // A peer may answer pings that were never sent.
            self.answered = self.answered.max(number.min(self.sent));
        }
    }

    /// Notes a sign of life.
    fn received(&mut self) {
        self.last_received = self.clock.now();
    }

    /// Notes that input was sent after the pings so far.
    fn input_sent(&mut self) {
        self.input_at = Some(self.sent);
    }

    /// Stops the pings of a connection that cannot send.
    fn give_up(&mut self) {
        self.pings_disabled = true;
        self.ping_due = false;
    }

    /// Whether the server has read all input. The server reads in order: an answered ping confirms
    /// all input that was sent before it.
    fn input_was_read(&self) -> bool {
        self.input_at.is_none_or(|sent| self.answered > sent)
    }
}

/// A timer that owns a clock.
fn alarm(clock: &Clock, at: Instant) -> Pin<Box<dyn Future<Output = ()> + Send>> {
    let clock = clock.clone();
    Box::pin(async move { clock.sleep_until(at).await })
}
