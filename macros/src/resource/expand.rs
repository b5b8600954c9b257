//! The generated code of a resource: constants, field lists and calls into `windlass::__private`.

use proc_macro2::{Ident, Span, TokenStream};
use quote::{ToTokens, format_ident, quote, quote_spanned};
use syn::spanned::Spanned;

use super::attrs::{ColumnAttr, ScaleAttr};
use super::index::{IndexAttr, IndexSource, Step};
use super::model::{Field, ResourceModel};
use crate::keys::At;

/// Everything, of a model without faults.
pub(super) fn all(model: &ResourceModel) -> TokenStream {
    let parts = [
        resource(model),
        metadata(model),
        constructor(model),
        serialize(model),
        deserialize(model),
        crd(model),
        indexes(model, false),
    ];
    parts.into_iter().collect()
}

/// The same items for a model with faults, as far as its fields are known. Bodies that would trip
/// over the fault are left out; nothing of it ever runs.
pub(super) fn fallback(model: &ResourceModel) -> TokenStream {
    if !model.is_struct {
        return TokenStream::new();
    }
    let mut parts = vec![resource(model), constructor(model), crd(model), indexes(model, true)];
    if model.metadata.is_some() {
        parts.extend([metadata(model), serialize(model), deserialize(model)]);
    } else {
        parts.push(without_metadata(model));
    }
    parts.into_iter().collect()
}

fn private() -> TokenStream {
    quote!(::windlass::__private)
}

/// A span that shows errors at `place` and looks names up where the derive stands.
fn at(place: Span) -> Span {
    place.resolved_at(Span::call_site())
}

fn resource(model: &ResourceModel) -> TokenStream {
    let p = private();
    let ResourceModel { ident, group, version, kind, plural, .. } = model;
    let [group, version, kind, plural] = [group, version, kind, plural].map(|at| &at.value);
    let api_version = model.api_version();
    let scope =
        format_ident!("{}ResourceScope", if model.namespaced { "Namespace" } else { "Cluster" });
    quote! {
        #[automatically_derived]
        impl #p::k8s_openapi::Resource for #ident {
            const API_VERSION: &'static str = #api_version;
            const GROUP: &'static str = #group;
            const KIND: &'static str = #kind;
            const VERSION: &'static str = #version;
            const URL_PATH_SEGMENT: &'static str = #plural;
            type Scope = #p::k8s_openapi::#scope;
        }
    }
}

fn metadata(model: &ResourceModel) -> TokenStream {
    let p = private();
    let ident = &model.ident;
    let place = at(model.metadata.as_ref().map_or(Span::call_site(), |field| field.ty.span()));
    let get = quote_spanned!(place=> &self.metadata);
    let get_mut = quote_spanned!(place=> &mut self.metadata);
    quote! {
        #[automatically_derived]
        impl #p::k8s_openapi::Metadata for #ident {
            type Ty = #p::ObjectMeta;

            fn metadata(&self) -> &#p::ObjectMeta {
                #get
            }

            fn metadata_mut(&mut self) -> &mut #p::ObjectMeta {
                #get_mut
            }
        }
    }
}

/// `Website::new(name, spec)`: every field that is not optional is an argument.
fn constructor(model: &ResourceModel) -> TokenStream {
    let p = private();
    let ResourceModel { ident, vis, .. } = model;
    let needed: Vec<&Field> = model.fields.iter().filter(|field| !field.optional).collect();
    let names: Vec<_> = needed.iter().map(|field| &field.ident).collect();
    let types: Vec<_> = needed.iter().map(|field| &field.ty).collect();
    let absent: Vec<_> =
        model.fields.iter().filter(|field| field.optional).map(|field| &field.ident).collect();
    let doc = format!(
        "A `{}` of that name; namespace and labels are set in its metadata.",
        model.kind.value
    );
    let body = if model.metadata.is_some() {
        quote!(Self {
            metadata: #p::named(::core::convert::Into::into(name)),
            #(#names,)*
            #(#absent: ::core::option::Option::None,)*
        })
    } else {
        quote!(::core::unimplemented!())
    };
    quote! {
        #[automatically_derived]
        impl #ident {
            #[doc = #doc]
            #[allow(dead_code, unused_variables)]
            #[must_use]
            #vis fn new(name: impl ::core::convert::Into<::std::string::String>, #(#names: #types),*) -> Self {
                #body
            }
        }
    }
}

