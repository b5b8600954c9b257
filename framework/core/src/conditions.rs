//! Conditions: statements about an object, with the time and the reason of their last change.
//!
//! `met`, `unmet` and `unknown` make a condition, [`Conditions`] keeps one entry per type as
//! Kubernetes expects. `Context::set_condition` writes them. A [`ConditionSet`] declares the
//! conditions of a controller, from which `Ready` is computed.
//!
//! ```
//! # extern crate windlass_core as windlass;
//! use windlass::conditions::{Conditions, met, unmet};
//!
//! let now = jiff::Timestamp::UNIX_EPOCH;
//! let mut conditions = Conditions::new();
//! assert!(conditions.set(unmet("Ready", "Starting", "0 of 3 replicas are ready"), now));
//! assert!(conditions.set(met("Ready", "Serving", ""), now));
//! assert!(conditions.is_met("Ready"));
//! // The same condition again is no change, so that no write follows.
//! assert!(!conditions.set(met("Ready", "Serving", ""), now));
//! ```

mod declared;
mod status;

use std::borrow::Cow;
use std::ops::Deref;

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize};

use crate::resource::FieldValue;

pub use declared::{ConditionSet, ConditionTypes, ReadyCondition};
pub use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
pub use status::ConditionedStatus;

/// The type of a condition: a text, or a value of an enum of the types that a kind has.
///
/// `#[derive(ConditionType)]` implements the trait for an enum whose variants have no fields:
/// `WebsiteCondition::Ready` is the type `Ready`. A misspelt variant does not compile, where a
/// misspelt text becomes a condition that nothing reads.
///
/// ```
/// # extern crate windlass_core as windlass;
/// use windlass::conditions::{ConditionType, met};
///
/// // As `#[derive(ConditionType)]` generates it.
/// enum WebsiteCondition {
///     Ready,
/// }
///
/// impl ConditionType for WebsiteCondition {
///     fn as_str(&self) -> &str {
///         match self {
///             Self::Ready => "Ready",
///         }
///     }
/// }
///
/// assert_eq!(met(WebsiteCondition::Ready, "Serving", ""), met("Ready", "Serving", ""));
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a type of a condition",
    label = "expected a text, or an enum that derives `ConditionType`"
)]
pub trait ConditionType {
    /// The text of the type.
    fn as_str(&self) -> &str;
}

impl ConditionType for str {
    fn as_str(&self) -> &str {
        self
    }
}

impl ConditionType for String {
    fn as_str(&self) -> &str {
        self
    }
}

#[diagnostic::do_not_recommend]
impl<T: ConditionType + ?Sized> ConditionType for &T {
    fn as_str(&self) -> &str {
        (**self).as_str()
    }
}

/// Longest message that the API server accepts, in bytes.
const MESSAGE_LIMIT: usize = 32_768;

/// The condition `type_` is true.
///
/// `reason` is a single word in `CamelCase`, for programs; `message` is for people and may be
/// empty.
///
/// A message above 32,768 bytes is cut (the API server allows 32,768 characters) and ends with an
/// ellipsis. `observed_generation` is `None`: `Context::set_condition` fills in the generation.
///
/// The API server refuses an empty reason, and a reason with other characters than letters, digits,
/// `_`, `,` and `:`.
///
/// ```
/// # extern crate windlass_core as windlass;
/// use windlass::conditions::met;
///
/// let condition = met("Ready", "Serving", "3 of 3 replicas are ready");
/// assert_eq!((&*condition.type_, &*condition.status), ("Ready", "True"));
/// ```
pub fn met(type_: impl ConditionType, reason: &str, message: impl Into<String>) -> Condition {
    condition(type_.as_str(), "True", reason, message.into())
}

/// The condition `type_` is false; as [`met`] otherwise.
///
/// ```
/// # extern crate windlass_core as windlass;
/// use windlass::conditions::unmet;
///
/// assert_eq!(unmet("Ready", "HostTaken", "a.example is in use").status, "False");
/// ```
pub fn unmet(type_: impl ConditionType, reason: &str, message: impl Into<String>) -> Condition {
    condition(type_.as_str(), "False", reason, message.into())
}

/// The state of the condition `type_` is unknown; as [`met`] otherwise.
///
/// For a state that could not be observed: an external system did not answer, say.
///
/// ```
/// # extern crate windlass_core as windlass;
/// use windlass::conditions::unknown;
///
/// assert_eq!(unknown("Ready", "NoAnswer", "the registry is away").status, "Unknown");
/// ```
pub fn unknown(type_: impl ConditionType, reason: &str, message: impl Into<String>) -> Condition {
    condition(type_.as_str(), "Unknown", reason, message.into())
}

