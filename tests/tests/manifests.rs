//! Acceptance of the website operator's manifests by an API server: through the client, and through
//! kubectl, which is ignored on machines without kubectl.

#![allow(clippy::unwrap_used, reason = "helpers of tests, outside of test functions")]

// The example, with `main`: the printed manifests of users are the checked ones.
#[path = "../../examples/src/bin/website.rs"]
#[allow(dead_code, unreachable_pub, unused_imports, missing_docs, missing_debug_implementations)]
mod website;

use std::path::PathBuf;
use std::process::{ExitCode, Output, Stdio};

use k8s_openapi::api::core::v1::Pod;
use libtest_mimic::{Arguments, Completion, Trial};
use tokio::io::AsyncWriteExt;
use windlass::client::Client;
use windlass::manager::ManifestOptions;
use windlass::resource::{DynamicObject, ResourceExt, ResourceInfo, Scope};
use windlass::testing::TestCluster;
use windlass_tests::built::{NO_KUBECTL, is_listed, program};

/// Runs the test of the function's name with kubectl.
macro_rules! needs_kubectl {
    ($name:ident) => {
        Trial::ignorable_test(stringify!($name), || {
            let Some(kubectl) = program("kubectl") else {
                return Ok(Completion::ignored_with(NO_KUBECTL));
            };
            block_on($name(kubectl));
            Ok(Completion::Completed)
        })
        .with_ignored_flag(is_listed() && program("kubectl").is_none())
    };
}

macro_rules! plain {
    ($name:ident) => {
        Trial::test(stringify!($name), || {
            block_on($name());
            Ok(())
        })
    };
}

fn main() -> ExitCode {
    let trials = vec![
        plain!(a_server_stores_every_document_as_it_was_printed_and_a_second_apply_changes_nothing),
        plain!(the_operators_pod_is_let_into_its_namespace_and_a_privileged_one_is_not),
        needs_kubectl!(kubectl_applies_the_manifests_dry_and_for_real),
    ];
    libtest_mimic::run(&Arguments::from_args(), trials).exit_code()
}

fn block_on(test: impl Future<Output = ()>) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(test);
}

/// Returns the output of `website manifests`, without a cluster; under a separate name, because
/// tests share a real server.
fn printed(namespace: &str) -> String {
    let options = ManifestOptions::default().namespace(namespace);
    let operator = website::operator(Client::offline()).name(format!("websites-of-{namespace}"));
    operator.manifests(&options).unwrap()
}

fn documents(text: &str) -> Vec<DynamicObject> {
    serde_saphyr::from_multiple(text).unwrap()
}

fn info_of(object: &DynamicObject) -> ResourceInfo {
    let (group, version) =
        object.api_version.split_once('/').unwrap_or(("", object.api_version.as_str()));
    let cluster = object.namespace().is_none();
    ResourceInfo {
        group: group.to_owned().into(),
        version: version.to_owned().into(),
        kind: object.kind.clone().into(),
        plural: format!("{}s", object.kind.to_lowercase()).replace("ys", "ies").into(),
        scope: if cluster { Scope::Cluster } else { Scope::Namespaced },
    }
}

async fn a_server_stores_every_document_as_it_was_printed_and_a_second_apply_changes_nothing() {
    let cluster = TestCluster::start().await;
    let documents = documents(&printed(cluster.namespace()));
    let kinds: Vec<&str> = documents.iter().map(|one| one.kind.as_str()).collect();
    assert_eq!(
        kinds,
        [
            "Namespace",
            "CustomResourceDefinition",
            "ServiceAccount",
            "ClusterRole",
            "ClusterRoleBinding",
            "ClusterRole",
            "ClusterRoleBinding",
            "Role",
            "RoleBinding",
            "NetworkPolicy",
            "Deployment",
        ]
    );
    for document in &documents {
        let api = cluster.client().dynamic(info_of(document), document.namespace());
        let first = api.apply(document.name(), document).await.unwrap();
        let second = api.apply(document.name(), document).await.unwrap();
        // A server writes the status of a definition and of a namespace unasked.
        assert_eq!(second.generation(), first.generation(), "{}", document.kind);
        let kept = document.rest.iter().all(|(key, wanted)| within(wanted, &first.rest[key]));
        assert!(kept, "{}: {:#?} became {:#?}", document.kind, document.rest, first.rest);
    }
}

