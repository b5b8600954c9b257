//! Reads of other objects that become watches: a change of them reconciles the reader.

// DESIGN.md, 254: A read whose grant is missing stalls its reader
// DESIGN.md, 176: A read that finds the same again is ready without a task or an allocation

mod by;

use std::fmt;
use std::fmt::Display;
use std::future::IntoFuture;
use std::marker::PhantomData;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context as Task, Poll};
use std::time::Duration;

pub use self::by::{WatchScope, WatchTarget};
use crate::controller::context::is_namespaced;
use crate::controller::source::ReadSource;
use crate::controller::state::{AttemptReads, FoundVersion, ReadSourceRef, ReadTarget, RunRef};
use crate::controller::{Context, Reconciler};
use windlass_cache::store::Cached;
use windlass_client::api::ApiFuture;
use windlass_core::error::{Error, ErrorKind};
use windlass_core::rbac::CanCache;
use windlass_core::resource::{ObjectKey, Resource, ResourceExt, Scope};

/// Longest wait of a read for a cache that is not filled.
const FILL_LIMIT: Duration = Duration::from_secs(10);

/// A registered read that waits for the cache. If the wait ends early, the read counts as a read
/// without a result: the first list then wakes the reader.
struct AwaitedRead<'a, C: Reconciler> {
    cx: &'a Context<C>,
    source: &'a ReadSourceRef,
    target: &'a ReadTarget,
    is_filled: bool,
}

impl<C: Reconciler> Drop for AwaitedRead<'_, C> {
    fn drop(&mut self) {
        if self.is_filled {
            return;
        }
        let found = match self.target {
            ReadTarget::Object(_) => FoundVersion::Absent,
            ReadTarget::Kind | ReadTarget::Value(..) | ReadTarget::Selection(_) => {
                FoundVersion::Several
            }
        };
        self.cx.found(self.source, self.target, found);
    }
}

/// A read of one object that becomes a watch, from [`Context::watch`]; await this read for the
/// object.
///
/// Created by [`Context::watch`], which describes the effects and errors.
#[must_use = "nothing is read until it is awaited"]
pub struct WatchRead<'a, C: Reconciler, K> {
    cx: &'a Context<C>,
    /// The namespace, if other than that of the reconciled object.
    namespace: Option<&'a str>,
    name: &'a str,
    kind: PhantomData<fn() -> K>,
}

impl<C: Reconciler, K> fmt::Debug for WatchRead<'_, C, K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WatchRead").field("name", &self.name).finish_non_exhaustive()
    }
}

impl<'a, C: Reconciler, K> WatchRead<'a, C, K> {
    /// Reads the object of another namespace; an error for a kind without namespaces, and for a
    /// namespace that the operator does not read.
    ///
    /// If users choose the namespace through the reconciled object, they thereby read with the
    /// rights of the operator: check first that they may.
    pub fn in_namespace(self, namespace: &'a str) -> Self {
        Self { namespace: Some(namespace), ..self }
    }
}

impl<'a, C: Reconciler, K: Resource> IntoFuture for WatchRead<'a, C, K> {
    type Output = Result<Option<Cached<K>>, Error>;
    type IntoFuture = WatchFuture<'a, K>;

    fn into_future(self) -> Self::IntoFuture {
        let Self { cx, namespace, name, .. } = self;
        let is_namespaced = match cx.kept_source::<K>() {
            Some(source) => source.info.scope == Scope::Namespaced,
            None => is_namespaced::<K>(),
        };
        let key = cx.read_key(is_namespaced, namespace, name);
        let read = key.and_then(|key| cx.read_again(key));
        WatchFuture(match read {
            Ok(EarlierRead::Found(object)) => WatchState::Done(Some(Ok(object))),
            Ok(EarlierRead::Differs(source, key)) => {
                WatchState::Running(Box::pin(cx.watch_anew(source, key)))
            }
            Err(error) => WatchState::Done(Some(Err(error))),
        })
    }
}

