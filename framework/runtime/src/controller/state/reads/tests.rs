//! Tables of registered reads without a cache.

use super::*;

fn key(name: &str) -> ObjectKey {
    ObjectKey::new(Some("shop"), name)
}

/// A source that is running while a read, or the test, holds a reference.
struct Source(ReadSourceRef);

impl Source {
    fn new(number: u64) -> Self {
        Self(ReadSourceRef { number, holder: Arc::new(()) })
    }

    /// Number of reads that hold the source.
    fn holders(&self) -> usize {
        Arc::strong_count(&self.0.holder) - 1
    }
}

fn reads(per_object: usize, in_total: usize) -> RegisteredReads {
    RegisteredReads { limits: ReadLimits { per_object, in_total }, ..RegisteredReads::default() }
}

/// Registers and makes a read of the object `name`, which is found in this version.
fn read(
    reads: &RegisteredReads,
    reader: RunRef<'_>,
    source: &Source,
    name: &str,
    found: FoundVersion,
) {
    let target = ReadTarget::Object(key(name));
    reads.register(reader, &source.0, target.clone(), true);
    reads.found(reader, source.0.number, &target, found);
}

/// Returns the readers that a change of the object `name` wakes.
fn woken(reads: &RegisteredReads, name: &str, old: Option<&str>, new: Option<&str>) -> Vec<String> {
    let key = key(name);
    let change = ReadChange { key: &key, old, new, values: Vec::new(), labels: [None, None] };
    let woken = reads.changed(1, &[change], |key| Arc::from(key.to_string()));
    woken.iter().map(|key| key.name().to_owned()).collect()
}

fn version(version: &str) -> FoundVersion {
    FoundVersion::Version(version.into())
}

#[test]
fn a_change_between_registration_and_read_wakes() {
    let (reads, source, home) = (reads(10, 10), Source::new(1), key("home"));
    let reader = RunRef { key: &home, uid: "u", run: 1 };
    read(&reads, reader, &source, "app", version("2"));
    assert!(woken(&reads, "app", Some("1"), Some("2")).is_empty(), "it has read this version");
    // The next run registers, and has not read yet.
    let next = RunRef { run: 2, ..reader };
    reads.register(next, &source.0, ReadTarget::Object(key("app")), true);
    assert_eq!(woken(&reads, "app", Some("1"), Some("2")), ["home"]);
    reads.found(next, 1, &ReadTarget::Object(key("app")), version("2"));
    assert_eq!(woken(&reads, "app", Some("2"), Some("2")), ["home"], "the server was set back");
    assert_eq!(woken(&reads, "app", Some("2"), None), ["home"]);
    assert_eq!(reads.next_causes(&home), [Arc::from("shop/app")], "named once");
}

#[test]
fn a_read_that_finds_the_same_again_belongs_to_the_later_run() {
    let (reads, source, home) = (reads(10, 10), Source::new(1), key("home"));
    let reader = RunRef { key: &home, uid: "u", run: 1 };
    read(&reads, reader, &source, "app", version("2"));
    let (next, place) = (RunRef { run: 2, ..reader }, (1, ReadTarget::Object(key("app"))));
    assert!(!reads.confirm(next, &place, Some(("3", 3))) && !reads.confirm(next, &place, None));
    assert!(!reads.confirm(RunRef { uid: "v", ..next }, &place, Some(("2", 2))), "a successor");
    assert!(reads.confirm(next, &place, Some(("2", 2))));
    reads.commit(&home, 2);
    assert_eq!(woken(&reads, "app", Some("2"), Some("3")), ["home"], "it is kept");
    reads.commit(&home, 3);
    assert!(!reads.confirm(RunRef { run: 4, ..reader }, &place, Some(("2", 2))), "it is gone");
}

#[test]
fn two_states_in_one_run_make_every_change_count() {
    let (reads, source, home) = (reads(10, 10), Source::new(1), key("home"));
    let reader = RunRef { key: &home, uid: "u", run: 1 };
    read(&reads, reader, &source, "app", FoundVersion::Absent);
    read(&reads, reader, &source, "app", version("2"));
    assert_eq!(woken(&reads, "app", None, Some("2")), ["home"]);
}

