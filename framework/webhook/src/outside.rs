//! Marks of processes outside of a cluster on the objects that are theirs for a time: which process
//! wrote an object, and whether that process still runs.
//!
//! Invariant: a process removes an object with the mark of another process only if the mark was not
//! renewed for five minutes by the clock of the API server.

// DESIGN.md, 224: Policies and configurations of a process at a URL carry its mark, which it
// renews

use std::any::TypeId;
use std::collections::BTreeMap;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio::time::Instant;
use windlass_client::client::Client;
use windlass_core::clock::Clock;
use windlass_core::resource::{FullObject, Resource};
use windlass_core::{Error, ErrorKind};

/// Annotation of an object of a process at a URL.
pub(crate) const MARK: &str = "windlass.dev/outside-process";
/// Time between two renewals of a mark.
const RENEWAL: Duration = Duration::from_secs(60);
/// Time without a renewal after which a process has ended.
const OVER: SignedDuration = SignedDuration::from_secs(300);

/// Attempts to remove the version of an object that was read.
const ATTEMPTS: usize = 4;

/// The contents of the annotation [`MARK`].
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
struct ProcessMark {
    process: String,
    /// Number of the renewal: an API server keeps the time of a write only if it changed something.
    renewal: u64,
}

impl ProcessMark {
    /// Reads the annotation of an object; a spoilt one is none.
    fn of(meta: &ObjectMeta) -> Option<Self> {
        serde_json::from_str(meta.annotations.as_ref()?.get(MARK)?).ok()
    }
}

/// A process outside of a cluster, and its time of the API server.
#[derive(Debug)]
pub(crate) struct OutsideProcess {
    mark: ProcessMark,
    clock: Clock,
    /// The last renewal.
    renewed: Option<Instant>,
    /// Time of the API server at a moment of this process.
    anchor: Option<(Timestamp, Instant)>,
    /// The spec of each object as the API server stored it for this process, with the defaults.
    specs: BTreeMap<(TypeId, String), Value>,
}

/// Whether an object has the labels of another one, by which a sweep finds it.
pub(crate) fn has_labels_of(meta: &ObjectMeta, right: &ObjectMeta) -> bool {
    let stored = meta.labels.as_ref();
    let mut labels = right.labels.iter().flatten();
    labels.all(|(name, value)| stored.and_then(|stored| stored.get(name)) == Some(value))
}

/// Returns the spec of an object; null if it has none.
fn spec<K: Serialize>(object: &K) -> Value {
    let mut value = serde_json::to_value(object).unwrap_or_default();
    value.get_mut("spec").map(Value::take).unwrap_or_default()
}

/// A look at the objects of a process.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MarkTurn {
    /// Whether the process takes an object that another one has.
    is_first: bool,
    /// Whether the marks are to be renewed.
    is_due: bool,
}

impl OutsideProcess {
    /// Returns a process with a name that no other one has.
    pub(crate) fn new(client: &Client) -> Self {
        let environment = client.environment().fork("process outside of a cluster");
        let process = format!("{:016x}", environment.rng.next_u64());
        let mark = ProcessMark { process, renewal: 0 };
        let clock = environment.clock;
        Self { mark, clock, renewed: None, anchor: None, specs: BTreeMap::new() }
    }

    /// Returns the name.
    pub(crate) fn name(&self) -> &str {
        &self.mark.process
    }

    /// Begins a look at the objects of this process.
    pub(crate) fn begin(&mut self, is_first: bool) -> MarkTurn {
        let now = self.clock.now();
        let is_due = is_first || self.renewed.is_none_or(|renewed| now - renewed >= RENEWAL);
        self.mark.renewal += u64::from(is_due);
        MarkTurn { is_first, is_due }
    }

    /// Ends a look without a failure; returns whether all marks were renewed.
    pub(crate) fn end(&mut self, turn: MarkTurn) -> bool {
        if turn.is_due {
            self.renewed = Some(self.clock.now());
        }
        turn.is_due
    }

    /// Writes an object that is not there, whose mark is due, or whose spec was changed. One of
    /// another process that still runs is left alone, except by the first look.
    pub(crate) async fn keep<K: FullObject>(
        &mut self,
        client: &Client,
        (name, right): (&str, &K),
        turn: MarkTurn,
    ) -> Result<(), Error> {
        let Some(stored) = client.all::<K>().get_opt(name).await? else {
            return self.write(client, name, right).await;
        };
        if !turn.is_first {
            let known = self.specs.get(&(TypeId::of::<K>(), name.to_owned()));
            let meta = stored.metadata();
            let is_right = known.is_none_or(|known| *known == spec(&stored))
                && has_labels_of(meta, right.metadata());
            if self.is_of_another(meta) || is_right && self.is_kept(meta, turn) {
                return Ok(());
            }
            if !is_right {
                tracing::info!(object = name, "a changed object is written again");
            }
        }
        // Replaced as a whole: an apply would leave the fields of other managers.
        let mut right = right.clone();
        right.metadata_mut().resource_version = stored.metadata().resource_version.clone();
        self.replace(client, right).await
    }

