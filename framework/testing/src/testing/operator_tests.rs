//! Whole operators against an API server: from the definition to the child, and across restarts.

use std::collections::BTreeMap;
use std::time::Duration;

use k8s_openapi::api::apps::v1::{Deployment, DeploymentSpec};
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::{Container, PodSpec, PodTemplateSpec, Secret};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, ObjectMeta};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use windlass_apiserver::faults::{Fault, FaultAction as Do};

use super::*;
use windlass_client::api::{Api, Patch};
use windlass_core::conditions::{Conditions, met};
use windlass_core::error::ErrorKind;
use windlass_core::resource::{DynamicObject, ResourceExt};
use windlass_runtime::controller::{Action, Context, Failure, Reconciler, Result};
use windlass_runtime::leader::{LeaderElection, Leadership};
use windlass_runtime::manager::{Exit, ManifestOptions};

#[derive(windlass_macros::CustomResource, Clone, Debug)]
#[resource(group = "test.example.dev", version = "v1", namespaced)]
struct Site {
    metadata: ObjectMeta,
    spec: SiteSpec,
    status: Option<SiteStatus>,
}

#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
struct SiteSpec {
    replicas: i32,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
struct SiteStatus {
    conditions: Conditions,
}

#[derive(windlass_macros::Controller)]
#[controller(for = Site, owns(Deployment), name = "sites")]
struct Sites;

impl Reconciler for Sites {
    type Object = Site;

    async fn reconcile(&self, site: &Site, cx: &Context<Self>) -> Result<Action> {
        if site.spec.replicas < 0 {
            return Err(Failure::from("a negative number of replicas"));
        }
        cx.apply_owned(deployment(site)).await?;
        cx.set_condition(met("Ready", "Serving", "")).await?;
        Ok(Action::done())
    }
}

fn deployment(site: &Site) -> Deployment {
    let labels = BTreeMap::from([("site".to_owned(), site.name().to_owned())]);
    let container = Container {
        name: "web".into(),
        image: Some("registry.test/web:1".into()),
        ..Container::default()
    };
    Deployment {
        metadata: ObjectMeta { name: Some(site.name().into()), ..ObjectMeta::default() },
        spec: Some(DeploymentSpec {
            replicas: Some(site.spec.replicas),
            selector: LabelSelector {
                match_labels: Some(labels.clone()),
                ..LabelSelector::default()
            },
            template: PodTemplateSpec {
                metadata: Some(ObjectMeta { labels: Some(labels), ..ObjectMeta::default() }),
                spec: Some(PodSpec { containers: vec![container], ..PodSpec::default() }),
            },
            ..DeploymentSpec::default()
        }),
        status: None,
    }
}

fn site(name: &str, replicas: i32) -> Site {
    Site {
        metadata: ObjectMeta { name: Some(name.into()), ..ObjectMeta::default() },
        spec: SiteSpec { replicas },
        status: None,
    }
}

fn operator(cluster: &TestCluster) -> Manager {
    Manager::new(cluster.client()).controller(Sites)
}

struct Bench {
    cluster: TestCluster,
    sites: Api<Site>,
    deployments: Api<Deployment>,
}

impl Bench {
    async fn over(cluster: TestCluster) -> Self {
        cluster.install::<Site>().await;
        let client = cluster.client();
        let namespace = cluster.namespace();
        let (sites, deployments) = (client.namespace(namespace), client.namespace(namespace));
        Self { cluster, sites, deployments }
    }

    async fn start() -> Self {
        Self::over(TestCluster::start().await).await
    }

    fn operator(&self) -> RunningOperator {
        self.cluster.spawn(operator(&self.cluster))
    }

