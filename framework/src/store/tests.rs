use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use k8s_openapi::api::core::v1::ConfigMap;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::clock::Clock;
use crate::delta::Delta;
use crate::resource::{DynamicObject, ResourceInfo, Selector};
use crate::wire::Skim;

fn core() -> Arc<Core> {
    Core::new(ResourceInfo::of::<ConfigMap>(), Clock::system())
}

fn store(core: &Arc<Core>) -> Store<ConfigMap> {
    Store::new(Arc::clone(core))
}

fn config_map(name: &str, uid: &str, version: u64) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {
        "namespace": "n", "name": name, "uid": uid, "resourceVersion": version.to_string()}})
}

fn sighting(core: &Core, object: &Value, run: Run) -> Sighting {
    let bytes = object.to_string();
    Sighting { object: core.object(&Skim::of(bytes.as_bytes()).unwrap()), run, is_initial: false }
}

fn put(core: &Core, object: &Value) -> Vec<String> {
    told(core.apply(vec![Delta::Put(sighting(core, object, Run::default()))]))
}

fn delete(core: &Core, object: &Value) -> Vec<String> {
    told(core.apply(vec![Delta::Delete(sighting(core, object, Run::default()))]))
}

fn listed(run: u32, version: &str, what: Milestone) -> Delta<Sighting, Mark> {
    Delta::Mark(Mark {
        scope: 0,
        namespace: None,
        run: Run { epoch: 0, number: run },
        resource_version: Arc::from(version),
        what,
    })
}

/// A run that shows exactly `objects`, as the reflector does it.
fn relist(core: &Core, run: u32, version: &str, objects: &[Value]) -> Applied {
    let run_of = Run { epoch: 0, number: run };
    let mut batch: Vec<_> = objects
        .iter()
        .map(|object| {
            let bytes = object.to_string();
            let skim = Skim::of(bytes.as_bytes()).unwrap();
            let object = core.same_version(&skim).unwrap_or_else(|| core.object(&skim));
            Delta::Put(Sighting { object, run: run_of, is_initial: run == 1 })
        })
        .collect();
    batch.push(listed(run, version, Milestone::Listed));
    core.apply(batch)
}

fn told(applied: Applied) -> Vec<String> {
    applied
        .events
        .iter()
        .map(|event| {
            let show = |object: &Object| {
                format!("{}/{}@{}", object.key().name(), object.head().uid(), object.version())
            };
            match event {
                Event::Added { new, .. } => format!("+{}", show(new)),
                Event::Updated { old, new } => format!("~{}>{}", show(old), new.version()),
                Event::Deleted { last, final_state_unknown: true } => format!("?{}", show(last)),
                Event::Deleted { last, .. } => format!("-{}", show(last)),
            }
        })
        .collect()
}

fn key(name: &str) -> ObjectKey {
    ObjectKey::new(Some("n"), name)
}

/// G-C1, G-C3, B6.
#[test]
fn frames_that_are_not_newer_than_the_cached_object_are_dropped_and_counted() {
    let core = core();
    put(&core, &config_map("a", "u", 10));
    for version in [9, 10] {
        let applied = core.apply(vec![Delta::Put(sighting(
            &core,
            &config_map("a", "u", version),
            Run::default(),
        ))]);
        assert_eq!((applied.events.len(), applied.dropped), (0, 1));
    }
    assert!(delete(&core, &config_map("a", "u", 9)).is_empty());
    assert_eq!(store(&core).get(&key("a")).unwrap().head().resource_version(), "10");
}

/// B6: tombstones last until the next list.
#[test]
fn a_deleted_object_is_not_brought_back_by_an_older_frame() {
    let core = core();
    put(&core, &config_map("a", "u", 10));
    assert_eq!(delete(&core, &config_map("a", "u", 12)), ["-a/u@10"]);
    assert!(put(&core, &config_map("a", "u", 11)).is_empty());
    assert_eq!(put(&core, &config_map("a", "v", 13)), ["+a/v@13"]);
}

