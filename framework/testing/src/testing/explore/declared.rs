//! Workloads from the schema of a kind: an object is created, each field of its spec is changed in
//! turn, and it is deleted.
//!
//! All values follow from the schema and a constant, so that each run of an exploration declares
//! the same states.

// DESIGN.md, 253: Workloads of a schema change one field at a time and wait for rest

use serde_json::{Value, json};
use windlass_client::api::{Api, Patch};
use windlass_core::crd::{CustomResource, misfit};
use windlass_core::error::Error;
use windlass_core::resource::{DynamicObject, Scope};
use windlass_core::rng::Rng;

use super::run;
use super::world::World;
use crate::testing::check::{Path, Values, spec_schema};

/// Most states of a workload, its creation and deletion aside.
const MOST_STATES: usize = 32;
/// Most other values of a field.
const MOST_VALUES: usize = 2;
/// Draws of a value until it is another one.
const DRAWS: usize = 8;
/// Deepest field.
const DEPTH: usize = 8;
/// Seed of all values.
const SEED: u64 = 1;

/// A field of a spec.
struct SpecField<'a> {
    path: Path,
    schema: &'a Value,
    is_required: bool,
    /// Whether it has fields of its own, which are changed instead.
    is_parent: bool,
}

/// The answer to a declared state.
#[derive(PartialEq, Eq)]
enum WriteOutcome {
    Stored,
    /// Refused for its content.
    Refused,
    /// To be asked again.
    Failed,
}

impl World {
    /// Declares many states of one object as its user would: creates `example`, gives each field of
    /// its spec other values that fit the schema and leaves out each optional one, a field at a
    /// time, returns to `example`, and deletes the object. Waits for rest after each state.
    ///
    /// Objects that the example names must exist. States that the API server refuses are left out,
    /// and there are 32 states at most; returns the paths of fields that were never changed, such
    /// as `.spec.class`.
    ///
    /// # Panics
    /// When the definition of the kind has faults, or the example is refused.
    pub async fn exercise<K: CustomResource>(&self, example: &K) -> Vec<String> {
        let schema = match spec_schema::<K>() {
            Ok(schema) => schema,
            Err(error) => panic!("cannot exercise a kind: {error:?}"),
        };
        let object = serde_json::to_value(example).unwrap_or_default();
        let Some(info) = K::static_info() else {
            panic!("cannot exercise a kind that is known at run time only")
        };
        let namespace = example.metadata().namespace.clone();
        let namespace = namespace.unwrap_or_else(|| "default".to_owned());
        let namespace = (info.scope == Scope::Namespaced).then_some(namespace);
        let api = self.client().dynamic(info.clone(), namespace.as_deref());
        let mut whole = object.clone();
        whole["apiVersion"] = json!(info.api_version());
        whole["kind"] = json!(info.kind);
        self.create(&api, whole).await;
        let name = example.metadata().name.clone().unwrap_or_default();
        let spec = object["spec"].clone();
        let mut unchanged = Vec::new();
        let mut left = MOST_STATES;
        for field in fields(&schema) {
            let mut is_changed = field.is_parent;
            for state in states(&schema, &spec, &field) {
                if left > 0 && self.declare(&api, &name, &state).await {
                    left -= 1;
                    is_changed = true;
                }
            }
            if !is_changed {
                unchanged.push(format!(".spec.{}", field.path.join(".")));
            }
        }
        self.declare(&api, &name, &spec).await;
        self.delete(&api, &name).await;
        unchanged
    }

    /// Creates the object.
    async fn create(&self, api: &Api<DynamicObject>, whole: Value) {
        let object: DynamicObject = match serde_json::from_value(whole) {
            Ok(object) => object,
            Err(error) => panic!("cannot exercise a kind: the example is no object: {error}"),
        };
        let mut refusal = None;
        self.eventually("the example is created", async || match api.create(&object).await {
            Err(error) if answer(&error) == WriteOutcome::Refused && !error.is_already_exists() => {
                refusal = Some(error);
                true
            }
            Err(error) => error.is_already_exists(),
            Ok(_) => true,
        })
        .await;
        if let Some(error) = refusal {
            panic!("cannot exercise a kind: its example is refused: {error}");
        }
        self.rest().await;
    }

