//! Writes, renewals and the end of a term at the leader's gate.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::time::Duration;

use loom::thread;

use crate::client::{InFlightWrites, WriteGate};
use crate::clock::Clock;
use crate::explore;

/// Stand-in of the durations for the modelled source.
mod durations {
    use std::time::Duration;

    pub(super) const MIN_VALIDITY: Duration = Duration::from_secs(1);

    #[derive(Clone, Copy)]
    pub struct LeaseDurations;

    impl LeaseDurations {
        pub fn validity(&self) -> Duration {
            Duration::from_secs(13)
        }
    }
}

include!(concat!(env!("OUT_DIR"), "/gate.in"));

use gate::{CloseOnDrop, LeaseGate};

pub const MODELS: &[(&str, fn())] = &[
    ("who_hears_of_the_end_finds_the_gate_closed", the_end_is_told_last),
    ("a_renewal_that_ends_late_reopens_nothing", a_late_renewal),
    ("a_write_has_no_more_time_than_its_lease", a_write_beside_time),
    ("a_renewal_lets_the_next_write_out", a_renewal_beside_a_write),
    ("who_closes_the_gate_sees_what_it_let_out", a_write_beside_the_end),
    ("who_waits_for_writes_hears_of_the_last", a_wait_beside_an_answer),
];

fn gate(clock: &Clock) -> LeaseGate {
    gate_over(clock, flights(clock))
}

fn gate_over(clock: &Clock, flights: InFlightWrites) -> LeaseGate {
    LeaseGate::new(
        "lease".to_owned(),
        clock.clone(),
        durations::LeaseDurations,
        clock.reading(),
        flights,
    )
}

fn flights(clock: &Clock) -> InFlightWrites {
    InFlightWrites::new(clock.clone(), Duration::from_secs(2))
}

/// Another thread is notified of the end of the term, then tries to write.
fn the_end_is_told_last() {
    explore(3, || {
        let gate = gate(&Clock::default());
        let is_notified = Arc::new(AtomicBool::new(false));
        let term = thread::spawn({
            let (gate, is_notified) = (gate.clone(), Arc::clone(&is_notified));
            move || drop(CloseOnDrop { gate, notify: move || is_notified.store(true, SeqCst) })
        });
        thread::yield_now();
        let notified = is_notified.load(SeqCst);
        let admitted = gate.admit().is_ok();
        assert!(!(notified && admitted), "a write left after the notification of the end");
        term.join().unwrap();
        assert!(gate.admit().is_err());
    });
}

/// The answer to a renewal comes while the term ends.
fn a_late_renewal() {
    explore(3, || {
        let clock = Clock::default();
        let gate = gate(&clock);
        let renewal = thread::spawn({
            let (gate, clock) = (gate.clone(), clock.clone());
            move || gate.renewed(clock.reading())
        });
        gate.close();
        assert!(gate.admit().is_err(), "the gate is open after it was closed");
        renewal.join().unwrap();
        assert!(gate.admit().is_err(), "a renewal opened it again");
        assert!(gate.overdue().is_none(), "a closed gate is not overdue");
    });
}

/// Time passes during a check: a term that was over before the check is refused.
fn a_write_beside_time() {
    explore(3, || {
        let clock = Clock::default();
        let gate = gate(&clock);
        let time = thread::spawn({
            let clock = clock.clone();
            move || {
                clock.advance(Duration::from_millis(6_000));
                clock.advance(Duration::from_millis(6_500));
            }
        });
        let before = gate_time(&clock);
        let admitted = gate.admit();
        let longest = Duration::from_secs(13).saturating_sub(before);
        match admitted {
            Ok(limit) => {
                let limit = limit.expect("a lease has an end");
                assert!(limit <= longest, "it may take {limit:?} of {longest:?}");
                assert!(limit >= Duration::from_secs(1), "it has no time left");
            }
            Err(_) => assert!(gate_time(&clock) > Duration::from_secs(12)),
        }
        time.join().unwrap();
        assert!(gate.admit().is_err());
    });
}

/// Elapsed time.
fn gate_time(clock: &Clock) -> Duration {
    Clock::default().reading().longest_until(&clock.reading())
}

/// A renewal that was sent late in the term counts for a later write.
fn a_renewal_beside_a_write() {
    explore(3, || {
        let clock = Clock::default();
        let gate = gate(&clock);
        clock.advance(Duration::from_secs(12));
        let is_renewed = Arc::new(AtomicBool::new(false));
        let renewal = thread::spawn({
            let (gate, clock, is_renewed) = (gate.clone(), clock.clone(), Arc::clone(&is_renewed));
            move || {
                let sent = clock.reading();
                clock.advance(Duration::from_secs(2));
                gate.renewed(sent);
                is_renewed.store(true, SeqCst);
            }
        });
        let must = is_renewed.load(SeqCst);
        let admitted = gate.admit();
        assert!(!must || admitted.is_ok(), "a renewed lease was refused");
        if let Ok(Some(limit)) = admitted {
            assert!(limit <= Duration::from_secs(11), "time before the answer counted twice");
        }
        renewal.join().unwrap();
        assert_eq!(gate.validity(), Some(Duration::from_secs(11)));
    });
}

/// The lease is given back when nothing is under way: nothing may leave after that.
fn a_write_beside_the_end() {
    explore(3, || {
        let clock = Clock::default();
        let flights = flights(&clock);
        let gate = gate_over(&clock, flights.clone());
        let write = thread::spawn({
            let gate = gate.clone();
            move || gate.begin_write()
        });
        gate.close();
        let is_quiet = flights.outstanding().0 == 0;
        let written = write.join().unwrap();
        assert!(!(is_quiet && written.is_ok()), "a write left when nothing was under way");
        drop(written);
        assert_eq!(flights.outstanding().0, 0);
    });
}

/// Writes are answered while a thread waits for them.
fn a_wait_beside_an_answer() {
    explore(3, || {
        let clock = Clock::default();
        let flights = flights(&clock);
        let [first, second] = [flights.begin(), flights.begin()];
        let answers = thread::spawn(move || {
            drop(first);
            drop(second);
        });
        let is_idle = loom::future::block_on(flights.idle(Duration::from_secs(2)));
        assert!(is_idle && flights.outstanding().0 == 0, "the wait ended before the answers");
        answers.join().unwrap();
    });
}
