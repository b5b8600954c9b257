//! Children that no owner reference reaches: cluster-scoped ones, and those in other namespaces.

use k8s_openapi::api::events::v1::Event;
use k8s_openapi::api::scheduling::v1::PriorityClass;
use windlass::manager::PlanOptions;
use windlass::owner::{OWNER, OWNER_UID};

use super::refused_kinds::add;
use super::restarts::crash_at;
use super::*;

/// An office, whose rooms lie in another namespace.
#[derive(CustomResource, Clone, Debug)]
#[resource(group = "graph.example.dev", version = "v1", namespaced)]
struct Office {
    metadata: ObjectMeta,
    spec: OfficeSpec,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
struct OfficeSpec {
    /// Namespace of the rooms.
    place: String,
    #[serde(default)]
    rooms: Vec<String>,
    #[serde(default)]
    ranked: bool,
}

impl Office {
    fn is_ranked(&self) -> bool {
        self.spec.ranked
    }

    /// Name of its class, which no other test has.
    fn rank(&self) -> String {
        format!("{}-{}", self.namespace().unwrap_or_default(), self.name())
    }
}

#[derive(Dependents)]
#[dependents(by = Offices)]
struct Places {
    #[dependent(scope = cluster, when = Office::is_ranked)]
    rank: PriorityClass,
    #[dependent(after(rank), scope = cluster, adopt_if = is_free)]
    rooms: Vec<ConfigMap>,
    #[dependent(after(rooms))]
    sign: Secret,
}

fn is_free(room: &ConfigMap) -> bool {
    room.annotation("free") == Some("yes")
}

#[derive(Controller)]
#[controller(for = Office, dependents(Places), name = "offices")]
struct Offices;

fn rooms(office: &Office) -> Vec<ConfigMap> {
    let namespace = &office.spec.place;
    let room = |name: &String| object!(ConfigMap { metadata: { name, namespace }, data: { color: "white" } });
    office.spec.rooms.iter().map(room).collect()
}

impl DesiredPlaces for Offices {
    async fn rank(&self, office: &Office, _: &Context<Self>) -> Result<PriorityClass> {
        Ok(object!(PriorityClass { metadata: { name: office.rank() }, value: 5 }))
    }

    async fn rooms(&self, office: &Office, _: &Context<Self>) -> Result<Vec<ConfigMap>> {
        Ok(rooms(office))
    }

    async fn sign(&self, office: &Office, _: &Context<Self>) -> Result<Secret> {
        Ok(secret(office.name().to_owned()))
    }
}

impl Reconciler for Offices {
    type Object = Office;

    async fn reconcile(&self, office: &Office, cx: &Context<Self>) -> Result {
        Places::apply(self, office, cx).await?.action()
    }
}

fn offices(client: Client) -> Manager {
    Manager::new(client).controller(Offices)
}

/// A cluster with an office and the namespace of its rooms.
struct City {
    world: World,
    place: String,
}

impl City {
    async fn start() -> Self {
        Self::on(World::on(TestCluster::start().await).await).await
    }

    async fn on(world: World) -> Self {
        world.cluster.install::<Office>().await;
        let place = world.cluster.new_namespace().await;
        Self { world, place }
    }

    fn spawn(&self) -> RunningOperator {
        self.world.cluster.spawn(offices(self.world.cluster.client()))
    }

    async fn open(&self, rooms: &[&str], ranked: bool) -> Office {
        let rooms = rooms.iter().map(ToString::to_string).collect();
        let spec = OfficeSpec { place: self.place.clone(), rooms, ranked };
        self.world.api().create(&Office::new("main", spec)).await.unwrap()
    }

    async fn change(&self, spec: Value) {
        let patch = Patch::Merge(json!({ "spec": spec }));
        self.world.api::<Office>().patch("main", patch).await.unwrap();
    }

    fn rooms(&self) -> Api<ConfigMap> {
        self.world.cluster.client().namespace(&self.place)
    }

    fn ranks(&self) -> Api<PriorityClass> {
        self.world.cluster.client().all()
    }

    /// Names of the rooms that carry a mark.
    async fn marked(&self) -> Vec<String> {
        let found = self.rooms().list().labels(OWNER_UID).await.unwrap().items;
        let mut names: Vec<_> = found.iter().map(|room| room.name().to_owned()).collect();
        names.sort();
        names
    }

    async fn has_rank(&self, office: &Office) -> bool {
        self.ranks().get_opt(&office.rank()).await.unwrap().is_some()
    }

