//! The world of one run: an API server, the user's client, and the operator under test.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::Notify;
use windlass_apiserver::ApiServer;

use super::line::ProcessConnections;
use super::monitor::{LEASE, Monitor};
use super::oracle::renewed;
use super::schedule::RESTART;
use super::setting::Setting;
use super::varying::names::Snapshot;
use crate::embedded::{self, WebhookRoutes};
use crate::testing::{Recording, settle};
use windlass_client::client::{Client, ClientConfig};
use windlass_core::clock::Clock;
use windlass_core::crd::CustomResource;
use windlass_core::environment::Environment;
use windlass_core::error::Error;
use windlass_core::metrics::{Metrics, names};
use windlass_core::resource::Resource;
use windlass_core::rng::Rng;
use windlass_runtime::leader::LeaderElection;
use windlass_runtime::manager::{Manager, Running, definition_of, install_all};

/// Time that a condition of a workload may take.
///
/// Longer than any hold of events and any backoff after one failure.
const LONGEST_WAIT: Duration = Duration::from_secs(900);
/// Time between two checks of a condition, for the first [`EAGER`] ones.
const POLL: Duration = Duration::from_millis(200);
/// Time between later checks.
const SLOW_POLL: Duration = Duration::from_secs(1);
/// Checks of a condition before the interval changes.
const EAGER: usize = 10;
/// Further inspections of the parts that are not at rest.
const MORE_INSPECTIONS: usize = 2;
/// Time between them: no multiple of it is the interval of a timer.
const BETWEEN_INSPECTIONS: Duration = Duration::from_millis(370);
/// Number of starts of one run, over which it counts as hopeless.
const MOST_STARTS: u64 = 64;

type MakeOperator = Arc<dyn Fn(Client) -> Manager + Send + Sync>;
type Invariant = Arc<dyn Fn(&World) -> bool + Send + Sync>;

/// The API server and the operator of one run of an [exploration](super::explore). Clones share
/// them.
#[derive(Clone)]
pub struct World {
    inner: Arc<Inner>,
}

struct Inner {
    server: ApiServer,
    /// The way of the server to the operator's webhooks.
    webhooks: WebhookRoutes,
    client: Client,
    clock: Clock,
    rng: Rng,
    monitor: Arc<Monitor>,
    // Under locks because clones of the world share these fields; no lock is held across an await.
    make: Mutex<Option<MakeOperator>>,
    /// Number of replicas.
    replicas: usize,
    processes: Mutex<Vec<Process>>,
    starts: Mutex<u64>,
    invariants: Mutex<Vec<(String, Invariant)>>,
    failure: Mutex<Option<String>>,
    failed: Notify,
}

/// A process of the operator. Dropping it is the end of a crash.
struct Process {
    running: Running,
    metrics: Metrics,
}

impl fmt::Debug for World {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("World").finish_non_exhaustive()
    }
}

impl World {
    /// Creates the world of a run.
    pub(super) fn new(
        (server, webhooks): (ApiServer, WebhookRoutes),
        monitor: Arc<Monitor>,
        setting: &Setting,
    ) -> Result<Self, Error> {
        let clock = Clock::simulated(super::time_of(setting.epoch()));
        let rng = Rng::seeded(setting.seed);
        let environment =
            Environment { clock: clock.clone(), rng: rng.fork("user"), metrics: Metrics::new() };
        let client = embedded::client(&server, None, "default", environment)?;
        let inner = Inner {
            server,
            webhooks,
            client,
            clock,
            rng,
            monitor,
            make: Mutex::default(),
            replicas: setting.replicas.max(1),
            processes: Mutex::default(),
            starts: Mutex::default(),
            invariants: Mutex::default(),
            failure: Mutex::default(),
            failed: Notify::new(),
        };
        Ok(Self { inner: Arc::new(inner) })
    }

    /// Returns the client of the user, an administrator. Its requests are never disturbed.
    pub fn client(&self) -> Client {
        self.inner.client.clone()
    }

    /// Returns the clock of the run: virtual time, which costs none.
    pub fn clock(&self) -> Clock {
        self.inner.clock.clone()
    }

    /// Installs the definition of `K`.
    ///
    /// # Panics
    /// When it cannot be installed.
    pub async fn install<K: CustomResource>(&self) {
        let installed = match definition_of::<K>() {
            Ok(definition) => install_all(&self.inner.client, &[definition], false).await.map(drop),
            Err(error) => Err(error),
        };
        if let Err(error) = installed {
            panic!("cannot install a definition for this exploration: {error:?}");
        }
    }

