//! The queue of deltas by key, case by case.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use super::{Pod, drain, name_of, store};
use crate::ObjectDelta::{Added, Replaced, Sync, Updated};
use crate::{Deleted, DeltaFifo, DeltaType, Deltas, ObjectDelta, ProcessOutcome, Queue};

type Pods = DeltaFifo<&'static str, Pod>;

fn queue() -> Pods {
    DeltaFifo::new(name_of)
}

fn seen(pod: Pod) -> ObjectDelta<Pod> {
    ObjectDelta::Deleted(Deleted::seen(pod))
}

fn missed(pod: Pod) -> ObjectDelta<Pod> {
    ObjectDelta::Deleted(Deleted::missed(Some(pod)))
}

fn popped(queue: &mut Pods) -> Vec<(&'static str, Vec<ObjectDelta<Pod>>)> {
    drain(queue).into_iter().map(|(Deltas { key, deltas }, _)| (key, deltas)).collect()
}

#[test]
fn mechanism_26_a_pop_hands_out_the_deltas_of_one_key_oldest_first() {
    let mut queue = queue();
    queue.add(("a", 1)).unwrap();
    queue.add(("b", 1)).unwrap();
    queue.update(("a", 2)).unwrap();
    queue.delete(("a", 3), &()).unwrap();
    queue.add(("a", 4)).unwrap();
    let a = vec![Added(("a", 1)), Updated(("a", 2)), seen(("a", 3)), Added(("a", 4))];
    let types: Vec<_> = a.iter().map(ObjectDelta::delta_type).collect();
    assert_eq!(types, [DeltaType::Added, DeltaType::Updated, DeltaType::Deleted, DeltaType::Added]);
    assert_eq!(queue.get(&"a"), Some(&*a));
    assert_eq!(popped(&mut queue), [("a", a), ("b", vec![Added(("b", 1))])]);
}

#[test]
fn mechanism_26_the_types_of_deltas_are_all_there_are() {
    let all = [Added(1), Updated(1), ObjectDelta::Deleted(Deleted::seen(1)), Replaced(1), Sync(1)];
    for delta in all {
        // No arm for the rest: a new type would not compile here.
        let name = match delta.delta_type() {
            DeltaType::Added => "Added",
            DeltaType::Updated => "Updated",
            DeltaType::Deleted => "Deleted",
            DeltaType::Replaced => "Replaced",
            DeltaType::Sync => "Sync",
            DeltaType::ReplacedAll => "ReplacedAll",
            DeltaType::SyncAll => "SyncAll",
            DeltaType::Bookmark => "Bookmark",
        };
        assert_eq!(delta.delta_type().to_string(), name);
        assert_eq!(delta.object(), Some(&1));
    }
}

#[test]
fn mechanism_27_two_deletions_merge_into_the_one_that_knows_more() {
    // A tombstone, then the deletion itself.
    let mut queue = queue();
    queue.add(("a", 1)).unwrap();
    queue.replace(vec![], "2", &());
    queue.delete(("a", 3), &()).unwrap();
    assert_eq!(popped(&mut queue), [("a", vec![Added(("a", 1)), seen(("a", 3))])]);

    // The deletion, then a list without the object.
    queue.add(("a", 1)).unwrap();
    queue.delete(("a", 3), &()).unwrap();
    queue.replace(vec![], "4", &store(&[("a", 1)]));
    assert_eq!(popped(&mut queue), [("a", vec![Added(("a", 1)), seen(("a", 3))])]);

    // Two tombstones, two deletions.
    queue.replace(vec![], "5", &store(&[("a", 1)]));
    queue.replace(vec![], "6", &store(&[("a", 1)]));
    assert_eq!(popped(&mut queue), [("a", vec![missed(("a", 1))])]);
    queue.delete(("a", 7), &store(&[("a", 1)])).unwrap();
    queue.delete(("a", 8), &store(&[("a", 1)])).unwrap();
    assert_eq!(popped(&mut queue), [("a", vec![seen(("a", 8))])]);
}

#[test]
fn mechanism_27_a_sync_is_not_skipped_because_a_deletion_is_queued() {
    // A listed object after a deletion is another object under the same key, so it is not skipped.
    let mut queue = queue().lists_as_sync();
    queue.add(("a", 1)).unwrap();
    queue.delete(("a", 1), &()).unwrap();
    queue.replace(vec![("a", 2)], "2", &());
    let deltas = vec![Added(("a", 1)), seen(("a", 1)), Sync(("a", 2))];
    assert_eq!(popped(&mut queue), [("a", deltas)]);
}

#[test]
fn mechanism_28_a_deletion_of_what_nobody_knows_is_ignored() {
    let mut queue = queue();
    queue.delete(("a", 1), &()).unwrap();
    assert!(queue.is_empty());
    assert!(queue.has_synced(), "it was a change before any list all the same");
    queue.delete(("a", 1), &store(&[("b", 1)])).unwrap();
    assert!(queue.is_empty());
    queue.delete(("a", 2), &store(&[("a", 1)])).unwrap();
    assert_eq!(popped(&mut queue), [("a", vec![seen(("a", 2))])]);
    queue.add(("c", 1)).unwrap();
    queue.delete(("c", 1), &()).unwrap();
    assert_eq!(popped(&mut queue), [("c", vec![Added(("c", 1)), seen(("c", 1))])]);
}

