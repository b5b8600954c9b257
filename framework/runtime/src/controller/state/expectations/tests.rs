use k8s_openapi::api::core::v1::{ConfigMap, Secret};

use super::*;
use windlass_cache::informer::CacheOptions;
use windlass_client::client::{Client, ClientConfig};

const PARENT_UID: &str = "uid-of-home";

fn key() -> ObjectKey {
    ObjectKey::new(Some("shop"), "home")
}

fn child(name: &str) -> ObjectKey {
    ObjectKey::new(Some("shop"), name)
}

fn kind() -> WrittenKind {
    WrittenKind::of::<ConfigMap>().expect("a static kind")
}

fn info() -> ResourceInfo {
    ResourceInfo::of::<ConfigMap>()
}

/// Expectations, caches without objects, and the time.
struct World {
    expectations: ExpectationTracker,
    informers: InformerRegistry,
    parent: ObjectKey,
}

impl World {
    fn new() -> Self {
        let config = ClientConfig::new("http://127.0.0.1:1").expect("an address");
        let client = Client::builder().config(config).build().expect("a client");
        Self {
            expectations: ExpectationTracker::default(),
            informers: InformerRegistry::new(client, vec![]),
            parent: key(),
        }
    }

    fn parent_ref(&self) -> ParentRef<'_> {
        ParentRef { key: &self.parent, uid: PARENT_UID }
    }

    fn creating(&self) -> PendingCreate<'_> {
        self.expectations.creating(self.parent_ref(), kind(), Instant::now())
    }

    fn created(&self) -> usize {
        self.expectations.pending(&key(), &self.informers, Instant::now()).created
    }

    fn begin(&self) {
        self.expectations.begin(self.parent_ref(), &self.informers, Instant::now());
    }

    fn open(&self) -> usize {
        self.expectations.open.load(Ordering::SeqCst)
    }
}

#[tokio::test(start_paused = true)]
async fn a_creation_without_an_answer_is_missing_until_a_child_appears() {
    let world = World::new();
    drop(world.creating());
    assert_eq!(world.created(), 1);
    world.expectations.observe_new(&key(), &ResourceInfo::of::<Secret>(), "a");
    world.expectations.observe_new(&child("another"), &info(), "a");
    assert_eq!(world.created(), 1, "another kind, another parent");
    world.expectations.observe_new(&key(), &info(), "a");
    assert_eq!((world.created(), world.open()), (0, 0));
}

#[tokio::test(start_paused = true)]
async fn a_refused_creation_and_one_that_appeared_before_its_answer_are_not_missing() {
    let world = World::new();
    world.creating().refused();
    assert_eq!(world.created(), 0);
    let create = world.creating();
    world.expectations.observe_new(&key(), &info(), "a");
    create.succeeded(&child("web-1"), "a", Instant::now());
    assert_eq!((world.created(), world.open()), (0, 0));
    assert!(world.expectations.parents.of(&key()).lock()[&key()].kinds[0].sent.is_empty());
}

