//! The plan of an operator: its controllers reconcile all objects once, and write nothing.
//!
//! No server, no election, no runnable and no installation of a definition takes part. The caches
//! are filled as in a run; then one controller after the other plans the objects of its kind.

// DESIGN.md, 165: A plan is the real reconcile over a client that only makes dry runs

use std::collections::BTreeSet;
use std::fmt::Debug;
use std::sync::Arc;
use std::time::Duration;

use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

use super::{Manager, checks, install};
use crate::controller::{Cluster, ErasedController, PlanRun, PlannedObject, PlannedOutcome};
use windlass_cache::informer::InformerRegistry;
use windlass_client::client::WriteGate;
use windlass_core::error::{Error, ErrorKind};
use windlass_core::resource::{ObjectKey, ResourceInfo, Scope};

/// Time for the caches to end after the plan.
const GRACE: Duration = Duration::from_secs(1);

/// Extent and limits of a [plan](Manager::plan).
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct PlanOptions {
    /// Kind of the objects to plan, by name, plural, or `plural.group`; in any case. Default: the
    /// kinds of all controllers.
    pub kind: Option<String>,
    /// Objects of the kind, as `NAMESPACE/NAME`, or `NAME` for an object without a namespace.
    /// Default: all objects that the operator would reconcile at its start.
    pub objects: Vec<String>,
    /// Number of objects of a controller that are reconciled at once. Default: 1, which gives the
    /// same plan each time. Reconciles that run at once may see each other's dry runs in the
    /// caches.
    pub concurrency: usize,
    /// Longest time of a reconcile, unless the controller's is shorter. Default: 60 s.
    pub reconcile_timeout: Duration,
    /// Longest time until all caches are filled. Default: 60 s.
    pub sync_timeout: Duration,
}

impl Default for PlanOptions {
    fn default() -> Self {
        Self {
            kind: None,
            objects: Vec::new(),
            concurrency: 1,
            reconcile_timeout: Duration::from_secs(60),
            sync_timeout: Duration::from_secs(60),
        }
    }
}

/// The changes that an operator would make at the start; from [`Manager::plan`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Plan {
    /// Definitions that a run would install over stored definitions, by name.
    pub definitions: Vec<String>,
    /// Reconciled objects, by controller in the order of the manager, then by key.
    pub objects: Vec<PlannedObject>,
    /// Remarks for the reader, such as kinds that are not served, as sentences.
    pub notes: Vec<String>,
}

impl Plan {
    /// Whether a run would change anything.
    ///
    /// Definitions and calls of other systems count.
    pub fn has_changes(&self) -> bool {
        !self.definitions.is_empty() || self.objects.iter().any(PlannedObject::has_changes)
    }

    /// Whether the reconcile of an object has failed. The plan of this object may be incomplete.
    pub fn has_failures(&self) -> bool {
        self.objects.iter().any(|object| matches!(object.outcome, PlannedOutcome::Failed(_)))
    }
}

