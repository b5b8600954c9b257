//! The derive macros of the windlass operator framework.
//!
//! `windlass` re-exports the derives, and the code that they generate names `windlass` only. All
//! derives work in the same steps: `attrs` reads keys with their spans, `model` holds the input of
//! the code generator, `check` holds the rules that span several keys, `expand` quotes. All faults
//! are reported at once, each on the token that is wrong; the impls are emitted even then, so that
//! one fault does not cause further ones.
//!
//! Invariant: the output is a function of the input's tokens. A derive reads no file and no
//! environment, so that the compiler may keep its result; checks that need types (a column's path,
//! a mapper's signature) are left to the compiler and to `CustomResource::crd`.

mod apply;
mod cel;
mod conditions;
mod controller;
mod convert;
mod crate_path;
mod dependents;
mod derived;
mod doc_comments;
#[cfg(test)]
mod documented;
mod errors;
#[cfg(test)]
mod expansion_tests;
mod identity;
mod keys;
mod markers;
mod misplaced;
mod names;
mod object;
mod path;
mod projection;
mod resource;
mod schema;

use proc_macro::TokenStream;

#[doc = include_str!("../docs/custom_resource.md")]
// From `serde` on they are registered to answer them with a text of their own.
#[proc_macro_derive(
    CustomResource,
    attributes(resource, index, convert, serde, kube, schema, schemars, validate, garde)
)]
pub fn custom_resource(input: TokenStream) -> TokenStream {
    let input = syn::parse_macro_input!(input as syn::DeriveInput);
    resource::derive(&input).into()
}

#[doc = include_str!("../docs/convertible.md")]
#[proc_macro_derive(Convertible, attributes(convert))]
pub fn convertible(input: TokenStream) -> TokenStream {
    let input = syn::parse_macro_input!(input as syn::DeriveInput);
    convert::derive(&input).into()
}

#[doc = include_str!("../docs/controller.md")]
#[proc_macro_derive(Controller, attributes(controller))]
pub fn controller(input: TokenStream) -> TokenStream {
    let input = syn::parse_macro_input!(input as syn::DeriveInput);
    controller::derive(&input).into()
}

#[doc = include_str!("../docs/dependents.md")]
#[proc_macro_derive(Dependents, attributes(dependents, dependent))]
pub fn dependents(input: TokenStream) -> TokenStream {
    let input = syn::parse_macro_input!(input as syn::DeriveInput);
    dependents::derive(&input).into()
}

#[doc = include_str!("../docs/projection.md")]
#[proc_macro_derive(Projection, attributes(projection, serde))]
pub fn projection(input: TokenStream) -> TokenStream {
    let input = syn::parse_macro_input!(input as syn::DeriveInput);
    projection::derive(&input).into()
}

/// Implementation of `windlass::path!`, which passes the path of the crate first.
#[doc(hidden)]
#[proc_macro]
pub fn field_path(input: TokenStream) -> TokenStream {
    path::path(input.into()).into()
}

/// Implementation of `windlass::webhook::cel!`, which passes the path of the crate first.
#[doc(hidden)]
#[proc_macro]
pub fn cel_expression(input: TokenStream) -> TokenStream {
    cel::expression(input.into()).into()
}

#[doc = include_str!("../docs/schema.md")]
// The others are registered to answer them with a text of their own.
#[proc_macro_derive(Schema, attributes(schema, serde, schemars, kube, x_kube, validate, garde))]
pub fn schema(input: TokenStream) -> TokenStream {
    let input = syn::parse_macro_input!(input as syn::DeriveInput);
    schema::derive(&input).into()
}

/// Expands `object!`, which puts the crate's path in front.
#[doc(hidden)]
#[proc_macro]
pub fn object_literal(input: TokenStream) -> TokenStream {
    object::object(input.into()).into()
}

#[doc = include_str!("../docs/apply_configuration.md")]
#[proc_macro_derive(ApplyConfiguration, attributes(apply, serde))]
pub fn apply_configuration(input: TokenStream) -> TokenStream {
    let input = syn::parse_macro_input!(input as syn::DeriveInput);
    apply::derive(&input).into()
}

#[doc = include_str!("../docs/condition_type.md")]
#[proc_macro_derive(ConditionType, attributes(condition))]
pub fn condition_type(input: TokenStream) -> TokenStream {
    let input = syn::parse_macro_input!(input as syn::DeriveInput);
    conditions::condition_type(&input).into()
}

#[doc = include_str!("../docs/conditions.md")]
#[proc_macro_derive(Conditions, attributes(conditions, condition))]
pub fn conditions_of_a_controller(input: TokenStream) -> TokenStream {
    let input = syn::parse_macro_input!(input as syn::DeriveInput);
    conditions::conditions(&input).into()
}
