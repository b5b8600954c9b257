//! The tables of registered reads: by reader, and by source and target.

use std::any::Any;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::hash::BuildHasherDefault;
use std::sync::Arc;

use super::repeated::{MOST_REPEATED, RepeatedRead, RepeatedReads};
use super::selections::Selections;
use super::{
    FoundVersion, KeyHasher, MOST_CAUSES, ReadChange, ReadLimits, ReadSourceRef, ReadTarget, RunRef,
};
use windlass_core::resource::ObjectKey;

/// References to sources that are dropped after the lock.
pub(super) type RemovedSources = Vec<Arc<dyn Any + Send + Sync>>;

/// Registered reads in both directions.
#[derive(Default)]
pub(super) struct Tables {
    /// Only looked up, never iterated.
    readers: HashMap<ObjectKey, RegisteredReader, BuildHasherDefault<KeyHasher>>,
    sources: BTreeMap<u64, SourceTable>,
    reads: usize,
}

/// Reads of an object.
struct RegisteredReader {
    uid: Box<str>,
    reads: BTreeMap<(u64, ReadTarget), Read>,
    /// Whether a read was registered, or found another state, since the last success.
    has_changed: bool,
    /// The reads, if the last runs have made them alike.
    repeated: Option<Arc<RepeatedReads>>,
    /// Number of reads so far.
    made: u32,
    /// Changes since the last reconcile began.
    woken: Vec<Arc<str>>,
    /// Changes for which the last reconcile began.
    current: Vec<Arc<str>>,
}

/// A registered read.
struct Read {
    found: FoundVersion,
    /// Serial number of the found version in the cache, once a later run has confirmed it.
    serial: Option<u64>,
    /// Number of the read when it was made last under the lock: the order of a run.
    order: u32,
    /// The last run that made this read.
    run: u64,
    /// The last run that made the read with a filled cache; 0 for none.
    ready_run: u64,
    holder: Arc<dyn Any + Send + Sync>,
}

/// Readers of a source, by target.
#[derive(Default)]
struct SourceTable {
    kind: BTreeSet<ObjectKey>,
    objects: BTreeMap<ObjectKey, BTreeSet<ObjectKey>>,
    values: BTreeMap<usize, BTreeMap<Arc<str>, BTreeSet<ObjectKey>>>,
    selections: Selections,
}

/// Result of a registration.
#[derive(Default)]
pub(super) struct Registered {
    /// Whether the reads of single objects became a read of the kind.
    pub(super) is_widened: bool,
    /// Dropped after the lock.
    pub(super) removed: RemovedSources,
}

impl SourceTable {
    fn add(&mut self, target: ReadTarget, reader: &ObjectKey) {
        let readers = match target {
            ReadTarget::Kind => &mut self.kind,
            ReadTarget::Object(key) => self.objects.entry(key).or_default(),
            ReadTarget::Value(index, value) => {
                self.values.entry(index).or_default().entry(value).or_default()
            }
            ReadTarget::Selection(selection) => return self.selections.add(selection, reader),
        };
        readers.insert(reader.clone());
    }

    fn remove(&mut self, target: &ReadTarget, reader: &ObjectKey) {
        match target {
            ReadTarget::Kind => {
                self.kind.remove(reader);
            }
            ReadTarget::Object(key) => remove_from(&mut self.objects, key, reader),
            ReadTarget::Value(index, value) => {
                if let Some(values) = self.values.get_mut(index) {
                    remove_from(values, value, reader);
                    if values.is_empty() {
                        self.values.remove(index);
                    }
                }
            }
            ReadTarget::Selection(selection) => self.selections.remove(selection, reader),
        }
    }

    fn is_empty(&self) -> bool {
        self.kind.is_empty()
            && self.objects.is_empty()
            && self.values.is_empty()
            && self.selections.is_empty()
    }

