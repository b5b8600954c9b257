//! Settings that Kubernetes would refuse later, without a message to the operator's author.

use std::marker::PhantomData;

use k8s_openapi::api::core::v1::{ConfigMap, Secret};

use super::world::{Story, Trips};
use super::*;
use crate::controller::{Action, Context, ControllerBuilder, OwnsConditions, Reconciler, Result};
use crate::manager::checks::conditions as check_conditions;
use windlass_core::conditions::{ConditionSet, ConditionType, ConditionTypes, ReadyCondition};
use windlass_core::resource::Resource;

fn named(name: &str) -> Manager {
    Manager::new(nowhere())
        .controller_with(Trips(Story::default()), ControllerBuilder::new().name(name))
        .without_health()
        .without_metrics()
        .without_signals()
}

#[tokio::test(start_paused = true)]
async fn an_operator_with_a_controller_whose_events_would_be_refused_does_not_start() {
    let long = "s".repeat(64);
    for name in ["", "My Sites!", "ж", "-sites", "sites.", "a/b", &long] {
        let refused = named(name).run().await.unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::Config, "{refused}");
        assert!(refused.to_string().contains(&format!("called {name:?}")), "{refused}");
    }
    for name in ["s", "My_Sites.v1", &long[1..]] {
        let running = named(name).start();
        tokio::time::sleep(Duration::from_secs(1)).await;
        running.stop();
        assert_eq!(running.join().await.unwrap(), Exit::Drained, "{name}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_operator_does_not_watch_namespaces_that_cannot_be() {
    let refused = named("sites").namespaces(["shop", "Bad_Name!"]).run().await.unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Config, "{refused}");
    assert!(refused.to_string().contains("called \"Bad_Name!\""), "{refused}");
}

fn printed(manager: Manager, namespace: Option<&str>) -> Result<String, Error> {
    let options = ManifestOptions::default();
    manager.manifests(&match namespace {
        Some(namespace) => options.namespace(namespace),
        None => options,
    })
}

#[test]
fn manifests_with_names_that_no_cluster_takes_are_refused() {
    let operator = || named("sites");
    let long = "o".repeat(64);
    let dotted = "80807133.tutorial.kubebuilder.io";
    for (manager, namespace, part) in [
        (operator().leader_election(dotted), None, dotted),
        (operator().name("My Operator"), Some("ops"), "My Operator"),
        (operator().name(long.as_str()), Some("ops"), long.as_str()),
        (operator().name("ops").namespaces(["a", "*"]), None, "\"*\""),
        (operator().name("ops"), Some("Ops"), "\"Ops\""),
    ] {
        let refused = printed(manager, namespace).unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::Config, "{refused}");
        assert!(refused.to_string().contains(part), "{refused}");
    }
    let refused = printed(operator().leader_election(dotted), None).unwrap_err();
    assert!(refused.to_string().contains("Manager::name"), "{refused}");
    for manager in [
        operator().leader_election(dotted).name("ops"),
        operator().name("ops").namespaces(["b", "a"]),
    ] {
        assert!(printed(manager, None).is_ok());
    }
    assert!(printed(operator().leader_election(dotted), Some("ops")).is_ok());
}

#[test]
fn manifests_for_an_image_without_a_name_are_refused() {
    for image in ["", " "] {
        let options = ManifestOptions::default().image(image);
        let refused = named("sites").name("ops").manifests(&options).unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::Config, "{refused}");
        assert!(refused.to_string().contains("`--image`"), "{refused}");
    }
}

#[test]
fn manifests_with_probes_that_no_kubelet_reaches_are_refused() {
    let operator = |address: &str| named("sites").name("ops").health(address.parse().unwrap());
    for address in ["127.0.0.1:8081", "[::1]:8081", "0.0.0.0:0"] {
        let refused = printed(operator(address), None).unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::Config, "{refused}");
        assert!(refused.to_string().contains(address), "{refused}");
    }
    assert!(printed(operator("0.0.0.0:8081"), None).unwrap().contains("containerPort: 8081"));
}

#[test]
fn a_namespace_counts_once_and_an_empty_name_is_none() {
    let of = |names: &[&str]| named("sites").namespaces(names.iter().copied()).namespaces;
    assert_eq!(of(&["b", "a", "b", "", " "]), ["a", "b"]);
    assert!(of(&[""]).is_empty());
    let text = printed(named("sites").name("ops").namespaces(["a", "b", "a"]), None).unwrap();
    assert_eq!(text.matches("namespace: a\n").count(), 2, "a Role and its binding: {text}");
}

