//! The reflector itself: what it is made of, and its loop.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::absence::Absence;
use super::backoff::Backoff;
use super::doubt::Doubt;
use super::expect::Expected;
use super::feed::Feed;
use super::habits::Habits;
use super::position::Position;
use super::setback::Setback;
use super::target::{StoreTarget, Target};
use super::{ListWatch, MOST_BROKEN_STREAMS, ReflectorOptions, State, Status};
use crate::metrics::names;
use crate::panics::{caught, panic_text};
use crate::resource::{Resource, ResourceInfo};
use crate::seams::Seams;
use crate::store::{self, Store};

/// Something went wrong, and what follows.
#[derive(Clone, Debug)]
pub struct Trouble {
    /// What is read, for people: `pods in "shop"`.
    pub what: String,
    /// The state that follows from it, with the reason.
    pub state: State,
    /// How long it waits before it tries again.
    pub pause: Duration,
}

/// Is told of trouble.
pub(super) type OnTrouble = Arc<dyn Fn(&Trouble) + Send + Sync>;

/// Keeps a [`Target`] in step with one kind in one scope of a source, until it is stopped.
///
/// Informers are made of these. One by itself is for a cache of another kind than theirs:
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
    /// `pods in "shop"`, for logs and texts.
    pub(super) what: String,
    /// `deployments.apps`, for metrics.
    pub(super) resource: String,
    pub(super) source: Arc<dyn ListWatch>,
    pub(super) target: T,
    pub(super) options: ReflectorOptions,
    pub(super) seams: Seams,
    pub(super) status: Arc<Status>,
    pub(super) habits: Arc<Habits>,
    pub(super) backoff: Backoff,
    pub(super) expected: Expected,
    pub(super) on_trouble: Option<OnTrouble>,
    pub(super) position: Position,
    /// May the server's store have been set back?
    pub(super) doubt: Doubt,
    /// Why the next list is made.
    pub(super) cause: &'static str,
    /// The version that the list under way named.
    pub(super) asked_version: Option<String>,
    /// The last version seen cannot be listed from: the next list is a consistent read.
    pub(super) needs_consistent: bool,
    /// The server was seen to page a list that it could have answered from memory.
    pub(super) pages_any_version: bool,
    /// Pages expire faster than they are read: the next list is made without a limit.
    pub(super) unpaged: bool,
    /// Streaming lists that ended before their end mark, in a row.
    pub(super) broken_streams: u32,
    /// Lists that failed, in a row.
    pub(super) failed_lists: u32,
    /// Items of this list, and those that could not be read or are of another kind: while there are
    /// some, nothing is taken for deleted.
    pub(super) listed: u64,
    pub(super) unreadable: usize,
    pub(super) list_began: Instant,
    /// Was it said that objects of another kind come?
    pub(super) said_unexpected: bool,
    /// The kind is not served.
    pub(super) absence: Option<Absence>,
    /// Since when the server answers 404 for what is cached, and is not believed.
    pub(super) doubted_since: Option<Instant>,
    /// Since when watches end by internal errors.
    pub(super) internal_since: Option<Instant>,
    /// When a watch was last told that its version is too old, and the list followed at once.
    pub(super) expired_at: Option<Instant>,
    /// When to list again because the last list was complete in part only.
    pub(super) again_at: Option<Instant>,
    pub(super) resync_at: Option<Instant>,
    /// How long the last stream was open.
    pub(super) lived: Duration,
}

/// What a reflector is given by those who run several.
pub(crate) struct Wiring {
    pub(crate) seams: Seams,
    pub(crate) status: Arc<Status>,
    pub(crate) habits: Arc<Habits>,
    pub(crate) options: ReflectorOptions,
}

impl Reflector<Feed> {
    /// The reflector of an informer.
    pub(crate) fn of_informer(source: Arc<dyn ListWatch>, feed: Feed, wiring: Wiring) -> Self {
        let (info, namespace) = (feed.store.info().clone(), feed.namespace.clone());
        Self::wired(info, namespace, source, feed, wiring)
    }
}

