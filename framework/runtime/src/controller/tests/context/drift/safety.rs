//! Random intents and foreign edits: whenever the comparison finds nothing to do, a forced apply
//! changes nothing but owners.
//!
//! `WINDLASS_DRIFT_CASES` sets the number of objects per kind, `WINDLASS_DRIFT_SEED` the seed.
//! `WINDLASS_DRIFT_NEEDLESS` prints applies that would not be needed. The ignored test takes a
//! separate server: `WINDLASS_DRIFT_KUBECONFIG`.

mod choices;
mod custom;
mod parts;
mod workloads;

use k8s_openapi::api::apps::v1::{DaemonSet, Deployment, StatefulSet};
use k8s_openapi::api::autoscaling::v2::HorizontalPodAutoscaler;
use k8s_openapi::api::batch::v1::CronJob;
use k8s_openapi::api::core::v1::{
    Namespace, PersistentVolumeClaim, Secret, Service, ServiceAccount,
};
use k8s_openapi::api::networking::v1::{Ingress, NetworkPolicy};
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use k8s_openapi::api::rbac::v1::{Role, RoleBinding};
use windlass_cache::store::{Cached, StoreCore, StoreSettings};
use windlass_client::api::Api;
use windlass_core::resource::Resource;
use windlass_core::wire::MetadataScan;

use self::choices::{Choices, metadata};
use super::*;
use crate::controller::state::{applied_in, comparable, difference, has_lost, owned_content};

const US: &str = "ours";
const CASES: u64 = 2;
const ROUNDS: usize = 12;

/// Returns all paths to scalars and lists of an object.
fn paths(value: &Value, at: &str, found: &mut Vec<String>) {
    match value {
        Value::Object(members) if !members.is_empty() => {
            for (name, value) in members {
                let name = name.replace('~', "~0").replace('/', "~1");
                paths(value, &format!("{at}/{name}"), found);
            }
        }
        Value::Array(items) => {
            found.push(at.to_owned());
            for (place, item) in items.iter().enumerate() {
                paths(item, &format!("{at}/{place}"), found);
            }
        }
        _ => found.push(at.to_owned()),
    }
}

/// A walk of an object through intents and edits.
struct Walk<'a, K> {
    api: &'a Api<K>,
    info: &'a ResourceInfo,
    choices: &'a Choices,
    make: fn(&Choices) -> Value,
    cache: &'a Arc<StoreCore>,
}

/// Verdicts by whether the apply changed the object.
#[derive(Debug, Default)]
struct Verdicts {
    /// Nothing to do, and nothing was changed.
    settled: usize,
    /// Something to do, and something was changed.
    applied: usize,
    /// Something to do, and nothing was changed: a request that was not needed.
    needless: usize,
    /// Nothing to do, and the apply changed owners alone.
    unowned: usize,
    /// Refused by the API server; the comparison had found something to do.
    refused: usize,
}

impl Verdicts {
    /// Counts the verdict of a comparison.
    fn count(&mut self, is_settled: bool, is_changed: bool) {
        *match (is_settled, is_changed) {
            (true, false) => &mut self.settled,
            (false, true) => &mut self.applied,
            (false, false) => &mut self.needless,
            (true, true) => &mut self.unowned,
        } += 1;
    }
}

