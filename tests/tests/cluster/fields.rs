//! Columns, scale, selectable fields and rules whose paths are Rust fields.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use windlass::path;
use windlass::prelude::*;
use windlass::testing::TestCluster;

/// A fleet of ships.
#[derive(CustomResource, Clone, Debug)]
#[resource(group = "test.windlass.dev", version = "v1", namespaced, plural = "fleets")]
#[resource(column(spec.home_port), column("Wanted", spec.scaling.replicas))]
#[resource(column("First", spec.ships[0].name), column("All", spec.ships[].name))]
#[resource(column("Team", metadata.labels["example.dev/team"]), column("Age", metadata.creation_timestamp))]
#[resource(scale(spec.scaling.replicas, status.replicas, selector = status.selector))]
#[resource(selectable(spec.home_port, spec.scaling.replicas))]
#[resource(rule("self.metadata.name != 'ghost'", message = "no ghosts", path = spec.home_port))]
#[resource(deprecated = "fleets are sold", label("team" = "harbour"))]
#[index(by_ship = spec.ships[].name, by_crew_name = spec.crew.keys())]
struct Fleet {
    metadata: ObjectMeta,
    spec: FleetSpec,
    status: Option<FleetStatus>,
}

#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct FleetSpec {
    home_port: String,
    scaling: Option<Box<Scaling>>,
    ships: Option<Vec<Ship>>,
    #[serde(default)]
    crew: BTreeMap<String, i32>,
}

#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
struct Scaling {
    replicas: i32,
}

#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
struct Ship {
    name: String,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
struct FleetStatus {
    replicas: Option<i32>,
    selector: Option<String>,
}

fn fleet(name: &str, port: &str, replicas: i32) -> Fleet {
    let ships = ["Argo", "Beagle"].map(|name| Ship { name: name.to_owned() });
    let mut fleet = Fleet::new(
        name,
        FleetSpec {
            home_port: port.to_owned(),
            scaling: Some(Box::new(Scaling { replicas })),
            ships: Some(ships.into()),
            crew: BTreeMap::from([("Ada".to_owned(), 1)]),
        },
    );
    let labels = BTreeMap::from([("example.dev/team".to_owned(), "blue".to_owned())]);
    fleet.metadata.labels = Some(labels);
    fleet
}

#[tokio::test]
async fn columns_scale_and_selectable_fields_of_rust_paths_are_served() {
    let cluster = TestCluster::start().await;
    cluster.install::<Fleet>().await;
    let client = cluster.client();
    let fleets = client.namespace::<Fleet>(cluster.namespace());
    fleets.create(&fleet("north", "a,b", 2)).await.unwrap();
    fleets.create(&fleet("south", "c", 3)).await.unwrap();

    let home_port = path!(Fleet: spec.home_port);
    let selector = home_port.equals("a,b").unwrap();
    let found = fleets.list().fields(&selector).await.unwrap();
    assert_eq!(found.items.iter().map(|fleet| fleet.name()).collect::<Vec<_>>(), ["north"]);
    let selector = path!(Fleet: spec.scaling.replicas).not_equals(2).unwrap();
    let found = fleets.list().fields(&selector).await.unwrap();
    assert_eq!(found.items.iter().map(|fleet| fleet.name()).collect::<Vec<_>>(), ["south"]);

    let scale = fleets.scale("north");
    assert_eq!(scale.get().await.unwrap().spec.unwrap().replicas, Some(2));
    scale.to(5).await.unwrap();
    let north = fleets.get("north").await.unwrap();
    assert_eq!(path!(Fleet: spec.scaling.replicas).get(&north), Some(&5));

    let table = "application/json;as=Table;v=v1;g=meta.k8s.io";
    let request = client.get().abs_path(["apis", "test.windlass.dev", "v1", "fleets"]);
    let table: Value = request.accept(table).send().await.unwrap().json().unwrap();
    let headings: Vec<_> = table["columnDefinitions"]
        .as_array()
        .unwrap()
        .iter()
        .map(|column| (column["name"].as_str().unwrap(), column["type"].as_str().unwrap()))
        .collect();
    let expected = [
        ("Name", "string"),
        ("Home Port", "string"),
        ("Wanted", "integer"),
        ("First", "string"),
        ("All", "string"),
        ("Team", "string"),
        ("Age", "date"),
    ];
    assert_eq!(headings, expected);
    let cells = &table["rows"][0]["cells"];
    assert_eq!(
        (&cells[1], &cells[2], &cells[3], &cells[5]),
        (&json!("a,b"), &json!(5), &json!("Argo"), &json!("blue")),
        "{table}"
    );
}
