//! The generated conversions: struct literals in both directions, so that the compiler knows the
//! types of both sides.

use proc_macro2::{Ident, TokenStream};
use quote::{ToTokens, format_ident, quote, quote_spanned};
use syn::spanned::Spanned;
use syn::{Member, Path};

use super::attrs::{HubOnly, TypeAttrs};
use super::{ConvertedField, TypeBody, Variant};
use crate::path::located as at;

/// Returns the impl of `Convertible`.
pub(super) fn convertible(
    ident: &Ident,
    hub: &Path,
    attrs: &TypeAttrs,
    shape: &TypeBody,
) -> TokenStream {
    let (to_hub, from_hub) = match shape {
        TypeBody::Struct(fields) => {
            (struct_to_hub(hub, attrs, fields), struct_from_hub(hub, attrs, fields))
        }
        TypeBody::Enum(variants) => {
            (enum_to_hub(hub, variants), enum_from_hub(hub, variants, &attrs.hub_only))
        }
    };
    let c = quote!(::windlass::__private::convert);
    quote! {
        #[automatically_derived]
        #[allow(unused_imports, unused_variables, unreachable_patterns, clippy::all, clippy::pedantic)]
        impl ::windlass::crd::Convertible for #ident {
            type Hub = #hub;

            fn to_hub(self) -> ::core::result::Result<#hub, ::windlass::crd::ConversionError> {
                use #c::{Converting as _, Fallible as _, Identical as _, Infallible as _};
                #to_hub
            }

            fn from_hub(__hub: #hub) -> ::core::result::Result<Self, ::windlass::crd::ConversionError> {
                use #c::{Converting as _, Fallible as _, Identical as _, Infallible as _, OneWay as _};
                #from_hub
            }
        }
    }
}

/// Returns the impl after a mistake, by which fields of the type report no missing conversion: the
/// mistake is the reason, and has been reported.
pub(super) fn unreported(ident: &Ident) -> TokenStream {
    quote! {
        #[automatically_derived]
        impl<__Hub> ::windlass::__private::convert::HasConversion<__Hub> for #ident {}
    }
}

impl ConvertedField {
    /// Returns the variable with the value.
    fn variable(&self) -> Ident {
        match &self.member {
            Member::Named(ident) => format_ident!("__f_{}", ident, span = at(ident.span())),
            Member::Unnamed(index) => format_ident!("__f_{}", index.index),
        }
    }

    /// Returns the name on the hub's side.
    fn hub(&self) -> Member {
        match &self.attrs.rename {
            Some(ident) => Member::Named(ident.clone()),
            None => self.member.clone(),
        }
    }

    /// Returns the field's name in messages.
    fn name(&self) -> String {
        match &self.member {
            Member::Named(ident) => crate::path::plain(ident),
            Member::Unnamed(index) => index.index.to_string(),
        }
    }

    /// Whether the field has a counterpart.
    fn is_shared(&self) -> bool {
        self.attrs.version_only.is_none()
    }

