//! The program `website`, run as by a new user.

// Helpers of tests may unwrap, as tests may.
#![allow(clippy::unwrap_used)]

use std::fs::File;
use std::io::{BufRead, BufReader, Lines, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Output, Stdio};

use k8s_openapi::api::events::v1::Event;
use serde_json::json;
use windlass::api::Patch;
use windlass::client::{Client, ClientConfig};
use windlass::resource::{ResourceInfo, Scope};

/// Returns the program, without any cluster configured.
fn website(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_website"));
    let home = std::env::temp_dir().join(format!("windlass-quickstart-{}", std::process::id()));
    std::fs::create_dir_all(&home).unwrap();
    command.args(args).env("HOME", home);
    for name in ["KUBECONFIG", "KUBERNETES_SERVICE_HOST", "KUBERNETES_SERVICE_PORT", "RUST_LOG"] {
        command.env_remove(name);
    }
    // Several of these run at once: let the system choose the ports.
    command.args(["--health-probe-bind-address=127.0.0.1:0", "--metrics-bind-address=127.0.0.1:0"]);
    command
}

fn text(output: &Output) -> String {
    format!(
        "{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    )
}

fn signal(child: &Child, name: &str) {
    let sent = Command::new("kill").args([name, &child.id().to_string()]).status().unwrap();
    assert!(sent.success());
}

#[test]
fn until_ready_shows_the_tree_and_ends_with_0() {
    let output = website(&["--until-ready"]).output().unwrap();
    let text = text(&output);
    assert!(output.status.success(), "{text}");
    for part in ["https://127.0.0.1:", "Website", "Deployment", "Service", "Ready"] {
        assert!(text.contains(part), "{part:?} is missing:\n{text}");
    }
}

#[test]
fn ctrl_c_drains_and_ends_with_0() {
    for name in ["-INT", "-TERM"] {
        let mut child =
            website(&[]).stdout(Stdio::piped()).stderr(Stdio::inherit()).spawn().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let seen = lines.any(|line| line.is_ok_and(|line| line.contains("Deployment")));
        assert!(seen, "the tree was not shown");
        signal(&child, name);
        lines.for_each(drop);
        assert_eq!(child.wait().unwrap().code(), Some(0), "after kill {name}");
    }
}

#[test]
fn a_wait_in_vain_ends_with_the_reason_and_every_task_in_order() {
    // The sample is in a namespace that the operator does not watch.
    let flags = ["--until-ready", "--ready-timeout=1s", "--watch-namespace=elsewhere"];
    let output = website(&flags).output().unwrap();
    let text = text(&output);
    assert_eq!(output.status.code(), Some(69), "{text}");
    for part in ["error: not ready after 1s: Website \"home\"", "the lease was given back"] {
        assert!(text.contains(part), "{part:?} is missing:\n{text}");
    }
    assert!(!text.contains("panic"), "{text}");
}

/// Limits around the moment at which the sample becomes ready: whichever side a run ends on, text
/// and exit code say the same.
#[test]
fn an_end_at_the_limit_tells_ready_from_not_ready() {
    for limit in ["1ms", "30ms", "60ms", "80ms", "120ms", "200ms"] {
        let output =
            website(&["--until-ready", &format!("--ready-timeout={limit}")]).output().unwrap();
        let text = text(&output);
        let is_ready = text.contains("Ready after");
        assert_ne!(is_ready, text.contains("error: not ready after"), "{limit}:\n{text}");
        assert_eq!(output.status.code(), Some(if is_ready { 0 } else { 69 }), "{limit}:\n{text}");
    }
}

/// Output of the running program.
struct Screen {
    child: Child,
    lines: Lines<BufReader<ChildStdout>>,
    log: std::path::PathBuf,
}

impl Screen {
    fn open(name: &str) -> Self {
        let log = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
        let mut command = website(&[]);
        command.stdout(Stdio::piped()).stderr(File::create(&log).unwrap());
        let mut child = command.spawn().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        Self { child, lines, log }
    }

    /// Returns the output up to the line that contains `part`.
    fn until(&mut self, part: &str) -> String {
        let mut text = String::new();
        for line in self.lines.by_ref().map_while(Result::ok) {
            text.push_str(&line);
            text.push('\n');
            if line.contains(part) {
                return text;
            }
        }
        panic!("{part:?} was not shown:\n{text}");
    }

    /// Returns the whole log of a program that is asked to end.
    fn close(mut self) -> String {
        signal(&self.child, "-INT");
        self.lines.by_ref().for_each(drop);
        assert_eq!(self.child.wait().unwrap().code(), Some(0));
        std::fs::read_to_string(&self.log).unwrap()
    }
}

/// Kills the program, so that a failing test leaves none behind.
impl Drop for Screen {
    fn drop(&mut self) {
        let _ = self.child.kill();
    }
}

fn fetch(url: &str) -> String {
    let (host, path) = url.strip_prefix("http://").unwrap().split_once('/').unwrap();
    let mut stream = TcpStream::connect(host).unwrap();
    let request = format!("GET /{path} HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

#[tokio::test]
async fn the_tree_is_shown_again_after_each_change_and_routine_is_not() {
    let mut screen = Screen::open("tree.log");
    let first = screen.until("Ready after") + &screen.until(" get websites");
    let value = |name: &str| {
        let line = first.lines().find_map(|line| line.trim().strip_prefix(name));
        line.unwrap_or_else(|| panic!("no {name} in\n{first}")).trim().to_owned()
    };
    let kubeconfig = value("kubeconfig");
    assert!(fetch(&value("metrics ")).contains("controller_runtime_reconcile_total"));
    assert!(fetch(&value("debug ")).contains("\"website-operator\""));
    assert!(first.lines().last().unwrap().contains(&kubeconfig), "it stays in view:\n{first}");

    let client = Client::new(ClientConfig::from_file(&kubeconfig, None).unwrap()).unwrap();
    let events = client.namespace::<Event>("default").list().await.unwrap().items;
    let about_home = |event: &&Event| {
        event.regarding.as_ref().is_some_and(|object| object.name.as_deref() == Some("home"))
    };
    let reasons: Vec<_> =
        events.iter().filter(about_home).filter_map(|event| event.reason.as_deref()).collect();
    assert!(reasons.contains(&"Dependents"), "for `kubectl describe`: {reasons:?}");

    let info = ResourceInfo {
        group: "example.dev".into(),
        version: "v1".into(),
        kind: "Website".into(),
        plural: "websites".into(),
        scope: Scope::Namespaced,
    };
    let sites = client.dynamic(info, Some("default"));
    sites.patch("home", Patch::Merge(json!({ "spec": { "replicas": 3 } }))).await.unwrap();
    let again = screen.until(" get websites");
    assert!(again.contains("Deployment/home") && again.contains("<- changed"), "{again}");
    sites.delete("home").await.unwrap();
    screen.until("Website/home is gone");

    let log = screen.close();
    assert!(log.contains("apply deployments.apps \"home\" in \"default\""), "{log}");
    for routine in ["leases.coordination", "events.k8s.io", "Some(", "state=watching", "code=200"] {
        assert!(!log.contains(routine), "{routine:?} is in\n{log}");
    }
}

#[test]
fn a_kubeconfig_that_does_not_work_never_starts_the_embedded_server() {
    let mut command = website(&["--until-ready"]);
    command.env("KUBECONFIG", "/nonexistent/kubeconfig");
    let output = command.output().unwrap();
    let text = text(&output);
    assert!(!output.status.success(), "{text}");
    assert!(text.contains("/nonexistent/kubeconfig"), "{text}");
    assert!(!text.contains("https://127.0.0.1:"), "{text}");
}

#[test]
fn manifests_need_no_cluster_and_hold_everything_to_deploy() {
    let output = Command::new(env!("CARGO_BIN_EXE_website"))
        .arg("manifests")
        .env_remove("KUBECONFIG")
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{text}");
    for kind in [
        "CustomResourceDefinition",
        "Namespace",
        "ServiceAccount",
        "ClusterRole",
        "ClusterRoleBinding",
        "Role",
        "Deployment",
    ] {
        assert!(text.lines().any(|line| line == format!("kind: {kind}")), "no {kind}:\n{text}");
    }
    for column in ["Host", "Ready", "Age"] {
        assert!(text.contains(&format!("name: {column}\n")), "no column {column}:\n{text}");
    }
}
