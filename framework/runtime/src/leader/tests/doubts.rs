//! Writes that the server may still execute when their lease is to be given back.

use super::*;

const SECOND: Duration = Duration::from_secs(1);

/// Lets a write out whose timeout at the server is `server_timeout`, and gives the write up.
fn give_up(gate: &LeaseGate, server_timeout: Duration) {
    let mut out = gate.begin_write().unwrap();
    out.sent(Instant::now() + server_timeout);
}

impl Bench {
    /// A term of `a`, and the elector.
    async fn lead(&self) -> (Elector, Term) {
        let (elector, _) = self.elector("a");
        let term = elector.campaign(&self.stop).await.unwrap();
        (elector, term)
    }
}

#[tokio::test(start_paused = true)]
async fn l8_the_lease_is_not_given_back_while_a_write_that_was_given_up_may_be_executed() {
    let bench = Bench::new();
    let (_, term) = bench.lead().await;
    give_up(&term.gate(), 10 * SECOND);
    let given_up = Instant::now();
    term.end(true).await;
    assert!(given_up.elapsed() < SECOND, "no wait would have been long enough");
    assert_eq!(bench.store.holder().as_deref(), Some("a"), "left to expire");
    let (next, _) = bench.elector("b");
    let _term = next.campaign(&bench.stop).await.unwrap();
    let over = given_up.elapsed();
    assert!(over >= 12 * SECOND, "b leads after {over:?}: the server was told 10 s");
}

#[tokio::test(start_paused = true)]
async fn l8_the_lease_is_given_back_at_once_when_every_write_was_answered() {
    let bench = Bench::new();
    let (_, term) = bench.lead().await;
    for _ in 0..3 {
        let mut out = term.gate().begin_write().unwrap();
        out.sent(Instant::now() + 10 * SECOND);
        out.settled();
    }
    let ended = Instant::now();
    term.end(true).await;
    assert_eq!(bench.store.holder(), None);
    assert!(ended.elapsed() < SECOND, "{:?}", ended.elapsed());
}

#[tokio::test(start_paused = true)]
async fn l8_a_write_that_is_over_soon_is_waited_for() {
    let bench = Bench::new();
    let (_, term) = bench.lead().await;
    // Over with the margin of 2 s.
    give_up(&term.gate(), Duration::ZERO);
    let mut awaited = term.gate().begin_write().unwrap();
    awaited.sent(Instant::now() + 10 * SECOND);
    let answered = tokio::spawn(async move {
        tokio::time::sleep(SECOND).await;
        awaited.settled();
    });
    let ending = tokio::spawn(term.end(true));
    tokio::time::sleep(Duration::from_millis(1_900)).await;
    assert!(answered.is_finished());
    assert_eq!(bench.store.holder().as_deref(), Some("a"), "not before it is over");
    ending.await.unwrap();
    assert_eq!(bench.store.holder(), None);
}

#[tokio::test(start_paused = true)]
async fn l8_a_write_that_nobody_answers_holds_a_stop_up_for_two_seconds() {
    let bench = Bench::new();
    let (_, term) = bench.lead().await;
    let mut awaited = term.gate().begin_write().unwrap();
    awaited.sent(Instant::now() + 10 * SECOND);
    let ended = Instant::now();
    term.end(true).await;
    assert_eq!(ended.elapsed().as_secs(), 2);
    assert_eq!(bench.store.holder().as_deref(), Some("a"));
}

/// The doubt belongs to the process: a later term knows the writes of an earlier term.
#[tokio::test(start_paused = true)]
async fn l8_a_write_of_an_earlier_term_counts_as_one_of_the_last() {
    let bench = Bench::new();
    let (elector, term) = bench.lead().await;
    give_up(&term.gate(), 12 * SECOND);
    term.end(false).await;
    let term = elector.campaign(&bench.stop).await.unwrap();
    let began = Instant::now();
    term.end(true).await;
    assert!(began.elapsed() < SECOND, "{:?}", began.elapsed());
    assert_eq!(bench.store.holder().as_deref(), Some("a"), "left to expire");
}

/// A stop while the lease is acquired gives the lease back, too.
#[tokio::test(start_paused = true)]
async fn l8_a_lease_that_is_won_during_a_stop_is_not_given_back_while_there_is_doubt() {
    let bench = Bench::new();
    let (elector, term) = bench.lead().await;
    give_up(&term.gate(), 12 * SECOND);
    term.end(false).await;
    let campaign = tokio::spawn({
        let stop = bench.stop.clone();
        async move { elector.campaign(&stop).await.is_none() }
    });
    // The read is answered after 5 ms, the write that takes the lease after 10.
    tokio::time::sleep(Duration::from_millis(7)).await;
    bench.stop.cancel();
    assert!(campaign.await.unwrap());
    assert_eq!(bench.store.holder().as_deref(), Some("a"), "left to expire");
}

#[tokio::test(start_paused = true)]
async fn l8_what_a_closed_gate_refuses_is_not_counted() {
    let bench = Bench::new();
    let (elector, term) = bench.lead().await;
    let gate = term.gate();
    term.end(true).await;
    assert_eq!(bench.store.holder(), None);
    assert_eq!(gate.begin_write().unwrap_err().kind(), ErrorKind::NotLeader);
    let term = elector.campaign(&bench.stop).await.unwrap();
    assert_eq!(gate.begin_write().unwrap_err().kind(), ErrorKind::NotLeader, "that term is over");
    term.end(true).await;
    assert_eq!(bench.store.holder(), None);
}
