//! Promises about each object's reconciles, whatever changes meanwhile.

use std::collections::BTreeMap;

use super::*;

/// Takes a second for each object, and notes the state that was visible.
#[derive(Clone, Default)]
struct Patient(Arc<Mutex<Seen>>);

#[derive(Default)]
struct Seen {
    /// Names of the objects that are being reconciled.
    now: Vec<String>,
    at_once: usize,
    twice: Vec<String>,
    /// The last reconciled state of each object and of the child.
    last: BTreeMap<String, (Option<String>, bool)>,
    runs: usize,
}

impl Reconciler for Patient {
    type Object = Site;

    async fn reconcile(&self, site: &Site, cx: &Context<Self>) -> Result<Action> {
        let name = site.name().to_owned();
        let has_child = cx.store_of::<ConfigMap>().get(&site.key()).is_some();
        {
            let mut seen = self.0.lock();
            if seen.now.contains(&name) {
                seen.twice.push(name.clone());
            }
            seen.now.push(name.clone());
            seen.at_once = seen.at_once.max(seen.now.len());
            seen.runs += 1;
            seen.last.insert(name.clone(), (site.spec.config.clone(), has_child));
        }
        tokio::time::sleep(Duration::from_secs(1)).await;
        self.0.lock().now.retain(|other| *other != name);
        Ok(Action::done())
    }
}

impl Owns<ConfigMap> for Patient {}

#[tokio::test(start_paused = true)]
async fn k1_k2_an_object_has_one_reconcile_at_a_time_and_one_after_its_last_change() {
    let (world, patient) = (World::start().await, Patient::default());
    let builder = ControllerBuilder::<Patient>::new().owns::<ConfigMap>().workers(8);
    let running = world.run(builder.build(patient.clone())).await;
    let mut sites = Vec::new();
    for name in ["a", "b", "c"] {
        sites.push(world.create(name, "quiet").await);
    }
    for round in 0..25 {
        for site in &sites {
            let text = format!("{}-{round}", site.name());
            world.patch(site.name(), json!({ "spec": { "config": text } })).await;
        }
        tokio::time::sleep(Duration::from_millis(130)).await;
    }
    // The last change is a change of a child, while the owner's reconcile runs.
    let info = ResourceInfo::of::<Site>();
    for site in &sites {
        let mut child = child(site.name(), "-");
        let owner = site.controller_reference(&info).expect("a uid");
        child.metadata.owner_references = Some(vec![owner]);
        world.maps().create(&child).await.expect("created");
    }
    running.settled().await;
    assert!(running.stop().await);
    let seen = patient.0.lock();
    assert_eq!(seen.twice, [""; 0], "at once for the same object");
    assert!(seen.at_once > 1, "others went on beside it");
    assert!(seen.runs < 3 * 25, "what came during a reconcile was one turn: {}", seen.runs);
    for site in &sites {
        let last = (Some(format!("{}-24", site.name())), true);
        assert_eq!(seen.last[site.name()], last, "the last reconcile saw the last state");
    }
}

/// Takes two seconds per host, and panics at a certain host.
#[derive(Clone, Default)]
struct Looking(Arc<Mutex<Vec<String>>>);

impl Reconciler for Looking {
    type Object = Site;

    async fn reconcile(&self, site: &Site, _: &Context<Self>) -> Result<Action> {
        self.0.lock().push(format!("{} {}", site.name(), site.spec.host));
        tokio::time::sleep(Duration::from_secs(2)).await;
        assert_ne!(site.spec.host, "panics", "on purpose");
        Ok(Action::done())
    }
}

/// The queue holds keys, not objects: the object is looked up when the key is taken.
#[tokio::test(start_paused = true)]
async fn mechanism_67_a_key_shows_its_newest_object_when_its_turn_comes_and_none_if_it_is_gone() {
    let (world, looking) = (World::start().await, Looking::default());
    let running = world.run(ControllerBuilder::new().workers(1).build(looking.clone())).await;
    world.create("busy", "1").await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    // The only worker is busy.
    for name in ["changed", "gone"] {
        world.create(name, "old").await;
    }
    world.patch("changed", json!({ "spec": { "host": "new" } })).await;
    world.sites().delete("gone").await.expect("deleted");
    running.settled().await;
    assert_eq!(std::mem::take(&mut *looking.0.lock()), ["busy 1", "changed new"]);
    let state = running.handle.state();
    assert_eq!((state.queued, state.working, state.backing_off, state.delayed), (0, 0, 0, 0));
    world.create("gone", "again").await;
    running.settled().await;
    assert_eq!(*looking.0.lock(), ["gone again"], "its key was done with");
    assert!(running.stop().await);
}

/// client-go defers `Done`: a key whose work panicked can be taken again.
#[tokio::test(start_paused = true)]
async fn mechanism_67_the_key_of_a_reconcile_that_panicked_is_done_with_and_tried_again() {
    let (world, looking) = (World::start().await, Looking::default());
    let running = world.run(ControllerBuilder::new().workers(1).build(looking.clone())).await;
    world.create("home", "panics").await;
    tokio::time::sleep(Duration::from_secs(3)).await;
    world.create("next", "1").await;
    world.patch("home", json!({ "spec": { "host": "well" } })).await;
    running.settled().await;
    let seen = looking.0.lock().clone();
    assert_eq!(seen[0], "home panics");
    assert!(
        seen.contains(&"home well".to_owned()) && seen.contains(&"next 1".to_owned()),
        "{seen:?}"
    );
    assert_eq!(seen.last().map(String::as_str).filter(|last| last.contains("panics")), None);
    assert!(running.stop().await);
}
