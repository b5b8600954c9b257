//! The rules of kstatus, by kstatus' own cases.

use jiff::Timestamp;
use k8s_openapi::api::apps::v1::{DaemonSet, Deployment, ReplicaSet, StatefulSet};
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::{ConfigMap, PersistentVolumeClaim, Pod, Service};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use serde_json::{Value, json};
use windlass::dependents::Readiness;
use windlass::resource::{DynamicObject, Resource};

const NOW: i64 = 1_767_225_600;

/// Returns "ready", "deleted", or the kind of trouble with the reason.
fn judge<K: Resource>(object: Value) -> String {
    let object: K = serde_json::from_value(object).expect("an object of the kind");
    match Readiness::of(&object, Timestamp::from_second(NOW).expect("in range")) {
        Readiness::Ready => "ready".to_owned(),
        Readiness::Terminating => "deleted".to_owned(),
        Readiness::InProgress { reason, .. } => format!("in progress: {reason}"),
        Readiness::Failed { reason, .. } => format!("failed: {reason}"),
    }
}

/// Checks an object as a typed value, and as a value of a kind that is known at run time.
#[track_caller]
fn expect<K: Resource>(mut object: Value, expected: &str) {
    assert_eq!(judge::<K>(object.clone()), expected, "{object}");
    let info = K::static_info().expect("a kind");
    object["apiVersion"] = info.api_version().into();
    object["kind"] = info.kind.as_ref().into();
    assert_eq!(judge::<DynamicObject>(object.clone()), expected, "as a value: {object}");
}

fn deployment(replicas: i32, status: Value) -> Value {
    json!({
        "metadata": { "name": "web", "generation": 1 },
        "spec": {
            "replicas": replicas, "selector": {}, "template": {}, "progressDeadlineSeconds": 600,
        },
        "status": status,
    })
}

#[test]
fn a_deployment_is_ready_when_every_replica_is_updated_and_available() {
    let conditions = json!([
        { "type": "Progressing", "status": "True", "reason": "NewReplicaSetAvailable" },
        { "type": "Available", "status": "True" },
    ]);
    let status = |replicas: i32, updated: i32, ready: i32, available: i32| {
        json!({
            "observedGeneration": 1, "replicas": replicas, "updatedReplicas": updated,
            "readyReplicas": ready, "availableReplicas": available, "conditions": conditions,
        })
    };
    let cases = [
        (status(2, 2, 2, 2), "ready"),
        (status(1, 1, 1, 1), "in progress: LessReplicas"),
        (status(2, 1, 1, 1), "in progress: LessUpdated"),
        (status(3, 2, 2, 2), "in progress: ExtraPods"),
        (status(2, 2, 2, 1), "in progress: LessAvailable"),
        (status(2, 2, 1, 2), "in progress: LessReady"),
        (json!({}), "in progress: LessReplicas"),
    ];
    for (status, expected) in cases {
        expect::<Deployment>(deployment(2, status), expected);
    }
    let mut late = status(2, 2, 2, 2);
    late["conditions"][0]["reason"] = "ReplicaSetUpdated".into();
    expect::<Deployment>(deployment(2, late), "in progress: ReplicaSetNotAvailable");
    let mut unavailable = status(2, 2, 2, 2);
    unavailable["conditions"][1]["status"] = "False".into();
    expect::<Deployment>(deployment(2, unavailable), "in progress: DeploymentNotAvailable");
    let mut dead = status(2, 1, 1, 1);
    dead["conditions"][0]["reason"] = "ProgressDeadlineExceeded".into();
    expect::<Deployment>(deployment(2, dead), "failed: ProgressDeadlineExceeded");
}

