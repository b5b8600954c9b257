//! The standard lock: a `coordination.k8s.io/v1` Lease.

// DESIGN.md, 106: Locks accept undecodable times and keep unknown Lease fields

use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::ObjectReference;
use k8s_openapi::api::events::v1::Event;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{MicroTime, ObjectMeta};
use parking_lot::Mutex;
use serde_json::{Value, json};

use super::event;
use super::{LeaderElectionRecord, LockFuture, LockListener, ObservedRecord, ResourceLock};
use windlass_client::api::{Api, WatchEvent};
use windlass_client::client::Client;
use windlass_core::error::{Error, ErrorKind};
use windlass_core::resource::{DynamicObject, ResourceExt, ResourceInfo};
use windlass_core::wire::times;

/// Annotation of a Lease with the name of a process that asks the holder for the lease.
pub const REQUEST_ANNOTATION: &str = "windlass.dev/requested-by";

/// Lifetime of a watch of the Lease; then the server ends the watch, and another begins.
const WATCH: Duration = Duration::from_secs(300);

/// A lock in a `coordination.k8s.io/v1` Lease, client-go's `leases`. An update keeps labels,
/// annotations and other fields of the Lease.
#[derive(Debug)]
pub struct LeaseLock {
    /// Not typed: an unreadable time must not block the lock for every candidate, and a replace
    /// keeps fields that this program does not know.
    api: Api<DynamicObject>,
    events: Api<Event>,
    client: Client,
    namespace: String,
    name: String,
    identity: String,
    /// The last Lease seen: a replace keeps its labels, annotations and other fields.
    last: Mutex<Option<DynamicObject>>,
}

impl LeaseLock {
    /// Creates a lock on the Lease `name` in `namespace`, for the holder `identity`.
    ///
    /// The client must not be gated by this election, because renewals would be refused exactly
    /// when the lease has run out.
    pub fn new(client: &Client, namespace: &str, name: &str, identity: &str) -> Self {
        Self {
            api: client.dynamic(ResourceInfo::of::<Lease>(), Some(namespace)),
            events: client.namespace(namespace),
            client: client.clone(),
            namespace: namespace.to_owned(),
            name: name.to_owned(),
            identity: identity.to_owned(),
            last: Mutex::new(None),
        }
    }

    /// Keeps the Lease for the next update, and reads the record.
    fn remember(&self, lease: DynamicObject) -> ObservedRecord {
        let seen = seen_of(&lease);
        *self.last.lock() = Some(lease);
        seen
    }

