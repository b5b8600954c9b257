//! Children that a validating webhook refuses, or does not answer for.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use k8s_openapi::api::events::v1::Event;
use windlass::webhook::{
    Admission, AdmissionResponse, FailurePolicy, Validate, WebhookRegistration, WebhookServer,
    Webhooks,
};

use super::*;

/// Logins side by side, and a door that comes after all of them.
mod graph {
    use super::super::*;

    #[derive(Dependents)]
    #[dependents(for = Shop, by = Shops)]
    struct Parts {
        config: ConfigMap,
        logins: Vec<Secret>,
        #[dependent(after(logins))]
        door: ConfigMap,
    }

    #[derive(Controller)]
    #[controller(for = Shop, dependents(Parts), name = "shops", conditions)]
    pub(super) struct Shops;

    impl DesiredParts for Shops {
        async fn config(&self, shop: &Shop, _: &Context<Self>) -> Result<ConfigMap> {
            Ok(map(shop.name().to_owned()))
        }

        async fn logins(&self, shop: &Shop, _: &Context<Self>) -> Result<Vec<Secret>> {
            let names = shop.spec.shards.iter();
            Ok(names.map(|login| secret(format!("{}-{login}", shop.name()))).collect())
        }

        async fn door(&self, shop: &Shop, _: &Context<Self>) -> Result<ConfigMap> {
            Ok(map(format!("{}-door", shop.name())))
        }
    }
}

/// The rules for Secrets: those whose name ends with `-x` are not wanted while the door is shut,
/// and those that end with `-slow` are not answered for.
#[derive(Clone, Default)]
struct Guard {
    is_open: Arc<AtomicBool>,
    /// Refusals so far.
    refused: Arc<AtomicUsize>,
}

impl Guard {
    fn refused(&self) -> usize {
        self.refused.load(Ordering::SeqCst)
    }
}

impl Validate for Guard {
    type Object = Secret;

    async fn validate(&self, login: &Secret, _: &Admission) -> AdmissionResponse {
        let mut response = AdmissionResponse::allowed();
        if self.is_open.load(Ordering::SeqCst) {
            return response;
        }
        if login.name().ends_with("-slow") {
            std::future::pending::<()>().await;
        }
        if login.name().ends_with("-x") {
            self.refused.fetch_add(1, Ordering::SeqCst);
            response.invalid("metadata.name", login.name(), "the guard knows no such guest");
        }
        response
    }
}

fn operator(world: &World, guard: &Guard) -> Manager {
    let only = format!("request.namespace == '{}'", world.cluster.namespace());
    let keys = WebhookRegistration::new()
        .name(format!("guard.{}.example", world.cluster.namespace()))
        .match_condition("namespace", only)
        .timeout(Duration::from_secs(1))
        .failure_policy(FailurePolicy::Fail);
    let server = WebhookServer::new(Webhooks::new().validating_with(guard.clone(), keys));
    manager(world, server)
}

/// Returns the operator. Configurations are called as the operator is, and are those of the whole
/// server: a test on the same server has another name.
fn manager(world: &World, server: WebhookServer) -> Manager {
    let manager = Manager::new(world.cluster.client()).name(world.cluster.namespace());
    manager.controller(graph::Shops).runnable(server)
}

/// Waits until the webhook is asked: a real API server takes a moment to read configurations.
async fn until_asked(world: &World) {
    let is_refused = async || {
        let answer = world.api::<Secret>().create(&secret("probe-x".to_owned())).dry_run().await;
        answer.is_err_and(|error| error.to_string().contains("the guard knows no such guest"))
    };
    world.eventually("the webhook is asked", is_refused).await;
}

async fn reasons(world: &World) -> Vec<String> {
    let shop = world.api::<Shop>().get("shop").await.unwrap();
    let conditions = shop.status.unwrap_or_default().conditions;
    let of = |type_: &str| conditions.get(type_).map_or_else(String::new, |it| it.reason.clone());
    ["Ready", "Reconciling", "Stalled"].into_iter().map(of).collect()
}

