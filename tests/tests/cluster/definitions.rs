//! Definitions that other managers made: an operator's changes to them, and the operator's work by
//! them.

use std::time::Duration;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use serde_json::{Value, json};
use windlass::ErrorKind;
use windlass::api::{Api, Patch};
use windlass::crd::CustomResource;
use windlass::leader::LeaderElection;
use windlass::prelude::*;
use windlass::resource::Resource;
use windlass::testing::{RunningOperator, TestCluster};

const VERSION: &str = "windlass.dev/version";

/// A separate kind for each test: on a shared server all tests see the same definitions.
macro_rules! kind {
    ($module:ident, $kind:ident, $plural:literal) => {
        #[allow(dead_code, reason = "not every test needs all of its kind")]
        mod $module {
            use schemars::JsonSchema;
            use serde::{Deserialize, Serialize};
            use windlass::prelude::*;

            #[derive(CustomResource, Clone, Debug)]
            #[resource(group = "foreign.windlass.dev", version = "v1", namespaced, plural = $plural)]
            pub(crate) struct $kind {
                pub(crate) metadata: ObjectMeta,
                pub(crate) spec: Spec,
                pub(crate) status: Option<Status>,
            }

            #[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
            pub(crate) struct Spec {
                pub(crate) host: String,
                pub(crate) rules: Vec<Rule>,
            }

            #[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
            pub(crate) struct Rule {
                pub(crate) path: String,
            }

            #[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
            pub(crate) struct Status {
                pub(crate) conditions: Conditions,
            }

            #[derive(Controller)]
            #[controller(for = $kind)]
            pub(crate) struct Keeper;

            impl Reconciler for Keeper {
                type Object = $kind;

                async fn reconcile(&self, _: &$kind, cx: &Context<Self>) -> Result {
                    cx.set_condition(met("Seen", "Seen", "")).await?;
                    Ok(Action::done())
                }
            }

            pub(crate) fn operator(client: Client) -> Manager {
                Manager::new(client).install::<$kind>().controller(Keeper)
            }

            pub(crate) fn object() -> $kind {
                $kind::new("home", Spec { host: "a".to_owned(), rules: Vec::new() })
            }
        }
    };
}

/// A cluster with a definition that `manager` keeps: that of `K`, changed.
struct Place {
    cluster: TestCluster,
    definitions: Api<CustomResourceDefinition>,
    name: String,
}

/// A tool that writes definitions, with the tool's field manager.
#[derive(Clone, Copy)]
enum Tool {
    /// `helm install`, or kubectl without `--server-side`.
    Creates(&'static str),
    /// `kubectl apply --server-side`, or a tool that applies from Git.
    Applies(&'static str),
}

impl Place {
    async fn with<K: CustomResource>(tool: Tool, change: impl FnOnce(&mut Value)) -> Self {
        let cluster = TestCluster::start().await;
        if cluster.is_embedded() {
            tokio::time::pause();
        }
        let mut definition = serde_json::to_value(K::crd().unwrap()).unwrap();
        definition["metadata"]["annotations"] =
            json!({ "kubectl.kubernetes.io/last-applied-configuration": "{}" });
        change(&mut definition["spec"]);
        let definition: CustomResourceDefinition = serde_json::from_value(definition).unwrap();
        let name = definition.name().to_owned();
        let client = cluster.client();
        match tool {
            Tool::Creates(manager) => {
                let api: Api<CustomResourceDefinition> = client.field_manager(manager).all();
                api.create(&definition).await.unwrap();
            }
            Tool::Applies(manager) => {
                let api: Api<CustomResourceDefinition> = client.field_manager(manager).all();
                api.apply(&name, &definition).await.unwrap();
            }
        }
        let place = Self { definitions: client.all(), cluster, name };
        let is_served = async || {
            let status = place.stored().await.status.unwrap_or_default();
            let conditions = status.conditions.unwrap_or_default();
            conditions.iter().any(|one| one.type_ == "Established" && one.status == "True")
        };
        place.until("it is established", is_served).await;
        place
    }

    async fn stored(&self) -> CustomResourceDefinition {
        self.definitions.get(&self.name).await.unwrap()
    }

    async fn until(&self, condition: &str, mut met: impl AsyncFnMut() -> bool) {
        let clock = self.cluster.client().environment().clock.clone();
        let wait = async {
            while !met().await {
                clock.sleep(Duration::from_millis(25)).await;
            }
        };
        assert!(clock.timeout(Duration::from_secs(60), wait).await.is_some(), "never: {condition}");
    }

    /// Returns the stored object, with fields that the type does not have.
    async fn raw<K: Resource>(&self) -> Value {
        let info = K::static_info().unwrap();
        let api = self.cluster.client().dynamic(info, Some(self.cluster.namespace()));
        Value::Object(api.get("home").await.unwrap().rest)
    }

    fn report(&self, running: &RunningOperator) -> Option<String> {
        let wanted = format!("definition {}", self.name);
        let readiness = running.readiness();
        assert!(readiness.is_ready(), "{readiness:?}");
        readiness.checks.into_iter().find(|check| check.name == wanted).map(|check| check.detail)
    }

    /// Removes the definition: on a shared server the definition would outlive the test.
    async fn end(self) {
        self.definitions.delete(&self.name).await.unwrap();
    }
}

/// Returns the schema of the first version's field.
fn field<'a>(spec: &'a mut Value, pointer: &str) -> &'a mut Value {
    let root = &mut spec["versions"][0]["schema"]["openAPIV3Schema"];
    root.pointer_mut(pointer).unwrap_or_else(|| panic!("no {pointer}"))
}

