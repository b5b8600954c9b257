//! Rolling changes of several children: a new revision reaches them one after the other.
//!
//! A [`Rollout`] is given the names of the children and the part of the object's spec from which
//! each child is made, its *state*. Each wanted state is a revision, kept in a `ControllerRevision`
//! that the object owns until it is no longer used and the [history](Rollout::history) is full; a
//! label of each child names the revision from which it was made. So every reconcile finds on the
//! objects how far the change is, also after a restart, and a child that is not updated yet is
//! still applied, from its own revision.
//!
//! The rules are those of `StatefulSet`s where these have one: children are updated from the last
//! to the first, those below the [partition](Rollout::partition) are left as they are, and children
//! that are not ready are updated first, because they serve no traffic. Beside them a
//! [canary](Rollout::canary) may pause the change, and a [deadline](Rollout::deadline) rolls it
//! back to the last revision in which all children were ready.
//!
//! | label or annotation | on | meaning |
//! |---|---|---|
//! | [`ROLLOUT`] | child, revision | name of the rollout |
//! | [`REVISION`] | child | name of its revision |
//! | [`REVISION_SINCE`] | child | time at which it got the revision |
//! | [`READY_AT`] | revision | time at which all children had it and were ready |
//! | [`CANARY_READY_AT`] | revision | time since which its canaries are ready |
//! | [`CANARY_PASSED_AT`] | revision | time at which the others could follow the canaries |
//! | [`UPDATED_READY_AT`] | revision | time at which all children that had it were ready |
//! | [`REFUSED_SINCE`] | revision | time since which the API server refuses a child in it |
//! | [`ROLLED_BACK`] | revision | the reason for which it was rolled back |
//! | [`PROMOTE`] | the object | names of the revisions whose canaries a person approves |
//!
//! Not provided: restarts of the children themselves, and traffic between revisions.

// DESIGN.md, 169: Revisions of bulk children are ControllerRevisions, and a decision without I/O

mod children;
mod decision;
mod revisions;
mod run;
mod settings;
#[cfg(test)]
mod tests;

pub use self::children::RolloutChildren;
pub(crate) use self::children::RolloutPass;
pub use self::settings::Canary;

use std::fmt::{self, Write as _};
use std::time::Duration;

use k8s_openapi::api::apps::v1::ControllerRevision;
use serde::Serialize;
use serde::de::DeserializeOwned;

use self::settings::{Settings, rollout_settings};
use crate::controller::{Action, Context, Reconciler, Result as ReconcileResult};
use windlass_core::error::Error;
use windlass_core::rbac::Owns;
use windlass_core::resource::FullObject;

/// Label of children and revisions with the name of the rollout.
pub const ROLLOUT: &str = "windlass.dev/rollout";
/// Label of a child with the name of its revision.
pub const REVISION: &str = "windlass.dev/revision";
/// Annotation of a child with the time at which it got its revision, in RFC 3339.
pub const REVISION_SINCE: &str = "windlass.dev/revision-since";
/// Annotation of a revision with the time at which all children had it and were ready.
pub const READY_AT: &str = "windlass.dev/ready-at";
/// Annotation of a revision with the time since which its canaries are ready.
pub const CANARY_READY_AT: &str = "windlass.dev/canary-ready-at";
/// Annotation of a revision with the time since which its canaries are passed, by their pause or by
/// an approval.
pub const CANARY_PASSED_AT: &str = "windlass.dev/canary-passed-at";
/// Annotation of a revision with the last time at which all children that had it were ready. The
/// deadline concerns children that got it later.
pub const UPDATED_READY_AT: &str = "windlass.dev/updated-ready-at";
/// Annotation of a revision with the time since which the API server refuses a child in it (422 or
/// 403, but for refusals that end without a change of the object: a write that came too late, a
/// namespace that is being deleted, a quota, an admission plugin that is not ready).
pub const REFUSED_SINCE: &str = "windlass.dev/refused-since";
/// Annotation of a revision with the reason for which it was rolled back. A person who removes it
/// lets the revision be tried again; a change of the state does as well.
pub const ROLLED_BACK: &str = "windlass.dev/rolled-back";
/// Annotation of the reconciled object with the name of the revision whose canary is approved;
/// several names are separated by commas.
pub const PROMOTE: &str = "windlass.dev/promote";