#[test]
fn a_reader_that_waits_for_its_cache_is_not_woken_by_the_first_list() {
    let (reads, source, home) = (reads(10, 10), Source::new(1), key("home"));
    let reader = RunRef { key: &home, uid: "u", run: 1 };
    let target = ReadTarget::Object(key("app"));
    reads.register(reader, &source.0, target.clone(), false);
    assert!(woken(&reads, "app", None, Some("1")).is_empty());
    // The reader gave up, and now waits for the first list.
    reads.found(reader, 1, &target, FoundVersion::Absent);
    assert_eq!(woken(&reads, "app", None, Some("1")), ["home"]);
    reads.register(reader, &source.0, target, true);
    assert_eq!(woken(&reads, "app", Some("1"), None), ["home"], "it is about to read");
}

#[test]
fn a_successor_of_the_same_name_has_none_of_the_reads() {
    let (reads, source, home) = (reads(10, 10), Source::new(1), key("home"));
    read(&reads, RunRef { key: &home, uid: "u", run: 1 }, &source, "app", FoundVersion::Absent);
    read(&reads, RunRef { key: &home, uid: "v", run: 2 }, &source, "other", FoundVersion::Absent);
    assert!(woken(&reads, "app", None, Some("1")).is_empty());
    assert_eq!((woken(&reads, "other", None, Some("1")).len(), source.holders()), (1, 1));
}

#[test]
fn reads_beyond_the_bounds_become_one_of_the_kind() {
    for (limits, readers) in [((2, 100), 1), ((100, 2), 2)] {
        let (reads, source, other) = (reads(limits.0, limits.1), Source::new(1), Source::new(2));
        let keys = [key("home"), key("next")];
        let reader = |at: usize| RunRef { key: &keys[at % readers], uid: "u", run: 1 };
        for at in 0..4 {
            read(&reads, reader(at), &source, &format!("app-{at}"), FoundVersion::Absent);
        }
        assert_eq!(woken(&reads, "unread", None, Some("1")).len(), readers, "{limits:?}");
        assert!(reads.counts().1 <= 2, "{:?}", reads.counts());
        read(&reads, reader(0), &other, "app", FoundVersion::Absent);
        for name in &keys {
            reads.commit(name, 2);
        }
        assert_eq!((reads.counts(), source.holders(), other.holders()), ((0, 0), 0, 0));
    }
}

