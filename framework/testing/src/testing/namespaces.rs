//! Namespaces of test clusters.

use std::sync::atomic::{AtomicU64, Ordering};

use k8s_openapi::api::core::v1::Namespace;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use windlass_client::client::Client;
use windlass_core::error::Error;

/// Creates a namespace. Names differ between all clusters of all test processes on a shared server;
/// on a server of its own a test sees the same names in every run.
pub(super) async fn create_namespace(client: &Client, own_server: bool) -> Result<String, Error> {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let name = if own_server {
        format!("test-{:08x}", client.environment().rng.fork("namespace").next_u64() as u32)
    } else {
        // `Relaxed`: the number need only be unique.
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        format!("test-{}-{count}", std::process::id())
    };
    let namespace = Namespace {
        metadata: ObjectMeta { name: Some(name.clone()), ..ObjectMeta::default() },
        ..Namespace::default()
    };
    client.all::<Namespace>().create(&namespace).await?;
    Ok(name)
}
