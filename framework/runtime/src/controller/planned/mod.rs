//! The writes that reconciles would make: recorded from dry runs and compared with the stored
//! objects.
//!
//! Every request of a reconcile in a plan is a dry run of the client (`Client::dry_run`), which
//! passes its answers to a `DryRunRecord`: so requests that bypass the context are recorded, too,
//! if they are sent by the context's client. Requests of a client that the reconciler keeps are dry
//! runs without a record, because nothing says for which object they are sent. The state before is
//! read after the reconcile, because nothing was stored meanwhile.
//!
//! Not included: the decision which objects are reconciled (`run/planning.rs`), and the
//! presentation.

// DESIGN.md, 251: Plans compare values by hashes of the whole
// DESIGN.md, 165: A plan is the real reconcile over a client that only makes dry runs

mod compare;
mod record;

pub(super) use self::record::DryRunRecord;

use std::fmt;
use std::time::Duration;

use serde_json::Value;

use crate::controller::state::{FieldChange, every_difference, hash, is_confidential};
use crate::events::{EventKind, Occurrence};
use windlass_core::resource::ObjectKey;

/// The reconcile of an object in a [plan](crate::manager::Manager::plan), and the changes.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct PlannedObject {
    /// Name of the controller, as in metrics and logs.
    pub controller: String,
    /// Kind of the reconciled object, such as `Website`.
    pub kind: String,
    /// Namespace and name of the reconciled object.
    pub key: ObjectKey,
    /// End of the reconcile. Changes before a failure are in the plan, too.
    pub outcome: PlannedOutcome,
    /// Changes of objects in the cluster, in the order of their first writes; a single change for
    /// each object.
    pub changes: Vec<PlannedChange>,
    /// Calls of other systems that a run would make, in their order.
    pub external_calls: Vec<String>,
    /// Delay of the next reconcile that a success asks for.
    pub requeue_after: Option<Duration>,
    /// Events that a run would write, in their order.
    pub events: Vec<PlannedEvent>,
    /// Reads of other objects, once each: `get secrets shop/tls` and `list pods shop` by requests,
    /// `watch secrets shop/tls` for a [registered](crate::controller::Context::watch) one. Reads of
    /// caches that are not registered are not listed.
    pub reads: Vec<String>,
}

impl PlannedObject {
    /// Whether a run would change anything for the object.
    pub fn has_changes(&self) -> bool {
        !self.changes.is_empty() || !self.external_calls.is_empty()
    }
}

/// An Event about the reconciled object that a run would write.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct PlannedEvent {
    /// Severity: `Normal` or `Warning`.
    pub kind: EventKind,
    /// Reason in one word, for programs: `Created`.
    pub reason: String,
    /// Text for people. The API server takes at most 1 KiB of it.
    pub note: String,
}

impl PlannedEvent {
    /// Returns the Event that a run would write about an occurrence.
    pub(crate) fn of(Occurrence { kind, reason, note, .. }: Occurrence) -> Self {
        Self { kind, reason, note }
    }
}

impl fmt::Display for PlannedEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}: {}", self.kind.as_str(), self.reason, self.note)
    }
}

/// End of a reconcile in a plan.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum PlannedOutcome {
    /// The reconcile succeeded.
    Reconciled,
    /// The reconcile waits, for the reason in the text. No failure.
    Waiting(String),
    /// The object is not reconciled, because an annotation pauses the object.
    Paused,
    /// The object was named, and is not reconciled, because the controller's predicate leaves the
    /// object out.
    NotSelected,
    /// The reconcile failed, with the text of the error.
    Failed(String),
}

/// The effect of a planned change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum PlannedAction {
    /// The object does not exist and is created.
    Create,
    /// The object is changed.
    Update,
    /// The object is deleted, or marked for deletion.
    Delete,
    /// A subresource is called whose effect cannot be compared, such as an eviction.
    Call,
}

impl PlannedAction {
    /// Returns the action in small letters.
    ///
    /// As in the JSON of the command line: `create`, `update`, `delete`, `call`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Create => "create",
            Self::Update => "update",
            Self::Delete => "delete",
            Self::Call => "call",
        }
    }
}

/// A change of an object that a run would make.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct PlannedChange {
    /// The effect on the object.
    pub action: PlannedAction,
    /// Plural name and group, with the subresource behind a slash: `deployments.apps`.
    pub resource: String,
    /// The object; the name ends with `*` where the API server would generate the rest.
    pub key: ObjectKey,
    /// Differences by path; of a created object all fields that the operator sets, of a deleted
    /// object none. Values of Secrets and of `ControllerRevision`s are masked.
    pub fields: Vec<PlannedField>,
    /// Number of further differences, beyond 512.
    pub more_fields: usize,
    /// The further differences: paths and hashes, without values.
    #[doc(hidden)]
    pub more: Vec<PlannedField>,
    /// Whether an object that is created names the reconciled one among its owners.
    pub is_owned: bool,
    /// A remark: the reason for which the state before is not known, or that the updated object is
    /// being deleted.
    pub note: Option<String>,
}

/// A difference at a path.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct PlannedField {
    /// Path with a point in front: `.spec.containers[name=web].image`.
    pub path: String,
    /// Value before as JSON of at most 1 KiB; `None` for none.
    pub from: Option<String>,
    /// Value after as JSON of at most 1 KiB; `None` when the field is removed.
    pub to: Option<String>,
    /// Hash of the whole value after, for comparisons within one process: `to` may be its
    /// beginning.
    #[doc(hidden)]
    pub hash: u64,
}

impl PlannedChange {
    /// Returns all differences, those beyond 512 without values.
    #[doc(hidden)]
    pub fn all_fields(&self) -> impl Iterator<Item = &PlannedField> {
        self.fields.iter().chain(&self.more)
    }
}

impl PlannedField {
    /// Returns the fields of an object of that group and plural name, in the form of
    /// [`PlannedChange::all_fields`], each as its `to`.
    #[doc(hidden)]
    pub fn all_of(object: &Value, group: &str, plural: &str) -> Vec<Self> {
        let is_masked = is_confidential(group, plural);
        every_difference(is_masked, None, object).into_iter().map(Self::from).collect()
    }

    /// Removes the texts of the values; `to` still says whether there is a value after.
    fn without_texts(self) -> Self {
        Self { from: None, to: self.to.map(|_| String::new()), ..self }
    }

    /// Returns the hash of a value from its JSON.
    #[doc(hidden)]
    pub fn hash_of(text: &str) -> u64 {
        hash(text)
    }
}

impl From<FieldChange> for PlannedField {
    fn from(FieldChange { path, from, to, hash }: FieldChange) -> Self {
        Self { path, from, to, hash }
    }
}

impl fmt::Display for PlannedChange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} {}", self.action.as_str(), self.resource, self.key)
    }
}
