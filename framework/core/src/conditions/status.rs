//! A status with the conditions of a controller and nothing else.

// DESIGN.md, 180: What nearly every kind has is a type and a word

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Conditions;
use crate::resource::path::{FieldName, FieldNames};

/// A status that consists of what every controller keeps in it:
/// `status: Option<ConditionedStatus>`.
///
/// For kinds that report nothing else; another kind has a struct of its own with these two fields.
///
/// ```
/// # extern crate windlass_core as windlass;
/// use windlass::conditions::{ConditionedStatus, met};
///
/// let mut status = ConditionedStatus::default();
/// status.conditions.set(met("Ready", "Reconciled", ""), jiff::Timestamp::UNIX_EPOCH);
/// assert!(status.conditions.is_met("Ready") && status.observed_generation.is_none());
/// ```
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
// The text above is for programmers, and this one for those who read the definition.
#[schemars(description = "Last state that the controllers of this object reported.")]
pub struct ConditionedStatus {
    /// Generation of the object that the conditions are about.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// Conditions of this object, each with its last transition and its reason.
    pub conditions: Conditions,
}

impl FieldNames for ConditionedStatus {
    const FIELDS: &'static [FieldName] = &[
        FieldName { rust: "observed_generation", json: "observedGeneration", flattened: false },
        FieldName { rust: "conditions", json: "conditions", flattened: false },
    ];
}
