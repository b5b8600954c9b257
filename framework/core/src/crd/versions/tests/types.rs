//! A kind of three versions, with every way in which versions differ.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde::{Deserialize, Deserializer, Serialize};
use windlass_macros::{Convertible, CustomResource, Schema};

/// Reads a text that is the same in upper case.
fn lower_case<'de, D: Deserializer<'de>>(from: D) -> Result<String, D::Error> {
    Ok(String::deserialize(from)?.to_lowercase())
}

/// The hub.
pub(super) mod v1 {
    use super::*;

    /// A job.
    #[derive(CustomResource, Clone, Debug, PartialEq)]
    #[resource(group = "example.dev", version = "v1", namespaced, short = "jb")]
    #[resource(versions(v1beta1::Job, v1alpha1::Job), column(spec.host))]
    pub(crate) struct Job {
        pub metadata: ObjectMeta,
        pub spec: JobSpec,
        pub status: Option<JobStatus>,
    }

    #[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Schema)]
    #[serde(rename_all = "camelCase")]
    pub(crate) struct JobSpec {
        pub minute: String,
        pub hour: String,
        pub host: String,
        pub path: String,
        pub starting_deadline_seconds: Option<i64>,
        pub concurrency: Policy,
        pub ports: Vec<Port>,
        pub steps: Vec<Step>,
        pub limits: BTreeMap<String, Limit>,
        pub replicas: i32,
        pub time_zone: Option<String>,
        pub suspend: bool,
        pub nested: Option<Box<Nested>>,
        #[serde(default)]
        pub retries: i32,
        #[serde(default, deserialize_with = "lower_case")]
        #[schema(with = String)]
        pub tier: String,
    }

    #[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Schema)]
    #[serde(rename_all = "camelCase")]
    pub(crate) enum Policy {
        Allow,
        Forbid,
        Replace { grace: i32, force: bool },
        Queue(i32),
    }

    #[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Schema)]
    pub(crate) struct Port {
        pub name: String,
        pub number: i64,
        #[serde(skip_serializing_if = "Option::is_none")]
        pub tls: Option<String>,
    }

    #[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Schema)]
    pub(crate) struct Step {
        pub image: String,
        pub args: Vec<String>,
        pub weight: i32,
    }

    #[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Schema)]
    pub(crate) struct Limit {
        pub min: i32,
        pub max: i32,
    }

    #[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Schema)]
    pub(crate) struct Nested {
        pub text: String,
        pub hidden: Option<i32>,
    }

    #[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, Schema)]
    #[serde(rename_all = "camelCase")]
    pub(crate) struct JobStatus {
        pub active: Option<Vec<String>>,
        pub observed_generation: Option<i64>,
    }
}

/// A version with renames, a split, merged fields, fewer and more fields and variants.
pub(super) mod v1beta1 {
    use super::*;

    #[derive(CustomResource, Clone, Debug, PartialEq)]
    #[resource(version = "v1beta1", hub = v1::Job, deprecated = "use v1", column(spec.url))]
    pub(crate) struct Job {
        pub metadata: ObjectMeta,
        pub spec: JobSpec,
        pub status: Option<JobStatus>,
    }

    #[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Schema, Convertible)]
    #[serde(rename_all = "camelCase")]
    #[convert(hub = v1::JobSpec, to_hub = split, from_hub = join)]
    #[convert(hub_only(minute, hour, host, path, time_zone, suspend = true))]
    pub(crate) struct JobSpec {
        /// `minute hour`.
        #[convert(version_only)]
        pub schedule: String,
        /// `host/path`.
        #[convert(version_only)]
        pub url: String,
        #[convert(rename = starting_deadline_seconds)]
        pub deadline: Option<i64>,
        pub concurrency: Policy,
        pub ports: Vec<Port>,
        pub steps: Vec<Step>,
        pub limits: BTreeMap<String, Limit>,
        #[convert(to_hub = or_one, from_hub = Some)]
        pub replicas: Option<i32>,
        pub nested: Option<Box<Nested>>,
        #[convert(version_only)]
        pub comment: Option<String>,
        #[serde(default)]
        pub retries: i32,
        #[serde(default, deserialize_with = "lower_case")]
        #[schema(with = String)]
        pub tier: String,
    }

