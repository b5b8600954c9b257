use std::time::Duration;

use serde_json::{Value, json};

use super::*;
use crate::controllers::Controller;

/// Returns a Job, whose Pods carry annotations.
fn job(name: &str, spec: Value, annotations: Value) -> Value {
    let mut job = json!({"metadata": {"name": name}, "spec": spec});
    job["spec"]["template"] = template(name, "Never", annotations);
    job
}

fn status(server: &ApiServer, name: &str) -> Value {
    get(server, "batch", "jobs", name)["status"].clone()
}

/// Lets time pass.
async fn pass(server: &ApiServer, seconds: u64) {
    tokio::time::sleep(Duration::from_secs(seconds)).await;
    settle(server).await;
}

/// Returns a condition without times.
fn condition(name: &str, reason: &str, message: &str) -> Value {
    let time = "2026-01-01T00:00:00Z";
    json!({"type": name, "status": "True", "reason": reason, "message": message,
        "lastProbeTime": time, "lastTransitionTime": time})
}

#[tokio::test(start_paused = true)]
async fn a_job_is_complete_when_enough_pods_have_succeeded() {
    let (server, mut client) = start().await;
    let spec = json!({"completions": 3, "parallelism": 2});
    make(&server, &mut client, &format!("{BATCH}/jobs"), job("work", spec, json!({}))).await;
    let text = "Reached expected number of succeeded pods";
    assert_eq!(
        status(&server, "work"),
        json!({
            "startTime": "2026-01-01T00:00:00Z", "completionTime": "2026-01-01T00:00:00Z",
            "succeeded": 3, "ready": 0, "terminating": 0, "uncountedTerminatedPods": {},
            "conditions": [condition("SuccessCriteriaMet", "CompletionsReached", text),
                condition("Complete", "CompletionsReached", text)],
        })
    );
    let pods = server.list_objects("", "pods", "default");
    assert_eq!(pods.len(), 3);
    assert!(pods.iter().all(|pod| pod["metadata"]["finalizers"].is_null()), "all are counted");
    assert!(pods.iter().all(|pod| pod["metadata"]["labels"]["job-name"] == "work"));
    let reasons = reasons(&server, "work");
    assert_eq!(reasons, ["SuccessfulCreate", "SuccessfulCreate", "SuccessfulCreate", "Completed"]);
}

#[tokio::test(start_paused = true)]
async fn no_more_pods_run_than_may_run_at_once() {
    let (server, mut client) = start().await;
    let spec = json!({"completions": 5, "parallelism": 2});
    let slow = json!({"windlass.dev/run-seconds": "60"});
    make(&server, &mut client, &format!("{BATCH}/jobs"), job("work", spec, slow)).await;
    assert_eq!((&status(&server, "work")["active"], pods(&server).len()), (&json!(2), 2));
    assert_eq!(status(&server, "work")["ready"], 2);
    pass(&server, 61).await;
    assert_eq!(status(&server, "work")["succeeded"], 2);
    pass(&server, 61).await;
    assert_eq!(
        (&status(&server, "work")["active"], &status(&server, "work")["succeeded"]),
        (&json!(1), &json!(4))
    );
    pass(&server, 61).await;
    assert_eq!(status(&server, "work")["completionTime"], "2026-01-01T00:03:00Z");
}

#[tokio::test(start_paused = true)]
async fn a_job_fails_after_too_many_failed_pods_with_pauses_between_them() {
    let (server, mut client) = start().await;
    let bad = json!({"windlass.dev/exit-code": "3"});
    let spec = json!({"backoffLimit": 2});
    make(&server, &mut client, &format!("{BATCH}/jobs"), job("bad", spec, bad)).await;
    assert_eq!(status(&server, "bad")["failed"], 1);
    pass(&server, 11).await;
    assert_eq!(status(&server, "bad")["failed"], 2);
    assert_eq!(status(&server, "bad")["conditions"], Value::Null);
    pass(&server, 18).await;
    assert_eq!(status(&server, "bad")["failed"], 2, "the pause doubles");
    pass(&server, 2).await;
    let end = status(&server, "bad");
    assert_eq!(end["failed"], 3);
    let types: Vec<&Value> =
        end["conditions"].as_array().unwrap().iter().map(|one| &one["type"]).collect();
    assert_eq!(types, ["FailureTarget", "Failed"]);
    assert_eq!(end["conditions"][1]["reason"], "BackoffLimitExceeded");
    assert_eq!(end["conditions"][1]["message"], "Job has reached the specified backoff limit");
    assert_eq!(end["completionTime"], Value::Null);
}

