//! Settings of a driver of external resources, and the memory of the process.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use super::memory::{AcceptedDeletions, FirstSeen, Reports, SettledCreations};
use super::{External, ExternalPolicy};
use windlass_client::client::RequestLimiter;

/// Default deadline of a call.
const CALL_TIMEOUT: Duration = Duration::from_secs(30);
/// Default time for which a created resource may stay unseen.
const CREATION_GRACE: Duration = Duration::from_secs(30);
/// Default time between two observations of a resource that matches its object.
const POLL: Duration = Duration::from_secs(600);

/// Drives external resources of one kind: keeps their records on the objects, decides about calls
/// and makes them.
///
/// Within a reconciler, with `E::FINALIZER` as the finalizer of its controller:
///
/// ```
/// # extern crate windlass_runtime as windlass;
/// # use k8s_openapi::api::core::v1::ConfigMap;
/// # use windlass::external::{CreateError, External, ExternalObject, ObservedResource};
/// use windlass::controller::Finalize;
/// use windlass::external::Externals;
/// use windlass::prelude::*;
/// # struct Buckets;
/// # impl External for Buckets {
/// #     type Object = ConfigMap;
/// #     type Handle = ();
/// #     const FINALIZER: &'static str = "example.dev/bucket";
/// #     async fn observe(&self, _: &ExternalObject<'_, ConfigMap>, _: &str) -> Result<ObservedResource<()>> {
/// #         Ok(ObservedResource::Missing)
/// #     }
/// #     async fn create(&self, _: &ExternalObject<'_, ConfigMap>, _: &str) -> Result<String, CreateError> {
/// #         Ok("b-1".to_owned())
/// #     }
/// #     async fn update(&self, _: &ExternalObject<'_, ConfigMap>, _: &str, _: &()) -> Result<()> { Ok(()) }
/// #     async fn delete(&self, _: &ExternalObject<'_, ConfigMap>, _: &str, _: &()) -> Result<()> { Ok(()) }
/// # }
///
/// #[derive(Controller)]
/// #[controller(for = ConfigMap, finalizer = "example.dev/bucket")]
/// struct Sites {
///     buckets: Externals<Buckets>,
/// }
///
/// impl Reconciler for Sites {
///     type Object = ConfigMap;
///
///     async fn reconcile(&self, _: &ConfigMap, cx: &Context<Self>) -> Result {
///         let bucket = self.buckets.reconcile(cx).await?;
///         cx.event(Normal, "Serving", format!("from {}", bucket.id));
///         Ok(self.buckets.requeue(cx))
///     }
/// }
///
/// impl Finalize for Sites {
///     async fn cleanup(&self, _: &ConfigMap, cx: &Context<Self>) -> Result<()> {
///         self.buckets.cleanup(cx).await
///     }
/// }
///
/// let sites = Sites { buckets: Externals::new(Buckets) };
/// # let _ = sites;
/// ```
///
/// One driver serves one provider, and is shared by all reconciles of a controller. A second driver
/// of the same objects needs a [name](Self::named), also in another controller: two drivers of one
/// name share a record, and each takes the resource of the other for its own. Two of one operator
/// are refused: at the start as far as they are fields of graphs or an
/// [`ExternalController`](super::ExternalController), else by the failure of the one that comes
/// second to an object that is not being deleted. Controllers that mean the same resource share one
/// driver, by an `Arc`. A driver that a reconciler calls is refused beside a field of another
/// operator, too. Those that reconcilers of two operators call are not noticed.
///
/// In a dry run the first creation or deletion ends the reconcile with a wait of the reason
/// `DryRun`. The Events that a run would write until then are in the plan.
pub struct Externals<E> {
    provider: E,
    pub(super) name: String,
    pub(super) policy: ExternalPolicy,
    pub(super) poll: Duration,
    pub(super) call_timeout: Duration,
    pub(super) creation_grace: Duration,
    pub(super) limiter: Option<Arc<dyn RequestLimiter>>,
    /// Outcomes that could not be recorded yet.
    pub(super) outcomes: SettledCreations,
    /// Times at which records of creations were written or first seen.
    pub(super) first_seen: FirstSeen,
    pub(super) deletions: AcceptedDeletions,
    /// Differences that were reported and not repaired, and resources that are kept.
    pub(super) reports: Reports,
    /// Names of other controllers that were replaced in records.
    pub(super) replaced: Reports,
    /// Identity of the driver, by which drivers of the same name differ.
    pub(super) identity: Arc<()>,
    /// Whether changing calls are named only, whatever the context says.
    pub(super) is_dry_run: bool,
}

