//! The variants of an enum as types of conditions; `#[derive(ConditionType)]`.

use proc_macro2::{Ident, Span, TokenStream};
use quote::quote;
use syn::ext::IdentExt;
use syn::{Data, DeriveInput, Fields, LitStr, Variant};

use crate::crate_path;
use crate::errors::Errors;
use crate::misplaced::misplaced;
use crate::names;

/// A variant, and the type of a condition that it stands for.
#[derive(Debug)]
pub(super) struct ConditionName<'a> {
    pub(super) ident: &'a Ident,
    /// The text of the type.
    pub(super) text: String,
    pub(super) span: Span,
}

/// `#[derive(ConditionType)]`.
pub(crate) fn derive(input: &DeriveInput) -> TokenStream {
    let mut errors = Errors::default();
    let krate = crate_path::crate_of(&input.attrs, "condition", &mut errors);
    let names = read(input, &mut errors);
    let mut output = errors.finish();
    if let Some(names) = names {
        output.extend(expand(input, &names));
    }
    crate_path::found_by(output, krate.as_ref())
}

/// Reads and checks the variants; `None` for a type that is no enum.
pub(super) fn read<'a>(
    input: &'a DeriveInput,
    errors: &mut Errors,
) -> Option<Vec<ConditionName<'a>>> {
    let Data::Enum(data) = &input.data else {
        errors.at(input.ident.span(), "types of conditions are an `enum`: `enum C { Applied }`");
        return None;
    };
    let mut names: Vec<ConditionName<'_>> = Vec::new();
    for variant in &data.variants {
        let name = "the type of a condition is named by `#[condition(\"example.dev/Ready\")]`";
        misplaced(&variant.attrs, "conditions", name, errors);
        if !matches!(variant.fields, Fields::Unit) {
            errors.at(variant.ident.span(), "the type of a condition is a name: it has no fields");
        }
        let (text, span) = text(variant, errors);
        let name = text.rsplit('/').next().unwrap_or_default();
        let is_valid = name.len() <= 63
            && !name.is_empty()
            && name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.'));
        if !is_valid || text.contains('/') && !names::is_qualified(&text) {
            let text = format!(
                "`{text}` is not a type of a condition: write it in CamelCase, with your domain before \
                 a `/` if others read it"
            );
            errors.at(span, text);
        }
        if names.iter().any(|before| before.text == text) {
            errors.at(span, format_args!("there is already a condition `{text}`"));
        }
        names.push(ConditionName { ident: &variant.ident, text, span });
    }
    if names.is_empty() {
        errors
            .at(input.ident.span(), "name at least one type of a condition: `enum C { Applied }`");
    }
    Some(names)
}

/// Returns the impl of `ConditionType`.
pub(super) fn expand(input: &DeriveInput, names: &[ConditionName<'_>]) -> TokenStream {
    let mut arms = TokenStream::new();
    for ConditionName { ident, text, .. } in names {
        arms.extend(quote!(Self::#ident { .. } => #text,));
    }
    if names.is_empty() {
        arms.extend(quote!(_ => "",));
    }
    let (ident, (generics, arguments, bounds)) = (&input.ident, input.generics.split_for_impl());
    quote! {
        #[automatically_derived]
        impl #generics ::windlass::conditions::ConditionType for #ident #arguments #bounds {
            fn as_str(&self) -> &str {
                match self { #arms }
            }
        }
    }
}

/// Returns the text of a variant: its name, or that of `#[condition("example.dev/Ready")]`.
fn text(variant: &Variant, errors: &mut Errors) -> (String, Span) {
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
