//! Items that the code of `#[derive(Schema)]` names.

pub use super::fields::{FieldName, FieldNames};
pub use super::list_keys::{GuessedNames, KeyNames, ListField};
pub use crate::crd::derived::*;
