//! Tables against a small operator, without a server and on one.

use std::time::Duration;

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use windlass_core::conditions::{Conditions, met};
use windlass_core::resource::ResourceExt;
use windlass_runtime::controller::{Action, Context, Failure, Finalize, Reconciler, Result};
use windlass_runtime::events::Warning;

use super::*;

#[derive(windlass_macros::CustomResource, Clone, Debug)]
#[resource(group = "test.example.dev", version = "v1", namespaced)]
struct Shop {
    metadata: ObjectMeta,
    spec: ShopSpec,
    status: Option<ShopStatus>,
}

#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
struct ShopSpec {
    replicas: i32,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
struct ShopStatus {
    conditions: Conditions,
}

#[derive(windlass_macros::Controller)]
#[controller(for = Shop, owns(Deployment), can(list watch Secret, get ConfigMap, delete ConfigMap),
    name = "shops", finalizer = "test.example.dev/shops")]
struct Shops;

impl Reconciler for Shops {
    type Object = Shop;

    async fn reconcile(&self, shop: &Shop, cx: &Context<Self>) -> Result<Action> {
        if shop.spec.replicas < 0 {
            return Err(Failure::from("a negative number of replicas"));
        }
        let maps = cx.client().namespace::<ConfigMap>(shop.namespace().unwrap_or_default());
        if maps.get_opt("old").await?.is_some() {
            maps.delete("old").await?;
        }
        if cx.watch::<Secret>("tls").await?.is_none() {
            cx.event(Warning, "NoCertificate", "there is no Secret tls");
            return Ok(Action::wait_for("Certificate", "there is no Secret tls"));
        }
        cx.apply_owned(deployment(shop.name(), shop.spec.replicas)).await?;
        cx.set_condition(met("Ready", "Serving", "")).await?;
        Ok(Action::requeue_after(Duration::from_secs(300)))
    }
}

impl Finalize for Shops {
    async fn cleanup(&self, _: &Shop, _: &Context<Self>) -> Result<()> {
        Ok(())
    }
}

fn operator(client: Client) -> Manager {
    Manager::new(client).install::<Shop>().controller(Shops)
}

fn deployment(name: &str, replicas: i32) -> Deployment {
    let value = json!({ "metadata": { "name": name }, "spec": { "replicas": replicas,
        "selector": { "matchLabels": { "shop": name } },
        "template": { "metadata": { "labels": { "shop": name } },
            "spec": { "containers": [{ "name": "web", "image": "registry.test/web:1" }] } } } });
    serde_json::from_value(value).expect("a Deployment")
}

/// A Deployment as an expectation: with one field.
fn with_replicas(name: &str, replicas: i32) -> Deployment {
    let mut expected = deployment(name, replicas);
    let spec = expected.spec.as_mut().expect("a spec");
    (spec.selector, spec.template) = Default::default();
    expected
}

fn shop(replicas: i32) -> Shop {
    let finalizers = Some(vec!["test.example.dev/shops".to_owned()]);
    let metadata = ObjectMeta { name: Some("home".into()), finalizers, ..ObjectMeta::default() };
    Shop { metadata, spec: ShopSpec { replicas }, status: None }
}

fn named<K: Resource + Default>(name: &str) -> K {
    let mut object = K::default();
    object.metadata_mut().name = Some(name.to_owned());
    object
}

/// A Deployment that the shop owns.
fn owned(replicas: i32) -> Deployment {
    owned_by(("test.example.dev/v1", "Shop", "home"), deployment("home", replicas))
}

fn owned_by<K: Resource>((version, kind, name): (&str, &str, &str), mut object: K) -> K {
    object.metadata_mut().owner_references = Some(vec![OwnerReference {
        api_version: version.to_owned(),
        kind: kind.to_owned(),
        name: name.to_owned(),
        controller: Some(true),
        block_owner_deletion: Some(true),
        ..OwnerReference::default()
    }]);
    object
}

fn ready(name: &str) -> Case {
    let status =
        json!({ "conditions": [{ "type": "Ready", "status": "True", "reason": "Serving" }] });
    let minutes = Duration::from_secs(300);
    Case::new(name, &shop(2)).given(&named::<Secret>("tls")).status(status).requeues_after(minutes)
}

fn cases() -> Table {
    let mut without = shop(2);
    without.metadata.finalizers = None;
    let mut going = shop(2);
    going.metadata.deletion_timestamp = Some(Time("2026-01-01T00:00:00Z".parse().expect("a time")));
    Table::new(operator)
        .case(ready("a shop gets a Deployment that it owns").creates(&with_replicas("home", 2)))
        .case(
            ready("a Deployment of another size is changed")
                .given(&owned(1))
                .updates(&with_replicas("home", 2)),
        )
        .case(
            Case::new("without a certificate a shop waits, and says so", &shop(2))
                .waits("Certificate")
                .event(Warning, "NoCertificate")
                .reads("watch secrets tls")
                .reads("get configmaps old"),
        )
        .case(
            Case::new("what is old is deleted", &shop(2))
                .given(&named::<ConfigMap>("old"))
                .deletes::<ConfigMap>("old")
                .waits("Certificate"),
        )
        .case(Case::new("a negative number is an error", &shop(-1)).fails("a negative number"))
        .case(Case::new("a new shop gets its finalizer", &without).updates(&shop(2)).waits("Cert"))
        .case(Case::new("a shop that goes loses its finalizer", &going).updates(&named_shop()))
}

