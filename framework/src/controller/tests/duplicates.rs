//! Reconciles that create what they do not find, while the watch lags behind them.

use std::collections::BTreeMap;

use super::*;

const LAG: Duration = Duration::from_millis(200);
/// Children of each site.
const PAGES: usize = 20;

/// Gives each site its children, one per reconcile, numbered by how many it finds; their names are
/// the API server's choice. The next reconcile follows long before the watch shows the child.
struct Pages {
    /// Reads the cache, and creates past the context.
    is_naive: bool,
    lag: Duration,
    created: Arc<AtomicU32>,
}

impl Owns<ConfigMap> for Pages {}

impl Reconciler for Pages {
    type Object = Site;

    async fn reconcile(&self, site: &Site, cx: &Context<Self>) -> Result {
        if !self.is_naive
            && let Some(expires_in) = cx.expectations().pending().expires_in
        {
            return Ok(Action::requeue_after(expires_in));
        }
        let number = cx.store_of::<ConfigMap>().owned_by(site.uid()).len();
        if number >= PAGES {
            return Ok(Action::done());
        }
        let mut page = child("", &number.to_string());
        page.metadata.name = None;
        page.metadata.generate_name = Some("page-".to_owned());
        if self.is_naive {
            let info = ResourceInfo::of::<Site>();
            page.metadata.owner_references = site.controller_reference(&info).map(|own| vec![own]);
            cx.api().create(&page).await?;
        } else {
            cx.create_owned(page).await?;
        }
        self.created.fetch_add(1, Ordering::Relaxed);
        Ok(Action::requeue_after(self.lag / 20))
    }
}

/// What came of it.
#[derive(Debug, PartialEq, Eq)]
struct Counted {
    children: usize,
    /// Children of one site with one number.
    duplicates: usize,
    /// Creations that were answered.
    created: usize,
}

/// Reconciles so many sites until nothing happens any more.
async fn pages(
    sites: usize,
    lag: Duration,
    is_naive: bool,
    fault: impl FnOnce(&ApiServer),
) -> Counted {
    let world = World::start().await;
    for n in 0..sites {
        world.create(&format!("site-{n}"), "x").await;
    }
    let created = Arc::<AtomicU32>::default();
    let pages = Pages { is_naive, lag, created: Arc::clone(&created) };
    let controller = Wiring::<Pages>::new().owns::<ConfigMap>().workers(16).build(pages);
    world.server.faults().lag_watches("configmaps", lag);
    fault(&world.server);
    let running = world.run(controller).await;
    tokio::time::sleep(lag * 20).await;
    running.settled().await;
    running.stop().await;
    let mut found: BTreeMap<String, usize> = BTreeMap::new();
    for map in world.server.list_objects("", "configmaps", "shop") {
        let owner = &map["metadata"]["ownerReferences"][0]["name"];
        let Some(owner) = owner.as_str() else { continue };
        *found.entry(format!("{owner} {}", map["data"]["host"])).or_default() += 1;
    }
    let children = found.values().sum();
    let created = created.load(Ordering::Relaxed) as usize;
    Counted { children, duplicates: children - found.len(), created }
}

fn no_duplicates(sites: usize) -> Counted {
    Counted { children: sites * PAGES, duplicates: 0, created: sites * PAGES }
}

#[tokio::test(start_paused = true)]
async fn g_c8_ten_thousand_reconciles_that_each_create_a_child_create_none_twice() {
    let counted = pages(500, LAG, false, |_| {}).await;
    assert_eq!(counted.created, 10_000);
    assert_eq!(counted, no_duplicates(500));
}

#[tokio::test(start_paused = true)]
async fn the_naive_version_of_the_same_creates_children_twice() {
    let counted = pages(20, LAG, true, |_| {}).await;
    assert!(counted.duplicates > 200, "{counted:?}");
}

#[tokio::test(start_paused = true)]
async fn g_c8_a_watch_that_lags_longer_than_own_writes_are_shown_leads_to_no_duplicate() {
    let counted = pages(20, Duration::from_secs(30), false, |_| {}).await;
    assert_eq!(counted, no_duplicates(20));
}

/// Nobody knows the names of children whose creates were executed and not answered.
#[tokio::test(start_paused = true)]
async fn g_c8_creates_whose_answers_are_lost_are_not_made_again() {
    use windlass_apiserver::faults::{Action as Do, Fault};
    let lost = |server: &ApiServer| {
        let fault = Fault::new(Do::ExecuteThenDrop).resource("configmaps").on("create");
        server.faults().add(fault.after(20).times(50));
    };
    let counted = pages(20, LAG, false, lost).await;
    assert_eq!(counted, Counted { created: 350, ..no_duplicates(20) });
}

#[tokio::test(start_paused = true)]
async fn a_create_that_is_refused_is_made_again() {
    use windlass_apiserver::faults::{Action as Do, Fault};
    let refused = |server: &ApiServer| {
        let fault = Fault::new(Do::Answer(403)).resource("configmaps").on("create");
        server.faults().add(fault.times(50));
    };
    let counted = pages(20, LAG, false, refused).await;
    assert_eq!(counted, no_duplicates(20));
}
