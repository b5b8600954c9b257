//! The webhook server, called by an API server over TLS: the embedded server, or a real server.

mod ignored;
mod mounted;
mod policies;
mod repeats;
mod spawned;

use std::net::Ipv4Addr;
use std::path::PathBuf;
use std::time::Duration;

use k8s_openapi::api::admissionregistration::v1::{
    MutatingWebhookConfiguration, ValidatingWebhookConfiguration,
};
use k8s_openapi::api::core::v1::ConfigMap;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use tokio::net::TcpListener;
use windlass::api::Api;
use windlass::client::{Body, Client};
use windlass::clock::Clock;
use windlass::manager::{Exit, Manager};
use windlass::testing::TestCluster;
use windlass::webhook::{
    Admission, AdmissionResponse, ConfigurationOptions, FailurePolicy, MountedFiles, Mutate,
    Operation, Validate, WebhookRegistration, WebhookServer, Webhooks,
};

/// Judges a map by the wish in the map's data.
struct Rules;

impl Validate for Rules {
    type Object = ConfigMap;

    async fn validate(&self, map: &ConfigMap, cx: &Admission) -> AdmissionResponse {
        let mut response = AdmissionResponse::allowed();
        for (wish, text) in map.data.iter().flatten() {
            match wish.as_str() {
                "invalid" => response.invalid("data[invalid]", text, "is not wanted"),
                "dry" if !cx.dry_run => response.forbidden("data[dry]", "is for dry runs"),
                "warn" => response.warn(text),
                "wrong" => response.required("data[host]", "comes with it"),
                "hang" => std::future::pending().await,
                "panic" => panic!("{text}"),
                _ => {}
            }
        }
        response
    }

    async fn validate_update(
        &self,
        old: &ConfigMap,
        map: &ConfigMap,
        cx: &Admission,
    ) -> AdmissionResponse {
        let mut response = self.validate(map, cx).await;
        let fixed = |map: &ConfigMap| {
            map.data.iter().flatten().find(|(key, _)| *key == "fixed").map(|(_, text)| text.clone())
        };
        if fixed(old) != fixed(map) {
            response.forbidden("data[fixed]", "cannot be changed");
        }
        response
    }

    async fn validate_delete(&self, old: &ConfigMap, _: &Admission) -> AdmissionResponse {
        match old.data.iter().flatten().any(|(wish, _)| wish == "keep") {
            true => AdmissionResponse::deny("it is to be kept"),
            false => AdmissionResponse::allowed(),
        }
    }
}

/// Sets a default.
struct Defaults;

impl Mutate for Defaults {
    type Object = ConfigMap;

    async fn mutate(&self, map: &mut ConfigMap, _: &Admission) -> AdmissionResponse {
        map.data.get_or_insert_default().entry("host".to_owned()).or_insert("home".to_owned());
        AdmissionResponse::allowed()
    }
}

/// Returns webhooks for the maps of a namespace.
fn webhooks(namespace: &str) -> Webhooks {
    let only = format!("request.namespace == '{namespace}'");
    let keys = |name: &str| {
        WebhookRegistration::new()
            .name(format!("{name}.{namespace}.example"))
            .match_condition("namespace", &only)
            .failure_policy(FailurePolicy::Fail)
            .timeout(Duration::from_secs(1))
    };
    let all = [Operation::Create, Operation::Update, Operation::Delete];
    let rules = keys("rules").operations(all);
    Webhooks::new().validating_with(Rules, rules).mutating_with(Defaults, keys("defaults"))
}

/// A folder with a certificate for loopback; removed when dropped.
pub(crate) struct Mounted {
    pub(crate) folder: PathBuf,
    /// The authority, PEM.
    pub(crate) authority: String,
}

