//! The generated code of a resource: constants, field lists and calls into `windlass::__private`.

use proc_macro2::{Ident, Span, TokenStream};
use quote::{ToTokens, format_ident, quote, quote_spanned};
use syn::Type;
use syn::spanned::Spanned;

use super::attrs::{ColumnAttr, ScaleAttr};
use super::index::{FieldStep, IndexAttr, IndexSource};
use super::model::{Field, ResourceModel};
use crate::apply;
use crate::keys::WithSpan;

/// Returns the generated code of a model without faults.
pub(super) fn all(model: &ResourceModel) -> TokenStream {
    let parts = [
        resource(model),
        metadata(model),
        constructor(model),
        serialize(model),
        deserialize(model),
        crd(model),
        indexes(model, false),
        typed(model),
    ];
    parts.into_iter().collect()
}

/// Returns the same items for a model with faults, as far as its fields are known. Bodies that
/// would not compile because of the fault are left out; none of the code ever runs.
pub(super) fn fallback(model: &ResourceModel) -> TokenStream {
    if !model.is_struct {
        return TokenStream::new();
    }
    let mut parts = vec![resource(model), constructor(model), crd(model), indexes(model, true)];
    if model.metadata.is_some() {
        parts.extend([metadata(model), serialize(model), deserialize(model), typed(model)]);
    } else {
        parts.push(without_metadata(model));
    }
    parts.into_iter().collect()
}

fn private() -> TokenStream {
    quote!(::windlass::__private)
}

/// Returns the same path, with every token at `place`: an error underlines an expression from its
/// first token to its last.
fn private_at(place: Span) -> TokenStream {
    quote_spanned!(place=> ::windlass::__private)
}

/// Returns a span that shows errors at `place` and resolves names at the derive.
fn at(place: Span) -> Span {
    place.resolved_at(Span::call_site())
}

/// Generates the constants of the kind.
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

