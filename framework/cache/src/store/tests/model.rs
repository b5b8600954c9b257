//! The store beside a replay of the server's history: with gaps, repeats, reordered frames, relists
//! and restored backups in any order.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;
use crate::delta::DeltaQueue;

/// Names of the server's objects; more than a group keeps in order.
const NAMES: u8 = 12;

/// A write at the server.
#[derive(Clone, Debug)]
struct Write {
    name: u8,
    delete: bool,
    label: u8,
}

/// The next step of the server or the reader.
#[derive(Clone, Debug)]
enum Step {
    /// The watch delivers this many events.
    Next(usize),
    /// The watch loses this many events, and is not trusted before the next list.
    Skip(usize),
    /// The last events come again, in their order or backwards.
    Again(usize, bool),
    Relist,
    /// The server goes back to the state of this many events ago.
    Restore(usize),
    /// A reader takes a snapshot.
    Snapshot,
    /// A reader needs an index for the first time.
    Index,
}

fn writes() -> impl Strategy<Value = Vec<Write>> {
    let write = (0..NAMES, prop::bool::weighted(0.3), 0_u8..3)
        .prop_map(|(name, delete, label)| Write { name, delete, label });
    prop::collection::vec(write, 1..80)
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        6 => (1_usize..12).prop_map(Step::Next),
        1 => (1_usize..4).prop_map(Step::Skip),
        2 => (1_usize..9, any::<bool>()).prop_map(|(count, back)| Step::Again(count, back)),
        1 => Just(Step::Relist),
        1 => (1_usize..20).prop_map(Step::Restore),
        2 => Just(Step::Snapshot),
        1 => Just(Step::Index),
    ];
    prop::collection::vec(step, 0..24)
}

/// Name, or namespace and name, to uid and version.
type Picture = BTreeMap<ObjectKey, (String, String)>;

/// An event of the server's history, and the server's state afterwards.
struct SnapshotDiff {
    delete: bool,
    object: Value,
    state: BTreeMap<u8, Value>,
}

fn history(writes: &[Write]) -> Vec<SnapshotDiff> {
    let mut state: BTreeMap<u8, Value> = BTreeMap::new();
    let mut moments = Vec::new();
    for (i, write) in writes.iter().enumerate() {
        let version = i as u64 + 1;
        let mut object = match (write.delete, state.get(&write.name)) {
            (true, None) => continue,
            (_, Some(there)) => there.clone(),
            (false, None) => config_map(&write.name.to_string(), &format!("u{version}"), version),
        };
        object["metadata"]["namespace"] = json!(["m", "n", "o"][usize::from(write.name % 3)]);
        object["metadata"]["resourceVersion"] = json!(version.to_string());
        if write.delete {
            state.remove(&write.name);
        } else {
            object["data"] = json!({"host": write.label.to_string()});
            state.insert(write.name, object.clone());
        }
        moments.push(SnapshotDiff { delete: write.delete, object, state: state.clone() });
    }
    moments
}

fn picture_of(found: &[Cached<ConfigMap>]) -> Picture {
    let state = |cached: &Cached<ConfigMap>| {
        let metadata = cached.metadata();
        (metadata.uid().to_owned(), metadata.resource_version().to_owned())
    };
    found.iter().map(|cached| (cached.key().clone(), state(cached))).collect()
}

/// A listener that knows only the events that were received.
#[derive(Default)]
struct Listener {
    view: Picture,
    /// The epoch of each key's last event.
    epochs: BTreeMap<ObjectKey, u32>,
}

impl Listener {
    fn hear(&mut self, applied: &BatchOutcome, epoch: u32) -> Result<(), TestCaseError> {
        for event in &applied.events {
            let state = |o: &Object| (o.metadata().uid().to_owned(), o.version().to_owned());
            let key = event.key().clone();
            match event {
                StoreEvent::Added { new, .. } => {
                    prop_assert_eq!(self.view.insert(key.clone(), state(new)), None);
                }
                StoreEvent::Updated { old, new } => {
                    prop_assert_eq!(old.metadata().uid(), new.metadata().uid());
                    if self.epochs.get(&key) == Some(&epoch) {
                        prop_assert!(order(old.version(), new.version()).unwrap().is_lt());
                    }
                    prop_assert_eq!(self.view.insert(key.clone(), state(new)), Some(state(old)));
                }
                StoreEvent::Deleted { last, .. } => {
                    prop_assert_eq!(self.view.remove(&key), Some(state(last)));
                }
            }
            self.epochs.insert(key, epoch);
        }
        Ok(())
    }
}

