//! The histories of all kinds, all listeners, and the violations.

use std::collections::VecDeque;
use std::hash::{Hash, Hasher};

use super::history::{History, KeyId, Scope};
use super::{Event, Listener, Shown, Violation};

/// Number of events that are remembered, to be printed with a violation.
const REMEMBERED: usize = 4096;
/// Number of these that are printed: those of the key that the violation is about.
const MOST_STATES: usize = 12;
/// Number of violations that are kept.
const MOST_VIOLATIONS: usize = 20;

/// All knowledge about a world.
#[derive(Debug, Default)]
pub struct Book {
    kinds: Vec<History>,
    listeners: Vec<Entry>,
    recent: VecDeque<(usize, KeyId, Event)>,
    violations: Vec<Violation>,
    /// Events that are checked once the histories are complete; `None`: at once.
    later: Option<Vec<Later>>,
    trace: Fnv,
    counts: Counts,
}

/// An event that is checked later.
#[derive(Debug)]
enum Later {
    Heard { listener: usize, namespace: String, name: String, event: Event },
    Removed(usize),
}

#[derive(Debug)]
struct Entry {
    kind: usize,
    listener: Listener,
    is_removed: bool,
}

/// Counts of commits, and of the events that listeners received.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// States that the server committed.
    pub commits: u64,
    /// Additions delivered.
    pub added: u64,
    /// Updates delivered.
    pub updated: u64,
    /// Deletions delivered.
    pub deleted: u64,
    /// Events delivered again by a resync.
    pub resynced: u64,
}

impl Book {
    /// Creates a book whose histories are written before any listener is shown a state of them.
    pub fn new() -> Self {
        Self::default()
    }

    /// Creates a book whose histories may come later than the states shown of them: listeners are
    /// checked by [`catch_up`](Self::catch_up).
    pub fn late() -> Self {
        Self { later: Some(Vec::new()), ..Self::default() }
    }

    /// Adds a kind; returns the kind's number.
    pub fn kind(&mut self, name: &str) -> usize {
        self.kinds.push(History::new(name));
        self.kinds.len() - 1
    }

    /// Returns a kind's history.
    pub fn history(&self, kind: usize) -> &History {
        &self.kinds[kind]
    }

    /// Notes that the server committed a state of a key; returns the state's position.
    pub fn commit(
        &mut self,
        kind: usize,
        namespace: &str,
        name: &str,
        object: Option<Shown>,
    ) -> (KeyId, u64) {
        let history = &mut self.kinds[kind];
        let key = history.key(namespace, name);
        history.commit(key, object);
        let position = history.last(key);
        self.counts.commits += 1;
        (kind, key, object).hash(&mut self.trace);
        (key, position)
    }

    /// Adds a key that may be written later.
    pub fn know(&mut self, kind: usize, namespace: &str, name: &str) {
        self.kinds[kind].key(namespace, name);
    }

    /// Returns all objects, by kind.
    pub fn backup(&self) -> Vec<std::collections::BTreeMap<KeyId, Shown>> {
        self.kinds.iter().map(History::now).collect()
    }

    /// Notes that the server went back to a backup.
    pub fn restore(&mut self, backup: &[std::collections::BTreeMap<KeyId, Shown>]) {
        for (history, states) in self.kinds.iter_mut().zip(backup) {
            history.restore(states);
        }
        backup.hash(&mut self.trace);
    }

    /// Adds a listener; returns the listener's number.
    pub fn listener(&mut self, kind: usize, name: &str, scope: Scope) -> usize {
        let listener = Listener::new(name, scope);
        self.listeners.push(Entry { kind, listener, is_removed: false });
        self.listeners.len() - 1
    }

    /// Notes that the listener was removed: the listener must not receive any event any more.
    pub fn remove(&mut self, listener: usize) {
        if let Some(later) = &mut self.later {
            later.push(Later::Removed(listener));
            return;
        }
        self.listeners[listener].is_removed = true;
        // The listener's keys are not needed any more.
        let entry = &mut self.listeners[listener].listener;
        *entry = Listener::new(&entry.name, entry.scope.clone());
    }

    /// Returns a listener.
    pub fn of(&self, listener: usize) -> &Listener {
        &self.listeners[listener].listener
    }

    /// Delivers an event to a listener; `view` is the state of the key that the cache shows, where
    /// known.
    pub fn deliver(
        &mut self,
        listener: usize,
        namespace: &str,
        name: &str,
        event: Event,
        view: Option<Option<Shown>>,
    ) {
        match event {
            Event::Added(_) => self.counts.added += 1,
            Event::Updated { .. } => self.counts.updated += 1,
            Event::Deleted(_) => self.counts.deleted += 1,
            Event::Resync(_) => self.counts.resynced += 1,
        }
        if let Some(later) = &mut self.later {
            let (namespace, name) = (namespace.to_owned(), name.to_owned());
            later.push(Later::Heard { listener, namespace, name, event });
            return;
        }
        self.look(listener, namespace, name, event, view);
    }

