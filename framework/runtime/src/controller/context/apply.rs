//! Apply of a child: creates a missing child or updates an owned child, and never overwrites a
//! foreign object.
//!
//! The API server, and not the cache, decides whether a child exists and is owned, when it executes
//! the apply: each apply carries a resourceVersion, and a uid for an existing child. A child that
//! the cache shows as owned is applied upon the cached version. A child that is not cached is
//! applied upon a version that no object ever has: API servers ignore that version when there is no
//! such object, and answer 409 when the object exists.
//!
//! A run of an apply has at most `TRIES` rounds. Each round starts from an assumption about the
//! object of the child's name (none, an owned child at a version, a foreign object) and sends a
//! request that the API server refuses if the assumption is wrong; a 409 leads to a read, and that
//! to the next assumption. So no round can overwrite an object that appeared between the read and
//! the request.
//!
//! No request is sent for an apply that would change nothing: when the same intent was applied
//! before and the fields that were applied are unchanged, or when the child has all fields of the
//! intent and the controller owns exactly those. The first case needs the memory of this process,
//! the second only the content of the cache.

// DESIGN.md, 14: `apply_owned` creates or owns a child; adoption is explicit
// DESIGN.md, 168: A child is compared with its intent by the fields that were applied
// DESIGN.md, 191: An apply that lost an empty object of the intent is sent once more
// DESIGN.md, 76: `apply_owned` sends uid and resourceVersion as preconditions

mod adoption;
mod intent;

use std::fmt;
use std::future::IntoFuture;
use std::sync::Arc;

use serde_json::Value;

use self::intent::Ownership;
use crate::controller::state::{
    ChangeLog, ChildHashes, ChildVersion, IntentHashes, RecalledApply, WriteEffect, applied_in,
    comparable, difference, differences, fingerprint, has_lost, owned_content,
};
use crate::controller::{Context, Reconciler};
use crate::events::Normal;
use windlass_cache::store::{Cached, FieldTree};
use windlass_client::api::{Api, ApiFuture};
use windlass_core::error::{Error, ErrorKind};
use windlass_core::resource::{FullObject, ObjectKey, Resource, ResourceExt, ResourceInfo};

/// Most checks of the object of the child's name while others keep writing.
pub(super) const TRIES: u32 = 5;
/// A version that no object ever has: API servers count in 63 bits, from 1.
const NO_VERSION: &str = "9223372036854775807";

/// Decides whether an existing object may become a child.
type MayAdopt<'a, K> = Box<dyn Fn(&K) -> bool + Send + Sync + 'a>;

/// A child about to be applied, from [`Context::apply_owned`]; await this future for the stored
/// child.
///
/// Created by [`Context::apply_owned`], which describes the effects and errors.
#[must_use = "nothing is applied until it is awaited"]
pub struct ApplyOwned<'a, C: Reconciler, K> {
    /// The reconcile that applies the child.
    cx: &'a Context<C>,
    /// The child as the reconciler describes it, as JSON.
    child: Result<Value, Error>,
    /// Condition under which an object of another owner becomes the child; none was given by
    /// default.
    may_adopt: Option<MayAdopt<'a, K>>,
    /// Whether the child carries a mark instead of an owner reference.
    is_marked: bool,
    /// Hash of the description in a graph that the child was made of.
    description: Option<u64>,
    /// Starts the apply. A function of kinds, so that awaiting the apply of another type is no
    /// second error.
    start: fn(Self) -> ApiFuture<'a, K>,
}

impl<C: Reconciler, K> fmt::Debug for ApplyOwned<'_, C, K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ApplyOwned").field("cx", self.cx).finish_non_exhaustive()
    }
}

impl<'a, C: Reconciler, K: FullObject> ApplyOwned<'a, C, K> {
    pub(super) fn new(cx: &'a Context<C>, child: Result<Value, Error>) -> Self {
        let start = Self::start;
        Self { cx, child, may_adopt: None, is_marked: false, description: None, start }
    }