/// A rolling change of the children of one object, for one reconcile.
///
/// ```
/// # extern crate windlass_runtime as windlass;
/// # use std::time::Duration;
/// # use k8s_openapi::api::apps::v1::{ControllerRevision, StatefulSet};
/// # use k8s_openapi::api::core::v1::ConfigMap;
/// use windlass::prelude::*;
/// use windlass::rollout::{Canary, Rollout};
///
/// # struct Databases;
/// # impl windlass::rbac::Owns<StatefulSet> for Databases {}
/// # impl windlass::rbac::Owns<ControllerRevision> for Databases {}
/// # fn shard(name: &str, image: &String) -> StatefulSet { StatefulSet::default() }
/// # fn is_ready(set: &StatefulSet) -> bool { true }
/// impl Reconciler for Databases {
///     type Object = ConfigMap;
///
///     async fn reconcile(&self, database: &ConfigMap, cx: &Context<Self>) -> Result {
///         let shards: Vec<String> = (0..5).map(|n| format!("{}-{n}", database.name())).collect();
///         let image = "db:17".to_owned();
///         let status = Rollout::new(cx, "shards", image)
///             .max_unavailable(1)
///             .canary(Canary::pause_for(1, Duration::from_secs(600)))
///             .deadline(Duration::from_secs(1800))
///             .apply(&shards, shard, is_ready)
///             .await?;
///         status.action()
///     }
/// }
/// ```
#[must_use = "nothing is applied until `apply` is awaited"]
pub struct Rollout<'a, C: Reconciler, S> {
    cx: &'a Context<C>,
    name: &'a str,
    state: S,
    settings: Settings,
    /// Whether the children are a field of a graph, which labels and deletes them.
    is_field: bool,
}

impl<C: Reconciler, S> fmt::Debug for Rollout<'_, C, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, settings, .. } = self;
        f.debug_struct("Rollout")
            .field("name", name)
            .field("settings", settings)
            .finish_non_exhaustive()
    }
}

impl<'a, C: Reconciler, S> Rollout<'a, C, S> {
    /// Creates a rollout. `name` tells several rollouts of one object apart and is the value of a
    /// label: at most 63 letters, digits, `-`, `_` and `.`. `state` is the part of the spec from
    /// which children are made.
    ///
    /// A change of anything that is no part of `state` reaches all children at once.
    pub fn new(cx: &'a Context<C>, name: &'a str, state: S) -> Self {
        Self { cx, name, state, settings: Settings::default(), is_field: false }
    }

    rollout_settings!();

    /// Applies the children `names`, as far as the rules permit it now. `desired` makes a child
    /// from its name and a state; `is_ready` judges a child of the cache. Children of this rollout
    /// whose names are not among `names` are deleted.
    ///
    /// Costs no request when nothing changes. Reconcile again when children change (`owns(…)`) and
    /// as [`RolloutStatus::action`] says.
    ///
    /// The object must be namespaced; its children are in its namespace. A revision whose state
    /// does not decode any more, written by an older version of the operator, is no target of a
    /// rollback, and its children are left as they are.
    ///
    /// `is_ready` is asked after the rules that all kinds share: a child that is being deleted, or
    /// whose controller has not observed its generation, is not ready.
    ///
    /// Revisions are trusted as children are: the right to create a `ControllerRevision` that the
    /// object controls is the right to choose a state from which children are made.
    ///
    /// # Errors
    /// Those of [`Context::apply_owned`] and [`Context::delete_owned`]: the first one is returned
    /// after the other children are applied. [`ErrorKind::Usage`](windlass_core::ErrorKind::Usage)
    /// when a name occurs twice, the object is cluster-scoped, or the state cannot be turned into
    /// JSON.
    /// # Cancel safety
    /// Dropping it cancels the request under way. A repetition continues.
    pub async fn apply<K>(
        self,
        names: &[String],
        desired: impl Fn(&str, &S) -> K + Send + Sync,
        is_ready: impl Fn(&K) -> bool + Send + Sync,
    ) -> Result<RolloutStatus, Error>
    where
        K: FullObject,
        C: Owns<K> + Owns<ControllerRevision>,
        S: Serialize + DeserializeOwned + Send + Sync,
    {
        run::RolloutRun::new(self, names)?.apply(&desired, &is_ready).await
    }
}

