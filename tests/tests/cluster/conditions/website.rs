//! A kind with conditions, and a controller that acts as the spec says.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use k8s_openapi::api::events::v1::Event;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use windlass::api::{Api, Patch};
use windlass::conditions::{Condition, ConditionType};
use windlass::controller::{Failure, Finalize};
use windlass::metrics::names;
use windlass::prelude::*;
use windlass::testing::{RunningOperator, TestCluster};

#[derive(CustomResource, Clone, Debug)]
#[resource(group = "conditions.windlass.dev", version = "v1", namespaced)]
pub(super) struct Website {
    pub(super) metadata: ObjectMeta,
    pub(super) spec: WebsiteSpec,
    pub(super) status: Option<WebsiteStatus>,
}

#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub(super) struct WebsiteSpec {
    pub(super) act: String,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct WebsiteStatus {
    pub(super) observed_generation: Option<i64>,
    pub(super) url: Option<String>,
    pub(super) conditions: Conditions,
}

#[derive(Conditions)]
#[conditions(ready(all(ConfigApplied, Available), stalled_on(InvalidSpec)))]
pub(super) enum WebsiteCondition {
    ConfigApplied,
    Available,
    InvalidSpec,
    Backed,
}

use WebsiteCondition::{Available, Backed, ConfigApplied, InvalidSpec};

#[derive(Controller)]
#[controller(for = Website, conditions(WebsiteCondition), can(patch Website/status))]
#[controller(finalizer = "conditions.windlass.dev/site", retry(base = "10ms", cap = "1s"))]
#[controller(loop_guard(most = 1000, within = "1m"))]
pub(super) struct Websites {
    pub(super) cleanups: Arc<AtomicUsize>,
}

impl Reconciler for Websites {
    type Object = Website;

    async fn reconcile(&self, site: &Website, cx: &Context<Self>) -> Result {
        let act = site.spec.act.as_str();
        if act == "is silent" {
            return Ok(Action::done());
        }
        let is_negative = act == "has a negative size";
        InvalidSpec.met_if(cx, is_negative, "NegativeSize", "spec.size is negative");
        if is_negative {
            return Ok(Action::done());
        }
        ConfigApplied.met(cx, "Applied", "");
        match act {
            "sets a part" => return Ok(Action::done()),
            "is unsure" => Available.unknown(cx, "NoAnswer", "the probe timed out"),
            "is down" => Available.unmet(cx, "NoPods", "0 of 3 ready"),
            "rolls out" => {
                Available.unmet(cx, "RollingOut", "2 of 3 ready");
                return Ok(Action::wait_for("Rollout", "2 of 3 ready"));
            }
            "waits in words" => return Ok(Action::wait_for("not one word", "soon")),
            "fails" => return Err(Failure::from("the registry is away")),
            "fails and says what" => {
                Available.unmet(cx, "NoImage", "no such image");
                return Err(Failure::from("the registry is away"));
            }
            "is down in words" => Available.unmet(cx, "no such image", "0 of 3 ready"),
            "fails in words" => {
                Available.unmet(cx, "dns error: no such host", "");
                return Err(Failure::from("the registry is away"));
            }
            "fails for good" => return Err(Failure::terminal("no such host")),
            "panics" => panic!("on purpose"),
            "backs up" => {
                Available.met(cx, "RolledOut", "");
                Backed.unmet(cx, "NoBackup", "none yet");
            }
            "loses a race" => {
                let theirs: Conditions = [met("Theirs", "Because", "")].into_iter().collect();
                let patch = Patch::Merge(json!({ "status": { "conditions": theirs } }));
                let sites =
                    cx.client().namespace::<Website>(site.metadata.namespace.as_deref().unwrap());
                sites.patch(site.name(), patch).status().await?;
                Available.met(cx, "RolledOut", "");
            }
            "writes its status" => {
                let url = Some("https://a.example".to_owned());
                cx.set_status(WebsiteStatus { url, ..WebsiteStatus::default() }).await?;
                // As text, and at once no write either.
                cx.set_condition(met(Available, "RolledOut", "")).await?;
            }
            "sets the root" => cx.set_condition(met("Ready", "MySelf", "")).await?,
            _ => Available.met(cx, "RolledOut", "3 of 3 ready"),
        }
        Ok(Action::done())
    }
}

