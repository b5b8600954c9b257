//! Decoding of gzip answers while they arrive.
//!
//! On request, an API server compresses answers above 128 KiB; from 1.37 on the server writes
//! watches as one gzip member per event. So a body may consist of any number of members, and each
//! chunk is passed on as soon as the chunk is complete. Output is produced in chunks of at most 64
//! KiB: the reader limits the total size that a small input may expand to. Not included:
//! compression of requests, and other encodings.

// DESIGN.md, 18: Gzip is decoded inside of the tower layers

use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::{Buf, Bytes};
use compression_codecs::core::util::{PartialBuffer, WriteBuffer};
use compression_codecs::{DecodeV2, GzipDecoder};
use http::header::{ACCEPT_ENCODING, CONTENT_ENCODING, CONTENT_LENGTH};
use http::{HeaderMap, HeaderValue};
use http_body::{Body, Frame};
use http_body_util::BodyExt;

use super::message::{HttpRequest, HttpResponse, ResponseBody};
use windlass_core::error::BoxError;

/// Largest decoded chunk, in bytes.
const PIECE: usize = 64 << 10;
/// Most input that may yield no output, in bytes. Otherwise the header of a member, with a name
/// without end, would keep the stream alive, and no limit of the output would stop it.
const MAX_INPUT_WITHOUT_OUTPUT: usize = 64 << 10;

/// Extension of a request that asks for gzip. Without the extension the answer should be
/// uncompressed.
#[derive(Clone, Copy, Debug)]
pub(in crate::client) struct GzipRequested;

/// Sets the header `Accept-Encoding`; returns whether the answer is to be decoded here. A layer
/// that has set the header also decodes the answer.
pub(in crate::client) fn ask(request: &mut HttpRequest) -> bool {
    if request.headers().contains_key(ACCEPT_ENCODING) {
        return false;
    }
    let wanted = request.extensions().get::<GzipRequested>().is_some();
    // Without the header any encoding would be allowed.
    let value = HeaderValue::from_static(if wanted { "gzip" } else { "identity" });
    request.headers_mut().insert(ACCEPT_ENCODING, value);
    true
}

/// Returns the answer with a decoded body: a proxy may compress the body without a request for
/// compression.
pub(in crate::client) fn decoded(answer: HttpResponse) -> HttpResponse {
    let body = match encoding(answer.headers()) {
        None => return answer,
        Some(Ok(())) => |body| Gunzip::new(body).boxed_unsync(),
        Some(Err(())) => |body| UnknownEncoding(body).boxed_unsync(),
    };
    let mut answer = answer.map(body);
    // Both describe the compressed body.
    answer.headers_mut().remove(CONTENT_LENGTH);
    answer.headers_mut().remove(CONTENT_ENCODING);
    answer
}

/// Returns the encoding: `None` for plain, `Err` for any but gzip.
fn encoding(headers: &HeaderMap) -> Option<Result<(), ()>> {
    let value = headers.get(CONTENT_ENCODING)?.as_bytes().trim_ascii();
    match value.to_ascii_lowercase().as_slice() {
        b"" | b"identity" => None,
        b"gzip" | b"x-gzip" => Some(Ok(())),
        _ => Some(Err(())),
    }
}

/// Returns whether `error` stems from data that would be as wrong the next time.
pub(in crate::client) fn is_undecodable(error: &(dyn std::error::Error + 'static)) -> bool {
    matches!(error.downcast_ref(), Some(GzipFault::Corrupt(_) | GzipFault::UnknownEncoding))
}

/// Reason why a body cannot be decoded.
#[derive(Clone, Debug, PartialEq, Eq)]
enum GzipFault {
    /// The data is no valid gzip.
    Corrupt(String),
    /// The body ended within a member.
    Truncated,
    /// The body has an encoding that was not requested.
    UnknownEncoding,
}

impl fmt::Display for GzipFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Corrupt(why) => write!(f, "the answer is not valid gzip: {why}"),
            Self::Truncated => f.write_str("the answer ended in the middle of its gzip data"),
            Self::UnknownEncoding => {
                f.write_str("the answer has a Content-Encoding that was not asked for")
            }
        }
    }
}

