//! What a reconcile can do and know.

mod access;
mod apply;
mod children;
mod expected;
mod gone;
mod patcher;
mod status;

use std::fmt;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use bytes::Bytes;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use parking_lot::Mutex;
use serde::Deserialize;
use tokio_util::sync::CancellationToken;

pub use self::apply::ApplyOwned;
pub use self::expected::{Expectations, Pending};
pub use self::patcher::ContextPatcher;
use self::status::Latest;
use super::Reconciler;
use super::changes::Changes;
use super::expectations::{Kind, What};
use super::reasons::{Reason, Reasons};
use super::spec::Stamp;
use super::step::Memory;
use super::superseded::Watch;
use super::turn::Turn;
use super::waking::Waking;
use crate::api::{Api, Write};
use crate::client::Client;
use crate::clock::Clock;
use crate::entropy::Entropy;
use crate::error::Error;
use crate::events::{EventKind, Recorder};
use crate::informer::InformerRegistry;
use crate::resource::{ObjectKey, ObjectRef, Resource, ResourceExt, ResourceInfo, Scope};
use crate::seams::Seams;
use crate::store::{Cached, Store};
use crate::workqueue::WorkQueue;

/// What is read of the answer to a deletion.
#[derive(Deserialize)]
struct Deleted {
    #[serde(default)]
    kind: String,
    details: Option<Details>,
    #[serde(default)]
    metadata: ObjectMeta,
}

#[derive(Deserialize)]
struct Details {
    uid: Option<String>,
}

/// What all reconciles of one run share; each worker has its own clone.
#[derive(Clone)]
pub(super) struct Reach {
    pub(super) controller: Arc<str>,
    pub(super) info: ResourceInfo,
    pub(super) client: Client,
    pub(super) informers: InformerRegistry,
    pub(super) recorder: Recorder,
    pub(super) queue: WorkQueue<ObjectKey>,
    pub(super) memory: Arc<Memory>,
    pub(super) waking: Arc<Waking>,
    pub(super) seams: Seams,
}

/// What a reconcile can do and know. The grants hang on `C`.
///
/// Writes through it carry the controller's name as field manager, and are refused once this process
/// lost its lease.
pub struct Context<C: Reconciler> {
    reach: Arc<Reach>,
    store: Arc<Store<C::Object>>,
    object: Arc<C::Object>,
    key: ObjectKey,
    turn: Turn,
    latest: Mutex<Option<Latest>>,
    /// As it was cached when the reconcile began.
    begun: Cached<C::Object>,
    /// As it was when it was last reconciled, if that is kept.
    before: Option<Cached<C::Object>>,
    watch: OnceLock<Watch>,
    /// The client for what may outlive the reconcile; made by the first who asks for it.
    lent: OnceLock<Client>,
    /// Has a read of this reconcile shown that the object is gone, or being deleted?
    has_ended: AtomicBool,
}

/// The object that a context is about.
pub(super) struct About<K> {
    pub(super) begun: Cached<K>,
    pub(super) object: Arc<K>,
    pub(super) before: Option<Cached<K>>,
}

fn is_namespaced<K: Resource>() -> bool {
    K::static_info().is_none_or(|info| info.scope == Scope::Namespaced)
}

impl<C: Reconciler> fmt::Debug for Context<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Context")
            .field("controller", &self.reach.controller)
            .field("object", &self.key)
            .field("attempt", &self.turn.attempt)
            .finish_non_exhaustive()
    }
}

impl<C: Reconciler> Context<C> {
    pub(super) fn new(
        reach: Arc<Reach>,
        store: Arc<Store<C::Object>>,
        about: About<C::Object>,
        turn: Turn,
    ) -> Self {
        let About { begun, object, before } = about;
        let key = begun.key().clone();
        let (latest, watch, lent) = (Mutex::new(None), OnceLock::new(), OnceLock::new());
        let has_ended = AtomicBool::new(false);
        Self { reach, store, object, key, turn, latest, begun, before, watch, lent, has_ended }
    }

    /// The same context about a newer version of the object.
    pub(super) fn with_object(self, object: C::Object) -> Self {
        Self { object: Arc::new(object), latest: Mutex::new(None), ..self }
    }

    /// The object that is reconciled, to keep or to send to a task.
    pub fn object(&self) -> &Arc<C::Object> {
        &self.object
    }

    /// Kind, namespace, name and uid of the object.
    pub fn object_ref(&self) -> ObjectRef {
        let uid = Some(self.object.uid().to_owned());
        ObjectRef { info: self.reach.info.clone(), key: self.key.clone(), uid }
    }

    /// The controller's name.
    pub fn controller(&self) -> &str {
        &self.reach.controller
    }

