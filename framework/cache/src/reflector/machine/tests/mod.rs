//! Tests of the state machine alone: phases, requests and pauses, without a source.

mod absence;
mod rollback;

use super::attempt_end::EXPIRED;
use super::*;
use crate::reflector::Read;
use windlass_client::client::Verb;

fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

fn machine(options: &ReflectorOptions) -> Machine {
    Machine::new(options, Rng::seeded(7))
}

/// Returns a machine whose list is under way, for the version that the options name.
fn listing(options: &ReflectorOptions, now: Instant) -> Machine {
    let mut machine = machine(options);
    begin(&mut machine, now);
    machine
}

/// Returns a machine that watches from version 7.
fn watching(options: &ReflectorOptions, now: Instant) -> Machine {
    let mut machine = listing(options, now);
    complete(&mut machine, "7", now);
    machine
}

/// Begins the list that is due; returns the list's cause.
fn begin(machine: &mut Machine, now: Instant) -> &'static str {
    let (Read::Page { resource_version, .. } | Read::StreamingList { resource_version, .. }) =
        machine.next_read(|| true)
    else {
        panic!("a list is due: {machine:?}")
    };
    machine.list_begins(resource_version, now)
}

fn complete(machine: &mut Machine, version: &str, now: Instant) {
    machine.list_ended(version, now).expect("a list is under way");
    machine.stream_opens();
}

/// Returns the next request of a machine whose server supports streaming lists.
fn request(machine: &Machine) -> String {
    let version = |version: Option<String>| version.unwrap_or_else(|| "-".to_owned());
    match machine.next_read(|| true) {
        Read::Page { resource_version, limit, .. } => {
            format!("pages {} {}", version(resource_version), limit.unwrap_or_default())
        }
        Read::StreamingList { resource_version, .. } => {
            format!("stream {}", version(resource_version))
        }
        Read::Watch { resource_version, .. } => format!("watch {resource_version}"),
    }
}

/// Returns the cause of the list that is due; empty when none is.
fn cause(machine: &Machine) -> &'static str {
    machine.phase.due().map_or("", |due| due.cause)
}

fn action(action: &NextAction) -> &'static str {
    match action {
        NextAction::AtOnce => "at once",
        NextAction::ListAtOnce(_) => "list at once",
        NextAction::Wait { state: ReflectorState::Retrying(_), .. } => "retrying",
        NextAction::Wait { state: ReflectorState::Degraded(_), .. } => "degraded",
        NextAction::Wait { state: ReflectorState::Absent(_), empties: true, .. } => {
            "absent, emptied"
        }
        NextAction::Wait { state: ReflectorState::Absent(_), .. } => "absent",
        NextAction::Wait { .. } => "another state",
    }
}

fn pause(action: &NextAction) -> Duration {
    match action {
        NextAction::Wait { pause, .. } => *pause,
        _ => Duration::ZERO,
    }
}

fn why() -> String {
    "why".to_owned()
}

fn failed() -> AttemptEnd {
    AttemptEnd::Failed(why())
}

fn internal() -> AttemptEnd {
    AttemptEnd::Internal(why())
}

fn expired() -> AttemptEnd {
    AttemptEnd::Stale { cause: EXPIRED, why: why() }
}

fn stale() -> AttemptEnd {
    AttemptEnd::Stale { cause: "refused", why: why() }
}

fn absent() -> AttemptEnd {
    AttemptEnd::Absent(why())
}

fn throttled(after: Option<u64>) -> AttemptEnd {
    AttemptEnd::Throttled { after: after.map(seconds), why: why() }
}

fn refused() -> AttemptEnd {
    AttemptEnd::Refused { verb: Some(Verb::Watch), why: why() }
}

/// Ends an attempt without a stream.
fn end(machine: &mut Machine, end: AttemptEnd, now: Instant) -> NextAction {
    machine.ended(end, Duration::ZERO, now)
}

#[test]
fn a_new_reflector_begins_with_a_consistent_list_and_its_cause_is_initial() {
    let machine = machine(&ReflectorOptions::new());
    assert_eq!((request(&machine), cause(&machine)), ("stream -".to_owned(), "initial"));
    assert_eq!((machine.resume(), machine.newest(), machine.list_began()), (None, None, None));
}

