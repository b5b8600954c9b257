//! Ways to read several objects that become watches: by the value of an index, or by labels.

// DESIGN.md, 175: `watch_by` takes the way to read as a value, and labels are one
// DESIGN.md, 189: A read of several objects is woken by own writes

use std::borrow::Borrow;
use std::fmt;
use std::fmt::Display;
use std::marker::PhantomData;

use crate::controller::Reconciler;
use crate::controller::context::{Context, is_namespaced};
use crate::controller::source::ReadSource;
use crate::controller::state::{FoundVersion, ReadTarget};
use windlass_cache::store::{Cached, Index, IndexValue, Store};
use windlass_client::api::ApiFuture;
use windlass_core::error::{Error, ErrorKind};
use windlass_core::rbac::CanCache;
use windlass_core::resource::{Resource, Selector};

/// A way to read objects by a value of the type `Q`, for [`Context::watch_by`]: an [`Index`] by a
/// value of the index, or [`WatchScope`] by a [`Selector`]. Sealed.
#[diagnostic::on_unimplemented(
    message = "`{Self}` reads no objects by a value of the type `{Q}`",
    label = "expected an index and a value of it, or `WatchScope` and a `Selector`",
    note = "`cx.watch_by(Website::BY_HOST, \"shop.example\")`, \
            `cx.watch_by(WatchScope::<Secret>::nearby(), &selector)`"
)]
pub trait WatchTarget<Q: ?Sized>: sealed::TargetRead<Q> {}

#[diagnostic::do_not_recommend]
impl<Q: ?Sized, B: sealed::TargetRead<Q>> WatchTarget<Q> for B {}

/// Objects by their labels, for [`Context::watch_by`]: those of some namespaces that a [`Selector`]
/// matches, or all of them by [`Selector::everything`].
///
/// ```
/// # extern crate windlass_runtime as windlass;
/// # use k8s_openapi::api::core::v1::{ConfigMap, Secret};
/// # use windlass::rbac::{Can, verbs};
/// # struct Sites;
/// # impl Can<verbs::List, Secret> for Sites {}
/// # impl Can<verbs::Watch, Secret> for Sites {}
/// use windlass::controller::{Action, Context, Reconciler, Result, WatchScope};
/// use windlass::resource::Selector;
///
/// impl Reconciler for Sites {
///     type Object = ConfigMap;
///
///     async fn reconcile(&self, site: &ConfigMap, cx: &Context<Self>) -> Result {
///         let certificates = Selector::everything().equals("use", "tls");
///         let found = cx.watch_by(WatchScope::<Secret>::nearby(), &certificates).await?;
///         println!("{} certificates; runs again when one is added, changes or goes", found.len());
///         Ok(Action::done())
///     }
/// }
/// ```
pub struct WatchScope<'a, K> {
    place: ReadNamespaces<'a>,
    kind: PhantomData<fn() -> K>,
}

/// The namespaces of a read.
#[derive(Clone, Copy, Debug)]
enum ReadNamespaces<'a> {
    /// That of the reconciled object.
    Near,
    Named(&'a str),
    All,
}

impl<K> Clone for WatchScope<'_, K> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<K> Copy for WatchScope<'_, K> {}

impl<K> fmt::Debug for WatchScope<'_, K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("WatchScope").field(&self.place).finish()
    }
}

impl<'a, K> WatchScope<'a, K> {
    const fn at(place: ReadNamespaces<'a>) -> Self {
        Self { place, kind: PhantomData }
    }

    /// Objects of the reconciled object's namespace. For a reconciled object without a namespace,
    /// and for kinds without namespaces, all objects.
    pub const fn nearby() -> Self {
        Self::at(ReadNamespaces::Near)
    }

    /// Objects of that namespace; the read is an error for a kind without namespaces, and for a
    /// namespace that the operator does not read.
    ///
    /// If users choose the namespace through the reconciled object, they thereby read with the
    /// rights of the operator: check first that they may.
    pub const fn in_namespace(namespace: &'a str) -> Self {
        Self::at(ReadNamespaces::Named(namespace))
    }

    /// Objects of all namespaces of the operator.
    pub const fn everywhere() -> Self {
        Self::at(ReadNamespaces::All)
    }
}

pub(super) mod sealed {
    use super::*;

