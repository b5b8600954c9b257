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
/// Updates of one object by the operator after which a world will never be quiet either: ten
/// minutes of a loop that the operator's guard slows down to one a second.
const MOST_UPDATES: usize = 600;
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

/// Lets the operator go on by itself, for an hour or until an object was updated very often. The
/// changes of the second half of that time are those that no end has.
async fn go_on(world: &World) -> Outcome {
    let (clock, monitor) = (world.clock(), world.monitor());
    let (began, first) = (clock.now(), monitor.changes());
    let mut counts = vec![first];
    while clock.now() - began < LONGEST && !is_endless(world, first) {
        clock.sleep(QUIET).await;
        counts.push(monitor.changes());
    }
    let restart = counts.get(counts.len() / 2).copied().unwrap_or(first);
    Outcome { restart, ..Outcome::default() }
}

/// Whether the operator has updated an object very often from a change on.
fn is_endless(world: &World, first: usize) -> bool {
    world.monitor().with_changes(|changes| renewed::most(changes, first)) >= MOST_UPDATES
}

/// Waits for the end, and then for the fixpoint after a restart.
async fn finish(world: &World, expected: Option<&Expectation>) -> Outcome {
    let mut outcome = Outcome { failure: quiet(world).await.err(), ..Outcome::default() };
    outcome.busy = world.busy().await;
    outcome.end = world.snapshot();
    let differs = |outcome: &Outcome| {
        let is_other = |expected: &Expectation| {
            !expected.differences(&outcome.end).is_empty() || !expected.busy(outcome).is_empty()
        };
        expected.map_or(!outcome.busy.is_empty(), is_other)
    };
    if outcome.failure.is_none() && differs(&outcome) {
        world.clock().sleep(PATIENCE).await;
        outcome.failure = quiet(world).await.err();
        outcome.busy = world.busy().await;
        outcome.end = world.snapshot();
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
        let passed = clock.now() - began;
        if passed > LONGEST || is_endless(world, first) {
            let text = format!("objects were still changed after {} s", passed.as_secs());
            return Err(world
                .monitor()
                .with_changes(|changes| renewed::restless(&text, changes, first)));
        }
    }
}
