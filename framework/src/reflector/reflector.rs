//! The reflector: its state and its loop.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::absence::Absence;
use super::capabilities::ServerCapabilities;
use super::expect::Expected;
use super::machine::AttemptEnd;
use super::machine::Backoff;
use super::machine::Position;
use super::rollback::RollbackCheck;
use super::sink::DeltaWriter;
use super::sink::{ReflectorSink, StoreTarget};
use super::{ListWatch, MOST_BROKEN_STREAMS, ReflectorOptions, State, Status};
use crate::environment::Environment;
use crate::metrics::names;
use crate::panics::{caught, panic_text};
use crate::resource::{Resource, ResourceInfo};
use crate::store::{self, Store};

/// A failure of a reflector, and its consequences.
#[derive(Clone, Debug)]
pub struct ReflectorError {
    /// Description of the objects that are read: `pods in "shop"`.
    pub what: String,
    /// The state that follows from the failure, with the reason.
    pub state: State,
    /// Pause before the next attempt.
    pub pause: Duration,
}

/// A handler of failures.
pub(super) type OnTrouble = Arc<dyn Fn(&ReflectorError) + Send + Sync>;

/// Keeps a [`ReflectorSink`] up to date with one kind in one scope of a source, until it is stopped.
///
/// Informers consist of reflectors. A single one serves a cache of another design:
///
/// ```
/// use std::sync::Arc;
/// use k8s_openapi::api::core::v1::ConfigMap;
/// use serde_json::json;
/// use tokio_util::sync::CancellationToken;
/// use windlass::reflector::{MemorySource, Reflector, State};
/// use windlass::resource::ResourceInfo;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), windlass::Error> {
/// let info = ResourceInfo::of::<ConfigMap>();
/// let source = MemorySource::new(info.clone());
/// source.put(&json!({"metadata": {"namespace": "shop", "name": "a"}}))?;
///
/// let (reflector, store) = Reflector::into_store::<ConfigMap>(info, Arc::new(source));
/// let status = reflector.status();
/// let stop = CancellationToken::new();
/// let task = tokio::spawn(reflector.run(stop.clone()));
/// status.wait_for(|state| *state == State::Watching).await;
/// assert_eq!(store.len(), 1);
/// stop.cancel();
/// # task.await.expect("it does not panic");
/// # Ok(())
/// # }
/// ```
pub struct Reflector<T> {
    pub(super) info: ResourceInfo,
    pub(super) namespace: Option<Arc<str>>,
    /// Description for logs and errors: `pods in "shop"`.
    pub(super) what: String,
    /// Label of metrics: `deployments.apps`.
    pub(super) resource: String,
    pub(super) source: Arc<dyn ListWatch>,
    pub(super) target: T,
    pub(super) options: ReflectorOptions,
    pub(super) environment: Environment,
    pub(super) status: Arc<Status>,
    /// Findings about the server, shared with other reflectors.
    pub(super) habits: Arc<ServerCapabilities>,
    pub(super) backoff: Backoff,
    /// Check of the objects' kind.
    pub(super) expected: Expected,
    /// Handler of failures.
    pub(super) on_trouble: Option<OnTrouble>,
    pub(super) position: Position,
    /// Suspicion that the server's store was set back.
    pub(super) doubt: RollbackCheck,
    /// Cause of the next list, a label of metrics.
    pub(super) cause: &'static str,
    /// The version that the list under way asked for.
    pub(super) asked_version: Option<String>,
    /// Whether the last version cannot be listed from, so that the next list is a consistent read.
    pub(super) needs_consistent: bool,
    /// Whether the server paged a list that it could have answered from memory.
    pub(super) pages_any_version: bool,
    /// Whether pages expire faster than they are read: the next list is made without a limit.
    pub(super) unpaged: bool,
    /// Number of streaming lists in a row that ended before their end mark.
    pub(super) broken_streams: u32,
    /// Number of failed lists in a row.
    pub(super) failed_lists: u32,
    /// Items of this list.
    pub(super) listed: u64,
    /// Items of this list that could not be read or are of another kind. While there are some, no
    /// object is taken for deleted.
    pub(super) unreadable: usize,
    /// Time at which the last list began.
    pub(super) list_began: Instant,
    /// Whether objects of another kind were logged for this stream.
    pub(super) said_unexpected: bool,
    /// Set while the kind is not served.
    pub(super) absence: Option<Absence>,
    /// Time since which the server answers 404 for a kind with cached objects, and is not believed.
    pub(super) doubted_since: Option<Instant>,
    /// Time since which watches end by internal errors.
    pub(super) internal_since: Option<Instant>,
    /// Time of the last expired watch after which the list followed at once.
    pub(super) expired_at: Option<Instant>,
    /// Time of the next list, if the last one was complete in part only.
    pub(super) again_at: Option<Instant>,
    /// Time of the next resync of the target.
    pub(super) resync_at: Option<Instant>,
    /// Time for which the last stream was open.
    pub(super) lived: Duration,
}

