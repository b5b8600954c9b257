//! The course of a replay: each entry of the recording at its time, and none before the operator
//! has done what belongs before it.

// DESIGN.md, 279: A replay decides when each reconcile begins

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use tokio::time::Instant;
use windlass_client::client::{Client, ClientConfig, ExchangeHook};
use windlass_core::clock::Clock;
use windlass_core::environment::Environment;
use windlass_core::error::Error;
use windlass_core::metrics::Metrics;
use windlass_core::resource::ObjectKey;
use windlass_core::rng::Rng;
use windlass_runtime::controller::{MOST_WORKERS, ReconcileObserver};
use windlass_runtime::manager::{Manager, Running};

use super::format::{Lines, RecordedEntry};
use super::script::{ReconcileId, Script};

/// Time from the start of the operator to the beginning of the recording: caches fill in it.
const LEAD: Duration = Duration::from_secs(5);
/// Virtual time in which the operator must do what the recorded one did.
const PATIENCE: Duration = Duration::from_secs(60);
/// Time between two looks at a condition.
const POLL: Duration = Duration::from_millis(10);
/// Polls of all tasks in which an entry has all its effects that need no time.
const ROUNDS: usize = 256;

/// Outcome of a replay.
pub(super) struct Played {
    pub(super) difference: Option<String>,
    pub(super) reconciles: usize,
    pub(super) requests: usize,
}

/// Makes an operator, and replays a recording against it on the paused clock of the current
/// runtime.
pub(super) async fn play(
    lines: &Lines,
    tolerance: Duration,
    make: &(dyn Fn(Client) -> Manager + Sync),
) -> Result<Played, Error> {
    let script = Script::new(lines, tolerance);
    let lead = SignedDuration::try_from(LEAD).unwrap_or_default();
    let epoch = lines.header.began.checked_sub(lead).unwrap_or(lines.header.began);
    let environment = Environment {
        clock: Clock::simulated(epoch),
        rng: Rng::seeded(1),
        metrics: Metrics::new(),
    };
    let (clock, rng) = (environment.clock.clone(), environment.rng.clone());
    // The name is never resolved: the script answers before a connection is opened.
    let config =
        ClientConfig::new("http://in-process.windlass")?.with_namespace(&lines.header.namespace);
    let client = Client::builder().config(config).environment(environment).build()?;
    client.set_exchange_hook(Arc::clone(&script) as Arc<dyn ExchangeHook>);
    let observer = Arc::clone(&script) as Arc<dyn ReconcileObserver>;
    let mut manager = make(client).replayed(&observer, workers(lines, &script));
    // A flag may have limited the recorded operator.
    manager.namespaces.clone_from(&lines.header.namespaces);
    // As it was when the recorded operator started.
    rng.restore(lines.header.seed);
    let course = OngoingReplay {
        script,
        clock: clock.clone(),
        began: clock.now() + LEAD,
        running: manager.start(),
    };
    let mut reconciles = 0;
    clock.sleep_until(course.began).await;
    for (at, entry) in &lines.entries {
        course.reach(lines.header.began, *at).await;
        course.take(entry).await;
        reconciles += usize::from(matches!(entry, RecordedEntry::End { .. }));
        if course.script.state.lock().difference.is_some() {
            break;
        }
    }
    let mut state = course.script.state.lock();
    Ok(Played { difference: state.difference.take(), reconciles, requests: state.equal })
}

/// Returns the number of objects that may be held at once.
fn workers(lines: &Lines, script: &Script) -> usize {
    let cached: usize = script.state.lock().caches.iter().map(|it| it.objects().count()).sum();
    let keys = lines.entries.iter().filter_map(|(_, entry)| match entry {
        RecordedEntry::Start { key, .. } => Some(key.clone()),
        RecordedEntry::Event { object, .. } => Some(object["metadata"]["uid"].to_string()),
        _ => None,
    });
    let listed = lines.entries.iter().filter_map(|(_, entry)| match entry {
        RecordedEntry::List { state: super::format::ListState::Listed { objects, .. }, .. } => {
            Some(objects.len())
        }
        _ => None,
    });
    let (keys, listed): (BTreeSet<String>, usize) = (keys.collect(), listed.sum());
    (cached + listed + keys.len() + 16).min(MOST_WORKERS)
}

