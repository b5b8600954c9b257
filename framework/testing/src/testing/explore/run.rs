//! One run: a world of its own on a paused clock, from the workload to the fixpoint.

// DESIGN.md, 198: Runs of explorations share the objects of a prepared server, and have no leader
// election

use std::any::Any;
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use serde_json::json;
use windlass_apiserver::{ApiServer, Backup, Builder};

use super::EPOCH;
use super::monitor::Monitor;
use super::oracle::{Expectation, renewed};
use super::outcome::Outcome;
use super::setting::Setting;
use super::state::Masks;
use super::world::World;
use crate::embedded::WebhookRoutes;
use crate::testing::paused::paused_runtime;

/// Virtual time without a change after which a world counts as quiet.
const QUIET: Duration = Duration::from_secs(60);
/// Virtual time after which a world that is not quiet will never be.
const LONGEST: Duration = Duration::from_secs(3600);
/// Virtual time in which an operator may still repair a difference by a requeue.
const PATIENCE: Duration = Duration::from_secs(700);

/// Writes by which resourceVersions of another start are higher.
const OTHER_REVISION: u64 = 7;

/// State that runs share.
#[derive(Debug)]
pub(super) struct SharedByRuns<'a, F> {
    pub(super) workload: &'a F,
    /// Objects that each server begins with; `None` to make them anew.
    pub(super) prepared: Option<Backup>,
    /// Places that the operator renews all the time, once they are known.
    pub(super) renewed: OnceLock<Arc<Masks>>,
}

impl<'a, F> SharedByRuns<'a, F> {
    /// Returns the state of runs of which nothing is known.
    pub(super) fn new(workload: &'a F, prepared: Option<Backup>) -> Self {
        Self { workload, prepared, renewed: OnceLock::new() }
    }
}

/// Returns the settings of each run's server.
fn server(seed: u64, epoch: i64) -> Builder {
    ApiServer::builder().seed(seed).epoch(epoch).stand_ins(true)
}

/// Returns the server of a run, and the way to webhooks of its operator.
fn started(setting: &Setting, prepared: Option<&Backup>) -> (ApiServer, WebhookRoutes) {
    let webhooks = WebhookRoutes::default();
    let builder = server(setting.seed, setting.epoch()).connector(webhooks.clone());
    let server = match prepared {
        Some(prepared) => builder.start_from(prepared),
        None => builder.start(),
    };
    if setting.is_elsewhere {
        for number in 0..OTHER_REVISION {
            let metadata = json!({ "name": "revision", "namespace": "kube-system" });
            let data = json!({ "number": number.to_string() });
            let map = json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data });
            server.commit("", "configmaps", "kube-system", "revision", Some(map));
        }
        server.commit("", "configmaps", "kube-system", "revision", None);
    }
    (server, webhooks)
}

/// Returns the objects of a server that has just started; making them takes longer than many a run.
pub(super) fn prepared() -> Option<Backup> {
    let runtime = paused_runtime().ok()?;
    let _inside = runtime.enter();
    Some(server(0, EPOCH).start().backup())
}

/// Makes a run on the calling thread. `expected` is `None` for undisturbed runs.
pub(super) fn run<F, W>(
    shared: &SharedByRuns<'_, F>,
    setting: &Setting,
    expected: Option<&Expectation>,
) -> Outcome
where
    F: Fn(World) -> W,
    W: Future<Output = ()>,
{
    let runtime = match paused_runtime() {
        Ok(runtime) => runtime,
        Err(error) => {
            let failure = Some(format!("cannot start a runtime: {error}"));
            return Outcome { failure, ..Outcome::default() };
        }
    };
    let monitor = OnceLock::new();
    let driven = catch_unwind(AssertUnwindSafe(|| {
        runtime.block_on(drive(shared, setting, expected, &monitor))
    }));
    // Tasks end with the runtime; what they write then is not recorded.
    let recording = monitor.get().map(|monitor: &Arc<Monitor>| monitor.end()).unwrap_or_default();
    drop(runtime);
    match driven {
        Ok(outcome) => Outcome { recording, ..outcome },
        Err(panic) => {
            let failure = Some(format!("the workload panicked: {}", panic_text(panic.as_ref())));
            Outcome { recording, failure, has_panicked: true, ..Outcome::default() }
        }
    }
}

