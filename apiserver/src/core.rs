//! State that all parts of a running server share.
//!
//! One value behind an `Arc`: store, kinds, clock, randomness, hooks, faults. It connects the parts
//! and decides nothing itself.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64};

use parking_lot::{Mutex, RwLock};
use tokio_util::sync::CancellationToken;
use windlass_cel::admission::MutatingPolicy;

use crate::audit::Audit;
use crate::auth::accounts::Issuer;
use crate::auth::signer::Signer;
use crate::auth::{AllowAll, Authenticator, Authorizer, ByConnection};
use crate::clock::Clock;
use crate::faults::Faults;
use crate::hooks;
use crate::kinds::Kind;
use crate::kinds::registry::Registry;
use crate::long_work::LongWork;
use crate::metrics::Metrics;
use crate::policies::Policies;
use crate::requests::Requests;
use crate::seed::Rng;
use crate::storage::Store;

/// Shared state of a server.
pub(crate) struct ServerCore {
    /// Wall clock of timestamps.
    pub(crate) clock: Clock,
    /// Source of all randomness.
    pub(crate) rng: Rng,
    /// Store of all objects.
    pub(crate) store: Store,
    /// Kinds that are served.
    pub(crate) registry: Registry,
    /// Counters of requests.
    pub(crate) metrics: Arc<Metrics>,
    /// Admission policies, compiled.
    pub(crate) policies: Policies,
    /// Mutating admission policies, compiled.
    pub(crate) mutating: Policies<MutatingPolicy>,
    /// Webhook configurations, compiled.
    pub(crate) hooks: hooks::Configurations,
    /// Client that calls webhooks.
    pub(crate) webhooks: hooks::Client,
    /// Faults that tests have added.
    pub(crate) faults: Faults,
    /// Log of answered requests.
    pub(crate) requests: Requests,
    /// Audit log; off unless requested.
    pub(crate) audit: Audit,
    /// Right to take long for requests and answers of webhooks.
    pub(crate) long_work: LongWork,
    /// Addresses that are chosen for Services that are not stored yet.
    pub(crate) addresses: Mutex<Reservations>,
    /// Held while an object is counted for a quota and stored.
    pub(crate) quotas: Mutex<()>,
    /// Issuer of the tokens of service accounts.
    pub(crate) issuer: Issuer,
    /// Whether the stand-in for a kubelet runs.
    pub(crate) has_kubelet: AtomicBool,
    /// Revision at which all objects of the start were there; 0 before, and once another state was
    /// restored.
    pub(crate) complete_at: AtomicU64,
    /// Whether the use of quotas is counted from the stored objects.
    pub(crate) counts_quotas: AtomicBool,
    /// Certificate of the authority, in PEM; empty unless the server listens.
    pub(crate) root_ca: Mutex<String>,
    /// Signer of certificate requests; `None` unless the server listens.
    pub(crate) signer: Mutex<Option<Arc<Signer>>>,
    /// Cancels every connection and every controller when the server shuts down.
    pub(crate) stop: CancellationToken,
    /// Cancels the connections that are open now; a child of `stop`, replaced by each cut.
    connections: Mutex<CancellationToken>,
    /// Installed authentication hook.
    authenticator: RwLock<Arc<dyn Authenticator>>,
    /// Installed authorization hook.
    authorizer: RwLock<Arc<dyn Authorizer>>,
}

/// Addresses of Services that are about to be stored, by the number of the reservation.
pub(crate) type Reservations = BTreeMap<u64, ReservedAddresses>;

/// The addresses that are reserved for a Service.
#[derive(Debug)]
pub(crate) struct ReservedAddresses {
    /// The uid of the Service.
    pub(crate) uid: String,
    /// Cluster IP of the Service.
    pub(crate) address: String,
    /// Node ports of the Service.
    pub(crate) ports: Vec<i64>,
}

impl std::fmt::Debug for ServerCore {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ServerCore")
            .field("revision", &self.store.revision())
            .finish_non_exhaustive()
    }
}

impl ServerCore {
    /// Returns a server without objects; `verbs::bootstrap` creates those that exist from the
    /// start.
    pub(crate) fn new(clock: Clock, rng: Rng) -> Arc<Self> {
        let stop = CancellationToken::new();
        let core = Arc::new(Self {
            webhooks: hooks::Client::new(clock.clone(), stop.child_token()),
            clock,
            rng,
            store: Store::new(),
            registry: Registry::new(),
            metrics: Arc::default(),
            policies: Policies::default(),
            mutating: Policies::default(),
            hooks: hooks::Configurations::default(),
            faults: Faults::new(),
            requests: Requests::new(),
            audit: Audit::default(),
            long_work: LongWork::new(),
            addresses: Mutex::default(),
            quotas: Mutex::new(()),
            issuer: Issuer::default(),
            has_kubelet: AtomicBool::new(false),
            complete_at: AtomicU64::new(0),
            counts_quotas: AtomicBool::new(false),
            root_ca: Mutex::new(String::new()),
            signer: Mutex::new(None),
            connections: Mutex::new(stop.child_token()),
            stop,
            authenticator: RwLock::new(Arc::new(ByConnection)),
            authorizer: RwLock::new(Arc::new(AllowAll)),
        });
        // Before the first object is written: the history of each resource is complete from the
        // beginning.
        for kind in core.registry.table().stored() {
            core.store.serve(&kind.storage, false);
        }
        core
    }

    /// Returns a kind by group and plural, in the stored version if that version is served.
    pub(crate) fn kind(&self, group: &str, resource: &str) -> Option<Arc<Kind>> {
        self.registry.table().resource(group, resource)
    }

    /// Returns a token that is cancelled when the present connections are cut.
    pub(crate) fn connections(&self) -> CancellationToken {
        self.connections.lock().clone()
    }

    /// Cuts every connection; later connections are not affected.
    pub(crate) fn cut(&self) {
        // Replaced before the cancellation: a client that reconnects at once gets the new token,
        // and is not cut a second time.
        let old = {
            let mut slot = self.connections.lock();
            std::mem::replace(&mut *slot, self.stop.child_token())
        };
        old.cancel();
    }

    /// Installs the hooks for authentication and authorization.
    pub(crate) fn install(
        &self,
        authenticator: Arc<dyn Authenticator>,
        authorizer: Arc<dyn Authorizer>,
    ) {
        *self.authenticator.write() = authenticator;
        *self.authorizer.write() = authorizer;
    }

    /// Returns the installed authentication hook.
    pub(crate) fn authenticator(&self) -> Arc<dyn Authenticator> {
        self.authenticator.read().clone()
    }

    /// Returns the installed authorization hook.
    pub(crate) fn authorizer(&self) -> Arc<dyn Authorizer> {
        self.authorizer.read().clone()
    }
}
