//! The policies of processes outside of a cluster.

use std::collections::BTreeSet;

use k8s_openapi::api::admissionregistration::v1::{
    ValidatingAdmissionPolicy, ValidatingAdmissionPolicyBinding,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use windlass_apiserver::faults::{Fault, FaultAction};
use windlass_client::api::Patch;
use windlass_runtime::manager::WebhookAccess;

use super::own::World;
use super::*;
use crate::{AdmissionPolicies, AdmissionPolicy, cel};

const FREE: &str = "https://127.0.0.1:0";
const FIXED: &str = "https://127.0.0.1:9443";

/// A process at a URL.
struct Laptop {
    stop: CancellationToken,
    task: JoinHandle<Result<(), Error>>,
}

impl Laptop {
    async fn start(world: &World, url: &str) -> Self {
        let few = AdmissionPolicy::<ConfigMap>::new("few")
            .rule(cel!(ConfigMap: "has(object.data)"), "maps have data");
        let policies = AdmissionPolicies::new().policy(few);
        let (client, stop) = (world.client.clone(), CancellationToken::new());
        let webhooks =
            Some(WebhookAccess { namespaces: vec!["test-1".to_owned()], ..WebhookAccess::at(url) });
        let names = OperatorInfo { name: "shop".to_owned(), webhooks, ..OperatorInfo::default() };
        let task = tokio::spawn({
            let stop = stop.clone();
            async move { policies.run((&client, &names), stop, || ()).await }
        });
        pass(3).await;
        Self { stop, task }
    }

    /// Ends without removing anything.
    async fn kill(self) {
        self.task.abort();
        let _ = self.task.await;
    }

    async fn stop(self) {
        self.stop.cancel();
        self.task.await.unwrap().unwrap();
    }
}

/// Returns the names of the policies, which are those of their bindings.
async fn stored(world: &World) -> BTreeSet<String> {
    let policies = world.client.all::<ValidatingAdmissionPolicy>().list().await.unwrap().items;
    let names: BTreeSet<_> = policies.into_iter().filter_map(|it| it.metadata.name).collect();
    let bindings = world.client.all::<ValidatingAdmissionPolicyBinding>();
    let bindings = bindings.list().await.unwrap().items.into_iter();
    assert_eq!(names, bindings.filter_map(|it| it.metadata.name).collect());
    names
}

#[tokio::test(start_paused = true)]
async fn each_process_at_a_free_port_has_policies_of_its_own_and_removes_no_others() {
    let world = World::start().await;
    let first = Laptop::start(&world, FREE).await;
    let of_first = stored(&world).await;
    let second = Laptop::start(&world, FREE).await;
    let both = stored(&world).await;
    assert_eq!((of_first.len(), both.len()), (1, 2), "{both:?}");
    assert!(both.iter().all(|name| name.starts_with("shop-few-outside-test-1-")), "{both:?}");
    first.stop().await;
    assert_eq!(stored(&world).await, &both - &of_first);
    second.stop().await;
    assert!(stored(&world).await.is_empty());
}

#[tokio::test(start_paused = true)]
async fn the_policies_of_a_process_that_was_killed_are_removed_by_any_process_after_five_minutes() {
    let world = World::start().await;
    let killed = Laptop::start(&world, FREE).await;
    let left = stored(&world).await;
    killed.kill().await;
    let early = Laptop::start(&world, FREE).await;
    early.stop().await;
    assert_eq!(stored(&world).await, left, "it may be at work");
    pass(301).await;
    Laptop::start(&world, FREE).await.stop().await;
    assert!(stored(&world).await.is_empty());

    let killed = Laptop::start(&world, FREE).await;
    let running = Laptop::start(&world, FREE).await;
    let both = stored(&world).await;
    killed.kill().await;
    pass(240).await;
    assert_eq!(stored(&world).await, both);
    pass(200).await;
    assert_eq!(stored(&world).await.len(), 1, "a process that goes on finds them, too");
    running.stop().await;
    assert!(stored(&world).await.is_empty());
}

#[tokio::test(start_paused = true)]
async fn the_policies_of_a_process_that_runs_for_long_are_removed_by_nobody() {
    let world = World::start().await;
    let first = Laptop::start(&world, FREE).await;
    let of_first = stored(&world).await;
    for _ in 0..20 {
        pass(97).await;
        Laptop::start(&world, FREE).await.stop().await;
        assert_eq!(stored(&world).await, of_first);
    }
    first.stop().await;
}

#[tokio::test(start_paused = true)]
async fn of_two_processes_at_one_url_the_policies_stay_until_the_last_one_ends() {
    let world = World::start().await;
    let name = BTreeSet::from(["shop-few-outside-127.0.0.1-9443".to_owned()]);
    let (first, second) = (Laptop::start(&world, FIXED).await, Laptop::start(&world, FIXED).await);
    first.stop().await;
    assert_eq!(stored(&world).await, name, "they are those of the second");
    let third = Laptop::start(&world, FIXED).await;
    third.stop().await;
    pass(16).await;
    assert_eq!(stored(&world).await, name, "the second needs them");
    second.stop().await;
    assert!(stored(&world).await.is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_stop_while_policies_cannot_be_written_leaves_none() {
    let world = World::start().await;
    let fault = Fault::new(FaultAction::Answer(500)).on("patch");
    let fault = fault.resource("validatingadmissionpolicybindings").times(usize::MAX);
    let handle = world.server.faults().add(fault);
    let laptop = Laptop::start(&world, FREE).await;
    assert!(handle.hits() > 0);
    handle.remove();
    laptop.stop.cancel();
    laptop.task.await.unwrap().unwrap();
    assert!(stored(&world).await.is_empty());
}

#[tokio::test(start_paused = true)]
async fn policies_that_somebody_deleted_or_changed_are_written_again() {
    let world = World::start().await;
    let laptop = Laptop::start(&world, FREE).await;
    let names = stored(&world).await;
    let name = names.first().unwrap();
    let policies = world.client.all::<ValidatingAdmissionPolicy>();
    world.client.all::<ValidatingAdmissionPolicyBinding>().delete(name).await.unwrap();
    policies.delete(name).await.unwrap();
    pass(16).await;
    assert_eq!(stored(&world).await, names);
    let written = policies.get(name).await.unwrap();
    let mut changed = written.clone();
    changed.spec.as_mut().unwrap().failure_policy = Some("Ignore".to_owned());
    changed.metadata.annotations = None;
    policies.replace(&changed).await.unwrap();
    pass(16).await;
    let repaired = policies.get(name).await.unwrap();
    assert_eq!(repaired.spec, written.spec);
    policies
        .replace(&ValidatingAdmissionPolicy {
            metadata: ObjectMeta { annotations: None, ..repaired.metadata },
            ..repaired
        })
        .await
        .unwrap();
    laptop.stop().await;
    assert!(stored(&world).await.is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_changed_policy_of_a_process_at_a_url_is_written_again_as_a_whole() {
    let world = World::start().await;
    let laptop = Laptop::start(&world, FIXED).await;
    let name = stored(&world).await.into_iter().next().unwrap();
    let policies = world.client.all::<ValidatingAdmissionPolicy>();
    let never =
        json!({ "spec": { "matchConditions": [{ "name": "never", "expression": "false" }] } });
    policies.patch(&name, Patch::Merge(never)).await.unwrap();
    let bindings = world.client.all::<ValidatingAdmissionPolicyBinding>();
    // A sweep finds what a killed process left by the label.
    let label = "app.kubernetes.io/name";
    let audit = json!({
        "metadata": { "labels": { label: null } },
        "spec": { "validationActions": ["Audit"] },
    });
    bindings.patch(&name, Patch::Merge(audit)).await.unwrap();
    pass(20).await;
    let policy = policies.get(&name).await.unwrap().spec.unwrap();
    assert_eq!(policy.match_conditions.unwrap_or_default().len(), 0);
    let binding = bindings.get(&name).await.unwrap();
    assert_eq!(binding.spec.validation_actions, ["Deny"]);
    assert!(binding.metadata.labels.unwrap_or_default().contains_key(label));
    let generation = policies.get(&name).await.unwrap().metadata.generation;
    pass(40).await;
    let later = policies.get(&name).await.unwrap().metadata.generation;
    assert_eq!(later, generation, "an unchanged policy is not written for its spec");
    laptop.stop().await;
}
