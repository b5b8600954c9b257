//! Own writes are shown whole in caches that keep a part of each object.

use super::*;
use windlass_cache::informer::CacheOptions;
use windlass_cache::store::Representation;
use windlass_core::rbac::{Can, verbs};
use windlass_core::resource::Selector;

/// A config map without labels, and without the field of an index.
#[derive(crate::Projection, Clone, Debug)]
#[projection(of = ConfigMap, skip(labels))]
struct Bare {
    metadata: ObjectMeta,
    #[projection(path = "data.host")]
    host: Option<String>,
}

/// A part that does not decode for these objects.
#[derive(crate::Projection, Clone, Debug)]
#[projection(of = ConfigMap)]
struct Needy {
    metadata: ObjectMeta,
    #[projection(path = "data.needed")]
    needed: String,
}

const ZONE: Index<Bare, String> = Index::on_path("zone", &["data", "zone"]);

/// Takes an action per reconcile of `one`, by number, and notes the content of the caches.
#[derive(Clone, Default)]
struct Zoned {
    turns: Arc<Mutex<Vec<String>>>,
    script: Arc<Vec<&'static str>>,
}

impl Can<verbs::Create, ConfigMap> for Zoned {}
impl Can<verbs::Delete, ConfigMap> for Zoned {}
impl Can<verbs::Patch, ConfigMap> for Zoned {}
impl Can<verbs::Patch, Bare> for Zoned {}
impl Can<verbs::Patch, Needy> for Zoned {}
impl Can<verbs::List, ConfigMap> for Zoned {}
impl Can<verbs::Watch, ConfigMap> for Zoned {}

fn map(name: &str, zone: &str, team: &str) -> ConfigMap {
    let mut map = child(name, "a");
    map.data.get_or_insert_default().insert("zone".into(), zone.into());
    map.metadata.labels = Some([("team".to_owned(), team.to_owned())].into());
    map
}

impl Reconciler for Zoned {
    type Object = Bare;

    async fn reconcile(&self, bare: &Bare, cx: &Context<Self>) -> Result {
        if bare.name() != "one" {
            return Ok(Action::done());
        }
        let (parts, wholes) = (cx.store(), cx.watched::<ConfigMap>());
        let mut seen = Vec::new();
        for zone in ["z1", "z2"] {
            let found = parts.by_index(ZONE, zone);
            seen.extend(found.iter().map(|one| format!("{zone}:{}", one.key().name())));
        }
        for team in ["red", "blue"] {
            let selector = Selector::everything().equals("team", team);
            let found = parts.select(None, &selector);
            seen.extend(found.iter().map(|one| format!("{team}:{}", one.key().name())));
            let found = wholes.select(None, &selector);
            seen.extend(found.iter().map(|one| format!("whole {team}:{}", one.key().name())));
        }
        let turn = {
            let mut turns = self.turns.lock();
            turns.push(seen.join(" "));
            turns.len() - 1
        };
        let patch = |labels: Value, zone: &str| {
            Patch::Merge(json!({ "metadata": { "labels": labels }, "data": { "zone": zone } }))
        };
        match self.script.get(turn).copied().unwrap_or_default() {
            "create" => drop(cx.create(&map("two", "z2", "blue")).await?),
            "whole" => {
                drop(cx.patch::<ConfigMap>("one", patch(json!({ "team": null }), "z2")).await?);
            }
            "part" => drop(cx.patch::<Bare>("one", patch(json!({ "team": "blue" }), "z2")).await?),
            "wait" => {}
            "delete" => cx.delete::<ConfigMap>("two").await?,
            "unreadable" => {
                let patched = cx.patch::<Needy>("one", patch(json!({ "team": "blue" }), "z2"));
                patched.await.expect_err("it was executed, and has no such field");
            }
            _ => return Ok(Action::done()),
        }
        Ok(Action::requeue_after(Duration::from_millis(50)))
    }
}

/// Returns the notes before and after each of these actions, without a watch.
async fn run(script: &[&'static str]) -> Vec<String> {
    let world = World::start().await;
    world.maps().create(&map("one", "z1", "red")).await.expect("created");
    let zoned = Zoned { script: Arc::new(script.to_vec()), ..Zoned::default() };
    let builder =
        ControllerBuilder::<Zoned>::new().watches::<ConfigMap>(|_| Vec::new()).index(ZONE);
    let running = world.start_only(builder.build(zoned.clone())).await;
    world.server.faults().pause_watches("configmaps");
    tokio::time::sleep(Duration::from_secs(1)).await;
    let turns = zoned.turns.lock().clone();
    running.stop().await;
    turns
}

const BEFORE: &str = "z1:one red:one whole red:one";

#[tokio::test(start_paused = true)]
async fn g_c8_a_created_object_is_found_by_an_index_on_fields_that_a_projection_lacks() {
    let turns = run(&["create"]).await;
    assert_eq!(turns, [BEFORE, "z1:one z2:two red:one whole red:one blue:two whole blue:two"]);
}

#[tokio::test(start_paused = true)]
async fn g_c8_a_label_that_was_removed_is_gone_from_a_cache_whose_projection_skips_it() {
    assert_eq!(run(&["whole"]).await, [BEFORE, "z2:one"]);
}

#[tokio::test(start_paused = true)]
async fn g_c8_fields_that_a_projection_skips_are_those_of_the_answer_to_a_write_through_it() {
    assert_eq!(run(&["part"]).await, [BEFORE, "z2:one blue:one whole blue:one"]);
}

#[tokio::test(start_paused = true)]
async fn g_c8_a_write_whose_answer_does_not_decode_is_shown_all_the_same() {
    assert_eq!(run(&["unreadable"]).await, [BEFORE, "z2:one blue:one whole blue:one"]);
}

#[tokio::test(start_paused = true)]
async fn g_c8_a_cache_of_other_options_is_shown_own_writes_and_deletions() {
    let world = World::start().await;
    world.maps().create(&map("one", "z1", "red")).await.expect("created");
    let script = vec!["wait", "create", "wait", "wait", "delete"];
    let zoned = Zoned { script: Arc::new(script), ..Zoned::default() };
    let builder =
        ControllerBuilder::<Zoned>::new().watches::<ConfigMap>(|_| Vec::new()).index(ZONE);
    let running = world.start_only(builder.build(zoned)).await;
    let options = CacheOptions::default().representation(Representation::Metadata);
    let beside = running.informers.informer_with::<ConfigMap>(options);
    beside.synced().await.expect("it runs");
    world.server.faults().pause_watches("configmaps");
    let (key, mut seen) = (ObjectKey::new(Some("shop"), "two"), Vec::new());
    for _ in 0..100 {
        tokio::time::sleep(Duration::from_millis(10)).await;
        let is_there = beside.store().get(&key).is_some();
        if seen.last() != Some(&is_there) {
            seen.push(is_there);
        }
    }
    assert_eq!(seen, [false, true, false]);
    running.stop().await;
}
