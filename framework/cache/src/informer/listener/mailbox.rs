//! The mailbox of a listener: undelivered changes, merged by key, in the order of first arrival.
//!
//! A mailbox holds at most a deletion and a later state of each key, so a listener that is blocked
//! costs as many entries as objects changed meanwhile, however often they did.
//!
//! The mailbox never blocks and makes no callbacks.
//!
//! Invariant: a key is in `order` exactly once while in `waiting`. With `Latest` the merged entry
//! leads from the state that the listener knows to the newest state; with `EachStep` the first step
//! and the newest steps are unchanged, and a single step in between leads from the state after the
//! first to the state before the newest steps.

// DESIGN.md, 57: Merged changes pass a slow predicate without a call

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use crate::store::{Object, StoreEvent};
use windlass_core::resource::ObjectKey;

/// Most undelivered steps of an object; beyond that, steps in the middle are merged into a single
/// step.
const MOST_STEPS: usize = 8;

/// The form in which a listener receives several changes of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::informer) enum MergePolicy {
    /// A single step from the state that was delivered last to the latest.
    Latest,
    /// Every step, so every state that a reader of the cache could have seen: a mapper may map one
    /// state to other objects than the next, and all those objects are affected.
    EachStep,
}

/// An entry that was taken out of the mailbox.
pub(in crate::informer) enum MailboxItem {
    /// A single change, merged from all since the last delivery.
    Change(StoreEvent),
    /// Steps in order; with `is_merged` the second step stands for several.
    Steps { events: Vec<StoreEvent>, is_merged: bool },
    /// A mark: all entries of the first lists have been taken out before this mark.
    Synced,
}

impl MailboxItem {
    /// Returns the key of the entry's object.
    pub(in crate::informer) fn key(&self) -> Option<&ObjectKey> {
        match self {
            Self::Change(event) => Some(event.key()),
            Self::Steps { events, .. } => events.first().map(StoreEvent::key),
            Self::Synced => None,
        }
    }
}

/// A position in the order of delivery.
enum DeliveryPosition {
    /// The place of a key's changes.
    Key(ObjectKey),
    Synced,
}

/// The undelivered changes of a key.
enum PendingChanges {
    /// A deletion and the state afterwards, either of which may be missing; `is_known` says that
    /// the listener received a state of the object before.
    Latest { deleted: Option<StoreEvent>, state: Option<StoreEvent>, is_known: bool },
    /// The steps in order, at most `MOST_STEPS`.
    EachStep { events: Vec<StoreEvent>, is_merged: bool },
}

/// The mailbox of a listener.
pub(in crate::informer) struct Mailbox {
    /// Form in which changes are merged; fixed for a listener.
    merging: MergePolicy,
    /// Keys and marks in the order of delivery.
    order: VecDeque<DeliveryPosition>,
    /// The undelivered changes by key.
    waiting: BTreeMap<ObjectKey, PendingChanges>,
}

impl Mailbox {
    /// Creates an empty mailbox.
    pub(in crate::informer) fn new(merging: MergePolicy) -> Self {
        Self { merging, order: VecDeque::new(), waiting: BTreeMap::new() }
    }

    /// Returns the number of keys with undelivered changes.
    pub(in crate::informer) fn key_count(&self) -> usize {
        self.waiting.len()
    }

    /// Returns whether nothing waits, marks included.
    pub(in crate::informer) fn is_empty(&self) -> bool {
        self.order.is_empty()
    }

    /// Adds a change.
    pub(in crate::informer) fn push(&mut self, event: &StoreEvent) {
        if let Some(waiting) = self.waiting.get_mut(event.key()) {
            return waiting.merge(event);
        }
        self.order.push_back(DeliveryPosition::Key(event.key().clone()));
        self.waiting.insert(event.key().clone(), PendingChanges::first(event, self.merging));
    }

    /// Adds the object for a resync, unless a change of the object waits anyway.
    pub(in crate::informer) fn resync(&mut self, object: &Arc<Object>) {
        if !self.waiting.contains_key(object.key()) {
            self.push(&StoreEvent::Updated { old: Arc::clone(object), new: Arc::clone(object) });
        }
    }

    /// Adds the mark after which the listener counts as synced.
    pub(in crate::informer) fn mark_synced(&mut self) {
        self.order.push_back(DeliveryPosition::Synced);
    }