    /// The client, for what the methods of the context do not cover. No grant is checked at compile
    /// time: what you use it for has to stand in `can(…)` to be in the manifest.
    ///
    /// A task may keep a clone of it. When the reconcile ends by itself, the clone goes on writing for as
    /// long as this process leads. When the reconcile is dropped (at its deadline, at the end of the
    /// drain, or superseded), writes of the clone are refused with
    /// [`ErrorKind::Cancelled`](crate::ErrorKind::Cancelled) from then on.
    pub fn client(&self) -> &Client {
        self.lent.get_or_init(|| self.turn.cancel.gated(&self.reach.client, &self.key))
    }

    /// The cache of the reconciled kind.
    pub fn store(&self) -> &Store<C::Object> {
        &self.store
    }

    /// Reports an Event about the object, [`Normal`](crate::events::Normal) or
    /// [`Warning`](crate::events::Warning): `reason` is one word in `CamelCase` for programs, `note` a
    /// sentence for people. Never waits and never fails; the same event again is counted. Of different
    /// ones an object may cause 25 at once and one more each 5 min, so that no object fills the cluster
    /// with Events: what is beyond that is dropped, with a line in the log at the level debug.
    pub fn event(&self, kind: EventKind, reason: &str, note: impl fmt::Display) {
        self.reach.recorder.event(&self.object_ref(), kind, reason, note);
    }

    /// Has another object of the reconciled kind, or this one again, reconciled soon.
    pub fn requeue(&self, key: ObjectKey) {
        self.reach.queue.add_with(key, Reason::ASKED.adding());
    }

    /// Cancelled when the operator shuts down, and when this reconcile hit its deadline: a long
    /// reconcile should end soon then. Until it is dropped, at its deadline or the end of the drain, it
    /// may still write, unless the lease was lost: then every write is refused.
    ///
    /// A task that it spawned is not dropped with it: give that a clone of the token, and let it end.
    /// What it writes after that through a clone of [`client`](Self::client) is refused.
    pub fn cancellation(&self) -> &CancellationToken {
        self.turn.cancel.token()
    }

    /// Waits until the reconcile should end; see [`cancellation`](Self::cancellation).
    ///
    /// # Cancel safety
    /// Safe.
    pub async fn cancelled(&self) {
        self.turn.cancel.token().cancelled().await;
    }

    /// Is this reconcile superseded: did the object's spec change since it began (by
    /// `metadata.generation`; in kinds without one, by anything but metadata and status), was it marked
    /// for deletion, or is it gone? What is done now is for a state that nobody wants any more, and
    /// the object is reconciled again at once after this. A change of the spec by this reconcile
    /// itself counts, too.
    pub fn superseded(&self) -> bool {
        let begun = Stamp::of(&self.begun);
        self.store.get(&self.key).is_none_or(|now| Stamp::of(&now) != begun)
    }

    /// Waits until this reconcile is [superseded](Self::superseded).
    ///
    /// # Cancel safety
    /// Safe.
    pub async fn until_superseded(&self) {
        let all = &self.reach.memory.superseded;
        let watch = self.watch.get_or_init(|| all.watch(&self.key, Stamp::of(&self.begun)));
        // A change that came before the look after it began told nobody.
        if !self.superseded() {
            watch.token().cancelled().await;
        }
    }

    /// What changed since this object was last reconciled with success; to be asked for by
    /// [`Wiring::track_changes`](super::Wiring::track_changes).
    ///
    /// `None` when that is not known: at its first reconcile, after a restart or a change of leaders,
    /// or because its last state did not fit. Take everything as changed then.
    pub fn changes(&self) -> Option<Changes<C::Object>> {
        let before = self.before.clone()?;
        Some(Changes::between(before, self.begun.clone()))
    }

    /// How many reconciles of this object failed in a row before this one, those with a
    /// [delay of their own](super::Failure::retry_after) not counted.
    pub fn attempt(&self) -> u32 {
        self.turn.attempt
    }

    /// Why the object is reconciled: everything that came together since it was last looked at. For
    /// logs and for work that one source alone makes necessary; see [`Reasons`] for what it does not
    /// promise.
    pub fn reasons(&self) -> Reasons {
        self.reach.waking.named(self.turn.reasons)
    }

    /// `delay`, and up to a tenth more, for [`Action::requeue_after`](super::Action::requeue_after):
    /// objects that were reconciled together do not stay together.
    pub fn spread(&self, delay: Duration) -> Duration {
        delay.saturating_add(self.reach.seams.entropy.jitter(delay / 10))
    }

    /// Did a reconcile of this object write more than 10 s ago, to the object itself or to another
    /// that is cached, and the watch has not shown it yet? What is read of that is then older than
    /// the write.
    pub fn stale(&self) -> bool {
        let ledger = &self.reach.memory.applied.ledger;
        self.store.is_stale(&self.key) || ledger.is_stale(&self.key, &self.reach.informers)
    }

    /// Time, as the whole operator sees it.
    pub fn clock(&self) -> &Clock {
        &self.reach.seams.clock
    }

    /// Randomness, as the whole operator draws it.
    pub fn entropy(&self) -> &Entropy {
        &self.reach.seams.entropy
    }