/// B10, G-C4.
#[test]
fn an_object_deleted_and_recreated_is_told_as_deleted_then_added() {
    let core = core();
    put(&core, &config_map("a", "u1", 1));
    assert_eq!(put(&core, &config_map("a", "u2", 5)), ["?a/u1@1", "+a/u2@5"]);
    // An older incarnation cannot take the newer one's place.
    assert!(put(&core, &config_map("a", "u1", 4)).is_empty());
    assert!(delete(&core, &config_map("a", "u1", 4)).is_empty());
}

/// B9, G-C4.
#[test]
fn what_a_list_does_not_show_is_deleted_with_its_last_state() {
    let core = core();
    relist(&core, 1, "5", &[config_map("a", "ua", 1), config_map("b", "ub", 2)]);
    let applied = relist(&core, 2, "9", &[config_map("b", "ub", 7), config_map("c", "uc", 8)]);
    assert_eq!(told(applied), ["~b/ub@2>7", "+c/uc@8", "?a/ua@1"]);
    let applied = core.apply(vec![listed(3, "10", Milestone::ListedInPart)]);
    assert!(applied.events.is_empty(), "a list with unreadable names deletes nothing");
    let applied = core.apply(vec![listed(4, "11", Milestone::Absent)]);
    assert_eq!(told(applied), ["?b/ub@7", "?c/uc@8"]);
    assert_eq!((core.seen_len(), core.bytes()), (0, 0));
}

#[test]
fn a_relist_keeps_unchanged_objects_in_place() {
    let core = core();
    let objects = [config_map("a", "ua", 1), config_map("b", "ub", 2)];
    relist(&core, 1, "5", &objects);
    let before = store(&core).list();
    assert!(relist(&core, 2, "9", &objects).events.is_empty());
    let after = store(&core).list();
    assert!(before.iter().zip(&after).all(|(before, after)| before.is_same(after)));
}

/// B8: versions of two epochs do not compare.
#[test]
fn a_new_epoch_accepts_older_versions_and_tells_every_object_again() {
    let core = core();
    put(&core, &config_map("a", "u", 100));
    let run = Run { epoch: 1, number: 2 };
    for version in [100, 40] {
        put(&core, &config_map("a", "u", 100));
        let applied =
            core.apply(vec![Delta::Put(sighting(&core, &config_map("a", "u", version), run))]);
        assert_eq!(applied.events.len(), 1, "version {version}");
        let next = Run { epoch: 1, number: 3 };
        let applied =
            core.apply(vec![Delta::Put(sighting(&core, &config_map("a", "u", 39), next))]);
        assert_eq!(applied.dropped, 1, "within the epoch versions compare again");
        core.apply(vec![listed(99, "1", Milestone::Absent)]);
    }
}

/// C1, G-C9.
#[test]
fn an_object_that_does_not_decode_is_invalid_and_still_deletable() {
    let core = core();
    let mut bad = config_map("bad", "u", 1);
    bad["data"] = json!({"k": {"not": "a string"}});
    put(&core, &bad);
    put(&core, &config_map("good", "v", 2));
    let store = store(&core);
    assert_eq!(core.invalid(), 0, "nobody has read it yet");
    let invalid = store.get(&key("bad")).unwrap().get().unwrap_err();
    assert!(invalid.message.starts_with(".data.k: "), "{invalid}");
    assert_eq!(core.invalid(), 1);
    assert!(store.get(&key("good")).unwrap().get().is_ok());
    bad["metadata"]["resourceVersion"] = json!("3");
    assert_eq!(delete(&core, &bad), ["-bad/u@1"]);
    assert_eq!(core.invalid(), 0);
}

#[test]
fn an_object_is_decoded_once_while_somebody_holds_it() {
    let core = core();
    put(&core, &config_map("a", "u", 1));
    let cached = store(&core).get(&key("a")).unwrap();
    let first = cached.get().unwrap();
    assert!(Arc::ptr_eq(&first, &store(&core).get(&key("a")).unwrap().get().unwrap()));
    let weak = Arc::downgrade(&first);
    drop(first);
    assert!(weak.upgrade().is_none(), "the cache keeps bytes, not values");
}