    async fn replicas(&self, name: &str) -> Option<i32> {
        self.deployments.get(name).await.unwrap().spec?.replicas
    }
}

#[tokio::test]
async fn an_object_becomes_its_child_and_its_condition_and_then_nothing_moves() {
    let bench = Bench::start().await;
    let running = bench.operator();
    let created = bench.sites.create(&site("home", 2)).await.unwrap();
    running.settled().await;

    let child = bench.deployments.get("home").await.unwrap();
    let owner = &child.metadata.owner_references.as_ref().unwrap()[0];
    assert_eq!((owner.uid.as_str(), owner.controller), (created.uid(), Some(true)));
    let stored = bench.sites.get("home").await.unwrap();
    let ready = stored.status.as_ref().unwrap().conditions.get("Ready").unwrap();
    assert_eq!((ready.status.as_str(), ready.reason.as_str()), ("True", "Serving"));
    assert_eq!(ready.observed_generation, Some(1));

    let version = stored.resource_version().to_owned();
    running.settled().await;
    assert_eq!(bench.sites.get("home").await.unwrap().resource_version(), version);
    assert_eq!(running.stop().await, Exit::Drained);
}

#[tokio::test]
async fn a_change_and_a_lost_child_are_made_good() {
    let bench = Bench::start().await;
    let running = bench.operator();
    bench.sites.create(&site("home", 2)).await.unwrap();
    running.settled().await;
    bench.sites.patch("home", Patch::Merge(json!({"spec": {"replicas": 5}}))).await.unwrap();
    running.settled().await;
    assert_eq!(bench.replicas("home").await, Some(5));
    bench.deployments.delete("home").await.unwrap();
    running.settled().await;
    assert_eq!(bench.replicas("home").await, Some(5));
}

#[tokio::test]
async fn the_next_process_goes_on_where_a_killed_one_left() {
    let bench = Bench::start().await;
    let first = bench.operator();
    bench.sites.create(&site("one", 1)).await.unwrap();
    first.settled().await;
    drop(first);
    bench.sites.create(&site("two", 2)).await.unwrap();
    bench.sites.patch("one", Patch::Merge(json!({"spec": {"replicas": 3}}))).await.unwrap();
    let second = bench.operator();
    second.settled().await;
    assert_eq!((bench.replicas("one").await, bench.replicas("two").await), (Some(3), Some(2)));
}

#[tokio::test]
async fn an_operator_that_cannot_succeed_is_not_settled_and_says_which_controller() {
    let bench = Bench::start().await;
    let running = bench.operator();
    bench.sites.create(&site("bad", -1)).await.unwrap();
    let error = running.try_settled(Duration::from_secs(2)).await.unwrap_err();
    assert!(error.to_string().contains("controller \"sites\""), "{error}");
}

#[tokio::test]
async fn the_printed_roles_are_enough_for_the_operator_and_no_more() {
    let cluster = TestCluster::builder().embedded().start().await;
    let build = |client| Manager::new(client).leader_election("ops").controller(Sites);
    let options = ManifestOptions::default().namespace(cluster.namespace());
    let printed = build(cluster.client()).install::<Site>().manifests(&options).unwrap();
    for document in serde_saphyr::from_multiple::<DynamicObject>(&printed).unwrap() {
        let api = cluster.client().dynamic(super::tests::info_of(&document), document.namespace());
        api.apply(document.name(), &document).force().await.unwrap();
    }
    let account = format!("system:serviceaccount:{}:ops", cluster.namespace());
    let client = cluster.client_as(&account, &["system:serviceaccounts", "system:authenticated"]);
    let running = cluster.spawn(build(client.clone()).install::<Site>());
    let sites: Api<Site> = cluster.client().namespace(cluster.namespace());
    while !running.readiness().is_ready() {
        assert!(running.is_running(), "{:?}", running.readiness());
        cluster.client().environment().clock.sleep(Duration::from_millis(5)).await;
    }
    sites.create(&site("home", 2)).await.unwrap();
    running.settled().await;
    assert_eq!(running.leadership(), Some(Leadership::Leading));
    let deployments: Api<Deployment> = cluster.client().namespace(cluster.namespace());
    assert!(deployments.get_opt("home").await.unwrap().is_some());

    let secrets: Api<Secret> = client.namespace(cluster.namespace());
    assert_eq!(secrets.list().await.unwrap_err().kind(), ErrorKind::Forbidden);
    let leases: Api<Lease> = client.namespace(cluster.namespace());
    assert_eq!(leases.get("other").await.unwrap_err().kind(), ErrorKind::Forbidden);
}

#[tokio::test(start_paused = true)]
async fn l8_a_follower_waits_with_warm_caches_and_takes_over_from_a_killed_leader() {
    let bench = Bench::over(TestCluster::builder().embedded().start().await).await;
    let elected = || operator(&bench.cluster).leader_election("sites");
    let leader = bench.cluster.spawn(elected());
    bench.sites.create(&site("one", 1)).await.unwrap();
    leader.settled().await;
    let follower = bench.cluster.spawn(elected());
    let clock = bench.cluster.client().environment().clock.clone();
    clock.sleep(Duration::from_secs(30)).await;
    assert_eq!(leader.leadership(), Some(Leadership::Leading));
    assert!(follower.readiness().is_ready(), "{:?}", follower.readiness());
    assert_eq!(follower.states()[0].1.reconciles, 0);

    drop(leader);
    let killed = clock.now();
    bench.sites.create(&site("two", 2)).await.unwrap();
    while bench.deployments.get_opt("two").await.unwrap().is_none() {
        clock.sleep(Duration::from_millis(50)).await;
    }
    let took = clock.now() - killed;
    assert!(took <= Duration::from_millis(17_500), "{took:?}");
    assert!(took >= Duration::from_secs(10), "{took:?}");
}

/// Each reconcile writes a new value, past the context.
#[derive(windlass_macros::Controller)]
#[controller(for = Site, name = "restless", can(patch Site))]
struct Restless;

impl Reconciler for Restless {
    type Object = Site;