#[test]
fn mechanism_29_a_list_makes_tombstones_of_what_it_lacks() {
    // Known and not listed; known and listed; queued only; queued and deleted; queued and known.
    let mut queue = queue();
    queue.add(("queued", 1)).unwrap();
    queue.delete(("gone", 2), &store(&[("gone", 1)])).unwrap();
    queue.update(("both", 2)).unwrap();
    let known = store(&[("known", 1), ("listed", 1), ("gone", 1), ("both", 1)]);
    queue.replace(vec![("listed", 2), ("new", 1)], "9", &known);
    assert_eq!(
        popped(&mut queue),
        [
            ("queued", vec![Added(("queued", 1)), missed(("queued", 1))]),
            ("gone", vec![seen(("gone", 2))]),
            ("both", vec![Updated(("both", 2)), missed(("both", 2))]),
            ("listed", vec![Replaced(("listed", 2))]),
            ("new", vec![Replaced(("new", 1))]),
            ("known", vec![missed(("known", 1))]),
        ]
    );
}

#[test]
fn mechanism_29_a_listed_object_after_a_queued_deletion_is_kept_beside_it() {
    let mut queue = queue();
    queue.delete(("a", 1), &store(&[("a", 1)])).unwrap();
    queue.replace(vec![("a", 5)], "5", &store(&[("a", 1)]));
    assert_eq!(popped(&mut queue), [("a", vec![seen(("a", 1)), Replaced(("a", 5))])]);
}

#[test]
fn mechanism_29_a_list_with_an_object_without_a_key_buries_nothing() {
    let mut queue = queue();
    let known = store(&[("a", 1)]);
    let refused = queue.replace(vec![("broken", 1), ("b", 1)], "5", &known);
    assert_eq!(refused.len(), 1);
    assert_eq!(popped(&mut queue), [("b", vec![Replaced(("b", 1))])]);
}

#[test]
fn listed_objects_are_delivered_as_replaced_or_as_sync() {
    let mut new = queue();
    new.replace(vec![("a", 1)], "1", &());
    assert_eq!(popped(&mut new), [("a", vec![Replaced(("a", 1))])]);
    let mut old = queue().lists_as_sync();
    old.replace(vec![("a", 1)], "1", &());
    assert_eq!(popped(&mut old), [("a", vec![Sync(("a", 1))])]);
}

#[test]
fn mechanism_30_a_resync_delivers_only_known_keys_without_deltas() {
    let mut queue = queue();
    queue.resync(&());
    assert!(queue.is_empty());
    queue.update(("a", 2)).unwrap();
    queue.delete(("c", 1), &store(&[("c", 1)])).unwrap();
    queue.resync(&store(&[("a", 1), ("b", 1), ("c", 1)]));
    // An older Sync after the Updated would take the store back.
    assert_eq!(
        popped(&mut queue),
        [("a", vec![Updated(("a", 2))]), ("c", vec![seen(("c", 1))]), ("b", vec![Sync(("b", 1))]),]
    );
}

#[test]
fn mechanism_24_tombstones_of_the_first_list_belong_to_it() {
    let mut queue = queue();
    queue.replace(vec![("a", 2)], "2", &store(&[("a", 1), ("b", 1), ("c", 1)]));
    let mut popped = Vec::new();
    while !queue.has_synced() {
        let taken = queue.take().unwrap();
        assert!(taken.is_initial);
        popped.push(taken.item.key);
    }
    assert_eq!(popped, ["a", "b", "c"]);
    assert!(queue.is_empty());
}

#[test]
fn mechanism_22_deltas_that_are_given_back_yield_to_newer_ones() {
    let mut queue = queue();
    queue.add(("a", 1)).unwrap();
    queue.add(("b", 1)).unwrap();
    assert_eq!(queue.pop(|_, _| ProcessOutcome::<()>::Requeue), Some(ProcessOutcome::Requeue));
    let taken = queue.take().unwrap();
    assert_eq!(taken.item.key, "b");
    queue.update(("b", 2)).unwrap();
    queue.give_back(taken);
    assert_eq!(popped(&mut queue), [("a", vec![Added(("a", 1))]), ("b", vec![Updated(("b", 2))])]);
}

#[test]
fn a_transform_sees_each_object_once_but_no_tombstone_and_no_sync() {
    let calls = Arc::new(AtomicU32::new(0));
    let counted = Arc::clone(&calls);
    let mut queue = queue().transform(move |(name, version)| {
        counted.fetch_add(1, Ordering::Relaxed);
        if name == "bad" { Err("it cannot be trimmed".into()) } else { Ok((name, version + 100)) }
    });
    queue.add(("a", 1)).unwrap();
    queue.update(("a", 2)).unwrap();
    queue.delete(("a", 3), &()).unwrap();
    queue.replace(vec![("b", 1)], "4", &store(&[("c", 105)]));
    assert_eq!(calls.load(Ordering::Relaxed), 4);
    queue.resync(&store(&[("d", 106)]));
    assert_eq!(calls.load(Ordering::Relaxed), 4);
    let refused = queue.add(("bad", 1)).unwrap_err();
    assert_eq!(refused.to_string(), "the object \"bad\" was not queued: its transform failed");
    assert_eq!(
        popped(&mut queue),
        [
            ("a", vec![Added(("a", 101)), Updated(("a", 102)), seen(("a", 103))]),
            ("b", vec![Replaced(("b", 101))]),
            ("c", vec![missed(("c", 105))]),
            ("d", vec![Sync(("d", 106))]),
        ]
    );
}

#[test]
fn deltas_carry_their_key_whatever_happened_last() {
    let mut queue = queue();
    queue.add(("a", 1)).unwrap();
    queue.replace(vec![], "2", &());
    let item = queue.take().unwrap().item;
    assert_eq!(item.key, "a");
    assert_eq!(item.newest(), Some(&missed(("a", 1))));
    assert_eq!(DeltaFifo::states(&item), [("a", None)]);
}