impl<K: Resource> Walk<'_, K> {
    /// Edits the object as another manager; edits that the server refuses do not count.
    async fn edit(&self, intent: &Value) {
        let (choices, name) = (self.choices, "x");
        let Some(live) = self.api.get_opt(name).await.expect("an answer") else { return };
        let live = serde_json::to_value(&live).expect("it encodes");
        let mut found = Vec::new();
        let members = live.as_object().into_iter().flatten();
        let of_others = ["apiVersion", "kind", "metadata", "status"];
        for (name, part) in members.filter(|(name, _)| !of_others.contains(&name.as_str())) {
            paths(part, &format!("/{name}"), &mut found);
        }
        found.push("/metadata/labels".to_owned());
        let path = found[choices.below(found.len())].clone();
        let value = live.pointer(&path).cloned().unwrap_or_default();
        let other = match &value {
            Value::String(text) => json!(format!("{text}1")),
            Value::Number(number) => json!(number.as_i64().unwrap_or_default() + 1),
            Value::Bool(on) => json!(!on),
            Value::Array(items) => items.iter().rev().cloned().collect(),
            _ => json!({}),
        };
        let op = |op: &str, value: Value| json!([{ "op": op, "path": path, "value": value }]);
        let patch = |patch: Patch| self.api.patch(name, patch).manager("them");
        let outcome = match choices.below(8) {
            0 => patch(Patch::Merge(json!({ "metadata": { "labels": { "theirs": "1" } } }))).await,
            1 => patch(Patch::Json(op("remove", Value::Null))).await,
            2 | 3 => patch(Patch::Json(op("replace", other))).await,
            4 => {
                // Changed and changed back: the value is right, and the owner another.
                let changed = patch(Patch::Json(op("replace", other))).await;
                if changed.is_ok() {
                    patch(Patch::Json(op("replace", value))).await
                } else {
                    changed
                }
            }
            5 => {
                let mut theirs = (self.make)(choices);
                theirs["metadata"] = json!({ "annotations": { "theirs": "1" } });
                self.api.apply(name, &theirs).manager("them").force().await
            }
            6 => self.api.apply(name, intent).manager("others").force().await,
            _ => {
                let mut added = value;
                if let Value::Array(items) = &mut added {
                    items.insert(
                        0,
                        json!({ "name": "theirs", "image": "x", "port": 9, "value": "1" }),
                    );
                }
                patch(Patch::Json(op("replace", added))).await
            }
        };
        drop(outcome);
    }

    /// Compares the intent with the object, as decoded and as cached. `last` is the hash of the
    /// fields of the last apply, if that was of the same intent: the memory of a process.
    fn difference(&self, live: &K, intent: &Value, last: Option<u64>) -> Compared {
        let direct = applied_in(live, US);
        let bytes = serde_json::to_vec(live).expect("it encodes");
        let scan = MetadataScan::of(&bytes).expect("an object");
        let cached: Cached<K> = Cached::new(self.cache.object(&scan));
        assert_eq!(cached.applied_fields(US), direct, "the cache keeps what the object says");
        let cached = comparable(&*cached.get().expect("it decodes")).expect("it encodes");
        assert_eq!(Some(&cached), comparable(live).as_ref());
        let Some(fields) = direct else {
            return Compared { path: Some(".".into()), is_untouched: false };
        };
        let is_untouched = last == Some(owned_content(&fields, &cached));
        Compared { path: difference(self.info, intent, &cached, &fields), is_untouched }
    }

    async fn run(&self, verdicts: &mut Verdicts) {
        self.choices.begin();
        let mut intent = (self.make)(self.choices);
        let Ok(mut last) = self.api.apply("x", &intent).manager(US).force().await else { return };
        let mut is_same = true;
        for _ in 0..ROUNDS {
            match self.choices.below(4) {
                0 => (intent, is_same) = ((self.make)(self.choices), false),
                1 | 2 => self.edit(&intent).await,
                _ => {}
            }
            let before = self.api.get("x").await.expect("it is there");
            let remembered = comparable(&last).zip(applied_in(&last, US)).filter(|_| is_same);
            let remembered = remembered.map(|(state, fields)| owned_content(&fields, &state));
            let found = self.difference(&before, &intent, remembered);
            let after = match self.api.apply("x", &intent).manager(US).force().await {
                Ok(after) => after,
                // Refused, as two edits together may be; the comparison must not call that settled.
                Err(error) => {
                    let is_refusal = is_refusal_of_nothing(&error.to_string(), &intent);
                    let is_different = found.path.is_some();
                    assert!(is_different || is_refusal, "{error}: {intent}, of {}", json!(before));
                    verdicts.refused += 1;
                    is_same = false;
                    continue;
                }
            };
            self.judge(&found, (&before, &after), &intent, verdicts);
            (last, is_same) = (self.repeated(after, &intent).await, true);
        }
        let free = json!({ "metadata": { "finalizers": null } });
        self.api.patch("x", Patch::Merge(free)).await.expect("freed");
        self.api.delete("x").await.expect("deleted");
    }

    /// Repeats an apply that lost an empty object, as `apply_owned` does.
    async fn repeated(&self, answer: K, intent: &Value) -> K {
        let state = comparable(&answer).expect("it encodes");
        // An intent without a field leaves no entry. Those of `apply_owned` have an owner.
        let fields = applied_in(&answer, US);
        if fields.is_none_or(|fields| !has_lost(self.info, intent, &state, &fields)) {
            return answer;
        }
        // For kinds with maps that the comparison does not know, the apply changes nothing.
        self.api.apply("x", intent).manager(US).force().await.expect("applied")
    }

    /// Judges a comparison by the apply that followed.
    fn judge(
        &self,
        found: &Compared,
        (before, after): (&K, &K),
        intent: &Value,
        verdicts: &mut Verdicts,
    ) {
        let is_changed = before.resource_version() != after.resource_version();
        let is_settled = found.path.is_none();
        verdicts.count(is_settled, is_changed);
        if let Some(path) = &found.path
            && !is_changed
            && std::env::var_os("WINDLASS_DRIFT_NEEDLESS").is_some()
        {
            println!("needless: {} {path} of {intent}", self.info.kind);
        }
        let state = |object: &K| {
            let state = comparable(object).expect("it encodes");
            if is_settled { state } else { without_derived(intent, state) }
        };
        // Others have filled in an object that we had applied empty: the values are as intended.
        assert!(
            !(is_settled || found.is_untouched) || !is_changed || state(before) == state(after),
            "{}: an apply changed what was thought to be settled\nintent {intent}\nbefore {}\nafter {}",
            self.info,
            serde_json::to_string(before).expect("it encodes"),
            serde_json::to_string(after).expect("it encodes"),
        );
    }
}

