//! Texts that people wrote into objects that do not decode: in no log line, no Event, no error and
//! not on the debug page. Embedded server and paused clock only.

use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::Secret;
use k8s_openapi::api::events::v1::Event;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};
use tracing_subscriber::util::SubscriberInitExt;
use windlass::prelude::*;
use windlass::testing::TestCluster;

const CANARY: &str = "CANARY";

/// A kind with a field for each way not to decode.
#[derive(CustomResource, Clone, Debug)]
#[resource(group = "test.windlass.dev", version = "v1", namespaced)]
struct Vault {
    metadata: ObjectMeta,
    spec: VaultSpec,
}

#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
// API servers show no fields that a schema lacks, unless the schema preserves them.
#[schemars(extend("x-kubernetes-preserve-unknown-fields" = true))]
struct VaultSpec {
    mode: Mode,
    size: u8,
    #[serde(default)]
    names: BTreeMap<String, u32>,
    #[serde(default)]
    numbers: BTreeMap<u32, u32>,
    #[serde(default)]
    refused: Option<Refused>,
}

#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
enum Mode {
    Open,
    Shut,
}

/// A log whose text names the attempt.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String")]
struct Refused(String);

impl TryFrom<String> for Refused {
    type Error = String;

    fn try_from(text: String) -> std::result::Result<Self, String> {
        Err(format!("cannot parse {text:?}"))
    }
}

/// Fails on objects of other kinds that do not decode.
#[derive(Debug, Controller)]
#[controller(for = Vault)]
struct Vaults;

impl Reconciler for Vaults {
    type Object = Vault;

    async fn reconcile(&self, vault: &Vault, cx: &Context<Self>) -> Result {
        let namespace = vault.metadata.namespace.clone().unwrap_or_default();
        if vault.name() == "reads-a-lease" {
            cx.client().namespace::<Lease>(&namespace).get("bad").await?;
        } else {
            cx.client().namespace::<Secret>(&namespace).list().await?;
        }
        Ok(Action::done())
    }
}

#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl Log {
    fn text(&self) -> String {
        String::from_utf8_lossy(&self.0.lock().expect("a log")).into_owned()
    }
}

impl io::Write for Log {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().expect("a log").write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Returns specs that do not decode, with the canary at a place where a secret does not belong.
fn bad_specs() -> Vec<(&'static str, Value)> {
    let spec = |member: Value| {
        let mut spec = json!({"mode": "Open", "size": 1});
        spec.as_object_mut().expect("an object").extend(member.as_object().expect("one").clone());
        spec
    };
    vec![
        ("type", spec(json!({"size": CANARY}))),
        ("variant", spec(json!({"mode": CANARY}))),
        ("variant-of-object", spec(json!({"mode": {CANARY: CANARY}}))),
        ("value-of-map", spec(json!({"names": {CANARY: CANARY}}))),
        ("key-of-map", spec(json!({"numbers": {CANARY: 7}}))),
        ("refused", spec(json!({"refused": CANARY}))),
        ("unknown-field", spec(json!({CANARY: 7}))),
        ("whole", json!(CANARY)),
    ]
}

#[tokio::test(start_paused = true)]
async fn c1_no_value_of_an_object_that_does_not_decode_is_in_logs_events_errors_or_the_debug_page()
{
    let log = Log::default();
    let writer = log.clone();
    let subscriber = tracing_subscriber::fmt()
        .with_max_level(tracing_subscriber::filter::LevelFilter::DEBUG)
        .with_ansi(false)
        .with_writer(move || writer.clone())
        .finish();
    let _logging = subscriber.set_default();
    let cluster = TestCluster::builder().embedded().start().await;
    cluster.install::<Vault>().await;
    let namespace = cluster.namespace();
    let commit = |(group, plural, kind): (&str, &str, &str), name: &str, content: Value| {
        let api_version = if group.is_empty() { "v1".to_owned() } else { format!("{group}/v1") };
        let metadata = json!({"namespace": namespace, "name": name, "uid": format!("uid-{name}")});
        let mut object = json!({"apiVersion": api_version, "kind": kind, "metadata": metadata});
        let content = content.as_object().expect("an object").clone();
        object.as_object_mut().expect("an object").extend(content);
        assert!(cluster.server().commit(group, plural, namespace, name, Some(object)).is_some());
    };
    let vaults = ("test.windlass.dev", "vaults", "Vault");
    let bad = bad_specs();
    for (name, spec) in &bad {
        commit(vaults, name, json!({ "spec": spec }));
    }
    for name in ["reads-a-lease", "reads-a-secret"] {
        commit(vaults, name, json!({"spec": {"mode": "Shut", "size": 1}}));
    }
    let lease = json!({"spec": {"renewTime": CANARY}});
    commit(("coordination.k8s.io", "leases", "Lease"), "bad", lease);
    commit(("", "secrets", "Secret"), "bad", json!({"data": {CANARY: "CANARY!"}}));

    let manager = Manager::new(cluster.client()).install::<Vault>().controller(Vaults);
    let running = cluster.spawn_unrestricted(manager);
    let api = cluster.client();
    let events = async || api.namespace::<Event>(namespace).list().await.expect("events").items;
    let about = |events: &[Event], name: &str| {
        let is_it = |event: &&Event| {
            event.regarding.as_ref().and_then(|it| it.name.as_deref()) == Some(name)
        };
        events.iter().filter(is_it).count()
    };
    let began = Instant::now();
    loop {
        let events = events().await;
        let failed = ["reads-a-lease", "reads-a-secret"];
        let is_logged = |name: &str| log.text().contains(name);
        if bad.iter().all(|(name, _)| about(&events, name) > 0) && failed.into_iter().all(is_logged)
        {
            break;
        }
        assert!(began.elapsed() < Duration::from_secs(120), "not reported: {events:#?}");
        sleep(Duration::from_secs(1)).await;
    }
    let mut places = vec![("the log", log.text())];
    places.push(("the Events", format!("{:?}", events().await)));
    places.push(("the debug page", running.dump(1000).to_string()));
    places.push(("readiness", format!("{:?}", running.readiness())));
    let lease = api.namespace::<Lease>(namespace).get("bad").await.expect_err("a bad time");
    let secrets = api.namespace::<Secret>(namespace).list().await.expect_err("bad base64");
    let objects = api.namespace::<Vault>(namespace).list().await.expect_err("bad objects");
    for (place, error) in [("a get", lease), ("a list", secrets), ("a list of ours", objects)] {
        let mut text = format!("{error} {error:?}");
        let mut source = std::error::Error::source(&error);
        while let Some(cause) = source {
            text.push_str(&format!(" {cause} {cause:?}"));
            source = cause.source();
        }
        places.push((place, text));
    }
    for (place, text) in &places {
        let line = text.lines().find(|line| line.contains(CANARY));
        assert!(line.is_none(), "{place}: {}", line.unwrap_or_default());
    }
    let (_, events) = &places[1];
    for part in [".spec.size: invalid type: string, expected u8", ".spec.names.*: invalid type"] {
        assert!(events.contains(part), "{part}: {events}");
    }
}
