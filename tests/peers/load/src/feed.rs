//! Lists, streaming lists and watches, in JSON or in protobuf.

use std::io;
use std::net::TcpStream;
use std::sync::atomic::Ordering;
use std::thread;
use std::time::{Duration, Instant};

use measure::nanos;

use crate::http::{Body, Request};
use crate::protobuf as pb;
use crate::state::{Job, State};

/// Time between two looks at a closed window.
const WINDOW_PAUSE: Duration = Duration::from_micros(200);
/// No acknowledgement comes any more: the driver is gone.
const WINDOW_PATIENCE: Duration = Duration::from_secs(120);
const EXPIRED: &str = r#""kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"too old resource version","reason":"Expired","code":410}"#;

fn is_protobuf(state: &State, request: &Request) -> bool {
    state.protobuf.is_some() && request.accept.starts_with("application/vnd.kubernetes.protobuf")
}

pub fn list(stream: &mut TcpStream, state: &State, request: &Request) -> io::Result<()> {
    state.counts.pages.fetch_add(1, Ordering::Relaxed);
    let total = state.objects.len();
    let from = request.parameter("continue").parse::<usize>().unwrap_or(0).min(total);
    // As a real server: "any version" is answered from the cache, whole.
    let limit = match request.parameter("limit").parse::<usize>() {
        Ok(limit) if limit > 0 && request.parameter("resourceVersion") != "0" => limit,
        _ => total,
    };
    let to = (from + limit).min(total);
    let next = if to < total { to.to_string() } else { String::new() };
    // Counted when they are on their way, so that a client which hangs up halfway does not pass.
    let sent = || _ = state.counts.listed.fetch_add((to - from) as u64, Ordering::SeqCst);
    if let Some(objects) = state.protobuf.as_ref().filter(|_| is_protobuf(state, request)) {
        let mut body = Body::begin(stream, state, "application/vnd.kubernetes.protobuf");
        let bytes = pb::list(state, &objects[from..to], from, &next);
        for part in bytes.chunks(32 << 10) {
            body.chunk().extend_from_slice(part);
            body.end_chunk()?;
        }
        sent();
        return body.finish();
    }
    let mut body = Body::begin(stream, state, "application/json");
    let (kind, version) = (state.kind.name(), state.current());
    let api_version = state.kind.api_version();
    let head = format!(
        r#"{{"kind":"{kind}List","apiVersion":"{api_version}","metadata":{{"resourceVersion":"{version}","continue":"{next}"}},"items":["#
    );
    body.chunk().extend_from_slice(head.as_bytes());
    let preamble = if state.kind.is_typed_in_lists() { state.kind.preamble() } else { "{" };
    for index in from..to {
        let out = body.inside();
        if index > from {
            out.push(b',');
        }
        out.extend_from_slice(preamble.as_bytes());
        state.render(index, out);
        if body.chunk_len() >= 32 << 10 {
            body.end_chunk()?;
            body.chunk();
        }
    }
    body.inside().extend_from_slice(b"]}\n");
    body.end_chunk()?;
    sent();
    body.finish()
}

/// Encoding of a watch.
#[derive(Clone, Copy)]
struct Wire<'a> {
    state: &'a State,
    protobuf: Option<&'a [pb::Object]>,
}

impl Wire<'_> {
    fn event(&self, kind: &str, index: usize, out: &mut Vec<u8>) {
        if let Some(objects) = self.protobuf {
            return pb::event(self.state, kind, index, &objects[index], out);
        }
        out.extend_from_slice(b"{\"type\":\"");
        out.extend_from_slice(kind.as_bytes());
        out.extend_from_slice(b"\",\"object\":");
        out.extend_from_slice(self.state.kind.preamble().as_bytes());
        self.state.render(index, out);
        out.extend_from_slice(b"}\n");
    }

    /// The end of a streaming list's first part.
    fn end_of_list(&self, out: &mut Vec<u8>) {
        let version = self.state.current();
        if self.protobuf.is_some() {
            return pb::end_of_list(version, out);
        }
        let preamble = self.state.kind.preamble();
        let text = format!(
            r#"{{"type":"BOOKMARK","object":{preamble}"metadata":{{"resourceVersion":"{version}","creationTimestamp":null,"annotations":{{"k8s.io/initial-events-end":"true"}}}}}}}}"#
        );
        out.extend_from_slice(text.as_bytes());
        out.push(b'\n');
    }

    fn expired(&self, out: &mut Vec<u8>) {
        if self.protobuf.is_some() {
            return pb::expired(out);
        }
        out.extend_from_slice(b"{\"type\":\"ERROR\",\"object\":{");
        out.extend_from_slice(EXPIRED.as_bytes());
        out.extend_from_slice(b"}\n");
    }
}

