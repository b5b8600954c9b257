//! Each queue against a model that keeps plain lists and searches them.

use proptest::prelude::*;

use super::{Pod, Store, name_of};
use crate::{
    Deleted, DeltaFifo, Deltas, Fifo, KeyListerGetter, ObjectDelta, Queue, QueueItem, RealDelta,
    RealFifo,
};

const NAMES: [&str; 4] = ["a", "b", "c", "d"];

#[derive(Clone, Debug)]
enum Step {
    Add(usize),
    Update(usize),
    Delete(usize),
    List(Vec<usize>),
    Resync,
    /// Takes an item; the consumer's store follows unless the item goes back.
    Pop {
        back: bool,
    },
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let name = 0..NAMES.len();
    let step = prop_oneof![
        3 => name.clone().prop_map(Step::Add),
        3 => name.clone().prop_map(Step::Update),
        3 => name.clone().prop_map(Step::Delete),
        2 => proptest::collection::vec(name, 0..4).prop_map(Step::List),
        1 => Just(Step::Resync),
        6 => any::<u8>().prop_map(|back| Step::Pop { back: back % 5 == 0 }),
    ];
    proptest::collection::vec(step, 1..60)
}

/// A queue as a model: the waiting items, and whether each is of the first list.
trait Model: Default {
    type Popped: PartialEq + std::fmt::Debug + Clone;
    fn change(&mut self, delta: ObjectDelta<Pod>, known: &Store);
    fn list(&mut self, list: &[Pod], known: &Store);
    fn resync(&mut self, known: &Store);
    fn take(&mut self) -> Option<QueueItem<Self::Popped>>;
    fn give_back(&mut self, taken: QueueItem<Self::Popped>);
    fn has_synced(&self) -> bool;
}

fn agrees<Q, M>(mut queue: Q, steps: Vec<Step>) -> Result<(), TestCaseError>
where
    Q: Queue<Key = &'static str, Object = Pod, Popped = M::Popped>,
    M: Model,
{
    let mut model = M::default();
    let mut known = Store::new();
    for (version, step) in steps.into_iter().enumerate() {
        let pod = |name: usize| (NAMES[name], version as u32);
        match step {
            Step::Add(name) => {
                queue.add(pod(name)).unwrap();
                model.change(ObjectDelta::Added(pod(name)), &known);
            }
            Step::Update(name) => {
                queue.update(pod(name)).unwrap();
                model.change(ObjectDelta::Updated(pod(name)), &known);
            }
            Step::Delete(name) => {
                queue.delete(pod(name), &known).unwrap();
                model.change(ObjectDelta::Deleted(Deleted::seen(pod(name))), &known);
            }
            Step::List(names) => {
                let list: Vec<Pod> = names.into_iter().map(pod).collect();
                prop_assert!(queue.replace(list.clone(), "1", &known).is_empty());
                model.list(&list, &known);
            }
            Step::Resync => {
                queue.resync(&known);
                model.resync(&known);
            }
            Step::Pop { back } => {
                let (taken, expected) = (queue.take(), model.take());
                prop_assert_eq!(&taken, &expected);
                if let (Some(taken), Some(expected)) = (taken, expected) {
                    if back {
                        queue.give_back(taken);
                        model.give_back(expected);
                    } else {
                        for (key, state) in Q::states(&taken.item) {
                            match state {
                                Some(state) => known.insert(key, state),
                                None => known.remove(key),
                            };
                        }
                    }
                }
            }
        }
        prop_assert_eq!(queue.has_synced(), model.has_synced());
    }
    while let Some(taken) = queue.take() {
        prop_assert_eq!(Some(taken), model.take());
    }
    prop_assert_eq!(model.take(), None);
    prop_assert_eq!(queue.has_synced(), model.has_synced());
    prop_assert_eq!(queue.len(), 0);
    Ok(())
}