    /// Declares a spec, and waits for rest; returns whether it was stored.
    async fn declare(&self, api: &Api<DynamicObject>, name: &str, spec: &Value) -> bool {
        let mut last = WriteOutcome::Failed;
        self.eventually("a spec is answered", async || {
            let step = json!([{ "op": "replace", "path": "/spec", "value": spec }]);
            last = match api.patch(name, Patch::Json(step)).await {
                Ok(_) => WriteOutcome::Stored,
                Err(error) => answer(&error),
            };
            last != WriteOutcome::Failed
        })
        .await;
        if last == WriteOutcome::Stored {
            self.rest().await;
        }
        last == WriteOutcome::Stored
    }

    /// Deletes the object, and waits until it is gone.
    async fn delete(&self, api: &Api<DynamicObject>, name: &str) {
        self.eventually("the object is deleted", async || match api.delete(name).await {
            Err(error) => error.is_not_found(),
            Ok(_) => true,
        })
        .await;
        let is_gone = async || matches!(api.get_opt(name).await, Ok(None));
        self.eventually("the object is gone", is_gone).await;
        self.rest().await;
    }

    /// Waits until nothing changes any more.
    async fn rest(&self) {
        if let Err(text) = run::quiet(self).await {
            self.fail(text);
            std::future::pending::<()>().await;
        }
    }
}

/// Returns the meaning of an error. Webhooks of an operator that is down answer 500, and an object
/// that is being replaced 404: both pass.
fn answer(error: &Error) -> WriteOutcome {
    match error.code() {
        Some(400 | 403 | 409 | 422) => WriteOutcome::Refused,
        _ => WriteOutcome::Failed,
    }
}

/// Returns the fields of a spec, each followed by the fields below.
fn fields(schema: &Value) -> Vec<SpecField<'_>> {
    let mut found = Vec::new();
    collect(schema, &mut Path::new(), &mut found);
    found
}

/// Adds the fields below a place. The recursion ends at [`DEPTH`].
fn collect<'a>(schema: &'a Value, here: &mut Path, found: &mut Vec<SpecField<'a>>) {
    let required = |name: &str| {
        let names = schema["required"].as_array().into_iter().flatten();
        names.into_iter().any(|required| required == name)
    };
    for (name, below) in schema["properties"].as_object().into_iter().flatten() {
        here.push(name.clone());
        let is_parent = below["properties"].as_object().is_some_and(|all| !all.is_empty())
            && here.len() < DEPTH;
        let is_required = required(name);
        found.push(SpecField { path: here.clone(), schema: below, is_required, is_parent });
        if is_parent {
            collect(below, here, found);
        }
        here.pop();
    }
}

/// Returns specs that differ from `spec` in a field, and fit the schema.
fn states(schema: &Value, spec: &Value, field: &SpecField<'_>) -> Vec<Value> {
    let values = Values::new(Rng::seeded(SEED), &[]);
    let with = |value: Option<Value>| {
        let mut other = spec.clone();
        set(&mut other, &field.path, value);
        (other != *spec && misfit(&other, schema).is_none()).then_some(other)
    };
    let mut found: Vec<Value> = Vec::new();
    let draws = if field.is_parent { 0 } else { DRAWS };
    for _ in 0..draws {
        let other = with(Some(values.fitting(field.schema)));
        let other = other.filter(|other| !found.contains(other) && found.len() < MOST_VALUES);
        found.extend(other);
    }
    if !field.is_required {
        found.extend(with(None).filter(|other| !found.contains(other)));
    }
    found
}