/// Dependencies of a reflector that belongs to an informer.
pub(crate) struct ReflectorDeps {
    pub(crate) environment: Environment,
    pub(crate) status: Arc<Status>,
    pub(crate) habits: Arc<ServerCapabilities>,
    pub(crate) options: ReflectorOptions,
}

impl Reflector<DeltaWriter> {
    /// Creates the reflector of an informer.
    pub(crate) fn of_informer(
        source: Arc<dyn ListWatch>,
        feed: DeltaWriter,
        wiring: ReflectorDeps,
    ) -> Self {
        let (info, namespace) = (feed.store.info().clone(), feed.namespace.clone());
        Self::wired(info, namespace, source, feed, wiring)
    }
}

impl Reflector<StoreTarget> {
    /// Returns a reflector that fills a store of its own, and that store.
    pub fn into_store<K: Resource>(
        info: ResourceInfo,
        source: Arc<dyn ListWatch>,
    ) -> (Self, Store<K>) {
        let environment = Environment::system();
        let core = {
            let seed = environment.rng.fork("store").next_u64();
            let mode = store::Mode::of::<K>(store::Representation::default(), None);
            store::Core::with_mode(info.clone(), environment.clock.clone(), mode, seed)
        };
        let target = StoreTarget::new(Arc::clone(&core), None);
        (Self::new(info, source, target).environment(environment), Store::new(core))
    }
}

impl<T: ReflectorSink> Reflector<T> {
    /// Returns a reflector that is not running yet, with the machine's clock and randomness, and
    /// the default options.
    pub fn new(info: ResourceInfo, source: Arc<dyn ListWatch>, target: T) -> Self {
        let wiring = ReflectorDeps {
            environment: Environment::system(),
            status: Arc::new(Status::new(info.to_string())),
            habits: Arc::default(),
            options: ReflectorOptions::default(),
        };
        Self::wired(info, None, source, target, wiring)
    }

    fn wired(
        info: ResourceInfo,
        namespace: Option<Arc<str>>,
        source: Arc<dyn ListWatch>,
        target: T,
        wiring: ReflectorDeps,
    ) -> Self {
        let ReflectorDeps { environment, status, habits, options } = wiring;
        Self {
            backoff: Backoff::new(&options, environment.rng.clone()),
            doubt: RollbackCheck::new(&options, environment.rng.clone()),
            expected: Expected::new(&info),
            resource: info.group_resource(),
            what: status.what().to_owned(),
            list_began: environment.clock.now(),
            info,
            namespace,
            source,
            target,
            options,
            environment,
            status,
            habits,
            on_trouble: None,
            position: Position::default(),
            cause: "initial",
            asked_version: None,
            needs_consistent: false,
            pages_any_version: false,
            unpaged: false,
            broken_streams: 0,
            failed_lists: 0,
            listed: 0,
            unreadable: 0,
            said_unexpected: false,
            absence: None,
            doubted_since: None,
            internal_since: None,
            expired_at: None,
            again_at: None,
            resync_at: None,
            lived: Duration::ZERO,
        }
    }

