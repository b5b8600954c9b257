//! SPDY/3.1 within a WebSocket, as kubectl forwards ports: every stream echoes.
//!
//! A client opens two streams for each connection, for data and for errors. Headers of streams mean
//! nothing here, so they are not read; answers have none.

use bytes::{Buf, BytesMut};
use futures_util::StreamExt;
use tokio::time::timeout;
use tokio_tungstenite::tungstenite::protocol::Message;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;

use super::pods::IDLE;
use super::{LONGEST, SessionEnd, Socket, send};

/// Subprotocol of the tunnel.
pub(super) const TUNNEL: &str = "SPDY/3.1+portforward.k8s.io";

/// Bytes before the content of a frame.
const HEAD: usize = 8;
/// First bytes of a control frame: the bit that distinguishes control from data, and the version.
const CONTROL: [u8; 2] = [0x80, 3];
/// Types of control frames.
const SYN_STREAM: u16 = 1;
const SYN_REPLY: u16 = 2;
const PING: u16 = 6;
const GOAWAY: u16 = 7;

/// No headers, compressed: a block of deflate that is stored uncompressed, and an empty block, at
/// which readers deliver their data. The first of a connection begins with the header of zlib.
const NO_HEADERS: [u8; 16] =
    [0x78, 0x01, 0x00, 0x04, 0x00, 0xfb, 0xff, 0, 0, 0, 0, 0x00, 0x00, 0x00, 0xff, 0xff];
/// Length of that header.
const ZLIB: usize = 2;

/// State of a tunnel.
#[derive(Debug, Default)]
pub(super) struct Tunnel {
    /// Bytes that are no whole frame yet.
    held: BytesMut,
    /// Whether a stream has been answered.
    has_replied: bool,
}

/// Runs a tunnel until the client leaves.
pub(super) async fn run(socket: &mut Socket) -> Result<(), SessionEnd> {
    let mut tunnel = Tunnel::default();
    loop {
        let message = match timeout(IDLE, socket.next()).await {
            Ok(None | Some(Ok(Message::Close(_)))) => return Err(SessionEnd::Closed),
            Ok(Some(Ok(Message::Binary(bytes)))) => bytes,
            Ok(Some(Ok(_))) => continue,
            Ok(Some(Err(error))) => return Err(error.into()),
            Err(_) => return Ok(()),
        };
        let (answer, is_over) = tunnel.take(&message).map_err(SessionEnd::Broken)?;
        if !answer.is_empty() {
            send(socket, Message::binary(answer)).await?;
        }
        if is_over {
            return Ok(());
        }
    }
}

impl Tunnel {
    /// Takes bytes of the client; returns those of the answer, and whether the client says goodbye.
    fn take(&mut self, bytes: &[u8]) -> Result<(Vec<u8>, bool), CloseCode> {
        self.held.extend_from_slice(bytes);
        let mut answer = Vec::new();
        while let Some(head) = self.held.first_chunk::<HEAD>() {
            let head = *head;
            let length = u32::from_be_bytes([0, head[5], head[6], head[7]]) as usize;
            if length > LONGEST {
                return Err(CloseCode::Size);
            }
            if self.held.len() < HEAD + length {
                break;
            }
            let content = self.held.split_to(HEAD + length).split_off(HEAD);
            if self.answer(head, &content, &mut answer)? {
                return Ok((answer, true));
            }
        }
        Ok((answer, false))
    }

    /// Answers a frame; returns whether the client says goodbye.
    fn answer(
        &mut self,
        head: [u8; HEAD],
        content: &[u8],
        answer: &mut Vec<u8>,
    ) -> Result<bool, CloseCode> {
        if head[0] & CONTROL[0] == 0 {
            // Data, or the end of the client's half of a stream: both come back as they are.
            answer.extend_from_slice(&head);
            answer.extend_from_slice(content);
            return Ok(false);
        }
        if head[..2] != CONTROL {
            return Err(CloseCode::Protocol);
        }
        match u16::from_be_bytes([head[2], head[3]]) {
            SYN_STREAM => {
                let Some(mut stream) = content.get(..4) else { return Err(CloseCode::Protocol) };
                self.reply(stream.get_u32(), head[4], answer);
            }
            PING => {
                answer.extend_from_slice(&head);
                answer.extend_from_slice(content);
            }
            GOAWAY => return Ok(true),
            // Settings, windows and resets need no answer: nothing is kept of a stream.
            _ => {}
        }
        Ok(false)
    }

    /// Accepts a stream.
    fn reply(&mut self, stream: u32, flags: u8, answer: &mut Vec<u8>) {
        let headers = &NO_HEADERS[if self.has_replied { ZLIB } else { 0 }..];
        self.has_replied = true;
        let length = (headers.len() + 4).to_be_bytes();
        answer.extend_from_slice(&CONTROL);
        answer.extend_from_slice(&SYN_REPLY.to_be_bytes());
        // A stream that the client opens as ended has ended on both sides.
        answer.push(flags & 1);
        answer.extend_from_slice(&length[length.len() - 3..]);
        answer.extend_from_slice(&stream.to_be_bytes());
        answer.extend_from_slice(headers);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns a control frame.
    fn control(kind: u16, content: &[u8]) -> Vec<u8> {
        let length = u8::try_from(content.len()).unwrap();
        let kind = kind.to_be_bytes();
        [&[0x80, 3, kind[0], kind[1], 0, 0, 0, length], content].concat()
    }

    #[test]
    fn streams_are_accepted_and_their_data_comes_back() {
        let mut tunnel = Tunnel::default();
        let open = |stream: u8| control(SYN_STREAM, &[0, 0, 0, stream, 0, 0, 0, 0, 0, 0, 1, 2, 3]);
        let reply = |stream: u8, headers: &[u8]| {
            control(SYN_REPLY, &[&[0, 0, 0, stream], headers].concat())
        };
        let (first, _) = tunnel.take(&open(1)).unwrap();
        assert_eq!(first, reply(1, &NO_HEADERS));
        let data = [0, 0, 0, 3, 1, 0, 0, 2, b'h', b'i'];
        let both = [open(3), data.to_vec(), control(PING, &[0, 0, 0, 1])].concat();
        // Cut anywhere: frames are put together again.
        let mut answer = Vec::new();
        for byte in &both {
            answer.extend(tunnel.take(&[*byte]).unwrap().0);
        }
        let wanted = [reply(3, &NO_HEADERS[ZLIB..]), data.to_vec(), control(PING, &[0, 0, 0, 1])];
        assert_eq!(answer, wanted.concat());
        assert_eq!(tunnel.take(&control(GOAWAY, &[0; 8])), Ok((Vec::new(), true)));
    }

    #[test]
    fn frames_that_are_too_long_or_of_another_version_end_the_tunnel() {
        let long = [0, 0, 0, 1, 0, 0xff, 0xff, 0xff];
        assert_eq!(Tunnel::default().take(&long), Err(CloseCode::Size));
        let other = [0x80, 2, 0, 1, 0, 0, 0, 0];
        assert_eq!(Tunnel::default().take(&other), Err(CloseCode::Protocol));
        assert_eq!(Tunnel::default().take(&control(SYN_STREAM, &[])), Err(CloseCode::Protocol));
    }
}
