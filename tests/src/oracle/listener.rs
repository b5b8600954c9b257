//! Rules for a listener: the events that the listener may receive, and must have received in the
//! end (G-C1, G-C4, G-C6: states in order, one deletion each, every change).

use std::collections::BTreeMap;

use super::history::{History, KeyId, Scope, describe};
use super::reader::reached;
use super::{Event, Shown, Violation};

/// A listener of a cache.
#[derive(Clone, Debug)]
pub struct Listener {
    /// Name of the listener.
    pub name: String,
    /// Part of the kind that the cache watches.
    pub scope: Scope,
    keys: BTreeMap<KeyId, Received>,
}

/// Events that the listener received about a key.
#[derive(Clone, Copy, Debug, Default)]
struct Received {
    /// Position before which all states lie that the listener has received.
    next: u64,
    /// The object that the listener believes to be there, with the object's position.
    object: Option<(u64, Shown)>,
    /// Last epoch in which the listener received the same state once more.
    repeated: u32,
}

impl Listener {
    /// Creates a listener that has received nothing.
    pub fn new(name: &str, scope: Scope) -> Self {
        Self { name: name.to_owned(), scope, keys: BTreeMap::new() }
    }

    /// Delivers `event`; `view` is the state of the key that the cache shows meanwhile, where
    /// known.
    ///
    /// # Errors
    /// When the listener must not receive that event.
    pub fn deliver(
        &mut self,
        history: &History,
        key: KeyId,
        event: Event,
        view: Option<Option<Shown>>,
    ) -> Result<(), Violation> {
        let received = self.keys.get(&key).copied().unwrap_or_default();
        let next = self.step(history, key, received, event)?;
        self.keys.insert(key, next);
        match view {
            Some(view) => self.compare(history, key, next, view),
            None => Ok(()),
        }
    }

    fn step(
        &self,
        history: &History,
        key: KeyId,
        received: Received,
        event: Event,
    ) -> Result<Received, Violation> {
        let broken = |promise, text: String| Err(Violation::new(promise, &self.name, text));
        match (event, received.object) {
            (Event::Added(new), Some((_, old))) => broken(
                "G-C4",
                format!(
                    "added {} while no deletion of {} was delivered",
                    describe(&new),
                    describe(&old)
                ),
            ),
            (Event::Added(new), None) => self.show(history, key, received.next, new),
            (Event::Updated { new, .. } | Event::Resync(new), None) => broken(
                "G-C4",
                format!("received {} as known, which was not delivered before", describe(&new)),
            ),
            (Event::Updated { old, new }, Some((at, known))) => {
                if old != known {
                    let text = format!(
                        "updated from {}, but it had received {}",
                        describe(&old),
                        describe(&known)
                    );
                    return broken("G-C6", text);
                }
                if old.uid != new.uid {
                    let text =
                        format!("{} became {} without a deletion", describe(&old), describe(&new));
                    return broken("G-C4", text);
                }
                // A new epoch delivers everything once more.
                let epoch = history.at(key, at).epoch;
                if old == new && epoch > received.repeated {
                    return Ok(Received { repeated: epoch, ..received });
                }
                let shown = self.show(history, key, at + 1, new)?;
                Ok(Received { repeated: received.repeated, ..shown })
            }
            (Event::Resync(again), Some((_, known))) if again == known => Ok(received),
            (Event::Resync(again), Some((_, known))) => broken(
                "G-C6",
                format!("a resync delivered {} instead of {}", describe(&again), describe(&known)),
            ),
            // The object came and went before the listener was notified.
            (Event::Deleted(last), None) => match history.find(key, received.next, last) {
                Some(at) => self.take_back(history, key, at, last),
                None => broken("G-C4", format!("{} is gone a second time", describe(&last))),
            },
            (Event::Deleted(last), Some((_, known))) if last.uid != known.uid => broken(
                "G-C4",
                format!("{} is gone, but it had received {}", describe(&last), describe(&known)),
            ),
            (Event::Deleted(last), Some((at, _))) => self.take_back(history, key, at, last),
        }
    }

