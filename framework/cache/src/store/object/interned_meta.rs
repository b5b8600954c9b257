//! Labels, finalizers and owners that objects share.
//!
//! Such heads are the same for the Pods of a Deployment, 300 bytes each: more than the rest of a
//! compressed object. They are shared with the previous version and with the neighbours in a list;
//! a bounded table is enough for that. An entry without users costs memory until another entry
//! replaces that entry.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Arc, Weak};

use parking_lot::Mutex;

/// Number of entries; a power of two.
const PLACES: usize = 256;

/// A value with a head that objects share.
pub(in crate::store) trait SharedHead {
    /// The bytes that objects share.
    fn head(&self) -> &[u8];
}

impl SharedHead for Box<[u8]> {
    fn head(&self) -> &[u8] {
        self
    }
}

/// The last shared values, in places by the hash of their head.
pub(in crate::store) struct InternedMeta<T> {
    places: Mutex<Vec<Weak<T>>>,
}

impl<T> Default for InternedMeta<T> {
    fn default() -> Self {
        Self { places: Mutex::default() }
    }
}

impl<T: SharedHead> InternedMeta<T> {
    /// Returns the shared value with this head if that value `fits`, else a new value from `make`.
    pub(in crate::store) fn share(
        &self,
        head: &[u8],
        fits: impl Fn(&T) -> bool,
        make: impl FnOnce(&[u8]) -> T,
    ) -> Arc<T> {
        let mut hasher = DefaultHasher::new();
        head.hash(&mut hasher);
        let place = (hasher.finish() % PLACES as u64) as usize;
        let mut places = self.places.lock();
        let known = places.get(place).and_then(Weak::upgrade);
        if let Some(known) = known.filter(|known| known.head() == head && fits(known)) {
            return known;
        }
        if places.is_empty() {
            places.resize_with(PLACES, Weak::new);
        }
        let made = Arc::new(make(head));
        let before = std::mem::replace(&mut places[place], Arc::downgrade(&made));
        drop(places);
        // Outside of the lock: the last weak reference frees the memory of the value.
        drop(before);
        made
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn share(heads: &InternedMeta<Box<[u8]>>, head: &[u8]) -> Arc<Box<[u8]>> {
        heads.share(head, |_| true, |head| head.into())
    }

    #[test]
    fn equal_heads_are_one_while_somebody_holds_it() {
        let heads = InternedMeta::default();
        let (one, other) = (share(&heads, b"a"), share(&heads, b"b"));
        assert!(Arc::ptr_eq(&one, &share(&heads, b"a")));
        assert_eq!(other.head(), b"b");
        drop(one);
        assert_eq!(share(&heads, b"a").head(), b"a");
        let refused = heads.share(b"b", |_| false, |head| head.into());
        assert!(!Arc::ptr_eq(&other, &refused), "one that does not fit is not taken");
    }

    #[test]
    fn the_table_is_bounded_and_one_takes_anothers_place() {
        let heads = InternedMeta::default();
        let kept: Vec<_> =
            (0..10 * PLACES).map(|number| share(&heads, &number.to_le_bytes())).collect();
        for (number, head) in kept.iter().enumerate() {
            assert_eq!(***head, number.to_le_bytes());
        }
        assert_eq!(heads.places.lock().len(), PLACES);
    }
}
