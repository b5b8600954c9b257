//! Lists and maps, from collections of other values.
//!
//! A `Vec` of other values is left out, because the compiler could not distinguish such a `Vec`
//! from a `Vec` of the field's own: `[..values]` takes every iterator.

use std::collections::{BTreeMap, HashMap};

use super::FieldValue;

#[diagnostic::do_not_recommend]
impl<V: FieldValue<T>, T, const N: usize> FieldValue<Vec<T>> for [V; N] {
    fn into_field(self) -> Vec<T> {
        self.into_iter().map(V::into_field).collect()
    }
}

#[diagnostic::do_not_recommend]
impl<'a, V, T> FieldValue<Vec<T>> for &'a [V]
where
    &'a V: FieldValue<T>,
{
    fn into_field(self) -> Vec<T> {
        self.iter().map(<&V>::into_field).collect()
    }
}

#[diagnostic::do_not_recommend]
impl FieldValue<Vec<String>> for Vec<&str> {
    fn into_field(self) -> Vec<String> {
        self.into_iter().map(str::to_owned).collect()
    }
}

#[diagnostic::do_not_recommend]
impl<A, B, K, V, const N: usize> FieldValue<BTreeMap<K, V>> for [(A, B); N]
where
    A: FieldValue<K>,
    B: FieldValue<V>,
    K: Ord,
{
    fn into_field(self) -> BTreeMap<K, V> {
        self.into_iter().map(|(key, value)| (key.into_field(), value.into_field())).collect()
    }
}

#[diagnostic::do_not_recommend]
impl<K: Ord, V, S> FieldValue<BTreeMap<K, V>> for HashMap<K, V, S> {
    fn into_field(self) -> BTreeMap<K, V> {
        // A map by order: the random order of the source is not seen.
        self.into_iter().collect()
    }
}
