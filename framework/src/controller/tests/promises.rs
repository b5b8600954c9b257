//! What is promised of each object's reconciles, whatever comes in meanwhile.

use std::collections::BTreeMap;

use super::*;

/// Takes a second for each object, and notes what it saw.
#[derive(Clone, Default)]
struct Patient(Arc<Mutex<Seen>>);

#[derive(Default)]
struct Seen {
    /// Names whose reconcile runs.
    now: Vec<String>,
    at_once: usize,
    twice: Vec<String>,
    /// The last of each object: what it was, and the child beside it.
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
    let wiring = Wiring::<Patient>::new().owns::<ConfigMap>().workers(8);
    let running = world.run(wiring.build(patient.clone())).await;
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
    // The last change is one of a child, while its owner's reconcile runs.
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
