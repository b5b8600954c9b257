//! What a cache must show when it says that it is synced (G-C7).

use std::collections::BTreeMap;

use super::history::{History, KeyId, Scope};
use super::reader::reached;
use super::{Listener, Shown, Violation};

/// The server's state when a cache began to read it.
#[derive(Clone, Debug)]
pub struct Start {
    positions: Vec<(KeyId, u64)>,
}

impl Start {
    /// As of now.
    pub fn now(history: &History) -> Self {
        Self { positions: history.keys().map(|key| (key, history.last(key))).collect() }
    }

    /// The cache says that it is synced, and shows `view`; `listeners` were there from the start.
    ///
    /// # Errors
    /// The first key of which something older is shown than there was at the start.
    pub fn synced<'a>(
        &self,
        who: &str,
        history: &History,
        scope: &Scope,
        view: &BTreeMap<KeyId, Shown>,
        listeners: impl Iterator<Item = &'a Listener> + Clone,
    ) -> Result<(), Violation> {
        let broken = |who: &str, key, text: &str| {
            Err(Violation::new("G-C7", who, text).of(history.name(key)))
        };
        for (key, position) in &self.positions {
            if !scope.covers(history.namespace(*key)) {
                continue;
            }
            if !reached(history, scope, *key, *position, view.get(key).copied()) {
                return broken(who, *key, "synced, and shows less than there was at the start");
            }
            for listener in listeners.clone() {
                if !listener.has_reached(history, *key, *position) {
                    let text = "synced before the listener was told what there was at the start";
                    return broken(&listener.name, *key, text);
                }
            }
        }
        Ok(())
    }
}
