//! Who listens to one informer.

use std::sync::Arc;

use tokio::time::Instant;

use super::listener::Listener;
use crate::sync::{AtomicBool, Mutex, Ordering};

/// The listeners of one informer. Members change only while the turn is held, so that each is told
/// the content once and then every change.
#[derive(Default)]
pub(super) struct Audience {
    members: Mutex<Arc<[Arc<Listener>]>>,
    /// Those who have not been told the content yet.
    newcomers: Mutex<Vec<Arc<Listener>>>,
    has_ended: AtomicBool,
}

impl Audience {
    /// Somebody wants to be told. Wake the informer's task afterwards.
    pub(super) fn add(&self, listener: Arc<Listener>) {
        let mut newcomers = self.newcomers.lock();
        if self.has_ended.load(Ordering::SeqCst) {
            drop(newcomers);
            return listener.end();
        }
        newcomers.push(listener);
    }

    /// Those who are told.
    pub(super) fn members(&self) -> Arc<[Arc<Listener>]> {
        Arc::clone(&self.members.lock())
    }

    /// Everybody, newcomers included.
    pub(super) fn all(&self) -> Vec<Arc<Listener>> {
        let mut all = self.members().to_vec();
        all.extend(self.newcomers.lock().iter().map(Arc::clone));
        all
    }

    pub(super) fn has_newcomers(&self) -> bool {
        !self.newcomers.lock().is_empty()
    }

    /// Makes members of the newcomers, lets `introduce` tell them what there is, and sees off those
    /// who were removed. Only while the turn is held. Returns the new members.
    pub(super) fn welcome(
        &self,
        now: Instant,
        introduce: impl FnOnce(&[Arc<Listener>]),
    ) -> Vec<Arc<Listener>> {
        let mut fresh = std::mem::take(&mut *self.newcomers.lock());
        fresh.retain(|newcomer| newcomer.begin(now));
        let members = self.members();
        if fresh.is_empty() && !members.iter().any(|member| member.is_removed()) {
            return fresh;
        }
        introduce(&fresh);
        let (gone, stay): (Vec<_>, Vec<_>) =
            members.iter().chain(&fresh).map(Arc::clone).partition(|member| member.is_removed());
        *self.members.lock() = stay.into();
        // A queued one ends with its task.
        gone.iter().filter(|member| !member.is_queued()).for_each(|member| member.end());
        fresh
    }

    /// Nobody is told anything any more. Queued listeners end with their tasks.
    pub(super) fn end(&self) {
        let newcomers = {
            let mut newcomers = self.newcomers.lock();
            self.has_ended.store(true, Ordering::SeqCst);
            std::mem::take(&mut *newcomers)
        };
        newcomers.iter().for_each(|newcomer| newcomer.end());
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
