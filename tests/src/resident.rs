//! Memory that a cache of Pods takes of the machine after updates: resident memory, not the cache's
//! own count. For processes in which nothing else runs beside it.

use std::fmt::Write;
use std::ops::Range;
use std::sync::mpsc;
use std::thread;

use windlass::__private::cache::OfflineCache;
use windlass::resource::Resource;
use windlass::store::{Index, Representation, Store};

/// Number of objects of a cache.
pub const OBJECTS: usize = 8_000;
/// Rounds of updates: the first by a thread that has read the first list, the others by a thread
/// that has not, as when a runtime's threads take an informer's task from each other.
const ROUNDS: usize = 4;
/// The goal of the benchmarks for twenty updates of each object.
const GOAL: f64 = 1.2;

/// Returns a watch's line about a Pod.
fn line(number: usize, round: usize, out: &mut String) {
    out.clear();
    let version = 1_000_000 * (round + 1) + number;
    let (app, padding) = (number / 20, 400 + (number * 7 + round * 13) % 200);
    let _ = writeln!(
        out,
        concat!(
            r#"{{"type":"ADDED","object":{{"kind":"Pod","apiVersion":"v1","metadata":{{"#,
            r#""name":"app-{app}-5f2c9ab77-{number:05}","generateName":"app-{app}-5f2c9ab77-","#,
            r#""namespace":"team-{team}","uid":"0f1e2d3c-4b5a-4978-8796-{number:012}","#,
            r#""resourceVersion":"{version}","generation":1,"#,
            r#""creationTimestamp":"2026-01-01T00:00:00Z","#,
            r#""labels":{{"app":"app-{app}","app.kubernetes.io/managed-by":"shipper","#,
            r#""pod-template-hash":"5f2c9ab77","team":"team-{team}"}},"#,
            r#""annotations":{{"padding":"{padding:x>width$}"}},"#,
            r#""ownerReferences":[{{"apiVersion":"apps/v1","kind":"ReplicaSet","#,
            r#""name":"app-{app}-5f2c9ab77","uid":"5a697887-96a5-4b4c-a3d2-{app:012}","#,
            r#""controller":true,"blockOwnerDeletion":true}}]}},"#,
            r#""spec":{{"nodeName":"node-{node}","serviceAccountName":"app","priority":0}},"#,
            r#""status":{{"phase":"Running","podIP":"10.0.{app}.{team}"}}}}}}"#
        ),
        app = app,
        number = number,
        team = app % 50,
        version = version,
        padding = "",
        width = padding,
        node = number % 200,
    );
}

fn round(cache: &mut OfflineCache, round: usize) {
    let mut text = String::new();
    for number in 0..OBJECTS {
        line(number, round, &mut text);
        cache.read_watch(text.as_bytes());
        if number % 64 == 63 {
            cache.apply(&mut |_| {});
        }
    }
    cache.apply(&mut |_| {});
}

/// Returns the resident bytes of this process.
fn resident() -> f64 {
    let statm = std::fs::read_to_string("/proc/self/statm").expect("Linux has it");
    let pages = statm.split(' ').nth(1).and_then(|pages| pages.parse::<f64>().ok());
    pages.expect("the second number") * 4096.0
}

/// Fills a cache of `K`, updates all objects from two threads, and returns the cache.
///
/// # Panics
/// When an object takes more or less than `each` bytes after the first list, or the updates add a
/// fifth.
pub fn updated<K: Resource>(representation: Representation, each: Range<f64>) -> Store<K> {
    let (to_other, from_first) = mpsc::channel::<OfflineCache>();
    let (to_first, from_other) = mpsc::channel::<OfflineCache>();
    let other = thread::spawn(move || {
        // The thread gets a malloc arena before the measurement.
        drop(String::with_capacity(100));
        for mut cache in from_first {
            (2..=ROUNDS).for_each(|number| round(&mut cache, number));
            to_first.send(cache).expect("the receiver waits");
        }
    });
    let mut cache = OfflineCache::kept_as::<K>(representation);
    let store = cache.store::<K>();
    let node: Index<K, String> = Index::on_path("node", &["spec", "nodeName"]);
    store.ensure_index(node).expect("no objects yet");
    let start = resident();
    round(&mut cache, 0);
    let first = resident() - start;
    round(&mut cache, 1);
    to_other.send(cache).expect("it waits");
    let _cache = from_other.recv().expect("it answers");
    let last = resident() - start;
    assert_eq!(store.len(), OBJECTS);
    let bytes = first / OBJECTS as f64;
    let growth = last / first;
    println!(
        "{bytes:.0} bytes each after the first list, {growth:.2} times that after {ROUNDS} updates"
    );
    assert!(each.contains(&bytes), "{bytes} bytes each after the first list");
    assert!(growth < GOAL, "{growth:.2} times {bytes:.0} bytes each after {ROUNDS} updates");
    drop(to_other);
    other.join().expect("it ends");
    store
}
