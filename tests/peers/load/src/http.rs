//! HTTP/1.1, as little as clients need: requests in sequence, chunked bodies.

use std::collections::BTreeMap;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use crate::state::State;
use crate::{discovery, feed};

/// A request that was read.
#[derive(Debug)]
pub struct Request {
    pub method: String,
    pub path: String,
    pub query: BTreeMap<String, String>,
    pub accept: String,
}

impl Request {
    /// A parameter's value; empty when the parameter is absent.
    pub fn parameter(&self, name: &str) -> &str {
        self.query.get(name).map_or("", String::as_str)
    }

    fn read(from: &mut impl BufRead) -> io::Result<Option<Self>> {
        let mut line = String::new();
        if from.read_line(&mut line)? == 0 {
            return Ok(None);
        }
        let mut words = line.split_whitespace();
        let method = words.next().unwrap_or_default().to_owned();
        let target = words.next().unwrap_or_default();
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        let pair = |text: &str| {
            let (name, value) = text.split_once('=').unwrap_or((text, ""));
            (name.to_owned(), value.to_owned())
        };
        let mut request = Self {
            method,
            path: path.to_owned(),
            query: query.split('&').map(pair).collect(),
            accept: String::new(),
        };
        let mut body = 0;
        loop {
            let mut header = String::new();
            from.read_line(&mut header)?;
            let Some((name, value)) = header.trim_end().split_once(':') else { break };
            match name.to_ascii_lowercase().as_str() {
                "accept" => value.trim().clone_into(&mut request.accept),
                "content-length" => body = value.trim().parse().unwrap_or(0),
                _ => {}
            }
        }
        io::copy(&mut from.take(body), &mut io::sink())?;
        Ok(Some(request))
    }
}

pub fn connection(stream: TcpStream, state: &Arc<State>) -> io::Result<()> {
    let mut write = stream.try_clone()?;
    let mut read = BufReader::new(stream);
    while let Some(request) = Request::read(&mut read)? {
        if request.path == state.kind.path() && request.method == "GET" {
            if matches!(request.parameter("watch"), "true" | "1") {
                feed::watch(&mut write, state, &request)?;
            } else {
                feed::list(&mut write, state, &request)?;
            }
            continue;
        }
        let (code, body) = match discovery::document(&request.path) {
            Some(body) if request.method == "GET" => ("200 OK", body.to_owned()),
            _ => {
                state.counts.unknown.fetch_add(1, Ordering::Relaxed);
                ("404 Not Found", discovery::not_found(&request))
            }
        };
        write!(
            write,
            "HTTP/1.1 {code}\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        )?;
    }
    Ok(())
}

/// A chunked body under way. Chunks collect until they are flushed.
#[derive(Debug)]
pub struct Body<'a> {
    stream: &'a mut TcpStream,
    state: &'a State,
    buffer: Vec<u8>,
    chunk: usize,
}

/// Size of a piece that is sent at once.
const FULL: usize = 64 << 10;
/// A chunk's length in eight digits, and a line's end.
const HEADER: usize = 10;

impl<'a> Body<'a> {
    pub fn begin(stream: &'a mut TcpStream, state: &'a State, kind: &str) -> Self {
        let head = format!(
            "HTTP/1.1 200 OK\r\nContent-Type: {kind}\r\nTransfer-Encoding: chunked\r\n\r\n"
        );
        let mut buffer = Vec::with_capacity(2 * FULL);
        buffer.extend_from_slice(head.as_bytes());
        Self { stream, state, buffer, chunk: 0 }
    }

    /// Begins a chunk; bytes pushed to the buffer belong to the chunk.
    pub fn chunk(&mut self) -> &mut Vec<u8> {
        self.chunk = self.buffer.len();
        self.buffer.extend_from_slice(b"00000000\r\n");
        &mut self.buffer
    }

    /// The chunk that is begun.
    pub fn inside(&mut self) -> &mut Vec<u8> {
        &mut self.buffer
    }

    /// Length of the chunk so far.
    pub fn chunk_len(&self) -> usize {
        self.buffer.len() - self.chunk - HEADER
    }

    /// Ends the chunk, and sends the buffer if the buffer is large.
    pub fn end_chunk(&mut self) -> io::Result<()> {
        let length = self.chunk_len();
        if length == 0 {
            self.buffer.truncate(self.chunk);
            return Ok(());
        }
        let digits = format!("{length:08x}");
        self.buffer[self.chunk..self.chunk + 8].copy_from_slice(digits.as_bytes());
        self.buffer.extend_from_slice(b"\r\n");
        if self.buffer.len() >= FULL { self.flush() } else { Ok(()) }
    }

    pub fn flush(&mut self) -> io::Result<()> {
        self.state.counts.bytes.fetch_add(self.buffer.len() as u64, Ordering::Relaxed);
        self.stream.write_all(&self.buffer)?;
        self.buffer.clear();
        Ok(())
    }

    pub fn finish(mut self) -> io::Result<()> {
        self.buffer.extend_from_slice(b"0\r\n\r\n");
        self.flush()
    }
}
