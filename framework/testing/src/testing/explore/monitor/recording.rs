//! The record of a run: the operator's requests, all changes, and what was disturbed.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::{Value, json};
use windlass_apiserver::faults::{ObservedChange, ObservedRequest};

use crate::testing::explore::line;
use crate::testing::explore::schedule::PlannedDisturbance;
use crate::testing::explore::state::{self, Masks};
use crate::testing::explore::varying::names::{self, Uids};

/// Resources whose writes no oracle judges: bookkeeping of the framework and of the server.
const BOOKKEEPING: [&str; 7] = [
    "apiservices",
    "ipaddresses",
    "leases",
    "events",
    "customresourcedefinitions",
    "validatingwebhookconfigurations",
    "mutatingwebhookconfigurations",
];

/// A request of the operator.
#[derive(Clone, Debug)]
pub(in crate::testing::explore) struct OperatorRequest {
    pub(in crate::testing::explore) verb: String,
    pub(in crate::testing::explore) resource: String,
    pub(in crate::testing::explore) subresource: String,
    pub(in crate::testing::explore) namespace: String,
    pub(in crate::testing::explore) name: String,
    /// Numbers of the changes that it made.
    pub(in crate::testing::explore) changes: Vec<usize>,
    /// Key of the first of them: the name of a creation is known by it alone.
    pub(in crate::testing::explore) key: Option<String>,
    /// Virtual time.
    pub(in crate::testing::explore) at: Duration,
}

impl OperatorRequest {
    /// Returns the record of a request that has made no change yet.
    pub(super) fn of(request: &ObservedRequest<'_>, at: Duration) -> Self {
        Self {
            verb: request.verb.to_owned(),
            resource: request.resource.to_owned(),
            subresource: request.subresource.to_owned(),
            namespace: request.namespace.to_owned(),
            name: request.name.to_owned(),
            changes: Vec::new(),
            key: None,
            at,
        }
    }

    /// Returns the record of a call of a system outside of Kubernetes.
    pub(super) fn of_call(system: &str, text: &str, at: Duration) -> Self {
        Self {
            verb: "call".to_owned(),
            resource: system.to_owned(),
            subresource: String::new(),
            namespace: String::new(),
            name: text.to_owned(),
            changes: Vec::new(),
            key: None,
            at,
        }
    }

    /// Whether the request may write.
    pub(in crate::testing::explore) fn is_write(&self) -> bool {
        !matches!(self.verb.as_str(), "get" | "list" | "watch")
    }

    /// Whether plans may disturb the request: one for an object that oracles judge.
    pub(in crate::testing::explore) fn is_disturbed(&self) -> bool {
        !self.resource.is_empty()
            && !BOOKKEEPING.contains(&self.resource.as_str())
            && self.verb != "watch"
            && self.verb != "list"
    }
}

/// A change of an object.
#[derive(Clone, Debug)]
pub(in crate::testing::explore) struct RecordedChange {
    /// Resource, namespace and name, without the generated part of the name and without uids.
    pub(in crate::testing::explore) key: String,
    /// Namespace and name as they are.
    pub(in crate::testing::explore) name: (String, String),
    resource: String,
    /// `creates`, `updates` or `deletes`.
    pub(in crate::testing::explore) verb: &'static str,
    pub(in crate::testing::explore) by_operator: bool,
    /// Whether a user of the workload made it, rather than a controller of the server.
    pub(in crate::testing::explore) by_user: bool,
    /// Whether oracles judge it: not bookkeeping, and more than versions differs.
    pub(in crate::testing::explore) is_relevant: bool,
    /// Whether the object has finalizers after the change.
    pub(in crate::testing::explore) has_finalizers: bool,
    /// State after the change, without what differs from run to run.
    pub(in crate::testing::explore) after: Value,
    /// Virtual time.
    pub(in crate::testing::explore) at: Duration,
    /// resourceVersion.
    pub(super) revision: u64,
    /// Number of the operator's requests before it.
    pub(in crate::testing::explore) requests: usize,
    /// Whether the object is being deleted after the change.
    pub(in crate::testing::explore) is_terminating: bool,
    /// The reconciles under way, with their reasons, of a change by the operator.
    pub(in crate::testing::explore) because: String,
}