    /// Calls `each` with the readers of all targets that a change concerns.
    fn concerned(&self, change: &ReadChange<'_>, mut each: impl FnMut(ReadTarget, &ObjectKey)) {
        self.kind.iter().for_each(|reader| each(ReadTarget::Kind, reader));
        for reader in self.objects.get(change.key).into_iter().flatten() {
            each(ReadTarget::Object(change.key.clone()), reader);
        }
        for (index, value) in &change.values {
            let found = self.values.get(index).and_then(|all| all.get_key_value(value.as_str()));
            let Some((value, readers)) = found else { continue };
            for reader in readers {
                each(ReadTarget::Value(*index, Arc::clone(value)), reader);
            }
        }
        self.selections.concerned(change.key, &change.labels, &mut each);
    }
}

/// Removes a reader of a target, and the target with the last reader.
fn remove_from<T: Ord>(
    targets: &mut BTreeMap<T, BTreeSet<ObjectKey>>,
    target: &T,
    reader: &ObjectKey,
) {
    if let Some(readers) = targets.get_mut(target) {
        readers.remove(reader);
        if readers.is_empty() {
            targets.remove(target);
        }
    }
}

impl Tables {
    pub(super) fn readers(&self) -> usize {
        self.readers.len()
    }

    pub(super) fn reads(&self) -> usize {
        self.reads
    }

    /// Whether nothing is left of any reader.
    #[cfg(test)]
    pub(super) fn is_empty(&self) -> bool {
        self.readers.is_empty() && self.sources.is_empty()
    }

    /// Registers a read; see [`RegisteredReads::register`](super::RegisteredReads::register).
    pub(super) fn register(
        &mut self,
        reader: RunRef<'_>,
        source: &ReadSourceRef,
        target: ReadTarget,
        (is_ready, limits): (bool, &ReadLimits),
    ) -> Registered {
        let mut registered = Registered::default();
        // Reads of an earlier object of that name say nothing about this object.
        if self.readers.get(reader.key).is_some_and(|known| *known.uid != *reader.uid) {
            registered.removed.extend(self.forget(reader.key));
        }
        let place = (source.number, target);
        let of_kind = (source.number, ReadTarget::Kind);
        let (mut kind_read, mut count) = (None, 0);
        if let Some(known) = self.readers.get_mut(reader.key) {
            // The common case first: the former run has made the same read.
            if let Some(read) = known.reads.get_mut(&place) {
                read.again(reader.run, is_ready);
                read.order = next(&mut known.made);
                known.change();
                return registered;
            }
            kind_read = known.reads.get(&of_kind).map(|read| read.run);
            count = known.reads.len();
        }
        if kind_read == Some(reader.run) {
            return registered;
        }
        if count < limits.per_object && self.reads < limits.in_total {
            let found = if is_ready { FoundVersion::Unread } else { FoundVersion::Awaited };
            self.insert(reader, source, place, found);
            return registered;
        }
        registered.is_widened = kind_read.is_none();
        let of_source = |place: &(u64, ReadTarget), _: &Read| place.0 == source.number;
        registered.removed.extend(self.remove_where(reader.key, of_source));
        self.insert(reader, source, of_kind, FoundVersion::Several);
        registered
    }

    /// See [`RegisteredReads::confirm`](super::RegisteredReads::confirm).
    pub(super) fn confirm(
        &mut self,
        reader: RunRef<'_>,
        place: &(u64, ReadTarget),
        state: Option<(&str, u64)>,
    ) -> bool {
        let known = self.readers.get_mut(reader.key).filter(|known| *known.uid == *reader.uid);
        let Some(known) = known else { return false };
        let Some(read) = known.reads.get_mut(place) else { return false };
        let is_same = match (&read.found, state) {
            (FoundVersion::Version(found), Some((version, _))) => **found == *version,
            (FoundVersion::Absent, None) => true,
            _ => false,
        };
        if is_same {
            (read.run, read.ready_run) = (reader.run, reader.run);
            read.order = next(&mut known.made);
            let serial = state.map(|(_, serial)| serial);
            // The same version in another place: the cache was filled again.
            if read.serial.is_some() && read.serial != serial {
                known.repeated = None;
            }
            read.serial = serial;
        }
        is_same
    }

