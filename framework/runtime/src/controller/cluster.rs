//! Another cluster that controllers read and write: client, caches and name.
//!
//! The reconciled kind of a controller lives in the operator's own cluster. Other watched kinds may
//! live in other clusters: [`ControllerBuilder::watches_in`](super::ControllerBuilder::watches_in).
//! A [`Cluster`] is made once and given to the manager, which fills the caches; the controllers
//! that use the cluster keep it. Writes to the cluster require the operator's lease, as all writes
//! do.
//!
//! Not included: clusters that come and go, and controllers whose reconciled kind is in another
//! cluster.
//!
//! Writes pass a gate (`ForwardingGate`) that all clones of the client share and that forwards to
//! the gate of the current term; the manager sets that gate, and removes the gate at the end of the
//! term. So writes of a client that user code kept from an earlier term are refused, too.

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use windlass_cache::informer::InformerRegistry;
use windlass_cache::store::Store;
use windlass_client::client::{Client, WriteGate, WritePermit};
use windlass_core::environment::Environment;
use windlass_core::error::{Error, ErrorKind};
use windlass_core::resource::{ClusterId, Resource};
use windlass_core::sync::Mutex;

/// Another cluster: a client, caches, and a name for logs, probes and metrics. Cheap to clone.
///
/// ```no_run
/// # extern crate windlass_runtime as windlass;
/// # use windlass::{client::{Client, ClientConfig}, controller::Cluster, manager::Manager};
/// # fn example(here: Client) -> Result<Manager, windlass::Error> {
/// let config = ClientConfig::from_file("/etc/east/kubeconfig", None)?;
/// let east = Cluster::new("east", Client::builder().config(config).build()?);
/// let manager = Manager::new(here).cluster(&east);
/// # Ok(manager)
/// # }
/// ```
#[derive(Clone)]
pub struct Cluster {
    inner: Arc<Inner>,
}

/// State that all clones of a [`Cluster`] share.
struct Inner {
    /// Name in logs, probes and metrics.
    name: Arc<str>,
    /// Number in the keys of the cluster's objects.
    id: ClusterId,
    /// Client whose writes pass `gate`.
    client: Client,
    /// Namespaces that are watched; empty for all.
    namespaces: Vec<String>,
    /// Caches; made at the first request, so that the manager's environment can be given before.
    informers: OnceLock<InformerRegistry>,
    /// Gate of all writes.
    gate: Arc<ForwardingGate>,
    /// Whether a manager runs the caches and fences the writes.
    is_managed: AtomicBool,
}

impl Cluster {
    /// Creates a handle to the cluster that `client` reaches, watched in all namespaces. The name
    /// distinguishes the cluster from the operator's other clusters; the operator's own cluster is
    /// called `local`.
    ///
    /// Nothing is read before a manager that was given the cluster runs.
    pub fn new(name: impl Into<String>, client: Client) -> Self {
        Self::in_namespaces(name, client, Vec::<String>::new())
    }

    /// As [`new`](Self::new), watched in these namespaces only; none given means all.
    pub fn in_namespaces<N: Into<String>>(
        name: impl Into<String>,
        client: Client,
        namespaces: impl IntoIterator<Item = N>,
    ) -> Self {
        let name: Arc<str> = Arc::from(name.into());
        let gate = Arc::new(ForwardingGate { cluster: Arc::clone(&name), state: Mutex::default() });
        // All clones of the client share this gate, in every term.
        let client = client.gated(Arc::clone(&gate) as Arc<dyn WriteGate>);
        let namespaces = namespaces.into_iter().map(Into::into).collect();
        let id = ClusterId(number(&name));
        let (informers, is_managed) = (OnceLock::new(), AtomicBool::new(false));
        let inner = Inner { name, id, client, namespaces, informers, gate, is_managed };
        Self { inner: Arc::new(inner) }
    }

    /// The cluster's name.
    pub fn name(&self) -> &str {
        &self.inner.name
    }

    /// The id that the keys of the cluster's objects carry; derived from the name.
    ///
    /// A 16-bit hash: two names may share an id, which the manager refuses when it starts.
    pub fn id(&self) -> ClusterId {
        self.inner.id
    }

    /// The cluster's client. In an operator with leader election writes of the client are refused
    /// unless this process leads.
    pub fn client(&self) -> &Client {
        &self.inner.client
    }