/// Returns the text of a panic.
fn panic_text(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_else(|| "no text".to_owned())
}

async fn drive<F, W>(
    shared: &SharedByRuns<'_, F>,
    setting: &Setting,
    expected: Option<&Expectation>,
    slot: &OnceLock<Arc<Monitor>>,
) -> Outcome
where
    F: Fn(World) -> W,
    W: Future<Output = ()>,
{
    let (server, webhooks) = started(setting, shared.prepared.as_ref());
    let renewed = shared.renewed.get().cloned().unwrap_or_default();
    let monitor = Arc::clone(slot.get_or_init(|| Monitor::install(&server, setting, renewed)));
    let world = match World::new((server.clone(), webhooks), monitor, setting) {
        Ok(world) => world,
        Err(error) => {
            let failure = Some(format!("cannot make the world of a run: {error}"));
            return Outcome { failure, ..Outcome::default() };
        }
    };
    let scenario = async {
        (shared.workload)(world.clone()).await;
        if setting.goes_on {
            return go_on(&world).await;
        }
        // What has not happened until now is due no more: the rest is about the end.
        if setting.chaos.is_some() {
            world.monitor().calm();
        }
        finish(&world, expected).await
    };
    let mut outcome = tokio::select! {
        biased;
        () = world.failed() => Outcome::default(),
        () = world.keep() => Outcome::default(),
        outcome = scenario => outcome,
    };
    world.end_process();
    outcome.failure = outcome.failure.or_else(|| world.failure());
    outcome
}

/// Lets the operator go on by itself. The changes of the second half of that time are those that no
/// end has.
async fn go_on(world: &World) -> Outcome {
    world.clock().sleep(LONGEST / 2).await;
    let restart = world.monitor().changes();
    world.clock().sleep(LONGEST / 2).await;
    Outcome { restart, ..Outcome::default() }
}

/// Waits for the end, and then for the fixpoint after a restart.
async fn finish(world: &World, expected: Option<&Expectation>) -> Outcome {
    let mut outcome = Outcome { failure: quiet(world).await.err(), ..Outcome::default() };
    outcome.end = world.snapshot();
    outcome.busy = world.busy().await;
    let differs = |outcome: &Outcome| {
        let is_other = |expected: &Expectation| {
            !expected.differences(&outcome.end).is_empty() || !expected.busy(outcome).is_empty()
        };
        expected.map_or(!outcome.busy.is_empty(), is_other)
    };
    if outcome.failure.is_none() && differs(&outcome) {
        world.clock().sleep(PATIENCE).await;
        outcome.failure = quiet(world).await.err();
        outcome.end = world.snapshot();
        outcome.busy = world.busy().await;
    }
    world.monitor().calm();
    outcome.restart = world.monitor().changes();
    outcome.observed = world.monitor().observed();
    // DESIGN.md, 269: A restart is left out on an end that undisturbed runs were restarted on
    let is_known = expected.is_some_and(|expected| expected.is_end(&outcome));
    if outcome.failure.is_none() && !is_known {
        world.start();
        outcome.failure = quiet(world).await.err();
    }
    outcome
}

/// Waits until nothing that oracles judge has changed for a minute.
pub(super) async fn quiet(world: &World) -> Result<(), String> {
    let clock = world.clock();
    let began = clock.now();
    let first = world.monitor().changes();
    loop {
        let before = world.monitor().judged();
        clock.sleep(QUIET).await;
        if world.monitor().judged() == before {
            return Ok(());
        }
        if clock.now() - began > LONGEST {
            let places = world.monitor().told(|changes| renewed::told(changes, first));
            return Err(restless(&places));
        }
    }
}

/// Returns the sentence about a world that does not become quiet, with the places that the operator
/// has updated.
fn restless(places: &str) -> String {
    let text = format!("objects were still changed after {} s", LONGEST.as_secs());
    if places.is_empty() {
        return text;
    }
    format!(
        "{text}: {places}; write such a value only when another one changes, or as the time of its last change in the \
         form of RFC 3339, which is not compared"
    )
}
