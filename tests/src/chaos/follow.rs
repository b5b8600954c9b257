//! A cache of another kind than the informers': a reflector that fills a queue, and a consumer that
//! takes its time, so that changes of a key meet in the queue.
//!
//! On one thread nothing overtakes an informer; here only the queue stands between a producer and a
//! consumer that sleeps for seconds, and a delta that the queue loses is not made up for elsewhere.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use tokio::task::JoinHandle;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;
use windlass::client::Client;
use windlass::delta::{ApplyQueue, Delta, DeltaItem};
use windlass::environment::Environment;
use windlass::reflector::{
    ApiSource, RawObject, Reflector, ReflectorOptions, ReflectorSink, StreamProgress,
};
use windlass::resource::{ObjectKey, PartialObject, ResourceExt};
use windlass::rng::Rng;

use super::content::uid_number;
use super::kinds::Subject;
use super::{Ledger, Stats};
use crate::oracle::{Event, Scope, Shown};

/// Number of deltas that wait before the reflector reads no further: fewer than there are keys.
const ROOM: usize = 64;
/// Number of deltas that the consumer takes at once.
const TAKEN: usize = 40;

/// Counters of deltas that came into queues, and out of them.
const PUSHED: &str = "queue: deltas that were pushed";
const DELIVERED: &str = "queue: deltas that were delivered";

/// A state of an object.
#[derive(Clone, Debug)]
struct State {
    key: ObjectKey,
    epoch: u32,
    shown: Shown,
}

impl State {
    fn age(&self) -> (u32, u64) {
        (self.epoch, self.shown.version)
    }
}

impl DeltaItem for State {
    fn key(&self) -> &ObjectKey {
        &self.key
    }

    fn order(&self, other: &Self) -> Option<Ordering> {
        Some(self.age().cmp(&other.age()))
    }

    fn seen_again(&mut self, _again: &Self) {}
}

type Queue = ApplyQueue<State, ()>;

/// The target of the reflector: a producer knows the pushed states, and no more.
struct Producer {
    queue: Arc<Queue>,
    known: BTreeMap<ObjectKey, State>,
    /// The newest version of each key, deletions included.
    newest: BTreeMap<ObjectKey, (u32, u64)>,
    /// Keys shown since the last list began.
    shown: BTreeSet<ObjectKey>,
    epoch: u32,
    stats: Stats,
}

impl Producer {
    fn push(&self, deltas: impl IntoIterator<Item = Delta<State, ()>>) {
        let counted = deltas.into_iter().inspect(|_| self.stats.count(PUSHED));
        self.queue.push(counted);
    }

    fn put(&mut self, seen: &RawObject<'_>) {
        let key = seen.key();
        self.shown.insert(key.clone());
        let state = State { key: key.clone(), epoch: self.epoch, shown: shown(seen) };
        if self.newest.get(&key).is_some_and(|newest| *newest >= state.age()) {
            return;
        }
        self.newest.insert(key.clone(), state.age());
        let before = self.known.insert(key, state.clone());
        let replaced = before.filter(|before| before.shown.uid != state.shown.uid);
        self.push(replaced.map(Delta::Delete).into_iter().chain([Delta::Put(state)]));
    }

    /// Notes that the key is gone as of `version`.
    fn remove(&mut self, key: &ObjectKey, version: u64) {
        let age = (self.epoch, version);
        let newest = self.newest.entry(key.clone()).or_default();
        *newest = age.max(*newest);
        let known = self.known.remove(key);
        self.push(known.map(Delta::Delete));
    }
}

fn shown(seen: &RawObject<'_>) -> Shown {
    let object = seen.decode::<PartialObject>().ok();
    let label = object.as_ref().and_then(|object| object.label("serial"));
    let number = |text: &str| text.parse().unwrap_or_default();
    Shown {
        uid: uid_number(seen.uid()),
        version: number(seen.resource_version()),
        serial: number(label.unwrap_or_default()),
    }
}

impl ReflectorSink for Producer {
    fn list_begins(&mut self) {
        self.shown.clear();
    }

    fn listed(&mut self, seen: &RawObject<'_>) {
        self.put(seen);
    }

    fn changed(&mut self, seen: &RawObject<'_>) {
        self.put(seen);
    }

    fn deleted(&mut self, seen: &RawObject<'_>) {
        let (key, version) = (seen.key(), shown(seen).version);
        if self.newest.get(&key).is_none_or(|newest| *newest < (self.epoch, version)) {
            self.shown.remove(&key);
            self.remove(&key, version);
        }
    }

    fn kept(&mut self, seen: &RawObject<'_>) {
        self.shown.insert(seen.key());
    }

