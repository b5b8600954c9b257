//! The generated code of a graph: its trait, its fields, its nodes, the grants of its controller.

// DESIGN.md, 179: A graph can be the whole reconcile

use proc_macro2::{Span, TokenStream};
use quote::{format_ident, quote, quote_spanned};
use syn::ext::IdentExt;
use syn::spanned::Spanned;

use super::model::{Model, Node};

/// Function of the generated trait that decides whether children are applied.
pub(super) const PRECONDITION: &str = "precondition";

/// Returns the generated code.
pub(super) fn all(model: &Model<'_>, is_faulty: bool) -> TokenStream {
    let Some(by) = &model.by else { return TokenStream::new() };
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
fn trait_name(model: &Model<'_>) -> syn::Ident {
    format_ident!("Desired{}", model.ident, span = Span::call_site())
}

/// Returns the name of the generated struct of fields.
fn fields_name(model: &Model<'_>) -> syn::Ident {
    format_ident!("Applied{}", model.ident, span = Span::call_site())
}

/// Generates the trait with a function for each field, and the nodes that call these functions.
fn desired(model: &Model<'_>, by: &syn::Type, is_faulty: bool) -> TokenStream {
    let (vis, name, graph) = (model.vis, trait_name(model), model.ident.to_string());
    let functions = model.nodes.iter().map(|node| {
        let (ident, kind) = (&node.ident, &node.kind);
        let text = format!("Describes the dependent `{}`.", ident.unraw());
        let answer = if node.is_bulk { quote!(::std::vec::Vec<#kind>) } else { quote!(#kind) };
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
    });
    let doc = format!("The dependents of `{graph}` as they should be: a function for each field.");
    let message = format!("`{{Self}}` does not describe the dependents of `{graph}`");
    let note = format!(
        "implement `{name}` for it: for each field of `{graph}` an `async fn` that returns the \
         object as it should be"
    );
    let precondition = model.object.as_ref().map(|_| precondition());
    let nodes = model.nodes.iter().filter(|_| !is_faulty).map(|each| node(each, by));
    let owns = model.kinds().into_iter().map(|kind| quote!(Self: ::windlass::rbac::Owns<#kind>));
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

/// Generates the function that decides whether children are applied.
fn precondition() -> TokenStream {
    let name = syn::Ident::new(PRECONDITION, Span::call_site());
    quote! {
        /// Whether the children may be applied: `false` ends the reconcile and leaves them as they are.
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
fn reconciler(model: &Model<'_>, by: &syn::Type) -> TokenStream {
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
fn fields(model: &Model<'_>) -> TokenStream {
    let (vis, name) = (model.vis, fields_name(model));
    let fields = model.nodes.iter().map(|node| {
        let (ident, kind) = (&node.ident, &node.kind);
        let text = format!("The dependent `{}`.", ident.unraw());
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
fn graph(model: &Model<'_>, by: &syn::Type) -> TokenStream {
    let (ident, fields, desired) = (model.ident, fields_name(model), trait_name(model));
    let place = at(by.span());
    let name = ident.to_string();
    let retired = model.retired.iter().map(|kind| {
        quote_spanned! {at(kind.span())=>
            ::std::boxed::Box::new(::windlass::__private::dependents::OwnedKind::<#kind>::new())
        }
    });
    let taken = model.nodes.iter().enumerate().map(|(at, node)| {
        let ident = &node.ident;
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

            fn fields(outcomes: &mut ::windlass::__private::dependents::Outcomes) -> #fields {
                #fields { #(#taken),* }
            }
        }
    }
}

/// Generates the node of a field.
fn node(node: &Node, by: &syn::Type) -> TokenStream {
    let (ident, kind, after) = (&node.ident, &node.kind, &node.after);
    let name = ident.unraw().to_string();
    let found = quote!(Self::#ident(controller, object, cx).await);
    let found = if node.is_bulk { found } else { quote!(#found.map(|child| ::std::vec![child])) };
    let when = node.attrs.when.as_ref().map(|when| {
        let call = quote_spanned!(at(when.span())=> (#when)(object));
        quote_spanned! {at(when.span())=>
            .when(|object: &<#by as ::windlass::controller::Reconciler>::Object| -> bool { #call })
        }
    });
    let ready = node.attrs.ready.as_ref().map(|ready| {
        quote_spanned! {at(ready.span())=>
            .ready(|child: &#kind| ::core::convert::Into::into((#ready)(child)))
        }
    });
    let adopt = node.attrs.adopt_if.as_ref().map(|adopt| {
        quote_spanned!(at(adopt.span())=> .adopt_if(|child: &#kind| -> bool { (#adopt)(child) }))
    });
    let optional = node.attrs.optional.as_ref().map(|_| quote!(.optional()));
    quote! {
        ::std::boxed::Box::new(
            ::windlass::__private::dependents::Node::<Self, #kind>::new(
                #name,
                &[#(#after),*],
                |controller, object, cx| ::std::boxed::Box::pin(async move { #found }),
            )
            #when
            #ready
            #adopt
            #optional
        )
    }
}

/// Generates the grants of the controller: it owns every kind of the graph.
fn grants(model: &Model<'_>, by: &syn::Type) -> TokenStream {
    let each = model.kinds().into_iter().map(|kind| {
        let place = at(kind.span());
        let reads = ["Get", "List", "Watch"].map(|verb| {
            let verb = syn::Ident::new(verb, place);
            quote_spanned! {place=>
                #[automatically_derived]
                impl ::windlass::rbac::Can<::windlass::rbac::verbs::#verb, #kind> for #by {}
            }
        });
        let owns = quote_spanned! {place=>
            #[automatically_derived]
            impl ::windlass::rbac::Owns<#kind> for #by {}
        };
        quote!(#owns #(#reads)*)
    });
    each.collect()
}

/// Generates a use of the struct and its fields, which are a declaration only and never read.
fn declared(model: &Model<'_>) -> TokenStream {
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