    /// Stands in for garbage collection beside the real server: ends deletions in the foreground,
    /// of objects that own nothing.
    async fn collect(&self) {
        if self.world.cluster.is_embedded() {
            return;
        }
        collect_of(&self.rooms()).await;
        collect_of(&self.ranks()).await;
    }

    async fn eventually(&self, what: &str, is_so: impl AsyncFn() -> bool) {
        self.world
            .eventually(what, async || {
                self.collect().await;
                is_so().await
            })
            .await;
    }

    async fn is_closed(&self) -> bool {
        self.world.api::<Office>().get_opt("main").await.unwrap().is_none()
    }
}

async fn collect_of<K: Resource>(api: &Api<K>) {
    for item in api.list().labels(OWNER_UID).await.unwrap().items {
        let finalizers = item.metadata().finalizers.iter().flatten();
        let rest: Vec<_> = finalizers.clone().filter(|it| *it != FOREGROUND).collect();
        if rest.len() < finalizers.count() {
            let version = item.resource_version();
            let patch = json!({ "metadata": { "finalizers": rest, "resourceVersion": version } });
            let _ = api.patch(item.name(), Patch::Merge(patch)).await;
        }
    }
}

/// A room with the mark of an owner, made by somebody else.
fn forged(name: &str, kind: &str, owner: (&str, &str), uid: &str) -> ConfigMap {
    let mut room = map(name.to_owned());
    let labels = [
        (OWNER_UID.to_owned(), uid.to_owned()),
        (windlass::dependents::LABEL.to_owned(), "offices.Places.rooms".to_owned()),
    ];
    room.metadata.labels = Some(labels.into());
    let text = format!("{kind} {}/{} {uid}", owner.0, owner.1);
    room.metadata.annotations = Some([(OWNER.to_owned(), text)].into());
    room
}

#[tokio::test]
async fn children_elsewhere_are_made_watched_and_removed_as_others_are() {
    let city = City::start().await;
    let office = city.open(&["a", "b"], true).await;
    let running = city.spawn();
    running.settled().await;
    assert_eq!(city.marked().await, ["a", "b"]);
    assert!(city.has_rank(&office).await);
    assert_eq!(city.world.owned::<Secret>().await, ["main"], "the one nearby has a reference");
    let room = city.rooms().get("a").await.unwrap();
    assert!(room.metadata.owner_references.is_none());
    let text =
        format!("Office.graph.example.dev {}/main {}", office.namespace().unwrap(), office.uid());
    assert_eq!(room.annotation(OWNER), Some(text.as_str()));

    // Drift and a deletion wake the owner.
    city.rooms().delete("b").await.unwrap();
    let paint = json!({ "data": { "color": "red" } });
    city.rooms().patch("a", Patch::Merge(paint)).await.unwrap();
    running.settled().await;
    assert_eq!(city.marked().await, ["a", "b"]);
    assert_eq!(city.rooms().get("a").await.unwrap().data.unwrap()["color"], "white");

    city.change(json!({ "rooms": ["b", "c"], "ranked": false })).await;
    running.settled().await;
    assert_eq!(city.marked().await, ["b", "c"]);
    assert!(!city.has_rank(&office).await);
    running.stop().await;
}

#[tokio::test]
async fn a_restart_writes_nothing_and_still_knows_the_children() {
    let city = City::start().await;
    let office = city.open(&["a"], true).await;
    let running = city.spawn();
    running.settled().await;
    running.stop().await;
    let before = city.rooms().get("a").await.unwrap();
    let rank = city.ranks().get(&office.rank()).await.unwrap();
    let running = city.spawn();
    running.settled().await;
    let after = city.rooms().get("a").await.unwrap();
    assert_eq!(after.resource_version(), before.resource_version());
    let after = city.ranks().get(&office.rank()).await.unwrap();
    assert_eq!(after.resource_version(), rank.resource_version());
    city.change(json!({ "rooms": [] })).await;
    running.settled().await;
    assert!(city.marked().await.is_empty());
    running.stop().await;
}

#[tokio::test]
async fn the_owner_goes_when_its_children_elsewhere_are_gone() {
    let city = City::start().await;
    let office = city.open(&["a", "b"], true).await;
    let running = city.spawn();
    running.settled().await;
    // Without one in the attribute the graph brings its own.
    let office = city.world.api::<Office>().get(office.name()).await.unwrap();
    assert_eq!(
        office.metadata.finalizers.as_deref(),
        Some(&["windlass.dev/offices".to_owned()][..])
    );
    let hold = json!({ "metadata": { "finalizers": ["example.dev/hold"] } });
    city.rooms().patch("a", Patch::Merge(hold)).await.unwrap();
    let own = city.world.cluster.namespace().to_owned();
    let other = forged("other", "Office.graph.example.dev", (&own, "main"), "u-9");
    city.rooms().create(&other).await.unwrap();
    city.world.api::<Office>().delete("main").await.unwrap();
    let is_gone = async || city.rooms().get_opt("b").await.unwrap().is_none();
    city.eventually("the free room is gone", is_gone).await;
    assert!(city.has_rank(&office).await, "it comes before the rooms, of which one is held");
    assert!(!city.is_closed().await);
    let free = json!({ "metadata": { "finalizers": null } });
    city.rooms().patch("a", Patch::Merge(free)).await.unwrap();
    city.eventually("the office is gone", async || city.is_closed().await).await;
    assert!(!city.has_rank(&office).await);
    assert_eq!(city.marked().await, ["other"], "of an office with another uid");
    running.stop().await;
}

#[tokio::test]
async fn an_object_of_another_owner_is_neither_taken_over_nor_deleted() {
    let city = City::start().await;
    let own = city.world.cluster.namespace().to_owned();
    let kind = "Office.graph.example.dev";
    let rooms = city.rooms();
    // Free to be adopted, but for their owners: another office, an earlier one is free, and none.
    let free = Some([("free".to_owned(), "yes".to_owned())]);
    let with_free = |mut room: ConfigMap| {
        room.metadata.annotations.get_or_insert_default().extend(free.clone().unwrap());
        room
    };
    rooms.create(&with_free(forged("another", kind, (&own, "other"), "u-1"))).await.unwrap();
    rooms.create(&with_free(forged("far", kind, (&city.place, "main"), "u-1"))).await.unwrap();
    rooms.create(&with_free(forged("left", kind, (&own, "main"), "u-1"))).await.unwrap();
    rooms.create(&forged("kept", kind, (&own, "main"), "u-1")).await.unwrap();
    rooms.create(&with_free(map("free".to_owned()))).await.unwrap();
    rooms.create(&map("plain".to_owned())).await.unwrap();
    // An office of the same name in the namespace of the rooms controls it by reference. It exists:
    // garbage collection deletes what refers to nothing.
    let spec = OfficeSpec { place: city.place.clone(), ..OfficeSpec::default() };
    let offices = city.world.cluster.client().namespace::<Office>(&city.place);
    let nearby = offices.create(&Office::new("main", spec)).await.unwrap();
    let mut child = with_free(map("child".to_owned()));
    let reference = json!([{ "apiVersion": "graph.example.dev/v1", "kind": "Office", "name": "main",
        "uid": nearby.uid(), "controller": true }]);
    child.metadata.owner_references = serde_json::from_value(reference).unwrap();
    rooms.create(&child).await.unwrap();

    let names = ["another", "far", "left", "kept", "free", "plain", "child"];
    let office = city.open(&names, false).await;
    let running = city.spawn();
    let room = async |name: &str| rooms.get(name).await.unwrap();
    let is_ours = async |name: &str| room(name).await.label(OWNER_UID) == Some(office.uid());
    city.world
        .eventually("the free ones are adopted", async || {
            is_ours("left").await && is_ours("free").await
        })
        .await;
    city.world
        .eventually("the others are reported", async || {
            let events = city.world.api::<Event>().list().await.unwrap().items;
            events.iter().any(|event| event.reason.as_deref() == Some("ChildTaken"))
        })
        .await;
    for name in ["another", "far", "kept", "plain", "child"] {
        assert!(!is_ours(name).await, "{name}");
        assert_eq!(room(name).await.data.unwrap()["color"], "blue", "{name}");
    }
    city.change(json!({ "rooms": [] })).await;
    city.world
        .eventually("only the adopted ones are deleted", async || {
            rooms.get_opt("left").await.unwrap().is_none()
                && rooms.get_opt("free").await.unwrap().is_none()
        })
        .await;
    for name in ["another", "far", "kept", "plain", "child"] {
        assert_eq!(room(name).await.data.unwrap()["color"], "blue", "{name}");
    }
    running.stop().await;
}

#[tokio::test]
async fn a_forged_mark_costs_its_own_object_and_nothing_else() {
    let city = City::start().await;
    let office = city.open(&["a"], true).await;
    let running = city.spawn();
    running.settled().await;
    let own = city.world.cluster.namespace().to_owned();
    let kind = "Office.graph.example.dev";
    let rooms = city.rooms();
    let uid = office.uid();
    // One part is wrong in each: the uid, the kind, the key, and the label beside the annotation.
    let wrong = [
        forged("uid", kind, (&own, "main"), "u-9"),
        forged("kind", "Shop.graph.example.dev", (&own, "main"), uid),
        forged("key", kind, (&own, "other"), uid),
        forged("place", kind, (&city.place, "main"), uid),
    ];
    for room in &wrong {
        rooms.create(room).await.unwrap();
    }
    let mut label = forged("label", kind, (&own, "main"), uid);
    label.metadata.labels.as_mut().unwrap().insert(OWNER_UID.to_owned(), "u-9".to_owned());
    rooms.create(&label).await.unwrap();
    // Another owner controls it by a reference, which goes before a mark. It exists: garbage
    // collection deletes what refers to nothing.
    let mut child = forged("child", kind, (&own, "main"), uid);
    let owner = rooms.create(&map("owner".to_owned())).await.unwrap();
    let reference = json!([{ "apiVersion": "v1", "kind": "ConfigMap", "name": "owner",
        "uid": owner.uid(), "controller": true }]);
    child.metadata.owner_references = serde_json::from_value(reference).unwrap();
    rooms.create(&child).await.unwrap();
    // A whole mark is as good as the writer's own deletion.
    rooms.create(&forged("whole", kind, (&own, "main"), uid)).await.unwrap();
    city.world
        .eventually("the whole one is deleted", async || {
            rooms.get_opt("whole").await.unwrap().is_none()
        })
        .await;
    running.settled().await;
    for name in ["uid", "kind", "key", "place", "label", "child", "a"] {
        assert!(rooms.get_opt(name).await.unwrap().is_some(), "{name}");
    }
    running.stop().await;
}

#[tokio::test]
async fn a_plan_names_what_is_made_and_deleted_elsewhere() {
    let city = City::start().await;
    let office = city.open(&["a", "b"], true).await;
    let running = city.spawn();
    running.settled().await;
    running.stop().await;
    city.change(json!({ "rooms": ["b", "c"], "ranked": false })).await;
    let namespaces = [city.world.cluster.namespace().to_owned(), city.place.clone()];
    let manager = offices(city.world.cluster.client().dry_run()).namespaces(namespaces);
    let plan = manager.plan(PlanOptions::default()).await.unwrap();
    let changes = plan.objects.iter().flat_map(|object| &object.changes);
    let changes = changes
        .map(|change| format!("{} {} {}", change.action.as_str(), change.resource, change.key));
    let mut changes: Vec<String> = changes.filter(|text| !text.contains("office")).collect();
    changes.sort();
    let (place, rank) = (&city.place, office.rank());
    let expected = [
        format!("create configmaps {place}/c"),
        format!("delete configmaps {place}/a"),
        format!("delete priorityclasses.scheduling.k8s.io {rank}"),
    ];
    assert_eq!(changes, expected);
    assert_eq!(city.marked().await, ["a", "b"], "nothing is written");
    assert!(city.has_rank(&office).await);
}

#[tokio::test]
async fn a_crash_between_any_two_writes_leaves_neither_orphans_nor_duplicates_elsewhere() {
    for n in 0..9 {
        let city = City::start().await;
        let office = city.open(&["a", "b"], true).await;
        crash_at(&city.world, n, |client| Manager::new(client).controller(Offices)).await;
        city.change(json!({ "rooms": ["b", "c"] })).await;
        let running = city.spawn();
        running.settled().await;
        assert_eq!(city.marked().await, ["b", "c"], "write {n}");
        assert!(city.has_rank(&office).await, "write {n}");
        running.stop().await;

        city.world.api::<Office>().delete("main").await.unwrap();
        crash_at(&city.world, n, |client| Manager::new(client).controller(Offices)).await;
        let running = city.spawn();
        city.eventually("the office is gone", async || city.is_closed().await).await;
        assert!(city.marked().await.is_empty() && !city.has_rank(&office).await, "write {n}");
        running.stop().await;
        city.world.end();
    }
}

/// The next version of the operator, without ranks.
mod next {
    use super::*;

