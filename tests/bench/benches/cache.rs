//! Cost of the path from the wire to a worker, step by step, each beside the code that the step is
//! built on or replaces. `cargo bench -p windlass-bench --bench cache` ends with a table.
//!
//! Times are CPU time of the thread that runs all steps, per object. `tests/instructions` counts
//! the same paths in instructions, which noise does not reach; `tests/peers` measures them whole.

mod objects;

use std::fmt;
use std::hint::black_box;
use std::time::Duration;

use cpu_time::{ProcessTime, ThreadTime};
use criterion::{BatchSize, Criterion, Throughput};
use k8s_openapi::api::core::v1::Pod;
use objects::{Kind, Widget};
use serde::de::IgnoredAny;
use windlass::__private::cache::{self, OfflineCache};
use windlass::__private::probe;
use windlass::clock::Clock;
use windlass::environment::Environment;
use windlass::metrics::Metrics;
use windlass::resource::{ObjectKey, Resource};
use windlass::rng::Rng;
use windlass::store::Index;
use windlass::wire::{Frame, FrameDecoder, StreamPiece};
use windlass::workqueue::{QueueSettings, WorkQueue};

/// Number of objects in the cache.
const OBJECTS: usize = 2000;
/// Number of bytes of a read.
const READ: usize = 64 * 1024;
/// Number of rounds of the table.
const ROUNDS: usize = 15;
/// Number of keys that pass through the queue in a round of the queue's table.
const KEYS: usize = 200_000;

fn main() {
    let mut criterion = Criterion::default()
        .sample_size(10)
        .warm_up_time(Duration::from_millis(300))
        .measurement_time(Duration::from_secs(1))
        .configure_from_args();
    let mut table = Table::default();
    for kind in [Kind::Pod, Kind::Widget] {
        match kind {
            Kind::Pod => bench::<Pod>(kind, &mut criterion, &mut table),
            Kind::Widget => bench::<Widget>(kind, &mut criterion, &mut table),
        }
    }
    bench_queue(&mut criterion, &mut table);
    criterion.final_summary();
    println!("\n{table}");
}

// ---------------------------------------------------------------------------------- the table

/// A line per step: ours, the baseline, and the description. Microseconds per object.
#[derive(Default)]
struct Table(Vec<[String; 4]>);

impl Table {
    fn add(&mut self, label: String, ours: f64, baseline: Option<(f64, &str)>) {
        let time = |micros: f64| format!("{micros:.2}");
        let (other, name) = baseline.unzip();
        let name = name.unwrap_or_default().to_owned();
        self.0.push([label, time(ours), other.map(time).unwrap_or_default(), name]);
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "| {:48} | {:>9} | {:>11} | {:34} |", "µs", "ours", "baseline", "which is")?;
        writeln!(f, "|{:-<50}|{:->11}|{:->13}|{:-<36}|", "", ":", ":", "")?;
        for [label, ours, baseline, name] in &self.0 {
            writeln!(f, "| {label:48} | {ours:>9} | {baseline:>11} | {name:34} |")?;
        }
        Ok(())
    }
}

/// Returns the median CPU time of `run` per item, in microseconds; `prepare` is not counted.
fn measure<T>(items: usize, prepare: impl Fn(usize) -> T, run: impl Fn(&mut T)) -> f64 {
    let mut times: Vec<_> = (0..ROUNDS)
        .map(|round| {
            let mut prepared = prepare(round);
            let start = ThreadTime::now();
            run(&mut prepared);
            start.elapsed().as_secs_f64() * 1e6 / items as f64
        })
        .collect();
    times.sort_by(f64::total_cmp);
    times[ROUNDS / 2]
}

// ------------------------------------------------------------------------------ lists and watches

fn name_of(kind: Kind) -> &'static str {
    match kind {
        Kind::Pod => "pod",
        Kind::Widget => "widget",
    }
}

fn pieces(body: &[u8]) -> std::slice::Chunks<'_, u8> {
    body.chunks(READ)
}

fn newlines(body: &[u8]) -> usize {
    pieces(body).map(|piece| memchr::memchr_iter(b'\n', piece).count()).sum()
}

/// Calls `each` with each object of a watch's body.
fn frames(body: &[u8], each: &mut dyn FnMut(&[u8])) {
    let mut decoder = FrameDecoder::new();
    for piece in pieces(body) {
        decoder.push(piece, &mut |part| {
            let StreamPiece::Whole(line) = part else { panic!("nothing is large") };
            each(Frame::of(line).expect("a frame").object);
        });
    }
}

