//! Objects whose children have failed for good.

use std::time::Duration;

use k8s_openapi::api::apps::v1::{Deployment, DeploymentSpec};
use k8s_openapi::api::core::v1::{ConfigMap, PodTemplateSpec};
use k8s_openapi::api::events::v1::Event;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use windlass::Dependents;
use windlass::api::{Api, Patch};
use windlass::conditions::ConditionedStatus;
use windlass::dependents::Readiness;
use windlass::metrics::names;
use windlass::prelude::*;
use windlass::resource::Resource;
use windlass::rollout::RolloutChildren;
use windlass::testing::{RunningOperator, TestCluster};
use windlass_apiserver::faults::{Fault, FaultAction};

use super::readings::{Reading, argo, kstatus, kubectl_waits_no_more};
use super::website::shown;

#[derive(CustomResource, Clone, Debug)]
#[resource(group = "conditions.windlass.dev", version = "v1", namespaced)]
struct Kiosk {
    metadata: ObjectMeta,
    spec: KioskSpec,
    status: Option<ConditionedStatus>,
}

#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
struct KioskSpec {
    image: String,
}

#[derive(Dependents)]
#[dependents(for = Kiosk, by = Kiosks)]
struct KioskParts {
    #[dependent(ready = is_open)]
    doors: Vec<ConfigMap>,
    app: Deployment,
    #[dependent(after(app))]
    sign: ConfigMap,
}

fn is_open(door: &ConfigMap) -> Readiness {
    match door.annotation("open") {
        Some("yes") => Readiness::Ready,
        Some("jammed") => Readiness::failed("Jammed", "it is jammed"),
        _ => Readiness::from(false),
    }
}

#[derive(Controller)]
#[controller(for = Kiosk, dependents(KioskParts), conditions, name = "kiosks")]
struct Kiosks;

impl DesiredKioskParts for Kiosks {
    async fn doors(&self, kiosk: &Kiosk, _: &Context<Self>) -> Result<Vec<ConfigMap>> {
        let name = |side| format!("{}-{side}", kiosk.name());
        let door = |side| object!(ConfigMap { metadata: { name: name(side) } });
        Ok(["front", "back"].map(door).into())
    }

    async fn app(&self, kiosk: &Kiosk, _: &Context<Self>) -> Result<Deployment> {
        let (name, image) = (kiosk.name(), &kiosk.spec.image);
        let template = object!(PodTemplateSpec {
            metadata: { labels: { app: name } },
            spec: { containers: [{ name: "web", image }] },
        });
        let spec = object!(DeploymentSpec { selector: { matchLabels: { app: name } }, template });
        Ok(object!(Deployment { metadata: { name }, spec }))
    }

    async fn sign(&self, kiosk: &Kiosk, _: &Context<Self>) -> Result<ConfigMap> {
        Ok(object!(ConfigMap { metadata: { name: format!("{}-sign", kiosk.name()) } }))
    }
}

#[derive(Dependents)]
#[dependents(for = Kiosk, by = Chains)]
struct ChainParts {
    #[dependent(rollout, ready = is_seen)]
    shops: Vec<ConfigMap>,
}

/// A shop is ready when the test has seen its image.
fn is_seen(shop: &ConfigMap) -> bool {
    let image = shop.data.as_ref().and_then(|data| data.get("image"));
    shop.annotation("seen") == image.map(String::as_str)
}

fn shop(name: &str, image: &String) -> ConfigMap {
    object!(ConfigMap { metadata: { name }, data: { image } })
}

#[derive(Controller)]
#[controller(for = Kiosk, dependents(ChainParts), conditions, name = "chains")]
struct Chains;

impl DesiredChainParts for Chains {
    async fn shops(
        &self,
        kiosk: &Kiosk,
        _: &Context<Self>,
    ) -> Result<RolloutChildren<Self, ConfigMap>> {
        let names = vec!["a".to_owned(), "b".to_owned()];
        let shops = RolloutChildren::new(kiosk.spec.image.clone(), names, shop);
        Ok(shops.deadline(Duration::from_secs(60)))
    }
}

/// The same, without declared conditions.
mod plain {
    use super::*;

    #[derive(Dependents)]
    #[dependents(for = Kiosk, by = Chains)]
    struct PlainParts {
        #[dependent(rollout, ready = is_seen)]
        shops: Vec<ConfigMap>,
    }