#[tokio::test(start_paused = true)]
async fn a_job_fails_at_its_deadline_and_its_pods_go() {
    let (server, mut client) = start().await;
    let spec = json!({"activeDeadlineSeconds": 30});
    let slow = json!({"windlass.dev/run-seconds": "600"});
    make(&server, &mut client, &format!("{BATCH}/jobs"), job("slow", spec, slow)).await;
    assert_eq!(pods(&server).len(), 1);
    pass(&server, 31).await;
    assert_eq!(pods(&server).len(), 0);
    let end = status(&server, "slow");
    assert_eq!(end["conditions"][1]["reason"], "DeadlineExceeded", "{end}");
    assert_eq!((&end["active"], &end["failed"]), (&Value::Null, &json!(1)));
}

#[tokio::test(start_paused = true)]
async fn each_index_of_a_job_succeeds_once() {
    let (server, mut client) = start().await;
    let spec = json!({"completions": 4, "parallelism": 2, "completionMode": "Indexed"});
    make(&server, &mut client, &format!("{BATCH}/jobs"), job("each", spec, json!({}))).await;
    assert_eq!(status(&server, "each")["completedIndexes"], "0-3");
    let pods = server.list_objects("", "pods", "default");
    let label = "batch.kubernetes.io/job-completion-index";
    let mut indexes: Vec<&str> =
        pods.iter().map(|pod| pod["metadata"]["labels"][label].as_str().unwrap()).collect();
    indexes.sort_unstable();
    assert_eq!(indexes, ["0", "1", "2", "3"]);
    let variable = &pods[0]["spec"]["containers"][0]["env"][0];
    assert_eq!(variable["name"], "JOB_COMPLETION_INDEX");
}

#[tokio::test(start_paused = true)]
async fn a_suspended_job_waits() {
    let (server, mut client) = start().await;
    let spec = json!({"suspend": true});
    make(&server, &mut client, &format!("{BATCH}/jobs"), job("later", spec, json!({}))).await;
    let suspended = status(&server, "later");
    assert_eq!((pods(&server).len(), &suspended["startTime"]), (0, &Value::Null));
    assert_eq!(suspended["conditions"][0]["reason"], "JobSuspended");
    let resume = json!({"spec": {"suspend": false}});
    merge(&server, &mut client, &format!("{BATCH}/jobs/later"), resume).await;
    let suspended = status(&server, "later");
    assert_eq!(suspended["conditions"][0]["reason"], "JobResumed");
    assert_eq!(suspended["succeeded"], 1);
}

#[tokio::test(start_paused = true)]
async fn a_finished_job_goes_after_its_time_to_live() {
    let (server, mut client) = start().await;
    let spec = json!({"ttlSecondsAfterFinished": 100});
    make(&server, &mut client, &format!("{BATCH}/jobs"), job("brief", spec, json!({}))).await;
    pass(&server, 99).await;
    assert_eq!(status(&server, "brief")["succeeded"], 1);
    pass(&server, 2).await;
    assert_eq!((status(&server, "brief"), pods(&server).len()), (Value::Null, 0));
}

#[tokio::test(start_paused = true)]
async fn pods_of_a_deleted_job_can_go() {
    let (server, mut client) = start().await;
    let slow = json!({"windlass.dev/run-seconds": "600"});
    let url = format!("{BATCH}/jobs");
    make(&server, &mut client, &url, job("slow", json!({}), slow)).await;
    assert!(server.list_objects("", "pods", "default")[0]["metadata"]["finalizers"].is_array());
    let options = json!({"propagationPolicy": "Background"});
    client.delete_with(&format!("{url}/slow"), options).await;
    settle(&server).await;
    assert_eq!(pods(&server), Vec::<String>::new());
}

