//! A driver that is no client: `drain` reads the load generator's bytes and drops them. The cost is
//! the lower bound of every other driver, and the bytes per second are the load generator's upper
//! bound.
//!
//! The program takes the arguments of a driver, and the phases `sync` (a streaming list), `events`
//! and `churn`.

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use measure::{Args, Control, Kind, Line, Phase, Window};

/// Bytes per read; as many as the frameworks use.
const READ: usize = 64 << 10;
const LOOK: Duration = Duration::from_micros(200);
const PATIENCE: Duration = Duration::from_secs(120);

fn main() -> io::Result<()> {
    let args = Args::read();
    let mut control = Control::connect(&args.control)?;
    let read = Arc::new(AtomicU64::new(0));
    for phase in &args.phases {
        control.ask("mark")?;
        let window = Window::begin();
        let (name, count, due) = match *phase {
            Phase::Sync => {
                connect(&args, &read)?;
                ("sync", args.objects, format!("check listed={}", args.objects))
            }
            Phase::Events { count, .. } => {
                control.start(&format!("events count={count} window=0"))?;
                ("events", count, format!("check events={count}"))
            }
            Phase::Churn { updates } => {
                let count = updates * args.objects;
                control.start(&format!("events count={count} window=0"))?;
                ("churn", count, format!("check events={count}"))
            }
            ref other => {
                return Err(io::Error::other(format!("no phase {other:?} without a client")));
            }
        };
        // Waits until all was sent.
        control.ask(&due)?;
        let sent = measure::version(control.ask("stats")?.get("bytes").map_or("", String::as_str));
        wait_for(&read, sent)?;
        let (cpu, wall, each) = (window.cpu(), window.wall(), count as f64);
        Line::of(name)
            .with("count", count)
            .with("cpu_us", cpu as f64 / 1e3 / each)
            .with("wall_s", wall.as_secs_f64())
            .with("per_s", each / wall.as_secs_f64())
            .print();
    }
    Ok(())
}

/// Requests a streaming list and reads the list, then the watch, on a separate thread.
fn connect(args: &Args, read: &Arc<AtomicU64>) -> io::Result<()> {
    let address = args.server.trim_start_matches("http://").trim_end_matches('/');
    let path = match args.kind {
        Kind::Pod => "/api/v1/pods",
        Kind::Widget => "/apis/peers.example.dev/v1/widgets",
    };
    let mut stream = TcpStream::connect(address)?;
    write!(
        stream,
        "GET {path}?watch=true&sendInitialEvents=true HTTP/1.1\r\nHost: {address}\r\n\
         Accept: application/json\r\n\r\n"
    )?;
    let read = Arc::clone(read);
    thread::spawn(move || {
        let mut buffer = vec![0; READ];
        while let Ok(bytes @ 1..) = stream.read(&mut buffer) {
            read.fetch_add(bytes as u64, Ordering::Release);
        }
    });
    Ok(())
}

fn wait_for(read: &AtomicU64, sent: u64) -> io::Result<()> {
    let deadline = Instant::now() + PATIENCE;
    while read.load(Ordering::Acquire) < sent {
        if Instant::now() > deadline {
            return Err(io::Error::other("not everything that was sent arrived"));
        }
        thread::sleep(LOOK);
    }
    Ok(())
}