impl<E> fmt::Debug for Externals<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Externals")
            .field("name", &self.name)
            .field("policy", &self.policy)
            .field("poll", &self.poll)
            .field("limiter", &self.limiter)
            .finish_non_exhaustive()
    }
}

impl<E: External> Externals<E> {
    /// Creates a driver with all calls permitted, a deadline of 30 s for each, and a poll every 10
    /// min.
    pub fn new(provider: E) -> Self {
        Self {
            provider,
            name: String::new(),
            policy: ExternalPolicy::FULL,
            poll: POLL,
            call_timeout: CALL_TIMEOUT,
            creation_grace: CREATION_GRACE,
            limiter: None,
            outcomes: SettledCreations::default(),
            first_seen: FirstSeen::default(),
            deletions: AcceptedDeletions::default(),
            reports: Reports::default(),
            replaced: Reports::default(),
            identity: Arc::new(()),
            is_dry_run: false,
        }
    }

    /// Sets the name that the annotations of this driver carry, for the second and further drivers
    /// of the same objects: up to 36 lower-case letters, digits and inner `-`. Default: none.
    ///
    /// Never change the name of a deployed driver: its resources would be created again.
    #[must_use]
    pub fn named(mut self, name: impl Into<String>) -> Self {
        self.name = name.into();
        self
    }

    /// Sets the restrictions of all resources; those of an object's annotation are added. Default:
    /// [`ExternalPolicy::FULL`].
    #[must_use]
    pub fn policy(mut self, policy: ExternalPolicy) -> Self {
        self.policy = policy;
        self
    }

    /// Sets the delay of [`requeue`](Self::requeue), to which up to a tenth is added. Default: 10
    /// min, at least 1 s.
    #[must_use]
    pub fn poll_every(mut self, poll: Duration) -> Self {
        self.poll = poll.max(Duration::from_secs(1));
        self
    }

    /// Sets the deadline of each call, and the longest wait for the rate limiter. Default: 30 s.
    ///
    /// The record of a creation and its call share one deadline.
    #[must_use]
    pub fn call_timeout(mut self, limit: Duration) -> Self {
        self.call_timeout = limit;
        self
    }

    /// Sets the time for which a provider may not show a resource that it has created. Default: 30
    /// s.
    ///
    /// Within it a missing resource is waited for, and not created again. A creation of unknown
    /// outcome is repeated after this time and the deadline of the call. Both count from the moment
    /// at which this process wrote the record, or saw it first: no clock of another process is
    /// trusted.
    #[must_use]
    pub fn creation_grace(mut self, grace: Duration) -> Self {
        self.creation_grace = grace;
        self
    }

    /// Sets the rate limiter from which each call takes a permit. Drivers of one provider share
    /// one. Default: none.
    ///
    /// An object that gets no permit within the time of a call waits with the reason
    /// `ExternalRateLimited`.
    ///
    /// ```
    /// # extern crate windlass_runtime as windlass;
    /// # use windlass::external::{External, Externals};
    /// use std::sync::Arc;
    /// use windlass::client::{Client, TokenBucket};
    ///
    /// /// 10 calls at once, 2 a second in the long run.
    /// fn driver<E: External>(provider: E, client: &Client) -> Externals<E> {
    ///     let clock = client.environment().clock.clone();
    ///     Externals::new(provider).rate_limit(Arc::new(TokenBucket::new(2.0, 10, clock)))
    /// }
    /// ```
    #[must_use]
    pub fn rate_limit(mut self, limiter: Arc<dyn RequestLimiter>) -> Self {
        self.limiter = Some(limiter);
        self
    }

    /// Returns the provider.
    pub fn provider(&self) -> &E {
        &self.provider
    }

    /// The [name](Self::named); empty without one.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }
}