#[test]
fn values_of_an_index_wake_their_readers_alone() {
    let (reads, source) = (reads(10, 10), Source::new(1));
    let readers = [key("red"), key("blue"), key("other index")];
    for (reader, (index, value)) in readers.iter().zip([(0, "red"), (0, "blue"), (1, "red")]) {
        let reader = RunRef { key: reader, uid: "u", run: 1 };
        let target = ReadTarget::Value(index, value.into());
        reads.register(reader, &source.0, target.clone(), true);
        reads.found(reader, 1, &target, FoundVersion::Several);
    }
    let changed = |values: &[(usize, &str)]| {
        let values = values.iter().map(|(index, value)| (*index, (*value).to_owned())).collect();
        let app = key("app");
        let change =
            ReadChange { key: &app, old: Some("1"), new: Some("2"), values, labels: [None, None] };
        let woken = reads.changed(1, &[change], |_| Arc::from("a change"));
        woken.iter().map(|key| key.name().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(changed(&[(0, "red")]), ["red"]);
    assert_eq!(changed(&[(0, "blue"), (0, "red")]), ["blue", "red"]);
    assert_eq!(changed(&[(1, "red"), (1, "green")]), ["other index"]);
    reads.forget(&readers[0]);
    assert!(changed(&[(0, "red")]).is_empty());
    reads.clear();
    assert_eq!((reads.counts(), source.holders()), ((0, 0), 0));
}

#[test]
fn selectors_wake_their_readers_by_the_labels_before_and_after_a_change() {
    use windlass_core::resource::{Requirement, Selector};
    let (reads, source) = (reads(10, 10), Source::new(1));
    let web = || Selector::everything().equals("tier", "web");
    let other = Selector::everything().and(Requirement::Absent("tier".into()));
    let selections = [
        ("web", Some("shop"), web()),
        ("everywhere", None, web()),
        ("far", Some("far"), web()),
        ("new web", Some("shop"), web().equals("new", "yes")),
        ("no tier", Some("shop"), other),
        ("whole", Some("shop"), Selector::everything()),
    ];
    let readers: Vec<_> = selections.iter().map(|(reader, ..)| key(reader)).collect();
    for (reader, (_, namespace, labels)) in readers.iter().zip(selections) {
        let reader = RunRef { key: reader, uid: "u", run: 1 };
        let namespace = namespace.map(Into::into);
        let target = ReadTarget::Selection(Arc::new(ReadSelection { namespace, labels }));
        reads.register(reader, &source.0, target.clone(), true);
        reads.found(reader, 1, &target, FoundVersion::Several);
    }
    let changed = |labels: [Option<Labels<'_>>; 2]| {
        let app = key("app");
        let [old, new] = labels.each_ref().map(|state| state.as_ref().map(|_| "1"));
        let change = ReadChange { key: &app, old, new, values: Vec::new(), labels };
        let woken = reads.changed(1, &[change], |_| Arc::from("a change"));
        woken.iter().map(|key| key.name().to_owned()).collect::<Vec<_>>()
    };
    let (web, both) = (vec![("tier", "web")], vec![("new", "yes"), ("tier", "web")]);
    assert_eq!(changed([None, Some(web.clone())]), ["everywhere", "web", "whole"]);
    assert_eq!(changed([Some(both), None]), ["everywhere", "new web", "web", "whole"]);
    let moved = [Some(web), Some(vec![])];
    assert_eq!(changed(moved), ["everywhere", "no tier", "web", "whole"], "old and new state");
    assert_eq!(changed([Some(vec![("tier", "db")]), Some(vec![("tier", "db")])]), ["whole"]);
    readers.iter().for_each(|reader| reads.forget(reader));
    assert_eq!((reads.counts(), source.holders()), ((0, 0), 0));
    assert!(reads.tables.lock().is_empty(), "nor is a selector left");
}

/// Runs a reader once, successfully: each read is of the list, confirmed or registered. Returns how
/// many were of the list.
fn run(
    reads: &RegisteredReads,
    uid: &str,
    source: &Source,
    found: &[(&str, Option<(&str, u64)>)],
) -> usize {
    let attempt = AttemptReads::default();
    let home = key("home");
    let repeated = found.iter().filter(|it| read_as_attempt(reads, &attempt, uid, source, it));
    let repeated = repeated.count();
    attempt.commit(reads, &home, uid);
    repeated
}

/// Reads as a context does; whether the read was of the list.
fn read_as_attempt(
    reads: &RegisteredReads,
    attempt: &AttemptReads,
    uid: &str,
    source: &Source,
    (name, state): &(&str, Option<(&str, u64)>),
) -> bool {
    let (home, name, number) = (key("home"), key(name), source.0.number);
    let serial = state.map(|(_, serial)| serial);
    if attempt.repeats(reads, (&home, uid), (number, &name), serial) {
        return true;
    }
    let reader = RunRef { key: &home, uid, run: attempt.run(reads) };
    attempt.close(reads, reader);
    let target = ReadTarget::Object(name);
    if !reads.confirm(reader, &(number, target.clone()), *state) {
        reads.register(reader, &source.0, target.clone(), true);
        let found = state.map_or(FoundVersion::Absent, |(it, _)| version(it));
        reads.found(reader, number, &target, found);
    }
    false
}

#[test]
fn reads_that_two_runs_have_made_alike_are_listed_until_one_finds_another_state() {
    let (reads, source) = (reads(10, 10), Source::new(1));
    let one = [("app", Some(("1", 7))), ("none", None)];
    let two = [("app", Some(("2", 8))), ("none", None)];
    let listed: Vec<_> = [one, one, one, one, two, two, two]
        .iter()
        .map(|found| run(&reads, "u", &source, found))
        .collect();
    assert_eq!(listed, [0, 0, 2, 2, 0, 0, 2]);
    assert_eq!(woken(&reads, "app", Some("1"), Some("2")), [""; 0], "it has read that version");
    assert_eq!(woken(&reads, "app", Some("2"), Some("3")), ["home"]);
    assert_eq!(woken(&reads, "none", None, Some("1")), ["home"]);
    // The same version in another place, as after a new list of the cache.
    let moved = [("app", Some(("2", 9))), ("none", None)];
    assert_eq!([(); 2].map(|()| run(&reads, "u", &source, &moved)), [0, 2]);
    assert_eq!(run(&reads, "v", &source, &moved), 0, "a successor");
}

#[test]
fn a_listed_read_that_a_run_leaves_out_is_removed() {
    let (reads, source) = (reads(10, 10), Source::new(1));
    let both = [("app", Some(("1", 7))), ("other", Some(("1", 8)))];
    for _ in 0..2 {
        run(&reads, "u", &source, &both);
    }
    assert_eq!(run(&reads, "u", &source, &both[1..]), 1);
    assert_eq!((reads.counts(), source.holders()), ((1, 1), 1));
    assert_eq!(woken(&reads, "app", Some("1"), Some("2")), [""; 0]);
    assert_eq!(woken(&reads, "other", Some("1"), Some("2")), ["home"]);
    assert_eq!(run(&reads, "u", &source, &[]), 0);
    assert_eq!((reads.counts(), source.holders()), ((0, 0), 0));
}

#[test]
fn another_state_than_that_of_a_listed_read_of_the_same_run_makes_every_change_count() {
    let (reads, source) = (reads(10, 10), Source::new(1));
    let one = ("app", Some(("1", 7)));
    for _ in 0..2 {
        run(&reads, "u", &source, &[one]);
    }
    let attempt = AttemptReads::default();
    assert!(read_as_attempt(&reads, &attempt, "u", &source, &one));
    assert!(!read_as_attempt(&reads, &attempt, "u", &source, &("app", Some(("2", 8)))));
    assert_eq!(woken(&reads, "app", Some("1"), Some("2")), ["home"], "it has used version 1");
}

#[test]
fn reads_that_were_forgotten_meanwhile_are_registered_anew() {
    let (reads, source) = (reads(10, 10), Source::new(1));
    let both = [("app", Some(("1", 7))), ("other", Some(("1", 8)))];
    for _ in 0..2 {
        run(&reads, "u", &source, &both);
    }
    let attempt = AttemptReads::default();
    assert!(read_as_attempt(&reads, &attempt, "u", &source, &both[0]));
    reads.clear();
    assert!(!read_as_attempt(&reads, &attempt, "u", &source, &both[1]));
    attempt.commit(&reads, &key("home"), "u");
    assert_eq!(woken(&reads, "other", Some("1"), Some("2")), ["home"]);
}

#[test]
fn a_reader_of_more_than_single_objects_or_of_many_has_no_list() {
    let (reads, source, home) = (reads(100, 100), Source::new(1), key("home"));
    let many: Vec<_> = (0..64).map(|n| format!("app-{n}")).collect();
    let many: Vec<_> = many.iter().map(|name| (&**name, Some(("1", 7)))).collect();
    assert_eq!([(); 3].map(|()| run(&reads, "u", &source, &many)), [0; 3]);
    assert_eq!([(); 3].map(|()| run(&reads, "u", &source, &many[1..])), [0, 0, 63]);
    let attempt = AttemptReads::default();
    let reader = RunRef { key: &home, uid: "u", run: attempt.run(&reads) };
    reads.register(reader, &source.0, ReadTarget::Kind, true);
    reads.found(reader, 1, &ReadTarget::Kind, FoundVersion::Several);
    assert!(!read_as_attempt(&reads, &attempt, "u", &source, &many[1]), "the list has ended");
    attempt.commit(&reads, &home, "u");
    assert_eq!(reads.counts(), (1, 2));
}
