//! Tests of the reflector alone, against a scripted source, on the paused clock.

use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::ConfigMap;
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::task::JoinHandle;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::{
    Chunks, ListWatch, MemoryResponse, MemorySource, OpenFuture, RawObject, Read, Reflector,
    ReflectorError, ReflectorOptions, ReflectorSink, ReflectorState, ReflectorStatus, StoreTarget,
    StreamProgress,
};
use crate::store::Store;
use windlass_core::clock::Clock;
use windlass_core::environment::Environment;
use windlass_core::error::Error;
use windlass_core::metrics::Metrics;
use windlass_core::resource::{ObjectKey, ResourceInfo};
use windlass_core::rng::Rng;

mod absences;
mod faults;
mod floods;
mod lists;
mod memory;
mod pages;
mod reports;
mod set_back;
mod streams;
mod watches;

fn info() -> ResourceInfo {
    ResourceInfo::of::<ConfigMap>()
}

fn environment() -> Environment {
    Environment { clock: Clock::system(), rng: Rng::seeded(7), metrics: Metrics::new() }
}

fn source() -> MemorySource {
    MemorySource::new(info())
}

/// Returns a config map `n/name`.
fn map(name: &str, value: &str) -> Value {
    json!({"metadata": {"namespace": "n", "name": name}, "data": {"k": value}})
}

/// Returns the object's text in this version, in the form of a frame.
fn shown(name: &str, version: u64, value: &str) -> String {
    format!(
        r#"{{"kind":"ConfigMap","apiVersion":"v1","metadata":{{"namespace":"n","name":"{name}","uid":"u-{name}","resourceVersion":"{version}"}},"data":{{"k":"{value}"}}}}"#
    )
}

fn frame(event: &str, object: &str) -> String {
    format!("{{\"type\":\"{event}\",\"object\":{object}}}\n")
}

fn error_frame(code: u16, reason: &str) -> String {
    let status = json!({"kind": "Status", "apiVersion": "v1", "status": "Failure",
        "code": code, "reason": reason, "message": "scripted"});
    frame("ERROR", &status.to_string())
}

fn end_mark(version: u64, value: &str) -> String {
    let mark = json!({"kind": "ConfigMap", "apiVersion": "v1", "metadata": {
        "resourceVersion": version.to_string(), "annotations": {"k8s.io/initial-events-end": value}}});
    frame("BOOKMARK", &mark.to_string())
}

fn body(pieces: &[String]) -> Option<MemoryResponse> {
    Some(MemoryResponse::Body(pieces.iter().map(|piece| piece.clone().into()).collect()))
}

fn hang(pieces: &[String]) -> Option<MemoryResponse> {
    Some(MemoryResponse::Hang(pieces.iter().map(|piece| piece.clone().into()).collect()))
}

/// Returns whether a request is the small list that detects a store that was set back.
fn is_version_read(read: &Read) -> bool {
    *read == Read::Page { resource_version: None, limit: Some(1), continue_token: None }
}

fn is_stream(read: &Read) -> bool {
    matches!(read, Read::StreamingList { .. })
}

/// A running reflector that fills a store.
struct Rig {
    source: MemorySource,
    store: Store<ConfigMap>,
    status: Arc<ReflectorStatus>,
    troubles: Arc<Mutex<Vec<ReflectorError>>>,
    environment: Environment,
    stop: CancellationToken,
    task: JoinHandle<()>,
}

impl Rig {
    fn start(source: MemorySource, options: ReflectorOptions) -> Self {
        let over = Arc::new(source.clone());
        Self::over(over, source, options)
    }

    /// Starts a reflector that reads from `over`, which reads from `source` in the end.
    fn over(over: Arc<dyn ListWatch>, source: MemorySource, options: ReflectorOptions) -> Self {
        let environment = environment();
        let (reflector, store): (Reflector<StoreTarget>, _) = Reflector::into_store(info(), over);
        let troubles = Arc::<Mutex<Vec<ReflectorError>>>::default();
        let told = Arc::clone(&troubles);
        let reflector = reflector
            .environment(environment.clone())
            .options(options)
            .on_error(move |error| told.lock().push(error.clone()));
        let status = reflector.status();
        let stop = CancellationToken::new();
        let task = tokio::spawn(reflector.run(stop.clone()));
        Self { source, store, status, troubles, environment, stop, task }
    }

