//! Conditions that a controller keeps: `Ready` and its companions, computed from the outcome of
//! each reconcile and from the conditions that it sets.
//!
//! A reconcile sets its conditions by methods of their enum
//! ([`SetCondition`](crate::controller::SetCondition)), which collect and send nothing. At its end
//! [`summary`] computes the root, and one patch writes all that differ. A failure is written by the
//! worker's report, which knows whether it is retried; a dropped reconcile writes nothing.
//!
//! Not included: a write at the beginning. `status.observedGeneration` is behind the generation
//! until the first reconcile of a new spec has ended, which kstatus reads as `InProgress`.

// DESIGN.md, 161: `Ready` follows from the outcome of a reconcile and from declared conditions

mod accepted;
mod collected;
mod parts;
pub(super) mod reasons;
pub(super) mod summary;

pub(super) use accepted::accepted;
pub(super) use collected::{AttemptConditions, ConditionChange};
pub(super) use parts::{PartCondition, failed, succeeded};
pub(super) use summary::{ConditionOutcome, OutcomeState};

use serde_json::Value;

use windlass_core::conditions::{Condition, ConditionSet, ConditionTypes, Conditions};
use windlass_core::error::{Error, ErrorKind};
use windlass_core::resource::{Resource, ResourceInfo, status_fields};

/// The conditions of a controller in the status of its kind.
#[derive(Clone, Copy, Debug)]
pub(super) struct StatusConditions {
    pub(super) declared: ConditionTypes,
    /// Names of the fields of the status; empty if they are not known.
    fields: &'static [&'static str],
}

impl StatusConditions {
    /// Returns the conditions of the set `T` in the status of kind `K`.
    pub(super) fn of<K: Resource, T: ConditionSet>() -> Self {
        // A projection may have fewer fields than the status, and none is known then.
        let fields = if K::projection().is_some() { &[] } else { status_fields::<K>() };
        Self { declared: T::TYPES, fields }
    }

    /// Returns the types that are kept, the root first.
    pub(super) fn types(&self) -> Vec<&'static str> {
        let root = self.declared.root;
        let others = summary::own_types(&self.declared).filter(|type_| *type_ != root);
        std::iter::once(root).chain(others).collect()
    }

    /// Whether `status.observedGeneration` is kept.
    pub(super) fn keeps_generation(&self) -> bool {
        self.declared.root == summary::READY && self.fields.contains(&"observedGeneration")
    }

    /// Checks that the status has a field for conditions: the API server removes what the schema
    /// does not know, so that the same conditions would be written for ever.
    ///
    /// # Errors
    /// [`ErrorKind::Usage`] when it has none.
    pub(super) fn check(&self, info: &ResourceInfo) -> Result<(), Error> {
        if self.fields.is_empty() || self.fields.contains(&"conditions") {
            return Ok(());
        }
        let text = format!(
            "cannot keep conditions of {}: its status has no field `conditions`; add \
             `pub conditions: Conditions`",
            info.kind
        );
        Err(Error::new(ErrorKind::Usage, text))
    }

    /// Returns the own conditions in a status. One that cannot be read counts as absent, and is
    /// replaced.
    pub(super) fn own(&self, status: &Value) -> Conditions {
        let own = entries(status).iter().filter(|entry| self.owns(entry));
        own.filter_map(|entry| serde_json::from_value::<Condition>(entry.clone()).ok()).collect()
    }

    /// Returns a status with these own conditions. Entries of others stay as they are, and in their
    /// places, as do own ones that are unchanged.
    pub(super) fn with(
        &self,
        status: &Value,
        conditions: &Conditions,
    ) -> Result<Value, serde_json::Error> {
        let before = self.own(status);
        let mut left: Vec<&Condition> = conditions.iter().collect();
        let mut list = Vec::new();
        for entry in entries(status) {
            if !self.owns(entry) {
                list.push(entry.clone());
                continue;
            }
            let place = left.iter().position(|it| Some(it.type_.as_str()) == type_of(entry));
            let Some(place) = place else { continue };
            let condition = left.remove(place);
            let is_same = before.get(condition.type_.as_str()) == Some(condition);
            list.push(if is_same { entry.clone() } else { serde_json::to_value(condition)? });
        }
        for condition in left {
            list.push(serde_json::to_value(condition)?);
        }
        let mut status = status.clone();
        if !list.is_empty() || status.get("conditions").is_some() {
            status["conditions"] = list.into();
        }
        Ok(status)
    }

    fn owns(&self, entry: &Value) -> bool {
        type_of(entry)
            .is_some_and(|type_| summary::own_types(&self.declared).any(|own| own == type_))
    }
}

/// Returns the entries of `status.conditions`.
fn entries(status: &Value) -> &[Value] {
    status.get("conditions").and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

/// Returns the type of an entry.
fn type_of(entry: &Value) -> Option<&str> {
    entry.get("type")?.as_str()
}

#[cfg(test)]
mod tests;