    /// Starts the operator that `make` builds; after each crash it is built and started again.
    ///
    /// It runs without ports and signals, with all rights. What must outlive a crash belongs to the
    /// API server or to values that `make` shares; state inside of the reconcilers is lost, as in a
    /// Pod. Runs with hand-overs build two replicas with a lease, all others one without leader
    /// election. An operator that ends by itself is started again after ten to twenty seconds.
    ///
    /// # Panics
    /// When the world has an operator already.
    pub fn operator(&self, make: impl Fn(Client) -> Manager + Send + Sync + 'static) {
        let previous = self.inner.make.lock().replace(Arc::new(make));
        assert!(
            previous.is_none(),
            "a world has one operator: let one manager run all controllers"
        );
        self.start();
    }

    /// Waits until `condition` holds, for at most 15 minutes of virtual time; a run in which it
    /// does not hold by then ends as a finding.
    pub async fn eventually(&self, text: &str, mut condition: impl AsyncFnMut() -> bool) {
        let holds = async {
            let mut checks = 0;
            while !condition().await {
                checks += 1;
                self.inner.clock.sleep(if checks < EAGER { POLL } else { SLOW_POLL }).await;
            }
        };
        if self.inner.clock.timeout(LONGEST_WAIT, holds).await.is_none() {
            self.fail(format!(
                "within {} s it did not become true: {text}",
                LONGEST_WAIT.as_secs()
            ));
            std::future::pending::<()>().await;
        }
    }

    /// Requires that `condition` holds after each change; states that follow each other without a
    /// pause may be seen as one.
    pub fn always(&self, text: &str, condition: impl Fn(&Self) -> bool + Send + Sync + 'static) {
        self.inner.invariants.lock().push((text.to_owned(), Arc::new(condition)));
    }

    /// Stores the objects that the caches of a recorded operator had at the recording's end, with
    /// their uids and states, and the namespaces that they need: the workload goes on from there.
    /// To be called before the [operator](Self::operator) starts, once the definitions are
    /// [installed](Self::install).
    ///
    /// [`Recording::until`] chooses an earlier end. Objects that no cache had whole are not there,
    /// and references to owners among those are left out.
    ///
    /// # Panics
    /// When the kind of an object is not served.
    pub fn restore(&self, recording: &Recording) {
        if let Err(text) = recording.place(&self.inner.server) {
            panic!("{text}");
        }
    }

    /// Returns all objects of a kind as they are stored; those that cannot be decoded are left out.
    pub fn objects<K: Resource>(&self) -> Vec<K> {
        let Some(info) = K::static_info() else { return Vec::new() };
        let all = self.inner.server.list_objects(&info.group, &info.plural, "");
        all.into_iter().filter_map(|object| serde_json::from_value(object).ok()).collect()
    }

    /// Ends the run as a failed one.
    pub(super) fn fail(&self, text: String) {
        self.inner.failure.lock().get_or_insert(text);
        self.inner.failed.notify_one();
    }

    /// Returns the reason for which the run failed.
    pub(super) fn failure(&self) -> Option<String> {
        self.inner.failure.lock().clone()
    }

    /// Waits until the run has failed.
    pub(super) async fn failed(&self) {
        while self.failure().is_none() {
            self.inner.failed.notified().await;
        }
    }

    /// Starts a process of the operator, if there is one to start; the one before ends.
    pub(super) fn start(&self) {
        let Some(make) = self.inner.make.lock().clone() else { return };
        // Before the new one: two processes would be two replicas.
        self.end_process();
        let number = {
            let mut starts = self.inner.starts.lock();
            *starts += 1;
            *starts
        };
        if number > MOST_STARTS {
            self.fail(format!("the operator was started more than {MOST_STARTS} times"));
        }
        let lines: Vec<ProcessConnections> =
            (0..self.inner.replicas).map(|replica| self.line(replica)).collect();
        self.inner.monitor.follow(lines.iter().map(ProcessConnections::cut).collect());
        for (replica, line) in lines.into_iter().enumerate() {
            match self.started(&make, line, replica, number) {
                Ok(process) => self.inner.processes.lock().push(process),
                Err(error) => self.fail(format!("cannot make the operator's client: {error}")),
            }
        }
    }

    /// Returns the connections of a replica.
    fn line(&self, replica: usize) -> ProcessConnections {
        ProcessConnections::new(
            self.inner.server.clone(),
            replica,
            self.inner.monitor.trace.clone(),
        )
    }

    /// Starts the process of a replica.
    fn started(
        &self,
        make: &MakeOperator,
        line: ProcessConnections,
        replica: usize,
        number: u64,
    ) -> Result<Process, Error> {
        let metrics = Metrics::new();
        let name = if replica == 0 { String::new() } else { format!(" replica {replica}") };
        let environment = Environment {
            clock: self.inner.clock.clone(),
            rng: self.inner.rng.fork(&format!("operator {number}{name}")),
            metrics: metrics.clone(),
        };
        let mut manager = make(client_over(line, environment)?).quiet().without_signals();
        // Down while the operator is: users' writes are refused meanwhile.
        self.inner.webhooks.connect(&mut manager, &self.inner.client);
        let manager = manager.observed(&self.inner.monitor.observer());
        let manager = if self.inner.replicas > 1 {
            // Distinct from other processes: another one of the name would take its record for its
            // own.
            let identity = format!("replica-{replica}-{number}");
            manager.leader_election_with(LeaderElection::new(LEASE).identity(identity))
        } else {
            // Its renewals would be most of a run's requests, and only one process runs at a time.
            manager.without_leader_election()
        };
        Ok(Process { running: manager.start(), metrics })
    }

