//! Lists with several owners: items of others are left, and ours that others changed are taken
//! back.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use windlass::api::{Api, Patch};
use windlass::prelude::*;
use windlass::testing::{RunningOperator, TestCluster};

use crate::gadget::{Gadget, gadget};

/// A child with a set and a list whose items are told apart by a key.
#[derive(CustomResource, Clone, Debug)]
#[resource(group = "lists.example.dev", version = "v1", namespaced)]
struct Board {
    metadata: ObjectMeta,
    spec: BoardSpec,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
struct BoardSpec {
    #[schemars(extend("x-kubernetes-list-type" = "set"))]
    tags: Vec<String>,
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
    pins: Vec<Pin>,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
struct Pin {
    name: String,
    text: String,
}

#[derive(Debug, Controller)]
#[controller(for = Gadget, owns(Board), name = "boards")]
struct Boards;

impl Reconciler for Boards {
    type Object = Gadget;

    async fn reconcile(&self, gadget: &Gadget, cx: &Context<Self>) -> Result {
        let pin = |name: &str| Pin { name: name.to_owned(), text: gadget.spec.color.clone() };
        let tags = ["a", "b"].map(str::to_owned).into();
        let spec = BoardSpec { tags, pins: vec![pin("x"), pin("y")] };
        cx.apply_owned(Board::new(gadget.name(), spec)).await?;
        Ok(Action::done())
    }
}

struct World {
    cluster: TestCluster,
    boards: Api<Board>,
    running: RunningOperator,
}

impl World {
    /// With the board of a red gadget.
    async fn start() -> Self {
        let cluster = TestCluster::start().await;
        cluster.install::<Gadget>().await;
        cluster.install::<Board>().await;
        let client = cluster.client();
        let gadgets: Api<Gadget> = client.namespace(cluster.namespace());
        gadgets.create(&gadget("home", "red")).await.unwrap();
        let boards = client.namespace(cluster.namespace());
        let running = spawn(&cluster);
        running.settled().await;
        Self { cluster, boards, running }
    }

    /// Applies a part of the board by another manager, by force.
    async fn theirs(&self, spec: Value) -> String {
        let part = json!({ "apiVersion": "lists.example.dev/v1", "kind": "Board", "spec": spec });
        let board = self.boards.apply("home", &part).manager("them").force().await.unwrap();
        board.resource_version().to_owned()
    }

    /// Writes the whole lists by another client.
    async fn written(&self, spec: Value) -> String {
        let patch = Patch::Merge(json!({ "spec": spec }));
        self.boards.patch("home", patch).await.unwrap().resource_version().to_owned()
    }

    /// Returns version, tags and pins when the operator has settled.
    async fn settled(&self) -> (String, String, String) {
        self.running.settled().await;
        let board = self.boards.get("home").await.unwrap();
        let pins = board.spec.pins.iter().map(|pin| format!("{}:{}", pin.name, pin.text));
        let pins = pins.collect::<Vec<_>>().join(" ");
        (board.resource_version().to_owned(), board.spec.tags.join(" "), pins)
    }
}

fn spawn(cluster: &TestCluster) -> RunningOperator {
    cluster.spawn_unrestricted(Manager::new(cluster.client()).controller(Boards))
}

#[tokio::test]
async fn items_of_others_are_left_and_cost_no_request_also_after_a_restart() {
    let mut world = World::start().await;
    let pins = json!([{ "name": "theirs", "text": "t" }]);
    let version = world.theirs(json!({ "tags": ["theirs"], "pins": pins })).await;
    let expected = (version, "a b theirs".to_owned(), "x:red y:red theirs:t".to_owned());
    assert_eq!(world.settled().await, expected);
    // The pin that another writer changes is left, too.
    let pins = json!([{ "name": "theirs", "text": "u" }]);
    let version = world.theirs(json!({ "tags": ["theirs"], "pins": pins })).await;
    let expected = (version, "a b theirs".to_owned(), "x:red y:red theirs:u".to_owned());
    assert_eq!(world.settled().await, expected);
    world.running.stop().await;
    world.running = spawn(&world.cluster);
    assert_eq!(world.settled().await, expected);
    world.running.stop().await;
}

#[tokio::test]
async fn an_item_of_ours_that_others_changed_or_removed_is_taken_back_and_theirs_stay() {
    let world = World::start().await;
    let theirs = json!({ "name": "theirs", "text": "t" });
    let x = |text: &str| json!({ "name": "x", "text": text });
    let y = json!({ "name": "y", "text": "red" });
    for (tags, pins) in [
        (json!(["a", "b", "theirs"]), json!([x("blue"), y, theirs])),
        (json!(["a", "theirs"]), json!([x("red"), y, theirs])),
        (json!(["a", "b", "theirs"]), json!([y, theirs])),
        (json!(["theirs"]), json!([theirs])),
    ] {
        let version = world.written(json!({ "tags": tags, "pins": pins })).await;
        let (after, tags, pins) = world.settled().await;
        assert_ne!(after, version, "it was written once more");
        let sorted = |text: &str| {
            let mut words: Vec<String> = text.split(' ').map(str::to_owned).collect();
            words.sort();
            words.join(" ")
        };
        assert_eq!(sorted(&tags), "a b theirs");
        assert_eq!(sorted(&pins), "theirs:t x:red y:red");
    }
    world.running.stop().await;
}

#[tokio::test]
async fn an_item_that_another_manager_owns_beside_us_stays_when_it_leaves_it() {
    let world = World::start().await;
    let same = json!([{ "name": "x", "text": "red" }]);
    let version = world.theirs(json!({ "tags": ["a"], "pins": same })).await;
    let as_wanted = ("a b".to_owned(), "x:red y:red".to_owned());
    let found = world.settled().await;
    assert_eq!(
        (found.0, (found.1, found.2)),
        (version, as_wanted.clone()),
        "shared, as it should be"
    );
    let other = json!([{ "name": "x", "text": "blue" }]);
    world.theirs(json!({ "tags": ["a"], "pins": other })).await;
    let found = world.settled().await;
    assert_eq!((found.1, found.2), as_wanted, "taken back");
    let version = world.theirs(json!({})).await;
    let found = world.settled().await;
    assert_eq!((found.0, (found.1, found.2)), (version, as_wanted), "ours all the same");
    world.running.stop().await;
}