#[tokio::test(start_paused = true)]
async fn restarts_of_containers_count_against_the_limit() {
    let (server, mut client) = start().await;
    let spec = json!({"backoffLimit": 2});
    let mut bad = job("again", spec, json!({"windlass.dev/exit-code": "1"}));
    bad["spec"]["template"]["spec"]["restartPolicy"] = json!("OnFailure");
    make(&server, &mut client, &format!("{BATCH}/jobs"), bad).await;
    let pod = &server.list_objects("", "pods", "default")[0];
    let container = &pod["status"]["containerStatuses"][0];
    assert_eq!(container["restartCount"], 1);
    assert_eq!(container["state"]["waiting"]["reason"], "CrashLoopBackOff");
    assert_eq!(container["lastState"]["terminated"]["exitCode"], 1);
    pass(&server, 60).await;
    assert_eq!(status(&server, "again")["conditions"][1]["reason"], "BackoffLimitExceeded");
    assert_eq!(pods(&server).len(), 0);
}

/// Returns a `CronJob` that runs every minute.
fn cron(spec: Value, annotations: Value) -> Value {
    let mut cron = json!({"metadata": {"name": "tick"}, "spec": spec});
    cron["spec"]["schedule"] = json!("* * * * *");
    cron["spec"]["jobTemplate"] =
        json!({"spec": {"template": template("tick", "Never", annotations)}});
    cron
}

#[tokio::test(start_paused = true)]
async fn a_cron_job_makes_a_job_at_each_time_and_keeps_three() {
    let (server, mut client) = start().await;
    make(&server, &mut client, &format!("{BATCH}/cronjobs"), cron(json!({}), json!({}))).await;
    assert!(server.list_objects("batch", "jobs", "default").is_empty());
    pass(&server, 61).await;
    let jobs = server.list_objects("batch", "jobs", "default");
    assert_eq!(names(&jobs), ["tick-29453761"]);
    let annotations = &jobs[0]["metadata"]["annotations"];
    let time = &annotations["batch.kubernetes.io/cronjob-scheduled-timestamp"];
    assert_eq!(time, "2026-01-01T00:01:00Z");
    let tick = get(&server, "batch", "cronjobs", "tick")["status"].clone();
    assert_eq!(tick["lastScheduleTime"], "2026-01-01T00:01:00Z");
    assert_eq!(tick["lastSuccessfulTime"], "2026-01-01T00:01:00Z");
    assert_eq!(tick["active"], Value::Null, "it has ended");
    let reasons = reasons(&server, "tick");
    assert_eq!(reasons, ["SuccessfulCreate", "SawCompletedJob"]);
    for _ in 0..5 {
        pass(&server, 60).await;
    }
    let jobs = names(&server.list_objects("batch", "jobs", "default"));
    assert_eq!(jobs, ["tick-29453764", "tick-29453765", "tick-29453766"]);
}

