//! Broken traces: each promise must be seen to be broken.

use std::collections::BTreeMap;
use std::time::Duration;

use super::*;

fn object(uid: u64, version: u64) -> Shown {
    Shown { uid, version, serial: version * 10 }
}

/// A kind; the key `a/x` was created (1), changed (2), removed, created anew (4) and changed (5).
fn book() -> (Book, usize) {
    let mut book = Book::new();
    let kind = book.kind("things");
    for state in [Some((1, 1)), Some((1, 2)), None, Some((2, 4)), Some((2, 5))] {
        book.commit(kind, "a", "x", state.map(|(uid, version)| object(uid, version)));
    }
    let listener = book.listener(kind, "listener", Scope::default());
    (book, listener)
}

fn added(uid: u64, version: u64) -> Event {
    Event::Added(object(uid, version))
}

fn updated(uid: u64, old: u64, new: u64) -> Event {
    Event::Updated { old: object(uid, old), new: object(uid, new) }
}

fn deleted(uid: u64, version: u64) -> Event {
    Event::Deleted(object(uid, version))
}

/// Returns the promises that a trace breaks.
fn broken(events: &[Event]) -> Vec<&'static str> {
    let (mut book, listener) = book();
    for event in events {
        book.deliver(listener, "a", "x", *event, None);
    }
    let settled = book.settled();
    book.note(settled);
    book.violations().iter().map(|violation| violation.promise).collect()
}

#[test]
fn a_trace_that_shows_everything_and_one_that_merges_are_right() {
    let whole = [added(1, 1), updated(1, 1, 2), deleted(1, 2), added(2, 4), updated(2, 4, 5)];
    assert!(broken(&whole).is_empty());
    assert!(broken(&[added(2, 5)]).is_empty());
    assert!(broken(&[added(1, 1), deleted(1, 2), added(2, 5)]).is_empty());
    assert!(
        broken(&[added(1, 1), deleted(1, 1), added(2, 5), Event::Resync(object(2, 5))]).is_empty()
    );
}

#[test]
fn g_c1_a_state_that_never_was_or_goes_back_is_found() {
    assert_eq!(broken(&[added(1, 3), added(2, 5)]), ["G-C1"]);
    let torn = Event::Added(Shown { serial: 20, ..object(2, 5) });
    assert_eq!(broken(&[torn, added(2, 5)]), ["G-C1"], "the content of another version");
    let back = [added(1, 2), updated(1, 2, 1)];
    assert_eq!(broken(&back)[0], "G-C1");
    assert_eq!(broken(&[added(1, 1), updated(1, 1, 1)])[0], "G-C1", "the same state twice");
    let ghost = [added(1, 1), deleted(1, 1), added(1, 2), deleted(1, 2), added(2, 5)];
    assert_eq!(broken(&ghost)[0], "G-C1", "shown again after it was gone");
    assert_eq!(broken(&[added(2, 5), deleted(2, 5), added(2, 5)])[0], "G-C1", "it is not gone");
}

#[test]
fn g_c1_an_object_that_the_cache_does_not_look_at_is_found() {
    let (mut book, _) = book();
    let scope = Scope { namespaces: vec!["b".to_owned()], selects: None };
    let other = book.listener(0, "other namespace", scope);
    let scope = Scope { namespaces: Vec::new(), selects: Some(|serial| serial != 50) };
    let selected = book.listener(0, "selected", scope);
    book.deliver(other, "a", "x", added(2, 5), None);
    book.deliver(selected, "a", "x", added(2, 5), None);
    let found: Vec<_> = book.violations().iter().map(|v| (v.promise, &*v.observer)).collect();
    assert_eq!(found, [("G-C1", "other namespace"), ("G-C1", "selected")]);
}

#[test]
fn g_c4_a_lost_a_second_and_a_missing_deletion_are_found() {
    assert_eq!(broken(&[added(1, 2), added(2, 5)])[0], "G-C4", "the successor came without it");
    assert_eq!(broken(&[added(1, 2), updated(1, 2, 5)])[0], "G-C1");
    let unsplit = Event::Updated { old: object(1, 2), new: object(2, 5) };
    assert_eq!(broken(&[added(1, 2), unsplit])[0], "G-C4", "two uids in one update");
    let twice = [added(1, 2), deleted(1, 2), deleted(1, 2), added(2, 5)];
    assert_eq!(broken(&twice), ["G-C4"]);
    let older = [added(1, 1), deleted(1, 2), deleted(1, 1), added(2, 5)];
    assert_eq!(broken(&older), ["G-C4"]);
    let never_added = [deleted(1, 2), added(2, 5)];
    assert!(
        broken(&never_added).is_empty(),
        "a deletion is delivered also for an object that was never added"
    );
    assert_eq!(
        broken(&[updated(2, 4, 5)])[0],
        "G-C4",
        "an update of an object that was never added"
    );
    assert_eq!(broken(&[added(1, 2), deleted(2, 4), added(2, 5)])[0], "G-C4", "another's deletion");
}

