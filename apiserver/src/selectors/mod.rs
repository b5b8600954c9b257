//! Label and field selectors of lists, watches and deletions of collections.
//!
//! Parsing follows kube-apiserver token by token, since kube-apiserver's error texts depend on
//! that. The fields by which a kind can be selected belong to the kind.

mod fields;
mod labels;
mod objects;

pub(crate) use fields::{FieldSelector, field_value};
pub(crate) use labels::LabelSelector;
pub(crate) use objects::selects;