/// A store, the source and the listener.
struct World {
    core: Arc<StoreCore>,
    store: Store<ConfigMap>,
    queue: DeltaQueue<Observed, StreamMark>,
    listener: Listener,
    history: Vec<SnapshotDiff>,
    /// Events of the history that the watch has passed.
    at: usize,
    run: ListGeneration,
    /// Only a list is trusted.
    gap: bool,
    snapshots: Vec<(Snapshot<ConfigMap>, Picture, Vec<Vec<ObjectKey>>)>,
}

impl World {
    fn new(history: Vec<SnapshotDiff>) -> Self {
        let core = core();
        let store = store(&core);
        Self {
            core,
            store,
            queue: DeltaQueue::new(),
            listener: Listener::default(),
            history,
            at: 0,
            run: ListGeneration { epoch: 0, number: 1 },
            gap: true,
            snapshots: Vec::new(),
        }
    }

    fn show(&mut self, events: impl Iterator<Item = usize>) {
        for at in events {
            let SnapshotDiff { delete, object, .. } = &self.history[at];
            let seen = sighting(&self.core, object, self.run);
            self.queue.push(if *delete { Delta::Delete(seen) } else { Delta::Put(seen) });
        }
    }

    /// `reuse`: whether cached objects may stand for listed objects.
    fn list(&mut self, reuse: bool) {
        self.run.number += 1;
        let state = self.at.checked_sub(1).map(|at| &self.history[at].state);
        for object in state.into_iter().flat_map(BTreeMap::values) {
            let bytes = object.to_string();
            let scan = MetadataScan::of(bytes.as_bytes()).unwrap();
            let same = if reuse { self.core.listed(&scan, 0).0 } else { None };
            let object = same.unwrap_or_else(|| self.core.object(&scan));
            self.queue.push(Delta::Put(Observed { object, run: self.run, is_initial: false }));
        }
        self.queue.push(self.mark(MarkKind::Listed));
        self.gap = false;
    }

    fn mark(&self, what: MarkKind) -> Delta<Observed, StreamMark> {
        let (run, resource_version) = (self.run, Arc::from(self.at.to_string()));
        Delta::StreamMark(StreamMark { scope: 0, namespace: None, run, resource_version, what })
    }

    fn apply(&mut self, most: usize) -> Result<(), TestCaseError> {
        let applied = self.core.apply(self.queue.take(most));
        self.listener.hear(&applied, self.run.epoch)?;
        prop_assert_eq!(&picture_of(&self.store.list()), &self.listener.view);
        Ok(())
    }

    fn step(&mut self, step: &Step) -> Result<(), TestCaseError> {
        match *step {
            Step::Next(_) if self.gap => {}
            Step::Next(count) => {
                let end = self.history.len().min(self.at.saturating_add(count));
                self.show(self.at..end);
                self.at = end;
            }
            Step::Again(_, _) if self.gap => {}
            Step::Again(count, false) => self.show(self.at.saturating_sub(count)..self.at),
            // Only puts: a deletion out of order looks like a deletion of the successor.
            Step::Again(count, true) => {
                let from = self.at.saturating_sub(count);
                let puts = (from..self.at).rev().filter(|at| !self.history[*at].delete);
                self.show(puts.collect::<Vec<_>>().into_iter());
            }
            Step::Skip(count) => {
                self.at = self.history.len().min(self.at + count);
                self.gap = true;
            }
            Step::Relist => self.list(true),
            Step::Restore(count) => {
                self.apply(usize::MAX)?;
                self.at = self.at.saturating_sub(count);
                self.run.epoch += 1;
                self.queue.push(self.mark(MarkKind::NewEpoch));
                self.list(false);
            }
            Step::Snapshot => {
                let found = (0..3).map(|host| self.hosted(&self.store.snapshot(), host)).collect();
                let picture = picture_of(&self.store.list());
                self.snapshots.push((self.store.snapshot(), picture, found));
            }
            Step::Index => self.store.ensure_index(BY_HOST).unwrap(),
        }
        Ok(())
    }

