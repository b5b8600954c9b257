//! What reads of a cache may show: one moment, never going back, own writes included (G-C1, G-C2,
//! G-C3, G-C5, G-C8).

use std::collections::BTreeMap;
use std::time::Duration;

use super::history::{History, KeyId, Scope, describe};
use super::{Shown, Violation};

/// After so long the cache need not say any more that it does not show an own write.
const FORGOTTEN: Duration = Duration::from_secs(580);

/// Everything that one read of a whole cache showed.
#[derive(Clone, Debug, Default)]
pub struct View {
    /// The list, in the order in which it came.
    pub list: Vec<(KeyId, Shown)>,
    /// What an index found, by term.
    pub by_term: BTreeMap<String, Vec<(KeyId, Shown)>>,
}

/// One who reads a cache from time to time.
#[derive(Clone, Debug)]
pub struct Reader {
    /// Its name.
    pub name: String,
    /// What the cache looks at.
    pub scope: Scope,
    /// What it has seen of a key stands before this position.
    seen: BTreeMap<KeyId, Seen>,
    own: BTreeMap<KeyId, Own>,
    /// The version at the last look, and the announced epochs when it last went back.
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
    /// One that has read nothing.
    pub fn new(name: &str, scope: Scope) -> Self {
        Self {
            name: name.to_owned(),
            scope,
            seen: BTreeMap::new(),
            own: BTreeMap::new(),
            version: (0, 0),
        }
    }

    /// It reads everything. `terms` says under which terms an object must be found. Keys with
    /// own writes are looked at in [`own`](Self::read_own) instead: those may be taken back.
    ///
    /// # Errors
    /// When list and index do not fit, or show a state that never was or is older than one before.
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

    /// G-C5: one moment.
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

    /// G-C1, by what readers see.
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

    /// G-C3: the cache says how far it is; `announced` counts the new epochs that it announced.
    ///
    /// # Errors
    /// When it went back without announcing that the server did.
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

    /// This process wrote the state at `position`; reads must show it until the cache has, or until
    /// `until` has passed.
    pub fn wrote(&mut self, history: &History, key: KeyId, position: u64, until: Duration) {
        self.own.insert(key, Own { position, epoch: history.epoch(), until });
    }

    /// The keys with own writes.
    pub fn own(&self) -> Vec<KeyId> {
        self.own.keys().copied().collect()
    }

    /// G-C8: a key with an own write is read.
    ///
    /// # Errors
    /// When something older is shown, and not said to be stale.
    pub fn read_own(
        &mut self,
        history: &History,
        key: KeyId,
        view: Option<Shown>,
        is_stale: bool,
        now: Duration,
    ) -> Result<(), Violation> {
        let Some(own) = self.own.get(&key).copied() else { return Ok(()) };
        // Versions of two epochs do not compare: such a write cannot be waited for. And one that
        // nobody has seen for ten minutes is forgotten.
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

    /// G-C2: the world rests; the cache must show what the server holds.
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

/// Does `view` show the state at `position`, or a later one?
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
