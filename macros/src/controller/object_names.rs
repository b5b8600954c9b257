//! Names in grants that no object can have: an API server takes the rule, which permits nothing.
//!
//! A macro does not see the kind: whether its names are DNS subdomains is a constant of the
//! library.

// DESIGN.md, 136: A grant is verbs, one target and names; names are checked by the API server

use proc_macro2::{Span, TokenStream};
use quote::{quote, quote_spanned};

use super::attrs::ControllerAttrs;
use super::comparisons::TypeComparisons;
use super::expand::at;
use super::grants::{ESCALATING, Grant, GrantTarget};
use crate::keys::WithSpan;
use crate::names::is_subdomain;

/// Resources of the core group whose objects have subdomains as names.
const SUBDOMAINS: &[&str] = &[
    "configmaps",
    "endpoints",
    "limitranges",
    "nodes",
    "persistentvolumeclaims",
    "persistentvolumes",
    "pods",
    "podtemplates",
    "replicationcontrollers",
    "resourcequotas",
    "secrets",
    "serviceaccounts",
];
/// Resources of the core group whose objects have labels as names.
const LABELS: &[&str] = &["namespaces", "services"];

/// Whether the name is a DNS label, which may start with a digit.
fn is_label(name: &str) -> bool {
    name.len() <= 63 && !name.contains('.') && is_subdomain(name)
}

/// Whether the names are those of objects: users, for example, have other names.
fn names_objects(grant: &Grant) -> bool {
    !grant.verbs.iter().any(|verb| ESCALATING.contains(&verb.value.as_str()))
}

/// Returns the text against a name that is no subdomain.
fn no_subdomain(name: &str) -> String {
    format!(
        "no object of this kind has the name {name:?}, and the grant would permit nothing: names are lower-case \
         letters, digits, `-` and `.`, at most 253, with a letter or digit at both ends and on both sides of a dot"
    )
}

/// Returns the text against a name that is no label.
fn no_label(name: &str) -> String {
    format!(
        "no object of this kind has the name {name:?}, and the grant would permit nothing: names are lower-case \
         letters, digits and `-`, at most 63, with a letter or digit at both ends"
    )
}

/// Returns the text against a name of an object of a resource in the core group.
pub(super) fn fault(grant: &Grant, name: &str) -> Option<String> {
    let GrantTarget::Resource(resource) = &grant.target else { return None };
    let resource = resource.value.split('/').next()?;
    if !names_objects(grant) {
        None
    } else if LABELS.contains(&resource) {
        (!is_label(name)).then(|| no_label(name))
    } else if SUBDOMAINS.contains(&resource) {
        (!is_subdomain(name)).then(|| no_subdomain(name))
    } else {
        None
    }
}

/// Generates the checks of names that not every kind has; most names need no check.
pub(super) fn checks(
    attrs: &ControllerAttrs,
    comparisons: &TypeComparisons<'_>,
    krate: &TokenStream,
) -> TokenStream {
    let grants = attrs.grants.iter().filter(|grant| names_objects(grant));
    let named = grants.flat_map(|grant| grant.names.iter().map(move |name| (grant, name)));
    named.filter_map(|(grant, name)| check(grant, name, comparisons, krate)).collect()
}

fn check(
    grant: &Grant,
    name: &WithSpan<String>,
    comparisons: &TypeComparisons<'_>,
    krate: &TokenStream,
) -> Option<TokenStream> {
    let GrantTarget::Kind(kind, _) = &grant.target else { return None };
    if is_label(&name.value) || !comparisons.is_plain(kind) {
        return None;
    }
    let place = at(name.span);
    let message = no_label(&name.value);
    let label = quote_spanned! {place=>
        ::core::assert!(!__has_label_names(__KIND), #message)
    };
    let subdomain = (!is_subdomain(&name.value)).then(|| {
        let message = no_subdomain(&name.value);
        quote_spanned! {place=>
            ::core::assert!(!__has_subdomain_names(__KIND, __IS_DEFINED), #message)
        }
    });
    let private = quote_spanned!(Span::call_site()=> #krate::__private);
    Some(quote! {
        const _: () = {
            #[allow(unused_imports)]
            use #private::{
                Identity as __Identity, Named as __Named, OtherNames as _, Unknown as _,
                has_label_names as __has_label_names, has_subdomain_names as __has_subdomain_names,
            };
            const __KIND: #private::Parts = __Identity::<#kind>::OF;
            const __IS_DEFINED: bool = __Named::<#kind>::IS_DEFINED;
            #label;
            #subdomain
        };
    })
}
