//! Test equipment: a Kubernetes API server in the test process, and operators that run until they
//! are settled.
//!
//! Tests of an operator should neither need a cluster nor wait for time to pass.
//! [`TestCluster::start`] is an API server in this process, reached through memory;
//! [`RunningOperator::settled`] waits until the operator has nothing left to do and the caches show
//! the server's objects. With `WINDLASS_TEST_SERVER=real` the same tests run against a real
//! kube-apiserver, a single server per test process; [`RealServer`] is such a server for tests that
//! need a real server. Functions here panic with an explanation where a test could only fail
//! anyway; those that return a `Result` are named `try_…`.
//!
//! [`Table`] has cases of one reconcile each, which run with and without a server. [`explore`]
//! makes a workload again and again, each time with another crash, lost answer or late event;
//! [`simulate`] with seeded latencies and faults. [`replay`] runs the reconciles of a recorded
//! operator again.
//!
//! Not included: a controller manager beside the real server.
//!
//! ```no_run
//! # extern crate windlass_testing as windlass;
//! use k8s_openapi::api::core::v1::ConfigMap;
//! use windlass::testing::TestCluster;
//!
//! # async fn example() -> Result<(), windlass::Error> {
//! let cluster = TestCluster::start().await;
//! let maps = cluster.client().namespace::<ConfigMap>(cluster.namespace());
//! let mut map = ConfigMap::default();
//! map.metadata.name = Some("settings".into());
//! maps.create(&map).await?;
//! assert_eq!(maps.list().await?.items.len(), 1);
//! # Ok(())
//! # }
//! ```

mod activity;
#[doc(hidden)]
pub mod check;
#[cfg(test)]
mod creation_tests;
pub mod elections;
mod explore;
pub mod faults;
mod grants;
#[cfg(test)]
mod lock_tests;
mod namespaces;
#[cfg(test)]
mod operator_tests;
mod paused;
mod real;
mod replay;
mod settle;
mod tables;
mod target;
#[cfg(test)]
mod tests;

pub use activity::CoverageReport;
pub use check::{
    CheckReport, check, check_from, check_webhooks, try_check, try_check_from, try_check_webhooks,
};
pub use explore::{
    Exploration, ExplorationReport, ExternalWorld, Finding, Simulation, SimulationReport, World,
    explore, simulate,
};
pub use grants::GrantReport;
pub use real::{ClientCertificate, RealServer};
pub use replay::{Recording, Replay, ReplayReport, replay};
pub use settle::RunningOperator;
pub use tables::{Case, Table};

use std::net::Ipv4Addr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use jiff::Timestamp;
use parking_lot::Mutex;
use windlass_apiserver::ApiServer;

use self::activity::Activity;
use self::grants::{Account, AllowedRule};
use self::namespaces::create_namespace;
use self::settle::OperatorAccess;
use crate::embedded::{self, WebhookRoutes};
use windlass_client::client::{Client, ClientConfig, NewServer, RequestObserver};
use windlass_core::clock::Clock;
use windlass_core::crd::CustomResource;
use windlass_core::environment::Environment;
use windlass_core::error::Error;
use windlass_core::metrics::Metrics;
use windlass_core::rng::Rng;
use windlass_runtime::controller::ReconcileObserver;
use windlass_runtime::manager::{Manager, WebhookAccess, definition_of, install_all};

/// Start of simulated wall time: 2026-01-01T00:00:00Z.
///
/// Server and clients agree on this time, so that ages and expiry times are those of the same
/// clock.
const EPOCH: i64 = 1_767_225_600;

/// Settings of a [`TestCluster`].
///
/// ```no_run
/// # extern crate windlass_testing as windlass;
/// use windlass::testing::TestCluster;
///
/// # async fn example() {
/// // The embedded server in every environment, with other random numbers than by default.
/// let cluster = TestCluster::builder().embedded().seed(7).start().await;
/// assert!(cluster.is_embedded());
/// # }
/// ```
#[derive(Clone, Copy, Debug)]
pub struct TestClusterBuilder {
    /// Seed of all randomness.
    seed: u64,
    /// Whether Deployments are reported available.
    stand_ins: bool,
    /// Whether the real server is out of the question.
    embedded: bool,
    /// Whether the embedded server keeps an audit log.
    audit: bool,
}

