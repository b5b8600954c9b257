//! The generated code of a graph: trait, fields, nodes and the grants of the controller.

// DESIGN.md, 179: A graph can be the whole reconcile

use proc_macro2::{Span, TokenStream};
use quote::{ToTokens, format_ident, quote, quote_spanned};
use syn::ext::IdentExt;
use syn::spanned::Spanned;

use super::model::{GraphField, GraphModel};

/// Function of the generated trait that decides whether children are applied.
pub(super) const PRECONDITION: &str = "precondition";

/// Returns the generated code.
pub(super) fn all(model: &GraphModel<'_>, is_faulty: bool) -> TokenStream {
    let Some(by) = model.by.as_ref().filter(|_| model.has_fields()) else {
        return TokenStream::new();
    };
    let mut output = desired(model, by, is_faulty);
    output.extend(fields(model));
    output.extend(graph(model, by));
    output.extend(grants(model, by));
    output.extend(reconciler(model, by));
    output.extend(declared(model));
    output
}

/// Returns a span that shows errors at `place` and resolves names at the derive.
fn at(place: Span) -> Span {
    place.resolved_at(Span::call_site())
}

/// Returns the name of the generated trait.
fn trait_name(model: &GraphModel<'_>) -> syn::Ident {
    format_ident!("Desired{}", model.ident, span = Span::call_site())
}

/// Returns the name of the generated struct of fields.
fn fields_name(model: &GraphModel<'_>) -> syn::Ident {
    format_ident!("Applied{}", model.ident, span = Span::call_site())
}

