//! The servers themselves: they leave nothing behind, and name their requirements.

use std::net::TcpStream;
use std::process::Command;

use windlass::testing::RealServer;

#[tokio::test]
#[ignore = "needs the real API server: see tests/README.md"]
async fn a_server_is_gone_when_its_test_panics() {
    let (sender, address) = tokio::sync::oneshot::channel();
    let test = tokio::spawn(async move {
        let server = RealServer::start().await;
        sender.send(server.address()).unwrap();
        panic!("as a test does that fails");
    });
    assert!(test.await.unwrap_err().is_panic());
    assert!(TcpStream::connect(address.await.unwrap()).is_err(), "the port is still open");
}

#[test]
#[ignore = "needs the real API server: see tests/README.md"]
fn without_the_programs_a_test_fails_and_says_how_to_get_them() {
    let name = "identity::a_static_token_says_who_we_are";
    let output = Command::new(std::env::current_exe().unwrap())
        .args(["--include-ignored", "--exact", name])
        .env("WINDLASS_KUBE_BIN", "/nowhere")
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(!output.status.success(), "{said}");
    for part in ["/nowhere/kube-apiserver", "tests/kube-apiserver/build.sh", "WINDLASS_KUBE_BIN"] {
        assert!(said.contains(part), "{said}");
    }
}
