//! Tests of the calls that a target receives from a watch, of their batches, and of the reported
//! end of a watch.

use super::*;
use windlass_core::metrics::names;

/// Starts a reflector that fills a [`Noted`].
fn noting(
    source: &MemorySource,
    options: ReflectorOptions,
) -> (Noted, Arc<ReflectorStatus>, Stopping) {
    let target = Noted::default();
    let noted = target.clone();
    let reflector = Reflector::new(info(), Arc::new(source.clone()), target)
        .environment(environment())
        .options(options);
    let status = reflector.status();
    let stop = CancellationToken::new();
    tokio::spawn(reflector.run(stop.clone()));
    (noted, status, Stopping(stop))
}

/// Stops the reflector with the test.
struct Stopping(CancellationToken);

impl Drop for Stopping {
    fn drop(&mut self) {
        self.0.cancel();
    }
}

fn is_watch(read: &Read) -> bool {
    matches!(read, Read::Watch { .. })
}

#[tokio::test(start_paused = true)]
async fn mechanism_54_objects_before_the_end_mark_are_listed_and_those_behind_it_changed() {
    let source = source();
    let frames = [
        frame("ADDED", &shown("a", 5, "1")),
        frame("MODIFIED", &shown("b", 6, "1")),
        end_mark(9, "true"),
    ];
    source.script(move |_, _| hang(&frames));
    let (noted, status, _stop) = noting(&source, ReflectorOptions::new());
    status.wait_for(|state| *state == ReflectorState::Watching).await;
    assert_eq!(noted.take(), ["list", "=a", "=b", "Listed 9"]);
    for (event, name, version) in [
        ("ADDED", "c", 12),
        // Not newer than the list, and older than the position.
        ("MODIFIED", "a", 9),
        ("MODIFIED", "a", 11),
        ("MODIFIED", "b", 13),
        ("DELETED", "c", 14),
    ] {
        source.send(frame(event, &shown(name, version, "2")));
    }
    let is_last = |line: &String| line == "Reached 14";
    eventually("all is told", || noted.lines.lock().iter().any(is_last)).await;
    let told: Vec<_> =
        noted.take().into_iter().filter(|line| !line.starts_with("Reached")).collect();
    assert_eq!(told, ["~c", "~b", "-c"]);
}

/// A hand-over of each single piece is too expensive; reading all available pieces would never end
/// on a busy watch.
#[tokio::test(start_paused = true)]
async fn events_that_are_there_already_are_handed_over_together_up_to_64() {
    let source = source();
    let frames: Vec<_> =
        (101..231).map(|version| frame("ADDED", &shown("a", version, "1"))).collect();
    source.script(move |_, read| if is_watch(read) { hang(&frames) } else { None });
    let (noted, _, _stop) = noting(&source, ReflectorOptions::new().streaming(false));
    let is_last = |line: &String| line == "Reached 230";
    eventually("all is told", || noted.lines.lock().iter().any(is_last)).await;
    let told = noted.take();
    let reached: Vec<_> = told.iter().filter(|line| line.starts_with("Reached")).collect();
    assert_eq!(reached[0], "Reached 164");
    assert!(reached.len() <= 4, "{reached:?}");
}

#[tokio::test(start_paused = true)]
async fn mechanism_56_no_resync_is_asked_for_without_a_period_before_it_is_due_or_within_a_list() {
    let seconds = Duration::from_secs;
    let resyncs = |noted: &Noted| {
        let lines = noted.lines.lock();
        lines.iter().filter(|line| *line == "resync").count()
    };
    // The watch is checked at the age of a second.
    let paged = ReflectorOptions::new().streaming(false);
    for (options, expected) in [(paged.clone(), 0), (paged.resync(seconds(30)), 2)] {
        let (noted, _, _stop) = noting(&source(), options);
        tokio::time::sleep(seconds(29)).await;
        assert_eq!(resyncs(&noted), 0);
        tokio::time::sleep(seconds(40)).await;
        assert_eq!(resyncs(&noted), expected);
    }
    // A streaming list that takes longer than the period, with an event that causes a check.
    let source = source();
    source.script(|_, _| hang(&[]));
    let (noted, _, _stop) = noting(&source, ReflectorOptions::new().resync(seconds(5)));
    for version in 20..30 {
        tokio::time::sleep(seconds(2)).await;
        source.send(frame("ADDED", &shown("a", version, "1")));
    }
    tokio::time::sleep(seconds(2)).await;
    assert_eq!(resyncs(&noted), 0, "{:?}", noted.take());
    source.send(end_mark(30, "true"));
    eventually("it is made up for", || resyncs(&noted) == 1).await;
}

