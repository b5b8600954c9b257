//! `object!`: a Kubernetes object as a literal.
//!
//! `syntax` parses, `check` reads the whole tree, `texts` marks texts that may stand for
//! bytes, `expand` generates a statement for each field:
//! the place of the field in Rust, and the value. The compiler checks names and types at the user's
//! tokens; no type but the outermost is named.

// DESIGN.md, 139: `object!` writes places and lets the compiler look names up
// DESIGN.md, 208: `object!` finds the framework by `$crate`

mod blocks;
mod check;
mod expand;
mod known;
mod names;
mod syntax;
mod texts;

pub(crate) use names::rust_name;

use proc_macro2::TokenStream;
use syn::parse::{ParseStream, Parser as _};
use syn::{Path, Token};

use crate::errors::Errors;

/// Parses and expands. Fields without a fault are generated in any case, so that an editor can
/// complete the field that is being written.
pub(crate) fn object(input: TokenStream) -> TokenStream {
    let (krate, input) = match behind_crate.parse2(input) {
        Ok(parts) => parts,
        Err(fault) => return fault.to_compile_error(),
    };
    let mut errors = Errors::default();
    let mut literal = syntax::ObjectLiteral::parse(input, &mut errors);
    if let Some(literal) = &mut literal {
        texts::mark(literal);
        check::check(literal, &mut errors);
    }
    let value = literal.map(|literal| expand::literal(&literal));
    let faults = errors.finish();
    let code = match value {
        Some(value) if faults.is_empty() => value,
        Some(value) => quote::quote!({ #faults #value }),
        None => quote::quote!({ #faults ::core::unimplemented!() }),
    };
    crate::crate_path::with_crate(code, Some(&krate))
}

/// Reads `crate_path; Deployment { … }`: the path under which the macro was found, and the literal.
fn behind_crate(input: ParseStream<'_>) -> syn::Result<(Path, TokenStream)> {
    let krate = input.call(Path::parse_mod_style)?;
    input.parse::<Token![;]>()?;
    Ok((krate, input.parse()?))
}
