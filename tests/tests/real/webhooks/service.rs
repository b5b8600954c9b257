//! A Service without Pods and kube-proxy: of the type `ExternalName`, by whose name kube-apiserver
//! dials a loopback address of this test, where connections are spread over the replicas.
//!
//! The name in the certificate is that of the Service, as in a cluster. Endpoints on loopback are
//! invalid, so `--enable-aggregator-routing` is no way. The delay with which kube-proxy follows
//! endpoints is not a part of these tests.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use k8s_openapi::api::core::v1::Service as ClusterService;
use serde_json::json;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;
use windlass::client::Client;

/// Port of the printed configurations.
const PORT: u16 = 443;

pub(super) struct Service {
    host: Ipv4Addr,
    targets: Arc<Mutex<Vec<SocketAddr>>>,
    opened: Arc<AtomicU64>,
    forwarding: JoinHandle<()>,
}

impl Service {
    pub(super) async fn start() -> Self {
        static NEXT: AtomicU8 = AtomicU8::new(1);
        // Test programs that run at the same time have different addresses.
        let process = (std::process::id() % 250) as u8 + 1;
        let host = Ipv4Addr::new(127, 43, process, NEXT.fetch_add(1, Ordering::Relaxed));
        let listener = TcpListener::bind((host, PORT)).await.unwrap_or_else(|error| {
            panic!(
                "cannot listen at {host}:{PORT}, where kube-apiserver asks: {error}; run the tests \
                 as root, or permit the port by `sysctl net.ipv4.ip_unprivileged_port_start=443`"
            )
        });
        let (targets, opened) = (Arc::<Mutex<Vec<SocketAddr>>>::default(), Arc::default());
        let forwarding = tokio::spawn(forward(listener, Arc::clone(&targets), Arc::clone(&opened)));
        Self { host, targets, opened, forwarding }
    }

    /// Creates the object.
    pub(super) async fn create(&self, admin: &Client, operator: &str) {
        let service = json!({
            "metadata": { "name": format!("{operator}-webhooks") },
            "spec": { "type": "ExternalName", "externalName": self.host.to_string() },
        });
        let service: ClusterService = serde_json::from_value(service).unwrap();
        admin.namespace(operator).create(&service).await.unwrap();
    }

    pub(super) fn add(&self, address: SocketAddr) {
        self.targets.lock().unwrap().push(address);
    }

    pub(super) fn remove(&self, address: SocketAddr) {
        self.targets.lock().unwrap().retain(|one| *one != address);
    }

    /// Returns the number of connections so far.
    pub(super) fn opened(&self) -> u64 {
        self.opened.load(Ordering::Relaxed)
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        self.forwarding.abort();
    }
}

/// Connects each connection to the next target; without one it is closed.
async fn forward(
    listener: TcpListener,
    targets: Arc<Mutex<Vec<SocketAddr>>>,
    opened: Arc<AtomicU64>,
) {
    let mut turn = 0;
    loop {
        let (mut near, _) = listener.accept().await.unwrap();
        turn += 1;
        let target = {
            let targets = targets.lock().unwrap();
            targets.get(turn % targets.len().max(1)).copied()
        };
        let Some(target) = target else { continue };
        opened.fetch_add(1, Ordering::Relaxed);
        tokio::spawn(async move {
            if let Ok(mut far) = TcpStream::connect(target).await {
                let _ = tokio::io::copy_bidirectional(&mut near, &mut far).await;
            }
        });
    }
}
