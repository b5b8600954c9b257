//! The program `cronjob`, run as by a new user, and asked in both versions.

// Helpers of tests may unwrap, as tests may.
#![allow(clippy::unwrap_used)]

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use serde_json::{Value, json};
use windlass::api::Api;
use windlass::client::{Client, ClientConfig};
use windlass::clock::Clock;
use windlass::resource::{DynamicObject, ResourceInfo, Scope};

/// The program, ended when dropped.
struct Program(Child);

impl Drop for Program {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Starts the program; returns a client of the program's cluster.
fn start() -> (Program, Client) {
    let home = std::env::temp_dir().join(format!("windlass-cronjob-{}", std::process::id()));
    std::fs::create_dir_all(&home).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_cronjob"));
    command.env("HOME", home).stdout(Stdio::piped());
    for name in ["KUBECONFIG", "KUBERNETES_SERVICE_HOST", "KUBERNETES_SERVICE_PORT", "RUST_LOG"] {
        command.env_remove(name);
    }
    let mut child = command.spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok);
    let path = lines.find_map(|line| line.trim().strip_prefix("kubeconfig").map(str::to_owned));
    let path = path.unwrap().trim().to_owned();
    // The program must not block on a full pipe.
    std::thread::spawn(move || lines.for_each(drop));
    (Program(child), Client::new(ClientConfig::from_file(&path, None).unwrap()).unwrap())
}

fn api(client: &Client, version: &str) -> Api<DynamicObject> {
    let info = ResourceInfo {
        group: "batch.example.dev".into(),
        version: version.to_owned().into(),
        kind: "CronJob".into(),
        plural: "cronjobs".into(),
        scope: Scope::Namespaced,
    };
    client.dynamic(info, Some("default"))
}

fn cron_job(name: &str, schedule: &str) -> DynamicObject {
    let template = json!({ "spec": {
        "restartPolicy": "Never", "containers": [{ "name": "a", "image": "busybox" }],
    } });
    let object = json!({
        "apiVersion": "batch.example.dev/v1beta1", "kind": "CronJob", "metadata": { "name": name },
        "spec": { "schedule": schedule, "suspend": true, "job": { "template": template } },
    });
    serde_json::from_value(object).unwrap()
}

/// Creates an object as soon as the API server reaches the webhooks.
async fn create(old: &Api<DynamicObject>, object: &DynamicObject) -> Value {
    let clock = Clock::system();
    let began = clock.now();
    loop {
        match old.create(object).await {
            Ok(made) => return serde_json::to_value(made).unwrap(),
            Err(error) => {
                assert!(clock.now().duration_since(began) < Duration::from_secs(60), "{error:?}")
            }
        }
        clock.sleep(Duration::from_millis(200)).await;
    }
}

#[tokio::test]
async fn both_versions_defaults_and_rules_work_without_a_cluster() {
    let (_program, client) = start();
    let (old, new) = (api(&client, "v1beta1"), api(&client, "v1"));
    let made = create(&old, &cron_job("daily", "30 4 * * 1-5")).await;
    assert_eq!(made["spec"]["schedule"], "30 4 * * 1-5");
    let seen = serde_json::to_value(new.get("daily").await.unwrap()).unwrap();
    assert_eq!(seen["spec"]["schedule"]["dayOfWeek"], "1-5");
    assert_eq!(seen["spec"]["schedule"]["minute"], "30");

    let clock = Clock::system();
    let began = clock.now();
    let refused = loop {
        match old.create(&cron_job("wrong", "61 4 * * x")).await {
            Err(error) if error.code() == Some(422) => break format!("{error:?}"),
            // The rules are not known to the API server yet.
            Ok(_) => drop(old.delete("wrong").await.unwrap()),
            Err(_) => {}
        }
        assert!(clock.now().duration_since(began) < Duration::from_secs(60));
        clock.sleep(Duration::from_millis(200)).await;
    };
    for field in ["spec.schedule.minute", "spec.schedule.dayOfWeek"] {
        assert!(refused.contains(field), "{refused}");
    }
    let made = create(&old, &cron_job("defaulted", "0 0 1 1 *")).await;
    assert_eq!(made["spec"]["concurrency"], "Allow");
    let seen = serde_json::to_value(new.get("defaulted").await.unwrap()).unwrap();
    assert_eq!(seen["spec"]["historyLimit"], 3);
}