    async fn reconcile(&self, site: &Site, cx: &Context<Self>) -> Result<Action> {
        let run = cx.rng().next_u64().to_string();
        let patch = Patch::Merge(json!({ "metadata": { "labels": { "run": run } } }));
        cx.client().namespace::<Site>(site.namespace().unwrap()).patch(site.name(), patch).await?;
        Ok(Action::done())
    }
}

async fn restless() -> RunningOperator {
    let bench = Bench::over(TestCluster::builder().embedded().start().await).await;
    let running = bench.cluster.spawn(Manager::new(bench.cluster.client()).controller(Restless));
    bench.sites.create(&site("home", 2)).await.unwrap();
    running
}

#[tokio::test(start_paused = true)]
async fn c4_endless_reconciling_is_not_settled_and_names_the_object_and_its_reasons() {
    let running = restless().await;
    let error = running.try_settled(Duration::from_secs(60)).await.unwrap_err().to_string();
    assert!(error.contains("the operator reconciles without end"), "{error}");
    assert!(error.contains("/home: reconciled "), "{error}");
    assert!(error.contains("because: changed"), "{error}");
    running.stop_anyway().await;
}

#[tokio::test(start_paused = true)]
#[should_panic(expected = "the operator reconciles without end")]
async fn c4_a_test_that_ends_while_its_operator_reconciles_without_end_fails() {
    restless().await.stop().await;
}

#[tokio::test(start_paused = true)]
#[should_panic(expected = "the operator reconciles without end")]
async fn c4_a_test_that_drops_an_operator_that_reconciles_without_end_fails() {
    let running = restless().await;
    while running.busy_report()[0].1.endless.is_empty() {
        running.client().environment().clock.sleep(Duration::from_secs(1)).await;
    }
}

async fn holder(bench: &Bench) -> Option<String> {
    let leases = bench.cluster.client().namespace::<Lease>(bench.cluster.namespace());
    let holder = leases.get("sites").await.unwrap().spec.unwrap().holder_identity;
    holder.filter(|holder| !holder.is_empty())
}

async fn until_leading(running: &RunningOperator) {
    let clock = running.client().environment().clock.clone();
    let leads = async {
        while running.leadership() != Some(Leadership::Leading) {
            clock.sleep(Duration::from_millis(50)).await;
        }
    };
    clock.timeout(Duration::from_secs(60), leads).await.expect("it leads within a minute");
}

/// Its reconciles take an hour and ignore cancellation.
#[derive(windlass_macros::Controller)]
#[controller(for = Site, name = "stubborn")]
struct Stubborn;

impl Reconciler for Stubborn {
    type Object = Site;

