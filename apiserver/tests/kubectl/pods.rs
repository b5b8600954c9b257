//! kubectl with Pods that run: logs, commands, ports, and workloads.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::process::Stdio;
use std::time::Duration;

use super::Server;

/// All controllers, with the stand-ins.
const CONTROLLERS: &str = "*,deployment,replicaset,statefulset,daemonset,job,cronjob,endpoint,\
                           endpointslice,persistentvolume-binder,disruption,csrsigning,kubelet";

/// Starts a server whose Pods run.
fn with_kubelet(server: &Server) -> Server {
    Server::start_with(server.kubectl.clone(), &["--controllers", CONTROLLERS])
}

pub(super) fn pods_that_run_are_reached_by_logs_exec_attach_and_ports(server: &Server) {
    let server = with_kubelet(server);
    server.ok(&["run", "p", "--image=nginx", "--annotations=windlass.dev/log=one\ntwo\n"]);
    server.ok(&["wait", "--for=condition=Ready", "pod/p", "--timeout=20s"]);
    assert_eq!(server.ok(&["logs", "p", "--tail=1"]), "two\n");
    assert_eq!(server.ok(&["exec", "p", "--", "echo", "a b"]), "echo a b\n");
    assert_eq!(server.ok_with(&["exec", "-i", "p", "--", "cat"], "input"), "cat\ninput");
    assert_eq!(server.ok_with(&["attach", "-i", "p"], "input"), "one\ntwo\ninput");
    server.ok(&["annotate", "pod", "p", "windlass.dev/exit-code=3"]);
    let error = server.fails(&["exec", "p", "--", "false"], "");
    assert!(error.contains("command terminated with exit code 3"), "{error}");
    let mut forward = server
        .command(&["port-forward", "pod/p", ":80"])
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    // Kept open: kubectl ends when it cannot print.
    let mut printed = BufReader::new(forward.stdout.take().unwrap());
    let mut line = String::new();
    printed.read_line(&mut line).unwrap();
    let address = line.split_whitespace().find(|word| word.contains(':'));
    let echoed = echo(address.unwrap_or_else(|| panic!("no port is forwarded: {line:?}")));
    forward.kill().unwrap();
    forward.wait().unwrap();
    assert_eq!(echoed, "hello");
}

/// Sends a greeting to a port and returns what comes back.
fn echo(address: &str) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    stream.write_all(b"hello").unwrap();
    stream.shutdown(Shutdown::Write).unwrap();
    let mut echoed = String::new();
    stream.read_to_string(&mut echoed).unwrap();
    echoed
}

pub(super) fn workloads_roll_out_and_end(server: &Server) {
    let server = with_kubelet(server);
    server.ok(&["create", "deployment", "web", "--image=nginx", "--replicas=2", "--port=80"]);
    server.ok(&["rollout", "status", "deployment/web", "--timeout=20s"]);
    server.ok(&["expose", "deployment", "web"]);
    server.ok(&["set", "image", "deployment/web", "nginx=nginx:2"]);
    server.ok(&["rollout", "status", "deployment/web", "--timeout=20s"]);
    let path = "jsonpath={.items[*].spec.containers[0].image}";
    assert_eq!(server.ok(&["get", "pods", "-l", "app=web", "-o", path]), "nginx:2 nginx:2");
    server.ok(&["rollout", "undo", "deployment/web"]);
    server.ok(&["rollout", "status", "deployment/web", "--timeout=20s"]);
    assert_eq!(server.ok(&["get", "pods", "-l", "app=web", "-o", path]), "nginx nginx");
    server.ok(&["create", "job", "once", "--image=busybox", "--", "true"]);
    server.ok(&["wait", "--for=condition=Complete", "job/once", "--timeout=20s"]);
    let described = server.ok(&["describe", "service", "web"]);
    assert!(described.contains("10.244.0."), "{described}");
    server.ok(&["delete", "deployment", "web"]);
    server.ok(&["wait", "--for=delete", "pod", "-l", "app=web", "--timeout=20s"]);
}

pub(super) fn drains_debuggers_and_daemon_sets_come_to_an_end(server: &Server) {
    let server = with_kubelet(server);
    server.ok(&["create", "deployment", "web", "--image=nginx", "--replicas=2"]);
    server.ok(&["rollout", "status", "deployment/web", "--timeout=20s"]);
    server.ok(&["create", "pdb", "web", "--selector=app=web", "--max-unavailable=1"]);
    server.ok(&["wait", "--for=condition=DisruptionAllowed", "pdb/web", "--timeout=20s"]);
    let path = "jsonpath={.items[*].metadata.name}";
    let old = server.ok(&["get", "pods", "-o", path]);
    for name in old.split_whitespace() {
        let body = format!(
            r#"{{"apiVersion":"policy/v1","kind":"Eviction","metadata":{{"name":"{name}"}}}}"#
        );
        let url = format!("/api/v1/namespaces/default/pods/{name}/eviction");
        // The second one waits for the Pod in the place of the first.
        server.ok(&["wait", "--for=condition=DisruptionAllowed", "pdb/web", "--timeout=20s"]);
        server.ok_with(&["create", "--raw", &url, "-f", "-"], &body);
    }
    server.ok(&["delete", "pdb", "web"]);
    server.ok(&["drain", "windlass", "--force", "--timeout=20s"]);
    server.ok(&["uncordon", "windlass"]);
    server.ok(&["run", "p", "--image=nginx"]);
    server.ok(&["wait", "--for=condition=Ready", "pod/p", "--timeout=20s"]);
    let debug = ["debug", "-i", "p", "--image=busybox", "--container=d", "--", "sh"];
    server.ok_with(&debug, "input");
    let set = r#"{"apiVersion":"apps/v1","kind":"DaemonSet","metadata":{"name":"agent"},"spec":{
        "selector":{"matchLabels":{"app":"agent"}},"template":{"metadata":{"labels":{"app":"agent"}},
        "spec":{"containers":[{"name":"c","image":"i:1"}]}}}}"#;
    server.ok_with(&["apply", "-f", "-"], set);
    server.ok(&["rollout", "status", "ds/agent", "--timeout=20s"]);
    server.ok(&["set", "image", "ds/agent", "c=i:2"]);
    server.ok(&["rollout", "status", "ds/agent", "--timeout=20s"]);
    let history = server.ok(&["rollout", "history", "ds/agent"]);
    assert!(history.contains("1 ") && history.contains("2 "), "{history}");
    server.ok(&["rollout", "undo", "ds/agent"]);
    server.ok(&["rollout", "status", "ds/agent", "--timeout=20s"]);
    let image = "jsonpath={.items[*].spec.containers[0].image}";
    assert_eq!(server.ok(&["get", "pods", "-l", "app=agent", "-o", image]), "i:1");
}
