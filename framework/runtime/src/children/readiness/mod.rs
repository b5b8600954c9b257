//! Readiness of objects, by the rules of kstatus, which Flux, Argo CD and kpt go by.
//!
//! First come the properties that all kinds share: deletion, an unobserved generation, the
//! conditions `Reconciling` and `Stalled`. Then the rules of a built-in kind, or the condition
//! `Ready` of any other kind. An object that shows none of them is ready, as kstatus has it.

// DESIGN.md, 159: Readiness follows kstatus, as typed rules

mod builtin;
mod generic;

use std::any::Any;
use std::borrow::Cow;
use std::fmt;

use jiff::Timestamp;

use windlass_core::resource::{Resource, ResourceExt};

/// Readiness of an object: kstatus' statuses `Current`, `InProgress`, `Failed` and `Terminating`.
///
/// ```
/// # extern crate windlass_runtime as windlass;
/// use jiff::Timestamp;
/// use k8s_openapi::api::apps::v1::Deployment;
/// use windlass::dependents::Readiness;
///
/// let web: Deployment = serde_json::from_value(serde_json::json!({
///     "metadata": { "name": "web", "generation": 2 },
///     "spec": { "replicas": 3, "selector": {}, "template": {} },
///     "status": { "observedGeneration": 2, "replicas": 3, "updatedReplicas": 1 },
/// }))?;
/// let found = Readiness::of(&web, Timestamp::UNIX_EPOCH);
/// assert_eq!(found.to_string(), "Updated: 1/3");
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Readiness {
    /// As its spec says: kstatus' `Current`.
    Ready,
    /// On its way to the state that its spec says.
    InProgress {
        /// One word in `CamelCase`.
        reason: Cow<'static, str>,
        /// A text for people.
        message: String,
    },
    /// Not on its way any more: it needs help.
    Failed {
        /// One word in `CamelCase`.
        reason: Cow<'static, str>,
        /// A text for people.
        message: String,
    },
    /// Marked for deletion.
    Terminating,
}

impl Readiness {
    /// Returns the readiness of an object of any kind. `now` is for Pods that find no node: they
    /// are in progress for 15 s after their creation, and have then failed.
    ///
    /// Costs comparisons for Deployments, `StatefulSet`s, `DaemonSet`s, `ReplicaSet`s, Jobs, Pods,
    /// volume claims, Services, disruption budgets and definitions, and for kinds without a status.
    /// An object of another kind is converted to JSON.
    pub fn of<K: Resource>(object: &K, now: Timestamp) -> Self {
        Self::judged(object, now, None)
    }

    /// As [`of`](Self::of), with a rule in the place of that of the kind: the properties that all
    /// kinds share come first.
    pub(crate) fn judged<K: Resource>(
        object: &K,
        now: Timestamp,
        rule: Option<fn(&K) -> Self>,
    ) -> Self {
        if object.is_terminating() {
            return Self::Terminating;
        }
        let own = |default: &dyn Fn() -> Self| rule.map_or_else(default, |rule| rule(object));
        let generation = object.metadata().generation;
        let any: &dyn Any = object;
        if builtin::has_no_status(any) {
            return own(&|| Self::Ready);
        }
        if let Some(built_in) = builtin::of(any) {
            let common = generic::common(generation, &built_in.shared());
            return common.unwrap_or_else(|| own(&|| built_in.rule(now)));
        }
        let Ok(value) = serde_json::to_value(object) else { return own(&|| Self::Ready) };
        // A built-in kind as a value, or a part of one.
        if let Some(built_in) = builtin::parse(&value) {
            let common = generic::common(generation, &built_in.shared());
            return common.unwrap_or_else(|| own(&|| built_in.rule(now)));
        }
        let shared = generic::read(&value["status"]);
        let common = generic::common(generation, &shared);
        common.unwrap_or_else(|| own(&|| generic::by_ready_condition(&shared)))
    }

    /// The readiness by the rules that all kinds share; `None` when they say nothing: the object is
    /// not being deleted, its controller has observed its generation, and it is neither reconciling
    /// nor stalled.
    pub(crate) fn shared<K: Resource>(object: &K) -> Option<Self> {
        // The time is for Pods that find no node, of which the rule of the kind decides.
        let judged = Self::judged(object, Timestamp::UNIX_EPOCH, Some(|_| Self::Ready));
        Some(judged).filter(|judged| !judged.is_ready())
    }

    /// An object on its way: `reason` is one word in `CamelCase`, `message` a text for people.
    pub fn in_progress(reason: impl Into<Cow<'static, str>>, message: impl fmt::Display) -> Self {
        Self::InProgress { reason: reason.into(), message: message.to_string() }
    }

    /// An object that needs help: `reason` is one word in `CamelCase`, `message` a text for people.
    pub fn failed(reason: impl Into<Cow<'static, str>>, message: impl fmt::Display) -> Self {
        Self::Failed { reason: reason.into(), message: message.to_string() }
    }

    /// Returns the reason of an object that has failed.
    pub(crate) fn failed_reason(&self) -> Option<&Cow<'static, str>> {
        match self {
            Self::Failed { reason, .. } => Some(reason),
            _ => None,
        }
    }

    /// Whether it is [`Ready`](Self::Ready).
    pub fn is_ready(&self) -> bool {
        *self == Self::Ready
    }
}

/// The message, or the reason if there is no message.
impl fmt::Display for Readiness {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ready => f.write_str("ready"),
            Self::Terminating => f.write_str("is being deleted"),
            Self::InProgress { reason, message } | Self::Failed { reason, message } => {
                f.write_str(if message.is_empty() { reason } else { message })
            }
        }
    }
}

/// Ready, or in progress with the reason `NotReady`.
impl From<bool> for Readiness {
    fn from(is_ready: bool) -> Self {
        if is_ready { Self::Ready } else { Self::in_progress("NotReady", "not ready") }
    }
}