fn empty<K: Resource>(kind: Kind) -> OfflineCache {
    let cache = OfflineCache::of::<K>();
    let (first, second): (&'static [&'static str], &'static [&'static str]) = match kind {
        Kind::Pod => (&["spec", "nodeName"], &["metadata", "ownerReferences", "uid"]),
        Kind::Widget => (&["spec", "maker"], &["spec", "parts", "name"]),
    };
    cache
        .store::<K>()
        .ensure_index(Index::<K, String>::on_path("first", first))
        .expect("no objects yet");
    cache
        .store::<K>()
        .ensure_index(Index::<K, String>::on_path("second", second))
        .expect("no objects yet");
    cache
}

fn filled<K: Resource>(kind: Kind) -> OfflineCache {
    let mut cache = empty::<K>(kind);
    sync(&mut cache, &kind.list(OBJECTS, 0));
    cache
}

/// Reads a list without keeping the objects.
fn scan(cache: &mut OfflineCache, list: &[u8]) {
    cache.begin_list();
    for piece in pieces(list) {
        cache.read_list(piece);
        cache.discard();
    }
}

fn sync(cache: &mut OfflineCache, list: &[u8]) {
    cache.begin_list();
    for piece in pieces(list) {
        cache.read_list(piece);
        cache.apply(&mut |_| {});
    }
}

fn bench<K: Resource>(kind: Kind, criterion: &mut Criterion, table: &mut Table) {
    let list = kind.list(OBJECTS, 0);
    let name = |label: &str| format!("{}: {label}", name_of(kind));
    println!("{}: {} bytes in a list", name_of(kind), list.len() / OBJECTS);

    let mut group = criterion.benchmark_group(name_of(kind));
    group.throughput(Throughput::Elements(OBJECTS as u64));
    group.bench_function("list: split", |b| {
        b.iter(|| cache::split(&mut pieces(black_box(&list))));
    });
    group.bench_function("list: memchr", |b| b.iter(|| newlines(black_box(&list))));
    group.bench_function("list: split and scan", |b| {
        b.iter_batched_ref(
            || empty::<K>(kind),
            |cache| scan(cache, &list),
            BatchSize::PerIteration,
        );
    });
    group.bench_function("list: serde_json IgnoredAny", |b| {
        b.iter(|| serde_json::from_slice::<IgnoredAny>(black_box(&list)).is_ok());
    });
    group.bench_function("list: into the store", |b| {
        b.iter_batched_ref(
            || empty::<K>(kind),
            |cache| sync(cache, &list),
            BatchSize::PerIteration,
        );
    });
    group.finish();

    let whole = || ();
    let split = measure(OBJECTS, |_| whole(), |()| _ = black_box(cache::split(&mut pieces(&list))));
    let lines = measure(OBJECTS, |_| whole(), |()| _ = black_box(newlines(&list)));
    table.add(name("list, split"), split, Some((lines, "memchr over the bytes")));
    let read = measure(OBJECTS, |_| empty::<K>(kind), |cache| scan(cache, &list));
    let ignored = measure(
        OBJECTS,
        |_| whole(),
        |()| _ = black_box(serde_json::from_slice::<IgnoredAny>(&list)).is_ok(),
    );
    table.add(name("list, split and scan"), read, Some((ignored, "serde_json IgnoredAny")));
    let synced = measure(OBJECTS, |_| empty::<K>(kind), |cache| sync(cache, &list));
    let typed = measure(OBJECTS, |_| whole(), |()| typed_list::<K>(&list));
    table.add(name("list, into the store with 2 indexes"), synced, Some((typed, "typed decoding")));
    let cached = std::cell::RefCell::new(filled::<K>(kind));
    let again = measure(OBJECTS, |_| whole(), |()| sync(&mut cached.borrow_mut(), &list));
    table.add(name("list, again and unchanged"), again, None);
    watches::<K>(kind, table);
}

