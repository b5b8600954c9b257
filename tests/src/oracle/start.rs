//! Rules for a cache that reports that it is synced (G-C7: only after a consistent first view).

use std::collections::BTreeMap;

use super::history::{History, KeyId, Scope};
use super::reader::reached;
use super::{Listener, Shown, Violation};

/// The least that a cache, or a listener, must show after reporting that it is synced.
#[derive(Clone, Debug)]
pub struct Start {
    positions: Vec<(KeyId, u64)>,
}

impl Start {
    /// Takes the server's present objects.
    pub fn now(history: &History) -> Self {
        Self { positions: history.keys().map(|key| (key, history.last(key))).collect() }
    }

    /// Takes the objects that a cache shows now: for a listener that comes late.
    pub fn of(history: &History, view: &BTreeMap<KeyId, Shown>) -> Self {
        let find = |(key, shown): (&KeyId, &Shown)| Some((*key, history.find(*key, 0, *shown)?));
        Self { positions: view.iter().filter_map(find).collect() }
    }

    /// Checks the cache `observer`, which reports the end of its first list and shows `view`.
    ///
    /// # Errors
    /// The first key that is shown in an older state than at the start.
    pub fn synced(
        &self,
        observer: &str,
        history: &History,
        scope: &Scope,
        view: &BTreeMap<KeyId, Shown>,
    ) -> Result<(), Violation> {
        let shows = |key, at| reached(history, scope, key, at, view.get(&key).copied());
        let text = "synced, and shows less than there was at the start";
        self.check(history, scope, shows)
            .map_or(Ok(()), |key| Err(Violation::new("G-C7", observer, text).of(history.name(key))))
    }

    /// Checks a listener that reports that it is synced.
    ///
    /// # Errors
    /// The first key whose delivered state is older than at the start.
    pub fn received(&self, history: &History, listener: &Listener) -> Result<(), Violation> {
        let knows = |key, at| listener.has_reached(history, key, at);
        let text = "synced before it received the content of the start";
        self.check(history, &listener.scope, knows).map_or(Ok(()), |key| {
            Err(Violation::new("G-C7", &listener.name, text).of(history.name(key)))
        })
    }

    /// Checks that `is_there` holds for each key.
    fn check(
        &self,
        history: &History,
        scope: &Scope,
        is_there: impl Fn(KeyId, u64) -> bool,
    ) -> Option<KeyId> {
        let within = self.positions.iter().filter(|(key, _)| scope.covers(history.namespace(*key)));
        within.copied().find(|(key, at)| !is_there(*key, *at)).map(|(key, _)| key)
    }
}
