//! The server as its users see it: configure, start, connect, look inside, stop.

use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;

use serde_json::Value;
use tokio::io::DuplexStream;

use crate::auth::{Authentication, Identity, Tokens, User};
use crate::clock::Clock;
use crate::core::Core;
use crate::faults::Faults;
use crate::requests::Request;
use crate::seed::Entropy;
use crate::{controllers, http, rbac, storage, tls};

/// Bytes that may be under way in each direction of a connection in memory.
const PIPE: usize = 64 * 1024;

/// Configures an [`ApiServer`]. Its `Debug` shows no tokens.
#[derive(Clone, Default)]
pub struct Builder {
    seed: Option<u64>,
    epoch: Option<i64>,
    stand_ins: bool,
    bare: bool,
    tokens: String,
    expires_future: bool,
}

/// A running API server; cheap to clone.
#[derive(Clone, Debug)]
pub struct ApiServer {
    pub(crate) core: Arc<Core>,
    tokens: Arc<Tokens>,
}

/// A server that listens on a socket. Its `Debug` shows the address only.
pub struct Listening {
    /// Where it listens.
    pub addr: SocketAddr,
    /// A kubeconfig for the administrator (client certificate and token, CA inline), as YAML.
    pub kubeconfig: String,
}

impl fmt::Debug for Builder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { seed, epoch, stand_ins, bare, expires_future, tokens: _ } = self;
        f.debug_struct("Builder")
            .field("seed", seed)
            .field("epoch", epoch)
            .field("stand_ins", stand_ins)
            .field("bare", bare)
            .field("expires_future", expires_future)
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for Listening {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Listening").field("addr", &self.addr).finish_non_exhaustive()
    }
}

impl Builder {
    /// Seed of uids, suffixes and tokens. Default: from the operating system.
    #[must_use]
    pub fn seed(mut self, seed: u64) -> Self {
        self.seed = Some(seed);
        self
    }

    /// Wall time starts here (seconds since 1970) and advances with tokio's clock; default: the system's.
    #[must_use]
    pub fn epoch(mut self, seconds: i64) -> Self {
        self.epoch = Some(seconds);
        self
    }

    /// Stand-ins that report Deployments available. Default: off.
    #[must_use]
    pub fn stand_ins(mut self, on: bool) -> Self {
        self.stand_ins = on;
        self
    }

    /// Garbage collection, namespace deletion and role aggregation, as kube-controller-manager does
    /// them. Default: on; off, the server behaves like a lone kube-apiserver.
    #[must_use]
    pub fn controllers(mut self, on: bool) -> Self {
        self.bare = !on;
        self
    }

    /// More users, in kube-apiserver's CSV format: token,user,uid,"group1,group2".
    #[must_use]
    pub fn tokens(mut self, csv: &str) -> Self {
        csv.clone_into(&mut self.tokens);
        self
    }

    /// A watch from a version that does not exist yet, which a client can know only from before the
    /// server's store was set back ([`ApiServer::restore`]), is answered 410, so that the client lists
    /// again. Default: off; as with a real kube-apiserver such a watch is answered 200 and nothing
    /// comes, no bookmark either, until versions have got there.
    #[must_use]
    pub fn expire_future_versions(mut self, on: bool) -> Self {
        self.expires_future = on;
        self
    }

    /// Starts it inside the current tokio runtime.
    pub fn start(self) -> ApiServer {
        let clock = self.epoch.map_or_else(Clock::system, Clock::at);
        let entropy = self.seed.map_or_else(Entropy::system, Entropy::seeded);
        let core = Core::new(clock, entropy);
        if self.expires_future {
            core.store.refuse_future();
        }
        let tokens = Arc::new(Tokens::default());
        if let Err(fault) = tokens.add_csv(&self.tokens) {
            tracing::warn!(fault, "some of the given tokens are not known");
        }
        let weak = Arc::downgrade(&core);
        core.install(
            Arc::new(Authentication::new(tokens.clone(), weak.clone())),
            Arc::new(rbac::Rbac::new(weak)),
        );
        rbac::defaults::seed(&core);
        if !self.bare {
            controllers::start(&core, self.stand_ins);
        }
        ApiServer { core, tokens }
    }
}

impl ApiServer {
    /// A server with default settings, to configure.
    pub fn builder() -> Builder {
        Builder::default()
    }