    fn look(
        &mut self,
        listener: usize,
        namespace: &str,
        name: &str,
        event: Event,
        view: Option<Option<Shown>>,
    ) {
        let entry = &mut self.listeners[listener];
        let history = &self.kinds[entry.kind];
        let Some(key) = history.find_key(namespace, name) else {
            let observer = entry.listener.name.clone();
            let text = "received an object that never was".to_owned();
            let violation = Violation::new("G-C1", &observer, text);
            return self.broken(violation.of(format!("{namespace}/{name}")));
        };
        (listener, key, event).hash(&mut self.trace);
        let delivered = if entry.is_removed {
            let text = format!("received {event:?} after it was removed");
            Err(Violation::new("G-C6", &entry.listener.name, text))
        } else {
            entry.listener.deliver(history, key, event, view)
        };
        self.recent.push_back((listener, key, event));
        if self.recent.len() > REMEMBERED {
            self.recent.pop_front();
        }
        if let Err(violation) = delivered {
            let name = self.kinds[self.listeners[listener].kind].name(key);
            self.broken(violation.of(name));
        }
    }

    /// Checks the events that listeners received while the histories were not complete.
    pub fn catch_up(&mut self) {
        let Some(later) = self.later.take() else { return };
        for late in later {
            match late {
                Later::Heard { listener, namespace, name, event } => {
                    self.look(listener, &namespace, &name, event, None);
                }
                Later::Removed(listener) => self.remove(listener),
            }
        }
        self.later = Some(Vec::new());
    }

    /// Notes a violation that was found elsewhere.
    pub fn broken(&mut self, mut violation: Violation) {
        if self.violations.len() >= MOST_VIOLATIONS {
            return;
        }
        if let Some((kind, key)) = self.key_of(&violation.key) {
            violation.before = self.kinds[kind].last_states(key, MOST_STATES as u64);
            let events = self.recent.iter().filter(|(listener, about, _)| {
                *about == key && self.listeners[*listener].kind == kind
            });
            let lines: Vec<String> = events
                .map(|(listener, _, event)| {
                    format!("{}: {event:?}", self.listeners[*listener].listener.name)
                })
                .collect();
            let from = lines.len().saturating_sub(2 * MOST_STATES);
            violation.before.extend(lines.into_iter().skip(from));
        }
        self.violations.push(violation);
    }

    /// Notes the violation of an error.
    pub fn note(&mut self, looked: Result<(), Violation>) {
        if let Err(violation) = looked {
            self.broken(violation);
        }
    }

    fn key_of(&self, name: &str) -> Option<(usize, KeyId)> {
        self.kinds.iter().enumerate().find_map(|(kind, history)| {
            let key = history.keys().find(|key| history.name(*key) == name)?;
            Some((kind, key))
        })
    }

    /// Checks, while the world rests, that every listener knows the last state of every key.
    ///
    /// # Errors
    /// The first listener and key that differ.
    pub fn settled(&self) -> Result<(), Violation> {
        (0..self.kinds.len()).try_for_each(|kind| self.settled_of(kind))
    }

    /// Checks the same for a kind.
    ///
    /// # Errors
    /// The first listener and key that differ.
    pub fn settled_of(&self, kind: usize) -> Result<(), Violation> {
        let entries = self.listeners.iter().filter(|entry| entry.kind == kind);
        for entry in entries.filter(|entry| !entry.is_removed) {
            entry.listener.settled(&self.kinds[kind])?;
        }
        Ok(())
    }

    /// Forgets all but the last states. Call this method when the world rests.
    pub fn forget(&mut self) {
        self.kinds.iter_mut().for_each(History::forget);
    }

    /// Adds an action to the trace.
    pub fn trace_this(&mut self, part: impl Hash) {
        part.hash(&mut self.trace);
    }

    /// Returns the hash of all actions and events.
    pub fn trace(&self) -> u64 {
        self.trace.finish()
    }

    /// Returns the counts of events.
    pub fn counts(&self) -> Counts {
        self.counts
    }

    /// Returns the violations, in the order in which they were found.
    pub fn violations(&self) -> &[Violation] {
        &self.violations
    }
}

/// FNV-1a: the same in every build and process.
#[derive(Debug)]
struct Fnv(u64);

impl Default for Fnv {
    fn default() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }
}

impl Hasher for Fnv {
    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = (self.0 ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }

    fn finish(&self) -> u64 {
        self.0
    }
}