    /// Returns the event of an election, about the Lease last seen.
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
            let mut lease = DynamicObject {
                metadata: ObjectMeta {
                    name: Some(self.name.clone()),
                    namespace: Some(self.namespace.clone()),
                    ..ObjectMeta::default()
                },
                ..DynamicObject::default()
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
        // Cloned: the mutex must not be held across the request's `await`.
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

    fn follow<'a>(&'a self, listener: LockListener<'a>) -> Option<LockFuture<'a, ()>> {
        Some(Box::pin(async move {
            // A field selector by name is enough for a right that is limited to a single Lease.
            let only = format!("metadata.name={}", self.name);
            let mut changes = self.api.watch().fields(&only).timeout(WATCH).await?;
            while let Some(event) = changes.next().await {
                match event? {
                    WatchEvent::Added(lease) | WatchEvent::Modified(lease) => {
                        listener(seen_of(&lease))
                    }
                    // Reported as a free lock. The leader's renewal creates the Lease again; others
                    // leave the leader a retry period for that (`Machine::missing`).
                    WatchEvent::Deleted(gone) => {
                        let nothing = LeaderElectionRecord::default();
                        listener(ObservedRecord::new(nothing, gone.resource_version()));
                    }
                    WatchEvent::Bookmark { .. } => {}
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

/// Reads the record out of a Lease; fields that are missing or unreadable count as absent.
fn seen_of(lease: &DynamicObject) -> ObservedRecord {
    let field = |name: &str| lease.rest.get("spec").and_then(|spec| spec.get(name));
    let text = |name| field(name).and_then(Value::as_str).map(str::to_owned);
    let time = |name| field(name).and_then(Value::as_str).and_then(times::read);
    let number = |name| field(name).and_then(Value::as_i64).unwrap_or_default();
    let seconds = u64::try_from(number("leaseDurationSeconds")).unwrap_or_default();
    let record = LeaderElectionRecord {
        holder: text("holderIdentity").filter(|holder| !holder.is_empty()),
        duration: Duration::from_secs(seconds),
        acquired: time("acquireTime"),
        renewed: time("renewTime"),
        transitions: i32::try_from(number("leaseTransitions")).unwrap_or_default(),
        strategy: text("strategy"),
        preferred_holder: text("preferredHolder"),
        requested_by: lease.annotation(REQUEST_ANNOTATION).map(str::to_owned),
    };
    ObservedRecord::new(record, lease.resource_version())
}

/// Writes the record into a Lease; other fields stay.
fn write_record(lease: &mut DynamicObject, record: LeaderElectionRecord) {
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
    let spec = lease.rest.entry("spec").or_insert_with(|| json!({}));
    // A Lease that was created by hand may have `spec: null`.
    if !spec.is_object() {
        *spec = json!({});
    }
    let time = |time: Option<Timestamp>| time.map_or(Value::Null, |time| json!(MicroTime(time)));
    for (name, value) in [
        ("holderIdentity", json!(record.holder)),
        // A duration beyond i32, which no Lease can have, leaves the field out.
        ("leaseDurationSeconds", json!(i32::try_from(record.duration.as_secs()).ok())),
        ("acquireTime", time(record.acquired)),
        ("renewTime", time(record.renewed)),
        ("leaseTransitions", json!(record.transitions)),
        ("strategy", json!(record.strategy)),
        ("preferredHolder", json!(record.preferred_holder)),
    ] {
        spec[name] = value;
    }
    if let Value::Object(spec) = spec {
        spec.retain(|_, value| !value.is_null());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lease(spec: Value) -> DynamicObject {
        let object = json!({
            "metadata": { "name": "ops", "resourceVersion": "7", "labels": { "team": "web" } },
            "spec": spec,
        });
        serde_json::from_value(object).unwrap()
    }

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
        let mut lease = lease(json!({ "laterField": 3, "preferredHolder": "b" }));
        write_record(&mut lease, record.clone());
        assert_eq!(seen_of(&lease), ObservedRecord::new(record, "7"));
        assert_eq!(lease.metadata.labels.unwrap()["team"], "web");
        let expected = json!({
            "laterField": 3,
            "holderIdentity": "a",
            "leaseDurationSeconds": 15,
            "acquireTime": "1970-01-01T00:00:00.000000Z",
            "renewTime": "1970-01-01T00:00:09.000000Z",
            "leaseTransitions": 4,
            "strategy": "OldestEmulationVersion",
        });
        assert_eq!(lease.rest["spec"], expected);
    }

    #[test]
    fn a_lease_that_somebody_made_empty_by_hand_is_free() {
        assert_eq!(seen_of(&lease(json!({ "holderIdentity": "" }))).record.holder, None);
        assert_eq!(seen_of(&lease(Value::Null)).record.holder, None);
        assert_eq!(seen_of(&DynamicObject::default()).record.holder, None);
        let mut empty = lease(Value::Null);
        write_record(&mut empty, LeaderElectionRecord::default());
        assert_eq!(empty.rest["spec"]["leaseTransitions"], 0);
    }

    #[test]
    fn times_that_nobody_can_read_leave_the_rest_of_a_record_readable() {
        for (time, read) in [
            ("9999-12-31T23:59:59.999999Z", Some("9999-12-30T22:00:00.999999Z")),
            ("10000-01-01T00:00:00Z", Some("9999-12-30T22:00:00Z")),
            ("0001-01-01T00:00:00Z", Some("0001-01-01T00:00:00Z")),
            ("2016-12-31T23:59:60.000000Z", Some("2016-12-31T23:59:59Z")),
            ("never", None),
        ] {
            let spec = json!({ "holderIdentity": "a", "renewTime": time, "acquireTime": 7 });
            let record = seen_of(&lease(spec)).record;
            assert_eq!(record.renewed, read.map(|read| read.parse().unwrap()), "{time}");
            assert_eq!((record.acquired, record.holder.as_deref()), (None, Some("a")));
        }
    }
}
