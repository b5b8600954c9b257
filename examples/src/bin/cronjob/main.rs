//! A cron operator: each `CronJob` starts a Job at the times of the schedule. Two versions,
//! defaults and rules by webhooks, and conversion.
//!
//! `cargo run --bin cronjob` needs no cluster: the program brings an API server, which calls the
//! webhooks over loopback, and a sample.

mod schedule;
mod v1;
mod v1beta1;

use std::process::ExitCode;
use std::time::Duration;

use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::jiff::Timestamp;
use serde_json::json;
use v1::{ConcurrencyPolicy, CronJob};
use windlass::path;
use windlass::prelude::*;
use windlass::webhook::{Admission, AdmissionResponse, Mutate, Validate, WebhookServer, Webhooks};

/// Longest name: that of a Job has eleven characters more.
const LONGEST_NAME: usize = 52;
/// Most times that are looked at to find the last missed time.
const MOST_MISSED: usize = 10_000;

struct Defaults;

impl Mutate for Defaults {
    type Object = CronJob;

    async fn mutate(&self, cron: &mut CronJob, _: &Admission) -> AdmissionResponse {
        cron.spec.concurrency_policy.get_or_insert(ConcurrencyPolicy::Allow);
        cron.spec.suspend.get_or_insert(false);
        cron.spec.history_limit.get_or_insert(3);
        AdmissionResponse::allowed()
    }
}

struct Rules;

impl Validate for Rules {
    type Object = CronJob;

    async fn validate(&self, cron: &CronJob, _: &Admission) -> AdmissionResponse {
        let mut response = AdmissionResponse::allowed();
        if cron.name().len() > LONGEST_NAME {
            let detail = format!("must be no more than {LONGEST_NAME} characters");
            response.invalid("metadata.name", cron.name(), &detail);
        }
        for (name, value, fault) in cron.spec.schedule.faults() {
            response.invalid(format!("spec.schedule.{name}"), value, &fault);
        }
        if cron.spec.history_limit == Some(0) {
            let text = "no finished Job is kept, so that nobody sees why one failed";
            response.warn(format!(
                "{}: {text}",
                path!(CronJob: spec.history_limit).json_path().unwrap_or_default()
            ));
        }
        response
    }
}

#[derive(Controller)]
#[controller(for = CronJob, owns(Job))]
struct CronJobs;

impl Reconciler for CronJobs {
    type Object = CronJob;

    async fn reconcile(&self, cron: &CronJob, cx: &Context<Self>) -> Result {
        let now = cx.clock().wall();
        let jobs = cx.store_of::<Job>().owned_by(cron.metadata.uid.as_deref().unwrap_or_default());
        let (mut active, mut finished) = (Vec::new(), Vec::new());
        for job in &jobs {
            let job = job.get()?;
            if is_finished(&job) { finished.push(job) } else { active.push(job.name().to_owned()) }
        }
        finished.sort_by_key(|job| job.metadata.creation_timestamp.as_ref().map(|time| time.0));
        let kept = usize::try_from(cron.spec.history_limit.unwrap_or(3)).unwrap_or_default();
        for job in finished.iter().take(finished.len().saturating_sub(kept)) {
            cx.delete_owned::<Job>(job.name()).await?;
        }
        let (last, next) = times(cron, now)?;
        let due = last.filter(|last| !is_too_late(cron, *last, now) && !is_suspended(cron));
        if let Some(at) = due {
            run(cron, cx, at, &mut active).await?;
        }
        let since = due.or(cron
            .status
            .as_ref()
            .and_then(|it| it.last_schedule_time.as_ref())
            .map(|it| it.0));
        active.sort();
        let since = since.map(|at| at.to_string());
        let status = json!({ "active": active, "lastScheduleTime": since });
        cx.patch_status(status).await?;
        let text = match next {
            _ if is_suspended(cron) => "suspended".to_owned(),
            Some(next) => format!("next at {next}"),
            None => "never again".to_owned(),
        };
        cx.set_condition(met("Ready", "Scheduled", text)).await?;
        let Some(next) = next.filter(|_| !is_suspended(cron)) else { return Ok(Action::done()) };
        let wait = next.as_second().saturating_sub(now.as_second()).max(1);
        Ok(Action::requeue_after(Duration::from_secs(wait.unsigned_abs())))
    }
}

/// Returns the last time that was missed, and the next time.
fn times(cron: &CronJob, now: Timestamp) -> Result<(Option<Timestamp>, Option<Timestamp>)> {
    let seen = cron.status.as_ref().and_then(|status| status.last_schedule_time.as_ref());
    let mut since = seen.or(cron.metadata.creation_timestamp.as_ref()).map_or(now, |time| time.0);
    let mut last = None;
    for _ in 0..MOST_MISSED {
        match cron.spec.schedule.next(since)? {
            Some(time) if time <= now => (last, since) = (Some(time), time),
            next => return Ok((last, next)),
        }
    }
    // After a long pause: the runs before now are left out.
    Ok((None, cron.spec.schedule.next(now)?))
}