fn watches<K: Resource>(kind: Kind, table: &mut Table) {
    let name = |label: &str| format!("{}: {label}", name_of(kind));
    let bodies: Vec<_> = (0..ROUNDS).map(|round| kind.watch(OBJECTS, 1 + round)).collect();
    let body = |round: usize| bodies[round].as_slice();
    let framed = measure(OBJECTS, body, |body| frames(body, &mut |object| _ = black_box(object)));
    let lines = measure(OBJECTS, body, |body| _ = black_box(newlines(body)));
    table.add(name("watch, frames"), framed, Some((lines, "memchr over the bytes")));
    let kept = measure(OBJECTS, body, |body| {
        frames(body, &mut |object| _ = black_box(probe::kept(object)));
    });
    let typed = measure(OBJECTS, body, |body| {
        frames(body, &mut |object| _ = black_box(serde_json::from_slice::<K>(object)).is_ok());
    });
    table.add(name("watch, frame to kept bytes"), kept, Some((typed, "typed decoding")));
    let cache = std::cell::RefCell::new(filled::<K>(kind));
    let applied = measure(OBJECTS, body, |body| {
        let mut cache = cache.borrow_mut();
        for piece in pieces(body) {
            cache.read_watch(piece);
            cache.apply(&mut |_| {});
        }
    });
    table.add(
        name("watch, frame to store with 2 indexes"),
        applied,
        Some((typed, "typed decoding")),
    );
    let cache = std::cell::RefCell::new(filled::<K>(kind));
    let queue = queue();
    let keyed = measure(OBJECTS, body, |body| {
        let mut cache = cache.borrow_mut();
        for piece in pieces(body) {
            cache.read_watch(piece);
            cache.apply(&mut |key| queue.add(key.clone()));
            while let Some(work) = queue.try_get() {
                black_box(work.key());
                work.done();
            }
        }
    });
    table.add(name("watch, frame to worker"), keyed, Some((typed, "typed decoding")));
    let read = measure(
        OBJECTS,
        |_| cache.borrow().store::<K>().list(),
        |found| {
            found.iter().for_each(|object| _ = black_box(object.get()).is_ok());
        },
    );
    table.add(name("a reconcile's read"), read, Some((typed, "typed decoding")));
}

/// Decodes the items in the order of the list.
fn typed_list<K: Resource>(list: &[u8]) {
    #[derive(serde::Deserialize)]
    struct List<'a> {
        #[serde(borrow)]
        items: Vec<&'a serde_json::value::RawValue>,
    }
    let list: List<'_> = serde_json::from_slice(list).expect("a list");
    let decoded: Vec<K> =
        list.items.iter().filter_map(|item| serde_json::from_str(item.get()).ok()).collect();
    assert_eq!(decoded.len(), OBJECTS);
}

// ------------------------------------------------------------------------------------- the queue

fn queue() -> WorkQueue<ObjectKey> {
    let (clock, rng) = (Clock::system(), Rng::seeded(7));
    let environment = Environment { clock, rng, metrics: Metrics::new() };
    WorkQueue::new(QueueSettings::new("bench").workers(4), &environment)
}

fn keys(count: usize) -> Vec<ObjectKey> {
    let key = |number| ObjectKey::new(Some("team-07"), &format!("app-7d4b9c6f5-{number:06}"));
    (0..count).map(key).collect()
}

fn work_off(queue: &WorkQueue<ObjectKey>) {
    while let Some(work) = queue.try_get() {
        black_box(work.key());
        work.done();
    }
}

fn bench_queue(criterion: &mut Criterion, table: &mut Table) {
    let mut group = criterion.benchmark_group("queue");
    for depth in [1, 1000, 100_000] {
        let (queue, keys) = (queue(), keys(depth));
        group.throughput(Throughput::Elements(depth as u64));
        group.bench_function(format!("add, get, done at {depth} keys"), |b| {
            b.iter(|| {
                keys.iter().for_each(|key| queue.add(key.clone()));
                work_off(&queue);
            });
        });
        let pass = measure(
            KEYS,
            |_| (),
            |()| {
                for _ in 0..KEYS / depth {
                    keys.iter().for_each(|key| queue.add(key.clone()));
                    work_off(&queue);
                }
            },
        );
        table.add(format!("queue: add, get, done at {depth} keys"), pass, None);
    }
    group.finish();
    let mut times: Vec<_> = (0..5).map(|_| two_threads()).collect();
    times.sort_by(|(a, _), (b, _)| a.total_cmp(b));
    let (cpu, runs) = times[2];
    table.add(format!("queue: 1 producer, 1 worker ({runs:.2} runs per add)"), cpu, None);
}

/// Runs a thread that adds 100 000 keys round by round beside a worker; returns CPU per add, runs
/// per add.
fn two_threads() -> (f64, f64) {
    const ADDS: usize = 2_000_000;
    let (queue, keys) = (queue(), keys(100_000));
    let worker = std::thread::spawn({
        let queue = queue.clone();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build();
        move || {
            runtime.expect("a runtime").block_on(async {
                let mut runs = 0_usize;
                while let Some(work) = queue.get().await {
                    black_box(work.key());
                    work.done();
                    runs += 1;
                }
                runs
            })
        }
    });
    let start = ProcessTime::now();
    for key in keys.iter().cycle().take(ADDS) {
        queue.add(key.clone());
    }
    queue.shutdown();
    let runs = worker.join().expect("no panic");
    (start.elapsed().as_secs_f64() * 1e6 / ADDS as f64, runs as f64 / ADDS as f64)
}
