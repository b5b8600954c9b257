//! The conversion of a definition while processes at a URL and operators in a cluster write it.

use std::collections::BTreeSet;

use k8s_openapi::api::admissionregistration::v1::ValidatingWebhookConfiguration;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    CustomResourceConversion, CustomResourceDefinition,
};
use windlass_apiserver::faults::{Fault, FaultAction};
use windlass_runtime::manager::WebhookAccess;

use super::logs::Captured;
use super::own::World;
use super::*;
use crate::tests::versions::v1;

const DEFINITION: &str = "parcels.example.dev";
const ANNOTATION: &str = "windlass.dev/replaced-conversion";

/// A process at a URL.
pub(super) struct Laptop {
    stop: CancellationToken,
    pub(super) status: Arc<ServerStatus>,
    task: JoinHandle<Result<(), Error>>,
    pub(super) dial: mpsc::Sender<BoxIo>,
}

impl Laptop {
    async fn start(world: &World, url: &str) -> Self {
        Self::start_with(world, Webhooks::new().converting::<v1::Parcel>(), url).await
    }

    pub(super) async fn start_with(world: &World, webhooks: Webhooks, url: &str) -> Self {
        let (dial, accepted) = mpsc::channel(16);
        let server = WebhookServer::new(webhooks).listener(Pipes(Mutex::new(accepted)));
        let (stop, status) = (CancellationToken::new(), Arc::new(ServerStatus::default()));
        let client = world.client.clone();
        let webhooks = Some(WebhookAccess::at(url));
        let names = OperatorInfo { name: "shop".to_owned(), webhooks, ..OperatorInfo::default() };
        let task = tokio::spawn({
            let (stop, status) = (stop.clone(), Arc::clone(&status));
            async move { server.run((&client, &names), stop, &status, || ()).await }
        });
        pass(3).await;
        Self { stop, status, task, dial }
    }

    /// Ends without giving anything back.
    pub(super) async fn kill(self) {
        self.task.abort();
        let _ = self.task.await;
    }

    pub(super) async fn stop(self) {
        self.stop.cancel();
        self.task.await.unwrap().unwrap();
    }

    /// Returns the check about the conversion.
    fn contest(&self) -> Option<(bool, String)> {
        let checks = self.status.checks();
        let mut contests = checks.into_iter().filter(|check| check.name == "webhook conversion");
        contests.next().map(|check| (check.ok, check.detail))
    }
}

async fn definition(world: &World) -> CustomResourceDefinition {
    world.client.all().get(DEFINITION).await.unwrap()
}

async fn conversion(world: &World) -> CustomResourceConversion {
    definition(world).await.spec.conversion.unwrap()
}

fn url(conversion: &CustomResourceConversion) -> Option<&str> {
    conversion.webhook.as_ref()?.client_config.as_ref()?.url.as_deref()
}

fn has_annotation(definition: &CustomResourceDefinition) -> bool {
    definition.metadata.annotations.as_ref().is_some_and(|all| all.contains_key(ANNOTATION))
}

#[tokio::test(start_paused = true)]
async fn the_conversion_before_a_process_that_was_killed_is_given_back() {
    let world = World::start().await;
    let before = conversion(&world).await;
    let first = Laptop::start(&world, "https://first.example").await;
    let path = "/convert-example-dev-parcel";
    assert_eq!(url(&conversion(&world).await), Some(&*format!("https://first.example{path}")));
    assert!(has_annotation(&definition(&world).await));
    first.kill().await;
    for host in ["https://second.example", "https://second.example"] {
        let killed = Laptop::start(&world, host).await;
        assert_eq!(url(&conversion(&world).await), Some(&*format!("{host}{path}")));
        killed.kill().await;
    }
    Laptop::start(&world, "https://third.example").await.stop().await;
    assert_eq!(conversion(&world).await, before);
    assert!(!has_annotation(&definition(&world).await));
}

#[tokio::test(start_paused = true)]
async fn a_conversion_that_somebody_else_wrote_meanwhile_stays() {
    let world = World::start().await;
    let killed = Laptop::start(&world, "https://first.example").await;
    killed.kill().await;
    let replica = world.replica();
    pass(16).await;
    let right = conversion(&world).await;
    assert_eq!(url(&right), None, "the operator in the cluster took it back");
    assert!(!has_annotation(&definition(&world).await));
    replica.end().await;
    Laptop::start(&world, "https://second.example").await.stop().await;
    assert_eq!(conversion(&world).await, right);
}

