//! Intents with templates of Pods.

use super::*;

fn container(choices: &Choices, name: &str) -> Value {
    let mut container = json!({ "name": name, "image": choices.of(&[json!("a"), json!("b")]) });
    choices.put(&mut container, "args", &[json!(["x"]), json!(["x", "y"]), json!([])]);
    let env = [
        json!({ "name": "A", "value": "1" }),
        json!({ "name": "B", "value": "1000m" }),
        json!({ "name": "C", "valueFrom": { "fieldRef": { "fieldPath": "metadata.name" } } }),
        json!({ "name": "D", "valueFrom": { "resourceFieldRef": { "resource": "limits.cpu" } } }),
        json!({ "name": "E", "value": "" }),
    ];
    if !choices.one_in(3) {
        container["env"] = choices.some(&env).into();
    }
    let ports = [
        json!({ "containerPort": 80 }),
        json!({ "containerPort": 80, "protocol": "UDP" }),
        json!({ "containerPort": 81, "name": "b", "protocol": "TCP" }),
    ];
    if !choices.one_in(3) {
        container["ports"] = choices.some(&ports).into();
    }
    let limits = [
        json!({ "cpu": "1000m" }),
        json!({ "cpu": "1", "memory": "1Gi" }),
        json!({ "cpu": "0.5", "memory": "1024Mi" }),
        json!({}),
    ];
    choices.put(
        &mut container,
        "resources",
        &[json!({}), json!({ "limits": choices.of(&limits) })],
    );
    choices.put(&mut container, "securityContext", &[json!({}), json!({ "privileged": false })]);
    choices.put(&mut container, "stdin", &[json!(false), json!(true)]);
    let mounts = [
        json!({ "name": "v", "mountPath": "/a" }),
        json!({ "name": "v", "mountPath": "/b", "readOnly": false }),
    ];
    choices.put(&mut container, "volumeMounts", &[json!(choices.some(&mounts))]);
    container
}

/// Returns a template of Pods.
fn template(choices: &Choices) -> Value {
    let containers = ["web", "log", "side"].map(|name| container(choices, name));
    let mut some = choices.some(&containers);
    if some.is_empty() {
        some.push(containers[0].clone());
    }
    let mut pod = json!({ "containers": some });
    let volumes = [
        json!({ "name": "v", "emptyDir": choices.of(&[json!({}), json!({ "sizeLimit": "1024Mi" }), json!({ "medium": "" })]) }),
        json!({ "name": "w", "projected": { "sources": [{ "serviceAccountToken": { "path": "t" } }] } }),
    ];
    pod["volumes"] = json!([volumes[0].clone()]);
    choices.put(&mut pod, "volumes", &[json!(volumes)]);
    choices.put(
        &mut pod,
        "nodeSelector",
        &[json!({ "a": "1" }), json!({ "a": "1", "b": "2" }), json!({})],
    );
    choices.put(
        &mut pod,
        "tolerations",
        &[json!([{ "key": "a", "operator": "Exists" }]), json!([])],
    );
    choices.put(&mut pod, "hostNetwork", &[json!(false)]);
    choices.put(&mut pod, "securityContext", &[json!({}), json!({ "runAsUser": 0 })]);
    choices.put(&mut pod, "terminationGracePeriodSeconds", &[json!(30), json!(5)]);
    choices.put(&mut pod, "serviceAccountName", &[json!(""), json!("x")]);
    json!({ "metadata": { "labels": { "app": "x" } }, "spec": pod })
}

pub(super) fn deployment(choices: &Choices) -> Value {
    let mut spec = json!({ "selector": { "matchLabels": { "app": "x" } },
        "template": template(choices) });
    choices.put(&mut spec, "replicas", &[json!(0), json!(1), json!(2)]);
    choices.put(
        &mut spec,
        "strategy",
        &[json!({}), json!({ "type": "Recreate" }), json!({ "type": "RollingUpdate" })],
    );
    choices.put(&mut spec, "paused", &[json!(false), json!(true)]);
    choices.put(&mut spec, "minReadySeconds", &[json!(0), json!(5)]);
    json!({ "metadata": metadata(choices), "spec": spec })
}