/// A6 (an answer that trickles): the reported silence counts from the last whole frame.
#[tokio::test(start_paused = true)]
async fn a6_a_frame_that_is_not_ended_within_half_a_minute_ends_the_watch_and_says_so() {
    let rig = Rig::synced(source(), ReflectorOptions::new()).await;
    tokio::time::sleep(Duration::from_secs(100)).await;
    rig.source.bookmark();
    tokio::time::sleep(Duration::from_secs(5)).await;
    rig.source.send(r#"{"type":"ADDED","obj"#);
    let took = eventually("it is given up", || !rig.troubles.lock().is_empty()).await;
    assert!((Duration::from_secs(30)..Duration::from_secs(31)).contains(&took), "{took:?}");
    let why = rig.troubles.lock()[0].state.to_string();
    assert!(why.contains("delivered no complete frame for 35 s"), "{why}");
}

/// A list whose objects come a few seconds apart is slow, and not a list without an end mark.
#[tokio::test(start_paused = true)]
async fn b5_a_streaming_list_goes_on_for_as_long_as_its_objects_come() {
    let source = source();
    source.script(|_, _| hang(&[]));
    let rig = Rig::start(source, ReflectorOptions::new());
    for version in 20..26 {
        tokio::time::sleep(Duration::from_secs(20)).await;
        rig.source.send(frame("ADDED", &shown("a", version, "1")));
    }
    tokio::time::sleep(Duration::from_secs(20)).await;
    rig.source.send(end_mark(30, "true"));
    rig.watching().await;
    assert_eq!((rig.reads().len(), rig.value("a").as_deref()), (1, Some("1")));
}

/// A13 (one huge object): the object exists, although the state is not cached.
#[tokio::test(start_paused = true)]
async fn a13_an_object_beyond_the_frame_limit_counts_as_one_that_was_listed() {
    for streams in [true, false] {
        let source = source();
        source.put(&map("fine", "x")).unwrap();
        source.put(&map("huge", &"x".repeat(2000))).unwrap();
        let options = ReflectorOptions::new().frame_limit(1000).streaming(streams);
        let rig = Rig::synced(source, options).await;
        let metrics = rig.environment.metrics.encode();
        let listed = rig.environment.metrics.counted(&names::INFORMER_LISTED, &["configmaps"]);
        assert_eq!(listed, 2, "streams: {streams}");
        let sum = r#"windlass_informer_list_items_sum{resource="configmaps"} 2.0"#;
        assert!(metrics.contains(sum), "{metrics}");
    }
}

/// A source with the default answer on streaming lists.
#[derive(Debug)]
struct Plain(MemorySource);

impl ListWatch for Plain {
    fn open(&self, read: Read) -> OpenFuture<'_> {
        self.0.open(read)
    }
}

#[tokio::test(start_paused = true)]
async fn mechanism_57_a_source_is_taken_to_stream_lists_unless_it_says_that_it_cannot() {
    let source = source();
    let rig = Rig::over(Arc::new(Plain(source.clone())), source, ReflectorOptions::new());
    rig.watching().await;
    assert!(is_stream(&rig.reads()[0]), "{:?}", rig.reads());
    assert_eq!(rig.reads().len(), 1);
}

/// A target with the default answer on resyncs, which performs them.
#[derive(Clone, Default)]
struct Resynced(Arc<Mutex<usize>>);

impl ReflectorSink for Resynced {
    fn list_begins(&mut self) {}
    fn listed(&mut self, _: &RawObject<'_>) {}
    fn changed(&mut self, _: &RawObject<'_>) {}
    fn deleted(&mut self, _: &RawObject<'_>) {}
    fn kept(&mut self, _: &RawObject<'_>) {}
    fn reached(&mut self, _: StreamProgress, _: &str) {}
    fn resync(&mut self) -> Result<(), Error> {
        *self.0.lock() += 1;
        Ok(())
    }
}

#[tokio::test(start_paused = true)]
async fn mechanism_56_a_target_wants_to_resync_unless_it_says_otherwise() {
    let target = Resynced::default();
    let resyncs = Arc::clone(&target.0);
    let reflector = Reflector::new(info(), Arc::new(source()), target)
        .environment(environment())
        .options(ReflectorOptions::new().resync(Duration::from_secs(30)));
    let stop = Stopping(CancellationToken::new());
    tokio::spawn(reflector.run(stop.0.clone()));
    let took = eventually("it is asked", || *resyncs.lock() == 1).await;
    assert!(took >= Duration::from_secs(30), "{took:?}");
}