/// Key, object unless deleted, and whether the object is of the first list.
#[derive(Default)]
struct FifoModel {
    places: Vec<(&'static str, Option<Pod>, bool)>,
    is_populated: bool,
}

impl FifoModel {
    fn put(&mut self, pod: Pod, is_initial: bool) {
        match self.places.iter_mut().find(|place| place.0 == pod.0) {
            Some(place) => place.1 = Some(pod),
            None => self.places.push((pod.0, Some(pod), is_initial)),
        }
    }
}

impl Model for FifoModel {
    type Popped = (&'static str, Pod);

    fn change(&mut self, delta: ObjectDelta<Pod>, _known: &Store) {
        self.is_populated = true;
        match &delta {
            ObjectDelta::Deleted(deleted) => {
                let name = deleted.last_known.unwrap().0;
                if let Some(place) = self.places.iter_mut().find(|place| place.0 == name) {
                    place.1 = None;
                }
            }
            _ => self.put(*delta.object().unwrap(), false),
        }
    }

    fn list(&mut self, list: &[Pod], _known: &Store) {
        let is_initial = !self.has_synced();
        self.is_populated = true;
        self.places.clear();
        list.iter().for_each(|pod| self.put(*pod, is_initial));
    }

    fn resync(&mut self, _known: &Store) {}

    fn take(&mut self) -> Option<QueueItem<Self::Popped>> {
        while !self.places.is_empty() {
            if let (name, Some(pod), is_initial) = self.places.remove(0) {
                return Some(QueueItem { item: (name, pod), is_initial });
            }
        }
        None
    }

    fn give_back(&mut self, taken: QueueItem<Self::Popped>) {
        let (name, pod) = taken.item;
        if !self.places.iter().any(|place| place.0 == name && place.1.is_some()) {
            self.put(pod, false);
        }
    }

    fn has_synced(&self) -> bool {
        self.is_populated && !self.places.iter().any(|place| place.2)
    }
}

/// Every delta with the key, in order of arrival; each pop collects those of the first key.
#[derive(Default)]
struct DeltaModel {
    deltas: Vec<(&'static str, ObjectDelta<Pod>, bool)>,
    is_populated: bool,
}

impl DeltaModel {
    fn push(&mut self, name: &'static str, delta: ObjectDelta<Pod>, is_initial: bool) {
        let last = self.deltas.iter_mut().rev().find(|queued| queued.0 == name);
        let is_initial = last.as_ref().map_or(is_initial, |last| last.2);
        match (last.map(|last| &mut last.1), &delta) {
            (Some(ObjectDelta::Deleted(before)), ObjectDelta::Deleted(after)) => {
                if after.certain || !before.certain && before.last_known.is_none() {
                    *before = after.clone();
                }
            }
            _ => self.deltas.push((name, delta, is_initial)),
        }
    }
}

impl Model for DeltaModel {
    type Popped = Deltas<&'static str, Pod>;

    fn change(&mut self, delta: ObjectDelta<Pod>, known: &Store) {
        self.is_populated = true;
        let name = delta.object().unwrap().0;
        let is_known = known.contains_key(name) || self.deltas.iter().any(|one| one.0 == name);
        if is_known || !matches!(delta, ObjectDelta::Deleted(_)) {
            self.push(name, delta, false);
        }
    }

    fn list(&mut self, list: &[Pod], known: &Store) {
        let is_initial = !self.is_populated;
        self.is_populated = true;
        for pod in list {
            self.push(pod.0, ObjectDelta::Replaced(*pod), is_initial);
        }
        let mut missing: Vec<&str> = Vec::new();
        for name in self.deltas.iter().map(|one| one.0).chain(KeyListerGetter::keys(known)) {
            if !missing.contains(&name) && !list.iter().any(|pod| pod.0 == name) {
                missing.push(name);
            }
        }
        for name in missing {
            let queued = self.deltas.iter().rev().find(|one| one.0 == name);
            let last = match queued {
                Some((_, delta, _)) => delta.object().copied(),
                None => known.get(name).copied(),
            };
            self.push(name, ObjectDelta::Deleted(Deleted::missed(last)), is_initial);
        }
    }

    fn resync(&mut self, known: &Store) {
        for (name, pod) in known {
            if !self.deltas.iter().any(|one| one.0 == *name) {
                self.push(name, ObjectDelta::Sync(*pod), false);
            }
        }
    }

    fn take(&mut self) -> Option<QueueItem<Self::Popped>> {
        let &(key, _, is_initial) = self.deltas.first()?;
        let (mine, others) =
            std::mem::take(&mut self.deltas).into_iter().partition(|one| one.0 == key);
        self.deltas = others;
        let mine: Vec<_> = mine;
        let deltas = mine.into_iter().map(|one| one.1).collect();
        Some(QueueItem { item: Deltas { key, deltas }, is_initial })
    }

    fn give_back(&mut self, taken: QueueItem<Self::Popped>) {
        let Deltas { key, deltas } = taken.item;
        if !self.deltas.iter().any(|one| one.0 == key) {
            self.deltas.extend(deltas.into_iter().map(|delta| (key, delta, false)));
        }
    }

    fn has_synced(&self) -> bool {
        self.is_populated && !self.deltas.iter().any(|one| one.2)
    }
}

#[derive(Default)]
struct RealModel {
    entries: Vec<QueueItem<RealDelta<&'static str, Pod>>>,
    is_populated: bool,
}

impl RealModel {
    fn push(&mut self, key: &'static str, delta: ObjectDelta<Pod>, is_initial: bool) {
        self.entries.push(QueueItem { item: RealDelta::Object { key, delta }, is_initial });
    }