/// Whether the API server refuses an apply that would change nothing.
fn is_refusal_of_nothing(error: &str, intent: &Value) -> bool {
    // Others made a list that no apply can merge, whatever the intent.
    let is_broken = error.contains("typed live object");
    // The server distinguishes an empty map from none, though an empty map is not stored, and
    // others made the object immutable.
    let is_frozen = error.contains("field is immutable when `immutable` is set");
    is_broken || is_frozen && intent["data"] == json!({})
}

/// Removes what the API server derived from fields of others at our last apply: the types of a
/// policy that the intent has as an empty list. They are as that apply left them, and later changes
/// by others do not make a drift of them.
fn without_derived(intent: &Value, mut state: Value) -> Value {
    if intent["spec"]["policyTypes"] == json!([]) {
        state["spec"]["policyTypes"].take();
    }
    state
}

/// Findings of a comparison.
struct Compared {
    /// Path of a difference, by the fields of the intent.
    path: Option<String>,
    /// Whether the applied fields are unchanged since the same intent was applied.
    is_untouched: bool,
}

fn setting(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}

/// A server with objects that may own others.
struct Ground<'a> {
    client: &'a Client,
    owners: [String; 2],
    /// Called after each object.
    forget: &'a dyn Fn(),
}

impl<'a> Ground<'a> {
    async fn new(client: &'a Client, forget: &'a dyn Fn()) -> Self {
        let mut owners = [String::new(), String::new()];
        for (at, uid) in owners.iter_mut().enumerate() {
            let (name, maps) = (format!("owner-{at}"), client.namespace::<ConfigMap>("shop"));
            let owner = match maps.get_opt(&name).await.expect("an answer") {
                Some(owner) => owner,
                None => maps.create(&child(&name, "x")).await.expect("created"),
            };
            owner.uid().clone_into(uid);
        }
        Self { client, owners, forget }
    }