#[test]
fn g_c4_a_deletion_that_is_never_told_is_found_at_the_end() {
    let (mut book, listener) = book();
    book.deliver(listener, "a", "x", added(2, 5), None);
    assert!(book.settled().is_ok());
    book.commit(0, "a", "x", None);
    assert_eq!(book.settled().unwrap_err().promise, "G-C6");
    book.deliver(listener, "a", "x", deleted(2, 5), None);
    assert!(book.settled().is_ok());
}

#[test]
fn g_c6_a_change_that_is_never_told_and_a_wrong_old_state_are_found() {
    assert_eq!(broken(&[added(2, 4)]), ["G-C6"]);
    assert_eq!(broken(&[]), ["G-C6"]);
    let wrong = [added(1, 1), updated(1, 2, 2), deleted(1, 1), added(2, 5)];
    assert_eq!(broken(&wrong), ["G-C6"]);
    let (mut book, listener) = book();
    book.remove(listener);
    book.deliver(listener, "a", "x", added(2, 5), None);
    assert_eq!(book.violations()[0].promise, "G-C6", "delivered after it was removed");
}

#[test]
fn g_c6_a_listener_is_not_told_what_its_cache_does_not_show() {
    for (event, view) in
        [(added(2, 5), Some(object(2, 4))), (added(2, 5), None), (added(2, 5), Some(object(1, 2)))]
    {
        let (mut book, listener) = book();
        book.deliver(listener, "a", "x", event, Some(view));
        assert_eq!(book.violations()[0].promise, "G-C6", "{event:?}, {view:?}");
    }
    let (mut book, listener) = book();
    book.deliver(listener, "a", "x", added(1, 1), Some(Some(object(1, 2))));
    book.deliver(listener, "a", "x", deleted(1, 2), Some(Some(object(1, 2))));
    assert_eq!(book.violations().len(), 1);
    assert_eq!(book.violations()[0].promise, "G-C6", "its deletion was delivered, and it is shown");
}

#[test]
fn g_c3_a_version_that_goes_back_must_be_announced() {
    let mut reader = Reader::new("reader", Scope::default());
    let mut look = |version, announced| reader.version(version, || announced);
    assert!(look(7, 0).is_ok() && look(7, 0).is_ok());
    assert_eq!(look(6, 0).unwrap_err().promise, "G-C3");
    assert!(look(9, 0).is_ok() && look(2, 1).is_ok());
    assert!(look(1, 1).is_err());
}

#[test]
fn a_new_epoch_has_states_of_its_own_and_none_of_the_old_ones_after_it() {
    let (mut book, listener) = book();
    let key = book.history(0).find_key("a", "x").unwrap();
    book.deliver(listener, "a", "x", added(2, 5), None);
    book.restore(&[BTreeMap::from([(key, object(1, 2))])]);
    assert_eq!(book.history(0).epoch(), 1);
    book.deliver(listener, "a", "x", deleted(2, 5), None);
    book.deliver(listener, "a", "x", added(1, 2), None);
    assert!(book.violations().is_empty() && book.settled().is_ok(), "{:?}", book.violations());
    let again = Event::Updated { old: object(1, 2), new: object(1, 2) };
    book.deliver(listener, "a", "x", again, None);
    assert!(book.violations().is_empty(), "a new epoch delivers everything once more");
    let mut twice = book.of(listener).clone();
    assert!(twice.deliver(book.history(0), key, again, None).is_err(), "but not twice");
    // Version 5 is given a second time, to another object.
    let other = Shown { serial: 51, ..object(1, 5) };
    book.commit(0, "a", "x", Some(other));
    let update = |new| Event::Updated { old: object(1, 2), new };
    book.deliver(listener, "a", "x", update(object(1, 5)), None);
    assert_eq!(book.violations()[0].promise, "G-C1", "the old epoch's");
    book.deliver(listener, "a", "x", update(other), None);
    assert_eq!(book.violations().len(), 1);
}

fn view(objects: &[(KeyId, Shown)]) -> View {
    let term = |shown: &Shown| format!("t{}", shown.serial % 4);
    let mut view = View { list: objects.to_vec(), by_term: BTreeMap::new() };
    for number in 0..4 {
        view.by_term.insert(format!("t{number}"), Vec::new());
    }
    for (key, shown) in objects {
        view.by_term.entry(term(shown)).or_default().push((*key, *shown));
    }
    view
}

fn term(serial: u64) -> Vec<String> {
    vec![format!("t{}", serial % 4)]
}

