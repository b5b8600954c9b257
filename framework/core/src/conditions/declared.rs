//! The conditions that a controller keeps, declared as an enum.

// DESIGN.md, 161: `Ready` follows from the outcome of a reconcile and from declared conditions

use super::ConditionType;

/// The conditions of a controller, and the rule by which the root condition follows from them;
/// implemented by `#[derive(Conditions)]` for an enum.
///
/// ```
/// # extern crate windlass_core as windlass;
/// use windlass::conditions::{ConditionSet, ConditionType, ConditionTypes};
///
/// // As `#[derive(Conditions)]` generates it.
/// enum WebsiteCondition {
///     ConfigApplied,
///     InvalidSpec,
/// }
///
/// impl ConditionType for WebsiteCondition {
///     fn as_str(&self) -> &str {
///         match self {
///             Self::ConfigApplied => "ConfigApplied",
///             Self::InvalidSpec => "InvalidSpec",
///         }
///     }
/// }
///
/// impl ConditionSet for WebsiteCondition {
///     const TYPES: ConditionTypes = ConditionTypes {
///         root: "Ready",
///         ready: &["ConfigApplied"],
///         stalled_on: &["InvalidSpec"],
///         others: &[],
///     };
/// }
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a set of conditions",
    label = "expected an enum that derives `Conditions`",
    note = "`#[derive(Conditions)] #[conditions(ready(all(Applied)))] enum SiteCondition {{ Applied }}`"
)]
pub trait ConditionSet: ConditionType + Send + Sync + 'static {
    /// The types of the set, by their role.
    const TYPES: ConditionTypes;
}

/// The types of a [`ConditionSet`], by their role.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConditionTypes {
    /// The condition that is computed from the others: mostly `Ready`.
    pub root: &'static str,
    /// All of them are true of an object that is ready.
    pub ready: &'static [&'static str],
    /// Each of these conditions, while true, says that nothing helps but a change of the object.
    /// Such conditions are present only while they are true.
    pub stalled_on: &'static [&'static str],
    /// Conditions that have no influence on the root.
    pub others: &'static [&'static str],
}

impl ConditionTypes {
    /// Whether a reconciler may set the condition of that type.
    pub fn contains(&self, type_: &str) -> bool {
        [self.ready, self.stalled_on, self.others].iter().any(|group| group.contains(&type_))
    }
}

/// No conditions of the operator's own: `Ready` follows from the outcome of reconciles alone.
///
/// `#[controller(conditions)]` stands for `conditions(ReadyCondition)`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReadyCondition {}

impl ConditionType for ReadyCondition {
    fn as_str(&self) -> &str {
        match *self {}
    }
}

impl ConditionSet for ReadyCondition {
    const TYPES: ConditionTypes =
        ConditionTypes { root: "Ready", ready: &[], stalled_on: &[], others: &[] };
}
