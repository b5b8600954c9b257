//! The queue of newest objects, case by case.

use super::{Pod, drain, name_of};
use crate::{Fifo, ProcessOutcome, Queue};

type Pods = Fifo<&'static str, Pod>;

fn queue() -> Pods {
    Fifo::new(name_of)
}

fn objects(queue: &mut Pods) -> Vec<Pod> {
    drain(queue).into_iter().map(|((_, pod), _)| pod).collect()
}

#[test]
fn mechanism_19_several_adds_before_a_pop_hand_out_the_latest_once_in_the_first_place() {
    let mut queue = queue();
    for pod in [("a", 1), ("b", 1), ("a", 2), ("c", 1)] {
        queue.add(pod).unwrap();
    }
    queue.update(("b", 3)).unwrap();
    assert_eq!(queue.len(), 3);
    assert_eq!(objects(&mut queue), [("a", 2), ("b", 3), ("c", 1)]);
}

#[test]
fn all_that_is_added_comes_out_in_order() {
    let names: Vec<&'static str> = (0..500).map(|n| &*Box::leak(format!("{n}").into())).collect();
    let mut queue = queue();
    for name in &names {
        queue.add((name, 0)).unwrap();
    }
    let popped: Vec<_> = objects(&mut queue).into_iter().map(|(name, _)| name).collect();
    assert_eq!(popped, names);
}

#[test]
fn a_change_of_a_waiting_key_does_not_jump_the_line() {
    let mut queue = queue();
    for pod in [("a", 1), ("b", 1), ("c", 1)] {
        queue.add(pod).unwrap();
    }
    let pop = |queue: &mut Pods| queue.take().unwrap().item.1;
    assert_eq!(pop(&mut queue), ("a", 1));
    queue.add(("a", 2)).unwrap();
    queue.add(("c", 2)).unwrap();
    assert_eq!(objects(&mut queue), [("b", 1), ("c", 2), ("a", 2)]);
}

#[test]
fn mechanism_20_a_deleted_key_keeps_its_place_and_pops_skip_it() {
    let mut queue = queue();
    for pod in [("a", 1), ("b", 1), ("c", 1)] {
        queue.add(pod).unwrap();
    }
    queue.delete(("a", 1), &()).unwrap();
    queue.delete(("b", 1), &()).unwrap();
    assert_eq!((queue.len(), queue.get(&"a")), (1, None));
    queue.add(("b", 2)).unwrap();
    assert_eq!(objects(&mut queue), [("b", 2), ("c", 1)]);

    // A key has a single place, however often the key comes and goes.
    for version in 0..100 {
        queue.add(("a", version)).unwrap();
        queue.delete(("a", version), &()).unwrap();
    }
    queue.add(("b", 3)).unwrap();
    queue.add(("a", 100)).unwrap();
    assert_eq!(objects(&mut queue), [("a", 100), ("b", 3)]);
}

#[test]
fn mechanism_22_a_requeued_item_yields_to_a_newer_one() {
    let mut queue = queue();
    queue.add(("a", 1)).unwrap();
    queue.add(("b", 1)).unwrap();
    assert_eq!(queue.pop(|_, _| ProcessOutcome::<()>::Requeue), Some(ProcessOutcome::Requeue));
    assert_eq!(objects(&mut queue), [("b", 1), ("a", 1)], "at the end of the line");

    queue.add(("a", 1)).unwrap();
    let taken = queue.take().unwrap();
    queue.add(("a", 2)).unwrap();
    queue.give_back(taken);
    assert_eq!(objects(&mut queue), [("a", 2)]);
    assert!(queue.add_if_not_present("a", ("a", 3)));
    assert!(!queue.add_if_not_present("a", ("a", 2)));
    assert_eq!(queue.get(&"a"), Some(&("a", 3)));
}

#[test]
fn mechanism_23_a_replacement_drops_what_is_not_listed() {
    let mut queue = queue();
    queue.add(("a", 1)).unwrap();
    queue.add(("b", 1)).unwrap();
    assert!(queue.replace(vec![("c", 5), ("b", 5), ("c", 6)], "5", &()).is_empty());
    assert_eq!(queue.len(), 2);
    assert_eq!(objects(&mut queue), [("c", 6), ("b", 5)]);
}

#[test]
fn a_replacement_with_an_object_without_a_key_drops_nothing() {
    let mut queue = queue();
    queue.add(("a", 1)).unwrap();
    assert_eq!(queue.replace(vec![("broken", 1), ("b", 5)], "5", &()).len(), 1);
    assert_eq!(objects(&mut queue), [("a", 1), ("b", 5)]);
}

