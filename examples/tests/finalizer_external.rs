//! The program `finalizer_external`, run as by a new user.

// Helpers of tests may unwrap, as tests may.
#![allow(clippy::unwrap_used)]

use std::process::Command;

#[test]
fn what_is_outside_of_the_cluster_is_cleaned_up_before_the_object_goes() {
    let home = std::env::temp_dir().join(format!("windlass-finalizer-{}", std::process::id()));
    std::fs::create_dir_all(&home).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_finalizer_external"));
    let output = command.env("HOME", &home).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{text}{}", String::from_utf8_lossy(&output.stderr));
    let expected = [
        "shop/home: www.example leads to 192.0.2.1",
        "records outside: 1",
        "shop/home: cannot clean up yet: the DNS service is not available",
        "shop/home: www.example leads nowhere",
        "records outside: 0",
        "done",
    ];
    let mut lines = text.lines();
    for line in expected {
        assert!(lines.any(|said| said == line), "{line:?} does not follow in:\n{text}");
    }
}