#[tokio::test]
async fn a_child_that_a_webhook_refuses_is_told_everywhere_and_holds_no_sibling() {
    let (world, guard) = (World::start().await, Guard::default());
    let running = world.cluster.spawn(operator(&world, &guard));
    until_asked(&world).await;
    world.create("shop", &["a", "x", "c"]).await;
    let words = ["logins: ", "shop-x", "the guard knows no such guest"];
    let is_told = async || {
        let told = world.told("shop").await;
        words.iter().all(|word| told.contains(word))
    };
    world.eventually("the status tells it", is_told).await;
    assert_eq!(reasons(&world).await, ["RequestRefused", "", "RequestRefused"]);
    assert_eq!(world.owned::<Secret>().await, ["shop-a", "shop-c"], "its siblings are there");
    assert_eq!(world.owned::<ConfigMap>().await, ["shop"], "and what does not wait for it");

    let has_event = async || {
        let events = world.api::<Event>().list().await.unwrap().items;
        let mut notes = events.iter().filter_map(|event| event.note.as_deref());
        notes.any(|note| words[1..].iter().all(|word| note.contains(word)))
    };
    world.eventually("an Event tells it", has_event).await;
    let dump = running.dump(50).to_string();
    assert!(words[1..].iter().all(|word| dump.contains(word)), "the debug page tells it: {dump}");

    if world.cluster.is_embedded() {
        let before = guard.refused();
        world.pass(600).await;
        let again = guard.refused() - before;
        assert!((2..=20).contains(&again), "tried again, ever more seldom: {again}");
    }
    guard.is_open.store(true, Ordering::SeqCst);
    world.pass(if world.cluster.is_embedded() { 600 } else { 0 }).await;
    world.eventually("a retry makes it", async || world.told("shop").await == "ready").await;
    assert_eq!(world.owned::<Secret>().await, ["shop-a", "shop-c", "shop-x"]);
    assert_eq!(world.owned::<ConfigMap>().await, ["shop", "shop-door"]);
    running.settled().await;
    running.stop().await;
}

#[tokio::test]
async fn a_child_that_a_webhook_does_not_answer_for_holds_no_sibling_and_is_made_later() {
    let (world, guard) = (World::start().await, Guard::default());
    let running = world.cluster.spawn(operator(&world, &guard));
    until_asked(&world).await;
    world.create("shop", &["a", "slow", "c"]).await;
    let is_told = async || {
        let told = world.told("shop").await;
        ["logins: ", "shop-slow", "failed calling webhook"].iter().all(|word| told.contains(word))
    };
    world.eventually("the status tells it", is_told).await;
    assert_eq!(reasons(&world).await, ["ReconcileFailed", "ReconcileFailed", ""]);
    assert_eq!(world.owned::<Secret>().await, ["shop-a", "shop-c"], "its siblings are there");
    assert_eq!(world.owned::<ConfigMap>().await, ["shop"], "and what does not wait for it");
    guard.is_open.store(true, Ordering::SeqCst);
    world.pass(if world.cluster.is_embedded() { 600 } else { 0 }).await;
    world.eventually("a retry makes it", async || world.told("shop").await == "ready").await;
    assert_eq!(world.owned::<Secret>().await, ["shop-a", "shop-c", "shop-slow"]);
    running.settled().await;
    running.stop().await;
}

#[tokio::test]
async fn a_deletion_that_a_webhook_refuses_is_told_and_tried_again() {
    use windlass::webhook::Operation;

    /// Refuses deletions of Secrets with a label.
    struct Keep;

    fn is_kept(login: &Secret) -> bool {
        login.label("kept") == Some("yes")
    }

    impl Validate for Keep {
        type Object = Secret;

        async fn validate(&self, _: &Secret, _: &Admission) -> AdmissionResponse {
            AdmissionResponse::allowed()
        }

        async fn validate_delete(&self, old: &Secret, _: &Admission) -> AdmissionResponse {
            match is_kept(old) {
                true => AdmissionResponse::deny("the login is in use"),
                false => AdmissionResponse::allowed(),
            }
        }
    }

    let world = World::start().await;
    let keys = WebhookRegistration::new()
        .name(format!("keep.{}.example", world.cluster.namespace()))
        .match_condition(
            "namespace",
            format!("request.namespace == '{}'", world.cluster.namespace()),
        )
        .operations([Operation::Delete])
        .failure_policy(FailurePolicy::Fail);
    let server = WebhookServer::new(Webhooks::new().validating_with(Keep, keys));
    let running = world.cluster.spawn(manager(&world, server));
    let mut probe = secret("probe".to_owned());
    probe.metadata.labels = Some([("kept".to_owned(), "yes".to_owned())].into());
    world.api::<Secret>().create(&probe).await.unwrap();
    let is_refused = async || world.api::<Secret>().delete("probe").dry_run().await.is_err();
    world.eventually("the webhook is asked", is_refused).await;

    world.create("shop", &["a", "b"]).await;
    world.eventually("it is ready", async || world.told("shop").await == "ready").await;
    let keep = |value: Value| Patch::Merge(json!({ "metadata": { "labels": { "kept": value } } }));
    world.api::<Secret>().patch("shop-a", keep(json!("yes"))).await.unwrap();
    running.settled().await;
    world.patch("shop", json!({ "spec": { "shards": [] } })).await;
    let is_told = async || {
        let told = world.told("shop").await;
        told.contains("shop-a") && told.contains("the login is in use")
    };
    world.eventually("it is told", is_told).await;
    assert_eq!(world.owned::<Secret>().await, ["shop-a"], "the other is gone");
    world.api::<Secret>().patch("shop-a", keep(Value::Null)).await.unwrap();
    world.pass(if world.cluster.is_embedded() { 600 } else { 0 }).await;
    world.eventually("it is gone", async || world.owned::<Secret>().await.is_empty()).await;
    running.settled().await;
    assert_eq!(world.told("shop").await, "ready");
    running.stop().await;
}