    #[derive(Dependents)]
    #[dependents(by = Offices, retired(PriorityClass))]
    pub(super) struct Places {
        #[dependent(scope = cluster)]
        rooms: Vec<ConfigMap>,
    }

    #[derive(Controller)]
    #[controller(for = Office, dependents(Places), name = "offices")]
    pub(super) struct Offices;

    impl DesiredPlaces for Offices {
        async fn rooms(&self, office: &Office, _: &Context<Self>) -> Result<Vec<ConfigMap>> {
            Ok(rooms(office))
        }
    }

    impl Reconciler for Offices {
        type Object = Office;

        async fn reconcile(&self, office: &Office, cx: &Context<Self>) -> Result {
            Places::apply(self, office, cx).await?.action()
        }
    }
}

#[tokio::test]
async fn marked_children_of_a_kind_that_a_new_version_lacks_are_deleted() {
    let city = City::start().await;
    let office = city.open(&["a"], true).await;
    let running = city.spawn();
    running.settled().await;
    running.stop().await;
    assert!(city.has_rank(&office).await);
    let manager = Manager::new(city.world.cluster.client()).controller(next::Offices);
    let running = city.world.cluster.spawn(manager);
    running.settled().await;
    assert!(!city.has_rank(&office).await);
    assert_eq!(city.marked().await, ["a"]);
    running.stop().await;
}

/// Graphs whose fields have another scope than their kinds.
mod misplaced {
    use super::*;

