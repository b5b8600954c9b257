//! Moves messages between a WebSocket and the streams of a session, in one task.
//!
//! At most one message waits for its reader; until it is taken nothing else is read, which stops the
//! server. At most one message waits to be sent. So memory is bounded whatever either side does, and
//! sending goes on while receiving stands still.

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
use super::verdict::End;
use crate::client::Upgraded;
use crate::clock::Clock;

const PING: Duration = Duration::from_secs(15);
/// A connection that said nothing for so long is dead.
const SILENCE: Duration = Duration::from_secs(45);
/// The same while input may be waiting for the program: servers read no ping before it is taken.
const INPUT_SILENCE: Duration = Duration::from_secs(600);
/// Steps before other tasks get their turn.
const STEPS: usize = 64;
/// Says, followed by a channel, that nothing more will come on it (protocol version 5).
const CLOSE_CHANNEL: u8 = 255;
/// Of input, and of the data of a port.
pub(super) const INPUT_CHANNEL: u8 = 0;
const RESIZE_CHANNEL: u8 = 4;

/// What the channels of a protocol mean.
pub(super) trait Conversation: Send + 'static {
    /// Which reader a message is for, if any; the end when it is the last word.
    fn sort(&mut self, channel: u8, data: Bytes) -> Result<Option<(usize, Bytes)>, End>;

    /// The other end closed the WebSocket: `Ok` in good order, or with a complaint.
    fn closed(&mut self, how: Result<(), String>) -> End;
}

/// What a caller asks for besides input.
#[derive(Clone, Copy, Debug)]
pub(super) enum Control {
    Resize {
        width: u16,
        height: u16,
    },
    /// Nothing more is accepted as input; what was accepted is still sent.
    CloseInput,
}

/// The near ends of a session's streams.
pub(super) struct Wiring {
    pub(super) readers: Vec<Option<mpsc::Sender<Bytes>>>,
    /// Complete messages for the input channel.
    pub(super) input: Option<mpsc::Receiver<Bytes>>,
    pub(super) control: Option<mpsc::Receiver<Control>>,
    /// Can the end of input be told?
    pub(super) half_close: bool,
    /// Told the end before the readers see that there is nothing more.
    pub(super) ended: watch::Sender<Option<End>>,
}

/// Runs a session until it ends; dropping the handle closes the connection.
pub(super) fn start(
    upgraded: Upgraded,
    conversation: impl Conversation,
    wiring: Wiring,
) -> AbortOnDropHandle<()> {
    let Wiring { readers, input, control, half_close, ended } = wiring;
    let now = upgraded.clock.now();
    let mut driver = Driver {
        socket: Socket::new(upgraded.io, Role::Client),
        conversation,
        readers: readers.into_iter().map(|reader| reader.map(PollSender::new)).collect(),
        held: None,
        input,
        control,
        half_close,
        pulse: Pulse::new(upgraded.clock, now),
    };
    AbortOnDropHandle::new(tokio::spawn(async move {
        let end = poll_fn(|cx| driver.poll(cx)).await;
        tracing::debug!(?end, "a session with a pod ended");
        ended.send_replace(Some(end));
    }))
}

struct Driver<C> {
    socket: Socket,
    conversation: C,
    readers: Vec<Option<PollSender<Bytes>>>,
    /// A message whose reader has no room yet.
    held: Option<(usize, Bytes)>,
    input: Option<mpsc::Receiver<Bytes>>,
    control: Option<mpsc::Receiver<Control>>,
    half_close: bool,
    pulse: Pulse,
}

impl<C: Conversation> Driver<C> {
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<End> {
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
        cx.waker().wake_by_ref();
        Poll::Pending
    }

    /// Did anything move?
    fn step(&mut self, cx: &mut Context<'_>) -> Result<bool, End> {
        let ticked = self.pulse.poll(cx, self.held.is_some())?;
        let sent = self.send(cx)?;
        let received = self.receive(cx)?;
        Ok(ticked || sent || received)
    }

    fn send(&mut self, cx: &mut Context<'_>) -> Result<bool, End> {
        match self.socket.poll_flush(cx) {
            Poll::Pending => return Ok(false),
            // What was received before is still to be read, and says more than this.
            Poll::Ready(Err(error)) => return self.cannot_send(error),
            Poll::Ready(Ok(())) => {}
        }
        let Some(message) = self.next_message(cx) else { return Ok(false) };
        match self.socket.start_send(cx, message) {
            Ok(()) => Ok(true),
            Err(error) => self.cannot_send(error),
        }
    }

