//! A controller whose reconcile is the graph.

use windlass::conditions::ConditionedStatus;

use super::*;

/// A booth, which is all that a graph makes of it.
#[derive(CustomResource, Clone, Debug)]
#[resource(group = "graph.example.dev", version = "v1", namespaced)]
#[resource(column(ready), column(age))]
struct Booth {
    metadata: ObjectMeta,
    spec: BoothSpec,
    status: Option<ConditionedStatus>,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
struct BoothSpec {
    color: String,
}

#[derive(Dependents)]
#[dependents(for = Booth, by = Booths)]
struct Walls {
    #[dependent(ready = is_open)]
    front: ConfigMap,
    lock: Secret,
}

#[derive(Controller)]
#[controller(for = Booth, dependents(Walls), conditions)]
struct Booths;

impl DesiredWalls for Booths {
    async fn precondition(&self, booth: &Booth, _: &Context<Self>) -> Result<bool> {
        Ok(booth.spec.color != "none")
    }

    async fn front(&self, booth: &Booth, _: &Context<Self>) -> Result<ConfigMap> {
        Ok(object!(ConfigMap { data: { color: &booth.spec.color } }))
    }

    async fn lock(&self, _: &Booth, _: &Context<Self>) -> Result<Secret> {
        Ok(object!(Secret { stringData: { key: "value" } }))
    }
}

#[tokio::test]
async fn a_graph_for_a_kind_applies_its_children_under_the_name_of_the_object() {
    let cluster = TestCluster::start().await;
    cluster.install::<Booth>().await;
    let running = cluster.spawn(Manager::new(cluster.client()).controller(Booths));
    let booths = cluster.client().namespace::<Booth>(cluster.namespace());
    booths.create(&Booth::new("booth", BoothSpec { color: "red".to_owned() })).await.unwrap();
    running.settled().await;
    let maps = cluster.client().namespace::<ConfigMap>(cluster.namespace());
    let secrets = cluster.client().namespace::<Secret>(cluster.namespace());
    assert_eq!(maps.get("booth").await.unwrap().data.unwrap()["color"], "red");
    assert!(secrets.get_opt("booth").await.unwrap().is_some());
    let status = booths.get("booth").await.unwrap().status.unwrap();
    let ready = status.conditions.get("Ready").unwrap();
    assert_eq!((&*ready.status, &*ready.message), ("False", "front: not ready"));
    assert_eq!(status.observed_generation, Some(1));

    let open = json!({ "metadata": { "annotations": { "open": "yes" } } });
    maps.patch("booth", Patch::Merge(open)).await.unwrap();
    running.settled().await;
    let status = booths.get("booth").await.unwrap().status.unwrap();
    assert!(status.conditions.is_met("Ready"), "{status:?}");
    running.stop().await;
}

#[tokio::test]
async fn children_stay_as_they_are_while_the_precondition_is_false() {
    let cluster = TestCluster::start().await;
    cluster.install::<Booth>().await;
    let running = cluster.spawn(Manager::new(cluster.client()).controller(Booths));
    let booths = cluster.client().namespace::<Booth>(cluster.namespace());
    booths.create(&Booth::new("booth", BoothSpec { color: "red".to_owned() })).await.unwrap();
    running.settled().await;
    let none = json!({ "spec": { "color": "none" } });
    booths.patch("booth", Patch::Merge(none)).await.unwrap();
    running.settled().await;
    let maps = cluster.client().namespace::<ConfigMap>(cluster.namespace());
    assert_eq!(maps.get("booth").await.unwrap().data.unwrap()["color"], "red", "not \"none\"");
    running.stop().await;
}

#[test]
fn the_columns_for_ready_and_age_are_those_that_are_written_out_elsewhere() {
    let definition = Booth::crd().unwrap();
    let columns = definition.spec.versions[0].additional_printer_columns.clone().unwrap();
    let found: Vec<_> = columns.iter().map(|it| (&*it.name, &*it.type_, &*it.json_path)).collect();
    let ready = ".status.conditions[?(@.type==\"Ready\")].status";
    let age = ".metadata.creationTimestamp";
    assert_eq!(found, [("Ready", "string", ready), ("Age", "date", age)]);
}
