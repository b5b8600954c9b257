//! `#[derive(ConditionType)]`: types of conditions as an enum.

use proc_macro2::TokenStream;
use quote::quote;
use syn::ext::IdentExt;
use syn::{Data, DeriveInput, Fields, LitStr, Variant};

use crate::errors::Errors;
use crate::names;

/// Parses, checks, expands.
pub(crate) fn derive(input: &DeriveInput) -> TokenStream {
    let mut errors = Errors::default();
    let Data::Enum(data) = &input.data else {
        errors.at(input.ident.span(), "types of conditions are an `enum`: `enum C { Ready }`");
        return errors.finish();
    };
    let mut arms = TokenStream::new();
    let mut taken: Vec<String> = Vec::new();
    for variant in &data.variants {
        if !matches!(variant.fields, Fields::Unit) {
            errors.at(variant.ident.span(), "the type of a condition is a name: it has no fields");
        }
        let (text, span) = text(variant, &mut errors);
        let name = text.rsplit('/').next().unwrap_or_default();
        let is_valid = name.len() <= 63
            && !name.is_empty()
            && name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.'));
        if !is_valid || text.contains('/') && !names::is_qualified(&text) {
            let text = format!(
                "`{text}` is no type of a condition: write it in CamelCase, with your domain before \
                 a `/` if others read it"
            );
            errors.at(span, text);
        }
        if taken.contains(&text) {
            errors.at(span, format_args!("there is already a condition `{text}`"));
        }
        let ident = &variant.ident;
        arms.extend(quote!(Self::#ident { .. } => #text,));
        taken.push(text);
    }
    if data.variants.is_empty() {
        errors.at(input.ident.span(), "name at least one type of a condition: `enum C { Ready }`");
        arms.extend(quote!(_ => "",));
    }
    let mut output = errors.finish();
    let (ident, (generics, arguments, bounds)) = (&input.ident, input.generics.split_for_impl());
    output.extend(quote! {
        #[automatically_derived]
        impl #generics ::windlass::conditions::ConditionType for #ident #arguments #bounds {
            fn as_str(&self) -> &str {
                match self { #arms }
            }
        }
    });
    output
}

/// Returns the text of a variant: its name, or that of `#[condition("example.dev/Ready")]`.
fn text(variant: &Variant, errors: &mut Errors) -> (String, proc_macro2::Span) {
    let given = variant.attrs.iter().find(|attribute| attribute.path().is_ident("condition"));
    let given = given.and_then(|attribute| {
        let text = attribute.parse_args::<LitStr>().map_err(|fault| {
            syn::Error::new(fault.span(), "name the type: `#[condition(\"example.dev/Ready\")]`")
        });
        errors.keep(text)
    });
    match given {
        Some(text) => (text.value(), text.span()),
        None => (variant.ident.unraw().to_string(), variant.ident.span()),
    }
}
