//! `object!`: a Kubernetes object as a literal.
//!
//! `syntax` parses, `expand` generates one statement for each field: the place of the field in
//! Rust, and its value. The compiler checks names and types at the user's tokens; no type but the
//! outermost is named.

// DESIGN.md, 139: `object!` writes places and lets the compiler look names up

mod blocks;
mod expand;
mod names;
mod syntax;

use proc_macro2::TokenStream;

use crate::errors::Errors;

/// Parses and expands. Fields without a fault are generated in any case, so that an editor can
/// complete the one that is being written.
pub(crate) fn object(input: TokenStream) -> TokenStream {
    let mut errors = Errors::default();
    let literal = syntax::Literal::parse(input, &mut errors);
    let value = literal.map(|literal| expand::literal(&literal));
    let faults = errors.finish();
    match value {
        Some(value) if faults.is_empty() => value,
        Some(value) => quote::quote!({ #faults #value }),
        None => quote::quote!({ #faults ::core::unimplemented!() }),
    }
}
