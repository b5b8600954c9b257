//! The lock to use: a `coordination.k8s.io/v1` Lease.

use std::time::Duration;

use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use k8s_openapi::api::core::v1::ObjectReference;
use k8s_openapi::api::events::v1::Event;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{MicroTime, ObjectMeta};
use parking_lot::Mutex;

use super::event;
use super::{LeaderElectionRecord, LockFuture, LockListener, ObservedRecord, ResourceLock};
use crate::api::{Api, WatchEvent};
use crate::client::Client;
use crate::error::{Error, ErrorKind};
use crate::resource::ResourceExt;

/// Names who asked the holder of a Lease for it.
pub const REQUEST_ANNOTATION: &str = "windlass.dev/requested-by";

/// The server ends a watch of the Lease after this time, and another one begins.
const WATCH: Duration = Duration::from_secs(300);

/// A lock in a `coordination.k8s.io/v1` Lease, client-go's `leases`. An update keeps labels,
/// annotations and other fields of the Lease.
#[derive(Debug)]
pub struct LeaseLock {
    api: Api<Lease>,
    events: Api<Event>,
    client: Client,
    namespace: String,
    name: String,
    identity: String,
    /// The last Lease seen: a replace keeps its labels, annotations and other fields.
    last: Mutex<Option<Lease>>,
}

impl LeaseLock {
    /// The Lease `name` in `namespace`, to be held as `identity`. The client must not be gated by
    /// this election.
    pub fn new(client: &Client, namespace: &str, name: &str, identity: &str) -> Self {
        Self {
            api: client.namespace(namespace),
            events: client.namespace(namespace),
            client: client.clone(),
            namespace: namespace.to_owned(),
            name: name.to_owned(),
            identity: identity.to_owned(),
            last: Mutex::new(None),
        }
    }

    fn remember(&self, lease: Lease) -> ObservedRecord {
        let seen = seen_of(&lease);
        *self.last.lock() = Some(lease);
        seen
    }

    fn event(&self, note: String) -> Event {
        let (uid, resource_version) = {
            let last = self.last.lock();
            let metadata = last.as_ref().map(|lease| &lease.metadata);
            (
                metadata.and_then(|metadata| metadata.uid.clone()),
                metadata.and_then(|metadata| metadata.resource_version.clone()),
            )
        };
        let regarding = ObjectReference {
            api_version: Some("coordination.k8s.io/v1".to_owned()),
            kind: Some("Lease".to_owned()),
            name: Some(self.name.clone()),
            namespace: Some(self.namespace.clone()),
            uid,
            resource_version,
            ..ObjectReference::default()
        };
        event::about(&self.client, regarding, &self.identity, note)
    }
}

impl ResourceLock for LeaseLock {
    fn identity(&self) -> &str {
        &self.identity
    }

    fn describe(&self) -> String {
        format!("lease {:?} in {:?}", self.name, self.namespace)
    }

    fn get(&self) -> LockFuture<'_, Option<ObservedRecord>> {
        Box::pin(async move {
            Ok(self.api.get_opt(&self.name).await?.map(|lease| self.remember(lease)))
        })
    }

    fn create(&self, record: LeaderElectionRecord) -> LockFuture<'_, ObservedRecord> {
        Box::pin(async move {
            let mut lease = Lease {
                metadata: ObjectMeta {
                    name: Some(self.name.clone()),
                    namespace: Some(self.namespace.clone()),
                    ..ObjectMeta::default()
                },
                spec: None,
            };
            write_record(&mut lease, record);
            Ok(self.remember(self.api.create(&lease).await?))
        })
    }

    fn update(
        &self,
        version: &str,
        record: LeaderElectionRecord,
    ) -> LockFuture<'_, ObservedRecord> {
        let base = self.last.lock().clone().filter(|last| last.resource_version() == version);
        Box::pin(async move {
            let mut lease = base.ok_or_else(|| {
                let text = format!("cannot update {}: its version was not read", self.describe());
                Error::new(ErrorKind::Conflict, text)
            })?;
            write_record(&mut lease, record);
            Ok(self.remember(self.api.replace(&lease).await?))
        })
    }

    fn follow<'a>(&'a self, tell: LockListener<'a>) -> Option<LockFuture<'a, ()>> {
        Some(Box::pin(async move {
            // Only names in field selectors let a right that is limited to one Lease do.
            let only = format!("metadata.name={}", self.name);
            let mut changes = self.api.watch().fields(&only).timeout(WATCH).await?;
            while let Some(event) = changes.next().await {
                match event? {
                    WatchEvent::Added(lease) | WatchEvent::Modified(lease) => tell(seen_of(&lease)),
                    WatchEvent::Deleted(_) | WatchEvent::Bookmark { .. } => {}
                }
            }
            Ok(())
        }))
    }

    fn record_event(&self, note: String) -> LockFuture<'_, ()> {
        Box::pin(async move {
            self.events.create(&self.event(note)).await?;
            Ok(())
        })
    }
}

