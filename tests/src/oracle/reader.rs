//! Rules for reads of a cache: a single moment, never going back, own writes included (G-C1, G-C2,
//! G-C3, G-C5, G-C8).

use std::collections::BTreeMap;
use std::time::Duration;

use super::history::{History, KeyId, Scope, describe};
use super::{Shown, Violation};

/// Time after which the cache may stop reporting that an own write is not visible.
const FORGOTTEN: Duration = Duration::from_secs(580);

/// The whole of a cache, as shown by a read.
#[derive(Clone, Debug, Default)]
pub struct View {
    /// The list, in the order of the answer.
    pub list: Vec<(KeyId, Shown)>,
    /// Objects that an index found, by term.
    pub by_term: BTreeMap<String, Vec<(KeyId, Shown)>>,
}

/// A reader that reads a cache from time to time.
#[derive(Clone, Debug)]
pub struct Reader {
    /// Name of the reader.
    pub name: String,
    /// Part of the kind that the cache watches.
    pub scope: Scope,
    /// Position, for each key, before which all states lie that the reader has seen.
    seen: BTreeMap<KeyId, Seen>,
    own: BTreeMap<KeyId, Own>,
    /// The version at the last look, and the announced epochs when the version last went back.
    version: (u64, u64),
}

#[derive(Clone, Copy, Debug, Default)]
struct Seen {
    next: u64,
    object: Option<(u64, u64)>,
}

/// A write of this process.
#[derive(Clone, Copy, Debug)]
struct Own {
    position: u64,
    epoch: u32,
    until: Duration,
}

impl Reader {
    /// Creates a reader that has read nothing.
    pub fn new(name: &str, scope: Scope) -> Self {
        Self {
            name: name.to_owned(),
            scope,
            seen: BTreeMap::new(),
            own: BTreeMap::new(),
            version: (0, 0),
        }
    }

    /// Checks a read of the whole cache. `terms` returns the terms under which an object must be
    /// found. Keys with own writes are checked in [`own`](Self::read_own) instead: those may be
    /// taken back.
    ///
    /// # Errors
    /// When list and index do not fit, or show a state that never was or is older than an earlier
    /// one.
    pub fn read(
        &mut self,
        history: &History,
        view: &View,
        terms: impl Fn(u64) -> Vec<String>,
    ) -> Result<(), Violation> {
        self.fits(history, view, &terms)?;
        let list: BTreeMap<KeyId, Shown> = view.list.iter().copied().collect();
        for key in history.keys() {
            if self.own.contains_key(&key) || !self.scope.covers(history.namespace(key)) {
                continue;
            }
            let before = self.seen.get(&key).copied().unwrap_or_default();
            let now = self.advance(history, key, before, list.get(&key).copied())?;
            self.seen.insert(key, now);
        }
        Ok(())
    }

    /// Checks that list and index show the same moment (G-C5).
    fn fits(
        &self,
        history: &History,
        view: &View,
        terms: &impl Fn(u64) -> Vec<String>,
    ) -> Result<(), Violation> {
        let broken =
            |key, text: String| Err(Violation::new("G-C5", &self.name, text).of(history.name(key)));
        let mut wanted: BTreeMap<String, Vec<(KeyId, Shown)>> = BTreeMap::new();
        for (key, shown) in &view.list {
            if !self.scope.covers(history.namespace(*key))
                || self.scope.shows(Some(*shown)).is_none()
            {
                return broken(*key, format!("the list shows {} out of scope", describe(shown)));
            }
            for term in terms(shown.serial) {
                wanted.entry(term).or_default().push((*key, *shown));
            }
        }
        if !view.list.is_sorted_by_key(|(key, _)| history.place(*key)) {
            return Err(Violation::new("G-C5", &self.name, "the list is not in the order of keys"));
        }
        if let Some(pair) = view.list.windows(2).find(|pair| pair[0].0 == pair[1].0) {
            return broken(pair[0].0, "listed twice".to_owned());
        }
        for (term, found) in &view.by_term {
            let listed = wanted.remove(term).unwrap_or_default();
            if *found != listed {
                let only = |these: &[(KeyId, Shown)], those: &[(KeyId, Shown)], which| {
                    these.iter().find(|one| !those.contains(one)).map(|one| (*one, which))
                };
                let odd = only(found, &listed, "index").or_else(|| only(&listed, found, "list"));
                let Some(((key, shown), which)) = odd else {
                    let text = format!("the index has {term:?} in another order than the list");
                    return Err(Violation::new("G-C5", &self.name, text));
                };
                let text = format!(
                    "list and index do not agree on {term:?}: {} is in the {which} only",
                    describe(&shown)
                );
                return broken(key, text);
            }
        }
        match wanted.into_iter().next() {
            Some((term, objects)) if !view.by_term.is_empty() => {
                broken(objects[0].0, format!("the index was not asked for {term:?}"))
            }
            _ => Ok(()),
        }
    }

