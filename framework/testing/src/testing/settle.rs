//! The settled state of an operator: waits until the operator has nothing left to do.
//!
//! Invariant: an operator counts as settled only if controllers were idle before and after the
//! comparison of the caches, and did not work in between. A single check would miss a key that a
//! late event adds during the comparison.

// DESIGN.md, 5: `settled()` compares cached keys and versions with the API server

use std::collections::BTreeMap;
use std::ops::Deref;
use std::sync::Arc;
use std::time::Duration;

use super::activity::{Activity, CoverageReport};
use super::grants::{AllowedRule, GrantReport};
use windlass_cache::informer::CacheView;
use windlass_client::client::Client;
use windlass_core::error::{Error, ErrorKind};
use windlass_core::rbac::Rule;
use windlass_core::resource::{ObjectKey, ResourceExt};
use windlass_runtime::controller::ErasedController;
use windlass_runtime::manager::{Exit, Running};

/// Default time to settle: long enough for some retries with backoff; simulated time costs nothing.
///
/// Time by the cluster's clock.
const DEADLINE: Duration = Duration::from_secs(60);
/// Time between two checks.
///
/// Short beside the time that a reconcile against the embedded server needs, long enough that the
/// lists of a comparison do not keep a real server busy.
const PAUSE: Duration = Duration::from_millis(20);
/// Time after which a throttled operator that does not loop has finished its work.
///
/// The report of an endless loop needs more than 50 reconciles within a minute; a burst that has
/// reached this number is over by then.
const ENDLESS: Duration = Duration::from_secs(5);
/// Time that the end of a test waits for the operator to become quiet.
///
/// A test that ended in order is not delayed: the wait is over at the first quiet moment.
const LAST_LOOK: Duration = Duration::from_secs(2);
/// Time without work after which the operator counts as quiet.
const QUIET: Duration = Duration::from_millis(50);

/// An operator that runs inside a test. Dropping this value ends the operator at once, as a crash
/// would, and fails the test when the operator reconciles an object without end;
/// [`stop_anyway`](Self::stop_anyway) does not.
#[derive(Debug)]
pub struct RunningOperator {
    /// The operator.
    running: Running,
    /// Controllers that are checked for endless reconciles when this is dropped.
    ///
    /// A separate field, since [`stop`](Self::stop) moves `running` out and must disarm the check.
    watched: EndlessReconcileGuard,
    /// Rights of the operator, and their use.
    access: OperatorAccess,
}

/// Rights of an operator, and their use.
#[derive(Debug)]
pub(super) struct OperatorAccess {
    /// The operator's client.
    pub(super) client: Client,
    /// The administrator's client: comparisons of caches must not count as requests of the
    /// operator.
    pub(super) admin: Client,
    /// The operator's requests and reconciles so far.
    pub(super) activity: Arc<Activity>,
    /// Grants of `can(…)`.
    pub(super) grants: Vec<(String, Rule)>,
    /// Rules of the printed roles.
    pub(super) rules: Vec<AllowedRule>,
}

impl Drop for OperatorAccess {
    fn drop(&mut self) {
        self.activity.coverage().keep();
        let timeline = self.activity.timeline();
        // An assertion has failed: it may be about one of these.
        if std::thread::panicking() && !timeline.is_empty() {
            eprintln!("the operator's last writes:\n{timeline}");
        }
    }
}

/// Fails the test whose operator reconciles without end when it is dropped.
#[derive(Debug)]
struct EndlessReconcileGuard {
    /// Controllers of the operator; empty once a report was made or is not wanted.
    controllers: Vec<Arc<dyn ErasedController>>,
}

impl EndlessReconcileGuard {
    /// Returns the objects that are reconciled without end, a sentence each.
    fn endless(&self) -> Vec<String> {
        prefixed(self.controllers.iter().map(|one| (one.name(), one.busy_report().endless)))
    }
}

