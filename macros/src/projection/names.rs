//! Generated code for the names of members in JSON: literals, or found along Rust fields.

use proc_macro2::TokenStream;
use quote::{format_ident, quote, quote_spanned};
use syn::spanned::Spanned;

use super::expand::{at, private, private_at};
use super::model::{NodeMember, PathNode, ProjectionField, ProjectionModel};
use crate::path::{CollectNames as Collect, statements};

/// The names of a node's members.
pub(super) struct NodeMemberNames {
    number: usize,
    /// For each member the name, and the field through which a name that is no literal is found.
    members: Vec<(String, Option<usize>)>,
    depth: usize,
}

impl NodeMemberNames {
    /// The names of a node that lies `depth` below the root.
    pub(super) fn of(
        model: &ProjectionModel,
        node: &PathNode,
        depth: usize,
        number: usize,
    ) -> Self {
        let through = |member: &NodeMember| first(model, member);
        let members =
            node.members.iter().map(|(name, member)| (name.clone(), through(member))).collect();
        Self { number, members, depth }
    }

    fn are_literals(&self) -> bool {
        self.members.iter().all(|(_, field)| field.is_none())
    }

    /// Generates the function that finds names which are no literals.
    pub(super) fn function(&self, model: &ProjectionModel) -> TokenStream {
        if self.are_literals() {
            return TokenStream::new();
        }
        let p = private();
        let (function, depth) = (format_ident!("__names{}", self.number), self.depth);
        let members = self.members.iter().map(|(name, field)| match field {
            None => quote!(#p::MemberName::Text(#name)),
            Some(field) if model.fields[*field].is_own => {
                let walk = format_ident!("__walk{field}");
                quote!(#p::MemberName::Own(#walk, #name))
            }
            Some(field) => {
                let walk = format_ident!("__walk{field}");
                quote!(#p::MemberName::Field(#walk, #depth))
            }
        });
        quote! {
            fn #function() -> ::core::result::Result<#p::MemberNames, &'static str> {
                static __NAMES: #p::FoundNames = #p::FoundNames::new();
                __NAMES.get(&[#(#members),*])
            }
        }
    }

    /// Returns all names, as a `Result`.
    pub(super) fn all(&self) -> TokenStream {
        if self.are_literals() {
            let names = self.members.iter().map(|(name, _)| name);
            return quote!(::core::result::Result::Ok(&[#(#names),*]));
        }
        let function = format_ident!("__names{}", self.number);
        quote!(#function())
    }

    /// Generates the variable from which [`one`](Self::one) takes names.
    pub(super) fn prepare(&self) -> TokenStream {
        if self.are_literals() {
            return TokenStream::new();
        }
        let p = private();
        let function = format_ident!("__names{}", self.number);
        quote!(let __names = #function().map_err(#p::serde::ser::Error::custom)?;)
    }

    /// Returns the name of a member.
    pub(super) fn one(&self, place: usize) -> TokenStream {
        let (name, _) = &self.members[place];
        if self.are_literals() { quote!(#name) } else { quote!(__names[#place]) }
    }
}

/// Returns a field below a member whose path is written as Rust fields.
fn first(model: &ProjectionModel, member: &NodeMember) -> Option<usize> {
    match member {
        NodeMember::Field(place) => model.fields[*place].fields.as_ref().map(|_| *place),
        NodeMember::Node(node) => node.members.iter().find_map(|(_, member)| first(model, member)),
    }
}

/// Generates a walk for each path of Rust fields. The compiler checks the segments, and that the
/// last field can have the type of the projection's field.
pub(super) fn walks(model: &ProjectionModel) -> TokenStream {
    let p = private();
    let ident = &model.ident;
    let walk = |(place, field): (usize, &ProjectionField)| {
        let path = field.fields.as_ref()?;
        let (walk, ty) = (format_ident!("__walk{place}"), &field.ty);
        let steps = statements(path, Collect::Collected);
        let here = at(ty.span());
        let end = at(path.end());
        let leaf = quote_spanned!(end=> let __w = __w.inner().inner().inner(););
        let q = private_at(here);
        let check = quote_spanned! {here=>
            let __own = #q::path::Walk::<'_, #ty>::types().inner().inner().inner();
            #q::path::reads(&__own, &__w, __own.container().json_class(), __w.container().json_class());
        };
        Some(quote! {
            fn #walk() -> ::core::result::Result<
                ::std::vec::Vec<::windlass::resource::Segment>,
                ::std::string::String,
            > {
                #[allow(unused_imports)]
                use #p::path::{Declared as _, Inner as _, OfAnyClass as _, Probed as _, Undeclared as _};
                let __w = #p::path::Walk::<'_, <#ident as #p::ProjectionOf>::Whole>::types();
                #steps
                #leaf
                #check
                __w.segments()
            }
        })
    };
    model.fields.iter().enumerate().filter_map(walk).collect()
}

/// Generates the list of the paths that are read.
pub(super) fn projected(
    model: &ProjectionModel,
    paths: &[(Option<usize>, Vec<String>)],
) -> TokenStream {
    let p = private();
    let literals = paths.iter().map(|(_, path)| quote!(&[#(#path),*]));
    if model.fields.iter().all(|field| field.fields.is_none()) {
        return quote!(&[#(#literals),*]);
    }
    let parts = paths.iter().map(|(field, path)| match field {
        None => quote!(#p::ProjectedPath::Text(&[#(#path),*])),
        Some(field) => {
            let walk = format_ident!("__walk{field}");
            quote!(#p::ProjectedPath::Fields(#walk, &[#(#path),*]))
        }
    });
    quote!({
        static __PATHS: #p::FoundPaths = #p::FoundPaths::new();
        __PATHS.get(&[#(#parts),*])
    })
}
