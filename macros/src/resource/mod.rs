//! `#[derive(CustomResource)]`.

pub(crate) mod attrs;
mod check;
pub(crate) mod check_places;
mod check_rules;
mod expand;
mod index;
mod model;
pub(crate) mod place;
mod serde;
#[cfg(test)]
mod tests;

use proc_macro2::TokenStream;
use syn::DeriveInput;

use crate::errors::Errors;

/// Parses, checks, expands. The impls are emitted in any case (a fault leaves a default behind), so
/// that the only fault of a resource is not followed by "`Website` is not a Kubernetes resource". A
/// spec with the derive gets no impls, because such a spec usually derives `Serialize`,
/// `Deserialize` and `Schema`, too.
pub(crate) fn derive(input: &DeriveInput) -> TokenStream {
    let mut errors = Errors::default();
    let attrs = attrs::ResourceAttrs::read(&input.attrs, &mut errors);
    let model = model::ResourceModel::new(input, attrs, &mut errors);
    check::check(&model, &mut errors);
    let keys = errors.take_keys();
    let mut output = errors.finish();
    if model.is_spec() {
        // For a spec that stood beside kube-rs, serde's derives generate the impls of an object.
        return output;
    }
    output.extend(if output.is_empty() {
        expand::all(&model, &keys)
    } else {
        expand::fallback(&model)
    });
    crate::crate_path::found_by(output, model.krate.as_ref())
}
