//! Values over JSON, functions and evaluation with a cost budget.

mod authorizer;
mod cost;
pub mod equal;
pub mod error;
pub mod functions;
mod json;
pub mod list;
mod literals;
pub mod map;
mod messages;
pub(crate) mod patches;
mod plan;
mod program;
mod run;
#[cfg(test)]
mod tests;
pub mod value;
mod work;

pub use authorizer::{
    Authorization, AuthorizationRequest, AuthorizationTarget, Authorizer, Decision,
    ResourceAttributes, UserInfo, authorizer_value, request_resource_value,
};
pub use error::EvalError;
pub use list::List;
pub use literals::LITERALS;
pub use map::Map;
pub use program::{Limits, Outcome, Program, Variables};
pub use run::composed::Definitions;
pub use value::{Opaque, Text, Value};
pub use work::WorkBudget;