    fn next_message(&mut self, cx: &mut Context<'_>) -> Option<Message> {
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

    /// Nothing more can be sent, but the server may have said why, or that all is well.
    fn cannot_send(&mut self, error: tungstenite::Error) -> Result<bool, End> {
        tracing::debug!(%error, "nothing more can be sent to a pod");
        self.input = None;
        self.control = None;
        self.pulse.give_up();
        Ok(false)
    }

    fn receive(&mut self, cx: &mut Context<'_>) -> Result<bool, End> {
        if let Some((reader, data)) = self.held.take() {
            return Ok(self.deliver(cx, reader, data));
        }
        let message = match self.socket.poll_read(cx) {
            Poll::Pending => return Ok(false),
            Poll::Ready(Ok(message)) => message,
            Poll::Ready(Err(error)) => return Err(self.broken(error)),
        };
        self.pulse.heard();
        match message {
            Message::Binary(data) if data.len() > 1 => {
                self.held = self.conversation.sort(data[0], data.slice(1..))?;
            }
            Message::Pong(payload) => self.pulse.answered(&payload),
            Message::Text(_) => {
                return Err(End::broken("the server sent text where only bytes are allowed"));
            }
            Message::Close(None) => return Err(self.conversation.closed(Ok(()))),
            Message::Close(Some(frame)) => {
                let code = u16::from(frame.code);
                // 1000 is a good end; 1005 stands for a frame that does not say.
                let how = match code {
                    1000 | 1005 => Ok(()),
                    _ => Err(format!("the server closed with code {code} {:?}", &*frame.reason)),
                };
                return Err(self.conversation.closed(how));
            }
            // Empty ones say that the session has begun; pings are answered by the socket.
            Message::Binary(_) | Message::Ping(_) | Message::Frame(_) => {}
        }
        Ok(true)
    }

    /// Hands a message to its reader; false when that has no room. One whose reader is gone is
    /// thrown away.
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
        self.pulse.heard();
        true
    }

    fn broken(&mut self, error: tungstenite::Error) -> End {
        use tungstenite::Error;
        use tungstenite::error::{CapacityError, ProtocolError};
        let why = match &error {
            Error::ConnectionClosed | Error::AlreadyClosed => "it was closed",
            Error::Capacity(CapacityError::MessageTooLong { .. }) => {
                let text = format!("the server sent a message of more than {MESSAGE_LIMIT} bytes");
                return End::because(text, error);
            }
            Error::Protocol(ProtocolError::ResetWithoutClosingHandshake) => {
                "the connection ended without a word"
            }
            Error::Protocol(_) | Error::Utf8(_) => "the server does not keep to WebSocket",
            _ => "the connection broke",
        };
        match self.conversation.closed(Err(why.to_owned())) {
            End::Broken { why, source: None } => End::because(why, error),
            end => end,
        }
    }
}

/// A message for the resize channel.
fn resize(width: u16, height: u16) -> Message {
    let mut message = vec![RESIZE_CHANNEL];
    message.extend(format!("{{\"Width\":{width},\"Height\":{height}}}").into_bytes());
    Message::Binary(message.into())
}

/// Is the other end alive?
struct Pulse {
    clock: Clock,
    timer: Pin<Box<dyn Future<Output = ()> + Send>>,
    next_ping: Instant,
    ping_due: bool,
    heard: Instant,
    /// Pings sent, pings answered, and how many were sent when input was last sent.
    sent: u64,
    answered: u64,
    input_at: Option<u64>,
    /// Nothing can be sent any more.
    mute: bool,
}

impl Pulse {
    fn new(clock: Clock, now: Instant) -> Self {
        let next_ping = now + PING;
        Self {
            timer: alarm(&clock, next_ping),
            clock,
            next_ping,
            ping_due: false,
            heard: now,
            sent: 0,
            answered: 0,
            input_at: None,
            mute: false,
        }
    }

    /// Did time make something due? `stalled` says that it is us who do not listen.
    fn poll(&mut self, cx: &mut Context<'_>, stalled: bool) -> Result<bool, End> {
        if self.timer.as_mut().poll(cx).is_pending() {
            return Ok(false);
        }
        let now = self.clock.now();
        let limit = if self.input_was_read() { SILENCE } else { INPUT_SILENCE };
        if !stalled && now >= self.heard + limit {
            let seconds = limit.as_secs();
            return Err(End::broken(format!("the server said nothing for {seconds} s")));
        }
        if now >= self.next_ping {
            self.ping_due = !self.mute;
            self.next_ping = now + PING;
        }
        let dead = if stalled { self.next_ping } else { self.heard + limit };
        self.timer = alarm(&self.clock, self.next_ping.min(dead));
        Ok(true)
    }

    /// The payload of a ping, when one is due.
    fn ping(&mut self) -> Option<Bytes> {
        if !std::mem::take(&mut self.ping_due) {
            return None;
        }
        self.sent += 1;
        Some(Bytes::copy_from_slice(&self.sent.to_be_bytes()))
    }

    fn answered(&mut self, payload: &[u8]) {
        if let Ok(number) = payload.try_into().map(u64::from_be_bytes) {
            self.answered = self.answered.max(number.min(self.sent));
        }
    }

    fn heard(&mut self) {
        self.heard = self.clock.now();
    }

    fn input_sent(&mut self) {
        self.input_at = Some(self.sent);
    }

    fn give_up(&mut self) {
        self.mute = true;
        self.ping_due = false;
    }

    /// A server reads in order: it has read all input that was sent before a ping it answered.
    fn input_was_read(&self) -> bool {
        self.input_at.is_none_or(|sent| self.answered > sent)
    }
}

fn alarm(clock: &Clock, at: Instant) -> Pin<Box<dyn Future<Output = ()> + Send>> {
    let clock = clock.clone();
    Box::pin(async move { clock.sleep_until(at).await })
}
