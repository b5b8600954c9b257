//! Webhooks of operators outside of a cluster: in a test, or at a URL.

use windlass::Error;
use windlass::resource::ResourceExt;
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
    let prefix = format!("{name}-webhooks-by-url");
    // A real API server is shared with other tests, whose operators may have the same name.
    let suffix = format!(".{}.example", cluster.namespace());
    let mutating = client.all::<MutatingWebhookConfiguration>().list().await.unwrap().items;
    let mutating = mutating.iter().filter(|it| {
        let entry = it.webhooks.as_ref().and_then(|all| all.first());
        it.name().starts_with(&prefix) && entry.is_some_and(|it| it.name.ends_with(&suffix))
    });
    mutating.count() + judging(cluster, &prefix).await.len()
}

/// Returns the validating configurations of an operator outside of the cluster.
async fn judging(cluster: &TestCluster, prefix: &str) -> Vec<ValidatingWebhookConfiguration> {
    let all = cluster.client().all::<ValidatingWebhookConfiguration>().list().await.unwrap().items;
    let suffix = format!(".{}.example", cluster.namespace());
    let of_operator = all.into_iter().filter(|it| {
        let entry = it.webhooks.as_ref().and_then(|all| all.first());
        it.name().starts_with(prefix) && entry.is_some_and(|it| it.name.ends_with(&suffix))
    });
    of_operator.collect()
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
        false => assert_eq!(configured(&cluster, "shop").await, 0),
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

/// Sockets need real time: the clock is not paused.
#[tokio::test]
async fn the_one_of_two_replicas_that_stops_leaves_the_configurations_of_the_other() {
    let cluster = TestCluster::start().await;
    let (first, second) = (cluster.spawn(operator(&cluster)), cluster.spawn(operator(&cluster)));
    first.settled().await;
    second.settled().await;
    let shared = if cluster.is_embedded() { 2 } else { 4 };
    assert_eq!(configured(&cluster, "shop").await, shared);
    assert_eq!(first.stop().await, Exit::Drained);
    assert_eq!(configured(&cluster, "shop").await, 2);
    eventually("the other replica is asked", async || {
        let refused = create(&cluster, map("bad", "invalid")).await;
        refused.is_err_and(|error| error.code() == Some(422))
    })
    .await;
    assert_eq!(second.stop().await, Exit::Drained);
}

#[tokio::test(start_paused = true)]
async fn of_two_operators_of_one_name_in_a_test_the_one_that_started_last_is_asked() {
    let cluster = TestCluster::builder().embedded().start().await;
    let first = cluster.spawn(operator(&cluster));
    first.settled().await;
    let others = Webhooks::new().validating_at("/other", Rules, WebhookRegistration::new());
    let second = Manager::new(cluster.client()).name("shop");
    let second = cluster.spawn(second.runnable(WebhookServer::new(others)));
    second.settled().await;
    let api = cluster.client().all::<ValidatingWebhookConfiguration>();
    let stored = async || api.get("shop-webhooks-by-url").await.unwrap();
    let written = stored().await;
    let url = written.webhooks.unwrap().remove(0).client_config.url.unwrap();
    assert!(url.ends_with("/other"), "{url}");
    cluster.client().environment().clock.sleep(Duration::from_secs(200)).await;
    let version = stored().await.metadata.resource_version;
    assert_eq!(version, written.metadata.resource_version, "they do not replace each other's");
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
    assert_eq!(configured(&cluster, &name).await, 2);
    let stored = judging(&cluster, &format!("{name}-webhooks-by-url-localhost-")).await.remove(0);
    let hook = stored.webhooks.unwrap().remove(0);
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
