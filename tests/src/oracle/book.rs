//! The histories of all kinds, all listeners, and what went wrong.

use std::collections::VecDeque;
use std::hash::{Hash, Hasher};

use super::history::{History, KeyId, Scope};
use super::{Event, Listener, Shown, Violation};

/// Events that are remembered to be told with a violation.
const REMEMBERED: usize = 4096;
/// Of these, those of the key that it is about.
const TOLD: usize = 12;
/// Violations that are kept.
const MOST_VIOLATIONS: usize = 20;

/// All that is known of a world.
#[derive(Debug, Default)]
pub struct Book {
    kinds: Vec<History>,
    listeners: Vec<Entry>,
    recent: VecDeque<(usize, KeyId, Event)>,
    violations: Vec<Violation>,
    /// Events that are looked at once the histories are complete; `None`: at once.
    later: Option<Vec<Later>>,
    trace: Fnv,
    counts: Counts,
}

/// What is looked at later.
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

/// What listeners were told.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// States that the server committed.
    pub commits: u64,
    /// Additions told.
    pub added: u64,
    /// Updates told.
    pub updated: u64,
    /// Deletions told.
    pub deleted: u64,
    /// Told again by a resync.
    pub resynced: u64,
}

impl Book {
    /// A book whose histories are written before anybody is shown anything of them.
    pub fn new() -> Self {
        Self::default()
    }

    /// A book whose histories may come later than what is shown of them: listeners are looked at
    /// by [`catch_up`](Self::catch_up).
    pub fn late() -> Self {
        Self { later: Some(Vec::new()), ..Self::default() }
    }

    /// Adds a kind; gives its number.
    pub fn kind(&mut self, name: &str) -> usize {
        self.kinds.push(History::new(name));
        self.kinds.len() - 1
    }

    /// A kind's history.
    pub fn history(&self, kind: usize) -> &History {
        &self.kinds[kind]
    }

    /// The server committed a state of a key; gives its position.
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

    /// A key that may be written later.
    pub fn know(&mut self, kind: usize, namespace: &str, name: &str) {
        self.kinds[kind].key(namespace, name);
    }

    /// All objects, by kind.
    pub fn backup(&self) -> Vec<std::collections::BTreeMap<KeyId, Shown>> {
        self.kinds.iter().map(History::now).collect()
    }

    /// The server went back to a backup.
    pub fn restore(&mut self, backup: &[std::collections::BTreeMap<KeyId, Shown>]) {
        for (history, states) in self.kinds.iter_mut().zip(backup) {
            history.restore(states);
        }
        backup.hash(&mut self.trace);
    }

    /// Adds a listener; gives its number.
    pub fn listener(&mut self, kind: usize, name: &str, scope: Scope) -> usize {
        let listener = Listener::new(name, scope);
        self.listeners.push(Entry { kind, listener, is_removed: false });
        self.listeners.len() - 1
    }

    /// The listener was removed: it must not be told anything any more.
    pub fn remove(&mut self, listener: usize) {
        if let Some(later) = &mut self.later {
            later.push(Later::Removed(listener));
            return;
        }
        self.listeners[listener].is_removed = true;
        // Its keys are not needed any more.
        let entry = &mut self.listeners[listener].listener;
        *entry = Listener::new(&entry.name, entry.scope.clone());
    }

    /// A listener.
    pub fn of(&self, listener: usize) -> &Listener {
        &self.listeners[listener].listener
    }

    /// A listener is told something; `view` is what its cache shows of the key, where known.
    pub fn hear(
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
            let who = entry.listener.name.clone();
            let text = "told an object that never was".to_owned();
            let violation = Violation::new("G-C1", &who, text);
            return self.broken(violation.of(format!("{namespace}/{name}")));
        };
        (listener, key, event).hash(&mut self.trace);
        let told = if entry.is_removed {
            let text = format!("told {event:?} after it was removed");
            Err(Violation::new("G-C6", &entry.listener.name, text))
        } else {
            entry.listener.hear(history, key, event, view)
        };
        self.recent.push_back((listener, key, event));
        if self.recent.len() > REMEMBERED {
            self.recent.pop_front();
        }
        if let Err(violation) = told {
            let name = self.kinds[self.listeners[listener].kind].name(key);
            self.broken(violation.of(name));
        }
    }

    /// Looks at what listeners were told while the histories were not complete.
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

    /// Something else was found.
    pub fn broken(&mut self, mut violation: Violation) {
        if self.violations.len() >= MOST_VIOLATIONS {
            return;
        }
        if let Some((kind, key)) = self.key_of(&violation.key) {
            violation.before = self.kinds[kind].tell(key, TOLD as u64);
            let told = self.recent.iter().filter(|(listener, heard, _)| {
                *heard == key && self.listeners[*listener].kind == kind
            });
            let lines: Vec<String> = told
                .map(|(listener, _, event)| {
                    format!("{}: {event:?}", self.listeners[*listener].listener.name)
                })
                .collect();
            let from = lines.len().saturating_sub(2 * TOLD);
            violation.before.extend(lines.into_iter().skip(from));
        }
        self.violations.push(violation);
    }

    /// Notes what is broken.
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

    /// The world rests: every listener must know the last state of every key.
    ///
    /// # Errors
    /// What the first one does not know.
    pub fn settled(&self) -> Result<(), Violation> {
        (0..self.kinds.len()).try_for_each(|kind| self.settled_of(kind))
    }

    /// The same of one kind.
    ///
    /// # Errors
    /// What the first one does not know.
    pub fn settled_of(&self, kind: usize) -> Result<(), Violation> {
        let entries = self.listeners.iter().filter(|entry| entry.kind == kind);
        for entry in entries.filter(|entry| !entry.is_removed) {
            entry.listener.settled(&self.kinds[kind])?;
        }
        Ok(())
    }

    /// Forgets all but the last states. Call it when the world rests.
    pub fn forget(&mut self) {
        self.kinds.iter_mut().for_each(History::forget);
    }

    /// Also part of the trace: something was done.
    pub fn trace_this(&mut self, what: impl Hash) {
        what.hash(&mut self.trace);
    }

    /// Hash of all that happened.
    pub fn trace(&self) -> u64 {
        self.trace.finish()
    }

    /// How much happened.
    pub fn counts(&self) -> Counts {
        self.counts
    }

    /// What was broken, the first first.
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
