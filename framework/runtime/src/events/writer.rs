//! The task that writes Events.
//!
//! A single task writes for all recorders of a controller, a single request at a time: the order of
//! an object's Events is the order of occurrence.

use std::time::Duration;

use k8s_openapi::api::events::v1::Event;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{MicroTime, ObjectMeta};
use serde_json::json;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::series::{Aggregator, EventWrite};
use super::{Occurrence, WORD_LIMIT};
use windlass_client::api::Patch;
use windlass_client::client::Client;
use windlass_core::error::Error;
use windlass_core::text::shorten;

/// Longest time for a write of an Event.
const WRITE_LIMIT: Duration = Duration::from_secs(10);

/// Writes the occurrences of a [`Recorder`](super::Recorder); run the writer once, beside the
/// recorder.
#[derive(Debug)]
pub struct EventWriter {
    /// Client whose requests are logged as routine requests.
    client: Client,
    /// Name of the reporter.
    controller: String,
    /// Name of the reporter's process.
    instance: String,
    /// The occurrences that wait.
    receiver: mpsc::Receiver<Occurrence>,
    /// Decides about Events and series.
    aggregator: Aggregator,
}

impl EventWriter {
    /// Creates the writer of a queue.
    pub(super) fn new(
        client: Client,
        controller: &str,
        receiver: mpsc::Receiver<Occurrence>,
    ) -> Self {
        // In a Pod this is the Pod's name.
        let host = std::env::var("HOSTNAME").unwrap_or_default();
        let instance = match host.as_str() {
            "" => controller.to_owned(),
            host => format!("{controller}-{host}"),
        };
        let instance = shorten(instance, WORD_LIMIT);
        let aggregator = Aggregator::default();
        let client = client.routine();
        Self { client, controller: controller.to_owned(), instance, receiver, aggregator }
    }

    /// Writes until `stop`, or until every recorder is dropped; then writes the queue and returns.
    ///
    /// # Cancel safety
    /// Dropping the future loses the queued occurrences.
    pub async fn run(mut self, stop: CancellationToken) {
        let clock = self.client.environment().clock.clone();
        loop {
            let refresh = self.aggregator.next_refresh();
            let refresh_due = async {
                match refresh {
                    Some(at) => clock.sleep_until(at).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                biased;
                // The stop is checked first: a stream of occurrences must not delay the stop.
                () = stop.cancelled() => break,
                occurrence = self.receiver.recv() => match occurrence {
                    Some(occurrence) => self.observe(occurrence).await,
                    None => break,
                },
                () = refresh_due => self.refresh(false).await,
            }
        }
        // Closed before being emptied: a recorder cannot extend the last run.
        self.receiver.close();
        while let Ok(occurrence) = self.receiver.try_recv() {
            self.observe(occurrence).await;
        }
        self.refresh(true).await;
    }

    /// Returns the occurrences that were queued so far, for a plan, and writes none.
    pub(crate) fn into_queued(mut self) -> Vec<Occurrence> {
        std::iter::from_fn(|| self.receiver.try_recv().ok()).collect()
    }

    /// Passes an occurrence to the aggregator, and sends the write that it requires, if any.
    async fn observe(&mut self, occurrence: Occurrence) {
        let environment = self.client.environment();
        let (suffix, now, time) =
            (environment.rng.next_u64(), environment.clock.now(), environment.clock.wall());
        if let Some(write) = self.aggregator.observe(occurrence, suffix, now, time) {
            self.write(write).await;
        }
    }

    /// Writes the series with new occurrences that are due, or `all` of them.
    async fn refresh(&mut self, all: bool) {
        let now = self.client.environment().clock.now();
        for write in self.aggregator.refresh(now, all) {
            self.write(write).await;
        }
    }

    /// Sends a write; the series of a failed write is removed.
    async fn write(&mut self, write: EventWrite) {
        let clock = self.client.environment().clock.clone();
        let (namespace, name) = match &write {
            EventWrite::Create { namespace, name, .. }
            | EventWrite::Update { namespace, name, .. } => (namespace.clone(), name.clone()),
        };
        // Bounded: a slow write must not hold up all others, nor the end of the operator.
        match clock.timeout(WRITE_LIMIT, self.send(write)).await {
            Some(Ok(())) => {}
            Some(Err(error)) => {
                tracing::debug!(%error, namespace, name, "an event could not be written");
                // Also a new Event: the next occurrence tries to create it again.
                self.aggregator.forget(&namespace, &name);
            }
            None => tracing::debug!(namespace, name, "writing an event took too long"),
        }
    }

    /// Creates an Event, or patches the series.
    async fn send(&self, write: EventWrite) -> Result<(), Error> {
        match write {
            EventWrite::Create { occurrence, namespace, name, time } => {
                let event = Event {
                    metadata: ObjectMeta {
                        name: Some(name),
                        namespace: Some(namespace.clone()),
                        ..ObjectMeta::default()
                    },
                    action: Some(occurrence.action),
                    event_time: Some(MicroTime(time)),
                    note: Some(occurrence.note),
                    reason: Some(occurrence.reason),
                    regarding: Some(occurrence.regarding.reference()),
                    reporting_controller: Some(self.controller.clone()),
                    reporting_instance: Some(self.instance.clone()),
                    type_: Some(occurrence.kind.as_str().to_owned()),
                    ..Event::default()
                };
                self.client.namespace::<Event>(&namespace).create(&event).await?;
            }
            EventWrite::Update { namespace, name, count, time } => {
                let series = json!({ "count": count, "lastObservedTime": MicroTime(time) });
                let patch = Patch::Merge(json!({ "series": series }));
                self.client.namespace::<Event>(&namespace).patch(&name, patch).await?;
            }
        }
        Ok(())
    }
}