#[test]
fn mechanism_24_has_synced_case_by_case() {
    type Step = fn(&mut Pods);
    let two: Step = |queue| drop(queue.replace(vec![("a", 1), ("b", 1)], "1", &()));
    let none: Step = |queue| drop(queue.replace(vec![], "1", &()));
    let other: Step = |queue| drop(queue.replace(vec![("c", 1)], "2", &()));
    let add: Step = |queue| queue.add(("c", 1)).unwrap();
    let delete: Step = |queue| queue.delete(("a", 1), &()).unwrap();
    let pop: Step = |queue| {
        queue.take();
    };
    let cases: [(&str, &[Step], bool); 12] = [
        ("nothing happened", &[], false),
        ("an empty list", &[none], true),
        ("a list", &[two], false),
        ("a list, one pop", &[two, pop], false),
        ("a list, all popped", &[two, pop, pop], true),
        ("added before any list", &[add], true),
        ("deleted before any list", &[delete], true),
        ("added before a list", &[add, two], true),
        ("a list, popped, another list", &[two, pop, pop, other], true),
        ("a list, a shorter list, one pop", &[two, other, pop], true),
        ("a list, a shorter list", &[two, other], false),
        (
            "a list with a deleted object, one pop, and one that skips",
            &[two, delete, pop, pop],
            true,
        ),
    ];
    for (case, steps, expected) in cases {
        let mut queue = queue();
        steps.iter().for_each(|step| step(&mut queue));
        assert_eq!(queue.has_synced(), expected, "{case}");
    }
}

#[test]
fn only_the_first_list_is_initial() {
    let mut queue = queue();
    queue.replace(vec![("a", 1), ("b", 1)], "1", &());
    queue.add(("c", 1)).unwrap();
    let initial: Vec<_> = drain(&mut queue).into_iter().map(|(_, is_initial)| is_initial).collect();
    assert_eq!(initial, [true, true, false]);
    queue.replace(vec![("a", 2)], "2", &());
    assert!(!queue.take().unwrap().is_initial);
}

/// Upstream's resync queues every key again that has an object and no place. After the resync there
/// must be no such key, whatever was done before, and keys with a place keep it.
#[test]
fn mechanism_25_after_a_resync_every_object_is_handed_out_once_whatever_happened_before() {
    type Step = fn(&mut Pods);
    const STEPS: [Step; 9] = [
        |queue| queue.add(("a", 1)).unwrap(),
        |queue| queue.update(("b", 1)).unwrap(),
        |queue| queue.delete(("a", 2), &()).unwrap(),
        |queue| {
            queue.add_if_not_present("b", ("b", 3));
        },
        |queue| drop(queue.replace(vec![("b", 4), ("c", 4)], "4", &())),
        |queue| drop(queue.replace(vec![("broken", 5), ("c", 5)], "5", &())),
        |queue| {
            queue.take();
        },
        |queue| {
            if let Some(taken) = queue.take() {
                queue.give_back(taken);
            }
        },
        |queue| queue.resync(&super::store(&[("a", 9), ("z", 9)])),
    ];
    for number in 0..STEPS.len().pow(5) {
        let steps: Vec<usize> =
            (0..5).map(|place| number / STEPS.len().pow(place) % STEPS.len()).collect();
        let mut queue = queue();
        steps.iter().for_each(|step| STEPS[*step](&mut queue));
        let placed: Vec<_> = queue.list().map(|(_, pod)| *pod).collect();
        queue.resync(&super::store(&[("a", 9), ("z", 9)]));
        let held: Vec<_> =
            ["a", "b", "c", "z"].iter().filter_map(|key| queue.get(key)).copied().collect();
        let handed_out = objects(&mut queue);
        assert_eq!(handed_out, placed, "a resync moves nothing: {steps:?}");
        let mut sorted = handed_out;
        sorted.sort_unstable();
        assert_eq!(sorted, held, "each object that it holds is handed out once: {steps:?}");
    }
}

#[test]
fn mechanism_25_every_object_has_a_place_so_a_resync_queues_nothing() {
    let mut queue = queue();
    for pod in [("a", 1), ("b", 1)] {
        queue.add(pod).unwrap();
    }
    queue.resync(&super::store(&[("z", 1)]));
    let listed: Vec<_> = queue.list().map(|(_, pod)| *pod).collect();
    assert_eq!(listed, [("a", 1), ("b", 1)]);
    assert_eq!(objects(&mut queue), listed);
}
