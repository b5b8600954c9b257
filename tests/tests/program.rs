//! An operator as a separate program: effects of flags, environment and signals.

// Helpers of tests may unwrap, as tests may.
#![allow(clippy::unwrap_used)]

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use k8s_openapi::api::core::v1::ConfigMap;
use serde_json::Value;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader, Lines};
use tokio::net::TcpStream;
use tokio::process::{Child, ChildStderr, Command};
use tokio::time::{Instant, sleep, timeout};
use windlass::api::Api;
use windlass::testing::TestCluster;
use windlass_tests::widget::{Widget, widget};

/// Longest wait, on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);

struct Program {
    child: Child,
    log: Lines<BufReader<ChildStderr>>,
    seen: Vec<String>,
}

impl Program {
    /// The cluster is given by the flag only; `name` is that of a file.
    async fn start(
        cluster: &TestCluster,
        name: &str,
        flags: &[&str],
        environment: &[(&str, &str)],
    ) -> Self {
        let kubeconfig = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}.yaml"));
        std::fs::write(&kubeconfig, cluster.kubeconfig().await).unwrap();
        let mut child = Command::new(env!("CARGO_BIN_EXE_operator"))
            .arg("--kubeconfig")
            .arg(&kubeconfig)
            .args(["--health-probe-bind-address=127.0.0.1:0", "--metrics-bind-address=0"])
            .args(flags)
            .env_remove("RUST_LOG")
            .env("KUBECONFIG", "/there/is/no/such/file")
            .envs(environment.iter().copied())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        let log = BufReader::new(child.stderr.take().unwrap()).lines();
        Self { child, log, seen: Vec::new() }
    }

    /// Returns the first line from now on that contains `part`.
    async fn logs(&mut self, part: &str) -> String {
        loop {
            match timeout(PATIENCE, self.log.next_line()).await {
                Ok(Ok(Some(line))) => self.seen.push(line),
                end => panic!("{part:?} was not logged ({end:?}): {:#?}", self.seen),
            }
            if let Some(line) = self.seen.last().filter(|line| line.contains(part)) {
                return line.clone();
            }
        }
    }

    fn signal(&self, name: &str) {
        let id = self.child.id().unwrap().to_string();
        assert!(std::process::Command::new("kill").args([name, &id]).status().unwrap().success());
    }

    /// Returns the exit code, within `limit`.
    async fn ends_within(&mut self, limit: Duration) -> Option<i32> {
        let ended = timeout(limit, self.child.wait()).await.expect("it ends in time");
        ended.unwrap().code()
    }
}

async fn until(condition: &str, mut met: impl AsyncFnMut() -> bool) {
    let began = Instant::now();
    while !met().await {
        assert!(began.elapsed() < PATIENCE, "it never happened: {condition}");
        sleep(Duration::from_millis(10)).await;
    }
}

/// With a single thread for everything no thread is left that could receive a signal; with more,
/// the end must not wait for the blocked thread.
#[tokio::test]
async fn s2_d7_a_second_signal_ends_a_process_whose_reconcile_blocks_its_thread() {
    for threads in ["1", "4"] {
        let cluster = TestCluster::builder().embedded().start().await;
        cluster.install::<Widget>().await;
        let widgets: Api<Widget> = cluster.client().namespace(cluster.namespace());
        widgets.create(&widget("a", "block")).await.unwrap();
        let threads = [("TOKIO_WORKER_THREADS", threads)];
        let mut program = Program::start(&cluster, "blocked", &[], &threads).await;
        let line = program.logs("the operator uses this cluster").await;
        assert!(!line.starts_with('{'), "text is the default: {line}");
        let maps: Api<ConfigMap> = cluster.client().namespace(cluster.namespace());
        until("the reconcile began", async || maps.get_opt("a").await.unwrap().is_some()).await;
        program.signal("-TERM");
        program.signal("-INT");
        assert_eq!(program.ends_within(Duration::from_secs(5)).await, Some(2));
    }
}

