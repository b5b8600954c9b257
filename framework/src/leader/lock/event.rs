//! The event that tells about a change of leadership, on the object that holds the lock.

use k8s_openapi::api::core::v1::ObjectReference;
use k8s_openapi::api::events::v1::Event;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{MicroTime, ObjectMeta};

use crate::client::Client;

/// An event with the reason `LeaderElection`, as client-go records it.
pub(super) fn about(client: &Client, regarding: ObjectReference, who: &str, note: String) -> Event {
    let seams = client.seams();
    let suffix = seams.entropy.next_u64();
    let name = regarding.name.clone().unwrap_or_default();
    Event {
        action: Some("LeaderElection".to_owned()),
        event_time: Some(MicroTime(seams.clock.wall())),
        metadata: ObjectMeta {
            name: Some(format!("{name}.{suffix:016x}")),
            namespace: regarding.namespace.clone(),
            ..ObjectMeta::default()
        },
        note: Some(note),
        reason: Some("LeaderElection".to_owned()),
        regarding: Some(regarding),
        reporting_controller: Some("windlass/leader-election".to_owned()),
        // The API server allows 128 bytes.
        reporting_instance: Some(who[..who.floor_char_boundary(128)].to_owned()),
        type_: Some("Normal".to_owned()),
        ..Event::default()
    }
}
