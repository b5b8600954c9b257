//! Exec, attach and port-forward through a real kube-apiserver to a small fake kubelet.
//!
//! A pod is bound to a node whose address and port are those of the fake kubelet
//! (`kube-apiserver/fake-kubelet`), which runs scripted programs on the streaming server of real
//! kubelets. Each test runs twice: once where kube-apiserver translates to SPDY for the kubelet,
//! and once where the node declares support of WebSocket.

use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use k8s_openapi::api::core::v1::{Node, Pod};
use k8s_openapi::api::rbac::v1::{Role, RoleBinding};
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use windlass::ErrorKind;
use windlass::api::Api;
use windlass::api::remote::ExecOptions;
use windlass::client::Client;
use windlass::testing::TestCluster;
use windlass_tests::built::program;

/// Longest time for a step that should take no time.
const LIMIT: Duration = Duration::from_secs(30);

/// A program that ends when dropped.
struct Kubelet {
    program: Child,
    port: u16,
}

impl Kubelet {
    fn start() -> Self {
        let mut program = Command::new(fake_kubelet())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("the fake kubelet starts; build it by tests/kube-apiserver/build.sh");
        let mut line = String::new();
        let output = program.stdout.take().expect("its output is a pipe");
        BufReader::new(output).read_line(&mut line).expect("it says its port");
        Self { program, port: line.trim().parse().expect("a port") }
    }
}

impl Drop for Kubelet {
    fn drop(&mut self) {
        let _ = self.program.kill();
        let _ = self.program.wait();
    }
}

/// Returns the path of `build.sh`'s fake kubelet.
fn fake_kubelet() -> PathBuf {
    program("fake-kubelet").expect(
        "no fake kubelet in the cache or WINDLASS_KUBE_BIN: run tests/kube-apiserver/build.sh",
    )
}

/// A pod `db-0` on a node that is a fake kubelet.
struct World {
    cluster: TestCluster,
    pods: Api<Pod>,
    kubelet: Kubelet,
}

impl World {
    async fn start(websockets: bool) -> Self {
        let cluster = TestCluster::start().await;
        assert!(
            !cluster.is_embedded(),
            "set WINDLASS_TEST_SERVER=real: this needs a kube-apiserver"
        );
        let kubelet = Kubelet::start();
        let client = cluster.client();
        let node_name = format!("{}-node", cluster.namespace());
        let mut status = json!({
            "addresses": [{ "type": "InternalIP", "address": "127.0.0.1" }],
            "daemonEndpoints": { "kubeletEndpoint": { "Port": kubelet.port } },
        });
        if websockets {
            status["declaredFeatures"] = json!(["ExtendWebSocketsToKubelet"]);
        }
        let node: Node = object(json!({ "metadata": { "name": node_name }, "status": status }));
        let node = client.all::<Node>().create(&node).await.expect("a node");
        let declared = node.status.and_then(|status| status.declared_features).unwrap_or_default();
        assert_eq!(!declared.is_empty(), websockets);
        let pods = client.namespace::<Pod>(cluster.namespace());
        let pod: Pod = object(json!({
            "metadata": { "name": "db-0" },
            "spec": {
                "nodeName": node_name,
                "containers": [{ "name": "main", "image": "none" }],
            },
        }));
        let mut pod = pods.create(&pod).await.expect("a pod");
        pod.status.get_or_insert_default().phase = Some("Running".to_owned());
        pods.replace(&pod).status().await.expect("a running pod");
        Self { cluster, pods, kubelet }
    }

    async fn both() -> [Self; 2] {
        [Self::start(false).await, Self::start(true).await]
    }
}

fn object<K: serde::de::DeserializeOwned>(value: serde_json::Value) -> K {
    serde_json::from_value(value).expect("an object")
}

async fn soon<F: Future>(future: F) -> F::Output {
    tokio::time::timeout(LIMIT, future).await.expect("in time")
}

fn with_stdin() -> ExecOptions {
    ExecOptions { stdin: true, ..ExecOptions::default() }
}

#[tokio::test]
#[ignore = "needs the real API server: see tests/README.md"]
async fn a_command_prints_and_ends_with_its_exit_code() {
    for world in World::both().await {
        let run = async |command: &[&str]| {
            let session = world.pods.exec("db-0", command, ExecOptions::default()).await.unwrap();
            assert_eq!(session.protocol(), "v5.channel.k8s.io");
            session.output(1 << 20).await
        };
        let printed = soon(run(&["echo", "hello", "world & all"])).await.unwrap();
        assert_eq!(printed.stdout, b"hello world & all\n");
        assert!(printed.status.success() && printed.stderr.is_empty());
        let printed = soon(run(&["both"])).await.unwrap();
        assert_eq!((&*printed.stdout, &*printed.stderr), (&b"to stdout"[..], &b"to stderr"[..]));
        assert_eq!(printed.status.code(), 3);
        for code in [1, 42, 255] {
            let printed = soon(run(&["exit", &code.to_string()])).await.unwrap();
            assert_eq!(printed.status.code(), code);
        }
        let error = soon(run(&["nonsense"])).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Server, "{error}");
        assert!(error.to_string().contains("not found in container main"), "{error}");
    }
}

