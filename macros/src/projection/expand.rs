//! The generated code of a projection: a tree of readers and writers over the struct's fields.

use proc_macro2::{Ident, Span, TokenStream};
use quote::{format_ident, quote, quote_spanned};
use syn::spanned::Spanned;
use syn::{GenericArgument, PathArguments, Type};

use super::model::{Absent, NodeMember, PathNode, ProjectionField, ProjectionModel};
use super::names;

/// Returns the generated code of a model without faults.
pub(super) fn all(model: &ProjectionModel) -> TokenStream {
    let tree = model.tree();
    let mut nodes = TokenStream::new();
    let mut count = 0;
    let root = node(model, &tree, 0, &mut count, &mut nodes);
    let selected = selected(model, count);
    let walks = names::walks(model);
    let parts = [slots(model), walks, nodes, selected, serde_impls(model, root), resource(model)];
    let body: TokenStream = parts.into_iter().collect();
    let p = private();
    quote! {
        #[doc(hidden)]
        #[allow(non_camel_case_types, unused_qualifications)]
        const _: () = {
            #[allow(unused_imports)]
            use #p::ReadField as _;
            #body
        };
    }
}

/// Returns a resource that is never used, for a model with faults.
pub(super) fn fallback(model: &ProjectionModel) -> TokenStream {
    let p = private();
    let ident = &model.ident;
    if !model.is_struct {
        return TokenStream::new();
    }
    // The kind is named all the same, so that the import does not count as unused.
    let of = &model.of;
    let info = of.as_ref().map_or(quote!(::core::unimplemented!()), base_info);
    let serialize = (!model.derived.serialize).then(|| {
        quote! {
            impl #p::serde::Serialize for #ident {
                fn serialize<__S: #p::serde::Serializer>(
                    &self,
                    _: __S,
                ) -> ::core::result::Result<__S::Ok, __S::Error> {
                    ::core::unimplemented!()
                }
            }
        }
    });
    let deserialize = (!model.derived.deserialize).then(|| {
        quote! {
            impl<'de> #p::serde::Deserialize<'de> for #ident {
                fn deserialize<__D: #p::serde::Deserializer<'de>>(
                    _: __D,
                ) -> ::core::result::Result<Self, __D::Error> {
                    ::core::unimplemented!()
                }
            }
        }
    });
    quote! {
        impl ::windlass::resource::Resource for #ident {
            type Kind = Self;

            fn static_info() -> ::core::option::Option<::windlass::resource::ResourceInfo> {
                #info
            }

            fn metadata(&self) -> &#p::ObjectMeta {
                ::core::unimplemented!()
            }

            fn metadata_mut(&mut self) -> &mut #p::ObjectMeta {
                ::core::unimplemented!()
            }
        }

        #serialize
        #deserialize
    }
}

pub(super) fn private() -> TokenStream {
    quote!(::windlass::__private)
}

/// Returns the same path, with every token at `place`: an error underlines an expression from the
/// first token to the last.
pub(super) fn private_at(place: Span) -> TokenStream {
    quote_spanned!(place=> ::windlass::__private)
}

/// Returns a span that shows errors at `place` and resolves names at the derive.
pub(super) fn at(place: Span) -> Span {
    place.resolved_at(Span::call_site())
}