/// Generates the access to the metadata.
fn metadata(model: &ResourceModel) -> TokenStream {
    let p = private();
    let ident = &model.ident;
    let place = at(model.metadata.as_ref().map_or(Span::call_site(), |field| field.ty.span()));
    let q = private_at(place);
    let get = quote_spanned!(place=> #q::Meta::get(&self.metadata));
    let get_mut = quote_spanned!(place=> #q::Meta::get_mut(&mut self.metadata));
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

/// Generates `Website::new(name, spec)`: every field that is not optional is an argument.
fn constructor(model: &ResourceModel) -> TokenStream {
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
    // A field called `name` is an argument, too.
    let argument =
        format_ident!("{}", if model.field("name").is_some() { "__name" } else { "name" });
    let body = if let Some(metadata) = &model.metadata {
        let place = at(metadata.ty.span());
        let p = private_at(place);
        let value = quote_spanned!(place=> #p::Meta::named(::core::convert::Into::into(#argument)));
        quote!(Self {
            metadata: #value,
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
            #vis fn new(#argument: impl ::core::convert::Into<::std::string::String>, #(#names: #types),*) -> Self {
                #body
            }
        }
    }
}

/// Generates the apply configuration, the relation to the status, and the schema for other kinds.
fn typed(model: &ResourceModel) -> TokenStream {
    let api_version = model.api_version();
    let root = apply::Root {
        ident: &model.ident,
        vis: &model.vis,
        api_version: &api_version,
        kind: &model.kind.value,
        namespaced: model.namespaced,
        status: model.fields.iter().find_map(Field::status),
    };
    let fields = model.fields.iter().map(|field| (&field.ident, field.json.as_str(), &field.ty));
    apply::expand_root(&root, fields)
}

/// Generates the impl of `Serialize`, with apiVersion and kind.
fn serialize(model: &ResourceModel) -> TokenStream {
    let p = private();
    let ident = &model.ident;
    let (kind, api_version) = (&model.kind.value, model.api_version());
    let count = model.fields.len() + 3;
    let fields = model.fields.iter().map(|field| {
        let Field { ident, json, ty, optional, .. } = field;
        let place = at(ty.span());
        let p = private_at(place);
        if *optional {
            quote_spanned!(place=> #p::write_option(&mut out, #json, &self.#ident)?;)
        } else {
            quote_spanned!(place=> #p::write(&mut out, #json, &self.#ident)?;)
        }
    });
    quote! {
        #[automatically_derived]
        impl #p::serde::Serialize for #ident {
            fn serialize<__S: #p::serde::Serializer>(
                &self,
                serializer: __S,
            ) -> ::core::result::Result<__S::Ok, __S::Error> {
                let mut out = #p::begin(serializer, #kind, #api_version, #count)?;
                #p::write(&mut out, "metadata", &self.metadata)?;
                #(#fields)*
                #p::serde::ser::SerializeStruct::end(out)
            }
        }
    }
}

/// Generates a visitor that knows the fields by number; reading one is a call. Its own names begin
/// with underscores, because fields become variables here and may have any name.
fn deserialize(model: &ResourceModel) -> TokenStream {
    let p = private();
    let ident = &model.ident;
    let (kind, api_version) = (&model.kind.value, model.api_version());
    let names: Vec<_> = model.fields.iter().map(|field| &field.ident).collect();
    let jsons: Vec<_> = model.fields.iter().map(|field| &field.json).collect();
    let reads = model.fields.iter().enumerate().map(|(place, field)| {
        let Field { ident, json, ty, .. } = field;
        let place = place + 1;
        let p = private_at(at(ty.span()));
        let read = match field.status() {
            Some(inner) => {
                let missing = missing(inner);
                quote_spanned!(at(ty.span())=> #p::read_status(&mut __map, #json, &mut #ident, #missing)?)
            }
            None => quote_spanned!(at(ty.span())=> #p::read(&mut __map, #json, &mut #ident)?),
        };
        quote!(#place => #read,)
    });
    let values = model.fields.iter().map(|field| {
        let Field { ident, json, optional, .. } = field;
        if *optional {
            quote!(#ident: ::core::option::Option::flatten(#ident))
        } else {
            quote!(#ident: #p::required(#ident, #json)?)
        }
    });
    quote! {
        #[automatically_derived]
        impl<'de> #p::serde::Deserialize<'de> for #ident {
            fn deserialize<__D: #p::serde::Deserializer<'de>>(
                deserializer: __D,
            ) -> ::core::result::Result<Self, __D::Error> {
                const __FIELDS: &[&str] = &["metadata", #(#jsons),*];
                struct __Fields;
                impl<'de> #p::serde::de::Visitor<'de> for __Fields {
                    type Value = #ident;

                    fn expecting(
                        &self,
                        f: &mut ::core::fmt::Formatter<'_>,
                    ) -> ::core::fmt::Result {
                        f.write_str(#kind)
                    }

                    fn visit_map<__A: #p::serde::de::MapAccess<'de>>(
                        self,
                        mut __map: __A,
                    ) -> ::core::result::Result<#ident, __A::Error> {
                        let mut metadata = ::core::option::Option::None;
                        #(let mut #names = ::core::option::Option::None;)*
                        while let ::core::option::Option::Some(__field) =
                            #p::next_field(&mut __map, #api_version, #kind, __FIELDS)?
                        {
                            match __field {
                                #(#reads)*
                                _ => #p::read(&mut __map, "metadata", &mut metadata)?,
                            }
                        }
                        ::core::result::Result::Ok(#ident {
                            metadata: ::core::option::Option::unwrap_or_default(metadata),
                            #(#values,)*
                        })
                    }
                }
                deserializer.deserialize_struct(#kind, __FIELDS, __Fields)
            }
        }
    }
}

/// Generates the impl of `CustomResource`, whose definition is built at run time.
fn crd(model: &ResourceModel) -> TokenStream {
    let p = private();
    let ResourceModel { ident, doc, namespaced, .. } = model;
    let texts = |texts: &[WithSpan<String>]| -> Vec<String> {
        texts.iter().map(|text| text.value.clone()).collect()
    };
    let (group, version, kind) = (&model.group.value, &model.version.value, &model.kind.value);
    let (plural, singular) = (&model.plural.value, &model.singular.value);
    let (short, categories) = (texts(&model.short), texts(&model.categories));
    let columns = model.columns.iter().map(column);
    let scale = option(model.scale.as_ref().map(scale));
    let fields = model.fields.iter().map(|field| {
        let Field { json, ty, optional, doc, .. } = field;
        let at_type = private_at(at(ty.span()));
        let schema = quote_spanned!(at(ty.span())=> #at_type::schema_of::<#ty>);
        let in_part = option(field.status().map(|inner| {
            let missing = missing(inner);
            quote_spanned!(at(ty.span())=> || #at_type::reads_in_part::<#inner>(#missing))
        }));
        quote!(#p::Field {
            name: #json,
            optional: #optional,
            doc: #doc,
            schema: #schema,
            in_part: #in_part,
        })
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

            fn package_version() -> ::core::option::Option<&'static str> {
                ::core::option_env!("CARGO_PKG_VERSION")
            }
        }
    }
}

/// Returns the values for absent fields of a status of that type. The presence of a `Default` is
/// found by method resolution: the method of `Of<T>`, if there is one, comes before that of
/// `&Of<T>`.
fn missing(status: &Type) -> TokenStream {
    let p = private();
    quote!({
        static __MISSING: #p::Filling = #p::Filling::new();
        #[allow(unused_imports)]
        use #p::{FilledByDefault as _, NotFilled as _};
        __MISSING.get(|| (&#p::Of::<#status>::new()).missing())
    })
}

fn option(value: Option<impl ToTokens>) -> TokenStream {
    match value {
        Some(value) => quote!(::core::option::Option::Some(#value)),
        None => quote!(::core::option::Option::None),
    }
}

fn text(value: Option<&WithSpan<String>>) -> TokenStream {
    option(value.map(|value| &value.value))
}

fn column(column: &ColumnAttr) -> TokenStream {
    let p = private();
    let given = |value: &Option<WithSpan<String>>| {
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
    let given = |value: &Option<WithSpan<String>>| {
        value.as_ref().map_or(String::new(), |value| value.value.clone())
    };
    let (spec, status) = (given(&scale.spec), given(&scale.status));
    let selector = text(scale.selector.as_ref());
    quote!(#p::Scale { spec: #spec, status: #status, selector: #selector })
}

/// Generates `pub const BY_HOST: Index<Website, String>`.
fn indexes(model: &ResourceModel, faulty: bool) -> TokenStream {
    let ResourceModel { ident, vis, .. } = model;
    let mut taken: Vec<Ident> = Vec::new();
    let constants = model.indexes.iter().filter_map(|index| {
        let constant = Ident::new(&index.name.to_string().to_uppercase(), index.name.span());
        // Reported by `check`; a second constant would only add an error of the compiler.
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

/// Generates the body of an index constant.
fn index_body(object: &Ident, index: &IndexAttr, value: &TokenStream) -> TokenStream {
    let name = index.name.to_string();
    match &index.source {
        IndexSource::Path(path) => {
            let parts = path.value.split('.').filter(|part| !part.is_empty());
            quote!(::windlass::store::Index::on_path(#name, &[#(#parts),*]))
        }
        IndexSource::Fields(steps) => {
            let place = at(steps.last().map_or(Span::call_site(), |step| step.field.span()));
            let base = quote_spanned!(place=> object);
            let values = index_values(base.clone(), steps, value);
            quote!(::windlass::store::Index::new(#name, |#base: &#object| #values))
        }
    }
}

/// Returns the values of an index. Every token has the span of the last field, so that an error
/// points at that field.
fn index_values(base: TokenStream, steps: &[FieldStep], value: &TokenStream) -> TokenStream {
    let end = steps.iter().position(|step| step.each).unwrap_or(steps.len() - 1);
    let place = at(steps[end].field.span());
    let p = private_at(place);
    let fields = steps[..=end].iter().map(|step| &step.field);
    let target = quote_spanned!(place=> #base #(.#fields)*);
    if !steps[end].each {
        return quote_spanned!(place=> #p::IndexField::<#value>::index_values(&#target));
    }
    let element = quote_spanned!(place=> element);
    let rest = match &steps[end + 1..] {
        [] => quote_spanned!(place=> #p::IndexField::<#value>::index_values(#element)),
        rest => index_values(element.clone(), rest, value),
    };
    quote_spanned!(place=> #target.iter().flat_map(|#element| #rest).collect::<::std::vec::Vec<#value>>())
}

/// Generates the impls of a struct whose `metadata` is missing, so that it still counts as a
/// resource.
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
            fn serialize<__S: #p::serde::Serializer>(
                &self,
                _: __S,
            ) -> ::core::result::Result<__S::Ok, __S::Error> {
                ::core::unimplemented!()
            }
        }

        impl<'de> #p::serde::Deserialize<'de> for #ident {
            fn deserialize<__D: #p::serde::Deserializer<'de>>(
                _: __D,
            ) -> ::core::result::Result<Self, __D::Error> {
                ::core::unimplemented!()
            }
        }
    }
}
