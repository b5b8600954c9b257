//! Several controllers of the same kind, kinds without `observedGeneration`, and a controller
//! without declared conditions.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use windlass::api::{Api, Patch};
use windlass::controller::{ControllerBuilder, Failure, OwnsConditions};
use windlass::prelude::*;
use windlass::testing::TestCluster;
use windlass_apiserver::faults::{Fault, FaultAction as Do};

use super::readings::{Reading, kstatus};
use super::website::{Bench, Website, Websites, condition, shown};

#[derive(Conditions)]
#[conditions(ready(all(Resolved)), root = "DnsReady")]
enum DnsCondition {
    Resolved,
}

/// A further controller of websites.
#[derive(Controller)]
#[controller(for = Website, name = "dns", conditions(DnsCondition))]
struct Dns;

impl Reconciler for Dns {
    type Object = Website;

    async fn reconcile(&self, site: &Website, cx: &Context<Self>) -> Result {
        if site.spec.act == "is down" {
            return Ok(Action::wait_for("Propagation", "1 of 2 servers"));
        }
        DnsCondition::Resolved.met(cx, "Answered", "");
        Ok(Action::done())
    }
}

#[tokio::test]
async fn two_controllers_of_one_kind_keep_a_root_each_and_come_to_rest() {
    let bench = Bench::start().await;
    let manager = Manager::new(bench.cluster.client())
        .controller(Websites { cleanups: Arc::default() })
        .controller(Dns);
    let running = bench.cluster.spawn(manager);
    bench.after("serves").await;
    let site = bench.eventually(|site| shown(site, "DnsReady") == "True Reconciled ").await;
    assert_eq!(kstatus(&site), Reading::Current);
    bench.after("is down").await;
    let site =
        bench.eventually(|site| shown(site, "DnsReady").starts_with("False Propagation")).await;
    assert_eq!(shown(&site, "Reconciling"), "True NoPods 0 of 3 ready", "of the one with `Ready`");
    bench.after("serves").await;
    bench.eventually(|site| shown(site, "DnsReady") == "True Reconciled ").await;
    running.settled().await;
    if bench.cluster.is_embedded() {
        bench.writes();
        let patch = json!({ "metadata": { "labels": { "a": "b" } } });
        bench.sites.patch("home", Patch::Merge(patch)).await.unwrap();
        running.settled().await;
        assert_eq!(bench.writes(), ["patch websites/"], "neither undoes what the other wrote");
    }
    running.stop().await;
}

#[derive(CustomResource, Clone, Debug)]
#[resource(group = "conditions.windlass.dev", version = "v1", namespaced)]
struct Plain {
    metadata: ObjectMeta,
    spec: PlainSpec,
    status: Option<PlainStatus>,
}

#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
struct PlainSpec {
    up: bool,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
struct PlainStatus {
    conditions: Option<Conditions>,
}

/// A controller without declared conditions.
#[derive(Controller)]
#[controller(for = Plain, conditions)]
struct Plains;

impl Reconciler for Plains {
    type Object = Plain;

    async fn reconcile(&self, plain: &Plain, _: &Context<Self>) -> Result {
        if plain.spec.up { Ok(Action::done()) } else { Err(Failure::terminal("it is down")) }
    }
}

#[tokio::test]
async fn a_controller_without_conditions_of_its_own_shows_outcomes() {
    let cluster = TestCluster::start().await;
    if cluster.is_embedded() {
        tokio::time::pause();
    }
    cluster.install::<Plain>().await;
    let plains: Api<Plain> = cluster.client().namespace(cluster.namespace());
    plains.create(&Plain::new("one", PlainSpec { up: true })).await.unwrap();
    let running = cluster.spawn(Manager::new(cluster.client()).controller(Plains));
    running.settled().await;
    let read = async || serde_json::to_value(plains.get("one").await.unwrap()).unwrap();
    let site = read().await;
    assert_eq!(
        (shown(&site, "Ready").as_str(), kstatus(&site)),
        ("True Reconciled ", Reading::Current)
    );
    assert!(site["status"].get("observedGeneration").is_none(), "the status has no such field");
    plains.patch("one", Patch::Merge(json!({ "spec": { "up": false } }))).await.unwrap();
    running.settled().await;
    let site = read().await;
    assert_eq!(kstatus(&site), Reading::Failed);
    assert_eq!(condition(&site, "Stalled").unwrap().observed_generation, Some(2));
    running.stop().await;
}

#[derive(CustomResource, Clone, Debug)]
#[resource(group = "conditions.windlass.dev", version = "v1", namespaced)]
struct Bare {
    metadata: ObjectMeta,
    status: Option<BareStatus>,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
struct BareStatus {
    phase: Option<String>,
}

struct Bares;

impl Reconciler for Bares {
    type Object = Bare;

    async fn reconcile(&self, _: &Bare, _: &Context<Self>) -> Result {
        Ok(Action::done())
    }
}

// By hand: the derive would not compile.
impl OwnsConditions<windlass::conditions::ReadyCondition> for Bares {}

impl Controller for Bares {
    fn builder() -> ControllerBuilder<Self> {
        ControllerBuilder::new().conditions::<windlass::conditions::ReadyCondition>()
    }
}

#[tokio::test]
async fn an_operator_does_not_start_if_the_status_has_no_field_for_its_conditions() {
    let cluster = TestCluster::start().await;
    cluster.install::<Bare>().await;
    let ended = Manager::new(cluster.client()).controller(Bares).run().await;
    let error = ended.unwrap_err().to_string();
    assert!(error.contains("its status has no field `conditions`"), "{error}");
}

#[tokio::test]
async fn a_permanent_error_is_shown_also_if_the_server_was_away_when_it_happened() {
    let bench = Bench::embedded().await;
    let running = bench.run();
    bench.after("serves").await;
    let fault = Fault::new(Do::Answer(503)).on("patch").resource("websites").subresource("status");
    let fault = bench.cluster.server().faults().add(fault.always());
    bench.act("fails for good").await;
    bench.pass(20).await;
    assert!(fault.hits() > 0);
    assert_eq!(shown(&bench.site().await, "Stalled"), "absent");
    fault.remove();
    let site = bench.eventually(|site| condition(site, "Stalled").is_some()).await;
    assert_eq!(kstatus(&site), Reading::Failed);
    running.stop_anyway().await;
}
