//! Certificates that change while a client uses them: the client's, and the server's.

use std::time::Duration;

use windlass::ErrorKind;
use windlass::client::{Client, ClientConfig};
use windlass::clock::Clock;
use windlass::testing::RealServer;

use crate::bench::{LONG, Scratch, client_of, eventually, name, whoami};

/// Returns a client whose certificate is in the files of `scratch`.
fn with_files(server: &RealServer, scratch: &Scratch) -> Client {
    let [certificate, key] = ["client.crt", "client.key"].map(|name| scratch.path(name));
    let credentials = [
        format!("--client-certificate={}", certificate.display()),
        format!("--client-key={}", key.display()),
    ];
    client_of(&scratch.kubeconfig(server, &credentials))
}

/// Asks for our name until the name is `wanted`; every answer must be good. Returns the time that
/// this took.
async fn until_we_are(client: &Client, wanted: &str, limit: Duration) -> Duration {
    let clock = Clock::system();
    let began = clock.now();
    let ask = async {
        while name(client).await != wanted {
            clock.sleep(Duration::from_millis(100)).await;
        }
    };
    assert!(clock.timeout(limit, ask).await.is_some(), "not {wanted} within {limit:?}");
    clock.now() - began
}

#[tokio::test]
#[ignore = "needs the real API server: see tests/README.md"]
async fn a9_a_rotated_client_certificate_is_used_within_a_minute_and_no_request_is_lost() {
    let (server, scratch) = (RealServer::shared().await, Scratch::new());
    scratch.identity(&server.certificate("before", None, LONG));
    let client = with_files(server, &scratch);
    assert_eq!(name(&client).await, "before");
    scratch.identity(&server.certificate("after", None, LONG));
    let took = until_we_are(&client, "after", Duration::from_secs(70)).await;
    println!("a rotated client certificate was used after {took:?}");
}

#[tokio::test]
#[ignore = "needs the real API server: see tests/README.md"]
async fn a9_a_client_certificate_that_expires_in_use_is_replaced_at_once_and_no_request_is_lost() {
    let (server, scratch) = (RealServer::shared().await, Scratch::new());
    scratch.identity(&server.certificate("before", None, Duration::from_secs(5)));
    let client = with_files(server, &scratch);
    assert_eq!(name(&client).await, "before");
    scratch.identity(&server.certificate("after", None, LONG));
    until_we_are(&client, "after", Duration::from_secs(20)).await;
}

#[tokio::test]
#[ignore = "needs the real API server: see tests/README.md"]
async fn a9_a_server_with_the_certificate_of_another_ca_is_trusted_once_the_ca_file_says_so() {
    let (server, scratch) = (RealServer::start().await, Scratch::new());
    let kubeconfig = scratch.kubeconfig(&server, &["--token=token-of-alice".to_owned()]);
    let ca = scratch.write("ca.crt", &server.ca());
    scratch.kubectl(&["config", "unset", "clusters.real.certificate-authority-data"]);
    let key = "clusters.real.certificate-authority";
    scratch.kubectl(&["config", "set", key, &ca.display().to_string()]);
    let config = ClientConfig::from_file(kubeconfig, None).unwrap();
    let client = Client::builder().config(config).timeout(Duration::from_secs(3)).build().unwrap();
    assert_eq!(name(&client).await, "alice");

    server.kill().await;
    server.replace_certificate();
    server.start_again().await;
    let error = whoami(&client).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Connect, "{error}");
    assert!(error.to_string().contains("invalid peer certificate"), "{error}");

    scratch.write("ca.crt", &server.ca());
    eventually("the new CA is trusted", async || whoami(&client).await.is_ok()).await;
}
