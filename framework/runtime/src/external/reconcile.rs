//! The loop over a resource of an object that is not being deleted: settle, observe, create or
//! repair.

// DESIGN.md, 306: An import that ends is reported before its record goes
// DESIGN.md, 250: Each process reports once, from the record, the resource that an import replaced
// DESIGN.md, 205: A difference that a policy forbids to repair is the message of a success

use super::call::{self, CallKind, NoResult};
use super::import::{Holder, changes};
use super::memory::{ReportSlot, SettledCreation};
use super::pass::Pass;
use super::record::{self, EXTERNAL_NAME, Record, Stamp};
use super::{CreateError, CreateOutcome, External, ExternalState, dry_run};
use crate::controller::{Failure, Reconciler, Result, ResultExt};
use crate::events::{Normal, Warning};
use windlass_core::error::{Error, ErrorKind};
use windlass_core::resource::ResourceExt;

impl<E: External, C: Reconciler<Object = E::Object>> Pass<'_, E, C> {
    /// Makes the resource match the object.
    pub(super) async fn reconcile(mut self) -> Result<ExternalState<E::Handle>> {
        self.ensure_unshared().await?;
        let mut id = self.id().await?;
        if id.is_none() {
            // A cache without the annotations must not create another resource at each poll.
            // Creations are rare: the object is read from the API server before each of them.
            let live = self.cx.read_alive().await?;
            let known = self.record.clone();
            self.take(live)?;
            if self.record != known {
                self.ensure_unshared().await?;
                id = self.id().await?;
            }
        }
        let Some(id) = id else { return self.create().await };
        // A plan tells of what would change.
        if !self.is_dry_run {
            self.tell_replaced();
        }
        match self.observe(&id).await? {
            Some((handle, difference)) => self.found(id, handle, difference).await,
            None => self.missing(&id).await,
        }
    }

    /// Records a resource whose id was set by hand as the one of this object, before any call.
    ///
    /// Objects that only observe share a resource, and have no such record.
    ///
    /// # Errors
    /// Terminal, when another object, or another part of this one, has the resource or names it,
    /// too. A change of that object reconciles this one.
    async fn ensure_unshared(&mut self) -> Result<()> {
        if self.unaccepted().is_none() && !self.is_import_over() {
            return Ok(());
        }
        // The cache may not show the record, or show a state of the annotation that has passed. The
        // record is written once in the life of an import, and once at its end.
        if let Some(live) = self.cx.read_own().await? {
            self.take(live)?;
        }
        if self.is_import_over() {
            self.tell_ended_import();
            return self.write_import(None).await;
        }
        let Some(id) = self.unaccepted().map(str::to_owned) else { return Ok(()) };
        match self.watched_holder().await? {
            Some(holder) => Err(holder.refusal(&self.key(EXTERNAL_NAME), &self.object.key(), &id)),
            // The import has ended: with its record the object could take that resource up again
            // beside another holder.
            None if self.record.is_return => {
                self.tell_ended_import();
                self.write_import(None).await
            }
            None => {
                self.tell_ended_import();
                self.write_import(Some(&id)).await?;
                self.record.replaced = self.record.former.take();
                if self.is_dry_run {
                    self.tell_replaced();
                }
                Ok(())
            }
        }
    }

    /// Whether the record of an import goes, and no other import takes its place: the object only
    /// observes, or its annotation is gone.
    fn is_import_over(&self) -> bool {
        let Record { is_accepted, ended_import, .. } = &self.record;
        *is_accepted && !changes(self.policy)
            || ended_import.is_some() && self.unaccepted().is_none()
    }

    /// Reports the resource that was created for the object before it named another one: no
    /// call deletes it any more.
    ///
    /// By the record of an earlier pass, too: that pass may have ended between the record and the
    /// Event.
    fn tell_replaced(&self) {
        if let Some(replaced) = &self.record.replaced {
            self.tell_left(ReportSlot::Replaced, replaced, "created");
        }
    }

    /// Reports the imported resource that the object does not name any more. The next record
    /// overwrites its id, so the report comes before.
    fn tell_ended_import(&self) {
        if let Some(ended) = &self.record.ended_import {
            self.tell_left(ReportSlot::EndedImport, ended, "imported");
        }
    }

    fn tell_left(&self, slot: ReportSlot, left: &str, origin: &str) {
        let key = self.key(EXTERNAL_NAME);
        let named = self.object.annotation(&key).filter(|id| !id.is_empty());
        let named = named.map(|id| format!("names \"{id}\""));
        let text = format!(
            "{}, which was {origin} before, is left alone: the annotation {key} {}",
            self.resource(left),
            named.as_deref().unwrap_or("names no resource any more")
        );
        self.tell_kept(slot, text);
    }

    /// Returns another holder of the resource, whose changes reconcile this object.
    async fn watched_holder(&self) -> Result<Option<Holder>> {
        let mut watched = None;
        loop {
            let found = self.other_holder();
            let object = found.as_ref().and_then(|holder| holder.object.clone());
            if object.is_none() || object == watched {
                return Ok(found);
            }
            // Then searched once more: it may have changed before it was watched.
            if let Some(key) = object.clone() {
                self.cx.watch_other(key).await?;
            }
            watched = object;
        }
    }

    /// Writes the record of an import; `None` removes it.
    async fn write_import(&mut self, id: Option<&str>) -> Result<()> {
        if self.is_dry_run {
            return Ok(());
        }
        let import = id.map(|id| (self.object.uid(), id));
        let written = self.write(record::accepted(&self.suffix, import)).await;
        let key = self.key(EXTERNAL_NAME);
        written.tried(format!("recording the import that the annotation {key} names"))?;
        (self.record.is_accepted, self.record.is_return) = (id.is_some(), false);
        self.record.ended_import = None;
        Ok(())
    }

    /// Handles a resource that is recorded and does not exist.
    async fn missing(mut self, id: &str) -> Result<ExternalState<E::Handle>> {
        if self.record.created.is_none() {
            let text = format!(
                "there is no {}, which the annotation {} names",
                self.resource(id),
                self.key(EXTERNAL_NAME)
            );
            return Err(self.absent(&text));
        }
        if self.unseen().is_some() {
            return Err(self.creating(id));
        }
        if self.policy.creates() {
            let text = format!("{} is gone, and is created anew", self.resource(id));
            self.cx.event(Warning, "ExternalGone", text);
        }
        self.create().await
    }

    /// Creates the resource, and observes it.
    async fn create(&mut self) -> Result<ExternalState<E::Handle>> {
        if !self.policy.creates() {
            let text = format!(
                "the policy permits no creation: set the annotation {} to the id of an existing resource",
                self.key(EXTERNAL_NAME)
            );
            return Err(self.absent(&text));
        }
        if self.is_dry_run {
            let text = format!("create the external resource of \"{}\"", self.object.key());
            dry_run::not_called(self.cx, CallKind::Create, &text);
            return Err(Failure::wait_for("DryRun", format!("would {text}")));
        }
        self.ensure_finalizer()?;
        let id = self.call_create().await?;
        let text = format!("{} is created", self.resource(&id));
        self.cx.event(Normal, "ExternalCreated", text);
        match self.observe(&id).await? {
            Some((handle, difference)) => self.found(id, handle, difference).await,
            None => Err(self.creating(&id)),
        }
    }

    /// Records a creation, calls the provider, and records the outcome.
    async fn call_create(&mut self) -> Result<String> {
        // Before the record: a wait that is cut off here leaves nothing to settle.
        call::permit(self.externals, self.cx).await?;
        let (time, began) = (self.cx.clock().wall(), self.cx.clock().reading());
        let repeated = self.record.unsettled.take();
        let is_repeated = repeated.is_some();
        let token = match repeated {
            // An idempotent provider then creates no second resource.
            Some(unsettled) => unsettled.token,
            None => record::token(self.object.uid(), self.cx.rng().next_u64()),
        };
        let pending = Stamp { time, token };
        self.externals.first_seen.wrote(&pending, began);
        self.record_pending(&pending).await?;
        // Record and call share a deadline, after which other processes take a creation that they
        // do not find for one that did not happen. A sleep of the machine counts, since theirs may
        // be awake.
        let passed = began.longest_until(&self.cx.clock().reading());
        let limit = self.externals.call_timeout.saturating_sub(passed);
        if limit.is_zero() {
            let text = "the record of the creation took longer than its deadline";
            return Err(Error::new(ErrorKind::Timeout, text).into());
        }
        self.externals.outcomes.forget(&pending);
        let result_of = |error: &CreateError| if error.is_refused() { "refused" } else { "error" };
        let created = {
            let subject = self.subject();
            let create = self.externals.provider().create(&subject, &pending.token);
            call::run(self.cx, (CallKind::Create, limit), create, result_of).await
        };
        let failure = match created {
            Ok(id) => {
                record::check_id(&id)?;
                self.record_created(&pending, &id).await?;
                return Ok(id);
            }
            Err(NoResult::Error(error)) if error.is_refused() => {
                // "It exists" may be the answer to the own resource, which the first call of this
                // token made late.
                if is_repeated && let Some(id) = self.find_refused(&pending).await? {
                    return Ok(id);
                }
                self.externals.outcomes.keep(&pending, SettledCreation::NotCreated);
                if let Err(error) = self.record_failed(&pending).await {
                    // The memory has it; the error of the provider is the one to report.
                    tracing::warn!(%error, "the outcome of a refused creation is not recorded");
                }
                error.failure
            }
            Err(NoResult::Error(error)) => error.failure,
            Err(NoResult::CutOff(failure)) => failure,
        };
        Err(failure.tried("creating the external resource"))
    }

    /// Searches for the resource of a creation that was refused when its token was repeated. `None`
    /// when it proves to be missing.
    ///
    /// Until then the outcome is unknown: an error leaves the record as it is, and the next pass
    /// searches again.
    async fn find_refused(&mut self, pending: &Stamp) -> Result<Option<String>> {
        match self.find(pending).await? {
            CreateOutcome::Created(id) => {
                self.record_found(pending, &id).await?;
                Ok(Some(id))
            }
            CreateOutcome::Missing => Ok(None),
            CreateOutcome::Unknown => Err(self.unsettled(pending)),
        }
    }

    /// Fills the spec, and repairs the difference.
    async fn found(
        &mut self,
        id: String,
        handle: E::Handle,
        difference: Option<String>,
    ) -> Result<ExternalState<E::Handle>> {
        // Where the record is not visible, its driver is not either.
        if self.object.annotation(&self.key(EXTERNAL_NAME)).is_some() {
            self.record_driver().await?;
        }
        if self.policy.updates() {
            self.late_initialize(&handle).await?;
        }
        self.show_forbidden(&id, difference.as_deref());
        let Some(text) = difference.as_deref().filter(|_| self.policy.updates()) else {
            return Ok(ExternalState { id, handle, difference });
        };
        let event = format!("{} is updated: {text}", self.resource(&id));
        if self.is_dry_run {
            let text = format!("update {}: {text}", self.resource(&id));
            dry_run::not_called(self.cx, CallKind::Update, &text);
            // The reconcile goes on as after the update.
            self.cx.event(Normal, "ExternalUpdated", event);
            return Ok(ExternalState { id, handle, difference });
        }
        self.ensure_finalizer()?;
        call::permit(self.externals, self.cx).await?;
        let updated = {
            let subject = self.subject();
            let update = self.externals.provider().update(&subject, &id, &handle);
            let limit = self.externals.call_timeout;
            call::run(self.cx, (CallKind::Update, limit), update, |_| "error").await
        };
        let updated = updated.map_err(NoResult::failure);
        updated.tried(format!("updating {}", self.resource(&id)))?;
        self.cx.event(Normal, "ExternalUpdated", event);
        match self.observe(&id).await? {
            Some((handle, None)) => Ok(ExternalState { id, handle, difference: None }),
            Some((_, Some(left))) => Err(Failure::wait_for("ExternalUpdating", left)),
            None => self.absent_after_update(&id),
        }
    }

    /// Shows a difference that the policy forbids to repair: by an Event, once, and in the
    /// condition of a success.
    fn show_forbidden(&self, id: &str, difference: Option<&str>) {
        let forbidden = difference.filter(|_| !self.policy.updates());
        let text = forbidden.map(|difference| {
            format!("{} differs, and the policy permits no update: {difference}", self.resource(id))
        });
        if self.note_report(ReportSlot::Resource, text.as_deref()) {
            self.cx.event(Normal, "ExternalDiffers", text.as_deref().unwrap_or_default());
        }
        if let Some(text) = text {
            self.cx.remark(text);
        }
    }

    /// A resource that disappeared during its update: the next pass decides.
    fn absent_after_update(&self, id: &str) -> Result<ExternalState<E::Handle>> {
        let text = format!("{} is missing after its update", self.resource(id));
        Err(Failure::wait_for("ExternalMissing", text))
    }

    /// The wait for a resource that was created and is not seen yet.
    fn creating(&self, id: &str) -> Failure {
        let text = format!("{} is not seen yet", self.resource(id));
        Failure::wait_for("ExternalCreating", text)
    }

    /// The wait for a resource that people must make or name; a change of the object ends it at
    /// once.
    fn absent(&self, text: &str) -> Failure {
        let poll = self.cx.spread(self.externals.poll);
        Failure::wait_for("ExternalMissing", text).check_after(poll)
    }

    /// Refuses a change of a resource that no clean-up would delete.
    fn ensure_finalizer(&self) -> Result<()> {
        if self.object.has_finalizer(E::FINALIZER) {
            return Ok(());
        }
        let text = format!(
            "\"{}\" does not carry the finalizer {}: without it the external resource would outlive the object; set it \
             as the finalizer of the controller, and call `Externals::cleanup` in its clean-up",
            self.object.key(),
            E::FINALIZER
        );
        Err(Failure::terminal(Error::new(ErrorKind::Usage, text)))
    }
}
