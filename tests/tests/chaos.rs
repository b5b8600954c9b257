//! Promises of caches in a world with faults: `cargo run --release -p windlass-tests --bin oracle`
//! is the same with a million versions. Embedded server and paused clock only.

use windlass_tests::chaos::{Options, Report, run};

/// Number of versions that a debug build makes in some seconds.
const VERSIONS: u64 = 20_000;

#[track_caller]
fn survives(seed: u64, versions: u64) -> Report {
    run(Options::new(seed, versions), |_| {}).unwrap_or_else(|failure| panic!("{failure}"))
}

/// G-C1 … G-C9 (the promises of the cache), by an oracle that knows the server's states.
#[test]
fn g_c1_to_g_c9_hold_while_servers_and_networks_fail() {
    let mut happened = std::collections::BTreeMap::new();
    for seed in 1..=3 {
        let report = survives(seed, VERSIONS);
        assert!(report.progress.counts.commits >= VERSIONS);
        for (event, number) in report.stats.all() {
            *happened.entry(event).or_insert(0) += number;
        }
    }
    // The run means something only if enough faults happened.
    for event in [
        "backups that were restored",
        "definitions that went away unseen",
        "lists that were complete in part",
        "net: names that were hidden",
        "queue: deletions that were delivered",
        "caches that said they were synced",
        "kinds that fell ill alone",
        "lists: absent",
        "lists: expired",
        "lists: new_epoch",
        "net: cut within",
        "net: fell silent",
        "own deletions",
        "own writes",
        "processes that were replaced",
        "rests without a definition",
        "server: compacted",
        "server: removed a definition",
        "server: restarted",
        "server: showed old changes again",
    ] {
        assert!(happened.get(event).is_some_and(|number| *number > 0), "{event}: {happened:#?}");
    }
    let [pushed, delivered] =
        ["pushed", "delivered"].map(|step| happened[&*format!("queue: deltas that were {step}")]);
    assert!(delivered < pushed, "nothing met in a queue: {delivered} of {pushed}");
}

#[test]
fn a_seed_leads_to_the_same_world_each_time() {
    let [first, second] = [0, 1].map(|_| survives(11, 4000));
    assert_eq!(first.trace, second.trace);
    assert_eq!(first.stats.all(), second.stats.all());
    assert_ne!(first.trace, survives(12, 4000).trace);
}