/// Whether `stored` holds everything of `wanted`. Defaults may have been added.
fn within(wanted: &serde_json::Value, stored: &serde_json::Value) -> bool {
    use serde_json::Value::{Array, Object};
    match (wanted, stored) {
        (Object(wanted), Object(stored)) => wanted
            .iter()
            .all(|(key, value)| stored.get(key).is_some_and(|stored| within(value, stored))),
        (Array(wanted), Array(stored)) => {
            wanted.len() == stored.len()
                && wanted.iter().zip(stored).all(|(wanted, stored)| within(wanted, stored))
        }
        _ => wanted == stored,
    }
}

/// The embedded server has no Pod security; there only the first half is conclusive.
async fn the_operators_pod_is_let_into_its_namespace_and_a_privileged_one_is_not() {
    let cluster = TestCluster::start().await;
    let documents = documents(&printed(cluster.namespace()));
    for document in
        documents.iter().filter(|one| matches!(&*one.kind, "Namespace" | "ServiceAccount"))
    {
        let api = cluster.client().dynamic(info_of(document), document.namespace());
        api.apply(document.name(), document).await.unwrap();
    }
    let deployment = documents.iter().find(|one| one.kind == "Deployment").unwrap();
    let template = deployment.rest["spec"]["template"].clone();
    let pod = |change: &dyn Fn(&mut serde_json::Value)| -> Pod {
        let mut pod = template.clone();
        pod["metadata"]["name"] = "operator".into();
        change(&mut pod["spec"]);
        serde_json::from_value(pod).unwrap()
    };
    let pods = cluster.client().dry_run().namespace::<Pod>(cluster.namespace());
    pods.create(&pod(&|_| {})).await.unwrap();
    let privileged = pod(&|spec| {
        spec["containers"][0]["securityContext"]["privileged"] = true.into();
        spec["containers"][0]["securityContext"]["allowPrivilegeEscalation"] = true.into();
    });
    let root = pod(&|spec| spec["securityContext"]["runAsUser"] = 0.into());
    if !cluster.is_embedded() {
        for refused in [privileged, root] {
            let error = pods.create(&refused).await.unwrap_err().to_string();
            assert!(error.contains("violates PodSecurity \"restricted"), "{error}");
        }
    }
}

async fn kubectl_applies_the_manifests_dry_and_for_real(program: PathBuf) {
    let cluster = TestCluster::start().await;
    let kubectl = Kubectl::new(program, &cluster.kubeconfig().await);
    let text = printed(cluster.namespace());
    // The namespace of the other documents exists; a dry run would not create the namespace.
    let dry = kubectl.ok(&["apply", "--dry-run=server", "-f", "-"], &text).await;
    assert_eq!(dry.lines().count(), 11, "{dry}");
    assert!(dry.lines().all(|line| line.ends_with("(server dry run)")), "{dry}");
    let dry = ["apply", "--server-side", "--dry-run=server", "--validate=strict", "-f", "-"];
    assert_eq!(kubectl.ok(&dry, &text).await.lines().count(), 11);

    kubectl.ok(&["apply", "-f", "-"], &text).await;
    let again = kubectl.ok(&["apply", "-f", "-"], &text).await;
    assert!(again.lines().all(|line| line.ends_with(" unchanged")), "{again}");
    let established =
        ["wait", "--for=condition=Established", "crd/websites.example.dev", "--timeout=20s"];
    kubectl.ok(&established, "").await;
}

/// kubectl with a separate folder.
struct Kubectl {
    program: PathBuf,
    folder: PathBuf,
}

impl Drop for Kubectl {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

impl Kubectl {
    fn new(program: PathBuf, kubeconfig: &str) -> Self {
        let folder =
            std::env::temp_dir().join(format!("windlass-manifests-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join("kubeconfig"), kubeconfig).unwrap();
        Self { program, folder }
    }

    async fn run(&self, args: &[&str], input: &str) -> std::io::Result<Output> {
        let mut child = tokio::process::Command::new(&self.program)
            .args(args)
            .env("KUBECONFIG", self.folder.join("kubeconfig"))
            .env("HOME", &self.folder)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()?;
        if let Some(mut stdin) = child.stdin.take() {
            stdin.write_all(input.as_bytes()).await?;
        }
        child.wait_with_output().await
    }

    /// Returns the standard output. Fails the test unless it exits with 0.
    async fn ok(&self, args: &[&str], input: &str) -> String {
        let output = self.run(args, input).await.unwrap();
        let (out, err) =
            (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        assert!(output.status.success(), "kubectl {}: {err}{out}", args.join(" "));
        out.into_owned()
    }
}
