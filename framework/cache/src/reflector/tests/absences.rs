//! Tests of incomplete answers: 404, half a list, other kinds, and no events while the stream is
//! not read.

use std::collections::BTreeMap;
use std::io;
use std::pin::Pin;

use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream};
use tracing::Level;

use super::*;
use crate::reflector::{ApiSource, Served, ServedFuture};
use windlass_client::client::test_support::Captured;
use windlass_client::client::{BoxIo, Client, Connect};
use windlass_core::resource::Scope;

type Documents = BTreeMap<&'static str, &'static str>;

/// Stands for a document that is unavailable at present.
const BROKEN: &str = "broken";

/// A server with these documents, and 404 for all other paths.
#[derive(Debug)]
struct Gateway(Documents);

impl Connect for Gateway {
    fn connect(&self) -> Pin<Box<dyn Future<Output = io::Result<BoxIo>> + Send + '_>> {
        let (ours, theirs) = tokio::io::duplex(64 * 1024);
        tokio::spawn(serve(theirs, self.0.clone()));
        Box::pin(async { Ok(Box::new(ours) as BoxIo) })
    }
}

async fn serve(mut io: DuplexStream, documents: Documents) {
    let mut head = Vec::new();
    while let Ok(byte) = io.read_u8().await {
        head.push(byte);
        if !head.ends_with(b"\r\n\r\n") {
            continue;
        }
        let text = String::from_utf8(std::mem::take(&mut head)).expect("a head is text");
        let path = text.split(' ').nth(1).expect("a request has a path");
        let (code, body) = match documents.get(path) {
            Some(body) if *body == BROKEN => (500, BROKEN),
            Some(body) => (200, *body),
            None => (404, "not here"),
        };
        let length = body.len();
        let answer = format!("HTTP/1.1 {code} X\r\ncontent-length: {length}\r\n\r\n{body}");
        io.write_all(answer.as_bytes()).await.expect("the client listens");
    }
}