/// The future of a [`WatchRead`].
///
/// The future is ready at once, without an allocation, when the former reconcile has read the same
/// state of the object.
pub struct WatchFuture<'a, K>(WatchState<'a, K>);

enum WatchState<'a, K> {
    /// `None` after the first poll.
    Done(Option<Result<Option<Cached<K>>, Error>>),
    Running(ApiFuture<'a, Option<Cached<K>>>),
}

impl<K> fmt::Debug for WatchFuture<'_, K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WatchFuture").finish_non_exhaustive()
    }
}

impl<K> Future for WatchFuture<'_, K> {
    type Output = Result<Option<Cached<K>>, Error>;

    fn poll(self: Pin<&mut Self>, task: &mut Task<'_>) -> Poll<Self::Output> {
        match &mut self.get_mut().0 {
            WatchState::Running(read) => read.as_mut().poll(task),
            WatchState::Done(read) => read.take().map_or(Poll::Pending, Poll::Ready),
        }
    }
}

/// A read that may have been made by a former reconcile.
enum EarlierRead<K: Resource> {
    /// The read was registered, and found the same state.
    Found(Option<Cached<K>>),
    /// A registration is needed.
    Differs(Arc<ReadSource<K>>, ObjectKey),
}

/// Checks that the operator reads the namespace of a read.
fn check_covered<K: Resource>(
    source: &ReadSource<K>,
    namespace: Option<&str>,
    what: &dyn Display,
) -> Result<(), Error> {
    if source.informer.covers(namespace) {
        return Ok(());
    }
    let text = format!(
        "cannot watch \"{what}\": the operator does not read its namespace; add it to the namespaces of \
         the manager or of the cache"
    );
    Err(Error::new(ErrorKind::Usage, text))
}

impl<C: Reconciler> Context<C> {
    /// Reads an object of kind `K` from the cache, and watches it: when it appears, changes or
    /// disappears, this object is reconciled again, for the reason `reads KIND NAMESPACE/NAME`.
    /// `name` is that of an object in this object's namespace, or of a cluster-scoped object; for
    /// another namespace see [`in_namespace`](WatchRead::in_namespace). `None` when there is no
    /// such object; the appearance of such an object is watched, too.
    ///
    /// Only readers are woken, and only by objects that they read. The reads of a successful
    /// reconcile replace those of earlier reconciles; a reconcile that fails or waits adds to them.
    /// Reads end with the object, with the leadership of this process and with the process: the
    /// first reconcile afterwards registers them again.
    ///
    /// The first read of a kind starts the kind's cache, if none runs, and waits up to 10 s until
    /// the cache is filled; the cache stops with the last reader. Own writes are visible at once,
    /// and do not wake a reader that has read them. The grant is `can(list watch K)`, or `owns(K)`,
    /// or `watches(K, …)`.
    ///
    /// An object may have 1000 such reads, and the objects of one controller together 250 000;
    /// beyond that a reader is woken by every change of the kind, which
    /// `windlass_reads_widened_total` counts.
    ///
    /// ```
    /// # extern crate windlass_runtime as windlass;
    /// # use k8s_openapi::api::core::v1::{ConfigMap, Secret};
    /// # use windlass::controller::{Action, Context, Reconciler, Result};
    /// # use windlass::rbac::{Can, verbs};
    /// # struct Sites;
    /// # impl Can<verbs::List, Secret> for Sites {}
    /// # impl Can<verbs::Watch, Secret> for Sites {}
    /// impl Reconciler for Sites {
    ///     type Object = ConfigMap;
    ///
    ///     async fn reconcile(&self, site: &ConfigMap, cx: &Context<Self>) -> Result {
    ///         let Some(tls) = cx.watch::<Secret>("tls").await? else {
    ///             // Runs again when the Secret appears.
    ///             return Ok(Action::done());
    ///         };
    ///         println!("certificate of version {}", tls.metadata().resource_version());
    ///         Ok(Action::done())
    ///     }
    /// }
    /// ```
    ///
    /// # Errors
    /// [`ErrorKind::Timeout`](windlass_core::ErrorKind::Timeout) when the cache is not filled after
    /// 10 s, with the reason; [`ErrorKind::Forbidden`](windlass_core::ErrorKind::Forbidden) when a
    /// missing right is the reason, which the text names;
    /// [`ErrorKind::Usage`](windlass_core::ErrorKind::Usage) when this object has no namespace and
    /// `K` is namespaced, or when the operator does not read the namespace.
    /// # Cancel safety
    /// Safe: the object stays watched until the next successful reconcile.
    /// # Panics
    /// When `K` is known at run time only.
    pub fn watch<'a, K: Resource>(&'a self, name: &'a str) -> WatchRead<'a, C, K>
    where
        C: CanCache<K>,
    {
        WatchRead { cx: self, namespace: None, name, kind: PhantomData }
    }