    /// Takes out the entries of the first keys, at most `most` of them.
    pub(in crate::informer) fn take(&mut self, most: usize) -> Vec<MailboxItem> {
        let mut taken = Vec::with_capacity(self.order.len().min(most));
        for _ in 0..most {
            match self.order.pop_front() {
                None => break,
                Some(DeliveryPosition::Synced) => taken.push(MailboxItem::Synced),
                Some(DeliveryPosition::Key(key)) => match self.waiting.remove(&key) {
                    None => {}
                    Some(PendingChanges::EachStep { events, is_merged }) => {
                        taken.push(MailboxItem::Steps { events, is_merged });
                    }
                    Some(PendingChanges::Latest { deleted, state, .. }) => {
                        taken.extend(deleted.map(MailboxItem::Change));
                        taken.extend(state.map(MailboxItem::Change));
                    }
                },
            }
        }
        taken
    }
}

impl PendingChanges {
    /// Returns the entry of a key's first change.
    fn first(event: &StoreEvent, merging: MergePolicy) -> Self {
        match merging {
            MergePolicy::EachStep => {
                Self::EachStep { events: vec![event.clone()], is_merged: false }
            }
            MergePolicy::Latest => {
                let is_known = !matches!(event, StoreEvent::Added { .. });
                let (deleted, state) = match event {
                    StoreEvent::Deleted { .. } => (Some(event.clone()), None),
                    _ => (None, Some(event.clone())),
                };
                Self::Latest { deleted, state, is_known }
            }
        }
    }

    /// Merges a further change of the same key.
    fn merge(&mut self, event: &StoreEvent) {
        match self {
            Self::EachStep { events, is_merged } => {
                // Bounded: an object that changes faster than the listener returns must not grow
                // without end.
                if events.len() == MOST_STEPS {
                    merge_step(events);
                    *is_merged = true;
                }
                events.push(event.clone());
            }
            Self::Latest { deleted, state, is_known } => match (event, state.as_mut()) {
                (StoreEvent::Deleted { .. }, _) => {
                    // A state before a deletion is not delivered: the listener would take the
                    // object for alive.
                    *state = None;
                    // Among two deletions the deletion of the object that the listener knows is
                    // delivered.
                    if deleted.is_none() || !*is_known {
                        *deleted = Some(event.clone());
                    }
                }
                (StoreEvent::Updated { new, .. }, Some(StoreEvent::Added { new: newest, .. }))
                | (
                    StoreEvent::Updated { new, .. },
                    Some(StoreEvent::Updated { new: newest, .. }),
                ) => {
                    // Only the end of the step moves: an addition that was not delivered stays an
                    // addition.
                    *newest = Arc::clone(new);
                }
                _ => *state = Some(event.clone()),
            },
        }
    }
}

/// Merges two steps in the middle: the result leads from the state before both to the state after
/// them.
fn merge_step(events: &mut Vec<StoreEvent>) {
    let skipped = events.remove(1);
    let Some(next) = events.get_mut(1) else { return };
    match (skipped, &mut *next) {
        (StoreEvent::Updated { old: before, .. }, StoreEvent::Updated { old, .. }) => *old = before,
        (StoreEvent::Added { is_initial, .. }, StoreEvent::Updated { new, .. }) => {
            *next = StoreEvent::Added { new: Arc::clone(new), is_initial };
        }
        (StoreEvent::Deleted { last, .. }, StoreEvent::Added { new, .. }) => {
            *next = StoreEvent::Updated { old: last, new: Arc::clone(new) };
        }
        // Another object had the name before: a mapper of its states must see that object, too.
        (StoreEvent::Updated { old, .. }, StoreEvent::Deleted { last, .. })
            if !old.metadata().has_uid_of(&last.metadata()) =>
        {
            *next = StoreEvent::Updated { old, new: Arc::clone(last) };
        }
        (StoreEvent::Updated { old, .. }, StoreEvent::Added { new, .. }) => {
            *next = StoreEvent::Updated { old, new: Arc::clone(new) };
        }
        // All other pairs end with a deletion, which stands for both.
        _ => {}
    }
}