impl RecordedChange {
    /// Returns the record of a change at a time, after a number of requests. `before` is the state
    /// before, if it was recorded; the places that are `renewed` all the time do not count.
    pub(super) fn of(
        change: &ObservedChange<'_>,
        (at, requests): (Duration, usize),
        before: Option<&Value>,
        renewed: &Masks,
    ) -> Self {
        let object = change.after.or(change.before).unwrap_or(&Value::Null);
        let key = state::key(change.resource, object);
        let text = |field: &str| object["metadata"][field].as_str().unwrap_or_default().to_owned();
        let is_kept = is_judged(change.resource);
        let comparable = |side: Option<&Value>| {
            let side = side.filter(|_| is_kept).map(state::comparable).unwrap_or_default();
            if renewed.is_empty() { side } else { state::masked(&key, &side, renewed) }
        };
        let after = comparable(change.after);
        let is_same = match before.filter(|_| change.before.is_some()) {
            Some(before) => *before == after,
            None => comparable(change.before) == after,
        };
        let verb = match (change.before, change.after) {
            (None, _) => "creates",
            (_, None) => "deletes",
            _ => "updates",
        };
        let finalizers = change.after.and_then(|after| after["metadata"]["finalizers"].as_array());
        let by_operator = change.user.is_some_and(line::is_operator);
        Self {
            key,
            name: (text("namespace"), text("name")),
            resource: change.resource.to_owned(),
            verb,
            by_operator,
            by_user: change.user.is_some() && !by_operator,
            is_relevant: is_kept && !is_same,
            has_finalizers: finalizers.is_some_and(|all| !all.is_empty()),
            after,
            at,
            revision: change.revision,
            requests,
            is_terminating: !object["metadata"]["deletionTimestamp"].is_null(),
            because: String::new(),
        }
    }

    /// Returns the record of a new state of a system outside of Kubernetes; whether the operator
    /// changed it, when, and after how many requests.
    pub(super) fn outside(
        system: &str,
        after: Value,
        (by_operator, at, requests): (bool, Duration, usize),
    ) -> Self {
        let after = json!({ "metadata": { "name": system }, "state": after });
        Self {
            key: state::key(state::OUTSIDE, &after),
            name: (String::new(), system.to_owned()),
            resource: state::OUTSIDE.to_owned(),
            verb: "updates",
            by_operator,
            by_user: !by_operator,
            is_relevant: true,
            has_finalizers: false,
            after: state::comparable(&after),
            at,
            revision: 0,
            requests,
            is_terminating: false,
            because: String::new(),
        }
    }

    /// Returns the record of a change by the operator.
    #[cfg(test)]
    pub(in crate::testing::explore) fn of_test(
        resource: &str,
        verb: &'static str,
        after: Value,
        at: Duration,
    ) -> Self {
        let key = state::key(resource, &after);
        let name = (String::new(), key.clone());
        let change = Self::outside("", Value::Null, (true, at, 0));
        Self { key, name, resource: resource.to_owned(), verb, after, ..change }
    }

    /// Returns the plural of the kind.
    pub(in crate::testing::explore) fn plural(&self) -> &str {
        plural(&self.resource)
    }

    /// Returns the resource, and the object's namespace and name in one text.
    pub(super) fn id(&self) -> (String, String) {
        id(&self.resource, &self.name.0, &self.name.1)
    }
}

/// Returns the key of an object in a recording.
pub(super) fn id(resource: &str, namespace: &str, name: &str) -> (String, String) {
    (resource.to_owned(), format!("{namespace}/{name}"))
}

/// Whether oracles judge the objects of a resource.
pub(super) fn is_judged(resource: &str) -> bool {
    !BOOKKEEPING.contains(&plural(resource))
}

/// Returns the plural within the name under which a resource is stored.
pub(super) fn plural(resource: &str) -> &str {
    resource.split('.').next().unwrap_or_default()
}

/// For each object, by resource and key: whether its observed generations are its own, in their
/// order.
pub(in crate::testing::explore) type Observed = BTreeMap<(String, String), Vec<bool>>;

