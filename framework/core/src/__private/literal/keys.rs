//! Keys of maps that are written like the names of fields.
//!
//! The macro cannot know whether `{ app: name }` are fields or keys: the macro writes `this.app`
//! for both. If the place is a map, `this` is a struct with a field for each of the keys in front
//! of it.

use std::collections::BTreeMap;
use std::ops::{Deref, DerefMut};

use super::{Map, Slot};
use crate::resource::FieldValue;

/// Declares the struct of the common keys.
macro_rules! common {
    ($($field:ident $key:literal;)*) => {
        /// The keys that maps have most often. A struct declared in each literal would take the
        /// compiler longer than the rest of the literal; the macro knows the same list.
        #[derive(Debug)]
        #[allow(missing_docs)]
        pub struct CommonKeys<V> {
            $(pub $field: Option<V>,)*
        }

        /// Number of common keys.
        const COMMON: usize = [$($key),*].len();

        impl<V> CommonKeys<V> {
            /// No key.
            fn new() -> Self {
                Self { $($field: None,)* }
            }

            /// Each key with the value.
            fn entries(self) -> [(&'static str, Option<V>); COMMON] {
                [$(($key, self.$field)),*]
            }
        }
    };
}

common! {
    app "app";
    name "name";
    component "component";
    tier "tier";
    track "track";
    version "version";
    instance "instance";
    role "role";
    env "env";
    environment "environment";
    team "team";
    owner "owner";
    managed "managed";
    part "part";
    cpu "cpu";
    memory "memory";
    storage "storage";
    key "key";
    value "value";
    host "host";
    path "path";
    port "port";
    type_ "type";
    mode "mode";
    message "message";
    text "text";
    url "url";
    config "config";
    image "image";
    secret "secret";
    user "user";
    password "password";
    token "token";
}

/// Returns each key with the value, if a value was set, from the struct that the macro declares for
/// keys that are written like the names of fields.
pub type EntriesFn<K, V, const N: usize> = fn(K) -> [(&'static str, Option<V>); N];

/// A map whose keys are written like the names of fields, until [`Finish::finish`] inserts them.
#[derive(Debug)]
pub struct MapFields<'a, M: Map, K, const N: usize> {
    map: &'a mut M,
    keys: K,
    entries: EntriesFn<K, M::Value, N>,
}

impl<M: Map, K, const N: usize> Deref for MapFields<'_, M, K, N> {
    type Target = K;

    fn deref(&self) -> &K {
        &self.keys
    }
}

impl<M: Map, K, const N: usize> DerefMut for MapFields<'_, M, K, N> {
    fn deref_mut(&mut self) -> &mut K {
        &mut self.keys
    }
}

// For a single type: with two implementations the compiler would add that there are several `enter`
// to each name that does not exist. Keys of a `HashMap` are written as texts.
impl<'a, A: Ord, V> Slot<'a, BTreeMap<A, V>> {
    /// The map, with common keys as fields.
    #[inline]
    pub fn enter_common(self) -> MapFields<'a, BTreeMap<A, V>, CommonKeys<V>, COMMON> {
        self.enter(CommonKeys::new(), CommonKeys::entries)
    }

    /// The map, with the keys as fields.
    #[inline]
    pub fn enter<K, const N: usize>(
        self,
        keys: K,
        entries: EntriesFn<K, V, N>,
    ) -> MapFields<'a, BTreeMap<A, V>, K, N> {
        MapFields { map: self.0, keys, entries }
    }
}

/// The end of a pair of braces that may be a map.
pub trait Finish {
    /// Inserts the keys of a map; does nothing for fields.
    fn finish(self);
}

impl<T> Finish for &mut T {
    #[inline]
    fn finish(self) {}
}

impl<M: Map, K, const N: usize> Finish for MapFields<'_, M, K, N>
where
    &'static str: FieldValue<M::Key>,
{
    fn finish(self) {
        for (key, value) in (self.entries)(self.keys) {
            if let Some(value) = value {
                self.map.put_value(key.into_field(), value);
            }
        }
    }
}