fn resource(model: &ProjectionModel) -> TokenStream {
    let p = private();
    let ident = &model.ident;
    let Some(of) = &model.of else { return TokenStream::new() };
    let paths = names::projected(model, &paths(model));
    let metadata = model.fields.iter().find(|field| field.ident == "metadata");
    let place = at(metadata.map_or(Span::call_site(), |field| field.ty.span()));
    let q = private_at(place);
    let get = quote_spanned!(place=> #q::Meta::get(&self.metadata));
    let get_mut = quote_spanned!(place=> #q::Meta::get_mut(&mut self.metadata));
    quote! {
        #[automatically_derived]
        impl #p::ProjectionOf for #ident {
            type Whole = #of;
        }

        #[automatically_derived]
        impl ::windlass::resource::Resource for #ident {
            type Kind = #of;

            const IDENTITY: &'static [&'static str] = &[::core::concat!(
                ::core::module_path!(), "::", ::core::stringify!(#ident),
                ":", ::core::line!(), ":", ::core::column!(),
            )];

            fn static_info() -> ::core::option::Option<::windlass::resource::ResourceInfo> {
                #p::whole_info::<Self>()
            }

            fn metadata(&self) -> &#p::ObjectMeta {
                #get
            }

            fn metadata_mut(&mut self) -> &mut #p::ObjectMeta {
                #get_mut
            }

            fn projection() -> ::core::option::Option<&'static str> {
                ::core::option::Option::Some(::core::any::type_name::<Self>())
            }

            fn projected() -> &'static [&'static [&'static str]] {
                #paths
            }

            fn decode_partial(__text: &str) -> ::core::option::Option<Self> {
                #p::decode_partial(__text)
            }
        }
    }
}

/// Members of `ObjectMeta`.
const METADATA: [&str; 14] = [
    "annotations",
    "creationTimestamp",
    "deletionGracePeriodSeconds",
    "deletionTimestamp",
    "finalizers",
    "generateName",
    "generation",
    "labels",
    "name",
    "namespace",
    "ownerReferences",
    "resourceVersion",
    "selfLink",
    "uid",
];

/// Returns the paths that the projection reads.
fn paths(model: &ProjectionModel) -> Vec<(Option<usize>, Vec<String>)> {
    let mut paths = Vec::new();
    for (place, field) in model.fields.iter().enumerate() {
        if field.ident != "metadata" || model.skip.is_empty() {
            paths.push((field.fields.as_ref().map(|_| place), field.path.clone()));
            continue;
        }
        let is_read = |part: &&&str| !model.skip.iter().any(|skipped| skipped == **part);
        let parts = METADATA.iter().filter(is_read);
        paths.extend(parts.map(|part| (None, vec!["metadata".to_owned(), (*part).to_owned()])));
    }
    paths
}

