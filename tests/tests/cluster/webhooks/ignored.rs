//! The failure policies: with `Ignore` a write goes through whatever becomes of the handler, and
//! with `Fail` it is refused.

use windlass::Error;
use windlass::resource::ResourceExt;

use super::*;

/// Returns two webhooks, in one configuration and at one server: maps whose names begin with `open`
/// are asked about by one that fails open, those with `closed` by one that fails closed.
fn failing_open_and_closed(namespace: &str) -> Webhooks {
    let keys = |name: &str, policy: FailurePolicy| {
        let only =
            format!("request.namespace == '{namespace}' && request.name.startsWith('{name}')");
        WebhookRegistration::new()
            .name(format!("{name}.{namespace}.example"))
            .match_condition("names", only)
            .failure_policy(policy)
            .timeout(Duration::from_secs(1))
    };
    let closed = keys("closed", FailurePolicy::Fail);
    Webhooks::new()
        .validating_with(Rules, keys("open", FailurePolicy::Ignore))
        .validating_at("/closed", Rules, closed)
}

/// Whether a write was refused because nobody answered.
fn is_unanswered(written: Result<ConfigMap, Error>) -> bool {
    written.is_err_and(|error| format!("{error:?}").contains("failed calling webhook"))
}

/// Sockets need real time: the clock is not paused.
#[tokio::test]
async fn a_write_goes_through_while_a_handler_that_fails_open_hangs_panics_or_is_away() {
    let cluster = TestCluster::start().await;
    let (admin, namespace) = (cluster.client(), cluster.namespace().to_owned());
    let name = format!("open-{namespace}");
    let webhooks = failing_open_and_closed(&namespace);
    let hooks = WebhookServer::new(webhooks).url("https://localhost:0");
    let manager = Manager::new(admin.clone()).name(&name).runnable(hooks);
    let running = manager.quiet().without_signals().start();
    eventually("the operator is ready", async || running.readiness().is_ready()).await;
    let maps = admin.namespace::<ConfigMap>(&namespace);
    for asked in ["open-refused", "closed-refused"] {
        eventually("the handler is asked", async || {
            let refused = maps.create(&map(asked, "invalid")).dry_run().await;
            refused.is_err_and(|error| error.code() == Some(422))
        })
        .await;
    }
    for wish in ["hang", "panic"] {
        maps.create(&map(&format!("open-{wish}"), wish)).await.unwrap();
        assert!(is_unanswered(maps.create(&map(&format!("closed-{wish}"), wish)).await), "{wish}");
    }

    // The configuration stays, as after a process that was killed.
    let prefix = format!("{name}-webhooks-by-url-localhost-");
    let api = admin.all::<ValidatingWebhookConfiguration>();
    let stored = api.list().await.unwrap().items.into_iter();
    let mut left = stored.into_iter().find(|it| it.name().starts_with(&prefix)).unwrap();
    let configuration = left.name().to_owned();
    running.stop();
    assert_eq!(running.join().await.unwrap(), Exit::Drained);
    left.metadata.resource_version = None;
    api.create(&left).await.unwrap();
    // An API server reads both webhooks of a configuration at once: as soon as one is asked for in
    // vain, the other is, too.
    eventually("nobody answers the closed webhook", async || {
        is_unanswered(maps.create(&map("closed-away", "none")).dry_run().await)
    })
    .await;
    maps.create(&map("open-away", "invalid")).await.unwrap();
    assert!(is_unanswered(maps.create(&map("closed-away", "none")).await), "it still fails");
    api.delete(&configuration).await.unwrap();
}