fn seen_of(lease: &Lease) -> ObservedRecord {
    let spec = lease.spec.as_ref();
    let seconds = spec.and_then(|spec| spec.lease_duration_seconds).unwrap_or_default();
    let record = LeaderElectionRecord {
        holder: spec
            .and_then(|spec| spec.holder_identity.clone())
            .filter(|holder| !holder.is_empty()),
        duration: Duration::from_secs(u64::try_from(seconds).unwrap_or_default()),
        acquired: spec.and_then(|spec| spec.acquire_time.as_ref()).map(|time| time.0),
        renewed: spec.and_then(|spec| spec.renew_time.as_ref()).map(|time| time.0),
        transitions: spec.and_then(|spec| spec.lease_transitions).unwrap_or_default(),
        strategy: spec.and_then(|spec| spec.strategy.clone()),
        preferred_holder: spec.and_then(|spec| spec.preferred_holder.clone()),
        requested_by: lease.annotation(REQUEST_ANNOTATION).map(str::to_owned),
    };
    ObservedRecord { record, version: lease.resource_version().to_owned() }
}

fn write_record(lease: &mut Lease, record: LeaderElectionRecord) {
    let annotations = &mut lease.metadata.annotations;
    match record.requested_by {
        Some(asker) => {
            let annotations = annotations.get_or_insert_default();
            annotations.insert(REQUEST_ANNOTATION.to_owned(), asker);
        }
        None => {
            annotations.iter_mut().for_each(|all| drop(all.remove(REQUEST_ANNOTATION)));
        }
    }
    let spec = lease.spec.get_or_insert_with(LeaseSpec::default);
    spec.holder_identity = record.holder;
    spec.lease_duration_seconds = i32::try_from(record.duration.as_secs()).ok();
    spec.acquire_time = record.acquired.map(MicroTime);
    spec.renew_time = record.renewed.map(MicroTime);
    spec.lease_transitions = Some(record.transitions);
    spec.strategy = record.strategy;
    spec.preferred_holder = record.preferred_holder;
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;

    use super::*;

    #[test]
    fn mechanism_35_a_record_survives_the_lease_and_labels_stay() {
        let record = LeaderElectionRecord {
            holder: Some("a".to_owned()),
            duration: Duration::from_secs(15),
            acquired: Some(Timestamp::UNIX_EPOCH),
            renewed: Some(Timestamp::from_second(9).unwrap()),
            transitions: 4,
            strategy: Some("OldestEmulationVersion".to_owned()),
            preferred_holder: None,
            requested_by: Some("laptop".to_owned()),
        };
        let mut lease = Lease {
            metadata: ObjectMeta {
                resource_version: Some("7".into()),
                labels: Some([("team".to_owned(), "web".to_owned())].into()),
                ..ObjectMeta::default()
            },
            spec: Some(LeaseSpec::default()),
        };
        write_record(&mut lease, record.clone());
        assert_eq!(seen_of(&lease), ObservedRecord { record, version: "7".to_owned() });
        assert_eq!(lease.metadata.labels.unwrap()["team"], "web");
    }

    #[test]
    fn a_lease_that_somebody_made_empty_by_hand_is_free() {
        let spec = LeaseSpec { holder_identity: Some(String::new()), ..LeaseSpec::default() };
        let lease = Lease { metadata: ObjectMeta::default(), spec: Some(spec) };
        assert_eq!(seen_of(&lease).record.holder, None);
        assert_eq!(seen_of(&Lease::default()).record.holder, None);
    }
}
