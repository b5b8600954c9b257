//! Shared parts of the tests of the real server.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use http::header::CONTENT_TYPE;
use http::{HeaderValue, Method};
use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde::Deserialize;
use serde_json::{Value, json};
use windlass::Error;
use windlass::client::{Client, ClientConfig, Prepared, Verb};
use windlass::clock::Clock;
use windlass::testing::{ClientCertificate, RealServer};

/// Longer than any test needs a certificate.
pub(crate) const LONG: Duration = Duration::from_secs(3600);

/// The server's view of a client's user.
#[derive(Debug, Default, Deserialize, PartialEq)]
#[serde(default)]
pub(crate) struct Identity {
    pub(crate) username: String,
    pub(crate) uid: String,
    pub(crate) groups: Vec<String>,
    pub(crate) extra: BTreeMap<String, Vec<String>>,
}

/// Asks the server for our identity.
pub(crate) async fn whoami(client: &Client) -> Result<Identity, Error> {
    let path = "/apis/authentication.k8s.io/v1/selfsubjectreviews";
    let body = json!({ "apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview" });
    let answer = post(client, path, "ask who we are", &body).await?;
    Ok(serde_json::from_value(answer["status"]["userInfo"].clone()).unwrap())
}

/// Returns our name at the server.
pub(crate) async fn name(client: &Client) -> String {
    whoami(client).await.unwrap().username
}

pub(crate) async fn post(
    client: &Client,
    path: &str,
    action: &str,
    body: &Value,
) -> Result<Value, Error> {
    let mut request = Prepared::new(Verb::Create, Method::POST, path.into(), action.into());
    request.headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    request.body = body.to_string().into();
    let answer = client.send(request).await?;
    Ok(serde_json::from_slice(&answer.body).unwrap())
}

pub(crate) fn client(config: ClientConfig) -> Client {
    Client::new(config).unwrap()
}

/// Creates a namespace of the caller's own.
pub(crate) async fn new_namespace(server: &RealServer) -> String {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let name = format!("real-{}", COUNT.fetch_add(1, Ordering::Relaxed));
    let metadata = ObjectMeta { name: Some(name.clone()), ..ObjectMeta::default() };
    let namespace = Namespace { metadata, ..Namespace::default() };
    client(server.admin()).all::<Namespace>().create(&namespace).await.unwrap();
    name
}

pub(crate) fn config_map(name: &str) -> ConfigMap {
    let metadata = ObjectMeta { name: Some(name.to_owned()), ..ObjectMeta::default() };
    ConfigMap { metadata, ..ConfigMap::default() }
}

/// Waits until `met` holds; fails after a minute.
pub(crate) async fn eventually(condition: &str, mut met: impl AsyncFnMut() -> bool) {
    let clock = Clock::system();
    let wait = async {
        while !met().await {
            clock.sleep(Duration::from_millis(50)).await;
        }
    };
    assert!(clock.timeout(Duration::from_secs(60), wait).await.is_some(), "never: {condition}");
}

/// A folder of a test; removed when dropped.
pub(crate) struct Scratch(PathBuf);

impl Scratch {
    pub(crate) fn new() -> Self {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("windlass-real-{}-{count}", std::process::id());
        let folder = std::env::temp_dir().join(name);
        let _ = std::fs::remove_dir_all(&folder);
        std::fs::create_dir_all(&folder).unwrap();
        Self(folder)
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    /// Writes a file as rotators do: beside the old file first, then in place of the old file.
    pub(crate) fn write(&self, name: &str, text: &str) -> PathBuf {
        let (path, beside) = (self.path(name), self.path(&format!(".{name}")));
        std::fs::write(&beside, text).unwrap();
        std::fs::rename(&beside, &path).unwrap();
        path
    }

    pub(crate) fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.path(name)).unwrap_or_default()
    }

    /// Writes `client.crt` and `client.key`.
    pub(crate) fn identity(&self, made: &ClientCertificate) -> [PathBuf; 2] {
        // A reader between the two sees a pair that does not fit: real rotators cause that, too.
        [self.write("client.key", made.key.expose()), self.write("client.crt", &made.certificate)]
    }

    /// A kubeconfig for `server`, written by kubectl, whose user has the credentials that these
    /// flags of `kubectl config set-credentials` name.
    pub(crate) fn kubeconfig(&self, server: &RealServer, credentials: &[String]) -> PathBuf {
        let ca = self.write("ca.crt", &server.ca());
        let ca = format!("--certificate-authority={}", ca.display());
        let url = format!("--server={}", server.url());
        self.kubectl(&["config", "set-cluster", "real", &url, &ca, "--embed-certs"]);
        let mut arguments = vec!["config", "set-credentials", "me"];
        arguments.extend(credentials.iter().map(String::as_str));
        self.kubectl(&arguments);
        let context = ["--cluster=real", "--user=me", "--namespace=shop"];
        self.kubectl(&[&["config", "set-context", "it"], &context[..]].concat());
        self.kubectl(&["config", "use-context", "it"]);
        self.path("kubeconfig")
    }

    /// Runs kubectl on the folder's kubeconfig.
    pub(crate) fn kubectl(&self, arguments: &[&str]) -> String {
        let output = Command::new(RealServer::program("kubectl"))
            .args(arguments)
            .env("KUBECONFIG", self.path("kubeconfig"))
            .env("HOME", &self.0)
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "kubectl {arguments:?}: {said}");
        String::from_utf8_lossy(&output.stdout).into_owned()
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Returns the client that a kubeconfig file describes.
pub(crate) fn client_of(kubeconfig: &Path) -> Client {
    client(ClientConfig::from_file(kubeconfig, None).unwrap())
}

/// Returns the number of answers with this status code that `client` got to POST requests.
pub(crate) fn answers(client: &Client, code: &str) -> u64 {
    let labels = [code, "POST", client.host()];
    client.environment().metrics.counted(&windlass::metrics::names::REST_REQUESTS, &labels)
}
