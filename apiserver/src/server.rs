//! Public interface of the server: configure, start, connect, inspect, stop.

mod data_file;

pub(crate) use self::data_file::ServerDataFile;

use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use serde_json::Value;
use sha2::{Digest, Sha256};
use tokio::io::DuplexStream;

use crate::auth::signer::Signer;
use crate::auth::{ConnectionIdentity, Tokens, User};
use crate::clock::Clock;
use crate::controllers::{Controller, ControllerSet};
use crate::core::ServerCore;
use crate::faults::{Faults, ObservedChange, Observer};
use crate::hooks::Connector;
use crate::requests::Request;
use crate::seed::Rng;
use crate::verbs::bootstrap;
use crate::{controllers, http, rbac, storage, tls};

/// Capacity in bytes of each direction of an in-memory connection.
const PIPE: usize = 64 * 1024;

/// Time from the last write of an Event to its deletion.
const EVENT_LIFETIME: Duration = Duration::from_secs(3600);

/// Configures an [`ApiServer`]. The `Debug` output shows no tokens.
#[derive(Clone, Default)]
pub struct Builder {
    seed: Option<u64>,
    /// Wall time at the start, in seconds since 1970; `None` for the system's.
    epoch: Option<i64>,
    pub(crate) controllers: ControllerSet,
    tokens: String,
    /// Whether a watch from a future version is answered 410.
    expires_future: bool,
    /// Name of the issuer of tokens; `None` for the default.
    issuer: Option<String>,
    /// Opens connections to webhooks; `None` for TCP.
    connector: Option<Arc<dyn Connector>>,
    /// Whether requests without credentials are refused.
    refuses_anonymous: bool,
    access: Access,
    /// Whether an audit log is kept.
    audits: bool,
    /// Time from the last write of an Event to the Event's deletion; `None` for an hour.
    event_lifetime: Option<Duration>,
}

/// Clients of the sockets beside the administrator.
#[derive(Clone, Debug, Default)]
struct Access {
    /// Users that kubeconfigs have contexts for.
    users: Vec<User>,
    /// Certificates of further authorities, in PEM.
    authorities: String,
}

/// A running API server. Clones are cheap and share the server.
#[derive(Clone, Debug)]
pub struct ApiServer {
    pub(crate) core: Arc<ServerCore>,
    /// Bearer tokens, shared with the authentication hook.
    tokens: Arc<Tokens>,
    access: Arc<Access>,
    /// The controllers that run.
    pub(crate) controllers: ControllerSet,
    /// The data file and its content beside objects; `None` for a server in memory.
    pub(crate) data_file: Option<Arc<ServerDataFile>>,
}

impl fmt::Debug for Builder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { seed, epoch, controllers, expires_future, issuer, connector, .. } = self;
        f.debug_struct("Builder")
            .field("seed", seed)
            .field("epoch", epoch)
            .field("controllers", controllers)
            .field("expires_future", expires_future)
            .field("issuer", issuer)
            .field("connector", &connector.is_some())
            .finish_non_exhaustive()
    }
}

impl Builder {
    /// Sets the seed of uids, suffixes and tokens. Default: from the operating system.
    #[must_use]
    pub fn seed(mut self, seed: u64) -> Self {
        self.seed = Some(seed);
        self
    }

    /// Sets the wall time at the start, in seconds since 1970; the wall time advances with tokio's
    /// clock. Default: the system's time.
    #[must_use]
    pub fn epoch(mut self, seconds: i64) -> Self {
        self.epoch = Some(seconds);
        self
    }

    /// Turns on stand-ins that report Deployments available. Default: off.
    #[must_use]
    pub fn stand_ins(mut self, on: bool) -> Self {
        self.controllers = self.controllers.set(Controller::Deployments, on);
        self
    }

    /// Turns on the controllers that kube-controller-manager runs by default, or turns off all of
    /// them. Default: on. If off, the server behaves like a lone kube-apiserver.
    #[must_use]
    pub fn controllers(self, on: bool) -> Self {
        self.controller_set(if on { ControllerSet::default() } else { ControllerSet::NONE })
    }

    /// Selects the controllers that run; the last call counts. Default: those of `*`.
    #[must_use]
    pub fn controller_set(mut self, set: ControllerSet) -> Self {
        self.controllers = set;
        self
    }

    /// Adds users in kube-apiserver's CSV format: token,user,uid,"group1,group2".
    #[must_use]
    pub fn tokens(mut self, csv: &str) -> Self {
        csv.clone_into(&mut self.tokens);
        self
    }

