//! Reads of cluster-scoped kinds, of other namespaces, and of parts of objects.

use super::*;

/// Reads by a cluster-scoped object.
#[derive(Clone, Default)]
struct Spaces(Arc<Mutex<Vec<String>>>);

impl Can<verbs::List, ConfigMap> for Spaces {}
impl Can<verbs::Watch, ConfigMap> for Spaces {}

impl Reconciler for Spaces {
    type Object = Namespace;

    async fn reconcile(&self, namespace: &Namespace, cx: &Context<Self>) -> Result {
        if namespace.name() != "shop" {
            return Ok(Action::done());
        }
        let near = cx.watch::<ConfigMap>("app").await.expect_err("it has no namespace");
        assert_eq!(near.kind(), windlass_core::error::ErrorKind::Usage);
        let far = cx.watch::<ConfigMap>("app").in_namespace("shop").await?;
        self.0.lock().push(format!("{near}; {}", far.is_some()));
        Ok(Action::done())
    }
}

#[tokio::test(start_paused = true)]
async fn a_cluster_scoped_object_names_the_namespace_of_its_reads() {
    let (world, spaces) = (World::start().await, Spaces::default());
    let handle = ControllerBuilder::<Spaces>::new().build(spaces.clone());
    let running = world.run(handle).await;
    world.maps().create(&child("app", "x")).await.expect("created");
    running.settled().await;
    let noted = spaces.0.lock().clone();
    assert_eq!(noted.len(), 2, "{noted:?}");
    assert!(noted[0].contains("in_namespace") && noted[1].ends_with("true"), "{noted:?}");
}

#[tokio::test(start_paused = true)]
async fn cluster_scoped_kinds_and_other_namespaces_are_watched() {
    let (world, reader) = (World::start().await, Reader::default());
    let running = world.run(reader.controller()).await;
    world.reads("home", "namespace=far far=app map=app").await;
    running.settled().await;
    reader.noted();
    let far: Namespace =
        serde_json::from_value(json!({ "metadata": { "name": "far" } })).expect("a namespace");
    world.client.all().create(&far).await.expect("created");
    running.settled().await;
    let found = reader.noted();
    assert!(found[0].contains("[reads Namespace far] namespace=far:there"), "{found:?}");
    let maps = world.client.namespace::<ConfigMap>("far");
    maps.create(&child("app", "x")).await.expect("created");
    running.settled().await;
    let found = reader.noted();
    assert_eq!(
        found.last().map(|last| last.ends_with("far=app:x map=app:none")),
        Some(true),
        "{found:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn a_namespace_that_the_operator_does_not_read_is_refused() {
    let (world, reader) = (World::start().await, Reader::default());
    let informers = InformerRegistry::new(world.client.clone(), vec!["shop".into()]);
    let running = world.start_with(reader.controller(), informers).await;
    world.create("home", "far=app").await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    let error = running.handle.dump(10)["lastErrors"][0]["error"].to_string();
    assert!(error.contains("far/app") && error.contains("namespaces of the manager"), "{error}");
    world.sites().delete("home").await.expect("deleted");
    running.settled().await;
}

#[tokio::test(start_paused = true)]
async fn a_projection_is_watched_and_found_by_a_field_that_it_lacks() {
    let (world, reader) = (World::start().await, Reader::default());
    let running = world.run(reader.controller()).await;
    // The first read declares the index before the first list, which is the last time to do so.
    world.reads("team", "team-of-part=red").await;
    running.settled().await;
    world.reads("home", "part=app").await;
    running.settled().await;
    reader.noted();
    world.put("app", json!({ "host": "b", "team": "red" })).await;
    running.settled().await;
    let noted = reader.noted();
    let because = "[reads ConfigMap shop/app]";
    assert!(noted.contains(&format!("home {because} part=app:b")), "{noted:?}");
    assert!(noted.contains(&format!("team {because} team-of-part=red:app")), "{noted:?}");
    world.put("app", json!({ "team": "blue" })).await;
    running.settled().await;
    let noted = reader.noted();
    assert!(noted.contains(&format!("team {because} team-of-part=red:none")), "{noted:?}");
}

#[tokio::test(start_paused = true)]
async fn a_cache_of_metadata_is_watched_by_name_and_refuses_an_index_on_another_field() {
    let (world, reader) = (World::start().await, Reader::default());
    let informers = InformerRegistry::new(world.client.clone(), vec![]);
    let options = CacheOptions::default().representation(Representation::Metadata);
    informers.set_options(ResourceInfo::of::<ConfigMap>(), options).expect("not in use");
    let running = world.start_with(reader.controller(), informers).await;
    world.reads("home", "map=app").await;
    running.settled().await;
    world.put("app", json!({ "host": "b" })).await;
    running.settled().await;
    let noted = reader.noted();
    assert_eq!(noted[0], "home [changed] map=app:none");
    assert_eq!(
        noted.last().map(String::as_str),
        Some("home [reads ConfigMap shop/app] map=app:none")
    );
    world.create("team", "team=red").await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    let error = running.handle.dump(10)["lastErrors"][0]["error"].to_string();
    assert!(error.contains("only the metadata"), "{error}");
    world.sites().delete("team").await.expect("deleted");
    running.settled().await;
}