#[tokio::test]
#[ignore = "needs the real API server: see tests/README.md"]
async fn input_comes_back_and_its_end_is_reported() {
    for world in World::both().await {
        let mut session = world.pods.exec("db-0", &["cat"], with_stdin()).await.unwrap();
        let (mut stdin, mut stdout) = (session.stdin().unwrap(), session.stdout().unwrap());
        stdin.write_all(b"hello").await.unwrap();
        let mut echo = [0; 5];
        soon(stdout.read_exact(&mut echo)).await.unwrap();
        assert_eq!(&echo, b"hello");
        stdin.write_all(b", bye").await.unwrap();
        stdin.shutdown().await.unwrap();
        let mut rest = String::new();
        soon(stdout.read_to_string(&mut rest)).await.unwrap();
        assert_eq!(rest, ", bye");
        assert!(soon(session.wait()).await.unwrap().success());
    }
}

#[tokio::test]
#[ignore = "needs the real API server: see tests/README.md"]
async fn ten_megabytes_go_through_in_each_direction() {
    const MUCH: usize = 10 << 20;
    for world in World::both().await {
        let mut session = world.pods.exec("db-0", &["count"], with_stdin()).await.unwrap();
        let mut stdin = session.stdin().unwrap();
        soon(stdin.write_all(&vec![7; MUCH])).await.unwrap();
        drop(stdin);
        assert_eq!(soon(session.output(100)).await.unwrap().stdout, MUCH.to_string().as_bytes());

        let flood = ["flood", &MUCH.to_string()];
        let mut session = world.pods.exec("db-0", &flood, ExecOptions::default()).await.unwrap();
        let mut stdout = session.stdout().unwrap();
        let mut read = vec![0; MUCH + 1];
        let mut length = 0;
        loop {
            match soon(stdout.read(&mut read[length..])).await.unwrap() {
                0 => break,
                more => length += more,
            }
        }
        assert_eq!(length, MUCH);
        assert!(soon(session.wait()).await.unwrap().success());
    }
}

#[tokio::test]
#[ignore = "needs the real API server: see tests/README.md"]
async fn a_terminal_is_told_its_size() {
    for world in World::both().await {
        let options = ExecOptions { tty: true, ..ExecOptions::default() };
        let session = world.pods.exec("db-0", &["size"], options).await.unwrap();
        session.resize(120, 40).await.unwrap();
        assert_eq!(soon(session.output(100)).await.unwrap().stdout, b"120x40 tty=true");
    }
}

#[tokio::test]
#[ignore = "needs the real API server: see tests/README.md"]
async fn attach_joins_what_runs() {
    for world in World::both().await {
        let mut session = world.pods.attach("db-0", with_stdin()).await.unwrap();
        let (mut stdin, mut stdout) = (session.stdin().unwrap(), session.stdout().unwrap());
        stdin.write_all(b"knock").await.unwrap();
        stdin.shutdown().await.unwrap();
        let mut read = String::new();
        soon(stdout.read_to_string(&mut read)).await.unwrap();
        assert_eq!(read, "attached to main\nknock");
        assert!(soon(session.wait()).await.unwrap().success());
    }
}

/// Starts a server on a loopback port, which stands for a port in the pod: the server echoes a
/// line, then closes.
async fn echo_server() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let port = listener.local_addr().expect("an address").port();
    tokio::spawn(async move {
        while let Ok((mut tcp, _)) = listener.accept().await {
            tokio::spawn(async move {
                let mut seen = Vec::new();
                while !seen.ends_with(b"\n") && tcp.read_buf(&mut seen).await.is_ok_and(|n| n > 0) {
                }
                let _ = tcp.write_all(&seen).await;
            });
        }
    });
    port
}

#[tokio::test]
#[ignore = "needs the real API server: see tests/README.md"]
async fn ports_are_forwarded() {
    for world in World::both().await {
        let open = [echo_server().await, echo_server().await];
        let mut ports = world.pods.port_forward("db-0", &open).await.unwrap();
        for port in open {
            let mut stream = ports.take(port).unwrap();
            let line = [vec![b'x'; 1 << 20], vec![b'\n']].concat();
            let mut read = Vec::new();
            soon(stream.write_all(&line)).await.unwrap();
            soon(stream.read_to_end(&mut read)).await.unwrap();
            assert!(read == line, "{} bytes came back", read.len());
            assert!(stream.error().is_none());
        }

        let unused = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = unused.local_addr().unwrap().port();
        drop(unused);
        let mut stream =
            world.pods.port_forward("db-0", &[port]).await.unwrap().take(port).unwrap();
        let error = soon(stream.read_u8()).await.unwrap_err();
        assert!(error.to_string().contains("connection refused"), "{error}");
        let error = stream.error().unwrap().to_string();
        assert!(error.contains(&format!("(port {port})")) && error.contains("refused"), "{error}");
    }
}