    /// See [`RegisteredReads::listed`](super::RegisteredReads::listed).
    pub(super) fn repeated(&self, key: &ObjectKey, uid: &str) -> Option<Arc<RepeatedReads>> {
        self.readers.get(key).filter(|known| *known.uid == *uid)?.repeated.clone()
    }

    /// See [`RegisteredReads::mark`](super::RegisteredReads::mark).
    pub(super) fn mark(&mut self, reader: RunRef<'_>, reads: &RepeatedReads, made: u64) {
        let known = self.readers.get_mut(reader.key).filter(|known| *known.uid == *reader.uid);
        let Some(known) = known else { return };
        for RepeatedRead { source, key, .. } in reads.of(made) {
            // None if the reads were forgotten meanwhile.
            if let Some(read) = known.reads.get_mut(&(*source, ReadTarget::Object(key.clone()))) {
                (read.run, read.ready_run) = (reader.run, reader.run);
            }
        }
    }

    /// Inserts a read in both directions.
    fn insert(
        &mut self,
        reader: RunRef<'_>,
        source: &ReadSourceRef,
        place: (u64, ReadTarget),
        found: FoundVersion,
    ) {
        let known = self
            .readers
            .entry(reader.key.clone())
            .or_insert_with(|| RegisteredReader::new(reader.uid));
        self.sources.entry(source.number).or_default().add(place.1.clone(), reader.key);
        let ready_run = if found == FoundVersion::Awaited { 0 } else { reader.run };
        let (holder, order) = (Arc::clone(&source.holder), next(&mut known.made));
        let read = Read { found, serial: None, order, run: reader.run, ready_run, holder };
        known.change();
        if known.reads.insert(place, read).is_none() {
            self.reads += 1;
        }
    }

    /// Records the found state; two different states in the same run make every change count.
    pub(super) fn found(
        &mut self,
        reader: RunRef<'_>,
        source: u64,
        target: &ReadTarget,
        found: FoundVersion,
    ) {
        let Some(known) = self.readers.get_mut(reader.key) else { return };
        let place = (source, target.clone());
        let Some(read) = known.reads.get_mut(&place).filter(|read| read.run == reader.run) else {
            return;
        };
        let is_first = matches!(read.found, FoundVersion::Unread | FoundVersion::Awaited);
        if is_first || read.found == found {
            read.found = found;
        } else {
            read.found = FoundVersion::Several;
        }
        read.serial = None;
        known.change();
    }

    /// Removes the reads that were not made by this run.
    pub(super) fn commit(&mut self, key: &ObjectKey, run: u64) -> RemovedSources {
        // The common case first: the same reads as those of the former run.
        let Some(known) = self.readers.get_mut(key) else { return RemovedSources::new() };
        let has_changed = std::mem::take(&mut known.has_changed);
        if known.reads.values().all(|read| read.run == run) {
            if !has_changed && known.repeated.is_none() {
                known.repeated = known.listed().map(Arc::new);
            }
            return RemovedSources::new();
        }
        known.repeated = None;
        self.remove_where(key, |_, read| read.run != run)
    }

    /// Removes a reader.
    pub(super) fn forget(&mut self, key: &ObjectKey) -> RemovedSources {
        let removed = self.remove_where(key, |_, _| true);
        self.readers.remove(key);
        removed
    }

    /// Removes some reads of a reader, and the reader with the last read.
    fn remove_where(
        &mut self,
        key: &ObjectKey,
        is_removed: impl Fn(&(u64, ReadTarget), &Read) -> bool,
    ) -> RemovedSources {
        let Some(known) = self.readers.get_mut(key) else { return RemovedSources::new() };
        let mut removed = Vec::new();
        known.reads.retain(|place, read| {
            let is_removed = is_removed(place, read);
            if is_removed {
                removed.push((place.clone(), Arc::clone(&read.holder)));
            }
            !is_removed
        });
        if known.reads.is_empty() {
            self.readers.remove(key);
        }
        self.reads -= removed.len();
        let mut holders = RemovedSources::with_capacity(removed.len());
        for ((source, target), holder) in removed {
            if let Some(table) = self.sources.get_mut(&source) {
                table.remove(&target, key);
                if table.is_empty() {
                    self.sources.remove(&source);
                }
            }
            holders.push(holder);
        }
        holders
    }

