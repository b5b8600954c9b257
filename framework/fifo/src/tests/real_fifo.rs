//! The queue that merges nothing, case by case.

use std::sync::Arc;

use super::{Pod, drain, name_of, store};
use crate::ObjectDelta::{Added, Replaced, Sync, Updated};
use crate::{
    Deleted, DeltaType, EnqueueError, ObjectDelta, ProcessOutcome, Queue, RealDelta, RealFifo,
};

type Pods = RealFifo<&'static str, Pod>;

fn queue() -> Pods {
    RealFifo::new(100, name_of)
}

fn seen(pod: Pod) -> ObjectDelta<Pod> {
    ObjectDelta::Deleted(Deleted::seen(pod))
}

fn missed(pod: Pod) -> ObjectDelta<Pod> {
    ObjectDelta::Deleted(Deleted::missed(Some(pod)))
}

fn deltas(queue: &mut Pods) -> Vec<ObjectDelta<Pod>> {
    let object = |item| match item {
        RealDelta::Object { delta, .. } => Some(delta),
        _ => None,
    };
    drain(queue).into_iter().filter_map(|(item, _)| object(item)).collect()
}

#[test]
fn mechanism_32_nothing_is_merged_and_everything_comes_out_in_order() {
    let mut queue = queue();
    queue.add(("a", 1)).unwrap();
    queue.update(("a", 2)).unwrap();
    queue.add(("b", 1)).unwrap();
    queue.delete(("a", 3), &()).unwrap();
    queue.delete(("a", 3), &()).unwrap();
    queue.add(("a", 4)).unwrap();
    assert_eq!(queue.len(), 6);
    assert_eq!(
        deltas(&mut queue),
        [
            Added(("a", 1)),
            Updated(("a", 2)),
            Added(("b", 1)),
            seen(("a", 3)),
            seen(("a", 3)),
            Added(("a", 4)),
        ]
    );
}

#[test]
fn mechanism_32_a_full_queue_refuses_and_gives_the_object_back() {
    let mut queue = RealFifo::new(2, name_of);
    queue.add(("a", 1)).unwrap();
    queue.update(("a", 2)).unwrap();
    assert!(!queue.has_room());
    for refused in [queue.add(("b", 7)), queue.update(("b", 7)), queue.delete(("b", 7), &())] {
        let refused = refused.unwrap_err();
        assert!(matches!(refused, EnqueueError::Full(_)));
        assert_eq!(refused.into_object(), Some(("b", 7)));
    }
    let refused = queue.replace(vec![("b", 7), ("c", 7)], "7", &());
    assert_eq!(refused.len(), 2);
    assert!(!queue.bookmark("8"));
    assert_eq!(deltas(&mut queue), [Added(("a", 1)), Updated(("a", 2))]);
    queue.add(("b", 7)).unwrap();
}

#[test]
fn mechanism_32_a_list_delivers_deletions_before_present_objects() {
    let mut queue = queue();
    queue.add(("queued", 1)).unwrap();
    queue.update(("queued", 2)).unwrap();
    queue.delete(("gone", 2), &()).unwrap();
    queue.delete(("again", 2), &()).unwrap();
    let known = store(&[("known", 1), ("queued", 0), ("gone", 1), ("listed", 1)]);
    queue.replace(vec![("listed", 2), ("again", 3)], "9", &known);
    assert_eq!(
        deltas(&mut queue),
        [
            Added(("queued", 1)),
            Updated(("queued", 2)),
            seen(("gone", 2)),
            seen(("again", 2)),
            missed(("queued", 2)),
            missed(("known", 1)),
            Replaced(("listed", 2)),
            Replaced(("again", 3)),
        ]
    );
}

