//! A kind of two versions whose reviews windlass answers, for `run`.
//!
//! `webhooks PORT FOLDER`: FOLDER has `tls.crt` and `tls.key`. Ends when it is killed.

use std::net::Ipv4Addr;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde::{Deserialize, Serialize};
use windlass::client::Client;
use windlass::manager::Manager;
use windlass::webhook::{
    Admission, AdmissionResponse, MountedFiles, Validate, WebhookServer, Webhooks,
};
use windlass::{Convertible, CustomResource, Schema};

mod v1 {
    use super::*;

    #[derive(CustomResource, Clone, Debug)]
    #[resource(group = "batch.example.dev", version = "v1", namespaced, versions(v1beta1::Backup))]
    pub struct Backup {
        pub metadata: ObjectMeta,
        pub spec: BackupSpec,
    }

    #[derive(Clone, Debug, Serialize, Deserialize, Schema)]
    pub struct BackupSpec {
        pub schedule: Schedule,
        pub host: String,
        pub keep: i32,
        pub targets: Vec<Target>,
    }

    #[derive(Clone, Debug, Serialize, Deserialize, Schema)]
    #[serde(rename_all = "camelCase")]
    pub struct Schedule {
        pub minute: String,
        pub hour: String,
        pub day_of_week: String,
    }

    #[derive(Clone, Debug, Serialize, Deserialize, Schema)]
    pub struct Target {
        pub name: String,
        pub address: String,
    }
}

mod v1beta1 {
    use super::*;

    #[derive(CustomResource, Clone, Debug)]
    #[resource(version = "v1beta1", hub = v1::Backup)]
    pub struct Backup {
        pub metadata: ObjectMeta,
        pub spec: BackupSpec,
    }

    #[derive(Clone, Debug, Serialize, Deserialize, Schema, Convertible)]
    #[convert(hub = v1::BackupSpec)]
    pub struct BackupSpec {
        #[convert(to_hub = split, from_hub = join)]
        pub schedule: String,
        pub host: String,
        #[convert(rename = keep)]
        pub history: i32,
        pub targets: Vec<v1::Target>,
    }

    fn split(line: String) -> Result<v1::Schedule, String> {
        let fields: Vec<String> = line.split(' ').map(str::to_owned).collect();
        let fields: Result<[String; 3], _> = fields.try_into();
        let [minute, hour, day_of_week] =
            fields.map_err(|fields| format!("{} fields instead of 3", fields.len()))?;
        Ok(v1::Schedule { minute, hour, day_of_week })
    }

    fn join(from: v1::Schedule) -> String {
        format!("{} {} {}", from.minute, from.hour, from.day_of_week)
    }
}

struct Rules;

impl Validate for Rules {
    type Object = v1::Backup;

    async fn validate(&self, backup: &v1::Backup, _: &Admission) -> AdmissionResponse {
        let mut response = AdmissionResponse::allowed();
        if backup.spec.host.is_empty() {
            response.required("spec.host", "");
        }
        if backup.spec.keep < 0 {
            response.invalid("spec.keep", backup.spec.keep, "must be at least 0");
        }
        response
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut words = std::env::args().skip(1);
    let port: u16 = words.next().ok_or("the port is missing")?.parse()?;
    let folder = words.next().ok_or("the folder is missing")?;
    let webhooks = Webhooks::new().validating(Rules).converting::<v1::Backup>();
    let server = WebhookServer::new(webhooks)
        .certificates(MountedFiles::new(folder))
        .listen((Ipv4Addr::LOCALHOST, port).into());
    let manager = Manager::new(Client::offline()).without_health().without_metrics();
    manager.runnable(server).run().await?;
    Ok(())
}