    #[derive(Controller)]
    #[controller(for = Kiosk, dependents(PlainParts), outcome_condition = "Ready", name = "plain")]
    pub(super) struct Chains;

    impl DesiredPlainParts for Chains {
        async fn shops(
            &self,
            kiosk: &Kiosk,
            _: &Context<Self>,
        ) -> Result<RolloutChildren<Self, ConfigMap>> {
            let names = vec!["a".to_owned(), "b".to_owned()];
            let shops = RolloutChildren::new(kiosk.spec.image.clone(), names, shop);
            Ok(shops.deadline(Duration::from_secs(60)))
        }
    }
}

/// A cluster with the kiosk `home`.
struct Town {
    cluster: TestCluster,
}

impl Town {
    async fn start(image: &str) -> Self {
        let cluster = TestCluster::start().await;
        if cluster.is_embedded() {
            tokio::time::pause();
        }
        cluster.install::<Kiosk>().await;
        let town = Self { cluster };
        let kiosk = Kiosk::new("home", KioskSpec { image: image.to_owned() });
        town.api().create(&kiosk).await.unwrap();
        town
    }

    fn run(&self, name: &str) -> RunningOperator {
        let manager = Manager::new(self.cluster.client());
        self.cluster.spawn(match name {
            "chains" => manager.controller(Chains),
            "plain" => manager.controller(plain::Chains),
            _ => manager.controller(Kiosks),
        })
    }

    fn api<K: Resource>(&self) -> Api<K> {
        self.cluster.client().namespace(self.cluster.namespace())
    }

    async fn paint(&self, image: &str) {
        let patch = Patch::Merge(json!({ "spec": { "image": image } }));
        self.api::<Kiosk>().patch("home", patch).await.unwrap();
    }

    /// Writes a status of the Deployment, for its present generation.
    async fn report(&self, conditions: Value) {
        let generation = self.api::<Deployment>().get("home").await.unwrap().metadata.generation;
        let status = json!({
            "observedGeneration": generation, "conditions": conditions, "replicas": 1,
            "updatedReplicas": 1, "readyReplicas": 1, "availableReplicas": 1,
        });
        let patch = Patch::Merge(json!({ "status": status }));
        self.api::<Deployment>().patch("home", patch).status().await.unwrap();
    }

    /// Sets an annotation of a ConfigMap.
    async fn mark(&self, name: &str, key: &str, value: &str) {
        let patch = Patch::Merge(json!({ "metadata": { "annotations": { key: value } } }));
        self.api::<ConfigMap>().patch(name, patch).await.unwrap();
    }

    async fn kiosk(&self) -> Value {
        serde_json::to_value(self.api::<Kiosk>().get("home").await.unwrap()).unwrap()
    }

    async fn eventually(&self, is_so: impl Fn(&Value) -> bool) -> Value {
        for _ in 0..2000 {
            let kiosk = self.kiosk().await;
            if is_so(&kiosk) {
                return kiosk;
            }
            self.cluster.client().environment().clock.sleep(Duration::from_millis(100)).await;
        }
        panic!("never: {:#}", self.kiosk().await);
    }
}

/// Status, reason and message of `Ready`, `Reconciling` and `Stalled`.
fn three(kiosk: &Value) -> [String; 3] {
    ["Ready", "Reconciling", "Stalled"].map(|type_| shown(kiosk, type_))
}

fn progress(status: &str, reason: &str) -> Value {
    json!([{ "type": "Progressing", "status": status, "reason": reason }])
}

fn is_stalled(kiosk: &Value) -> bool {
    shown(kiosk, "Stalled") != "absent"
}

