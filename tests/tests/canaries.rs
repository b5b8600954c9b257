//! Secrets in the values of every crate that holds some, and their absence from the output of
//! `Debug`.
//!
//! The client's output, logs and errors included, is checked beside the client's sources
//! (`client/tests/configuring/secrets.rs`). The macros hold no secrets: they run in the compiler.
//! The types of `k8s-openapi` are not ours, and their `Secret` prints the values.

#![allow(clippy::unwrap_used, reason = "helpers of tests, outside of test functions")]

use std::fmt::Debug;
use std::net::Ipv4Addr;

use serde_json::json;
use windlass::api::Api;
use windlass::client::{Client, ClientConfig, ExecPlugin, SecretString};
use windlass::leader::{Elector, LeaderElection, LeaseLock};
use windlass::local::LocalCluster;
use windlass::manager::Manager;
use windlass::resource::{DynamicObject, PartialObject, ResourceInfo};
use windlass::testing::TestCluster;
use windlass_apiserver::ApiServer;

fn printed(value: &impl Debug) -> String {
    format!("{value:?} {value:#?}")
}

/// Returns the words after `token:` and the like in a kubeconfig, and their text decoded from
/// base64.
fn credentials(kubeconfig: &str) -> Vec<String> {
    let fields = ["token: ", "client-key-data: "];
    let values = kubeconfig
        .lines()
        .filter_map(|line| fields.iter().find_map(|field| line.trim().strip_prefix(field)));
    let values: Vec<String> = values.map(|value| value[..20].to_owned()).collect();
    assert_eq!(values.len(), 3, "a token and a key, and the token of the second context");
    values
}

fn secret() -> serde_json::Value {
    json!({
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {
            "name": "login",
            "annotations": {
                "kubectl.kubernetes.io/last-applied-configuration": "{\"data\":\"Y2FuYXJ5\"}",
            },
        },
        "data": { "password": "Y2FuYXJ5" },
    })
}

fn secrets() -> ResourceInfo {
    ResourceInfo::of::<k8s_openapi::api::core::v1::Secret>()
}

#[tokio::test]
async fn no_value_of_the_api_server_prints_tokens_keys_or_secrets() {
    let tokens = "canary-token,robot,1,\"system:masters\"";
    let builder = ApiServer::builder().seed(7).tokens(tokens);
    assert!(printed(&builder).contains("seed: Some"), "something is printed");
    let shown = printed(&builder);
    assert!(!shown.contains("canary"), "{shown}");
    let server = builder.start();
    let listening = server.listen((Ipv4Addr::LOCALHOST, 0).into()).await.unwrap();
    server.create_object("", "secrets", "default", secret()).unwrap();
    let mut words = credentials(&listening.kubeconfig);
    words.extend(["canary".to_owned(), "Y2FuYXJ5".to_owned()]);
    let backup = server.backup();
    for shown in [
        printed(&listening),
        printed(&server),
        printed(&backup),
        printed(&server.requests()),
        printed(server.faults()),
    ] {
        assert!(words.iter().all(|word| !shown.contains(word.as_str())), "{shown}");
    }
    assert!(printed(&listening).contains("127.0.0.1"));
}

#[tokio::test]
async fn no_cluster_of_a_test_or_a_laptop_prints_its_credentials() {
    let local = LocalCluster::start(&format!("canaries-{}", std::process::id())).await.unwrap();
    let kubeconfig = std::fs::read_to_string(local.kubeconfig()).unwrap();
    let shown = printed(&local);
    for word in credentials(&kubeconfig) {
        assert!(!shown.contains(&word), "{shown}");
    }
    local.shutdown().await;
    let cluster = TestCluster::start().await;
    let kubeconfig = cluster.kubeconfig().await;
    let shown = [printed(&cluster), printed(&cluster.client())].concat();
    for field in ["token: ", "client-key-data: "] {
        let values = kubeconfig.lines().filter_map(|line| line.trim().strip_prefix(field));
        for value in values.filter(|value| value.len() >= 20) {
            assert!(!shown.contains(&value[..20]), "{shown}");
        }
    }
}

#[tokio::test]
async fn no_object_that_is_read_as_a_secret_prints_its_values() {
    let cluster = TestCluster::start().await;
    let api: Api<DynamicObject> = cluster.client().dynamic(secrets(), Some(cluster.namespace()));
    let object: DynamicObject = serde_json::from_value(secret()).unwrap();
    let mut all = vec![printed(&object), printed(&api.create(&object).await.unwrap())];
    all.push(printed(&api.get("login").await.unwrap()));
    all.push(printed(&api.list().await.unwrap()));
    let partial: PartialObject = serde_json::from_value(secret()).unwrap();
    all.push(printed(&partial));
    for shown in all {
        assert!(shown.contains("login") && !shown.contains("Y2FuYXJ5"), "{shown}");
    }
}

#[test]
fn no_configuration_of_a_client_prints_its_credentials() {
    let config = || ClientConfig::new("https://api.example").unwrap();
    let plugin = ExecPlugin::new("login").arg("canary").env("PASSWORD", "canary");
    for config in [
        config().with_token("canary"),
        config().with_basic_auth("robot", "canary"),
        config().with_exec(plugin),
        config().with_proxy("http://robot:canary@proxy:3128").unwrap(),
    ] {
        let shown = printed(&config) + &printed(&Client::builder().config(config));
        assert!(shown.contains("api.example") && !shown.contains("canary"), "{shown}");
    }
    let shown = printed(&SecretString::from("canary".to_owned()));
    assert!(!shown.contains("canary"), "{shown}");
}

#[tokio::test]
async fn no_manager_elector_or_lock_prints_the_credentials_of_its_client() {
    let config = ClientConfig::new("https://api.example").unwrap().with_token("canary");
    let client = Client::builder().config(config).build().unwrap();
    let elector = Elector::new(LeaderElection::new("sites").namespace("default"), &client).unwrap();
    let lock = LeaseLock::new(&client, "default", "sites", "one");
    for shown in [printed(&elector), printed(&lock), printed(&Manager::new(client.clone()))] {
        assert!(!shown.is_empty() && !shown.contains("canary"), "{shown}");
    }
}
