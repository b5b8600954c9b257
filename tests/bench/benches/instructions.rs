//! The hot paths, to be run under callgrind by `tests/instructions`.
//!
//! `instructions PATH ROUNDS` prepares everything, goes through the path that often, and prints the
//! number of items of a round. The cost of the preparation does not depend on the rounds, so the
//! difference of two runs is the path's alone. `instructions` without arguments names the paths.
//!
//! Nothing here depends on time, on chance or on memory addresses.

mod objects;

use std::hint::black_box;

use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use objects::{Kind, Widget};
use windlass::__private::cache::{self, OfflineCache};
use windlass::Projection;
use windlass::clock::Clock;
use windlass::environment::Environment;
use windlass::metrics::Metrics;
use windlass::resource::{ObjectKey, Resource};
use windlass::rng::Rng;
use windlass::store::Index;
use windlass::workqueue::{QueueSettings, WorkQueue};

/// Number of objects of a round.
const OBJECTS: usize = 256;
/// Largest number of rounds.
const ROUNDS: usize = 4;
/// Number of bytes of a read.
const READ: usize = 64 * 1024;
/// Number of keys of a round in the queue's paths.
const KEYS: usize = 4096;

/// The part of a pod that an operator of pods needs.
#[derive(Projection, Clone, Debug)]
#[projection(of = Pod, skip(annotations))]
struct PodView {
    metadata: ObjectMeta,
    #[projection(path = "spec.nodeName")]
    node: Option<String>,
    #[projection(path = "spec.serviceAccountName")]
    account: Option<String>,
    #[projection(path = "spec.restartPolicy")]
    restart_policy: Option<String>,
    #[projection(path = "status.phase")]
    phase: Option<String>,
    #[projection(path = "status.podIP")]
    address: Option<String>,
    #[projection(path = "status.startTime")]
    start: Option<String>,
}

/// A path: the name, and the function that runs the path that many times and returns the items of a
/// round.
type Path = (&'static str, fn(usize) -> usize);

const PATHS: &[Path] = &[
    ("list: split, pod", |rounds| split(Kind::Pod, rounds)),
    ("list: split, widget", |rounds| split(Kind::Widget, rounds)),
    ("list: split and scan, pod", |rounds| list::<Pod>(Kind::Pod, rounds, false)),
    ("list: split and scan, widget", |rounds| list::<Widget>(Kind::Widget, rounds, false)),
    ("list: into the store with two indexes, pod", |rounds| list::<Pod>(Kind::Pod, rounds, true)),
    ("list: into the store with two indexes, widget", |rounds| {
        list::<Widget>(Kind::Widget, rounds, true)
    }),
    ("list: into the store with two indexes, projection", |rounds| {
        list::<PodView>(Kind::Pod, rounds, true)
    }),
    ("list: again and unchanged, pod", |rounds| relist::<Pod>(Kind::Pod, rounds)),
    ("list: again and unchanged, widget", |rounds| relist::<Widget>(Kind::Widget, rounds)),
    ("watch: frame and scan, pod", |rounds| watch::<Pod>(Kind::Pod, rounds, Depth::MetadataScan)),
    ("watch: frame and scan, widget", |rounds| {
        watch::<Widget>(Kind::Widget, rounds, Depth::MetadataScan)
    }),
    ("watch: frame to store, pod", |rounds| watch::<Pod>(Kind::Pod, rounds, Depth::Store)),
    ("watch: frame to store, widget", |rounds| watch::<Widget>(Kind::Widget, rounds, Depth::Store)),
    ("watch: frame to store with two indexes, pod", |rounds| {
        watch::<Pod>(Kind::Pod, rounds, Depth::Indexes)
    }),
    ("watch: frame to store with two indexes, widget", |rounds| {
        watch::<Widget>(Kind::Widget, rounds, Depth::Indexes)
    }),
    ("watch: frame to store with two indexes, projection", |rounds| {
        watch::<PodView>(Kind::Pod, rounds, Depth::Indexes)
    }),
    ("watch: frame to key, pod", |rounds| watch::<Pod>(Kind::Pod, rounds, Depth::Key)),
    ("watch: frame to key, widget", |rounds| watch::<Widget>(Kind::Widget, rounds, Depth::Key)),
    ("read: pod", |rounds| read::<Pod>(Kind::Pod, rounds)),
    ("read: widget", |rounds| read::<Widget>(Kind::Widget, rounds)),
    ("read: projection", |rounds| read::<PodView>(Kind::Pod, rounds)),
    ("index: every value changes, pod", index_changes),
    ("queue: add, get, done at 4096 keys", |rounds| queue(rounds, true)),
    ("queue: add, get, done at one key", |rounds| queue(rounds, false)),
    ("queue: add again", queue_again),
];

fn main() {
    let arguments: Vec<_> = std::env::args().skip(1).filter(|word| word != "--bench").collect();
    let [name, rounds] = arguments.as_slice() else {
        PATHS.iter().for_each(|(name, _)| println!("{name}"));
        return;
    };
    let path = PATHS.iter().find(|(known, _)| known == name).expect("a path that is listed");
    let rounds: usize = rounds.parse().expect("a number");
    assert!(rounds <= ROUNDS, "at most {ROUNDS} rounds");
    println!("{}", path.1(rounds));
}

fn pieces(body: &[u8]) -> std::slice::Chunks<'_, u8> {
    body.chunks(READ)
}

