//! Tests with very many delayed keys.

use super::*;

/// Bytes per delayed key of 4 bytes: the slot, the entry in the table and the timer, each with
/// space to grow.
const MOST_BYTES: u64 = 200;

fn due(key: u32) -> Duration {
    // Spread over an hour, in no order.
    Duration::from_millis(u64::from(key.wrapping_mul(2_654_435_761)) % 3_600_000)
}

async fn each_comes_at_its_time(keys: u32) {
    let queue = queue(1);
    let counted = allocation_counter::measure(|| {
        (0..keys).for_each(|key| queue.add_after(key, due(key)));
    });
    let bytes = counted.bytes_current.unsigned_abs() / u64::from(keys);
    assert!(bytes <= MOST_BYTES, "{bytes} bytes per delayed key");
    let start = Instant::now();
    for _ in 0..keys {
        let work = queue.get().await.expect("open");
        let late = start.elapsed().checked_sub(due(*work.key())).expect("not before its time");
        assert!(late <= Duration::from_millis(10), "{late:?} late");
        work.done();
    }
    assert_eq!(queue.counts(), QueueCounts::default());
}

#[tokio::test(start_paused = true)]
async fn g_q6_fifty_thousand_delayed_keys_each_come_within_ten_milliseconds_of_their_time() {
    each_comes_at_its_time(50_000).await;
}

#[tokio::test(start_paused = true)]
#[ignore = "takes half a minute without optimization"]
async fn g_q6_a_million_delayed_keys_each_come_within_ten_milliseconds_of_their_time() {
    each_comes_at_its_time(1_000_000).await;
}

#[tokio::test(start_paused = true)]
async fn very_many_keys_that_are_due_together_all_come() {
    const KEYS: u32 = 5_000;
    let queue = queue(2);
    (0..KEYS).for_each(|key| queue.add_after(key, Duration::from_secs(1)));
    let start = Instant::now();
    for key in 0..KEYS {
        let work = queue.get().await.expect("open");
        assert_eq!(*work.key(), key);
        work.done();
    }
    assert!(start.elapsed() <= Duration::from_millis(1010), "{:?}", start.elapsed());
}
