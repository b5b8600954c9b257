//! Publications of the store: snapshots beside a writer, and listeners that come and go.
//!
//! The store is a lock around plain data. Modelled from source are the parts beside that lock: the
//! moments of snapshots, and the audience of an informer. The lock, the slots and the order in
//! which they are used follow `store/state/state.rs`, `store/cache/reads.rs` and
//! `informer/apply.rs`.

use std::collections::BTreeMap;
use std::sync::{Arc, Weak};

use loom::sync::RwLock;
use loom::thread;

use self::object::Object;
use self::snapshot_diff::SnapshotDiff;
use crate::explore;

include!(concat!(env!("OUT_DIR"), "/snapshot_diff.in"));

/// Stand-in of the store's objects for the modelled source.
mod object {
    #[derive(Debug, PartialEq)]
    pub struct Object(pub u32);
}

/// Stand-ins of the informer's listeners for the modelled source, and the models of them.
pub mod informer {
    include!(concat!(env!("OUT_DIR"), "/listeners.in"));

    use std::sync::Arc;

    use loom::thread;
    use tokio::time::Instant;

    use self::listener::{Life, Listener};
    use self::listeners::Listeners;
    use crate::environment::clock::Clock;
    use crate::explore;
    use crate::sync::Mutex;

    pub mod listener {
        use tokio::time::Instant;

        use crate::sync::Mutex;

        #[derive(Clone, Copy, Debug, PartialEq)]
        pub enum Life {
            New,
            Attached,
            Ended,
        }

        pub struct Listener {
            pub life: Mutex<Life>,
            /// The content on arrival, then every change.
            pub received: Mutex<Vec<u32>>,
        }

        impl Listener {
            pub fn new() -> Self {
                Self { life: Mutex::new(Life::New), received: Mutex::default() }
            }
            pub fn begin(&self, _: Instant) -> bool {
                let mut life = self.life.lock();
                let is_new = *life == Life::New;
                if is_new {
                    *life = Life::Attached;
                }
                is_new
            }
            pub fn end(&self) {
                *self.life.lock() = Life::Ended;
            }
            pub fn remove(&self) {
                self.end();
            }
            pub fn is_removed(&self) -> bool {
                *self.life.lock() == Life::Ended
            }
            pub fn is_queued(&self) -> bool {
                false
            }
        }
    }

    /// An informer without a network: versions of an object, sent to the listeners under the
    /// permit.
    #[derive(Default)]
    pub struct Informer {
        audience: Listeners,
        version: Mutex<u32>,
        turn: Mutex<()>,
    }

    impl Informer {
        /// Newcomers receive the content, and all listeners the next version, as `attend` does.
        fn attend(&self, now: Instant) {
            let _turn = self.turn.lock();
            let content = *self.version.lock();
            self.audience.attach(now, |newcomers| {
                newcomers.iter().for_each(|newcomer| newcomer.received.lock().push(content));
            });
            let next = content + 1;
            *self.version.lock() = next;
            for member in self.audience.members().iter() {
                member.received.lock().push(next);
            }
        }
    }

    pub fn a_listener_that_comes_at_the_end_is_ended() {
        explore(3, || {
            let audience = Arc::new(Listeners::default());
            let listeners = [0, 1].map(|_| Arc::new(Listener::new()));
            let adding = listeners.clone().map(|listener| {
                let audience = Arc::clone(&audience);
                thread::spawn(move || audience.add(listener))
            });
            audience.end();
            adding.into_iter().for_each(|adding| adding.join().unwrap());
            for listener in listeners {
                assert_eq!(*listener.life.lock(), Life::Ended, "it waits for ever");
            }
        });
    }

    /// A listener that comes at any time receives the content once, then each later version once.
    pub fn a_newcomer_is_told_the_content_and_then_each_change() {
        explore(3, || {
            let now = Clock::default().now();
            let informer = Arc::new(Informer::default());
            let listeners = [0, 1].map(|_| Arc::new(Listener::new()));
            let adding = listeners.clone().map(|listener| {
                let informer = Arc::clone(&informer);
                thread::spawn(move || informer.audience.add(listener))
            });
            informer.attend(now);
            adding.into_iter().for_each(|adding| adding.join().unwrap());
            informer.attend(now);
            for listener in listeners {
                let received = listener.received.lock().clone();
                assert!(received.len() >= 2, "it was never attached: {received:?}");
                assert!(received.windows(2).all(|two| two[0] + 1 == two[1]), "{received:?}");
                assert_eq!(received.last(), Some(&2));
            }
        });
    }
}

