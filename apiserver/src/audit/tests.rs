use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};

use super::*;

fn request(n: u16) -> Request {
    by("alice", n)
}

fn by(user: &str, n: u16) -> Request {
    Request {
        verb: "get".into(),
        group: String::new(),
        resource: "pods".into(),
        subresource: String::new(),
        namespace: String::new(),
        name: String::new(),
        user: user.into(),
        agent: String::new(),
        code: n,
        at: 0,
    }
}

#[test]
fn the_ring_keeps_the_newest_entries_and_counts_the_others() {
    let audit = Audit::default();
    for n in 0..5000 {
        audit.record(&request(n), &Detail::default());
    }
    let all = audit.all();
    assert_eq!((all.len(), audit.dropped(), audit.lost()), (KEPT, 904, 0));
    assert_eq!((&all[0]["code"], &all[KEPT - 1]["code"]), (&json!(904), &json!(4999)));
}

#[test]
fn requests_of_strangers_never_drop_those_of_users() {
    let audit = Audit::default();
    audit.record(&request(0), &Detail::default());
    for n in 1..5000 {
        audit.record(&by(if n % 2 == 0 { "" } else { ANONYMOUS }, n), &Detail::default());
    }
    let acting = Detail { impersonator: "root".into(), ..Detail::default() };
    audit.record(&by(ANONYMOUS, 5000), &acting);
    let codes: Vec<u64> = audit.all().iter().map(|one| one["code"].as_u64().unwrap()).collect();
    assert_eq!((codes.len(), audit.dropped()), (KEPT_OF_STRANGERS + 2, 4999 - 512));
    assert_eq!((codes[0], codes[1], codes[513]), (0, 4488, 5000), "in the order of requests");
}

#[test]
fn an_impersonated_user_stands_beside_the_real_one() {
    let detail = Detail { impersonator: "root".into(), ..Detail::default() };
    let entry = entry(&request(200), &detail);
    assert_eq!((&entry["user"], &entry["impersonatedUser"]), (&json!("root"), &json!("alice")));
}

/// A log that takes a piece for each permit, and fails after them.
struct Gate {
    permits: Receiver<()>,
    taken: Arc<Mutex<Vec<u8>>>,
}

impl Write for Gate {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.permits.recv().map_err(std::io::Error::other)?;
        self.taken.lock().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// Returns an audit log, the permits of the log's file, and the contents of the file.
fn gated() -> (Audit, Sender<()>, Arc<Mutex<Vec<u8>>>) {
    let (sender, permits) = channel();
    let taken = Arc::new(Mutex::new(Vec::new()));
    let audit = Audit::default();
    audit.write_to(Box::new(Gate { permits, taken: taken.clone() }));
    (audit, sender, taken)
}

#[tokio::test(start_paused = true)]
async fn a_log_that_nobody_reads_delays_the_end_by_seconds_and_its_lines_count_as_lost() {
    let (audit, _permits, taken) = gated();
    for n in 0..3 {
        audit.record(&request(n), &Detail::default());
    }
    let begun = tokio::time::Instant::now();
    audit.close().await;
    assert_eq!((begun.elapsed(), audit.lost()), (Duration::from_secs(5), 3));
    assert!(taken.lock().is_empty());
    audit.record(&request(4), &Detail::default());
    assert_eq!(audit.lost(), 4, "nothing is written after the close");
}

#[tokio::test]
async fn all_lines_are_written_before_the_close_returns() {
    let (audit, permits, taken) = gated();
    for n in 0..2000 {
        audit.record(&request(n), &Detail::default());
        permits.send(()).unwrap();
    }
    audit.close().await;
    let text = String::from_utf8(taken.lock().clone()).unwrap();
    let codes = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let codes: Vec<u64> = codes.map(|entry| entry["code"].as_u64().unwrap()).collect();
    assert_eq!((codes, audit.lost()), ((0..2000).collect(), 0));
}

#[tokio::test]
async fn lines_of_a_log_that_fails_count_as_lost() {
    let (audit, permits, _) = gated();
    for n in 0..3 {
        audit.record(&request(n), &Detail::default());
    }
    drop(permits);
    audit.close().await;
    assert_eq!(audit.lost(), 3);
}

#[test]
fn strangers_take_at_most_half_of_the_lines_that_may_wait() {
    // The thread holds a line or several, and waits.
    let (audit, _permits, _) = gated();
    for n in 0..10_000 {
        audit.record(&by("", n), &Detail::default());
    }
    let lost = audit.lost();
    assert_eq!(lost, 10_000 - 8192);
    for n in 0..8000 {
        audit.record(&request(n), &Detail::default());
    }
    assert_eq!(audit.lost(), lost, "users have their place");
}