impl Mounted {
    pub(crate) fn new(name: &str) -> Self {
        let mut params = CertificateParams::new(Vec::<String>::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().unwrap();
        let authority = params.self_signed(&key).unwrap().pem();
        let issuer = Issuer::new(params, key);
        let serving = CertificateParams::new(vec!["127.0.0.1".to_owned()]).unwrap();
        let key = KeyPair::generate().unwrap();
        let folder = std::env::temp_dir().join(format!("{name}-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let chain = serving.signed_by(&key, &issuer).unwrap().pem();
        std::fs::write(folder.join("tls.crt"), chain).unwrap();
        std::fs::write(folder.join("tls.key"), key.serialize_pem()).unwrap();
        Self { folder, authority }
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

fn config_map(name: &str) -> ConfigMap {
    let metadata = ObjectMeta { name: Some(name.to_owned()), ..ObjectMeta::default() };
    ConfigMap { metadata, ..ConfigMap::default() }
}

fn map(name: &str, wish: &str) -> ConfigMap {
    let data = [(wish.to_owned(), "x".to_owned())].into();
    ConfigMap { data: Some(data), ..config_map(name) }
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

async fn configure(admin: &Client, webhooks: &Webhooks, options: &ConfigurationOptions) {
    let made = webhooks.configurations(options).unwrap();
    let validating = made.validating.unwrap();
    admin.all::<ValidatingWebhookConfiguration>().create(&validating).await.unwrap();
    let mutating = made.mutating.unwrap();
    admin.all::<MutatingWebhookConfiguration>().create(&mutating).await.unwrap();
}

/// Asks for updates: the handler compares the old object with the new one.
async fn judges_updates_by_both_objects(maps: &Api<ConfigMap>) {
    let mut stored = maps.create(&map("updated", "fixed")).await.unwrap();
    let data = stored.data.as_mut().unwrap();
    data.insert("other".to_owned(), "y".to_owned());
    let mut stored = maps.replace(&stored).await.unwrap();
    stored.data.as_mut().unwrap().insert("fixed".to_owned(), "y".to_owned());
    let refused = maps.replace(&stored).await.unwrap_err();
    assert_eq!(refused.code(), Some(422));
    assert!(
        format!("{refused:?}").contains("data[fixed]: Forbidden: cannot be changed"),
        "{refused:?}"
    );
    let data = maps.get("updated").await.unwrap().data.unwrap();
    assert_eq!((&*data["fixed"], &*data["other"]), ("x", "y"));
}

/// Asks for refusals with several causes, and for warnings with and without a refusal.
async fn names_causes_and_warns(admin: &Client, namespace: &str) {
    let post = async |wishes: &[&str]| {
        let wishes = wishes.iter().map(|wish| ((*wish).to_owned(), "mind it".to_owned()));
        let map = ConfigMap { data: Some(wishes.collect()), ..config_map("warned") };
        let request = admin.post().abs_path(["api", "v1", "namespaces", namespace, "configmaps"]);
        request.param("dryRun", "All").body(Body::object(&map)).send().await
    };
    let refused = post(&["invalid", "wrong"]).await.unwrap_err();
    let causes = refused.causes().iter();
    let causes: Vec<_> = causes.map(|cause| (&*cause.reason, &*cause.field)).collect();
    let wanted = [("FieldValueInvalid", "data[invalid]"), ("FieldValueRequired", "data[host]")];
    assert_eq!((refused.code(), causes), (Some(422), wanted.to_vec()));
    let answer = post(&["warn"]).await.unwrap();
    let warnings: Vec<_> = answer.warnings().into_iter().map(|warning| warning.text).collect();
    assert_eq!(warnings, ["mind it"]);
}

/// Sockets need real time: the clock is not paused.
#[tokio::test]
async fn an_api_server_asks_the_webhook_server_over_tls_on_loopback() {
    let cluster = TestCluster::start().await;
    let (admin, namespace) = (cluster.client(), cluster.namespace().to_owned());
    let mounted = Mounted::new(&namespace);
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let url = format!("https://{}", listener.local_addr().unwrap());
    let hooks = WebhookServer::new(webhooks(&namespace))
        .certificates(MountedFiles::new(&mounted.folder))
        .listener(listener);
    let running = Manager::new(admin.clone()).quiet().without_signals().runnable(hooks).start();
    eventually("the operator is ready", async || running.readiness().is_ready()).await;

    // The own namespace is left out by default: the maps are in another namespace.
    let options = ConfigurationOptions::new(&namespace, "operators").url(url);
    let options = options.ca_bundle(mounted.authority.clone());
    configure(&admin, &webhooks(&namespace), &options).await;
    let maps = admin.namespace::<ConfigMap>(&namespace);
    let mut made = 0;
    eventually("defaults are set", async || {
        made += 1;
        let map = maps.create(&config_map(&format!("map-{made}"))).await.unwrap();
        map.data.is_some_and(|data| data.get("host").is_some_and(|host| host == "home"))
    })
    .await;

    let refused = maps.create(&map("bad", "invalid")).await.unwrap_err();
    let text = format!("{refused:?}");
    assert!(text.contains("data[invalid]: Invalid value: \"x\": is not wanted"), "{text}");
    assert_eq!(refused.code(), Some(422));
    assert!(maps.create(&map("dry", "dry")).await.is_err());
    maps.create(&map("dry", "dry")).dry_run().await.unwrap();
    judges_updates_by_both_objects(&maps).await;
    names_causes_and_warns(&admin, &namespace).await;
    maps.create(&map("kept", "keep")).await.unwrap();
    let text = format!("{:?}", maps.delete("kept").await.unwrap_err());
    assert!(text.contains("it is to be kept"), "{text}");
    for wish in ["hang", "panic"] {
        let text = format!("{:?}", maps.create(&map("bad", wish)).await.unwrap_err());
        assert!(text.contains("failed calling webhook"), "{wish}: {text}");
    }

    running.stop();
    assert_eq!(running.join().await.unwrap(), Exit::Drained);
    let text = format!("{:?}", maps.create(&config_map("away")).await.unwrap_err());
    assert!(text.contains("failed calling webhook"), "{text}");
    let name = format!("{namespace}-webhooks");
    admin.all::<ValidatingWebhookConfiguration>().delete(&name).await.unwrap();
    admin.all::<MutatingWebhookConfiguration>().delete(&name).await.unwrap();
}