#[test]
fn bytes_are_kept_without_what_no_reader_needs_and_dynamic_objects_get_their_kind_back() {
    let core = core();
    let mut object = config_map("a", "u", 1);
    object["metadata"]["managedFields"] = json!([{"manager": "x"}]);
    object["metadata"]["annotations"] = json!({"note": "n\"1"});
    put(&core, &object);
    let cached = store(&core).get(&key("a")).unwrap();
    let raw = String::from_utf8_lossy(&cached.raw()).into_owned();
    assert!(!raw.contains("managedFields") && !raw.contains("apiVersion"), "{raw}");
    assert_eq!(cached.annotation("note").as_deref(), Some("n\"1"));
    let dynamic: Store<DynamicObject> = Store::new(Arc::clone(&core));
    let dynamic = dynamic.get(&key("a")).unwrap().get().unwrap();
    assert_eq!((dynamic.api_version.as_str(), dynamic.kind.as_str()), ("v1", "ConfigMap"));
}

const BY_HOST: Index<ConfigMap, String> = Index::on_path("host", &["data", "host"]);
static DECODES: AtomicUsize = AtomicUsize::new(0);

fn hosts(object: &ConfigMap) -> Vec<String> {
    DECODES.fetch_add(1, Ordering::Relaxed);
    object.data.iter().flatten().filter(|(k, _)| *k == "host").map(|(_, v)| v.clone()).collect()
}

const BY_FUNCTION: Index<ConfigMap, String> = Index::new("function", hosts);

fn with_host(name: &str, version: u64, host: &str) -> Value {
    let mut object = config_map(name, "u", version);
    object["data"] = json!({"host": host});
    object
}

fn names(found: &[Cached<ConfigMap>]) -> Vec<&str> {
    found.iter().map(|cached| cached.key().name()).collect()
}

/// G-C5.
#[test]
fn an_index_follows_every_change_and_leaves_no_empty_value_behind() {
    let core = core();
    let store = store(&core);
    put(&core, &with_host("b", 1, "x"));
    put(&core, &with_host("a", 2, "x"));
    for index in [BY_HOST, BY_FUNCTION] {
        assert_eq!(names(&store.by_index(index, "x")), ["a", "b"]);
    }
    put(&core, &with_host("a", 3, "y"));
    put(&core, &with_host("c", 4, "y"));
    for index in [BY_HOST, BY_FUNCTION] {
        assert_eq!(names(&store.by_index(index, "x")), ["b"]);
        assert_eq!(names(&store.by_index(index, "y")), ["a", "c"]);
    }
    delete(&core, &with_host("b", 5, "x"));
    assert!(store.by_index(BY_HOST, "x").is_empty());
    assert_eq!(core.state.read().tables[0].values(), 1);
}

#[test]
fn an_index_on_a_path_does_not_decode_and_a_function_sees_each_version_once() {
    let core = core();
    let store = store(&core);
    let mut bad = with_host("bad", 1, "x");
    bad["data"]["number"] = json!(7);
    put(&core, &bad);
    assert_eq!(names(&store.by_index(BY_HOST, "x")), ["bad"]);
    assert!(store.by_index(BY_FUNCTION, "x").is_empty(), "what does not decode has no values");
    let before = DECODES.load(Ordering::Relaxed);
    put(&core, &with_host("good", 2, "x"));
    assert_eq!(names(&store.by_index(BY_FUNCTION, "x")), ["good"]);
    store.by_index(BY_FUNCTION, "y");
    assert!(DECODES.load(Ordering::Relaxed) > before);
}

static SLOW: std::sync::OnceLock<Store<ConfigMap>> = std::sync::OnceLock::new();

/// Stands for a reader that asks for a new index while a batch is being prepared.
fn builds_another(_: &ConfigMap) -> Vec<String> {
    if let Some(store) = SLOW.get() {
        store.ensure_index(BY_HOST);
    }
    Vec::new()
}

#[test]
fn an_index_built_while_a_batch_is_prepared_misses_nothing_of_it() {
    let core = core();
    let store = store(&core);
    store.ensure_index(Index::<_, String>::new("slow", builds_another));
    SLOW.set(store.clone()).unwrap();
    put(&core, &with_host("a", 1, "x"));
    assert_eq!(names(&store.by_index(BY_HOST, "x")), ["a"]);
}