    /// Watches another object of the kind of the reconciled one, as [`watch`](Self::watch) does.
    /// Has no effect for a kind that is known at run time only.
    ///
    /// # Errors
    /// As [`watch`](Self::watch).
    pub(crate) async fn watch_other(&self, key: ObjectKey) -> Result<(), Error> {
        if C::Object::static_info().is_some()
            && let EarlierRead::Differs(source, key) = self.read_again::<C::Object>(key)?
        {
            self.watch_anew(source, key).await?;
        }
        Ok(())
    }

    /// Returns the key of a read; fails when the namespace and the scope of the kind do not fit.
    fn read_key(
        &self,
        is_namespaced: bool,
        namespace: Option<&str>,
        name: &str,
    ) -> Result<ObjectKey, Error> {
        let fault = match (is_namespaced, namespace.or(self.key.namespace())) {
            (true, None) => {
                "the reconciled object has no namespace in which it could be; name one by `in_namespace`"
            }
            (false, _) if namespace.is_some() => {
                "its kind has no namespaces; leave `in_namespace` out"
            }
            (is_namespaced, near) => {
                let key = ObjectKey::new(near.filter(|_| is_namespaced), name);
                return Ok(key.in_cluster(self.key.cluster()));
            }
        };
        Err(Error::new(ErrorKind::Usage, format!("cannot watch {name:?}: {fault}")))
    }

    /// Returns the source of a read type. The first source is kept for the reconcile, because most
    /// reconciles read a single kind.
    fn read_source<K: Resource>(&self) -> Arc<ReadSource<K>> {
        let kept = self.read_source.get().and_then(|kept| Arc::clone(kept).downcast().ok());
        kept.unwrap_or_else(|| {
            let source = self.shared.reads.source::<K>(&self.shared.informers);
            self.read_source.get_or_init(|| Arc::clone(&source) as _);
            source
        })
    }

    /// Returns the kept source, if it is of that type.
    fn kept_source<K: Resource>(&self) -> Option<&ReadSource<K>> {
        (**self.read_source.get()?).downcast_ref()
    }

    /// Reads the object of that key, if unchanged since a former read.
    fn read_again<K: Resource>(&self, key: ObjectKey) -> Result<EarlierRead<K>, Error> {
        // Without a reference to the kept source: a read that finds the same again costs little.
        if let Some(source) = self.kept_source::<K>() {
            return Ok(match self.confirmed(source, &key)? {
                Some(object) => EarlierRead::Found(object),
                None => EarlierRead::Differs(self.read_source(), key),
            });
        }
        let source = self.read_source::<K>();
        Ok(match self.confirmed(&source, &key)? {
            Some(object) => EarlierRead::Found(object),
            None => EarlierRead::Differs(source, key),
        })
    }

    /// Returns the object of that key, or its absence, if a registered read has found the same.
    fn confirmed<K: Resource>(
        &self,
        source: &ReadSource<K>,
        key: &ObjectKey,
    ) -> Result<Option<Option<Cached<K>>>, Error> {
        let registered = &self.shared.reads.registered;
        let object = source.store.get(key);
        let serial = object.as_ref().map(Cached::serial);
        let by = (&self.key, self.object.uid());
        if self.attempt_reads().repeats(registered, by, (source.number, key), serial) {
            return Ok(Some(object));
        }
        check_covered(source, key.namespace(), key)?;
        let reader = self.closing_reader();
        if !source.is_filled() {
            return Ok(None);
        }
        let place = (source.number, ReadTarget::Object(key.clone()));
        let found = object.as_ref().map(|object| (object.metadata(), object.serial()));
        let found = found.as_ref().map(|(it, serial)| (it.resource_version(), *serial));
        let is_same = registered.confirm(reader, &place, found);
        Ok(is_same.then_some(object))
    }

