//! Snapshots of the manifests that the examples print, definitions included, so that a change of
//! them is read in a review.
//!
//! `INSTA_UPDATE=always cargo test -p windlass-examples --test snapshots` writes them anew.

// Helpers of tests may unwrap, as tests may.
#![allow(clippy::unwrap_used)]

use std::process::Command;

/// Compares the output of a program's `manifests` with the snapshot of this name.
#[track_caller]
fn compare(name: &str, program: &str, flags: &[&str]) {
    let mut command = Command::new(program);
    command.arg("manifests").args(flags).env_remove("KUBECONFIG").env_remove("WATCH_NAMESPACE");
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).unwrap();
    insta::with_settings!({ omit_expression => true, prepend_module_to_snapshot => false }, {
        insta::assert_snapshot!(name, text);
    });
}

#[test]
fn the_website_operator_works_in_every_namespace() {
    compare("website", env!("CARGO_BIN_EXE_website"), &[]);
}

#[test]
fn the_first_operator_works_in_its_own_namespace() {
    let flags = ["--namespaced", "--namespace=shop", "--image=registry.example/first:1"];
    compare("first_operator", env!("CARGO_BIN_EXE_first_operator"), &flags);
}
