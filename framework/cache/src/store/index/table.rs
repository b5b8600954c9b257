//! An index of a store: from value to objects, and from object to values.

use std::collections::BTreeMap;

use super::index::{Evaluator, IndexId};
use super::postings::{GroupId, PostingList, Postings};
use super::values::Texts;
use crate::store::slots::{Hasher, Id, Slots};

/// An index. Updating an object with unchanged values does not touch the index.
pub(in crate::store) struct IndexTable {
    /// Identity, by which a lookup finds the index.
    pub(in crate::store) id: IndexId,
    /// Computes the values of an object, outside of the store's lock.
    pub(in crate::store) evaluator: Evaluator,
    /// Whether all objects were indexed; no lookup uses the index before.
    pub(in crate::store) is_ready: bool,
    /// Objects by value.
    groups: Postings,
    /// The group of each object by slot id, or `NONE`, or `MANY`.
    column: Vec<GroupId>,
    /// The groups of the objects that are in several, in the order of their texts.
    many: BTreeMap<Id, Vec<GroupId>>,
}

/// The object is in no group.
const NONE: GroupId = GroupId::MAX;
/// The object is in several groups.
const MANY: GroupId = GroupId::MAX - 1;

impl IndexTable {
    /// Returns an index without objects, which is not ready.
    pub(in crate::store) fn new(id: IndexId, evaluator: Evaluator, hasher: Hasher) -> Self {
        Self {
            id,
            evaluator,
            is_ready: false,
            groups: Postings::new(hasher),
            column: Vec::new(),
            many: BTreeMap::new(),
        }
    }

    /// Returns the objects with that value.
    pub(in crate::store) fn find(&self, text: &str) -> Option<&PostingList> {
        self.groups.find(text)
    }

    /// Returns the groups of an object, in the order of their texts.
    fn groups_of(&self, id: Id) -> &[GroupId] {
        match self.column.get(id as usize) {
            None | Some(&NONE) => &[],
            Some(&MANY) => self.many.get(&id).map(Vec::as_slice).unwrap_or_default(),
            Some(one) => std::slice::from_ref(one),
        }
    }

    /// Sets the values of the object at `id`, which is in `slots`.
    pub(in crate::store) fn set(&mut self, id: Id, texts: Texts<'_>, slots: &Slots) {
        let known = self.groups_of(id);
        let text = |group: &GroupId| self.groups.at(*group).map(PostingList::text);
        if known.iter().map(text).eq(texts.iter().map(Some)) {
            return;
        }
        // A copy: `known` borrows the table, which joining a group changes.
        let before = known.to_vec();
        let mut now = Vec::with_capacity(texts.len());
        for text in texts.iter() {
            let is_text = |group: &&GroupId| {
                self.groups.at(**group).is_some_and(|group| group.text() == text)
            };
            // Groups of unchanged values are not left and joined again.
            let stays = before.iter().find(is_text).copied();
            now.push(stays.unwrap_or_else(|| self.groups.join(text, id, slots)));
        }
        for group in before {
            if !now.contains(&group) {
                self.groups.leave(group, id, slots);
            }
        }
        self.write(id, now);
    }

    /// Records the groups of an object in the column.
    fn write(&mut self, id: Id, groups: Vec<GroupId>) {
        let at = id as usize;
        if self.column.len() <= at {
            self.column.resize(at + 1, NONE);
        }
        if self.column[at] == MANY {
            self.many.remove(&id);
        }
        self.column[at] = match groups.as_slice() {
            [] => NONE,
            [one] => *one,
            _ => {
                self.many.insert(id, groups);
                MANY
            }
        };
    }

    /// Removes the object at `id`, which is about to leave `slots`.
    pub(in crate::store) fn clear(&mut self, id: Id, slots: &Slots) {
        let groups = self.groups_of(id).to_vec();
        if groups.is_empty() {
            return;
        }
        for group in groups {
            self.groups.leave(group, id, slots);
        }
        self.write(id, Vec::new());
    }

    /// Number of distinct values.
    pub(in crate::store) fn values(&self) -> usize {
        self.groups.len()
    }

    /// Number of pairs of object and value.
    pub(in crate::store) fn entries(&self) -> usize {
        self.groups.links()
    }

    /// Bytes that the index takes up.
    pub(in crate::store) fn resident(&self) -> usize {
        // 64 bytes stand for the entry's share of a node of the map.
        let many = |groups: &Vec<GroupId>| 64 + groups.capacity() * size_of::<GroupId>();
        self.groups.resident()
            + self.column.capacity() * size_of::<GroupId>()
            + self.many.values().map(many).sum::<usize>()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};
    use std::sync::{Arc, Weak};

