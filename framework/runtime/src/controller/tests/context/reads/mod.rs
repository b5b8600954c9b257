//! Reads that become watches: the readers of an object run again when the object appears, changes
//! or disappears, and no other objects do.

use k8s_openapi::api::core::v1::Namespace;

use super::*;
use windlass_cache::store::Cached;
use windlass_core::rbac::{Can, verbs};
use windlass_core::resource::Resource;

mod cost;
mod ends;
mod kinds;
mod labels;
mod own_kind;
mod races;
mod unfilled;

const TEAM: Index<ConfigMap, String> = Index::on_path("team", &["data", "team"]);
const TEAM_OF: Index<ConfigMap, String> = Index::new("team", |map| {
    map.data.iter().filter_map(|data| data.get("team").cloned()).collect()
});

/// Reads what the host says, word by word, and notes the reasons and the values that it found.
#[derive(Clone, Default)]
struct Reader(Arc<Mutex<Vec<String>>>);

impl Can<verbs::List, ConfigMap> for Reader {}
impl Can<verbs::Watch, ConfigMap> for Reader {}
impl Can<verbs::Create, ConfigMap> for Reader {}
impl Can<verbs::List, Namespace> for Reader {}
impl Can<verbs::Watch, Namespace> for Reader {}
impl Can<verbs::List, Late> for Reader {}
impl Can<verbs::Watch, Late> for Reader {}
impl Can<verbs::List, Part> for Reader {}
impl Can<verbs::Watch, Part> for Reader {}

/// A kind that the server may not serve.
#[derive(CustomResource, Clone, Debug)]
#[resource(group = "example.dev", version = "v1", namespaced)]
struct Late {
    metadata: ObjectMeta,
    spec: SiteSpec,
}

/// A part of a config map, without the field of the index.
#[derive(crate::Projection, Clone, Debug)]
#[projection(of = ConfigMap)]
struct Part {
    metadata: ObjectMeta,
    #[projection(path = "data.host")]
    host: Option<String>,
}

/// An index on a field that the part lacks.
const TEAM_OF_PART: Index<Part, String> = Index::on_path("team", &["data", "team"]);

impl Reader {
    /// Returns the notes since the last call.
    fn noted(&self) -> Vec<String> {
        std::mem::take(&mut *self.0.lock())
    }

    fn controller(&self) -> Arc<dyn ErasedController> {
        ControllerBuilder::<Self>::new().build(self.clone())
    }

    async fn word(word: &str, cx: &Context<Self>) -> Result<String> {
        let (what, name) = word.split_once('=').unwrap_or((word, ""));
        let host = |map: Cached<ConfigMap>| {
            map.get().ok().and_then(|map| map.data.as_ref()?.get("host").cloned())
        };
        let names = |found: Vec<ObjectKey>| {
            let names = found.iter().map(|key| key.name().to_owned());
            Some(names.collect::<Vec<_>>().join("+")).filter(|names| !names.is_empty())
        };
        let found = match what {
            "map" => cx.watch::<ConfigMap>(name).await?.and_then(host),
            "far" => cx.watch::<ConfigMap>(name).in_namespace("far").await?.and_then(host),
            "namespace" => cx.watch::<Namespace>(name).await?.map(|_| "there".to_owned()),
            "late" => cx.watch::<Late>(name).await?.map(|_| "there".to_owned()),
            "part" => cx.watch::<Part>(name).await?.and_then(|part| part.get().ok()?.host.clone()),
            "team" => names(keys(&cx.watch_by(TEAM, name).await?)),
            "team-of" => names(keys(&cx.watch_by(TEAM_OF, name).await?)),
            "team-of-part" => {
                let parts = cx.watch_by(TEAM_OF_PART, name).await?;
                parts.first().map(|part| part.key().name().to_owned())
            }
            "many" => {
                for number in 0..name.parse().map_err(|_| "no number")? {
                    cx.watch::<ConfigMap>(&format!("map-{number}")).await?;
                }
                None
            }
            "create" => {
                cx.create(&child(name, "ours")).await.ok();
                None
            }
            "fail" => return Err(Failure::terminal("on purpose")),
            _ => names(labels::read(what, name, cx).await?),
        };
        Ok(format!("{word}:{}", found.as_deref().unwrap_or("none")))
    }
}

