//! One pass over one resource: its record, the settling of creations, observations.
//!
//! A pass works on the newest version of the object that this process knows. A patch of the record
//! is bound to that version, so a pass that began with an outdated record ends with a conflict
//! before its call.

// DESIGN.md, 163: A creation outside is recorded before its call, with a token
// DESIGN.md, 245: Drivers that would share a record are refused
// DESIGN.md, 249: The controllers of an operator know the drivers at work on each object

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};

use super::call::{self, CallKind, NoResult};
use super::import::{Holder, HolderSearch, changes};
use super::late_initialization::only_empty;
use super::memory::{ReportSlot, SettledCreation};
use super::record::{self, CREATE_PENDING, EXTERNAL_DRIVER, EXTERNAL_NAME, Record, Stamp};
use super::{
    CreateOutcome, External, ExternalObject, ExternalPolicy, Externals, ObservedResource, dry_run,
};
use crate::controller::{Context, Failure, Reconciler, Result, ResultExt};
use crate::events::{Normal, Warning};
use windlass_core::error::{Error, ErrorKind};
use windlass_core::resource::ResourceExt;

/// Most attempts to record an outcome.
const TRIES: u32 = 5;
/// Delay after the first of them; doubled after each further one.
const FIRST_DELAY: Duration = Duration::from_millis(100);

/// Returns the record on an object, and the calls that controller and object both permit.
fn stated<E: External>(
    externals: &Externals<E>,
    object: &E::Object,
    suffix: &str,
) -> Result<(Record, ExternalPolicy)> {
    let record = Record::of(object, suffix)?;
    let policy = externals.policy.and(record::policy_of(object, suffix)?);
    if record.is_import && !policy.imports() {
        let text = format!(
            "the policy permits no import: the annotation {EXTERNAL_NAME}{suffix} of \"{}\" names a resource that was \
             not created for this object; restore its former value, or remove it if there was none",
            object.key()
        );
        return Err(Failure::terminal(Error::new(ErrorKind::Invalid, text)));
    }
    Ok((record, policy))
}

/// The failure of a driver that has the name of another one, which the controller `first` has.
fn second(first: &str, controller: &str, name: &str) -> Failure {
    let name = if name.is_empty() { "no name".to_owned() } else { format!("the name {name:?}") };
    let (whose, remedy) = if first == controller {
        let remedy = "a driver is made once, and shared by all reconciles";
        (format!("of the controller {controller:?}"), remedy)
    } else {
        let remedy = "controllers that mean the same resource share one driver, by an `Arc`";
        (format!("of the controllers {first:?} and {controller:?}"), remedy)
    };
    let text = format!(
        "two drivers of external resources {whose} have {name}: they would keep their records in the same annotations, and \
         each would take the resource of the other for its own. Give one of them a name that no other has, by \
         `Externals::named`; a driver that is deployed keeps its name; {remedy}"
    );
    Failure::terminal(Error::new(ErrorKind::Usage, text))
}

/// A pass over one resource of one object.
pub(super) struct Pass<'a, E: External, C: Reconciler<Object = E::Object>> {
    pub(super) externals: &'a Externals<E>,
    pub(super) cx: &'a Context<C>,
    /// Name of the part; empty for the main resource.
    pub(super) part: &'a str,
    /// Suffix of the annotations.
    pub(super) suffix: String,
    /// The newest known version of the object.
    pub(super) object: Arc<E::Object>,
    /// The record on it.
    pub(super) record: Record,
    /// Calls that controller and object both permit.
    pub(super) policy: ExternalPolicy,
    /// Whether changing calls are named only.
    pub(super) is_dry_run: bool,
    /// The graph that drives the resource, as its record names it; `None` of a driver that is no
    /// field.
    driver: Option<String>,
}