    async fn reconcile(&self, _: &Site, cx: &Context<Self>) -> Result<Action> {
        cx.clock().sleep(Duration::from_secs(3600)).await;
        Ok(Action::done())
    }
}

#[tokio::test(start_paused = true)]
async fn l8_s1_the_lease_is_given_back_after_a_drain_and_kept_when_work_was_cut() {
    let bench = Bench::over(TestCluster::builder().embedded().start().await).await;
    let calm = bench.cluster.spawn(operator(&bench.cluster).leader_election("sites"));
    until_leading(&calm).await;
    assert!(holder(&bench).await.is_some());
    assert_eq!(calm.stop().await, Exit::Drained);
    assert_eq!(holder(&bench).await, None, "another may lead at once");

    bench.sites.create(&site("home", 2)).await.unwrap();
    let manager = Manager::new(bench.cluster.client()).controller(Stubborn);
    let manager = manager.leader_election("sites").drain(Duration::from_secs(5));
    let running = bench.cluster.spawn(manager);
    let clock = bench.cluster.client().environment().clock.clone();
    while running.states()[0].1.working == 0 {
        clock.sleep(Duration::from_millis(50)).await;
    }
    assert_eq!(running.stop_anyway().await, Exit::Cut);
    assert!(holder(&bench).await.is_some(), "it expires: the work may have a write under way");
}

#[tokio::test(start_paused = true)]
async fn l9_an_operator_that_lost_its_lease_leads_again_without_a_restart() {
    let bench = Bench::over(TestCluster::builder().embedded().start().await).await;
    let running = bench.cluster.spawn(operator(&bench.cluster).leader_election("sites"));
    until_leading(&running).await;
    let away = Fault::new(Do::Answer(503)).resource("leases").always();
    let away = bench.cluster.server().faults().add(away);
    let clock = bench.cluster.client().environment().clock.clone();
    clock.sleep(Duration::from_secs(30)).await;
    assert_ne!(running.leadership(), Some(Leadership::Leading));
    bench.sites.create(&site("home", 2)).await.unwrap();
    clock.sleep(Duration::from_secs(5)).await;
    assert!(bench.deployments.get_opt("home").await.unwrap().is_none(), "nobody leads");
    away.remove();
    until_leading(&running).await;
    running.settled().await;
    assert_eq!(bench.replicas("home").await, Some(2));
    assert_eq!(running.stop().await, Exit::Drained);
}

#[tokio::test(start_paused = true)]
async fn an_operator_lends_its_lease_to_one_that_asks_and_works_again_after_it() {
    let bench = Bench::over(TestCluster::builder().embedded().start().await).await;
    let election = || LeaderElection::new("sites");
    let elected = |manners| operator(&bench.cluster).leader_election_with(manners);
    let lender = bench.cluster.spawn(elected(election().lend(true)));
    until_leading(&lender).await;
    let laptop = bench.cluster.spawn(elected(election().ask(true)));
    until_leading(&laptop).await;
    assert_ne!(lender.leadership(), Some(Leadership::Leading));
    bench.sites.create(&site("one", 1)).await.unwrap();
    laptop.settled().await;
    assert_eq!(bench.replicas("one").await, Some(1));
    assert_eq!(lender.states()[0].1.reconciles, 0, "only who leads works");
    assert_eq!(laptop.stop().await, Exit::Drained);
    until_leading(&lender).await;
    bench.sites.create(&site("two", 2)).await.unwrap();
    lender.settled().await;
    assert_eq!(bench.replicas("two").await, Some(2));
}