    /// Answers 410 to a watch from a version that does not exist yet, so that the client lists
    /// again. Default: off.
    ///
    /// A client can know such a version only from before the server's store was set back
    /// ([`ApiServer::restore`]). If off, such a watch is answered 200, as by a real kube-apiserver,
    /// and delivers nothing, no bookmark either, until versions have reached that version.
    #[must_use]
    pub fn expire_future_versions(mut self, on: bool) -> Self {
        self.expires_future = on;
        self
    }

    /// Lets in clients of sockets whose certificates these authorities have signed, given in PEM:
    /// the common name is the user, the organizations are the groups. [`ApiServer::listen`] fails
    /// if the text holds no certificate. Default: the server's own authority only.
    #[must_use]
    pub fn client_authorities(mut self, pem: &str) -> Self {
        pem.clone_into(&mut self.access.authorities);
        self
    }

    /// Answers requests without credentials as those of `system:anonymous`, or 401 if off. Default:
    /// on.
    #[must_use]
    pub fn anonymous_auth(mut self, on: bool) -> Self {
        self.refuses_anonymous = !on;
        self
    }

    /// Adds a user that the kubeconfig of each socket has a context for: `windlass-` and the name,
    /// with a token.
    #[must_use]
    pub fn user(mut self, name: &str, groups: &[&str]) -> Self {
        self.access.users.push(User::new(name, groups));
        self
    }

    /// Keeps an audit log in memory: the last 4096 requests of users, and the last 512 of strangers
    /// ([`ApiServer::audit`]). Default: off.
    #[must_use]
    pub fn audit(mut self, on: bool) -> Self {
        self.audits = on;
        self
    }

    /// Sets the time after which Events are deleted, counted from their last write. Default: an
    /// hour, as `--event-ttl` of kube-apiserver.
    #[must_use]
    pub fn event_ttl(mut self, time: Duration) -> Self {
        self.event_lifetime = Some(time);
        self
    }

    /// Sets the URL that names the issuer of service accounts' tokens, and their default audience.
    /// Default: `https://kubernetes.default.svc.cluster.local`.
    #[must_use]
    pub fn service_account_issuer(mut self, url: &str) -> Self {
        self.issuer = Some(url.to_owned());
        self
    }

    /// Installs the connector that opens the connections to admission and conversion webhooks.
    /// Default: TCP and TLS.
    ///
    /// A test whose handler runs in the same process answers on one end of an in-memory pipe, and
    /// needs no socket and no certificate ([`WebhookStream::plain`](crate::WebhookStream::plain)).
    #[must_use]
    pub fn connector(mut self, connector: impl Connector) -> Self {
        self.connector = Some(Arc::new(connector));
        self
    }

    /// Starts the server inside the current tokio runtime, with everything in memory.
    pub fn start(self) -> ApiServer {
        let core = self.core(None);
        self.run(core, false)
    }

    /// Returns the state of a server that has no objects yet; `revision` is the revision of the
    /// data.
    pub(crate) fn core(&self, revision: Option<u64>) -> Arc<ServerCore> {
        let clock = self.epoch.map_or_else(Clock::system, Clock::at);
        let rng = match (self.seed, revision) {
            (None, _) => Rng::system(),
            (Some(seed), None) => Rng::seeded(seed),
            (Some(seed), Some(revision)) => Rng::seeded_after(seed, revision),
        };
        let core = ServerCore::new(clock, rng);
        if let Some(url) = &self.issuer {
            core.issuer.rename(url);
        }
        if let Some(connector) = &self.connector {
            core.webhooks.install(connector.clone());
        }
        core
    }