    /// The cluster's caches; they run while the operator does.
    pub fn informers(&self) -> &InformerRegistry {
        self.registry(self.inner.client.environment())
    }

    /// The cache of kind `K`.
    ///
    /// Filled while the manager runs; a kind that no controller watches is filled from the first
    /// request on.
    ///
    /// # Panics
    /// When the kind is known at run time only.
    pub fn store<K: Resource>(&self) -> Store<K> {
        self.informers().informer::<K>().store()
    }

    /// Marks the cluster as managed: a manager runs the caches and fences the writes. The caches
    /// use the manager's clock and metrics, if they were not requested before.
    pub(crate) fn managed_by(&self, environment: &Environment) {
        let mut state = self.inner.gate.state.lock();
        // Under the gate's lock: a `check_managed` of another thread closes the gate before this,
        // or sees the flag. Relaxed, because the lock orders both.
        self.inner.is_managed.store(true, Ordering::Relaxed);
        // An earlier `check_managed` may have closed the gate; the manager sets the term's gate
        // later by `fence`.
        if matches!(*state, GateState::Unmanaged) {
            *state = GateState::Open;
        }
        drop(state);
        self.registry(environment);
    }

    /// Fails if no manager was given this cluster: the caches would never be filled, the watchers
    /// never notified, and the writes not be fenced. Writes of such a cluster are refused from then
    /// on.
    pub(super) fn check_managed(&self) -> Result<(), Error> {
        let mut state = self.inner.gate.state.lock();
        // Under the lock, as in `managed_by`: otherwise a cluster that becomes managed between the
        // load and the next line would refuse writes for ever.
        if self.inner.is_managed.load(Ordering::Relaxed) {
            return Ok(());
        }
        *state = GateState::Unmanaged;
        drop(state);
        let text = format!(
            "cluster {} is watched, but was not given to the manager: call `Manager::cluster` with it",
            self.name()
        );
        Err(Error::new(ErrorKind::Usage, text))
    }

    /// Returns the caches; the first call creates them, with the clock and metrics.
    fn registry(&self, environment: &Environment) -> &InformerRegistry {
        let inner = &self.inner;
        inner.informers.get_or_init(|| {
            let environment = environment.fork(&format!("informers of cluster {}", inner.name));
            let place = (inner.id, Arc::clone(&inner.name));
            InformerRegistry::elsewhere(
                place,
                inner.client.clone(),
                environment,
                inner.namespaces.clone(),
            )
        })
    }

    /// Sends the checks of all writes to `gate`; without a gate writes are refused.
    pub(crate) fn fence(&self, gate: Option<Arc<dyn WriteGate>>) {
        *self.inner.gate.state.lock() = gate.map_or(GateState::Closed, GateState::Forwarding);
    }

    /// As [`fence`](Self::fence) with a gate, until the answer is dropped: then the checks are as
    /// before.
    pub(crate) fn fence_for_now(&self, gate: Arc<dyn WriteGate>) -> FencedForNow {
        let mut state = self.inner.gate.state.lock();
        let before = std::mem::replace(&mut *state, GateState::Forwarding(gate));
        drop(state);
        FencedForNow { gate: Arc::clone(&self.inner.gate), before }
    }
}

/// Restores the checks of writes to a cluster on drop.
#[derive(Debug)]
pub(crate) struct FencedForNow {
    gate: Arc<ForwardingGate>,
    /// State of the gate before.
    before: GateState,
}

impl Drop for FencedForNow {
    fn drop(&mut self) {
        *self.gate.state.lock() = std::mem::take(&mut self.before);
    }
}

impl fmt::Debug for Cluster {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cluster")
            .field("name", &self.inner.name)
            .field("client", &self.inner.client)
            .finish_non_exhaustive()
    }
}

/// Returns the FNV-1a hash of the name, folded to 16 bits; never 0, the number of the operator's
/// own cluster.
fn number(name: &str) -> u16 {
    let hash = name
        .bytes()
        .fold(0x811c_9dc5_u32, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193));
    let folded = (hash >> 16) as u16 ^ (hash & 0xffff) as u16;
    folded.max(1)
}

/// Write gate of the cluster, which forwards to the current term's gate.
#[derive(Debug)]
struct ForwardingGate {
    /// Name for the texts of errors.
    cluster: Arc<str>,
    /// Locked for a copy only, and not while the term's gate decides.
    state: Mutex<GateState>,
}