    /// Returns the readers that changes concern, in order, and notes the changes as their reasons.
    pub(super) fn changed(
        &mut self,
        source: u64,
        changes: &[ReadChange<'_>],
        name: impl Fn(&ObjectKey) -> Arc<str>,
    ) -> Vec<ObjectKey> {
        let Self { readers, sources, .. } = self;
        let Some(table) = sources.get(&source) else { return Vec::new() };
        let mut woken = BTreeSet::new();
        for change in changes {
            let mut cause = None;
            table.concerned(change, |target, key| {
                let Some(reader) = readers.get_mut(key) else { return };
                let read = reader.reads.get(&(source, target));
                if read.is_some_and(|read| read.found.differs(change.old, change.new)) {
                    reader.note(cause.get_or_insert_with(|| name(change.key)));
                    woken.insert(key.clone());
                }
            });
        }
        woken.into_iter().collect()
    }

    /// See [`RegisteredReads::take_causes`](super::RegisteredReads::take_causes).
    pub(super) fn take_causes(&mut self, key: &ObjectKey) {
        if let Some(reader) = self.readers.get_mut(key).filter(|reader| !reader.woken.is_empty()) {
            reader.current = std::mem::take(&mut reader.woken);
        }
    }

    /// See [`RegisteredReads::causes`](super::RegisteredReads::causes).
    pub(super) fn causes(&self, key: &ObjectKey) -> Vec<Arc<str>> {
        self.readers.get(key).map(|reader| reader.current.clone()).unwrap_or_default()
    }

    /// See [`RegisteredReads::next_causes`](super::RegisteredReads::next_causes).
    pub(super) fn next_causes(&self, key: &ObjectKey) -> Vec<Arc<str>> {
        self.readers.get(key).map(|reader| reader.woken.clone()).unwrap_or_default()
    }
}

impl RegisteredReader {
    fn new(uid: &str) -> Self {
        Self {
            uid: uid.into(),
            reads: BTreeMap::new(),
            has_changed: false,
            repeated: None,
            made: 0,
            woken: Vec::new(),
            current: Vec::new(),
        }
    }

    /// Notes that the next run may find other reads, or other states, than the last one.
    fn change(&mut self) {
        self.has_changed = true;
        self.repeated = None;
    }

    /// Returns the list of the reads; `None` if it would not have all of them.
    fn listed(&self) -> Option<RepeatedReads> {
        if !(1..=MOST_REPEATED).contains(&self.reads.len()) {
            return None;
        }
        let listed = self.reads.iter().map(|((source, target), read)| {
            let ReadTarget::Object(key) = target else { return None };
            let is_known = match read.found {
                FoundVersion::Version(_) => read.serial.is_some(),
                FoundVersion::Absent => true,
                _ => false,
            };
            let (source, key, serial) = (*source, key.clone(), read.serial);
            is_known.then_some((read.order, RepeatedRead { source, key, serial }))
        });
        let mut listed = listed.collect::<Option<Vec<_>>>()?;
        listed.sort_by_key(|(order, _)| *order);
        Some(RepeatedReads(listed.into_iter().map(|(_, read)| read).collect()))
    }

    /// Notes a change as reason of the next reconcile.
    fn note(&mut self, cause: &Arc<str>) {
        if self.woken.len() < MOST_CAUSES && !self.woken.contains(cause) {
            self.woken.push(Arc::clone(cause));
        }
    }
}

/// Returns the number of the next read of a reader.
fn next(made: &mut u32) -> u32 {
    *made = made.wrapping_add(1);
    *made
}

impl Read {
    /// Registers a known read in another run, or once the cache is filled.
    fn again(&mut self, run: u64, is_ready: bool) {
        self.run = run;
        if is_ready && self.ready_run != run {
            // An earlier state is replaced by the state that is about to be read.
            self.found = FoundVersion::Unread;
            self.ready_run = run;
        }
    }
}
