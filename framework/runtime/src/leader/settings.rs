//! Settings of an election: names, durations and choices.

use std::time::Duration;

use super::decision::HandoverPolicy;
use super::durations::LeaseDurations;
use super::lock::LockKind;
use windlass_core::error::{Error, ErrorKind};
use windlass_core::rng::Rng;

/// Time that work may go on after leadership was lost: its writes are refused by then, and another
/// replica works soon.
pub(crate) const LOST: Duration = Duration::from_secs(2);

/// Settings of a leader election.
///
/// The defaults are those of Kubernetes' own components: a lease of 15 s, given up after 10 s
/// without a renewal, tried every 2 s; writes stop 2 s before the lease could pass to another.
///
/// ```
/// # extern crate windlass_runtime as windlass;
/// use std::time::Duration;
/// use windlass::leader::LeaderElection;
///
/// // Slower than the defaults: fewer requests, and a later takeover after a crash.
/// let election = LeaderElection::new("site-operator")
///     .namespace("operators")
///     .lease_duration(Duration::from_secs(60))
///     .renew_deadline(Duration::from_secs(40))
///     .retry_period(Duration::from_secs(8));
/// election.check()?;
///
/// // Two replicas could write at once, so this is refused.
/// let unsafe_one = LeaderElection::new("site-operator").renew_deadline(Duration::from_secs(15));
/// assert!(unsafe_one.check().is_err());
/// # Ok::<(), windlass::Error>(())
/// ```
///
/// The rule among the durations: renew deadline + 1.2 × retry period + margin ≤ lease duration.
#[derive(Clone, Debug)]
pub struct LeaderElection {
    #[doc(hidden)]
    pub name: String,
    #[doc(hidden)]
    pub namespace: Option<String>,
    /// Name of this process in the lock; made from the machine's name if none is given.
    pub(crate) identity: Option<String>,
    /// Kind of object that holds the record.
    pub(crate) lock: LockKind,
    /// Whether the lock is given back at a clean end.
    pub(crate) release: bool,
    /// Whether the lease is lent, or asked for.
    pub(super) handover: HandoverPolicy,
    /// Whether the manifests hold the policy against writes from elsewhere.
    pub(crate) fence: bool,
    /// The durations.
    pub(crate) timing: LeaseDurations,
    /// Whether the margin was given, and does not follow from the other durations.
    has_margin: bool,
}

impl LeaderElection {
    /// Returns the durations. Only their setters change them, because the margin follows.
    #[doc(hidden)]
    pub fn timing(&self) -> LeaseDurations {
        self.timing
    }