#[tokio::test(start_paused = true)]
async fn one_child_does_not_stand_for_another_whose_answer_was_lost() {
    let world = World::new();
    let answered = world.creating();
    drop(world.creating());
    world.expectations.observe_new(&key(), &info(), "a");
    answered.succeeded(&child("web-1"), "a", Instant::now());
    assert_eq!(world.created(), 1, "the one that appeared is the one that was answered");
    world.expectations.observe_new(&key(), &info(), "b");
    assert_eq!(world.created(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_child_that_was_answered_before_does_not_stand_for_one_whose_answer_was_lost() {
    let world = World::new();
    world.creating().succeeded(&child("web-1"), "a", Instant::now());
    // The cache may show the child before the child's event is delivered.
    world.begin();
    drop(world.creating());
    world.expectations.observe_new(&key(), &info(), "a");
    assert_eq!(world.created(), 1);
    world.expectations.observe_new(&key(), &info(), "b");
    assert_eq!(world.created(), 0);
}

#[tokio::test(start_paused = true)]
async fn announced_children_are_counted_down_and_may_be_withdrawn() {
    let world = World::new();
    world.expectations.announce(world.parent_ref(), kind(), 3, Instant::now());
    world.expectations.observe_new(&key(), &info(), "a");
    // Delivered twice, by a list and by a watch.
    world.expectations.observe_new(&key(), &info(), "a");
    assert_eq!(world.created(), 2);
    world.expectations.announce(world.parent_ref(), kind(), -1, Instant::now());
    assert_eq!(world.created(), 1);
    world.expectations.observe_new(&key(), &info(), "b");
    assert_eq!((world.created(), world.open()), (0, 0));
}

#[tokio::test(start_paused = true)]
async fn a_child_that_never_appears_is_expected_for_five_minutes() {
    let world = World::new();
    drop(world.creating());
    tokio::time::advance(EXPECTATION_TIMEOUT - Duration::from_secs(1)).await;
    world.begin();
    let pending = world.expectations.pending(&key(), &world.informers, Instant::now());
    assert_eq!((pending.created, pending.expires_in), (1, Some(Duration::from_secs(1))));
    tokio::time::advance(Duration::from_secs(1)).await;
    assert_eq!(world.created(), 0);
    world.begin();
    assert!(world.expectations.parents.is_empty(), "and costs nothing any more");
    assert_eq!(world.open(), 0);
}

#[tokio::test(start_paused = true)]
async fn all_is_forgotten_with_the_parent_and_when_another_takes_its_name() {
    let world = World::new();
    drop(world.creating());
    world.expectations.forget(&key());
    assert_eq!((world.created(), world.open()), (0, 0));
    drop(world.creating());
    let parent = key();
    let other = ParentRef { key: &parent, uid: "another" };
    world.expectations.begin(other, &world.informers, Instant::now());
    assert_eq!((world.created(), world.open()), (0, 0));
    drop(world.creating());
    drop(world.expectations.creating(other, kind(), Instant::now()));
    assert_eq!((world.created(), world.open()), (1, 1));
}

#[tokio::test(start_paused = true)]
async fn writes_are_bounded_and_forgotten_when_no_cache_lacks_them() {
    let world = World::new();
    for n in 0..=MAX_WRITES {
        let key = child(&format!("web-{n}"));
        world.expectations.sent(
            world.parent_ref(),
            kind(),
            (WriteEffect::Created, &key, "u"),
            Instant::now(),
        );
    }
    assert_eq!(
        world.expectations.parents.of(&key()).lock()[&key()].kinds[0].sent.len(),
        MAX_WRITES
    );
    // The kind has no cache.
    world.begin();
    tokio::time::advance(CONFIRMED_RETENTION).await;
    world.begin();
    assert!(world.expectations.parents.is_empty());
}

/// A limited cache shows no own writes: only the watch can confirm them.
async fn limited(options: CacheOptions) -> (World, Informer<ConfigMap>) {
    let world = World::new();
    world.informers.set_options(info(), options).expect("not used before");
    let cache = world.informers.informer::<ConfigMap>();
    (world, cache)
}

fn created_in(world: &World, namespace: &str) {
    let key = ObjectKey::new(Some(namespace), "web");
    world.expectations.sent(
        world.parent_ref(),
        kind(),
        (WriteEffect::Created, &key, "u"),
        Instant::now(),
    );
}

fn selected() -> CacheOptions {
    CacheOptions::default().labels("a=b")
}

#[tokio::test(start_paused = true)]
async fn a_child_that_a_limited_cache_never_shows_is_forgotten_in_time() {
    let (world, _cache) = limited(selected()).await;
    created_in(&world, "shop");
    world.begin();
    assert_eq!(world.created(), 1);
    tokio::time::advance(EXPECTATION_TIMEOUT).await;
    assert_eq!(world.created(), 0);
    world.begin();
    assert!(world.expectations.parents.is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_child_that_came_and_went_during_one_reconcile_is_not_missing() {
    for is_gone in [false, true] {
        let (world, _cache) = limited(selected()).await;
        created_in(&world, "shop");
        let web = child("web");
        let observe = |uid| {
            world.expectations.observe(&key(), &info(), ObservedChild { key: &web, uid, is_gone })
        };
        observe("another");
        assert_eq!(world.created(), 1);
        observe("u");
        assert_eq!(world.created(), 0);
    }
}

#[tokio::test(start_paused = true)]
async fn a_child_in_a_namespace_that_no_cache_reads_is_not_waited_for() {
    let (world, _cache) = limited(CacheOptions::default().namespaces(["shop"])).await;
    created_in(&world, "elsewhere");
    assert_eq!(world.created(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_change_of_a_child_that_was_seen_does_not_make_it_a_creation_again() {
    let world = World::new();
    let sent = |what| {
        let change = (what, &child("kid"), "uid-of-kid");
        world.expectations.sent(world.parent_ref(), kind(), change, Instant::now());
    };
    let what = || {
        let parents = world.expectations.parents.of(&key()).lock();
        parents
            .get(&key())
            .and_then(|parent| Some(parent.kinds.first()?.sent.first_key_value()?.1.effect))
    };
    sent(WriteEffect::Created);
    sent(WriteEffect::Changed);
    assert_eq!(what(), Some(WriteEffect::Created), "no cache has shown it yet");
    // The caches show the child, by an event that came before the answer to the create.
    world.begin();
    sent(WriteEffect::Changed);
    assert_eq!(what(), Some(WriteEffect::Changed));
    // The child's event may still come, and must not be taken for another child's.
    tokio::time::advance(Duration::from_secs(5)).await;
    world.begin();
    assert_eq!(what(), Some(WriteEffect::Changed));
    tokio::time::advance(Duration::from_secs(5)).await;
    world.begin();
    assert_eq!(what(), None);
}