    /// Sets its name in logs, errors and its [`Status`]. Default: the resource, such as `pods`.
    #[must_use]
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.what = name.into();
        self.status = Arc::new(Status::new(self.what.clone()));
        self
    }

    /// Sets the options.
    #[must_use]
    pub fn options(mut self, options: ReflectorOptions) -> Self {
        self.options = options;
        self.backoff = self.new_backoff();
        self.doubt = RollbackCheck::new(&self.options, self.environment.rng.clone());
        self
    }

    /// Sets clock, randomness and metrics.
    #[must_use]
    pub fn environment(mut self, environment: Environment) -> Self {
        self.environment = environment;
        self.backoff = self.new_backoff();
        self.doubt = RollbackCheck::new(&self.options, self.environment.rng.clone());
        self
    }

    /// Sets a handler that is called after each failure, before the pause that follows. It must not
    /// block. Its panics are caught and logged.
    #[must_use]
    pub fn on_trouble(mut self, handler: impl Fn(&ReflectorError) + Send + Sync + 'static) -> Self {
        self.on_trouble = Some(Arc::new(handler));
        self
    }

    /// Returns the status, which is readable while the reflector runs.
    pub fn status(&self) -> Arc<Status> {
        Arc::clone(&self.status)
    }

    /// Runs until `stop`, which ends any request or pause under way. No failure and no panic of the
    /// source ends it.
    ///
    /// # Cancel safety
    /// Dropping the future ends the reflector as `stop` does, except for the [`State::Stopped`] of
    /// its status.
    pub async fn run(mut self, stop: CancellationToken) {
        let status = Arc::clone(&self.status);
        tokio::select! {
            biased;
            // Biased: a stop wins over work that is ready.
            () = stop.cancelled() => {}
            () = self.run_forever() => {}
        }
        status.set(State::Stopped);
    }

    /// The loop: attempt, consequences, pause.
    async fn run_forever(&mut self) {
        self.resync_at = self.options.resync.map(|period| self.environment.clock.after(period));
        loop {
            self.lived = Duration::ZERO;
            // A panic of the source costs one attempt, not the reflector.
            let setback = caught(self.end())
                .await
                .unwrap_or_else(|panic| AttemptEnd::Panicked(panic_text(&*panic)));
            // Hands over the events that were read before the end.
            self.target.room().await;
            if let Some(pause) = self.answer(setback) {
                self.target.room().await;
                self.rest(pause).await;
            }
        }
    }

    /// Waits before the next attempt; ends early for an absent kind when a caller knows that it was
    /// created.
    async fn rest(&mut self, pause: Duration) {
        tokio::select! {
            biased;
            // Only for an absent kind: a pause after any other failure protects the server.
            () = self.status.nudged(), if self.absence.is_some() => {}
            () = self.environment.clock.sleep(pause) => {}
        }
    }

    /// Makes an attempt and returns its end; a 404 is checked first.
    async fn end(&mut self) -> AttemptEnd {
        let setback = self.attempt().await;
        self.doubt(setback).await
    }

    /// Lists if necessary and follows changes until that ends.
    async fn attempt(&mut self) -> AttemptEnd {
        if let Some(setback) = self.look_for_the_kind().await {
            return setback;
        }
        if self.position.resume().is_none()
            && !self.lists_by_stream()
            && let Err(setback) = self.list().await
        {
            return setback;
        }
        self.watch().await
    }

    /// Returns whether the next list is a streaming list.
    fn lists_by_stream(&self) -> bool {
        self.options.streaming
            && self.source.streams_lists()
            && self.habits.streams_lists(self.environment.clock.now())
            && self.broken_streams < MOST_BROKEN_STREAMS
    }

    /// Counts a frame or item that was not handed over.
    pub(super) fn dropped(&self, reason: &str) {
        self.environment.metrics.count(&names::INFORMER_DROPPED, &[&self.resource, reason], 1);
    }
}

impl<T> fmt::Debug for Reflector<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reflector")
            .field("what", &self.what)
            .field("source", &self.source)
            .field("options", &self.options)
            .field("position", &self.position)
            .field("state", &self.status.get())
            .finish_non_exhaustive()
    }
}
