//! Rules of the built-in kinds, which have more in their status than conditions.

use std::any::Any;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::apps::v1::{DaemonSet, Deployment, ReplicaSet, StatefulSet};
use k8s_openapi::api::batch::v1::{CronJob, Job};
use k8s_openapi::api::core::v1::{
    ConfigMap, LimitRange, PersistentVolumeClaim, Pod, Secret, Service, ServiceAccount,
};
use k8s_openapi::api::networking::v1::NetworkPolicy;
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use k8s_openapi::api::rbac::v1::{ClusterRole, ClusterRoleBinding, Role, RoleBinding};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use serde_json::Value;
use windlass_core::wire::times;

use super::Readiness;
use super::generic::{BorrowedCondition, CommonStatus};

/// Time that the scheduler has for a Pod, before the Pod counts as failed.
const SCHEDULE_WINDOW: Duration = Duration::from_secs(15);

/// A kind with a rule of its own.
pub(super) trait BuiltIn {
    /// Returns the parts of the status that all kinds may have.
    fn shared(&self) -> CommonStatus<'_>;

    /// Returns the readiness by the kind's rule.
    fn rule(&self, now: Timestamp) -> Readiness;
}

/// Lists the kinds with a rule, with their API group.
macro_rules! kinds {
    ($($group:literal $kind:ident),* $(,)?) => {
        /// Returns the rule of an object, if its type is a kind that has one.
        pub(super) fn of(object: &dyn Any) -> Option<&dyn BuiltIn> {
            $(if let Some(object) = object.downcast_ref::<$kind>() {
                return Some(object);
            })*
            None
        }

        /// Returns the rule of an object in JSON, if its kind has one.
        pub(super) fn parse(object: &Value) -> Option<Box<dyn BuiltIn>> {
            let kind = object["kind"].as_str()?;
            let group = object["apiVersion"].as_str()?.split_once('/').map_or("", |(group, _)| group);
            $(if (group, kind) == ($group, stringify!($kind)) {
                let decoded = serde_json::from_value(object.clone());
                // As caches read a typed object: a time that jiff cannot hold spoils no rule.
                let lenient = |_| times::from_slice(object.to_string().as_bytes());
                let object: $kind = decoded.or_else(lenient).ok()?;
                return Some(Box::new(object));
            })*
            None
        }
    };
}

kinds! {
    "apps" Deployment, "apps" StatefulSet, "apps" DaemonSet, "apps" ReplicaSet, "batch" Job, "" Pod,
    "" PersistentVolumeClaim, "" Service, "policy" PodDisruptionBudget,
    "apiextensions.k8s.io" CustomResourceDefinition,
}

/// Whether the type is a kind without a status that says anything: it is ready once it exists.
pub(super) fn has_no_status(object: &dyn Any) -> bool {
    object.is::<ConfigMap>()
        || object.is::<Secret>()
        || object.is::<ServiceAccount>()
        || object.is::<Role>()
        || object.is::<RoleBinding>()
        || object.is::<ClusterRole>()
        || object.is::<ClusterRoleBinding>()
        || object.is::<NetworkPolicy>()
        || object.is::<LimitRange>()
        || object.is::<CronJob>()
}

/// Borrows the conditions of a status, whose types differ in name only.
macro_rules! conditions {
    ($object:expr) => {{
        let status = $object.status.as_ref();
        let conditions = status.and_then(|status| status.conditions.as_ref()).into_iter().flatten();
        let borrowed = conditions.map(|condition| BorrowedCondition {
            type_: &condition.type_,
            status: &condition.status,
            reason: condition.reason.as_deref().unwrap_or_default(),
            message: condition.message.as_deref().unwrap_or_default(),
        });
        borrowed.collect::<Vec<_>>()
    }};
}

/// Borrows conditions of the type `metav1.Condition`.
macro_rules! meta_conditions {
    ($object:expr) => {{
        let status = $object.status.as_ref();
        let conditions = status.and_then(|status| status.conditions.as_ref()).into_iter().flatten();
        let borrowed = conditions.map(|condition| BorrowedCondition {
            type_: &condition.type_,
            status: &condition.status,
            reason: &condition.reason,
            message: &condition.message,
        });
        borrowed.collect::<Vec<_>>()
    }};
}

/// `status.observedGeneration` of a kind that has it.
macro_rules! observed {
    ($object:expr) => {
        $object.status.as_ref().and_then(|status| status.observed_generation)
    };
}

