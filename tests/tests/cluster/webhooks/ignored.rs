//! The failure policy `Ignore`: a write goes through whatever becomes of the handler.

use super::*;

/// Returns webhooks as [`super::webhooks`] does, which fail open.
fn failing_open(namespace: &str) -> Webhooks {
    let only = format!("request.namespace == '{namespace}'");
    let keys = WebhookRegistration::new()
        .name(format!("open.{namespace}.example"))
        .match_condition("namespace", only)
        .failure_policy(FailurePolicy::Ignore)
        .timeout(Duration::from_secs(1));
    Webhooks::new().validating_with(Rules, keys)
}

/// Sockets need real time: the clock is not paused.
#[tokio::test]
async fn a_write_goes_through_while_a_handler_that_fails_open_hangs_panics_or_is_away() {
    let cluster = TestCluster::start().await;
    let (admin, namespace) = (cluster.client(), cluster.namespace().to_owned());
    let name = format!("open-{namespace}");
    let hooks = WebhookServer::new(failing_open(&namespace)).url("https://localhost:0");
    let manager = Manager::new(admin.clone()).name(&name).runnable(hooks);
    let running = manager.quiet().without_signals().start();
    eventually("the operator is ready", async || running.readiness().is_ready()).await;
    let maps = admin.namespace::<ConfigMap>(&namespace);
    eventually("the handler is asked", async || {
        let refused = maps.create(&map("refused", "invalid")).dry_run().await;
        refused.is_err_and(|error| error.code() == Some(422))
    })
    .await;
    for wish in ["hang", "panic"] {
        maps.create(&map(wish, wish)).await.unwrap();
    }
    assert!(maps.create(&map("bad", "invalid")).await.is_err(), "denials hold");

    // The configuration stays, as after a process that was killed.
    let configuration = format!("{name}-webhooks-by-url");
    let api = admin.all::<ValidatingWebhookConfiguration>();
    let mut left = api.get(&configuration).await.unwrap();
    running.stop();
    assert_eq!(running.join().await.unwrap(), Exit::Drained);
    left.metadata.resource_version = None;
    api.create(&left).await.unwrap();
    eventually("nobody answers", async || {
        maps.create(&map("away", "invalid")).dry_run().await.is_ok()
    })
    .await;
    maps.create(&map("away", "invalid")).await.unwrap();
    api.delete(&configuration).await.unwrap();
}