/// A replay under way.
struct OngoingReplay {
    script: Arc<Script>,
    clock: Clock,
    began: Instant,
    running: Running,
}

impl OngoingReplay {
    /// Waits for the time of an entry.
    async fn reach(&self, began: Timestamp, at: Timestamp) {
        let offset = Duration::try_from(at.duration_since(began)).unwrap_or_default();
        self.clock.sleep_until(self.began + offset).await;
    }

    /// Makes an entry happen.
    async fn take(&self, entry: &RecordedEntry) {
        match entry {
            RecordedEntry::List { cache, state } => {
                let mut replay = self.script.state.lock();
                replay.caches.get_mut(*cache).into_iter().for_each(|it| it.relist(state));
            }
            RecordedEntry::Event { cache, event, object } => {
                let mut replay = self.script.state.lock();
                replay.caches.get_mut(*cache).into_iter().for_each(|it| it.event(event, object));
            }
            RecordedEntry::Start { number, .. } => self.begin(*number).await,
            RecordedEntry::Answer { number, .. } => self.answer(*number).await,
            RecordedEntry::End { number, outcome } => self.end(*number, outcome).await,
            // Compared when the operator sends it.
            RecordedEntry::Request(_) => return,
        }
        self.script.changed.notify_waiters();
        settle().await;
    }

    /// Lets a reconcile begin; one that no event made due is made due.
    async fn begin(&self, number: u64) {
        let Some(reconcile_id) =
            self.script.state.lock().reconciles.get(&number).map(|it| it.reconcile_id.clone())
        else {
            return;
        };
        settle().await;
        let mut is_admitted = self.script.admit(number, &reconcile_id);
        if !is_admitted {
            self.enqueue(&reconcile_id);
            self.until(|| {
                is_admitted = is_admitted || self.script.admit(number, &reconcile_id);
                is_admitted
            })
            .await;
        }
        let has_begun =
            || self.script.state.lock().reconciles.get(&number).is_some_and(|it| it.has_begun);
        if !is_admitted || !self.until(has_begun).await {
            let text = format!(
                "  it does not begin: the operator has no controller {:?}, or an earlier reconcile of the \
                 object has not ended",
                reconcile_id.0
            );
            self.script.differ(Some(number), &text);
        }
    }

    /// Makes the object of a reconcile due.
    fn enqueue(&self, (controller, key): &ReconcileId) {
        let (namespace, name) = match key.split_once('/') {
            Some((namespace, name)) => (Some(namespace), name),
            None => (None, key.as_str()),
        };
        let key = ObjectKey::new(namespace, name);
        let all = self.running.controllers().into_iter();
        all.filter(|it| it.name() == controller).for_each(|it| it.enqueue(key.clone()));
    }

    /// Answers a request, once the operator has sent it.
    async fn answer(&self, number: u64) {
        let Some(reconcile) = self.script.reconcile_of(number) else { return };
        // Also behind the end, where failures and waits are reported.
        if self.until(|| self.script.is_sent(number)).await {
            self.script.deliver(number);
            return;
        }
        let text = format!("  {} is not sent", self.script.request_text(number));
        self.script.differ(Some(reconcile), &text);
    }

    /// Compares the end of a reconcile.
    async fn end(&self, number: u64, recorded: &str) {
        let ended = || {
            let state = self.script.state.lock();
            state.reconciles.get(&number).map_or(Some(String::new()), |it| it.ended.clone())
        };
        self.until(|| ended().is_some()).await;
        let text = match ended() {
            // One that began before the recording.
            Some(ended) if ended.is_empty() || ended == recorded => return,
            Some(ended) => format!("  its end is {ended:?}, and {recorded:?} in the recording"),
            None => format!("  it does not end, and in the recording its end is {recorded:?}"),
        };
        self.script.differ(Some(number), &text);
    }

    /// Waits until `holds`, or there is a difference; false when it did not come to hold.
    async fn until(&self, mut holds: impl FnMut() -> bool) -> bool {
        let until = self.clock.after(PATIENCE);
        loop {
            settle().await;
            if holds() {
                return true;
            }
            if self.script.state.lock().difference.is_some() || self.clock.now() > until {
                return false;
            }
            self.clock.sleep(POLL).await;
        }
    }
}

/// Lets all tasks run that are ready, and those that they wake. No time passes.
async fn settle() {
    for _ in 0..ROUNDS {
        tokio::task::yield_now().await;
    }
}
