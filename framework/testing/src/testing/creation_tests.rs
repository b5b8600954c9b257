//! Locks that are deleted while the holder hangs, on an API server: the embedded one, or the real
//! server with `WINDLASS_TEST_SERVER=real`.

use std::sync::atomic::AtomicBool;
use std::time::Duration;

use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::{ConfigMap, Endpoints};
use tokio_util::sync::CancellationToken;

use super::*;
use windlass_client::client::WriteGate;
use windlass_runtime::leader::{
    Elector, LeaderElection, LeaderElectionRecord, LockFuture, LockKind, ObservedRecord,
    ResourceLock, Term,
};

/// The lock of a process that can be made to hang.
#[derive(Debug)]
struct Hanging {
    lock: Arc<dyn ResourceLock>,
    hangs: AtomicBool,
}

impl Hanging {
    async fn live(&self) {
        if self.hangs.load(Ordering::Relaxed) {
            std::future::pending::<()>().await;
        }
    }
}

impl ResourceLock for Hanging {
    fn identity(&self) -> &str {
        self.lock.identity()
    }

    fn describe(&self) -> String {
        self.lock.describe()
    }

    fn get(&self) -> LockFuture<'_, Option<ObservedRecord>> {
        Box::pin(async move {
            self.live().await;
            self.lock.get().await
        })
    }

    fn create(&self, record: LeaderElectionRecord) -> LockFuture<'_, ObservedRecord> {
        self.lock.create(record)
    }

    fn update(
        &self,
        version: &str,
        record: LeaderElectionRecord,
    ) -> LockFuture<'_, ObservedRecord> {
        let version = version.to_owned();
        Box::pin(async move {
            self.live().await;
            self.lock.update(&version, record).await
        })
    }

    fn record_event(&self, note: String) -> LockFuture<'_, ()> {
        self.lock.record_event(note)
    }
}

fn settings(cluster: &TestCluster, kind: LockKind, identity: &str) -> LeaderElection {
    LeaderElection::new(kind.as_str())
        .identity(identity)
        .namespace(cluster.namespace())
        .resource_lock(kind)
}

/// A leader, and the lock through which the test makes the leader hang.
async fn leader(cluster: &TestCluster, kind: LockKind) -> (Term, Arc<Hanging>) {
    let settings = settings(cluster, kind, "first");
    // Consumes the knowledge that the cluster is new, which only the first election of a name gets.
    let client = cluster.client();
    Elector::new(settings.clone(), &client).unwrap();
    let lock = kind.lock(&client, cluster.namespace(), kind.as_str(), "first");
    let lock = Arc::new(Hanging { lock, hangs: AtomicBool::new(false) });
    let elector = Elector::over(settings, lock.clone(), client.environment().clone()).unwrap();
    let term = elector.campaign(&CancellationToken::new()).await.unwrap();
    (term, lock)
}

async fn delete(cluster: &TestCluster, kind: LockKind) {
    let (client, namespace, name) = (cluster.client(), cluster.namespace(), kind.as_str());
    match kind {
        LockKind::ConfigMaps => drop(client.namespace::<ConfigMap>(namespace).delete(name).await),
        LockKind::Endpoints => drop(client.namespace::<Endpoints>(namespace).delete(name).await),
        LockKind::Leases => drop(client.namespace::<Lease>(namespace).delete(name).await),
        LockKind::ConfigMapsLeases => {
            client.namespace::<ConfigMap>(namespace).delete(name).await.unwrap();
            client.namespace::<Lease>(namespace).delete(name).await.unwrap();
        }
        LockKind::EndpointsLeases => unreachable!("not tried"),
    }
}

#[tokio::test]
async fn l5_a_lock_that_is_deleted_while_its_holder_hangs_lets_nobody_write_beside_it() {
    let cluster = TestCluster::start().await;
    if cluster.is_embedded() {
        tokio::time::pause();
    }
    let try_one = async |kind: LockKind| {
        let (old, lock) = leader(&cluster, kind).await;
        lock.hangs.store(true, Ordering::Relaxed);
        delete(&cluster, kind).await;
        let deleted = tokio::time::Instant::now();
        let next = Elector::new(settings(&cluster, kind, "second"), &cluster.client()).unwrap();
        let new = next.campaign(&CancellationToken::new()).await.unwrap();
        let waited = deleted.elapsed();
        assert!(new.gate().admit().is_ok());
        assert!(old.gate().admit().is_err(), "{kind:?}: two write after {waited:?}");
        assert!(waited >= Duration::from_secs(15), "{kind:?}: {waited:?}");
        assert!(waited <= Duration::from_secs(20), "{kind:?}: {waited:?}");
    };
    tokio::join!(
        try_one(LockKind::Leases),
        try_one(LockKind::ConfigMaps),
        try_one(LockKind::Endpoints),
        try_one(LockKind::ConfigMapsLeases),
    );
}
