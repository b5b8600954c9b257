//! A canned API server that pushes changes on demand:
//! `load --kind pod --n 10000 [--seed 1] [--protobuf FILE]`. The server prints two addresses, of
//! the API and of the control port, and serves until the standard input ends.
//!
//! Objects are text made beforehand with three holes: resourceVersion, time stamp and a padding
//! whose length differs from version to version. The server answers plain HTTP/1.1 with chunked
//! bodies, as a real server streams: lists in pages, streaming lists, watches, and discovery. A
//! watch that does not begin at the present is answered 410. Not an API server: there are no
//! writes.

mod control;
mod discovery;
mod feed;
mod http;
mod objects;
mod protobuf;
mod state;

use std::collections::BTreeMap;
use std::io::{self, Read};
use std::net::TcpListener;
use std::sync::Arc;
use std::thread;

use objects::Kind;
use state::State;

fn main() -> io::Result<()> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let named: BTreeMap<&str, &str> = words
        .chunks_exact(2)
        .map(|pair| (pair[0].trim_start_matches("--"), pair[1].as_str()))
        .collect();
    let number = |name: &str, default: u64| -> u64 {
        named.get(name).map_or(default, |text| text.parse().expect("a number"))
    };
    let kind = match named.get("kind").copied().unwrap_or("pod") {
        "pod" => Kind::Pod,
        "widget" => Kind::Widget,
        other => panic!("no kind {other:?}: pod or widget"),
    };
    let count = usize::try_from(number("n", 10_000)).expect("a size");
    let mut state = State::new(kind, count, number("seed", 1));
    if let Some(file) = named.get("protobuf") {
        state.protobuf = Some(protobuf::load(file, count)?);
    }
    let state = Arc::new(state);

    let api = TcpListener::bind(("127.0.0.1", u16::try_from(number("port", 0)).unwrap_or(0)))?;
    let control = TcpListener::bind(("127.0.0.1", 0))?;
    println!("http://{} {}", api.local_addr()?, control.local_addr()?);
    serve(api, &state, http::connection);
    serve(control, &state, control::connection);
    // The parent process ends this process by closing the input, or by ending.
    io::stdin().read_to_end(&mut Vec::new())?;
    Ok(())
}

type Serve = fn(std::net::TcpStream, &Arc<State>) -> io::Result<()>;

fn serve(listener: TcpListener, state: &Arc<State>, serve: Serve) {
    let state = Arc::clone(state);
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let state = Arc::clone(&state);
            // A client that hangs up needs no report.
            thread::spawn(move || stream.set_nodelay(true).and_then(|()| serve(stream, &state)));
        }
    });
}
