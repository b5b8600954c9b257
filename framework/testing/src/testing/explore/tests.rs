//! Explorations of small operators: what is found, and what is not.

use std::sync::atomic::{AtomicU64, Ordering};

use k8s_openapi::api::core::v1::ConfigMap;
use windlass_core::resource::ResourceExt;
use windlass_runtime::controller::{Action, Context, Reconciler, Result};
use windlass_runtime::manager::Manager;

use super::*;

/// Labels each ConfigMap, or behaves as its name says.
#[derive(windlass_macros::Controller)]
#[controller(for = ConfigMap)]
struct Labels;

impl Reconciler for Labels {
    type Object = ConfigMap;

    async fn reconcile(&self, map: &ConfigMap, cx: &Context<Self>) -> Result<Action> {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        assert_ne!(map.name(), "panic", "the reconciler panics");
        let value = match map.name() {
            "random" => COUNT.fetch_add(1, Ordering::Relaxed).to_string(),
            _ => "yes".to_owned(),
        };
        let labels = map.metadata.labels.as_ref();
        let is_labelled = labels.is_some_and(|labels| labels.contains_key("seen"));
        if map.name() != "kube-root-ca.crt" && !is_labelled {
            let patch = serde_json::json!({ "metadata": { "labels": { "seen": value } } });
            cx.api::<ConfigMap>()
                .patch(map.name(), windlass_client::api::Patch::Merge(patch))
                .await?;
        }
        Ok(Action::done())
    }
}

async fn labelled(world: World, name: &str) {
    world.operator(|client| Manager::new(client).controller(Labels));
    let mut map = ConfigMap::default();
    map.metadata.name = Some(name.to_owned());
    world.client().namespace::<ConfigMap>("default").create(&map).await.unwrap();
    let is_labelled = async || {
        let maps = world.objects::<ConfigMap>();
        maps.iter().any(|map| map.name() == name && map.metadata.labels.is_some())
    };
    world.eventually("the map is labelled", is_labelled).await;
}

fn short() -> Exploration {
    Exploration::new().runs(20).threads(2)
}

#[test]
fn nothing_is_found_in_a_correct_operator_and_its_runs_repeat() {
    let report = short().run(|world| labelled(world, "a"));
    assert!(report.findings().is_empty(), "{report}");
    assert!(!report.is_random, "{report}");
    assert!(report.runs() > 10, "{report}");
}

#[test]
fn a_condition_that_never_becomes_true_is_found_without_a_disturbance() {
    let report = short().run(|world| async move {
        world.eventually("pigs fly", async || false).await;
    });
    let [finding] = report.findings() else { panic!("{report}") };
    assert_eq!(finding.details(), ["within 900 s it did not become true: pigs fly"]);
}

#[test]
fn a_state_that_must_never_be_is_found() {
    let report = short().run(|world| async move {
        world.always("no map is labelled", |world| {
            world.objects::<ConfigMap>().iter().all(|map| map.metadata.labels.is_none())
        });
        labelled(world, "a").await;
    });
    let [finding] = report.findings() else { panic!("{report}") };
    assert_eq!(finding.details(), ["it was not always true: no map is labelled"]);
}

#[test]
fn a_panic_of_a_reconcile_is_found() {
    let report = short().run(|world| async move {
        world.operator(|client| Manager::new(client).controller(Labels));
        let mut map = ConfigMap::default();
        map.metadata.name = Some("panic".to_owned());
        world.client().namespace::<ConfigMap>("default").create(&map).await.unwrap();
    });
    let [finding] = report.findings() else { panic!("{report}") };
    assert!(finding.details()[0].contains("panicked"), "{report}");
}

#[test]
fn an_operator_whose_runs_do_not_repeat_is_reported() {
    let report = short().run(|world| labelled(world, "random"));
    assert!(report.is_random, "{report}");
}

#[test]
fn the_text_of_a_run_is_a_seed_and_a_plan() {
    let (seed, plan) = seed_and_plan("7:crash-after@30,lag@2").expect("it is one");
    assert_eq!((seed, plan.to_string().as_str()), (7, "crash-after@30,lag@2"));
    for text in ["", "7", "x:", "7:crash@1"] {
        assert!(seed_and_plan(text).is_none(), "{text}");
    }
}