    /// Registers the read of an object, and reads the object.
    async fn watch_anew<K: Resource>(
        &self,
        source: Arc<ReadSource<K>>,
        key: ObjectKey,
    ) -> Result<Option<Cached<K>>, Error> {
        let target = ReadTarget::Object(key.clone());
        let reference = self.register(&source, &target).await?;
        let object = source.store.get(&key);
        let found = match &object {
            Some(object) => FoundVersion::Version(object.metadata().resource_version().into()),
            None => FoundVersion::Absent,
        };
        self.found(&reference, &target, found);
        Ok(object)
    }

    /// Registers a read, and waits until the cache is filled. A later read of the cache misses no
    /// change: a change after it wakes this object.
    async fn register<K: Resource>(
        &self,
        source: &Arc<ReadSource<K>>,
        target: &ReadTarget,
    ) -> Result<ReadSourceRef, Error> {
        if let Some(record) = &self.shared.dry_runs {
            record.note_read(format!(
                "watch {}{}",
                source.info.group_resource(),
                target.described()
            ));
        }
        let reference = source.reference();
        let registered = &self.shared.reads.registered;
        if !source.is_filled() {
            // Before the wait: the next attempt finds the cache running if this attempt gives up.
            registered.register(self.reader(), &reference, target.clone(), false);
            let mut awaited =
                AwaitedRead { cx: self, source: &reference, target, is_filled: false };
            self.filled(source).await?;
            awaited.is_filled = true;
        }
        registered.register(self.reader(), &reference, target.clone(), true);
        Ok(reference)
    }

    /// Waits until the cache of a source is filled.
    async fn filled<K: Resource>(&self, source: &ReadSource<K>) -> Result<(), Error> {
        let synced = source.registration.synced();
        match self.shared.environment.clock.timeout(FILL_LIMIT, synced).await {
            Some(synced) => synced,
            None => {
                let missing = source.registration.missing();
                let text = format!(
                    "cannot read the cache of {}, which is not filled after {FILL_LIMIT:?}: {}",
                    source.info,
                    missing.as_deref().unwrap_or("its first list has not been delivered")
                );
                Err(match source.registration.lacks_right() {
                    true => Error::new(ErrorKind::Forbidden, text).for_want_of_right(),
                    false => Error::new(ErrorKind::Timeout, text),
                })
            }
        }
    }

    /// Records the state that was found by a registered read.
    fn found(&self, source: &ReadSourceRef, target: &ReadTarget, found: FoundVersion) {
        self.shared.reads.registered.found(self.reader(), source.number, target, found);
    }

    /// Returns the reads of this attempt, which begin with the first one.
    fn attempt_reads(&self) -> &AttemptReads {
        self.reads.get_or_init(Box::default)
    }

    /// Returns this attempt as a reader.
    fn reader(&self) -> RunRef<'_> {
        let run = self.attempt_reads().run(&self.shared.reads.registered);
        RunRef { key: &self.key, uid: self.object.uid(), run }
    }

    /// Returns this attempt as a reader of an object whose state the tables are to know.
    fn closing_reader(&self) -> RunRef<'_> {
        let reader = self.reader();
        self.attempt_reads().close(&self.shared.reads.registered, reader);
        reader
    }

    /// Replaces the registered reads of the object by those of this attempt, which has succeeded.
    pub(in crate::controller) fn commit_reads(&self) {
        let registered = &self.shared.reads.registered;
        match self.reads.get() {
            Some(reads) => reads.commit(registered, &self.key, self.object.uid()),
            None => registered.commit(&self.key, 0),
        }
    }
}
