//! `#[derive(Schema)]`.
//!
//! Unlike the other derives this derive stands beside serde's and follows serde's attributes:
//! `serde` reads them, `attrs` reads `#[schema(…)]`, `model` holds both, `rules` checks CEL,
//! `readable` readability by serde, `check` the rest, `expand` quotes.

pub(crate) mod attrs;
mod bounds;
mod check;
mod class;
mod expand;
mod extend;
mod fields;
mod hints;
mod key;
mod model;
mod readable;
mod rules;
mod serde;
#[cfg(test)]
mod tests;
mod values;

pub(crate) use class::is_scalar;
pub(crate) use fields::requested_of_root;
pub(crate) use hints::meant;
pub(crate) use serde::{Default as FieldDefault, Rename};

use proc_macro2::TokenStream;
use syn::DeriveInput;

use crate::errors::Errors;

/// Parses, checks, expands. With faults, the type still counts as a type with a schema.
pub(crate) fn derive(input: &DeriveInput) -> TokenStream {
    let mut errors = Errors::default();
    let model = model::SchemaModel::new(input, &mut errors);
    check::check(&model, &mut errors);
    readable::check(&model, &mut errors);
    let keys = errors.take_keys();
    let mut output = errors.finish();
    if model::kind(input).is_some() {
        // `CustomResource` generates the same impls for a kind.
        return output;
    }
    output.extend(if output.is_empty() {
        expand::all(&model, &keys)
    } else {
        expand::fallback(&model)
    });
    output
}