/// Sets a field, or removes it; fields above it that are absent stay absent when one below is
/// removed.
fn set(value: &mut Value, path: &[String], new: Option<Value>) {
    let Some((name, below)) = path.split_first() else { return };
    let Some(fields) = value.as_object_mut() else { return };
    if !below.is_empty() {
        if new.is_some() || fields.contains_key(name) {
            set(fields.entry(name.clone()).or_insert_with(|| json!({})), below, new);
        }
        return;
    }
    match new {
        Some(new) => drop(fields.insert(name.clone(), new)),
        None => drop(fields.remove(name)),
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::ConfigMap;
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
    use parking_lot::Mutex;
    use schemars::JsonSchema;
    use serde::{Deserialize, Serialize};
    use windlass_core::resource::ResourceExt;
    use windlass_runtime::controller::{Action, Context, Reconciler, Result};
    use windlass_runtime::manager::Manager;

    use super::*;
    use crate::testing::explore::Exploration;

    #[derive(windlass_macros::CustomResource, Clone, Debug)]
    #[resource(group = "declared.windlass.dev", version = "v1", namespaced)]
    struct Lamp {
        metadata: ObjectMeta,
        spec: LampSpec,
    }

    #[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
    struct LampSpec {
        #[schemars(range(min = 1, max = 9))]
        size: i32,
        #[serde(skip_serializing_if = "Option::is_none")]
        shade: Option<Shade>,
    }

    #[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
    struct Shade {
        color: String,
    }

    fn lamp() -> Lamp {
        Lamp::new("a", LampSpec { size: 1, shade: None })
    }

    /// Keeps a map for a shade, and removes it if this process has made it, or always.
    #[derive(windlass_macros::Controller)]
    #[controller(for = Lamp, can(get create delete ConfigMap))]
    struct Lamps {
        is_fixed: bool,
        has_made: Mutex<bool>,
    }

    impl Reconciler for Lamps {
        type Object = Lamp;

        async fn reconcile(&self, lamp: &Lamp, cx: &Context<Self>) -> Result<Action> {
            let maps = cx.api::<ConfigMap>();
            let is_there = maps.get_opt(lamp.name()).await?.is_some();
            let is_wanted = lamp.spec.shade.is_some();
            if is_wanted && !is_there {
                let metadata =
                    ObjectMeta { name: Some(lamp.name().into()), ..ObjectMeta::default() };
                maps.create(&ConfigMap { metadata, ..ConfigMap::default() }).await?;
                *self.has_made.lock() = true;
            }
            let may_remove = self.is_fixed || *self.has_made.lock();
            if !is_wanted && is_there && may_remove {
                maps.delete(lamp.name()).await?;
            }
            Ok(Action::done())
        }
    }

    async fn lamps(world: World, is_fixed: bool) {
        world.install::<Lamp>().await;
        world.operator(move |client| {
            Manager::new(client).controller(Lamps { is_fixed, has_made: Mutex::default() })
        });
        let unchanged = world.exercise(&lamp()).await;
        assert!(unchanged.is_empty(), "{unchanged:?}");
    }

    #[test]
    fn a_fault_behind_a_field_that_no_example_has_is_found() {
        let exploration = Exploration::new().runs(120);
        let report = exploration.clone().first_only(true).run(|world| lamps(world, false));
        assert_ne!(report.findings().len(), 0, "{report}");
        let report = exploration.runs(60).run(|world| lamps(world, true));
        assert_eq!(report.findings().len(), 0, "{report}");
    }

    #[test]
    fn each_field_has_other_values_and_optional_ones_are_left_out() {
        let schema = spec_schema::<Lamp>().expect("a schema");
        let spec = json!({ "size": 1, "shade": { "color": "red" } });
        let all: Vec<Value> =
            fields(&schema).iter().flat_map(|field| states(&schema, &spec, field)).collect();
        assert!(all.iter().all(|state| misfit(state, &schema).is_none()), "{all:?}");
        assert!(all.contains(&json!({ "size": 1 })), "{all:?}");
        let others = |name: &str| all.iter().filter(|state| state[name] != spec[name]).count();
        assert_eq!((others("size"), others("shade")), (2, 3), "{all:?}");
    }
}