#[test]
fn deletion_and_generation_come_before_the_rule_of_a_kind() {
    let mut web = deployment(0, json!({ "observedGeneration": 0 }));
    expect::<Deployment>(web.clone(), "in progress: LatestGenerationNotObserved");
    web["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z".into();
    expect::<Deployment>(web, "deleted");
    let stalled = json!({
        "metadata": { "name": "a" },
        "spec": { "selector": {}, "template": {} },
        "status": { "conditions": [{ "type": "Stalled", "status": "True", "reason": "Broken" }] },
    });
    expect::<Deployment>(stalled, "failed: Broken");
}

#[test]
fn a_value_with_a_time_of_the_year_9999_has_the_rule_of_its_kind() {
    let web = |time: &str| {
        let available =
            json!({ "type": "Available", "status": "True", "lastTransitionTime": time });
        let status = json!({ "observedGeneration": 1, "conditions": [available] });
        let mut web = deployment(2, status);
        web["apiVersion"] = "apps/v1".into();
        web["kind"] = "Deployment".into();
        judge::<DynamicObject>(web)
    };
    let expected = web("2026-01-01T00:00:00Z");
    assert!(expected.starts_with("in progress"), "{expected}");
    assert_eq!(web("9999-12-31T23:59:59Z"), expected);
}

#[test]
fn a_stateful_set_is_ready_when_its_replicas_are_of_the_newest_revision() {
    let set = |strategy: Value, status: Value| {
        json!({
            "metadata": { "name": "db", "generation": 1 },
            "spec": {
                "replicas": 2, "selector": {}, "template": {}, "serviceName": "db",
                "updateStrategy": strategy,
            },
            "status": status,
        })
    };
    let status = |replicas: i32, ready: i32, current: i32, updated: i32| {
        json!({
            "observedGeneration": 1, "replicas": replicas, "readyReplicas": ready,
            "currentReplicas": current, "updatedReplicas": updated,
            "currentRevision": "a", "updateRevision": "a",
        })
    };
    let rolling = || json!({ "type": "RollingUpdate" });
    let partition =
        |at: i32| json!({ "type": "RollingUpdate", "rollingUpdate": { "partition": at } });
    let mut other = status(2, 2, 2, 2);
    other["updateRevision"] = "b".into();
    let cases = [
        (rolling(), status(2, 2, 2, 2), "ready"),
        (rolling(), status(1, 1, 1, 1), "in progress: LessReplicas"),
        (rolling(), status(2, 1, 2, 2), "in progress: LessReady"),
        (rolling(), status(3, 3, 3, 3), "in progress: ExtraPods"),
        (rolling(), status(2, 2, 1, 2), "in progress: LessCurrent"),
        (rolling(), other, "in progress: RevisionMismatch"),
        (partition(1), status(2, 2, 1, 0), "in progress: PartitionRollout"),
        (partition(1), status(2, 2, 1, 1), "ready"),
        (json!({ "type": "OnDelete" }), status(0, 0, 0, 0), "ready"),
    ];
    for (strategy, status, expected) in cases {
        expect::<StatefulSet>(set(strategy, status), expected);
    }
}

#[test]
fn daemon_sets_and_replica_sets_are_ready_when_all_their_pods_are() {
    let daemon = |status: Value| {
        json!({
            "metadata": { "name": "a", "generation": 1 },
            "spec": { "selector": {}, "template": {} }, "status": status,
        })
    };
    let status = |current: i32, updated: i32, available: i32, ready: i32| {
        json!({
            "observedGeneration": 1, "desiredNumberScheduled": 2, "numberMisscheduled": 0,
            "currentNumberScheduled": current, "updatedNumberScheduled": updated,
            "numberAvailable": available, "numberReady": ready,
        })
    };
    let mut unobserved = status(2, 2, 2, 2);
    unobserved.as_object_mut().expect("an object").remove("observedGeneration");
    let cases = [
        (status(2, 2, 2, 2), "ready"),
        (status(1, 2, 2, 2), "in progress: LessCurrent"),
        (status(2, 1, 2, 2), "in progress: LessUpdated"),
        (status(2, 2, 1, 2), "in progress: LessAvailable"),
        (status(2, 2, 2, 1), "in progress: LessReady"),
        (unobserved, "in progress: NoObservedGeneration"),
    ];
    for (status, expected) in cases {
        expect::<DaemonSet>(daemon(status), expected);
    }
    let replicas = |labelled: i32, available: i32, ready: i32, total: i32| {
        json!({
            "metadata": { "name": "a", "generation": 1 },
            "spec": { "replicas": 2, "selector": {} },
            "status": {
                "observedGeneration": 1, "replicas": total, "fullyLabeledReplicas": labelled,
                "availableReplicas": available, "readyReplicas": ready,
            },
        })
    };
    let cases = [
        (replicas(2, 2, 2, 2), "ready"),
        (replicas(1, 2, 2, 2), "in progress: LessLabelled"),
        (replicas(2, 1, 2, 2), "in progress: LessAvailable"),
        (replicas(2, 2, 1, 2), "in progress: LessReady"),
        (replicas(2, 2, 2, 3), "in progress: ExtraPods"),
    ];
    for (set, expected) in cases {
        expect::<ReplicaSet>(set, expected);
    }
}

#[test]
fn a_pod_without_a_node_has_failed_after_a_quarter_of_a_minute() {
    let pod = |created: &str, status: Value| json!({ "metadata": { "name": "a", "creationTimestamp": created }, "status": status });
    let unscheduled = json!({
        "phase": "Pending",
        "conditions": [{ "type": "PodScheduled", "status": "False", "reason": "Unschedulable" }],
    });
    let (old, young) = ("2025-12-31T23:59:40Z", "2025-12-31T23:59:50Z");
    let crashing = json!({
        "phase": "Running",
        "containerStatuses": [{
            "name": "web", "image": "a", "imageID": "", "ready": false, "restartCount": 3,
            "state": { "waiting": { "reason": "CrashLoopBackOff" } },
        }],
    });
    let ready =
        json!({ "phase": "Running", "conditions": [{ "type": "Ready", "status": "True" }] });
    let cases = [
        (old, unscheduled.clone(), "failed: PodUnschedulable"),
        (young, unscheduled, "in progress: PodNotScheduled"),
        (young, json!({ "phase": "Pending" }), "in progress: PodPending"),
        (young, json!({ "phase": "Running" }), "in progress: PodRunningNotReady"),
        (young, crashing, "failed: ContainerCrashLooping"),
        (young, ready, "ready"),
        (young, json!({ "phase": "Succeeded" }), "ready"),
        (young, json!({}), "in progress: PodNotObserved"),
    ];
    for (created, status, expected) in cases {
        expect::<Pod>(pod(created, status), expected);
    }
}

#[test]
fn jobs_claims_services_and_definitions_have_rules_of_their_own() {
    let job = |status: Value| json!({ "metadata": { "name": "a" }, "spec": { "template": {} }, "status": status });
    let condition = |type_: &str| json!({ "conditions": [{ "type": type_, "status": "True" }] });
    expect::<Job>(job(json!({})), "in progress: JobNotStarted");
    expect::<Job>(job(json!({ "startTime": "2026-01-01T00:00:00Z" })), "ready");
    expect::<Job>(job(condition("Complete")), "ready");
    expect::<Job>(job(condition("Failed")), "failed: JobFailed");
    let claim = |phase: &str| json!({ "metadata": { "name": "a" }, "status": { "phase": phase } });
    expect::<PersistentVolumeClaim>(claim("Bound"), "ready");
    expect::<PersistentVolumeClaim>(claim("Pending"), "in progress: NotBound");
    let service = |spec: Value| json!({ "metadata": { "name": "a" }, "spec": spec });
    expect::<Service>(service(json!({ "type": "ClusterIP" })), "ready");
    let balanced = json!({ "type": "LoadBalancer" });
    expect::<Service>(service(balanced), "in progress: NoIPAssigned");
    let definition = |conditions: Value| {
        json!({
            "metadata": { "name": "as.example.dev" },
            "spec": {
                "group": "example.dev", "names": { "kind": "A", "plural": "as" },
                "scope": "Namespaced", "versions": [],
            },
            "status": { "conditions": conditions },
        })
    };
    let established = json!([{ "type": "Established", "status": "True" }]);
    let taken = json!([{ "type": "NamesAccepted", "status": "False", "reason": "NameConflict" }]);
    expect::<CustomResourceDefinition>(definition(established), "ready");
    expect::<CustomResourceDefinition>(definition(taken), "failed: NameConflict");
    expect::<CustomResourceDefinition>(definition(json!([])), "in progress: Installing");
}

#[test]
fn any_other_kind_is_ready_by_its_condition_or_without_one() {
    let object = |status: Value| {
        json!({
            "apiVersion": "example.dev/v1", "kind": "Database",
            "metadata": { "name": "a", "generation": 3 }, "status": status,
        })
    };
    let ready = |status: &str| json!({ "conditions": [{ "type": "Ready", "status": status, "reason": "Starting" }] });
    let cases = [
        (json!({}), "ready"),
        (ready("True"), "ready"),
        (ready("False"), "in progress: Starting"),
        (ready("Unknown"), "in progress: Starting"),
        (json!({ "observedGeneration": 2 }), "in progress: LatestGenerationNotObserved"),
    ];
    for (status, expected) in cases {
        assert_eq!(judge::<DynamicObject>(object(status)), expected);
    }
    expect::<ConfigMap>(json!({ "metadata": { "name": "a" } }), "ready");
}