    /// A connection in memory, as the administrator (`system:masters`).
    ///
    /// # Errors
    /// `NotConnected` once the server has been shut down.
    pub fn connect(&self) -> std::io::Result<DuplexStream> {
        self.connect_user(User::admin())
    }

    /// A connection in memory as `user` with `groups`.
    ///
    /// # Errors
    /// `NotConnected` once the server has been shut down.
    pub fn connect_as(&self, user: &str, groups: &[&str]) -> std::io::Result<DuplexStream> {
        self.connect_user(User::new(user, groups))
    }

    fn connect_user(&self, user: User) -> std::io::Result<DuplexStream> {
        if self.core.stop.is_cancelled() {
            let why = "the API server has been shut down";
            return Err(std::io::Error::new(std::io::ErrorKind::NotConnected, why));
        }
        let (client, server) = tokio::io::duplex(PIPE);
        let identity = Identity { user: Some(user) };
        tokio::spawn(http::serve_connection(self.core.clone(), server, identity));
        Ok(client)
    }

    /// What is wrong with more users in kube-apiserver's CSV format, as [`Builder::tokens`] takes them.
    ///
    /// # Errors
    /// The number of the first bad line, and what it lacks.
    pub fn check_tokens(csv: &str) -> Result<(), String> {
        Tokens::default().add_csv(csv)
    }

    /// Listens with TLS until [`ApiServer::shutdown`]; port 0 picks a free one.
    ///
    /// Every call makes its own authority, certificates and administrator's token.
    ///
    /// # Errors
    /// The address cannot be bound, or certificates cannot be made.
    pub async fn listen(&self, addr: SocketAddr) -> std::io::Result<Listening> {
        let authority = tls::Authority::generate(addr.ip())?;
        let token: String =
            self.core.entropy.bytes().iter().map(|byte| format!("{byte:02x}")).collect();
        let admin = User::new("kubernetes-admin", &[rbac::MASTERS]);
        self.tokens.add(&token, admin);
        controllers::publish_root(&self.core, &authority.certificate);
        tls::listen(self.core.clone(), addr, &authority, &token).await
    }

    /// The newest resourceVersion.
    pub fn revision(&self) -> u64 {
        self.core.store.revision()
    }

    /// resourceVersion of the last write to a resource; 0 when there was none or it is unknown.
    pub fn resource_revision(&self, group: &str, plural: &str) -> u64 {
        let kind = self.core.kind(group, plural);
        kind.map_or(0, |kind| self.core.store.resource_revision(&kind.storage))
    }

    /// Faults for clients to survive.
    pub fn faults(&self) -> &Faults {
        &self.core.faults
    }

    /// Forgets the history: lists and watches from before now are answered 410.
    pub fn compact(&self) {
        self.core.store.compact();
    }

    /// What clients asked so far (the last 16384 requests), oldest first.
    pub fn requests(&self) -> Vec<Request> {
        self.core.requests.all()
    }

    /// Forgets what clients asked so far.
    pub fn clear_requests(&self) {
        self.core.requests.clear();
    }

    /// An object as it is stored; an empty namespace for cluster-wide ones.
    pub fn get_object(
        &self,
        group: &str,
        plural: &str,
        namespace: &str,
        name: &str,
    ) -> Option<Value> {
        let kind = self.core.kind(group, plural)?;
        let held = self.core.store.get(&kind.storage, &storage::key(namespace, name))?;
        Some(kind.present(&held.value))
    }

    /// All objects of a namespace (of all when empty), in list order.
    pub fn list_objects(&self, group: &str, plural: &str, namespace: &str) -> Vec<Value> {
        let Some(kind) = self.core.kind(group, plural) else { return Vec::new() };
        let (snapshot, _) = self.core.store.snapshot(&kind.storage);
        storage::in_namespace(&snapshot, namespace)
            .map(|(_, held)| kind.present(&held.value))
            .collect()
    }

    /// Cuts every connection and forgets the watch history, as a restart does; objects stay.
    pub async fn restart(&self) {
        self.core.cut();
        self.core.store.compact();
        // Whoever was connected gets to see it before anybody goes on.
        tokio::task::yield_now().await;
    }

    /// Stops everything.
    pub async fn shutdown(&self) {
        self.core.stop.cancel();
        tokio::task::yield_now().await;
    }
}