/// In progress because `have` is less than `want`: `Ready: 1/3`.
fn fewer(reason: &'static str, what: &str, have: i32, want: i32) -> Readiness {
    Readiness::in_progress(reason, format_args!("{what}: {have}/{want}"))
}

/// In progress because Pods are left over.
fn extra(count: i32) -> Readiness {
    Readiness::in_progress("ExtraPods", format_args!("Pending termination: {count}"))
}

impl BuiltIn for Deployment {
    fn shared(&self) -> CommonStatus<'_> {
        CommonStatus { observed: observed!(self), conditions: conditions!(self) }
    }

    fn rule(&self, _: Timestamp) -> Readiness {
        let (spec, status) = (self.spec.as_ref(), self.status.as_ref());
        // Without a deadline the controller does not report the condition `Progressing`.
        let deadline = spec.and_then(|spec| spec.progress_deadline_seconds);
        let mut has_progressed = deadline.is_none_or(|deadline| deadline == i32::MAX);
        let mut is_available = false;
        for condition in conditions!(self) {
            if condition.type_ == "Progressing" && condition.reason == "ProgressDeadlineExceeded" {
                return Readiness::failed("ProgressDeadlineExceeded", "Progress deadline exceeded");
            }
            has_progressed |=
                condition.is("Progressing", "True") && condition.reason == "NewReplicaSetAvailable";
            is_available |= condition.is("Available", "True");
        }
        let wanted = spec.and_then(|spec| spec.replicas).unwrap_or(1);
        let count = |found: Option<i32>| found.unwrap_or(0);
        let total = count(status.and_then(|status| status.replicas));
        let updated = count(status.and_then(|status| status.updated_replicas));
        let ready = count(status.and_then(|status| status.ready_replicas));
        let available = count(status.and_then(|status| status.available_replicas));
        if wanted > total {
            return fewer("LessReplicas", "Replicas", total, wanted);
        }
        if wanted > updated {
            return fewer("LessUpdated", "Updated", updated, wanted);
        }
        if total > wanted {
            return extra(total - wanted);
        }
        if updated > available {
            return fewer("LessAvailable", "Available", available, updated);
        }
        if wanted > ready {
            return fewer("LessReady", "Ready", ready, wanted);
        }
        if !has_progressed {
            return Readiness::in_progress("ReplicaSetNotAvailable", "ReplicaSet not Available");
        }
        if !is_available {
            return Readiness::in_progress("DeploymentNotAvailable", "Deployment not Available");
        }
        Readiness::Ready
    }
}

impl BuiltIn for StatefulSet {
    fn shared(&self) -> CommonStatus<'_> {
        CommonStatus { observed: observed!(self), conditions: conditions!(self) }
    }

    fn rule(&self, _: Timestamp) -> Readiness {
        let (spec, status) = (self.spec.as_ref(), self.status.as_ref());
        let strategy = spec.and_then(|spec| spec.update_strategy.as_ref());
        if strategy.and_then(|strategy| strategy.type_.as_deref()) == Some("OnDelete") {
            return Readiness::Ready;
        }
        let wanted = spec.and_then(|spec| spec.replicas).unwrap_or(1);
        let total = status.map_or(0, |status| status.replicas);
        let count = |found: Option<i32>| found.unwrap_or(0);
        let ready = count(status.and_then(|status| status.ready_replicas));
        let current = count(status.and_then(|status| status.current_replicas));
        let updated = count(status.and_then(|status| status.updated_replicas));
        if wanted > total {
            return fewer("LessReplicas", "Replicas", total, wanted);
        }
        if wanted > ready {
            return fewer("LessReady", "Ready", ready, wanted);
        }
        if total > wanted {
            return extra(total - wanted);
        }
        let rolling = strategy.and_then(|strategy| strategy.rolling_update.as_ref());
        if let Some(partition) = rolling.and_then(|rolling| rolling.partition) {
            if updated < wanted - partition {
                return fewer("PartitionRollout", "updated", updated, wanted - partition);
            }
            return Readiness::Ready;
        }
        if wanted > current {
            return fewer("LessCurrent", "current", current, wanted);
        }
        let revisions = status
            .map(|status| (status.current_revision.as_deref(), status.update_revision.as_deref()));
        if revisions.is_some_and(|(current, update)| current.unwrap_or("") != update.unwrap_or(""))
        {
            let message = "Waiting for updated revision to match current";
            return Readiness::in_progress("RevisionMismatch", message);
        }
        Readiness::Ready
    }
}

