//! Label and field selectors: which objects a list, watch or deletion means.
//!
//! Parsing follows kube-apiserver token by token, since its error texts depend on that. Which fields
//! a kind can be selected by is the kind's business.

mod fields;
mod labels;

pub(crate) use fields::{FieldSelector, field_value};
pub(crate) use labels::LabelSelector;