#[test]
fn a_selection_is_by_namespace_and_labels() {
    let core = core();
    for (namespace, name, app) in
        [("n", "a", "x"), ("n", "b", "y"), ("m", "c", "x"), ("n-", "d", "x")]
    {
        let mut object = config_map(name, "u", 1);
        object["metadata"]["namespace"] = json!(namespace);
        object["metadata"]["labels"] = json!({"app": app});
        put(&core, &object);
    }
    let store = store(&core);
    let x = Selector::everything().equals("app", "x");
    assert_eq!(names(&store.select(Some("n"), &x)), ["a"]);
    assert_eq!(names(&store.select(None, &x)), ["c", "a", "d"]);
    assert_eq!(store.select(Some("n"), &Selector::everything()).len(), 2);
}

#[test]
fn children_are_found_by_their_owners_uid() {
    let core = core();
    for (name, owners) in [("a", vec!["x"]), ("b", vec!["y", "x"]), ("c", vec![])] {
        let mut object = config_map(name, "u", 1);
        let owner = |uid: &&str| json!({"apiVersion": "v1", "kind": "O", "name": "o", "uid": uid});
        object["metadata"]["ownerReferences"] = owners.iter().map(owner).collect();
        put(&core, &object);
    }
    assert_eq!(names(&store(&core).owned_by("x")), ["a", "b"]);
    assert_eq!(names(&store(&core).owned_by("y")), ["b"]);
}

#[test]
fn a_secrets_value_does_not_stand_in_the_error() {
    use k8s_openapi::api::core::v1::Secret;
    let core = Core::new(ResourceInfo::of::<Secret>(), Clock::system());
    let mut object = config_map("a", "u", 1);
    object["type"] = json!(["hunter2"]);
    object["data"] = json!("hunter2");
    put(&core, &object);
    let error = Store::<Secret>::new(core).list()[0].get().unwrap_err().to_string();
    assert!(!error.contains("hunter2") && error.contains(".data"), "{error}");
}

fn wrote(core: &Core, object: &Value) {
    let bytes = object.to_string();
    core.wrote(core.object(&Skim::of(bytes.as_bytes()).unwrap()));
}

/// G-C8.
#[tokio::test(start_paused = true)]
async fn an_own_write_is_seen_at_once_by_every_kind_of_read() {
    let core = core();
    let store = store(&core);
    put(&core, &with_host("a", 1, "x"));
    store.ensure_index(BY_HOST);
    wrote(&core, &with_host("a", 5, "y"));
    wrote(&core, &with_host("new", 6, "y"));
    assert_eq!(store.get(&key("a")).unwrap().head().resource_version(), "5");
    assert_eq!(store.get_seen(&key("a")).unwrap().head().resource_version(), "1");
    assert_eq!(names(&store.list()), ["a", "new"]);
    assert_eq!(store.len(), 2);
    assert_eq!(names(&store.by_index(BY_HOST, "y")), ["a", "new"]);
    assert!(store.by_index(BY_HOST, "x").is_empty());
    core.deleted(&key("a"), "u");
    assert!(store.get(&key("a")).is_none());
    assert_eq!(names(&store.list()), ["new"]);
}

/// G-C8.
#[tokio::test(start_paused = true)]
async fn an_own_write_gives_way_to_the_watch_and_to_time() {
    let core = core();
    let store = store(&core);
    put(&core, &with_host("a", 1, "x"));
    wrote(&core, &with_host("a", 5, "y"));
    put(&core, &with_host("a", 4, "z"));
    assert_eq!(store.get(&key("a")).unwrap().head().resource_version(), "5");
    put(&core, &with_host("a", 6, "z"));
    assert_eq!(store.get(&key("a")).unwrap().head().resource_version(), "6");

    wrote(&core, &with_host("a", 9, "y"));
    assert_eq!(delete(&core, &with_host("a", 10, "y")), ["-a/u@6"]);
    assert!(store.get(&key("a")).is_none(), "a deletion after the write ends it");
    wrote(&core, &with_host("a", 9, "y"));
    assert!(store.get(&key("a")).is_none(), "and a late answer does not bring it back");

    wrote(&core, &with_host("b", 20, "y"));
    tokio::time::advance(Duration::from_secs(9)).await;
    assert!(store.get(&key("b")).is_some() && !store.is_stale(&key("b")));
    tokio::time::advance(Duration::from_secs(1)).await;
    assert!(store.get(&key("b")).is_none() && store.is_stale(&key("b")));
    relist(&core, 2, "30", &[]);
    assert!(!store.is_stale(&key("b")), "the list is later than the write and does not show it");
}

