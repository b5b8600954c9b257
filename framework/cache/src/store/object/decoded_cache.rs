//! Decoded values that readers hold, so that the next reader need not decode.
//!
//! A bounded table per store instead of a weak reference in every object: a weak reference keeps
//! the whole memory of a value that has no users any more, two kilobytes for a Pod.

use std::any::Any;
use std::sync::{Arc, OnceLock, Weak};

use parking_lot::Mutex;

/// A decoded object of any type.
pub(crate) type Decoded = Arc<dyn Any + Send + Sync>;

/// Number of entries: far more than there are workers, and at most half a megabyte of Pods without
/// users. A power of two.
const PLACES: usize = 256;
/// Distance between the places of consecutive numbers; odd, so that all places are used.
const STRIDE: u64 = 97;

/// The values that were decoded last, by the serial number of their object.
#[derive(Default)]
pub(crate) struct DecodedCache {
    /// A lock for each place, so that readers of different objects do not contend.
    places: OnceLock<Box<[Mutex<WeakDecoded>]>>,
}

/// A decoded value and the serial number of the object.
struct WeakDecoded {
    serial: u64,
    value: Weak<dyn Any + Send + Sync>,
}

impl WeakDecoded {
    /// An empty place; no object has this number.
    fn empty() -> Self {
        Self { serial: u64::MAX, value: Weak::<()>::new() }
    }
}

impl DecodedCache {
    /// Returns the value of that object, if a reader holds it.
    pub(crate) fn get(&self, serial: u64) -> Option<Decoded> {
        let share = self.places.get()?[place(serial)].lock();
        if share.serial == serial { share.value.upgrade() } else { None }
    }

    /// Records the value of that object.
    pub(crate) fn put(&self, serial: u64, value: &Decoded) {
        let share = WeakDecoded { serial, value: Arc::downgrade(value) };
        let places = (0..PLACES).map(|_| Mutex::new(WeakDecoded::empty()));
        let places = self.places.get_or_init(|| places.collect());
        let before = std::mem::replace(&mut *places[place(serial)].lock(), share);
        // Outside of the lock: the last weak reference frees the memory of the value.
        drop(before);
    }
}

/// Returns the place of a number. Consecutive numbers are far apart: objects that came together are
/// read together, and neighbouring places share a cache line.
fn place(serial: u64) -> usize {
    (serial.wrapping_mul(STRIDE) % PLACES as u64) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_shared_while_somebody_holds_it() {
        let decoded_cache = DecodedCache::default();
        let value: Decoded = Arc::new(7_u8);
        decoded_cache.put(1, &value);
        assert!(Arc::ptr_eq(&decoded_cache.get(1).unwrap(), &value));
        assert!(decoded_cache.get(2).is_none());
        drop(value);
        assert!(decoded_cache.get(1).is_none());
    }

    #[test]
    fn an_object_that_takes_anothers_place_is_not_taken_for_it() {
        let decoded_cache = DecodedCache::default();
        let (one, other): (Decoded, Decoded) = (Arc::new(1_u8), Arc::new(2_u8));
        decoded_cache.put(3, &one);
        decoded_cache.put(3 + PLACES as u64, &other);
        assert!(decoded_cache.get(3).is_none());
        assert!(Arc::ptr_eq(&decoded_cache.get(3 + PLACES as u64).unwrap(), &other));
        assert_eq!(decoded_cache.places.get().unwrap().len(), PLACES);
    }
}