#[test]
fn each_end_of_a_watch_is_answered_by_resuming_or_by_a_list_that_names_the_cause() {
    let now = Instant::now();
    for (ended, wanted, next, named) in [
        (AttemptEnd::Ended, "at once", "watch 7", ""),
        (failed(), "retrying", "watch 7", ""),
        (internal(), "retrying", "watch 7", ""),
        (throttled(None), "retrying", "watch 7", ""),
        (refused(), "degraded", "watch 7", ""),
        (AttemptEnd::Unconfirmed(why()), "retrying", "watch 7", ""),
        (AttemptEnd::RelistDue, "at once", "stream -", "in_part"),
        (expired(), "list at once", "stream -", "expired"),
        (stale(), "retrying", "stream -", "refused"),
        (absent(), "absent, emptied", "stream -", "absent"),
        (AttemptEnd::Panicked(why()), "degraded", "stream -", "panicked"),
    ] {
        let mut machine = watching(&ReflectorOptions::new(), now);
        let next_action = end(&mut machine, ended.clone(), now);
        assert_eq!(action(&next_action), wanted, "{ended:?}");
        assert_eq!((request(&machine), cause(&machine)), (next.to_owned(), named), "{ended:?}");
    }
}

#[test]
fn each_end_of_a_list_is_answered_by_a_list_and_its_cause_stays_unless_the_end_has_one() {
    let now = Instant::now();
    for (ended, wanted, named) in [
        (AttemptEnd::Unsupported(why()), "at once", "initial"),
        (failed(), "retrying", "initial"),
        (internal(), "retrying", "initial"),
        (throttled(None), "retrying", "initial"),
        (refused(), "degraded", "initial"),
        (AttemptEnd::Unconfirmed(why()), "retrying", "initial"),
        (expired(), "retrying", "expired"),
        (stale(), "retrying", "refused"),
        (absent(), "absent, emptied", "absent"),
        (AttemptEnd::Panicked(why()), "degraded", "panicked"),
    ] {
        let mut machine = listing(&ReflectorOptions::new(), now);
        let next_action = end(&mut machine, ended.clone(), now);
        assert_eq!(action(&next_action), wanted, "{ended:?}");
        assert_eq!(
            (request(&machine), cause(&machine)),
            ("stream -".to_owned(), named),
            "{ended:?}"
        );
    }
}

#[test]
fn a_list_that_named_a_version_is_made_again_as_a_consistent_read_until_one_is_complete() {
    let now = Instant::now();
    let mut machine = listing(&ReflectorOptions::new().stale_ok(true), now);
    assert_eq!(action(&end(&mut machine, stale(), now)), "at once");
    assert_eq!((request(&machine), cause(&machine)), ("stream -".to_owned(), "refused"));
    begin(&mut machine, now);
    assert_eq!(action(&end(&mut machine, stale(), now)), "retrying", "a consistent list waits");
    assert_eq!(request(&machine), "stream -");
    begin(&mut machine, now);
    complete(&mut machine, "7", now);
    end(&mut machine, stale(), now);
    assert_eq!(request(&machine), "stream 7");
}

#[test]
fn the_first_expired_watch_in_a_while_is_listed_at_once_and_the_next_after_a_pause() {
    let start = Instant::now();
    let options = ReflectorOptions::new().backoff_reset(seconds(100));
    let mut machine = watching(&options, start);
    let wanted = [(0, "list at once"), (99, "retrying"), (100, "list at once"), (199, "retrying")];
    for (after, wanted) in wanted {
        let now = start + seconds(after);
        assert_eq!(action(&end(&mut machine, expired(), now)), wanted, "after {after} s");
        begin(&mut machine, now);
        complete(&mut machine, "7", now);
    }
}

/// Mechanism 57: a streaming list that breaks twice is made in pages; other ends do not count.
#[test]
fn two_broken_streaming_lists_in_a_row_lead_to_pages_and_a_complete_list_to_streams_again() {
    let now = Instant::now();
    let mut machine = machine(&ReflectorOptions::new());
    for (ended, next) in [
        (failed(), "stream -"),
        (refused(), "stream -"),
        (throttled(None), "stream -"),
        (stale(), "stream -"),
        (internal(), "pages - 500"),
        (refused(), "pages - 500"),
    ] {
        begin(&mut machine, now);
        end(&mut machine, ended.clone(), now);
        assert_eq!(request(&machine), next, "{ended:?}");
    }
    begin(&mut machine, now);
    complete(&mut machine, "7", now);
    end(&mut machine, expired(), now);
    assert_eq!(request(&machine), "stream -");
}

#[test]
fn b4_pages_that_expire_lead_to_a_whole_list_and_a_failed_whole_list_to_a_stream() {
    let now = Instant::now();
    let mut machine = listing(&ReflectorOptions::new().streaming(false), now);
    machine.pages_expired();
    assert_eq!((request(&machine), cause(&machine)), ("pages - 0".to_owned(), "expired_page"));
    machine.list_begins(None, now);
    end(&mut machine, throttled(None), now);
    assert_eq!(request(&machine), "pages - 0", "the list did not fail");
    begin(&mut machine, now);
    end(&mut machine, failed(), now);
    assert_eq!(request(&machine), "pages - 500");

    let mut machine = listing(&ReflectorOptions::new(), now);
    for _ in 0..2 {
        end(&mut machine, failed(), now);
    }
    machine.pages_expired();
    end(&mut machine, failed(), now);
    assert_eq!(request(&machine), "stream -", "neither way has come to its end");
}

