//! Tests of the queues: named cases, each queue against a naive model, and `Shared`.

mod delta_fifo;
mod model;
mod object_fifo;
mod real_fifo;
mod shared;

use std::collections::BTreeMap;

use super::*;

/// A name and a version.
pub(super) type Pod = (&'static str, u32);
pub(super) type Store = BTreeMap<&'static str, Pod>;

/// The key of a pod; "broken" has none.
pub(super) fn name_of(pod: &Pod) -> Result<&'static str, windlass_core::error::BoxError> {
    if pod.0 == "broken" { Err("it has no name".into()) } else { Ok(pod.0) }
}

pub(super) fn store(pods: &[Pod]) -> Store {
    pods.iter().map(|pod| (pod.0, *pod)).collect()
}

/// Takes out everything, with whether the item is of the first list.
pub(super) fn drain<Q: Queue>(queue: &mut Q) -> Vec<(Q::Popped, bool)>
where
    Q::Popped: Clone,
{
    let mut popped = Vec::new();
    while queue
        .pop(|item, is_initial| {
            popped.push((item.clone(), is_initial));
            ProcessOutcome::<()>::Done
        })
        .is_some()
    {}
    popped
}

/// A life cycle that every queue supports.
fn serves<Q: Queue<Key = &'static str, Object = Pod>>(mut queue: Q) {
    assert!(queue.is_empty() && !queue.has_synced());
    assert!(queue.pop(|_, _| ProcessOutcome::<()>::Done).is_none());
    let refused = queue.replace(vec![("a", 1), ("broken", 1), ("b", 1)], "5", &());
    assert_eq!(refused.len(), 1, "a key that cannot be read costs one item");
    assert!(!queue.has_synced());
    for _ in 0..2 {
        assert_eq!(
            queue.pop(|_, is_initial| {
                assert!(is_initial);
                ProcessOutcome::<()>::Done
            }),
            Some(ProcessOutcome::Done)
        );
    }
    assert!(queue.has_synced() && queue.is_empty());
    queue.add(("c", 1)).unwrap();
    assert_eq!(
        queue.pop(|_, _| ProcessOutcome::Failed("why")),
        Some(ProcessOutcome::Failed("why"))
    );
    assert!(queue.is_empty(), "what failed does not come back by itself");
    queue.update(("c", 2)).unwrap();
    assert_eq!(queue.pop(|_, _| ProcessOutcome::<()>::Requeue), Some(ProcessOutcome::Requeue));
    assert_eq!(queue.len(), 1);
    let refused = queue.delete(("broken", 1), &()).unwrap_err();
    assert_eq!(refused.to_string(), "the object was not queued: its key cannot be read");
    assert_eq!(std::error::Error::source(&refused).unwrap().to_string(), "it has no name");
    assert_eq!(refused.into_object(), Some(("broken", 1)));
}

#[test]
fn mechanism_18_every_queue_serves_the_same_contract() {
    serves(Fifo::new(name_of));
    serves(DeltaFifo::new(name_of));
    serves(RealFifo::new(9, name_of));
}

#[test]
fn known_keys_are_listed_in_order() {
    let known: std::collections::HashMap<_, _> = (0..20).map(|n| (n, n)).collect();
    assert_eq!(KeyListerGetter::keys(&known), (0..20).collect::<Vec<_>>());
}
