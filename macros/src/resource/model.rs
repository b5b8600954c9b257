//! Input of the code generator of `#[derive(CustomResource)]`.

use proc_macro2::{Ident, Span};
use syn::{Data, DeriveInput, Fields, GenericArgument, PathArguments, Type, Visibility};

use super::attrs::{Attrs, ColumnAttr, ScaleAttr};
use super::index::IndexAttr;
use crate::errors::Errors;
use crate::keys::{WithSpan, docs};
use crate::names;

/// The kind, with every default filled in.
#[derive(Debug)]
pub(super) struct ResourceModel {
    pub(super) ident: Ident,
    pub(super) vis: Visibility,
    /// Text of the doc comment, which becomes the description.
    pub(super) doc: String,
    pub(super) group: WithSpan<String>,
    pub(super) version: WithSpan<String>,
    pub(super) kind: WithSpan<String>,
    /// Default: the English plural of the singular.
    pub(super) plural: WithSpan<String>,
    /// Default: the kind in lower case.
    pub(super) singular: WithSpan<String>,
    pub(super) namespaced: bool,
    pub(super) short: Vec<WithSpan<String>>,
    pub(super) categories: Vec<WithSpan<String>>,
    pub(super) columns: Vec<ColumnAttr>,
    pub(super) scale: Option<ScaleAttr>,
    pub(super) indexes: Vec<IndexAttr>,
    /// The field `metadata`; `None` is a fault that is reported.
    pub(super) metadata: Option<Field>,
    /// Every other field, in order.
    pub(super) fields: Vec<Field>,
    /// Whether the struct can be built and read field by field; `false` is a fault that is
    /// reported.
    pub(super) is_struct: bool,
}

/// One field of the root struct.
#[derive(Debug)]
pub(super) struct Field {
    pub(super) ident: Ident,
    /// Name in JSON.
    pub(super) json: String,
    pub(super) ty: Type,
    /// Whether the field may be absent.
    pub(super) optional: bool,
    pub(super) doc: String,
}

impl ResourceModel {
    /// Fills in the defaults; a missing key is a fault, and gets a placeholder.
    pub(super) fn new(input: &DeriveInput, attrs: Attrs, errors: &mut Errors) -> Self {
        let here = input.ident.span();
        let kind =
            attrs.kind.unwrap_or_else(|| WithSpan { value: input.ident.to_string(), span: here });
        let lower = WithSpan { value: kind.value.to_lowercase(), span: kind.span };
        let singular = attrs.singular.unwrap_or(lower);
        let plural = attrs.plural.unwrap_or_else(|| WithSpan {
            value: names::plural(&singular.value),
            span: singular.span,
        });
        if !attrs.present {
            let message = "say which kind this is: \
                           `#[resource(group = \"example.dev\", version = \"v1\", namespaced)]`";
            errors.at(here, message);
        }
        let tried = |key: &str| attrs.tried.iter().any(|tried| tried == key);
        let is_silent = !attrs.present || tried("namespaced") || tried("cluster");
        let namespaced = scope(is_silent, attrs.namespaced, attrs.cluster, here, errors);
        let mut needed = |key: &str, example: &str, value: Option<WithSpan<String>>| {
            if value.is_none() && attrs.present && !tried(key) {
                let message = format!("missing `{key}`: `#[resource({key} = \"{example}\", …)]`");
                errors.at(here, message);
            }
            value.unwrap_or_else(|| WithSpan { value: example.to_owned(), span: here })
        };
        let group = needed("group", "example.dev", attrs.group);
        let version = needed("version", "v1", attrs.version);
        let (is_struct, mut fields) = named_fields(input, errors);
        let metadata = fields
            .iter()
            .position(|field| field.ident == "metadata")
            .map(|position| fields.remove(position));
        Self {
            ident: input.ident.clone(),
            vis: input.vis.clone(),
            doc: docs(&input.attrs),
            group,
            version,
            kind,
            plural,
            singular,
            namespaced,
            short: attrs.short,
            categories: attrs.category,
            columns: attrs.columns,
            scale: attrs.scale,
            indexes: attrs.indexes,
            metadata,
            fields,
            is_struct,
        }
    }

    /// Returns `group/version`.
    pub(super) fn api_version(&self) -> String {
        format!("{}/{}", self.group.value, self.version.value)
    }

    /// Returns the field of that name.
    pub(super) fn field(&self, name: &str) -> Option<&Field> {
        self.fields.iter().find(|field| field.ident == name)
    }
}

/// Returns whether the kind is namespaced; exactly one of `namespaced` and `cluster` must be given.
fn scope(
    is_silent: bool,
    namespaced: Option<Span>,
    cluster: Option<Span>,
    here: Span,
    errors: &mut Errors,
) -> bool {
    match (namespaced, cluster) {
        (Some(_), Some(second)) => {
            errors.at(second, "a kind is `namespaced` or `cluster`, not both");
        }
        (None, None) if !is_silent => {
            let message =
                "say where objects live: add `namespaced` or `cluster` to `#[resource(…)]`";
            errors.at(here, message);
        }
        _ => {}
    }
    cluster.is_none()
}

