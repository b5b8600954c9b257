//! Credential plugins, as kubectl writes them into a kubeconfig: shell scripts that print the text
//! that a test wrote into a file beside them.

use std::os::unix::fs::PermissionsExt;
use std::time::Duration;

use serde_json::{Value, json};
use windlass::ErrorKind;
use windlass::client::Client;
use windlass::clock::Clock;
use windlass::testing::RealServer;

use crate::bench::{LONG, Scratch, answers, client_of, name, whoami};

/// Prints `1.json` on the first run, `2.json` on the second, and so on; the last file from then on.
const SCRIPT: &str = r#"#!/bin/sh
cd "$(dirname "$0")/.."
echo run >>runs
printf '%s' "$KUBERNETES_EXEC_INFO" >info
n=$(wc -l <runs)
while [ ! -e "$((n)).json" ]; do n=$((n - 1)); done
cat "$((n)).json"
"#;

struct Plugin {
    scratch: Scratch,
    client: Client,
}

impl Plugin {
    /// Returns a client whose plugin prints these in sequence.
    fn new(server: &RealServer, version: &str, statuses: &[Value]) -> Self {
        let scratch = Scratch::new();
        let version = format!("client.authentication.k8s.io/{version}");
        for (index, status) in statuses.iter().enumerate() {
            let credential =
                json!({ "apiVersion": version, "kind": "ExecCredential", "status": status });
            scratch.write(&format!("{}.json", index + 1), &credential.to_string());
        }
        // kubectl makes paths relative to the kubeconfig; without a folder kubectl would search
        // PATH.
        std::fs::create_dir(scratch.path("bin")).unwrap();
        let script = scratch.path("bin/plugin");
        std::fs::write(&script, SCRIPT).unwrap();
        std::fs::set_permissions(&script, std::fs::Permissions::from_mode(0o755)).unwrap();
        let kubeconfig = scratch.kubeconfig(
            server,
            &[
                format!("--exec-command={}", script.display()),
                format!("--exec-api-version={version}"),
                "--exec-interactive-mode=IfAvailable".to_owned(),
                "--exec-provide-cluster-info".to_owned(),
            ],
        );
        let client = client_of(&kubeconfig);
        Self { scratch, client }
    }

    fn runs(&self) -> usize {
        self.scratch.read("runs").lines().count()
    }
}

fn token(user: &str) -> Value {
    json!({ "token": RealServer::token(user) })
}

/// Returns a token that the client treats as expired 2 s from now: the client renews 10 s early.
fn short(user: &str) -> Value {
    let until = Clock::system().wall().checked_add(Duration::from_secs(12)).unwrap();
    json!({ "token": RealServer::token(user), "expirationTimestamp": until.to_string() })
}

#[tokio::test]
#[ignore = "needs the real API server: see tests/README.md"]
async fn the_token_of_a_plugin_says_who_we_are_and_is_kept() {
    let server = RealServer::shared().await;
    for version in ["v1", "v1beta1"] {
        let plugin = Plugin::new(server, version, &[token("alice"), token("bob")]);
        for _ in 0..3 {
            assert_eq!(name(&plugin.client).await, "alice");
        }
        assert_eq!(plugin.runs(), 1);
        let info: Value = serde_json::from_str(&plugin.scratch.read("info")).unwrap();
        assert_eq!(info["apiVersion"], format!("client.authentication.k8s.io/{version}"));
        assert_eq!(info["spec"]["interactive"], false);
        assert_eq!(info["spec"]["cluster"]["server"], server.url());
    }
}

#[tokio::test]
#[ignore = "needs the real API server: see tests/README.md"]
async fn a8_a_plugin_is_run_again_when_its_token_is_about_to_expire() {
    let server = RealServer::shared().await;
    let plugin = Plugin::new(server, "v1", &[short("alice"), token("bob")]);
    assert_eq!(name(&plugin.client).await, "alice");
    let clock = Clock::system();
    let change = async {
        while name(&plugin.client).await != "bob" {
            clock.sleep(Duration::from_millis(100)).await;
        }
    };
    assert!(clock.timeout(Duration::from_secs(20), change).await.is_some());
    assert_eq!((plugin.runs(), answers(&plugin.client, "401")), (2, 0));
}

#[tokio::test]
#[ignore = "needs the real API server: see tests/README.md"]
async fn a8_a_plugin_whose_token_is_refused_is_run_again_within_the_same_call() {
    let server = RealServer::shared().await;
    let plugin = Plugin::new(server, "v1", &[json!({ "token": "revoked" }), token("alice")]);
    assert_eq!(name(&plugin.client).await, "alice");
    assert_eq!((plugin.runs(), answers(&plugin.client, "401")), (2, 1));
}

#[tokio::test]
#[ignore = "needs the real API server: see tests/README.md"]
async fn a_plugin_whose_tokens_are_refused_is_run_twice_in_a_call_and_no_more() {
    let server = RealServer::shared().await;
    let plugin = Plugin::new(server, "v1", &[json!({ "token": "canary" })]);
    let error = whoami(&plugin.client).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unauthorized);
    assert!(!format!("{error:?}").contains("canary"), "{error:?}");
    assert_eq!((plugin.runs(), answers(&plugin.client, "401")), (2, 2));
}

/// Returns the output of a plugin that hands out a client certificate.
fn certificate(server: &RealServer, user: &str, lifetime: Duration) -> Value {
    let made = server.certificate(user, Some("builders"), lifetime);
    json!({ "clientCertificateData": made.certificate, "clientKeyData": made.key.expose() })
}

#[tokio::test]
#[ignore = "needs the real API server: see tests/README.md"]
async fn the_client_certificate_of_a_plugin_says_who_we_are() {
    let server = RealServer::shared().await;
    let plugin = Plugin::new(server, "v1", &[certificate(server, "erin", LONG)]);
    for _ in 0..2 {
        let found = whoami(&plugin.client).await.unwrap();
        assert_eq!(found.username, "erin");
        assert_eq!(found.groups, ["builders", "system:authenticated"]);
    }
    assert_eq!(plugin.runs(), 1);
}

#[tokio::test]
#[ignore = "needs the real API server: see tests/README.md"]
async fn a9_a_plugin_whose_certificate_expired_is_run_again_within_the_same_call() {
    let server = RealServer::shared().await;
    let short = certificate(server, "before", Duration::from_secs(4));
    let plugin = Plugin::new(server, "v1", &[short, certificate(server, "after", LONG)]);
    assert_eq!(name(&plugin.client).await, "before");
    let clock = Clock::system();
    let change = async {
        while name(&plugin.client).await != "after" {
            clock.sleep(Duration::from_millis(100)).await;
        }
    };
    assert!(clock.timeout(Duration::from_secs(20), change).await.is_some());
    assert_eq!((plugin.runs(), answers(&plugin.client, "401")), (2, 1));
}