#[tokio::test(start_paused = true)]
async fn a_running_job_forbids_or_yields_to_the_next() {
    for (policy, wanted) in [("Forbid", 1), ("Replace", 1), ("Allow", 3)] {
        let (server, mut client) = start().await;
        let slow = json!({"windlass.dev/run-seconds": "6000"});
        let spec = json!({"concurrencyPolicy": policy});
        make(&server, &mut client, &format!("{BATCH}/cronjobs"), cron(spec, slow)).await;
        for _ in 0..3 {
            pass(&server, 60).await;
        }
        pass(&server, 1).await;
        let jobs = names(&server.list_objects("batch", "jobs", "default"));
        assert_eq!(jobs.len(), wanted, "{policy}");
        let name = if policy == "Forbid" { "tick-29453761" } else { "tick-29453763" };
        assert_eq!(jobs.last().unwrap(), name);
        let active = &get(&server, "batch", "cronjobs", "tick")["status"]["active"];
        assert_eq!(active.as_array().unwrap().len(), wanted, "{policy}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_suspended_cron_job_makes_up_for_one_time_only() {
    let (server, mut client) = start().await;
    let spec = json!({"suspend": true});
    make(&server, &mut client, &format!("{BATCH}/cronjobs"), cron(spec, json!({}))).await;
    pass(&server, 600).await;
    assert!(server.list_objects("batch", "jobs", "default").is_empty());
    let resume = json!({"spec": {"suspend": false}});
    merge(&server, &mut client, &format!("{BATCH}/cronjobs/tick"), resume).await;
    let jobs = names(&server.list_objects("batch", "jobs", "default"));
    assert_eq!(jobs, ["tick-29453770"]);
}

#[tokio::test(start_paused = true)]
async fn a_cron_job_that_was_away_for_a_month_makes_up_for_the_last_time_only() {
    let (server, mut client) = start().await;
    let spec = json!({"suspend": true});
    make(&server, &mut client, &format!("{BATCH}/cronjobs"), cron(spec, json!({}))).await;
    let tick = format!("{BATCH}/cronjobs/tick");
    let before = json!({"status": {"lastScheduleTime": "2025-12-01T00:00:00Z"}});
    merge(&server, &mut client, &format!("{tick}/status"), before).await;
    merge(&server, &mut client, &tick, json!({"spec": {"suspend": false}})).await;
    let jobs = names(&server.list_objects("batch", "jobs", "default"));
    assert_eq!(jobs, ["tick-29453760"]);
    let status = get(&server, "batch", "cronjobs", "tick")["status"].clone();
    assert_eq!(status["lastScheduleTime"], "2026-01-01T00:00:00Z");
    let reasons = reasons(&server, "tick");
    assert_eq!(reasons.iter().filter(|reason| *reason == "TooManyMissedTimes").count(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_job_releases_the_pods_of_an_earlier_one_of_its_name_and_no_others() {
    let (server, mut client) = start_with(ControllerSet::NONE.set(Controller::Jobs, true)).await;
    let pod = |name: &str, api_version: &str, uid: &str| {
        json!({"metadata": {"name": name, "finalizers": ["batch.kubernetes.io/job-tracking"],
            "ownerReferences": [{"apiVersion": api_version, "kind": "Job", "name": "once",
                "uid": uid, "controller": true}]},
            "spec": {"containers": [{"name": "c", "image": "i"}]}})
    };
    make(&server, &mut client, &format!("{CORE}/pods"), pod("foreign", "other.dev/v1", "u1")).await;
    let spec = json!({"suspend": true, "template": template("once", "Never", json!({}))});
    let job = json!({"metadata": {"name": "once"}, "spec": spec});
    let job = make(&server, &mut client, &format!("{BATCH}/jobs"), job).await;
    let uid = job["metadata"]["uid"].as_str().unwrap();
    // The present Job does not count the Pods of the earlier Job, and no other controller does.
    make(&server, &mut client, &format!("{CORE}/pods"), pod("old", "batch/v1", "u2")).await;
    make(&server, &mut client, &format!("{CORE}/pods"), pod("own", "batch/v1", uid)).await;
    let is_tracked =
        |name: &str| get(&server, "", "pods", name)["metadata"]["finalizers"].is_array();
    assert_eq!((is_tracked("foreign"), is_tracked("old")), (true, false));
    server.delete_object("batch", "jobs", "default", "once").unwrap();
    settle(&server).await;
    assert_eq!((is_tracked("foreign"), is_tracked("own")), (true, false));
}

#[tokio::test(start_paused = true)]
async fn a_job_of_another_controller_is_left_alone_and_one_that_names_the_built_in_one_runs() {
    let (server, mut client) = start().await;
    let url = format!("{BATCH}/jobs");
    let foreign = job("foreign", json!({"managedBy": "example.dev/queue"}), json!({}));
    let foreign = make(&server, &mut client, &url, foreign).await;
    let pod = json!({"metadata": {"name": "theirs",
        "finalizers": ["batch.kubernetes.io/job-tracking"], "ownerReferences": [{
            "apiVersion": "batch/v1", "kind": "Job", "name": "foreign", "controller": true,
            "uid": foreign["metadata"]["uid"]}]},
        "spec": {"containers": [{"name": "c", "image": "i"}]}});
    make(&server, &mut client, &format!("{CORE}/pods"), pod).await;
    let own = job("own", json!({"managedBy": "kubernetes.io/job-controller"}), json!({}));
    make(&server, &mut client, &url, own).await;
    assert_eq!(status(&server, "foreign"), json!({}));
    let finalizers = get(&server, "", "pods", "theirs")["metadata"]["finalizers"].clone();
    assert_eq!(finalizers, json!(["batch.kubernetes.io/job-tracking"]));
    assert_eq!(status(&server, "own")["succeeded"], 1);
}
