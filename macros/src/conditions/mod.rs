//! `#[derive(ConditionType)]`, and `#[derive(Conditions)]` for the conditions that a controller
//! keeps.

pub(crate) mod set;
mod types;

pub(crate) use set::derive as conditions;
pub(crate) use types::derive as condition_type;
