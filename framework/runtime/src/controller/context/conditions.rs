//! Conditions that a reconcile sets, and the write of these conditions at the end.
//!
//! A single patch for all: the conditions that were set, the root, the root's companions, and the
//! observed generation. Each transition is reported after the write, by an Event and a metric.

// DESIGN.md, 161: `Ready` follows from the outcome of a reconcile and from declared conditions

mod declares;

pub use self::declares::{OwnsConditions, SetCondition};

use parking_lot::Mutex;

use super::status::unreadable_conditions;
use crate::controller::conditions::summary::{self, SummaryInput};
use crate::controller::conditions::{
    ConditionChange, ConditionOutcome, OutcomeState, PartCondition, accepted,
};
use crate::controller::{Context, Reconciler};
use crate::events::{Normal, Warning};
use windlass_core::conditions::Condition;
use windlass_core::error::{Error, ErrorKind};
use windlass_core::metrics::names;
use windlass_core::text::shorten;
use windlass_core::wire::Undecodable;

/// Longest part of a refused reason in the log, in bytes.
const LOGGED_REASON: usize = 256;

impl<C: Reconciler> Context<C> {
    /// Notes a change of a declared condition, for the end of the reconcile.
    pub(in crate::controller) fn collect(&self, change: ConditionChange) {
        let change = match change {
            ConditionChange::Set(condition) => {
                let condition = self.accepted(condition);
                let generation = self.attempt.cancel.generation();
                let observed_generation = condition.observed_generation.or(generation);
                ConditionChange::Set(Condition { observed_generation, ..condition })
            }
            clear => clear,
        };
        if self.shared.conditions.is_none() {
            tracing::error!(
                ?change,
                "a condition is not written: the controller is built without \
                 `ControllerBuilder::conditions`"
            );
            return;
        }
        self.attempt.cancel.collected().add(change);
    }

    /// Adds a text to the condition that shows the success of this reconcile; of no effect on other
    /// outcomes.
    pub(crate) fn remark(&self, text: String) {
        self.attempt.cancel.collected().remark(text);
    }

    /// Returns the remarks of this reconcile as one text.
    pub(in crate::controller) fn remarks(&self) -> String {
        self.attempt.cancel.collected().remarks()
    }

    /// Whether this reconcile has set the condition of that type by
    /// [`set_condition`](Self::set_condition).
    pub(in crate::controller) fn has_written(&self, type_: &str) -> bool {
        self.attempt.cancel.collected().has_written(type_)
    }

    /// Returns a declared condition that shows the outcome of a part of the reconcile.
    pub(in crate::controller) fn part_condition<'b>(&self, type_: &'b str) -> PartCondition<'b> {
        let declared = self.shared.conditions.as_ref().map(|kept| &kept.declared);
        PartCondition::of(type_, declared)
    }

    /// Returns the condition in a form that the API server accepts: all conditions are one write,
    /// so that a refused condition would keep the whole status, and the failure itself, from being
    /// shown.
    fn accepted(&self, condition: Condition) -> Condition {
        let (condition, refused) = accepted(condition);
        if let Some(reason) = refused
            && self.shared.memory.first_refusal(&condition.type_)
        {
            let reason = shorten(reason, LOGGED_REASON);
            tracing::warn!(
                controller = %self.shared.controller,
                object = %self.key,
                condition = %condition.type_,
                %reason,
                "the API server refuses the reason of a condition, which is moved to the message; a \
                 reason is one word in CamelCase, the message is for texts; logged once per condition"
            );
        }
        condition
    }

    /// Takes a condition that the controller declares, which is written at the end of the
    /// reconcile. Returns a condition of another type.
    pub(super) fn collected(&self, condition: Condition) -> Result<Option<Condition>, Error> {
        let Some(kept) = &self.shared.conditions else { return Ok(Some(condition)) };
        if kept.declared.contains(&condition.type_) {
            self.collect(ConditionChange::Set(condition));
            return Ok(None);
        }
        if summary::own_types(&kept.declared).any(|own| own == condition.type_) {
            let text = format!(
                "cannot set the condition `{}` of \"{}\": the controller computes it; set one that it \
                 depends on",
                condition.type_, self.key
            );
            return Err(Error::new(ErrorKind::Usage, text));
        }
        Ok(Some(condition))
    }

    /// Writes the conditions after a reconcile with that outcome, if they differ from those of the
    /// object, and reports transitions. No effect for a controller that keeps no conditions.
    pub(in crate::controller) async fn write_conditions(
        &self,
        outcome: &ConditionOutcome,
    ) -> Result<(), Error> {
        let Some(kept) = &self.shared.conditions else { return Ok(()) };
        let changes = self.attempt.cancel.collected().all();
        let generation = self.attempt.cancel.generation();
        let run = SummaryInput { changes: &changes, outcome, generation, now: self.clock().wall() };
        // Computed at each try: another writer may have changed the status.
        let transitions = Mutex::new(Vec::new());
        self.write_status(&|status| {
            if !status.is_object() {
                let text = format!(
                    "cannot keep conditions of \"{}\": its status is not an object",
                    self.key
                );
                return Err(Error::new(ErrorKind::Usage, text));
            }
            let before = kept.own(status);
            let after = summary::summarize(&kept.declared, &before, run);
            *transitions.lock() = summary::transitions(&kept.declared, &before, &after);
            let mut status = kept
                .with(status, &after)
                .map_err(|error| unreadable_conditions(Undecodable::of(&error)))?;
            // A pause observes nothing.
            if kept.keeps_generation()
                && outcome.state != OutcomeState::Paused
                && let Some(generation) = generation
            {
                status["observedGeneration"] = generation.into();
            }
            Ok(status)
        })
        .await?;
        self.attempt.cancel.shown();
        for transition in transitions.into_inner() {
            self.report_transition(&transition);
        }
        Ok(())
    }

    /// Reports that a condition has changed status.
    fn report_transition(&self, condition: &Condition) {
        let Some(kept) = &self.shared.conditions else { return };
        let Condition { type_, status, reason, message, .. } = condition;
        let kind = &self.shared.info.kind;
        let labels: [&str; 4] = [&self.shared.controller, kind, type_, status];
        let metrics = &self.shared.environment.metrics;
        metrics.count(&names::CONDITION_TRANSITIONS, &labels, 1);
        if summary::is_reported(condition) {
            let is_warning = summary::is_warning(&kept.declared, condition);
            let colon = if message.is_empty() { "" } else { ": " };
            let note = format_args!("{type_} is {status}{colon}{message}");
            self.event(if is_warning { Warning } else { Normal }, reason, note);
        }
    }
}