    fn hosted(&self, snapshot: &Snapshot<ConfigMap>, host: u8) -> Vec<ObjectKey> {
        let found = snapshot.by_index(BY_HOST, &host.to_string());
        found.iter().map(|cached| cached.key().clone()).collect()
    }

    /// Checks that all reads agree with each other.
    fn check(&self) -> Result<(), TestCaseError> {
        let all = self.store.list();
        prop_assert!(all.is_sorted_by(|a, b| a.key() < b.key()));
        for host in 0_u8..3 {
            let is_there = |cached: &&Cached<ConfigMap>| {
                cached.get().unwrap().data.as_ref().unwrap()["host"] == host.to_string()
            };
            let scanned: Vec<_> = all.iter().filter(is_there).map(|c| c.key().clone()).collect();
            let found = self.store.by_index(BY_HOST, &host.to_string());
            let found: Vec<_> = found.iter().map(|cached| cached.key().clone()).collect();
            prop_assert_eq!(found, scanned);
        }
        for namespace in ["m", "n", "o"] {
            let found = self.store.select(Some(namespace), &Selector::everything());
            let of = |cached: &&Cached<ConfigMap>| cached.key().namespace() == Some(namespace);
            prop_assert!(found.iter().eq_by_state(all.iter().filter(of)));
        }
        let stats = self.store.stats();
        prop_assert_eq!((stats.objects, stats.index_entries), (all.len(), all.len()));
        prop_assert_eq!(stats.payload_bytes, all.iter().map(|c| c.raw().len()).sum::<usize>());
        for (snapshot, picture, hosts) in &self.snapshots {
            prop_assert_eq!(&picture_of(&snapshot.list()), picture);
            for (host, keys) in (0_u8..).zip(hosts) {
                prop_assert_eq!(&self.hosted(snapshot, host), keys);
            }
        }
        Ok(())
    }
}

trait ByState<'a>: Iterator<Item = &'a Cached<ConfigMap>> + Sized {
    fn eq_by_state(self, other: impl Iterator<Item = &'a Cached<ConfigMap>>) -> bool {
        let (own, other): (Vec<_>, Vec<_>) = (self.collect(), other.collect());
        own.len() == other.len() && own.iter().zip(other).all(|(a, b)| a.is_same(b))
    }
}

impl<'a, I: Iterator<Item = &'a Cached<ConfigMap>>> ByState<'a> for I {}

proptest! {
    /// G-C1 to G-C6: the store never goes back within an epoch, the listener's picture is the
    /// store's after every step, snapshots do not change, and the store ends in the server's state.
    #[test]
    fn the_store_follows_the_server_through_gaps_repeats_relists_and_epochs(
        writes in writes(), steps in steps(), split in 1_usize..5,
    ) {
        let mut world = World::new(history(&writes));
        world.list(true);
        for step in &steps {
            world.step(step)?;
            // The store applies now and then, in parts.
            world.apply(if world.queue.len() > 4 * split { usize::MAX } else { split })?;
        }
        for step in [Step::Relist, Step::Index, Step::Next(usize::MAX)] {
            world.step(&step)?;
        }
        world.apply(usize::MAX)?;
        let end = world.history.last().map(|moment| &moment.state).into_iter().flatten();
        let wanted: Picture = end
            .map(|(_, object)| {
                let meta = &object["metadata"];
                let text = |field: &str| meta[field].as_str().unwrap().to_owned();
                let key = ObjectKey::new(Some(&text("namespace")), &text("name"));
                (key, (text("uid"), text("resourceVersion")))
            })
            .collect();
        prop_assert_eq!(&world.listener.view, &wanted);
        world.check()?;
    }
}