pub const MODELS: &[(&str, fn())] = &[
    ("a_snapshot_shows_one_moment", a_snapshot_shows_one_moment),
    ("a_snapshot_shows_nothing_that_came_later", nothing_that_came_later),
    ("a_dropped_snapshot_costs_the_writer_nothing", a_dropped_snapshot),
    (
        "a_listener_that_comes_at_the_end_is_ended",
        informer::a_listener_that_comes_at_the_end_is_ended,
    ),
    (
        "a_newcomer_is_told_the_content_and_then_each_change",
        informer::a_newcomer_is_told_the_content_and_then_each_change,
    ),
];

type Slots = BTreeMap<&'static str, Arc<Object>>;

#[derive(Default)]
struct State {
    slots: Slots,
    moments: Vec<Weak<SnapshotDiff>>,
}

/// The store: a lock around slots and open moments.
struct Store(RwLock<State>);

impl Store {
    fn new(keys: &[&'static str]) -> Arc<Self> {
        let slots = keys.iter().map(|key| (*key, Arc::new(Object(0)))).collect();
        Arc::new(Self(RwLock::new(State { slots, moments: Vec::new() })))
    }

    /// A batch of a writer.
    fn put(&self, key: &'static str, version: u32) {
        let mut state = self.0.write().unwrap();
        let before = state.slots.get(key).map(Arc::clone);
        state.moments.retain(|snapshot_diff| match snapshot_diff.upgrade() {
            Some(snapshot_diff) => {
                snapshot_diff.remember(&key, before.as_ref());
                true
            }
            None => false,
        });
        state.slots.insert(key, Arc::new(Object(version)));
    }

    fn snapshot(&self) -> Arc<SnapshotDiff> {
        let mut state = self.0.write().unwrap();
        let snapshot_diff = SnapshotDiff::new(BTreeMap::new());
        state.moments.push(Arc::downgrade(&snapshot_diff));
        snapshot_diff
    }

    fn read(&self, snapshot_diff: &SnapshotDiff, key: &'static str) -> Option<u32> {
        let state = self.0.read().unwrap();
        snapshot_diff.with(|differences| match differences.get(key) {
            Some(before) => before.as_ref().map(|object| object.0),
            None => state.slots.get(key).map(|object| object.0),
        })
    }
}

/// Two keys are written in sequence, each twice: a snapshot sees a state in which they were
/// together, and the same each time.
fn a_snapshot_shows_one_moment() {
    explore(3, || {
        let store = Store::new(&["a", "b"]);
        let writer = thread::spawn({
            let store = Arc::clone(&store);
            move || {
                for version in 1..=2 {
                    store.put("a", version);
                    store.put("b", version);
                }
            }
        });
        let snapshot_diff = store.snapshot();
        let read = |key| store.read(&snapshot_diff, key).expect("it was never deleted");
        let (a, b) = (read("a"), read("b"));
        assert!(a == b || a == b + 1, "a {a} and b {b} were never together");
        assert_eq!((read("a"), read("b")), (a, b), "the moment has changed");
        writer.join().unwrap();
        assert_eq!((read("a"), read("b")), (a, b), "the moment has changed");
    });
}

fn nothing_that_came_later() {
    explore(3, || {
        let store = Store::new(&[]);
        let writer = thread::spawn({
            let store = Arc::clone(&store);
            move || store.put("a", 1)
        });
        let snapshot_diff = store.snapshot();
        let first = store.read(&snapshot_diff, "a");
        writer.join().unwrap();
        assert_eq!(store.read(&snapshot_diff, "a"), first, "the moment has changed");
    });
}

/// The last reader of a moment goes while a writer notifies it: neither waits for the other, and
/// the moment is forgotten.
fn a_dropped_snapshot() {
    explore(3, || {
        let store = Store::new(&["a"]);
        let reader = thread::spawn({
            let store = Arc::clone(&store);
            move || {
                let snapshot_diff = store.snapshot();
                let first = store.read(&snapshot_diff, "a");
                assert_eq!(store.read(&snapshot_diff, "a"), first);
            }
        });
        store.put("a", 1);
        reader.join().unwrap();
        store.put("a", 2);
        assert!(store.0.read().unwrap().moments.is_empty(), "the store keeps a dead moment");
    });
}