    /// Checks that states come in the server's order (G-C1), as readers see them.
    fn advance(
        &self,
        history: &History,
        key: KeyId,
        before: Seen,
        now: Option<Shown>,
    ) -> Result<Seen, Violation> {
        let broken =
            |text: String| Err(Violation::new("G-C1", &self.name, text).of(history.name(key)));
        match (now, before.object) {
            (Some(shown), _) => match history.find(key, before.next, shown) {
                // The same state may be read again.
                Some(at) => Ok(Seen { next: at, object: Some((at, shown.uid)) }),
                None => broken(format!(
                    "read {}, which is no state of the server from state {} on",
                    describe(&shown),
                    before.next
                )),
            },
            (None, Some((at, uid))) => match history.gone(key, at, uid, &self.scope) {
                Some(gone) => Ok(Seen { next: gone, object: None }),
                None => broken("not there any more, and the server never removed it".to_owned()),
            },
            (None, None) => Ok(before),
        }
    }

    /// Checks the version that the cache reports (G-C3: it never goes back within an epoch);
    /// `announced` counts the new epochs that the cache announced.
    ///
    /// # Errors
    /// When the version went back without an announcement.
    pub fn version(
        &mut self,
        version: u64,
        announced: impl FnOnce() -> u64,
    ) -> Result<(), Violation> {
        let (before, known) = self.version;
        if version >= before {
            self.version.0 = version;
            return Ok(());
        }
        let announced = announced();
        self.version = (version, announced);
        if announced > known {
            return Ok(());
        }
        let text = format!("its version went from {before} back to {version} without a new epoch");
        Err(Violation::new("G-C3", &self.name, text))
    }

    /// Notes that this process wrote the state at `position`; reads must show the state until the
    /// cache has, or until `until` has passed.
    pub fn wrote(&mut self, history: &History, key: KeyId, position: u64, until: Duration) {
        self.own.insert(key, Own { position, epoch: history.epoch(), until });
    }

    /// Returns the keys with own writes.
    pub fn own(&self) -> Vec<KeyId> {
        self.own.keys().copied().collect()
    }

    /// Checks a read of a key with an own write (G-C8: the next reconcile sees the last write).
    ///
    /// # Errors
    /// When an older state is shown, and not reported to be stale.
    pub fn read_own(
        &mut self,
        history: &History,
        key: KeyId,
        view: Option<Shown>,
        is_stale: bool,
        now: Duration,
    ) -> Result<(), Violation> {
        let Some(own) = self.own.get(&key).copied() else { return Ok(()) };
        // Versions of two epochs do not compare: such a write cannot be waited for. And a write
        // that no watch has shown for ten minutes is forgotten.
        if own.epoch != history.epoch() || now > own.until + FORGOTTEN {
            if now > own.until {
                self.own.remove(&key);
            }
            return Ok(());
        }
        let is_reached = reached(history, &self.scope, key, own.position, view);
        if is_reached && now > own.until {
            self.own.remove(&key);
        }
        if is_reached || (now >= own.until && is_stale) {
            return Ok(());
        }
        let view = view.map_or_else(|| "nothing".to_owned(), |shown| describe(&shown));
        let text = format!(
            "own write (state {}) is not shown, but {view}; stale: {is_stale}, at {now:?} of {:?}",
            own.position, own.until
        );
        Err(Violation::new("G-C8", &self.name, text).of(history.name(key)))
    }

    /// Checks, while the world rests, that the cache shows the server's objects (G-C2: it reaches
    /// the server's state).
    ///
    /// # Errors
    /// The first key that differs.
    pub fn settled(
        &self,
        history: &History,
        view: &BTreeMap<KeyId, Shown>,
    ) -> Result<(), Violation> {
        let word = |state: Option<Shown>| {
            state.map_or_else(|| "none".to_owned(), |shown| describe(&shown))
        };
        for key in history.keys().filter(|key| self.scope.covers(history.namespace(*key))) {
            let wanted = self.scope.shows(history.at(key, history.last(key)).object);
            let shown = view.get(&key).copied();
            if shown != wanted {
                let text = format!("at the end it shows {}, not {}", word(shown), word(wanted));
                let violation = Violation::new("G-C2", &self.name, text);
                return Err(violation.of(history.name(key)));
            }
        }
        Ok(())
    }
}

/// Whether `view` shows the state at `position`, or a later state.
pub(super) fn reached(
    history: &History,
    scope: &Scope,
    key: KeyId,
    position: u64,
    view: Option<Shown>,
) -> bool {
    match view {
        Some(shown) => history.find(key, position, shown).is_some(),
        None => {
            let at = history.first(key).max(position);
            (at..=history.last(key)).any(|at| scope.shows(history.at(key, at).object).is_none())
        }
    }
}