/// Returns the conflicts that the next patches of the definition meet.
fn conflicts(world: &World, count: usize) -> windlass_apiserver::faults::FaultHandle {
    let fault =
        Fault::new(FaultAction::Answer(409)).on("patch").resource("customresourcedefinitions");
    world.server.faults().add(fault.times(count))
}

#[tokio::test(start_paused = true)]
async fn a_conversion_is_given_back_in_spite_of_conflicts() {
    let world = World::start().await;
    let before = conversion(&world).await;
    let laptop = Laptop::start(&world, "https://first.example").await;
    let met = conflicts(&world, 4);
    laptop.stop().await;
    assert_eq!((conversion(&world).await, met.hits()), (before, 4));
    assert!(!has_annotation(&definition(&world).await));
}

#[tokio::test(start_paused = true)]
async fn a_conversion_that_cannot_be_given_back_for_conflicts_is_left_to_the_next_process() {
    let world = World::start().await;
    let before = conversion(&world).await;
    let laptop = Laptop::start(&world, "https://first.example").await;
    let during = conversion(&world).await;
    let met = conflicts(&world, usize::MAX);
    laptop.stop().await;
    assert_eq!((conversion(&world).await, met.hits()), (during, 5), "the attempts are bounded");
    met.remove();
    Laptop::start(&world, "https://second.example").await.stop().await;
    assert_eq!(conversion(&world).await, before);
}

#[tokio::test(start_paused = true)]
async fn a_process_at_a_url_leaves_the_conversion_to_the_operator_in_the_cluster_and_shows_it() {
    let world = World::start().await;
    let _replica = world.replica();
    pass(2).await;
    let right = conversion(&world).await;
    let laptop = Laptop::start(&world, "https://laptop.example").await;
    assert_eq!(laptop.contest(), None);
    pass(120).await;
    let (ok, detail) = laptop.contest().expect("the contest is shown");
    assert!(!ok && detail.contains("stop the operator in the cluster"), "{detail}");
    assert_eq!(conversion(&world).await, right);
    let version = definition(&world).await.metadata.resource_version;
    pass(3600).await;
    assert_eq!(definition(&world).await.metadata.resource_version, version, "nobody writes it");
    laptop.stop().await;
    assert_eq!(conversion(&world).await, right);
}

#[tokio::test(start_paused = true)]
async fn two_operators_that_own_one_conversion_write_it_seldom_and_show_it() {
    let world = World::start().await;
    let replicas = [world.replica(), world.replica_in("elsewhere")];
    pass(180).await;
    let mut versions = BTreeSet::new();
    for _ in 0..360 {
        versions.insert(definition(&world).await.metadata.resource_version);
        pass(10).await;
    }
    assert!(versions.len() <= 26, "{} writes in an hour", versions.len());
    let shown = replicas.iter().flat_map(|replica| replica.status.checks());
    let contests: Vec<_> = shown.filter(|check| check.name == "webhook conversion").collect();
    assert!(!contests.is_empty() && contests.iter().all(|check| check.ok), "{contests:?}");
    assert!(contests[0].detail.contains("let one operator own the kind"), "{contests:?}");
}

#[tokio::test(start_paused = true)]
async fn a_fault_of_a_conversion_is_logged_once_and_again_when_it_comes_back() {
    let captured = Captured::default();
    let _logs = tracing::subscriber::set_default(captured.clone());
    let logged = || captured.text().matches("the conversion of a definition may be wrong").count();
    let world = World::start().await;
    let _laptop = Laptop::start(&world, "https://laptop.example").await;
    let definitions = world.client.all::<CustomResourceDefinition>();
    for faults in 1..=2 {
        let mut removed = definition(&world).await;
        definitions.delete(DEFINITION).await.unwrap();
        pass(120).await;
        assert_eq!(logged(), faults, "{}", captured.text());
        removed.metadata.resource_version = None;
        definitions.create(&removed).await.unwrap();
        pass(16).await;
        assert!(url(&conversion(&world).await).is_some(), "it is repaired");
    }
}