#[test]
fn g_c5_list_and_index_must_agree_and_be_in_order() {
    let (mut book, _) = book();
    let x = book.history(0).find_key("a", "x").unwrap();
    let (w, _) = book.commit(0, "a", "w", Some(object(7, 6)));
    let history = book.history(0);
    let (older, newer) = ((x, object(2, 4)), (x, object(2, 5)));
    let right = view(&[(w, object(7, 6)), newer]);
    let read = |view: &View| {
        Reader::new("reader", Scope::default()).read(history, view, term).map_err(|v| v.promise)
    };
    assert_eq!(read(&right), Ok(()));
    let mut missing = right.clone();
    missing.by_term.get_mut("t2").unwrap().clear();
    assert_eq!(read(&missing), Err("G-C5"));
    let mut unlinked = view(&[(w, object(7, 6)), newer]);
    unlinked.by_term.get_mut("t0").unwrap().push(older);
    assert_eq!(read(&unlinked), Err("G-C5"), "the index still has the version before");
    assert_eq!(read(&view(&[newer, (w, object(7, 6))])), Err("G-C5"), "order");
    assert_eq!(read(&view(&[older, newer])), Err("G-C5"), "twice");
}

#[test]
fn g_c1_reads_never_go_back() {
    let (book, _) = book();
    let history = book.history(0);
    let x = history.find_key("a", "x").unwrap();
    let mut reader = Reader::new("reader", Scope::default());
    assert!(reader.read(history, &view(&[(x, object(1, 2))]), term).is_ok());
    assert!(reader.read(history, &view(&[(x, object(1, 2))]), term).is_ok());
    let back = reader.clone().read(history, &view(&[(x, object(1, 1))]), term);
    assert_eq!(back.unwrap_err().promise, "G-C1");
    assert!(reader.read(history, &view(&[]), term).is_ok());
    let ghost = reader.clone().read(history, &view(&[(x, object(1, 2))]), term);
    assert_eq!(ghost.unwrap_err().promise, "G-C1");
    assert!(reader.read(history, &view(&[(x, object(2, 4))]), term).is_ok());
    assert_eq!(reader.read(history, &view(&[]), term).unwrap_err().promise, "G-C1", "not gone");
}

#[test]
fn g_c2_a_cache_that_does_not_end_where_the_server_ends_is_found() {
    let (book, _) = book();
    let history = book.history(0);
    let x = history.find_key("a", "x").unwrap();
    let reader = Reader::new("reader", Scope::default());
    let settled = |objects: &[(KeyId, Shown)]| {
        reader.settled(history, &objects.iter().copied().collect()).map_err(|v| v.promise)
    };
    assert_eq!(settled(&[(x, object(2, 5))]), Ok(()));
    assert_eq!(settled(&[(x, object(2, 4))]), Err("G-C2"));
    assert_eq!(settled(&[]), Err("G-C2"));
}

#[test]
fn g_c7_synced_before_a_consistent_state_was_applied_and_told_is_found() {
    let (mut book, listener) = book();
    let x = book.history(0).find_key("a", "x").unwrap();
    let start = Start::now(book.history(0));
    let check = |book: &Book, objects: &[(KeyId, Shown)]| {
        let view = objects.iter().copied().collect();
        let synced = start.synced("cache", book.history(0), &Scope::default(), &view);
        synced
            .and_then(|()| start.received(book.history(0), book.of(listener)))
            .map_err(|violation| (violation.promise, violation.observer))
    };
    let bad = |observer: &str| Err(("G-C7", observer.to_owned()));
    assert_eq!(check(&book, &[]), bad("cache"));
    assert_eq!(check(&book, &[(x, object(2, 4))]), bad("cache"), "a stale list");
    assert_eq!(check(&book, &[(x, object(2, 5))]), bad("listener"));
    book.deliver(listener, "a", "x", added(2, 5), None);
    assert_eq!(check(&book, &[(x, object(2, 5))]), Ok(()));
    book.commit(0, "a", "x", Some(object(2, 6)));
    assert_eq!(check(&book, &[(x, object(2, 6))]), Ok(()), "a later state is as good");
}

#[test]
fn g_c7_a_late_listener_is_told_what_the_cache_showed_when_it_came() {
    let (mut book, listener) = book();
    let x = book.history(0).find_key("a", "x").unwrap();
    let start = Start::of(book.history(0), &BTreeMap::from([(x, object(2, 4))]));
    let received =
        |book: &Book| start.received(book.history(0), book.of(listener)).map_err(|v| v.promise);
    assert_eq!(received(&book), Err("G-C7"));
    book.deliver(listener, "a", "x", added(2, 4), None);
    assert_eq!(received(&book), Ok(()));
}