    /// Walks objects of a type's kind.
    async fn of<K: Resource>(&self, make: fn(&Choices) -> Value) {
        let info = K::static_info().expect("a kind");
        Box::pin(self.walk(self.client.namespace::<K>("shop"), info, make)).await;
    }

    async fn walk<K: Resource>(
        &self,
        api: Api<K>,
        info: ResourceInfo,
        make: fn(&Choices) -> Value,
    ) {
        let rng = Rng::seeded(setting("WINDLASS_DRIFT_SEED", 1)).fork(&info.kind);
        let clock = self.client.environment().clock.clone();
        let cache = StoreCore::with_settings(info.clone(), clock, StoreSettings::default(), 1);
        cache.keep_applied_fields(US);
        let choices = Choices::new(rng, self.owners.clone());
        let mut verdicts = Verdicts::default();
        for _ in 0..setting("WINDLASS_DRIFT_CASES", CASES) {
            let walk = Walk { api: &api, info: &info, choices: &choices, make, cache: &cache };
            walk.run(&mut verdicts).await;
            (self.forget)();
        }
        println!("{info}: {verdicts:?}");
        assert!(verdicts.applied > 0, "{info}: {verdicts:?}");
    }

    async fn all(&self) {
        self.of::<ConfigMap>(parts::config_map).await;
        self.of::<Secret>(parts::secret).await;
        self.of::<ServiceAccount>(parts::service_account).await;
        self.of::<Service>(parts::service).await;
        self.of::<PersistentVolumeClaim>(parts::claim).await;
        self.of::<Ingress>(parts::ingress).await;
        self.of::<NetworkPolicy>(parts::network_policy).await;
        self.of::<PodDisruptionBudget>(parts::disruption_budget).await;
        self.of::<HorizontalPodAutoscaler>(parts::autoscaler).await;
        self.of::<Role>(parts::role).await;
        self.of::<RoleBinding>(parts::role_binding).await;
        self.of::<Deployment>(workloads::deployment).await;
        self.of::<StatefulSet>(workloads::stateful_set).await;
        self.of::<DaemonSet>(workloads::daemon_set).await;
        self.of::<CronJob>(workloads::cron_job).await;
        self.of::<custom::Gadget>(custom::gadget).await;
        let info = ResourceInfo {
            group: "example.dev".into(),
            version: "v1".into(),
            kind: "Widget".into(),
            plural: "widgets".into(),
            scope: windlass_core::resource::Scope::Namespaced,
        };
        let widgets = self.client.dynamic(info.clone(), Some("shop"));
        Box::pin(self.walk(widgets, info, custom::widget)).await;
    }
}

#[tokio::test(start_paused = true)]
async fn an_apply_that_is_not_sent_would_have_changed_nothing() {
    let world = World::with(custom::widget_definition()).await;
    define(&world.client, &custom::Gadget::crd().expect("a schema")).await;
    Box::pin(Ground::new(&world.client, &|| world.server.clear_requests()).await.all()).await;
}

/// As the test above, on the server that `WINDLASS_DRIFT_KUBECONFIG` names: a real one.
#[tokio::test]
#[ignore = "needs a server"]
async fn an_apply_that_is_not_sent_would_have_changed_nothing_on_a_real_server() {
    let path = std::env::var("WINDLASS_DRIFT_KUBECONFIG").expect("a kubeconfig");
    let config = ClientConfig::from_file(&path, None).expect("a kubeconfig");
    let client = Client::builder().config(config).build().expect("a client");
    let shop =
        serde_json::from_value(json!({ "metadata": { "name": "shop" } })).expect("a namespace");
    client.all::<Namespace>().create(&shop).await.expect("created");
    define(&client, &custom::widget_definition()).await;
    define(&client, &custom::Gadget::crd().expect("a schema")).await;
    Box::pin(Ground::new(&client, &|| ()).await.all()).await;
}
