//! Explorations of small operators: what is found, and what is not.

mod outside;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use k8s_openapi::api::core::v1::ConfigMap;
use windlass_core::resource::ResourceExt;
use windlass_runtime::controller::{Action, Context, Reconciler, Result};
use windlass_runtime::manager::{Manager, Runnable};

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
            "random" | "loop" => COUNT.fetch_add(1, Ordering::Relaxed).to_string(),
            _ => "yes".to_owned(),
        };
        let labels = map.metadata.labels.as_ref();
        let is_labelled = labels.is_some_and(|labels| labels.contains_key("seen"));
        let is_labelled = is_labelled && map.name() != "loop";
        if map.name() == "seconds" && is_labelled {
            return Ok(Action::requeue_after(Duration::from_secs(1)));
        }
        if map.name() != "kube-root-ca.crt" && !is_labelled {
            let patch = serde_json::json!({ "metadata": { "labels": { "seen": value } } });
            let patch = windlass_client::api::Patch::Merge(patch);
            let patched = cx.api::<ConfigMap>().patch(map.name(), patch).await;
            if map.name() == "slow" && patched.is_err() {
                return Ok(Action::requeue_after(Duration::from_secs(400)));
            }
            patched?;
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
    assert!(report.longest_rest() < Duration::from_secs(120), "{report}");
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
fn an_operator_that_comes_to_rest_late_is_found_when_less_time_is_given() {
    let report = short().run(|world| labelled(world, "slow"));
    assert!(report.findings().is_empty(), "{report}");
    assert!(report.longest_rest() >= Duration::from_secs(380), "{report}");
    let strict = short().rest_within(Duration::from_secs(60));
    let report = strict.run(|world| labelled(world, "slow"));
    assert_eq!(report.findings()[0].heading(), "the operator came to rest late", "{report}");
}

#[test]
fn a_cache_that_does_not_show_the_end_is_not_at_rest() {
    let workload = |world: World| async move {
        labelled(world.clone(), "a").await;
        world.server().faults().pause_watches("configmaps");
        let mut map = ConfigMap::default();
        map.metadata.name = Some("unseen".to_owned());
        world.client().namespace::<ConfigMap>("default").create(&map).await.unwrap();
    };
    let shared = SharedByRuns::new(&workload, None);
    let outcome = run::run(&shared, &Setting::default(), None);
    assert_eq!(outcome.failure, None);
    let [text] = outcome.busy.as_slice() else { panic!("{:?}", outcome.busy) };
    assert_eq!(text, "cache configmaps: default/unseen has not arrived");
}

#[test]
fn a_requeue_that_is_due_just_at_the_end_is_at_rest() {
    let workload = |world| labelled(world, "seconds");
    let shared = SharedByRuns::new(&workload, None);
    let outcome = run::run(&shared, &Setting::default(), None);
    assert_eq!(outcome.failure, None);
    assert_eq!(outcome.busy, Vec::<String>::new());
}

#[test]
fn an_operator_that_updates_an_object_without_end_is_refused_before_the_hour_is_over() {
    let workload = |world| labelled(world, "loop");
    let shared = SharedByRuns::new(&workload, None);
    let outcome = run::run(&shared, &Setting::default(), None);
    let failure = outcome.failure.expect("it is not at rest");
    let seconds = failure.strip_prefix("objects were still changed after ");
    let seconds: Option<u64> = seconds.and_then(|text| text.split(' ').next()?.parse().ok());
    assert!(seconds.is_some_and(|seconds| seconds <= 660), "{failure}");
    assert!(failure.contains(".metadata.labels.seen of configmaps default/loop was"), "{failure}");
}

#[test]
fn an_operator_that_ends_is_started_again() {
    let ends = Arc::new(AtomicBool::new(true));
    let workload = |world: World| {
        let ends = Arc::clone(&ends);
        ends.store(true, Ordering::Relaxed);
        async move {
            world.operator(move |client| {
                let manager = Manager::new(client).controller(Labels);
                if !ends.swap(false, Ordering::Relaxed) {
                    return manager;
                }
                let end = |_| async { Err(std::io::Error::other("the disk is full").into()) };
                manager.runnable(Runnable::new("end", end).essential())
            });
            let mut map = ConfigMap::default();
            map.metadata.name = Some("late".to_owned());
            world.clock().sleep(Duration::from_secs(5)).await;
            world.client().namespace::<ConfigMap>("default").create(&map).await.unwrap();
            let is_labelled = async || {
                let maps = world.objects::<ConfigMap>();
                maps.iter().any(|map| map.name() == "late" && map.metadata.labels.is_some())
            };
            world.eventually("the map is labelled", is_labelled).await;
        }
    };
    let shared = SharedByRuns::new(&workload, None);
    let outcome = run::run(&shared, &Setting::default(), None);
    assert_eq!(outcome.failure, None);
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