pub fn watch(stream: &mut TcpStream, state: &State, request: &Request) -> io::Result<()> {
    let protobuf = state.protobuf.as_deref().filter(|_| is_protobuf(state, request));
    let wire = Wire { state, protobuf };
    let kind = match protobuf {
        Some(_) => "application/vnd.kubernetes.protobuf;stream=watch",
        None => "application/json",
    };
    let seconds = request.parameter("timeoutSeconds").parse().unwrap_or(1800);
    let deadline = Instant::now() + Duration::from_secs(seconds);
    let mut body = Body::begin(stream, state, kind);
    // The head of the answer goes out at once.
    body.flush()?;
    let version = if request.parameter("sendInitialEvents") == "true" {
        state.counts.streaming_lists.fetch_add(1, Ordering::Relaxed);
        let version = state.current();
        for index in 0..state.objects.len() {
            wire.event("ADDED", index, body.chunk());
            body.end_chunk()?;
        }
        state.counts.listed.fetch_add(state.objects.len() as u64, Ordering::SeqCst);
        wire.end_of_list(body.chunk());
        body.end_chunk()?;
        body.flush()?;
        Some(version)
    } else {
        match request.parameter("resourceVersion") {
            "" | "0" => None,
            text => Some(measure::version(text)),
        }
    };
    state.counts.watches.fetch_add(1, Ordering::Relaxed);
    let Some(watch) = state.attach(version) else {
        return expire(body, wire);
    };
    let outcome = follow(body, wire, watch, deadline);
    state.detach(watch);
    outcome
}

fn follow(mut body: Body<'_>, wire: Wire<'_>, watch: u64, deadline: Instant) -> io::Result<()> {
    loop {
        match wire.state.next(watch, deadline) {
            Err(_) | Ok(None) => return body.finish(),
            Ok(Some(Job::Expire)) => {
                wire.state.detach(watch);
                return expire(body, wire);
            }
            Ok(Some(Job::Events { count, window, rate })) => {
                events(&mut body, wire, count, window, rate)?;
            }
        }
    }
}

fn expire(mut body: Body<'_>, wire: Wire<'_>) -> io::Result<()> {
    wire.state.counts.expired.fetch_add(1, Ordering::SeqCst);
    wire.expired(body.chunk());
    body.end_chunk()?;
    body.finish()
}

fn events(
    body: &mut Body<'_>,
    wire: Wire<'_>,
    count: u64,
    window: u64,
    rate: u64,
) -> io::Result<()> {
    let begun = Instant::now();
    for sent in 0..count {
        if window > 0 && is_shut(wire.state, sent, window) {
            body.flush()?;
            open(wire.state, sent, window)?;
        }
        if let Some(nanos) = (sent * 1_000_000_000).checked_div(rate) {
            let due = begun + Duration::from_nanos(nanos);
            thread::sleep(due.saturating_duration_since(Instant::now()));
        }
        let stamp = if rate > 0 { nanos() } else { 0 };
        let index = wire.state.change(stamp);
        wire.event("MODIFIED", index, body.chunk());
        body.end_chunk()?;
        if rate > 0 {
            body.flush()?;
        }
    }
    body.flush()?;
    wire.state.counts.events.fetch_add(count, Ordering::SeqCst);
    Ok(())
}

fn is_shut(state: &State, sent: u64, window: u64) -> bool {
    sent >= state.acknowledged.load(Ordering::Acquire) + window
}

fn open(state: &State, sent: u64, window: u64) -> io::Result<()> {
    let begun = Instant::now();
    while is_shut(state, sent, window) {
        if begun.elapsed() > WINDOW_PATIENCE {
            return Err(io::Error::other("nothing was acknowledged"));
        }
        thread::sleep(WINDOW_PAUSE);
    }
    Ok(())
}
