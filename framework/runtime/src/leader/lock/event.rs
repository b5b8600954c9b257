//! Event about a change of leadership, on the object that holds the lock.

use k8s_openapi::api::core::v1::ObjectReference;
use k8s_openapi::api::events::v1::Event;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{MicroTime, ObjectMeta};

use windlass_client::client::Client;

/// Returns an event with the reason `LeaderElection`, as in client-go.
pub(super) fn about(
    client: &Client,
    regarding: ObjectReference,
    identity: &str,
    note: String,
) -> Event {
    let environment = client.environment();
    let suffix = environment.rng.next_u64();
    let name = regarding.name.clone().unwrap_or_default();
    Event {
        action: Some("LeaderElection".to_owned()),
        event_time: Some(MicroTime(environment.clock.wall())),
        metadata: ObjectMeta {
            name: Some(format!("{name}.{suffix:016x}")),
            namespace: regarding.namespace.clone(),
            ..ObjectMeta::default()
        },
        note: Some(note),
        reason: Some("LeaderElection".to_owned()),
        regarding: Some(regarding),
        reporting_controller: Some("windlass/leader-election".to_owned()),
        reporting_instance: Some(instance(identity)),
        type_: Some("Normal".to_owned()),
        ..Event::default()
    }
}

/// Cuts an identity to 128 bytes, the limit of the API server.
fn instance(identity: &str) -> String {
    let fits = |(at, letter): &(usize, char)| at + letter.len_utf8() <= 128;
    identity.char_indices().take_while(fits).map(|(_, letter)| letter).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_identity_in_any_script_fits_into_an_event() {
        assert_eq!(instance("web-0_1f"), "web-0_1f");
        assert_eq!(instance(&"ж".repeat(100)).len(), 128);
        assert_eq!(instance(&"x".repeat(300)).len(), 128);
    }
}