pub(super) fn stateful_set(choices: &Choices) -> Value {
    let mut spec =
        json!({ "selector": { "matchLabels": { "app": "x" } }, "template": template(choices) });
    choices.keep(&mut spec, "serviceName", &[json!("x"), json!(""), Value::Null]);
    choices.keep(&mut spec, "podManagementPolicy", &[json!("Parallel"), json!(""), Value::Null]);
    let claim = |storage: &str| {
        json!({ "metadata": { "name": "data" }, "spec": { "accessModes": ["ReadWriteOnce"],
            "resources": { "requests": { "storage": storage } } } })
    };
    choices.keep(
        &mut spec,
        "volumeClaimTemplates",
        &[json!([claim("1Gi")]), json!([claim("1024Mi")]), json!([]), Value::Null],
    );
    choices.put(&mut spec, "replicas", &[json!(0), json!(1), json!(2)]);
    choices.put(
        &mut spec,
        "updateStrategy",
        &[
            json!({}),
            json!({ "type": "OnDelete" }),
            json!({ "type": "RollingUpdate" }),
            json!({ "type": "RollingUpdate", "rollingUpdate": {} }),
            json!({ "type": "RollingUpdate", "rollingUpdate": { "partition": 1 } }),
        ],
    );
    choices.put(&mut spec, "minReadySeconds", &[json!(0), json!(5)]);
    choices.put(&mut spec, "revisionHistoryLimit", &[json!(0), json!(10)]);
    choices.put(&mut spec, "ordinals", &[json!({}), json!({ "start": 0 }), json!({ "start": 1 })]);
    choices.put(
        &mut spec,
        "persistentVolumeClaimRetentionPolicy",
        &[json!({}), json!({ "whenDeleted": "Delete" }), json!({ "whenScaled": "Retain" })],
    );
    json!({ "metadata": metadata(choices), "spec": spec })
}

pub(super) fn daemon_set(choices: &Choices) -> Value {
    let mut spec =
        json!({ "selector": { "matchLabels": { "app": "x" } }, "template": template(choices) });
    choices.put(
        &mut spec,
        "updateStrategy",
        &[json!({}), json!({ "type": "OnDelete" }), json!({ "rollingUpdate": { "maxSurge": 0 } })],
    );
    choices.put(&mut spec, "minReadySeconds", &[json!(0), json!(5)]);
    json!({ "metadata": metadata(choices), "spec": spec })
}

pub(super) fn cron_job(choices: &Choices) -> Value {
    let mut pods = template(choices);
    pods["spec"]["restartPolicy"] = choices.of(&[json!("Never"), json!("OnFailure")]);
    let mut job = json!({ "template": pods });
    choices.put(&mut job, "backoffLimit", &[json!(0), json!(6)]);
    choices.put(&mut job, "parallelism", &[json!(1), json!(2)]);
    choices.put(&mut job, "suspend", &[json!(false), json!(true)]);
    choices.put(&mut job, "ttlSecondsAfterFinished", &[json!(0), json!(60)]);
    let mut of_jobs = json!({ "spec": job });
    choices.put(&mut of_jobs, "metadata", &[json!({}), json!({ "labels": { "a": "1" } })]);
    let schedule = choices.of(&[json!("0 3 * * *"), json!("@daily")]);
    let mut spec = json!({ "schedule": schedule, "jobTemplate": of_jobs });
    choices.put(&mut spec, "concurrencyPolicy", &[json!("Allow"), json!("Forbid"), json!("")]);
    choices.put(&mut spec, "suspend", &[json!(false), json!(true)]);
    choices.put(&mut spec, "startingDeadlineSeconds", &[json!(0), json!(60)]);
    choices.put(&mut spec, "successfulJobsHistoryLimit", &[json!(0), json!(3)]);
    choices.put(&mut spec, "failedJobsHistoryLimit", &[json!(1), json!(2)]);
    choices.put(&mut spec, "timeZone", &[json!("Etc/UTC")]);
    json!({ "metadata": metadata(choices), "spec": spec })
}
