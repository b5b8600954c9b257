//! C1: objects that do not decode are visible, reported once, and recover.

use super::*;
use crate::informer::{CacheOptions, DecodeCheckTime, InvalidObject};
use windlass_core::metrics::names;
use windlass_core::resource::{DynamicObject, ResourceInfo};

/// A cache whose objects are not read.
struct Quiet {
    server: Arc<Server>,
    registry: InformerRegistry,
    informer: Informer<ConfigMap>,
    reported: Arc<Mutex<Vec<String>>>,
    environment: Environment,
    stop: CancellationToken,
    task: JoinHandle<()>,
}

fn report(into: &Arc<Mutex<Vec<String>>>) -> Arc<dyn Fn(&InvalidObject) + Send + Sync> {
    let reported = Arc::clone(into);
    Arc::new(move |invalid| reported.lock().push(format!("{invalid}")))
}

impl Quiet {
    async fn start(validate: DecodeCheckTime) -> Self {
        let (server, environment) = (Server::new(), environment());
        server.put("sound", data("1"));
        server.put("bad", json!({"k": {"not": "text"}}));
        let registry = registry(&server, &environment, &[]);
        let info = ResourceInfo::of::<ConfigMap>();
        registry.set_options(info, CacheOptions::default().validate(validate)).unwrap();
        let reported = Arc::default();
        registry.report_invalid(Some(report(&reported)));
        let (informer, stop) = (registry.informer::<ConfigMap>(), CancellationToken::new());
        let task = run(&registry, &stop);
        informer.synced().await.unwrap();
        Self { server, registry, informer, reported, environment, stop, task }
    }

    fn invalid(&self) -> Vec<String> {
        let invalid = self.informer.store().invalid();
        invalid.iter().map(|(object, error)| format!("{}: {error}", object.key())).collect()
    }

    fn gauge(&self) -> Option<f64> {
        let labels = ["ConfigMap", "", "v1", "configmaps"];
        self.environment.metrics.level(&names::INFORMER_INVALID, &labels)
    }

    fn reports(&self) -> usize {
        self.reported.lock().len()
    }

    async fn end(self) {
        self.stop.cancel();
        self.task.await.expect("no panic");
    }
}

#[tokio::test(start_paused = true)]
async fn c1_with_eager_validation_an_object_that_nobody_reads_is_found_at_once() {
    let quiet = Quiet::start(DecodeCheckTime::Eager).await;
    let took = eventually("it is found", || quiet.invalid().len() == 1).await;
    assert!(took < Duration::from_secs(1), "{took:?}");
    assert!(quiet.invalid()[0].starts_with("n/bad: "), "{:?}", quiet.invalid());
    assert_eq!(quiet.gauge(), Some(1.0));
    assert_eq!(quiet.reports(), 1);
    assert!(quiet.reported.lock()[0].contains("ConfigMap n/bad"), "{:?}", quiet.reported.lock());
    quiet.server.put("bad", data("2"));
    eventually("it heals", || quiet.invalid().is_empty()).await;
    quiet.server.put("other", json!({"k": 7}));
    eventually("another is found", || quiet.invalid().len() == 1).await;
    quiet.server.delete("other");
    eventually("a deletion takes it out", || quiet.informer.store().len() == 2).await;
    assert!(quiet.invalid().is_empty());
    assert_eq!(quiet.gauge(), Some(0.0));
    quiet.end().await;
}

#[tokio::test(start_paused = true)]
async fn c1_without_it_the_first_read_finds_it_and_it_is_reported_once_for_each_reason() {
    let quiet = Quiet::start(DecodeCheckTime::Lazy).await;
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert!(quiet.invalid().is_empty(), "what nobody reads costs nothing");
    let read = || {
        let found = quiet.informer.store().get(&ObjectKey::new(Some("n"), "bad"));
        found.expect("it is there").get().err()
    };
    assert!(read().is_some() && read().is_some());
    assert_eq!((quiet.reports(), quiet.gauge()), (1, Some(1.0)));
    // The same fault in a later version is not reported again.
    quiet.server.put("bad", json!({"k": {"not": "text"}}));
    let version = quiet.server.version().to_string();
    eventually("it comes", || quiet.informer.status().resource_version == version).await;
    assert!(read().is_some());
    assert_eq!(quiet.reports(), 1);
    quiet.server.put("bad", json!("not even a map"));
    let version = quiet.server.version().to_string();
    eventually("it comes", || quiet.informer.status().resource_version == version).await;
    assert!(quiet.invalid().is_empty(), "what changed is judged anew");
    assert!(read().is_some());
    assert_eq!(quiet.reports(), 2);
    quiet.server.put("bad", data("well"));
    let version = quiet.server.version().to_string();
    eventually("it comes", || quiet.informer.status().resource_version == version).await;
    assert!(read().is_none());
    quiet.server.put("bad", json!({"k": {"not": "text"}}));
    let version = quiet.server.version().to_string();
    eventually("it comes", || quiet.informer.status().resource_version == version).await;
    assert!(read().is_some());
    assert_eq!(quiet.reports(), 3, "it had healed: this is news");
    quiet.end().await;
}

/// An untyped reader shares the cache; the reader's reads do not clear the fault.
#[tokio::test(start_paused = true)]
async fn c1_an_object_that_another_type_takes_is_reported_once_all_the_same() {
    let quiet = Quiet::start(DecodeCheckTime::Lazy).await;
    let (typed, key) = (quiet.informer.store(), ObjectKey::new(Some("n"), "bad"));
    let informer = quiet.registry.informer_of::<DynamicObject>(ResourceInfo::of::<ConfigMap>());
    let dynamic = informer.store();
    assert_eq!(quiet.registry.status().len(), 1, "they share it");
    for _ in 0..3 {
        assert!(dynamic.get(&key).expect("it is there").get().is_ok());
        assert!(typed.get(&key).expect("it is there").get().is_err());
        quiet.server.put("bad", json!({"k": {"not": "text"}}));
        let version = quiet.server.version().to_string();
        eventually("it comes", || quiet.informer.status().resource_version == version).await;
    }
    assert_eq!(quiet.reports(), 1);
    quiet.end().await;
}

#[tokio::test(start_paused = true)]
async fn c1_who_asks_for_reports_later_gets_those_that_are_known_and_a_flood_is_cut() {
    let quiet = Quiet::start(DecodeCheckTime::Eager).await;
    eventually("it is found", || quiet.reports() == 1).await;
    let later: Arc<Mutex<Vec<String>>> = Arc::default();
    quiet.registry.report_invalid(Some(report(&later)));
    assert_eq!(later.lock().len(), 1);
    for n in 0..200 {
        quiet.server.put(&format!("o{n}"), json!({"k": n}));
    }
    eventually("all are found", || quiet.invalid().len() == 201).await;
    let first = later.lock().len();
    assert!(first <= 50, "{first} reports at once");
    quiet.registry.report_invalid(None);
    quiet.server.put("last", json!({"k": 1}));
    eventually("it is found", || quiet.invalid().len() == 202).await;
    assert_eq!(later.lock().len(), first);
    quiet.end().await;
}

/// Validation stays on a separate task: no listener waits for validation.
#[tokio::test(start_paused = true)]
async fn c1_validation_is_no_listener_that_somebody_waits_for() {
    let quiet = Quiet::start(DecodeCheckTime::Eager).await;
    assert!(quiet.informer.status().listeners.is_empty());
    quiet.registry.synced_within(Duration::ZERO).await.unwrap();
    quiet.end().await;
}