impl Reflector<StoreTarget> {
    /// A reflector that fills a store of its own, and that store.
    pub fn into_store<K: Resource>(
        info: ResourceInfo,
        source: Arc<dyn ListWatch>,
    ) -> (Self, Store<K>) {
        let seams = Seams::system();
        let core = {
            let seed = seams.entropy.fork("store").next_u64();
            let mode = store::Mode::of::<K>(store::Representation::default(), None);
            store::Core::with_mode(info.clone(), seams.clock.clone(), mode, seed)
        };
        let target = StoreTarget::new(Arc::clone(&core), None);
        (Self::new(info, source, target).seams(seams), Store::new(core))
    }
}

impl<T: Target> Reflector<T> {
    /// A reflector that does nothing yet. With the machine's clock and randomness, and the default
    /// options.
    pub fn new(info: ResourceInfo, source: Arc<dyn ListWatch>, target: T) -> Self {
        let wiring = Wiring {
            seams: Seams::system(),
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
        wiring: Wiring,
    ) -> Self {
        let Wiring { seams, status, habits, options } = wiring;
        Self {
            backoff: Backoff::new(&options, seams.entropy.clone()),
            doubt: Doubt::new(&options, seams.entropy.clone()),
            expected: Expected::new(&info),
            resource: info.group_resource(),
            what: status.what().to_owned(),
            list_began: seams.clock.now(),
            info,
            namespace,
            source,
            target,
            options,
            seams,
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

    /// Its name in logs, texts and its [`Status`]. Default: the resource, such as `pods`.
    #[must_use]
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.what = name.into();
        self.status = Arc::new(Status::new(self.what.clone()));
        self
    }

    /// How it reads.
    #[must_use]
    pub fn options(mut self, options: ReflectorOptions) -> Self {
        self.options = options;
        self.backoff = self.new_backoff();
        self.doubt = Doubt::new(&self.options, self.seams.entropy.clone());
        self
    }

    /// Clock, randomness and metrics.
    #[must_use]
    pub fn seams(mut self, seams: Seams) -> Self {
        self.seams = seams;
        self.backoff = self.new_backoff();
        self.doubt = Doubt::new(&self.options, self.seams.entropy.clone());
        self
    }

    /// Calls `handler` whenever something went wrong, before the pause that follows. It must not
    /// block. A panic of it is caught and logged.
    #[must_use]
    pub fn on_trouble(mut self, handler: impl Fn(&Trouble) + Send + Sync + 'static) -> Self {
        self.on_trouble = Some(Arc::new(handler));
        self
    }

    /// What it is doing, readable while it runs.
    pub fn status(&self) -> Arc<Status> {
        Arc::clone(&self.status)
    }

    /// Runs until `stop`, which ends whatever request or pause is under way. Nothing that happens to
    /// the source ends it, and no panic of the source.
    ///
    /// # Cancel safety
    /// Dropping it ends it as `stop` does, but for the [`State::Stopped`] of its status.
    pub async fn run(mut self, stop: CancellationToken) {
        let status = Arc::clone(&self.status);
        tokio::select! {
            biased;
            () = stop.cancelled() => {}
            () = self.run_forever() => {}
        }
        status.set(State::Stopped);
    }

    async fn run_forever(&mut self) {
        self.resync_at = self.options.resync.map(|period| self.seams.clock.after(period));
        loop {
            self.lived = Duration::ZERO;
            let setback = caught(self.end())
                .await
                .unwrap_or_else(|panic| Setback::Panicked(panic_text(&*panic)));
            // Whatever was read before the end counts.
            self.target.room().await;
            if let Some(pause) = self.answer(setback) {
                self.target.room().await;
                self.rest(pause).await;
            }
        }
    }

    /// The pause before the next attempt, which ends early for an absent kind that is known to have
    /// come.
    async fn rest(&mut self, pause: Duration) {
        tokio::select! {
            biased;
            () = self.status.nudged(), if self.absence.is_some() => {}
            () = self.seams.clock.sleep(pause) => {}
        }
    }

    /// The end of an attempt, as it is believed.
    async fn end(&mut self) -> Setback {
        let setback = self.attempt().await;
        self.doubt(setback).await
    }

    async fn attempt(&mut self) -> Setback {
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

    fn lists_by_stream(&self) -> bool {
        self.options.streaming
            && self.source.streams_lists()
            && self.habits.streams_lists(self.seams.clock.now())
            && self.broken_streams < MOST_BROKEN_STREAMS
    }

    /// Counts a frame or item that was not told.
    pub(super) fn dropped(&self, reason: &str) {
        self.seams.metrics.count(&names::INFORMER_DROPPED, &[&self.resource, reason], 1);
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