fn serialize(model: &ResourceModel) -> TokenStream {
    let p = private();
    let ident = &model.ident;
    let (kind, api_version) = (&model.kind.value, model.api_version());
    let count = model.fields.len() + 3;
    let fields = model.fields.iter().map(|field| {
        let Field { ident, json, ty, optional, .. } = field;
        let place = at(ty.span());
        if *optional {
            quote_spanned!(place=> #p::write_option(&mut out, #json, &self.#ident)?;)
        } else {
            quote_spanned!(place=> #p::write(&mut out, #json, &self.#ident)?;)
        }
    });
    quote! {
        #[automatically_derived]
        impl #p::serde::Serialize for #ident {
            fn serialize<S: #p::serde::Serializer>(
                &self,
                serializer: S,
            ) -> ::core::result::Result<S::Ok, S::Error> {
                let mut out = #p::begin(serializer, #kind, #api_version, #count)?;
                #p::write(&mut out, "metadata", &self.metadata)?;
                #(#fields)*
                #p::serde::ser::SerializeStruct::end(out)
            }
        }
    }
}

/// Reads through a struct of the same fields, so that serde's own derive does the reading.
fn deserialize(model: &ResourceModel) -> TokenStream {
    let p = private();
    let ident = &model.ident;
    let (kind, api_version) = (&model.kind.value, model.api_version());
    let names: Vec<_> = model.fields.iter().map(|field| &field.ident).collect();
    let fields = model.fields.iter().map(|field| {
        let Field { ident, json, ty, .. } = field;
        quote!(#[serde(rename = #json)] #ident: #ty)
    });
    quote! {
        #[automatically_derived]
        impl<'de> #p::serde::Deserialize<'de> for #ident {
            fn deserialize<D: #p::serde::Deserializer<'de>>(
                deserializer: D,
            ) -> ::core::result::Result<Self, D::Error> {
                fn __same_group<'de, D: #p::serde::Deserializer<'de>>(
                    deserializer: D,
                ) -> ::core::result::Result<(), D::Error> {
                    #p::same_group(deserializer, #api_version)
                }
                fn __same_kind<'de, D: #p::serde::Deserializer<'de>>(
                    deserializer: D,
                ) -> ::core::result::Result<(), D::Error> {
                    #p::same_kind(deserializer, #kind)
                }
                #[allow(dead_code)]
                #[derive(#p::serde::Deserialize)]
                #[serde(crate = "::windlass::__private::serde", rename = #kind)]
                struct __Read {
                    #[serde(rename = "apiVersion", default, deserialize_with = "__same_group")]
                    __api_version: (),
                    #[serde(rename = "kind", default, deserialize_with = "__same_kind")]
                    __kind: (),
                    #[serde(default)]
                    metadata: #p::ObjectMeta,
                    #(#fields,)*
                }
                let read = <__Read as #p::serde::Deserialize>::deserialize(deserializer)?;
                ::core::result::Result::Ok(Self {
                    metadata: read.metadata,
                    #(#names: read.#names,)*
                })
            }
        }
    }
}