/// The shop without its finalizer, as an expectation.
fn named_shop() -> Shop {
    let mut shop = shop(2);
    shop.metadata.finalizers = None;
    shop
}

#[tokio::test]
async fn cases_hold_without_a_server_and_on_one() {
    let (without, on) = (cases().try_check().await, cases().try_check_on_server().await);
    // The sixth case waits for a reason of another name.
    let line =
        "! the reconcile waits: Certificate: there is no Secret tls; expected: it waits for Cert";
    let text = format!("\n\na new shop gets its finalizer\n  {line}");
    assert_eq!(without, Err(format!("1 of 7 cases differ without an API server{text}")));
    assert_eq!(on, Err(format!("1 of 7 cases differ on the API server{text}")));
}

#[tokio::test]
async fn each_expectation_that_does_not_hold_is_a_difference() {
    let status = json!({ "conditions": [{ "type": "Ready", "status": "False" }] });
    let table = Table::new(operator)
        .case(ready("other fields").creates(&with_replicas("home", 3)).status(status))
        .case(ready("an owner").creates_unowned(&with_replicas("home", 2)))
        .case(ready("too much").updates(&named::<ConfigMap>("old")))
        .case(
            Case::new("too little", &shop(-1))
                .deletes::<Secret>("tls")
                .event(Warning, "Negative")
                .reads("get secrets tls")
                .calls("create a bucket")
                .status(json!({})),
        );
    let expected = "\
4 of 4 cases differ without an API server

other fields
  ~ create deployments.apps default/home: .spec.replicas is 2, expected 3
  ~ the status: .status.conditions[type=Ready].status is \"True\", expected \"False\"

an owner
  ~ create deployments.apps default/home: it is owned by the reconciled object

too much
  - update configmaps default/old is missing
  + create deployments.apps default/home is not expected: …

too little
  ! the reconcile fails: a negative number of replicas; expected: it succeeds
  - delete secrets default/tls is missing
  - the status is missing: the reconcile leaves it as it is
  - the Event Warning Negative is missing; there were: none
  - the read get secrets tls is missing; there were: none
  - the call create a bucket is missing; there were: none";
    let found = table.try_check().await.expect_err("nothing holds");
    let found: Vec<&str> = found.lines().collect();
    for (found, expected) in found.iter().zip(expected.lines()) {
        assert!(found.starts_with(expected.trim_end_matches('…')), "{found}\n{expected}");
    }
    assert_eq!(found.len(), expected.lines().count(), "{found:#?}");
}

#[derive(windlass_macros::Controller)]
#[controller(for = Deployment, owns(ConfigMap), name = "copies")]
struct Copies;

impl Reconciler for Copies {
    type Object = Deployment;

    async fn reconcile(&self, source: &Deployment, cx: &Context<Self>) -> Result<Action> {
        let data = source.metadata.annotations.clone();
        cx.apply_owned(ConfigMap { data, ..named("copy") }).await?;
        Ok(Action::done())
    }
}

/// A copy with a long value and many, the first and the last of which end with `end`.
fn large(end: &str) -> ConfigMap {
    let long = ("a".to_owned(), format!("{}{end}", "x".repeat(2000)));
    let many = (0..600).map(|n| (format!("k{n:03}"), "y".to_owned()));
    let all = many.chain([long, ("z".to_owned(), end.to_owned())]);
    ConfigMap { data: Some(all.collect()), ..named("copy") }
}

#[tokio::test]
async fn long_values_and_many_fields_are_compared_as_a_whole() {
    let copies = |client: Client| Manager::new(client).controller(Copies);
    let mut source = deployment("source", 1);
    source.metadata.annotations = large("1").data;
    let case = |name: &str| Case::new(name, &source);
    let there = |end: &str| owned_by(("apps/v1", "Deployment", "source"), large(end));
    Table::new(copies)
        .case(case("a copy is made").creates(&large("1")))
        .case(case("it follows").given(&there("0")).updates(&large("1")))
        .case(case("it is there").given(&there("1")))
        .case(case("that of somebody else is left").given(&large("0")).fails("of this name exists"))
        .check()
        .await;
    let table = Table::new(copies)
        .case(case("made").creates(&large("2")))
        .case(case("changed").given(&there("0")).updates(&large("2")))
        .case(case("not changed any more").given(&there("2")).updates(&large("2")));
    let found = table.try_check().await.expect_err("no value is the expected one");
    let is_told = |path: &str| found.matches(&format!(".data.{path} is ")).count();
    assert_eq!((is_told("a"), is_told("z"), is_told("k001")), (3, 3, 0), "{found}");
    assert!(found.contains(".data.a is as expected in its first KiB only: \"xxx"), "{found}");
}
