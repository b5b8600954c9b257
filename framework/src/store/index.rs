//! Indexes as typed handles, and the tables behind them.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Display;
use std::marker::PhantomData;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use super::object::Object;
use super::shares::Decoded;
use crate::resource::{ObjectKey, Resource};
use crate::wire::values_at;

/// A value that an index can hold: compared by its text.
pub trait IndexValue: Display + Send + Sync + 'static {}
impl<V: Display + Send + Sync + 'static> IndexValue for V {}

/// A handle on an index of `K` by values of type `V`. It carries its own definition, so no lookup
/// can name an index that does not exist: the first one builds it.
#[derive(Debug)]
pub struct Index<K, V> {
    pub(crate) name: &'static str,
    pub(crate) source: Source<K, V>,
}

#[derive(Debug)]
pub(crate) enum Source<K, V> {
    /// A field path; evaluated without decoding the object. Lists along the path fan out.
    Path(&'static [&'static str], PhantomData<fn() -> V>),
    /// A function of the decoded object.
    Function(fn(&K) -> Vec<V>),
}

impl<K, V> Clone for Index<K, V> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<K, V> Copy for Index<K, V> {}
impl<K, V> Clone for Source<K, V> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<K, V> Copy for Source<K, V> {}

impl<K, V: IndexValue> Index<K, V> {
    /// An index on a field path, such as `&["spec", "host"]`: what `#[index(…)]` generates. Names
    /// are those of the JSON. Objects without the field, or with null there, are not found by it.
    pub const fn on_path(name: &'static str, path: &'static [&'static str]) -> Self {
        Self { name, source: Source::Path(path, PhantomData) }
    }

    /// An index on what `values` returns. An object that does not decode has no values.
    pub const fn new(name: &'static str, values: fn(&K) -> Vec<V>) -> Self {
        Self { name, source: Source::Function(values) }
    }

    /// The index's name.
    pub const fn name(&self) -> &'static str {
        self.name
    }
}

impl<K: Resource, V: IndexValue> Index<K, V> {
    pub(crate) fn id(&self) -> IndexId {
        match self.source {
            Source::Path(path, _) => IndexId::Path(path),
            Source::Function(function) => IndexId::Function(self.name, function as usize),
        }
    }

    pub(crate) fn evaluator(&self) -> Arc<dyn Evaluate> {
        match self.source {
            Source::Path(path, _) => Arc::new(ByPath(path)),
            Source::Function(function) => Arc::new(ByFunction { name: self.name, function }),
        }
    }
}

/// Which index this is: its definition, so that two of one name do not answer for each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum IndexId {
    Path(&'static [&'static str]),
    Function(&'static str, usize),
}

/// An object's values in one index.
pub(crate) type Terms = Box<[Arc<str>]>;

/// Computes an object's values. May run user code: never call it under a lock.
pub(crate) trait Evaluate: Send + Sync {
    /// `decoded` keeps the decoded object for the next evaluator.
    fn terms(&self, object: &Arc<Object>, decoded: &mut Option<Decoded>) -> Terms;
}

struct ByPath(&'static [&'static str]);

impl Evaluate for ByPath {
    fn terms(&self, object: &Arc<Object>, _: &mut Option<Decoded>) -> Terms {
        let mut values = Vec::new();
        values_at(&object.body(), self.0, &mut values);
        distinct(values)
    }
}

struct ByFunction<K, V> {
    name: &'static str,
    function: fn(&K) -> Vec<V>,
}

impl<K: Resource, V: IndexValue> Evaluate for ByFunction<K, V> {
    fn terms(&self, object: &Arc<Object>, decoded: &mut Option<Decoded>) -> Terms {
        let Ok(value) = object.decode::<K>() else {
            return Terms::default();
        };
        let shared: Decoded = Arc::<K>::clone(&value);
        *decoded = Some(shared);
        let values = catch_unwind(AssertUnwindSafe(|| {
            (self.function)(&value).iter().map(ToString::to_string).collect()
        }));
        values.map(distinct).unwrap_or_else(|_| {
            tracing::error!(index = self.name, object = %object.key(), "the index function panicked");
            Terms::default()
        })
    }
}

fn distinct(mut values: Vec<String>) -> Terms {
    values.sort_unstable();
    values.dedup();
    values.into_iter().map(Arc::from).collect()
}

/// One index of a store: from value to keys.
pub(crate) struct Table {
    pub(crate) id: IndexId,
    pub(crate) evaluator: Arc<dyn Evaluate>,
    keys: BTreeMap<Arc<str>, BTreeSet<ObjectKey>>,
}

impl Table {
    pub(crate) fn new(id: IndexId, evaluator: Arc<dyn Evaluate>) -> Self {
        Self { id, evaluator, keys: BTreeMap::new() }
    }

    pub(crate) fn link(&mut self, key: &ObjectKey, terms: &Terms) {
        for term in terms {
            match self.keys.get_mut(term) {
                Some(keys) => {
                    keys.insert(key.clone());
                }
                None => {
                    self.keys.insert(Arc::clone(term), BTreeSet::from([key.clone()]));
                }
            }
        }
    }

    pub(crate) fn unlink(&mut self, key: &ObjectKey, terms: &Terms) {
        for term in terms {
            if let Some(keys) = self.keys.get_mut(term) {
                keys.remove(key);
                if keys.is_empty() {
                    self.keys.remove(term);
                }
            }
        }
    }

    pub(crate) fn keys(&self, term: &str) -> impl Iterator<Item = &ObjectKey> {
        self.keys.get(term).into_iter().flatten()
    }

    /// Number of distinct values.
    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.keys.len()
    }
}