    /// Creates the objects that exist from the start, unless the store `is_complete`, and starts
    /// the controllers.
    pub(crate) fn run(self, core: Arc<ServerCore>, is_complete: bool) -> ApiServer {
        if self.audits {
            core.audit.turn_on();
        }
        // A look for each of them takes longer than many a short run of a test.
        if !is_complete {
            bootstrap::run(&core);
        }
        if self.expires_future {
            core.store.refuse_future();
        }
        let tokens = Arc::new(Tokens::default());
        if let Err(fault) = tokens.add_csv(&self.tokens) {
            tracing::warn!(fault, "some of the given tokens are not known");
        }
        // Weak: the hooks live inside the core, and a strong reference would keep the core alive
        // for ever.
        let weak = Arc::downgrade(&core);
        core.install(
            Arc::new(http::Authentication::new(
                tokens.clone(),
                weak.clone(),
                self.refuses_anonymous,
            )),
            Arc::new(rbac::Rbac::new(weak)),
        );
        // Before the controllers: role aggregation expects the default roles at its start.
        if !is_complete {
            rbac::defaults::seed(&core);
        }
        // Not left to the controllers' task: the first request needs the rules.
        if self.controllers.has(Controller::Roles) && !is_complete {
            controllers::fill_default_roles(&core);
        }
        if self.controllers != ControllerSet::NONE {
            controllers::start(&core, self.controllers, is_complete);
        }
        controllers::expiry::start(&core, self.event_lifetime.unwrap_or(EVENT_LIFETIME));
        core.complete_at.store(core.store.revision(), Ordering::Relaxed);
        let (access, controllers) = (Arc::new(self.access), self.controllers);
        ApiServer { core, tokens, access, controllers, data_file: None }
    }
}

