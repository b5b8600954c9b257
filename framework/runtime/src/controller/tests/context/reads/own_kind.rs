//! Reads of the reconciled kind, which find the reader itself.

use super::*;
use crate::controller::WatchScope;
use windlass_core::resource::Selector;

/// Notes on each site the number of sites that have such a note.
#[derive(Clone, Default)]
struct Counts(Arc<Mutex<Vec<String>>>);

impl Can<verbs::List, Site> for Counts {}
impl Can<verbs::Watch, Site> for Counts {}

impl Reconciler for Counts {
    type Object = Site;

    async fn reconcile(&self, site: &Site, cx: &Context<Self>) -> Result {
        let all = Selector::everything();
        let found = cx.watch_by(WatchScope::<Site>::nearby(), &all).await?;
        let has_note = |site: &Cached<Site>| {
            site.get().is_ok_and(|site| site.status.as_ref().is_some_and(|it| it.seen.is_some()))
        };
        let seen = found.iter().filter(|site| has_note(site)).count();
        self.0.lock().push(format!("{} {seen}", site.name()));
        cx.patch_status(json!({ "seen": seen })).await?;
        Ok(Action::done())
    }
}

#[tokio::test(start_paused = true)]
async fn a_number_over_all_objects_counts_the_writes_of_its_own_readers() {
    let (world, counts) = (World::start().await, Counts::default());
    let running = world.run(ControllerBuilder::<Counts>::new().build(counts.clone())).await;
    world.create("a", "x").await;
    running.settled().await;
    assert_eq!(*counts.0.lock(), ["a 0", "a 1", "a 1"], "after a write that it had not read");
    world.create("b", "x").await;
    running.settled().await;
    for name in ["a", "b"] {
        let site = world.sites().get(name).await.expect("it is there");
        assert_eq!(site.status.and_then(|status| status.seen), Some(2), "{name}");
    }
    let runs = counts.0.lock().len();
    tokio::time::sleep(Duration::from_secs(60)).await;
    running.settled().await;
    assert_eq!(counts.0.lock().len(), runs, "a reconcile that writes nothing wakes nobody");
}