/// Adds whether the observed generations of an object, or a part of one, are its own. The recursion
/// is as deep as the object.
fn add_observed(part: &Value, generation: &Value, observed: &mut Vec<bool>) {
    match part {
        Value::Object(fields) => {
            observed.extend(fields.get("observedGeneration").map(|it| it == generation));
            fields.values().for_each(|field| add_observed(field, generation, observed));
        }
        Value::Array(items) => items.iter().for_each(|it| add_observed(it, generation, observed)),
        _ => {}
    }
}

/// Returns whether the observed generations in an object's status are its own.
pub(super) fn observed(object: &Value) -> Vec<bool> {
    let mut observed = Vec::new();
    add_observed(&object["status"], &object["metadata"]["generation"], &mut observed);
    observed
}

/// Gives an object a new uid, also in the labels that the API server makes of it, and the status
/// and the finalizers with which it was `made`: those that the API server itself sets, such as the
/// protection of a claim.
pub(super) fn begin_anew(object: &mut Value, made: &Value, uid: &str) {
    let old = object["metadata"]["uid"].as_str().unwrap_or_default().to_owned();
    if !old.is_empty() {
        names::rewrite(object, &|text| text.contains(&old).then(|| text.replace(&old, uid)));
    }
    object["metadata"]["uid"] = json!(uid);
    for place in [&["status"][..], &["metadata", "finalizers"]] {
        let Some((name, parents)) = place.split_last() else { continue };
        let pointer: String = parents.iter().map(|parent| format!("/{parent}")).collect();
        let first = made.pointer(&format!("{pointer}/{name}")).filter(|it| !it.is_null());
        if let Some(fields) = object.pointer_mut(&pointer).and_then(Value::as_object_mut) {
            match first {
                Some(first) => fields.insert((*name).to_owned(), first.clone()),
                None => fields.remove(*name),
            };
        }
    }
}

/// The record of a run.
#[derive(Clone, Debug, Default)]
pub(in crate::testing::explore) struct Recording {
    pub(in crate::testing::explore) requests: Vec<OperatorRequest>,
    pub(in crate::testing::explore) changes: Vec<RecordedChange>,
    /// Last state of each object, by resource and key.
    pub(in crate::testing::explore) objects: BTreeMap<(String, String), Value>,
    /// Uids of all objects.
    pub(in crate::testing::explore) uids: Uids,
    /// For each object, whether the observed generations were its own.
    pub(in crate::testing::explore) observed: Observed,
    /// The disturbances that were caused.
    pub(in crate::testing::explore) caused: Vec<PlannedDisturbance>,
    /// Virtual time at which the last of them was over.
    pub(in crate::testing::explore) calm_at: Duration,
    /// Edits of others that the operator has undone, a sentence each.
    pub(in crate::testing::explore) undone: Vec<String>,
    /// Guarantees of the framework that did not hold, a sentence each.
    pub(in crate::testing::explore) violations: Vec<String>,
    /// Hash of all bytes that the operator exchanged with the server; 0 where they are not hashed.
    pub(in crate::testing::explore) trace: u64,
}

impl Recording {
    /// Returns an object as it was created, or null.
    pub(super) fn made(&self, plural: &str, namespace: &str, name: &str) -> Value {
        let is_made = |change: &&RecordedChange| {
            change.verb == "creates"
                && change.plural() == plural
                && (change.name.0.as_str(), change.name.1.as_str()) == (namespace, name)
        };
        let made = self.changes.iter().rev().find(is_made);
        made.map(|change| change.after.clone()).unwrap_or_default()
    }

    /// Returns the virtual time from the last disturbance, or the last change by a user, to the
    /// operator's last change; of the first `changes` ones.
    pub(in crate::testing::explore) fn rest(&self, changes: usize) -> Duration {
        let changes = &self.changes[..changes.min(self.changes.len())];
        let last = |by: fn(&RecordedChange) -> bool| {
            let mut last = changes.iter().rev().filter(|change| change.is_relevant);
            last.find(|change| by(change)).map(|change| change.at).unwrap_or_default()
        };
        let begun = last(|change| change.by_user).max(self.calm_at);
        last(|change| change.by_operator).saturating_sub(begun)
    }
}
