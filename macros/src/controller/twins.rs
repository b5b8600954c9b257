//! A kind that is named by two paths, `owns(Secret, core::v1::Secret)`.
//!
//! A macro cannot know whether two paths lead to the same type; the compiler would report a
//! conflict for each generated impl. Entries with the same last name are compared as constants: the
//! impls of the later entry are for a separate type if the kind is the same, and a separate text
//! says so.

// DESIGN.md, 207: Kinds of one name are compared by constants, so that a kind owned twice is one error

use proc_macro2::TokenStream;
use quote::{ToTokens, quote, quote_spanned};
use syn::spanned::Spanned;
use syn::{Ident, PathArguments, Type};

use super::attrs::Attrs;
use super::expand::at;
use super::grants::Target;
use crate::keys::same_tokens;

/// Returns the last name of a path without arguments; other types are not compared.
fn name(kind: &Type) -> Option<&Ident> {
    let Type::Path(path) = kind else { return None };
    let has_arguments = path.path.segments.iter().any(|it| it.arguments != PathArguments::None);
    if has_arguments || path.qself.is_some() {
        return None;
    }
    path.path.segments.last().map(|last| &last.ident)
}

/// Whether two types may be the same, though written in two ways.
fn is_suspect(one: &Type, other: &Type) -> bool {
    name(one).is_some() && name(one) == name(other) && !same_tokens(one, other)
}

/// Returns `kind`, or a separate type if a type before is the same kind.
pub(super) fn apart(kind: &Type, before: &[&Type], krate: &TokenStream) -> TokenStream {
    let suspects: Vec<_> = before.iter().filter(|other| is_suspect(other, kind)).collect();
    if suspects.is_empty() {
        return kind.to_token_stream();
    }
    let (same, position) = (quote!(#krate::__private::is_same_kind), before.len());
    quote_spanned! {at(kind.span())=>
        <__IsSameKind<{ #(#same::<#suspects, #kind>())||* }> as __Apart<#kind, #position>>::Kind
    }
}

/// Returns the code with the items that [`apart`] names.
///
/// They are declared in the user's crate: of a foreign type or trait the compiler assumes that a
/// later version has further impls, and takes each answer for a conflict.
pub(super) fn within(attrs: &Attrs, code: TokenStream, krate: &TokenStream) -> TokenStream {
    let kinds = kinds(attrs);
    let is_needed =
        kinds.iter().enumerate().any(|(i, kind)| kinds[..i].iter().any(|it| is_suspect(it, kind)));
    if !is_needed {
        return code;
    }
    quote! {
        const _: () = {
            #[allow(dead_code)]
            struct __IsSameKind<const ANSWER: bool>;
            trait __Apart<K, const N: usize> {
                type Kind;
            }
            impl<K, const N: usize> __Apart<K, N> for __IsSameKind<false> {
                type Kind = K;
            }
            impl<K, const N: usize> __Apart<K, N> for __IsSameKind<true> {
                type Kind = #krate::__private::Repeated<K, N>;
            }
            #code
        };
    }
}

/// Returns all kinds that the attribute names.
fn kinds(attrs: &Attrs) -> Vec<&Type> {
    let owned = attrs.owns.iter().map(|owned| &owned.kind);
    let watched = attrs.watches.iter().map(|watch| &watch.kind);
    let granted = attrs.grants.iter().filter_map(|grant| match &grant.target {
        Target::Kind(kind, _) => Some(&**kind),
        _ => None,
    });
    attrs.object.iter().chain(owned).chain(watched).chain(granted).collect()
}

/// Returns the types before the type that is written in the same way.
pub(super) fn before<'a, 'b>(kind: &Type, all: &'b [&'a Type]) -> &'b [&'a Type] {
    let position = all.iter().position(|other| same_tokens(*other, kind));
    &all[..position.unwrap_or(all.len())]
}

/// Returns the check that none of the types before is the same kind.
pub(super) fn only(kind: &Type, before: &[&Type], fault: &str, krate: &TokenStream) -> TokenStream {
    let suspects = before.iter().filter(|other| is_suspect(other, kind));
    let checks = suspects.map(|other| {
        let text = |kind: &Type| kind.to_token_stream().to_string().replace(' ', "");
        let message = format!("`{}` is `{}`: {fault}", text(kind), text(other));
        // Of a path the last name is underlined: of several tokens rustc would take the first.
        let place = at(name(kind).map_or_else(|| kind.span(), Ident::span));
        quote_spanned! {place=>
            const _: () = ::core::assert!(
                !#krate::__private::is_same_kind::<#other, #kind>(),
                #message
            );
        }
    });
    checks.collect()
}

/// Returns the checks of owned kinds.
pub(super) fn owned_once(attrs: &Attrs, krate: &TokenStream) -> TokenStream {
    let object: Vec<_> = attrs.object.iter().collect();
    let owned: Vec<_> = attrs.owns.iter().map(|owned| &owned.kind).collect();
    let checks = owned.iter().enumerate().map(|(i, kind)| {
        let itself = "a controller cannot own the kind that it reconciles";
        let itself = only(kind, &object, itself, krate);
        let twice = only(kind, &owned[..i], "it is owned twice", krate);
        quote!(#itself #twice)
    });
    checks.collect()
}