#[tokio::test]
#[ignore = "needs the real API server: see tests/README.md"]
async fn a_kubelet_that_dies_is_no_end_of_the_command() {
    // If kube-apiserver translates, the error of kube-apiserver arrives.
    let kinds = [ErrorKind::Server, ErrorKind::Ambiguous];
    for (mut world, kind) in World::both().await.into_iter().zip(kinds) {
        let mut session = world.pods.exec("db-0", &["cat"], with_stdin()).await.unwrap();
        let (mut stdin, mut stdout) = (session.stdin().unwrap(), session.stdout().unwrap());
        // The command runs: kube-apiserver waits 30 s for streams that a kubelet was about to
        // accept.
        stdin.write_all(b"hello").await.unwrap();
        soon(stdout.read_exact(&mut [0; 5])).await.unwrap();
        world.kubelet.program.kill().unwrap();
        match (soon(session.wait()).await, kind) {
            // Seldom: kube-apiserver takes an error stream that ends without a text for a success
            // (`watchErrorStream` of client-go), also if the stream ended with the connection.
            (Ok(status), ErrorKind::Server) => assert_eq!(status.code(), 0),
            (Ok(status), _) => panic!("the command has ended with {status:?}"),
            (Err(error), kind) => assert_eq!(error.kind(), kind, "{error}"),
        }
        // Until the process is gone, the socket may yet take a connection.
        world.kubelet.program.wait().unwrap();
        // Now no kubelet is there; either the upgrade reports it or the session.
        let again = async {
            let again = world.pods.exec("db-0", &["echo"], ExecOptions::default()).await?;
            again.output(100).await
        };
        let error = soon(again).await.unwrap_err();
        assert!(error.to_string().contains("connection refused"), "{error}");
    }
}

#[tokio::test]
#[ignore = "needs the real API server: see tests/README.md"]
async fn errors_before_the_upgrade_are_the_servers_own() {
    let world = World::start(false).await;
    let options = ExecOptions { container: Some("other".into()), ..ExecOptions::default() };
    let error = world.pods.exec("db-0", &["echo"], options).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::BadRequest, "{error}");
    assert!(error.to_string().contains("other is not valid for pod db-0"), "{error}");
    let error = world.pods.exec("db-1", &["echo"], ExecOptions::default()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound, "{error}");
    assert_eq!(error.status().unwrap().reason, "NotFound");
}

#[tokio::test]
#[ignore = "needs the real API server: see tests/README.md"]
async fn get_and_create_on_the_subresource_must_both_be_allowed() {
    let world = World::start(false).await;
    let namespace = world.cluster.namespace();
    let jane = |user: &str| -> Client { world.cluster.client_as(user, &["system:authenticated"]) };
    let exec = async |user: &str| {
        let pods = jane(user).namespace::<Pod>(namespace);
        pods.exec("db-0", &["echo", "hi"], ExecOptions::default()).await?.output(100).await
    };
    assert_eq!(exec("nobody").await.unwrap_err().kind(), ErrorKind::Forbidden);
    for (user, verbs) in
        [("reader", &["get"][..]), ("creator", &["create"]), ("writer", &["get", "create"])]
    {
        let role: Role = object(json!({
            "metadata": { "name": user },
            "rules": [{ "apiGroups": [""], "resources": ["pods/exec"], "verbs": verbs }],
        }));
        let binding: RoleBinding = object(json!({
            "metadata": { "name": user },
            "roleRef": { "apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": user },
            "subjects": [{ "apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": user }],
        }));
        let admin = world.cluster.client();
        admin.namespace::<Role>(namespace).create(&role).await.unwrap();
        admin.namespace::<RoleBinding>(namespace).create(&binding).await.unwrap();
    }
    // Permissions become effective when the server's informers have seen them.
    let printed = soon(async {
        loop {
            match exec("writer").await {
                Err(error) if error.kind() == ErrorKind::Forbidden => {
                    tokio::time::sleep(Duration::from_millis(50)).await;
                }
                outcome => return outcome.unwrap(),
            }
        }
    });
    assert_eq!(printed.await.stdout, b"hi\n");
    for half in ["reader", "creator"] {
        let error = exec(half).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Forbidden, "{error}");
    }
}
