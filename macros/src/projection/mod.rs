//! `#[derive(Projection)]`.

pub(crate) mod attrs;
mod check;
mod expand;
mod model;
mod names;

use proc_macro2::TokenStream;
use quote::quote;
use syn::DeriveInput;

use crate::errors::Errors;

/// Parses, checks, expands. With faults the impls are empty, so that the compiler does not report
/// besides that the projection is no resource.
pub(crate) fn derive(input: &DeriveInput) -> TokenStream {
    let mut errors = Errors::default();
    let model = model::ProjectionModel::new(input, &mut errors);
    check::check(&model, &mut errors);
    let keys = errors.take_keys();
    let mut output = errors.finish();
    output.extend(if output.is_empty() { expand::all(&model) } else { expand::fallback(&model) });
    let known: &[&[&str]] = &[attrs::KEYS, attrs::FIELD_KEYS];
    let references = crate::keys::references(&quote!(::windlass), "projection", &keys, known);
    output.extend(references);
    crate::crate_path::found_by(output, model.krate.as_ref())
}
