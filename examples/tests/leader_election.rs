//! The program `leader_election`, run as by a new user: a leader with an API server, and a rival
//! beside it.

// Helpers of tests may unwrap, as tests may.
#![allow(clippy::unwrap_used)]

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

/// Longer than any lease here takes to run out, on a busy machine.
const PATIENCE: Duration = Duration::from_secs(90);

struct Process {
    child: Child,
    lines: Receiver<String>,
}

impl Process {
    fn start(home: &Path, id: &str, kubeconfig: Option<&str>, flags: &[&str]) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_leader_election"));
        command.arg(format!("--id={id}")).arg("--hurry=5").env("HOME", home);
        for name in ["KUBECONFIG", "KUBERNETES_SERVICE_HOST", "KUBERNETES_SERVICE_PORT"] {
            command.env_remove(name);
        }
        if let Some(path) = kubeconfig {
            command.env("KUBECONFIG", path).arg("--lease-lock-name=rivals");
        }
        command.args(flags);
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let (said, lines) = channel();
        let stdout = BufReader::new(child.stdout.take().unwrap());
        std::thread::spawn(move || {
            stdout.lines().map_while(Result::ok).try_for_each(|line| said.send(line))
        });
        Self { child, lines }
    }

    /// Returns the next line that contains `part`.
    fn says(&mut self, part: &str) -> String {
        let mut seen = Vec::new();
        loop {
            match self.lines.recv_timeout(PATIENCE) {
                Ok(line) if line.contains(part) => return line,
                Ok(line) => seen.push(line),
                Err(why) => panic!("{part:?} was not said ({why}): {seen:#?}"),
            }
        }
    }

    fn signal(&self, name: &str) {
        let sent = Command::new("kill").args([name, &self.child.id().to_string()]).status();
        assert!(sent.unwrap().success());
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn mechanism_71_a_rival_leads_when_the_leader_stops_or_dies() {
    let home = std::env::temp_dir().join(format!("windlass-election-{}", std::process::id()));
    std::fs::create_dir_all(&home).unwrap();
    let mut server = Process::start(&home, "server", None, &[]);
    let line = server.says("KUBECONFIG=");
    let path = line.split_once("KUBECONFIG=").unwrap().1.split(' ').next().unwrap().to_owned();
    server.says("server: new leader: this process");
    server.says("server: started leading");

    // Rivals for a lease of their own: they can stop and die without ending the API server.
    let mut one = Process::start(&home, "one", Some(&path), &[]);
    one.says("one: started leading");
    let mut two = Process::start(&home, "two", Some(&path), &[]);
    two.says("two: new leader: one");
    one.signal("-INT");
    one.says("one: stopped leading");
    assert_eq!(one.child.wait().unwrap().code(), Some(0));
    two.says("two: started leading");

    let mut three = Process::start(&home, "three", Some(&path), &["--lend=true"]);
    three.says("three: new leader: two");
    two.signal("-KILL");
    three.says("three: started leading");

    // A process that asks for the lease gets the lease, for as long as that process runs.
    let mut laptop = Process::start(&home, "laptop", Some(&path), &["--ask=true"]);
    laptop.says("laptop: started leading");
    three.says("three: lent the lease");
    laptop.signal("-INT");
    laptop.says("laptop: stopped leading");
    three.says("three: started leading");
    server.signal("-INT");
    server.says("server: stopped leading");
    assert_eq!(server.child.wait().unwrap().code(), Some(0));
    std::fs::remove_dir_all(&home).unwrap();
}
