//! The legacy locks: the record as JSON in an annotation of a ConfigMap or of Endpoints.
//!
//! The object may be written by others, too: only the annotation's text counts as the version of
//! the record, so that their writes neither extend nor break a lease. The write itself is guarded
//! by the object's resourceVersion.

// DESIGN.md, 106: Locks accept undecodable times and keep unknown Lease fields

use std::fmt;
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{ConfigMap, Endpoints, ObjectReference};
use k8s_openapi::api::events::v1::Event;
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};

use super::event;
use super::{LeaderElectionRecord, LockFuture, ObservedRecord, ResourceLock};
use windlass_client::api::Api;
use windlass_client::client::Client;
use windlass_core::error::{Error, ErrorKind};
use windlass_core::resource::{FullObject, ResourceExt};
use windlass_core::wire::{Undecodable, times};

/// The annotation that holds the record.
pub const LEADER_ANNOTATION: &str = "control-plane.alpha.kubernetes.io/leader";

/// A lock in an annotation of a ConfigMap, `configmaps` in client-go until 1.23. Legacy: for
/// migrations only; each renewal wakes every watcher of ConfigMaps.
#[derive(Debug)]
pub struct ConfigMapLock(Annotated<ConfigMap>);

/// A lock in an annotation of Endpoints, `endpoints` in client-go until 1.23. Legacy: for
/// migrations only; each renewal wakes every proxy of the cluster, and Endpoints are deprecated.
#[derive(Debug)]
pub struct EndpointsLock(Annotated<Endpoints>);

macro_rules! lock {
    ($name:ident, $kind:ty, $word:literal) => {
        impl $name {
            /// The lock `name` in `namespace`, to be held as `identity`. The client must not be
            /// gated by this election.
            pub fn new(client: &Client, namespace: &str, name: &str, identity: &str) -> Self {
                Self(Annotated::new(client, namespace, name, identity, $word))
            }
        }

        impl ResourceLock for $name {
            fn identity(&self) -> &str {
                &self.0.identity
            }

            fn describe(&self) -> String {
                self.0.describe()
            }

            fn get(&self) -> LockFuture<'_, Option<ObservedRecord>> {
                Box::pin(self.0.get())
            }

            fn create(&self, record: LeaderElectionRecord) -> LockFuture<'_, ObservedRecord> {
                Box::pin(self.0.create(<$kind>::default(), record))
            }

            fn update(
                &self,
                version: &str,
                record: LeaderElectionRecord,
            ) -> LockFuture<'_, ObservedRecord> {
                Box::pin(self.0.update(version.to_owned(), record))
            }

            fn record_event(&self, note: String) -> LockFuture<'_, ()> {
                Box::pin(self.0.record_event(note))
            }
        }
    };
}

lock!(ConfigMapLock, ConfigMap, "ConfigMap");
lock!(EndpointsLock, Endpoints, "Endpoints");

/// A lock in an annotation of an object of kind `K`.
struct Annotated<K> {
    api: Api<K>,
    events: Api<Event>,
    client: Client,
    kind: &'static str,
    namespace: String,
    name: String,
    identity: String,
    /// The object as last seen: an update keeps all other parts.
    last: Mutex<Option<K>>,
}

impl<K: FullObject> Annotated<K> {
    fn new(
        client: &Client,
        namespace: &str,
        name: &str,
        identity: &str,
        kind: &'static str,
    ) -> Self {
        Self {
            api: client.namespace(namespace),
            events: client.namespace(namespace),
            client: client.clone(),
            kind,
            namespace: namespace.to_owned(),
            name: name.to_owned(),
            identity: identity.to_owned(),
            last: Mutex::new(None),
        }
    }

    fn describe(&self) -> String {
        format!("the leader annotation of {} {:?} in {:?}", self.kind, self.name, self.namespace)
    }

    /// Keeps the object for the next update, and reads the record.
    fn remember(&self, object: K) -> Result<ObservedRecord, Error> {
        let text = object.annotation(LEADER_ANNOTATION).unwrap_or_default().to_owned();
        // Remembered also when the record cannot be read: events still refer to the object.
        *self.last.lock() = Some(object);
        let record = read(&text).map_err(|cause| {
            let text = format!(
                "cannot read {}: it is not a record of an election; correct or remove the annotation \
                 {LEADER_ANNOTATION}",
                self.describe()
            );
            Error::new(ErrorKind::Decode, text).because(cause)
        })?;
        Ok(ObservedRecord::new(record, text))
    }

    async fn get(&self) -> Result<Option<ObservedRecord>, Error> {
        self.api.get_opt(&self.name).await?.map(|object| self.remember(object)).transpose()
    }

    async fn create(
        &self,
        empty: K,
        record: LeaderElectionRecord,
    ) -> Result<ObservedRecord, Error> {
        let mut object = empty;
        let metadata = object.metadata_mut();
        metadata.name = Some(self.name.clone());
        metadata.namespace = Some(self.namespace.clone());
        annotate(&mut object, record);
        self.remember(self.api.create(&object).await?)
    }