/// State of a rolling change after [`Rollout::apply`].
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct RolloutStatus {
    /// Name of the revision that children get: the newest, or the one of a rollback.
    pub revision: String,
    /// Number of children that the description wants.
    pub total: usize,
    /// Number of children that have the revision.
    pub updated: usize,
    /// Number of children that are ready, in any revision.
    pub ready: usize,
    /// Phase of the rolling change, with the reason if it does not go on.
    pub phase: RolloutPhase,
    /// Time until the [deadline](Rollout::deadline) of a child that is not ready.
    pub(crate) deadline_in: Option<Duration>,
    /// The value of [`PROMOTE`], if a canary waits and the value does not name its revision.
    pub(crate) not_promoted: Option<String>,
}

/// State of a rolling change.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum RolloutPhase {
    /// All children have the revision and are ready.
    Complete,
    /// Children are being updated or are not ready yet.
    Progressing,
    /// All children at and above the partition have the revision and are ready.
    Partitioned,
    /// The canaries are ready; the others follow after this time, or when a person approves
    /// (`None`).
    Paused(Option<Duration>),
    /// The newest revision was rolled back, for this reason, and all children have the
    /// last good one: the last in which all of them were ready.
    RolledBack(String),
    /// A child was not ready in time, for this reason, and there is no revision to roll back to.
    Stalled(String),
}

impl RolloutStatus {
    /// Whether all children have the newest state and are ready.
    pub fn is_complete(&self) -> bool {
        self.phase == RolloutPhase::Complete
    }

    /// The result of a reconcile that does nothing else: done, or a wait that says how far the
    /// change is.
    ///
    /// While the wanted revision is rolled back, or stalled, it is a wait too, with the reason
    /// `RolledBack` or `RolloutStalled`: the spec is not carried out, and declared conditions show
    /// `Stalled` in place of `Reconciling`, but no reconcile has failed. It ends with another
    /// state, or when the children get ready.
    ///
    /// # Errors
    /// None: the type is that of a reconcile.
    pub fn action(&self) -> ReconcileResult {
        Ok(match &self.phase {
            RolloutPhase::Complete | RolloutPhase::Partitioned => Action::done(),
            RolloutPhase::Progressing => self.checked(Action::wait_for("RollingOut", self.text())),
            RolloutPhase::Paused(_) => self.checked(Action::wait_for("CanaryPaused", self.text())),
            RolloutPhase::RolledBack(reason) => Action::stalled("RolledBack", reason.clone()),
            RolloutPhase::Stalled(reason) => Action::stalled("RolloutStalled", reason.clone()),
        })
    }

    /// Returns the time after which the change goes on, or is rolled back, without a change of
    /// anything.
    pub(crate) fn check_after(&self) -> Option<Duration> {
        let pause = match self.phase {
            RolloutPhase::Paused(rest) => rest,
            _ => None,
        };
        // At least a second: a clock that was set back must not make a loop.
        let deadline = self.deadline_in.map(|rest| rest.max(Duration::from_secs(1)));
        pause.into_iter().chain(deadline).min()
    }

    fn checked(&self, wait: Action) -> Action {
        match self.check_after() {
            Some(delay) => wait.check_after(delay),
            None => wait,
        }
    }

    /// Returns the progress of the change, for people.
    pub(crate) fn text(&self) -> String {
        let Self { updated, ready, total, revision, .. } = self;
        let counts = format!("{updated} of {total} updated, {ready} ready");
        let RolloutPhase::Paused(pause) = &self.phase else { return counts };
        let when = if pause.is_some() { " before the pause is over" } else { "" };
        let mut text = format!(
            "{counts}; the canary is ready, and the others wait; to go on{when}: annotation {PROMOTE}={revision}"
        );
        if let Some(value) = &self.not_promoted {
            let _ = write!(text, " (its value {value:?} does not name this revision)");
        }
        text
    }
}
