//! Runs the website operator in a simulated world and prints a hash of all that was exchanged.
//!
//! `trace --seed 7` prints the hash of a run. `trace --seeds 200` runs seeds 1 to 200 with a crash
//! and a restart at a random request each on all processors, and fails unless all end with the same
//! objects.

// The example, with `main`: the simulation runs the users' own program.
#[path = "../../../examples/src/bin/website.rs"]
#[allow(dead_code, unreachable_pub, missing_docs, missing_debug_implementations)]
mod website;

use std::num::NonZero;
use std::process::ExitCode;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::sleep;
use windlass::manager::Running;
use windlass::resource::ResourceExt;
use windlass_tests::sim::{Wire, World};

/// Virtual time after which a run that is not quiet has failed.
const LONGEST: Duration = Duration::from_secs(1800);
/// Time without a write after which the world counts as settled.
const QUIET: Duration = Duration::from_secs(120);

fn main() -> ExitCode {
    let mut args = std::env::args().skip(1);
    let result = match (args.next().as_deref(), args.next().and_then(|n| n.parse().ok())) {
        (Some("--seed"), Some(seed)) => one(seed),
        (Some("--seeds"), Some(count)) => many(count),
        _ => Err("usage: trace --seed N | --seeds COUNT".to_owned()),
    };
    match result {
        Ok(text) => {
            println!("{text}");
            ExitCode::SUCCESS
        }
        Err(text) => {
            eprintln!("{text}");
            ExitCode::FAILURE
        }
    }
}

/// Makes an undisturbed run; returns the hash.
fn one(seed: u64) -> Result<String, String> {
    let run = run(seed, false)?;
    Ok(format!("seed {seed}: {} requests, trace {}", run.requests, run.trace))
}

/// Makes runs with a crash each, on all processors; all must end alike.
fn many(count: u64) -> Result<String, String> {
    let expected = run(0, false)?.objects;
    let (next, crashes) = (AtomicU64::new(1), AtomicU64::new(0));
    let threads = std::thread::available_parallelism().map_or(1, NonZero::get);
    let until_failure = || loop {
        let seed = next.fetch_add(1, Ordering::Relaxed);
        if seed > count {
            return Ok(());
        }
        match checked(seed, &expected) {
            Ok(more) => crashes.fetch_add(more, Ordering::Relaxed),
            Err(error) => {
                // The other threads end after the run that they make.
                next.store(count + 1, Ordering::Relaxed);
                return Err(error);
            }
        };
    };
    std::thread::scope(|scope| {
        let runs: Vec<_> = (0..threads).map(|_| scope.spawn(until_failure)).collect();
        runs.into_iter().try_for_each(|run| {
            run.join().unwrap_or_else(|_| Err("a run ended by a panic".to_owned()))
        })
    })?;
    Ok(format!("{count} seeds, {} crashes, one end", crashes.into_inner()))
}

/// Makes a run with a crash and compares its end; returns the number of crashes.
fn checked(seed: u64, expected: &Value) -> Result<u64, String> {
    let run = run(seed, true).map_err(|error| format!("seed {seed}: {error}"))?;
    if run.objects != *expected {
        return Err(format!(
            "seed {seed} ends differently:\n{}\ninstead of\n{}",
            pretty(&run.objects),
            pretty(expected)
        ));
    }
    Ok(run.crashes)
}

fn pretty(objects: &Value) -> String {
    serde_json::to_string_pretty(objects).unwrap_or_default()
}

struct Run {
    trace: String,
    requests: u64,
    crashes: u64,
    objects: Value,
}

fn run(seed: u64, crash: bool) -> Result<Run, String> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .map_err(|error| format!("cannot start a runtime: {error}"))?;
    runtime.block_on(scenario(seed, crash))
}

