//! One informer without its type: what it is made of, and the task that keeps it going.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use tokio::task::JoinSet;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::audience::Audience;
use super::invalid::{Budget, Validator};
use super::listener::{Life, Listener};
use super::meter::Meter;
use super::options::CacheOptions;
use super::progress::{Progress, Synced};
use crate::reflector::{Feed, Habits, Handoff, ListWatch, Reflector, State, Status, Wiring};
use crate::seams::Seams;
use crate::store;

/// Ages are measured at least so often.
const MEASURED_EVERY: Duration = Duration::from_secs(5);

/// One scope of an informer.
pub(super) struct Scope {
    pub(super) namespace: Option<Arc<str>>,
    source: Arc<dyn ListWatch>,
    pub(super) status: Arc<Status>,
    seams: Seams,
}

/// The shared part of an informer.
pub(crate) struct Core {
    pub(super) name: String,
    pub(super) options: CacheOptions,
    pub(crate) store: Arc<store::Core>,
    pub(super) handoff: Handoff,
    pub(super) scopes: Vec<Scope>,
    pub(super) progress: Progress,
    pub(super) audience: Audience,
    /// Is a batch in the store that listeners have not been told whole?
    pub(super) is_telling: AtomicBool,
    /// Has a reflector's task ended by a panic? Its scope is read no more.
    pub(super) has_fallen: AtomicBool,
    pub(super) meter: Meter,
    pub(super) seams: Seams,
    pub(super) made_at: Instant,
    habits: Arc<Habits>,
    pub(super) stop: CancellationToken,
    pub(super) validator: OnceLock<Validator>,
    pub(super) budget: Budget,
    /// Somebody else tells people of objects that do not decode.
    pub(super) is_reported_elsewhere: AtomicBool,
    /// Whoever reads it waits for it by itself; nobody else has to.
    pub(super) is_awaited: AtomicBool,
    /// The program asked for it, and who reads it nobody knows: everybody waits, whoever else does.
    pub(super) is_asked: AtomicBool,
}

impl Core {
    /// `name`: for people. `scopes`: where to read, by namespace.
    pub(crate) fn new(
        (name, meter): (String, Meter),
        options: CacheOptions,
        store: Arc<store::Core>,
        scopes: Vec<(Option<String>, Arc<dyn ListWatch>)>,
        surroundings: (Seams, Arc<Habits>, CancellationToken),
    ) -> Arc<Self> {
        let (seams, habits, stop) = surroundings;
        let scopes: Vec<_> = scopes
            .into_iter()
            .map(|(namespace, source)| {
                let what = match &namespace {
                    Some(namespace) => format!("{name} in {namespace:?}"),
                    None => name.clone(),
                };
                Scope {
                    seams: seams.fork(&what),
                    status: Arc::new(Status::new(what)),
                    namespace: namespace.map(Arc::from),
                    source,
                }
            })
            .collect();
        store.silent_for_at_most(options.reading.longest_silence());
        Arc::new(Self {
            meter,
            name,
            options,
            store,
            handoff: Handoff::default(),
            progress: Progress::new(scopes.len()),
            scopes,
            audience: Audience::default(),
            is_telling: AtomicBool::new(false),
            has_fallen: AtomicBool::new(false),
            made_at: seams.clock.now(),
            seams,
            habits,
            stop,
            validator: OnceLock::new(),
            budget: Budget::default(),
            is_reported_elsewhere: AtomicBool::new(false),
            is_awaited: AtomicBool::new(false),
            is_asked: AtomicBool::new(false),
        })
    }

    /// An answer to a write was older than what is cached: somebody else may have written since, or the
    /// server's store was set back. The reflectors look.
    pub(super) fn doubt(&self) {
        self.scopes.iter().for_each(|scope| scope.status.sign());
        self.habits.call();
    }

    /// Must its first list come, and has not?
    pub(super) fn is_pending(&self) -> bool {
        !self.options.is_optional && self.progress.now() == Synced::Pending
    }

    /// Is `namespace` one that this informer reads?
    pub(crate) fn covers(&self, namespace: Option<&str>) -> bool {
        self.scopes
            .iter()
            .any(|scope| scope.namespace.is_none() || scope.namespace.as_deref() == namespace)
    }

    /// Does it show every object of the namespaces that it reads?
    pub(super) fn is_whole(&self) -> bool {
        self.options.labels.is_none() && self.options.fields.is_none()
    }

    /// Waits until every listener was told what the first lists showed, or has ended.
    pub(super) async fn told(&self) {
        for listener in self.audience.all().into_iter().filter(|who| !who.is_internal()) {
            listener.stands(|standing| standing.is_synced || standing.life == Life::Ended).await;
        }
    }