    /// A child that is cluster-scoped, without the key.
    #[derive(Dependents)]
    #[dependents(by = Plain)]
    pub(super) struct Ranks {
        rank: PriorityClass,
    }

    pub(super) struct Plain;

    impl DesiredRanks for Plain {
        async fn rank(&self, office: &Office, _: &Context<Self>) -> Result<PriorityClass> {
            Ok(object!(PriorityClass { metadata: { name: office.rank() }, value: 5 }))
        }
    }

    impl Reconciler for Plain {
        type Object = Office;

        async fn reconcile(&self, _: &Office, _: &Context<Self>) -> Result {
            Ok(Action::done())
        }
    }

    /// The key on a child of a cluster-scoped object.
    #[derive(Dependents)]
    #[dependents(by = Ranked)]
    pub(super) struct Rooms {
        #[dependent(scope = cluster)]
        room: ConfigMap,
    }

    pub(super) struct Ranked;

    impl DesiredRooms for Ranked {
        async fn room(&self, rank: &PriorityClass, _: &Context<Self>) -> Result<ConfigMap> {
            Ok(map(rank.name().to_owned()))
        }
    }

    impl Reconciler for Ranked {
        type Object = PriorityClass;

        async fn reconcile(&self, _: &PriorityClass, _: &Context<Self>) -> Result {
            Ok(Action::done())
        }
    }
}

#[test]
#[should_panic(expected = "write `#[dependent(scope = cluster)]` on it")]
fn a_cluster_scoped_child_of_a_namespaced_object_needs_the_key() {
    add::<misplaced::Ranks>(misplaced::Plain);
}

#[test]
#[should_panic(expected = "owns its children everywhere by reference: leave it out")]
fn a_child_of_a_cluster_scoped_object_has_no_such_key() {
    add::<misplaced::Rooms>(misplaced::Ranked);
}

/// The controller after the last field with the key has left its graph.
mod later {
    use super::*;

