//! The hub: the schedule has a field for each unit.

use k8s_openapi::api::batch::v1::JobSpec;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use serde::{Deserialize, Serialize};
use windlass::prelude::*;

use crate::v1beta1;

/// A Job that runs at certain times.
#[derive(CustomResource, Clone, Debug)]
#[resource(group = "batch.example.dev", version = "v1", namespaced, versions(v1beta1::CronJob))]
#[resource(column("Suspend", spec.suspend), column("Last", status.last_schedule_time), column(age))]
pub(crate) struct CronJob {
    pub(crate) metadata: ObjectMeta,
    pub(crate) spec: CronJobSpec,
    pub(crate) status: Option<CronJobStatus>,
}

#[derive(Clone, Debug, Serialize, Deserialize, Schema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct CronJobSpec {
    /// Times, in UTC.
    pub(crate) schedule: Schedule,
    /// Seconds after which a missed run is left out.
    #[schema(min = 0)]
    pub(crate) starting_deadline_seconds: Option<i64>,
    /// Treatment of a run that is due while an earlier one is active: `Allow` by default.
    pub(crate) concurrency_policy: Option<ConcurrencyPolicy>,
    /// Whether no further run begins.
    pub(crate) suspend: Option<bool>,
    /// The Job of each run.
    pub(crate) job: JobSpec,
    /// Finished runs that are kept: 3 by default.
    #[schema(min = 0)]
    pub(crate) history_limit: Option<i32>,
}

/// Fields of a schedule, as in a crontab.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Schema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Schedule {
    pub(crate) minute: String,
    pub(crate) hour: String,
    pub(crate) day_of_month: String,
    pub(crate) month: String,
    /// 0 is Sunday.
    pub(crate) day_of_week: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, Schema)]
pub(crate) enum ConcurrencyPolicy {
    /// Runs overlap.
    Allow,
    /// The new run is left out.
    Forbid,
    /// The earlier run is deleted.
    Replace,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize, Schema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct CronJobStatus {
    /// Names of Jobs that have not finished.
    #[serde(default)]
    pub(crate) active: Vec<String>,
    pub(crate) last_schedule_time: Option<Time>,
    #[serde(default)]
    pub(crate) conditions: Conditions,
}