fn with_another_version(spec: &mut Value) {
    let mut other = spec["versions"][0].clone();
    other["name"] = json!("v1beta1");
    other["storage"] = json!(false);
    spec["versions"].as_array_mut().unwrap().push(other);
}

kind!(charted, Charted, "charteds");

#[tokio::test]
async fn a_chart_s_definition_that_would_lose_something_stays_and_the_operator_works_by_it() {
    let place = Place::with::<charted::Charted>(Tool::Creates("helm"), |spec| {
        let properties = "/properties/spec/properties";
        field(spec, properties)["extra"] = json!({ "type": "string" });
        let rule = format!("{properties}/rules/items/properties");
        field(spec, &rule)["weight"] = json!({ "type": "integer" });
        with_another_version(spec);
    })
    .await;
    let before = place.stored().await;
    let objects: Api<charted::Charted> =
        place.cluster.client().namespace(place.cluster.namespace());
    objects.create(&charted::object()).await.unwrap();
    let extra = json!({ "spec": { "extra": "kept", "rules": [{ "path": "/", "weight": 3 }] } });
    objects.patch("home", Patch::Merge(extra)).await.unwrap();

    let running = place.cluster.spawn(charted::operator(place.cluster.client()));
    running.settled().await;
    let after = place.stored().await;
    assert_eq!(after.resource_version(), before.resource_version(), "nothing was written");
    let report = place.report(&running).expect("there is a report");
    for part in [
        ".spec.extra of v1",
        ".spec.rules[].weight of v1",
        "the served version v1beta1",
        "--force-install",
    ] {
        assert!(report.contains(part), "{part}: {report}");
    }
    let raw = place.raw::<charted::Charted>().await;
    assert_eq!(raw["spec"]["extra"], "kept");
    assert_eq!(raw["spec"]["rules"][0]["weight"], 3);
    assert_eq!(raw["status"]["conditions"][0]["type"], "Seen", "its controller works: {raw}");
    running.stop().await;
    place.end().await;
}

kind!(server_side, ServerSide, "serversides");