    /// Creates the settings of an election by the Lease called `name`, in the operator's own
    /// namespace.
    ///
    /// The name is that of the lock's object: at most 253 lower-case letters, digits, `-` and `.`.
    pub fn new(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            namespace: None,
            identity: None,
            lock: LockKind::default(),
            release: true,
            handover: HandoverPolicy::default(),
            fence: false,
            timing: LeaseDurations::default(),
            has_margin: false,
        }
    }

    /// Sets the namespace of the Lease. Default: `POD_NAMESPACE`, else the namespace of the client.
    #[must_use]
    pub fn namespace(mut self, namespace: impl Into<String>) -> Self {
        self.namespace = Some(namespace.into());
        self
    }

    /// Sets the name of this process in the Lease; no two processes may share a name. Default: the
    /// Pod's or machine's name and a random suffix.
    ///
    /// client-go's `ResourceLockConfig.Identity`. Two processes of the same identity take each
    /// other's record as their own and may both lead.
    #[must_use]
    pub fn identity(mut self, identity: impl Into<String>) -> Self {
        self.identity = Some(identity.into());
        self
    }

    /// Sets the kind of object that holds the record. Default: a Lease. The others are for taking
    /// an election over from an operator that still uses such a lock.
    ///
    /// `--leader-elect-resource-lock` of Kubernetes' components, with client-go's names of locks.
    #[must_use]
    pub fn resource_lock(mut self, lock: LockKind) -> Self {
        self.lock = lock;
        self
    }

    /// Sets whether the lock is given back when this process stops and the work has ended. Default:
    /// yes, so that another replica leads within seconds; otherwise that replica waits for the
    /// lease duration. client-go's `ReleaseOnCancel`, which is off by default in client-go.
    ///
    /// The lock is never given back while a write of this process may still be executed.
    #[must_use]
    pub fn release_on_cancel(mut self, release: bool) -> Self {
        self.release = release;
        self
    }

    /// Sets whether the manifests hold a policy by which the API server refuses writes of a Pod
    /// that does not hold the lease. Default: no.
    ///
    /// The policy covers two cases that the gate cannot: a process that was suspended for longer
    /// than the margin allows after the gate let its write out, and other programs in the Pod. It
    /// fences every write that the controllers' grants allow, except Leases and Events, and takes
    /// the Pod's name out of the request's token, so the [identity](Self::identity) must be that
    /// name, or begin with it and `_`, as the default does. Any other writer under the operator's
    /// service account that does not lead is refused, too. The policy needs Kubernetes 1.32 and a
    /// Lease as lock.
    #[must_use]
    pub fn fence(mut self, fence: bool) -> Self {
        self.fence = fence;
        self
    }

    /// Sets whether the lease is lent to a process that [requests it](Self::ask). Default: no. A
    /// leader that lends ends its work as at a clean stop, gives the lease back, and becomes a
    /// candidate that lets the requester lead first. For clusters in which people develop, not for
    /// production: every user that may update the Lease can make a leader stop.
    #[must_use]
    pub fn lend(mut self, lend: bool) -> Self {
        self.handover.lends = lend;
        self
    }

    /// Sets whether this process asks the holder for the lease. Default: no. The process writes a
    /// name into an annotation of the Lease ([`REQUEST_ANNOTATION`](super::REQUEST_ANNOTATION)) and
    /// waits like any candidate; a holder without [lending](Self::lend) never notices. The request
    /// is taken back when the campaign is stopped.
    ///
    /// For a process on a developer's machine beside an operator in the cluster. The lease is never
    /// taken by force. Only Leases have a place for the request.
    #[must_use]
    pub fn ask(mut self, ask: bool) -> Self {
        self.handover.asks = ask;
        self
    }

    /// Sets the time that others wait before they take over an unrenewed Lease; whole seconds,
    /// default 15 s.
    ///
    /// client-go's `LeaseDuration`; the default of Kubernetes' components. The time for which no
    /// replica works after the leader crashed.
    #[must_use]
    pub fn lease_duration(mut self, duration: Duration) -> Self {
        self.timing.lease_duration = duration;
        self.with_usual_margin()
    }

    /// Sets the time that a leader tries to renew before giving up; default 10 s.
    ///
    /// client-go's `RenewDeadline`; the default of Kubernetes' components. Counted from the last
    /// successful renewal.
    #[must_use]
    pub fn renew_deadline(mut self, duration: Duration) -> Self {
        self.timing.renew_deadline = duration;
        self.with_usual_margin()
    }

    /// Sets the time between two attempts, stretched by up to 20 %; default 2 s.
    ///
    /// client-go's `RetryPeriod`; the default of Kubernetes' components. A request in each period
    /// by the leader and by each candidate.
    #[must_use]
    pub fn retry_period(mut self, duration: Duration) -> Self {
        self.timing.retry_period = duration;
        self.with_usual_margin()
    }

    /// Sets the time before the end of the lease at which writes stop. Default: 2/15 of the lease
    /// duration, as far as the renew deadline and the retry period leave room, and at least 2 s.
    /// The margin is the amount that [clocks may differ](Self::clock_tolerance) by.
    ///
    /// client-go has no such setting: its leader may write until noticing the loss.
    #[must_use]
    pub fn margin(mut self, duration: Duration) -> Self {
        self.timing.margin = duration;
        self.has_margin = true;
        self
    }

    /// Recomputes the margin after a change of another duration, unless the margin was given.
    fn with_usual_margin(mut self) -> Self {
        if !self.has_margin {
            self.timing.margin = self.timing.usual_margin();
        }
        self
    }

    /// Returns the factor by which the rates of two clocks may differ before two replicas can write
    /// at the same time: lease duration / (lease duration - margin), 1.15 with the defaults. Pauses
    /// between the gate's answer and the arrival of a write reduce that tolerance.
    ///
    /// ```
    /// # extern crate windlass_runtime as windlass;
    /// use windlass::leader::LeaderElection;
    ///
    /// let tolerance = LeaderElection::new("site-operator").clock_tolerance();
    /// assert!((1.15..1.16).contains(&tolerance));
    /// ```
    pub fn clock_tolerance(&self) -> f64 {
        self.timing.lease_duration.as_secs_f64() / self.timing.validity().as_secs_f64()
    }

    /// Checks that the durations are safe together, and that an object can have the name.
    ///
    /// A manager and [`Elector::new`](super::Elector::new) call this check by themselves.
    ///
    /// # Errors
    /// [`ErrorKind::Config`] with the rule that is broken and the correction.
    pub fn check(&self) -> Result<(), Error> {
        if self.name.is_empty() || is_object_name(&self.name) {
            return self.check_but_name();
        }
        let text = format!(
            "leader election {:?}: no {} can have that name; take at most 253 lower-case letters, digits, \
             `-` and `.`, by `LeaderElection::new` or --leader-election-id",
            self.name,
            self.lock.as_str()
        );
        Err(Error::new(ErrorKind::Config, text))
    }

    /// Does the same as [`check`](Self::check) for a lock that need not be an object.
    pub(super) fn check_but_name(&self) -> Result<(), Error> {
        let problem = if self.name.is_empty() {
            Err("it has no name".to_owned())
        } else if self.handover.asks && self.handover.lends {
            let why = "it asks for the lease and lends it, and replicas would pass it on for ever; \
                       let the process on your machine ask and those in the cluster lend";
            Err(why.to_owned())
        } else if self.fence && self.lock != LockKind::Leases {
            Err("a fence reads a Lease, and the lock is another".to_owned())
        } else if let Some(pod) = self.fenced_off(std::env::var("POD_NAME").ok()) {
            Err(format!(
                "the fence lets the Pod {pod:?} write when the lease names it, or a name that begins with \
                 it and \"_\"; choose such an identity, or none"
            ))
        } else if (self.handover.asks || self.handover.lends) && self.lock != LockKind::Leases {
            Err(format!(
                "lease requests need a Lease lock, and the lock is {}; switch requests and \
                 lending off until the migration is over",
                self.lock.as_str()
            ))
        } else if self.handover.lends && !self.release {
            Err("it lends the lease and never gives it back; switch `release_on_cancel` on"
                .to_owned())
        } else {
            self.timing.check()
        };
        problem.map_err(|why| {
            let text = format!("leader election {:?} is not set up safely: {why}", self.name);
            Error::new(ErrorKind::Config, text)
        })
    }

    /// Returns the Pod whose writes the fence would refuse even while this process leads.
    pub(super) fn fenced_off(&self, pod: Option<String>) -> Option<String> {
        let identity = self.identity.as_deref().filter(|_| self.fence)?;
        pod.filter(|pod| {
            let rest = identity.strip_prefix(pod.as_str());
            !pod.is_empty() && !rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('_'))
        })
    }

    /// Returns the identity to use: the given identity, or an identity made from the name of this
    /// machine.
    pub(crate) fn identity_or_own(&self, rng: &Rng) -> String {
        self.identity
            .clone()
            .unwrap_or_else(|| format!("{}_{:08x}", own_name(), rng.next_u64() as u32))
    }
}

/// Whether `name` is a DNS subdomain (RFC 1123), which the API server demands of Leases.
fn is_object_name(name: &str) -> bool {
    let is_plain = |byte: &u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let is_part = |part: &str| {
        let bytes = part.as_bytes();
        bytes.first().is_some_and(is_plain)
            && bytes.last().is_some_and(is_plain)
            && bytes.iter().all(|byte| is_plain(byte) || *byte == b'-')
    };
    name.len() <= 253 && name.split('.').all(is_part)
}

/// Returns the name of this Pod or machine.
fn own_name() -> String {
    let from_environment = ["POD_NAME", "HOSTNAME"]
        .into_iter()
        .find_map(|key| std::env::var(key).ok().filter(|value| !value.is_empty()));
    from_environment
        .or_else(|| std::fs::read_to_string("/proc/sys/kernel/hostname").ok())
        .map(|name| name.trim().to_owned())
        .filter(|name| !name.is_empty())
        .unwrap_or_else(|| "operator".to_owned())
}
