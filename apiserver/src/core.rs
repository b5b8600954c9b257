//! What all parts of a running server share.
//!
//! One value behind an `Arc`: store, kinds, clock, randomness, hooks, faults. It wires; it decides
//! nothing itself.

use std::sync::Arc;

use parking_lot::{Mutex, RwLock};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use crate::auth::{AllowAll, Authenticator, Authorizer, ByConnection, User};
use crate::clock::Clock;
use crate::faults::Faults;
use crate::kinds::Kind;
use crate::kinds::registry::Registry;
use crate::requests::Requests;
use crate::seed::Entropy;
use crate::status::ApiError;
use crate::storage::Store;
use crate::verbs::options::WriteOptions;
use crate::verbs::{Call, create};

/// The shared state of a server.
pub(crate) struct Core {
    /// Wall time.
    pub(crate) clock: Clock,
    /// Randomness.
    pub(crate) entropy: Entropy,
    /// Objects.
    pub(crate) store: Store,
    /// Kinds.
    pub(crate) registry: Registry,
    /// Faults to show.
    pub(crate) faults: Faults,
    /// What was asked.
    pub(crate) requests: Requests,
    /// Held while an address is chosen and its Service stored.
    pub(crate) addresses: Mutex<()>,
    /// Certificate of the authority, in PEM; empty unless the server listens.
    pub(crate) root_ca: Mutex<String>,
    /// Ends everything.
    pub(crate) stop: CancellationToken,
    connections: Mutex<CancellationToken>,
    authenticator: RwLock<Arc<dyn Authenticator>>,
    authorizer: RwLock<Arc<dyn Authorizer>>,
}

impl std::fmt::Debug for Core {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Core").field("revision", &self.store.revision()).finish_non_exhaustive()
    }
}

/// Namespaces that exist from the start.
const NAMESPACES: &[&str] = &["default", "kube-node-lease", "kube-public", "kube-system"];

impl Core {
    /// A server with nothing but what exists from the start.
    pub(crate) fn new(clock: Clock, entropy: Entropy) -> Arc<Self> {
        let stop = CancellationToken::new();
        let core = Arc::new(Self {
            clock,
            entropy,
            store: Store::new(),
            registry: Registry::new(),
            faults: Faults::new(),
            requests: Requests::new(),
            addresses: Mutex::new(()),
            root_ca: Mutex::new(String::new()),
            connections: Mutex::new(stop.child_token()),
            stop,
            authenticator: RwLock::new(Arc::new(ByConnection)),
            authorizer: RwLock::new(Arc::new(AllowAll)),
        });
        for kind in core.registry.table().stored() {
            core.store.serve(&kind.storage, false);
        }
        core.bootstrap();
        core
    }

    fn bootstrap(&self) {
        for name in NAMESPACES {
            self.seed("", "namespaces", "", json!({"metadata": {"name": name}}));
        }
        let service = json!({
            "metadata": {"name": "kubernetes", "labels": {"component": "apiserver", "provider": "kubernetes"}},
            "spec": {"clusterIP": crate::verbs::addresses::FIRST,
                "ports": [{"name": "https", "port": 443, "targetPort": 6443}]},
        });
        self.seed("", "services", "default", service);
    }

    /// Creates an object as the server itself; a failure is logged.
    pub(crate) fn seed(&self, group: &str, resource: &str, namespace: &str, object: Value) {
        let made = self.call(group, resource, namespace, "");
        let made = made.and_then(|call| create::create(self, &call, object, &mut Vec::new()));
        if let Err(error) = made {
            tracing::warn!(resource, namespace, %error, "could not create what exists from the start");
        }
    }

    /// A call by the server itself, for bootstrapping and controllers.
    pub(crate) fn call(
        &self,
        group: &str,
        resource: &str,
        namespace: &str,
        name: &str,
    ) -> Result<Call, ApiError> {
        let kind = self.kind(group, resource).ok_or_else(ApiError::no_resource)?;
        let options =
            WriteOptions { manager: "kube-apiserver".to_owned(), ..WriteOptions::default() };
        Ok(Call {
            kind,
            namespace: namespace.to_owned(),
            name: name.to_owned(),
            subresource: String::new(),
            user: User::server(),
            options,
        })
    }

    /// A kind by group and plural, in its stored version when that is served.
    pub(crate) fn kind(&self, group: &str, resource: &str) -> Option<Arc<Kind>> {
        self.registry.table().resource(group, resource)
    }

    /// Ends with the present connections.
    pub(crate) fn connections(&self) -> CancellationToken {
        self.connections.lock().clone()
    }

    /// Cuts every connection; later ones are not affected.
    pub(crate) fn cut(&self) {
        let old = {
            let mut slot = self.connections.lock();
            std::mem::replace(&mut *slot, self.stop.child_token())
        };
        old.cancel();
    }

    /// Sets who finds out who asks, and who decides what is allowed.
    pub(crate) fn install(
        &self,
        authenticator: Arc<dyn Authenticator>,
        authorizer: Arc<dyn Authorizer>,
    ) {
        *self.authenticator.write() = authenticator;
        *self.authorizer.write() = authorizer;
    }

    /// Who finds out who asks.
    pub(crate) fn authenticator(&self) -> Arc<dyn Authenticator> {
        self.authenticator.read().clone()
    }

    /// Who decides what is allowed.
    pub(crate) fn authorizer(&self) -> Arc<dyn Authorizer> {
        self.authorizer.read().clone()
    }
}
