//! The relation of a controller to its conditions, and the methods that set them.

use std::fmt;

use crate::controller::conditions::ConditionChange;
use crate::controller::{Context, Reconciler};
use windlass_core::conditions::{ConditionSet, met, unknown, unmet};

/// A controller that keeps the conditions of the set `T`; implemented by
/// `#[controller(conditions(T))]`.
///
/// An implementation by hand goes with
/// [`ControllerBuilder::conditions`](crate::controller::ControllerBuilder::conditions).
#[diagnostic::on_unimplemented(
    message = "the controller `{Self}` does not keep the conditions `{T}`",
    label = "no conditions of `{Self}`",
    note = "`#[controller(…, conditions(WebsiteCondition))]` names the conditions of a controller: one enum"
)]
// No bound on `T`: a type that is no set would be reported here and at the builder.
pub trait OwnsConditions<T>: Reconciler {}

/// Sets a condition of the controller: `WebsiteCondition::Available.met(cx, "RolledOut", "")`.
///
/// For every enum that derives `Conditions`. Nothing is sent: the conditions are written together
/// with `Ready` at the end of the reconcile, if they differ from those of the object. The last call
/// of a reconcile counts. A condition that a reconcile does not set stays as it is; one of an
/// earlier generation makes `Ready` unknown.
///
/// `reason` is one word in `CamelCase` for programs, `message` is for people and may be empty; the
/// limits are those of [`met`]. A reason that the API server would refuse, such as the text of an
/// error, stands before the message, and the reason is `InvalidReason`; it is logged once per
/// condition.
///
/// ```
/// # extern crate windlass_runtime as windlass;
/// # use k8s_openapi::api::core::v1::ConfigMap;
/// # use windlass::controller::OwnsConditions;
/// # use windlass::conditions::{ConditionSet, ConditionType, ConditionTypes};
/// use windlass::prelude::*;
///
/// # enum SiteCondition { Available }
/// # impl ConditionType for SiteCondition {
/// #     fn as_str(&self) -> &str { "Available" }
/// # }
/// # impl ConditionSet for SiteCondition {
/// #     const TYPES: ConditionTypes = ConditionTypes {
/// #         root: "Ready", ready: &["Available"], stalled_on: &[], others: &[],
/// #     };
/// # }
/// # struct Sites;
/// # impl OwnsConditions<SiteCondition> for Sites {}
/// # impl Sites {
/// #     fn ready(&self, _: &ConfigMap) -> i32 { 3 }
/// # }
/// impl Reconciler for Sites {
///     type Object = ConfigMap;
///
///     async fn reconcile(&self, site: &ConfigMap, cx: &Context<Self>) -> Result {
///         let ready = self.ready(site);
///         if ready < 3 {
///             SiteCondition::Available.unmet(cx, "RollingOut", format_args!("{ready} of 3 ready"));
///             return Ok(Action::wait_for("Rollout", format_args!("{ready} of 3 ready")));
///         }
///         SiteCondition::Available.met(cx, "RolledOut", "");
///         Ok(Action::done())
///     }
/// }
/// ```
pub trait SetCondition: ConditionSet {
    /// The condition is true.
    fn met<C: OwnsConditions<Self>>(
        &self,
        cx: &Context<C>,
        reason: &str,
        message: impl fmt::Display,
    ) where
        Self: Sized,
    {
        cx.collect(ConditionChange::Set(met(self.as_str(), reason, message.to_string())));
    }

    /// The condition is true if `is_met`; otherwise the call does nothing.
    ///
    /// For one of `stalled_on(…)`, which is present only while it is true. Another one that turns
    /// out not to be met is set by [`unmet`](Self::unmet).
    fn met_if<C: OwnsConditions<Self>>(
        &self,
        cx: &Context<C>,
        is_met: bool,
        reason: &str,
        message: impl fmt::Display,
    ) where
        Self: Sized,
    {
        if is_met {
            self.met(cx, reason, message);
        }
    }

    /// The condition is false.
    fn unmet<C: OwnsConditions<Self>>(
        &self,
        cx: &Context<C>,
        reason: &str,
        message: impl fmt::Display,
    ) where
        Self: Sized,
    {
        cx.collect(ConditionChange::Set(unmet(self.as_str(), reason, message.to_string())));
    }

    /// The state of the condition could not be observed.
    fn unknown<C: OwnsConditions<Self>>(
        &self,
        cx: &Context<C>,
        reason: &str,
        message: impl fmt::Display,
    ) where
        Self: Sized,
    {
        cx.collect(ConditionChange::Set(unknown(self.as_str(), reason, message.to_string())));
    }

    /// Removes the condition, which does not apply to the object any more. One that `Ready` depends
    /// on is unknown from then on.
    fn clear<C: OwnsConditions<Self>>(&self, cx: &Context<C>)
    where
        Self: Sized,
    {
        cx.collect(ConditionChange::Clear(self.as_str().to_owned()));
    }
}

impl<T: ConditionSet> SetCondition for T {}
