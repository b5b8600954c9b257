//! The fence of a leader election: the API server refuses writes of a Pod that does not hold the
//! lease.

use std::io::Write;
use std::process::{Command, Stdio};
use std::sync::Arc;

use k8s_openapi::api::core::v1::{ConfigMap, Pod, ServiceAccount};
use serde_json::json;
use tokio_util::sync::CancellationToken;
use windlass::api::Patch;
use windlass::client::Client;
use windlass::leader::{Elector, LeaderElection};
use windlass::manager::ManifestOptions;
use windlass::testing::RealServer;
use windlass::{Error, ErrorKind};
use windlass_tests::widget::{Widget, operator, widget};

use crate::bench::{Scratch, client, config_map, eventually};

const OPS: &str = "fenced";

/// Applies the operator's manifests.
fn install(server: &RealServer) {
    let election = LeaderElection::new(OPS).fence(true);
    let manager = operator(Client::offline()).name(OPS).leader_election_with(election);
    let manifests = manager.manifests(&ManifestOptions::default()).unwrap();
    let scratch = Scratch::new();
    let kubeconfig = scratch.write("admin.yaml", &server.kubeconfig());
    let mut kubectl = Command::new(RealServer::program("kubectl"))
        .args(["apply", "-f", "-"])
        .env("KUBECONFIG", kubeconfig)
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    kubectl.stdin.take().unwrap().write_all(manifests.as_bytes()).unwrap();
    assert!(kubectl.wait().unwrap().success());
}

/// Returns a client with a token of the kind that the kubelet gives to a Pod of the operator.
async fn pod(server: &RealServer, name: &str) -> Client {
    let admin = client(server.admin());
    let pod: Pod = serde_json::from_value(json!({
        "metadata": { "name": name },
        "spec": {
            "serviceAccountName": OPS,
            // The printed namespace demands this context.
            "securityContext": { "runAsNonRoot": true, "seccompProfile": { "type": "RuntimeDefault" } },
            "containers": [{
                "name": "manager",
                "image": "manager",
                "securityContext": {
                    "allowPrivilegeEscalation": false,
                    "capabilities": { "drop": ["ALL"] },
                },
            }],
        },
    }))
    .unwrap();
    let pod = admin.namespace::<Pod>(OPS).create(&pod).await.unwrap();
    let accounts = admin.namespace::<ServiceAccount>(OPS);
    let token = accounts.token_request(OPS).bound_to(&pod).await.unwrap();
    client(server.anonymous().with_token(token.token.expose()))
}

async fn campaign(pod: &Client, identity: &str) -> windlass::leader::Term {
    let election = LeaderElection::new(OPS).namespace(OPS).identity(identity);
    let elector = Elector::new(election, pod).unwrap();
    elector.campaign(&CancellationToken::new()).await.unwrap()
}

fn assert_fenced<T: std::fmt::Debug>(action: &str, answer: Result<T, Error>) {
    let error = answer.expect_err(action);
    assert_eq!(error.kind(), ErrorKind::Forbidden, "{action}: {error}");
    assert!(error.to_string().contains("does not hold the lease"), "{action}: {error}");
}

#[tokio::test]
#[ignore = "needs the real API server: see tests/README.md"]
async fn l6_the_server_refuses_writes_that_an_old_leader_forces_past_its_gate() {
    let server = RealServer::shared().await;
    install(server);
    let (one, two) = (pod(server, "ops-1").await, pod(server, "ops-2").await);
    let maps = |client: &Client| client.namespace::<ConfigMap>(OPS);
    let widgets = |client: &Client| client.namespace::<Widget>(OPS);

    let term = campaign(&one, "ops-1_7f3a").await;
    // The server sees roles, policies and leases a moment after they were stored.
    let gated = one.gated(Arc::new(term.gate()));
    eventually("the leader writes", async || {
        maps(&gated).apply("old", &config_map("old")).await.is_ok()
    })
    .await;
    let others = || async { maps(&two).apply("probe", &config_map("probe")).await };
    eventually("a candidate is refused", async || others().await.is_err()).await;
    assert_fenced("a candidate", others().await);
    // As plans and shadows send them.
    maps(&two).apply("probe", &config_map("probe")).dry_run().await.unwrap();
    let admin = client(server.admin());
    eventually("widgets are served", async || {
        widgets(&admin).create(&widget("w", "one")).await.is_ok()
    })
    .await;
    let status = Patch::Merge(json!({ "status": { "conditions": [] } }));
    eventually("the leader writes a status", async || {
        widgets(&gated).patch("w", status.clone()).status().await.is_ok()
    })
    .await;

    term.end(true).await;
    let next = campaign(&two, "ops-2_91c0").await;
    let gated = two.gated(Arc::new(next.gate()));
    eventually("the next leader writes", async || {
        maps(&gated).apply("new", &config_map("new")).await.is_ok()
    })
    .await;
    // Past the gate, by a client without the gate.
    let labels = Patch::Merge(json!({ "metadata": { "labels": { "by": "one" } } }));
    assert_fenced("a creation", maps(&one).create(&config_map("late")).await);
    assert_fenced("an apply", maps(&one).apply("new", &config_map("new")).force().await);
    assert_fenced("a patch", maps(&one).patch("old", labels).await);
    assert_fenced("a status", widgets(&one).patch("w", status.clone()).status().await);
    assert_fenced("a deletion", maps(&one).delete("old").await);
    widgets(&gated).patch("w", status).status().await.unwrap();
    maps(&gated).delete("old").await.unwrap();

    // Others are not fenced, and neither is the election.
    maps(&admin).create(&config_map("mine")).await.unwrap();
    next.end(true).await;
    campaign(&one, "ops-1_7f3b").await.end(true).await;
    eventually("no process leads or writes", async || {
        maps(&two).apply("new", &config_map("new")).await.is_err()
    })
    .await;
}