/// Returns whether the input is a struct with named fields, and its fields.
fn named_fields(input: &DeriveInput, errors: &mut Errors) -> (bool, Vec<Field>) {
    let shape = "a resource is a struct with named fields: \
                 `metadata: ObjectMeta, spec: …, status: Option<…>`";
    if !input.generics.params.is_empty() {
        let span = syn::spanned::Spanned::span(&input.generics);
        errors.at(span, "a resource has no type parameters: its schema must be one schema");
        return (false, Vec::new());
    }
    match &input.data {
        Data::Struct(data) => match &data.fields {
            Fields::Named(named) => (true, named.named.iter().filter_map(Field::new).collect()),
            _ => {
                errors.at(input.ident.span(), shape);
                (false, Vec::new())
            }
        },
        _ => {
            errors.at(input.ident.span(), shape);
            (false, Vec::new())
        }
    }
}

impl Field {
    /// Reads a field: its name in JSON, its documentation, and whether it is optional.
    fn new(field: &syn::Field) -> Option<Self> {
        let ident = field.ident.clone()?;
        Some(Self {
            json: names::camel(&syn::ext::IdentExt::unraw(&ident).to_string()),
            ident,
            ty: field.ty.clone(),
            optional: is_option(&field.ty),
            doc: docs(&field.attrs),
        })
    }
}

impl Field {
    /// Returns the type of an optional status.
    pub(super) fn status(&self) -> Option<&Type> {
        let Type::Path(path) = &self.ty else { return None };
        let last = path.path.segments.last().filter(|_| self.optional && self.json == "status")?;
        match &last.arguments {
            PathArguments::AngleBracketed(arguments) => match arguments.args.first()? {
                GenericArgument::Type(inner) => Some(inner),
                _ => None,
            },
            _ => None,
        }
    }
}

/// Whether the type is written as an `Option`. A macro sees names only: an alias of `Option` is not
/// recognized.
fn is_option(ty: &Type) -> bool {
    match ty {
        Type::Path(path) => path.path.segments.last().is_some_and(|last| last.ident == "Option"),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use syn::parse_quote;

    use super::*;

    fn model(input: &DeriveInput) -> (ResourceModel, Vec<String>) {
        let mut errors = Errors::default();
        let attrs = Attrs::read(&input.attrs, &mut errors);
        let model = ResourceModel::new(input, attrs, &mut errors);
        super::super::check::check(&model, &mut errors);
        let texts = errors.texts();
        errors.finish();
        (model, texts)
    }

    #[test]
    fn names_that_are_not_given_follow_from_the_kind() {
        let (model, faults) = model(&parse_quote! {
            /// A policy.
            #[resource(group = "example.dev", version = "v1", cluster, short = ["np", "p"])]
            #[resource(short = "pol")]
            pub struct NetPolicy { pub metadata: ObjectMeta, pub spec: Spec }
        });
        assert!(faults.is_empty(), "{faults:?}");
        assert_eq!(model.kind.value, "NetPolicy");
        assert_eq!(model.singular.value, "netpolicy");
        assert_eq!(model.plural.value, "netpolicies");
        assert_eq!(model.api_version(), "example.dev/v1");
        assert_eq!(model.doc, "A policy.");
        assert!(!model.namespaced);
        let short: Vec<_> = model.short.iter().map(|short| short.value.as_str()).collect();
        assert_eq!(short, ["np", "p", "pol"]);
    }

    #[test]
    fn an_option_is_optional_however_it_is_spelt() {
        let (model, _) = model(&parse_quote! {
            #[resource(group = "example.dev", version = "v1", namespaced)]
            struct A {
                metadata: ObjectMeta,
                spec: Spec,
                status: ::core::option::Option<Status>,
                last_words: String,
            }
        });
        assert!(model.field("status").is_some_and(|status| status.optional));
        assert!(model.field("spec").is_some_and(|spec| !spec.optional));
        assert_eq!(model.field("last_words").map(|field| field.json.as_str()), Some("lastWords"));
    }

    #[test]
    fn all_faults_are_told_at_once() {
        let (_, faults) = model(&parse_quote! {
            #[resource(gruop = "example.dev", version = 1, namespaced, namespaced, short = "W S")]
            struct A { spec: Spec, status: Status }
        });
        let expected = [
            "unknown key `gruop`; did you mean `group`?",
            "`version` takes a text: `version = \"…\"`",
            "duplicate key `namespaced`: it is set above",
        ];
        for text in expected {
            assert!(faults.iter().any(|fault| fault == text), "{text} not in {faults:#?}");
        }
        assert!(!faults.iter().any(|fault| fault.contains("missing")), "{faults:#?}");
        assert!(faults.iter().any(|fault| fault.contains("`W S`")), "{faults:#?}");
        assert!(faults.iter().any(|fault| fault.contains("`metadata: ObjectMeta`")), "{faults:#?}");
        assert!(faults.iter().any(|fault| fault.contains("Option<Status>")), "{faults:#?}");
    }

    #[test]
    fn an_index_names_fields_or_a_json_path() {
        let (model, faults) = model(&parse_quote! {
            #[resource(group = "example.dev", version = "v1", namespaced)]
            #[index(by_host = spec.host, by_port: i32 = spec.ports[].number)]
            #[index(by_phase: Phase = status?.phase, by_path = ".spec.host")]
            struct A { metadata: ObjectMeta, spec: Spec, status: Option<Status> }
        });
        assert!(faults.is_empty(), "{faults:?}");
        let texts: Vec<_> = model.indexes.iter().map(|index| index.source.text()).collect();
        assert_eq!(texts, ["spec.host", "spec.ports.number", "status.phase", ".spec.host"]);
    }
}