/// State of the cluster's write gate.
#[derive(Clone, Debug, Default)]
enum GateState {
    /// There is no leader election.
    #[default]
    Open,
    /// There is an election, and this process does not lead.
    Closed,
    /// This process leads; the term's gate decides.
    Forwarding(Arc<dyn WriteGate>),
    /// A controller watches the cluster, and the cluster was not given to a manager.
    Unmanaged,
}

impl ForwardingGate {
    /// Returns the gate that decides now; `None` when every write may pass.
    fn current(&self) -> Result<Option<Arc<dyn WriteGate>>, Error> {
        match self.state.lock().clone() {
            GateState::Open => Ok(None),
            GateState::Forwarding(gate) => Ok(Some(gate)),
            GateState::Closed => {
                let text = format!(
                    "refused to write to cluster {}: this process does not lead; the leader does \
                     the work",
                    self.cluster
                );
                Err(Error::new(ErrorKind::NotLeader, text))
            }
            GateState::Unmanaged => {
                let text = format!(
                    "refused to write to cluster {}: it was not given to the manager, which would \
                     fence its writes; call `Manager::cluster` with it",
                    self.cluster
                );
                Err(Error::new(ErrorKind::Usage, text))
            }
        }
    }
}

impl WriteGate for ForwardingGate {
    /// Asked before a request is prepared.
    fn admit(&self) -> Result<Option<Duration>, Error> {
        self.current()?.map_or(Ok(None), |gate| gate.admit())
    }

    /// Asked when the request is sent; the permit counts the write until the answer.
    fn begin_write(&self) -> Result<WritePermit, Error> {
        self.current()?.map_or_else(|| Ok(WritePermit::within(None)), |gate| gate.begin_write())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use windlass_client::client::InFlightWrites;
    use windlass_client::client::test_support::Counting;
    use windlass_core::clock::Clock;

    #[test]
    fn a_cluster_has_a_number_that_follows_from_its_name_and_is_not_the_local_one() {
        let cluster = |name: &str| Cluster::new(name, Client::offline());
        assert_eq!(cluster("east").id(), cluster("east").id());
        assert_ne!(cluster("east").id(), cluster("west").id());
        assert_ne!(cluster("").id(), ClusterId::default());
    }

    #[test]
    fn a_fence_for_now_ends_with_its_guard() {
        #[derive(Debug)]
        struct Refusing;

        impl WriteGate for Refusing {
            fn admit(&self) -> Result<Option<Duration>, Error> {
                Err(Error::new(ErrorKind::Usage, "refused"))
            }
        }

        let east = Cluster::new("east", Client::offline());
        let fenced = east.fence_for_now(Arc::new(Refusing));
        assert_eq!(east.inner.gate.admit().unwrap_err().kind(), ErrorKind::Usage);
        drop(fenced);
        assert_eq!(east.inner.gate.admit().unwrap(), None);
    }

    #[test]
    fn writes_elsewhere_ask_for_the_lease_once_there_is_an_election() {
        let east = Cluster::new("east", Client::offline());
        assert_eq!(east.inner.gate.admit().unwrap(), None);
        east.fence(None);
        let error = east.inner.gate.admit().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NotLeader);
        assert!(error.to_string().contains("cluster east"), "{error}");
    }

    #[test]
    fn a_cluster_that_is_watched_and_that_no_manager_has_is_not_written_to() {
        let east = Cluster::new("east", Client::offline());
        let error = east.check_managed().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Usage);
        assert!(error.to_string().contains("Manager::cluster"), "{error}");
        let error = east.inner.gate.admit().unwrap_err();
        assert!(error.to_string().contains("cluster east"), "{error}");
        let west = Cluster::new("west", Client::offline());
        west.managed_by(west.client().environment());
        west.check_managed().unwrap();
        assert_eq!(west.inner.gate.admit().unwrap(), None);
    }

    #[test]
    fn l8_a_write_elsewhere_counts_for_the_lease_that_let_it_out() {
        let in_flight_writes = InFlightWrites::new(Clock::system(), Duration::ZERO);
        let east = Cluster::new("east", Client::offline());
        east.fence(Some(Arc::new(Counting(in_flight_writes.clone()))));
        let out = east.inner.gate.begin_write().unwrap();
        east.fence(None);
        assert_eq!(in_flight_writes.outstanding().0, 1, "whoever leads now");
        drop(out);
        assert_eq!(in_flight_writes.outstanding().0, 0);
        assert!(east.inner.gate.begin_write().is_err());
    }
}