impl Reconciler for Reader {
    type Object = Site;

    async fn reconcile(&self, site: &Site, cx: &Context<Self>) -> Result {
        let mut note = format!("{} [{}]", site.name(), cx.reasons());
        for word in site.spec.host.split(' ') {
            match Self::word(word, cx).await {
                Ok(found) => note.push_str(&format!(" {found}")),
                Err(failure) => {
                    self.0.lock().push(format!("{note} {word} failed"));
                    return Err(failure);
                }
            }
        }
        self.0.lock().push(note);
        Ok(Action::done())
    }
}

impl Finalize for Reader {
    async fn cleanup(&self, _: &Site, _: &Context<Self>) -> Result<()> {
        Ok(())
    }
}

impl World {
    async fn put(&self, name: &str, data: Value) {
        let patch = Patch::Merge(json!({ "data": data }));
        if self.maps().get_opt(name).await.expect("an answer").is_none() {
            self.maps().create(&child(name, "first")).await.expect("created");
        }
        self.maps().patch(name, patch).await.expect("patched");
    }

    async fn reads(&self, name: &str, host: &str) {
        if self.sites().get_opt(name).await.expect("an answer").is_none() {
            self.create(name, host).await;
        } else {
            self.patch(name, json!({ "spec": { "host": host } })).await;
        }
    }
}

/// Returns the keys of objects.
fn keys<K: Resource>(found: &[Cached<K>]) -> Vec<ObjectKey> {
    found.iter().map(|object| object.key().clone()).collect()
}

/// Returns the names of the caches that run.
fn caches(running: &Running) -> Vec<String> {
    running.informers.status().into_iter().map(|status| status.name).collect()
}

#[tokio::test(start_paused = true)]
async fn appearance_change_and_disappearance_of_a_read_object_wake_its_reader() {
    let (world, reader) = (World::start().await, Reader::default());
    let running = world.run(reader.controller()).await;
    world.reads("home", "map=app").await;
    running.settled().await;
    assert_eq!(reader.noted(), ["home [changed] map=app:none"]);
    world.maps().create(&child("app", "a")).await.expect("created");
    running.settled().await;
    assert_eq!(reader.noted(), ["home [reads ConfigMap shop/app] map=app:a"]);
    world.put("app", json!({ "host": "b" })).await;
    running.settled().await;
    assert_eq!(reader.noted(), ["home [reads ConfigMap shop/app] map=app:b"]);
    world.maps().delete("app").await.expect("deleted");
    running.settled().await;
    assert_eq!(reader.noted(), ["home [reads ConfigMap shop/app] map=app:none"]);
    assert_eq!(world.counted(&names::READ_WAKES), 3);
}

#[tokio::test(start_paused = true)]
async fn nobody_but_the_readers_of_an_object_is_woken() {
    let (world, reader) = (World::start().await, Reader::default());
    let running = world.run(reader.controller()).await;
    for (site, words) in [("a", "map=app"), ("b", "map=other"), ("c", "map=app"), ("d", "-")] {
        world.reads(site, words).await;
    }
    running.settled().await;
    reader.noted();
    world.put("unread", json!({})).await;
    running.settled().await;
    assert!(reader.noted().is_empty());
    world.maps().create(&child("app", "x")).await.expect("created");
    running.settled().await;
    let reason = "[reads ConfigMap shop/app] map=app:x";
    assert_eq!(reader.noted(), [format!("a {reason}"), format!("c {reason}")]);
}

#[tokio::test(start_paused = true)]
async fn reads_of_a_success_replace_those_of_earlier_runs() {
    let (world, reader) = (World::start().await, Reader::default());
    let running = world.run(reader.controller()).await;
    world.reads("home", "map=old map=kept").await;
    running.settled().await;
    world.reads("home", "map=kept map=new").await;
    running.settled().await;
    reader.noted();
    world.put("old", json!({})).await;
    running.settled().await;
    assert!(reader.noted().is_empty(), "it is not read any more");
    for name in ["kept", "new"] {
        world.maps().create(&child(name, "x")).await.expect("created");
        running.settled().await;
        assert_eq!(reader.noted().len(), 1, "{name}");
    }
    let page = running.handle.dump(10);
    assert_eq!(page["reads"], json!({ "readers": 1, "reads": 2 }));
}