    /// Ends the processes of the operator as a crash does.
    pub(super) fn end_process(&self) {
        let processes = std::mem::take(&mut *self.inner.processes.lock());
        for process in processes {
            for (controller, _) in process.running.states() {
                if process.metrics.counted(&names::RECONCILE_PANICS, &[&controller]) > 0 {
                    self.fail(format!("a reconcile of controller {controller:?} panicked"));
                }
            }
        }
    }

    /// Returns the parts that are not at rest, a sentence each. A key whose requeue is due just at
    /// an inspection is queued then, though nothing is wrong with it: a part is not at rest only if
    /// several inspections at different moments show it.
    pub(super) async fn busy(&self) -> Vec<String> {
        let mut busy = self.inspected().await;
        for _ in 0..MORE_INSPECTIONS {
            if busy.is_empty() {
                break;
            }
            self.inner.clock.sleep(BETWEEN_INSPECTIONS).await;
            let now = self.inspected().await;
            busy.retain(|sentence| now.contains(sentence));
        }
        busy
    }

    /// Returns the parts that are not at rest at this moment, a sentence each: caches that do not
    /// show the server's objects, and controllers with keys that fail or are queued.
    async fn inspected(&self) -> Vec<String> {
        let mut sentences = Vec::new();
        let mut views = Vec::new();
        for process in self.inner.processes.lock().iter() {
            let own = process.running.client();
            let caches = process.running.caches().into_iter();
            // Caches of other clusters are compared with no server here.
            let caches = caches.filter(|(client, _)| client.is_same(own));
            views.extend(caches.flat_map(|(_, informers)| informers.views()));
            // The keys of a standby wait for as long as it is one.
            let states = process.running.states().into_iter().filter(|_| self.inner.replicas == 1);
            let busy =
                states.filter(|(_, state)| state.queued + state.working + state.backing_off > 0);
            sentences.extend(busy.map(|(name, _)| {
                format!("controller {name:?} still has keys that fail, or wait to be reconciled")
            }));
        }
        for view in &views {
            sentences.extend(settle::differences(&self.inner.client, view).await);
        }
        sentences
    }

    /// Whether a process of the operator has ended by itself.
    fn has_ended(&self) -> bool {
        self.inner.processes.lock().iter().any(|process| !process.running.is_running())
    }

    /// Starts the operator again after each crash, and checks what must always hold; never ends.
    pub(super) async fn keep(&self) {
        loop {
            tokio::select! {
                biased;
                () = self.inner.monitor.crashed.notified() => self.restart().await,
                // As a kubelet does with a container that exits.
                () = self.inner.clock.sleep(RESTART) => {
                    if self.has_ended() {
                        self.restart().await;
                    }
                }
                () = self.inner.monitor.changed.notified() => self.check(),
            }
        }
    }

    /// Ends the operator, and starts it again after a while.
    async fn restart(&self) {
        self.end_process();
        self.inner.clock.sleep(RESTART).await;
        self.start();
    }

    /// Checks what must always hold: invariants of the workload, and that time passes.
    fn check(&self) {
        let endless = self.inner.monitor.with_changes(|changes| {
            let first = renewed::endless(changes)?;
            Some(renewed::restless("objects are changed without end at one moment", changes, first))
        });
        if let Some(text) = endless {
            self.fail(text);
        }
        let invariants = self.inner.invariants.lock().clone();
        if let Some((text, _)) = invariants.iter().find(|(_, holds)| !holds(self)) {
            self.fail(format!("it was not always true: {text}"));
        }
    }

    /// Returns the server, for faults that no plan has.
    #[cfg(test)]
    pub(super) fn server(&self) -> &ApiServer {
        &self.inner.server
    }

    /// Returns the monitor of the run, to share.
    pub(super) fn shared_monitor(&self) -> Arc<Monitor> {
        Arc::clone(&self.inner.monitor)
    }

    /// Returns the monitor of the run.
    pub(super) fn monitor(&self) -> &Monitor {
        &self.inner.monitor
    }

    /// Returns the objects as they are now.
    pub(super) fn snapshot(&self) -> Snapshot {
        self.inner.monitor.snapshot()
    }
}

/// Returns the operator's client.
fn client_over(line: ProcessConnections, environment: Environment) -> Result<Client, Error> {
    // The name is never resolved: the connector opens pipes.
    let config = ClientConfig::new("http://in-process.windlass")?.with_namespace("default");
    Client::builder().config(config).connector(Arc::new(line)).environment(environment).build()
}