impl BuiltIn for ReplicaSet {
    fn shared(&self) -> CommonStatus<'_> {
        CommonStatus { observed: observed!(self), conditions: conditions!(self) }
    }

    fn rule(&self, _: Timestamp) -> Readiness {
        if conditions!(self).iter().any(|condition| condition.is("ReplicaFailure", "True")) {
            return Readiness::in_progress(
                "ReplicaFailure",
                "Replica Failure condition. Check Pods",
            );
        }
        let status = self.status.as_ref();
        let wanted = self.spec.as_ref().and_then(|spec| spec.replicas).unwrap_or(1);
        let total = status.map_or(0, |status| status.replicas);
        let count = |found: Option<i32>| found.unwrap_or(0);
        let labelled = count(status.and_then(|status| status.fully_labeled_replicas));
        let available = count(status.and_then(|status| status.available_replicas));
        let ready = count(status.and_then(|status| status.ready_replicas));
        if wanted > labelled {
            return fewer("LessLabelled", "Labelled", labelled, wanted);
        }
        if wanted > available {
            return fewer("LessAvailable", "Available", available, wanted);
        }
        if wanted > ready {
            return fewer("LessReady", "Ready", ready, wanted);
        }
        if total > wanted { extra(total - wanted) } else { Readiness::Ready }
    }
}

impl BuiltIn for DaemonSet {
    fn shared(&self) -> CommonStatus<'_> {
        CommonStatus { observed: observed!(self), conditions: conditions!(self) }
    }

    fn rule(&self, _: Timestamp) -> Readiness {
        // Its controller sets both whenever it has acted.
        if self.metadata.generation.is_none() {
            return Readiness::in_progress("NoGeneration", "metadata.generation not found");
        }
        let Some(status) = self.status.as_ref().filter(|it| it.observed_generation.is_some())
        else {
            let message = "status.observedGeneration not found";
            return Readiness::in_progress("NoObservedGeneration", message);
        };
        let wanted = status.desired_number_scheduled;
        let updated = status.updated_number_scheduled.unwrap_or(0);
        let available = status.number_available.unwrap_or(0);
        if wanted > status.current_number_scheduled {
            return fewer("LessCurrent", "Current", status.current_number_scheduled, wanted);
        }
        if wanted > updated {
            return fewer("LessUpdated", "Updated", updated, wanted);
        }
        if wanted > available {
            return fewer("LessAvailable", "Available", available, wanted);
        }
        if wanted > status.number_ready {
            return fewer("LessReady", "Ready", status.number_ready, wanted);
        }
        Readiness::Ready
    }
}

impl BuiltIn for Job {
    fn shared(&self) -> CommonStatus<'_> {
        CommonStatus { observed: None, conditions: conditions!(self) }
    }

    /// Ready from its start on, as kstatus has it: a rule of one's own waits for its completion.
    fn rule(&self, _: Timestamp) -> Readiness {
        let (spec, status) = (self.spec.as_ref(), self.status.as_ref());
        let parallelism = spec.and_then(|spec| spec.parallelism).unwrap_or(1);
        let completions = spec.and_then(|spec| spec.completions).unwrap_or(parallelism);
        let is_suspended = spec.and_then(|spec| spec.suspend).unwrap_or(false);
        for condition in conditions!(self) {
            if condition.is("Complete", "True")
                || (is_suspended && condition.is("Suspended", "True"))
            {
                return Readiness::Ready;
            }
            if condition.is("Failed", "True") {
                let failed = status.and_then(|status| status.failed).unwrap_or(0);
                let message = format_args!("Job Failed. failed: {failed}/{completions}");
                return Readiness::failed("JobFailed", message);
            }
        }
        if status.is_none_or(|status| status.start_time.is_none()) {
            return Readiness::in_progress("JobNotStarted", "Job not started");
        }
        Readiness::Ready
    }
}

