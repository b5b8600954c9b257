//! The control port: a command a line, an answer a line. `events count=N [window=W] [rate=R]`,
//! `ack N`, `expire changed=K`, `watched`, `state`, `stats`.

use std::collections::BTreeMap;
use std::io::{self, BufRead, BufReader, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use measure::fingerprint;

use crate::state::{Job, State};

pub fn connection(stream: TcpStream, state: &Arc<State>) -> io::Result<()> {
    let mut write = stream.try_clone()?;
    for line in BufReader::new(stream).lines() {
        let line = line?;
        let (command, rest) = line.split_once(' ').unwrap_or((&line, ""));
        if command == "ack" {
            state.acknowledged.store(rest.parse().unwrap_or(0), Ordering::Release);
            continue;
        }
        let fields: BTreeMap<&str, u64> = rest
            .split_whitespace()
            .filter_map(|word| word.split_once('='))
            .map(|(name, value)| (name, value.parse().unwrap_or(0)))
            .collect();
        let field = |name: &str| fields.get(name).copied().unwrap_or(0);
        let answer = match command {
            "events" => events(state, field("count"), field("window"), field("rate")),
            "expire" => expire(state, field("changed").max(1)),
            "watched" => said(state.is_watched(), "nobody watches"),
            "state" => hash(state),
            "stats" => stats(state),
            _ => "error unknown".to_owned(),
        };
        writeln!(write, "{answer}")?;
    }
    Ok(())
}

fn said(is_so: bool, otherwise: &str) -> String {
    if is_so { "ok".to_owned() } else { format!("error {otherwise}") }
}

fn events(state: &State, count: u64, window: u64, rate: u64) -> String {
    if !state.is_watched() {
        return "error nobody watches".to_owned();
    }
    let (last, object) = (state.current() + count, state.upcoming(count));
    state.acknowledged.store(0, Ordering::Release);
    if !state.order(Job::Events { count, window, rate }) {
        return "error busy".to_owned();
    }
    format!("ok last={last} namespace={} name={}", object.namespace, object.name)
}

/// Objects change while nobody is told, then the watch ends.
fn expire(state: &State, changed: u64) -> String {
    if !state.is_watched() {
        return "error nobody watches".to_owned();
    }
    let object = state.upcoming(changed);
    for _ in 0..changed {
        state.change(0);
    }
    let last = state.current();
    if !state.order(Job::Expire) {
        return "error busy".to_owned();
    }
    format!("ok last={last} namespace={} name={}", object.namespace, object.name)
}

fn hash(state: &State) -> String {
    let hash = state.objects.iter().enumerate().fold(0_u64, |hash, (index, object)| {
        let version = state.version(index).to_string();
        hash.wrapping_add(fingerprint(&object.namespace, &object.name, &version))
    });
    format!("ok hash={hash:016x} objects={} version={}", state.objects.len(), state.current())
}

fn stats(state: &State) -> String {
    let counts = &state.counts;
    let all = [
        ("pages", &counts.pages),
        ("streaming_lists", &counts.streaming_lists),
        ("watches", &counts.watches),
        ("events", &counts.events),
        ("expired", &counts.expired),
        ("bytes", &counts.bytes),
        ("unknown", &counts.unknown),
    ];
    let texts: Vec<String> = all
        .iter()
        .map(|(name, count)| format!("{name}={}", count.load(Ordering::Relaxed)))
        .collect();
    format!("ok {}", texts.join(" "))
}
