//! The change log: every write of a graph, with the reason and the difference.

use windlass::controller::ChangeLog;

use super::*;

/// An entry of the debug dump: verb, object, reasons and differences.
fn entries(running: &RunningOperator) -> Vec<[String; 4]> {
    let dump = running.dump(50);
    let mut records = dump["controllers"][0]["changes"].as_array().unwrap().clone();
    records.reverse();
    let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    let keys = ["verb", "object", "reasons", "changes"];
    records.iter().map(|record| keys.map(|key| text(&record[key]))).collect()
}

/// Returns the differences of the last write of that verb to an object.
fn last(running: &RunningOperator, verb: &str, object: &str) -> String {
    let entries = entries(running);
    let mut of = entries.iter().rev().filter(|it| it[0] == verb && it[1].ends_with(object));
    let Some([_, _, reasons, changes]) = of.next() else { panic!("{verb} {object}: {entries:#?}") };
    format!("{reasons} {changes}")
}

#[tokio::test]
async fn each_write_of_a_graph_is_logged_with_its_reason_and_what_it_changes() {
    let world = World::start().await;
    let manager = operator(world.cluster.client()).change_log(ChangeLog::Full);
    let running = world.cluster.spawn(manager);
    world.create("shop", &["a"]).await;
    running.settled().await;
    world.open("shop").await;
    running.settled().await;
    let found = entries(&running);
    let place = format!("{}/shop", world.cluster.namespace());
    for (verb, object) in [
        ("apply", format!("configmaps {place}-config")),
        ("apply", format!("configmaps {place}-app")),
        ("apply", format!("secrets {place}-a")),
        ("patch", format!("shops.graph.example.dev {place}")),
        ("patch status", format!("shops.graph.example.dev {place}")),
    ] {
        let is_it = |it: &&[String; 4]| it[0] == verb && it[1] == object;
        assert!(found.iter().any(|it| is_it(&it)), "{verb} {object}: {found:#?}");
    }
    // A value of a Secret by another writer, which is set back.
    let theirs = json!({ "stringData": { "key": "theirs-90ab2e" } });
    world.api::<Secret>().patch("shop-a", Patch::Merge(theirs)).await.unwrap();
    let is_ours = async || {
        let data = world.api::<Secret>().get("shop-a").await.unwrap().data.unwrap();
        data["key"].0 == CONFIDENTIAL.as_bytes()
    };
    world.eventually("it is set back", is_ours).await;
    running.settled().await;
    assert!(last(&running, "set back", "shop-a").contains(".data.key"));
    let dump = running.dump(1000).to_string();
    // As texts, and as the beginnings of their encodings, wherever an encoding may end.
    for text in [CONFIDENTIAL, "theirs-90ab2e", "aHVzaC03ZjQxYz", "dGhlaXJzLTkwYWIyZ"] {
        assert!(!dump.contains(text), "{text}: {:#}", running.dump(1000));
    }

    // What others have changed is set back, and told with both values.
    let patch = Patch::Merge(json!({ "data": { "color": "red" } }));
    world.api::<ConfigMap>().patch("shop-config", patch).await.unwrap();
    world
        .eventually("it is set back", async || {
            let map = world.api::<ConfigMap>().get("shop-config").await.unwrap();
            map.data.is_some_and(|data| data["color"] == "blue")
        })
        .await;
    running.settled().await;
    for verb in ["apply", "set back"] {
        let change = last(&running, verb, "shop-config");
        assert!(change.contains("owned configmaps"), "{change}");
        assert!(change.contains(".data.color"), "{change}");
    }
    let change = last(&running, "apply", "shop-config");
    assert!(change.contains(".data.color: \"red\" -> \"blue\""), "{change}");

    world.patch("shop", json!({ "spec": { "shards": [] } })).await;
    running.settled().await;
    last(&running, "delete", "shop-a");
    running.stop().await;
}

#[tokio::test]
async fn a_summary_has_no_values_and_without_a_setting_nothing_is_logged() {
    for (detail, is_logged) in [(Some(ChangeLog::Summary), true), (None, false)] {
        let world = World::start().await;
        let manager = operator(world.cluster.client());
        let manager = match detail {
            Some(detail) => manager.change_log(detail),
            None => manager,
        };
        let running = world.cluster.spawn(manager);
        world.create("shop", &[]).await;
        running.settled().await;
        let found = entries(&running);
        assert_eq!(!found.is_empty(), is_logged, "{found:#?}");
        assert!(!format!("{found:?}").contains("blue"), "{found:#?}");
        running.stop().await;
        world.end();
    }
}

