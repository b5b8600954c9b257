//! Compression of large answers, for clients that accept compression.

use std::io::Write;

use bytes::Bytes;
use flate2::Compression;
use flate2::write::GzEncoder;
use http::HeaderMap;
use http::header::ACCEPT_ENCODING;

use crate::http::body::Payload;
use crate::http::exchange::Reply;

/// Bytes from which on the answer with an object is compressed.
const LEAST: usize = 128 * 1024;
/// Bytes from which on a description of the API is compressed.
const LEAST_OF_OPENAPI: usize = 1400;

/// Compresses a reply if the reply is large and the client accepts it. Watches and sessions stay
/// unchanged.
pub(in crate::http) fn compress(headers: &HeaderMap, path: &str, reply: &mut Reply) {
    let is_openapi = path == "/openapi/v2";
    if is_openapi {
        // Sent with small answers, too: caches must not give a compressed answer to every client.
        reply.headers.push(("vary", "Accept-Encoding".to_owned()));
    }
    let least = if is_openapi { LEAST_OF_OPENAPI } else { LEAST };
    let Payload::Whole(Some(bytes)) = &mut reply.payload else { return };
    let is_known = ["application/json", "application/yaml", "application/vnd.kubernetes.protobuf"];
    let is_known = is_openapi || is_known.contains(&reply.media.as_str());
    if bytes.len() <= least || !is_known || !accepts(headers) {
        return;
    }
    // The fastest level, as upstream: the network is near.
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    let Ok(compressed) = encoder.write_all(bytes).and_then(|()| encoder.finish()) else { return };
    *bytes = Bytes::from(compressed);
    reply.headers.push(("content-encoding", "gzip".to_owned()));
    if !is_openapi {
        reply.headers.push(("vary", "Accept-Encoding".to_owned()));
    }
}

/// Whether a client accepts gzip.
fn accepts(headers: &HeaderMap) -> bool {
    let values = headers.get_all(ACCEPT_ENCODING).iter().filter_map(|value| value.to_str().ok());
    values.flat_map(|value| value.split(',')).any(|entry| {
        let mut parts = entry.split(';').map(str::trim);
        let is_gzip = parts.next().is_some_and(|name| name.eq_ignore_ascii_case("gzip"));
        is_gzip && !parts.any(|part| part.strip_prefix("q=").is_some_and(|q| q.parse() == Ok(0.0)))
    })
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use super::*;

    fn sent(encoding: &str, size: usize) -> Reply {
        let mut headers = HeaderMap::new();
        headers.insert(ACCEPT_ENCODING, encoding.parse().unwrap());
        let mut reply = Reply::bytes(200, "application/json", vec![b'x'; size]);
        compress(&headers, "/api/v1/pods", &mut reply);
        reply
    }

    #[test]
    fn large_answers_are_compressed_for_clients_that_accept_it() {
        let reply = sent("deflate, gzip", LEAST + 1);
        assert!(reply.headers.contains(&("content-encoding", "gzip".to_owned())));
        assert!(reply.headers.contains(&("vary", "Accept-Encoding".to_owned())));
        let Payload::Whole(Some(bytes)) = reply.payload else { panic!("no body") };
        let mut text = Vec::new();
        flate2::read::GzDecoder::new(&bytes[..]).read_to_end(&mut text).unwrap();
        assert_eq!(text, vec![b'x'; LEAST + 1]);
        for (encoding, size) in [("gzip", LEAST), ("identity", LEAST + 1), ("gzip;q=0", LEAST + 1)]
        {
            assert!(sent(encoding, size).headers.is_empty(), "{encoding} {size}");
        }
    }
}