impl Finalize for Websites {
    async fn cleanup(&self, site: &Website, _: &Context<Self>) -> Result<()> {
        let runs = self.cleanups.fetch_add(1, Ordering::SeqCst);
        match site.spec.act.as_str() {
            "cleans up" if runs < 3 => Err(Failure::wait_for("Backup", "is being written")),
            _ => Ok(()),
        }
    }
}

/// A cluster that serves websites.
pub(super) struct Bench {
    pub(super) cluster: TestCluster,
    pub(super) sites: Api<Website>,
}

impl Bench {
    pub(super) async fn start() -> Self {
        Self::on(TestCluster::start().await).await
    }

    /// Starts on the embedded server, also where others run on the real server: for the request log
    /// and the faults.
    pub(super) async fn embedded() -> Self {
        Self::on(TestCluster::builder().embedded().start().await).await
    }

    async fn on(cluster: TestCluster) -> Self {
        if cluster.is_embedded() {
            tokio::time::pause();
        }
        cluster.install::<Website>().await;
        let sites = cluster.client().namespace(cluster.namespace());
        Self { cluster, sites }
    }

    pub(super) fn run(&self) -> RunningOperator {
        let controller = Websites { cleanups: Arc::default() };
        self.cluster.spawn(Manager::new(self.cluster.client()).controller(controller))
    }

    /// Creates a site, or changes the spec; returns the generation.
    pub(super) async fn act(&self, act: &str) -> Option<i64> {
        let patch = Patch::Merge(json!({ "spec": { "act": act } }));
        let site = match self.sites.get_opt("home").await.unwrap() {
            Some(_) => self.sites.patch("home", patch).await,
            None => self.sites.create(&Website::new("home", WebsiteSpec { act: act.into() })).await,
        };
        site.unwrap().metadata.generation
    }

    /// Creates or changes a site, and returns the site once the spec was reconciled.
    pub(super) async fn after(&self, act: &str) -> Value {
        let generation = self.act(act).await;
        self.eventually(|site| site["status"]["observedGeneration"].as_i64() == generation).await
    }

    pub(super) async fn site(&self) -> Value {
        serde_json::to_value(self.sites.get("home").await.unwrap()).unwrap()
    }

    pub(super) async fn eventually(&self, is_so: impl Fn(&Value) -> bool) -> Value {
        let clock = self.cluster.client().environment().clock.clone();
        for _ in 0..2000 {
            let site = self.site().await;
            if is_so(&site) {
                return site;
            }
            clock.sleep(Duration::from_millis(25)).await;
        }
        panic!("never: {:#}", self.site().await);
    }

    pub(super) async fn pass(&self, seconds: u64) {
        self.cluster.client().environment().clock.sleep(Duration::from_secs(seconds)).await;
    }

    /// Writes to the server since the last call, without Events; on the embedded server.
    pub(super) fn writes(&self) -> Vec<String> {
        let requests = self.cluster.server().requests();
        self.cluster.server().clear_requests();
        let writes = requests.into_iter().filter(|request| {
            !["get", "list", "watch"].contains(&request.verb.as_str())
                && request.resource != "events"
        });
        writes.map(|it| format!("{} {}/{}", it.verb, it.resource, it.subresource)).collect()
    }

    pub(super) fn counted(&self, type_: &str, status: &str) -> u64 {
        let metrics = self.cluster.client().environment().metrics.clone();
        metrics.counted(&names::CONDITION_TRANSITIONS, &["website", "Website", type_, status])
    }

    /// Events of the site: `Normal RolledOut: Available is True`.
    pub(super) async fn events(&self) -> Vec<String> {
        let events: Api<Event> = self.cluster.client().namespace(self.cluster.namespace());
        let text = |event: Event| {
            let (kind, reason) = (event.type_.unwrap(), event.reason.unwrap());
            format!("{kind} {reason}: {}", event.note.unwrap())
        };
        events.list().await.unwrap().items.into_iter().map(text).collect()
    }
}

/// Returns a condition of a site.
pub(super) fn condition(site: &Value, type_: impl ConditionType) -> Option<Condition> {
    let all = site["status"]["conditions"].clone();
    let all: Conditions = serde_json::from_value(all).unwrap();
    all.get(type_).cloned()
}

/// Returns status, reason and message of a condition; `absent` when there is none.
pub(super) fn shown(site: &Value, type_: impl ConditionType) -> String {
    condition(site, type_)
        .map_or("absent".into(), |it| format!("{} {} {}", it.status, it.reason, it.message))
}