    /// Checks an object that is shown, whose state lies at `from` or later.
    fn show(
        &self,
        history: &History,
        key: KeyId,
        from: u64,
        new: Shown,
    ) -> Result<Received, Violation> {
        if !self.scope.covers(history.namespace(key)) || self.scope.shows(Some(new)).is_none() {
            let text = format!("received {}, which its cache does not look at", describe(&new));
            return Err(Violation::new("G-C1", &self.name, text));
        }
        match history.find(key, from, new) {
            Some(at) => Ok(Received { next: at + 1, object: Some((at, new)), repeated: 0 }),
            None => {
                let text = format!(
                    "received {}, which is no state of the server after state {from}",
                    describe(&new)
                );
                Err(Violation::new("G-C1", &self.name, text))
            }
        }
    }

    fn take_back(
        &self,
        history: &History,
        key: KeyId,
        at: u64,
        last: Shown,
    ) -> Result<Received, Violation> {
        let broken = |promise, text: String| Err(Violation::new(promise, &self.name, text));
        // A later state may have been merged into the deletion.
        let Some(last_at) = history.find(key, at, last) else {
            let text = format!("the last state {} is not one of the server", describe(&last));
            return broken("G-C1", text);
        };
        match history.gone(key, last_at, last.uid, &self.scope) {
            Some(gone) => Ok(Received { next: gone, object: None, repeated: 0 }),
            None => broken("G-C1", format!("{} is not gone", describe(&last))),
        }
    }

    /// Checks that the cache holds the delivered state, or a later state (G-C6: notified when the
    /// cache holds the change).
    fn compare(
        &self,
        history: &History,
        key: KeyId,
        received: Received,
        view: Option<Shown>,
    ) -> Result<(), Violation> {
        let broken = |text: String| Err(Violation::new("G-C6", &self.name, text));
        match (received.object, view) {
            (Some((at, _)), Some(view)) if history.find(key, at, view).is_none() => {
                broken(format!("the cache still shows {}", describe(&view)))
            }
            (Some((at, shown)), None)
                if history.gone(key, at, shown.uid, &self.scope).is_none() =>
            {
                broken("the cache does not show it".to_owned())
            }
            (None, Some(view)) if history.find(key, received.next, view).is_none() => {
                broken(format!("received its deletion, and the cache shows {}", describe(&view)))
            }
            _ => Ok(()),
        }
    }

    /// Checks, while the world rests, that the listener has received everything (G-C6: notified at
    /// least once after any change).
    ///
    /// # Errors
    /// The first key whose last state the listener does not know.
    pub fn settled(&self, history: &History) -> Result<(), Violation> {
        for key in history.keys().filter(|key| self.scope.covers(history.namespace(*key))) {
            let wanted = self.scope.shows(history.at(key, history.last(key)).object);
            let known = self.known(key);
            if known != wanted {
                let word = |state: Option<Shown>| {
                    state.map_or_else(|| "that there is none".to_owned(), |shown| describe(&shown))
                };
                let text = format!(
                    "at the end it had received {} instead of {}",
                    word(known),
                    word(wanted)
                );
                let text = Violation::new("G-C6", &self.name, text);
                return Err(text.of(history.name(key)));
            }
        }
        Ok(())
    }

    /// Returns the object that the listener believes to be there.
    pub fn known(&self, key: KeyId) -> Option<Shown> {
        self.keys.get(&key)?.object.map(|(_, shown)| shown)
    }

    /// Whether the listener has received the state at `position`, or a later state.
    pub fn has_reached(&self, history: &History, key: KeyId, position: u64) -> bool {
        let received = self.keys.get(&key).copied().unwrap_or_default();
        match received.object {
            Some((at, _)) => at >= position,
            // The listener received an end that came later, or there was an end and nothing to
            // deliver.
            None => received.next > position || reached(history, &self.scope, key, position, None),
        }
    }
}