/// Returns the token of a user, derived from the administrator's, so that a data file keeps both.
fn user_token(secret: &str, name: &str) -> String {
    let digest = Sha256::digest(format!("{secret}\0{name}"));
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Returns a new bearer token.
pub(crate) fn new_token(rng: &Rng) -> String {
    rng.bytes().iter().map(|byte| format!("{byte:02x}")).collect()
}

impl ApiServer {
    /// Returns a builder with default settings.
    pub fn builder() -> Builder {
        Builder::default()
    }

    /// Opens an in-memory connection as the administrator (`system:masters`).
    ///
    /// # Errors
    /// `NotConnected` once the server has been shut down.
    pub fn connect(&self) -> std::io::Result<DuplexStream> {
        self.connect_user(User::admin())
    }

    /// Opens an in-memory connection as `user` with `groups`.
    ///
    /// # Errors
    /// `NotConnected` once the server has been shut down.
    pub fn connect_as(&self, user: &str, groups: &[&str]) -> std::io::Result<DuplexStream> {
        self.connect_user(User::new(user, groups))
    }

    /// Opens an in-memory connection without a user: the requests bring bearer tokens, or are
    /// anonymous.
    ///
    /// # Errors
    /// `NotConnected` once the server has been shut down.
    pub fn connect_anonymous(&self) -> std::io::Result<DuplexStream> {
        self.connect_user(None)
    }

    /// Opens an in-memory connection and serves it in a separate task.
    fn connect_user(&self, user: impl Into<Option<User>>) -> std::io::Result<DuplexStream> {
        if self.core.stop.is_cancelled() {
            let why = "the API server has been shut down";
            return Err(std::io::Error::new(std::io::ErrorKind::NotConnected, why));
        }
        let (client, server) = tokio::io::duplex(PIPE);
        let identity = ConnectionIdentity { user: user.into(), is_refused: false };
        tokio::spawn(http::serve_connection(self.core.clone(), server, identity));
        Ok(client)
    }

    /// Checks users in kube-apiserver's CSV format, as [`Builder::tokens`] takes them.
    ///
    /// # Errors
    /// The number of the first bad line, and the reason.
    pub fn check_tokens(csv: &str) -> Result<(), String> {
        Tokens::default().add_csv(csv)
    }

    /// Listens with TLS until [`ApiServer::shutdown`]; port 0 picks a free port.
    ///
    /// Each call makes a separate authority, certificates and administrator's token; with a data
    /// file ([`Builder::start_on`]) authority and token come from the file.
    ///
    /// # Errors
    /// The address cannot be bound, or the certificates cannot be made or read.
    pub async fn listen(&self, addr: SocketAddr) -> std::io::Result<tls::Listening> {
        let (own, token) = match &self.data_file {
            Some(file) => file.identity(),
            None => (tls::PemIdentity::generate_authority()?, new_token(&self.core.rng)),
        };
        let further = tls::authorities(&self.access.authorities)?;
        let authority = tls::Authority::new(&own, addr.ip(), further)?;
        let admin = User::new("kubernetes-admin", &[rbac::MASTERS]);
        self.tokens.add(&token, admin);
        let more = self.access.users.iter().map(|user| {
            let own = user_token(&token, &user.name);
            self.tokens.add(&own, user.clone());
            (user.name.clone(), own)
        });
        let more: Vec<(String, String)> = more.collect();
        // Published before the server listens: the first client may already read the certificate.
        controllers::publish_root(&self.core, &authority.certificate);
        *self.core.signer.lock() = Signer::new(&own.certificate, &own.key).map(Arc::new);
        tls::listen(self.core.clone(), addr, &authority, &token, &more).await
    }

    /// Returns the newest resourceVersion.
    pub fn revision(&self) -> u64 {
        self.core.store.revision()
    }

    /// Returns the resourceVersion of the last write to a resource; 0 if there was none or the
    /// resource is unknown.
    pub fn resource_revision(&self, group: &str, plural: &str) -> u64 {
        let kind = self.core.kind(group, plural);
        kind.map_or(0, |kind| self.core.store.resource_revision(&kind.storage))
    }

    /// Installs an observer of every request and change; a second observer is ignored.
    pub fn observe(&self, observer: Arc<dyn Observer>) {
        self.core.faults.observe(Arc::clone(&observer));
        let forward = move |resource: &str, change: &storage::StoredChange, user: Option<&str>| {
            observer.changed(&ObservedChange {
                resource,
                user,
                revision: change.revision,
                before: change.before.as_ref().map(|held| &held.value),
                after: change.after.as_ref().map(|held| &held.value),
            });
        };
        self.core.store.listen(storage::Listener(Box::new(forward)));
    }

    /// Returns the faults of the server, to add and remove them.
    pub fn faults(&self) -> &Faults {
        &self.core.faults
    }

    /// Drops the watch history: lists and watches from earlier versions are answered 410.
    pub fn compact(&self) {
        self.core.store.compact();
    }

    /// Returns the last 16384 requests of clients, oldest first.
    pub fn requests(&self) -> Vec<Request> {
        self.core.requests.all()
    }

    /// Returns the number of requests whose handler panicked; each was answered 500.
    pub fn panics(&self) -> u64 {
        self.core.requests.panics()
    }

    /// Returns the kept entries of the audit log, oldest first; none unless the log is on
    /// ([`Builder::audit`]).
    ///
    /// An entry is a JSON object: `time`, `user`, `groups`, `impersonatedUser` (if any), `agent`,
    /// `verb`, `group`, `version`, `resource`, `subresource`, `namespace`, `name`, `code` (0
    /// without an answer), `durationMicros` and `changes`: for each written object the versions and
    /// the changed places with values, which are masked in Secrets.
    pub fn audit(&self) -> Vec<Value> {
        self.core.audit.all()
    }

    /// Returns the number of entries that the audit log no longer keeps.
    pub fn dropped_audit(&self) -> u64 {
        self.core.audit.dropped()
    }

    /// Writes each later entry of the audit log as a line as well, by a thread of its own. A log
    /// that is too slow loses lines ([`ApiServer::lost_audit`]); the shutdown waits 5 s for the
    /// last lines.
    pub fn write_audit(&self, log: impl std::io::Write + Send + 'static) {
        self.core.audit.turn_on();
        self.core.audit.write_to(Box::new(log));
    }

    /// Returns the number of lines that were not written: the audit log's writer was too slow, or
    /// has failed. Those of the last moment are counted at the end of the shutdown.
    pub fn lost_audit(&self) -> u64 {
        self.core.audit.lost()
    }

    /// Drops the kept requests of clients.
    pub fn clear_requests(&self) {
        self.core.requests.clear();
    }

    /// Returns an object in its stored form; the namespace is empty for cluster-wide kinds.
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

    /// Returns all objects of a namespace (of all namespaces when empty), in list order.
    pub fn list_objects(&self, group: &str, plural: &str, namespace: &str) -> Vec<Value> {
        let Some(kind) = self.core.kind(group, plural) else { return Vec::new() };
        let (snapshot, _) = self.core.store.snapshot(&kind.storage);
        storage::in_namespace(&snapshot, namespace)
            .map(|(_, held)| kind.present(&held.value))
            .collect()
    }

    /// Cuts every connection and drops the watch history, as a restart does; objects stay.
    pub async fn restart(&self) {
        self.core.cut();
        self.core.store.compact();
        // Lets the tasks of the cut connections run before the caller goes on.
        tokio::task::yield_now().await;
    }

    /// Stops the server: connections, controllers and sockets end, the data file is closed, and
    /// then the audit log.
    pub async fn shutdown(&self) {
        self.core.stop.cancel();
        tokio::task::yield_now().await;
        // First: a log whose reader has stopped must not keep the file open.
        if let (Some(file), Some(journal)) = (&self.data_file, self.core.store.journal()) {
            journal.close();
            file.closed().await;
        }
        self.core.audit.close().await;
    }
}