#[tokio::test]
async fn a_child_that_has_failed_stalls_its_owner_until_it_recovers() {
    let town = Town::start("web:1").await;
    let running = town.run("kiosks");
    running.settled().await;
    let kiosk = town.kiosk().await;
    assert_eq!((kstatus(&kiosk), argo(&kiosk)), (Reading::InProgress, "Progressing"));

    town.report(progress("False", "ProgressDeadlineExceeded")).await;
    let kiosk = town.eventually(is_stalled).await;
    // The wait for the door does not hide it.
    let text = "ProgressDeadlineExceeded app: Progress deadline exceeded; doors: not ready; sign: waits for app";
    assert_eq!(three(&kiosk), [format!("False {text}"), "absent".into(), format!("True {text}")]);
    assert_eq!((kstatus(&kiosk), argo(&kiosk)), (Reading::Failed, "Degraded"));
    assert!(!kubectl_waits_no_more(&kiosk));
    running.settled().await;
    let events = town.api::<Event>().list().await.unwrap().items;
    let warnings = events.iter().filter(|event| event.type_.as_deref() == Some("Warning"));
    let reasons: Vec<_> = warnings.filter_map(|event| event.reason.as_deref()).collect();
    assert_eq!(reasons, ["ProgressDeadlineExceeded"], "{events:#?}");

    let conditions = json!([
        { "type": "Progressing", "status": "True", "reason": "NewReplicaSetAvailable" },
        { "type": "Available", "status": "True", "reason": "MinimumReplicasAvailable" },
    ]);
    town.report(conditions).await;
    let kiosk = town.eventually(|kiosk| !is_stalled(kiosk)).await;
    let text = "Dependents doors: not ready";
    assert_eq!(three(&kiosk)[..2], [format!("False {text}"), format!("True {text}")]);
    assert_eq!(kstatus(&kiosk), Reading::InProgress);
    for name in ["home-front", "home-back"] {
        town.mark(name, "open", "yes").await;
    }
    let kiosk = town.eventually(|kiosk| shown(kiosk, "Ready") == "True Reconciled ").await;
    assert_eq!(kstatus(&kiosk), Reading::Current);
    running.stop().await;
}

#[tokio::test]
async fn a_stall_by_a_child_is_no_error_and_is_looked_at_rarely() {
    let town = Town::start("web:1").await;
    let running = town.run("kiosks");
    running.settled().await;
    town.report(progress("False", "ProgressDeadlineExceeded")).await;
    let before = town.eventually(is_stalled).await;
    running.settled().await;
    let metrics = town.cluster.client().environment().metrics.clone();
    let runs = || metrics.counted(&names::RECONCILE, &["kiosks", "requeue_after"]);
    let begun = runs();
    if town.cluster.is_embedded() {
        town.cluster.client().environment().clock.sleep(Duration::from_secs(1200)).await;
    }
    assert!(runs() - begun < 30, "{}", runs() - begun);
    assert_eq!(town.kiosk().await["metadata"], before["metadata"], "nothing is written");
    for errors in [&names::RECONCILE_ERRORS, &names::RECONCILE_TERMINAL_ERRORS] {
        assert_eq!(metrics.counted(errors, &["kiosks"]), 0);
    }
    running.stop().await;
}

#[tokio::test]
async fn of_several_children_of_a_field_the_failed_one_is_told_by_its_name() {
    let town = Town::start("web:1").await;
    let running = town.run("kiosks");
    running.settled().await;
    town.mark("home-back", "open", "jammed").await;
    let kiosk = town.eventually(is_stalled).await;
    let stalled = shown(&kiosk, "Stalled");
    assert!(stalled.starts_with("True Jammed doors: home-back: it is jammed; app: "), "{stalled}");
    town.mark("home-back", "open", "no").await;
    let kiosk = town.eventually(|kiosk| !is_stalled(kiosk)).await;
    assert!(three(&kiosk)[1].starts_with("True Dependents doors: not ready; app"), "{kiosk:#}");
    running.stop().await;
}

#[tokio::test]
async fn a_stall_by_a_child_ends_with_a_spec_that_changes_the_child() {
    let town = Town::start("web:1").await;
    let running = town.run("kiosks");
    running.settled().await;
    town.report(progress("False", "ProgressDeadlineExceeded")).await;
    town.eventually(is_stalled).await;
    town.paint("web:2").await;
    let kiosk = town.eventually(|kiosk| !is_stalled(kiosk)).await;
    assert!(three(&kiosk)[1].starts_with("True Dependents"), "{kiosk:#}");
    assert_eq!(
        (kstatus(&kiosk), &kiosk["status"]["observedGeneration"]),
        (Reading::InProgress, &json!(2))
    );
    running.stop().await;
}