impl std::error::Error for GzipFault {}

/// Body of an unknown encoding: the first frame is an error.
struct UnknownEncoding(#[expect(dead_code, reason = "dropping it ends the request")] ResponseBody);

impl Body for UnknownEncoding {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        Poll::Ready(Some(Err(GzipFault::UnknownEncoding.into())))
    }
}

/// Decoder of a gzip body.
struct Gunzip {
    body: ResponseBody,
    decoder: Decoder,
    /// Received bytes that are not decoded yet.
    input: Bytes,
    /// Whether the end or an error was returned.
    ended: bool,
}

impl Gunzip {
    fn new(body: ResponseBody) -> Self {
        Self { body, decoder: Decoder::new(), input: Bytes::new(), ended: false }
    }

    fn end(&mut self, why: Option<BoxError>) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        self.ended = true;
        Poll::Ready(why.map(Err))
    }
}

impl Body for Gunzip {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        let this = &mut *self;
        if this.ended {
            return Poll::Ready(None);
        }
        loop {
            match this.decoder.decode(&mut this.input) {
                Err(fault) => return this.end(Some(fault.into())),
                Ok(plain) if !plain.is_empty() => {
                    return Poll::Ready(Some(Ok(Frame::data(plain.into()))));
                }
                Ok(_) => {}
            }
            match std::task::ready!(Pin::new(&mut this.body).poll_frame(cx)) {
                // The connection's end is an end of the data only between two members.
                None if this.decoder.is_between() => return this.end(None),
                None => return this.end(Some(GzipFault::Truncated.into())),
                Some(Err(error)) => return this.end(Some(error)),
                Some(Ok(frame)) => match frame.into_data() {
                    Ok(data) => this.input = data,
                    Err(trailers) => return Poll::Ready(Some(Ok(trailers))),
                },
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        self.ended
    }
}

/// Decoder of gzip members, in sequence, from input that may be cut anywhere.
struct Decoder {
    member: GzipDecoder,
    /// Whether the input ended within a member.
    is_within: bool,
    /// Bytes of input since the last byte of output.
    silent: usize,
    /// Fault that is returned after the output before it.
    fault: Option<GzipFault>,
    /// Output of a step. A piece is a copy with exactly the necessary size: a small event must not
    /// keep the memory of a large event.
    scratch: Box<[u8]>,
}

impl Decoder {
    fn new() -> Self {
        Self {
            member: GzipDecoder::new(),
            is_within: false,
            silent: 0,
            fault: None,
            scratch: vec![0; PIECE].into(),
        }
    }

    /// Returns whether the input ended at the end of a member.
    fn is_between(&self) -> bool {
        !self.is_within
    }

    /// Consumes `input` and returns at most a [`PIECE`]; nothing when the decoder needs more input.
    fn decode(&mut self, input: &mut Bytes) -> Result<Vec<u8>, GzipFault> {
        loop {
            if let Some(fault) = self.fault.take() {
                return Err(fault);
            }
            let plain = self.step(input);
            if !plain.is_empty() || (input.is_empty() && self.fault.is_none()) {
                return Ok(plain);
            }
        }
    }

