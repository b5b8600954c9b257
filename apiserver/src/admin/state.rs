//! Snapshots of the whole state in JSON, and counters.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use bytes::Bytes;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::crds;
use crate::server::ApiServer;
use crate::storage::{Backup, LARGEST, Snapshot, StoredObject};
use crate::verbs::delete;

/// A snapshot as sent.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SentSnapshot {
    revision: u64,
    /// Objects by resource and key.
    objects: BTreeMap<String, BTreeMap<String, Value>>,
}

/// Returns all objects and the newest version.
pub(super) async fn download(server: &ApiServer) -> Result<(u16, Value), (u16, String)> {
    let backup = server.core.store.backup();
    // A snapshot shows states, as answers do: not before they outlive the process.
    server.core.store.durable().await;
    let made = tokio::task::spawn_blocking(move || {
        let objects = backup.resources().iter().filter(|(_, held)| !held.is_empty());
        let objects = objects.map(|(resource, held)| {
            let held = held.iter().map(|(key, held)| (key.to_string(), held.value.clone()));
            (resource.clone(), held.collect::<Map<_, _>>().into())
        });
        json!({"revision": backup.revision(), "objects": objects.collect::<Map<_, _>>()})
    });
    made.await.map(|value| (200, value)).map_err(|error| (500, error.to_string()))
}

/// Goes back to a snapshot.
pub(super) async fn restore(
    server: &ApiServer,
    body: Bytes,
) -> Result<(u16, Value), (u16, String)> {
    let read = tokio::task::spawn_blocking(move || parse(&body)).await;
    let backup = read.map_err(|error| (500, error.to_string()))?.map_err(|why| (400, why))?;
    let core = &server.core;
    core.complete_at.store(0, Ordering::Relaxed);
    core.store.restore(&backup);
    crds::reload(core, delete::instances);
    core.cut();
    core.store.durable().await;
    Ok((200, json!({"revision": backup.revision()})))
}

/// Reads a snapshot.
fn parse(body: &[u8]) -> Result<Backup, String> {
    let refuse = |error: serde_json::Error| format!("this is not a snapshot: {error}");
    let mut reader = serde_json::Deserializer::from_slice(body);
    // A stored object may be deeper than a request because of managed fields.
    reader.disable_recursion_limit();
    let sent = SentSnapshot::deserialize(&mut reader).map_err(refuse)?;
    reader.end().map_err(refuse)?;
    // No write would follow: versions have an end.
    if sent.revision > LARGEST {
        return Err(format!("its revision {} is above {LARGEST}, the largest", sent.revision));
    }
    let mut resources: BTreeMap<String, Snapshot> = BTreeMap::new();
    for (resource, objects) in sent.objects {
        for (key, value) in objects {
            let version = value["metadata"]["resourceVersion"].as_str();
            let version = version.and_then(|text| text.parse().ok());
            let version = version.filter(|version| *version <= sent.revision);
            let version = version.ok_or_else(|| {
                format!("{resource} {key} has no resourceVersion up to {}", sent.revision)
            })?;
            let object = Arc::new(StoredObject::new(value, version));
            resources.entry(resource.clone()).or_default().insert_mut(key.into(), object);
        }
    }
    Ok(Backup::new(sent.revision, resources))
}

/// Returns the counters of a server.
pub(super) async fn counters(server: &ApiServer) -> Value {
    // These values show the stored state, like answers.
    server.core.store.durable().await;
    let (objects, changes, bytes) = server.core.store.sizes();
    json!({
        "revision": server.revision(), "requests": server.core.requests.count(),
        "panics": server.panics(), "watches": server.core.faults.open_watches("*"),
        "objects": objects, "historyChanges": changes, "historyBytes": bytes,
    })
}