impl Drop for EndlessReconcileGuard {
    fn drop(&mut self) {
        // A second panic would abort the process and hide the first.
        if std::thread::panicking() {
            return;
        }
        let endless = self.endless();
        assert!(
            endless.is_empty(),
            "the operator reconciles without end:\n  {}",
            endless.join("\n  ")
        );
    }
}

/// Prefixes each sentence with the controller's name.
///
/// Input: names of controllers, each with sentences.
fn prefixed<N: AsRef<str>>(sentences: impl Iterator<Item = (N, Vec<String>)>) -> Vec<String> {
    let one = |name: &N, text: &str| format!("controller {:?}: {text}", name.as_ref());
    sentences
        .flat_map(|(name, texts)| texts.iter().map(|text| one(&name, text)).collect::<Vec<_>>())
        .collect()
}

impl Deref for RunningOperator {
    type Target = Running;

    fn deref(&self) -> &Running {
        &self.running
    }
}

impl RunningOperator {
    /// Wraps an operator that was started; the controllers are watched from now on.
    pub(super) fn new(running: Running, access: OperatorAccess) -> Self {
        let watched = EndlessReconcileGuard { controllers: running.controllers() };
        Self { running, watched, access }
    }

    /// Returns the grants of `can(…)` that no request of the operator has used so far, and the
    /// rights that a request needed in vain; for an operator with more rights than printed, the
    /// rights that the printed roles lack. Requests by `cx.client()` and `cx.api()` count as all
    /// others.
    ///
    /// ```no_run
    /// # extern crate windlass_testing as windlass;
    /// # use windlass::{manager::Manager, testing::TestCluster};
    /// # async fn example(cluster: TestCluster, manager: Manager) {
    /// let operator = cluster.spawn(manager);
    /// // Objects are created and changed here.
    /// operator.settled().await;
    /// let report = operator.grant_report();
    /// assert!(report.is_tight(), "{report}");
    /// # }
    /// ```
    pub fn grant_report(&self) -> GrantReport {
        self.access.activity.record.report(&self.access.grants, &self.access.rules)
    }

    /// Returns the ends and reasons of the operator's reconciles so far, and the conditions and
    /// Events that it wrote.
    pub fn coverage(&self) -> CoverageReport {
        self.access.activity.coverage()
    }

    /// Returns the operator's last 256 writes, a line each: the time since its start, the write,
    /// and the reconcile that made it with its reasons. Events and leases are left out.
    ///
    /// A test that panics while the operator runs prints it.
    pub fn timeline(&self) -> String {
        self.access.activity.timeline()
    }

    /// Waits until no key is queued, in work or in failure backoff, and every cache shows the
    /// server's objects, key by key. A requeue after a success is not waited for, nor is a kind
    /// that only reconciles read ([`Context::watch`]) and that the API server does not serve:
    /// [`readiness`](Running::readiness) names it.
    ///
    /// Under the paused clock, retries with backoff take no real time.
    ///
    /// [`Context::watch`]: windlass_runtime::controller::Context::watch
    ///
    /// # Panics
    /// When the operator has not settled after 60 s, or the operator ends; the text names the work
    /// that is left, and the reason for which each object was reconciled. Earlier when an object is
    /// reconciled without end: more than 50 times within a minute though no client changes its
    /// spec.
    /// # Cancel safety
    /// Safe: the operator goes on.
    pub async fn settled(&self) {
        if let Err(error) = self.try_settled(DEADLINE).await {
            panic!("{error}");
        }
    }

