//! The programs that play a scenario to the end, run as by a new user: with no cluster.

// Helpers of tests may unwrap, as tests may.
#![allow(clippy::unwrap_used)]

use std::process::Command;

/// Runs a program to the end; returns the output, line by line.
fn played(program: &str) -> Vec<String> {
    let name = program.rsplit('/').next().unwrap();
    let home = std::env::temp_dir().join(format!("windlass-{name}-{}", std::process::id()));
    std::fs::create_dir_all(&home).unwrap();
    let mut command = Command::new(program);
    command.env("HOME", &home);
    for name in ["KUBECONFIG", "KUBERNETES_SERVICE_HOST", "KUBERNETES_SERVICE_PORT"] {
        command.env_remove(name);
    }
    let output = command.output().unwrap();
    std::fs::remove_dir_all(&home).unwrap();
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    let complaints = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{said}{complaints}");
    let lines: Vec<_> = said.lines().map(str::to_owned).collect();
    assert_eq!(lines.last().map(String::as_str), Some("done"), "{said}{complaints}");
    lines
}

#[track_caller]
fn says(lines: &[String], part: &str) {
    assert!(lines.iter().any(|line| line.contains(part)), "{part:?} was not said: {lines:#?}");
}

#[test]
fn a_webhook_and_a_poll_wake_the_object_that_they_name() {
    let lines = played(env!("CARGO_BIN_EXE_external_trigger"));
    says(&lines, "shop/home: trigger webhook, price Some(10)");
    says(&lines, "shop/home: poll prices, price Some(12)");
    assert!(!lines.iter().any(|line| line.contains("nobody")), "{lines:#?}");
}

#[test]
fn time_alone_wakes_an_object_and_a_pause_does_not() {
    let lines = played(env!("CARGO_BIN_EXE_timers"));
    says(&lines, "timer probe");
    says(&lines, "requeue");
    let changes = lines.iter().filter(|line| line.contains(": changed"));
    assert!(changes.count() <= 4, "a burst is few reconciles: {lines:#?}");
    let paused = lines.iter().position(|line| line == "paused").unwrap();
    assert!(!lines[..paused].iter().any(|line| line.contains("21")), "{lines:#?}");
}

#[test]
fn the_namespaces_of_others_are_not_seen() {
    let lines = played(env!("CARGO_BIN_EXE_multi_namespace"));
    says(&lines, "team-b/page: Some(\"good evening\")");
    assert!(!lines.iter().any(|line| line.contains("team-c")), "{lines:#?}");
    let evening = |line: &&String| line.contains("team-a") && line.contains("evening");
    assert!(!lines.iter().any(|line| evening(&line)), "{lines:#?}");
}

#[test]
fn an_operator_that_crashes_between_call_and_record_makes_one_schema() {
    let lines = played(env!("CARGO_BIN_EXE_mysql_schema"));
    says(&lines, "the operator crashed; schemas: 1");
    says(&lines, "another one found it; schemas: 1, creations: 1");
    says(&lines, "shop/orders: the schema gets character set utf8mb4");
    says(&lines, "schemas: 0");
}

#[test]
fn a_story_explains_itself_without_being_played() {
    let program = env!("CARGO_BIN_EXE_mysql_schema");
    let output = Command::new(program).arg("--help").output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success() && said.contains("Usage: mysql_schema"), "{said}");
    assert!(!said.contains("crashed"), "{said}");
    let output = Command::new(program).arg("--versoin").output().unwrap();
    let complaint = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!output.status.success() && complaint.contains("versoin"), "{complaint}");
}
