//! Entries of a controller that are one type under two names: `owns(Secret, core::v1::Secret)`.
//!
//! A macro cannot know whether two names are of one type; the compiler would report a conflict for
//! each generated impl. Entries are compared as constants: the impls of the later one are for a
//! type of their own if both are the same, and an own text says so.

// DESIGN.md, 240: Entries of a controller are compared as types, whatever their names

use std::cell::RefCell;

use proc_macro2::{Span, TokenStream};
use quote::{ToTokens, format_ident, quote, quote_spanned};
use syn::spanned::Spanned;
use syn::{Generics, Ident, PathArguments, Type};

use super::attrs::ControllerAttrs;
use super::expand::at;
use super::grants;
use crate::keys::same_tokens;

/// Comparisons that the entries of a controller need.
pub(super) struct TypeComparisons<'a> {
    generics: &'a Generics,
    krate: &'a TokenStream,
    /// The main graph of the controller, which grants reading and owning its kinds.
    graph: Option<&'a Type>,
    /// Declared comparisons: the condition as a text, and the constant.
    answers: RefCell<Vec<(String, TokenStream)>>,
    /// Sets of conditions, as texts; the position of a set tells types of [`apart`](Self::apart)
    /// from each other.
    sets: RefCell<Vec<String>>,
}

impl<'a> TypeComparisons<'a> {
    /// Creates the comparisons of a controller with these generics.
    pub(super) fn new(
        generics: &'a Generics,
        attrs: &'a ControllerAttrs,
        krate: &'a TokenStream,
    ) -> Self {
        let (answers, sets) = Default::default();
        let twins = Self { generics, krate, graph: None, answers, sets };
        let graph = attrs.dependents.first().filter(|graph| twins.is_plain(graph));
        Self { graph, ..twins }
    }

    /// Whether the type is a path of which a constant can speak: without arguments, and no
    /// parameter of the controller.
    pub(super) fn is_plain(&self, kind: &Type) -> bool {
        let Type::Path(path) = kind else { return false };
        let segments = &path.path.segments;
        let is_parameter = |first: &Ident| {
            *first == "Self" || self.generics.type_params().any(|param| param.ident == *first)
        };
        path.qself.is_none()
            && segments.iter().all(|it| it.arguments == PathArguments::None)
            && segments.first().is_some_and(|first| !is_parameter(&first.ident))
    }

    /// Whether two types may be one, though they are written in two ways.
    fn is_suspect(&self, one: &Type, other: &Type) -> bool {
        self.is_plain(one) && self.is_plain(other) && !same_tokens(one, other)
    }

