//! Texts that tell types of one name apart.

// DESIGN.md, 317: The identity of a derived schema has the place and a hash of the type

use proc_macro2::TokenStream;
use quote::{ToTokens, quote};

/// Returns a literal for the type `name` at the place of its derive, which differs from those of
/// types of the same name in other functions and blocks of the module.
///
/// A macro that is called once may write several such types, and all of them are at the place of
/// the call: `tokens`, the type's own, are part of the text as a hash. The text ends with the name,
/// which messages show.
pub(crate) fn identity(name: &str, tokens: impl ToTokens) -> TokenStream {
    let end = format!("#{:08x}::{name}", hash(&tokens.to_token_stream().to_string()));
    quote! {
        ::core::concat!(
            ::core::module_path!(), "@", ::core::line!(), ":", ::core::column!(), #end
        )
    }
}

/// The hash FNV-1a in 32 bits: the same in each build, unlike that of the standard library.
fn hash(text: &str) -> u32 {
    text.bytes().fold(0x811c_9dc5, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193))
}