/// A list that was taken before an own write does not undo it.
#[tokio::test(start_paused = true)]
async fn an_own_creation_survives_a_list_that_is_older() {
    let core = core();
    wrote(&core, &config_map("a", "u", 20));
    relist(&core, 1, "19", &[]);
    assert!(store(&core).get(&key("a")).is_some());
    relist(&core, 2, "21", &[]);
    assert!(store(&core).get(&key("a")).is_none());
}

/// The server: every key's history, by version.
#[derive(Clone, Debug)]
struct Write {
    name: u8,
    delete: bool,
    label: u8,
}

/// What the network does with the history between two relists.
#[derive(Clone, Debug)]
enum Delivery {
    Next(usize),
    Skip(usize),
    Again(usize),
    Relist,
}

fn writes() -> impl Strategy<Value = Vec<Write>> {
    let write = (0_u8..5, prop::bool::weighted(0.3), 0_u8..3)
        .prop_map(|(name, delete, label)| Write { name, delete, label });
    prop::collection::vec(write, 1..40)
}

fn deliveries() -> impl Strategy<Value = Vec<Delivery>> {
    prop::collection::vec(
        prop_oneof![
            4 => (1_usize..6).prop_map(Delivery::Next),
            1 => (1_usize..4).prop_map(Delivery::Skip),
            1 => (1_usize..9).prop_map(Delivery::Again),
            1 => Just(Delivery::Relist),
        ],
        0..20,
    )
}

/// One event of the server's history, and the server's state after it.
struct Step {
    delete: bool,
    object: Value,
    state: BTreeMap<u8, Value>,
}

fn history(writes: &[Write]) -> Vec<Step> {
    let mut state: BTreeMap<u8, Value> = BTreeMap::new();
    let mut steps = Vec::new();
    for (i, write) in writes.iter().enumerate() {
        let version = i as u64 + 1;
        let mut object = match (write.delete, state.get(&write.name)) {
            (true, None) => continue,
            (_, Some(there)) => there.clone(),
            (false, None) => config_map(&write.name.to_string(), &format!("u{version}"), version),
        };
        object["metadata"]["resourceVersion"] = json!(version.to_string());
        if write.delete {
            state.remove(&write.name);
        } else {
            object["data"] = json!({"host": write.label.to_string()});
            state.insert(write.name, object.clone());
        }
        steps.push(Step { delete: write.delete, object, state: state.clone() });
    }
    steps
}

/// A listener that believes only what it is told.
#[derive(Default)]
struct Listener {
    view: BTreeMap<String, (String, String)>,
}

impl Listener {
    fn hear(&mut self, applied: &Applied) -> Result<(), TestCaseError> {
        for event in &applied.events {
            let state = |o: &Object| (o.head().uid().to_owned(), o.version().to_owned());
            let name = event.key().name().to_owned();
            match event {
                Event::Added { new, .. } => {
                    prop_assert_eq!(self.view.insert(name, state(new)), None);
                }
                Event::Updated { old, new } => {
                    prop_assert_eq!(old.head().uid(), new.head().uid());
                    prop_assert!(order(old.version(), new.version()).unwrap().is_lt());
                    prop_assert_eq!(self.view.insert(name, state(new)), Some(state(old)));
                }
                Event::Deleted { last, .. } => {
                    prop_assert_eq!(self.view.remove(&name), Some(state(last)));
                }
            }
        }
        Ok(())
    }
}

