//! kubectl 1.36.3 against the program `windlass-apiserver`.
//!
//! kubectl is built by `tests/kube-apiserver/build.sh`. If kubectl is missing, these tests are
//! ignored and print the reason, because a machine with only the Rust toolchain must pass.

// Helpers of tests may unwrap, as tests may.
#![allow(clippy::unwrap_used)]

use std::io::{BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::{Child, Command, ExitCode, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

use libtest_mimic::{Arguments, Completion, Trial};

#[path = "../../tests/src/built.rs"]
#[allow(unreachable_pub)]
mod built;
#[path = "kubectl/credentials.rs"]
mod credentials;
#[path = "kubectl/pods.rs"]
mod pods;
#[path = "kubectl/sessions.rs"]
mod sessions;

use credentials::{
    a_created_token_logs_in_as_the_account_until_it_is_deleted,
    certificates_are_approved_and_denied, debug_adds_a_container_to_a_pod,
    logs_and_exec_fail_as_without_a_kubelet,
};
use pods::{
    drains_debuggers_and_daemon_sets_come_to_an_end,
    pods_that_run_are_reached_by_logs_exec_attach_and_ports, workloads_roll_out_and_end,
};
use sessions::{
    at_least_a_hundred_commands_were_recorded, commands_print_what_they_print_on_a_kube_apiserver,
};

const CRD: &str = r#"
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: { name: websites.example.dev }
spec:
  group: example.dev
  scope: Namespaced
  names: { plural: websites, singular: website, kind: Website, listKind: WebsiteList, shortNames: [ws] }
  versions:
  - name: v1
    served: true
    storage: true
    subresources: { status: {}, scale: { specReplicasPath: .spec.replicas, statusReplicasPath: .status.replicas } }
    additionalPrinterColumns: [{ name: Host, type: string, jsonPath: .spec.host }]
    schema:
      openAPIV3Schema:
        type: object
        required: [spec]
        properties:
          spec:
            type: object
            required: [host]
            properties:
              host: { type: string, description: Host name that the site answers to. }
              replicas: { type: integer, minimum: 1, default: 1 }
          status: { type: object, properties: { replicas: { type: integer } } }
"#;

/// A running server that ends with its test.
struct Server {
    process: Child,
    folder: PathBuf,
    kubectl: PathBuf,
    address: String,
    _stdout: BufReader<std::process::ChildStdout>,
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

/// Declares a test with the function's name and with a server of its own.
macro_rules! needs_kubectl {
    ($name:ident) => {
        Trial::ignorable_test(stringify!($name), || {
            let Some(kubectl) = built::program("kubectl") else {
                return Ok(Completion::ignored_with(built::NO_KUBECTL));
            };
            $name(&Server::start(kubectl));
            Ok(Completion::Completed)
        })
        .with_ignored_flag(built::is_listed() && built::program("kubectl").is_none())
    };
}

fn main() -> ExitCode {
    let mut trials = vec![
        needs_kubectl!(create_and_get_print_tables),
        needs_kubectl!(create_with_flags_sends_protobuf_and_reads_it),
        needs_kubectl!(commands_on_workloads_read_and_write_protobuf),
        needs_kubectl!(questions_about_rights_are_answered),
        needs_kubectl!(a_custom_resource_has_its_own_columns_and_short_name),
        needs_kubectl!(a_custom_resource_is_validated_and_defaulted),
        needs_kubectl!(apply_on_the_client_side_creates_changes_and_leaves_alone),
        needs_kubectl!(apply_on_the_server_side_reports_conflicts_and_can_force),
        needs_kubectl!(describe_shows_metadata_and_spec),
        needs_kubectl!(edit_writes_what_the_editor_saved),
        needs_kubectl!(patches_of_three_kinds_work),
        needs_kubectl!(label_sets_changes_and_selects),
        needs_kubectl!(scale_changes_built_in_and_custom_kinds),
        needs_kubectl!(delete_waits_until_the_object_is_gone),
        needs_kubectl!(deleting_a_namespace_deletes_what_is_in_it),
        needs_kubectl!(wait_sees_a_condition_and_a_deletion),
        needs_kubectl!(explain_knows_custom_and_built_in_fields),
        needs_kubectl!(api_resources_lists_built_in_and_custom_kinds),
        needs_kubectl!(get_with_watch_prints_changes_as_they_happen),
        needs_kubectl!(a_user_of_the_token_file_may_do_what_rbac_grants_and_no_more),
        needs_kubectl!(a_created_token_logs_in_as_the_account_until_it_is_deleted),
        needs_kubectl!(certificates_are_approved_and_denied),
        needs_kubectl!(debug_adds_a_container_to_a_pod),
        needs_kubectl!(logs_and_exec_fail_as_without_a_kubelet),
        needs_kubectl!(pods_that_run_are_reached_by_logs_exec_attach_and_ports),
        needs_kubectl!(workloads_roll_out_and_end),
        needs_kubectl!(drains_debuggers_and_daemon_sets_come_to_an_end),
        needs_kubectl!(commands_print_what_they_print_on_a_kube_apiserver),
        needs_kubectl!(at_least_a_hundred_commands_were_recorded),
    ];
    let count = trials.len();
    trials.push(Trial::test(WITHOUT_KUBECTL, move || {
        without_kubectl_all_are_ignored_with_the_reason_and_none_passes(count);
        Ok(())
    }));
    libtest_mimic::run(&Arguments::from_args(), trials).exit_code()
}

const WITHOUT_KUBECTL: &str = "without_kubectl_all_are_ignored_with_the_reason_and_none_passes";

fn without_kubectl_all_are_ignored_with_the_reason_and_none_passes(count: usize) {
    for asked in [&[][..], &["--include-ignored"]] {
        let output = Command::new(std::env::current_exe().unwrap())
            .env("WINDLASS_KUBE_BIN", "/nowhere")
            .args(["--skip", WITHOUT_KUBECTL])
            .args(asked)
            .output()
            .unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        assert!(output.status.success(), "{text}");
        let result = format!("0 passed; 0 failed; {count} ignored");
        assert!(text.contains(&result), "{text}");
        let reasons = text.lines().filter(|line| line.ends_with("(needs Go))"));
        assert_eq!(reasons.count(), count, "{text}");
    }
}

impl Server {
    /// Starts a server with an empty store.
    fn start(kubectl: PathBuf) -> Self {
        Self::start_with(kubectl, &["--stand-ins"])
    }

    /// Starts a server with more flags.
    fn start_with(kubectl: PathBuf, flags: &[&str]) -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let folder =
            std::env::temp_dir().join(format!("windlass-kubectl-{}-{number}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let users = folder.join("users.csv");
        std::fs::write(&users, "ann-token,ann,u-1,\"dev\"\n").unwrap();
        let mut process = Command::new(env!("CARGO_BIN_EXE_windlass-apiserver"))
            .args(flags)
            .args(["--listen", "127.0.0.1:0", "--kubeconfig"])
            .arg(folder.join("kubeconfig"))
            .arg("--token-auth-file")
            .arg(&users)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut stdout = BufReader::new(process.stdout.take().unwrap());
        let mut ready = String::new();
        stdout.read_line(&mut ready).unwrap();
        let address = ready
            .split_whitespace()
            .map(|word| word.trim_end_matches(','))
            .find(|word| word.starts_with("https://127.0.0.1:"));
        let address = address.unwrap_or_else(|| panic!("no ready line: {ready:?}")).to_owned();
        Self { process, folder, kubectl, address, _stdout: stdout }
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(&self.kubectl);
        command
            .args(args)
            .env("KUBECONFIG", self.folder.join("kubeconfig"))
            .env("HOME", &self.folder);
        command
    }

    fn run(&self, args: &[&str], input: &str) -> Output {
        let mut child = self
            .command(args)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
        child.wait_with_output().unwrap()
    }

    /// Runs kubectl and returns its standard output. Fails the test unless it exits with 0.
    #[track_caller]
    fn ok(&self, args: &[&str]) -> String {
        self.ok_with(args, "")
    }

    #[track_caller]
    fn ok_with(&self, args: &[&str], input: &str) -> String {
        let output = self.run(args, input);
        let (out, err) =
            (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        assert!(output.status.success(), "kubectl {}: {err}{out}", args.join(" "));
        out.into_owned()
    }

    /// Runs kubectl, which must fail, and returns its standard error.
    #[track_caller]
    fn fails(&self, args: &[&str], input: &str) -> String {
        let output = self.run(args, input);
        assert!(!output.status.success(), "kubectl {} should fail", args.join(" "));
        String::from_utf8_lossy(&output.stderr).into_owned()
    }

    /// Installs the kind `Website` and waits until it is served.
    #[track_caller]
    fn install_websites(&self) {
        self.ok_with(&["apply", "-f", "-"], CRD);
        self.ok(&[
            "wait",
            "--for=condition=Established",
            "crd/websites.example.dev",
            "--timeout=20s",
        ]);
    }
}

fn website(name: &str, replicas: u32) -> String {
    format!(
        "apiVersion: example.dev/v1\nkind: Website\nmetadata: {{ name: {name} }}\nspec: {{ host: {name}.example, replicas: {replicas} }}\n"
    )
}

fn config_map(name: &str, value: &str) -> String {
    format!(
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {{ name: {name} }}\ndata: {{ key: \"{value}\" }}\n"
    )
}

const DEPLOYMENT: &str = r#"
apiVersion: apps/v1
kind: Deployment
metadata: { name: web }
spec:
  replicas: 2
  selector: { matchLabels: { app: web } }
  template:
    metadata: { labels: { app: web } }
    spec: { containers: [{ name: nginx, image: "nginx:1.29", ports: [{ containerPort: 80 }] }] }
"#;

fn create_and_get_print_tables(server: &Server) {
    assert_eq!(
        server.ok_with(&["create", "-f", "-"], &config_map("a", "1")),
        "configmap/a created\n"
    );
    let table = server.ok(&["get", "configmaps"]);
    assert!(
        table.starts_with("NAME") && table.contains("DATA") && table.contains("AGE"),
        "{table}"
    );
    assert!(table.lines().any(|line| line.starts_with("a ") && line.contains('1')), "{table}");
    let error = server.fails(&["create", "-f", "-"], &config_map("a", "1"));
    assert!(error.contains("(AlreadyExists)"), "{error}");
}

fn create_with_flags_sends_protobuf_and_reads_it(server: &Server) {
    for (arguments, answer) in [
        ("configmap c --from-literal=a=b", "configmap/c created"),
        ("secret generic s --from-literal=a=b", "secret/s created"),
        ("namespace n", "namespace/n created"),
        ("serviceaccount sa", "serviceaccount/sa created"),
        ("deployment d --image=nginx --replicas=2 --port=80", "deployment.apps/d created"),
        ("job j --image=busybox -- true", "job.batch/j created"),
        ("cronjob cj --image=busybox --schedule=@hourly", "cronjob.batch/cj created"),
        ("ingress i --rule=a.example/x=svc:80", "ingress.networking.k8s.io/i created"),
        ("service clusterip sv --tcp=80:8080", "service/sv created"),
        ("quota q --hard=cpu=1,memory=1G", "resourcequota/q created"),
        ("pdb p --selector=a=b --max-unavailable=50%", "poddisruptionbudget.policy/p created"),
        ("priorityclass pc --value=-5", "priorityclass.scheduling.k8s.io/pc created"),
        ("role r --verb=get --resource=pods", "role.rbac.authorization.k8s.io/r created"),
        ("rolebinding rb --role=r --user=u", "rolebinding.rbac.authorization.k8s.io/rb created"),
    ] {
        let arguments: Vec<&str> = std::iter::once("create").chain(arguments.split(' ')).collect();
        assert_eq!(server.ok(&arguments), format!("{answer}\n"));
    }
    let path = "jsonpath={.data.a} {.metadata.managedFields[0].manager}";
    assert_eq!(server.ok(&["get", "cm", "c", "-o", path]), "b kubectl-create");
    let path = "jsonpath={.spec.maxUnavailable}";
    assert_eq!(server.ok(&["get", "pdb", "p", "-o", path]), "50%");
    let error = server.fails(&["create", "configmap", "c"], "");
    assert_eq!(error, "error: failed to create configmap: configmaps \"c\" already exists\n");
    let dry = ["create", "configmap", "x", "--from-literal=a=b", "--dry-run=server", "-o", "name"];
    assert_eq!(server.ok(&dry), "configmap/x\n");
    server.fails(&["get", "cm", "x"], "");
    for kind in ["cm/c", "secret/s", "deployment/d", "job/j", "ing/i", "quota/q", "pdb/p", "role/r"]
    {
        assert!(server.ok(&["describe", kind]).starts_with("Name:"), "{kind}");
    }
}

fn commands_on_workloads_read_and_write_protobuf(server: &Server) {
    server.ok(&["create", "deployment", "d", "--image=nginx", "--replicas=2"]);
    server.ok(&["autoscale", "deployment", "d", "--min=1", "--max=3", "--cpu=50%"]);
    assert!(server.ok(&["describe", "hpa", "d"]).contains("50%"));
    server.ok(&["expose", "deployment", "d", "--port=80", "--target-port=http"]);
    assert_eq!(
        server.ok(&["scale", "deployment", "d", "--replicas=3"]),
        "deployment.apps/d scaled\n"
    );
    server.ok(&["set", "image", "deployment/d", "nginx=nginx:2"]);
    server.ok(&["rollout", "restart", "deployment/d"]);
    let status = server.ok(&["rollout", "status", "deployment/d", "--timeout=20s"]);
    assert!(status.contains("successfully rolled out"), "{status}");
    assert_eq!(server.ok(&["run", "p", "--image=nginx", "--env=A=B"]), "pod/p created\n");
    let text = server.ok(&["describe", "pod", "p"]);
    assert!(text.contains("nginx") && text.contains("A:         B"), "{text}");
    server.ok(&["delete", "pod", "p", "--grace-period=0", "--force"]);
}

fn questions_about_rights_are_answered(server: &Server) {
    assert_eq!(server.ok(&["auth", "can-i", "get", "pods"]), "yes\n");
    assert!(server.ok(&["auth", "can-i", "--list"]).contains("*.*"));
    assert!(server.ok(&["auth", "whoami"]).contains("system:masters"));
    let denied = server.run(&["auth", "can-i", "create", "secrets", "--as=bob"], "");
    assert_eq!(String::from_utf8_lossy(&denied.stdout), "no\n");
}

fn a_custom_resource_has_its_own_columns_and_short_name(server: &Server) {
    server.install_websites();
    server.ok_with(&["apply", "-f", "-"], &website("home", 2));
    let table = server.ok(&["get", "ws"]);
    assert!(table.contains("HOST") && table.contains("home.example"), "{table}");
}

fn a_custom_resource_is_validated_and_defaulted(server: &Server) {
    server.install_websites();
    let error = server.fails(&["apply", "-f", "-"], &website("home", 0));
    assert!(
        error.contains("spec.replicas") && error.contains("greater than or equal to 1"),
        "{error}"
    );
    server.ok_with(
        &["apply", "-f", "-"],
        "apiVersion: example.dev/v1\nkind: Website\nmetadata: {name: d}\nspec: {host: d}\n",
    );
    assert_eq!(server.ok(&["get", "ws", "d", "-o", "jsonpath={.spec.replicas}"]), "1");
}

fn apply_on_the_client_side_creates_changes_and_leaves_alone(server: &Server) {
    assert_eq!(
        server.ok_with(&["apply", "-f", "-"], &config_map("a", "1")),
        "configmap/a created\n"
    );
    assert_eq!(
        server.ok_with(&["apply", "-f", "-"], &config_map("a", "2")),
        "configmap/a configured\n"
    );
    assert_eq!(
        server.ok_with(&["apply", "-f", "-"], &config_map("a", "2")),
        "configmap/a unchanged\n"
    );
    assert_eq!(server.ok(&["get", "cm", "a", "-o", "jsonpath={.data.key}"]), "2");
}

fn apply_on_the_server_side_reports_conflicts_and_can_force(server: &Server) {
    let apply = ["apply", "--server-side", "--field-manager=one", "-f", "-"];
    assert_eq!(server.ok_with(&apply, &config_map("a", "1")), "configmap/a serverside-applied\n");
    let other = ["apply", "--server-side", "--field-manager=two", "-f", "-"];
    let error = server.fails(&other, &config_map("a", "2"));
    assert!(error.contains("conflict with \"one\"") && error.contains(".data.key"), "{error}");
    server.ok_with(
        &["apply", "--server-side", "--force-conflicts", "--field-manager=two", "-f", "-"],
        &config_map("a", "2"),
    );
    assert_eq!(server.ok(&["get", "cm", "a", "-o", "jsonpath={.data.key}"]), "2");
}

fn describe_shows_metadata_and_spec(server: &Server) {
    server.install_websites();
    server.ok_with(&["apply", "-f", "-"], &website("home", 2));
    let text = server.ok(&["describe", "website", "home"]);
    assert!(
        text.contains("Name:") && text.contains("home.example") && text.contains("Events:"),
        "{text}"
    );
    server.ok_with(&["apply", "-f", "-"], DEPLOYMENT);
    let text = server.ok(&["describe", "deployment", "web"]);
    assert!(text.contains("nginx:1.29") && text.contains("Selector:"), "{text}");
}

fn edit_writes_what_the_editor_saved(server: &Server) {
    server.ok_with(&["create", "-f", "-"], &config_map("a", "before"));
    let mut command = server.command(&["edit", "configmap", "a"]);
    let output = command.env("EDITOR", "sed -i s/before/after/").output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(server.ok(&["get", "cm", "a", "-o", "jsonpath={.data.key}"]), "after");
}

fn patches_of_three_kinds_work(server: &Server) {
    server.ok_with(&["create", "-f", "-"], DEPLOYMENT);
    let strategic =
        r#"{"spec":{"template":{"spec":{"containers":[{"name":"nginx","image":"nginx:2"}]}}}}"#;
    server.ok(&["patch", "deployment", "web", "-p", strategic]);
    let path = "jsonpath={.spec.template.spec.containers[0].image} {.spec.template.spec.containers[0].ports[0].containerPort}";
    assert_eq!(server.ok(&["get", "deployment", "web", "-o", path]), "nginx:2 80");
    server.ok(&["patch", "deployment", "web", "--type=merge", "-p", r#"{"spec":{"replicas":5}}"#]);
    server.ok(&[
        "patch",
        "deployment",
        "web",
        "--type=json",
        "-p",
        r#"[{"op":"replace","path":"/spec/replicas","value":6}]"#,
    ]);
    assert_eq!(server.ok(&["get", "deployment", "web", "-o", "jsonpath={.spec.replicas}"]), "6");
    let same = server.ok(&[
        "patch",
        "deployment",
        "web",
        "--type=merge",
        "-p",
        r#"{"spec":{"replicas":6}}"#,
    ]);
    assert!(same.contains("patched (no change)"), "{same}");
}

fn label_sets_changes_and_selects(server: &Server) {
    server.ok_with(&["create", "-f", "-"], &config_map("a", "1"));
    server.ok_with(&["create", "-f", "-"], &config_map("b", "1"));
    assert_eq!(server.ok(&["label", "cm", "a", "tier=front"]), "configmap/a labeled\n");
    assert_eq!(
        server.ok(&["get", "cm", "-l", "tier in (front,back)", "-o", "name"]),
        "configmap/a\n"
    );
    server.ok(&["label", "cm", "a", "tier-"]);
    assert_eq!(server.ok(&["get", "cm", "-l", "tier", "-o", "name"]), "");
}

fn scale_changes_built_in_and_custom_kinds(server: &Server) {
    server.ok_with(&["create", "-f", "-"], DEPLOYMENT);
    assert_eq!(
        server.ok(&["scale", "deployment", "web", "--replicas=4"]),
        "deployment.apps/web scaled\n"
    );
    assert_eq!(server.ok(&["get", "deployment", "web", "-o", "jsonpath={.spec.replicas}"]), "4");
    server.install_websites();
    server.ok_with(&["apply", "-f", "-"], &website("home", 2));
    server.ok(&["scale", "website", "home", "--replicas=3"]);
    assert_eq!(server.ok(&["get", "ws", "home", "-o", "jsonpath={.spec.replicas}"]), "3");
}

fn delete_waits_until_the_object_is_gone(server: &Server) {
    server.ok_with(&["create", "-f", "-"], &config_map("a", "1"));
    let deleted = server.ok(&["delete", "configmap", "a", "--timeout=20s"]);
    assert!(deleted.starts_with("configmap \"a\" deleted"), "{deleted}");
    let error = server.fails(&["get", "configmap", "a"], "");
    assert!(error.contains("(NotFound)"), "{error}");
}

fn deleting_a_namespace_deletes_what_is_in_it(server: &Server) {
    server.ok_with(
        &["create", "-f", "-"],
        "apiVersion: v1\nkind: Namespace\nmetadata: { name: shop }\n",
    );
    server.ok_with(&["create", "-n", "shop", "-f", "-"], &config_map("a", "1"));
    server.ok(&["delete", "namespace", "shop", "--timeout=20s"]);
    let error = server.fails(&["get", "namespace", "shop"], "");
    assert!(error.contains("(NotFound)"), "{error}");
}

fn wait_sees_a_condition_and_a_deletion(server: &Server) {
    server.ok_with(&["create", "-f", "-"], DEPLOYMENT);
    let met = server.ok(&["wait", "--for=condition=Available", "deployment/web", "--timeout=20s"]);
    assert_eq!(met, "deployment.apps/web condition met\n");
    let waiting = server
        .command(&["wait", "--for=delete", "deployment/web", "--timeout=20s"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    server.ok(&["delete", "deployment", "web", "--timeout=20s"]);
    assert!(waiting.wait_with_output().unwrap().status.success());
}

fn explain_knows_custom_and_built_in_fields(server: &Server) {
    server.install_websites();
    let text = server.ok(&["explain", "websites.spec.host"]);
    assert!(text.contains("Host name that the site answers to."), "{text}");
    let text = server.ok(&["explain", "deployment.spec"]);
    assert!(text.contains("replicas") && text.contains("template"), "{text}");
    let text = server.ok(&["explain", "pods.spec.containers.image"]);
    assert!(text.contains("Container image name."), "{text}");
}

fn api_resources_lists_built_in_and_custom_kinds(server: &Server) {
    server.install_websites();
    let text = server.ok(&["api-resources"]);
    for kind in ["configmaps", "deployments", "leases", "websites", "customresourcedefinitions"] {
        assert!(text.lines().any(|line| line.starts_with(kind)), "{kind} is missing:\n{text}");
    }
}

fn get_with_watch_prints_changes_as_they_happen(server: &Server) {
    server.ok_with(&["create", "-f", "-"], &config_map("a", "1"));
    let mut watch = server
        .command(&[
            "get",
            "configmaps",
            "--watch",
            "-o",
            "jsonpath={.metadata.name}={.data.key}{\"\\n\"}",
        ])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(watch.stdout.take().unwrap()).lines().map_while(Result::ok);
    assert!(lines.any(|line| line == "a=1"));
    server.ok(&["patch", "configmap", "a", "--type=merge", "-p", r#"{"data":{"key":"2"}}"#]);
    assert!(lines.any(|line| line == "a=2"));
    watch.kill().unwrap();
    watch.wait().unwrap();
}

fn a_user_of_the_token_file_may_do_what_rbac_grants_and_no_more(server: &Server) {
    let flags = [
        format!("--server={}", server.address),
        "--token=ann-token".to_owned(),
        "--insecure-skip-tls-verify".to_owned(),
        "--kubeconfig=/dev/null".to_owned(),
    ];
    let ann = |args: &[&str]| {
        let mut all: Vec<&str> = flags.iter().map(String::as_str).collect();
        all.extend(args);
        server.command(&all).env_remove("KUBECONFIG").output().unwrap()
    };
    let refused = ann(&["get", "configmaps"]);
    let text = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(text.contains(r#"User "ann" cannot list resource "configmaps""#), "{text}");
    server.ok_with(
        &["apply", "-f", "-"],
        r#"
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: { name: reader }
rules: [{ apiGroups: [""], resources: [configmaps], verbs: [get, list] }]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: { name: reader }
roleRef: { apiGroup: rbac.authorization.k8s.io, kind: Role, name: reader }
subjects: [{ kind: Group, apiGroup: rbac.authorization.k8s.io, name: dev }]
"#,
    );
    assert!(ann(&["get", "configmaps"]).status.success());
    assert!(!ann(&["delete", "configmap", "kube-root-ca.crt"]).status.success());
    let stranger = server
        .command(&[&flags[0], &flags[2], &flags[3], "--token=wrong", "get", "configmaps"])
        .output()
        .unwrap();
    assert!(!stranger.status.success());
}
