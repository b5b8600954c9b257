//! Locks that hold the record of an election: a Lease, an annotation, both, or any other store with
//! versioned writes.
//!
//! New operators use [`LeaseLock`]. [`ConfigMapLock`] and [`EndpointsLock`] keep the record in the
//! annotation `control-plane.alpha.kubernetes.io/leader`, as client-go did until 1.23, for taking
//! an election over from an operator that still uses such a lock. [`MultiLock`] holds two locks at
//! once: run every replica with the old and the new lock together, then drop the old lock.

mod access;
mod annotation;
mod event;
mod lease;
mod multi;
mod record;
mod watch;

use std::fmt::Debug;
use std::future::Future;
use std::pin::Pin;
use std::str::FromStr;
use std::sync::Arc;

pub(super) use access::LockAccess;
pub use annotation::{ConfigMapLock, EndpointsLock, LEADER_ANNOTATION};
pub use lease::{LeaseLock, REQUEST_ANNOTATION};
pub use multi::{MultiLock, UNKNOWN_LEADER};
pub(super) use record::RELEASED;
pub use record::{LeaderElectionRecord, ObservedRecord};
pub(super) use watch::LockWatch;

use windlass_client::client::Client;
use windlass_core::error::{Error, ErrorKind};

/// Future of a [`ResourceLock`]'s answer.
pub type LockFuture<'a, T> = Pin<Box<dyn Future<Output = Result<T, Error>> + Send + 'a>>;

/// Listener to which a [`ResourceLock`] reports records as they are stored.
pub type LockListener<'a> = &'a (dyn Fn(ObservedRecord) + Send + Sync);

/// Keeps a [`LeaderElectionRecord`] under optimistic concurrency: client-go's
/// `resourcelock.Interface`.
///
/// A custom lock must refuse a write whose version is not the stored version, or two may lead.
///
/// The answers of all methods decide which process leads, so a write that may have succeeded must
/// not be reported as refused: any error but those of a conflict, an existing and a missing object
/// makes the election read the lock again.
pub trait ResourceLock: Debug + Send + Sync + 'static {
    /// Returns the name of this process in the record.
    fn identity(&self) -> &str;

    /// Describes the lock for logs and errors: `lease "website-operator" in "websites"`.
    fn describe(&self) -> String;

    /// Reads the record; `None` when there is none, and [`create`](Self::create) can make a record.
    ///
    /// # Errors
    /// Any; the attempt counts as failed.
    fn get(&self) -> LockFuture<'_, Option<ObservedRecord>>;

    /// Stores the first record.
    ///
    /// # Errors
    /// [`ErrorKind::AlreadyExists`] when a record exists; others leave open whether it was stored.
    fn create(&self, record: LeaderElectionRecord) -> LockFuture<'_, ObservedRecord>;

    /// Replaces the record of that version.
    ///
    /// # Errors
    /// [`ErrorKind::Conflict`] when the stored version is another, [`ErrorKind::NotFound`] when
    /// there is none; others leave open whether the record was stored.
    fn update(&self, version: &str, record: LeaderElectionRecord)
    -> LockFuture<'_, ObservedRecord>;

    /// Reports records in their stored form, beginning with the present one, until the server ends
    /// the watch. Reports may come late or be left out: reports make an election read earlier, and
    /// only the read counts. Default: `None`, this lock cannot be followed, and elections read once
    /// in a retry period.
    ///
    /// # Errors
    /// [`ErrorKind::Forbidden`] when rights are missing; after any error the election tries again
    /// later.
    fn follow<'a>(&'a self, listener: LockListener<'a>) -> Option<LockFuture<'a, ()>> {
        let _ = listener;
        None
    }

    /// Records an event for people, where the lock has a place for events.
    ///
    /// # Errors
    /// Any; they are logged.
    fn record_event(&self, note: String) -> LockFuture<'_, ()>;
}

/// Kind of lock that an election uses, by client-go's names, those of
/// `--leader-elect-resource-lock`.
///
/// ```
/// # extern crate windlass_runtime as windlass;
/// use windlass::leader::LockKind;
///
/// let kind: LockKind = "configmapsleases".parse()?;
/// assert_eq!(kind, LockKind::ConfigMapsLeases);
/// assert_eq!(LockKind::default().as_str(), "leases");
/// assert!("secrets".parse::<LockKind>().is_err());
/// # Ok::<(), windlass::Error>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LockKind {
    /// `leases`: a `coordination.k8s.io/v1` Lease.
    #[default]
    Leases,
    /// `configmaps`: an annotation of a ConfigMap. Legacy, for migrations.
    ConfigMaps,
    /// `endpoints`: an annotation of Endpoints. Legacy, for migrations.
    Endpoints,
    /// `configmapsleases`: both at once, the step between `configmaps` and `leases`.
    ConfigMapsLeases,
    /// `endpointsleases`: both at once, the step between `endpoints` and `leases`.
    EndpointsLeases,
}

impl LockKind {
    /// Returns the name, as in client-go's flags.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Leases => "leases",
            Self::ConfigMaps => "configmaps",
            Self::Endpoints => "endpoints",
            Self::ConfigMapsLeases => "configmapsleases",
            Self::EndpointsLeases => "endpointsleases",
        }
    }

    /// Returns the resources that the lock reads and writes: API group and plural; the first
    /// resource decides.
    pub fn resources(self) -> &'static [(&'static str, &'static str)] {
        const LEASES: (&str, &str) = ("coordination.k8s.io", "leases");
        const CONFIG_MAPS: (&str, &str) = ("", "configmaps");
        const ENDPOINTS: (&str, &str) = ("", "endpoints");
        match self {
            Self::Leases => &[LEASES],
            Self::ConfigMaps => &[CONFIG_MAPS],
            Self::Endpoints => &[ENDPOINTS],
            Self::ConfigMapsLeases => &[CONFIG_MAPS, LEASES],
            Self::EndpointsLeases => &[ENDPOINTS, LEASES],
        }
    }

    /// Creates the lock `name` in `namespace`, to be held as `identity`.
    pub fn lock(
        self,
        client: &Client,
        namespace: &str,
        name: &str,
        identity: &str,
    ) -> Arc<dyn ResourceLock> {
        let lease = || Arc::new(LeaseLock::new(client, namespace, name, identity));
        let config_map = || Arc::new(ConfigMapLock::new(client, namespace, name, identity));
        let endpoints = || Arc::new(EndpointsLock::new(client, namespace, name, identity));
        match self {
            Self::Leases => lease(),
            Self::ConfigMaps => config_map(),
            Self::Endpoints => endpoints(),
            Self::ConfigMapsLeases => Arc::new(MultiLock::new(config_map(), lease())),
            Self::EndpointsLeases => Arc::new(MultiLock::new(endpoints(), lease())),
        }
    }
}

impl FromStr for LockKind {
    type Err = Error;

    /// Reads client-go's name.
    ///
    /// # Errors
    /// [`ErrorKind::Config`] with the known names.
    fn from_str(name: &str) -> Result<Self, Error> {
        const ALL: [LockKind; 5] = [
            LockKind::Leases,
            LockKind::ConfigMaps,
            LockKind::Endpoints,
            LockKind::ConfigMapsLeases,
            LockKind::EndpointsLeases,
        ];
        ALL.into_iter().find(|kind| kind.as_str() == name).ok_or_else(|| {
            let names = ALL.map(LockKind::as_str).join(", ");
            let text = format!("there is no resource lock {name:?}; the locks are {names}");
            Error::new(ErrorKind::Config, text)
        })
    }
}
