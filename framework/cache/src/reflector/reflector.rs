//! The reflector: the state and the loop.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::capabilities::ServerCapabilities;
use super::machine::{AttemptEnd, Machine, RollbackCheck};
use super::sink::{DeltaWriter, ReflectorSink, StoreTarget};
use super::subject::ReflectedKind;
use super::version_read::VersionRead;
use super::{ListWatch, Read, ReflectorOptions, ReflectorState, ReflectorStatus};
use crate::store::{self, Store};
use windlass_core::environment::Environment;
use windlass_core::metrics::names;
use windlass_core::panics::{caught, panic_text};
use windlass_core::resource::{Resource, ResourceInfo};

/// A failure of a reflector, and the consequences.
///
/// Passed to the handler of [`Reflector::on_error`], once for each failed attempt.
#[derive(Clone, Debug)]
pub struct ReflectorError {
    /// Description of the objects that are read: `pods in "shop"`.
    pub resource: String,
    /// The state that follows from the failure, with the reason.
    pub state: ReflectorState,
    /// Pause before the next attempt.
    pub pause: Duration,
}

/// A handler of failures.
pub(super) type ErrorHandler = Arc<dyn Fn(&ReflectorError) + Send + Sync>;

/// Keeps a [`ReflectorSink`] up to date with a kind in a single scope of a source, until stopped.
///
/// Informers consist of reflectors. A single reflector serves a cache of another design:
///
/// ```
/// # extern crate windlass_cache as windlass;
/// use std::sync::Arc;
/// use k8s_openapi::api::core::v1::ConfigMap;
/// use serde_json::json;
/// use tokio_util::sync::CancellationToken;
/// use windlass::reflector::{MemorySource, Reflector, ReflectorState};
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
/// status.wait_for(|state| *state == ReflectorState::Watching).await;
/// assert_eq!(store.len(), 1);
/// stop.cancel();
/// # task.await.expect("it does not panic");
/// # Ok(())
/// # }
/// ```
pub struct Reflector<T> {
    /// Kind and scope, with their names in texts.
    pub(super) subject: ReflectedKind,
    /// Answers lists and watches.
    pub(super) source: Arc<dyn ListWatch>,
    /// Receives the objects.
    pub(super) sink: T,
    /// Options; they change only before the run.
    pub(super) options: ReflectorOptions,
    /// Clock, randomness and metrics.
    pub(super) environment: Environment,
    /// State for other tasks.
    pub(super) status: Arc<ReflectorStatus>,
    /// Findings about the server, shared with other reflectors.
    pub(super) capabilities: Arc<ServerCapabilities>,
    /// Handler of failures.
    pub(super) on_error: Option<ErrorHandler>,
    /// Decides about the next request, the pause, and the meaning of lists and watches.
    pub(super) machine: Machine,
    /// Suspicion that the server's store was set back, checked beside the watch.
    pub(super) rollback: RollbackCheck<VersionRead>,
    /// Time of the next resync of the sink.
    pub(super) resync_at: Option<Instant>,
}

/// Dependencies of a reflector that belongs to an informer.
pub(crate) struct ReflectorDeps {
    pub(crate) environment: Environment,
    pub(crate) status: Arc<ReflectorStatus>,
    pub(crate) capabilities: Arc<ServerCapabilities>,
    pub(crate) options: ReflectorOptions,
}

impl Reflector<DeltaWriter> {
    /// Creates the reflector of an informer.
    pub(crate) fn of_informer(
        source: Arc<dyn ListWatch>,
        writer: DeltaWriter,
        deps: ReflectorDeps,
    ) -> Self {
        let (info, namespace) = (writer.store.info().clone(), writer.namespace.clone());
        Self::from_parts(info, namespace, source, writer, deps)
    }
}

impl Reflector<StoreTarget> {
    /// Returns a reflector with a store of its own, and that store.
    pub fn into_store<K: Resource>(
        info: ResourceInfo,
        source: Arc<dyn ListWatch>,
    ) -> (Self, Store<K>) {
        let environment = Environment::system();
        let core = {
            let seed = environment.rng.fork("store").next_u64();
            let settings = store::StoreSettings::of::<K>(store::Representation::default(), None);
            store::StoreCore::with_settings(info.clone(), environment.clock.clone(), settings, seed)
        };
        let sink = StoreTarget::new(Arc::clone(&core), None);
        (Self::new(info, source, sink).environment(environment), Store::new(core))
    }
}

impl<T: ReflectorSink> Reflector<T> {
    /// Returns a reflector that is not running yet, with the system's clock and randomness, and
    /// the default options.
    pub fn new(info: ResourceInfo, source: Arc<dyn ListWatch>, sink: T) -> Self {
        let deps = ReflectorDeps {
            environment: Environment::system(),
            status: Arc::new(ReflectorStatus::new(info.to_string())),
            capabilities: Arc::default(),
            options: ReflectorOptions::default(),
        };
        Self::from_parts(info, None, source, sink, deps)
    }

    /// Creates a reflector from parts; the machine draws from the randomness of the environment.
    fn from_parts(
        info: ResourceInfo,
        namespace: Option<Arc<str>>,
        source: Arc<dyn ListWatch>,
        sink: T,
        deps: ReflectorDeps,
    ) -> Self {
        let ReflectorDeps { environment, status, capabilities, options } = deps;
        Self {
            machine: Machine::new(&options, environment.rng.clone()),
            rollback: RollbackCheck::new(&options, environment.rng.clone()),
            subject: ReflectedKind::new(info, namespace, status.description().to_owned()),
            source,
            sink,
            options,
            environment,
            status,
            capabilities,
            on_error: None,
            resync_at: None,
        }
    }