    /// Returns the conditions that a kind is one of those before it, or one of the main graph, each
    /// with the text that says so.
    fn conditions(&self, kind: &Type, before: &EarlierKinds<'_, '_>) -> Vec<(TokenStream, String)> {
        if !self.is_plain(kind) {
            return Vec::new();
        }
        let suspects = before.kinds.iter().filter(|other| self.is_suspect(other, kind));
        let pairs = suspects.map(|other| {
            let text = format!("`{}` is `{}`", grants::text(kind), grants::text(other));
            (quote!(__is_same_type(__Identity::<#other>::OF, __Identity::<#kind>::OF)), text)
        });
        let graph = self.graph.filter(|_| before.graph).map(|graph| {
            let text = format!("`{}` is a kind of `{}`", grants::text(kind), grants::text(graph));
            (quote!(__is_one_of(__Identity::<#kind>::OF, __GraphKinds::<#graph>::OF)), text)
        });
        let place = at(kind.span());
        let named = pairs.chain(graph).map(|(is_same, text)| (self.answer(&is_same, place), text));
        named.collect()
    }

    /// Declares the answer of a comparison, and returns the name.
    ///
    /// A constant of a type: of an unknown name in a constant that stands alone, or in an alias of
    /// a type, the compiler would report a second time that a parameter is missing.
    fn answer(&self, is_same: &TokenStream, place: Span) -> TokenStream {
        let mut answers = self.answers.borrow_mut();
        let key = is_same.to_string();
        let known = answers.iter().position(|(of, _)| *of == key);
        let answer = format_ident!("IS_SAME_{}", known.unwrap_or(answers.len()), span = place);
        if known.is_none() {
            let declared = quote_spanned!(place=> const #answer: bool = #is_same;);
            answers.push((key, declared));
        }
        quote_spanned!(place=> __Answers::#answer)
    }

    /// Returns `kind`, or a type of its own for a kind that one of those before it is.
    pub(super) fn apart(&self, kind: &Type, before: &EarlierKinds<'_, '_>) -> TokenStream {
        let conditions = self.conditions(kind, before).into_iter().map(|(is_same, _)| is_same);
        let conditions: Vec<_> = conditions.collect();
        if conditions.is_empty() {
            return kind.to_token_stream();
        }
        let mut sets = self.sets.borrow_mut();
        let key = quote!(#kind: #(#conditions)*).to_string();
        let position = sets.iter().position(|of| *of == key).unwrap_or_else(|| {
            sets.push(key);
            sets.len() - 1
        });
        let place = at(kind.span());
        quote_spanned!(place=> <__IsSameType<{ #(#conditions)||* }> as __Apart<#kind, #position>>::Kind)
    }

    /// Returns the check that none of the types before it is the same kind.
    pub(super) fn only(
        &self,
        kind: &Type,
        before: &EarlierKinds<'_, '_>,
        fault: &str,
    ) -> TokenStream {
        // In a path the last name is underlined: of several tokens rustc would take the first.
        let place = at(last(kind).map_or_else(|| kind.span(), Ident::span));
        let checks = self.conditions(kind, before).into_iter().map(|(is_same, text)| {
            let message = format!("{text}: {fault}");
            quote_spanned!(place=> const _: () = ::core::assert!(!#is_same, #message);)
        });
        checks.collect()
    }

    /// Returns the code with the items that [`apart`](Self::apart) and [`only`](Self::only) name.
    ///
    /// They are declared in the user's crate: of a foreign type or trait the compiler assumes that
    /// a later version has further impls, and takes each answer for a conflict.
    pub(super) fn within(self, code: TokenStream) -> TokenStream {
        let answers: Vec<_> = self.answers.into_inner().into_iter().map(|(_, it)| it).collect();
        if answers.is_empty() {
            return code;
        }
        let krate = self.krate;
        quote! {
            const _: () = {
                #[allow(unused_imports)]
                use #krate::__private::{
                    Identity as __Identity, Unknown as _, is_one_of as __is_one_of,
                    is_same_type as __is_same_type,
                    dependents::{GraphKinds as __GraphKinds, NoGraph as _},
                };

                #[allow(dead_code)]
                struct __IsSameType<const ANSWER: bool>;
                trait __Apart<K, const N: usize> {
                    type Kind;
                }
                impl<K, const N: usize> __Apart<K, N> for __IsSameType<false> {
                    type Kind = K;
                }
                impl<K, const N: usize> __Apart<K, N> for __IsSameType<true> {
                    type Kind = #krate::__private::Repeated<K, N>;
                }
                #[allow(dead_code)]
                struct __Answers;
                #[allow(dead_code)]
                impl __Answers {
                    #(#answers)*
                }
                #code
            };
        }
    }

    /// Returns the checks of owned kinds.
    pub(super) fn owned_once(&self, attrs: &ControllerAttrs) -> TokenStream {
        let object: Vec<_> = attrs.object.iter().collect();
        let owned: Vec<_> = attrs.owns.iter().map(|owned| &owned.kind).collect();
        let checks = owned.iter().enumerate().map(|(i, kind)| {
            let itself = "a controller cannot own the kind that it reconciles";
            let itself = self.only(kind, &EarlierKinds { kinds: &object, graph: false }, itself);
            let before = EarlierKinds { kinds: &owned[..i], graph: true };
            let twice = self.only(kind, &before, "it is owned already");
            quote!(#itself #twice)
        });
        checks.collect()
    }
}

/// Types of which a later entry may be one.
pub(super) struct EarlierKinds<'a, 'b> {
    pub(super) kinds: &'b [&'a Type],
    /// Whether the kinds of the main graph are among them.
    pub(super) graph: bool,
}

/// Returns the last name of a path.
fn last(kind: &Type) -> Option<&Ident> {
    let Type::Path(path) = kind else { return None };
    path.path.segments.last().map(|last| &last.ident)
}

/// Returns the types before the one that is written in the same way.
pub(super) fn before<'a, 'b>(kind: &Type, all: &'b [&'a Type]) -> EarlierKinds<'a, 'b> {
    let position = all.iter().position(|other| same_tokens(*other, kind));
    EarlierKinds { kinds: &all[..position.unwrap_or(all.len())], graph: true }
}
