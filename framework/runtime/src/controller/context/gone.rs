//! Lookup of the reconciled object in the API server, for cases in which the cache may lag.
//!
//! Caches of two kinds lag independently. When an object is deleted, garbage collection deletes its
//! children, and their events may arrive before its own.
//!
//! Without this lookup a reconcile would make the children of a deleted object again: the reconcile
//! still sees the object in the cache, and the children as missing. The children would live until
//! garbage collection finds them, and their controllers would start work for nothing.

// DESIGN.md, 77: A parent that lost a child is read before the child is made again
// DESIGN.md, 78: A reconcile that fails because its object is gone is not a failure

use std::sync::atomic::Ordering;

use crate::controller::{Context, Failure, Reconciler};
use windlass_core::error::{Error, ErrorKind};
use windlass_core::resource::ResourceExt;

/// State of the object by a consistent read.
///
/// Read by name, compared by uid.
enum ObjectState {
    /// The object exists and is not marked for deletion.
    Live,
    /// The object is marked for deletion.
    Terminating,
    /// Gone, or replaced by another object of the same name.
    Deleted,
}

impl<C: Reconciler> Context<C> {
    /// Reads the object's metadata from the API server.
    async fn look_up(&self) -> Result<ObjectState, Error> {
        let name = self.key.name();
        let info = &self.shared.info;
        match self.own_api().get_metadata(name).await {
            Ok(found) if found.uid() != self.object.uid() => Ok(ObjectState::Deleted),
            Ok(found) if found.is_terminating() => Ok(ObjectState::Terminating),
            Ok(_) => Ok(ObjectState::Live),
            Err(error) if error.is_missing([&info.plural, &info.kind], name) => {
                Ok(ObjectState::Deleted)
            }
            Err(error) => Err(error),
        }
    }

    /// Called before a child is made. If the cache has shown the end of a child since the last
    /// lookup, the object is looked up now, and nothing is made for an object that is gone. The
    /// first children of an object cost no such request.
    pub(super) async fn before_creating(&self, child: &str) -> Result<(), Error> {
        let applied = &self.shared.memory.applied;
        let Some(event) = applied.unchecked_deletion(&self.key) else { return Ok(()) };
        self.ensure_alive(child).await?;
        // Settles only the end that was known before the lookup: a later end needs another lookup.
        applied.parent_is_alive(&self.key, event);
        Ok(())
    }

    /// Fails when the object is gone, or is being deleted without this reconcile knowing that.
    pub(super) async fn ensure_alive(&self, child: &str) -> Result<(), Error> {
        let end = match self.look_up().await? {
            ObjectState::Live => return Ok(()),
            ObjectState::Terminating if self.object.is_terminating() => return Ok(()),
            ObjectState::Terminating => "is being deleted",
            ObjectState::Deleted => "is gone",
        };
        // Relaxed: written and read by the task of this reconcile.
        self.has_ended.store(true, Ordering::Relaxed);
        let text = format!(
            "{child} is not made: {} {end}, which the cache will show soon",
            self.object_ref()
        );
        Err(Error::new(ErrorKind::NotFound, text))
    }

    /// Whether the reconcile failed because the object has ended. A 404 alone does not prove that:
    /// a subresource, a kind or a namespace may be missing as well, so the object is looked up.
    pub(in crate::controller) async fn has_ended(&self, failure: &Failure) -> bool {
        self.has_ended.load(Ordering::Relaxed)
            || failure.is_not_found() && matches!(self.look_up().await, Ok(ObjectState::Deleted))
    }
}