    /// The last queued state of a key; `Some(None)` when that is a deletion.
    fn last(&self, name: &str) -> Option<Option<Pod>> {
        self.entries.iter().rev().find_map(|entry| match &entry.item {
            RealDelta::Object { key, delta } if *key == name => match delta {
                ObjectDelta::Deleted(_) => Some(None),
                delta => Some(delta.object().copied()),
            },
            _ => None,
        })
    }
}

impl Model for RealModel {
    type Popped = RealDelta<&'static str, Pod>;

    fn change(&mut self, delta: ObjectDelta<Pod>, _known: &Store) {
        self.is_populated = true;
        self.push(delta.object().unwrap().0, delta, false);
    }

    fn list(&mut self, list: &[Pod], known: &Store) {
        let is_initial = !self.is_populated;
        self.is_populated = true;
        let mut names: Vec<&'static str> = Vec::new();
        let queued = self.entries.iter().filter_map(|entry| entry.item.key().copied());
        for name in queued.chain(KeyListerGetter::keys(known)) {
            if !names.contains(&name) && !list.iter().any(|pod| pod.0 == name) {
                names.push(name);
            }
        }
        let states: Vec<_> = names
            .iter()
            .map(|name| self.last(name).unwrap_or_else(|| known.get(name).copied()))
            .collect();
        for (name, state) in names.into_iter().zip(states) {
            if state.is_some() {
                self.push(name, ObjectDelta::Deleted(Deleted::missed(state)), is_initial);
            }
        }
        for pod in list {
            self.push(pod.0, ObjectDelta::Replaced(*pod), is_initial);
        }
    }

    fn resync(&mut self, known: &Store) {
        for (name, pod) in known {
            if self.last(name).is_none() {
                self.push(name, ObjectDelta::Sync(*pod), false);
            }
        }
    }

    fn take(&mut self) -> Option<QueueItem<Self::Popped>> {
        (!self.entries.is_empty()).then(|| self.entries.remove(0))
    }

    fn give_back(&mut self, taken: QueueItem<Self::Popped>) {
        self.entries.insert(0, taken);
    }

    fn has_synced(&self) -> bool {
        self.is_populated && !self.entries.iter().any(|entry| entry.is_initial)
    }
}

proptest! {
    #[test]
    fn fifo_does_what_its_model_does(steps in steps()) {
        agrees::<_, FifoModel>(Fifo::new(name_of), steps)?;
    }

    #[test]
    fn delta_fifo_does_what_its_model_does(steps in steps()) {
        agrees::<_, DeltaModel>(DeltaFifo::new(name_of), steps)?;
    }

    #[test]
    fn real_fifo_does_what_its_model_does(steps in steps()) {
        agrees::<_, RealModel>(RealFifo::new(usize::MAX, name_of), steps)?;
    }

    /// A consumer that applies the deltas in order ends in the state of the source.
    #[test]
    fn a_consumer_of_deltas_ends_where_the_source_ended(
        steps in proptest::collection::vec((0..NAMES.len(), 0_u8..4), 1..40)
    ) {
        let mut deltas = DeltaFifo::new(name_of);
        let mut real = RealFifo::new(usize::MAX, name_of);
        let (mut source, mut by_key, mut in_order) = (Store::new(), Store::new(), Store::new());
        let apply = |known: &mut Store, states: Vec<(&'static str, Option<Pod>)>| {
            for (key, state) in states {
                match state {
                    Some(state) => known.insert(key, state),
                    None => known.remove(key),
                };
            }
        };
        for (version, (name, what)) in steps.into_iter().enumerate() {
            let pod = (NAMES[name], version as u32);
            match (what, source.contains_key(pod.0)) {
                (0, true) => {
                    source.remove(pod.0);
                    deltas.delete(pod, &by_key).unwrap();
                    real.delete(pod, &in_order).unwrap();
                }
                // No event is delivered; a list will show the object.
                (1, _) => {
                    source.remove(pod.0);
                }
                (2, _) => {
                    deltas.replace(source.values().copied().collect(), "1", &by_key);
                    real.replace(source.values().copied().collect(), "1", &in_order);
                    let taken = deltas.take().map(|taken| DeltaFifo::states(&taken.item));
                    apply(&mut by_key, taken.unwrap_or_default());
                }
                _ => {
                    source.insert(pod.0, pod);
                    deltas.update(pod).unwrap();
                    real.update(pod).unwrap();
                }
            }
        }
        deltas.replace(source.values().copied().collect(), "2", &by_key);
        real.replace(source.values().copied().collect(), "2", &in_order);
        while let Some(taken) = deltas.take() {
            apply(&mut by_key, DeltaFifo::states(&taken.item));
        }
        while let Some(taken) = real.take_batch(3) {
            let states = taken.item.iter().flat_map(RealFifo::states).collect();
            apply(&mut in_order, states);
        }
        prop_assert_eq!(&by_key, &source);
        prop_assert_eq!(&in_order, &source);
    }
}
