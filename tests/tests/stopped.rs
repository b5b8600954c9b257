//! Two processes with a common lease; the leader is stopped by SIGSTOP for longer than the lease
//! lasts, and goes on: the stopped leader must refuse the queued writes. On the embedded API
//! server, or with `WINDLASS_TEST_SERVER=real` on kube-apiserver.

// Helpers of tests may unwrap, as tests may.
#![allow(clippy::unwrap_used)]

use std::convert::Infallible;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::ConfigMap;
use tokio::sync::mpsc::{Receiver, channel};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;
use windlass::ErrorKind;
use windlass::client::Client;
use windlass::leader::{Elector, LeaderElection};
use windlass::resource::ResourceExt;
use windlass::testing::TestCluster;

/// Longer than any lease here takes to run out, on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);
/// Numbers of a leader's first writes, and of the queued writes.
const FIRST: usize = 3;
const QUEUED: usize = 20;
/// Time that they wait in the queue.
const WAIT: Duration = Duration::from_secs(4);

const TEST: &str = "d5_a_leader_stopped_past_its_lease_refuses_its_own_queued_writes";

struct Process {
    child: Child,
    lines: Receiver<String>,
    seen: Vec<String>,
}

impl Process {
    fn start(kubeconfig: &Path, namespace: &str, id: &str) -> Self {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", TEST, "--nocapture"])
            .env("KUBECONFIG", kubeconfig)
            .env("STOPPED_NAMESPACE", namespace)
            .env("STOPPED_ID", id)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let (said, lines) = channel(1024);
        let stdout = BufReader::new(child.stdout.take().unwrap());
        std::thread::spawn(move || {
            stdout.lines().map_while(Result::ok).try_for_each(|line| said.blocking_send(line))
        });
        Self { child, lines, seen: Vec::new() }
    }

    /// Waits until a line that contains `part` was printed `count` times.
    async fn says(&mut self, part: &str, count: usize) {
        while self.said(part) < count {
            match timeout(PATIENCE, self.lines.recv()).await {
                Ok(Some(line)) => self.seen.push(line),
                _ => panic!("{part:?} was not said {count} times: {:#?}", self.seen),
            }
        }
    }

    fn said(&self, part: &str) -> usize {
        self.seen.iter().filter(|line| line.contains(part)).count()
    }

    fn signal(&self, name: &str) {
        let sent = Command::new("kill").args([name, &self.child.id().to_string()]).status();
        assert!(sent.unwrap().success());
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[tokio::test]
async fn d5_a_leader_stopped_past_its_lease_refuses_its_own_queued_writes() {
    // The two processes run this test program, too, until they are killed.
    if let Ok(id) = std::env::var("STOPPED_ID") {
        write_as_leader(&id).await;
    }
    let cluster = TestCluster::start().await;
    let folder = std::env::temp_dir().join(format!("windlass-stopped-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let kubeconfig = folder.join("kubeconfig");
    std::fs::write(&kubeconfig, cluster.kubeconfig().await).unwrap();

    let mut one = Process::start(&kubeconfig, cluster.namespace(), "one");
    one.says("wrote", FIRST).await;
    one.says("queued", 1).await;
    one.signal("-STOP");
    let mut two = Process::start(&kubeconfig, cluster.namespace(), "two");
    two.says("wrote", FIRST).await;
    one.signal("-CONT");
    one.says("refused", QUEUED).await;
    two.says("wrote", FIRST + QUEUED).await;

    assert_eq!(one.said("wrote"), FIRST, "{:#?}", one.seen);
    assert_eq!(two.said("refused"), 0, "{:#?}", two.seen);
    let maps = cluster.client().namespace::<ConfigMap>(cluster.namespace()).list().await.unwrap();
    let by = |id: &str| maps.items.iter().filter(|map| map.name().starts_with(id)).count();
    assert_eq!((by("one"), by("two")), (FIRST, FIRST + QUEUED));
    std::fs::remove_dir_all(&folder).unwrap();
}

/// A process of the two.
async fn write_as_leader(id: &str) -> Infallible {
    let namespace = std::env::var("STOPPED_NAMESPACE").unwrap();
    let client = Client::infer().await.unwrap();
    let election = LeaderElection::new("stopped")
        .namespace(&namespace)
        .identity(id)
        .lease_duration(Duration::from_secs(6))
        .renew_deadline(Duration::from_secs(3))
        .retry_period(Duration::from_secs(1))
        .margin(Duration::from_millis(1_500));
    let elector = Elector::new(election, &client).unwrap();
    let term = elector.campaign(&CancellationToken::new()).await.unwrap();
    let gated = client.gated(Arc::new(term.gate()));

    // The work ignores cancellation: the queued writes go out, if the gate lets them.
    let mut writes = JoinSet::new();
    for number in 0..FIRST + QUEUED {
        let (gated, namespace, name) = (gated.clone(), namespace.clone(), format!("{id}-{number}"));
        writes.spawn(async move {
            if number >= FIRST {
                sleep(WAIT).await;
            }
            let mut map = ConfigMap::default();
            map.metadata.name = Some(name.clone());
            match gated.namespace(&namespace).create(&map).await {
                Ok(_) => println!("wrote {name}"),
                Err(error) if error.kind() == ErrorKind::NotLeader => println!("refused {name}"),
                Err(error) => println!("failed {name}: {error:?}"),
            }
        });
    }
    println!("queued");
    while writes.join_next().await.is_some() {}
    // Until the process is killed.
    std::future::pending().await
}