    fn split(from: &JobSpec, to: &mut v1::JobSpec) -> Result<(), String> {
        let halves = |text: &str, at: char| {
            let halves = text.split_once(at).map(|(a, b)| (a.to_owned(), b.to_owned()));
            halves.ok_or_else(|| format!("{text:?} has no {at:?}"))
        };
        (to.minute, to.hour) = halves(&from.schedule, ' ')?;
        (to.host, to.path) = halves(&from.url, '/')?;
        Ok(())
    }

    fn join(from: &v1::JobSpec, to: &mut JobSpec) {
        to.schedule = format!("{} {}", from.minute, from.hour);
        to.url = format!("{}/{}", from.host, from.path);
    }

    fn or_one(replicas: Option<i32>) -> i32 {
        replicas.unwrap_or(1)
    }

    #[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Schema, Convertible)]
    #[serde(rename_all = "camelCase")]
    #[convert(hub = v1::Policy, hub_only(Queue = Self::Allow))]
    pub(crate) enum Policy {
        Allow,
        #[convert(rename = Forbid)]
        Never,
        #[convert(hub_only(force))]
        Replace {
            #[convert(rename = grace)]
            seconds: i32,
        },
        #[convert(version_only = v1::Policy::Forbid)]
        Legacy(String),
    }

    #[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Schema, Convertible)]
    #[convert(hub = v1::Port, hub_only(tls))]
    pub(crate) struct Port {
        pub name: String,
        pub number: i32,
    }

    #[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Schema, Convertible)]
    #[convert(hub = v1::Step, hub_only(weight = 1))]
    pub(crate) struct Step {
        pub image: String,
        pub args: Vec<String>,
    }

    #[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Schema, Convertible)]
    #[convert(hub = v1::Limit, hub_only(min))]
    pub(crate) struct Limit {
        pub max: i32,
    }

    #[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Schema, Convertible)]
    #[convert(hub = v1::Nested, hub_only(hidden))]
    pub(crate) struct Nested {
        pub text: String,
    }

    #[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, Schema, Convertible)]
    #[convert(hub = v1::JobStatus, hub_only(observed_generation))]
    pub(crate) struct JobStatus {
        pub active: Option<Vec<String>>,
    }
}

/// A version that holds little.
pub(super) mod v1alpha1 {
    use super::*;

    #[derive(CustomResource, Clone, Debug, PartialEq)]
    #[resource(version = "v1alpha1", hub = v1::Job, served = false)]
    #[convert(hub_only(status))]
    pub(crate) struct Job {
        pub metadata: ObjectMeta,
        #[convert(to_hub = to_hub, from_hub = from_hub)]
        pub spec: JobSpec,
        #[convert(version_only)]
        pub note: Option<String>,
    }

    #[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Schema)]
    pub(crate) struct JobSpec {
        pub host: String,
        pub count: i32,
        pub names: Vec<String>,
    }

    fn to_hub(spec: JobSpec) -> v1::JobSpec {
        let port = |name| v1::Port { name, number: 80, tls: None };
        v1::JobSpec {
            minute: "0".into(),
            hour: "0".into(),
            host: spec.host,
            path: String::new(),
            starting_deadline_seconds: None,
            concurrency: v1::Policy::Allow,
            ports: spec.names.into_iter().map(port).collect(),
            steps: Vec::new(),
            limits: BTreeMap::new(),
            replicas: spec.count,
            time_zone: None,
            suspend: false,
            nested: None,
            retries: 0,
            tier: String::new(),
        }
    }

    fn from_hub(spec: v1::JobSpec) -> JobSpec {
        let names = spec.ports.into_iter().map(|port| port.name).collect();
        JobSpec { host: spec.host, count: spec.replicas, names }
    }
}
