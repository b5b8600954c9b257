//! The grants of a controller, as impls of traits that calls require.

// DESIGN.md, 79: `Can<V, K>` is implemented; calls require `CanGet<K>` and its siblings

use proc_macro2::{Span, TokenStream};
use quote::{format_ident, quote, quote_spanned};
use syn::spanned::Spanned;
use syn::{DeriveInput, Type};

use super::{READ, at, implement};
use crate::controller::attrs::ControllerAttrs;
use crate::controller::comparisons::{self, EarlierKinds, TypeComparisons};
use crate::controller::grants::{GrantTarget, VERBS, verbs_text};
use crate::controller::object_names;
use crate::keys::same_tokens;

/// Subresources whose calls are checked at compile time, with the name of their marker type.
const TYPED: &[(&str, &str)] = &[
    ("status", "Status"),
    ("scale", "Scale"),
    ("log", "Log"),
    ("eviction", "Eviction"),
    ("token", "Token"),
];

/// Generates what the controller owns and may do, as impls.
pub(super) fn grants(
    input: &DeriveInput,
    attrs: &ControllerAttrs,
    krate: &TokenStream,
) -> TokenStream {
    let comparisons = TypeComparisons::new(&input.generics, attrs, krate);
    let cached = cached(attrs);
    let mut output = TokenStream::new();
    for owned in &attrs.owns {
        let kind = comparisons.apart(&owned.kind, &comparisons::before(&owned.kind, &cached));
        let target = quote_spanned!(at(owned.kind.span())=> #krate::rbac::Owns<#kind>);
        output.extend(implement(input, &target));
    }
    output.extend(comparisons.owned_once(attrs));
    output.extend(reads(input, &cached, &comparisons, krate));
    output.extend(granted(input, attrs, &cached, &comparisons, krate));
    output.extend(object_names::checks(attrs, &comparisons, krate));
    comparisons.within(output)
}

/// Generates read access to the kinds that have a cache.
fn reads(
    input: &DeriveInput,
    cached: &[&Type],
    comparisons: &TypeComparisons<'_>,
    krate: &TokenStream,
) -> TokenStream {
    let impls = cached.iter().flat_map(|kind| {
        let place = at(kind.span());
        let kind = comparisons.apart(kind, &comparisons::before(kind, cached));
        READ.map(|verb| {
            let verb = verb_type(krate, verb);
            let target = quote_spanned!(place=> #krate::rbac::Can<#verb, #kind>);
            implement(input, &target)
        })
    });
    impls.collect()
}

/// Returns every kind that has a cache once.
fn cached(attrs: &ControllerAttrs) -> Vec<&Type> {
    let owned = attrs.owns.iter().map(|owned| &owned.kind);
    let watched = attrs.watches.iter().map(|watch| &watch.kind);
    let mut kinds: Vec<&Type> = Vec::new();
    for kind in attrs.object.iter().chain(owned).chain(watched) {
        if !kinds.iter().any(|before| same_tokens(*before, kind)) {
            kinds.push(kind);
        }
    }
    kinds
}

/// Generates the grants of `can(…)` that calls require, each once.
fn granted(
    input: &DeriveInput,
    attrs: &ControllerAttrs,
    cached: &[&Type],
    comparisons: &TypeComparisons<'_>,
    krate: &TokenStream,
) -> TokenStream {
    // Verb, subresource and kind of those before.
    let mut seen: Vec<(&str, Option<&str>, &Type)> = Vec::new();
    let mut output = TokenStream::new();
    for grant in &attrs.grants {
        let GrantTarget::Kind(kind, sub) = &grant.target else { continue };
        let sub = sub.as_ref().map(|sub| sub.value.as_str());
        let marker = TYPED.iter().find(|(name, _)| sub == Some(*name)).map(|(_, marker)| *marker);
        if sub.is_some() && marker.is_none() {
            continue;
        }
        let (mut groups, mut impls) = (Vec::<VerbGroup<'_>>::new(), TokenStream::new());
        for verb in &grant.verbs {
            let name = verb.value.as_str();
            let same = seen.iter().filter(|(verb, of, _)| *verb == name && *of == sub);
            let mut before: Vec<&Type> = same.map(|(.., kind)| *kind).collect();
            if !VERBS.contains(&name) || before.iter().any(|before| same_tokens(*before, kind)) {
                continue;
            }
            seen.push((name, sub, kind));
            let is_read = sub.is_none() && READ.contains(&name);
            if is_read {
                before.extend(cached);
            }
            let earlier = EarlierKinds { kinds: &before, graph: is_read };
            let target = target(comparisons.apart(kind, &earlier), kind.span(), marker, krate);
            let verb = verb_type(krate, name);
            let bound = quote_spanned!(at(kind.span())=> #krate::rbac::Can<#verb, #target>);
            impls.extend(implement(input, &bound));
            VerbGroup::add(&mut groups, name, before, is_read);
        }
        output.extend(groups.iter().map(|group| group.check(kind, comparisons)));
        output.extend(impls);
    }
    output
}

/// Verbs of one grant that are compared with the same kinds: one error names all of them.
struct VerbGroup<'a> {
    verbs: Vec<&'a str>,
    before: Vec<&'a Type>,
    graph: bool,
}

impl<'a> VerbGroup<'a> {
    fn add(groups: &mut Vec<Self>, verb: &'a str, before: Vec<&'a Type>, graph: bool) {
        let is_same = |group: &&mut Self| {
            group.graph == graph
                && group.before.len() == before.len()
                && group.before.iter().zip(&before).all(|(one, other)| same_tokens(*one, *other))
        };
        match groups.iter_mut().find(is_same) {
            Some(group) => group.verbs.push(verb),
            None => groups.push(Self { verbs: vec![verb], before, graph }),
        }
    }

    /// Returns the check that none of the kinds before is the same.
    fn check(&self, kind: &Type, comparisons: &TypeComparisons<'_>) -> TokenStream {
        let are = if self.verbs.len() == 1 { "is" } else { "are" };
        let fault = format!("{} {are} granted on it already", verbs_text(&self.verbs));
        comparisons.only(kind, &EarlierKinds { kinds: &self.before, graph: self.graph }, &fault)
    }
}

/// Returns the type on which a verb is granted: the kind, or a subresource of it.
fn target(kind: TokenStream, span: Span, marker: Option<&str>, krate: &TokenStream) -> TokenStream {
    let Some(marker) = marker else { return kind };
    let marker = format_ident!("{marker}");
    quote_spanned! {at(span)=>
        #krate::rbac::SubresourceOf<#kind, #krate::rbac::subresources::#marker>
    }
}

/// Returns the marker type of a verb.
fn verb_type(krate: &TokenStream, verb: &str) -> TokenStream {
    let name = match verb {
        "deletecollection" => "DeleteCollection".to_owned(),
        verb => {
            let mut letters = verb.chars();
            let first = letters.next().map(|first| first.to_ascii_uppercase());
            first.into_iter().chain(letters).collect()
        }
    };
    let name = format_ident!("{name}", span = Span::call_site());
    quote!(#krate::rbac::verbs::#name)
}