    /// Does the same as [`settled`](Self::settled), within `deadline`.
    ///
    /// A `deadline` is of the cluster's clock. An operator that ended is [`ErrorKind::Other`].
    ///
    /// # Errors
    /// [`ErrorKind::Timeout`] with the work that is left, also when an object is reconciled without
    /// end.
    /// # Cancel safety
    /// Safe: the operator goes on.
    pub async fn try_settled(&self, deadline: Duration) -> Result<(), Error> {
        let clock = self.running.client().environment().clock.clone();
        let mut left = Vec::new();
        let began = clock.now();
        let wait = async {
            let mut endless_since = None;
            loop {
                left = self.left_to_do().await;
                if left.is_empty() || !self.running.is_running() {
                    return true;
                }
                // Only a loop that lasts counts: a burst is throttled and ends.
                if self.endless().is_empty() {
                    endless_since = None;
                } else if clock.now() - *endless_since.get_or_insert(clock.now()) >= ENDLESS {
                    return false;
                }
                clock.sleep(PAUSE).await;
            }
        };
        let in_time = clock.timeout(deadline, wait).await.unwrap_or(false);
        let waited = clock.now() - began;
        // Before the outcome: an operator that ended has nothing left to do, and is not settled for
        // that.
        if !self.running.is_running() {
            return Err(Error::new(ErrorKind::Other, "the operator has ended; join it to see why"));
        }
        if in_time {
            return Ok(());
        }
        // Only in the error: the reasons of each object's reconciles are long.
        left.extend(self.busy_report());
        left.extend(self.kinds_waited_for());
        let what =
            if self.endless().is_empty() { "is not settled" } else { "reconciles without end" };
        let text = format!(
            "the operator {what} after {} s; left to do:\n  {}",
            waited.as_secs(),
            left.join("\n  ")
        );
        Err(Error::new(ErrorKind::Timeout, text))
    }

    /// Asks the operator to stop and waits until it has.
    ///
    /// Leases are released and work under way is completed, as at the end of a Pod.
    ///
    /// # Panics
    /// When the operator ended with an error, and when the operator reconciles an object without
    /// end: see [`settled`](Self::settled). To detect that, the call waits up to 2 s until no work
    /// is done.
    pub async fn stop(self) -> Exit {
        self.stop_if_quiet(true).await
    }

    /// Does the same as [`stop`](Self::stop), also when the operator reconciles without end.
    ///
    /// For tests of such loops.
    ///
    /// # Panics
    /// When the operator ended with an error.
    pub async fn stop_anyway(self) -> Exit {
        self.stop_if_quiet(false).await
    }

    /// Stops the operator; first waits for quiet, if an endless loop is to be reported.
    async fn stop_if_quiet(self, must_be_quiet: bool) -> Exit {
        if must_be_quiet && self.running.is_running() && !self.is_quiet().await {
            let endless = self.endless();
            assert!(
                endless.is_empty(),
                "the operator reconciles without end:\n  {}",
                endless.join("\n  ")
            );
        }
        let Self { running, mut watched, .. } = self;
        // A complaint was raised above, or is not wanted: the drop must not raise the complaint
        // again.
        watched.controllers.clear();
        running.stop();
        match running.join().await {
            Ok(exit) => exit,
            Err(error) => panic!("the operator ended with an error: {error:?}"),
        }
    }

    /// Whether, within some time, a moment passes without work.
    ///
    /// A requeue after a success does not count as work until due.
    async fn is_quiet(&self) -> bool {
        let clock = self.running.client().environment().clock.clone();
        let quiet = async {
            loop {
                let before = self.running.states();
                clock.sleep(QUIET).await;
                // Equal counts: no reconcile began and ended between the two checks.
                if self.busy().is_empty() && self.running.states() == before {
                    return;
                }
            }
        };
        clock.timeout(LAST_LOOK, quiet).await.is_some()
    }

    /// Returns the objects that are reconciled without end, a sentence each.
    fn endless(&self) -> Vec<String> {
        self.watched.endless()
    }

    /// Returns the reasons why controllers do not come to rest, a sentence each.
    fn busy_report(&self) -> Vec<String> {
        prefixed(
            self.running
                .busy_report()
                .into_iter()
                .map(|(name, busy_report)| (name, busy_report.now)),
        )
    }

    /// Returns the kinds that are not served and that reconciles have read, a sentence each.
    fn kinds_waited_for(&self) -> Vec<String> {
        let caches = self.running.caches().into_iter();
        let statuses = caches.flat_map(|(_, informers)| informers.status());
        let absent = statuses.filter(|status| status.is_absent && status.tolerates_absence);
        absent
            .map(|status| {
                let (name, state) = (status.name, status.state);
                format!("not waited for: cache {name}, which is only read: {state}")
            })
            .collect()
    }