    /// Decodes until the input, the room for output, or a member ends.
    fn step(&mut self, input: &mut Bytes) -> Vec<u8> {
        let mut source = PartialBuffer::new(&input[..]);
        let mut output = WriteBuffer::new_initialized(&mut self.scratch);
        let ended = if input.is_empty() {
            // Output that had no room in the last piece. `decode` fails without input.
            self.member.flush(&mut output).map(|_| false)
        } else {
            self.member.decode(&mut source, &mut output)
        };
        let (read, plain) = (source.written_len(), output.written().to_vec());
        input.advance(read);
        self.is_within |= read > 0;
        self.silent = if plain.is_empty() { self.silent + read } else { 0 };
        let begun = ended.and_then(|ended| {
            // Members have streams and checksums of their own.
            self.is_within &= !ended;
            if ended { self.member.reinit() } else { Ok(()) }
        });
        if let Err(error) = begun {
            self.fault = Some(GzipFault::Corrupt(error.to_string()));
        } else if self.silent > MAX_INPUT_WITHOUT_OUTPUT {
            self.fault = Some(GzipFault::Corrupt("64 KiB of it contain no data".to_owned()));
        }
        plain
    }
}

/// Decodes `pieces`; returns the output and whether they end between two members, or `None` for
/// invalid gzip. For the fuzz targets.
pub fn inflate<'a>(pieces: impl IntoIterator<Item = &'a [u8]>) -> Option<(Vec<u8>, bool)> {
    let mut decoder = Decoder::new();
    let mut plain = Vec::new();
    for piece in pieces {
        let mut input = Bytes::copy_from_slice(piece);
        loop {
            let decoded = decoder.decode(&mut input).ok()?;
            if decoded.is_empty() {
                break;
            }
            plain.extend(decoded);
        }
    }
    Some((plain, decoder.is_between()))
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use flate2::{Compression, Crc, GzBuilder, write::GzEncoder};
    use proptest::prelude::*;

    use super::*;

    // Flags of a member's header (RFC 1952).
    const HAS_CRC: u8 = 2;
    const HAS_NAME: u8 = 8;

    fn gzip(plain: &[u8]) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
        encoder.write_all(plain).unwrap();
        encoder.finish().unwrap()
    }

    /// Decodes `body`, cut at `cuts`; returns the output and whether the body ended between two
    /// members.
    fn decode(body: &[u8], cuts: &[usize]) -> Result<(Vec<u8>, bool), GzipFault> {
        let mut decoder = Decoder::new();
        let mut plain = Vec::new();
        let mut from = 0;
        for cut in cuts.iter().copied().chain([body.len()]) {
            let cut = cut.clamp(from, body.len());
            let mut input = Bytes::copy_from_slice(&body[from..cut]);
            loop {
                let piece = decoder.decode(&mut input)?;
                assert!(piece.len() <= PIECE);
                if piece.is_empty() {
                    break;
                }
                plain.extend(piece);
            }
            from = cut;
        }
        Ok((plain, decoder.is_between()))
    }

    #[test]
    fn a7_members_follow_one_another_and_each_is_told_when_it_is_there() {
        let mut decoder = Decoder::new();
        for event in ["{\"a\":1}\n", "", "{\"b\":2}\n"] {
            let mut input = Bytes::from(gzip(event.as_bytes()));
            let mut decoded = decoder.decode(&mut input).unwrap();
            decoded.extend(decoder.decode(&mut input).unwrap());
            assert_eq!(decoded, event.as_bytes());
            assert!(decoder.is_between());
        }
    }

    #[test]
    fn a_member_that_fills_whole_pieces_ends_with_its_footer_whenever_that_comes() {
        for length in [PIECE - 1, PIECE, PIECE + 1, 2 * PIECE] {
            let plain = vec![b'x'; length];
            let body = gzip(&plain);
            for footer in 0..=8 {
                let decoded = decode(&body, &[body.len() - 8 + footer]);
                assert_eq!(decoded, Ok((plain.clone(), true)), "{length} {footer}");
            }
            assert_eq!(decode(&body[..body.len() - 8], &[]), Ok((plain, false)), "{length}");
        }
    }

    #[test]
    fn every_part_of_a_header_is_skipped() {
        for (extra, name, comment) in [
            (None, None, None),
            (Some(vec![7; 300]), Some("n"), Some("c")),
            (Some(vec![]), None, Some("")),
        ] {
            let mut builder = GzBuilder::new();
            if let Some(extra) = extra {
                builder = builder.extra(extra);
            }
            if let Some(name) = name {
                builder = builder.filename(name);
            }
            if let Some(comment) = comment {
                builder = builder.comment(comment);
            }
            let mut encoder = builder.write(Vec::new(), Compression::fast());
            encoder.write_all(b"plain").unwrap();
            let body = encoder.finish().unwrap();
            assert_eq!(decode(&body, &[]), Ok((b"plain".to_vec(), true)));
            // Adds a header checksum, which flate2 does not write: the flag and two bytes.
            let plain_header = body[3] == 0;
            if plain_header {
                let mut with_crc = body.clone();
                with_crc[3] |= HAS_CRC;
                let mut crc = Crc::new();
                crc.update(&with_crc[..10]);
                let [low, high, ..] = crc.sum().to_le_bytes();
                with_crc.splice(10..10, [low, high]);
                assert_eq!(decode(&with_crc, &[]), Ok((b"plain".to_vec(), true)));
                with_crc[10] ^= 1;
                assert!(matches!(decode(&with_crc, &[]), Err(GzipFault::Corrupt(_))));
            }
        }
    }

    #[test]
    fn what_is_no_gzip_or_was_damaged_is_told() {
        let good = gzip(b"some text that is long enough to be worth compressing, long enough");
        for at in [0, 1, 2, good.len() - 1, good.len() - 8, good.len() - 12] {
            let mut bad = good.clone();
            bad[at] ^= 0x55;
            assert!(matches!(decode(&bad, &[]), Err(GzipFault::Corrupt(_))), "byte {at}");
        }
        let mut trailing = good;
        trailing.extend(b"<html>");
        assert!(matches!(decode(&trailing, &[]), Err(GzipFault::Corrupt(_))));
        let mut endless = vec![0x1f, 0x8b, 8, HAS_NAME, 0, 0, 0, 0, 0, 0];
        endless.resize(MAX_INPUT_WITHOUT_OUTPUT + 1, b'n');
        assert!(matches!(decode(&endless, &[]), Err(GzipFault::Corrupt(_))));
    }

    #[test]
    fn data_before_a_fault_is_returned_first() {
        let mut decoder = Decoder::new();
        let mut input = Bytes::from([gzip(b"{}\n").as_slice(), b"<html>"].concat());
        assert_eq!(decoder.decode(&mut input), Ok(b"{}\n".to_vec()));
        assert!(matches!(decoder.decode(&mut input), Err(GzipFault::Corrupt(_))));
        let mut damaged = gzip(b"{}\n");
        *damaged.last_mut().unwrap() ^= 1;
        let (mut decoder, mut input) = (Decoder::new(), Bytes::from(damaged));
        assert_eq!(decoder.decode(&mut input), Ok(b"{}\n".to_vec()));
        assert!(matches!(decoder.decode(&mut input), Err(GzipFault::Corrupt(_))));
    }

    #[test]
    fn a_bomb_comes_out_in_small_pieces() {
        let bomb = gzip(&vec![0; 8 << 20]);
        assert!(bomb.len() < 64 << 10, "{}", bomb.len());
        assert_eq!(decode(&bomb, &[]).unwrap().0.len(), 8 << 20);
    }

    proptest! {
        #[test]
        fn cuts_do_not_matter_and_a_truncated_body_is_never_complete(
            plain in proptest::collection::vec(any::<u8>(), 0..2000),
            again in 0_usize..3,
            mut cuts in proptest::collection::vec(0_usize..3000, 0..6),
        ) {
            cuts.sort_unstable();
            let one = gzip(&plain);
            let body = one.repeat(again + 1);
            let whole = decode(&body, &cuts);
            prop_assert_eq!(whole, Ok((plain.repeat(again + 1), true)));
            for cut in cuts.iter().map(|cut| cut % one.len()).filter(|cut| *cut > 0) {
                let end = body.len() - cut;
                let (_, between) = decode(&body[..end], &[]).unwrap();
                prop_assert!(!between, "{} of {}", end, body.len());
            }
        }

        #[test]
        fn no_bytes_make_it_panic(
            body in proptest::collection::vec(any::<u8>(), 0..500),
            flags in 0_u8..32,
        ) {
            let mut with_header = vec![0x1f, 0x8b, 8, flags, 0, 0, 0, 0, 0, 0];
            with_header.extend(&body);
            let _ = decode(&body, &[]);
            let _ = decode(&with_header, &[3, 77, 300]);
        }
    }
}
