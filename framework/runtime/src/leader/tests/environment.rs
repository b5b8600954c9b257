//! Name and namespace of a process by its environment. The environment belongs to the whole
//! process, so each test runs itself in another one.

use std::process::Command;

use super::pace::Counted;
use super::*;
use windlass_client::client::{Client, Connect};

/// Signals to a test that it runs in the intended environment, and holds the expected value.
const EXPECTED: &str = "WINDLASS_TEST_EXPECTED";

/// Runs the test of that name in another process.
fn again(test: &str, variables: &[(&str, &str)], expected: &str) {
    let program = std::env::current_exe().unwrap();
    let done = Command::new(program)
        .args(["--exact", &format!("leader::tests::environment::{test}")])
        .env(EXPECTED, expected)
        .envs(variables.iter().copied())
        .output()
        .unwrap();
    let told = String::from_utf8_lossy(&done.stdout);
    assert!(done.status.success() && told.contains("1 passed"), "{variables:?}: {told}");
}

fn is_called(expected: &str) {
    let own = LeaderElection::new("ops").identity_or_own(&Rng::seeded(1));
    assert_eq!(own.rsplit_once('_').unwrap().0, expected);
}

#[test]
fn a_process_is_called_by_its_pod_or_by_its_machine() {
    match std::env::var(EXPECTED) {
        Ok(expected) => is_called(&expected),
        Err(_) => {
            let test = "a_process_is_called_by_its_pod_or_by_its_machine";
            again(test, &[("POD_NAME", "web-0"), ("HOSTNAME", "node-1")], "web-0");
            again(test, &[("POD_NAME", ""), ("HOSTNAME", "node-1")], "node-1");
        }
    }
}

/// `expected` holds the namespace that the election is given, `-` for none, and the namespace of
/// its lock.
async fn locks_in(expected: &str) {
    let connector = Arc::new(Counted::default()) as Arc<dyn Connect>;
    let client = Client::builder().connector(connector).build().unwrap();
    let (given, expected) = expected.split_once(' ').unwrap();
    let election = LeaderElection::new("ops");
    let election = if given == "-" { election } else { election.namespace(given) };
    let elector = Elector::new(election, &client).unwrap();
    let stop = CancellationToken::new();
    let campaign = elector.campaign(&stop);
    assert!(tokio::time::timeout(Duration::from_secs(60), campaign).await.is_err());
    let why = elector.unreachable().unwrap();
    assert!(why.contains(&format!("{expected:?}")), "{why}");
}

#[tokio::test(start_paused = true)]
async fn the_lock_is_in_the_namespace_of_the_pod_unless_another_is_given() {
    match std::env::var(EXPECTED) {
        Ok(expected) => locks_in(&expected).await,
        Err(_) => {
            let test = "the_lock_is_in_the_namespace_of_the_pod_unless_another_is_given";
            again(test, &[("POD_NAMESPACE", "shop")], "- shop");
            again(test, &[("POD_NAMESPACE", "")], "- default");
            again(test, &[("POD_NAMESPACE", "shop")], "locks locks");
        }
    }
}