/// Starts the Job of a time, as far as earlier Jobs allow.
async fn run(
    cron: &CronJob,
    cx: &Context<CronJobs>,
    at: Timestamp,
    active: &mut Vec<String>,
) -> Result<()> {
    let name = format!("{}-{}", cron.name(), at.as_second() / 60);
    match cron.spec.concurrency_policy {
        _ if active.contains(&name) => return Ok(()),
        Some(ConcurrencyPolicy::Forbid) if !active.is_empty() => return Ok(()),
        Some(ConcurrencyPolicy::Replace) => {
            for job in active.drain(..) {
                cx.delete_owned::<Job>(&job).await?;
            }
        }
        _ => {}
    }
    let metadata = ObjectMeta { name: Some(name.clone()), ..ObjectMeta::default() };
    cx.apply_owned(Job { metadata, spec: Some(cron.spec.job.clone()), status: None }).await?;
    active.push(name);
    Ok(())
}

fn is_finished(job: &Job) -> bool {
    let conditions = job.status.iter().filter_map(|status| status.conditions.as_ref()).flatten();
    let mut ends = conditions.filter(|it| matches!(it.type_.as_str(), "Complete" | "Failed"));
    ends.any(|condition| condition.status == "True")
}

fn is_suspended(cron: &CronJob) -> bool {
    cron.spec.suspend == Some(true)
}

fn is_too_late(cron: &CronJob, at: Timestamp, now: Timestamp) -> bool {
    let deadline = cron.spec.starting_deadline_seconds;
    deadline.is_some_and(|seconds| now.as_second() - at.as_second() > seconds)
}

/// Returns the operator, for `main` and for tests.
pub(crate) fn operator(client: Client) -> Manager {
    let webhooks = Webhooks::new().mutating(Defaults).validating(Rules).converting::<CronJob>();
    Manager::new(client)
        .leader_election("cron-operator")
        .install::<CronJob>()
        .controller(CronJobs)
        .runnable(WebhookServer::new(webhooks))
}

/// Returns a job that runs each minute.
fn sample() -> CronJob {
    let job = object!(Job { spec: { template: { spec: {
        restartPolicy: "Never",
        containers: [{ name: "hello", image: "busybox:1.37", args: ["date"] }],
    } } } });
    let spec = v1::CronJobSpec {
        schedule: v1::Schedule {
            minute: "*".into(),
            hour: "*".into(),
            day_of_month: "*".into(),
            month: "*".into(),
            day_of_week: "*".into(),
        },
        starting_deadline_seconds: Some(60),
        concurrency_policy: Some(ConcurrencyPolicy::Allow),
        suspend: Some(false),
        job: job.spec.unwrap_or_default(),
        history_limit: Some(3),
    };
    CronJob::new("hello", spec)
}

fn main() -> ExitCode {
    windlass::cli::App::new(operator).package(windlass::package!()).sample(sample()).main()
}

#[cfg(test)]
mod tests {
    use windlass::api::Patch;
    use windlass::testing::{CheckReport, Exploration, TestCluster, check};

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_job_is_made_each_minute_and_the_status_has_its_time() {
        let cluster = TestCluster::builder().embedded().start().await;
        cluster.install::<CronJob>().await;
        let running = cluster.spawn(operator(cluster.client()));
        running.settled().await;
        let crons = cluster.client().namespace::<CronJob>(cluster.namespace());
        crons.create(&sample()).await.unwrap();
        // 2026-01-01T00:00:00Z is the first moment of the cluster.
        cluster.client().environment().clock.sleep(Duration::from_secs(90)).await;
        running.settled().await;
        let status = crons.get("hello").await.unwrap().status.unwrap();
        let time = status.last_schedule_time.unwrap().0;
        assert_eq!(time.to_string(), "2026-01-01T00:01:00Z");
        let jobs = cluster.client().namespace::<Job>(cluster.namespace()).list().await.unwrap();
        assert_eq!(jobs.items.len(), 1);
        assert_eq!(status.active, [jobs.items[0].name()]);
    }

    #[test]
    fn each_time_has_one_job_and_a_suspension_ends_them_whatever_fails() {
        let budget = Duration::from_secs(10);
        let report = Exploration::new().runs(60).budget(budget).run(|world| async move {
            world.operator(operator);
            let crons = world.client().namespace::<CronJob>("default");
            world.eventually("the kind is served", async || crons.list().await.is_ok()).await;
            let mut cron = sample();
            cron.spec.schedule.minute = "*/2".to_owned();
            // The webhooks of an operator that is down refuse.
            world.eventually("it is created", async || crons.create(&cron).await.is_ok()).await;
            let has_run = async || {
                let found = crons.get("hello").await.ok().and_then(|cron| cron.status);
                found.is_some_and(|status| status.last_schedule_time.is_some())
            };
            world.eventually("a job has run", has_run).await;
            let patch = Patch::Merge(json!({ "spec": { "suspend": true } }));
            let is_patched = async || crons.patch("hello", patch.clone()).await.is_ok();
            world.eventually("it is suspended", is_patched).await;
        });
        assert!(report.findings().is_empty(), "{report}");
    }

    /// Whether the template of the Job, which is opaque, is the only place without checks.
    fn only_the_job_is_unchecked(report: &CheckReport) -> bool {
        matches!(report.unchecked(), [place] if place.starts_with(".spec.job: "))
    }

    #[tokio::test]
    async fn serde_the_definition_and_an_api_server_agree() {
        let report = check::<CronJob>().await;
        assert!(only_the_job_is_unchecked(&report), "{report}");
    }

    #[tokio::test]
    async fn serde_the_former_definition_and_an_api_server_agree() {
        let report = check::<v1beta1::CronJob>().await;
        assert!(only_the_job_is_unchecked(&report), "{report}");
    }
}
