//! Where the record of an election is kept: a Lease, or anything else with versioned writes.

use std::fmt::Debug;
use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use k8s_openapi::api::core::v1::ObjectReference;
use k8s_openapi::api::events::v1::Event;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{MicroTime, ObjectMeta};
use parking_lot::Mutex;

use crate::api::Api;
use crate::client::Client;
use crate::error::{Error, ErrorKind};
use crate::resource::ResourceExt;

/// What a [`LeaseStore`] answers with.
pub type LeaseFuture<'a, T> = Pin<Box<dyn Future<Output = Result<T, Error>> + Send + 'a>>;

/// Who leads, and since when.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeaseRecord {
    /// Identity of the holder; `None` when the Lease is free.
    pub holder: Option<String>,
    /// How long others wait after the last change that they saw; whole seconds.
    pub duration: Duration,
    /// When the holder took it, by the holder's wall clock.
    pub acquired: Option<Timestamp>,
    /// When the holder last renewed it, by the holder's wall clock.
    pub renewed: Option<Timestamp>,
    /// How often it has passed from one holder to another.
    pub transitions: i32,
}

/// A record and the version that it was stored under.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeaseSeen {
    /// The record.
    pub record: LeaseRecord,
    /// Changes with every write.
    pub version: String,
}

/// Keeps one [`LeaseRecord`] under optimistic concurrency.
pub trait LeaseStore: Debug + Send + Sync + 'static {
    /// What it is, for logs: `lease "website-operator" in "websites"`.
    fn describe(&self) -> String;

    /// The record; `None` when there is none.
    ///
    /// # Errors
    /// Any; the attempt counts as failed.
    fn read(&self) -> LeaseFuture<'_, Option<LeaseSeen>>;

    /// Stores the first record.
    ///
    /// # Errors
    /// [`ErrorKind::AlreadyExists`] when there is one; others leave open whether it was stored.
    fn create(&self, record: LeaseRecord) -> LeaseFuture<'_, LeaseSeen>;

    /// Replaces the record of that version.
    ///
    /// # Errors
    /// [`ErrorKind::Conflict`] when the stored version is another, [`ErrorKind::NotFound`] when
    /// there is none; others leave open whether it was stored.
    fn replace(&self, version: &str, record: LeaseRecord) -> LeaseFuture<'_, LeaseSeen>;

    /// Tells people what happened, where the store has a place for it.
    ///
    /// # Errors
    /// Any; they are logged.
    fn record_event(&self, note: String) -> LeaseFuture<'_, ()>;
}

/// A `coordination.k8s.io/v1` Lease.
#[derive(Debug)]
pub(crate) struct KubeLease {
    api: Api<Lease>,
    events: Api<Event>,
    client: Client,
    namespace: String,
    name: String,
    identity: String,
    /// The last Lease seen: a replace keeps its labels, annotations and other fields.
    last: Mutex<Option<Lease>>,
}

impl KubeLease {
    pub(crate) fn new(client: &Client, namespace: &str, name: &str, identity: &str) -> Self {
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

    fn remember(&self, lease: Lease) -> LeaseSeen {
        let seen = seen_of(&lease);
        *self.last.lock() = Some(lease);
        seen
    }

    fn event(&self, note: String) -> Event {
        let seams = self.client.seams();
        let suffix = seams.entropy.next_u64();
        let (uid, version) = {
            let last = self.last.lock();
            let lease = last.as_ref();
            (
                lease.and_then(|lease| lease.metadata.uid.clone()),
                lease.and_then(|lease| lease.metadata.resource_version.clone()),
            )
        };
        Event {
            action: Some("LeaderElection".to_owned()),
            event_time: Some(MicroTime(seams.clock.wall())),
            metadata: ObjectMeta {
                name: Some(format!("{}.{suffix:016x}", self.name)),
                namespace: Some(self.namespace.clone()),
                ..ObjectMeta::default()
            },
            note: Some(note),
            reason: Some("LeaderElection".to_owned()),
            regarding: Some(ObjectReference {
                api_version: Some("coordination.k8s.io/v1".to_owned()),
                kind: Some("Lease".to_owned()),
                name: Some(self.name.clone()),
                namespace: Some(self.namespace.clone()),
                uid,
                resource_version: version,
                ..ObjectReference::default()
            }),
            reporting_controller: Some("windlass/leader-election".to_owned()),
            // The API server allows 128 bytes.
            reporting_instance: Some(self.identity.chars().take(120).collect()),
            type_: Some("Normal".to_owned()),
            ..Event::default()
        }
    }
}

impl LeaseStore for KubeLease {
    fn describe(&self) -> String {
        format!("lease {:?} in {:?}", self.name, self.namespace)
    }