proptest! {
    /// G-C1, G-C2, G-C4, G-C5, G-C6: with gaps, repeats and relists in any order, the store never
    /// goes back, its listener's picture is the store's, and it ends where the server ended.
    #[test]
    fn the_store_follows_the_server_through_gaps_repeats_and_relists(
        writes in writes(), deliveries in deliveries(), split in 1_usize..5,
    ) {
        let steps = history(&writes);
        let core = core();
        let store = store(&core);
        store.ensure_index(BY_HOST);
        let mut listener = Listener::default();
        let mut queue = crate::delta::DeltaQueue::new();
        let (mut at, mut run, mut gap) = (0_usize, 1, false);
        let mut plan = deliveries;
        plan.extend([Delivery::Relist, Delivery::Next(usize::MAX)]);
        for delivery in plan {
            let run_of = Run { epoch: 0, number: run };
            let show = |queue: &mut crate::delta::DeltaQueue<_, _>, steps: &[Step]| {
                for step in steps {
                    let seen = sighting(&core, &step.object, run_of);
                    queue.push(if step.delete { Delta::Delete(seen) } else { Delta::Put(seen) });
                }
            };
            match delivery {
                // After a gap nothing is trusted but a list.
                Delivery::Next(_) if gap => {}
                Delivery::Next(count) => {
                    let end = steps.len().min(at.saturating_add(count));
                    show(&mut queue, &steps[at..end]);
                    at = end;
                }
                Delivery::Again(count) => show(&mut queue, &steps[at.saturating_sub(count)..at]),
                Delivery::Skip(count) => {
                    at = steps.len().min(at + count);
                    gap = true;
                }
                Delivery::Relist => {
                    (run, gap) = (run + 1, false);
                    let objects: Vec<_> = at
                        .checked_sub(1)
                        .map(|at| steps[at].state.values().cloned().collect())
                        .unwrap_or_default();
                    for object in &objects {
                        let bytes = object.to_string();
                        let skim = Skim::of(bytes.as_bytes()).unwrap();
                        let object = core.same_version(&skim).unwrap_or_else(|| core.object(&skim));
                        let run = Run { epoch: 0, number: run };
                        queue.push(Delta::Put(Sighting { object, run, is_initial: false }));
                    }
                    queue.push(listed(run, &at.to_string(), Milestone::Listed));
                }
            }
            // The store applies now and then, in parts.
            let most = if delivery_is_last(&queue, split) { usize::MAX } else { split };
            let applied = core.apply(queue.take(most));
            listener.hear(&applied)?;
        }
        let applied = core.apply(queue.take(usize::MAX));
        listener.hear(&applied)?;

        let wanted: BTreeMap<_, _> = steps.last().map(|step| &step.state).into_iter().flatten()
            .map(|(name, object)| {
                let meta = &object["metadata"];
                let text = |field: &str| meta[field].as_str().unwrap().to_owned();
                (name.to_string(), (text("uid"), text("resourceVersion")))
            })
            .collect();
        let shown: BTreeMap<_, _> = store.list().iter()
            .map(|cached| {
                let head = cached.head();
                let state = (head.uid().to_owned(), head.resource_version().to_owned());
                (cached.key().name().to_owned(), state)
            })
            .collect();
        prop_assert_eq!(&shown, &wanted);
        prop_assert_eq!(&listener.view, &wanted);
        for host in 0..3 {
            let host = host.to_string();
            let found: Vec<_> =
                store.by_index(BY_HOST, &host).iter().map(|c| c.key().clone()).collect();
            let scanned: Vec<_> = store.list().iter()
                .filter(|c| c.get().unwrap().data.as_ref().unwrap()["host"] == host)
                .map(|c| c.key().clone())
                .collect();
            prop_assert_eq!(found, scanned);
        }
        let bytes: usize = store.list().iter().map(|cached| cached.raw().len()).sum();
        prop_assert_eq!(core.bytes(), bytes);
    }
}

fn delivery_is_last<T: crate::delta::Keyed, M>(
    queue: &crate::delta::DeltaQueue<T, M>,
    split: usize,
) -> bool {
    queue.len() > 4 * split
}
