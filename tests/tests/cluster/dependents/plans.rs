//! Plans of graphs: external resources and rollouts are planned as they would be driven, and
//! nothing is done.

use windlass::controller::{PlannedObject, PlannedOutcome};
use windlass::external::External;
use windlass::manager::PlanOptions;

use super::externals::{Accounts, Bank, Tills};
use super::rollouts::Fleets;
use super::*;

/// A cluster with an audit log.
struct Audited {
    world: World,
}

impl Audited {
    async fn start() -> Self {
        let cluster = TestCluster::builder().embedded().audit(true).start().await;
        let world = World::on(cluster).await;
        world.cluster.install::<Route>().await;
        Self { world }
    }

    /// Plans the only object of a controller, and checks that the server stored nothing meanwhile.
    async fn planned<C: Controller>(&self, controller: C) -> PlannedObject {
        let server = self.world.cluster.server();
        let (revision, audited) = (server.revision(), server.audit().len());
        let client = self.world.cluster.client().dry_run();
        let manager = Manager::new(client).namespaces([self.world.cluster.namespace()]);
        let plan = manager.controller(controller).plan(PlanOptions::default()).await.unwrap();
        assert_eq!(server.revision(), revision, "nothing was stored");
        let entries = server.audit().split_off(audited);
        assert!(!entries.is_empty(), "the plan reads");
        for entry in entries {
            assert_eq!(entry["changes"], json!([]), "{entry}");
        }
        assert_eq!(plan.objects.len(), 1, "{plan:#?}");
        plan.objects.into_iter().next().unwrap()
    }
}

/// Returns a text for each change of the children, in order.
fn changes(object: &PlannedObject) -> Vec<String> {
    let changes = object.changes.iter().filter(|change| !change.resource.starts_with("shops"));
    let changes = changes.map(|change| {
        format!("{} {} {}", change.action.as_str(), change.resource, change.key.name())
    });
    let mut changes: Vec<String> = changes.collect();
    changes.sort();
    changes
}

/// Returns the differences of a map, as `PATH: FROM -> TO`.
fn fields(object: &PlannedObject, name: &str) -> Vec<String> {
    let is_it = |change: &&windlass::controller::PlannedChange| {
        change.resource == "configmaps" && change.key.name() == name
    };
    let change = object.changes.iter().find(is_it).unwrap_or_else(|| panic!("{object:#?}"));
    let text = |value: &Option<String>| value.clone().unwrap_or_else(|| "-".to_owned());
    let fields = change.fields.iter();
    fields.map(|it| format!("{}: {} -> {}", it.path, text(&it.from), text(&it.to))).collect()
}

#[tokio::test]
async fn the_creation_of_an_external_resource_is_named_and_not_made() {
    let (audited, bank) = (Audited::start().await, Bank::default());
    audited.world.create("shop", &[]).await;
    audited.world.expose(true).await;
    let shop = audited.planned(Tills::of(&bank)).await;
    let own = audited.world.cluster.namespace().to_owned();
    let call = format!("create the external resource of \"{own}/shop\"");
    assert_eq!(shop.external_calls, [call.as_str()]);
    assert_eq!(changes(&shop), ["create secrets shop"], "the till comes after the account");
    let expected = format!("Dependents: account: would {call}; till: waits for account");
    assert_eq!(shop.outcome, PlannedOutcome::Waiting(expected));
    assert_eq!(bank.made(), Vec::<String>::new());
    let stored = audited.world.api::<Shop>().get("shop").await.unwrap();
    assert!(!stored.has_finalizer(Accounts::FINALIZER) && stored.metadata.annotations.is_none());
}

#[tokio::test]
async fn the_deletion_of_an_external_resource_is_named_and_holds_what_comes_before() {
    let (audited, bank) = (Audited::start().await, Bank::default());
    audited.world.create("shop", &[]).await;
    audited.world.expose(true).await;
    let running = audited
        .world
        .cluster
        .spawn(Manager::new(audited.world.cluster.client()).controller(Tills::of(&bank)));
    let world = &audited.world;
    world.eventually("all is there", async || world.owned::<ConfigMap>().await == ["shop"]).await;
    running.settled().await;
    running.stop().await;
    let made = bank.made();
    let shop = audited.planned(Tills::of(&bank)).await;
    assert_eq!((changes(&shop), &shop.external_calls), (Vec::new(), &Vec::new()));
    assert_eq!(shop.outcome, PlannedOutcome::Reconciled);

    audited.world.expose(false).await;
    let shop = audited.planned(Tills::of(&bank)).await;
    assert_eq!(shop.external_calls, ["delete external resource \"account-0\""]);
    assert_eq!(changes(&shop), Vec::<String>::new());

    audited.world.expose(true).await;
    audited.world.api::<Shop>().delete("shop").await.unwrap();
    let shop = audited.planned(Tills::of(&bank)).await;
    assert_eq!(changes(&shop), ["delete configmaps shop"]);
    assert_eq!(shop.external_calls, Vec::<String>::new(), "the account goes after the till");
    let world = &audited.world;
    world.api::<ConfigMap>().delete("shop").await.unwrap();
    let shop = audited.planned(Tills::of(&bank)).await;
    assert_eq!(shop.external_calls, ["delete external resource \"account-0\""]);
    assert_eq!(changes(&shop), Vec::<String>::new(), "the login goes after the account");
    let login = format!("Secret \"{}/shop\"", world.cluster.namespace());
    let left = format!(
        "Deleting: login: {login} left; account: would delete external resource \"account-0\""
    );
    assert_eq!(shop.outcome, PlannedOutcome::Waiting(left));
    assert_eq!(bank.made(), made);
}