/// B4: lists that expire before they end.
#[test]
fn b4_the_fifth_failed_list_in_a_row_is_degraded_and_a_complete_one_begins_anew() {
    let now = Instant::now();
    let mut machine = machine(&ReflectorOptions::new());
    for round in 0..2 {
        // A refusal is no failed list, and does not end the row.
        for (ended, wanted) in [
            (failed(), "retrying"),
            (stale(), "retrying"),
            (throttled(None), "retrying"),
            (internal(), "retrying"),
            (failed(), "retrying"),
            (stale(), "degraded"),
            (failed(), "degraded"),
        ] {
            begin(&mut machine, now);
            assert_eq!(action(&end(&mut machine, ended.clone(), now)), wanted, "{round} {ended:?}");
        }
        begin(&mut machine, now);
        complete(&mut machine, "7", now);
        end(&mut machine, AttemptEnd::RelistDue, now);
    }
}

#[test]
fn only_an_unbroken_series_of_internal_errors_leads_to_a_list() {
    let start = Instant::now();
    let options = ReflectorOptions::new().internal_errors_for(seconds(60));
    for (between, next) in [
        (internal(), "stream -"),
        (failed(), "watch 7"),
        (AttemptEnd::Ended, "watch 7"),
        (AttemptEnd::Unconfirmed(why()), "watch 7"),
    ] {
        let mut machine = watching(&options, start);
        end(&mut machine, internal(), start);
        end(&mut machine, between.clone(), start + seconds(30));
        end(&mut machine, internal(), start + seconds(59));
        assert_eq!(request(&machine), "watch 7", "{between:?}");
        end(&mut machine, internal(), start + seconds(60));
        assert_eq!(request(&machine), next, "{between:?}");
    }
    // A list answers nothing about watches.
    let mut machine = listing(&options, start);
    end(&mut machine, internal(), start);
    begin(&mut machine, start);
    complete(&mut machine, "7", start);
    end(&mut machine, internal(), start + seconds(60));
    assert_eq!((request(&machine), cause(&machine)), ("stream -".to_owned(), "internal_error"));
}

#[test]
fn a_pause_grows_with_each_failure_and_adds_what_the_server_asked_for_up_to_a_minute() {
    let now = Instant::now();
    let options = ReflectorOptions::new().backoff(seconds(1), seconds(4));
    for (after, least) in [(None, 0), (Some(9), 9), (Some(60), 60), (Some(3600), 60)] {
        let mut machine = watching(&options, now);
        let waited = pause(&end(&mut machine, throttled(after), now));
        assert!((seconds(least)..seconds(least + 1)).contains(&waited), "{after:?}: {waited:?}");
    }
    let mut machine = watching(&options, now);
    let mut longest = |open_for| {
        (0..99).map(|_| pause(&machine.ended(failed(), open_for, now))).max().unwrap_or_default()
    };
    let (failing, healthy) = (longest(Duration::ZERO), longest(seconds(120)));
    assert!((seconds(3)..seconds(4)).contains(&failing), "{failing:?}");
    assert!(healthy < seconds(1), "{healthy:?}");
}

#[test]
fn only_a_consistent_list_proves_that_the_store_was_set_back() {
    let now = Instant::now();
    let complete_list = ListVerdict::Complete(StreamProgress::Listed);
    let older = ListVerdict::Older { newest: "7".to_owned() };
    let set_back = ListVerdict::SetBack { had: "7".to_owned() };
    for (stale_ok, version, shows_older, wanted) in [
        (false, "7", false, &complete_list),
        (false, "8", false, &complete_list),
        (false, "6", false, &set_back),
        (false, "8", true, &set_back),
        (true, "6", false, &older),
        (true, "8", true, &complete_list),
    ] {
        let mut machine = watching(&ReflectorOptions::new().stale_ok(stale_ok), now);
        end(&mut machine, AttemptEnd::RelistDue, now);
        begin(&mut machine, now);
        let verdict = machine.judge_list(version, || shows_older);
        assert_eq!(verdict, *wanted, "{stale_ok} {version} {shows_older}");
    }
    let first = listing(&ReflectorOptions::new(), now);
    assert_eq!(first.judge_list("1", || true), complete_list, "there was nothing before");
}

