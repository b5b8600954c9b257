//! The program `website` as a new user runs it.

// Helpers of tests may unwrap, as tests may.
#![allow(clippy::unwrap_used)]

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Output, Stdio};

/// The program, without any cluster configured.
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
}
