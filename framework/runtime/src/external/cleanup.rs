//! The clean-up of a resource: settle, observe, delete, wait until it is missing.

// DESIGN.md, 306: An import that ends is reported before its record goes
// DESIGN.md, 314: A deleted object lets a resource go that it never had

use super::call::{self, CallKind, NoResult};
use super::import::Holder;
use super::memory::ReportSlot;
use super::pass::Pass;
use super::record::{EXTERNAL_DRIVER, Record};
use super::{External, dry_run};
use crate::controller::{Failure, Reconciler, Result, ResultExt};
use crate::events::Normal;
use windlass_core::resource::ResourceExt;

impl<E: External, C: Reconciler<Object = E::Object>> Pass<'_, E, C> {
    /// Deletes the resource; ends without an error when it is missing, or the policy keeps it.
    pub(super) async fn cleanup(mut self) -> Result<()> {
        // The cache may leave out the record, or the restriction that forbids the deletion. An
        // object that is gone is cleaned up by what the cache has shown.
        if (self.object.is_terminating() || self.record != Record::default())
            && let Some(live) = self.cx.read_own().await?
        {
            self.take(live)?;
        }
        if let Some(holder) = self.other_holder() {
            return self.leave(&holder).await;
        }
        // A record with two drivers keeps no object: the other one finds it as it is.
        if self.object.annotation(&self.key(EXTERNAL_DRIVER)).is_some() && !self.is_shared() {
            self.record_driver().await?;
        }
        if !self.policy.deletes() {
            return self.keep().await;
        }
        self.note_report(ReportSlot::Resource, None);
        self.tell_left_behind();
        let Some(id) = self.id().await? else { return self.clear().await };
        let Some((handle, _)) = self.observe(&id).await? else {
            return match self.unseen() {
                // Its deletion would fail now, and the object would be gone when it appears.
                Some(_) if !self.is_deleted() => Err(self.not_seen(&id)),
                _ => self.clear().await,
            };
        };
        if self.is_dry_run {
            let text = format!("delete {}", self.resource(&id));
            dry_run::not_called(self.cx, CallKind::Delete, &text);
            return Err(Failure::wait_for("DryRun", format!("would {text}")));
        }
        call::permit(self.externals, self.cx).await?;
        let deleted = {
            let subject = self.subject();
            let delete = self.externals.provider().delete(&subject, &id, &handle);
            let limit = self.externals.call_timeout;
            call::run(self.cx, (CallKind::Delete, limit), delete, |_| "error").await
        };
        deleted.map_err(NoResult::failure).tried(format!("deleting {}", self.resource(&id)))?;
        // Whatever follows: the provider has shown the resource, and deletes it.
        self.note_deleted();
        match self.observe(&id).await? {
            Some(_) => {
                self.record_deleted().await;
                Err(self.deleting(&id))
            }
            None => {
                self.cx.event(Normal, "ExternalDeleted", format!("{} is gone", self.resource(&id)));
                self.clear().await
            }
        }
    }

    /// Leaves a resource alone that is another one's, or may be.
    async fn leave(&mut self, holder: &Holder) -> Result<()> {
        let Some(id) = self.record.id.clone() else { return Ok(()) };
        let text = format!("{} is left alone: {holder}", self.resource(id));
        self.end_record(text).await
    }

    /// Lets the resource outlive the record.
    async fn keep(&mut self) -> Result<()> {
        let id = self.record.id.clone();
        let id = id.or_else(|| Some(self.record.unsettled.as_ref()?.token.clone()));
        match id {
            Some(id) => {
                let text = format!("{} is kept, as the policy says", self.resource(id));
                self.end_record(text).await
            }
            None => {
                self.tell_left_behind();
                self.clear().await
            }
        }
    }

    /// Returns the texts about the resources that the object does not name any more: the one that
    /// was created for it, and an import that has ended and was not reported.
    fn left_behind(&self) -> impl Iterator<Item = (ReportSlot, String)> {
        let Record { replaced, former, ended_import, .. } = &self.record;
        let created = replaced.as_ref().or(former.as_ref());
        let created = created.map(|id| (ReportSlot::Replaced, id, "created"));
        let imported = ended_import.as_ref().map(|id| (ReportSlot::EndedImport, id, "imported"));
        created.into_iter().chain(imported).map(|(slot, id, origin)| {
            (slot, format!("{}, which was {origin} before, is kept", self.resource(id)))
        })
    }

    /// Reports the resources that the object does not name any more. Nothing names them once the
    /// object, or the record, is gone.
    fn tell_left_behind(&self) {
        self.left_behind().for_each(|(slot, text)| self.tell_kept(slot, text));
    }

    /// Ends the record of a resource that stays. Reported once: a clean-up that waits for other
    /// resources comes here again.
    async fn end_record(&mut self, mut text: String) -> Result<()> {
        for (_, left) in self.left_behind() {
            text += &format!("; {left}");
        }
        self.tell_kept(ReportSlot::Resource, text);
        self.clear().await?;
        if !self.object.is_terminating() {
            self.note_report(ReportSlot::Resource, None);
        }
        Ok(())
    }

    /// The wait for the end of a resource.
    fn deleting(&self, id: &str) -> Failure {
        Failure::wait_for("ExternalDeleting", format!("{} is being deleted", self.resource(id)))
    }

    /// The wait for a resource that was created, and that no call has deleted: it looks like
    /// one that is gone.
    fn not_seen(&self, id: &str) -> Failure {
        let text = format!(
            "{} is not seen yet: it was created, and may still appear for {} s; it is deleted then",
            self.resource(id),
            self.externals.creation_grace.as_secs()
        );
        Failure::wait_for("ExternalDeleting", text)
    }
}