#[test]
fn g_c8_an_own_write_must_be_shown_or_told_to_be_missing() {
    let (mut book, _) = book();
    let (x, position) = book.commit(0, "a", "x", Some(object(2, 6)));
    let history = book.history(0).clone();
    let until = Duration::from_secs(10);
    let mut reader = Reader::new("reader", Scope::default());
    reader.wrote(&history, x, position, until);
    let look = |reader: &mut Reader, version, stale, second| {
        let view = Some(object(2, version));
        reader.read_own(&history, x, view, stale, Duration::from_secs(second))
    };
    assert!(look(&mut reader, 6, false, 1).is_ok());
    assert_eq!(look(&mut reader, 5, false, 1).unwrap_err().promise, "G-C8");
    assert_eq!(look(&mut reader, 5, true, 9).unwrap_err().promise, "G-C8", "too early");
    assert_eq!(look(&mut reader, 5, false, 11).unwrap_err().promise, "G-C8", "not reported");
    assert!(look(&mut reader, 5, true, 11).is_ok());
    assert!(look(&mut reader, 6, false, 12).is_ok() && reader.own().is_empty());
}

#[test]
fn g_c9_a_kind_that_waits_for_an_ill_one_is_found() {
    let mut book = Book::new();
    let (ill, well) = (book.kind("ill"), book.kind("well"));
    let [of_ill, of_well] =
        [ill, well].map(|kind| book.listener(kind, "listener", Scope::default()));
    for kind in [ill, well] {
        book.commit(kind, "a", "x", Some(object(1, 1)));
    }
    let look = |book: &Book| undisturbed(book.settled_of(well)).map_err(|v| (v.promise, v.key));
    assert_eq!(look(&book), Err(("G-C9", "well a/x".to_owned())), "it waits with the ill one");
    book.deliver(of_well, "a", "x", added(1, 1), None);
    assert_eq!(look(&book), Ok(()), "the ill one may wait");
    assert_eq!(book.settled().unwrap_err().promise, "G-C6", "but not for ever");
    book.deliver(of_ill, "a", "x", added(1, 1), None);
    assert!(book.settled().is_ok() && book.violations().is_empty());
}

#[test]
fn g_c9_an_object_that_suffers_with_a_bad_one_is_found() {
    let look = |is_bad, error| decodes("reader", is_bad, error).map_err(|v| v.promise);
    assert_eq!(look(false, Some("the one beside it is broken")), Err("G-C9"));
    assert_eq!(look(true, None), Err("G-C1"), "made of something else");
    assert_eq!(look(true, Some("size is not a number")), Ok(()));
    assert_eq!(look(false, None), Ok(()));
}

#[test]
fn g_c9_a_listener_that_stops_at_a_bad_object_is_found() {
    let bad = Shown { serial: 7, ..object(1, 1) };
    let good = object(2, 2);
    let world = |delivered_after: bool| {
        let mut book = Book::new();
        let kind = book.kind("things");
        let listener = book.listener(kind, "listener", Scope::default());
        book.commit(kind, "a", "bad", Some(bad));
        book.commit(kind, "a", "good", Some(good));
        book.deliver(listener, "a", "bad", Event::Added(bad), None);
        if delivered_after {
            book.deliver(listener, "a", "good", Event::Added(good), None);
        }
        undisturbed(book.settled()).map_err(|v| (v.promise, v.key))
    };
    assert_eq!(world(true), Ok(()));
    assert_eq!(world(false), Err(("G-C9", "things a/good".to_owned())));
}

#[test]
fn a_late_book_looks_when_the_history_has_come() {
    let mut book = Book::late();
    let kind = book.kind("things");
    let listener = book.listener(kind, "listener", Scope::default());
    book.deliver(listener, "a", "x", added(1, 1), None);
    book.deliver(listener, "a", "x", added(1, 2), None);
    book.commit(kind, "a", "x", Some(object(1, 1)));
    book.commit(kind, "a", "x", Some(object(1, 2)));
    assert!(book.violations().is_empty());
    book.catch_up();
    assert_eq!(book.violations().len(), 1);
    let text = book.violations()[0].to_string();
    for part in ["G-C4 broken for listener, things a/x", "server, state 1", "Added"] {
        assert!(text.contains(part), "{text}");
    }
}

#[test]
fn forgotten_states_do_not_change_the_verdict() {
    let (mut book, listener) = book();
    book.deliver(listener, "a", "x", added(2, 5), None);
    book.forget();
    book.commit(0, "a", "x", Some(object(2, 6)));
    book.deliver(listener, "a", "x", updated(2, 5, 6), None);
    assert!(book.violations().is_empty() && book.settled().is_ok());
    book.deliver(listener, "a", "x", updated(2, 6, 5), None);
    assert_eq!(book.violations()[0].promise, "G-C1");
}