    fn reached(&mut self, step: StreamProgress, version: &str) {
        let version = version.parse().unwrap_or_default();
        match step {
            StreamProgress::Listed | StreamProgress::Absent => {
                let is_gone =
                    |key: &&ObjectKey| step == StreamProgress::Absent || !self.shown.contains(key);
                let gone: Vec<_> = self.known.keys().filter(is_gone).cloned().collect();
                gone.iter().for_each(|key| self.remove(key, version));
                if step == StreamProgress::Absent {
                    // The version is that of the last read state, which may be later than a
                    // restored backup's. After an absence only lists are read, no response that was
                    // under way before.
                    self.newest.clear();
                }
            }
            StreamProgress::NewEpoch => self.epoch += 1,
            StreamProgress::Reached | StreamProgress::ListedInPart => {}
        }
    }

    async fn hand_over(&mut self) {
        self.queue.room().await;
    }
}

/// Takes from the queue and reports to the book.
struct Consumer {
    queue: Arc<Queue>,
    dice: Rng,
    ledger: Ledger,
    stats: Stats,
    number: usize,
    known: BTreeMap<ObjectKey, Shown>,
}

impl Consumer {
    async fn run(mut self, stop: CancellationToken) {
        loop {
            tokio::select! {
                biased;
                () = stop.cancelled() => return,
                () = self.queue.filled() => {}
            }
            while !self.queue.is_empty() {
                let most = if self.dice.below(20) == 0 { 30_000 } else { 1500 };
                tokio::select! {
                    biased;
                    () = stop.cancelled() => return,
                    () = sleep(self.dice.jitter(Duration::from_millis(most))) => {}
                }
                let (batch, _) = self.queue.take(TAKEN);
                self.stats.add(DELIVERED, batch.len() as u64);
                batch.into_iter().for_each(|delta| self.apply(delta));
            }
        }
    }

    fn apply(&mut self, delta: Delta<State, ()>) {
        let (key, event) = match delta {
            Delta::Put(State { key, shown, .. }) => {
                let event = match self.known.insert(key.clone(), shown) {
                    None => Event::Added(shown),
                    Some(old) if old == shown => return,
                    Some(old) => Event::Updated { old, new: shown },
                };
                (key, event)
            }
            Delta::Delete(State { key, shown, .. }) => {
                let Some(known) = self.known.remove(&key) else { return };
                self.stats.count("queue: deletions that were delivered");
                // Another object may have come and gone in the queue: such an object is not
                // delivered.
                let last = if known.uid == shown.uid { shown } else { known };
                (key, Event::Deleted(last))
            }
            Delta::StreamMark(()) => return,
        };
        let namespace = key.namespace().unwrap_or_default();
        self.ledger.book().deliver(self.number, namespace, key.name(), event, None);
    }
}

/// A running follower, by number in the book.
#[derive(Debug)]
pub(super) struct Follower {
    number: usize,
    tasks: [JoinHandle<()>; 2],
}

impl Follower {
    /// Starts to follow all objects of a kind until `stop`.
    pub(super) fn start<K: Subject>(
        client: &Client,
        options: ReflectorOptions,
        observer: &str,
        (ledger, stats): (&Ledger, &Stats),
        stop: &CancellationToken,
    ) -> Self {
        let observer = format!("{observer}, a slow consumer of {}", K::info());
        let number = ledger.book().listener(K::KIND, &observer, Scope::default());
        let queue = Arc::new(Queue::new(ROOM));
        let environment: Environment = client.environment().fork(&observer);
        let consumer = Consumer {
            queue: Arc::clone(&queue),
            dice: environment.rng.fork("consumer"),
            ledger: ledger.clone(),
            stats: stats.clone(),
            number,
            known: BTreeMap::new(),
        };
        let producer = Producer {
            queue,
            known: BTreeMap::new(),
            newest: BTreeMap::new(),
            shown: BTreeSet::new(),
            epoch: 0,
            stats: stats.clone(),
        };
        let source = Arc::new(ApiSource::new(client.clone(), K::info()));
        let reflector =
            Reflector::new(K::info(), source, producer).options(options).environment(environment);
        let tasks =
            [tokio::spawn(reflector.run(stop.clone())), tokio::spawn(consumer.run(stop.clone()))];
        Self { number, tasks }
    }

    /// Waits for the end, after which the follower must not receive any event.
    pub(super) async fn ended(self, ledger: &Ledger) {
        for task in self.tasks {
            if let Err(error) = task.await {
                panic!("a follower ended by a panic: {error}");
            }
        }
        ledger.book().remove(self.number);
    }
}