    /// The object as it was cached when the reconcile began.
    pub(super) fn begun(&self) -> &Cached<C::Object> {
        &self.begun
    }

    /// The reconciled kind where the object lives.
    pub(super) fn own_api(&self) -> Api<C::Object> {
        self.nearby()
    }

    /// Kind `K` in the object's namespace, or in all when either has none. For calls that are dropped with
    /// the reconcile.
    fn nearby<K: Resource>(&self) -> Api<K> {
        self.nearby_by(&self.reach.client)
    }

    /// The same, by that client.
    fn nearby_by<K: Resource>(&self, client: &Client) -> Api<K> {
        match self.key.namespace() {
            Some(namespace) if is_namespaced::<K>() => client.namespace(namespace),
            _ => client.all(),
        }
    }

    /// A write of ours on top of version `from` left the object like this, by the API server's answer.
    pub(super) fn wrote_own(&self, from: &str, object: &C::Object, answer: &[u8]) {
        self.wrote_upon(from, object, answer);
    }

    /// As [`wrote_own`](Self::wrote_own), for the same object in another form.
    fn wrote_upon<K: Resource>(&self, from: &str, object: &K, answer: &[u8]) {
        // What was not reconciled in this turn is news, whoever writes upon it.
        let begun = if self.turn.cancel.began_at(from) { from } else { "" };
        let to = object.resource_version();
        self.reach.memory.echoes.wrote(&self.key, begun, (from, to));
        self.show::<K>(answer);
    }

    /// Shows the caches what a write of ours left, by the API server's answer, before the watch does. A
    /// type may have a part of it only: the answer is all there is.
    fn show<K: Resource>(&self, answer: &[u8]) {
        // A kind that nobody reads from a cache gets none for being written.
        for cache in self.reach.informers.all_caches_of::<K>() {
            if let Err(error) = cache.wrote_answer(answer) {
                // The watch will show it.
                tracing::debug!(%error, "an own write is not shown before the watch does");
            }
        }
    }

    /// Sends a write. One whose answer is no `K` was executed all the same: caches show it.
    async fn answered<K: Resource>(&self, write: Write<K>) -> Result<(K, Bytes), Error> {
        let (decoded, answer) = write.executed().await?;
        if decoded.is_err() {
            self.show::<K>(&answer);
        }
        Ok((decoded?, answer))
    }

    /// As [`show`](Self::show), and remembers it until the watch has shown it.
    fn wrote<K: Resource>(&self, what: What, object: &K, answer: &[u8]) {
        self.show::<K>(answer);
        let key = object.key().in_cluster(self.key.cluster());
        self.sent::<K>(what, &key, object.uid());
    }

    /// Remembers a write until the watch has shown it.
    fn sent<K: Resource>(&self, what: What, key: &ObjectKey, uid: &str) {
        let caches = self.reach.informers.caches_of::<K>();
        // A change that no cache shows early is one that nobody can miss.
        let is_news = match what {
            What::Changed => caches.iter().any(|cache| cache.store().unseen(key).is_some()),
            What::Created | What::Deleted => !caches.is_empty(),
        };
        if let Some(kind) = Kind::of::<K>().filter(|_| is_news) {
            let now = self.reach.seams.clock.now();
            self.reach.memory.applied.ledger.sent(self.whose(), kind, (what, key, uid), now);
        }
    }

    /// The uid of what the cache shows at `key`.
    fn cached_uid<K: Resource>(&self, key: &ObjectKey) -> Option<String> {
        let caches = self.reach.informers.caches_of::<K>();
        let cached = caches.iter().find_map(|cache| cache.store().get(key));
        cached.map(|cached| cached.head().uid().to_owned())
    }

    /// Shows the cache what a deletion of ours left, by the API server's answer.
    fn deleted<K: Resource>(&self, key: &ObjectKey, answer: &[u8]) {
        let Ok(said) = serde_json::from_slice::<Deleted>(answer) else { return };
        let metadata = &said.metadata;
        let is_held = metadata.finalizers.as_ref().is_some_and(|held| !held.is_empty())
            || metadata.deletion_grace_period_seconds != Some(0);
        let uid = if said.kind == "Status" {
            said.details.and_then(|details| details.uid)
        } else if metadata.deletion_timestamp.is_some() && is_held {
            let uid = said.metadata.uid.unwrap_or_default();
            self.show::<K>(answer);
            return self.sent::<K>(What::Deleted, key, &uid);
        } else {
            // Some kinds answer with their last state when they are gone.
            said.metadata.uid
        };
        if let Some(uid) = uid {
            self.gone::<K>(key, &uid);
        }
    }

    /// Shows the cache that the object of that uid is gone by a deletion.
    fn gone<K: Resource>(&self, key: &ObjectKey, uid: &str) {
        for cache in self.reach.informers.all_caches_of::<K>() {
            if cache.covers(key.namespace()) {
                cache.deleted(key, uid);
            }
        }
        self.sent::<K>(What::Deleted, key, uid);
    }
}
