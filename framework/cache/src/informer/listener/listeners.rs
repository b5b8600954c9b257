//! The listeners of an informer.

use std::sync::Arc;

use tokio::time::Instant;

use super::Listener;
use windlass_core::sync::{AtomicBool, Mutex, Ordering};

/// The listeners of an informer. Members change only while the apply permit is held, so that each
/// member receives the content once and then every change.
#[derive(Default)]
pub(crate) struct Listeners {
    members: Mutex<Arc<[Arc<Listener>]>>,
    /// Listeners that have not received the content yet.
    pending: Mutex<Vec<Arc<Listener>>>,
    has_ended: AtomicBool,
}

impl Listeners {
    /// Adds a listener. The caller wakes the informer's task afterwards.
    pub(crate) fn add(&self, listener: Arc<Listener>) {
        let mut pending = self.pending.lock();
        // Checked under the lock under which `end` sets the flag: a listener that comes after `end`
        // has taken the new listeners would never be ended otherwise. Relaxed, because the lock
        // orders both.
        if self.has_ended.load(Ordering::Relaxed) {
            drop(pending);
            return listener.end();
        }
        pending.push(listener);
    }

    /// Returns the listeners that receive changes.
    pub(crate) fn members(&self) -> Arc<[Arc<Listener>]> {
        Arc::clone(&self.members.lock())
    }

    /// Returns all listeners, pending listeners included.
    pub(crate) fn all(&self) -> Vec<Arc<Listener>> {
        let mut all = self.members().to_vec();
        all.extend(self.pending.lock().iter().map(Arc::clone));
        all
    }

    /// Returns whether listeners wait for the content.
    pub(crate) fn has_pending(&self) -> bool {
        !self.pending.lock().is_empty()
    }

    /// Makes new listeners members: `introduce` delivers the content to them. Drops removed
    /// members. To be called only while the apply permit is held. Returns the new members.
    pub(crate) fn attach(
        &self,
        now: Instant,
        introduce: impl FnOnce(&[Arc<Listener>]),
    ) -> Vec<Arc<Listener>> {
        // Taken under the lock: a listener that is added from now on waits for the next call.
        let mut fresh = std::mem::take(&mut *self.pending.lock());
        fresh.retain(|listener| listener.begin(now));
        let members = self.members();
        if fresh.is_empty() && !members.iter().any(|member| member.is_removed()) {
            return fresh;
        }
        // Before they become members, so that the content precedes every change.
        introduce(&fresh);
        let (gone, stay): (Vec<_>, Vec<_>) =
            members.iter().chain(&fresh).map(Arc::clone).partition(|member| member.is_removed());
        *self.members.lock() = stay.into();
        // A queued listener ends with its task.
        gone.iter().filter(|member| !member.is_queued()).for_each(|member| member.end());
        fresh
    }

    /// Ends all listeners. Queued listeners end with their tasks.
    pub(crate) fn end(&self) {
        // Flag and pending listeners under a single lock: a listener that is added in between would
        // be in neither.
        let pending = {
            let mut pending = self.pending.lock();
            self.has_ended.store(true, Ordering::Relaxed);
            std::mem::take(&mut *pending)
        };
        pending.iter().for_each(|listener| listener.end());
        let members = std::mem::take(&mut *self.members.lock());
        for member in members.iter() {
            if member.is_queued() {
                member.remove();
            } else {
                member.end();
            }
        }
    }
}