#[tokio::test]
async fn a_definition_that_was_applied_and_loses_nothing_is_brought_up_to_date() {
    let place = Place::with::<server_side::ServerSide>(Tool::Applies("kubectl"), |spec| {
        let properties = field(spec, "/properties/spec/properties").as_object_mut().unwrap();
        properties.remove("rules");
        field(spec, "/properties/spec")["required"] = json!(["host"]);
    })
    .await;
    let running = place.cluster.spawn(server_side::operator(place.cluster.client()));
    running.settled().await;
    assert_eq!(place.report(&running), None);
    let mut stored = serde_json::to_value(place.stored().await).unwrap();
    assert!(stored["metadata"]["annotations"][VERSION].is_string(), "{}", stored["metadata"]);
    assert!(field(&mut stored["spec"], "/properties/spec/properties")["rules"].is_object());
    running.stop().await;
    // The owner is known from here on, and fields that another manager adds are still not taken
    // away.
    let other: Api<CustomResourceDefinition> =
        place.cluster.client().field_manager("argocd-controller").all();
    let mut wider = stored["spec"]["versions"].clone();
    wider[0]["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]["added"] =
        json!({ "type": "string" });
    other.patch(&place.name, Patch::Merge(json!({ "spec": { "versions": wider } }))).await.unwrap();
    let running = place.cluster.spawn(server_side::operator(place.cluster.client()));
    running.settled().await;
    let report = place.report(&running).expect("there is a report");
    assert!(report.contains(".spec.added of v1"), "{report}");
    running.stop().await;
    place.end().await;
}

kind!(client_side, ClientSide, "clientsides");

#[tokio::test]
async fn a_definition_that_others_keep_is_replaced_whatever_is_lost_only_by_force() {
    let tool = Tool::Creates("kubectl-client-side-apply");
    let place = Place::with::<client_side::ClientSide>(tool, |spec| {
        let status = "/properties/status";
        field(spec, status)["x-kubernetes-preserve-unknown-fields"] = json!(true);
        field(spec, "/properties/spec/properties/host")
            .as_object_mut()
            .unwrap()
            .extend([("x-kubernetes-int-or-string".to_owned(), json!(true))]);
        field(spec, "/properties/spec/properties/host").as_object_mut().unwrap().remove("type");
        with_another_version(spec);
    })
    .await;
    let running = place.cluster.spawn(client_side::operator(place.cluster.client()));
    running.settled().await;
    let report = place.report(&running).expect("there is a report");
    for part in [".status.* (fields of any name) of v1", ".spec.host as int-or-string", "v1beta1"] {
        assert!(report.contains(part), "{part}: {report}");
    }
    running.stop().await;
    assert_eq!(place.stored().await.spec.versions.len(), 2);

    let forced = client_side::operator(place.cluster.client()).force_install();
    let running = place.cluster.spawn(forced);
    running.settled().await;
    assert_eq!(place.report(&running), None);
    let stored = place.stored().await;
    assert_eq!(stored.spec.versions.len(), 1);
    assert!(stored.metadata.annotations.unwrap_or_default().contains_key(VERSION));
    running.stop().await;
    place.end().await;
}

kind!(elsewhere, Elsewhere, "elsewheres");

#[tokio::test]
async fn an_operator_whose_version_another_s_definition_does_not_serve_ends_and_says_why() {
    let place = Place::with::<elsewhere::Elsewhere>(Tool::Creates("helm"), |spec| {
        spec["versions"][0]["name"] = json!("v2");
    })
    .await;
    let before = place.stored().await;
    let client = place.cluster.client();
    let election = LeaderElection::new("elsewhere").namespace(place.cluster.namespace());
    for manager in [
        elsewhere::operator(client.clone()),
        elsewhere::operator(client.clone()).leader_election_with(election),
    ] {
        let manager = manager.without_signals().without_health().without_metrics();
        let error = manager.run().await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Config);
        let text = error.to_string();
        for part in
            [&*place.name, "the served version v2", "does not serve [\"v1\"]", "--force-install"]
        {
            assert!(text.contains(part), "{part}: {text}");
        }
    }
    assert_eq!(place.stored().await.resource_version(), before.resource_version());
    place.end().await;
}

kind!(theirs, Theirs, "theirs");

#[tokio::test]
async fn a_test_cluster_does_not_take_another_definition_for_the_one_that_was_asked_for() {
    let place = Place::with::<theirs::Theirs>(Tool::Creates("helm"), |spec| {
        field(spec, "/properties/spec/properties")["extra"] = json!({ "type": "string" });
    })
    .await;
    let installed = {
        let cluster = &place.cluster;
        panic_of(cluster.install::<theirs::Theirs>()).await
    };
    assert!(installed.contains(".spec.extra of v1"), "{installed}");
    place.end().await;
}

/// Returns the text of the panic that ends the future.
async fn panic_of(work: impl Future<Output = ()>) -> String {
    let mut work = std::pin::pin!(work);
    let caught = std::future::poll_fn(|task| {
        let step = std::panic::AssertUnwindSafe(|| work.as_mut().poll(task));
        match std::panic::catch_unwind(step) {
            Ok(std::task::Poll::Pending) => std::task::Poll::Pending,
            Ok(std::task::Poll::Ready(())) => std::task::Poll::Ready(None),
            Err(panic) => std::task::Poll::Ready(Some(panic)),
        }
    })
    .await;
    let panic = caught.expect("it panics");
    panic.downcast_ref::<String>().cloned().unwrap_or_default()
}
