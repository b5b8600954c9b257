//! Operators whose status follows from the time or from attempts: an age, a duration with a date
//! in two fields, and a number of attempts. A fault changes these values though nothing is wrong.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::json;
use windlass::prelude::*;
use windlass::testing::{ExternalWorld, World};

/// Something that is delivered.
#[derive(CustomResource, Clone, Debug)]
#[resource(group = "explore.windlass.dev", version = "v1", namespaced)]
pub(crate) struct Errand {
    metadata: ObjectMeta,
    spec: ErrandSpec,
    status: Option<ErrandStatus>,
}

#[derive(Clone, Debug, Serialize, Deserialize, Schema)]
struct ErrandSpec {
    /// Name of the addressee.
    to: String,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize, Schema)]
#[serde(rename_all = "camelCase")]
struct ErrandStatus {
    /// Time since the creation, such as `1m20s`.
    #[serde(skip_serializing_if = "Option::is_none")]
    age: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    phase: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    started_at: Option<String>,
    /// Seconds from the start to the delivery.
    #[serde(skip_serializing_if = "Option::is_none")]
    took: Option<i64>,
    /// An hour after the start: the day, and the time of that day.
    #[serde(skip_serializing_if = "Option::is_none")]
    kept_until_day: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    kept_until: Option<String>,
    /// Number of attempts to deliver.
    #[serde(skip_serializing_if = "Option::is_none")]
    attempts: Option<i64>,
}

impl Errand {
    fn phase(&self) -> &str {
        self.status.as_ref().and_then(|status| status.phase.as_deref()).unwrap_or_default()
    }
}

type Letters = ExternalWorld<BTreeMap<String, String>>;

async fn create(world: &World, name: &str) {
    let errand = Errand::new(name, ErrandSpec { to: "somebody".to_owned() });
    world.client().namespace("default").create(&errand).await.unwrap();
}

async fn until(world: &World, name: &str, holds: impl Fn(&ErrandStatus) -> bool) {
    let is_there = async || {
        let errands = world.objects::<Errand>();
        errands.iter().any(|it| it.name() == name && it.status.as_ref().is_some_and(&holds))
    };
    world.eventually("the status shows it", is_there).await;
}

/// Shows the age of an errand, every twenty seconds.
#[derive(Controller)]
#[controller(for = Errand)]
struct Ages {
    is_fixed: bool,
}

impl Reconciler for Ages {
    type Object = Errand;

    async fn reconcile(&self, errand: &Errand, cx: &Context<Self>) -> Result {
        let now = cx.clock().wall();
        let created = errand.metadata.creation_timestamp.as_ref().map_or(now, |time| time.0);
        let age = now.as_second() - created.as_second();
        let text = format!("{}m{}s", age / 60, age % 60);
        let shown = cx.patch_status(json!({ "age": text })).await;
        if shown.is_err() && errand.status.is_some() && !self.is_fixed {
            return Ok(Action::done());
        }
        shown?;
        Ok(Action::requeue_after(Duration::from_secs(20)))
    }
}

/// An age that stands still after a failure, since the requeue is lost.
pub(crate) async fn ages(world: World, is_fixed: bool) {
    world.install::<Errand>().await;
    world.operator(move |client| Manager::new(client).controller(Ages { is_fixed }));
    create(&world, "a").await;
    until(&world, "a", |status| status.age.is_some()).await;
}

/// Delivers a letter, and shows the time that this took.
#[derive(Controller)]
#[controller(for = Errand)]
struct Deliveries {
    is_fixed: bool,
    letters: Letters,
    /// Starts by uid: lost in a crash.
    starts: Arc<Mutex<BTreeMap<String, Timestamp>>>,
}

impl Deliveries {
    fn start(&self, errand: &Errand, now: Timestamp) -> Timestamp {
        let recorded = errand.status.as_ref().and_then(|status| status.started_at.as_ref());
        let recorded = recorded.and_then(|text| text.parse().ok());
        let mut starts = self.starts.lock().unwrap();
        let seen = *starts.entry(errand.uid().to_owned()).or_insert(now);
        recorded.filter(|_| self.is_fixed).unwrap_or(seen)
    }
}

impl Reconciler for Deliveries {
    type Object = Errand;

    async fn reconcile(&self, errand: &Errand, cx: &Context<Self>) -> Result {
        if errand.phase() == "Delivered" {
            return Ok(Action::done());
        }
        let start = self.start(errand, cx.clock().wall());
        if errand.phase().is_empty() {
            let started = json!({ "phase": "Started", "startedAt": start.to_string() });
            cx.patch_status(started).await?;
        }
        let (name, to) = (errand.name().to_owned(), errand.spec.to.clone());
        let deliver = |letters: &mut BTreeMap<_, _>| drop(letters.insert(name, to));
        self.letters.call("deliver a letter", deliver).await?;
        let end = start + jiff::Span::new().hours(1);
        let took = cx.clock().wall().as_second() - start.as_second();
        cx.patch_status(json!({
            "phase": "Delivered",
            "took": took,
            "keptUntilDay": end.strftime("%Y-%m-%d").to_string(),
            "keptUntil": end.strftime("%H:%M:%S").to_string(),
        }))
        .await?;
        Ok(Action::done())
    }
}

/// A duration from another start than the recorded one, since that is kept in memory.
pub(crate) async fn durations(world: World, is_fixed: bool) {
    world.install::<Errand>().await;
    let letters = world.external("post", BTreeMap::new());
    world.operator(move |client| {
        let (letters, starts) = (letters.clone(), Arc::default());
        Manager::new(client).controller(Deliveries { is_fixed, letters, starts })
    });
    create(&world, "a").await;
    until(&world, "a", |status| status.phase.as_deref() == Some("Delivered")).await;
}

/// Counts the attempts to deliver a letter, before each of them.
#[derive(Controller)]
#[controller(for = Errand)]
struct Attempts {
    is_fixed: bool,
    letters: Letters,
    /// Attempts by uid, as this process has found them.
    found: Arc<Mutex<BTreeMap<String, i64>>>,
}

impl Reconciler for Attempts {
    type Object = Errand;

    async fn reconcile(&self, errand: &Errand, cx: &Context<Self>) -> Result {
        if errand.phase() == "Delivered" {
            return Ok(Action::done());
        }
        let recorded = errand.status.as_ref().and_then(|status| status.attempts).unwrap_or(0);
        let found = *self.found.lock().unwrap().entry(errand.uid().to_owned()).or_insert(recorded);
        let more = if self.is_fixed { 1 } else { 1 + found };
        cx.patch_status(json!({ "attempts": recorded + more })).await?;
        let (name, to) = (errand.name().to_owned(), errand.spec.to.clone());
        let deliver = |letters: &mut BTreeMap<_, _>| drop(letters.insert(name, to));
        self.letters.call("deliver a letter", deliver).await?;
        cx.patch_status(json!({ "phase": "Delivered" })).await?;
        Ok(Action::done())
    }
}

/// Attempts that count twice after a restart.
pub(crate) async fn attempts(world: World, is_fixed: bool) {
    world.install::<Errand>().await;
    let letters = world.external("post", BTreeMap::new());
    world.operator(move |client| {
        let (letters, found) = (letters.clone(), Arc::default());
        Manager::new(client).controller(Attempts { is_fixed, letters, found })
    });
    create(&world, "a").await;
    until(&world, "a", |status| status.phase.as_deref() == Some("Delivered")).await;
}