    /// Sets the reflector's name in logs, errors and the [`ReflectorStatus`]. Default: the
    /// resource, such as `pods`.
    #[must_use]
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.subject.what = name.into();
        self.status = Arc::new(ReflectorStatus::new(self.subject.what.clone()));
        self
    }

    /// Sets the options.
    ///
    /// Replaces all options that were set before.
    #[must_use]
    pub fn options(mut self, options: ReflectorOptions) -> Self {
        self.options = options;
        self.reset_state()
    }

    /// Sets clock, randomness and metrics.
    ///
    /// Default: the system's. A test sets an environment with a seed, and a paused clock.
    #[must_use]
    pub fn environment(mut self, environment: Environment) -> Self {
        self.environment = environment;
        self.reset_state()
    }

    /// Applies changed options or another environment to a reflector that is not running yet.
    fn reset_state(mut self) -> Self {
        self.machine = Machine::new(&self.options, self.environment.rng.clone());
        self.rollback = RollbackCheck::new(&self.options, self.environment.rng.clone());
        self
    }

    /// Sets a handler that is called after each failure, before the pause that follows. The handler
    /// must not block. The handler's panics are caught and logged.
    ///
    /// ```
    /// # extern crate windlass_cache as windlass;
    /// # use windlass::reflector::{Reflector, StoreTarget};
    /// # fn example(reflector: Reflector<StoreTarget>) -> Reflector<StoreTarget> {
    /// reflector.on_error(|error| {
    ///     eprintln!("{}: {}; again in {:?}", error.resource, error.state, error.pause);
    /// })
    /// # }
    /// ```
    #[must_use]
    pub fn on_error(mut self, handler: impl Fn(&ReflectorError) + Send + Sync + 'static) -> Self {
        self.on_error = Some(Arc::new(handler));
        self
    }

    /// Returns the status, which is readable while the reflector runs.
    pub fn status(&self) -> Arc<ReflectorStatus> {
        Arc::clone(&self.status)
    }

    /// Runs until `stop`, which ends any request or pause under way. No failure and no panic of the
    /// source ends the run.
    ///
    /// A reflector runs once: make another reflector to start anew. The sink keeps the content at
    /// the end.
    ///
    /// # Cancel safety
    /// Dropping the future ends the reflector as `stop` does, except for the
    /// [`ReflectorState::Stopped`] of the status.
    pub async fn run(mut self, stop: CancellationToken) {
        let status = Arc::clone(&self.status);
        tokio::select! {
            biased;
            // Biased: a stop wins over work that is ready.
            () = stop.cancelled() => {}
            () = self.run_attempts() => {}
        }
        status.set(ReflectorState::Stopped);
    }

    /// The loop: attempt, consequences, pause.
    async fn run_attempts(&mut self) {
        self.resync_at = self.options.resync.map(|period| self.environment.clock.after(period));
        loop {
            let mut open_for = Duration::ZERO;
            // A panic of the source costs a single attempt, not the reflector.
            let end = caught(self.attempt_and_check(&mut open_for))
                .await
                .unwrap_or_else(|panic| AttemptEnd::Panicked(panic_text(&*panic)));
            // Hands over the events that were read before the end.
            self.sink.hand_over().await;
            if let Some(pause) = self.finish_attempt(end, open_for) {
                // The consequences (an absent kind, a new epoch) must reach readers before the
                // pause, not afterwards.
                self.sink.hand_over().await;
                self.pause(pause).await;
            }
        }
    }

    /// Waits before the next attempt; ends early for an absent kind when a caller knows of the
    /// kind's creation.
    async fn pause(&mut self, pause: Duration) {
        tokio::select! {
            biased;
            // Only for an absent kind: a pause after any other failure protects the server.
            () = self.status.pause_ended(), if self.machine.is_absent() => {}
            () = self.environment.clock.sleep(pause) => {}
        }
    }

    /// Makes an attempt and returns the end; a 404 is checked first. `open_for` becomes the time
    /// for which the stream was open, which counts even if the check panics.
    async fn attempt_and_check(&mut self, open_for: &mut Duration) -> AttemptEnd {
        let end = self.attempt(open_for).await;
        self.check_not_found(end).await
    }

    /// Lists if necessary and follows changes until that ends.
    async fn attempt(&mut self, open_for: &mut Duration) -> AttemptEnd {
        if let Some(end) = self.discover_kind().await {
            return end;
        }
        let mut read = self.next_read();
        if let Read::Page { resource_version, limit, .. } = read {
            if let Err(end) = self.list(resource_version, limit).await {
                return end;
            }
            // The watch after the list.
            read = self.next_read();
        }
        self.watch(read, open_for).await
    }

    /// Returns the next request.
    fn next_read(&self) -> Read {
        self.machine.next_read(|| {
            self.source.streams_lists()
                && self.capabilities.streams_lists(self.environment.clock.now())
        })
    }

    /// Counts a frame or item that was not handed over.
    pub(super) fn dropped(&self, reason: &str) {
        let labels = [self.subject.resource.as_str(), reason];
        self.environment.metrics.count(&names::INFORMER_DROPPED, &labels, 1);
    }
}

impl<T> fmt::Debug for Reflector<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reflector")
            .field("what", &self.subject.what)
            .field("source", &self.source)
            .field("options", &self.options)
            .field("position", &self.machine.position())
            .field("state", &self.status.get())
            .finish_non_exhaustive()
    }
}
