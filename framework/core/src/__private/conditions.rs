//! The check that a status holds conditions.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;

use crate::conditions::Conditions;
use crate::resource::path::Walk;

/// Types that the field `conditions` of a status has, options aside.
#[diagnostic::on_unimplemented(
    message = "`status.conditions` is not a list of Kubernetes conditions: it is a `{Self}`",
    label = "the field `conditions` of this kind's status has another type",
    note = "write `pub conditions: windlass::conditions::Conditions` in the status"
)]
pub trait ConditionList {}

#[diagnostic::do_not_recommend]
impl ConditionList for Conditions {}
#[diagnostic::do_not_recommend]
impl ConditionList for Vec<Condition> {}

/// Checks that a field is a list of conditions.
pub fn condition_list<T: ConditionList>(_: &Walk<'_, T>) {}