impl Manager {
    /// Reconciles each object once against the cluster with every write as a dry run, and returns
    /// the changes that a run would make. The API server checks and completes each write, with its
    /// admission, and stores none. Within a reconcile the caches show the answers, so that later
    /// steps see earlier steps; later reconciles do not see them.
    ///
    /// The manager must be built with
    /// [`Client::dry_run`](windlass_client::client::Client::dry_run), so that reconcilers that keep
    /// a client write nothing either. Another cluster needs such a client, too, because writes to
    /// that cluster are refused otherwise, and are not in the plan in either case. Leader election,
    /// runnables, triggers, tasks of objects, Events and servers play no part. Calls of systems
    /// outside of Kubernetes are made, unless the reconciler asks
    /// [`note_external_call`](crate::controller::note_external_call) first.
    ///
    /// Needs the rights of a run. The command line has this as `plan`.
    ///
    /// ```no_run
    /// # extern crate windlass_runtime as windlass;
    /// use windlass::manager::PlanOptions;
    /// use windlass::{client::Client, manager::Manager};
    ///
    /// # async fn example() -> Result<(), windlass::Error> {
    /// let client = Client::infer().await?.dry_run();
    /// let plan = Manager::new(client).plan(PlanOptions::default()).await?;
    /// for object in &plan.objects {
    ///     for change in &object.changes {
    ///         println!("{}: {change}", object.key);
    ///     }
    /// }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`ErrorKind::Usage`] for a client that writes, and for a kind that no controller reconciles;
    /// [`ErrorKind::Config`] for settings that cannot work, and for a reconciled kind that the
    /// cluster does not serve; [`ErrorKind::Timeout`] when the caches are not filled in time. A
    /// reconcile that fails is no error of the plan.
    /// # Cancel safety
    /// Dropping the future stops everything; nothing was written.
    pub async fn plan(self, options: PlanOptions) -> Result<Plan, Error> {
        checks::names(&self)?;
        checks::conditions(&self)?;
        checks::drivers(&self)?;
        if !self.client.is_dry_run() {
            let text = "cannot plan: the client of the manager writes; build the manager and its \
                        controllers with `client.dry_run()`";
            return Err(Error::new(ErrorKind::Usage, text));
        }
        // The handles may be used after the plan.
        let _refused: Vec<_> =
            writing(&self.clusters).map(|one| one.fence_for_now(NoWrites::to(one))).collect();
        let wanted = wanted(&self.controllers, &options)?;
        let mut plan = Plan::default();
        self.compare_definitions(&mut plan).await?;
        let informers = InformerRegistry::new(self.client.clone(), self.namespaces.clone());
        for (info, cache) in &self.caches {
            informers.set_options(info.clone(), cache.clone())?;
        }
        let drivers_at_work = Arc::default();
        for controller in &self.controllers {
            controller.share_drivers(&drivers_at_work);
            controller.attach(&informers)?;
        }
        let stop = CancellationToken::new();
        let registries = self.clusters.iter().map(|cluster| cluster.informers().clone());
        let registries: Vec<_> = std::iter::once(informers.clone()).chain(registries).collect();
        let runs = registries.iter().cloned().map(|one| {
            let stop = stop.clone();
            AbortOnDropHandle::new(tokio::spawn(async move { one.run(stop).await }))
        });
        let running: Vec<_> = runs.collect();
        for one in &registries {
            one.synced_within(options.sync_timeout).await?;
            note_absent(one, &self.controllers, &mut plan.notes)?;
        }
        for (controller, keys) in wanted {
            let run = PlanRun {
                client: self.client.clone(),
                informers: informers.clone(),
                keys,
                concurrency: options.concurrency,
                timeout: options.reconcile_timeout,
            };
            plan.objects.extend(controller.plan(run).await);
        }
        self.note_omissions(&mut plan);
        stop.cancel();
        let clock = &self.client.environment().clock;
        let ended = async {
            for one in running {
                // The outcome of a task that was asked to stop means nothing.
                let _ = one.await;
            }
        };
        clock.timeout(GRACE, ended).await;
        Ok(plan)
    }

    /// Compares the definitions of the operator with the stored definitions.
    async fn compare_definitions(&self, plan: &mut Plan) -> Result<(), Error> {
        for definition in &self.definitions {
            let own = definition
                .as_ref()
                .map_err(|error| Error::new(error.kind(), format!("cannot plan: {error}")))?;
            match install::planned(&self.client, own, self.force_install).await? {
                install::PlannedInstall::Same => {}
                install::PlannedInstall::Written(name) => plan.definitions.push(name),
                install::PlannedInstall::Remark(text) => plan.notes.push(text),
            }
        }
        Ok(())
    }

    /// Notes the parts of the operator that a plan leaves out.
    fn note_omissions(&self, plan: &mut Plan) {
        if !self.runnables.is_empty() {
            let names: Vec<&str> = self.runnables.iter().map(|one| one.name()).collect();
            plan.notes.push(format!("runnables are no part of a plan: {}", names.join(", ")));
        }
        if !self.clusters.is_empty() {
            let names: Vec<&str> = self.clusters.iter().map(|one| one.name()).collect();
            let text = "writes to other clusters are not made and not listed: ";
            plan.notes.push(format!("{text}{}", names.join(", ")));
        }
    }
}

/// A controller, and the objects of the plan; `None` for all.
type PlannedController = (Arc<dyn ErasedController>, Option<BTreeSet<ObjectKey>>);

