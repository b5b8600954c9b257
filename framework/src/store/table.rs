//! One index of a store: from value to objects, and from object to values.

use std::collections::BTreeMap;

use super::groups::{Group, GroupId, Groups};
use super::hash::Hasher;
use super::index::{Evaluator, IndexId};
use super::slots::{Id, Slots};
use super::values::Texts;

/// An index. Objects that keep their values do not move in it.
pub(super) struct Table {
    pub(super) id: IndexId,
    pub(super) evaluator: Evaluator,
    /// Have all objects been looked at? Before, the index answers nobody.
    pub(super) is_ready: bool,
    groups: Groups,
    /// The group of each object by its place; `NONE` or `MANY`.
    column: Vec<GroupId>,
    /// The groups of the objects that are in more than one, in the order of their texts.
    many: BTreeMap<Id, Vec<GroupId>>,
}

/// The object is in no group.
const NONE: GroupId = GroupId::MAX;
/// The object is in several groups.
const MANY: GroupId = GroupId::MAX - 1;

impl Table {
    pub(super) fn new(id: IndexId, evaluator: Evaluator, hasher: Hasher) -> Self {
        Self {
            id,
            evaluator,
            is_ready: false,
            groups: Groups::new(hasher),
            column: Vec::new(),
            many: BTreeMap::new(),
        }
    }

    /// The objects with that value.
    pub(super) fn find(&self, text: &str) -> Option<&Group> {
        self.groups.find(text)
    }

    fn groups_of(&self, id: Id) -> &[GroupId] {
        match self.column.get(id as usize) {
            None | Some(&NONE) => &[],
            Some(&MANY) => self.many.get(&id).map(Vec::as_slice).unwrap_or_default(),
            Some(one) => std::slice::from_ref(one),
        }
    }

    /// Says what the values of the object at `id` are now; it stands in `slots`.
    pub(super) fn set(&mut self, id: Id, texts: Texts<'_>, slots: &Slots) {
        let known = self.groups_of(id);
        let text = |group: &GroupId| self.groups.at(*group).map(|group| &**group.text());
        if known.iter().map(text).eq(texts.iter().map(Some)) {
            return;
        }
        let before = known.to_vec();
        let mut now = Vec::with_capacity(texts.len());
        for text in texts.iter() {
            let is_text = |group: &&GroupId| {
                self.groups.at(**group).is_some_and(|group| **group.text() == *text)
            };
            // Values that stay do not move.
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

    /// The object at `id` is about to leave `slots`.
    pub(super) fn clear(&mut self, id: Id, slots: &Slots) {
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
    pub(super) fn values(&self) -> usize {
        self.groups.len()
    }

    /// Number of pairs of object and value.
    pub(super) fn entries(&self) -> usize {
        self.groups.links()
    }

    /// Bytes that the index takes up.
    pub(super) fn resident(&self) -> usize {
        let many = |groups: &Vec<GroupId>| 64 + groups.capacity() * size_of::<GroupId>();
        self.groups.resident()
            + self.column.capacity() * size_of::<GroupId>()
            + self.many.values().map(many).sum::<usize>()
    }
}