#[tokio::test]
async fn a_child_that_the_api_server_refuses_stalls_its_owner_until_the_spec_changes() {
    // A container needs an image.
    let town = Town::start("").await;
    let running = town.run("kiosks");
    let kiosk = town.eventually(is_stalled).await;
    let [ready, reconciling, stalled] = three(&kiosk);
    assert!(ready.starts_with("False RequestRefused applying app: "), "{ready}");
    assert!(stalled.starts_with("True RequestRefused applying app: "), "{stalled}");
    assert!(stalled.contains("spec.template.spec.containers[0].image"), "{stalled}");
    assert_eq!((&*reconciling, kstatus(&kiosk)), ("absent", Reading::Failed));
    assert_eq!(argo(&kiosk), "Degraded");
    assert_eq!(
        town.api::<ConfigMap>()
            .list()
            .await
            .unwrap()
            .items
            .iter()
            .filter(|map| map.name().starts_with("home-"))
            .count(),
        2,
        "siblings are there"
    );
    town.paint("web:1").await;
    let kiosk = town.eventually(|kiosk| !is_stalled(kiosk)).await;
    assert!(three(&kiosk)[1].starts_with("True Dependents"), "{kiosk:#}");
    running.settled().await;
    running.stop().await;
}

#[tokio::test]
async fn a_child_that_the_operator_may_not_write_stalls_its_owner_until_a_retry_may() {
    let cluster = TestCluster::builder().embedded().start().await;
    tokio::time::pause();
    cluster.install::<Kiosk>().await;
    let town = Town { cluster };
    let kiosk = Kiosk::new("home", KioskSpec { image: "web:1".to_owned() });
    town.api().create(&kiosk).await.unwrap();
    let refused = Fault::new(FaultAction::Answer(403)).on("patch").resource("deployments").always();
    let refused = town.cluster.server().faults().add(refused);
    let running = town.run("kiosks");
    let kiosk = town.eventually(is_stalled).await;
    assert!(three(&kiosk)[2].starts_with("True RequestRefused applying app: "), "{kiosk:#}");
    refused.remove();
    let kiosk = town.eventually(|kiosk| !is_stalled(kiosk)).await;
    assert!(three(&kiosk)[1].starts_with("True Dependents"), "{kiosk:#}");
    running.settled().await;
    running.stop().await;
}

#[tokio::test]
async fn a_rollout_that_was_rolled_back_stalls_its_owner_until_another_state_is_wanted() {
    let town = Town::start("web:1").await;
    let running = town.run("chains");
    running.settled().await;
    for name in ["a", "b"] {
        town.mark(name, "seen", "web:1").await;
    }
    town.eventually(|kiosk| shown(kiosk, "Ready").starts_with("True")).await;
    town.paint("web:2").await;
    let kiosk = town.eventually(is_stalled).await;
    let [ready, reconciling, stalled] = three(&kiosk);
    assert!(ready.starts_with("False RolledBack shops: "), "{ready}");
    assert!(stalled.starts_with("True RolledBack shops: "), "{stalled}");
    assert_eq!((&*reconciling, kstatus(&kiosk)), ("absent", Reading::Failed));

    town.paint("web:1").await;
    let kiosk = town.eventually(|kiosk| !is_stalled(kiosk)).await;
    assert_ne!(kstatus(&kiosk), Reading::Failed);
    let kiosk = town.eventually(|kiosk| shown(kiosk, "Ready").starts_with("True")).await;
    assert_eq!(kstatus(&kiosk), Reading::Current);
    running.stop().await;
}

#[tokio::test]
async fn an_outcome_condition_tells_a_rollout_that_was_rolled_back_from_one_on_its_way() {
    let town = Town::start("web:1").await;
    let running = town.run("plain");
    running.settled().await;
    for name in ["a", "b"] {
        town.mark(name, "seen", "web:1").await;
    }
    town.eventually(|kiosk| shown(kiosk, "Ready").starts_with("True")).await;
    town.paint("web:2").await;
    let kiosk = town.eventually(|kiosk| shown(kiosk, "Ready").starts_with("False Waiting ")).await;
    assert!(shown(&kiosk, "Ready").contains("Dependents: "), "{kiosk:#}");
    let is_told =
        |kiosk: &Value| shown(kiosk, "Ready").starts_with("False DependentFailed RolledBack: ");
    town.eventually(is_told).await;
    running.stop().await;
}
