//! The older version: the schedule is a line of a crontab.

use std::str::FromStr;

use k8s_openapi::api::batch::v1::JobSpec;
use serde::{Deserialize, Serialize};
use windlass::Convertible;
use windlass::prelude::*;

use crate::v1::{self, Schedule};

/// A Job that runs at certain times.
#[derive(CustomResource, Clone, Debug)]
#[resource(version = "v1beta1", hub = v1::CronJob, deprecated = "use batch.example.dev/v1")]
#[resource(column("Schedule", spec.schedule), column(age))]
pub(crate) struct CronJob {
    pub(crate) metadata: ObjectMeta,
    pub(crate) spec: CronJobSpec,
    pub(crate) status: Option<v1::CronJobStatus>,
}

#[derive(Clone, Debug, Serialize, Deserialize, Schema, Convertible)]
#[serde(rename_all = "camelCase")]
#[convert(hub = v1::CronJobSpec, hub_only(history_limit))]
pub(crate) struct CronJobSpec {
    /// Times in UTC, as `*/5 * * * *`.
    #[schema(pattern = "^\\S+ \\S+ \\S+ \\S+ \\S+$")]
    #[convert(to_hub = parsed, from_hub = line)]
    pub(crate) schedule: String,
    pub(crate) starting_deadline_seconds: Option<i64>,
    #[convert(rename = concurrency_policy)]
    pub(crate) concurrency: Option<v1::ConcurrencyPolicy>,
    pub(crate) suspend: Option<bool>,
    pub(crate) job: JobSpec,
}

fn parsed(line: String) -> std::result::Result<Schedule, String> {
    line.parse()
}

fn line(schedule: Schedule) -> String {
    let Schedule { minute, hour, day_of_month, month, day_of_week } = schedule;
    format!("{minute} {hour} {day_of_month} {month} {day_of_week}")
}

impl FromStr for Schedule {
    type Err = String;

    fn from_str(line: &str) -> std::result::Result<Self, String> {
        let fields: Vec<String> = line.split(' ').map(ToOwned::to_owned).collect();
        let fields: std::result::Result<[String; 5], _> = fields.try_into();
        let [minute, hour, day_of_month, month, day_of_week] =
            fields.map_err(|fields: Vec<_>| format!("{} fields instead of 5", fields.len()))?;
        Ok(Self { minute, hour, day_of_month, month, day_of_week })
    }
}