    use k8s_openapi::api::core::v1::ConfigMap;
    use proptest::prelude::*;

    use super::super::values::Values;
    use super::*;
    use crate::store::object::{Object, StoreShared};
    use crate::store::observed::ListGeneration;
    use crate::store::slots::{ObjectSlot, parts};
    use windlass_core::resource::ResourceInfo;
    use windlass_core::wire::MetadataScan;

    /// A set of objects and a table.
    struct Rig {
        shared: Arc<StoreShared>,
        slots: Slots,
        table: IndexTable,
    }

    impl Rig {
        fn new() -> Self {
            let hasher = Hasher::new(1);
            let info = ResourceInfo::of::<ConfigMap>();
            let evaluator = Evaluator::Path(&["x"]);
            Self {
                shared: Arc::new(StoreShared::new(
                    info,
                    Weak::<crate::store::StoreCore>::new(),
                    false,
                )),
                slots: Slots::new(hasher),
                table: IndexTable::new(IndexId::Path(&["x"]), evaluator, hasher),
            }
        }

        fn id(&mut self, name: u8) -> Id {
            let body = format!(r#"{{"metadata":{{"name":"{name:03}"}}}}"#);
            let scan = MetadataScan::of(body.as_bytes()).unwrap();
            let key = windlass_core::resource::ObjectKey::new(None, &scan.name);
            let hash = self.slots.hash(parts(&key));
            self.slots.find_hashed(hash, parts(&key)).unwrap_or_else(|| {
                let object = Object::new(key.clone(), &scan, &self.shared);
                self.slots.insert(hash, ObjectSlot { object, run: ListGeneration::default() })
            })
        }

        fn set(&mut self, name: u8, texts: &BTreeSet<u8>) {
            let id = self.id(name);
            let mut values = Values::default();
            let part = values.part(texts.iter().map(|text| format!("v{text}")));
            self.table.set(id, values.of(&part, 0), &self.slots);
        }

        fn remove(&mut self, name: u8) {
            let id = self.id(name);
            self.table.clear(id, &self.slots);
            self.slots.remove(id);
        }

        fn members(&self, text: u8) -> Vec<String> {
            let group = self.table.find(&format!("v{text}"));
            let ids = group.into_iter().flat_map(|group| group.members());
            let name = |id| self.slots.object(id).unwrap().key().name().to_owned();
            let mut names: Vec<_> = ids.map(name).collect();
            let is_sorted = names.is_sorted();
            assert!(is_sorted || !group.unwrap().is_sorted(), "{names:?}");
            names.sort();
            names
        }
    }

    #[test]
    fn mechanism_62_values_that_stay_move_nothing() {
        let mut rig = Rig::new();
        rig.set(1, &BTreeSet::from([1]));
        rig.set(2, &BTreeSet::from([1, 2]));
        for name in [1, 2] {
            let texts = if name == 1 { vec!["v1"] } else { vec!["v1", "v2"] };
            let mut values = Values::default();
            let part = values.part(texts.into_iter().map(str::to_owned));
            let id = rig.id(name);
            let counted = allocation_counter::measure(|| {
                rig.table.set(id, values.of(&part, 0), &rig.slots);
            });
            assert_eq!(counted.count_total, 0);
        }
    }

    proptest! {
        #[test]
        fn a_table_holds_what_it_was_told_last(
            steps in prop::collection::vec(
                (0_u8..20, prop::option::of(prop::collection::btree_set(0_u8..4, 0..3))), 0..200),
        ) {
            let mut rig = Rig::new();
            let mut model: BTreeMap<u8, BTreeSet<u8>> = BTreeMap::new();
            for (name, texts) in steps {
                match texts {
                    Some(texts) => {
                        rig.set(name, &texts);
                        model.insert(name, texts);
                    }
                    None => {
                        rig.remove(name);
                        model.remove(&name);
                    }
                }
                for text in 0..4 {
                    let wanted = model.iter().filter(|(_, texts)| texts.contains(&text));
                    let wanted: Vec<_> = wanted.map(|(name, _)| format!("{name:03}")).collect();
                    prop_assert_eq!(rig.members(text), wanted);
                }
                let entries: usize = model.values().map(BTreeSet::len).sum();
                let values: BTreeSet<_> = model.values().flatten().collect();
                prop_assert_eq!((rig.table.entries(), rig.table.values()), (entries, values.len()));
            }
        }
    }
}
