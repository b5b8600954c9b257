//! Applies a batch of deltas to the store, notifies the listeners, and notes the marks that were
//! reached.
//!
//! The task that holds the apply permit runs this code: the task that read the batch off the
//! network if nothing is queued before that batch, else the informer's task.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tokio::task::JoinSet;
use tokio::time::Instant;

use super::core::InformerCore;
use super::listener::Listener;
use super::meter::Measurement;
use super::progress::Synced;
use crate::reflector::{BatchSink, StoreApplyQueue, StoreDelta};
use crate::store::{BatchOutcome, StoreEvent};

/// Most deltas applied under a single lock.
const BATCH: usize = 128;
/// A batch that takes longer than this, with more than `SLOW_DEPTH` changes waiting, is logged: the
/// figures of client-go's queue.
const SLOW: Duration = Duration::from_millis(100);
/// See `SLOW`.
const SLOW_DEPTH: usize = 10;

impl BatchSink for InformerCore {
    fn offer(&self, batch: &mut Vec<StoreDelta>) {
        match self.apply_queue.try_permit() {
            // Nothing is queued: the batch is applied here, which saves a hop to another task.
            Some(permit) if permit.is_empty() => {
                while batch.len() > BATCH {
                    let rest = batch.split_off(BATCH);
                    self.deliver(std::mem::replace(batch, rest), 0);
                }
                // The next batch is usually as long: growing the buffer step by step costs more
                // than the events.
                let next = Vec::with_capacity(batch.len());
                self.deliver(std::mem::replace(batch, next), 0);
            }
            _ => self.apply_queue.push(batch.drain(..)),
        }
    }

    fn apply_queue(&self) -> Option<&StoreApplyQueue> {
        Some(&self.apply_queue)
    }
}

impl InformerCore {
    /// Handles the work of the informer's own task: new listeners, resyncs, and a batch of queued
    /// deltas. Returns whether there may be more.
    pub(super) fn attend(&self, tasks: &mut JoinSet<()>) -> bool {
        // If another task holds the permit, this one is woken on the release.
        let Some(permit) = self.apply_queue.try_permit() else { return false };
        for listener in self.attach_listeners() {
            if listener.is_queued() {
                tasks.spawn(listener.task(self.stop.clone()));
            }
        }
        self.resync();
        let (batch, merged) = permit.take(BATCH);
        if batch.is_empty() {
            return false;
        }
        self.deliver(batch, merged);
        true
    }

    /// Applies a batch and delivers the events. To be called only while the apply permit is held.
    pub(super) fn deliver(&self, batch: Vec<StoreDelta>, merged: u64) {
        let began = self.environment.clock.now();
        let depth = batch.len() + self.apply_queue.len();
        // Set before the store changes and cleared after the last delivery: a reader of
        // `is_delivered` in between must not take the new content for delivered. The store's lock
        // shows this to a reader of the new content; `SeqCst` is stronger than needed.
        self.is_delivering.store(true, Ordering::SeqCst);
        let applied = self.store.apply(batch);
        let members = self.listeners.members();
        for member in members.iter() {
            member.notify(&applied.events);
        }
        // After the events are in the mailboxes, where `is_delivered` looks next: a reader that
        // loads `false` finds them there, for which release and acquire would do.
        self.is_delivering.store(false, Ordering::SeqCst);
        self.record_marks(&applied, &members);
        self.meter.dropped(applied.dropped + merged);
        let now = self.environment.clock.now();
        let took = now.saturating_duration_since(began);
        self.meter.processed(took);
        if is_slow(took, depth) {
            self.report_slow(took, depth, applied.events.first());
        }
        self.measure_at(now);
    }

    /// Logs a batch that took long. The time is that of the store and of the framework's own short
    /// mappings: listeners of users have tasks of their own.
    fn report_slow(&self, took: Duration, depth: usize, first: Option<&StoreEvent>) {
        tracing::info!(
            cache = self.name,
            object = first.map(|event| tracing::field::display(event.key())),
            ?took,
            depth,
            "a batch of changes took long to apply"
        );
    }

    /// Records the marks of a batch, after its events were delivered.
    fn record_marks(&self, applied: &BatchOutcome, members: &[Arc<Listener>]) {
        if applied.marks.is_empty() {
            return;
        }
        self.progress.reach(&applied.marks, self.environment.clock.now());
        if self.progress.has_just_settled() {
            // The marks go into the mailboxes first: a cache counts as synced once the listeners
            // have the first lists.
            members.iter().for_each(|member| member.mark_synced());
            self.progress.set_synced();
        }
    }

    /// Delivers the store's content to new listeners; returns them. To be called only while the
    /// apply permit is held.
    pub(super) fn attach_listeners(&self) -> Vec<Arc<Listener>> {
        let now = self.environment.clock.now();
        self.listeners.attach(now, |pending| {
            if pending.is_empty() {
                return;
            }
            let is_synced = self.progress.now() == Synced::Done;
            let content = self.store.content();
            let added = |object| StoreEvent::Added { new: object, is_initial: true };
            let content: Vec<StoreEvent> = content.into_iter().map(added).collect();
            for new_listener in pending {
                new_listener.notify(&content);
                if is_synced {
                    new_listener.mark_synced();
                }
            }
        })
    }