    #[derive(Dependents)]
    #[dependents(for = Office, by = Offices, retired(ConfigMap))]
    struct Places {
        sign: Secret,
    }

    #[derive(Controller)]
    #[controller(for = Office, dependents(Places), name = "offices")]
    pub(super) struct Offices;

    impl DesiredPlaces for Offices {
        async fn sign(&self, office: &Office, _: &Context<Self>) -> Result<Secret> {
            Ok(secret(office.name().to_owned()))
        }
    }
}

#[tokio::test]
async fn objects_go_after_the_last_field_with_the_key_has_left_their_graph() {
    let city = City::start().await;
    let offices = city.world.api::<Office>();
    city.open(&["a"], false).await;
    let running = city.spawn();
    running.settled().await;
    running.stop().await;
    // While no operator runs: the next version has to clean up, too.
    offices.delete("main").await.unwrap();
    let manager = Manager::new(city.world.cluster.client()).controller(later::Offices);
    let running = city.world.cluster.spawn(manager);
    city.eventually("the office is gone", async || city.is_closed().await).await;
    assert!(city.marked().await.is_empty());

    let spec = OfficeSpec { place: city.place.clone(), rooms: Vec::new(), ranked: false };
    let office = offices.create(&Office::new("main", spec)).await.unwrap();
    running.settled().await;
    assert!(!offices.get("main").await.unwrap().has_finalizer("windlass.dev/offices"));
    assert_eq!(city.world.owned::<Secret>().await, [office.name()]);
    running.stop().await;
}