/// Builds a condition; the status is `True`, `False` or `Unknown`.
fn condition(type_: &str, status: &str, reason: &str, message: String) -> Condition {
    Condition {
        type_: type_.to_owned(),
        status: status.to_owned(),
        reason: reason.to_owned(),
        message: crate::text::shorten(message, MESSAGE_LIMIT),
        observed_generation: None,
        // `Conditions::set` replaces this time.
        last_transition_time: Time(Timestamp::UNIX_EPOCH),
    }
}

/// The conditions of a status: `pub conditions: Conditions`.
///
/// At most one condition per type; in the schema a list with map semantics by `type`, so that
/// several writers can each own theirs. An absent or null field means no conditions: the field
/// needs no `#[serde(default)]`.
///
/// Order: as the conditions were first set. The slice methods are available by deref.
///
/// ```
/// # extern crate windlass_core as windlass;
/// use windlass::conditions::{Conditions, met};
///
/// #[derive(serde::Deserialize)]
/// struct Status {
///     conditions: Conditions,
/// }
///
/// let status: Status = serde_json::from_str("{}")?;
/// assert!(status.conditions.is_empty());
/// let all = [met("Ready", "Serving", ""), met("Synced", "Done", "")];
/// let all: Conditions = all.into_iter().collect();
/// assert_eq!(all.iter().map(|one| one.type_.as_str()).collect::<Vec<_>>(), ["Ready", "Synced"]);
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[serde(transparent)]
pub struct Conditions(Vec<Condition>);

impl<'de> Deserialize<'de> for Conditions {
    /// Reads an `Option`, because serde accepts an absent field for that type.
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Option::deserialize(deserializer).map(|list| Self(list.unwrap_or_default()))
    }
}

impl Conditions {
    /// No conditions.
    pub fn new() -> Self {
        Self::default()
    }

    /// The condition of that type.
    ///
    /// Types are compared by case, as the API server does.
    pub fn get(&self, type_: impl ConditionType) -> Option<&Condition> {
        self.0.iter().find(|condition| condition.type_ == type_.as_str())
    }

    /// Whether the condition of that type is true. False when there is none.
    ///
    /// `Unknown` counts as not met, too.
    pub fn is_met(&self, type_: impl ConditionType) -> bool {
        self.get(type_).is_some_and(|condition| condition.status == "True")
    }

    /// Replaces the condition of the same type by `condition`, or appends `condition`.
    ///
    /// The transition time becomes `now` when the status differs from before, and stays unchanged
    /// otherwise. Returns true when anything but the transition time changed.
    ///
    /// A true result is the reason to write the status; a false result saves the write.
    ///
    /// ```
    /// # extern crate windlass_core as windlass;
    /// use jiff::Timestamp;
    /// use windlass::conditions::{Conditions, met};
    ///
    /// let early = Timestamp::UNIX_EPOCH;
    /// let late = early + jiff::SignedDuration::from_secs(9);
    /// let mut conditions = Conditions::new();
    /// conditions.set(met("Ready", "Serving", ""), early);
    /// // Another message with the same status is a change, but no transition.
    /// assert!(conditions.set(met("Ready", "Serving", "all well"), late));
    /// assert_eq!(conditions[0].last_transition_time.0, early);
    /// ```
    pub fn set(&mut self, mut condition: Condition, now: Timestamp) -> bool {
        condition.last_transition_time = Time(now);
        let Some(old) = self.0.iter_mut().find(|old| old.type_ == condition.type_) else {
            self.0.push(condition);
            return true;
        };
        if old.status == condition.status {
            condition.last_transition_time = old.last_transition_time.clone();
        }
        if *old == condition {
            return false;
        }
        *old = condition;
        true
    }

    /// Removes the condition of that type; returns true when there was such a condition.
    ///
    /// For conditions that no longer apply to the object; a condition that became false is
    /// [set](Self::set) instead.
    pub fn remove(&mut self, type_: impl ConditionType) -> bool {
        let before = self.0.len();
        self.0.retain(|condition| condition.type_ != type_.as_str());
        before != self.0.len()
    }
}

impl Deref for Conditions {
    type Target = [Condition];

    fn deref(&self) -> &[Condition] {
        &self.0
    }
}

