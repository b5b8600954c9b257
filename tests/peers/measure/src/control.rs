//! The line protocol to the load generator: a command per line, an answer per line.

use std::collections::BTreeMap;
use std::io::{self, BufRead, BufReader, Write};
use std::net::TcpStream;

/// A connection to the load generator's control port.
#[derive(Debug)]
pub struct Control {
    read: BufReader<TcpStream>,
    write: TcpStream,
}

/// Changes that the load generator has begun to send.
#[derive(Clone, Debug)]
pub struct Started {
    /// The version of the last event.
    pub last: u64,
    /// The object of the last event.
    pub namespace: String,
    /// The object of the last event.
    pub name: String,
}

impl Control {
    /// Connects.
    pub fn connect(address: &str) -> io::Result<Self> {
        let write = TcpStream::connect(address)?;
        write.set_nodelay(true)?;
        Ok(Self { read: BufReader::new(write.try_clone()?), write })
    }

    /// Sends a command, returns the fields of the answer.
    pub fn ask(&mut self, command: &str) -> io::Result<BTreeMap<String, String>> {
        writeln!(self.write, "{command}")?;
        let mut line = String::new();
        self.read.read_line(&mut line)?;
        let mut words = line.split_whitespace();
        if words.next() != Some("ok") {
            return Err(io::Error::other(format!("{command:?} was answered {:?}", line.trim())));
        }
        let pair = |word: &str| word.split_once('=').map(|(k, v)| (k.to_owned(), v.to_owned()));
        Ok(words.filter_map(pair).collect())
    }

    /// Sends a command that begins a stream of changes.
    pub fn start(&mut self, command: &str) -> io::Result<Started> {
        let answer = self.ask(command)?;
        let field = |name: &str| answer.get(name).cloned().unwrap_or_default();
        Ok(Started {
            last: crate::version(&field("last")),
            namespace: field("namespace"),
            name: field("name"),
        })
    }

    /// Reports the number of finished reconciles, which opens the window. There is no answer.
    pub fn acknowledge(&mut self, done: u64) -> io::Result<()> {
        writeln!(self.write, "ack {done}")
    }
}