    /// A source of changes, whose type is no part of the public API.
    pub struct SourceRef<'a, K: Resource>(pub(in crate::controller) &'a ReadSource<K>);

    impl<K: Resource> fmt::Debug for SourceRef<'_, K> {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.debug_tuple("SourceRef").field(&self.0.info.kind).finish()
        }
    }

    /// A registered target, whose type is no part of the public API.
    #[derive(Debug)]
    pub struct TargetRef(pub(in crate::controller) ReadTarget);

    /// A read of several objects.
    pub trait TargetRead<Q: ?Sized>: Copy + Send {
        type Kind: Resource;

        /// Returns the target of the read by an object of the namespace `near`.
        #[doc(hidden)]
        fn target(
            self,
            source: SourceRef<'_, Self::Kind>,
            near: Option<&str>,
            value: &Q,
        ) -> Result<TargetRef, Error>;

        /// Reads the cache.
        #[doc(hidden)]
        fn read(
            self,
            store: &Store<Self::Kind>,
            near: Option<&str>,
            value: &Q,
        ) -> Vec<Cached<Self::Kind>>;
    }
}

use self::sealed::{SourceRef, TargetRef};

impl<K, V, Q> sealed::TargetRead<Q> for Index<K, V>
where
    K: Resource,
    V: IndexValue + Borrow<Q>,
    Q: ?Sized + Display,
{
    type Kind = K;

    fn target(
        self,
        source: SourceRef<'_, K>,
        _: Option<&str>,
        value: &Q,
    ) -> Result<TargetRef, Error> {
        source.0.value_target(self, &value.to_string()).map(TargetRef)
    }

    fn read(self, store: &Store<K>, _: Option<&str>, value: &Q) -> Vec<Cached<K>> {
        store.by_index(self, value)
    }
}

impl<'a, K: Resource> WatchScope<'a, K> {
    /// Returns the namespace that is read, `None` for all.
    fn namespace<'b>(self, near: Option<&'b str>) -> Option<&'b str>
    where
        'a: 'b,
    {
        match self.place {
            ReadNamespaces::Near => near.filter(|_| is_namespaced::<K>()),
            ReadNamespaces::Named(namespace) => Some(namespace),
            ReadNamespaces::All => None,
        }
    }
}

impl<K: Resource> sealed::TargetRead<Selector> for WatchScope<'_, K> {
    type Kind = K;

    fn target(
        self,
        source: SourceRef<'_, K>,
        near: Option<&str>,
        labels: &Selector,
    ) -> Result<TargetRef, Error> {
        let (namespace, SourceRef(source)) = (self.namespace(near), source);
        if namespace.is_some() && !is_namespaced::<K>() {
            let text = format!(
                "cannot watch {} by the labels \"{labels}\" in a namespace: the kind has none; use \
                 `WatchScope::everywhere()`",
                source.info.kind
            );
            return Err(Error::new(ErrorKind::Usage, text));
        }
        // All namespaces of an operator are the namespaces that it reads.
        if let Some(namespace) = namespace {
            super::check_covered(source, Some(namespace), &format_args!("{namespace}/{labels}"))?;
        }
        Ok(TargetRef(source.selection_target(namespace, labels.clone())))
    }

    fn read(self, store: &Store<K>, near: Option<&str>, labels: &Selector) -> Vec<Cached<K>> {
        store.select(self.namespace(near), labels)
    }
}

impl<C: Reconciler> Context<C> {
    /// Reads objects from the cache, by an index and a value of the index in all namespaces of the
    /// operator, or by [`WatchScope`] and a [`Selector`], and watches them: when an object changes
    /// that matches before or after the change, appears or disappears, this object is reconciled
    /// again. In everything else as [`watch`](Self::watch); a value, or a selector, counts as a
    /// single read. Returned in key order.
    ///
    /// A write of this reconcile to an object that matches, this object included, wakes this object
    /// once more: the read state is older than the write, so that a number of ready objects, say,
    /// would miss this object. The next reconcile reads the written state, and the wakes end with a
    /// reconcile that writes nothing.
    ///
    /// # Errors
    /// As [`watch`](Self::watch), and for an index those of
    /// [`Store::ensure_index`](windlass_cache::store::Store::ensure_index).
    /// # Cancel safety
    /// As [`watch`](Self::watch).
    /// # Panics
    /// As [`watch`](Self::watch).
    pub fn watch_by<'a, B, Q>(&'a self, by: B, value: &'a Q) -> ApiFuture<'a, Vec<Cached<B::Kind>>>
    where
        B: WatchTarget<Q> + 'a,
        Q: ?Sized + Sync,
        C: CanCache<B::Kind>,
    {
        Box::pin(async move {
            let (source, near) = (self.read_source(), self.key.namespace());
            let sealed::TargetRef(target) = by.target(sealed::SourceRef(&source), near, value)?;
            let reference = self.register(&source, &target).await?;
            let objects = by.read(&source.store, near, value);
            self.found(&reference, &target, FoundVersion::Several);
            Ok(objects)
        })
    }
}