    /// Returns the reasons why the operator is not settled. Controllers are asked before and after
    /// the caches were compared, so that work which began meanwhile is seen.
    ///
    /// Empty exactly when the operator is settled. The order is that of the module's invariant:
    /// readiness, work, caches, work again, number of reconciles.
    async fn left_to_do(&self) -> Vec<String> {
        let readiness = self.running.readiness();
        let mut left: Vec<String> = readiness
            .checks
            .into_iter()
            .filter(|check| !check.ok)
            .map(|check| format!("{}: {}", check.name, check.detail))
            .collect();
        if !left.is_empty() {
            // A cache that is not synced differs in any case.
            return left;
        }
        let before = self.running.states();
        left.extend(self.busy());
        if left.is_empty() {
            for (client, informers) in self.running.caches() {
                let is_own = client.is_same(&self.access.client);
                let client = if is_own { &self.access.admin } else { client };
                for view in informers.views() {
                    if !view.is_delivered {
                        left.push(format!(
                            "{}: listeners are being notified of a change",
                            view.info
                        ));
                    }
                    left.extend(differences(client, &view).await);
                }
            }
        }
        if left.is_empty() {
            left.extend(self.busy());
        }
        // Work that began and ended during the comparison: the caches may have been compared too
        // early.
        if left.is_empty() && self.running.states() != before {
            // Not a fault alone: the caller checks again.
            left.push("a controller worked meanwhile".to_owned());
        }
        left
    }

    /// Returns the controllers that have work, a sentence each.
    ///
    /// Keys that wait for a periodic requeue are not counted: they are no sign of unfinished work.
    fn busy(&self) -> Vec<String> {
        self.running
            .states()
            .into_iter()
            .filter(|(_, state)| state.queued + state.working + state.backing_off > 0)
            .map(|(name, state)| {
                format!(
                    "controller {name:?}: {} queued, {} in work, {} waiting for a retry or held back, {} done",
                    state.queued, state.working, state.backing_off, state.reconciles
                )
            })
            .collect()
    }
}

/// Returns the differences between a cache and the objects that the server of `client` stores.
///
/// Keys and versions are compared, not contents: a version has a single content. Lists use the
/// labels and fields of the cache, so that objects outside of the selection do not count as
/// missing.
pub(super) async fn differences(client: &Client, view: &CacheView) -> Vec<String> {
    let mut cached: BTreeMap<&ObjectKey, &str> =
        view.versions.iter().map(|(key, version)| (key, version.as_str())).collect();
    let cluster = view.versions.keys().next().map(ObjectKey::cluster).unwrap_or_default();
    let mut left = Vec::new();
    for namespace in &view.namespaces {
        let api = client.dynamic(view.info.clone(), namespace.as_deref());
        // The server's list is read after the cache's versions were: an event that arrives in
        // between shows as a difference, which the next check resolves.
        let mut list = api.list();
        if let Some(labels) = &view.labels {
            list = list.labels(labels);
        }
        if let Some(fields) = &view.fields {
            list = list.fields(fields);
        }
        let items = match list.await {
            Ok(list) => list.items,
            // A kind that is not served has no objects.
            Err(error) if error.is_not_found() => Vec::new(),
            // An unreachable server settles no operator: the error is the reason that is reported.
            Err(error) => return vec![format!("cache {}: {error}", view.info)],
        };
        for object in &items {
            let (key, stored) = (object.key().in_cluster(cluster), object.resource_version());
            match cached.remove(&key) {
                Some(version) if version == stored => {}
                Some(version) => left.push(format!(
                    "cache {}: {key} is at {version}, the server at {stored}",
                    view.info
                )),
                None => left.push(format!("cache {}: {key} has not arrived", view.info)),
            }
        }
    }
    let gone = |key: &&ObjectKey| format!("cache {}: {key} is gone on the server", view.info);
    // The rest is in the cache only: a deletion whose event has not arrived.
    left.extend(cached.keys().map(gone));
    left
}