impl BuiltIn for Pod {
    fn shared(&self) -> CommonStatus<'_> {
        CommonStatus { observed: observed!(self), conditions: conditions!(self) }
    }

    fn rule(&self, now: Timestamp) -> Readiness {
        let status = self.status.as_ref();
        let phase = status.and_then(|status| status.phase.as_deref()).unwrap_or("");
        match phase {
            "Succeeded" | "Failed" => Readiness::Ready,
            "Running" => self.running(),
            "Pending" => {
                let conditions = conditions!(self);
                let mut conditions = conditions.iter();
                let is_unschedulable = conditions.any(|condition| {
                    condition.is("PodScheduled", "False") && condition.reason == "Unschedulable"
                });
                let created = self.metadata.creation_timestamp.as_ref().map(|time| time.0);
                let window = SignedDuration::try_from(SCHEDULE_WINDOW).unwrap_or_default();
                let is_young = created.is_some_and(|created| now.duration_since(created) < window);
                match (is_unschedulable, is_young) {
                    (false, _) => {
                        Readiness::in_progress("PodPending", "Pod is in the Pending phase")
                    }
                    (true, true) => {
                        Readiness::in_progress("PodNotScheduled", "Pod has not been scheduled")
                    }
                    (true, false) => {
                        Readiness::failed("PodUnschedulable", "Pod could not be scheduled")
                    }
                }
            }
            "" => Readiness::in_progress("PodNotObserved", "Pod phase not available"),
            other => Readiness::in_progress("PodPhase", format_args!("Pod phase {other}")),
        }
    }
}

/// Part of the rule for Pods.
trait RunningPod {
    /// Returns the readiness of a Pod whose phase is `Running`.
    fn running(&self) -> Readiness;
}

impl RunningPod for Pod {
    fn running(&self) -> Readiness {
        if conditions!(self).iter().any(|condition| condition.is("Ready", "True")) {
            return Readiness::Ready;
        }
        let status = self.status.as_ref();
        let containers = status.and_then(|status| status.container_statuses.as_ref());
        let looping = containers.into_iter().flatten().filter(|container| {
            let waiting = container.state.as_ref().and_then(|state| state.waiting.as_ref());
            waiting.and_then(|waiting| waiting.reason.as_deref()) == Some("CrashLoopBackOff")
        });
        let names: Vec<&str> = looping.map(|container| container.name.as_str()).collect();
        if names.is_empty() {
            return Readiness::in_progress("PodRunningNotReady", "Pod is running but is not Ready");
        }
        let message = format!("Containers in CrashLoop state: {}", names.join(","));
        Readiness::failed("ContainerCrashLooping", message)
    }
}

impl BuiltIn for PersistentVolumeClaim {
    fn shared(&self) -> CommonStatus<'_> {
        CommonStatus { observed: None, conditions: conditions!(self) }
    }

    fn rule(&self, _: Timestamp) -> Readiness {
        let phase = self.status.as_ref().and_then(|status| status.phase.as_deref());
        match phase.unwrap_or("unknown") {
            "Bound" => Readiness::Ready,
            phase => {
                let message = format_args!("PVC is not Bound. phase: {phase}");
                Readiness::in_progress("NotBound", message)
            }
        }
    }
}

impl BuiltIn for Service {
    fn shared(&self) -> CommonStatus<'_> {
        CommonStatus { observed: None, conditions: meta_conditions!(self) }
    }

    /// Ready without an address of the load balancer, as kstatus has it.
    fn rule(&self, _: Timestamp) -> Readiness {
        let spec = self.spec.as_ref();
        let is_balanced = spec.and_then(|spec| spec.type_.as_deref()) == Some("LoadBalancer");
        let address = spec.and_then(|spec| spec.cluster_ip.as_deref()).unwrap_or_default();
        if is_balanced && address.is_empty() {
            let message = "ClusterIP not set. Service type: LoadBalancer";
            return Readiness::in_progress("NoIPAssigned", message);
        }
        Readiness::Ready
    }
}

impl BuiltIn for PodDisruptionBudget {
    fn shared(&self) -> CommonStatus<'_> {
        CommonStatus { observed: observed!(self), conditions: meta_conditions!(self) }
    }

    /// Ready once its controller has observed it.
    fn rule(&self, _: Timestamp) -> Readiness {
        Readiness::Ready
    }
}

impl BuiltIn for CustomResourceDefinition {
    fn shared(&self) -> CommonStatus<'_> {
        CommonStatus { observed: None, conditions: conditions!(self) }
    }

    fn rule(&self, _: Timestamp) -> Readiness {
        for condition in conditions!(self) {
            if condition.is("NamesAccepted", "False") {
                return condition.failed();
            }
            if condition.is("Established", "False") && condition.reason != "Installing" {
                return condition.failed();
            }
            if condition.is("Established", "True") {
                return Readiness::Ready;
            }
        }
        Readiness::in_progress("Installing", "Install in progress")
    }
}