    /// Writes an object with the mark of this process.
    pub(crate) async fn write<K: FullObject>(
        &mut self,
        client: &Client,
        name: &str,
        right: &K,
    ) -> Result<(), Error> {
        let mut right = right.clone();
        self.stamp(right.metadata_mut());
        let written = client.all::<K>().apply(name, &right).force().await?;
        self.note(&written);
        Ok(())
    }

    /// Replaces an object that was read, with the mark of this process.
    pub(crate) async fn replace<K: FullObject>(
        &mut self,
        client: &Client,
        mut right: K,
    ) -> Result<(), Error> {
        self.stamp(right.metadata_mut());
        let written = client.all::<K>().replace(&right).await?;
        self.note(&written);
        Ok(())
    }

    fn stamp(&self, meta: &mut ObjectMeta) {
        if let Ok(text) = serde_json::to_string(&self.mark) {
            meta.annotations.get_or_insert_default().insert(MARK.to_owned(), text);
        }
    }

    /// Notes an object that was written just now.
    fn note<K: FullObject>(&mut self, written: &K) {
        self.read_time(written.metadata());
        let name = written.metadata().name.clone().unwrap_or_default();
        self.specs.insert((TypeId::of::<K>(), name), spec(written));
    }

    /// Reads the time of the API server from an object that was written just now.
    fn read_time(&mut self, meta: &ObjectMeta) {
        if let Some(time) = last_write(meta) {
            self.anchor = Some((time, self.clock.now()));
        }
    }

    /// Whether an object has the mark of this process.
    fn has(&self, meta: &ObjectMeta) -> bool {
        ProcessMark::of(meta).is_some_and(|mark| mark.process == self.mark.process)
    }

    /// Whether the mark of an object is to stay as it is.
    pub(crate) fn is_kept(&self, meta: &ObjectMeta, turn: MarkTurn) -> bool {
        match self.has(meta) {
            true => !turn.is_due,
            false => self.is_of_another(meta),
        }
    }

    /// Whether another process that still runs has an object.
    pub(crate) fn is_of_another(&self, meta: &ObjectMeta) -> bool {
        ProcessMark::of(meta).is_some() && !self.has(meta) && !self.is_left(meta)
    }

    /// Whether the process whose mark an object has did not renew it in time. Without a time of the
    /// API server it counts as running.
    fn is_left(&self, meta: &ObjectMeta) -> bool {
        let is_marked = ProcessMark::of(meta).is_some() && !self.has(meta);
        let Some(((anchor, since), last)) = self.anchor.zip(last_write(meta)) else { return false };
        // While a machine sleeps this clock stands still: the time is too early, never too late.
        let passed = SignedDuration::try_from(self.clock.now() - since).unwrap_or_default();
        is_marked && anchor.duration_since(last) + passed > OVER
    }

    /// Removes the objects of an operator that a process left which was killed.
    pub(crate) async fn sweep<K>(&self, client: &Client, operator: &str) -> Result<(), Error>
    where
        K: Resource,
    {
        let api = client.all::<K>();
        let of_operator = api.list().labels(&format!("app.kubernetes.io/name={operator}")).await?;
        for left in of_operator.items.iter().filter(|it| self.is_left(it.metadata())) {
            let meta = left.metadata();
            let name = meta.name.as_deref().unwrap_or_default();
            tracing::info!(
                name,
                "an object of a process that ended without removing it is removed"
            );
            delete_version::<K>(client, name, meta).await?;
        }
        Ok(())
    }

    /// Removes an object, unless another process has it.
    pub(crate) async fn remove<K>(&self, client: &Client, name: &str) -> Result<(), Error>
    where
        K: Resource,
    {
        // Others write these objects, too: an API server the status of a policy.
        for _ in 0..ATTEMPTS {
            let Some(stored) = client.all::<K>().get_opt(name).await? else { return Ok(()) };
            // One whose mark somebody removed has the name of this process.
            if ProcessMark::of(stored.metadata()).is_some() && !self.has(stored.metadata()) {
                return Ok(());
            }
            match delete_version::<K>(client, name, stored.metadata()).await {
                Err(error) if error.is_conflict() => {}
                deleted => return deleted,
            }
        }
        Err(Error::new(ErrorKind::Other, format!("{name:?} changes again and again")))
    }
}

/// Deletes the version of an object that was read: a process may have taken it since.
async fn delete_version<K>(client: &Client, name: &str, meta: &ObjectMeta) -> Result<(), Error>
where
    K: Resource,
{
    let version = meta.resource_version.as_deref().unwrap_or_default();
    match client.all::<K>().delete(name).resource_version(version).await {
        Err(error) if error.is_not_found() => Ok(()),
        deleted => deleted.map(drop),
    }
}

/// Returns the time of the last write of an object, by the API server.
fn last_write(meta: &ObjectMeta) -> Option<Timestamp> {
    let entries = meta.managed_fields.iter().flatten();
    entries.filter_map(|entry| entry.time.as_ref()).map(|time| time.0).max()
}