/// A controller that shows its outcome.
mod shown {
    use super::super::*;

    #[derive(Dependents)]
    #[dependents(for = Shop, by = Shops)]
    struct ShownParts {
        config: ConfigMap,
    }

    #[derive(Controller)]
    #[controller(for = Shop, dependents(ShownParts), name = "shops", outcome_condition = "Ready")]
    pub(super) struct Shops;

    impl DesiredShownParts for Shops {
        async fn config(&self, shop: &Shop, _: &Context<Self>) -> Result<ConfigMap> {
            Ok(map(shop.name().to_owned()))
        }
    }
}

/// A controller whose child is not ready before the test opens it.
mod waiting {
    use super::super::*;

    #[derive(Dependents)]
    #[dependents(for = Shop, by = Shops)]
    struct WaitingParts {
        #[dependent(ready = is_open)]
        config: ConfigMap,
    }

    #[derive(Controller)]
    #[controller(for = Shop, dependents(WaitingParts), name = "shops", outcome_condition = "Ready")]
    pub(super) struct Shops;

    impl DesiredWaitingParts for Shops {
        async fn config(&self, shop: &Shop, _: &Context<Self>) -> Result<ConfigMap> {
            Ok(map(shop.name().to_owned()))
        }
    }
}

#[tokio::test]
async fn a_field_that_is_taken_back_again_and_again_is_in_the_status_while_the_child_is_not_ready()
{
    let world = World::start().await;
    let running =
        world.cluster.spawn(Manager::new(world.cluster.client()).controller(waiting::Shops));
    world.create("shop", &[]).await;
    running.settled().await;
    for color in ["red", "green", "red", "green"] {
        let patch = Patch::Merge(json!({ "data": { "color": color } }));
        world.api::<ConfigMap>().patch("shop", patch).await.unwrap();
        let is_blue = async || {
            let map = world.api::<ConfigMap>().get("shop").await.unwrap();
            map.data.is_some_and(|data| data["color"] == "blue")
        };
        world.eventually("it is set back", is_blue).await;
        running.settled().await;
    }
    let told = world.told("shop").await;
    assert!(
        told.starts_with("Dependents: config: not ready; others change ConfigMap")
            && told.ends_with(": .data.color"),
        "{told}"
    );
    if world.cluster.is_embedded() {
        world.pass(700).await;
        assert_eq!(world.told("shop").await, "Dependents: config: not ready", "it is over");
    }
    running.stop().await;
}

#[tokio::test]
async fn a_field_that_is_taken_back_again_and_again_is_in_the_status_until_it_rests() {
    let world = World::start().await;
    let running =
        world.cluster.spawn(Manager::new(world.cluster.client()).controller(shown::Shops));
    world.create("shop", &[]).await;
    running.settled().await;
    let ready = async || {
        let status = world.api::<Shop>().get("shop").await.unwrap().status.unwrap_or_default();
        let ready = status.conditions.get("Ready").cloned().unwrap();
        format!("{} {}", ready.status, ready.message)
    };
    let paint = async |color: &str| {
        let patch = Patch::Merge(json!({ "data": { "color": color } }));
        world.api::<ConfigMap>().patch("shop", patch).await.unwrap();
        world
            .eventually("it is set back", async || {
                let map = world.api::<ConfigMap>().get("shop").await.unwrap();
                map.data.is_some_and(|data| data["color"] == "blue")
            })
            .await;
        running.settled().await;
    };
    for color in ["red", "green"] {
        paint(color).await;
        assert_eq!(ready().await, "True ", "it may be an error of a person");
    }
    let told = "True others change ConfigMap";
    for color in ["red", "green", "red"] {
        paint(color).await;
        let ready = ready().await;
        assert!(ready.starts_with(told) && ready.ends_with(": .data.color"), "{ready}");
    }
    if world.cluster.is_embedded() {
        let version =
            async || world.api::<Shop>().get("shop").await.unwrap().metadata.resource_version;
        let before = version().await;
        world.pass(500).await;
        assert_eq!(version().await, before, "written once for the whole fight");
        world.pass(200).await;
        assert_eq!(ready().await, "True ", "it is over");
    }
    running.stop().await;
}