    /// Replaces the record of the object last seen, if that has the text `version`.
    async fn update(
        &self,
        version: String,
        record: LeaderElectionRecord,
    ) -> Result<ObservedRecord, Error> {
        // Cloned, so that the lock is not held while the request is sent.
        let last = self.last.lock().clone();
        let is_same = |last: &K| last.annotation(LEADER_ANNOTATION).unwrap_or_default() == version;
        let mut object = last.filter(is_same).ok_or_else(|| {
            let text = format!("cannot update {}: its version was not read", self.describe());
            Error::new(ErrorKind::Conflict, text)
        })?;
        annotate(&mut object, record);
        self.remember(self.api.replace(&object).await?)
    }

    async fn record_event(&self, note: String) -> Result<(), Error> {
        let (uid, resource_version) = {
            let last = self.last.lock();
            let metadata = last.as_ref().map(|object| object.metadata());
            (
                metadata.and_then(|metadata| metadata.uid.clone()),
                metadata.and_then(|metadata| metadata.resource_version.clone()),
            )
        };
        let regarding = ObjectReference {
            api_version: Some("v1".to_owned()),
            kind: Some(self.kind.to_owned()),
            name: Some(self.name.clone()),
            namespace: Some(self.namespace.clone()),
            uid,
            resource_version,
            ..ObjectReference::default()
        };
        let event = event::about(&self.client, regarding, &self.identity, note);
        self.events.create(&event).await?;
        Ok(())
    }
}

impl<K> fmt::Debug for Annotated<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Annotated")
            .field("kind", &self.kind)
            .field("namespace", &self.namespace)
            .field("name", &self.name)
            .field("identity", &self.identity)
            .finish_non_exhaustive()
    }
}

/// The record under client-go's field names.
#[derive(Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
#[derive(Default)]
struct RecordText {
    #[serde(deserialize_with = "null_is_default")]
    holder_identity: String,
    #[serde(deserialize_with = "null_is_default")]
    lease_duration_seconds: i64,
    #[serde(deserialize_with = "time_if_it_is_one")]
    acquire_time: Option<Timestamp>,
    #[serde(deserialize_with = "time_if_it_is_one")]
    renew_time: Option<Timestamp>,
    #[serde(deserialize_with = "null_is_default")]
    leader_transitions: i32,
    #[serde(skip_serializing_if = "Option::is_none")]
    strategy: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    preferred_holder: Option<String>,
}

/// Reads a value; null, which other writers leave, counts as the default.
fn null_is_default<'de, D, T>(from: D) -> Result<T, D::Error>
where
    D: serde::Deserializer<'de>,
    T: Deserialize<'de> + Default,
{
    Ok(Option::deserialize(from)?.unwrap_or_default())
}

/// Reads a time; `None` if unreadable. Times are for people, and an unreadable time must not block
/// the lock for every candidate.
fn time_if_it_is_one<'de, D>(from: D) -> Result<Option<Timestamp>, D::Error>
where
    D: serde::Deserializer<'de>,
{
    let value = serde_json::Value::deserialize(from)?;
    Ok(value.as_str().and_then(times::read))
}

/// Reads the annotation; a missing or empty annotation is a free lock.
fn read(text: &str) -> Result<LeaderElectionRecord, Undecodable> {
    let decoded =
        if text.is_empty() { Ok(RecordText::default()) } else { serde_json::from_str(text) };
    let text: RecordText =
        decoded.map_err(|error| Undecodable::explain::<RecordText>(text.as_bytes(), &error))?;
    Ok(LeaderElectionRecord {
        holder: Some(text.holder_identity).filter(|holder| !holder.is_empty()),
        duration: Duration::from_secs(u64::try_from(text.lease_duration_seconds).unwrap_or(0)),
        acquired: text.acquire_time,
        renewed: text.renew_time,
        transitions: text.leader_transitions,
        strategy: text.strategy,
        preferred_holder: text.preferred_holder,
        // Legacy locks have no place for a request.
        requested_by: None,
    })
}

/// Writes the record into the object's annotation.
fn annotate<K: FullObject>(object: &mut K, record: LeaderElectionRecord) {
    let text = RecordText {
        holder_identity: record.holder.unwrap_or_default(),
        lease_duration_seconds: i64::try_from(record.duration.as_secs()).unwrap_or(i64::MAX),
        acquire_time: record.acquired,
        renew_time: record.renewed,
        leader_transitions: record.transitions,
        strategy: record.strategy,
        preferred_holder: record.preferred_holder,
    };
    // A struct of strings and numbers always has a JSON form.
    let text = serde_json::to_string(&text).unwrap_or_default();
    let annotations = object.metadata_mut().annotations.get_or_insert_default();
    annotations.insert(LEADER_ANNOTATION.to_owned(), text);
}
