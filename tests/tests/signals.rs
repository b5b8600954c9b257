//! Real signals, sent to this process; alone in this file, because every test of a process receives
//! them.

use std::process::Command;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tokio::time::{sleep, timeout};
use windlass::manager::{Exit, Running};
use windlass::testing::TestCluster;
use windlass_tests::widget::{Counts, Widget, counted, widget};

fn send(signal: &str) {
    let sent = Command::new("kill").args([signal, &std::process::id().to_string()]).status();
    assert!(sent.expect("kill runs").success());
}

#[tokio::test]
async fn d7_s1_s2_a_signal_during_a_reconcile_lets_it_end_and_a_second_one_does_not() {
    let cluster = TestCluster::start().await;
    cluster.install::<Widget>().await;
    the_first_lets_it_end(&cluster).await;
    the_second_ends_at_once(&cluster).await;
}

async fn begun(counts: &Counts) {
    let began = async {
        while counts.begun.load(Ordering::Relaxed) == 0 {
            sleep(Duration::from_millis(10)).await;
        }
    };
    timeout(Duration::from_secs(30), began).await.expect("the reconcile begins");
}

/// Checks, as the test kit does on a drop, that no object is reconciled without end.
fn comes_to_rest(running: &Running) {
    for (controller, busy_report) in running.busy_report() {
        assert!(busy_report.endless.is_empty(), "{controller}: {:?}", busy_report.endless);
    }
}

async fn the_second_ends_at_once(cluster: &TestCluster) {
    let counts = Counts::default();
    let manager = counted(cluster.client(), counts.clone()).namespaces([cluster.namespace()]);
    let running = manager.without_health().without_metrics().start();
    let widgets = cluster.client().namespace::<Widget>(cluster.namespace());
    widgets.delete("a").await.expect("deleted");
    widgets.create(&widget("b", "slow")).await.expect("created");
    begun(&counts).await;
    send("-TERM");
    let ready = async {
        while running.readiness().is_ready() {
            sleep(Duration::from_millis(10)).await;
        }
    };
    timeout(Duration::from_secs(10), ready).await.expect("readiness falls");
    assert!(running.is_running(), "the reconcile has 10 s to go");
    comes_to_rest(&running);
    send("-INT");
    let exit =
        timeout(Duration::from_secs(5), running.join()).await.expect("at once").expect("it ran");
    assert_eq!((exit, exit.code()), (Exit::Cut, 2));
}

async fn the_first_lets_it_end(cluster: &TestCluster) {
    let counts = Counts::default();
    let manager = counted(cluster.client(), counts.clone()).namespaces([cluster.namespace()]);
    let running = manager.without_health().without_metrics().start();
    let widgets = cluster.client().namespace::<Widget>(cluster.namespace());
    widgets.create(&widget("a", "brief")).await.expect("created");
    begun(&counts).await;
    assert_eq!(counts.ended.load(Ordering::Relaxed), 0);
    comes_to_rest(&running);
    send("-TERM");
    let exit =
        timeout(Duration::from_secs(30), running.join()).await.expect("it stops").expect("it ran");
    assert_eq!(exit, Exit::Drained);
    assert_eq!(counts.ended.load(Ordering::Relaxed), 1);
}