#[tokio::test(start_paused = true)]
async fn of_two_processes_at_urls_the_later_has_the_conversion_and_gives_it_to_the_other() {
    let world = World::start().await;
    let before = conversion(&world).await;
    let at = |host: &str| Some(format!("https://{host}.example/convert-example-dev-parcel"));
    let asked = async || url(&conversion(&world).await).map(str::to_owned);
    let first = Laptop::start(&world, "https://first.example").await;
    let second = Laptop::start(&world, "https://second.example").await;
    for _ in 0..60 {
        assert_eq!(asked().await, at("second"));
        pass(5).await;
    }
    let (ok, detail) = first.contest().expect("it says where the conversion is asked");
    assert!(ok && detail.contains("https://second.example"), "{detail}");
    assert_eq!(second.contest(), None);
    second.stop().await;
    pass(3).await;
    assert_eq!((asked().await, first.contest()), (at("first"), None));

    let third = Laptop::start(&world, "https://third.example").await;
    pass(30).await;
    first.stop().await;
    pass(30).await;
    assert_eq!((asked().await, third.contest()), (at("third"), None));
    third.stop().await;
    assert_eq!(conversion(&world).await, before);
    assert!(!has_annotation(&definition(&world).await));
}

#[tokio::test(start_paused = true)]
async fn each_process_at_a_url_has_configurations_of_its_own_and_removes_no_others() {
    let world = World::start().await;
    let name = |host: &str| format!("shop-webhooks-by-url-{host}.example-9443");
    let configured = async |host: &str| {
        let stored = world.client.all::<ValidatingWebhookConfiguration>();
        let stored = stored.get_opt(&name(host)).await.unwrap()?;
        stored.webhooks?.remove(0).client_config.url
    };
    let start = async |host: &str| {
        let url = format!("https://{host}.example:9443");
        Laptop::start_with(&world, Webhooks::new().validating(Rules), &url).await
    };
    let url = |host: &str| Some(format!("https://{host}.example:9443{VALIDATE}"));
    let (first, second) = (start("first").await, start("second").await);
    for _ in 0..10 {
        assert_eq!(configured("first").await, url("first"));
        assert_eq!(configured("second").await, url("second"));
        pass(7).await;
    }
    first.stop().await;
    assert_eq!((configured("first").await, configured("second").await), (None, url("second")));
    second.stop().await;
    assert_eq!(configured("second").await, None);
}

/// Removes the annotation of a definition.
async fn remove_annotation(world: &World) {
    let mut stored = definition(world).await;
    stored.metadata.annotations.as_mut().unwrap().remove(ANNOTATION);
    world.client.all().replace(&stored).await.unwrap();
    assert!(!has_annotation(&definition(world).await));
}

#[tokio::test(start_paused = true)]
async fn an_annotation_of_a_replaced_conversion_that_somebody_removed_is_put_back() {
    let world = World::start().await;
    let before = conversion(&world).await;
    let first = Laptop::start(&world, "https://first.example").await;
    remove_annotation(&world).await;
    pass(16).await;
    assert!(has_annotation(&definition(&world).await), "it is put back");
    let second = Laptop::start(&world, "https://second.example").await;
    remove_annotation(&world).await;
    pass(16).await;
    second.stop().await;
    pass(3).await;
    assert!(url(&conversion(&world).await).unwrap().starts_with("https://first.example"));
    first.kill().await;
    Laptop::start(&world, "https://third.example").await.stop().await;
    assert_eq!(conversion(&world).await, before, "the next process gives it back");
}

#[tokio::test(start_paused = true)]
async fn a_conversion_whose_annotation_was_removed_is_given_back_at_the_stop() {
    let world = World::start().await;
    let before = conversion(&world).await;
    let laptop = Laptop::start(&world, "https://laptop.example").await;
    remove_annotation(&world).await;
    laptop.stop().await;
    assert_eq!(conversion(&world).await, before);

    // The conversion that stays of a process that was killed names nobody.
    let killed = Laptop::start(&world, "https://laptop.example").await;
    killed.kill().await;
    remove_annotation(&world).await;
    Laptop::start(&world, "https://laptop.example").await.stop().await;
    assert_eq!(conversion(&world).await, before);
    assert!(!has_annotation(&definition(&world).await));
}

#[tokio::test(start_paused = true)]
async fn authorities_and_annotation_that_somebody_removed_at_once_are_put_back() {
    let world = World::start().await;
    let before = conversion(&world).await;
    let laptop = Laptop::start(&world, "https://laptop.example").await;
    let during = conversion(&world).await;
    let mut stored = definition(&world).await;
    stored.metadata.annotations = None;
    let changed = stored.spec.conversion.as_mut().unwrap().webhook.as_mut().unwrap();
    changed.client_config.as_mut().unwrap().ca_bundle = None;
    world.client.all().replace(&stored).await.unwrap();
    pass(16).await;
    assert_eq!(conversion(&world).await, during);
    laptop.stop().await;
    assert_eq!(conversion(&world).await, before);
}