    pub(super) fn listen(&self, listener: Arc<Listener>) {
        self.audience.add(listener);
        self.handoff.wake();
    }

    /// It will never run (again): whoever waits is told.
    pub(super) fn end(&self) {
        self.stop.cancel();
        self.progress.stop();
        self.audience.end();
        self.meter.forget();
    }

    /// The reflectors, one per scope.
    fn reflectors(self: &Arc<Self>) -> Vec<Reflector<Feed>> {
        let reflector = |(at, scope): (usize, &Scope)| {
            let store = Arc::clone(&self.store);
            let feed = Feed::new(store, self.clone(), at, scope.namespace.clone());
            let wiring = Wiring {
                seams: scope.seams.clone(),
                status: Arc::clone(&scope.status),
                habits: Arc::clone(&self.habits),
                options: self.options.reading.clone(),
            };
            Reflector::of_informer(Arc::clone(&scope.source), feed, wiring)
        };
        self.scopes.iter().enumerate().map(reflector).collect()
    }

    /// Runs it until its stop; however that ends, the informer has ended then.
    pub(crate) async fn run(self: Arc<Self>) {
        let ending = Ending(self);
        let core = &ending.0;
        let mut tasks = JoinSet::new();
        // Listeners from before the start hear the first list as it comes.
        core.attend(&mut tasks);
        for (at, reflector) in core.reflectors().into_iter().enumerate() {
            let stop = core.stop.clone();
            let fallen = Fallen::of(core, at);
            tasks.spawn(async move {
                let _fallen = fallen;
                reflector.run(stop).await;
            });
        }
        while !core.stop.is_cancelled() {
            if core.attend(&mut tasks) {
                // One informer's flood does not keep the others from running.
                tokio::task::yield_now().await;
                continue;
            }
            let alarm = core.next_alarm();
            tokio::select! {
                biased;
                () = core.stop.cancelled() => break,
                () = core.handoff.filled() => {}
                Some(ended) = tasks.join_next(), if !tasks.is_empty() => report(ended),
                () = core.seams.clock.sleep_until(alarm) => core.measure(),
            }
        }
        while let Some(ended) = tasks.join_next().await {
            report(ended);
        }
    }

    /// What only the informer's task does: newcomers, resyncs, and a batch of what is queued. True
    /// when there may be more.
    fn attend(&self, tasks: &mut JoinSet<()>) -> bool {
        // In vain, it is woken when the turn ends.
        let Some(turn) = self.handoff.turn() else { return false };
        for listener in self.welcome() {
            if listener.is_queued() {
                tasks.spawn(listener.task(self.stop.clone()));
            }
        }
        self.resync();
        let (batch, merged) = turn.take(super::apply::BATCH);
        if batch.is_empty() {
            return false;
        }
        self.deliver(batch, merged);
        true
    }

    fn next_alarm(&self) -> Instant {
        let tick = self.seams.clock.now() + MEASURED_EVERY;
        let members = self.audience.members();
        members
            .iter()
            .filter_map(|member| member.next_resync())
            .min()
            .map_or(tick, |at| at.min(tick))
    }

    /// Have the listeners been told all that the store shows?
    pub(super) fn is_told(&self) -> bool {
        !self.is_telling.load(Ordering::SeqCst)
            && !self.audience.has_newcomers()
            && self.audience.members().iter().all(|member| member.is_idle())
    }
}

/// Says so when a reflector's task ends by a panic; the informer is not synced any more. A reflector
/// returns only when it is stopped, and its task is dropped only where everything ends at once: with the
/// operator's task or with the runtime, which drops tasks in any order. So only a panic is news.
pub(super) struct Fallen {
    core: Arc<Core>,
    scope: usize,
}

impl Fallen {
    pub(super) fn of(core: &Arc<Core>, scope: usize) -> Self {
        Self { core: Arc::clone(core), scope }
    }
}

impl Drop for Fallen {
    fn drop(&mut self) {
        if std::thread::panicking() && !self.core.stop.is_cancelled() {
            self.core.has_fallen.store(true, Ordering::SeqCst);
            let why = "its task ended by a panic, of windlass or of what it calls: what is cached gets \
                       old until the informer is made anew; see the log, and restart the process";
            if let Some(scope) = self.core.scopes.get(self.scope) {
                scope.status.set(State::Degraded(why.to_owned()));
            }
        }
    }
}

/// Ends the informer when its task is gone.
struct Ending(Arc<Core>);

impl Drop for Ending {
    fn drop(&mut self) {
        self.0.end();
    }
}

pub(super) fn report(ended: Result<(), tokio::task::JoinError>) {
    if let Err(error) = ended
        && error.is_panic()
    {
        tracing::error!(%error, "a task of the cache ended by a panic: this is a defect of windlass");
    }
}
