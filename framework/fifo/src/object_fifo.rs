//! A queue of objects that holds the newest state of each key.
//!
//! For consumers that need current states, not changes: a deleted object is not handed out at all.
//! There are no tombstones and no deltas.
//!
//! Invariants: each key in `order` has an entry and the other way round; `objects` counts the
//! entries with an object; `initial` counts the entries of the first list.

use std::collections::{BTreeMap, VecDeque};
use std::fmt;

use super::contract::{Queue, QueueItem, Replacement};
use super::key_lister::KeyListerGetter;
use super::object_delta::ObjectDelta;
use super::rules::Rules;
use windlass_core::error::BoxError;

/// Objects by key, in the order in which the keys first came.
///
/// - Several adds of a key before its pop hand out the latest object once, at the place of the
///   first.
/// - A deletion removes the object and leaves the key's place; pops skip it, and a later add of the
///   key uses the place again.
/// - [`replace`](Queue::replace) drops objects that are not in the list.
/// - The queue has synced when the objects of the first list were taken out, replaced or deleted;
///   at once when an object was added before any list.
/// - A requeued item goes back to the end if its key is not queued; a requeued item no longer
///   counts for `has_synced`.
///
/// The queue holds at most one object and one entry per key that is not taken out.
///
/// ```
/// # extern crate windlass_fifo as windlass;
/// use windlass::fifo::{Fifo, ProcessOutcome, Queue};
///
/// let mut queue = Fifo::new(|word: &String| Ok(word[..1].to_owned()));
/// for word in ["apple", "banana", "avocado"] {
///     queue.add(word.to_owned())?;
/// }
/// queue.delete("banana".to_owned(), &())?;
///
/// let mut popped = Vec::new();
/// while queue.pop(|(_, word), _| { popped.push(word.clone()); ProcessOutcome::<()>::Done }).is_some() {}
/// assert_eq!(popped, ["avocado"]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Fifo<K, T> {
    /// Names and trims objects.
    rules: Rules<K, T>,
    /// The keys that have a place, in order.
    order: VecDeque<K>,
    /// The places by key.
    entries: BTreeMap<K, QueuedObject<T>>,
    /// Places with an object.
    objects: usize,
    /// Whether anything was queued: an empty queue has not synced before.
    is_populated: bool,
    /// Places of the first list that were not taken out.
    initial: usize,
}

/// The place of a key; without an object after a deletion.
struct QueuedObject<T> {
    /// The newest state; `None` after a deletion.
    object: Option<T>,
    /// Whether the place belongs to the first list.
    is_initial: bool,
}

impl<K, T> fmt::Debug for Fifo<K, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Fifo")
            .field("objects", &self.objects)
            .field("initial", &self.initial)
            .finish_non_exhaustive()
    }
}

impl<K: Ord + Clone + fmt::Debug, T: Clone> Fifo<K, T> {
    /// Creates an empty queue of objects that `key` names.
    ///
    /// Objects are named by `key` when they are queued; an object that cannot be named is refused.
    pub fn new(key: impl Fn(&T) -> Result<K, BoxError> + Send + Sync + 'static) -> Self {
        Self {
            rules: Rules::new(key),
            order: VecDeque::new(),
            entries: BTreeMap::new(),
            objects: 0,
            is_populated: false,
            initial: 0,
        }
    }

    /// Returns the queued object of `key`.
    ///
    /// The state that the next pop of the key would hand out.
    pub fn get(&self, key: &K) -> Option<&T> {
        self.entries.get(key)?.object.as_ref()
    }

    /// Returns the queued objects, in the order in which they will be handed out.
    pub fn list(&self) -> impl Iterator<Item = (&K, &T)> {
        self.order.iter().filter_map(|key| Some((key, self.get(key)?)))
    }

    /// Queues `object` at the end unless its key is queued already; the queued object is newer
    /// then, and stays. Returns whether `object` was queued.
    pub fn add_if_not_present(&mut self, key: K, object: T) -> bool {
        self.is_populated = true;
        let is_free = self.get(&key).is_none();
        if is_free {
            self.put(key, object, false);
        }
        is_free
    }

    /// Queues a state at the key's place, or at the end.
    fn put(&mut self, key: K, object: T, is_initial: bool) {
        match self.entries.get_mut(&key) {
            Some(entry) => {
                self.objects += usize::from(entry.object.is_none());
                entry.object = Some(object);
            }
            None => {
                self.order.push_back(key.clone());
                self.entries.insert(key, QueuedObject { object: Some(object), is_initial });
                self.objects += 1;
                self.initial += usize::from(is_initial);
            }
        }
    }
}

impl<K: Ord + Clone + fmt::Debug, T: Clone> Queue for Fifo<K, T> {
    type Key = K;
    type Object = T;
    type Popped = (K, T);

    fn rules(&self) -> &Rules<K, T> {
        &self.rules
    }

    fn enter(&mut self, key: K, delta: ObjectDelta<T>, _known: &dyn KeyListerGetter<K, T>) {
        self.is_populated = true;
        match delta {
            ObjectDelta::Deleted(_) => {
                // The place stays: a later add of the key uses the place again.
                let entry = self.entries.get_mut(&key);
                let object = entry.and_then(|entry| entry.object.take());
                self.objects -= usize::from(object.is_some());
            }
            ObjectDelta::Added(object)
            | ObjectDelta::Updated(object)
            | ObjectDelta::Replaced(object)
            | ObjectDelta::Sync(object) => self.put(key, object, false),
        }
    }

    /// A list that is not whole drops nothing.
    fn enter_list(&mut self, list: Replacement<K, T>, _known: &dyn KeyListerGetter<K, T>) {
        // A list that comes before the first list was taken out replaces it, and counts as the
        // first list, too.
        let is_initial = !self.has_synced();
        self.is_populated = true;
        // Objects that a whole list lacks are gone; a partial list drops none.
        if list.is_whole {
            self.order.clear();
            self.entries.clear();
            (self.objects, self.initial) = (0, 0);
        }
        for (key, object) in list.objects {
            self.put(key, object, is_initial);
        }
    }

    /// Does nothing: every object has a place by construction.
    fn resync(&mut self, _known: &dyn KeyListerGetter<K, T>) {}

    fn take(&mut self) -> Option<QueueItem<(K, T)>> {
        loop {
            let key = self.order.pop_front()?;
            let Some(entry) = self.entries.remove(&key) else { continue };
            self.initial -= usize::from(entry.is_initial);
            // The place of a deleted object is skipped.
            if let Some(object) = entry.object {
                self.objects -= 1;
                return Some(QueueItem { item: (key, object), is_initial: entry.is_initial });
            }
        }
    }

    fn give_back(&mut self, taken: QueueItem<(K, T)>) {
        let (key, object) = taken.item;
        // An object that was queued meanwhile is newer, and wins.
        self.add_if_not_present(key, object);
    }

    fn states((key, object): &(K, T)) -> Vec<(K, Option<T>)> {
        vec![(key.clone(), Some(object.clone()))]
    }

    fn has_synced(&self) -> bool {
        self.is_populated && self.initial == 0
    }

    fn len(&self) -> usize {
        self.objects
    }
}