/// Generates the trait with a function for each field, and the nodes that call these functions.
fn desired(model: &GraphModel<'_>, by: &syn::Type, is_faulty: bool) -> TokenStream {
    let (vis, name, graph) = (model.vis, trait_name(model), model.ident.to_string());
    let functions = model.nodes.iter().map(function);
    let doc = format!("The dependents of `{graph}` as they should be: a function for each field.");
    let message = format!("`{{Self}}` does not describe the dependents of `{graph}`");
    let note = format!(
        "implement `{name}` for it: for each field of `{graph}` an `async fn` that returns the \
         object as it should be"
    );
    let precondition = model.object.as_ref().map(|_| precondition());
    let nodes = model.nodes.iter().filter(|_| !is_faulty).map(|each| node(each, by));
    // A rollout is described by a value that any reconciler may make, and so needs the grants of a
    // rollout.
    let revision = model.has_rollout().then(revision);
    let rollouts = model.nodes.iter().filter(|node| node.is_rollout());
    let kinds = rollouts.map(|node| node.kind.to_token_stream()).chain(revision);
    let owns = kinds.map(|kind| quote!(Self: ::windlass::rbac::Owns<#kind>));
    quote! {
        #[doc = #doc]
        #[diagnostic::on_unimplemented(message = #message, note = #note)]
        #vis trait #name: ::windlass::controller::Reconciler<
            Object = <#by as ::windlass::controller::Reconciler>::Object
        > {
            #(#functions)*

            #precondition

            #[doc(hidden)]
            fn __nodes() -> ::std::vec::Vec<
                ::std::boxed::Box<dyn ::windlass::__private::dependents::AnyNode<Self>>
            >
            where
                #(#owns,)*
            {
                ::std::vec![#(#nodes),*]
            }
        }
    }
}

/// Generates the function that describes a field.
fn function(node: &GraphField) -> TokenStream {
    let (ident, kind) = (&node.ident, &node.kind);
    if node.is_external() {
        let text = format!("Returns the driver of the external resource `{}`.", ident.unraw());
        return quote!(#[doc = #text] fn #ident(&self) -> &::windlass::external::Externals<#kind>;);
    }
    let text = format!("Describes the dependent `{}`.", ident.unraw());
    let answer = match node.is_bulk {
        _ if node.is_rollout() => quote!(::windlass::rollout::RolloutChildren<Self, #kind>),
        true => quote!(::std::vec::Vec<#kind>),
        false => quote!(#kind),
    };
    quote! {
        #[doc = #text]
        fn #ident(
            &self,
            object: &Self::Object,
            cx: &::windlass::controller::Context<Self>,
        ) -> impl ::core::future::Future<
            Output = ::windlass::controller::Result<#answer>
        > + ::core::marker::Send;
    }
}

/// Generates the function that decides whether children are applied.
fn precondition() -> TokenStream {
    let name = syn::Ident::new(PRECONDITION, Span::call_site());
    quote! {
        /// Whether the children may be applied: `false` ends the reconcile and leaves them as they
        /// are.
        fn #name(
            &self,
            object: &Self::Object,
            cx: &::windlass::controller::Context<Self>,
        ) -> impl ::core::future::Future<
            Output = ::windlass::controller::Result<bool>
        > + ::core::marker::Send {
            let _ = (object, cx);
            ::core::future::ready(::core::result::Result::Ok(true))
        }
    }
}

/// Generates the reconciler, whose work is the graph; nothing without `for`.
fn reconciler(model: &GraphModel<'_>, by: &syn::Type) -> TokenStream {
    let Some(object) = &model.object else { return TokenStream::new() };
    let (graph, desired) = (model.ident, trait_name(model));
    let name = syn::Ident::new(PRECONDITION, Span::call_site());
    quote_spanned! {at(object.span())=>
        #[automatically_derived]
        impl ::windlass::controller::Reconciler for #by {
            type Object = #object;

            async fn reconcile(
                &self,
                object: &#object,
                cx: &::windlass::controller::Context<Self>,
            ) -> ::windlass::controller::Result {
                if !<Self as #desired>::#name(self, object, cx).await? {
                    return ::core::result::Result::Ok(::windlass::controller::Action::done());
                }
                <#graph as ::windlass::dependents::Dependents>::apply_each(self, object, cx)
                    .await
                    .action()
            }
        }
    }
}

/// Generates the struct of the fields after an apply.
fn fields(model: &GraphModel<'_>) -> TokenStream {
    let (vis, name) = (model.vis, fields_name(model));
    let fields = model.nodes.iter().map(|node| {
        let (ident, kind) = (&node.ident, &node.kind);
        let text = format!("The dependent `{}`.", ident.unraw());
        if node.is_external() {
            return quote!(#[doc = #text] pub #ident: ::windlass::dependents::ExternalDependent<#kind>);
        }
        quote!(#[doc = #text] pub #ident: ::windlass::dependents::Dependent<#kind>)
    });
    let doc = format!("The dependents of `{}` after an apply.", model.ident);
    quote! {
        #[doc = #doc]
        #[derive(::core::clone::Clone, ::core::fmt::Debug)]
        #[allow(dead_code)]
        #vis struct #name {
            #(#fields,)*
        }
    }
}

/// Generates the impl of `Dependents`.
fn graph(model: &GraphModel<'_>, by: &syn::Type) -> TokenStream {
    let (ident, fields, desired) = (model.ident, fields_name(model), trait_name(model));
    let place = at(by.span());
    let name = ident.to_string();
    let revision = model.has_rollout().then(revision);
    let kinds = model.kinds().into_iter().map(ToTokens::to_token_stream).chain(revision);
    let retired = model.retired.iter().map(|kind| {
        quote_spanned! {at(kind.span())=>
            ::std::boxed::Box::new(::windlass::__private::dependents::OwnedKind::<#kind>::new())
        }
    });
    let taken = model.nodes.iter().enumerate().map(|(at, node)| {
        let (ident, kind) = (&node.ident, &node.kind);
        if node.is_external() {
            return quote!(#ident: outcomes.take_external::<#kind>(#at));
        }
        quote!(#ident: outcomes.take(#at))
    });
    // A controller that describes nothing is reported once, by this call.
    let nodes = quote_spanned!(place=> <#by as #desired>::__nodes());
    quote! {
        #[automatically_derived]
        impl ::windlass::dependents::Dependents for #ident {
            type Controller = #by;
            type Fields = #fields;
            const NAME: &'static str = #name;
            const KINDS: &'static [::windlass::__private::Parts] = {
                #[allow(unused_imports)]
                use ::windlass::__private::Unknown as _;
                &[#(::windlass::__private::Identity::<#kinds>::OF),*]
            };

            fn nodes() -> ::std::vec::Vec<
                ::std::boxed::Box<dyn ::windlass::__private::dependents::AnyNode<#by>>
            > {
                #nodes
            }

            fn retired() -> ::std::vec::Vec<
                ::std::boxed::Box<dyn ::windlass::__private::dependents::AnyKind<#by>>
            > {
                ::std::vec![#(#retired),*]
            }

            fn fields(outcomes: &mut ::windlass::__private::dependents::FieldOutcomes) -> #fields {
                #fields { #(#taken),* }
            }
        }
    }
}

/// Returns the kind of revisions.
fn revision() -> TokenStream {
    quote!(::windlass::__private::dependents::ControllerRevision)
}

/// Generates the creation of the node of a field.
fn created(node: &GraphField) -> TokenStream {
    let (ident, kind, after) = (&node.ident, &node.kind, &node.after);
    let name = ident.unraw().to_string();
    if node.is_external() {
        quote!(ExternalNode::<Self, #kind>::new(#name, &[#(#after),*], Self::#ident))
    } else if node.is_rollout() {
        let call = quote!(::std::boxed::Box::pin(Self::#ident(controller, object, cx)));
        quote! {
            RolloutNode::<Self, #kind>::new(#name, &[#(#after),*], |controller, object, cx| #call)
        }
    } else {
        let found = quote!(Self::#ident(controller, object, cx).await);
        let found = match node.is_bulk {
            true => found,
            false => quote!(#found.map(|child| ::std::vec![child])),
        };
        quote! {
            GraphNode::<Self, #kind>::new(#name, &[#(#after),*], |controller, object, cx| {
                ::std::boxed::Box::pin(async move { #found })
            })
        }
    }
}

/// Generates the node of a field.
fn node(node: &GraphField, by: &syn::Type) -> TokenStream {
    let kind = &node.kind;
    let when = node.attrs.when.as_ref().map(|when| {
        let call = quote_spanned!(at(when.span())=> (#when)(object));
        quote_spanned! {at(when.span())=>
            .when(|object: &<#by as ::windlass::controller::Reconciler>::Object| -> bool { #call })
        }
    });
    let ready = node.attrs.ready.as_ref().map(|ready| {
        let judged = if node.is_external() {
            quote! {
                ::windlass::external::ExternalState<
                    <#kind as ::windlass::external::External>::Handle
                >
            }
        } else {
            quote!(#kind)
        };
        quote_spanned! {at(ready.span())=>
            .ready(|child: &#judged| ::core::convert::Into::into((#ready)(child)))
        }
    });
    let new = created(node);
    let adopt = node.attrs.adopt_if.as_ref().map(|adopt| {
        quote_spanned!(at(adopt.span())=> .adopt_if(|child: &#kind| -> bool { (#adopt)(child) }))
    });
    let optional = node.attrs.optional.as_ref().map(|_| quote!(.optional()));
    let cluster = node.attrs.scope.as_ref().map(|_| quote!(.cluster()));
    quote! {
        ::std::boxed::Box::new(
            ::windlass::__private::dependents::#new
            #when
            #ready
            #adopt
            #optional
            #cluster
        )
    }
}

/// Generates the grants of the controller, which owns every kind of the main graph.
///
/// Without the bound two graphs with one kind would implement a trait twice. The bound is about an
/// associated type, so that within each impl the other bound is known not to hold, and has a
/// lifetime, because bounds without a parameter must hold.
fn grants(model: &GraphModel<'_>, by: &syn::Type) -> TokenStream {
    let graph = super::graph_name(model.ident, &quote!(::windlass));
    // A field of that kind besides is owned once: the compiler tells of the second.
    let revision = model.has_rollout().then(|| (revision(), by.span()));
    let kinds = model.kinds().into_iter().map(|kind| (kind.to_token_stream(), kind.span()));
    let each = kinds.chain(revision).map(|(kind, span)| {
        let place = at(span);
        let reads = ["Get", "List", "Watch"].map(|verb| {
            let verb = syn::Ident::new(verb, place);
            quote_spanned! {place=>
                #[automatically_derived]
                #[diagnostic::do_not_recommend]
                impl ::windlass::rbac::Can<::windlass::rbac::verbs::#verb, #kind> for #by
                where
                    for<'__graph> #by: ::windlass::__private::dependents::MainGraph<Graph = #graph>
                {}
            }
        });
        let owns = quote_spanned! {place=>
            #[automatically_derived]
            #[diagnostic::do_not_recommend]
            impl ::windlass::rbac::Owns<#kind> for #by
            where
                for<'__graph> #by: ::windlass::__private::dependents::MainGraph<Graph = #graph>
            {}
        };
        quote!(#owns #(#reads)*)
    });
    each.collect()
}

/// Generates a use of the struct with its fields, which are a declaration only and never read.
fn declared(model: &GraphModel<'_>) -> TokenStream {
    let ident = model.ident;
    let fields: Vec<_> = model.nodes.iter().map(|node| &node.ident).collect();
    quote! {
        const _: () = {
            #[allow(dead_code)]
            fn declared(graph: #ident) {
                let #ident { #(#fields),* } = graph;
                let _ = #ident { #(#fields),* };
            }
        };
    }
}