#[test]
fn mechanism_32_an_empty_list_is_taken_by_a_full_queue_and_loses_no_deletion() {
    let mut queue = RealFifo::new(1, name_of);
    queue.add(("a", 1)).unwrap();
    let known = store(&[("b", 1)]);
    for _ in 0..3 {
        assert!(queue.replace(vec![], "7", &known).is_empty());
    }
    let first = deltas(&mut queue);
    assert_eq!(first[..2], [Added(("a", 1)), missed(("a", 1))]);
    assert_eq!(first[2..], [missed(("b", 1))], "each is told once");
    let mut queue = RealFifo::new(1, name_of).atomic();
    queue.add(("a", 1)).unwrap();
    for version in ["7", "8"] {
        assert!(queue.replace(vec![], version, &()).is_empty());
        assert_eq!(queue.len(), 2, "one empty list says it");
    }
    queue.take();
    let list = queue.take().unwrap().item;
    assert!(
        matches!(&list, RealDelta::ReplacedAll { objects, resource_version, .. }
            if objects.is_empty() && **resource_version == *"8"),
        "{list:?}"
    );
}

#[test]
fn empty_lists_and_resyncs_that_nobody_takes_do_not_pile_up() {
    let mut queue = RealFifo::new(1, name_of).atomic();
    queue.add(("a", 1)).unwrap();
    let known = store(&[("a", 1)]);
    for round in 0..5 {
        queue.resync(&known);
        assert!(queue.replace(vec![], &format!("{round}"), &known).is_empty());
    }
    let types: Vec<_> = queue.iter().map(RealDelta::delta_type).collect();
    assert_eq!(types, [DeltaType::Added, DeltaType::SyncAll, DeltaType::ReplacedAll]);
    assert!(matches!(queue.iter().last(),
        Some(RealDelta::ReplacedAll { resource_version, .. }) if **resource_version == *"4"));
}

#[test]
fn a_list_of_nothing_but_refused_objects_does_not_hide_an_empty_one() {
    let mut queue = RealFifo::new(9, |pod: &(&'static str, u32)| match pod.0 {
        "" => Err("no name".into()),
        name => Ok(name),
    })
    .atomic();
    queue.add(("a", 1)).unwrap();
    for version in ["7", "8"] {
        assert_eq!(queue.replace(vec![("", 1)], version, &()).len(), 1);
        queue.resync(&());
    }
    assert_eq!(queue.len(), 3, "one list in part, one resync");
    assert!(queue.replace(vec![], "9", &()).is_empty());
    assert!(matches!(queue.iter().last(), Some(RealDelta::ReplacedAll { is_whole: true, .. })));
}

#[test]
fn a_resync_of_everything_waits_once() {
    let mut queue = RealFifo::new(1, name_of).atomic();
    for _ in 0..3 {
        queue.resync(&store(&[("a", 1)]));
    }
    assert_eq!(queue.len(), 1);
}

#[test]
fn a_resync_delivers_known_keys_without_deltas() {
    let mut queue = queue();
    queue.update(("a", 2)).unwrap();
    queue.resync(&store(&[("a", 1), ("b", 1)]));
    assert_eq!(deltas(&mut queue), [Updated(("a", 2)), Sync(("b", 1))]);
}

#[test]
fn the_first_list_with_its_tombstones_must_be_taken_out() {
    let mut queue = queue();
    queue.replace(vec![("a", 2)], "2", &store(&[("b", 1)]));
    queue.add(("c", 1)).unwrap();
    let told: Vec<_> = std::iter::from_fn(|| {
        let synced = queue.has_synced();
        queue.take().map(|taken| (taken.is_initial, synced))
    })
    .collect();
    assert_eq!(told, [(true, false), (true, false), (false, true)]);
}

/// Keys of each batch.
fn batches(queue: &mut Pods, most: usize) -> Vec<(Vec<&'static str>, bool)> {
    let mut batches = Vec::new();
    while queue
        .pop_batch(most, |batch, is_initial| {
            let key = |item: &RealDelta<_, _>| item.key().copied().unwrap_or("-");
            batches.push((batch.iter().map(key).collect(), is_initial));
            ProcessOutcome::<()>::Done
        })
        .is_some()
    {}
    batches
}

#[test]
fn mechanism_32_a_batch_ends_at_a_repeated_key() {
    let mut queue = queue();
    for name in ["a", "b", "a", "c", "b", "b"] {
        queue.add((name, 1)).unwrap();
    }
    let found = batches(&mut queue, 1000);
    assert_eq!(found, [(vec!["a", "b"], false), (vec!["a", "c", "b"], false), (vec!["b"], false),]);
    for name in ["a", "b", "c"] {
        queue.add((name, 1)).unwrap();
    }
    assert_eq!(batches(&mut queue, 2), [(vec!["a", "b"], false), (vec!["c"], false)]);
}