#[tokio::test]
async fn a_rollout_is_planned_as_far_as_its_rules_permit_it_now() {
    let audited = Audited::start().await;
    audited.world.create("shop", &["a", "b", "c"]).await;
    audited.world.expose(true).await;
    let shop = audited.planned(Fleets).await;
    let mut found = changes(&shop);
    let is_revision = |text: &String| text.contains("controllerrevisions.apps shop-fleets");
    assert_eq!(found.iter().filter(|text| is_revision(text)).count(), 1, "{found:#?}");
    found.retain(|text| !is_revision(text));
    let ships = ["a", "b", "c"].map(|name| format!("create configmaps {name}"));
    let [a, b, c] = &ships;
    assert_eq!(found, [a, b, c, "create secrets shop"], "the route waits for the ships");

    let manager = Manager::new(audited.world.cluster.client()).controller(Fleets);
    let running = audited.world.cluster.spawn(manager);
    running.settled().await;
    for name in ["a", "b", "c"] {
        audited.world.see(name).await;
    }
    running.settled().await;
    running.stop().await;
    let shop = audited.planned(Fleets).await;
    assert_eq!(changes(&shop), Vec::<String>::new());

    audited.world.patch("shop", json!({ "metadata": { "labels": { "color": "red" } } })).await;
    let shop = audited.planned(Fleets).await;
    let mut found = changes(&shop);
    assert!(found[0].starts_with("create controllerrevisions.apps shop-fleets"), "{found:#?}");
    assert_eq!(found.split_off(1), ["update configmaps c"], "one after the other");
    let fields = fields(&shop, "c");
    assert!(fields.contains(&".data.color: \"blue\" -> \"red\"".to_owned()), "{fields:#?}");
    assert_eq!(audited.world.colors(&["a", "b", "c"]).await, ["blue", "blue", "blue"]);
}

#[tokio::test]
async fn a_child_that_is_being_deleted_is_planned_neither_as_deleted_nor_as_made() {
    let audited = Audited::start().await;
    audited.world.create("shop", &["a", "b"]).await;
    let running = audited.world.spawn();
    running.settled().await;
    audited.world.open("shop").await;
    running.settled().await;
    running.stop().await;
    let hold = json!({ "metadata": { "finalizers": ["example.dev/hold"] } });
    audited.world.api::<Secret>().patch("shop-a", Patch::Merge(hold.clone())).await.unwrap();
    audited.world.api::<ConfigMap>().patch("shop-config", Patch::Merge(hold)).await.unwrap();
    audited.world.api::<Secret>().delete("shop-a").await.unwrap();
    audited.world.api::<ConfigMap>().delete("shop-config").await.unwrap();
    let shop = audited.planned(Shops).await;
    assert_eq!(changes(&shop), Vec::<String>::new());
    let PlannedOutcome::Waiting(text) = &shop.outcome else { panic!("{:?}", shop.outcome) };
    assert!(text.contains("config: is being deleted"), "{text}");
    audited.world.patch("shop", json!({ "spec": { "shards": ["b"] } })).await;
    let shop = audited.planned(Shops).await;
    assert_eq!(changes(&shop), Vec::<String>::new(), "it goes already");

    // The plan notes that the updated object is being deleted.
    let paint = json!({ "data": { "color": "red" } });
    audited.world.api::<ConfigMap>().patch("shop-config", Patch::Merge(paint)).await.unwrap();
    let shop = audited.planned(Shops).await;
    assert_eq!(changes(&shop), ["update configmaps shop-config"]);
    let change = shop.changes.iter().find(|change| change.resource == "configmaps").unwrap();
    assert_eq!(change.note.as_deref(), Some("the object is being deleted"));
}

#[tokio::test]
async fn a_plan_with_a_child_that_is_refused_names_it_and_plans_its_siblings() {
    let audited = Audited::start().await;
    audited.world.create("shop", &["a", "b", "NOT A NAME"]).await;
    let shop = audited.planned(Fleets).await;
    let PlannedOutcome::Failed(text) = &shop.outcome else { panic!("{shop:#?}") };
    assert!(text.starts_with("applying ships: ") && text.contains("NOT A NAME"), "{text}");
    let mut found = changes(&shop);
    found.retain(|text| !text.contains("controllerrevisions"));
    assert_eq!(found, ["create configmaps a", "create configmaps b", "create secrets shop"]);
}
