//! The control port: a command a line, an answer a line. `events count=N [window=W] [rate=R]`,
//! `ack N`, `expire changed=K`, `watched`, `state`, `stats`; `mark`, and
//! `check [events=N] [listed=N] [expired=N]`: was exactly that served since the mark? A phase whose
//! work did not take place fails.

use std::collections::BTreeMap;
use std::io::{self, BufRead, BufReader, Write};
use std::net::TcpStream;
use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};

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
            "watched" => said(state.is_watched(), "there is no watch"),
            "state" => hash(state),
            "mark" => mark(state),
            "check" => check(state, field("events"), field("listed"), field("expired")),
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
        return "error there is no watch".to_owned();
    }
    let (last, object) = (state.current() + count, state.upcoming(count));
    state.acknowledged.store(0, Ordering::Release);
    if !state.order(Job::Events { count, window, rate }) {
        return "error busy".to_owned();
    }
    format!("ok last={last} namespace={} name={}", object.namespace, object.name)
}

/// Objects change without an event, then the watch ends.
fn expire(state: &State, changed: u64) -> String {
    if !state.is_watched() {
        return "error there is no watch".to_owned();
    }
    // All over the list: a client that has the last change has read the whole list.
    let object = state.change_spread(changed);
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

fn mark(state: &State) -> String {
    let mut marked = state.marked.lock().unwrap_or_else(PoisonError::into_inner);
    *marked = state.counts.tally();
    "ok".to_owned()
}

fn check(state: &State, events: u64, listed: u64, expired: u64) -> String {
    if !state.is_watched() {
        return "error there is no watch".to_owned();
    }
    let before = *state.marked.lock().unwrap_or_else(PoisonError::into_inner);
    let now = state.counts.tally();
    let all = [
        ("events", now.events - before.events, events),
        ("objects in lists", now.listed - before.listed, listed),
        ("watches that expired", now.expired - before.expired, expired),
    ];
    match all.iter().find(|(_, is, due)| is != due) {
        Some((unit, is, due)) => format!("error {is} {unit} were served, not {due}: void"),
        None => "ok".to_owned(),
    }
}

fn stats(state: &State) -> String {
    let counts = &state.counts;
    let all = [
        ("pages", &counts.pages),
        ("streaming_lists", &counts.streaming_lists),
        ("listed", &counts.listed),
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::objects::Kind;

    #[test]
    fn a_phase_is_void_unless_exactly_its_work_was_served() {
        let state = State::new(Kind::Widget, 40, 1);
        assert!(state.attach(None).is_some());
        assert_eq!(mark(&state), "ok");
        state.counts.listed.fetch_add(20, Ordering::SeqCst);
        state.counts.expired.fetch_add(1, Ordering::SeqCst);
        let answer = check(&state, 0, 40, 1);
        assert_eq!(answer, "error 20 objects in lists were served, not 40: void");
        state.counts.listed.fetch_add(20, Ordering::SeqCst);
        assert_eq!(check(&state, 0, 40, 1), "ok");
        assert_eq!(mark(&state), "ok");
        assert!(check(&state, 0, 40, 1).starts_with("error 0 objects"));
        assert_eq!(check(&state, 0, 0, 0), "ok");
    }

    #[test]
    fn changes_without_events_are_spread_over_the_whole_list() {
        let state = State::new(Kind::Widget, 40, 1);
        let before: Vec<_> = (0..40).map(|index| state.version(index)).collect();
        let last = state.change_spread(4).name.clone();
        let changed: Vec<_> = (0..40).filter(|at| state.version(*at) > before[*at]).collect();
        assert_eq!(changed, [9, 19, 29, 39]);
        assert_eq!(last, state.objects[39].name);
        assert_eq!(state.version(39), state.current());
    }
}