#[test]
fn mechanism_32_a_batch_ends_with_the_first_list() {
    let mut queue = queue();
    queue.replace(vec![("a", 1), ("b", 1)], "1", &());
    queue.add(("c", 1)).unwrap();
    assert_eq!(batches(&mut queue, 1000), [(vec!["a", "b"], true), (vec!["c"], false)]);
}

#[test]
fn mechanism_32_what_concerns_more_than_one_object_comes_alone() {
    let mut queue = queue().atomic();
    queue.add(("a", 1)).unwrap();
    queue.add(("b", 1)).unwrap();
    assert!(queue.bookmark("3"));
    queue.add(("c", 1)).unwrap();
    queue.resync(&());
    queue.replace(vec![("a", 2)], "5", &());
    queue.add(("d", 1)).unwrap();
    let found: Vec<_> = batches(&mut queue, 1000).into_iter().map(|(keys, _)| keys).collect();
    assert_eq!(found, [vec!["a", "b"], vec!["-"], vec!["c"], vec!["-"], vec!["-"], vec!["d"]]);
}

#[test]
fn an_object_without_a_key_costs_itself_and_not_its_batch() {
    let mut queue = queue();
    queue.add(("a", 1)).unwrap();
    assert!(matches!(queue.add(("broken", 1)), Err(EnqueueError::Key { .. })));
    queue.add(("b", 1)).unwrap();
    assert_eq!(batches(&mut queue, 1000), [(vec!["a", "b"], false)]);
    let refused = queue.replace(vec![("c", 1), ("broken", 1), ("d", 1)], "1", &store(&[("e", 1)]));
    assert_eq!(refused.len(), 1);
    assert_eq!(batches(&mut queue, 1000), [(vec!["c", "d"], false)], "and no tombstone for e");
}

#[test]
fn mechanism_32_an_atomic_queue_hands_out_a_list_whole() {
    let mut queue = queue().atomic();
    queue.replace(vec![("a", 1), ("b", 1)], "7", &store(&[("z", 1)]));
    assert_eq!(queue.len(), 1);
    let taken = queue.take().unwrap();
    assert!(taken.is_initial && queue.has_synced());
    assert_eq!(
        taken.item,
        RealDelta::ReplacedAll {
            objects: vec![("a", ("a", 1)), ("b", ("b", 1))],
            is_whole: true,
            resource_version: Arc::from("7"),
        }
    );
    queue.replace(vec![("a", 2), ("broken", 1)], "8", &());
    let item = queue.take().unwrap().item;
    assert!(matches!(item, RealDelta::ReplacedAll { is_whole: false, .. }));
    queue.resync(&store(&[("a", 1), ("b", 1)]));
    assert_eq!(queue.take().unwrap().item.delta_type(), DeltaType::SyncAll);
    assert!(queue.is_empty());
}

#[test]
fn a_bookmark_before_any_list_does_not_count_as_synced() {
    let mut queue = queue();
    assert!(queue.bookmark("3"));
    assert!(!queue.has_synced());
    assert_eq!(queue.take().unwrap().item.delta_type(), DeltaType::Bookmark);
    assert!(!queue.has_synced());
}

#[test]
fn what_is_given_back_stands_in_front_again_and_counts_again() {
    let mut queue = queue();
    queue.replace(vec![("a", 1), ("b", 1)], "1", &());
    assert_eq!(
        queue.pop_batch(9, |_, _| ProcessOutcome::<()>::Requeue),
        Some(ProcessOutcome::Requeue)
    );
    assert!(!queue.has_synced());
    queue.update(("a", 2)).unwrap();
    assert_eq!(queue.pop(|_, _| ProcessOutcome::<()>::Requeue), Some(ProcessOutcome::Requeue));
    assert_eq!(deltas(&mut queue), [Replaced(("a", 1)), Replaced(("b", 1)), Updated(("a", 2))]);
    assert!(queue.has_synced());
}