/// A cluster for a test: a separate namespace on an API server.
///
/// Clusters on the real server share that server: objects of cluster-scoped kinds are visible to
/// all of them, and each has separate namespaces, which stay until that server ends.
#[derive(Debug)]
pub struct TestCluster {
    /// Client of the administrator.
    client: Client,
    /// The embedded server; `None` on the real server.
    server: Option<ApiServer>,
    /// Connections of the embedded server to webhooks of operators.
    webhooks: WebhookRoutes,
    /// Configuration of a client of the real server.
    config: Option<ClientConfig>,
    /// Namespace that was created for this test.
    namespace: String,
    /// Namespaces of this cluster: on a shared server operators see only these.
    namespaces: Arc<Mutex<Vec<String>>>,
    /// Knowledge about the elections in them: whether another process can have held a lock.
    new_server: Arc<NewServer>,
    /// Number of operators that have got an account.
    accounts: AtomicUsize,
}

impl Default for TestClusterBuilder {
    fn default() -> Self {
        Self { seed: 1, stand_ins: false, embedded: false, audit: false }
    }
}

impl TestClusterBuilder {
    /// Sets the seed of all randomness, on both sides. Default: 1.
    ///
    /// A seed determines the run: names, jitter and order of events of the embedded server repeat.
    #[must_use]
    pub fn seed(mut self, seed: u64) -> Self {
        self.seed = seed;
        self
    }

    /// Adds stand-ins that report Deployments available (embedded server only). Default: off.
    #[must_use]
    pub fn stand_ins(mut self, on: bool) -> Self {
        self.stand_ins = on;
        self
    }

    /// Keeps an audit log of all requests, with the changes that each has made (embedded server
    /// only): [`TestCluster::audit`]. Default: off.
    #[must_use]
    pub fn audit(mut self, on: bool) -> Self {
        self.audit = on;
        self
    }

    /// Never uses the real server: for tests that need the paused clock or the server's own
    /// switches.
    ///
    /// Default: off, the variable `WINDLASS_TEST_SERVER` decides.
    #[must_use]
    pub fn embedded(mut self) -> Self {
        self.embedded = true;
        self
    }

    /// Starts the cluster.
    ///
    /// Needs a tokio runtime. With a paused runtime (`start_paused = true`) waits of the embedded
    /// cluster take no time.
    ///
    /// # Panics
    /// When the cluster cannot be started; the text gives the reason and the remedy.
    pub async fn start(self) -> TestCluster {
        match self.try_start().await {
            Ok(cluster) => cluster,
            Err(error) => panic!("cannot start a cluster for this test: {error:?}"),
        }
    }

    /// Starts the cluster.
    ///
    /// # Errors
    /// When the server cannot be started, or does not create a namespace.
    pub async fn try_start(self) -> Result<TestCluster, Error> {
        let embedded = self.embedded || !real::wanted()?;
        let environment = self.environment(embedded);
        let webhooks = WebhookRoutes::default();
        let (client, server) = if embedded {
            let builder = ApiServer::builder().seed(self.seed).epoch(EPOCH);
            let builder = builder.connector(webhooks.clone());
            let server = builder.stand_ins(self.stand_ins).audit(self.audit).start();
            // For the creation of the namespace alone; the test's client gets the new namespace
            // below.
            let namespace = "default";
            (embedded::client(&server, None, namespace, environment.clone())?, Some(server))
        } else {
            let config = RealServer::try_shared().await?.admin();
            (Client::builder().config(config).environment(environment.clone()).build()?, None)
        };
        let namespace = create_namespace(&client, server.is_some()).await?;
        let mut real = None;
        let client = match &server {
            Some(server) => embedded::client(server, None, &namespace, environment)?,
            None => {
                let config = RealServer::try_shared().await?.admin().with_namespace(&namespace);
                real = Some(config.clone());
                Client::builder().config(config).environment(environment).build()?
            }
        };
        let namespaces = Arc::new(Mutex::new(vec![namespace.clone()]));
        // On a shared server only this cluster's namespaces are new.
        let new_server = Arc::new(match &server {
            Some(_) => NewServer::default(),
            None => NewServer::only(Arc::clone(&namespaces)),
        });
        let client = client.of_new_server(&new_server);
        let accounts = AtomicUsize::new(0);
        Ok(TestCluster {
            client,
            server,
            webhooks,
            config: real,
            namespace,
            namespaces,
            new_server,
            accounts,
        })
    }

    /// Returns the environment of both sides: simulated time for the embedded server.
    fn environment(self, embedded: bool) -> Environment {
        let clock = match Timestamp::from_second(EPOCH) {
            Ok(epoch) if embedded => Clock::simulated(epoch),
            // A real server's time cannot be simulated.
            _ => Clock::system(),
        };
        Environment { clock, rng: Rng::seeded(self.seed), metrics: Metrics::new() }
    }
}

impl TestCluster {
    /// Starts a cluster with the default settings.
    ///
    /// # Panics
    /// When the cluster cannot be started; the text gives the reason and the remedy.
    pub async fn start() -> Self {
        Self::builder().start().await
    }