/// Returns the states that these steps lead through, each once.
pub fn states(events: &[StoreEvent]) -> Vec<&Arc<Object>> {
    let mut states: Vec<&Arc<Object>> = Vec::with_capacity(events.len() + 1);
    let mut add = |state| {
        if !states.iter().any(|known| Arc::ptr_eq(known, state)) {
            states.push(state);
        }
    };
    for event in events {
        match event {
            StoreEvent::Added { new, .. } => add(new),
            StoreEvent::Updated { old, new } => {
                add(old);
                add(new);
            }
            StoreEvent::Deleted { last, .. } => add(last),
        }
    }
    states
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::StoreCore;
    use k8s_openapi::api::core::v1::ConfigMap;
    use proptest::prelude::*;
    use windlass_core::clock::Clock;
    use windlass_core::resource::ResourceInfo;
    use windlass_core::wire::MetadataScan;

    struct World {
        store: Arc<StoreCore>,
        now: BTreeMap<String, Arc<Object>>,
        version: u32,
    }

    impl World {
        fn new() -> Self {
            let store = StoreCore::new(ResourceInfo::of::<ConfigMap>(), Clock::system());
            Self { store, now: BTreeMap::new(), version: 0 }
        }

        fn object(&mut self, name: &str, uid: &str) -> Arc<Object> {
            self.version += 1;
            let text = format!(
                r#"{{"metadata":{{"name":"{name}","uid":"{uid}","resourceVersion":"{}"}}}}"#,
                self.version
            );
            self.store.object(&MetadataScan::of(text.as_bytes()).expect("an object"))
        }

        /// Makes an event: `+a` adds or changes, `-a` deletes.
        fn event(&mut self, step: &str) -> Option<StoreEvent> {
            let (what, name) = step.split_at(1);
            let last = self.now.remove(name);
            if what == "-" {
                return last.map(|last| StoreEvent::Deleted { last, final_state_unknown: false });
            }
            let uid = match &last {
                Some(last) => last.metadata().uid().to_owned(),
                None => format!("u{}", self.version),
            };
            let new = self.object(name, &uid);
            self.now.insert(name.to_owned(), Arc::clone(&new));
            Some(match last {
                Some(old) => StoreEvent::Updated { old, new },
                None => StoreEvent::Added { new, is_initial: false },
            })
        }
    }

    fn show(items: &[MailboxItem]) -> String {
        let at = |object: &Arc<Object>| format!("{}{}", object.key(), object.version());
        let shown: Vec<_> = items
            .iter()
            .map(|item| match item {
                MailboxItem::Synced => "|".to_owned(),
                MailboxItem::Steps { events, .. } => {
                    states(events).into_iter().map(at).collect::<Vec<_>>().join(",")
                }
                MailboxItem::Change(StoreEvent::Added { new, .. }) => format!("+{}", at(new)),
                MailboxItem::Change(StoreEvent::Updated { old, new }) => {
                    format!("{}>{}", at(old), at(new))
                }
                MailboxItem::Change(StoreEvent::Deleted { last, .. }) => format!("-{}", at(last)),
            })
            .collect();
        shown.join(" ")
    }

    /// Runs a script and compares the entries of the last `take`: `/` takes all out, `|` marks.
    #[track_caller]
    fn check(merging: MergePolicy, script: &str, expected: &str) {
        let (mut world, mut mailbox) = (World::new(), Mailbox::new(merging));
        for step in script.split(' ') {
            match step {
                "/" => drop(mailbox.take(usize::MAX)),
                "|" => mailbox.mark_synced(),
                step => world.event(step).iter().for_each(|event| mailbox.push(event)),
            }
        }
        assert_eq!(show(&mailbox.take(usize::MAX)), expected, "{script}");
        assert!(mailbox.is_empty() && mailbox.key_count() == 0);
    }

    #[test]
    fn steps_of_one_key_become_the_step_from_the_state_delivered_last_to_the_latest() {
        check(MergePolicy::Latest, "+a / +a +b +a +a", "a1>a5 +b3");
        check(MergePolicy::Latest, "+a +a +a", "+a3");
    }

    #[test]
    fn a_deletion_is_delivered_also_of_an_object_never_delivered_and_stands_before_the_successor() {
        check(MergePolicy::Latest, "+a / -a", "-a1");
        check(MergePolicy::Latest, "+a -a", "-a1");
        check(MergePolicy::Latest, "+a / +a -a +a +a", "-a2 +a4");
    }

    #[test]
    fn of_two_deletions_the_one_of_the_object_that_was_delivered_is_kept() {
        check(MergePolicy::Latest, "+a / -a +a -a", "-a1");
        check(MergePolicy::Latest, "+a -a +a -a", "-a2");
    }

    #[test]
    fn entries_before_the_mark_are_delivered_before_it() {
        check(MergePolicy::Latest, "+a | +b +a", "+a3 | +b2");
    }

    #[test]
    fn a_mapper_is_shown_every_state_that_a_reader_could_have_seen() {
        check(MergePolicy::EachStep, "+a / +a +a -a", "a1,a2,a3");
        check(MergePolicy::EachStep, "+a +a +a +a +a +a +a +a +a +a", "a1,a4,a5,a6,a7,a8,a9,a10");
        // Steps in the middle are merged: a comparison of two states sees their sum.
        let (mut world, mut mailbox) = (World::new(), Mailbox::new(MergePolicy::EachStep));
        for _ in 0..10 {
            world.event("+a").iter().for_each(|event| mailbox.push(event));
        }
        let [MailboxItem::Steps { events: steps, is_merged: true }] = &mailbox.take(usize::MAX)[..]
        else {
            panic!("one item")
        };
        let StoreEvent::Updated { old, new } = &steps[1] else { panic!("an update") };
        assert_eq!((steps.len(), old.version(), new.version()), (8, "1", "4"));
    }

    #[test]
    fn a_sum_of_steps_says_that_it_is_one_and_loses_no_creation() {
        let (mut world, mut mailbox) = (World::new(), Mailbox::new(MergePolicy::EachStep));
        let mut steps = |script: &str| {
            for step in script.split(' ') {
                world.event(step).iter().for_each(|event| mailbox.push(event));
            }
            let Some(MailboxItem::Steps { events: steps, is_merged }) = mailbox.take(1).pop()
            else {
                panic!("one item")
            };
            (steps, is_merged)
        };
        let (each, is_merged) = steps("+a -a +a +a +a +a +a +a");
        assert_eq!((each.len(), is_merged), (8, false));
        // The object is gone, and another took the name: the deletion, then both in a single step.
        let (sum, is_merged) = steps("+a -a +a +a +a +a +a +a +a +a");
        assert!(is_merged && matches!(&sum[0], StoreEvent::Updated { .. }));
        let StoreEvent::Updated { old, new } = &sum[1] else { panic!("an update") };
        assert_ne!(old.metadata().uid(), new.metadata().uid());
        // The creation is the sum of the creation and the steps that followed.
        let (sum, is_merged) = steps("-a +a +a +a +a +a +a +a +a +a");
        assert!(is_merged && matches!(&sum[0], StoreEvent::Deleted { .. }));
        assert!(matches!(&sum[1], StoreEvent::Added { .. }), "it came");
    }

    /// An object with an undelivered change is not delivered once more for a resync (mechanism 30
    /// for a single listener).
    #[test]
    fn a_resync_leaves_out_what_waits_anyway() {
        let (mut world, mut mailbox) = (World::new(), Mailbox::new(MergePolicy::Latest));
        let (a, _) = (world.event("+a"), world.event("+b"));
        mailbox.push(&a.expect("an addition"));
        for object in world.now.values() {
            mailbox.resync(object);
        }
        assert_eq!(show(&mailbox.take(9)), "+a1 b2>b2");
    }

    proptest! {
        /// A listener that applies the received changes ends with the state of the cache, receives
        /// each deletion of an object that the listener knows before the successor, and at most two
        /// entries wait per key (G-C4: exactly one deletion, before the successor; G-C6: each
        /// listener is notified of each change).
        #[test]
        fn g_c4_g_c6_whatever_is_merged_the_listener_ends_with_the_cache(
            steps in proptest::collection::vec((0_u8..4, 0_u8..5), 1..80)
        ) {
            let (mut world, mut mailbox) = (World::new(), Mailbox::new(MergePolicy::Latest));
            let mut known: BTreeMap<ObjectKey, Arc<Object>> = BTreeMap::new();
            for (name, what) in steps {
                match what {
                    0 => deliver(mailbox.take(2), &mut known)?,
                    1 => world.event(&format!("-{name}")).iter().for_each(|e| mailbox.push(e)),
                    _ => world.event(&format!("+{name}")).iter().for_each(|e| mailbox.push(e)),
                }
                prop_assert!(mailbox.key_count() <= 4);
            }
            deliver(mailbox.take(usize::MAX), &mut known)?;
            let delivered: Vec<_> =
                known.values().map(|object| object.version().to_owned()).collect();
            let held: Vec<_> = world.now.values().map(|object| object.version().to_owned()).collect();
            prop_assert_eq!(delivered, held);
        }
    }

    fn deliver(
        items: Vec<MailboxItem>,
        known: &mut BTreeMap<ObjectKey, Arc<Object>>,
    ) -> Result<(), TestCaseError> {
        for item in items {
            let MailboxItem::Change(event) = item else { continue };
            match event {
                StoreEvent::Added { new, .. } => {
                    prop_assert!(known.insert(new.key().clone(), new).is_none());
                }
                StoreEvent::Updated { old, new } => {
                    let delivered = known.insert(new.key().clone(), new);
                    prop_assert!(delivered.is_some_and(|delivered| Arc::ptr_eq(&delivered, &old)));
                }
                StoreEvent::Deleted { last, .. } => {
                    if let Some(delivered) = known.remove(last.key()) {
                        prop_assert_eq!(delivered.metadata().uid(), last.metadata().uid());
                    }
                }
            }
        }
        Ok(())
    }
}