    fn start(self) -> ApiFuture<'a, K> {
        Box::pin(async move {
            let Self { cx, child, may_adopt, is_marked, description, .. } = self;
            let (child, intent, owner) = cx.intent::<K>(child?, is_marked)?;
            let hashes = IntentHashes { intent: fingerprint(&intent), description };
            let different = None;
            Apply { cx, child, intent, owner, hashes, may_adopt, different }.run().await
        })
    }

    /// Takes over any existing object of that kind and name, unless another object controls it: the
    /// object becomes a child, gets the fields of the child, and is deleted with the reconciled
    /// object. For children that were restored from a backup, or orphaned on purpose.
    ///
    /// If users choose the name of the child through the object, they thereby choose which object
    /// is overwritten, with the rights of the operator: [`adopt_if`](Self::adopt_if) limits that to
    /// objects that opt in.
    pub fn adopt(self) -> Self {
        self.adopt_if(|_| true)
    }

    /// As [`adopt`](Self::adopt), for objects for which `may` returns true; the function receives
    /// the object as stored in the API server, and the object is taken over at exactly that
    /// version.
    ///
    /// ```
    /// # extern crate windlass_runtime as windlass;
    /// # use k8s_openapi::api::core::v1::ConfigMap;
    /// # use windlass::controller::{Action, Context, Reconciler, Result};
    /// # use windlass::prelude::*;
    /// # struct Sites;
    /// # impl windlass::rbac::Owns<ConfigMap> for Sites {}
    /// # impl Reconciler for Sites {
    /// #     type Object = ConfigMap;
    /// # async fn reconcile(&self, site: &ConfigMap, cx: &Context<Self>) -> Result {
    /// # let page = ConfigMap::default();
    /// let is_ours = |map: &ConfigMap| map.label("app.kubernetes.io/managed-by") == Some("sites");
    /// cx.apply_owned(page).adopt_if(is_ours).await?;
    /// # Ok(Action::done())
    /// # }
    /// # }
    /// ```
    pub fn adopt_if(mut self, may: impl Fn(&K) -> bool + Send + Sync + 'a) -> Self {
        self.may_adopt = Some(Box::new(may));
        self
    }

    /// Lets the child be cluster-scoped, or in a namespace of its own: such a child carries a mark
    /// instead of an owner reference, and no garbage collection deletes it.
    pub(crate) fn marked(mut self) -> Self {
        self.is_marked = true;
        self
    }

    /// Sets the hash of the description that the child was made of.
    pub(crate) fn described(mut self, description: Option<u64>) -> Self {
        self.description = description;
        self
    }
}

impl<'a, C: Reconciler, K> IntoFuture for ApplyOwned<'a, C, K> {
    type Output = Result<K, Error>;
    type IntoFuture = ApiFuture<'a, K>;

    fn into_future(self) -> Self::IntoFuture {
        (self.start)(self)
    }
}

/// The object found under the name of the child.
enum FoundObject<K> {
    /// No object of that name.
    Absent,
    /// A child of the reconciled object, by uid.
    Owned(Version),
    /// An object that the reconciled object does not control.
    Foreign(Box<K>),
}

/// Identity and version of an owned child.
struct Version {
    /// Guards against a successor of the same name.
    uid: String,
    /// Guards against changes since the child was read.
    resource_version: String,
}

impl Version {
    /// Returns the identity of a child that was read.
    fn of<K: Resource>(child: &K) -> Self {
        let (uid, resource_version) = (child.uid().into(), child.resource_version().into());
        Self { uid, resource_version }
    }
}

/// A request of an apply that was answered.
enum ApplyResponse<K> {
    /// The child from the API server's answer. Boxed, because the other variant is small.
    Whole(Box<K>),
    /// The answer lacks an empty object or list of the intent: the same apply upon this version
    /// creates the missing part.
    InPart(Version),
}

/// Apply of a child, through all attempts.
struct Apply<'a, C: Reconciler, K> {
    cx: &'a Context<C>,
    /// Kind and key, under which the memory of applies keeps the child.
    child: (ResourceInfo, ObjectKey),
    /// The body of the request, with kind, namespace and owner.
    intent: Value,
    /// The reconciled object, as named by the child.
    owner: Ownership,
    /// Hashes of the intent: an equal intent that was applied before needs no request.
    hashes: IntentHashes,
    may_adopt: Option<MayAdopt<'a, K>>,
    /// The child of the last comparison, if different from the intent.
    different: Option<DifferingChild>,
}

/// A child that differs from the intent.
struct DifferingChild {
    /// The child at its comparison.
    state: Value,
    /// Path of a difference.
    path: String,
    /// Whether the same intent was applied to the child before, so that others have changed the
    /// child since.
    is_drift: bool,
}