/// Returns the controllers and objects that the options select.
fn wanted(
    controllers: &[Arc<dyn ErasedController>],
    options: &PlanOptions,
) -> Result<Vec<PlannedController>, Error> {
    let refuse = |text: String| Err(Error::new(ErrorKind::Usage, format!("cannot plan: {text}")));
    let Some(kind) = &options.kind else {
        if !options.objects.is_empty() {
            return refuse("the objects have no kind; name it first".to_owned());
        }
        return Ok(controllers.iter().map(|one| (Arc::clone(one), None)).collect());
    };
    let mut wanted = Vec::new();
    for controller in controllers {
        let Some(info) = controller.planned_kind().filter(|info| is_named(info, kind)) else {
            continue;
        };
        let keys: Result<BTreeSet<ObjectKey>, Error> =
            options.objects.iter().map(|text| object_key(info, text)).collect();
        wanted.push((Arc::clone(controller), Some(keys?).filter(|keys| !keys.is_empty())));
    }
    if wanted.is_empty() {
        let kinds = controllers.iter().filter_map(|one| one.planned_kind());
        let kinds: BTreeSet<&str> = kinds.map(|info| info.kind.as_ref()).collect();
        let kinds: Vec<&str> = kinds.into_iter().collect();
        return refuse(format!(
            "no controller reconciles the kind {kind:?}; there are: {}",
            kinds.join(", ")
        ));
    }
    Ok(wanted)
}

/// Whether `text` names the kind.
fn is_named(info: &ResourceInfo, text: &str) -> bool {
    let names = [info.kind.as_ref(), info.plural.as_ref(), &info.group_resource()];
    names.iter().any(|name| name.eq_ignore_ascii_case(text))
}

/// Returns the key of an object of that kind.
fn object_key(info: &ResourceInfo, text: &str) -> Result<ObjectKey, Error> {
    let form = match (info.scope, text.split_once('/')) {
        (Scope::Namespaced, Some((namespace, name)))
            if !namespace.is_empty() && !name.is_empty() =>
        {
            return Ok(ObjectKey::new(Some(namespace), name));
        }
        (Scope::Cluster, None) if !text.is_empty() => return Ok(ObjectKey::new(None, text)),
        (Scope::Namespaced, _) => "NAMESPACE/NAME",
        (Scope::Cluster, _) => "NAME, because its kind has no namespaces",
    };
    let text = format!("cannot plan: {text:?} is not a {}; write it as {form}", info.kind);
    Err(Error::new(ErrorKind::Usage, text))
}

/// Notes the kinds that the cluster does not serve.
///
/// # Errors
/// [`ErrorKind::Config`] when a controller reconciles such an object.
fn note_absent(
    informers: &InformerRegistry,
    controllers: &[Arc<dyn ErasedController>],
    notes: &mut Vec<String>,
) -> Result<(), Error> {
    for status in informers.status().into_iter().filter(|one| one.is_absent && !one.is_optional) {
        let reconciled = controllers.iter().filter_map(|one| one.planned_kind());
        if reconciled.into_iter().any(|info| *info == status.info) {
            let text = format!(
                "cannot plan: the cluster does not serve {}, which a controller reconciles; install \
                 its definition first, as `manifests` prints it",
                status.info.group_resource()
            );
            return Err(Error::new(ErrorKind::Config, text));
        }
        notes.push(format!("the cluster does not serve {}", status.info.group_resource()));
    }
    Ok(())
}

/// Refuses the writes to clusters whose clients are not for dry runs.
pub(super) fn refuse_writes(clusters: &[Cluster]) {
    for cluster in writing(clusters) {
        cluster.fence(Some(NoWrites::to(cluster)));
    }
}

/// Returns the clusters whose clients are not for dry runs.
fn writing(clusters: &[Cluster]) -> impl Iterator<Item = &Cluster> {
    clusters.iter().filter(|one| !one.client().is_dry_run())
}

/// Gate that refuses every write to a cluster whose client is not for dry runs.
#[derive(Debug)]
struct NoWrites {
    cluster: String,
}

impl NoWrites {
    /// Returns the gate of that cluster.
    fn to(cluster: &Cluster) -> Arc<dyn WriteGate> {
        Arc::new(Self { cluster: cluster.name().to_owned() })
    }
}

impl WriteGate for NoWrites {
    fn admit(&self) -> Result<Option<Duration>, Error> {
        let text = format!(
            "refused to write to cluster {}: only dry runs are sent here; make its `Cluster` of a client for dry \
             runs when the operator's own is one",
            self.cluster
        );
        Err(Error::new(ErrorKind::Usage, text))
    }
}
