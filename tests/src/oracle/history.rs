//! Every state that the server had of every key of a kind, in order.
//!
//! A position counts the states of a key, from the first state on, across epochs: a restored backup
//! is a further state of each key. Versions repeat after that, positions do not.

use std::collections::{BTreeMap, VecDeque};

use super::Shown;

/// Number of a key of a kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct KeyId(usize);

impl KeyId {
    /// Returns the number.
    pub fn index(self) -> usize {
        self.0
    }
}

/// A state of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct State {
    /// Number of times that the server's versions had gone backwards before.
    pub epoch: u32,
    /// The object; `None`: there was none.
    pub object: Option<Shown>,
}

/// Part of a kind that a cache watches.
#[derive(Clone, Debug, Default)]
pub struct Scope {
    /// Only these namespaces; empty means all.
    pub namespaces: Vec<String>,
    /// Predicate on serial numbers: only the selected objects.
    pub selects: Option<fn(u64) -> bool>,
}

impl Scope {
    /// Whether `namespace` is part of the scope.
    pub fn covers(&self, namespace: &str) -> bool {
        self.namespaces.is_empty() || self.namespaces.iter().any(|own| own == namespace)
    }

    /// Returns the part of a state that the scope shows.
    pub fn shows(&self, state: Option<Shown>) -> Option<Shown> {
        state.filter(|shown| self.selects.is_none_or(|selects| selects(shown.serial)))
    }
}

/// The states of a kind's keys.
#[derive(Clone, Debug)]
pub struct History {
    kind: String,
    names: Vec<(String, String)>,
    ids: BTreeMap<String, BTreeMap<String, KeyId>>,
    logs: Vec<Log>,
    epoch: u32,
}

#[derive(Clone, Debug)]
struct Log {
    /// Position of the first state that is still known.
    first: u64,
    states: VecDeque<State>,
}

impl History {
    /// Creates a kind without objects.
    pub fn new(kind: &str) -> Self {
        Self {
            kind: kind.to_owned(),
            names: Vec::new(),
            ids: BTreeMap::new(),
            logs: Vec::new(),
            epoch: 0,
        }
    }

    /// Returns the kind's name.
    pub fn kind(&self) -> &str {
        &self.kind
    }

    /// Returns the key's number; a new key has been absent so far.
    pub fn key(&mut self, namespace: &str, name: &str) -> KeyId {
        if let Some(known) = self.find_key(namespace, name) {
            return known;
        }
        let id = KeyId(self.names.len());
        self.names.push((namespace.to_owned(), name.to_owned()));
        let absent = State { epoch: self.epoch, object: None };
        self.logs.push(Log { first: 0, states: VecDeque::from([absent]) });
        self.ids.entry(namespace.to_owned()).or_default().insert(name.to_owned(), id);
        id
    }

    /// Returns the number of a key that was written once.
    pub fn find_key(&self, namespace: &str, name: &str) -> Option<KeyId> {
        self.ids.get(namespace)?.get(name).copied()
    }

    /// Returns `namespace/name`.
    pub fn name(&self, key: KeyId) -> String {
        let (namespace, name) = &self.names[key.0];
        format!("{} {namespace}/{name}", self.kind)
    }

    /// Returns namespace and name, by which caches order their lists.
    pub fn place(&self, key: KeyId) -> (&str, &str) {
        let (namespace, name) = &self.names[key.0];
        (namespace, name)
    }

    /// Returns the key's namespace.
    pub fn namespace(&self, key: KeyId) -> &str {
        &self.names[key.0].0
    }

    /// Returns all keys.
    pub fn keys(&self) -> impl Iterator<Item = KeyId> + use<> {
        (0..self.names.len()).map(KeyId)
    }

    /// Notes that the server committed a state.
    pub fn commit(&mut self, key: KeyId, object: Option<Shown>) {
        self.logs[key.0].states.push_back(State { epoch: self.epoch, object });
    }

    /// Notes that the server went back to these states; a key without a state is absent.
    pub fn restore(&mut self, states: &BTreeMap<KeyId, Shown>) {
        self.epoch += 1;
        for key in self.keys() {
            self.commit(key, states.get(&key).copied());
        }
    }

    /// Returns the number of times that versions went backwards.
    pub fn epoch(&self) -> u32 {
        self.epoch
    }

    /// Returns the present objects, by key.
    pub fn now(&self) -> BTreeMap<KeyId, Shown> {
        self.keys().filter_map(|key| Some((key, self.at(key, self.last(key)).object?))).collect()
    }

    /// Returns the position of the key's first known state.
    pub fn first(&self, key: KeyId) -> u64 {
        self.logs[key.0].first
    }

    /// Returns the position of the key's last state.
    pub fn last(&self, key: KeyId) -> u64 {
        let log = &self.logs[key.0];
        log.first + log.states.len() as u64 - 1
    }

    /// Returns the state at a position; a forgotten state counts as absent.
    pub fn at(&self, key: KeyId, position: u64) -> State {
        let log = &self.logs[key.0];
        let at = position.checked_sub(log.first).and_then(|at| usize::try_from(at).ok());
        let state = at.and_then(|at| log.states.get(at)).copied();
        state.unwrap_or(State { epoch: 0, object: None })
    }

    /// Returns the first position from `from` on with exactly this object.
    pub fn find(&self, key: KeyId, from: u64, shown: Shown) -> Option<u64> {
        let mut positions = from.max(self.first(key))..=self.last(key);
        positions.find(|at| self.at(key, *at).object == Some(shown))
    }

    /// Returns the first position after `after` at which `scope` does not show an object of `uid`.
    pub fn gone(&self, key: KeyId, after: u64, uid: u64, scope: &Scope) -> Option<u64> {
        let mut positions = (after + 1).max(self.first(key))..=self.last(key);
        positions
            .find(|at| scope.shows(self.at(key, *at).object).is_none_or(|shown| shown.uid != uid))
    }

    /// Forgets all but the last state of each key.
    pub fn forget(&mut self) {
        for log in &mut self.logs {
            let old = log.states.len() - 1;
            log.states.drain(..old);
            log.first += old as u64;
        }
    }

    /// Describes the key's last `most` states in words.
    pub fn last_states(&self, key: KeyId, most: u64) -> Vec<String> {
        let from = self.first(key).max((self.last(key) + 1).saturating_sub(most));
        let line = |at| {
            let state = self.at(key, at);
            let object = state.object.map_or_else(|| "absent".to_owned(), |o| describe(&o));
            format!("server, state {at} (epoch {}): {object}", state.epoch)
        };
        (from..=self.last(key)).map(line).collect()
    }
}

/// Describes a version in words.
pub(super) fn describe(shown: &Shown) -> String {
    format!("uid {:x} version {} serial {}", shown.uid, shown.version, shown.serial)
}