async fn scenario(seed: u64, crash: bool) -> Result<Run, String> {
    let world = World::new(seed);
    let (user, _) = world.client("user");
    let mut crashes = 0;
    let mut operator = start(&world, crash);
    let sites = user.namespace::<website::Website>("default");
    let text = |error: windlass::Error| format!("{error:?}");
    crashes += wait_for_kind(&world, &sites, &mut operator).await?;
    for (name, host) in [("a", "a.example"), ("b", "b.example"), ("c", "a.example")] {
        let site = serde_json::from_value(json!({
            "apiVersion": "example.dev/v1", "kind": "Website", "metadata": { "name": name },
            "spec": { "host": host, "replicas": 2 },
        }))
        .map_err(|error| error.to_string())?;
        sites.create(&site).await.map_err(text)?;
        sleep(world.rng.jitter(Duration::from_secs(3))).await;
        crashes += revive(&world, &mut operator);
    }
    sites.delete("c").await.map_err(text)?;
    let patch = windlass::api::Patch::Merge(json!({ "spec": { "replicas": 3 } }));
    sites.patch("b", patch).await.map_err(text)?;
    let mut quiet_since = (world.written(), tokio::time::Instant::now());
    let start = tokio::time::Instant::now();
    while quiet_since.1.elapsed() < QUIET {
        if start.elapsed() > LONGEST {
            return Err(format!("still writing after {} s", LONGEST.as_secs()));
        }
        sleep(Duration::from_secs(5)).await;
        crashes += revive(&world, &mut operator);
        if world.written() != quiet_since.0 {
            quiet_since = (world.written(), tokio::time::Instant::now());
        }
    }
    for (controller, busy_report) in operator.running.busy_report() {
        if !busy_report.endless.is_empty() {
            return Err(format!(
                "{controller:?} reconciles without end: {:?}",
                busy_report.endless
            ));
        }
    }
    let objects = objects(&user).await.map_err(text)?;
    let (trace, requests) = world.trace();
    Ok(Run { trace, requests, crashes, objects })
}

/// A running operator with a wire. A drop is a crash.
struct Operator {
    wire: Wire,
    running: Running,
}

fn start(world: &World, crash: bool) -> Operator {
    let (client, wire) = world.client("operator");
    if crash {
        wire.crash_after(1 + world.rng.below(60));
    }
    let manager = website::operator(client).without_signals().without_health().without_metrics();
    Operator { wire, running: manager.start() }
}

/// Restarts a crashed operator; returns the number of crashes, 0 or 1.
fn revive(world: &World, operator: &mut Operator) -> u64 {
    if !operator.wire.is_cut() {
        return 0;
    }
    *operator = start(world, false);
    1
}

/// Waits until the operator has installed the kind; returns the number of crashes on the way.
async fn wait_for_kind(
    world: &World,
    sites: &windlass::api::Api<website::Website>,
    operator: &mut Operator,
) -> Result<u64, String> {
    let mut crashes = 0;
    for _ in 0..60 {
        if sites.list().await.is_ok() {
            return Ok(crashes);
        }
        sleep(Duration::from_secs(1)).await;
        crashes += revive(world, operator);
    }
    Err("the kind was not installed within 60 s".to_owned())
}

/// Returns every object that counts, without fields that differ from run to run.
async fn objects(client: &windlass::client::Client) -> Result<Value, windlass::Error> {
    use k8s_openapi::api::{apps::v1::Deployment, core::v1::Service};
    let mut found = Vec::new();
    for site in client.all::<website::Website>().list().await?.items {
        found.push(plain(&site));
    }
    for deployment in client.all::<Deployment>().list().await?.items {
        found.push(plain(&deployment));
    }
    for service in client.all::<Service>().list().await?.items {
        if service.name() != "kubernetes" {
            found.push(plain(&service));
        }
    }
    Ok(Value::Array(found))
}

/// Returns the object without uids, versions, times and addresses.
fn plain(object: &impl serde::Serialize) -> Value {
    let mut value = serde_json::to_value(object).unwrap_or_default();
    strip(&mut value);
    value
}

fn strip(value: &mut Value) {
    const VARIES: [&str; 12] = [
        "uid",
        "resourceVersion",
        "creationTimestamp",
        "managedFields",
        "lastTransitionTime",
        "lastUpdateTime",
        "generation",
        "observedGeneration",
        "clusterIP",
        "clusterIPs",
        "nodePort",
        "time",
    ];
    match value {
        Value::Object(fields) => {
            fields.retain(|name, _| !VARIES.contains(&name.as_str()));
            fields.values_mut().for_each(strip);
        }
        Value::Array(items) => items.iter_mut().for_each(strip),
        _ => {}
    }
}
