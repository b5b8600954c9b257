//! Webhooks of operators outside of a cluster: in a test, or at a URL.

use windlass::Error;
use windlass::testing::RunningOperator;

use super::*;

fn operator(cluster: &TestCluster) -> Manager {
    let hooks = WebhookServer::new(webhooks(cluster.namespace()));
    Manager::new(cluster.client()).name("shop").runnable(hooks)
}

/// Creates maps until a map has the default: a real API server takes a moment to read
/// configurations.
async fn until_asked(cluster: &TestCluster) {
    let maps = cluster.client().namespace::<ConfigMap>(cluster.namespace());
    let mut made = 0;
    eventually("defaults are set", async || {
        made += 1;
        let map = maps.create(&config_map(&format!("asked-{made}"))).await.unwrap();
        map.data.is_some_and(|data| data.get("host").is_some_and(|host| host == "home"))
    })
    .await;
}

async fn create(cluster: &TestCluster, map: ConfigMap) -> Result<ConfigMap, Error> {
    cluster.client().namespace::<ConfigMap>(cluster.namespace()).create(&map).await
}

/// Returns the number of configurations of an operator outside of the cluster.
async fn configured(cluster: &TestCluster, name: &str) -> usize {
    let client = cluster.client();
    let validating = client.all::<ValidatingWebhookConfiguration>().get_opt(name).await.unwrap();
    let mutating = client.all::<MutatingWebhookConfiguration>().get_opt(name).await.unwrap();
    usize::from(validating.is_some()) + usize::from(mutating.is_some())
}

#[tokio::test]
async fn the_webhooks_of_an_operator_in_a_test_are_asked_without_a_setting() {
    let cluster = TestCluster::start().await;
    let running: RunningOperator = cluster.spawn(operator(&cluster));
    running.settled().await;
    until_asked(&cluster).await;
    let refused = create(&cluster, map("bad", "invalid")).await.unwrap_err();
    assert_eq!(refused.code(), Some(422));
    let text = format!("{refused:?}");
    assert!(text.contains("data[invalid]: Invalid value: \"x\": is not wanted"), "{text}");

    assert_eq!(running.stop().await, Exit::Drained);
    // On a separate server the operator is still asked, as is an operator in a cluster whose Pods
    // are away.
    let away = create(&cluster, config_map("away")).await;
    match cluster.is_embedded() {
        true => assert!(format!("{:?}", away.unwrap_err()).contains("failed calling webhook")),
        false => assert_eq!(configured(&cluster, "shop-webhooks-by-url").await, 0),
    }
}

#[tokio::test(start_paused = true)]
async fn a_webhook_that_hangs_under_a_paused_clock_takes_no_time() {
    let cluster = TestCluster::builder().embedded().start().await;
    let running = cluster.spawn(operator(&cluster));
    running.settled().await;
    let clock = cluster.client().environment().clock.clone();
    let began = clock.now();
    let text = format!("{:?}", create(&cluster, map("bad", "hang")).await.unwrap_err());
    assert!(text.contains("failed calling webhook"), "{text}");
    let taken = clock.now().duration_since(began);
    assert!(taken <= Duration::from_secs(2), "the handler's deadline is below a second: {taken:?}");
}

#[tokio::test(start_paused = true)]
async fn another_replica_answers_when_one_stops() {
    let cluster = TestCluster::builder().embedded().start().await;
    let first = cluster.spawn(operator(&cluster));
    first.settled().await;
    let second = cluster.spawn(operator(&cluster));
    second.settled().await;
    for running in [second, first] {
        assert!(create(&cluster, map("bad", "invalid")).await.unwrap_err().code() == Some(422));
        assert_eq!(running.stop().await, Exit::Drained);
    }
    let text = format!("{:?}", create(&cluster, config_map("away")).await.unwrap_err());
    assert!(text.contains("connection refused"), "{text}");
}

#[tokio::test]
async fn an_operator_at_a_url_is_asked_over_tls_until_it_stops() {
    let cluster = TestCluster::start().await;
    let name = format!("at-url-{}", cluster.namespace());
    let hooks = WebhookServer::new(webhooks(cluster.namespace())).url("https://localhost:0");
    let manager = Manager::new(cluster.client()).name(&name).runnable(hooks);
    let running = manager.quiet().without_signals().start();
    eventually("the operator is ready", async || running.readiness().is_ready()).await;
    until_asked(&cluster).await;
    let name = format!("{name}-webhooks-by-url");
    assert_eq!(configured(&cluster, &name).await, 2);
    let api = cluster.client().all::<ValidatingWebhookConfiguration>();
    let hook = api.get(&name).await.unwrap().webhooks.unwrap().remove(0);
    let url = hook.client_config.url.unwrap();
    assert!(url.starts_with("https://localhost:") && !url.contains(":0/"), "{url}");

    running.stop();
    assert_eq!(running.join().await.unwrap(), Exit::Drained);
    assert_eq!(configured(&cluster, &name).await, 0);
}

#[tokio::test]
async fn an_operator_at_a_url_that_cannot_be_asked_ends_with_the_reason() {
    let cluster = TestCluster::builder().embedded().start().await;
    let hooks = WebhookServer::new(webhooks(cluster.namespace())).url("http://localhost:9443");
    let manager = Manager::new(cluster.client()).name("wrong").runnable(hooks);
    let error = manager.quiet().without_signals().start().join().await.unwrap_err();
    let cause = std::error::Error::source(&error).unwrap().to_string();
    assert!(cause.contains("does not begin with https://"), "{cause}");
}