/// A controller of kind `K` that keeps the conditions of any set.
struct Keeper<K>(PhantomData<K>);

impl<K: Resource> Reconciler for Keeper<K> {
    type Object = K;

    async fn reconcile(&self, _: &K, _: &Context<Self>) -> Result {
        Ok(Action::done())
    }
}

impl<K: Resource, T> OwnsConditions<T> for Keeper<K> {}

/// Defines a set of conditions.
macro_rules! conditions {
    ($name:ident, $types:expr) => {
        enum $name {}

        impl ConditionType for $name {
            fn as_str(&self) -> &str {
                match *self {}
            }
        }

        impl ConditionSet for $name {
            const TYPES: ConditionTypes = $types;
        }
    };
}

const NONE: ConditionTypes =
    ConditionTypes { root: "Ready", ready: &[], stalled_on: &[], others: &[] };
conditions!(Serving, ConditionTypes { ready: &["Serving"], others: &["Backed"], ..NONE });
conditions!(Dns, ConditionTypes { root: "DnsReady", ready: &["Resolved"], ..NONE });
conditions!(Backups, ConditionTypes { root: "BackupReady", ready: &["Backed"], ..NONE });

fn keeping<K: Resource, T: ConditionSet>(manager: Manager, name: &str) -> Manager {
    let builder = ControllerBuilder::<Keeper<K>>::new().name(name).conditions::<T>();
    manager.controller_with(Keeper(PhantomData), builder)
}

#[tokio::test(start_paused = true)]
async fn an_operator_does_not_start_with_two_controllers_that_keep_one_condition() {
    let first = || keeping::<ConfigMap, Serving>(named("trips"), "sites");
    for (manager, type_) in [
        (keeping::<ConfigMap, ReadyCondition>(first(), "more"), "`Ready`"),
        (keeping::<ConfigMap, Backups>(first(), "more"), "`Backed`"),
        (
            keeping::<ConfigMap, Dns>(keeping::<ConfigMap, Dns>(first(), "dns"), "more"),
            "`DnsReady`",
        ),
    ] {
        let refused = manager.run().await.unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::Config, "{refused}");
        let text = refused.to_string();
        let first = if type_ == "`DnsReady`" { "\"dns\"" } else { "\"sites\"" };
        for part in [first, "\"more\"", type_, "configmaps", "root = "] {
            assert!(text.contains(part), "{part} not in {text}");
        }
    }
}

#[test]
fn the_type_of_an_outcome_condition_is_kept_by_one_controller_of_a_kind() {
    let outcome = |manager: Manager, name: &str, type_: &str| {
        let builder = ControllerBuilder::new().name(name).outcome_condition(type_);
        manager.controller_with(Keeper::<ConfigMap>(PhantomData), builder)
    };
    let declared = || keeping::<ConfigMap, Serving>(named("trips"), "sites");
    let refused = [
        outcome(declared(), "more", "Ready"),
        outcome(declared(), "more", "Serving"),
        keeping::<ConfigMap, Serving>(outcome(named("trips"), "more", "Ready"), "sites"),
        outcome(outcome(named("trips"), "more", "Ready"), "again", "Ready"),
    ];
    for manager in refused {
        let text = check_conditions(&manager).unwrap_err().to_string();
        for part in ["\"more\"", "configmaps", "another `outcome_condition`"] {
            assert!(text.contains(part), "{part} not in {text}");
        }
    }
    assert!(check_conditions(&outcome(declared(), "more", "MoreDone")).is_ok());
}

#[test]
fn controllers_of_one_kind_keep_other_roots_and_those_of_other_kinds_the_same() {
    let first = || keeping::<ConfigMap, Serving>(named("trips"), "sites");
    assert!(check_conditions(&keeping::<ConfigMap, Dns>(first(), "dns")).is_ok());
    assert!(check_conditions(&keeping::<Secret, Serving>(first(), "secrets")).is_ok());
    let silent = ControllerBuilder::new().name("silent");
    let silent = first().controller_with(Keeper::<ConfigMap>(PhantomData), silent);
    assert!(check_conditions(&silent).is_ok(), "it keeps none");
    assert!(check_conditions(&keeping::<ConfigMap, Serving>(first(), "more")).is_err());
}
