//! Tests that need more of the machine than the Rust toolchain, and the list of all that this
//! machine leaves out.
//!
//! The name makes this nearly the last test program of `cargo test`: packages and their tests run
//! in the order of their names. The few tests of `windlass-webhook`, which need the toolchain
//! alone, and documentation tests come later.

// DESIGN.md, 93: Tests that cannot run on a machine are ignored at run time

#![allow(clippy::unwrap_used, reason = "helpers of tests, outside of test functions")]

use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use libtest_mimic::{Arguments, Completion, Trial};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use windlass::testing::TestCluster;
use windlass_tests::built::is_listed;
use windlass_tests::left_out::{NO_IPV6, has_ipv6, left_out, report};
use windlass_tests::widget::{Counts, counted};

/// Variable that is set when this program is run again to check the output.
const ONLY_LIST: &str = "WINDLASS_TESTS_LIST";

/// Runs the test of the function's name on machines with IPv6.
macro_rules! needs_ipv6 {
    ($name:ident) => {
        Trial::ignorable_test(stringify!($name), || {
            if !has_ipv6() {
                return Ok(Completion::ignored_with(NO_IPV6));
            }
            $name();
            Ok(Completion::Completed)
        })
        .with_ignored_flag(is_listed() && !has_ipv6())
    };
}

macro_rules! plain {
    ($name:ident) => {
        Trial::test(stringify!($name), || {
            $name();
            Ok(())
        })
    };
}

fn main() -> ExitCode {
    let asked = Arguments::from_args();
    if std::env::var_os(ONLY_LIST).is_some() {
        print!("{}", report(&left_out(&root(), false)));
        return ExitCode::SUCCESS;
    }
    let trials = vec![
        needs_ipv6!(a_port_of_every_interface_answers_by_ipv6_too),
        plain!(no_test_program_runs_after_this_one),
        plain!(the_list_names_what_a_missing_kubectl_leaves_out_and_not_one_that_is_there),
    ];
    let conclusion = libtest_mimic::run(&asked, trials);
    // A run that asks for certain tests needs no list of the others.
    if asked.filter.is_none() && asked.skip.is_empty() && !asked.list && !conclusion.has_failed() {
        let is_all = asked.include_ignored || asked.ignored;
        print!("{}", report(&left_out(&root(), is_all)));
        println!(
            "beside `cargo test`: tests/models/run, tests/mutants/run, tests/fuzz/run, tests/instructions, \
             tests/template.sh (see .ci/run)\n"
        );
    }
    conclusion.exit_code()
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the workspace").to_owned()
}

fn a_port_of_every_interface_answers_by_ipv6_too() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let cluster = TestCluster::start().await;
        let manager = counted(cluster.client(), Counts::default());
        let manager = manager.health("[::]:0".parse().unwrap()).without_metrics();
        let running = manager.start();
        let port = running.health_addr().await.unwrap().port();
        for address in [Ipv4Addr::LOCALHOST.into(), Ipv6Addr::LOCALHOST.into()] {
            let mut tcp =
                tokio::net::TcpStream::connect(SocketAddr::new(address, port)).await.unwrap();
            let request = "GET /healthz HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n";
            tcp.write_all(request.as_bytes()).await.unwrap();
            let mut answer = String::new();
            tcp.read_to_string(&mut answer).await.unwrap();
            assert!(answer.starts_with("HTTP/1.1 200"), "{address}: {answer}");
        }
    });
}

fn no_test_program_runs_after_this_one() {
    let own = Path::new(file!()).file_stem().unwrap().to_owned();
    for entry in std::fs::read_dir(root().join("tests/tests")).unwrap() {
        let name = entry.unwrap().path().file_stem().unwrap().to_owned();
        assert!(name <= own, "{name:?} comes after {own:?}");
    }
    let packages = std::fs::read_to_string(root().join("Cargo.lock")).unwrap();
    let ours = packages.lines().filter_map(|line| line.strip_prefix("name = \"windlass"));
    // The tests of that package are quick and leave nothing out, so the list still stands near the
    // end.
    let ours = ours.filter(|name| *name != "-webhook\"");
    assert_eq!(ours.max(), Some("-tests\""), "packages run in the order of their names");
}

/// Returns the output of this program with kubectl in `folder`, or without kubectl.
fn printed(folder: &Path) -> String {
    let output = Command::new(std::env::current_exe().unwrap())
        .env("WINDLASS_KUBE_BIN", folder)
        .env(ONLY_LIST, "1")
        .output()
        .unwrap();
    assert!(output.status.success());
    String::from_utf8(output.stdout).unwrap()
}

fn the_list_names_what_a_missing_kubectl_leaves_out_and_not_one_that_is_there() {
    let folder = std::env::temp_dir().join(format!("windlass-machine-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let without = printed(&folder);
    std::fs::write(folder.join("kubectl"), "").unwrap();
    let with = printed(&folder);
    std::fs::remove_dir_all(&folder).unwrap();
    assert!(without.contains(": kubectl is not built"), "{without}");
    assert!(!with.contains("kubectl is not built"), "{with}");
    assert!(with.contains(": needs the real API server"), "{with}");
}