impl FromIterator<Condition> for Conditions {
    /// The last condition of each type wins.
    fn from_iter<I: IntoIterator<Item = Condition>>(conditions: I) -> Self {
        let mut kept = Self::default();
        for condition in conditions {
            kept.remove(&*condition.type_);
            kept.0.push(condition);
        }
        kept
    }
}

#[diagnostic::do_not_recommend]
impl<const N: usize> FieldValue<Conditions> for [Condition; N] {
    fn into_field(self) -> Conditions {
        self.into_iter().collect()
    }
}

#[diagnostic::do_not_recommend]
impl FieldValue<Conditions> for Vec<Condition> {
    fn into_field(self) -> Conditions {
        self.into_iter().collect()
    }
}

impl JsonSchema for Conditions {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "Conditions".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": "array",
            "description": "Conditions of this object, each with its last transition and its reason.",
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["type"],
            "items": {
                "type": "object",
                "required": ["type", "status", "reason", "message", "lastTransitionTime"],
                "properties": {
                    "type": {
                        "type": "string",
                        "description": "Type of the condition, in CamelCase.",
                        "maxLength": 316,
                        "pattern": "^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])$",
                    },
                    "status": {
                        "type": "string",
                        "description": "True, False or Unknown.",
                        "enum": ["True", "False", "Unknown"],
                    },
                    "reason": {
                        "type": "string",
                        "description": "Why, as one word in CamelCase, for programs.",
                        "minLength": 1,
                        "maxLength": 1024,
                        "pattern": "^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$",
                    },
                    "message": {
                        "type": "string",
                        "description": "Why, for people; may be empty.",
                        "maxLength": 32768,
                    },
                    "observedGeneration": {
                        "type": "integer",
                        "format": "int64",
                        "description": "The generation of the object that this is about.",
                        "minimum": 0,
                    },
                    "lastTransitionTime": {
                        "type": "string",
                        "format": "date-time",
                        "description": "When the status last changed.",
                    },
                },
            },
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).expect("in range")
    }

    #[test]
    fn the_transition_time_moves_only_when_the_status_changes() {
        let mut conditions = Conditions::new();
        assert!(conditions.set(met("Ready", "Serving", ""), at(1)));
        assert!(conditions.set(met("Ready", "StillServing", "all well"), at(2)));
        assert_eq!(conditions[0].last_transition_time, Time(at(1)));
        assert!(conditions.set(unmet("Ready", "HostTaken", "a.example"), at(3)));
        assert_eq!(conditions[0].last_transition_time, Time(at(3)));
    }

    #[test]
    fn setting_the_same_condition_again_changes_nothing() {
        let mut conditions = Conditions::new();
        conditions.set(met("Ready", "Serving", ""), at(1));
        let before = conditions.clone();
        assert!(!conditions.set(met("Ready", "Serving", ""), at(9)));
        assert_eq!(conditions, before);
    }

    #[test]
    fn a_new_observed_generation_is_a_change_but_no_transition() {
        let mut conditions = Conditions::new();
        conditions.set(met("Ready", "Serving", ""), at(1));
        let newer = Condition { observed_generation: Some(2), ..met("Ready", "Serving", "") };
        assert!(conditions.set(newer, at(2)));
        assert_eq!(conditions[0].last_transition_time, Time(at(1)));
    }

    #[test]
    fn other_types_stay_in_their_places() {
        let mut conditions: Conditions =
            [met("A", "X", ""), met("B", "X", ""), met("C", "X", "")].into_iter().collect();
        conditions.set(unmet("B", "Y", ""), at(1));
        assert_eq!(
            conditions.iter().map(|c| c.type_.as_str()).collect::<Vec<_>>(),
            ["A", "B", "C"]
        );
        assert!(conditions.is_met("A") && !conditions.is_met("B") && !conditions.is_met("Z"));
    }

    #[test]
    fn the_schema_is_a_map_list_by_type() {
        let schema = schemars::schema_for!(Conditions);
        let schema = schema.as_value();
        assert_eq!(schema["x-kubernetes-list-type"], "map");
        assert_eq!(schema["x-kubernetes-list-map-keys"][0], "type");
    }

    #[test]
    fn conditions_serialize_as_a_plain_list() {
        let conditions: Conditions = [met("Ready", "Serving", "yes")].into_iter().collect();
        let json = serde_json::to_value(&conditions).expect("serializes");
        assert_eq!(json[0]["type"], "Ready");
        assert_eq!(serde_json::from_value::<Conditions>(json).expect("reads"), conditions);
    }
}