fn indexed<K: Resource>(cache: &OfflineCache, kind: Kind) {
    match kind {
        Kind::Pod => {
            let node: Index<K, String> = Index::on_path("node", &["spec", "nodeName"]);
            let owner: Index<K, String> =
                Index::on_path("owner", &["metadata", "ownerReferences", "uid"]);
            cache.store::<K>().ensure_index(node).expect("no objects yet");
            cache.store::<K>().ensure_index(owner).expect("no objects yet");
        }
        Kind::Widget => {
            let maker: Index<K, String> = Index::on_path("maker", &["spec", "maker"]);
            let part: Index<K, String> = Index::on_path("part", &["spec", "parts", "name"]);
            cache.store::<K>().ensure_index(maker).expect("no objects yet");
            cache.store::<K>().ensure_index(part).expect("no objects yet");
        }
    }
}

fn split(kind: Kind, rounds: usize) -> usize {
    let body = kind.list(OBJECTS, 1);
    for _ in 0..rounds {
        black_box(cache::split(&mut pieces(black_box(&body))));
    }
    OBJECTS
}

/// Lists into a new cache in each round.
fn list<K: Resource>(kind: Kind, rounds: usize, is_applied: bool) -> usize {
    let body = kind.list(OBJECTS, 1);
    for _ in 0..rounds {
        let mut cache = OfflineCache::of::<K>();
        if is_applied {
            indexed::<K>(&cache, kind);
        }
        let mut items = 0;
        cache.begin_list();
        for piece in pieces(black_box(&body)) {
            items += cache.read_list(piece);
            if is_applied {
                cache.apply(&mut |key| _ = black_box(key));
            } else {
                cache.discard();
            }
        }
        assert_eq!(items, OBJECTS);
    }
    OBJECTS
}

fn relist<K: Resource>(kind: Kind, rounds: usize) -> usize {
    let body = kind.list(OBJECTS, 1);
    let mut cache = filled::<K>(kind, true);
    for _ in 0..rounds {
        cache.begin_list();
        for piece in pieces(black_box(&body)) {
            cache.read_list(piece);
            cache.apply(&mut |_| panic!("nothing changed"));
        }
    }
    OBJECTS
}

/// Returns a cache after the first list and an update of each object.
fn filled<K: Resource>(kind: Kind, has_indexes: bool) -> OfflineCache {
    let mut cache = OfflineCache::of::<K>();
    if has_indexes {
        indexed::<K>(&cache, kind);
    }
    cache.begin_list();
    for piece in pieces(&kind.list(OBJECTS, 0)) {
        cache.read_list(piece);
        cache.apply(&mut |_| {});
    }
    for piece in pieces(&kind.watch(OBJECTS, 1)) {
        cache.read_watch(piece);
        cache.apply(&mut |_| {});
    }
    cache
}

/// Depth to which frames are processed.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Depth {
    MetadataScan,
    Store,
    Indexes,
    Key,
}

fn watch<K: Resource>(kind: Kind, rounds: usize, depth: Depth) -> usize {
    // Versions 4 to 7 have the same index values. The first round changes them, and is not counted.
    let bodies: Vec<_> = (0..ROUNDS).map(|round| kind.watch(OBJECTS, 4 + round)).collect();
    let mut cache = filled::<K>(kind, depth != Depth::Store);
    let queue = queue_of("instructions");
    for body in &bodies[..rounds] {
        for piece in pieces(black_box(body)) {
            cache.read_watch(piece);
            match depth {
                Depth::MetadataScan => cache.discard(),
                Depth::Store | Depth::Indexes => cache.apply(&mut |key| _ = black_box(key)),
                Depth::Key => {
                    cache.apply(&mut |key| queue.add(key.clone()));
                    work_off(&queue);
                }
            }
        }
    }
    OBJECTS
}

/// Reads as reconciles do: objects in sequence, each for the first time.
fn read<K: Resource>(kind: Kind, rounds: usize) -> usize {
    let objects = filled::<K>(kind, false).store::<K>().list();
    for _ in 0..rounds {
        for object in &objects {
            black_box(object.get().expect("it decodes"));
        }
    }
    OBJECTS
}

fn index_changes(rounds: usize) -> usize {
    let bodies: Vec<_> = (0..ROUNDS).map(|round| Kind::Pod.watch(OBJECTS, 4 + 4 * round)).collect();
    let mut cache = filled::<Pod>(Kind::Pod, true);
    for body in &bodies[..rounds] {
        for piece in pieces(black_box(body)) {
            cache.read_watch(piece);
            cache.apply(&mut |key| _ = black_box(key));
        }
    }
    OBJECTS
}

fn queue_of(name: &str) -> WorkQueue<ObjectKey> {
    let environment =
        Environment { clock: Clock::system(), rng: Rng::seeded(7), metrics: Metrics::new() };
    WorkQueue::new(QueueSettings::new(name).workers(4), &environment)
}

fn keys() -> Vec<ObjectKey> {
    let key = |number| ObjectKey::new(Some("team-07"), &format!("app-7d4b9c6f5-{number:06}"));
    (0..KEYS).map(key).collect()
}

fn work_off(queue: &WorkQueue<ObjectKey>) {
    while let Some(work) = queue.try_get() {
        black_box(work.key());
        work.done();
    }
}

fn queue(rounds: usize, is_deep: bool) -> usize {
    let (queue, keys) = (queue_of("instructions"), keys());
    // A round beforehand, so that every round finds the needed memory.
    for _ in 0..=rounds {
        for key in &keys {
            queue.add(key.clone());
            if !is_deep {
                work_off(&queue);
            }
        }
        work_off(&queue);
    }
    KEYS
}

fn queue_again(rounds: usize) -> usize {
    let (queue, keys) = (queue_of("instructions"), keys());
    queue.add_all(keys.iter().cloned());
    for _ in 0..rounds {
        for key in &keys {
            queue.add(key.clone());
        }
    }
    KEYS
}