impl<C: Reconciler, K: FullObject> Apply<'_, C, K> {
    /// Applies the child, and handles conflicts with the object of the same name.
    async fn run(mut self) -> Result<K, Error> {
        let (cx, key) = (self.cx, self.child.1.clone());
        // Whether an owned child was there. The child's absence now may be the work of garbage
        // collection.
        let mut was_ours = false;
        let mut found = match cx.cached::<K>(&key) {
            Some(cached) if cx.holds(&cached) => match self.unchanged(&cached) {
                Some(child) => return Ok(child),
                None => FoundObject::Owned(Version {
                    uid: cached.metadata().uid().to_owned(),
                    resource_version: cached.metadata().resource_version().to_owned(),
                }),
            },
            // Applied before, but not cached: the cache is limited to other objects, or lags
            // behind.
            None if cx.shared.memory.applied.knows(&cx.key, &self.child) => {
                was_ours = true;
                match self.api().get_opt(key.name()).await? {
                    Some(live) if self.is_ours(&live) && self.is_current(&live) => return Ok(live),
                    live => self.classify(live),
                }
            }
            _ => FoundObject::Absent,
        };
        let (mut refused, mut is_repeated) = (None, false);
        for _ in 0..TRIES {
            was_ours |= matches!(found, FoundObject::Owned(_));
            let upon = match (found, refused.take()) {
                (FoundObject::Owned(version), _) => Some(version),
                (FoundObject::Foreign(live), Some(error)) => self.take_over(*live, error).await?,
                // The child vanished: garbage collection may have removed it because the owner is
                // gone.
                (FoundObject::Absent, _) if was_ours => {
                    cx.ensure_alive(&self.what()).await?;
                    None
                }
                (FoundObject::Absent | FoundObject::Foreign(_), _) => {
                    cx.before_creating(&self.what()).await?;
                    None
                }
            };
            let may_lose = upon.is_some() && !is_repeated;
            match self.send(upon, may_lose).await {
                Err(error) if error.code() == Some(409) => {
                    let live = self.api().get_opt(key.name()).await?;
                    found = match live {
                        Some(live) if self.is_ours(&live) && self.is_current(&live) => {
                            return Ok(live);
                        }
                        live => self.classify(live),
                    };
                    refused = Some(error);
                }
                Ok(ApplyResponse::InPart(version)) => {
                    is_repeated = true;
                    found = FoundObject::Owned(version);
                }
                Ok(ApplyResponse::Whole(child)) => return Ok(*child),
                Err(error) => return Err(error),
            }
        }
        let error = refused.unwrap_or_else(|| Error::new(ErrorKind::Conflict, self.what()));
        Err(error.note(&format!("tried {TRIES} times: others keep writing")))
    }

    /// Returns the cached child, if an apply would change nothing.
    fn unchanged(&mut self, cached: &Cached<K>) -> Option<K> {
        let metadata = cached.metadata();
        let found =
            ChildVersion { uid: metadata.uid(), resource_version: metadata.resource_version() };
        let manager = &self.cx.shared.controller;
        let informers = &self.cx.shared.informers;
        let state = || {
            // Where a transform removed fields, a difference may be overlooked, or not exist.
            let is_whole = informers.pinned::<K>().keeps_intents();
            comparable(&*cached.get().ok()?).filter(|_| is_whole)
        };
        if !self.needs_nothing(found, state, || cached.applied_fields(manager)) {
            return None;
        }
        cached.get().ok().map(Arc::unwrap_or_clone)
    }

    /// As [`unchanged`](Self::unchanged), for the object in the API server.
    fn is_current(&mut self, live: &K) -> bool {
        let found = ChildVersion { uid: live.uid(), resource_version: live.resource_version() };
        let manager = &self.cx.shared.controller;
        self.needs_nothing(found, || comparable(live), || applied_in(live, manager))
    }

    /// Whether an apply would change nothing; else keeps the difference. `state` and `fields`
    /// return the child and the fields that were applied to it, and are called when the child's
    /// version is not known.
    fn needs_nothing(
        &mut self,
        found: ChildVersion<'_>,
        state: impl FnOnce() -> Option<Value>,
        fields: impl FnOnce() -> Option<FieldTree>,
    ) -> bool {
        let (cx, applied) = (self.cx, &self.cx.shared.memory.applied);
        let last = match applied.recall(&cx.key, &self.child, self.hashes, found) {
            RecalledApply::Current => return true,
            RecalledApply::Changed(hashes) => Some(hashes),
            RecalledApply::Unknown => None,
        };
        let Some(state) = state() else { return false };
        let content = fingerprint(&state);
        let mut hashes = ChildHashes { content, owned: last.and_then(|last| last.owned) };
        // A change of the status alone.
        let mut path = None;
        if last != Some(hashes) {
            let fields = fields();
            hashes.owned = fields.as_ref().map(|fields| owned_content(fields, &state));
            // The applied fields are unchanged since the API server's answer, whatever a webhook
            // made of the intent.
            let is_untouched =
                hashes.owned.is_some() && last.is_some_and(|last| last.owned == hashes.owned);
            path = match fields {
                _ if is_untouched => None,
                Some(fields) => difference(&self.child.0, &self.intent, &state, &fields),
                None => Some(String::new()),
            };
        }
        match path {
            // Unchanged in appearance only: the state may be the answer to an earlier dry run, of
            // which nothing is stored.
            None if cx.is_dry_run() => {}
            // Remembers the version: the next check of this version needs no comparison.
            None => applied.note(&cx.key, &self.child, (self.hashes, hashes), found),
            Some(path) => {
                self.different = Some(DifferingChild { state, path, is_drift: last.is_some() });
                return false;
            }
        }
        true
    }

    /// Whether `live` is a child of the reconciled object.
    fn is_ours(&self, live: &K) -> bool {
        self.cx.holds_live(live)
    }

    /// Classifies the object of the child's name.
    fn classify(&self, live: Option<K>) -> FoundObject<K> {
        match live {
            None => FoundObject::Absent,
            Some(live) if self.is_ours(&live) => FoundObject::Owned(Version::of(&live)),
            Some(live) => FoundObject::Foreign(Box::new(live)),
        }
    }

    fn api(&self) -> Api<K> {
        self.cx.api_of(&self.child.1)
    }

    /// Returns kind and key of the child, for messages.
    fn what(&self) -> String {
        format!("{} \"{}\"", self.child.0.kind, self.child.1)
    }

    /// Applies upon that version of an owned child; without a version, creates the child.
    ///
    /// The apply is forced: fields of a child belong to its controller, and foreign edits of them
    /// are reset. Fields that others decide on, as an autoscaler on the number of replicas, are
    /// left out of the child. A foreign object is never overwritten, because the version protects
    /// that object.
    ///
    /// With `may_lose` the answer may lack an empty object or list of the intent, and is then
    /// incomplete.
    async fn send(
        &mut self,
        upon: Option<Version>,
        may_lose: bool,
    ) -> Result<ApplyResponse<K>, Error> {
        let what = if upon.is_none() { WriteEffect::Created } else { WriteEffect::Changed };
        let metadata = &mut self.intent["metadata"];
        match upon {
            Some(Version { uid, resource_version }) => {
                metadata["uid"] = uid.into();
                metadata["resourceVersion"] = resource_version.into();
            }
            None => {
                metadata.as_object_mut().and_then(|metadata| metadata.remove("uid"));
                metadata["resourceVersion"] = NO_VERSION.into();
            }
        }
        let cx = self.cx;
        let write = self.api().apply(self.child.1.name(), &self.intent);
        let write = write.manager(&cx.shared.controller).force();
        let (child, answer) = cx.answered(write, ("apply", &self.child.1)).await?;
        // A dry run changes nothing that later applies could be compared with.
        let state = comparable(&child).filter(|_| !cx.is_dry_run());
        let is_whole = state.as_ref().is_none_or(|state| self.note(&child, state, may_lose));
        cx.wrote(what, &child, &answer);
        if let (Some(different), Some(state)) = (self.different.take(), state) {
            self.report(&different, &state);
        }
        Ok(match is_whole {
            true => ApplyResponse::Whole(Box::new(child)),
            false => ApplyResponse::InPart(Version::of(&child)),
        })
    }

    /// Remembers an answer to the apply, for comparison with later ones. Returns whether nothing is
    /// left to be applied: if a part is left, and the next request fails or is not made, another
    /// apply must find that part.
    fn note(&self, child: &K, state: &Value, may_lose: bool) -> bool {
        let (cx, applied) = (self.cx, &self.cx.shared.memory.applied);
        let fields = applied_in(child, &cx.shared.controller);
        let has_lost = |fields| has_lost(&self.child.0, &self.intent, state, fields);
        if may_lose && fields.as_ref().is_some_and(has_lost) {
            applied.note_partial(&cx.key, &self.child);
            return false;
        }
        let owned = fields.map(|fields| owned_content(&fields, state));
        let hashes = ChildHashes { content: fingerprint(state), owned };
        let found = ChildVersion { uid: child.uid(), resource_version: child.resource_version() };
        applied.note(&cx.key, &self.child, (self.hashes, hashes), found);
        true
    }

    /// Reports the fields that an apply has set back: from the child before and after it, since
    /// neither the API server nor the comparison says which values were changed.
    fn report(&self, different: &DifferingChild, after: &Value) {
        let (cx, (info, key)) = (self.cx, &self.child);
        let before = Some(&different.state);
        let (changes, more) = differences(info, (before, after), ChangeLog::Summary);
        // A change of the intent, or of the ownership alone.
        if !different.is_drift || changes.is_empty() {
            let (child, path) = (self.what(), &different.path);
            tracing::debug!(
                child,
                path,
                changes = changes.len() + more,
                "a child that differed was applied"
            );
            return;
        }
        let fields: Vec<_> = changes.iter().map(|change| change.path.clone()).collect();
        let now = cx.shared.environment.clock.now();
        cx.shared.memory.fights.corrected(&cx.key, &self.what(), &fields, now);
        let text = cx.set_back((info, key), changes, more);
        tracing::info!(
            child = self.what(),
            fields = text,
            "fields of a child were changed by others, and are set back"
        );
        let note = format!("others had changed fields of {}; set back: {text}", self.what());
        cx.event(Normal, "DriftCorrected", note);
    }
}