/// Returns the kind of the whole; a single error if the type is no kind.
fn base_info(of: &Type) -> TokenStream {
    let place = at(of.span());
    let p = private_at(place);
    quote_spanned!(place=> #p::base_info::<#of>())
}

/// Returns the name of the slot of a field.
fn slot(place: usize, span: Span) -> Ident {
    format_ident!("f{place}", span = span)
}

/// Returns the struct of values that were read so far.
fn slots(model: &ProjectionModel) -> TokenStream {
    let slots = model.fields.iter().enumerate().map(|(place, field)| {
        let (slot, ty) = (slot(place, Span::call_site()), &field.ty);
        match field.absent {
            Absent::Default => quote!(#slot: ::core::option::Option<::core::option::Option<#ty>>),
            _ => quote!(#slot: ::core::option::Option<#ty>),
        }
    });
    quote! {
        #[derive(Default)]
        struct __Slots {
            #(#slots,)*
        }
    }
}

/// Generates reader and writer of a node, after those of the nodes below; returns the number in
/// their names.
fn node(
    model: &ProjectionModel,
    tree: &PathNode,
    depth: usize,
    count: &mut usize,
    out: &mut TokenStream,
) -> usize {
    let below: Vec<Option<usize>> = tree
        .members
        .iter()
        .map(|(_, member)| match member {
            NodeMember::Field(_) => None,
            NodeMember::Node(inner) => Some(node(model, inner, depth + 1, count, out)),
        })
        .collect();
    let number = *count;
    *count += 1;
    let names = names::NodeMemberNames::of(model, tree, depth, number);
    out.extend(names.function(model));
    out.extend(reader(model, tree, number, &below, &names));
    out.extend(writer(model, tree, number, &below, &names));
    number
}

/// Generates the reader of a node: a match over the members.
fn reader(
    model: &ProjectionModel,
    tree: &PathNode,
    number: usize,
    below: &[Option<usize>],
    names: &names::NodeMemberNames,
) -> TokenStream {
    let p = private();
    let reader = format_ident!("__In{number}");
    let names = names.all();
    let arms =
        tree.members.iter().zip(below).enumerate().map(|(place, ((name, member), below))| {
            let read = match (member, below) {
                (NodeMember::Field(field), _) => read(model, *field),
                (NodeMember::Node(_), Some(below)) => {
                    let below = format_ident!("__In{below}");
                    quote!(#p::read_below(__map, #below(&mut *self.0)))
                }
                (NodeMember::Node(_), None) => unreachable!("a node has a number: {name}"),
            };
            quote!(#place => #read,)
        });
    quote! {
        struct #reader<'__s>(&'__s mut __Slots);

        impl<'de> #p::Members<'de> for #reader<'_> {
            fn names(&self) -> ::core::result::Result<#p::MemberNames, &'static str> {
                #names
            }

            fn read<__A: #p::serde::de::MapAccess<'de>>(
                &mut self,
                __place: usize,
                __map: &mut __A,
            ) -> ::core::result::Result<(), __A::Error> {
                match __place {
                    #(#arms)*
                    _ => ::core::result::Result::Ok(()),
                }
            }
        }
    }
}

/// Generates the reader of those parts of the metadata that are skipped except for some members.
fn selected(model: &ProjectionModel, mut count: usize) -> TokenStream {
    if model.skip.is_empty() {
        return TokenStream::new();
    }
    let p = private();
    let (mut readers, mut arms) = (TokenStream::new(), TokenStream::new());
    for part in ["labels", "annotations"] {
        let node = model.selected(part);
        if node.members.is_empty() {
            continue;
        }
        let names = names::NodeMemberNames::of(model, &node, 2, count);
        readers.extend(reader(model, &node, count, &vec![None; node.members.len()], &names));
        let reader = format_ident!("__In{count}");
        arms.extend(quote!(#part => #p::read_below(__map, #reader(&mut *self.0)),));
        count += 1;
    }
    quote! {
        #readers

        #[allow(dead_code)]
        struct __SelectedValues<'__s>(&'__s mut __Slots);

        impl<'de> #p::SelectedValues<'de> for __SelectedValues<'_> {
            fn read<__A: #p::serde::de::MapAccess<'de>>(
                &mut self,
                __part: &str,
                __map: &mut __A,
            ) -> ::core::result::Result<(), __A::Error> {
                match __part {
                    #arms
                    _ => #p::read_nothing(__map),
                }
            }
        }
    }
}

/// Generates the read of a field into its slot.
fn read(model: &ProjectionModel, place: usize) -> TokenStream {
    let field = &model.fields[place];
    let here = at(field.ty.span());
    let (slot, path) = (slot(place, here), field.path.join("."));
    let p = private_at(here);
    if field.ident == "metadata" && !model.skip.is_empty() {
        let skip = &model.skip;
        return quote!({
            let mut __metadata = ::core::option::Option::take(&mut self.0.#slot);
            let __selected = __SelectedValues(&mut *self.0);
            #p::read_metadata(__map, &mut __metadata, &[#(#skip),*], __selected)?;
            self.0.#slot = __metadata;
            ::core::result::Result::Ok(())
        });
    }
    quote_spanned!(here=> #p::ProjectedSlot(&mut self.0.#slot).read_field(__map, #path))
}

/// Returns the type of a value that is there: an error about the value underlines it.
fn value_type(ty: &Type, absent: Absent) -> &Type {
    let Type::Path(path) = ty else { return ty };
    let last = path.path.segments.last().filter(|_| absent == Absent::None);
    match last.map(|segment| &segment.arguments) {
        Some(PathArguments::AngleBracketed(arguments)) => match arguments.args.last() {
            Some(GenericArgument::Type(inner)) => inner,
            _ => ty,
        },
        _ => ty,
    }
}

/// Generates the writer of a node.
fn writer(
    model: &ProjectionModel,
    tree: &PathNode,
    number: usize,
    below: &[Option<usize>],
    names: &names::NodeMemberNames,
) -> TokenStream {
    let p = private();
    let ident = &model.ident;
    let writer = format_ident!("__Out{number}");
    let prepare = names.prepare();
    let writes = tree.members.iter().zip(below).enumerate().map(|(at_node, ((_, member), below))| {
        let name = names.one(at_node);
        match below {
        Some(below) => {
            let below = format_ident!("__Out{below}");
            quote!(#p::serde::ser::SerializeMap::serialize_entry(&mut __out, #name, &#below(self.0))?;)
        }
        None => {
            let NodeMember::Field(place) = member else { return TokenStream::new() };
            let ProjectionField { ident, ty, absent, .. } = &model.fields[*place];
            let here = at(value_type(ty, *absent).span());
            let q = private_at(here);
            // Picked labels and annotations are written as part of the metadata.
            if ident == "metadata" && model.fields.iter().any(|field| field.pick.is_some()) {
                let selected = model.fields.iter().filter_map(|field| {
                    let (ident, part, key) = (&field.ident, field.pick?, field.path.last()?);
                    let place = at(field.ty.span());
                    let p = private_at(place);
                    Some(quote_spanned!(place=> (#part, #key, #p::selected_value(&self.0.#ident))))
                });
                quote!(#p::write_field(
                    &mut __out,
                    #name,
                    &#p::with_selected_values(&self.0.#ident, &[#(#selected),*]),
                )?;)
            } else if *absent == Absent::None {
                quote_spanned!(here=> #q::write_optional_field(&mut __out, #name, &self.0.#ident)?;)
            } else {
                quote_spanned!(here=> #q::write_field(&mut __out, #name, &self.0.#ident)?;)
            }
        }
    }
    });
    quote! {
        struct #writer<'__s>(&'__s #ident);

        impl #p::serde::Serialize for #writer<'_> {
            fn serialize<__S: #p::serde::Serializer>(
                &self,
                __serializer: __S,
            ) -> ::core::result::Result<__S::Ok, __S::Error> {
                let mut __out = #p::serde::Serializer::serialize_map(
                    __serializer,
                    ::core::option::Option::None,
                )?;
                #prepare
                #(#writes)*
                #p::serde::ser::SerializeMap::end(__out)
            }
        }
    }
}

/// Generates the impls of the struct itself, through the root node, which comes last.
fn serde_impls(model: &ProjectionModel, root: usize) -> TokenStream {
    let p = private();
    let ident = &model.ident;
    let (reader, writer) = (format_ident!("__In{root}"), format_ident!("__Out{root}"));
    let values = model.fields.iter().enumerate().map(|(place, field)| {
        let (slot, name) = (slot(place, Span::call_site()), &field.ident);
        let path = field.path.join(".");
        let value = match field.absent {
            Absent::None => quote!(::core::option::Option::flatten(__slots.#slot)),
            Absent::Default => quote!(::core::option::Option::unwrap_or_default(
                ::core::option::Option::flatten(__slots.#slot)
            )),
            Absent::Fault if field.ident == "metadata" => {
                quote!(#p::shrunk(::core::option::Option::unwrap_or_default(__slots.#slot)))
            }
            Absent::Fault => quote!(#p::required(__slots.#slot, #path)?),
        };
        if field.is_list {
            quote!(#name: { let mut list = #value; list.shrink_to_fit(); list })
        } else {
            quote!(#name: #value)
        }
    });
    quote! {
        #[automatically_derived]
        impl #p::serde::Serialize for #ident {
            fn serialize<__S: #p::serde::Serializer>(
                &self,
                __serializer: __S,
            ) -> ::core::result::Result<__S::Ok, __S::Error> {
                #p::serde::Serialize::serialize(&#writer(self), __serializer)
            }
        }

        #[automatically_derived]
        impl<'de> #p::serde::Deserialize<'de> for #ident {
            fn deserialize<__D: #p::serde::Deserializer<'de>>(
                __deserializer: __D,
            ) -> ::core::result::Result<Self, __D::Error> {
                let mut __slots = <__Slots as ::core::default::Default>::default();
                #p::read_root(__deserializer, #reader(&mut __slots))?;
                ::core::result::Result::Ok(Self { #(#values,)* })
            }
        }
    }
}
