//! Driver of external resources: the entry points of reconcilers.

use super::dry_run::is_dry_run;
use super::memory::ReportSlot;
use super::pass::Pass;
use super::record::{parts_of, policy_of, suffix_of};
use super::settings::Externals;
use super::unowned::Unowned;
use super::{External, ExternalState};
use crate::controller::{Action, Context, Failure, Reconciler, Result};
use crate::events::Normal;
use windlass_core::resource::ResourceExt;

impl<E: External> Externals<E> {
    /// Returns a further resource of the same object. `name` has up to 36 lower-case letters,
    /// digits and inner `-`, together with the name of the driver.
    ///
    /// The provider is given the name by [`ExternalObject::part`](super::ExternalObject::part).
    pub fn part<'a>(&'a self, name: &'a str) -> ExternalPart<'a, E> {
        ExternalPart { externals: self, name }
    }

    /// Returns the names of the parts that are recorded on an object, in order; the main resource
    /// has the empty name.
    ///
    /// Parts that the spec does not name any more are [cleaned up](ExternalPart::cleanup) by a
    /// reconciler.
    pub fn parts(&self, object: &E::Object) -> Vec<String> {
        parts_of(object, &self.name)
    }

    /// Makes the main resource match the object: creates it, repairs differences, or settles a
    /// creation of unknown outcome. Returns its state.
    ///
    /// A difference that the policy forbids to repair is no error: an Event `ExternalDiffers`, and
    /// the message of the condition that shows the success of the reconcile, name it.
    ///
    /// Without a difference it costs one observation and no request to the API server. While
    /// nothing is recorded, the object is read from the API server first; so it is at each call
    /// with a cache that leaves the annotations out.
    ///
    /// # Errors
    /// A [wait](Failure::wait_for) while the provider does not show a created resource or an
    /// update, while a creation of unknown outcome may still take place, and for a missing resource
    /// that the policy forbids to create. A terminal failure for a creation of unknown outcome that
    /// the provider cannot search for, for an unknown policy, and without the finalizer. Any other
    /// error of the provider or of the API server.
    /// # Cancel safety
    /// As a crash: the next reconcile goes on.
    pub async fn reconcile<C: Reconciler<Object = E::Object>>(
        &self,
        cx: &Context<C>,
    ) -> Result<ExternalState<E::Handle>> {
        self.part("").reconcile(cx).await
    }

    /// Deletes the main resource and all parts, unless the policy forbids it. Ends without an error
    /// when all of them are observed as missing. A resource that the object never had, since its
    /// record was copied or its import is forbidden, is left alone.
    ///
    /// # Errors
    /// A [wait](Failure::wait_for) while a resource is being deleted. A terminal failure for a
    /// creation of unknown outcome that the provider cannot search for. Any error of the provider
    /// or of the API server; one part does not stop the others.
    /// # Cancel safety
    /// As a crash: the next clean-up goes on.
    pub async fn cleanup<C: Reconciler<Object = E::Object>>(&self, cx: &Context<C>) -> Result<()> {
        let mut parts = self.parts(&cx.newest_own());
        // Once in the life of an object: its cache may leave the annotations out.
        if parts.is_empty()
            && let Some(live) = cx.read_own().await?
        {
            parts = self.parts(&live);
        }
        let mut found: Option<Failure> = None;
        for part in parts {
            let Err(failure) = self.cleanup_one(cx, &part).await else { continue };
            // A failure is reported before a wait.
            if found.as_ref().is_none_or(|found| found.is_wait() && !failure.is_wait()) {
                found = Some(failure);
            }
        }
        found.map_or(Ok(()), Err)
    }

    async fn cleanup_one<C: Reconciler<Object = E::Object>>(
        &self,
        cx: &Context<C>,
        part: &str,
    ) -> Result<()> {
        let cleaned = match Pass::begin(self, part, cx) {
            Ok(pass) => Box::pin(pass.cleanup()).await,
            Err(failure) => Err(failure),
        };
        match cleaned {
            Err(failure) if failure.is_terminal() => self.let_go(cx, part, failure).await,
            cleaned => cleaned,
        }
    }

    /// Ends the clean-up of an object that is being deleted and has no resource: the id is another
    /// object's, or was set by hand where imports are forbidden. Without this end only a
    /// person could have removed its finalizer.
    ///
    /// # Errors
    /// `failure`, of an object that has, or may have, a resource.
    async fn let_go<C: Reconciler<Object = E::Object>>(
        &self,
        cx: &Context<C>,
        part: &str,
        failure: Failure,
    ) -> Result<()> {
        // The cache may lag behind a record that is the object's own.
        let Some(live) = cx.read_own().await? else { return Ok(()) };
        let suffix = suffix_of(&self.name, part)?;
        if !live.is_terminating() {
            return Err(failure);
        }
        // One that cannot be read forbids no import: a copy is let go all the same.
        let policy = self.policy.and(policy_of(&live, &suffix).unwrap_or_default());
        let Some(unowned) = Unowned::of(&live, &suffix, policy) else { return Err(failure) };
        let (reason, text) = unowned.event(part);
        // A clean-up that waits for other resources comes here again. A dry run must not take the
        // report from the operator.
        let slot = ReportSlot::Resource;
        let is_new = match self.is_dry_run || is_dry_run(cx) {
            true => !self.reports.has(live.uid(), &suffix, slot, &text),
            false => self.reports.note(live.uid(), &suffix, slot, Some(&text)),
        };
        if is_new {
            cx.event(Normal, reason, text);
        }
        Ok(())
    }

    /// Returns the action after which the resource is observed again: the poll interval and up to a
    /// tenth more, by the operator's randomness.
    pub fn requeue<C: Reconciler>(&self, cx: &Context<C>) -> Action {
        Action::requeue_after(cx.spread(self.poll))
    }
}

/// A further resource of an object, with a record of its own. Made by [`Externals::part`].
#[derive(Debug)]
pub struct ExternalPart<'a, E> {
    externals: &'a Externals<E>,
    name: &'a str,
}

impl<E: External> ExternalPart<'_, E> {
    /// As [`Externals::reconcile`].
    ///
    /// # Errors
    /// As [`Externals::reconcile`]; terminal, for an unusable name.
    /// # Cancel safety
    /// As [`Externals::reconcile`].
    pub async fn reconcile<C: Reconciler<Object = E::Object>>(
        &self,
        cx: &Context<C>,
    ) -> Result<ExternalState<E::Handle>> {
        let pass = Pass::begin(self.externals, self.name, cx)?;
        Box::pin(pass.reconcile()).await
    }

    /// Deletes the resource of this part; of an object that stays, its record is removed, too.
    ///
    /// # Errors
    /// As [`Externals::cleanup`].
    /// # Cancel safety
    /// As [`Externals::cleanup`].
    pub async fn cleanup<C: Reconciler<Object = E::Object>>(&self, cx: &Context<C>) -> Result<()> {
        self.externals.cleanup_one(cx, self.name).await
    }
}