    /// Starts a reflector and waits until the first sync.
    async fn synced(source: MemorySource, options: ReflectorOptions) -> Self {
        let rig = Self::start(source, options);
        rig.watching().await;
        rig
    }

    async fn watching(&self) {
        let watching = self.status.wait_for(|state| *state == ReflectorState::Watching);
        tokio::time::timeout(Duration::from_secs(900), watching).await.expect("it syncs");
    }

    fn value(&self, name: &str) -> Option<String> {
        let object = self.store.get(&ObjectKey::new(Some("n"), name))?.get().ok()?;
        object.data.as_ref()?.get("k").cloned()
    }

    fn version(&self, name: &str) -> Option<String> {
        let object = self.store.get(&ObjectKey::new(Some("n"), name))?;
        Some(object.metadata().resource_version().to_owned())
    }

    /// Returns every request except version reads.
    fn reads(&self) -> Vec<Read> {
        let all = self.source.requests().into_iter().map(|(_, read)| read);
        all.filter(|read| !is_version_read(read)).collect()
    }

    /// Returns the number of version reads.
    fn version_reads(&self) -> usize {
        self.source.requests().iter().filter(|(_, read)| is_version_read(read)).count()
    }

    /// Returns the number of lists, streaming lists included.
    fn lists(&self) -> usize {
        self.reads().iter().filter(|read| !matches!(read, Read::Watch { .. })).count()
    }

    /// Waits until this many requests were made, version reads not counted.
    async fn asked(&self, requests: usize) -> Duration {
        eventually("the requests are made", || self.reads().len() >= requests).await
    }

    async fn stopped(self) {
        self.stop.cancel();
        let ended = tokio::time::timeout(Duration::from_millis(1), self.task).await;
        ended.expect("it stops at once").expect("it does not panic");
        assert_eq!(self.status.get(), ReflectorState::Stopped);
    }
}

/// Returns the version that each request named, in order; `-` for none.
fn versions(reads: &[Read]) -> Vec<String> {
    let version = |read: &Read| match read {
        Read::Page { resource_version, .. } | Read::StreamingList { resource_version, .. } => {
            resource_version.clone().unwrap_or_else(|| "-".to_owned())
        }
        Read::Watch { resource_version, .. } => format!("watch {resource_version}"),
    };
    reads.iter().map(version).collect()
}

/// Waits in virtual time; returns the time spent waiting.
#[track_caller]
fn eventually(what: &'static str, condition: impl Fn() -> bool) -> impl Future<Output = Duration> {
    let caller = std::panic::Location::caller();
    async move {
        let started = Instant::now();
        while !condition() {
            let waited = started.elapsed();
            assert!(waited < Duration::from_secs(900), "never happened: {what} ({caller})");
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        started.elapsed()
    }
}

/// A target that records calls.
#[derive(Clone, Default)]
struct Noted {
    lines: Arc<Mutex<Vec<String>>>,
    resync_fails: bool,
    wants_no_resync: bool,
}

impl Noted {
    fn note(&self, line: String) {
        self.lines.lock().push(line);
    }

    fn take(&self) -> Vec<String> {
        std::mem::take(&mut *self.lines.lock())
    }
}

impl ReflectorSink for Noted {
    fn list_begins(&mut self) {
        self.note("list".to_owned());
    }

    fn listed(&mut self, seen: &RawObject<'_>) {
        self.note(format!("={}", seen.name()));
    }

    fn changed(&mut self, seen: &RawObject<'_>) {
        self.note(format!("~{}", seen.name()));
    }

    fn deleted(&mut self, seen: &RawObject<'_>) {
        self.note(format!("-{}", seen.name()));
    }

    fn kept(&mut self, seen: &RawObject<'_>) {
        self.note(format!("!{}", seen.name()));
    }

    fn reached(&mut self, step: StreamProgress, version: &str) {
        self.note(format!("{step:?} {version}"));
    }

    fn should_resync(&self) -> bool {
        !self.wants_no_resync
    }

    fn resync(&mut self) -> Result<(), Error> {
        self.note("resync".to_owned());
        let failed = || Error::new(windlass_core::ErrorKind::Other, "the store is broken");
        if self.resync_fails { Err(failed()) } else { Ok(()) }
    }
}
