//! From a batch of deltas to the store, to those who listen, and to the marks that are reached.
//!
//! Whoever holds the turn of the hand-off does it: the task that read the batch off the network if
//! nobody is before it, else the informer's own.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::core::Core;
use super::listener::Listener;
use super::meter::Reading;
use super::progress::Synced;
use crate::reflector::{Handoff, Sink, StoreDelta};
use crate::store::{Applied, Event};

/// Deltas applied under one lock.
pub(super) const BATCH: usize = 128;

impl Sink for Core {
    fn offer(&self, batch: &mut Vec<StoreDelta>) {
        match self.handoff.turn() {
            // One hop less: nothing is before this batch.
            Some(turn) if turn.is_empty() => {
                while batch.len() > BATCH {
                    let rest = batch.split_off(BATCH);
                    self.deliver(std::mem::replace(batch, rest), 0);
                }
                // The next one is as long, as a rule: to grow it step by step costs more than its events.
                let next = Vec::with_capacity(batch.len());
                self.deliver(std::mem::replace(batch, next), 0);
            }
            _ => self.handoff.push(batch.drain(..)),
        }
    }

    fn handoff(&self) -> Option<&Handoff> {
        Some(&self.handoff)
    }
}

impl Core {
    /// Applies a batch and tells it. Only while the turn is held.
    pub(super) fn deliver(&self, batch: Vec<StoreDelta>, merged: u64) {
        self.is_telling.store(true, Ordering::SeqCst);
        let applied = self.store.apply(batch);
        let members = self.audience.members();
        for member in members.iter() {
            member.hear(&applied.events);
        }
        self.is_telling.store(false, Ordering::SeqCst);
        self.reach(&applied, &members);
        self.meter.dropped(applied.dropped + merged);
        self.measure();
    }

    fn reach(&self, applied: &Applied, members: &[Arc<Listener>]) {
        if applied.marks.is_empty() {
            return;
        }
        self.progress.reach(&applied.marks, self.seams.clock.now());
        if self.progress.has_just_settled() {
            members.iter().for_each(|member| member.mark_synced());
            self.progress.set_synced();
        }
    }

    /// Tells newcomers what is in the store; returns them. Only while the turn is held.
    pub(super) fn welcome(&self) -> Vec<Arc<Listener>> {
        let now = self.seams.clock.now();
        self.audience.welcome(now, |newcomers| {
            if newcomers.is_empty() {
                return;
            }
            let is_synced = self.progress.now() == Synced::Done;
            let content = self.store.content();
            let added = |object| Event::Added { new: object, is_initial: true };
            let content: Vec<Event> = content.into_iter().map(added).collect();
            for newcomer in newcomers {
                newcomer.hear(&content);
                if is_synced {
                    newcomer.mark_synced();
                }
            }
        })
    }

    /// Shows the content again to those whose period is over. Only while the turn is held.
    pub(super) fn resync(&self) {
        let now = self.seams.clock.now();
        let members = self.audience.members();
        let due: Vec<_> = members.iter().filter(|member| member.is_due(now)).collect();
        if !due.is_empty() && self.progress.now() == Synced::Done {
            let content = self.store.content();
            due.iter().for_each(|member| member.resync(&content));
        }
    }

    /// Sets the gauges; allocates nothing.
    pub(super) fn measure(&self) {
        let now = self.seams.clock.now();
        let members = self.audience.members();
        self.meter.read(&Reading {
            sizes: self.store.sizes(),
            invalid: self.store.invalid(),
            queued: self.handoff.len(),
            version: &self.progress.version(),
            age: self.age(now).unwrap_or_default(),
            waiting: members.iter().map(|member| member.waiting()).sum(),
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::delta::Delta;
    use crate::informer::tests::idle_core;
    use crate::store::{Run, Sighting};
    use crate::wire::Skim;

    fn put(core: &Core, name: &str) -> Vec<StoreDelta> {
        let text = format!(r#"{{"metadata":{{"name":"{name}","uid":"u","resourceVersion":"1"}}}}"#);
        let object = core.store.object(&Skim::of(text.as_bytes()).expect("an object"));
        vec![Delta::Put(Sighting { object, run: Run::default(), is_initial: false })]
    }

    /// One hop less: nobody else has to run for it.
    #[tokio::test(start_paused = true)]
    async fn a_batch_that_nothing_is_before_is_applied_where_it_was_read() {
        let (_registry, core) = idle_core();
        let mut batch = put(&core, "a");
        core.offer(&mut batch);
        assert!(batch.is_empty());
        assert_eq!((core.store.seen_len(), core.handoff.len()), (1, 0));
    }

    #[tokio::test(start_paused = true)]
    async fn a_batch_does_not_overtake_what_is_queued() {
        let (_registry, core) = idle_core();
        let turn = core.handoff.turn().expect("nobody has it");
        core.offer(&mut put(&core, "a"));
        drop(turn);
        core.offer(&mut put(&core, "b"));
        assert_eq!((core.store.seen_len(), core.handoff.len()), (0, 2));
    }
}
