//! Indexes as typed handles.

use std::fmt::Display;
use std::marker::PhantomData;

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
    /// An index on a field path, such as `&["spec", "host"]`: what `#[index(…)]` generates.
    pub const fn on_path(name: &'static str, path: &'static [&'static str]) -> Self {
        Self { name, source: Source::Path(path, PhantomData) }
    }

    /// An index on what `values` returns.
    pub const fn new(name: &'static str, values: fn(&K) -> Vec<V>) -> Self {
        Self { name, source: Source::Function(values) }
    }

    /// The index's name.
    pub const fn name(&self) -> &'static str {
        self.name
    }
}
