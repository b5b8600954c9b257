//! Reconciles that create what they do not find, while the watch lags behind them.

use std::collections::BTreeMap;

use super::*;

const LAG: Duration = Duration::from_millis(200);

/// Sees to it that each site has one child, whose name the API server chooses. Every reconcile is
/// followed by another long before the watch shows what it did.
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
        let pages = cx.store_of::<ConfigMap>();
        if let Some(page) = pages.owned_by(site.uid()).first() {
            let is_seen = pages.get_seen(page.key()).is_some();
            return Ok(if is_seen { Action::done() } else { self.soon() });
        }
        let mut page = ConfigMap::default();
        page.metadata.generate_name = Some("page-".to_owned());
        if self.is_naive {
            let info = ResourceInfo::of::<Site>();
            page.metadata.owner_references = site.controller_reference(&info).map(|own| vec![own]);
            cx.api().create(&page).await?;
        } else {
            cx.create_owned(page).await?;
        }
        self.created.fetch_add(1, Ordering::Relaxed);
        Ok(self.soon())
    }
}

impl Pages {
    fn soon(&self) -> Action {
        Action::requeue_after(self.lag / 4)
    }
}

/// Reconciles so many sites until nothing happens any more, and counts their children.
async fn pages(
    sites: usize,
    lag: Duration,
    is_naive: bool,
    fault: impl FnOnce(&ApiServer),
) -> Counted {
    let world = World::start().await;
    for n in 0..sites {
        let object = json!({
            "apiVersion": "example.dev/v1", "kind": "Site",
            "metadata": { "namespace": "shop", "name": format!("site-{n}") },
            "spec": { "host": "x" },
        });
        world.server.create_object("example.dev", "sites", "shop", object).expect("created");
    }
    world.server.faults().lag_watches("configmaps", lag);
    fault(&world.server);
    let created = Arc::<AtomicU32>::default();
    let pages = Pages { is_naive, lag, created: Arc::clone(&created) };
    let controller = Wiring::<Pages>::new().owns::<ConfigMap>().workers(16).build(pages);
    let running = world.run(controller).await;
    tokio::time::sleep(lag * 10).await;
    running.settled().await;
    let reconciles = running.handle.state().reconciles;
    running.stop().await;
    let mut children: BTreeMap<String, usize> = BTreeMap::new();
    for map in world.server.list_objects("", "configmaps", "shop") {
        let owner = &map["metadata"]["ownerReferences"][0]["name"];
        let Some(owner) = owner.as_str() else { continue };
        *children.entry(owner.to_owned()).or_default() += 1;
    }
    Counted {
        with_one: children.values().filter(|count| **count == 1).count(),
        with_more: children.values().filter(|count| **count > 1).count(),
        created: created.load(Ordering::Relaxed) as usize,
        reconciles,
    }
}

#[derive(Debug)]
struct Counted {
    with_one: usize,
    with_more: usize,
    created: usize,
    reconciles: u64,
}

#[tokio::test(start_paused = true)]
async fn g_c8_ten_thousand_reconciles_that_each_create_a_child_create_no_child_twice() {
    let counted = pages(10_000, LAG, false, |_| {}).await;
    let Counted { with_one, with_more, created, reconciles } = counted;
    assert_eq!((with_one, with_more, created), (10_000, 0, 10_000));
    assert!(reconciles >= 20_000, "each looked again: {reconciles}");
}

#[tokio::test(start_paused = true)]
async fn the_naive_version_of_the_same_creates_children_twice() {
    let counted = pages(200, LAG, true, |_| {}).await;
    assert!(counted.with_more > 100, "{counted:?}");
}

#[tokio::test(start_paused = true)]
async fn g_c8_a_watch_that_lags_longer_than_own_writes_are_shown_leads_to_no_second_child() {
    let counted = pages(200, Duration::from_secs(30), false, |_| {}).await;
    assert_eq!((counted.with_one, counted.created), (200, 200), "{counted:?}");
}

/// Nobody knows the names of children whose creates were executed and not answered.
#[tokio::test(start_paused = true)]
async fn g_c8_creates_whose_answers_are_lost_are_not_made_again() {
    use windlass_apiserver::faults::{Action as Do, Fault};
    let lost = |server: &ApiServer| {
        let fault = Fault::new(Do::ExecuteThenDrop).resource("configmaps").on("create");
        server.faults().add(fault.after(20).times(50));
    };
    let counted = pages(200, LAG, false, lost).await;
    assert_eq!((counted.with_one, counted.created), (200, 150), "{counted:?}");
}

#[tokio::test(start_paused = true)]
async fn g_c8_a_create_that_is_refused_is_made_again() {
    use windlass_apiserver::faults::{Action as Do, Fault};
    let refused = |server: &ApiServer| {
        let fault = Fault::new(Do::Answer(403)).resource("configmaps").on("create");
        server.faults().add(fault.times(50));
    };
    let counted = pages(200, LAG, false, refused).await;
    assert_eq!((counted.with_one, counted.created), (200, 200), "{counted:?}");
}