    /// Returns the default settings of a cluster.
    pub fn builder() -> TestClusterBuilder {
        TestClusterBuilder::default()
    }

    /// Returns a client of the administrator; its default namespace is
    /// [`namespace`](Self::namespace).
    ///
    /// Clones share connections and metrics with the operators that this cluster
    /// [runs](Self::spawn) over this client.
    pub fn client(&self) -> Client {
        self.client.clone()
    }

    /// Returns a client of `user` with `groups`; name `system:authenticated` too if that counts.
    ///
    /// For tests of permissions: the user may do nothing until a role is bound.
    ///
    /// ```no_run
    /// # extern crate windlass_testing as windlass;
    /// use k8s_openapi::api::core::v1::Secret;
    /// use windlass::testing::TestCluster;
    ///
    /// # async fn example() {
    /// let cluster = TestCluster::start().await;
    /// let alice = cluster.client_as("alice", &["system:authenticated"]);
    /// let secrets = alice.namespace::<Secret>(cluster.namespace()).list().await;
    /// assert!(secrets.is_err_and(|error| error.is_forbidden()));
    /// # }
    /// ```
    ///
    /// # Panics
    /// When a name cannot be sent.
    pub fn client_as(&self, user: &str, groups: &[&str]) -> Client {
        let environment = self.client.environment().clone();
        let client = match &self.config {
            None => {
                let groups = groups.iter().map(|group| (*group).to_owned()).collect();
                let user = Some((user.to_owned(), groups));
                embedded::client(self.server(), user, &self.namespace, environment)
            }
            Some(config) => real::as_user(config.clone(), user, groups).and_then(|config| {
                Client::builder().config(config).environment(environment).build()
            }),
        };
        match client {
            Ok(client) => client.of_new_server(&self.new_server),
            Err(error) => panic!("cannot make a client: {error:?}"),
        }
    }

    /// Whether this is the embedded server.
    ///
    /// For tests for one of the two servers only.
    pub fn is_embedded(&self) -> bool {
        self.server.is_some()
    }

    /// Returns a kubeconfig of the administrator, for programs such as kubectl. The embedded server
    /// begins to listen on a free loopback port for that.
    ///
    /// # Panics
    /// When no port is free.
    pub async fn kubeconfig(&self) -> String {
        let text = match &self.server {
            Some(server) => {
                // From now on another program may hold a lease: elections can no longer rely on a
                // new server.
                self.new_server.open(self.client.environment().clock.reading());
                let listening = server.listen((Ipv4Addr::LOCALHOST, 0).into()).await;
                listening.map(|listening| listening.kubeconfig).map_err(|error| error.to_string())
            }
            None => match RealServer::try_shared().await {
                Ok(server) => Ok(server.kubeconfig()),
                Err(error) => Err(format!("{error:?}")),
            },
        };
        text.unwrap_or_else(|error| panic!("cannot open this cluster to other programs: {error}"))
    }

    /// Returns the embedded server, for direct access to its switches.
    ///
    /// # Panics
    /// On the real server; build the cluster with [`embedded`](TestClusterBuilder::embedded).
    pub fn server(&self) -> &ApiServer {
        let Some(server) = &self.server else {
            panic!(
                "this test needs the embedded server: start it by TestCluster::builder().embedded()"
            )
        };
        server
    }

    /// Returns the kept entries of the audit log, oldest first: all requests with the changes that
    /// each has made.
    ///
    /// None unless the cluster was built with [`audit`](TestClusterBuilder::audit).
    ///
    /// # Panics
    /// On the real server; build the cluster with [`embedded`](TestClusterBuilder::embedded).
    pub fn audit(&self) -> Vec<serde_json::Value> {
        self.server().audit()
    }

    /// Returns the namespace created for this test.
    pub fn namespace(&self) -> &str {
        &self.namespace
    }

    /// Creates another namespace.
    ///
    /// Operators that are [spawned](Self::spawn) later on the real server see the namespace;
    /// operators that run already do not.
    ///
    /// # Panics
    /// When the server does not create the namespace.
    pub async fn new_namespace(&self) -> String {
        match create_namespace(&self.client, self.server.is_some()).await {
            Ok(namespace) => {
                self.namespaces.lock().push(namespace.clone());
                namespace
            }
            Err(error) => panic!("cannot make a namespace for this test: {error:?}"),
        }
    }