/// Returns the answer's status and text.
async fn fetch(address: &str, path: &str) -> (String, String) {
    let mut stream = TcpStream::connect(address).await.unwrap();
    let request = format!("GET {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    let (head, text) = answer.split_once("\r\n\r\n").unwrap();
    (head.lines().next().unwrap().to_owned(), text.to_owned())
}

#[tokio::test]
async fn flags_and_environment_say_where_it_works_how_fast_how_it_logs_and_answers_probes() {
    let cluster = TestCluster::builder().embedded().start().await;
    cluster.install::<Widget>().await;
    let (own, other) = (cluster.namespace(), cluster.new_namespace().await);
    let names: Vec<String> = (0..8).map(|n| format!("w{n}")).collect();
    for name in &names {
        for namespace in [own, &other] {
            let widgets = cluster.client().namespace::<Widget>(namespace);
            widgets.create(&widget(name, "x")).await.unwrap();
        }
    }
    let flags = ["--log-format=json", "--kube-api-qps=20", "--kube-api-burst=1"];
    let place = [("WATCH_NAMESPACE", own)];
    cluster.server().clear_requests();
    let mut program = Program::start(&cluster, "flags", &flags, &place).await;
    let line: Value = serde_json::from_str(&program.logs("\"serving\"").await).unwrap();
    let health = line["health"].as_str().unwrap().to_owned();

    let widgets: Api<Widget> = cluster.client().namespace(own);
    let done = async || {
        let all = widgets.list().await.unwrap().items;
        all.iter().all(|one| one.status.as_ref().is_some_and(|s| s.conditions.is_met("Ready")))
    };
    until("all are reconciled", done).await;
    let asked = cluster.server().requests();
    let writes: Vec<_> = asked.iter().filter(|r| r.verb == "patch" && r.code < 300).collect();
    let maps = writes.iter().filter(|r| r.resource == "configmaps").count();
    assert_eq!(maps, names.len(), "{writes:?}");
    assert!(writes.iter().all(|r| r.namespace == own), "{writes:?}");
    let watched: BTreeSet<_> =
        asked.iter().filter(|r| r.verb == "watch").map(|r| r.namespace.as_str()).collect();
    assert_eq!(watched, BTreeSet::from([own]));
    // Two writes for each, 20 a second.
    let took = writes[writes.len() - 1].at - writes[0].at;
    assert!(took >= 600, "{} writes within {took} ms", writes.len());

    let (status, text) = fetch(&health, "/readyz?verbose").await;
    assert!(status.contains("200"), "{status}: {text}");
    for line in ["[+]cache widgets.test.windlass.dev ok: 8 objects\n", "[+]cache configmaps ok: "] {
        assert!(text.contains(line), "{line:?} is not in {text}");
    }
    assert!(text.ends_with("readyz check passed\n"), "{text}");

    program.signal("-TERM");
    assert_eq!(program.ends_within(Duration::from_secs(30)).await, Some(0));
    while let Some(line) = program.log.next_line().await.unwrap() {
        program.seen.push(line);
    }
    for line in &program.seen {
        let line: Value = serde_json::from_str(line).unwrap_or_else(|_| panic!("{line}"));
        assert!(line["level"].is_string() && line["message"].is_string(), "{line}");
    }
}

/// Runs `plan` to the end; returns the exit code and the two outputs.
async fn plan(kubeconfig: &Path, arguments: &[&str]) -> (Option<i32>, String, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_operator"));
    command.arg("--kubeconfig").arg(kubeconfig).arg("plan").args(arguments);
    command.env_remove("RUST_LOG").kill_on_drop(true);
    let ended = timeout(PATIENCE, command.output()).await.expect("it ends in time").unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (ended.status.code(), text(ended.stdout), text(ended.stderr))
}

#[tokio::test]
async fn a_plan_is_printed_and_its_exit_code_says_whether_there_are_changes() {
    let cluster = TestCluster::builder().embedded().audit(true).start().await;
    let kubeconfig = Path::new(env!("CARGO_TARGET_TMPDIR")).join("planned.yaml");
    std::fs::write(&kubeconfig, cluster.kubeconfig().await).unwrap();
    let (code, output, error) = plan(&kubeconfig, &[]).await;
    assert_eq!((code, &*output), (Some(1), ""), "{error}");
    assert!(error.contains("widgets.test.windlass.dev\" is not installed"), "{error}");

    cluster.install::<Widget>().await;
    let (code, output, error) = plan(&kubeconfig, &[]).await;
    assert_eq!(code, Some(0), "{error}");
    assert_eq!(output, "Plan: no changes; 0 reconciled as dry runs\n");
    let widgets: Api<Widget> = cluster.client().namespace(cluster.namespace());
    widgets.create(&widget("a", "hello \u{1b}[31m")).await.unwrap();
    let (revision, audited) = (cluster.server().revision(), cluster.server().audit().len());
    let (code, output, error) = plan(&kubeconfig, &[]).await;
    assert_eq!(code, Some(2), "{error}");
    let key = format!("{}/a", cluster.namespace());
    for line in [
        format!("Widget {key} (controller widget)"),
        format!("  + create configmaps {key}"),
        r#"      .data.text: "hello \u001b[31m""#.to_owned(),
        format!("  ~ update widgets.test.windlass.dev {key}"),
        "Plan: 1 to create, 1 to update; 1 reconciled as dry runs".to_owned(),
    ] {
        assert!(output.lines().any(|printed| printed == line), "{line:?} is not in {output}");
    }
    assert!(!output.contains('\u{1b}') && error.is_empty(), "{output} {error}");

    let named = ["widget", &*key, "--output=json"];
    let (code, output, _) = plan(&kubeconfig, &named).await;
    assert_eq!(code, Some(2));
    let plan_of: Value = serde_json::from_str(&output).unwrap();
    assert_eq!(plan_of["hasChanges"], true);
    let changes = &plan_of["objects"][0]["changes"];
    assert_eq!(changes[0]["action"], "create");
    assert_eq!(changes[0]["resource"], "configmaps");
    assert_eq!(changes[0]["fields"][0]["path"], ".data.text");

    widgets.create(&widget("b", "fail")).await.unwrap();
    let (code, output, _) = plan(&kubeconfig, &[]).await;
    assert_eq!(code, Some(1));
    assert!(output.contains("  failed: asked to") && output.contains("1 failed"), "{output}");
    let (code, _, error) = plan(&kubeconfig, &["Pod"]).await;
    assert_eq!(code, Some(1));
    assert!(error.contains("no controller reconciles"), "{error}");
    assert_eq!(cluster.server().revision(), revision + 1, "only the test has written");
    let entries = cluster.server().audit().split_off(audited);
    let changed = entries.iter().filter(|entry| entry["changes"] != serde_json::json!([])).count();
    assert_eq!(changed, 1, "the widget of the test");
    assert!(entries.iter().any(|entry| entry["verb"] == "patch"), "dry runs were sent");
}

#[tokio::test]
async fn a_plan_lists_the_events_of_an_object_that_would_change_and_writes_none() {
    let cluster = TestCluster::builder().embedded().start().await;
    let kubeconfig = Path::new(env!("CARGO_TARGET_TMPDIR")).join("told.yaml");
    std::fs::write(&kubeconfig, cluster.kubeconfig().await).unwrap();
    cluster.install::<Widget>().await;
    let widgets: Api<Widget> = cluster.client().namespace(cluster.namespace());
    widgets.create(&widget("a", "tell")).await.unwrap();
    let revision = cluster.server().revision();
    let (code, output, error) = plan(&kubeconfig, &[]).await;
    assert_eq!(code, Some(2), "{error}");
    assert!(output.contains("\n  event, not written: Normal Told: as asked to\n"), "{output}");
    let (_, output, _) = plan(&kubeconfig, &["--output=json"]).await;
    let planned: Value = serde_json::from_str(&output).unwrap();
    let told = serde_json::json!([{ "type": "Normal", "reason": "Told", "note": "as asked to" }]);
    let object = &planned["objects"][0];
    assert_eq!(object["events"], told, "{object}");
    assert_eq!(
        (&object["reads"], &object["requeueAfterSeconds"]),
        (&serde_json::json!([]), &Value::Null)
    );
    assert_eq!(cluster.server().revision(), revision);
}
