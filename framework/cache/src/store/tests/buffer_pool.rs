//! Memory of objects: bytes after many updates, and allocations when nothing changed.

use super::*;
use crate::store::Representation;

/// An object of about `size` bytes.
fn sized(at: usize, version: u64, size: usize) -> Value {
    let mut object = config_map(&format!("pod-{at:05}"), "u-1", version);
    object["metadata"]["labels"] = json!({"app": format!("app-{}", at / 20)});
    object["data"] = json!({"host": format!("node-{}", at % 7), "filler": "x".repeat(size)});
    object
}

/// The resident goal: no more than 1.2 times the memory of the first sync after 20 updates of each
/// object, whose sizes go up and down.
#[test]
fn after_twenty_updates_of_each_object_the_store_holds_what_it_held() {
    const OBJECTS: usize = 2_000;
    let core = core();
    let store = store(&core);
    store.ensure_index(BY_HOST).unwrap();
    let size = |at: usize, round: usize| 5_600 + (at * 37 + round * 53) % 81;
    let round = |round: usize| {
        let version = |at: usize| (round * OBJECTS + at + 1) as u64;
        for part in (0..OBJECTS).collect::<Vec<_>>().chunks(100) {
            let put = |at: &usize| {
                let object = sized(*at, version(*at), size(*at, round));
                Delta::Put(sighting(&core, &object, ListGeneration::default()))
            };
            core.apply(part.iter().map(put).collect());
        }
    };
    round(0);
    let first = store.stats();
    (1..=20).for_each(round);
    let last = store.stats();
    assert_eq!(last.objects, OBJECTS);
    let waste = last.resident_bytes as f64 / last.payload_bytes as f64;
    assert!(waste < 1.15, "{waste} of {last:?}");
    let growth = last.resident_bytes as f64 / first.resident_bytes as f64;
    assert!(growth < 1.1, "{growth}: {first:?}, then {last:?}");
    let held: usize = store.list().iter().map(|cached| cached.raw().len()).sum();
    assert_eq!(last.payload_bytes, held);
}

#[test]
fn what_is_counted_is_what_is_there_and_goes_when_objects_do() {
    let core = core();
    let store = store(&core);
    store.ensure_index(BY_HOST).unwrap();
    let empty = store.stats();
    for at in 0..500 {
        put(&core, &sized(at, at as u64 + 1, 700 + at));
    }
    let full = store.stats();
    assert_eq!(
        (full.objects, full.indexes, full.index_values, full.index_entries),
        (500, 1, 7, 500)
    );
    assert!(full.resident_bytes > full.payload_bytes);
    let per_object = (full.resident_bytes - full.payload_bytes) / 500;
    assert!(per_object < 400, "{per_object} bytes beside the payload");
    core.apply(vec![listed(9, "1000", MarkKind::Listed)]);
    let gone = store.stats();
    assert_eq!((gone.objects, gone.index_entries, gone.payload_bytes), (0, 0, 0));
    let left = gone.resident_bytes - gone.spare_bytes - empty.resident_bytes;
    assert!(left < 20_000, "{left} bytes are left of {full:?}");
}

/// An object of 1 KB costs no more than 1.2 KB, everything included.
#[test]
fn an_object_is_small_beside_its_bytes() {
    assert_eq!(size_of::<crate::store::object::ObjectContent>(), 24);
    assert!(size_of::<Object>() <= 152, "{}", size_of::<Object>());
}

/// Part 6 of the cache: a list of cached objects costs a scan of their metadata.
#[test]
fn an_unchanged_object_of_a_relist_costs_no_allocation() {
    const OBJECTS: usize = 1_000;
    let core = core();
    let store = store(&core);
    store.ensure_index(BY_HOST).unwrap();
    let bodies: Vec<String> =
        (0..OBJECTS).map(|at| sized(at, at as u64 + 1, 700).to_string()).collect();
    let mut batch = Vec::with_capacity(OBJECTS + 1);
    let list = |run: u32, batch: &mut Vec<_>| {
        for body in &bodies {
            let scan = MetadataScan::of(body.as_bytes()).unwrap();
            let object = core.listed(&scan, 0).0.unwrap_or_else(|| core.object(&scan));
            let run = ListGeneration { epoch: 0, number: run };
            batch.push(Delta::Put(Observed { object, run, is_initial: false }));
        }
    };
    list(1, &mut batch);
    assert_eq!(core.apply(std::mem::take(&mut batch)).events.len(), OBJECTS);
    batch.reserve(OBJECTS + 1);
    let seen = allocation_counter::measure(|| list(2, &mut batch));
    assert_eq!(seen.count_total, 0, "to find out that they are the same");
    batch.push(listed(2, "5000", MarkKind::Listed));
    let applied = allocation_counter::measure(|| {
        assert!(core.apply(std::mem::take(&mut batch)).events.is_empty());
    });
    // A few for each lock, none for an object.
    assert!(applied.count_total < 40, "{}", applied.count_total);
    assert_eq!(store.len(), OBJECTS);
}

/// An update takes the buffer of the version before last.
#[test]
fn an_update_of_the_same_size_allocates_the_object_and_no_bytes() {
    let core = core();
    let store = store(&core);
    store.ensure_index(BY_HOST).unwrap();
    for version in 1..=3 {
        put(&core, &sized(1, version, 5_000));
    }
    let body = sized(1, 9, 5_000).to_string();
    let counted = allocation_counter::measure(|| {
        let object = core.object(&MetadataScan::of(body.as_bytes()).unwrap());
        let seen = Observed { object, run: ListGeneration::default(), is_initial: false };
        assert_eq!(core.apply(vec![Delta::Put(seen)]).events.len(), 1);
    });
    assert!(counted.bytes_total < 2_000, "{} bytes", counted.bytes_total);
    assert!(counted.count_total < 12, "{} allocations", counted.count_total);
}

