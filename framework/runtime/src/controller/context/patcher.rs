//! Patching a copy of an object within a reconcile; the result is put into the caches.

use std::any::Any;
use std::fmt;
use std::ops::{Deref, DerefMut};

use crate::controller::state::WriteEffect;
use crate::controller::{Context, Reconciler};
use windlass_client::api::Patcher;
use windlass_core::error::Error;
use windlass_core::rbac::CanPatch;
use windlass_core::resource::{FullObject, Resource, ResourceExt};

/// A copy of an object, to be changed freely; [`send`](Self::send) sends the difference. As
/// [`Patcher`], and the caches show the written state at once.
pub struct ContextPatcher<'a, C: Reconciler, K> {
    /// The reconcile whose caches show the result.
    cx: &'a Context<C>,
    /// The copy, and the state at the time of the copy.
    patcher: Patcher<K>,
    /// Whether the object is the reconciled object: the event of a patch upon a known version
    /// enqueues nothing.
    is_own: bool,
}

impl<C: Reconciler, K: Resource> fmt::Debug for ContextPatcher<'_, C, K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("ContextPatcher").field(&self.patcher).finish()
    }
}

impl<C: Reconciler, K> Deref for ContextPatcher<'_, C, K> {
    type Target = K;

    fn deref(&self) -> &K {
        &self.patcher
    }
}

impl<C: Reconciler, K> DerefMut for ContextPatcher<'_, C, K> {
    fn deref_mut(&mut self) -> &mut K {
        &mut self.patcher
    }
}

impl<C: Reconciler> Context<C> {
    /// Returns a copy of the reconciled object to be changed, including its status; the changes are
    /// sent by [`ContextPatcher::send`], as at most two patches.
    ///
    /// ```
    /// # extern crate windlass_runtime as windlass;
    /// # use windlass::controller::{Action, Context, Reconciler, Result};
    /// # use k8s_openapi::api::core::v1::Node;
    /// # struct Nodes;
    /// # impl Reconciler for Nodes {
    /// #     type Object = Node;
    /// async fn reconcile(&self, node: &Node, cx: &Context<Self>) -> Result {
    ///     let mut node = cx.patcher();
    ///     node.spec.get_or_insert_default().unschedulable = Some(true);
    ///     node.metadata.annotations.get_or_insert_default().remove("example.dev/drain");
    ///     node.send().await?;
    ///     Ok(Action::done())
    /// }
    /// # }
    /// ```
    pub fn patcher(&self) -> ContextPatcher<'_, C, C::Object>
    where
        C::Object: FullObject,
    {
        let patcher = self.own_api().patcher(&self.object);
        ContextPatcher { cx: self, patcher, is_own: true }
    }

    /// Returns a copy of another object to be changed, as [`patcher`](Self::patcher).
    ///
    /// The object's own namespace counts, not that of the reconciled object.
    pub fn patcher_of<K: FullObject>(&self, object: &K) -> ContextPatcher<'_, C, K>
    where
        C: CanPatch<K>,
    {
        let patcher = match object.namespace() {
            Some(namespace) => self.shared.client.namespace(namespace).patcher(object),
            None => self.shared.client.all().patcher(object),
        };
        ContextPatcher { cx: self, patcher, is_own: self.is_own(object) }
    }
}

impl<C: Reconciler, K: FullObject> ContextPatcher<'_, C, K> {
    /// As [`Patcher::unlocked`]. Such a patch of the reconciled object causes another reconcile:
    /// another client may have written between the version that was read and the version that the
    /// patch left.
    #[must_use]
    pub fn unlocked(self) -> Self {
        Self { patcher: self.patcher.unlocked(), ..self }
    }

    /// As [`Patcher::is_changed`].
    ///
    /// Compares the copy with the state at the time of the copy; costs no request.
    pub fn is_changed(&self) -> bool {
        self.patcher.is_changed()
    }

    /// As [`Patcher::send`]: sends the changes, if there are any; true when something was sent. The
    /// next reconcile sees the result, and is not caused by the patch when the object is the
    /// reconciled object and the patch is not [unlocked](Self::unlocked).
    ///
    /// # Errors
    /// As [`Patcher::send`]. A write to the object by other methods of the context since the copy
    /// was made also leads to a conflict: the object's version has changed.
    /// # Cancel safety
    /// As [`Patcher::send`].
    pub async fn send(&mut self) -> Result<bool, Error> {
        let (cx, is_own) = (self.cx, self.is_own);
        let key = cx.key_of::<K>(&self.patcher);
        let mut pending = cx.before_write::<K>("patch", &key);
        self.patcher
            .send_with_callback(|from, written, answer| {
                // The patcher may send a patch of the object and another of the status. The cache
                // has shown the first patch by the time of the second.
                let before = || cx.before_write::<K>("patch", &key);
                cx.after_write(pending.take().or_else(before), answer);
                // A patch of both has been of the object first, so this is the newer one.
                if is_own && let Some(written) = (written as &dyn Any).downcast_ref() {
                    cx.wrote_beside_status(written);
                }
                match from {
                    Some(from) if is_own => cx.wrote_upon(from, written, answer),
                    // Without a version check the result may contain another client's change, so
                    // the event must still enqueue the object.
                    None if is_own => cx.show::<K>(answer),
                    _ => cx.wrote(WriteEffect::Changed, written, answer),
                }
            })
            .await
    }
}