impl<'a, E: External, C: Reconciler<Object = E::Object>> Pass<'a, E, C> {
    /// Reads the record of the object.
    pub(super) fn begin(
        externals: &'a Externals<E>,
        part: &'a str,
        cx: &'a Context<C>,
    ) -> Result<Self> {
        let suffix = record::suffix_of(&externals.name, part)?;
        let object = cx.newest_own();
        let (controller, drivers) = (cx.controller_name(), cx.drivers());
        if let Some(first) = drivers.another(&externals.name, object.uid(), &externals.identity)
            // The finalizer of another controller must not keep an object for ever.
            && (*first == *controller || !object.is_terminating())
        {
            return Err(second(&first, controller, &externals.name));
        }
        let (record, policy) = stated(externals, &*object, &suffix)?;
        let is_dry_run = externals.is_dry_run || dry_run::is_dry_run(cx);
        // Parts that a reconciler drives beside its field are of the field's driver.
        let is_of_field = drivers.have_field(&suffix);
        let driver = is_of_field.then(|| format!("{controller} {}", E::FINALIZER));
        Ok(Self { externals, cx, part, suffix, object, record, policy, is_dry_run, driver })
    }

    /// Returns the name of another driver in the record.
    fn other_driver(&self) -> Option<&str> {
        let recorded = self.object.annotation(&self.key(EXTERNAL_DRIVER));
        recorded.filter(|recorded| self.driver.as_deref() != Some(*recorded))
    }

    /// Whether another driver has written its name into the record again, after this one had
    /// replaced it: both are at work.
    pub(super) fn is_shared(&self) -> bool {
        let replaced = &self.externals.replaced;
        self.other_driver().is_some_and(|other| {
            replaced.has(self.object.uid(), &self.suffix, ReportSlot::Driver, other)
        })
    }

    /// Records the graph that drives the resource, unless the record names it: of an imported
    /// resource, and of one that was another driver's before.
    ///
    /// # Errors
    /// Terminal, when the record is [shared](Self::is_shared): the drivers would write their names
    /// in turn, without end.
    pub(super) async fn record_driver(&mut self) -> Result<()> {
        let key = self.key(EXTERNAL_DRIVER);
        if self.is_dry_run || self.object.annotation(&key) == self.driver.as_deref() {
            return Ok(());
        }
        if self.is_shared()
            && let Some(live) = self.cx.read_own().await?
        {
            // A cache that selects does not show own writes: the name may be that of before.
            self.take(live)?;
            if self.object.annotation(&key) == self.driver.as_deref() {
                return Ok(());
            }
        }
        let other = self.other_driver().map(str::to_owned);
        if let Some(other) = other.as_deref().filter(|_| self.is_shared()) {
            let (controller, finalizer) = other.split_once(' ').unwrap_or((other, ""));
            let text = format!(
                "the record of an external resource of \"{}\" has two drivers: the annotation {key} names the controller \
                 {controller:?} (finalizer {finalizer}) again, after {:?} had replaced it. Each takes the resource for its \
                 own: give the newer driver a name, by `Externals::named`, or remove the annotation from where it is set",
                self.object.key(),
                self.cx.controller_name()
            );
            return Err(Failure::terminal(Error::new(ErrorKind::Config, text)));
        }
        self.write(record::driven(&self.suffix, self.driver.as_deref())).await?;
        if other.is_some() {
            let (uid, slot) = (self.object.uid(), ReportSlot::Driver);
            self.externals.replaced.note(uid, &self.suffix, slot, other.as_deref());
        }
        Ok(())
    }

    /// Goes on with a version of the object that was read from the API server, and with its record.
    ///
    /// The cache may lag, and its transform may leave the annotations out.
    pub(super) fn take(&mut self, object: E::Object) -> Result<()> {
        (self.record, self.policy) = stated(self.externals, &object, &self.suffix)?;
        self.object = Arc::new(object);
        Ok(())
    }

    /// Returns an id that was set by hand, and is not recorded as the one of this object. An own
    /// creation that is named again after an import is such an id: the object had left it.
    pub(super) fn unaccepted(&self) -> Option<&str> {
        let Record { id, created, is_accepted, is_return, .. } = &self.record;
        let is_open = (created.is_none() || *is_return) && !is_accepted && changes(self.policy);
        id.as_deref().filter(|_| is_open)
    }

    /// Returns another holder of a resource whose id was set by hand, and is not recorded as the
    /// one of this object.
    pub(super) fn other_holder(&self) -> Option<Holder> {
        let Self { externals, cx, part, object, .. } = self;
        HolderSearch { externals, cx, part, object: &**object }.holder(self.unaccepted()?)
    }