fn crd(model: &ResourceModel) -> TokenStream {
    let p = private();
    let ResourceModel { ident, doc, namespaced, .. } = model;
    let texts = |texts: &[At<String>]| -> Vec<String> {
        texts.iter().map(|text| text.value.clone()).collect()
    };
    let (group, version, kind) = (&model.group.value, &model.version.value, &model.kind.value);
    let (plural, singular) = (&model.plural.value, &model.singular.value);
    let (short, categories) = (texts(&model.short), texts(&model.categories));
    let columns = model.columns.iter().map(column);
    let scale = option(model.scale.as_ref().map(scale));
    let fields = model.fields.iter().map(|field| {
        let Field { json, ty, optional, doc, .. } = field;
        let schema = quote_spanned!(at(ty.span())=> #p::schema_of::<#ty>);
        quote!(#p::Field { name: #json, optional: #optional, doc: #doc, schema: #schema })
    });
    let index_paths = model.indexes.iter().filter_map(|index| match &index.source {
        IndexSource::Path(path) => {
            let (name, path) = (index.name.to_string(), &path.value);
            Some(quote!((#name, #path)))
        }
        IndexSource::Fields(_) => None,
    });
    quote! {
        #[automatically_derived]
        impl ::windlass::crd::CustomResource for #ident {
            fn crd() -> ::core::result::Result<
                #p::CustomResourceDefinition,
                ::windlass::Error,
            > {
                #p::crd(&#p::Definition {
                    group: #group,
                    version: #version,
                    kind: #kind,
                    plural: #plural,
                    singular: #singular,
                    namespaced: #namespaced,
                    short_names: &[#(#short),*],
                    categories: &[#(#categories),*],
                    columns: &[#(#columns),*],
                    scale: #scale,
                    doc: #doc,
                    fields: &[#(#fields),*],
                    index_paths: &[#(#index_paths),*],
                })
            }
        }
    }
}

fn option(value: Option<impl ToTokens>) -> TokenStream {
    match value {
        Some(value) => quote!(::core::option::Option::Some(#value)),
        None => quote!(::core::option::Option::None),
    }
}

fn text(value: Option<&At<String>>) -> TokenStream {
    option(value.map(|value| &value.value))
}

fn column(column: &ColumnAttr) -> TokenStream {
    let p = private();
    let given = |value: &Option<At<String>>| {
        value.as_ref().map_or(String::new(), |value| value.value.clone())
    };
    let (name, path) = (given(&column.name), given(&column.path));
    let (kind, format) = (text(column.kind.as_ref()), text(column.format.as_ref()));
    let description = text(column.description.as_ref());
    let priority = column.priority.as_ref().map_or(0, |priority| priority.value);
    quote!(#p::Column {
        name: #name,
        path: #path,
        kind: #kind,
        format: #format,
        priority: #priority,
        description: #description,
    })
}

fn scale(scale: &ScaleAttr) -> TokenStream {
    let p = private();
    let given = |value: &Option<At<String>>| {
        value.as_ref().map_or(String::new(), |value| value.value.clone())
    };
    let (spec, status) = (given(&scale.spec), given(&scale.status));
    let selector = text(scale.selector.as_ref());
    quote!(#p::Scale { spec: #spec, status: #status, selector: #selector })
}

/// `pub const BY_HOST: Index<Website, String>`.
fn indexes(model: &ResourceModel, faulty: bool) -> TokenStream {
    let ResourceModel { ident, vis, .. } = model;
    let mut taken: Vec<Ident> = Vec::new();
    let constants = model.indexes.iter().filter_map(|index| {
        let constant = Ident::new(&index.name.to_string().to_uppercase(), index.name.span());
        if taken.contains(&constant) {
            return None;
        }
        taken.push(constant.clone());
        let value =
            index.value.as_ref().map_or(quote!(::std::string::String), ToTokens::to_token_stream);
        let doc = format!("`{}` objects by `{}`.", model.kind.value, index.source.text());
        let name = index.name.to_string();
        let body = if faulty {
            quote!(::windlass::store::Index::new(#name, |_| ::core::unimplemented!()))
        } else {
            index_body(ident, index, &value)
        };
        Some(quote! {
            #[doc = #doc]
            #[allow(dead_code)]
            #vis const #constant: ::windlass::store::Index<#ident, #value> = #body;
        })
    });
    let constants: TokenStream = constants.collect();
    if constants.is_empty() {
        return constants;
    }
    quote! {
        #[automatically_derived]
        impl #ident {
            #constants
        }
    }
}

fn index_body(object: &Ident, index: &IndexAttr, value: &TokenStream) -> TokenStream {
    let name = index.name.to_string();
    match &index.source {
        IndexSource::Path(path) => {
            let parts = path.value.split('.').filter(|part| !part.is_empty());
            quote!(::windlass::store::Index::on_path(#name, &[#(#parts),*]))
        }
        IndexSource::Fields(steps) => {
            let values = index_values(quote!(object), steps, value);
            quote!(::windlass::store::Index::new(#name, |object: &#object| #values))
        }
    }
}

fn index_values(base: TokenStream, steps: &[Step], value: &TokenStream) -> TokenStream {
    let p = private();
    let mut place = base;
    for (i, step) in steps.iter().enumerate() {
        let field = &step.field;
        place = quote!(#place.#field);
        if step.each {
            let rest = match &steps[i + 1..] {
                [] => quote!(#p::IndexField::<#value>::index_values(object)),
                rest => index_values(quote!(object), rest, value),
            };
            let iter = quote_spanned!(at(field.span())=> #place.iter());
            return quote!(#iter.flat_map(|object| #rest).collect());
        }
    }
    let last = steps.last().map_or(Span::call_site(), |step| step.field.span());
    quote_spanned!(at(last)=> #p::IndexField::<#value>::index_values(&#place))
}

/// For a struct whose `metadata` is missing: says that it is a resource all the same.
fn without_metadata(model: &ResourceModel) -> TokenStream {
    let p = private();
    let ident = &model.ident;
    quote! {
        impl #p::k8s_openapi::Metadata for #ident {
            type Ty = #p::ObjectMeta;

            fn metadata(&self) -> &#p::ObjectMeta {
                ::core::unimplemented!()
            }

            fn metadata_mut(&mut self) -> &mut #p::ObjectMeta {
                ::core::unimplemented!()
            }
        }

        impl #p::serde::Serialize for #ident {
            fn serialize<S: #p::serde::Serializer>(
                &self,
                _: S,
            ) -> ::core::result::Result<S::Ok, S::Error> {
                ::core::unimplemented!()
            }
        }

        impl<'de> #p::serde::Deserialize<'de> for #ident {
            fn deserialize<D: #p::serde::Deserializer<'de>>(
                _: D,
            ) -> ::core::result::Result<Self, D::Error> {
                ::core::unimplemented!()
            }
        }
    }
}