    /// Installs the definition of `K` and waits until the API server serves the kind.
    ///
    /// Installing the same definition again changes nothing.
    ///
    /// # Panics
    /// When the definition cannot be installed; when another definition of that name is there that
    /// would lose a part by the installation.
    pub async fn install<K: CustomResource>(&self) {
        let outcome = match definition_of::<K>() {
            Ok(definition) => install_all(&self.client, &[definition], false).await,
            Err(error) => Err(error),
        };
        match outcome.as_deref() {
            Ok([]) => {}
            Ok([kept, ..]) => {
                panic!("cannot install a definition for this test: {}", kept.text)
            }
            Err(error) => panic!("cannot install a definition for this test: {error:?}"),
        }
    }

    /// Runs an operator in this process, with exactly the rights that the manifests print. The
    /// operator opens no port unless the settings name an address, and handles no signal; on a
    /// shared server it sees only this cluster's namespaces.
    ///
    /// An operator that was built with [`client`](Self::client) acts as a separate service account,
    /// to which the roles of the [manifests](Manager::manifests) are bound and nothing else: a
    /// request beyond the grants is answered 403, and the failed reconcile names the grant. With
    /// any other client, such as one of [`client_as`](Self::client_as), the operator acts as that
    /// client's user. [`spawn_unrestricted`](Self::spawn_unrestricted) leaves the operator the
    /// administrator's rights.
    ///
    /// The API server calls the operator's webhooks: the embedded server reaches them through
    /// memory, also under a paused clock, and calls them until the cluster ends; the real server at
    /// a loopback port, for the namespaces that this cluster has when the operator starts, and
    /// until the operator stops. The configurations are written by the administrator.
    ///
    /// The operator ends when the returned handle is [stopped](RunningOperator::stop) or dropped.
    ///
    /// # Panics
    /// Outside of a tokio runtime, and when the roles cannot be made.
    pub fn spawn(&self, manager: Manager) -> RunningOperator {
        if !manager.own_client().is_same(&self.client) {
            return self.spawn_unrestricted(manager);
        }
        match self.restricted(&manager) {
            Ok((client, rules)) => self.run(manager, client, rules),
            Err(error) => panic!(
                "cannot give the operator the rights of its manifests: {error}; correct it, or run it as \
                 the administrator by TestCluster::spawn_unrestricted"
            ),
        }
    }

    /// As [`spawn`](Self::spawn), with the rights of the client that the operator was built with:
    /// those of the administrator for [`client`](Self::client).
    ///
    /// For tests of an operator whose rights come from elsewhere.
    ///
    /// # Panics
    /// Outside of a tokio runtime.
    pub fn spawn_unrestricted(&self, manager: Manager) -> RunningOperator {
        let account = Account::of(&manager, &self.namespace, 0);
        let rules = account.map(|account| account.rules()).unwrap_or_default();
        let client = manager.own_client().clone();
        self.run(manager, client, rules)
    }

    /// Returns the client of an account with the printed rights of `manager`, and these rights.
    fn restricted(&self, manager: &Manager) -> Result<(Client, Vec<AllowedRule>), Error> {
        // `Relaxed`: the number need only be unique.
        let number = self.accounts.fetch_add(1, Ordering::Relaxed);
        let account = Account::of(manager, &self.namespace, number)?;
        match (&self.server, &self.config) {
            (Some(server), _) => account.store(server)?,
            (None, Some(config)) => account.create(config.clone())?,
            (None, None) => {}
        }
        let groups: Vec<&str> = account.groups.iter().map(String::as_str).collect();
        let client = self.client_as(&account.user, &groups);
        Ok((manager.own_client().over_connections_of(&client), account.rules()))
    }

    /// Runs an operator with that client.
    fn run(&self, manager: Manager, client: Client, rules: Vec<AllowedRule>) -> RunningOperator {
        let coverage = CoverageReport::of(&manager.all_controllers());
        let activity = Arc::new(Activity::new(&client.environment().clock, coverage));
        let (admin, grants) = (self.client.clone(), manager.grants());
        let client = client.observed(Arc::clone(&activity) as Arc<dyn RequestObserver>);
        let manager = manager.observed(&(Arc::clone(&activity) as Arc<dyn ReconcileObserver>));
        let mut manager = manager.with_client(client.clone()).quiet().without_signals();
        match &self.server {
            Some(_) => self.webhooks.connect(&mut manager, &self.client),
            None => {
                let namespaces = self.namespaces.lock().clone();
                if manager.namespaces.is_empty() {
                    manager.namespaces.clone_from(&namespaces);
                }
                // The real server runs on this machine.
                let access = WebhookAccess::at("https://127.0.0.1:0");
                let client = Some(self.client.clone());
                manager.webhook_access = Some(WebhookAccess { client, namespaces, ..access });
            }
        }
        let access = OperatorAccess { client, admin, activity, grants, rules };
        RunningOperator::new(manager.start(), access)
    }
}
