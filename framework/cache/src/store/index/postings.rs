//! Groups of objects by a text: the objects with an index value, or those of a namespace.

// DESIGN.md, 26: Store slots lie in a slab; answers are sorted on reading

use crate::store::slots::{Hash, Hasher, Id, IdSet, Ids, Slots};

/// The number of a group; reused after the group is gone.
pub(in crate::store) type GroupId = u32;

/// Largest group whose members are kept in key order; larger groups use a hash set. Keeping the
/// order costs a search and a move for each new member.
const MOST_SORTED: usize = if cfg!(test) { 6 } else { 64 };

/// All groups of an index. A group that loses the last member is removed.
pub(in crate::store) struct Postings {
    /// Groups by number; `None` is a free number.
    groups: Vec<Option<PostingList>>,
    /// Free numbers, the last number to be used first.
    free: Vec<GroupId>,
    /// Numbers by the hash of the text.
    ids: Ids,
    /// The hash function of the store.
    hasher: Hasher,
    /// Number of members of all groups, counted so that statistics need no pass over them.
    links: usize,
}

/// The objects that share a text.
pub(in crate::store) struct PostingList {
    /// The text that the members share; held once per group and not per object.
    text: Box<str>,
    /// At least one.
    members: GroupMembers,
}

/// The members of a group; as large as a vector.
enum GroupMembers {
    /// A single member: in an index on names or addresses most values have a single object.
    One(Id),
    /// In key order.
    Few(Vec<Id>),
    /// In no order; boxed, because few groups are that large.
    Many(Box<IdSet>),
}

impl Postings {
    /// Returns an index without groups.
    pub(in crate::store) fn new(hasher: Hasher) -> Self {
        Self { groups: Vec::new(), free: Vec::new(), ids: Ids::default(), hasher, links: 0 }
    }

    /// Number of groups.
    pub(in crate::store) fn len(&self) -> usize {
        self.groups.len() - self.free.len()
    }

    /// Number of members of all groups.
    pub(in crate::store) fn links(&self) -> usize {
        self.links
    }

    /// Returns the group of that number, if there is any.
    pub(in crate::store) fn at(&self, group: GroupId) -> Option<&PostingList> {
        self.groups.get(group as usize)?.as_ref()
    }

    /// Returns the group of `text`; `None` when no object has that text.
    pub(in crate::store) fn find(&self, text: &str) -> Option<&PostingList> {
        self.at(self.id(self.hasher.text(text), text)?)
    }

    /// Returns the number of the group of `text`, whose hash is `hash`.
    fn id(&self, hash: Hash, text: &str) -> Option<GroupId> {
        self.ids.find(hash, |id| self.at(id).is_some_and(|group| *group.text == *text))
    }

    /// Adds `member`, whose object is in `slots`, to the group of `text`. `member` must not be a
    /// member yet.
    pub(in crate::store) fn join(&mut self, text: &str, member: Id, slots: &Slots) -> GroupId {
        let hash = self.hasher.text(text);
        self.links += 1;
        let Some(id) = self.id(hash, text) else { return self.open(hash, text, member) };
        if let Some(group) = self.groups.get_mut(id as usize).and_then(Option::as_mut) {
            group.members.insert(member, slots);
        }
        id
    }

    /// Creates a group with a single member.
    fn open(&mut self, hash: Hash, text: &str, member: Id) -> GroupId {
        let group = Some(PostingList { text: Box::from(text), members: GroupMembers::One(member) });
        let id = match self.free.pop() {
            Some(id) => {
                self.groups[id as usize] = group;
                id
            }
            None => {
                self.groups.push(group);
                (self.groups.len() - 1) as GroupId
            }
        };
        self.ids.insert(hash, id);
        id
    }

    /// Removes a member whose object is still in `slots`.
    pub(in crate::store) fn leave(&mut self, id: GroupId, member: Id, slots: &Slots) {
        let Some(place) = self.groups.get_mut(id as usize) else { return };
        let Some(group) = place else { return };
        self.links -= 1;
        if !group.members.remove(member, slots) {
            let hash = self.hasher.text(&group.text);
            *place = None;
            self.ids.remove(hash, id);
            self.free.push(id);
        }
    }