    /// The argument of the provider's calls.
    pub(super) fn subject(&self) -> ExternalObject<'_, E::Object> {
        ExternalObject { object: &*self.object, part: self.part }
    }

    /// The resource in texts for people.
    pub(super) fn resource(&self, id: impl fmt::Display) -> String {
        match self.part {
            "" => format!("external resource \"{id}\""),
            part => format!("external resource \"{id}\" ({part})"),
        }
    }

    /// The key of an annotation of this resource.
    pub(super) fn key(&self, base: &str) -> String {
        format!("{base}{}", self.suffix)
    }

    /// Keeps what is reported of the resource, such as a difference that is not repaired; returns
    /// whether it is another text than before. A dry run keeps nothing: it must not take the report
    /// from the operator.
    pub(super) fn note_report(&self, slot: ReportSlot, text: Option<&str>) -> bool {
        let (uid, reports) = (self.object.uid(), &self.externals.reports);
        if self.is_dry_run {
            return text.is_some_and(|text| !reports.has(uid, &self.suffix, slot, text));
        }
        reports.note(uid, &self.suffix, slot, text)
    }

    /// Reports a resource that is left alone, once. The log has the text, too: an Event that is not
    /// sent yet is lost in a crash.
    pub(super) fn tell_kept(&self, slot: ReportSlot, text: String) {
        if self.note_report(slot, Some(&text)) {
            if !self.is_dry_run {
                tracing::info!(object = %self.object.key(), "{text}");
            }
            self.cx.event(Normal, "ExternalKept", text);
        }
    }

    /// Returns the id of the resource, after settling a creation of unknown outcome. `None` when
    /// nothing was created; `record.unsettled` is then left with a creation that may be repeated
    /// with its token.
    pub(super) async fn id(&mut self) -> Result<Option<String>> {
        if self.record.id.is_some() {
            return Ok(self.record.id.clone());
        }
        let Some(pending) = self.record.unsettled.clone() else { return Ok(None) };
        match self.externals.outcomes.get(&pending) {
            Some(SettledCreation::Created(id)) => {
                self.record_created(&pending, &id).await?;
                Ok(Some(id))
            }
            Some(SettledCreation::NotCreated) => {
                self.record_failed(&pending).await?;
                Ok(None)
            }
            None => self.search(&pending).await,
        }
    }

    /// Searches for the resource of a creation whose outcome is unknown.
    async fn search(&mut self, pending: &Stamp) -> Result<Option<String>> {
        // The time in the record comes from the clock of another process, which may be ahead or
        // behind: the limit counts from the first sight of the record in this process.
        let limit = self.externals.call_timeout.saturating_add(self.externals.creation_grace);
        let rest = self.rest(pending, limit);
        match self.find(pending).await? {
            CreateOutcome::Created(id) => {
                self.record_found(pending, &id).await?;
                Ok(Some(id))
            }
            CreateOutcome::Missing => {
                if rest.is_zero() {
                    return Ok(None);
                }
                // The call of another process, or a slow provider, may still create it.
                let text = format!("the creation {} may still take place", pending.token);
                Err(Failure::wait_for("ExternalCreationUnknown", text).check_after(rest))
            }
            CreateOutcome::Unknown => Err(self.unsettled(pending)),
        }
    }

    /// Asks the provider for the resource of a creation.
    pub(super) async fn find(&self, pending: &Stamp) -> Result<CreateOutcome> {
        call::permit(self.externals, self.cx).await?;
        let subject = self.subject();
        let find = self.externals.provider().find_created(&subject, &pending.token);
        let limit = self.externals.call_timeout;
        let found = call::run(self.cx, (CallKind::Find, limit), find, |_| "error").await;
        let found = found.map_err(NoResult::failure);
        found.tried("searching for an external resource by its token")
    }

    /// Records the id of a resource that was found by its token.
    pub(super) async fn record_found(&mut self, pending: &Stamp, id: &str) -> Result<()> {
        record::check_id(id)?;
        self.record_created(pending, id).await?;
        let text = "was created before its id could be recorded, and is found";
        self.cx.event(Normal, "ExternalFound", format!("{} {text}", self.resource(id)));
        Ok(())
    }

    /// The failure of a creation that only a person can settle.
    pub(super) fn unsettled(&self, pending: &Stamp) -> Failure {
        let text = format!(
            "cannot tell whether the creation of {} at {} succeeded: its outcome was not recorded, and the provider \
             cannot search for it. Look it up: if the resource exists, set the annotation {} to its id; if not, remove \
             the annotation {}",
            self.resource(&pending.token),
            pending.time,
            self.key(EXTERNAL_NAME),
            self.key(CREATE_PENDING)
        );
        self.cx.event(Warning, "ExternalCreationUnknown", &text);
        Failure::terminal(Error::new(ErrorKind::Ambiguous, text))
    }

    /// Observes the resource; returns its state and its difference from the object, `None` when it
    /// is missing.
    pub(super) async fn observe(&self, id: &str) -> Result<Option<(E::Handle, Option<String>)>> {
        call::permit(self.externals, self.cx).await?;
        let subject = self.subject();
        let observe = self.externals.provider().observe(&subject, id);
        let limit = self.externals.call_timeout;
        let observed = call::run(self.cx, (CallKind::Observe, limit), observe, |_| "error").await;
        let observed = observed.map_err(NoResult::failure);
        Ok(match observed.tried(format!("observing {}", self.resource(id)))? {
            ObservedResource::Missing => None,
            ObservedResource::UpToDate(handle) => Some((handle, None)),
            ObservedResource::Drifted(handle, difference) => Some((handle, Some(difference))),
        })
    }

    /// Returns the rest of the time for which a created resource may stay unseen; `None` when it is
    /// over.
    pub(super) fn unseen(&self) -> Option<Duration> {
        let rest = self.rest(self.record.created.as_ref()?, self.externals.creation_grace);
        Some(rest).filter(|rest| !rest.is_zero())
    }

    /// Whether the provider has taken a deletion of the created resource, of this process or of an
    /// earlier one. Missing then means gone.
    pub(super) fn is_deleted(&self) -> bool {
        let is_known = |made: &Stamp| self.externals.deletions.has(made);
        self.record.is_deleted || self.record.created.as_ref().is_some_and(is_known)
    }

    /// Notes that the provider has taken the deletion.
    pub(super) fn note_deleted(&self) {
        if let Some(created) = &self.record.created {
            self.externals.deletions.note(created);
        }
    }

    /// Records a deletion that takes time, for the process after a restart.
    pub(super) async fn record_deleted(&mut self) {
        let Some(token) = self.record.created.as_ref().map(|created| created.token.clone()) else {
            return;
        };
        if self.record.is_deleted {
            return;
        }
        match self.write(record::deleted(&self.suffix, &token)).await {
            Ok(()) => self.record.is_deleted = true,
            // The memory has it; without it, a restart waits longer.
            Err(error) => tracing::debug!(%error, "a deletion under way is not recorded"),
        }
    }

    /// Returns the rest of a limit since this process wrote a stamp, or saw it first.
    fn rest(&self, stamp: &Stamp, limit: Duration) -> Duration {
        self.externals.first_seen.rest(stamp, limit, self.cx.clock().reading())
    }

    /// Sends a patch of the object upon the version of this pass.
    pub(super) async fn write(&mut self, patch: Value) -> Result<(), Error> {
        let written = self.cx.patch_upon(&self.object, patch).await?;
        self.object = Arc::new(written);
        Ok(())
    }

    /// Records a creation before its call, upon the version whose record was read.
    pub(super) async fn record_pending(&mut self, pending: &Stamp) -> Result<()> {
        // Until the call is made this process knows that nothing was created.
        self.externals.outcomes.keep(pending, SettledCreation::NotCreated);
        let patch = record::pending(&self.suffix, pending, self.driver.as_deref());
        if let Err(error) = self.write(patch).await {
            if !matches!(error.kind(), ErrorKind::Conflict | ErrorKind::Ambiguous) {
                self.externals.outcomes.forget(pending);
                return Err(error.into());
            }
            // A patch whose answer was lost, sent again by the client, is a conflict with itself.
            let newest = self.cx.read_own().await?;
            let is_ours = newest.as_ref().is_some_and(|newest| {
                Record::of(newest, &self.suffix)
                    .is_ok_and(|record| record.unsettled.as_ref() == Some(pending))
            });
            if !is_ours {
                self.externals.outcomes.forget(pending);
            }
            match newest.filter(|newest| is_ours && !newest.is_terminating()) {
                Some(newest) => self.object = Arc::new(newest),
                // A record on an object that is being deleted is settled from the memory by its
                // clean-up.
                None => return Err(error.into()),
            }
        }
        self.record = Record { unsettled: Some(pending.clone()), ..Record::default() };
        Ok(())
    }

    /// Records the id of a created resource.
    pub(super) async fn record_created(&mut self, pending: &Stamp, id: &str) -> Result<()> {
        self.externals.outcomes.keep(pending, SettledCreation::Created(id.to_owned()));
        let now = self.cx.clock().wall();
        let stamp = Stamp { time: now, token: pending.token.clone() };
        self.externals.first_seen.wrote(&stamp, self.cx.clock().reading());
        let patch = record::succeeded(&self.suffix, &stamp, id);
        self.record_outcome(pending, patch)
            .await
            .tried(format!("recording the created {}", self.resource(id)))?;
        let id = Some(id.to_owned());
        self.record = Record { id, created: Some(stamp), ..Record::default() };
        Ok(())
    }

    /// Records that nothing was created.
    pub(super) async fn record_failed(&mut self, pending: &Stamp) -> Result<()> {
        self.externals.outcomes.keep(pending, SettledCreation::NotCreated);
        let stamp = Stamp { time: self.cx.clock().wall(), token: pending.token.clone() };
        let patch = record::failed(&self.suffix, &stamp);
        self.record_outcome(pending, patch).await.tried("recording that nothing was created")?;
        self.record = Record::default();
        Ok(())
    }

    /// Sends an outcome until it is on the object, whatever other writers do: the loss of it would
    /// need a search, or a person. The memory keeps it when all attempts fail.
    async fn record_outcome(&mut self, pending: &Stamp, patch: Value) -> Result<(), Error> {
        let (mut tries, mut delay) = (1, FIRST_DELAY);
        loop {
            let Err(error) = self.write(patch.clone()).await else {
                self.externals.outcomes.forget(pending);
                return Ok(());
            };
            if tries == TRIES {
                return Err(error);
            }
            tracing::debug!(%error, tries, "the outcome of a creation is not recorded yet");
            if error.kind() != ErrorKind::Conflict {
                self.cx.clock().sleep(delay + self.cx.rng().jitter(delay)).await;
                delay *= 2;
            }
            tries += 1;
            match self.cx.read_own().await {
                Ok(Some(newest)) => self.object = Arc::new(newest),
                Ok(None) => {
                    tracing::error!(
                        token = pending.token,
                        outcome = ?self.externals.outcomes.get(pending),
                        "the object of an external resource is gone, without its clean-up: delete the resource by hand"
                    );
                    self.externals.outcomes.forget(pending);
                    return Err(error);
                }
                // The next write finds out.
                Err(_) => {}
            }
        }
    }

    /// Removes the record of a resource that is gone, if the object stays.
    pub(super) async fn clear(&mut self) -> Result<()> {
        if self.object.is_terminating() || self.record == Record::default() {
            return Ok(());
        }
        self.write(record::cleared(&self.suffix)).await?;
        self.record = Record::default();
        Ok(())
    }

    /// Fills empty fields of the spec from the resource.
    pub(super) async fn late_initialize(&mut self, handle: &E::Handle) -> Result<()> {
        let Some(values) = self.externals.provider().late_initialize(&self.subject(), handle)
        else {
            return Ok(());
        };
        let object = serde_json::to_value(&*self.object)?;
        if only_empty(object.get("spec").unwrap_or(&Value::Null), &values).is_none() {
            return Ok(());
        }
        // A type may leave an explicit `false` or 0 out of its JSON: the stored object decides.
        let Some(stored) = self.cx.read_raw_own().await? else { return Ok(()) };
        let current = stored.rest.get("spec").unwrap_or(&Value::Null);
        if let Some(patch) = only_empty(current, &values) {
            let written = self.write(json!({ "spec": patch })).await;
            written.tried("filling empty fields of the spec from the external resource")?;
        }
        Ok(())
    }
}
