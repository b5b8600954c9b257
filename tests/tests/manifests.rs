//! The website operator's manifests are what an API server takes: through the client, and through
//! kubectl where there is one.

#![allow(clippy::unwrap_used, reason = "helpers of tests, outside of test functions")]

// The example, with its `main`: what users print is what is checked.
#[path = "../../examples/src/bin/website.rs"]
#[allow(dead_code, unreachable_pub, missing_docs, missing_debug_implementations)]
mod website;

use std::path::{Path, PathBuf};
use std::process::{Output, Stdio};

use tokio::io::AsyncWriteExt;
use windlass::client::Client;
use windlass::manager::ManifestOptions;
use windlass::resource::{DynamicObject, ResourceExt, ResourceInfo, Scope};
use windlass::testing::TestCluster;

/// As `website manifests` prints them, without a cluster; under a name of its own, because tests
/// share a real server.
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
        plural: format!("{}s", object.kind.to_lowercase()).into(),
        scope: if cluster { Scope::Cluster } else { Scope::Namespaced },
    }
}

#[tokio::test]
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
            "Deployment",
        ]
    );
    for document in &documents {
        let api = cluster.client().dynamic(info_of(document), document.namespace());
        let first = api.apply(document.name(), document).await.unwrap();
        let second = api.apply(document.name(), document).await.unwrap();
        // A server writes the status of a definition and of a namespace by itself.
        assert_eq!(second.generation(), first.generation(), "{}", document.kind);
        let kept = document.rest.iter().all(|(key, wanted)| within(wanted, &first.rest[key]));
        assert!(kept, "{}: {:#?} became {:#?}", document.kind, document.rest, first.rest);
    }
}

/// Does `stored` hold everything of `wanted`? Defaults may have been added.
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

#[tokio::test]
async fn kubectl_applies_the_manifests_dry_and_for_real() {
    let Some(program) = kubectl() else {
        eprintln!("left out: no kubectl; tests/kube-apiserver/build.sh builds it (needs Go)");
        return;
    };
    let cluster = TestCluster::start().await;
    let kubectl = Kubectl::new(program, &cluster.kubeconfig().await);
    let text = printed(cluster.namespace());
    // The namespace of the other documents is there; a dry run would not make it.
    let dry = kubectl.ok(&["apply", "--dry-run=server", "-f", "-"], &text).await;
    assert_eq!(dry.lines().count(), 10, "{dry}");
    assert!(dry.lines().all(|line| line.ends_with("(server dry run)")), "{dry}");
    let dry = ["apply", "--server-side", "--dry-run=server", "--validate=strict", "-f", "-"];
    assert_eq!(kubectl.ok(&dry, &text).await.lines().count(), 10);

    kubectl.ok(&["apply", "-f", "-"], &text).await;
    let again = kubectl.ok(&["apply", "-f", "-"], &text).await;
    assert!(again.lines().all(|line| line.ends_with(" unchanged")), "{again}");
    let established =
        ["wait", "--for=condition=Established", "crd/websites.example.dev", "--timeout=20s"];
    kubectl.ok(&established, "").await;
}

/// kubectl with a folder of its own.
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

    /// Its standard output. Fails the test unless it exits with 0.
    async fn ok(&self, args: &[&str], input: &str) -> String {
        let output = self.run(args, input).await.unwrap();
        let (out, err) =
            (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        assert!(output.status.success(), "kubectl {}: {err}{out}", args.join(" "));
        out.into_owned()
    }
}

/// `WINDLASS_KUBE_BIN`, else the newest build in the cache.
fn kubectl() -> Option<PathBuf> {
    let folder = match std::env::var_os("WINDLASS_KUBE_BIN") {
        Some(folder) => PathBuf::from(folder),
        None => newest_build(&cache()?)?,
    };
    Some(folder.join("kubectl")).filter(|program| program.is_file())
}

fn cache() -> Option<PathBuf> {
    let folder = |name| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    folder("WINDLASS_CACHE")
        .or_else(|| Some(folder("XDG_CACHE_HOME")?.join("windlass")))
        .or_else(|| Some(folder("HOME")?.join(".cache/windlass")))
}

fn newest_build(cache: &Path) -> Option<PathBuf> {
    let entries = std::fs::read_dir(cache).ok()?.filter_map(|entry| Some(entry.ok()?.path()));
    let builds = entries.filter(|path| {
        path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("kube-v1."))
    });
    let built = |path: &PathBuf| path.metadata().and_then(|about| about.modified()).ok();
    builds.filter(|folder| folder.join("kubectl").is_file()).max_by_key(built)
}
