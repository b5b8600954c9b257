//! Turns scanned objects into deltas and hands them over, one batch per network read.

use std::sync::Arc;

use super::apply_queue::{StoreApplyQueue, StoreDelta};
use crate::delta::Delta;
use crate::store::{self, ListGeneration, MarkKind, Observed, StreamMark};
use windlass_core::wire::MetadataScan;

/// Number of batches in a row after which a reflector yields to other tasks, even if the reflector
/// never had to wait.
const MAX_BATCHES_IN_A_ROW: u32 = 32;

/// A receiver of a reflector's deltas.
pub(crate) trait BatchSink: Send + Sync + 'static {
    /// Applies or queues the batch, which is empty afterwards. Does not block.
    fn offer(&self, batch: &mut Vec<StoreDelta>);

    /// Returns the queue of batches, if there is any.
    fn apply_queue(&self) -> Option<&StoreApplyQueue> {
        None
    }
}

/// Collects a reflector's objects as deltas for a sink.
pub(crate) struct DeltaWriter {
    pub(crate) store: Arc<store::StoreCore>,
    sink: Arc<dyn BatchSink>,
    /// Index of the reflector within the informer.
    scope: usize,
    pub(crate) namespace: Option<Arc<str>>,
    /// Number of the list and epoch, by which the store distinguishes old objects from new ones.
    pub(crate) run: ListGeneration,
    /// Whether this is the first list.
    pub(crate) is_initial: bool,
    /// Whether a cached object of the same version can replace a listed one; not across epochs.
    pub(crate) reuse: bool,
    /// Whether the list under way has shown an object in an older state than the cached state.
    pub(super) has_older_object: bool,
    batch: Vec<StoreDelta>,
    batches_in_a_row: u32,
}

impl DeltaWriter {
    /// Returns a writer for a reflector that has not run yet, with index `scope` in the informer.
    pub(crate) fn new(
        store: Arc<store::StoreCore>,
        sink: Arc<dyn BatchSink>,
        scope: usize,
        namespace: Option<Arc<str>>,
    ) -> Self {
        Self {
            store,
            sink,
            scope,
            namespace,
            run: ListGeneration::default(),
            is_initial: true,
            reuse: true,
            has_older_object: false,
            batch: Vec::new(),
            batches_in_a_row: 0,
        }
    }

    /// Begins a new pass over the scope.
    pub(crate) fn begin_generation(&mut self) {
        self.run.number = self.run.number.saturating_add(1);
        self.has_older_object = false;
    }

    /// Adds an object that a list shows; an object that is cached in this version already is not
    /// copied.
    pub(crate) fn listed(&mut self, scan: &MetadataScan<'_>) {
        let (cached, is_older) = self.store.listed(scan, self.run.epoch);
        self.has_older_object |= is_older;
        let cached = cached.filter(|_| self.reuse);
        let object = cached.unwrap_or_else(|| self.store.object(scan));
        self.batch.push(Delta::Put(self.sighting(object)));
    }

    /// Adds an object that a watch shows.
    pub(crate) fn changed(&mut self, scan: &MetadataScan<'_>) {
        let object = self.store.object(scan);
        self.batch.push(Delta::Put(self.sighting(object)));
    }

    /// Adds the deletion of an object.
    pub(crate) fn delete(&mut self, scan: &MetadataScan<'_>) {
        let object = self.store.object(scan);
        self.batch.push(Delta::Delete(self.sighting(object)));
    }

    /// Adds an object that exists with a state that cannot be cached: the old state stays.
    pub(crate) fn keep(&mut self, scan: &MetadataScan<'_>) {
        if let Some(object) = self.store.seen_as(scan) {
            self.batch.push(Delta::Put(self.sighting(object)));
        }
    }

    /// Tags an object with the present run.
    fn sighting(&self, object: Arc<store::Object>) -> Observed {
        Observed { object, run: self.run, is_initial: self.is_initial }
    }

    /// Adds a mark: everything before it belongs to this version.
    pub(crate) fn mark(&mut self, what: MarkKind, resource_version: &str) {
        self.batch.push(Delta::StreamMark(StreamMark {
            scope: self.scope,
            namespace: self.namespace.clone(),
            run: self.run,
            resource_version: Arc::from(resource_version),
            what,
        }));
    }

    /// Hands the batch over, without waiting for space for the next.
    pub(super) fn offer(&mut self) {
        self.sink.offer(&mut self.batch);
    }

    /// Hands the batch over and waits until there is space for the next.
    pub(crate) async fn flush(&mut self) {
        if self.batch.is_empty() {
            return;
        }
        self.offer();
        if let Some(apply_queue) = self.sink.apply_queue() {
            apply_queue.room().await;
        }
        self.batches_in_a_row += 1;
        // Yields: a watch that always has data would keep the other tasks of the thread from
        // running.
        if self.batches_in_a_row == MAX_BATCHES_IN_A_ROW {
            self.batches_in_a_row = 0;
            tokio::task::yield_now().await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use windlass_client::client::at_once;
    use windlass_core::clock::Clock;
    use windlass_core::resource::ResourceInfo;

    /// A sink that takes every batch at once.
    struct Roomy;

    impl BatchSink for Roomy {
        fn offer(&self, batch: &mut Vec<StoreDelta>) {
            batch.clear();
        }
    }

    /// A server that floods a watch must not keep other tasks from running.
    #[tokio::test(start_paused = true)]
    async fn a_reflector_that_never_waits_lets_others_run_after_each_32_batches() {
        let info = ResourceInfo::of::<k8s_openapi::api::core::v1::ConfigMap>();
        let settings = store::StoreSettings::of::<k8s_openapi::api::core::v1::ConfigMap>(
            store::Representation::default(),
            None,
        );
        let core = store::StoreCore::with_settings(info, Clock::system(), settings, 7);
        let mut writer = DeltaWriter::new(core, Arc::new(Roomy), 0, None);
        let mut yields = Vec::new();
        for batch in 1..=70 {
            writer.mark(MarkKind::Reached, "1");
            if at_once(writer.flush()).await.is_none() {
                yields.push(batch);
            }
        }
        assert_eq!(yields, [32, 64]);
        // Empty flushes do not count.
        for _ in 0..100 {
            assert!(at_once(writer.flush()).await.is_some());
        }
    }
}