    /// Delivers the content again to listeners whose period is over. To be called only while the
    /// apply permit is held.
    pub(super) fn resync(&self) {
        let now = self.environment.clock.now();
        let members = self.listeners.members();
        let due: Vec<_> = members.iter().filter(|member| member.is_due(now)).collect();
        if !due.is_empty() && self.progress.now() == Synced::Done {
            let content = self.store.content();
            due.iter().for_each(|member| member.resync(&content));
        }
    }

    /// Sets the gauges, without an allocation.
    pub(super) fn measure(&self) {
        self.measure_at(self.environment.clock.now());
    }

    /// Sets the gauges as of `now`.
    fn measure_at(&self, now: Instant) {
        let members = self.listeners.members();
        self.meter.read(&Measurement {
            sizes: self.store.sizes(),
            invalid: self.store.invalid(),
            queued: self.apply_queue.len(),
            version: &self.progress.version(),
            age: self.age(now).unwrap_or_default(),
            silence: self.silence(now),
            waiting: members.iter().map(|member| member.waiting()).sum(),
        });
    }
}

/// Returns whether a batch took long enough to be logged.
fn is_slow(took: Duration, depth: usize) -> bool {
    took > SLOW && depth > SLOW_DEPTH
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::delta::Delta;
    use crate::informer::tests::idle_core;
    use crate::store::{ListGeneration, Observed};
    use windlass_client::client::test_support::Captured;
    use windlass_core::wire::MetadataScan;

    fn put(core: &InformerCore, name: &str) -> Vec<StoreDelta> {
        let text = format!(r#"{{"metadata":{{"name":"{name}","uid":"u","resourceVersion":"1"}}}}"#);
        let object = core.store.object(&MetadataScan::of(text.as_bytes()).expect("an object"));
        vec![Delta::Put(Observed { object, run: ListGeneration::default(), is_initial: false })]
    }

    /// No other task has to run for that.
    #[tokio::test(start_paused = true)]
    async fn a_batch_that_nothing_is_before_is_applied_where_it_was_read() {
        let (_registry, core) = idle_core();
        let mut batch = put(&core, "a");
        core.offer(&mut batch);
        assert!(batch.is_empty());
        assert_eq!((core.store.seen_len(), core.apply_queue.len()), (1, 0));
    }

    #[tokio::test(start_paused = true)]
    async fn a_batch_does_not_overtake_what_is_queued() {
        let (_registry, core) = idle_core();
        let permit = core.apply_queue.try_permit().expect("nobody has it");
        core.offer(&mut put(&core, "a"));
        drop(permit);
        core.offer(&mut put(&core, "b"));
        assert_eq!((core.store.seen_len(), core.apply_queue.len()), (0, 2));
    }

    /// A value for each pop, of the time that processing takes, without the wait before the pop (as
    /// upstream).
    #[tokio::test]
    async fn mechanism_33_the_time_that_a_batch_takes_is_measured_once_for_each_batch() {
        let (registry, core) = idle_core();
        let metrics = core.meter.metrics().clone();
        let labels = r#"name="ConfigMap",group="",version="v1",resource="configmaps""#;
        let measured = |what: &str| -> f64 {
            let text = metrics.encode();
            let head = format!("informer_processing_latency_seconds_{what}{{{labels}}} ");
            let line = text.lines().find_map(|line| line.strip_prefix(&head));
            line.unwrap_or_else(|| panic!("no {head} in {text}")).parse().expect("a number")
        };
        assert_eq!((measured("count"), measured("sum")), (0.0, 0.0));
        let began = Instant::now();
        core.offer(&mut put(&core, "a"));
        assert_eq!(measured("count"), 1.0, "where it was read");
        core.deliver(put(&core, "b").into_iter().chain(put(&core, "c")).collect(), 0);
        assert_eq!(measured("count"), 2.0, "a batch of two is one");
        let sum = measured("sum");
        assert!(sum > 0.0 && sum <= began.elapsed().as_secs_f64(), "{sum} s");
        let text = metrics.encode();
        let buckets = text
            .lines()
            .filter(|line| line.starts_with("informer_processing_latency_seconds_bucket{"));
        let bounds: Vec<f64> = buckets
            .filter_map(|line| line.split_once("le=\"")?.1.split_once('"')?.0.parse().ok())
            .filter(|bound: &f64| bound.is_finite())
            .collect();
        assert_eq!(bounds, [0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0]);
        core.end();
        drop(registry);
        assert!(!metrics.encode().contains(labels), "an informer that is gone has no series");
    }

    /// A pop that takes long while others wait is logged (upstream traces such a pop).
    #[tokio::test(start_paused = true)]
    async fn mechanism_21_a_batch_that_took_long_is_logged_with_its_first_object_and_the_time() {
        let (_registry, core) = idle_core();
        let (captured, _guard) = Captured::at(tracing::Level::INFO);
        let applied = core.store.apply(put(&core, "a"));
        core.report_slow(Duration::from_millis(140), 12, applied.events.first());
        let lines = captured.with("took long to apply");
        assert_eq!(lines.len(), 1, "{}", captured.text());
        for expected in ["cache=\"configmaps\"", "object=a", "140ms", "depth=12"] {
            assert!(lines[0].contains(expected), "{expected}: {}", lines[0]);
        }
        let slow = [(99, 50), (140, 10), (140, 11)]
            .map(|(millis, depth)| is_slow(Duration::from_millis(millis), depth));
        assert_eq!(slow, [false, false, true]);
        core.deliver(put(&core, "b"), 0);
        assert_eq!(captured.with("took long").len(), 1, "a quick batch is not logged");
    }
}
