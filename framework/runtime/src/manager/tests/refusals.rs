//! Settings that Kubernetes would refuse later, without a message to the operator's author.

use super::world::{Story, Trips};
use super::*;
use crate::controller::ControllerBuilder;

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