    /// Removes a member from the group of `text`.
    pub(in crate::store) fn remove_text(&mut self, text: &str, member: Id, slots: &Slots) {
        if let Some(id) = self.id(self.hasher.text(text), text) {
            self.leave(id, member, slots);
        }
    }

    /// Bytes that the groups take up.
    pub(in crate::store) fn resident(&self) -> usize {
        let group = |group: &PostingList| group.text.len() + group.members.resident();
        self.groups.capacity() * size_of::<Option<PostingList>>()
            + self.free.capacity() * size_of::<GroupId>()
            + self.ids.resident()
            + self.groups.iter().flatten().map(group).sum::<usize>()
    }
}

impl PostingList {
    /// Returns the text that the members share.
    pub(in crate::store) fn text(&self) -> &str {
        &self.text
    }

    /// Number of members.
    pub(in crate::store) fn len(&self) -> usize {
        self.members.len()
    }

    /// The members; in key order when [`is_sorted`](Self::is_sorted) returns true.
    pub(in crate::store) fn members(&self) -> impl Iterator<Item = Id> {
        let (few, many) = match &self.members {
            GroupMembers::One(id) => (std::slice::from_ref(id), None),
            GroupMembers::Few(ids) => (ids.as_slice(), None),
            GroupMembers::Many(ids) => (&[][..], Some(ids)),
        };
        few.iter().copied().chain(many.into_iter().flat_map(|ids| ids.iter()))
    }

    /// Whether [`members`](Self::members) are in key order.
    pub(in crate::store) fn is_sorted(&self) -> bool {
        !matches!(self.members, GroupMembers::Many(_))
    }
}

impl GroupMembers {
    /// Number of members.
    fn len(&self) -> usize {
        match self {
            Self::One(_) => 1,
            Self::Few(ids) => ids.len(),
            Self::Many(ids) => ids.len(),
        }
    }

    /// Adds a member; changes the form when the group gets too large.
    fn insert(&mut self, member: Id, slots: &Slots) {
        match self {
            Self::One(id) => {
                *self = Self::Few(vec![*id]);
                self.insert(member, slots);
            }
            Self::Few(ids) if ids.len() < MOST_SORTED => {
                let key = slots.object(member).map(|object| object.key());
                let before = |id: &Id| slots.object(*id).map(|object| object.key()) < key;
                // Lists come in key order: most new members go to the end.
                let at = match ids.last() {
                    Some(last) if !before(last) => ids.partition_point(before),
                    _ => ids.len(),
                };
                ids.insert(at, member);
            }
            Self::Few(ids) => {
                let mut many = IdSet::default();
                ids.iter().for_each(|id| many.insert(*id));
                many.insert(member);
                *self = Self::Many(Box::new(many));
            }
            Self::Many(ids) => ids.insert(member),
        }
    }

    /// Removes a member; returns false if none is left.
    fn remove(&mut self, member: Id, slots: &Slots) -> bool {
        match self {
            // The group is removed as a whole, hence this form stays unchanged.
            Self::One(id) => return *id != member,
            Self::Few(ids) => {
                if let Some(at) = ids.iter().position(|id| *id == member) {
                    ids.remove(at);
                }
                match ids.as_slice() {
                    [] => return false,
                    [one] => *self = Self::One(*one),
                    // A group that shrank must not keep the memory of the peak.
                    _ if ids.len() < ids.capacity() / 4 => ids.shrink_to(2 * ids.len()),
                    _ => {}
                }
            }
            Self::Many(ids) => {
                ids.remove(member);
                // At half of the limit, so that a group around the limit does not change the form
                // with every update.
                if ids.len() <= MOST_SORTED / 2 {
                    let mut few: Vec<Id> = ids.iter().collect();
                    few.sort_by_key(|id| slots.object(*id).map(|object| object.key()));
                    *self = Self::Few(few);
                }
            }
        }
        true
    }

    /// Bytes on the heap; a single member has none.
    fn resident(&self) -> usize {
        match self {
            Self::One(_) => 0,
            Self::Few(ids) => ids.capacity() * size_of::<Id>(),
            Self::Many(ids) => size_of::<IdSet>() + ids.resident(),
        }
    }
}