#[test]
fn an_epoch_that_ended_forgets_the_position_and_keeps_the_attempts_at_a_list() {
    let now = Instant::now();
    let mut machine = watching(&ReflectorOptions::new().stale_ok(true), now);
    end(&mut machine, stale(), now);
    for _ in 0..2 {
        begin(&mut machine, now);
        end(&mut machine, failed(), now);
    }
    machine.epoch_ended();
    assert_eq!(action(&end(&mut machine, AttemptEnd::NewEpoch, now)), "at once");
    assert_eq!((request(&machine), cause(&machine)), ("pages 0 500".to_owned(), "new_epoch"));
    assert_eq!((machine.resume(), machine.newest()), (None, None));
}

#[test]
fn a_list_that_left_out_items_is_degraded_and_made_again_after_five_minutes() {
    let now = Instant::now();
    let mut machine = listing(&ReflectorOptions::new(), now);
    machine.count_unreadable();
    let in_part = ListVerdict::Complete(StreamProgress::ListedInPart);
    assert_eq!(machine.judge_list("7", || false), in_part);
    assert_eq!(machine.relist_at(), None, "the list is under way");
    complete(&mut machine, "7", now);
    assert_eq!(machine.relist_at(), Some(now + seconds(300)));
    assert!(
        matches!(machine.watching_state(), ReflectorState::Degraded(why) if why.starts_with("1 items"))
    );
    // Data that a watch leaves out is read by the list that follows.
    machine.count_unreadable();
    assert!(
        matches!(machine.watching_state(), ReflectorState::Degraded(why) if why.starts_with("1 items"))
    );
    end(&mut machine, AttemptEnd::RelistDue, now);
    begin(&mut machine, now);
    complete(&mut machine, "8", now);
    assert_eq!((machine.relist_at(), machine.watching_state()), (None, ReflectorState::Watching));
}

#[test]
fn objects_of_another_kind_are_logged_once_between_two_lists() {
    let now = Instant::now();
    let mut machine = listing(&ReflectorOptions::new(), now);
    assert!(machine.is_first_unexpected() && !machine.is_first_unexpected());
    complete(&mut machine, "7", now);
    end(&mut machine, failed(), now);
    assert!(!machine.is_first_unexpected(), "the watch was only resumed");
    end(&mut machine, expired(), now);
    begin(&mut machine, now);
    complete(&mut machine, "8", now);
    assert!(machine.is_first_unexpected() && !machine.is_first_unexpected());
}

#[test]
fn items_are_counted_while_a_list_is_under_way_and_each_of_them_once() {
    let now = Instant::now();
    let mut machine = listing(&ReflectorOptions::new(), now);
    for items in [0, 3, 0, 2] {
        (0..items).for_each(|_| machine.count_item());
        assert_eq!(machine.take_uncounted_items(), items);
    }
    assert_eq!(machine.items(), 5);
    let figures = machine.list_ended("7", now + seconds(9));
    assert_eq!(figures, Some(ListFigures { items: 5, took: seconds(9) }));
    machine.count_item();
    assert_eq!((machine.items(), machine.take_uncounted_items()), (0, 0), "the list has ended");
}

#[test]
fn a_page_has_five_hundred_items_where_a_server_pages_and_none_is_asked_for_elsewhere() {
    let now = Instant::now();
    let options = ReflectorOptions::new().streaming(false).stale_ok(true);
    let mut machine = listing(&options, now);
    complete(&mut machine, "7", now);
    end(&mut machine, AttemptEnd::RelistDue, now);
    assert_eq!(request(&machine), "pages 7 0", "answered from memory, and whole");
    begin(&mut machine, now);
    machine.page_follows();
    assert_eq!(request(&machine), "pages 7 0", "a list of a later state may be paged");
    let mut machine = listing(&options, now);
    machine.page_follows();
    complete(&mut machine, "7", now);
    end(&mut machine, AttemptEnd::RelistDue, now);
    assert_eq!(request(&machine), "pages 7 500", "the server reads its storage for such a list");
    for (size, limit) in [(0, "pages 0 0"), (20, "pages 0 20")] {
        assert_eq!(request(&self::machine(&options.clone().page_size(size))), limit);
    }
}

/// Servers and clients spread: watches of many clients do not end together.
#[test]
fn a_watch_asks_for_a_time_between_the_least_and_twice_that() {
    let now = Instant::now();
    let options = ReflectorOptions::new().min_watch_timeout(seconds(400));
    let machine = watching(&options, now);
    let asked: Vec<_> = (0..99)
        .map(|_| match machine.next_read(|| panic!("a watch is not a list")) {
            Read::Watch { timeout, .. } => timeout.as_secs(),
            other => panic!("{other:?}"),
        })
        .collect();
    assert!(asked.iter().all(|asked| (400..800).contains(asked)), "{asked:?}");
    for half in [400..600, 600..800] {
        assert!(asked.iter().any(|asked| half.contains(asked)), "{asked:?}");
    }
}
