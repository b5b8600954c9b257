//! Indexes as typed handles, and the computation of their values.

// DESIGN.md, 3: `Index<K, V>` carries its own extractor

use std::fmt::Display;
use std::marker::PhantomData;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use crate::store::object::{Decoded, Object};
use windlass_core::resource::Resource;

/// A value that an index can hold; compared by the text.
#[diagnostic::on_unimplemented(
    message = "an index cannot hold values of type `{Self}`",
    note = "an index finds objects by texts: implement `std::fmt::Display` for `{Self}`, or declare the index by a function \
            that returns texts (`Index::new`)"
)]
pub trait IndexValue: Display + Send + Sync + 'static {}

#[diagnostic::do_not_recommend]
impl<V: Display + Send + Sync + 'static> IndexValue for V {}

/// A handle to an index of `K` by values of type `V`. The handle carries the index's definition, so
/// no lookup can name an index that does not exist: the first lookup builds the index.
///
/// client-go's `IndexFunc` under a name. A constant, so that every lookup names the same
/// definition:
///
/// ```
/// # extern crate windlass_cache as windlass;
/// use k8s_openapi::api::core::v1::{Pod, Service};
/// use windlass::store::Index;
///
/// const BY_NODE: Index<Pod, String> = Index::on_path("node", &["spec", "nodeName"]);
/// const BY_PORT: Index<Service, i32> = Index::new("port", |service| {
///     let ports = service.spec.iter().flat_map(|spec| spec.ports.iter().flatten());
///     ports.map(|port| port.port).collect()
/// });
/// assert_eq!((BY_NODE.name(), BY_PORT.name()), ("node", "port"));
/// ```
#[derive(Debug)]
pub struct Index<K, V> {
    /// Name in logs and debug output; not the identity.
    pub(crate) name: &'static str,
    /// The definition of the index.
    pub(crate) source: IndexSource<K, V>,
}

/// The definition of an index.
#[derive(Debug)]
pub(crate) enum IndexSource<K, V> {
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
impl<K, V> Clone for IndexSource<K, V> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<K, V> Copy for IndexSource<K, V> {}

impl<K, V: IndexValue> Index<K, V> {
    /// Defines an index on a field path, such as `&["spec", "host"]`; `#[index(…)]` generates such
    /// a definition. Names are those of the JSON. A lookup does not find objects without the field,
    /// or with null there.
    ///
    /// The path ends at a value, or at a list of values. An empty path, or a path that ends at the
    /// metadata or at labels, annotations or owner references, could find nothing: the store
    /// refuses such an index ([`Store::ensure_index`](crate::store::Store::ensure_index)). Other
    /// paths are not checked: an index on a misspelt path, or on a path that ends at an object,
    /// finds nothing. In `#[index(…)]` the compiler checks a chain of fields, and `crd()` a path.
    pub const fn on_path(name: &'static str, path: &'static [&'static str]) -> Self {
        Self { name, source: IndexSource::Path(path, PhantomData) }
    }

    /// Defines an index on the values that `values` returns for a decoded object. An object that
    /// does not decode has no values, and neither has a field that was not kept: `values` receives
    /// an object without the field, so an index on a field that a projection or
    /// [`Metadata`](crate::store::Representation::Metadata) leaves out finds nothing.
    pub const fn new(name: &'static str, values: fn(&K) -> Vec<V>) -> Self {
        Self { name, source: IndexSource::Function(values) }
    }

    /// Returns the index's name.
    pub const fn name(&self) -> &'static str {
        self.name
    }
}

impl<K: Resource, V: IndexValue> Index<K, V> {
    /// Two indexes on the same path are one index, regardless of their names.
    pub(crate) fn id(&self) -> IndexId {
        match self.source {
            IndexSource::Path(path, _) => IndexId::Path(path),
            IndexSource::Function(function) => IndexId::Function(self.name, function as usize),
        }
    }

    /// Erases the types of the index, so that a store can hold indexes of several value types.
    pub(crate) fn evaluator(&self) -> Evaluator {
        match self.source {
            IndexSource::Path(path, _) => Evaluator::Path(path),
            IndexSource::Function(function) => {
                Evaluator::Function(Arc::new(ByFunction { name: self.name, function }))
            }
        }
    }
}

/// Identity of an index: the definition, so that two indexes of the same name do not answer for
/// each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum IndexId {
    /// The path; compared by members, so that equal paths are one index.
    Path(&'static [&'static str]),
    /// Name, and address of the function: two functions may share an address after the linker has
    /// merged equal code.
    Function(&'static str, usize),
}

/// Computes the values of an index.
#[derive(Clone)]
pub(crate) enum Evaluator {
    /// The scalars at a field path.
    Path(&'static [&'static str]),
    /// User code.
    Function(Arc<dyn Evaluate>),
}

/// Computes an object's values. Runs user code: never call the trait under a lock.
pub(crate) trait Evaluate: Send + Sync {
    /// Calls `each` for every value, and leaves the decoded object in `decoded` for the next
    /// evaluator. Returns false on failure: the values passed so far do not count then.
    fn values(
        &self,
        object: &Arc<Object>,
        decoded: &mut Option<Decoded>,
        each: &mut dyn FnMut(&dyn Display),
    ) -> bool;
}

/// An index on the values of a user's function.
struct ByFunction<K, V> {
    name: &'static str,
    function: fn(&K) -> Vec<V>,
}

impl<K: Resource, V: IndexValue> Evaluate for ByFunction<K, V> {
    fn values(
        &self,
        object: &Arc<Object>,
        decoded: &mut Option<Decoded>,
        each: &mut dyn FnMut(&dyn Display),
    ) -> bool {
        let Ok(value) = object.decode::<K>() else { return false };
        let shared: Decoded = Arc::<K>::clone(&value);
        *decoded = Some(shared);
        // A panic in the user's function must not stop the informer: the object has no values then.
        let outcome = catch_unwind(AssertUnwindSafe(|| {
            for value in (self.function)(&value) {
                each(&value);
            }
        }));
        if outcome.is_err() {
            tracing::error!(index = self.name, object = %object.key(), "the index function panicked");
        }
        outcome.is_ok()
    }
}