/// B13 (a kind that does not exist): a load balancer that answers every request by 404 empties no
/// cache.
#[tokio::test(start_paused = true)]
async fn b13_that_a_kind_is_not_served_is_said_by_a_document_that_was_read() {
    let of = |group: &str, plural: &str| ResourceInfo {
        group: group.to_owned().into(),
        version: "v1".into(),
        kind: "Any".into(),
        plural: plural.to_owned().into(),
        scope: Scope::Namespaced,
    };
    let (pods, trips) = (of("", "pods"), of("example.dev", "trips"));
    let groups = |text: &'static str| vec![("/apis", text)];
    let cases = [
        (&pods, vec![], Served::Unknown),
        (&trips, vec![], Served::Unknown),
        (&trips, groups("<html>"), Served::Unknown),
        (&trips, groups(r#"{"groups":[]}"#), Served::No),
        (
            &trips,
            groups(r#"{"groups":[{"name":"example.dev","versions":[{"version":"v2"}]}]}"#),
            Served::No,
        ),
        (
            &trips,
            groups(r#"{"groups":[{"name":"example.dev","versions":[{"version":"v1"}]}]}"#),
            Served::Unknown,
        ),
        (&trips, vec![("/apis/example.dev/v1", r#"{"resources":[]}"#)], Served::No),
        (
            &trips,
            vec![("/apis/example.dev/v1", r#"{"resources":[{"name":"trips"}]}"#)],
            Served::Yes,
        ),
        // Only 404 leads to the list of groups: any other failure gives no information on the
        // group.
        (
            &trips,
            vec![("/apis/example.dev/v1", BROKEN), ("/apis", r#"{"groups":[]}"#)],
            Served::Unknown,
        ),
        (&pods, vec![("/api/v1", BROKEN), ("/api", r#"{"versions":["v2"]}"#)], Served::Unknown),
        (&pods, groups(r#"{"groups":[]}"#), Served::Unknown),
        (&pods, vec![("/api", r#"{"versions":["v1"]}"#)], Served::Unknown),
        (&pods, vec![("/api", r#"{"versions":["v2"]}"#)], Served::No),
    ];
    for (info, documents, expected) in cases {
        let gateway = Gateway(documents.iter().copied().collect());
        let client = Client::over(Arc::new(gateway), environment());
        let source = ApiSource::new(client, info.clone());
        assert_eq!(source.is_served().await, expected, "{info} {documents:?}");
    }
}

/// A source that knows whether the kind is served, and counts the queries.
#[derive(Debug)]
struct Discovered {
    source: MemorySource,
    served: Mutex<Served>,
    discoveries: Mutex<usize>,
}

impl ListWatch for Discovered {
    fn open(&self, read: Read) -> OpenFuture<'_> {
        self.source.open(read)
    }

    fn is_served(&self) -> ServedFuture<'_> {
        *self.discoveries.lock() += 1;
        let served = *self.served.lock();
        Box::pin(async move { served })
    }
}

fn discovered(source: &MemorySource, served: Served) -> Arc<Discovered> {
    let served = Mutex::new(served);
    Arc::new(Discovered { source: source.clone(), served, discoveries: Mutex::default() })
}

fn not_found() -> Option<MemoryResponse> {
    Some(MemoryResponse::status(404, "NotFound"))
}

#[tokio::test(start_paused = true)]
async fn b13_an_absent_kind_is_looked_for_in_discovery_and_found_within_five_seconds() {
    let (log, _guard) = Captured::at(Level::WARN);
    let source = source();
    source.put(&map("a", "1")).unwrap();
    source.script(|_, _| Some(MemoryResponse::status(404, "NotFound")));
    let discovered = Arc::new(Discovered {
        source: source.clone(),
        served: Mutex::new(Served::No),
        discoveries: Mutex::default(),
    });
    let over: Arc<dyn ListWatch> = Arc::clone(&discovered) as _;
    let rig = Rig::over(over, source, ReflectorOptions::new());
    tokio::time::sleep(Duration::from_secs(300)).await;
    assert!(matches!(rig.status.get(), ReflectorState::Absent(_)), "{}", rig.status.get());
    assert_eq!(rig.source.requests().len(), 1, "nothing is listed that is not there");
    let discoveries = *discovered.discoveries.lock();
    assert!((60..=120).contains(&discoveries), "{discoveries} looks in 300 s");
    assert_eq!(log.lines().len(), 1, "one line per change of state: {:?}", log.lines());
    // The group version lists the kind a little before the kind is served.
    *discovered.served.lock() = Served::Yes;
    let started = Instant::now();
    eventually("it is tried", || rig.source.requests().len() > 2).await;
    rig.source.recover();
    rig.watching().await;
    assert!(started.elapsed() <= Duration::from_secs(6), "{:?}", started.elapsed());
    assert_eq!(rig.value("a").as_deref(), Some("1"));
    // The kind is deleted again, together with the objects.
    rig.source.script(|_, _| Some(MemoryResponse::status(404, "NotFound")));
    rig.source.close_watches();
    eventually("its objects are gone", || rig.store.is_empty()).await;
    *discovered.served.lock() = Served::Unknown;
    rig.source.recover();
    let took = eventually("it is found without discovery", || rig.store.len() == 1).await;
    assert!(took <= Duration::from_secs(5), "{took:?}");
}

/// B13 (a kind that does not exist): a single answer of a proxy does not empty a cache.
#[tokio::test(start_paused = true)]
async fn b13_a_404_for_a_kind_that_discovery_has_is_not_believed_at_once() {
    let source = source();
    source.put(&map("a", "1")).unwrap();
    let discovered = Arc::new(Discovered {
        source: source.clone(),
        served: Mutex::new(Served::Yes),
        discoveries: Mutex::default(),
    });
    let over: Arc<dyn ListWatch> = Arc::clone(&discovered) as _;
    let rig = Rig::over(over, source, ReflectorOptions::new());
    rig.watching().await;
    for (answers, is_emptied) in [(1, false), (3, false), (100, true)] {
        // Pauses begin anew after this time.
        tokio::time::sleep(Duration::from_secs(180)).await;
        let first = rig.source.requests().len();
        let refused = first..first + answers;
        rig.source.script(move |number, _| {
            refused.contains(&number).then(|| MemoryResponse::status(404, "NotFound"))
        });
        rig.source.break_watches();
        if is_emptied {
            let took = eventually("the server sticks to it", || rig.store.is_empty()).await;
            assert!(took <= Duration::from_secs(15), "{took:?}");
            continue;
        }
        eventually("it is asked again", || rig.source.requests().len() > first + answers).await;
        rig.watching().await;
        assert_eq!(rig.store.len(), 1, "after {answers} answers");
        let last = rig.reads().pop().unwrap();
        assert!(matches!(last, Read::Watch { .. }), "no list: {last:?}");
        let why = rig.troubles.lock().last().unwrap().state.to_string();
        assert!(why.contains("although its discovery has the kind"), "{why}");
    }
}

#[tokio::test(start_paused = true)]
async fn b13_a_404_is_doubted_for_ten_seconds_unless_discovery_confirms_it() {
    let seconds = Duration::from_secs;
    for served in [Served::Unknown, Served::Yes, Served::No] {
        let source = source();
        source.put(&map("a", "1")).unwrap();
        let over = discovered(&source, served);
        let rig = Rig::over(over, source, ReflectorOptions::new());
        rig.watching().await;
        if served != Served::No {
            for _ in 0..3 {
                tokio::time::sleep(seconds(180)).await;
                rig.source.script(|_, _| not_found());
                rig.source.close_watches();
                tokio::time::sleep(seconds(9)).await;
                assert!(
                    matches!(rig.status.get(), ReflectorState::Retrying(_)),
                    "{:?}",
                    rig.status.get()
                );
                rig.source.recover();
                rig.watching().await;
                assert_eq!((rig.store.len(), rig.lists()), (1, 1), "{served:?}");
            }
        }
        tokio::time::sleep(seconds(180)).await;
        rig.source.script(|_, _| not_found());
        let asked = rig.source.requests().len();
        rig.source.close_watches();
        let took = eventually("it is believed", || rig.store.is_empty()).await;
        if served == Served::No {
            assert!(took < Duration::from_millis(100), "{took:?}");
            continue;
        }
        assert!((seconds(10)..seconds(12)).contains(&took), "{served:?}: {took:?}");
        let asked = rig.source.requests().len() - asked;
        assert!((7..=21).contains(&asked), "{asked} requests in ten seconds");
    }
}

#[tokio::test(start_paused = true)]
async fn b13_a_kind_that_is_back_is_found_within_five_seconds_of_another_failure() {
    let source = source();
    source.put(&map("a", "1")).unwrap();
    source.script(|_, _| Some(MemoryResponse::status(503, "ServiceUnavailable")));
    let discovered = discovered(&source, Served::Yes);
    let rig = Rig::over(Arc::clone(&discovered) as _, source, ReflectorOptions::new());
    // Pauses of up to half a minute.
    tokio::time::sleep(Duration::from_secs(300)).await;
    for _ in 0..8 {
        rig.source.script(|_, _| not_found());
        *discovered.served.lock() = Served::No;
        rig.source.close_watches();
        eventually("it is absent", || matches!(rig.status.get(), ReflectorState::Absent(_))).await;
        let first = rig.source.requests().len();
        rig.source
            .script(move |number, _| (number == first).then(|| MemoryResponse::status(503, "")));
        *discovered.served.lock() = Served::Yes;
        rig.watching().await;
        let failed = rig.source.requests()[first].0;
        assert!(failed.elapsed() <= Duration::from_secs(5), "{:?}", failed.elapsed());
    }
}

#[tokio::test(start_paused = true)]
async fn b13_what_half_a_list_of_an_absent_kind_has_shown_does_not_stay() {
    let source = source();
    for name in ["a", "b", "c"] {
        source.put(&map(name, "1")).unwrap();
    }
    source.script(|_, _| not_found());
    let rig = Rig::start(source, ReflectorOptions::new().streaming(false).page_size(2));
    rig.asked(3).await;
    let later = |read: &Read| matches!(read, Read::Page { continue_token: Some(_), .. });
    rig.source.script(move |_, read| if later(read) { not_found() } else { None });
    eventually("half a list comes", || rig.reads().iter().any(later)).await;
    eventually("it is absent", || matches!(rig.status.get(), ReflectorState::Absent(_))).await;
    tokio::time::sleep(Duration::from_millis(100)).await;
    assert_eq!(rig.store.len(), 0);
    rig.source.recover();
    eventually("it is found", || rig.store.len() == 3).await;
}

#[tokio::test(start_paused = true)]
async fn items_of_another_kind_are_told_by_the_state_until_a_whole_list() {
    let other = shown("s", 9, "1").replace("ConfigMap", "Secret");
    for streams in [true, false] {
        let source = source();
        let pieces = match streams {
            true => vec![frame("ADDED", &other), frame("ADDED", &other), end_mark(10, "true")],
            false => vec![format!(
                r#"{{"kind":"ConfigMapList","items":[{other},{other}],"metadata":{{"resourceVersion":"10"}}}}"#
            )],
        };
        source.script(move |number, _| match (number, streams) {
            (0, true) => hang(&pieces),
            (0, false) => body(&pieces),
            _ => None,
        });
        let rig = Rig::start(source, ReflectorOptions::new().streaming(streams));
        let is_told = || {
            let told = "2 items could not be taken: deletions may be missed";
            matches!(rig.status.get(), ReflectorState::Degraded(why) if why == told)
        };
        eventually("the state says so", is_told).await;
        tokio::time::sleep(Duration::from_secs(10)).await;
        rig.source.break_watches();
        eventually("the watch breaks", || matches!(rig.status.get(), ReflectorState::Retrying(_)))
            .await;
        tokio::time::sleep(Duration::from_secs(10)).await;
        rig.source.put(&map("a", "1")).unwrap();
        eventually("it goes on", || rig.value("a").is_some()).await;
        assert!(is_told() && rig.lists() == 1, "{:?}", rig.status.get());
        let waited = Instant::now();
        rig.watching().await;
        assert!(waited.elapsed() <= Duration::from_secs(300), "{:?}", waited.elapsed());
        assert_eq!(rig.lists(), 2);
    }
}

/// A target that waits after receiving an object.
#[derive(Default)]
struct Slow(Option<Duration>);

impl ReflectorSink for Slow {
    fn list_begins(&mut self) {}
    fn listed(&mut self, _: &RawObject<'_>) {
        self.0 = Some(Duration::from_secs(40));
    }
    fn changed(&mut self, _: &RawObject<'_>) {}
    fn deleted(&mut self, _: &RawObject<'_>) {}
    fn kept(&mut self, _: &RawObject<'_>) {}
    fn reached(&mut self, _: StreamProgress, _: &str) {}
    fn hand_over(&mut self) -> impl Future<Output = ()> + Send {
        let time = self.0.take();
        async move {
            if let Some(time) = time {
                tokio::time::sleep(time).await;
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn the_time_that_a_target_takes_is_not_counted_as_the_servers_silence() {
    let source = source();
    let objects = [frame("ADDED", &shown("a", 9, "1"))];
    source.script(move |_, _| hang(&objects));
    let reflector = Reflector::new(info(), Arc::new(source.clone()), Slow::default())
        .environment(environment());
    let status = reflector.status();
    let stop = CancellationToken::new();
    let task = tokio::spawn(reflector.run(stop.clone()));
    tokio::time::sleep(Duration::from_secs(65)).await;
    source.send(end_mark(10, "true"));
    let watching = status.wait_for(|state| *state == ReflectorState::Watching);
    tokio::time::timeout(Duration::from_secs(1), watching).await.expect("the stream is read on");
    assert_eq!(source.requests().len(), 1, "{:?}", source.requests());
    stop.cancel();
    task.await.unwrap();
}

/// A source that panics on the next request if asked to.
#[derive(Debug)]
struct Once(MemorySource, Mutex<bool>);

impl ListWatch for Once {
    fn open(&self, read: Read) -> OpenFuture<'_> {
        assert!(!std::mem::take(&mut *self.1.lock()), "a defect of the source");
        self.0.open(read)
    }
}

#[tokio::test(start_paused = true)]
async fn a_source_that_panics_is_listed_anew_after_a_pause() {
    let source = source();
    source.put(&map("a", "1")).unwrap();
    let over = Arc::new(Once(source.clone(), Mutex::new(false)));
    let rig = Rig::over(Arc::clone(&over) as _, source, ReflectorOptions::new());
    rig.watching().await;
    tokio::time::sleep(Duration::from_secs(10)).await;
    *over.1.lock() = true;
    rig.source.lose(Some("n"), "a");
    rig.source.close_watches();
    let took = eventually("what was missed is found", || rig.store.is_empty()).await;
    assert!(took < Duration::from_secs(1), "{took:?}");
    let error = rig.troubles.lock().pop().unwrap();
    assert_eq!(error.state, ReflectorState::Degraded("reading panicked; see the log".to_owned()));
    rig.watching().await;
    rig.stopped().await;
}

/// Each absence makes every listener look at the kind's objects again.
#[tokio::test(start_paused = true)]
async fn b13_that_a_kind_is_absent_is_told_once_while_its_lists_show_nothing() {
    let source = source();
    source.script(|_, _| not_found());
    let target = Noted::default();
    let noted = target.clone();
    let reflector =
        Reflector::new(info(), Arc::new(source.clone()), target).environment(environment());
    let status = reflector.status();
    let task = tokio::spawn(reflector.run(CancellationToken::new()));
    status.wait_for(|state| matches!(state, ReflectorState::Absent(_))).await;
    let asked = source.requests().len();
    eventually("it is looked for", || source.requests().len() > asked + 5).await;
    let told = noted.take();
    let absent = told.iter().filter(|line| line.starts_with("Absent")).count();
    assert_eq!(absent, 1, "{told:?}");
    task.abort();
}

/// Controllers would otherwise start with an empty view of a kind that has objects.
#[tokio::test(start_paused = true)]
async fn b13_c7_a_passing_404_at_the_first_list_is_not_believed() {
    for (served, times) in [(Served::Unknown, 1), (Served::Yes, 1), (Served::Yes, 8)] {
        let source = source();
        source.put(&map("a", "1")).unwrap();
        source.script(move |number, _| if number < times { not_found() } else { None });
        let over = discovered(&source, served);
        let rig = Rig::over(over, source, ReflectorOptions::new());
        rig.watching().await;
        let is_absent = |error: &ReflectorError| matches!(error.state, ReflectorState::Absent(_));
        assert!(!rig.troubles.lock().iter().any(is_absent), "{served:?}, {times} times");
        assert_eq!(rig.store.len(), 1);
    }
}

#[tokio::test(start_paused = true)]
async fn b13_a_404_at_the_first_list_is_believed_when_discovery_agrees_or_it_comes_again() {
    let second = Duration::from_secs(1);
    let cases = [
        (Served::No, 1, Duration::ZERO..second / 10),
        (Served::Unknown, 2, second / 4..second),
        (Served::Yes, 12, 10 * second..12 * second),
    ];
    for (served, least, expected) in cases {
        let source = source();
        source.script(|_, _| not_found());
        let over = discovered(&source, served);
        let rig = Rig::over(over, source, ReflectorOptions::new());
        let is_absent = || matches!(rig.status.get(), ReflectorState::Absent(_));
        let took = eventually("it is believed", is_absent).await;
        assert!(expected.contains(&took), "{served:?}: {took:?}");
        let asked = rig.source.requests().len();
        assert!(asked >= least, "{served:?}: {asked} requests");
    }
}

#[tokio::test(start_paused = true)]
async fn b13_an_absent_kind_is_looked_for_at_once_when_somebody_knows_that_it_came() {
    let source = source();
    source.put(&map("a", "1")).unwrap();
    source.script(|_, _| not_found());
    let over = discovered(&source, Served::No);
    let rig = Rig::over(Arc::clone(&over) as _, source, ReflectorOptions::new());
    eventually("it is absent", || matches!(rig.status.get(), ReflectorState::Absent(_))).await;
    tokio::time::sleep(Duration::from_millis(100)).await;
    *over.served.lock() = Served::Yes;
    rig.source.recover();
    rig.status.end_pause();
    let took = eventually("it is found", || rig.store.len() == 1).await;
    assert!(took < Duration::from_millis(200), "{took:?}");
    // No other pause is cut short.
    rig.source.script(|_, _| Some(MemoryResponse::status(503, "ServiceUnavailable")));
    rig.source.close_watches();
    eventually("it waits", || matches!(rig.status.get(), ReflectorState::Retrying(_))).await;
    tokio::time::sleep(Duration::from_secs(300)).await;
    let asked = rig.source.requests().len();
    for _ in 0..100 {
        rig.status.end_pause();
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    assert!(rig.source.requests().len() <= asked + 1);
}
