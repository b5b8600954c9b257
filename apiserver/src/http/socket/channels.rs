//! Channels within a WebSocket: each message begins with the number of the channel.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use tokio_tungstenite::tungstenite::protocol::Message;

/// First byte of a message that closes a channel.
const CLOSE: u8 = 255;

/// Subprotocols of sessions with a command, as a kubelet takes them; a client may name none.
pub(super) const COMMAND: &[&str] = &[
    "",
    "channel.k8s.io",
    "base64.channel.k8s.io",
    "v4.channel.k8s.io",
    "v4.base64.channel.k8s.io",
];
/// Subprotocols of sessions with ports.
pub(super) const PORTS: &[&str] = &["", "v4.channel.k8s.io", "v4.base64.channel.k8s.io"];
/// The subprotocol in which clients can end the input. The server speaks this subprotocol, in place
/// of the kubelet.
pub(super) const NEWEST: &str = "v5.channel.k8s.io";

/// A subprotocol with channels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Channels {
    /// Whether messages are text: the number as a digit, and the data in base64.
    is_text: bool,
    /// Whether a client can close a channel.
    closes: bool,
    /// Whether the end of a command is sent as a `Status`, and not as text.
    has_status: bool,
}

/// A message of a client.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Received {
    /// Data on a channel.
    Data(u8, Bytes),
    /// The end of a channel.
    Close(u8),
    /// Nothing that means anything.
    Nothing,
}

impl Channels {
    /// Returns the rules of a subprotocol.
    pub(super) fn of(protocol: &str) -> Self {
        Self {
            is_text: protocol.contains("base64"),
            closes: protocol == NEWEST,
            has_status: protocol.starts_with('v'),
        }
    }

    /// Returns the message with data on a channel.
    pub(super) fn message(self, channel: u8, data: &[u8]) -> Message {
        if self.is_text {
            let digit = char::from(channel.wrapping_add(b'0'));
            return Message::text(format!("{digit}{}", STANDARD.encode(data)));
        }
        let mut bytes = Vec::with_capacity(data.len() + 1);
        bytes.push(channel);
        bytes.extend_from_slice(data);
        Message::binary(bytes)
    }

    /// Reads a message. An unreadable message is dropped, as by upstream.
    pub(super) fn read(self, message: Message) -> Received {
        let (Message::Text(_) | Message::Binary(_)) = message else { return Received::Nothing };
        let data = message.into_data();
        match data.split_first() {
            None => Received::Nothing,
            Some((&CLOSE, [channel])) if self.closes => Received::Close(*channel),
            Some((channel, rest)) if self.is_text => match STANDARD.decode(rest) {
                Ok(rest) => Received::Data(channel.wrapping_sub(b'0'), rest.into()),
                Err(_) => Received::Nothing,
            },
            Some((channel, _)) => Received::Data(*channel, data.slice(1..)),
        }
    }

    /// Returns the text on the error channel for the end of a command; `None` if there is none.
    pub(super) fn end(self, status: &serde_json::Value) -> Option<String> {
        if self.has_status {
            return Some(status.to_string());
        }
        status["message"].as_str().map(str::to_owned)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn data_carries_its_channel_in_both_forms() {
        let raw = Channels::of(NEWEST);
        assert_eq!(raw.message(1, b"ab"), Message::binary(&b"\x01ab"[..]));
        assert_eq!(raw.read(Message::binary(&b"\x00x"[..])), Received::Data(0, "x".into()));
        assert_eq!(raw.read(Message::binary(&[255, 0][..])), Received::Close(0));
        let text = Channels::of("v4.base64.channel.k8s.io");
        assert_eq!(text.message(1, b"ab"), Message::text("1YWI="));
        assert_eq!(text.read(Message::text("0YWI=")), Received::Data(0, "ab".into()));
        assert_eq!(text.read(Message::text("0!")), Received::Nothing);
        assert_eq!(text.read(Message::Ping(Bytes::new())), Received::Nothing);
    }

    #[test]
    fn only_the_newest_protocol_closes_channels_and_the_oldest_has_no_status() {
        let old = Channels::of("channel.k8s.io");
        assert_eq!(old.read(Message::binary(&[255, 0][..])), Received::Data(255, "\0".into()));
        let status = serde_json::json!({"status": "Success"});
        assert_eq!(old.end(&status), None);
        assert!(Channels::of(NEWEST).end(&status).is_some());
    }
}
