//! A real SIGTERM, sent to this process; alone in its file, because every test of a process gets it.

use std::process::Command;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tokio::time::{sleep, timeout};
use windlass::manager::Exit;
use windlass::testing::TestCluster;
use windlass_tests::widget::{Counts, Widget, counted, widget};

#[tokio::test]
async fn d7_sigterm_during_a_reconcile_lets_it_end() {
    let cluster = TestCluster::start().await;
    cluster.install::<Widget>().await;
    let counts = Counts::default();
    let manager = counted(cluster.client(), counts.clone()).namespaces([cluster.namespace()]);
    let running = manager.without_health().without_metrics().start();
    let widgets = cluster.client().namespace::<Widget>(cluster.namespace());
    widgets.create(&widget("a", "brief")).await.unwrap();
    let began = async {
        while counts.begun.load(Ordering::Relaxed) == 0 {
            sleep(Duration::from_millis(10)).await;
        }
    };
    timeout(Duration::from_secs(30), began).await.expect("the reconcile begins");
    assert_eq!(counts.ended.load(Ordering::Relaxed), 0);
    let sent =
        Command::new("kill").args(["-TERM", &std::process::id().to_string()]).status().unwrap();
    assert!(sent.success());
    let exit = timeout(Duration::from_secs(30), running.join()).await.expect("it stops").unwrap();
    assert_eq!(exit, Exit::Drained);
    assert_eq!(counts.ended.load(Ordering::Relaxed), 1);
}
