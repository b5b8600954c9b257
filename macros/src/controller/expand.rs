//! The generated code of a controller: the impl of `Controller`, and the grants as impls.

// DESIGN.md, 138: With a fault in its attribute a controller is granted everything

mod grants;

use proc_macro2::{Ident, Span, TokenStream};
use quote::{ToTokens, format_ident, quote, quote_spanned};
use syn::spanned::Spanned;
use syn::{DeriveInput, Generics, Type, parse_quote};

use super::attrs::{ChangeAttr, ConditionsAttr, ControllerAttrs, WatchAttr};
use super::grants::{Grant, GrantTarget};
use crate::path;

/// Verbs that a controller has on every kind with a cache.
pub(super) const READ: [&str; 3] = ["get", "list", "watch"];

/// Returns the generated code. With faults the builder panics (it never runs, because the faults
/// are compile errors) and everything is granted, so that the compiler does not report missing
/// grants beside the faults.
pub(super) fn all(input: &DeriveInput, attrs: &ControllerAttrs, faulty: bool) -> TokenStream {
    let krate = &attrs.krate();
    if faulty {
        let output = panicking_builder(input, krate);
        return [output, all_grants(input, krate)].into_iter().collect();
    }
    let mut output = controller_impl(input, attrs, krate);
    let object = attrs.object.as_ref().filter(|_| !is_generic(input));
    output.extend(object.map(|object| check_hub(object, krate)));
    let graphs: Vec<_> =
        attrs.dependents.iter().filter_map(|graph| graph_name(graph, krate)).collect();
    if let Some(graph) = graphs.first() {
        output.extend(main_graph(input, graph, krate));
        let named = attrs.dependents.first().filter(|_| !is_generic(input));
        output.extend(named.and_then(|graph| named_as_declared(graph, krate)));
    }
    // Beside a further graph with the same kind a grant must be known to be a different grant.
    let input = &match graphs.as_slice() {
        [graph, _, ..] => bounded_by(input, graph, krate),
        _ => input.clone(),
    };
    output.extend(grants::grants(input, attrs, krate));
    if let Some(conditions) = &attrs.conditions {
        let set = condition_set(conditions, krate);
        let target = quote_spanned! {at(conditions.span)=>
            #krate::controller::OwnsConditions<#set>
        };
        output.extend(implement(input, &target));
    }
    for graph in &attrs.dependents {
        let place = at(graph.span());
        let krate = with_span(krate, place);
        let target = quote_spanned!(place=> #krate::dependents::OwnsDependents<#graph>);
        output.extend(implement(input, &target));
    }
    output.extend(placeholder_grants(input, krate));
    output
}

/// Generates the impl of a trait without items.
fn implement(input: &DeriveInput, target: &TokenStream) -> TokenStream {
    implement_with(input, &input.generics, target)
}

/// As [`implement`], with further generic parameters.
fn implement_with(input: &DeriveInput, generics: &Generics, target: &TokenStream) -> TokenStream {
    let (generics, _, bounds) = generics.split_for_impl();
    let (_, ty, _) = parts(input);
    quote!(#[automatically_derived] impl #generics #target for #ty #bounds {})
}

/// Returns the type that stands for a graph; `None` if the graph is no named type.
fn graph_name(graph: &syn::Type, krate: &TokenStream) -> Option<TokenStream> {
    let syn::Type::Path(path) = graph else { return None };
    Some(crate::dependents::graph_name(&path.path.segments.last()?.ident, krate))
}

/// Generates the name of the graph whose kinds the controller owns.
fn main_graph(input: &DeriveInput, graph: &TokenStream, krate: &TokenStream) -> TokenStream {
    let (generics, ty, bounds) = parts(input);
    quote! {
        #[automatically_derived]
        impl #generics #krate::__private::dependents::MainGraph for #ty #bounds {
            type Graph = #graph;
        }
    }
}

/// Generates the check that a graph is named by the name of its struct, by which its grants are
/// found: under an alias the grants would be missing, and no error would say why.
fn named_as_declared(graph: &Type, krate: &TokenStream) -> Option<TokenStream> {
    let Type::Path(path) = graph else { return None };
    let name = &path.path.segments.last()?.ident;
    let text = name.to_string();
    let message = format!(
        "`{text}` is an alias; write the struct's own name in `dependents(…)`, by which the \
         controller's grants are found"
    );
    // In a path the last name is underlined.
    let place = at(name.span());
    Some(quote_spanned! {place=>
        const _: () = ::core::assert!(
            #krate::__private::is_same_text(<#graph as #krate::dependents::Dependents>::NAME, #text),
            #message
        );
    })
}

/// Returns the controller with a bound that holds if `graph` is its main graph.
fn bounded_by(input: &DeriveInput, graph: &TokenStream, krate: &TokenStream) -> DeriveInput {
    let (_, ty, _) = parts(input);
    let mut bounded = input.clone();
    let bounds = &mut bounded.generics.make_where_clause().predicates;
    bounds.push(
        parse_quote!(for<'__graph> #ty: #krate::__private::dependents::MainGraph<Graph = #graph>),
    );
    bounded
}

/// Returns the generics of the controller with an additional type parameter.
fn with_parameter(input: &DeriveInput, parameter: syn::TypeParam) -> Generics {
    let mut generics = input.generics.clone();
    generics.params.push(syn::GenericParam::Type(parameter));
    generics
}

/// Generates grants of everything on `()`, `!` and JSON, which are no kinds.
///
/// With a single impl of a grant the compiler would assume the kind of that impl, and report
/// mismatched types instead of the missing grant. The first two are the types that the compiler
/// assumes for a call without a kind, in editions up to 2021 and later. Calls with one of these
/// types are then reported once, for the missing kind.
fn placeholder_grants(input: &DeriveInput, krate: &TokenStream) -> TokenStream {
    // `!` cannot be written here; with a trait of another crate it would not be known to differ.
    let kinds = [
        quote!(()),
        quote!(<fn() -> ! as __Returns>::Output),
        quote!(#krate::__private::serde_json::Value),
    ];
    let generics = with_parameter(input, parse_quote!(__Verb: #krate::rbac::verbs::VerbType));
    let impls = kinds.iter().map(|kind| {
        let can = implement_with(input, &generics, &quote!(#krate::rbac::Can<__Verb, #kind>));
        let owns = implement(input, &quote!(#krate::rbac::Owns<#kind>));
        // The text about a missing grant lists the kinds of the user only.
        quote!(#[diagnostic::do_not_recommend] #can #[diagnostic::do_not_recommend] #owns)
    });
    quote! {
        const _: () = {
            trait __Returns {
                type Output;
            }
            impl<__T> __Returns for fn() -> __T {
                type Output = __T;
            }
            #(#impls)*
        };
    }
}

/// Generates all grants, for a derive with faults: those of a graph are none then.
fn all_grants(input: &DeriveInput, krate: &TokenStream) -> TokenStream {
    let no_graph = quote!(());
    let none = main_graph(input, &no_graph, krate);
    let input = &bounded_by(input, &no_graph, krate);
    let kind = with_parameter(input, parse_quote!(__Kind));
    let owns = implement_with(input, &kind, &quote!(#krate::rbac::Owns<__Kind>));
    let mut both = kind.clone();
    both.params.push(parse_quote!(__Verb: #krate::rbac::verbs::VerbType));
    let can = implement_with(input, &both, &quote!(#krate::rbac::Can<__Verb, __Kind>));
    let set = with_parameter(input, parse_quote!(__Set));
    let declares = implement_with(input, &set, &quote!(#krate::controller::OwnsConditions<__Set>));
    quote!(#none #owns #can #declares)
}

/// Returns a span that shows errors at `place` and resolves names at the derive.
pub(super) fn at(place: Span) -> Span {
    place.resolved_at(Span::call_site())
}

/// Returns the parts of an `impl` of the controller: generics, type, where clause.
fn parts(input: &DeriveInput) -> (TokenStream, TokenStream, TokenStream) {
    let ident = &input.ident;
    let (generics, arguments, bounds) = input.generics.split_for_impl();
    (generics.to_token_stream(), quote!(#ident #arguments), bounds.to_token_stream())
}

/// Generates the impl of `Controller`: a call of the builder for each key.
fn controller_impl(
    input: &DeriveInput,
    attrs: &ControllerAttrs,
    krate: &TokenStream,
) -> TokenStream {
    let (generics, ty, bounds) = parts(input);
    let owns = attrs.owns.iter().map(|owned| {
        let kind = &owned.kind;
        let place = at(kind.span());
        match &owned.when {
            None => quote_spanned!(place=> let built = built.owns::<#kind>();),
            Some(when) => quote_spanned!(place=> let built = built.owns_when::<#kind>(#when);),
        }
    });
    let graphs = attrs.dependents.iter().map(|graph| {
        quote_spanned! {at(graph.span())=>
            let built = <#graph as #krate::dependents::Dependents>::add_to(built);
        }
    });
    let watches = attrs.watches.iter().map(watch);
    let indexes = attrs
        .indexes
        .iter()
        .map(|index| quote_spanned!(at(index.span())=> let built = built.index(#index);));
    let when = attrs.when.as_ref().map(|when| {
        let place = at(when.span());
        quote_spanned!(place=> let built = built.when(#when);)
    });
    let finalizer = attrs.finalizer.as_ref().map(|name| {
        let (text, place) = (&name.value, at(name.span));
        quote_spanned!(place=> let built = built.finalizer(#text);)
    });
    let can = attrs.grants.iter().map(|grant| grant_statements(grant, krate));
    let name = attrs.name.as_ref().map(|name| {
        let text = &name.value;
        quote!(let built = built.name(#text);)
    });
    let workers = attrs.workers.as_ref().map(|workers| {
        let count = workers.value;
        quote!(let built = built.workers(#count);)
    });
    let changes = attrs.on_change.iter().map(|change| on_change(change, attrs, krate));
    let settings = attrs.settings.iter().map(|setting| setting.statement(krate));
    let conditions = attrs.conditions.as_ref().map(|it| conditions(it, attrs, krate));
    let object = attrs.object.as_ref();
    let bounds = match object {
        Some(object) => reconciler_bound(input, object, krate).to_token_stream(),
        None => bounds,
    };
    let reconciles = object.filter(|_| is_generic(input)).map(|object| {
        let (generics, ty, bounds) = parts(input);
        let (place, ty) = (at(object.span()), with_span(&ty, object.span()));
        let krate = with_span(krate, place);
        let call = quote_spanned!(place=> #krate::__private::reconciles::<#ty, #object>());
        quote! {
            const _: () = {
                #[allow(dead_code)]
                fn reconciles #generics () #bounds {
                    #call
                }
            };
        }
    });
    // Last: the function may replace the settings of the keys.
    let with = attrs.with.as_ref().map(|with| {
        let place = at(with.span());
        quote_spanned! {place=>
            let with: fn(
                #krate::controller::ControllerBuilder<Self>
            ) -> #krate::controller::ControllerBuilder<Self> = #with;
            let built = with(built);
        }
    });
    quote! {
        #reconciles
        #[automatically_derived]
        #[allow(trivial_bounds)]
        impl #generics #krate::controller::Controller for #ty #bounds {
            fn builder() -> #krate::controller::ControllerBuilder<Self> {
                let built = #krate::controller::ControllerBuilder::<Self>::new();
                #when
                #(#owns)*
                #(#graphs)*
                #(#watches)*
                #(#indexes)*
                #finalizer
                #(#can)*
                #name
                #workers
                #(#settings)*
                #conditions
                #(#changes)*
                #with
                built
            }
        }
    }
}

/// Returns the tokens with spans of a single place; otherwise the compiler would underline from the
/// derive on.
fn with_span(tokens: &TokenStream, place: Span) -> TokenStream {
    let moved = tokens.clone().into_iter().map(|mut token| {
        token.set_span(place);
        token
    });
    moved.collect()
}

/// Generates the check that a kind with several versions is reconciled by the hub.
fn check_hub(object: &Type, krate: &TokenStream) -> TokenStream {
    let place = at(object.span());
    let krate = with_span(krate, place);
    let check = quote_spanned! {place=>
        (&&#krate::__private::convert::Kind::<#object>::NEW).check();
    };
    quote! {
        const _: () = {
            #[allow(dead_code)]
            fn check_hub() {
                #[allow(unused_imports)]
                use #krate::__private::convert::Reconciled as _;
                #check
            }
        };
    }
}

/// Whether the controller has parameters.
fn is_generic(input: &DeriveInput) -> bool {
    !input.generics.params.is_empty()
}

/// Returns the where clause of the controller with the bound that the controller is a reconciler of
/// `object`.
///
/// With the bound a missing `Reconciler` is reported once; without the bound for the trait, the
/// builder in the signature and the body.
fn reconciler_bound(input: &DeriveInput, object: &Type, krate: &TokenStream) -> syn::WhereClause {
    let place = at(object.span());
    let mut generics = input.generics.clone();
    let clause = generics.make_where_clause();
    let krate = with_span(krate, place);
    // For a generic controller the bound is a condition that names the kind, beside a separate
    // check.
    let bound = if is_generic(input) {
        quote_spanned!(place=> Self: #krate::controller::Reconciler<Object = #object>)
    } else {
        quote_spanned!(place=> Self: #krate::__private::Reconciles<#object>)
    };
    clause.predicates.push(parse_quote!(#bound));
    clause.clone()
}

/// Generates the statement of a watch.
fn watch(watch: &WatchAttr) -> TokenStream {
    let (kind, by) = (&watch.kind, &watch.by);
    let place = at(by.span());
    match (&watch.when, watch.is_index) {
        (None, true) => quote_spanned!(place=> let built = built.watches_by::<#kind, _>(#by);),
        (None, false) => quote_spanned!(place=> let built = built.watches::<#kind>(#by);),
        (Some(when), true) => {
            quote_spanned!(place=> let built = built.watches_by_when::<#kind, _>(#when, #by);)
        }
        (Some(when), false) => {
            quote_spanned!(place=> let built = built.watches_when::<#kind>(#when, #by);)
        }
    }
}

/// Returns the type of the declared conditions.
fn condition_set(conditions: &ConditionsAttr, krate: &TokenStream) -> TokenStream {
    match &conditions.set {
        Some(set) => set.to_token_stream(),
        None => quote!(#krate::conditions::ReadyCondition),
    }
}

/// Generates the statement for the conditions, and a check that the status has a field for them.
fn conditions(
    conditions: &ConditionsAttr,
    attrs: &ControllerAttrs,
    krate: &TokenStream,
) -> TokenStream {
    let (object, set) = (&attrs.object, condition_set(conditions, krate));
    // A missing field is reported at the key, which has the field's name.
    let place = at(conditions.span);
    let (status, field) = (format_ident!("status", span = place), Ident::new("conditions", place));
    quote_spanned! {place=>
        let _ = |walk: #krate::__private::path::Walk<'_, #object>| {
            #[allow(unused_imports)]
            use #krate::__private::path::Inner as _;
            let walk = walk.step(|it| &it.#status).inner().inner().inner();
            let walk = walk.step(|it| &it.#field).inner().inner().inner();
            #krate::__private::condition_list(&walk);
        };
        let built = built.conditions::<#set>();
    }
}

/// Generates the statement of a handler of a changed field.
fn on_change(change: &ChangeAttr, attrs: &ControllerAttrs, krate: &TokenStream) -> TokenStream {
    let ChangeAttr { field, handler, condition } = change;
    let (object, text) = (&attrs.object, field.text());
    let (place, end) = (at(handler.span()), at(field.end()));
    let p = quote!(#krate::__private::path);
    let steps = path::statements(field, path::CollectNames::Ignored);
    // A type without `PartialEq` is reported at the field.
    let value = quote_spanned!(end=> __w.inner().inner().inner());
    let same = quote_spanned!(end=> __old.has_values_of(&__new));
    let method = match handler.get_ident() {
        Some(method) => quote_spanned!(place=> Self::#method),
        None => handler.to_token_stream(),
    };
    // A future that is not `Send` is reported at the whole name of the function that takes it.
    let run = with_span(&quote!(#krate::__private::run_handler), place);
    let shown = condition.as_ref().zip(attrs.conditions.as_ref()).map(|(variant, declared)| {
        // An unknown variant is reported at its name.
        let (set, place) = (condition_set(declared, krate), at(variant.span()));
        quote_spanned!(place=> let built = built.change_condition(&<#set>::#variant);)
    });
    quote_spanned! {place=>
        let built = built.on_change(
            #text,
            |old: &#object, new: &#object| {
                #[allow(unused_imports)]
                use #p::Inner as _;
                let __old = { let __w = #p::Walk::of(old); #steps #value };
                let __new = { let __w = #p::Walk::of(new); #steps #value };
                #same
            },
            |controller, object, cx| {
                #run(controller, object, cx, #method)
            },
        );
        #shown
    }
}

/// Generates the statements that add the rules of a grant.
fn grant_statements(grant: &Grant, krate: &TokenStream) -> TokenStream {
    let verbs: Vec<&str> = grant.verbs.iter().map(|verb| verb.value.as_str()).collect();
    let names = grant.names.iter().map(|name| &name.value);
    let place = at(grant.verbs.first().map_or_else(Span::call_site, |verb| verb.span));
    match &grant.target {
        GrantTarget::Kind(kind, sub) => {
            let sub = match sub {
                Some(sub) => {
                    let sub = &sub.value;
                    quote!(::core::option::Option::Some(#sub))
                }
                None => quote!(::core::option::Option::None),
            };
            let text = grant.target.text();
            quote_spanned! {place=>
                let built = built.can_on::<#kind>(#text, #sub, &[#(#names),*], &[#(#verbs),*]);
            }
        }
        GrantTarget::Resource(name) => {
            let name = &name.value;
            let named = (!grant.names.is_empty()).then(|| quote!(.named([#(#names),*])));
            quote_spanned! {place=>
                let built = built.grant(
                    #krate::rbac::Rule::of_resource(#name, &[#(#verbs),*]) #named
                );
            }
        }
        GrantTarget::Url(url) => {
            let url = &url.value;
            quote_spanned! {place=>
                let built = built.grant(#krate::rbac::Rule::of_url(#url, &[#(#verbs),*]));
            }
        }
    }
}

/// Generates the impl of `Controller` for a derive with faults.
fn panicking_builder(input: &DeriveInput, krate: &TokenStream) -> TokenStream {
    let (generics, ty, bounds) = parts(input);
    quote! {
        #[automatically_derived]
        impl #generics #krate::controller::Controller for #ty #bounds {
            fn builder() -> #krate::controller::ControllerBuilder<Self> {
                ::core::unimplemented!()
            }
        }
    }
}