/// A read by key allocates nothing, a read by index allocates the result.
#[test]
fn a_lookup_allocates_its_result_and_nothing_else() {
    let core = core();
    let store = store(&core);
    store.ensure_index(BY_HOST).unwrap();
    for at in 0..200 {
        put(&core, &sized(at, at as u64 + 1, 100));
    }
    let a = key("pod-00003");
    let get = allocation_counter::measure(|| assert!(store.get(&a).is_some()));
    assert_eq!(get.count_total, 0);
    let lookup = allocation_counter::measure(|| {
        assert_eq!(store.by_index(BY_HOST, "node-3").len(), 29);
    });
    assert_eq!(lookup.count_total, 1);
}

/// A part of a ConfigMap.
#[derive(windlass_macros::Projection, Clone, Debug)]
#[projection(of = ConfigMap)]
struct View {
    metadata: k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta,
    #[projection(path = "data.host")]
    host: Option<String>,
}

/// An update allocates in the arena of the thread that runs the update, and frees into the arena of
/// another: twice as much may be resident before long. The buffers are the store's own, so the
/// memory outside of buffers must be a fifth of an object at most.
#[test]
fn after_twenty_updates_a_projection_holds_no_more_than_a_fifth_more() {
    let share = outside_of_buffers(Representation::Compact);
    assert!((0.0..0.2).contains(&share), "{share}");
    // The former form, which grew to twice the size.
    let decoded = outside_of_buffers(Representation::Typed);
    assert!(decoded > 0.5, "{decoded}");
}

/// The share of a version's memory that is not in buffers of the store.
fn outside_of_buffers(representation: Representation) -> f64 {
    const OBJECTS: usize = 500;
    let settings = StoreSettings::of::<View>(representation, None);
    let core =
        StoreCore::with_settings(ResourceInfo::of::<ConfigMap>(), Clock::system(), settings, 0);
    let store: Store<View> = Store::new(Arc::clone(&core));
    store.ensure_index(Index::<View, String>::on_path("host", &["data", "host"])).unwrap();
    let buffers = || core.shared.memory.used() + core.shared.memory.free();
    let held = || store.stats().resident_bytes - store.stats().spare_bytes;
    let round = |round: usize| {
        for part in (0..OBJECTS).collect::<Vec<_>>().chunks(100) {
            let object = |at: &usize| {
                let vary = at * 37 + round * 53;
                let version = round * OBJECTS + at + 1;
                let mut object = sized(*at, version as u64, 5_600 + vary % 81);
                let note = "n".repeat(600 + vary % 61);
                object["metadata"]["annotations"] = json!({ "note": note });
                object.to_string()
            };
            let bodies: Vec<String> = part.iter().map(object).collect();
            let put = |body: &String| {
                let object = core.object(&MetadataScan::of(body.as_bytes()).unwrap());
                Delta::Put(Observed { object, run: ListGeneration::default(), is_initial: false })
            };
            core.apply(bodies.iter().map(put).collect());
        }
    };
    round(0);
    let first = held();
    (1..=20).for_each(round);
    let growth = held() as f64 / first as f64;
    assert!(growth < 1.1, "{growth} of {first} bytes: {:?}", store.stats());

    let old = store.list();
    let before = buffers();
    let taken = allocation_counter::measure(|| round(21)).bytes_current;
    let general = taken - (buffers() as i64 - before as i64);
    drop(old);
    general as f64 / first as f64
}

/// An object lives as long as the last reference; the block of an object without references serves
/// the next one, and is freed with the store.
#[test]
fn the_block_of_an_object_that_nobody_holds_is_the_next_ones() {
    let core = core();
    let store = store(&core);
    put(&core, &sized(1, 1, 100));
    let (held, first) = (store.list(), store.list()[0].raw().into_owned());
    put(&core, &sized(1, 2, 200));
    assert_eq!(core.shared.blocks.len(), 0, "somebody holds it");
    put(&core, &sized(1, 3, 300));
    assert_eq!(core.shared.blocks.len(), 1);
    put(&core, &sized(2, 4, 100));
    assert_eq!(core.shared.blocks.len(), 0, "it was used");
    assert_eq!(*held[0].raw(), *first);
    let names: Vec<_> = store.list().iter().map(|cached| cached.raw().len()).collect();
    assert!(names[0] > names[1] + 100, "{names:?}");
    put(&core, &sized(2, 5, 100));
    let shared = Arc::downgrade(&core.shared);
    drop((store, held, core));
    assert!(shared.upgrade().is_none(), "blocks do not keep what holds them");
}

/// A finding holds the object, and the object holds the state that has the finding.
#[test]
fn a_store_that_is_dropped_frees_the_objects_that_do_not_decode() {
    let core = core();
    let store = store(&core);
    let mut bad = config_map("bad", "u", 1);
    bad["data"] = json!(7);
    put(&core, &bad);
    let held = store.list();
    assert!(held[0].get().is_err());
    assert_eq!(store.invalid().len(), 1);
    let shared = Arc::downgrade(&core.shared);
    drop((store, core));
    assert!(held[0].get().is_err(), "an object that outlives its store is decoded again");
    drop(held);
    assert!(shared.upgrade().is_none(), "the findings keep nothing");
}
