//! Convergence: the cluster follows the specs through every disturbance, and then rests.

use std::time::Duration;

use k8s_openapi::api::events::v1::Event;
use serde_json::json;
use windlass::api::Patch;
use windlass::prelude::*;
use windlass::testing::RunningOperator;

use crate::bench::Bench;
use crate::gadget::{FINALIZER, Gadget, gadget, operator};

#[tokio::test]
async fn a_child_that_is_deleted_comes_back() {
    let bench = Bench::start().await;
    let running = bench.cluster.spawn(operator(bench.cluster.client()));
    let owner = bench.gadgets.create(&gadget("home", "red")).await.unwrap();
    running.settled().await;
    let first = bench.children.get("home").await.unwrap();
    bench.children.delete("home").await.unwrap();
    running.settled().await;
    let second = bench.children.get("home").await.unwrap();
    assert_ne!(second.uid(), first.uid());
    assert_eq!(second.data.unwrap()["color"], "red");
    let owners = second.metadata.owner_references.unwrap();
    assert_eq!((owners.len(), owners[0].uid.as_str()), (1, owner.uid()));
}

#[tokio::test]
async fn a_child_that_drifts_is_put_back_and_keeps_what_others_added() {
    let bench = Bench::start().await;
    let running = bench.cluster.spawn(operator(bench.cluster.client()));
    bench.gadgets.create(&gadget("home", "red")).await.unwrap();
    running.settled().await;
    let drift = json!({
        "metadata": { "labels": { "team": "web" } },
        "data": { "color": "blue", "size": null, "more": "x" },
    });
    bench.children.patch("home", Patch::Merge(drift)).manager("somebody").await.unwrap();
    running.settled().await;
    let child = bench.children.get("home").await.unwrap();
    assert_eq!(child.label("team"), Some("web"));
    let data = child.data.unwrap();
    assert_eq!([&data["color"], &data["size"], &data["more"]], ["red", "1", "x"]);
}

#[tokio::test]
async fn nothing_is_written_when_nothing_changes_not_even_by_the_next_process() {
    let bench = Bench::start().await;
    let running = bench.cluster.spawn(operator(bench.cluster.client()));
    bench.gadgets.create(&gadget("home", "red")).await.unwrap();
    running.settled().await;
    let before = bench.versions("home").await;
    bench.clock().sleep(Duration::from_secs(2)).await;
    assert_eq!(bench.versions("home").await, before, "at rest");
    running.stop().await;

    let running = bench.cluster.spawn(operator(bench.cluster.client()));
    running.settled().await;
    assert!(running.states()[0].1.reconciles >= 1, "the next process looks at everything");
    assert_eq!(bench.versions("home").await, before, "after a restart");

    let label = json!({ "metadata": { "labels": { "team": "web" } } });
    let labelled = bench.gadgets.patch("home", Patch::Merge(label)).await.unwrap();
    running.settled().await;
    let [gadget, child] = bench.versions("home").await;
    assert_eq!(gadget, labelled.resource_version(), "a label changes nothing that is wanted");
    assert_eq!(child, before[1]);
}

#[tokio::test]
async fn conditions_say_which_generation_they_saw_and_when_their_status_last_changed() {
    let bench = Bench::start().await;
    let running = bench.cluster.spawn(operator(bench.cluster.client()));
    bench.gadgets.create(&gadget("home", "red")).await.unwrap();
    let mut seen = Vec::new();
    for size in [1, 2, 7] {
        bench.change("home", json!({ "size": size })).await;
        running.settled().await;
        let gadget = bench.gadgets.get("home").await.unwrap();
        let small = gadget.status.as_ref().unwrap().conditions.get("Small").unwrap().clone();
        assert_eq!(small.observed_generation, Some(gadget.generation()), "{small:?}");
        seen.push((gadget.generation(), small.status, small.last_transition_time));
        bench.clock().sleep(Duration::from_millis(1100)).await;
    }
    let facts: Vec<_> = seen.iter().map(|(seen, status, _)| (*seen, status.as_str())).collect();
    assert_eq!(facts, [(1, "True"), (2, "True"), (3, "False")]);
    assert_eq!(seen[0].2, seen[1].2, "no transition, no new time");
    assert!(seen[1].2.0 < seen[2].2.0);
}