    /// Returns the conversion of the variable: by a function, or by the types of both sides, which
    /// `pair` finds.
    fn converted(&self, function: Option<&Path>, pair: &TokenStream) -> TokenStream {
        let place = at(self.ty.span());
        let (variable, name) = (self.variable(), self.name());
        let value = match function {
            Some(function) => {
                let place = at(function.span());
                let c = quote_spanned!(place=> ::windlass::__private::convert);
                quote_spanned!(place=> (&&#c::Output::new(#function(#variable))).done())
            }
            None => quote_spanned!(place=> (&&&&#pair).convert(#variable)),
        };
        quote_spanned!(place=> #value.map_err(|__error| __error.at(#name))?)
    }

    /// Returns the types of the two sides of a struct's field. The hub's side is a pattern, as that
    /// which takes the value: the compiler reports a missing field of both once.
    fn pair(&self, hub: &Path, is_to_hub: bool) -> TokenStream {
        let place = at(self.ty.span());
        let (member, name) = (&self.member, self.hub());
        let own = quote_spanned!(place=> |__v: &Self| &__v.#member);
        let hub = quote_spanned!(place=> |__v: &#hub| match __v { #hub { #name: __v, .. } => __v });
        let (a, b) = if is_to_hub { (own, hub) } else { (hub, own) };
        let pair = pair(place, is_to_hub);
        quote_spanned!(place=> ::windlass::__private::convert::#pair(#a, #b))
    }

    /// Returns the value that the field has after a conversion from the hub.
    fn filled(&self) -> TokenStream {
        match &self.attrs.version_only {
            Some(Some(value)) => value.to_token_stream(),
            _ => {
                quote_spanned!(at(self.ty.span())=> ::core::default::Default::default())
            }
        }
    }
}

/// Returns the function that finds the types of both sides.
fn pair(place: proc_macro2::Span, is_to_hub: bool) -> Ident {
    Ident::new(if is_to_hub { "pair" } else { "back" }, place)
}

/// Returns the fields of the hub alone, with their values.
fn hub_only(fields: &[HubOnly]) -> TokenStream {
    let fields = fields.iter().map(|HubOnly { ident, value }| match value {
        Some(value) => quote!(#ident: #value,),
        None => {
            let place = at(ident.span());
            quote_spanned!(place=> #ident: ::core::default::Default::default(),)
        }
    });
    fields.collect()
}

fn struct_to_hub(hub: &Path, attrs: &TypeAttrs, fields: &[ConvertedField]) -> TokenStream {
    let taken = fields.iter().map(|field| {
        let (member, variable) = (&field.member, field.variable());
        quote!(#member: #variable)
    });
    let given = fields.iter().filter(|field| field.is_shared()).map(|field| {
        let (name, pair) = (field.hub(), field.pair(hub, true));
        let value = field.converted(field.attrs.to_hub.as_ref(), &pair);
        quote!(#name: #value,)
    });
    let more = hub_only(&attrs.hub_only);
    let made = quote!(#hub { #(#given)* #more });
    let value = quote!(self);
    let taken = quote!(let Self { #(#taken),* } = self;);
    completed(attrs.to_hub.as_ref(), &value, &taken, &made)
}

fn struct_from_hub(hub: &Path, attrs: &TypeAttrs, fields: &[ConvertedField]) -> TokenStream {
    let taken = fields.iter().filter(|field| field.is_shared()).map(|field| {
        let (name, variable) = (field.hub(), field.variable());
        quote!(let #hub { #name: #variable, .. } = __hub;)
    });
    let given = fields.iter().map(|field| {
        let member = &field.member;
        if !field.is_shared() {
            let value = field.filled();
            return quote!(#member: #value,);
        }
        let pair = field.pair(hub, false);
        let value = field.converted(field.attrs.from_hub.as_ref(), &pair);
        quote!(#member: #value,)
    });
    let made = quote!(Self { #(#given)* });
    let value = quote!(__hub);
    let taken = quote!(#(#taken)*);
    completed(attrs.from_hub.as_ref(), &value, &taken, &made)
}

/// Returns the body of a struct's conversion: with a function, the function completes the value
/// that was made from the fields.
fn completed(
    function: Option<&Path>,
    value: &TokenStream,
    taken: &TokenStream,
    made: &TokenStream,
) -> TokenStream {
    let Some(function) = function else {
        return quote!(#taken ::core::result::Result::Ok(#made));
    };
    let place = at(function.span());
    let c = quote_spanned!(place=> ::windlass::__private::convert);
    let call = quote_spanned! {place=>
        (&&#c::Output::new(#function(&__original, &mut __made))).done()?;
    };
    quote! {
        let __original = ::core::clone::Clone::clone(&#value);
        #taken
        let mut __made = #made;
        #call
        ::core::result::Result::Ok(__made)
    }
}

impl Variant {
    /// Returns the name on the hub's side.
    fn hub(&self) -> &Ident {
        self.attrs.rename.as_ref().unwrap_or(&self.ident)
    }

    /// Returns the types of the two sides of a field.
    fn pair(&self, field: &ConvertedField, hub: &Path, is_to_hub: bool) -> TokenStream {
        let place = at(field.ty.span());
        let (ident, other) = (&self.ident, self.hub());
        let (member, name) = (&field.member, field.hub());
        let own = quote_spanned! {place=>
            |__v: &Self| match __v { Self::#ident { #member: __v, .. } => __v, _ => ::core::unreachable!() }
        };
        let hub = quote_spanned! {place=>
            |__v: &#hub| match __v { #hub::#other { #name: __v, .. } => __v, _ => ::core::unreachable!() }
        };
        let (a, b) = if is_to_hub { (own, hub) } else { (hub, own) };
        let pair = pair(place, is_to_hub);
        quote_spanned!(place=> ::windlass::__private::convert::#pair(#a, #b))
    }
}

fn enum_to_hub(hub: &Path, variants: &[Variant]) -> TokenStream {
    let arms = variants.iter().map(|variant| {
        let (ident, other) = (&variant.ident, variant.hub());
        if let Some(value) = &variant.attrs.version_only {
            return quote!(Self::#ident { .. } => #value,);
        }
        let taken = variant.fields.iter().map(|field| {
            let (member, variable) = (&field.member, field.variable());
            quote!(#member: #variable)
        });
        let given = variant.fields.iter().filter(|field| field.is_shared()).map(|field| {
            let (name, pair) = (field.hub(), variant.pair(field, hub, true));
            let value = field.converted(field.attrs.to_hub.as_ref(), &pair);
            quote!(#name: #value,)
        });
        let more = hub_only(&variant.attrs.hub_only);
        quote!(Self::#ident { #(#taken),* } => #hub::#other { #(#given)* #more },)
    });
    quote!(::core::result::Result::Ok(match self { #(#arms)* }))
}

fn enum_from_hub(hub: &Path, variants: &[Variant], more: &[HubOnly]) -> TokenStream {
    let shared = variants.iter().filter(|variant| variant.attrs.version_only.is_none());
    let arms = shared.map(|variant| {
        let (ident, other) = (&variant.ident, variant.hub());
        let taken = variant.fields.iter().filter(|field| field.is_shared()).map(|field| {
            let (name, variable) = (field.hub(), field.variable());
            quote!(#name: #variable,)
        });
        let given = variant.fields.iter().map(|field| {
            let member = &field.member;
            if !field.is_shared() {
                let value = field.filled();
                return quote!(#member: #value,);
            }
            let pair = variant.pair(field, hub, false);
            let value = field.converted(field.attrs.from_hub.as_ref(), &pair);
            quote!(#member: #value,)
        });
        quote!(#hub::#other { #(#taken)* .. } => Self::#ident { #(#given)* },)
    });
    let more = more.iter().map(|HubOnly { ident, value }| {
        let value = match value {
            Some(value) => value.to_token_stream(),
            None => quote_spanned!(at(ident.span())=> ::core::default::Default::default()),
        };
        quote!(#hub::#ident { .. } => #value,)
    });
    quote!(::core::result::Result::Ok(match __hub { #(#arms)* #(#more)* }))
}
