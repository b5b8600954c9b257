//! Generated impl of `CustomResource`, whose definition is built at run time.

use proc_macro2::{Span, TokenStream};
use quote::{ToTokens, format_ident, quote, quote_spanned};
use syn::spanned::Spanned;

use super::encoding::missing;
use super::{group_and_version, private, private_at, versions};
use crate::doc_comments::Doc;
use crate::keys::WithSpan;
use crate::path::{CollectNames, ParsedPath, PathStep, located as at, statements};
use crate::resource::attrs::KeyValue;
use crate::resource::model::{ResourceModel, RootField};
use crate::resource::place::{ColumnAttr, RuleAttr, ScaleAttr};

/// Generates the impl. For a model with faults, the parts that name fields are left out.
pub(super) fn crd(model: &ResourceModel, faulty: bool) -> TokenStream {
    let p = private();
    let ResourceModel { ident, doc, namespaced, .. } = model;
    let (group, version) = group_and_version(model);
    let texts = |texts: &[WithSpan<String>]| -> Vec<String> {
        texts.iter().map(|text| text.value.clone()).collect()
    };
    let kind = &model.kind.value;
    let (plural, singular) = (&model.plural.value, &model.singular.value);
    let (short, categories) = (texts(&model.short), texts(&model.categories));
    let places = FieldNameGenerator { model, faulty };
    let columns = places.all(&model.columns, |column| places.column(column));
    let scale = some(model.scale.as_ref().filter(|_| !faulty).map(|scale| places.scale(scale)));
    let selectable =
        places.all(&model.selectable, |place| places.place(place, RequiredType::Scalar));
    let rules = places.all(&model.rules, |rule| places.rule(rule));
    let deprecated = some(
        model.deprecated.as_ref().map(|warning| option(warning.as_ref().map(|text| &text.value))),
    );
    let (labels, annotations) = (pairs(&model.labels), pairs(&model.annotations));
    let fields = model.fields.iter().map(field);
    // For the walks below.
    let walk_traits = (!faulty && model.has_walks()).then(|| {
        quote! {
            #[allow(unused_imports)]
            use #p::path::{AnyClass as _, Declared as _, Inner as _, Probed as _, Undeclared as _};
        }
    });
    let index_paths = model.indexes.iter().filter_map(|index| match &index.source {
        PathStep::Text(path) => {
            let (name, path) = (index.plain_name(), &path.value);
            Some(quote!((#name, #path)))
        }
        PathStep::Fields(_) => None,
    });
    let given = [
        key("short_names", &list(&short)),
        key("categories", &list(&categories)),
        key("columns", &list(&columns)),
        key("scale", &scale),
        key("selectable", &list(&selectable)),
        key("rules", &list(&rules)),
        key("deprecated", &deprecated),
        key("labels", &list(&labels)),
        key("annotations", &list(&annotations)),
        key("index_paths", &list(&index_paths.collect::<Vec<_>>())),
        key("served", &model.served.as_ref().map(|served| served.value.to_token_stream())),
        key("storage", &model.storage.map(|_| quote!(true))),
        key("versions", &list(&versions::definitions(model))),
        key("is_one_of_several", &versions::is_one_of_several(model).then(|| quote!(true))),
    ];
    let plural = match &model.hub {
        Some(hub) => quote!(<#hub as #p::k8s_openapi::Resource>::URL_PATH_SEGMENT),
        None => quote!(#plural),
    };
    let definition = quote! {
        #[allow(unused_imports)]
        use #p::{
            AlwaysThere as _, NeverWritten as _,
            schema::{NoSchemaInside as _, NoSchemaItself as _, Probe as _},
        };
        #walk_traits
    };
    let arguments = quote! {
        &#p::Definition {
            group: #group,
            version: #version,
            kind: #kind,
            plural: #plural,
            singular: #singular,
            namespaced: #namespaced,
            doc: #doc,
            fields: &[#(#fields),*],
            #(#given)*
            ..#p::Definition::NONE
        }
    };
    if let Some(hub) = &model.hub {
        return versions::spoke(ident, hub, &quote!(#definition #p::version(#arguments)));
    }
    let versions = versions::all(model);
    quote! {
        // An attribute may give every argument.
        #[allow(clippy::needless_update)]
        #[automatically_derived]
        impl ::windlass::crd::CustomResource for #ident {
            fn crd() -> ::core::result::Result<
                #p::CustomResourceDefinition,
                ::windlass::Error,
            > {
                #definition
                #p::crd(#arguments)
            }

            fn package_version() -> ::core::option::Option<&'static str> {
                ::core::option_env!("CARGO_PKG_VERSION")
            }

            #versions
        }
    }
}

/// Generates `name: value,`; nothing without a value. The constants `NONE` of the library have the
/// rest, so that an attribute costs no more than its own constant.
fn key(name: &str, value: &Option<TokenStream>) -> Option<TokenStream> {
    let name = format_ident!("{name}");
    value.as_ref().map(|value| quote!(#name: #value,))
}

/// Generates a list; nothing without items.
fn list(items: &[impl ToTokens]) -> Option<TokenStream> {
    (!items.is_empty()).then(|| quote!(&[#(#items),*]))
}

/// Generates `Some(value)`.
fn some(value: Option<impl ToTokens>) -> Option<TokenStream> {
    value.map(|value| quote!(::core::option::Option::Some(#value)))
}

/// Returns the path of the items for schemas, with every token at `place`.
fn schema_at(place: Span) -> TokenStream {
    let p = private_at(place);
    quote_spanned!(place=> #p::schema)
}

/// Generates the description of a field of the root.
fn field(field: &RootField) -> TokenStream {
    let p = private();
    let RootField { ty, doc, .. } = field;
    let json = &field.json.value;
    let at_type = private_at(at(ty.span()));
    // As in `#[derive(Schema)]`: Kubernetes types need no attribute here either.
    let shape = crate::schema::requested_of_root(ty, schema_at);
    let schema = match field.default_path() {
        Some(default) => {
            let skip = field.skip_if.as_ref();
            let skip = option(skip.map(|skip| quote!(|it: &#ty| #skip(it))));
            quote!(|generator| #shape.of_root_or(generator, #default, #skip))
        }
        None => quote!(|generator| #shape.of_root(generator)),
    };
    let in_part = some(field.status().map(|inner| {
        let missing = missing(inner);
        quote_spanned!(at(ty.span())=> || #at_type::path::TypeOf::<#inner>::new().reads_in_part(#missing))
    }));
    let (doc, in_part) = (
        (!matches!(doc, Doc::Text(text) if text.is_empty())).then(|| quote!(doc: #doc,)),
        key("in_part", &in_part),
    );
    let optional = match &field.default {
        Some(_) => quote!(true),
        None => quote!(#p::path::TypeOf::<#ty>::new().is_optional()),
    };
    quote!(#p::Field {
        name: #json,
        optional: || #optional,
        schema: #schema,
        #doc
        #in_part
        ..#p::Field::NONE
    })
}

fn option(value: Option<impl ToTokens>) -> TokenStream {
    match value {
        Some(value) => quote!(::core::option::Option::Some(#value)),
        None => quote!(::core::option::Option::None),
    }
}

fn text(value: Option<&WithSpan<String>>) -> Option<TokenStream> {
    some(value.map(|value| &value.value))
}

fn pairs(pairs: &[KeyValue]) -> Vec<TokenStream> {
    let pair = |(key, value): &KeyValue| {
        let (key, value) = (&key.value, &value.value);
        quote!((#key, #value))
    };
    pairs.iter().map(pair).collect()
}

/// The type that the last field of a path must have.
#[derive(Clone, Copy, PartialEq, Eq)]
enum RequiredType {
    Any,
    Replicas,
    SelectorText,
    Scalar,
}

/// Generator of the parts that name fields.
struct FieldNameGenerator<'a> {
    model: &'a ResourceModel,
    faulty: bool,
}

impl FieldNameGenerator<'_> {
    fn all<T>(&self, parts: &[T], generate: impl Fn(&T) -> TokenStream) -> Vec<TokenStream> {
        if self.faulty { Vec::new() } else { parts.iter().map(generate).collect() }
    }

    /// Generates a place: a text, or a walk that the compiler checks.
    fn place(&self, place: &PathStep, leaf: RequiredType) -> TokenStream {
        let p = private();
        match place {
            PathStep::Text(path) => {
                let path = &path.value;
                quote!(#p::DefinitionField::Text(#path))
            }
            PathStep::Fields(path) => {
                let walk = self.walk(path, leaf);
                quote!(#p::DefinitionField::Fields(|| { #walk }))
            }
        }
    }

    fn walk(&self, path: &ParsedPath, leaf: RequiredType) -> TokenStream {
        let p = private();
        let ident = &self.model.ident;
        let steps = statements(path, CollectNames::Collected);
        let end = at(path.end());
        let q = private_at(end);
        let check = match leaf {
            RequiredType::Any => TokenStream::new(),
            RequiredType::Replicas => quote_spanned!(end=> #q::path::replicas(&__w);),
            RequiredType::SelectorText => quote_spanned!(end=> #q::path::selector_text(&__w);),
            RequiredType::Scalar => {
                quote_spanned!(end=> #q::path::scalar(&__w, __w.container().scalar_class());)
            }
        };
        let inner = match leaf {
            RequiredType::Any => TokenStream::new(),
            _ => quote_spanned!(end=> let __w = __w.inner().inner().inner();),
        };
        quote! {
            let __w = #p::path::Walk::<'_, #ident>::types();
            #steps
            #inner
            #check
            __w.segments()
        }
    }

    fn column(&self, column: &ColumnAttr) -> TokenStream {
        let p = private();
        let given = [
            key("name", &column.name.as_ref().map(|name| name.value.to_token_stream())),
            key("path", &column.place.as_ref().map(|place| self.place(place, RequiredType::Any))),
            key("kind", &text(column.kind.as_ref())),
            key("format", &text(column.format.as_ref())),
            key("priority", &column.priority.as_ref().map(|it| it.value.to_token_stream())),
            key("description", &text(column.description.as_ref())),
        ];
        quote!(#p::Column { #(#given)* ..#p::Column::NONE })
    }

    fn scale(&self, scale: &ScaleAttr) -> TokenStream {
        let p = private();
        let count = |place: &Option<PathStep>| {
            place.as_ref().map(|place| self.place(place, RequiredType::Replicas))
        };
        let (spec, status) = (count(&scale.spec), count(&scale.status));
        let selector = scale.selector.as_ref();
        let selector = option(selector.map(|place| self.place(place, RequiredType::SelectorText)));
        quote!(#p::Scale { spec: #spec, status: #status, selector: #selector })
    }

    fn rule(&self, rule: &RuleAttr) -> TokenStream {
        let p = private();
        let expression = &rule.rule.value;
        let given = [
            key("message", &text(rule.message.as_ref())),
            key("message_expression", &text(rule.message_expression.as_ref())),
            key("reason", &text(rule.reason.as_ref())),
            key(
                "path",
                &some(rule.path.as_ref().map(|place| self.place(place, RequiredType::Any))),
            ),
            key("optional_old_self", &rule.optional_old_self.map(|_| quote!(true))),
        ];
        quote!(#p::Rule { rule: #expression, #(#given)* ..#p::Rule::NONE })
    }
}