/// Returns the objects that the operator's index finds, by name.
fn of_color(running: &RunningOperator, color: &str) -> Vec<String> {
    let store = running.informers().informer::<Gadget>().store();
    let found = store.by_index(Gadget::BY_COLOR, color);
    found.iter().map(|cached| cached.key().name().to_owned()).collect()
}

#[tokio::test]
async fn an_index_finds_objects_by_a_field_and_follows_it() {
    let bench = Bench::start().await;
    let running = bench.cluster.spawn(operator(bench.cluster.client()));
    for (name, color) in [("a", "red"), ("b", "blue"), ("c", "red")] {
        bench.gadgets.create(&gadget(name, color)).await.unwrap();
    }
    running.settled().await;
    assert_eq!(of_color(&running, "red"), ["a", "c"]);
    bench.change("c", json!({ "color": "blue" })).await;
    running.settled().await;
    assert_eq!(
        (of_color(&running, "red"), of_color(&running, "blue")),
        (vec!["a".to_owned()], vec!["b".to_owned(), "c".to_owned()])
    );
    bench.gadgets.delete("a").await.unwrap();
    running.settled().await;
    assert_eq!(of_color(&running, "red"), Vec::<String>::new());
}

#[tokio::test]
async fn an_operator_of_some_namespaces_leaves_the_others_alone() {
    let bench = Bench::start().await;
    let (client, own) = (bench.cluster.client(), bench.cluster.namespace().to_owned());
    let (second, foreign) =
        (bench.cluster.new_namespace().await, bench.cluster.new_namespace().await);
    for namespace in [&own, &second, &foreign] {
        client.namespace(namespace).create(&gadget("home", "red")).await.unwrap();
    }
    let running = bench.cluster.spawn(operator(client.clone()).namespaces([&own, &second]));
    running.settled().await;
    for (namespace, served) in [(&own, true), (&second, true), (&foreign, false)] {
        let gadget = client.namespace::<Gadget>(namespace).get("home").await.unwrap();
        assert_eq!(gadget.has_finalizer(FINALIZER), served, "{namespace}");
        assert_eq!(gadget.status.is_some(), served, "{namespace}");
    }
    let cached = running.informers().informer::<Gadget>().store().list();
    let mut namespaces: Vec<_> = cached.iter().filter_map(|one| one.key().namespace()).collect();
    namespaces.sort_unstable();
    let mut served = [own.as_str(), second.as_str()];
    served.sort_unstable();
    assert_eq!(namespaces, served);
}

#[tokio::test]
async fn what_a_reconcile_reports_becomes_an_event_about_the_object() {
    let bench = Bench::start().await;
    let running = bench.cluster.spawn(operator(bench.cluster.client()));
    let gadget = bench.gadgets.create(&gadget("home", "red")).await.unwrap();
    let events = bench.cluster.client().namespace::<Event>(bench.cluster.namespace());
    let mut found = None;
    bench
        .eventually("the event is written", async || {
            let about = "reason=Painted";
            found = events.list().fields(about).await.unwrap().items.into_iter().next();
            found.is_some()
        })
        .await;
    let event = found.unwrap();
    let about = event.regarding.unwrap();
    assert_eq!(about.api_version.as_deref(), Some("test.windlass.dev/v1"));
    assert_eq!(about.kind.as_deref(), Some("Gadget"));
    assert_eq!(about.name.as_deref(), Some("home"));
    assert_eq!(about.namespace.as_deref(), Some(bench.cluster.namespace()));
    assert_eq!(about.uid.as_deref(), Some(gadget.uid()));
    assert_eq!(event.note.as_deref(), Some("painted it red"));
    assert_eq!(event.type_.as_deref(), Some("Normal"));
    let controller = running.states()[0].0.clone();
    assert_eq!(event.reporting_controller, Some(controller));
    assert!(event.event_time.is_some());
}