    fn read(&self) -> LeaseFuture<'_, Option<LeaseSeen>> {
        Box::pin(async move {
            Ok(self.api.get_opt(&self.name).await?.map(|lease| self.remember(lease)))
        })
    }

    fn create(&self, record: LeaseRecord) -> LeaseFuture<'_, LeaseSeen> {
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

    fn replace(&self, version: &str, record: LeaseRecord) -> LeaseFuture<'_, LeaseSeen> {
        let base = self.last.lock().clone().filter(|last| last.resource_version() == version);
        Box::pin(async move {
            let mut lease = base.ok_or_else(|| {
                let text = format!("cannot replace {}: its version was not read", self.describe());
                Error::new(ErrorKind::Conflict, text)
            })?;
            write_record(&mut lease, record);
            Ok(self.remember(self.api.replace(&lease).await?))
        })
    }

    fn record_event(&self, note: String) -> LeaseFuture<'_, ()> {
        Box::pin(async move {
            self.events.create(&self.event(note)).await?;
            Ok(())
        })
    }
}

fn seen_of(lease: &Lease) -> LeaseSeen {
    let spec = lease.spec.as_ref();
    let seconds = spec.and_then(|spec| spec.lease_duration_seconds).unwrap_or_default();
    let record = LeaseRecord {
        holder: spec
            .and_then(|spec| spec.holder_identity.clone())
            .filter(|holder| !holder.is_empty()),
        duration: Duration::from_secs(u64::try_from(seconds).unwrap_or_default()),
        acquired: spec.and_then(|spec| spec.acquire_time.as_ref()).map(|time| time.0),
        renewed: spec.and_then(|spec| spec.renew_time.as_ref()).map(|time| time.0),
        transitions: spec.and_then(|spec| spec.lease_transitions).unwrap_or_default(),
    };
    LeaseSeen { record, version: lease.resource_version().to_owned() }
}

fn write_record(lease: &mut Lease, record: LeaseRecord) {
    let spec = lease.spec.get_or_insert_with(LeaseSpec::default);
    spec.holder_identity = record.holder;
    spec.lease_duration_seconds = i32::try_from(record.duration.as_secs()).ok();
    spec.acquire_time = record.acquired.map(MicroTime);
    spec.renew_time = record.renewed.map(MicroTime);
    spec.lease_transitions = Some(record.transitions);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_survives_the_lease_and_other_fields_stay() {
        let record = LeaseRecord {
            holder: Some("a".to_owned()),
            duration: Duration::from_secs(15),
            acquired: Some(Timestamp::UNIX_EPOCH),
            renewed: Some(Timestamp::from_second(9).unwrap()),
            transitions: 4,
        };
        let mut lease = Lease {
            metadata: ObjectMeta { resource_version: Some("7".into()), ..ObjectMeta::default() },
            spec: Some(LeaseSpec { strategy: Some("S".into()), ..LeaseSpec::default() }),
        };
        write_record(&mut lease, record.clone());
        assert_eq!(seen_of(&lease), LeaseSeen { record, version: "7".to_owned() });
        assert_eq!(lease.spec.unwrap().strategy.as_deref(), Some("S"));
    }

    #[test]
    fn a_lease_that_somebody_made_empty_by_hand_is_free() {
        let spec = LeaseSpec { holder_identity: Some(String::new()), ..LeaseSpec::default() };
        let lease = Lease { metadata: ObjectMeta::default(), spec: Some(spec) };
        assert_eq!(seen_of(&lease).record.holder, None);
        assert_eq!(seen_of(&Lease::default()).record.holder, None);
    }
}
