//! Attempts: their numbers, their names in logs, and yielding.

use super::*;
use windlass_client::client::test_support::Captured;

fn key(name: &str) -> ObjectKey {
    ObjectKey::new(Some("shop"), name)
}

#[tokio::test(start_paused = true)]
async fn a_worker_whose_reconciles_never_wait_yields_only_after_many_attempts() {
    let stage = Stage::start(1, LONG);
    for n in 0..9_000 {
        stage.add(&format!("fine-{n}"));
    }
    let (mut before, mut most) = (0, 0);
    while before < 9_000 {
        yield_now().await;
        let now = stage.script.runs.lock().len();
        most = most.max(now - before);
        before = now;
    }
    assert!((2_000..=5_000).contains(&most), "{most} turns in a row");
}

#[tokio::test(start_paused = true)]
async fn only_a_turn_for_a_change_alone_can_be_the_echo_of_an_own_write() {
    let at = tokio::time::Instant::now();
    let left = FollowUp { again: Some(at + LONG), has_failed: true };
    let script = Script { left: Mutex::new(Some(left)), ..Script::default() };
    let stage = Stage::playing(script, 1, LONG);
    let asked = |reasons: &[Reason], now| {
        let bits = reasons.iter().fold(0, |bits, reason| bits | reason.bit());
        stage.worker.own_follow_up(bits, &key("a"), now)
    };
    let (changed, requeue, retry) = (Reason::CHANGED, Reason::REQUEUE, Reason::RETRY);
    for reasons in [&[changed][..], &[changed, requeue], &[changed, retry, requeue]] {
        assert_eq!(asked(reasons, at), Some((Some(LONG), true)), "{reasons:?}");
    }
    for reasons in [&[][..], &[requeue], &[retry], &[Reason::ASKED], &[changed, Reason::ASKED]] {
        assert_eq!(asked(reasons, at), None, "{reasons:?}");
    }
    assert_eq!(asked(&[changed], at + LONG), None, "its time has come");
    *stage.script.left.lock() = Some(FollowUp { again: None, has_failed: false });
    assert_eq!(asked(&[changed], at + LONG), Some((None, false)));
    *stage.script.left.lock() = None;
    assert_eq!(asked(&[changed], at), None, "another writer was first");
}

/// A change restarts the retries of an object that was given up, and not of an object that is still
/// retried.
#[tokio::test(start_paused = true)]
async fn a_change_of_an_object_that_is_still_retried_is_one_more_attempt() {
    let stage = Stage::start(1, LONG);
    for run in 1..=4 {
        stage.worker.queue.add_with(key("fails"), Reason::CHANGED.add_options());
        while stage.script.runs("fails") < run {
            yield_now().await;
        }
    }
    let attempts = stage.script.attempts.lock().clone();
    assert!(attempts[0] == 0 && attempts[1..].iter().all(|attempt| *attempt > 0), "{attempts:?}");
}

#[tokio::test(start_paused = true)]
async fn a_reconcile_that_was_ended_is_logged_as_an_error_and_a_failure_as_a_warning() {
    for (name, level) in [("panics", "ERROR "), ("hangs", "ERROR "), ("fails", "WARN ")] {
        let (logged, _guard) = Captured::at(tracing::Level::WARN);
        let stage = Stage::start(1, LONG);
        stage.add(name);
        pass(Duration::from_secs(301)).await;
        let (lines, runs) = (logged.with("the reconcile"), stage.script.runs(name));
        assert!(runs > 1 && lines.len() >= runs - 1, "{name} {runs}: {lines:?}");
        assert!(lines.iter().all(|line| line.starts_with(level)), "{name}: {lines:?}");
        // Stopped here, so that the stage's log lines do not reach the next stage.
        stage.stop().await;
    }
}

/// Without a later attempt nothing would write the condition again.
#[tokio::test(start_paused = true)]
async fn a_terminal_failure_is_tried_again_only_while_its_condition_is_not_written() {
    for (shows, runs) in [(Some(false), 3..=4), (Some(true), 1..=1), (None, 1..=1)] {
        let stage = Stage::playing(Script { shows, ..Script::default() }, 1, LONG);
        stage.add("terminal");
        pass(Duration::from_secs(100)).await;
        let found = stage.script.runs("terminal");
        assert!(runs.contains(&found), "{shows:?}: {found}");
        stage.stop().await;
    }
}

#[test]
fn every_reconcile_of_a_worker_has_a_number_of_its_own_that_looks_random() {
    for seed in [0, 7, 0x5e83_0d29_41c2_77e3] {
        let ids: Vec<u64> = (1..=1_000).map(|attempt| reconcile_id(seed, attempt)).collect();
        let distinct: std::collections::BTreeSet<_> = ids.iter().collect();
        assert_eq!(distinct.len(), 1_000);
        for bit in 0..64 {
            let set = ids.iter().filter(|id| **id >> bit & 1 == 1).count();
            let changed = ids.windows(2).filter(|pair| (pair[0] ^ pair[1]) >> bit & 1 == 1).count();
            assert!((400..=600).contains(&set), "bit {bit} is set in {set}");
            assert!((50..=990).contains(&changed), "bit {bit} changes {changed} times");
        }
    }
}