#[tokio::test(start_paused = true)]
async fn a_failed_run_keeps_the_reads_of_both_until_the_next_success() {
    let (world, reader) = (World::start().await, Reader::default());
    let running = world.run(reader.controller()).await;
    world.reads("home", "map=old").await;
    running.settled().await;
    world.reads("home", "map=new fail").await;
    running.settled().await;
    reader.noted();
    for name in ["old", "new"] {
        world.maps().create(&child(name, "x")).await.expect("created");
        running.settled().await;
        let noted = reader.noted();
        assert_eq!(noted.len(), 1, "{name}: {noted:?}");
        assert!(noted[0].starts_with(&format!("home [reads ConfigMap shop/{name}]")), "{noted:?}");
    }
    world.reads("home", "map=new").await;
    running.settled().await;
    reader.noted();
    world.maps().delete("old").await.expect("deleted");
    running.settled().await;
    assert!(reader.noted().is_empty());
}

#[tokio::test(start_paused = true)]
async fn old_and_new_value_of_an_index_wake_and_no_other_value_does() {
    let (world, reader) = (World::start().await, Reader::default());
    let running = world.run(reader.controller()).await;
    for (site, words) in [("a", "team=red"), ("b", "team-of=blue"), ("c", "team=green")] {
        world.reads(site, words).await;
    }
    running.settled().await;
    reader.noted();
    let because = "[reads ConfigMap shop/app]";
    world.put("app", json!({ "team": "red" })).await;
    running.settled().await;
    assert_eq!(reader.noted(), [format!("a {because} team=red:app")]);
    world.put("app", json!({ "team": "blue" })).await;
    running.settled().await;
    let both = [format!("a {because} team=red:none"), format!("b {because} team-of=blue:app")];
    assert_eq!(reader.noted(), both);
    world.put("app", json!({ "host": "another field" })).await;
    running.settled().await;
    assert_eq!(reader.noted(), [format!("b {because} team-of=blue:app")]);
    world.maps().delete("app").await.expect("deleted");
    running.settled().await;
    assert_eq!(reader.noted(), [format!("b {because} team-of=blue:none")]);
}

#[tokio::test(start_paused = true)]
async fn an_own_write_that_was_read_does_not_wake_its_writer() {
    let (world, reader) = (World::start().await, Reader::default());
    let running = world.run(reader.controller()).await;
    world.reads("home", "map=app create=app map=app").await;
    running.settled().await;
    let first = reader.noted();
    assert_eq!(first.len(), 2, "both states were read in the first run: {first:?}");
    assert_eq!(
        first[1],
        "home [reads ConfigMap shop/app] map=app:ours create=app:none map=app:ours"
    );
    world.reads("other", "create=two map=two").await;
    running.settled().await;
    assert_eq!(reader.noted(), ["other [changed] create=two:none map=two:ours"]);
}

#[tokio::test(start_paused = true)]
async fn an_object_with_too_many_reads_is_woken_by_every_change_of_the_kind() {
    let (captured, _logging) = Captured::at(tracing::Level::WARN);
    let (world, reader) = (World::start().await, Reader::default());
    let running = world.run(reader.controller()).await;
    world.reads("home", "many=1001").await;
    running.settled().await;
    assert_eq!(world.counted(&names::READS_WIDENED), 1);
    assert_eq!(captured.with("too many reads").len(), 1, "{}", captured.text());
    reader.noted();
    world.maps().create(&child("unread", "x")).await.expect("created");
    running.settled().await;
    assert_eq!(reader.noted(), ["home [reads ConfigMap shop/unread] many=1001:none"]);
    world.reads("home", "many=10").await;
    running.settled().await;
    reader.noted();
    world.maps().delete("unread").await.expect("deleted");
    running.settled().await;
    assert!(reader.noted().is_empty(), "few reads are exact again");
    assert_eq!(world.counted(&names::READS_WIDENED), 1);
}
