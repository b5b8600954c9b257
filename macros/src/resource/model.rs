//! Input of the code generator of `#[derive(CustomResource)]`.

use proc_macro2::{Ident, Span, TokenStream};
use quote::{quote, quote_spanned};
use syn::spanned::Spanned;
use syn::{Data, DeriveInput, ExprPath, Fields, GenericArgument, PathArguments, Type, Visibility};

use super::attrs::{self, KeyValue, ResourceAttrs, TextExpr};
use super::index::IndexAttr;
use super::place::{ColumnAttr, RuleAttr, ScaleAttr};
use super::serde;
use crate::convert::RootConversion;
use crate::derived::Derived;
use crate::doc_comments::{Doc, docs};
use crate::errors::Errors;
use crate::keys::WithSpan;
use crate::markers::{DocumentedItem, markers};
use crate::misplaced::misplaced;
use crate::names;
use crate::path::{PathStep, located, plain};
use crate::schema::{FieldDefault, Rename};

/// The kind, with every default filled in.
#[derive(Debug)]
pub(super) struct ResourceModel {
    pub(super) ident: Ident,
    pub(super) vis: Visibility,
    /// Text of the doc comment, which becomes the description.
    pub(super) doc: Doc,
    pub(super) group: TextExpr,
    pub(super) version: TextExpr,
    /// The other versions, of a hub.
    pub(super) versions: Vec<syn::Path>,
    /// The hub, of another version.
    pub(super) hub: Option<syn::Path>,
    /// The conversion of the object, of a version with a hub.
    pub(super) conversion: Option<RootConversion>,
    pub(super) storage: Option<Span>,
    pub(super) served: Option<WithSpan<bool>>,
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
    pub(super) selectable: Vec<PathStep>,
    pub(super) rules: Vec<RuleAttr>,
    /// Whether the kind is deprecated, and the warning if given.
    pub(super) deprecated: Option<Option<WithSpan<String>>>,
    pub(super) labels: Vec<KeyValue>,
    pub(super) annotations: Vec<KeyValue>,
    /// Path of windlass in generated code; `None`: `::windlass`.
    pub(super) krate: Option<syn::Path>,
    pub(super) indexes: Vec<IndexAttr>,
    /// The field `metadata`; `None` is a fault that is reported.
    pub(super) metadata: Option<RootField>,
    /// Every other field, in order.
    pub(super) fields: Vec<RootField>,
    /// Whether the struct can be built and read field by field; `false` is a fault that is
    /// reported.
    pub(super) is_struct: bool,
    /// Whether the struct has an attribute of kube-rs; a fault that is reported.
    pub(super) is_of_kube: bool,
    /// Impls of other derives; a fault that is reported.
    pub(super) derived: Derived,
}

/// A field of the root struct.
#[derive(Debug)]
pub(super) struct RootField {
    pub(super) ident: Ident,
    /// Name in JSON, as written, or as it follows from the field.
    pub(super) json: WithSpan<String>,
    pub(super) ty: Type,
    /// Whether the field is written as an `Option` and has no default; an alias of `Option` is
    /// found by the compiler.
    pub(super) optional: bool,
    /// The value of an absent field.
    pub(super) default: Option<FieldDefault>,
    /// Function that says which values are left out.
    pub(super) skip_if: Option<ExprPath>,
    pub(super) doc: Doc,
}

impl ResourceModel {
    /// Whether the derive stands on the spec of a kind, as that of kube-rs does.
    pub(super) fn is_spec(&self) -> bool {
        self.is_struct
            && self.metadata.is_none()
            && !self.fields.iter().any(|field| field.ident == "spec")
    }

    /// Fills in the defaults; a missing key is a fault, and gets a placeholder.
    pub(super) fn new(input: &DeriveInput, mut attrs: ResourceAttrs, errors: &mut Errors) -> Self {
        let here = input.ident.span();
        not_itself(&mut attrs, &input.ident, errors);
        let kind =
            attrs.kind.unwrap_or_else(|| WithSpan { value: plain(&input.ident), span: here });
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
        if let Some(hub) = &attrs.hub {
            of_the_hub(&attrs.tried, hub, errors);
        }
        let group = match &attrs.hub {
            Some(hub) => Some(TextExpr::Expr(Box::new(syn::parse_quote!(
                <#hub as ::windlass::__private::k8s_openapi::Resource>::GROUP
            )))),
            None => attrs.group,
        };
        let is_silent = !attrs.present
            || attrs.hub.is_some()
            || tried("hub")
            || tried("namespaced")
            || tried("cluster");
        let namespaced = scope(is_silent, attrs.namespaced, attrs.cluster, here, errors);
        let mut needed = |key: &str, example: &str, value: Option<TextExpr>| {
            if value.is_none() && attrs.present && !tried(key) && (key != "group" || !tried("hub"))
            {
                let message = format!("missing `{key}`: `#[resource({key} = \"{example}\", …)]`");
                errors.at(here, message);
            }
            value.unwrap_or_else(|| {
                TextExpr::Literal(WithSpan { value: example.to_owned(), span: here })
            })
        };
        let group = needed("group", "example.dev", group);
        let version = needed("version", "v1", attrs.version);
        let (is_struct, mut fields) = named_fields(input, attrs.rename_all, errors);
        markers(&input.attrs, DocumentedItem::with_keys(attrs::HINTS), errors);
        let metadata = fields
            .iter()
            .position(|field| field.ident == "metadata")
            .map(|position| fields.remove(position));
        let mut columns = attrs.columns;
        for column in &mut columns {
            column.settle(|name| fields.iter().any(|field| plain(&field.ident) == name));
        }
        let conversion = attrs.hub.is_some().then(|| RootConversion::read(input, errors));
        if conversion.is_none() {
            no_conversion(input, errors);
        }
        Self {
            ident: input.ident.clone(),
            vis: input.vis.clone(),
            doc: docs(&input.attrs),
            group,
            version,
            versions: attrs.versions,
            hub: attrs.hub,
            conversion,
            storage: attrs.storage,
            served: attrs.served,
            kind,
            plural,
            singular,
            namespaced,
            short: attrs.short,
            categories: attrs.category,
            columns,
            scale: attrs.scale,
            selectable: attrs.selectable,
            rules: attrs.rules,
            deprecated: attrs.deprecated,
            labels: attrs.labels,
            annotations: attrs.annotations,
            krate: attrs.krate,
            indexes: attrs.indexes,
            metadata,
            fields,
            is_struct,
            is_of_kube: input.attrs.iter().any(|attribute| attribute.path().is_ident("kube")),
            derived: Derived::read(&input.attrs, OTHER_DERIVES, errors),
        }
    }

    /// Returns `group/version` if both are literals.
    pub(super) fn api_version(&self) -> Option<String> {
        Some(format!("{}/{}", self.group.literal()?.value, self.version.literal()?.value))
    }

    /// Whether there is a field `metadata` that is not written as an `Option`.
    pub(super) fn has_metadata(&self) -> bool {
        self.metadata.as_ref().is_some_and(|metadata| !is_option(&metadata.ty))
    }

    /// Whether a part of the definition names Rust fields.
    pub(super) fn has_walks(&self) -> bool {
        let columns = self.columns.iter().filter_map(|column| column.place.as_ref());
        let scale = self
            .scale
            .iter()
            .flat_map(|scale| [&scale.spec, &scale.status, &scale.selector].into_iter().flatten());
        let rules = self.rules.iter().filter_map(|rule| rule.path.as_ref());
        let mut places = columns.chain(scale).chain(&self.selectable).chain(rules);
        places.any(|place| matches!(place, PathStep::Fields(_)))
    }

    /// Returns the field of that name.
    pub(super) fn field(&self, name: &str) -> Option<&RootField> {
        self.fields.iter().find(|field| plain(&field.ident) == name)
    }
}

/// The answer to derives of serde.
const OTHER_DERIVES: &str = "`CustomResource` implements `Serialize` and `Deserialize` for the kind: remove serde's \
                             derives here; the types of its fields have them";

/// The answer to markers of a required field.
const REQUIRED: &str =
    "it is required unless it is an `Option` or has `#[serde(default)]`: leave the marker out";

/// Answers to markers on a field of the root, which has no `#[schema(…)]`.
const OF_FIELD: DocumentedItem<'_> = DocumentedItem {
    own: &[
        ("default", "write `#[serde(default)]`"),
        ("optional", "make it an `Option`, or give it `#[serde(default)]`"),
        ("Optional", "make it an `Option`, or give it `#[serde(default)]`"),
        ("nullable", "make it an `Option`"),
        ("required", REQUIRED),
        ("Required", REQUIRED),
    ],
    has_keys: false,
};

/// Keys that a version shares with the hub.
const OF_THE_HUB: &[&str] = &[
    "group",
    "versions",
    "plural",
    "singular",
    "namespaced",
    "cluster",
    "short",
    "category",
    "label",
    "annotation",
];

/// Refuses keys of the hub on another version.
fn of_the_hub(tried: &[String], hub: &syn::Path, errors: &mut Errors) {
    let mut misplaced = Vec::new();
    for key in OF_THE_HUB.iter().filter(|key| tried.iter().any(|tried| tried == *key)) {
        misplaced.push(format!("`{key}`"));
    }
    // A fault of the parser counts as all keys.
    if !misplaced.is_empty() && misplaced.len() < OF_THE_HUB.len() {
        let message =
            format!("a version takes {} from its hub: write it there", misplaced.join(" and "));
        errors.at(syn::spanned::Spanned::span(hub), message);
    }
}

/// Refuses the type itself as hub and among the versions; both keys name other types.
fn not_itself(attrs: &mut ResourceAttrs, ident: &Ident, errors: &mut Errors) {
    let is_itself = |path: &syn::Path| path.is_ident(ident) || path.is_ident("Self");
    if let Some(hub) = attrs.hub.take_if(|hub| is_itself(hub)) {
        let message = "this is the type itself: a version names another type as its hub, `hub = v1::Website`; the hub \
                       has `versions(…)` alone";
        errors.at(hub.span(), message);
    }
    attrs.versions.retain(|version| {
        if is_itself(version) {
            let message = "this is the type itself, which is a version already: list the others";
            errors.at(version.span(), message);
        }
        !is_itself(version)
    });
}

/// Refuses `#[convert(…)]` on a kind without a hub.
fn no_conversion(input: &DeriveInput, errors: &mut Errors) {
    let fields = match &input.data {
        Data::Struct(data) => data.fields.iter().collect(),
        _ => Vec::new(),
    };
    let of_fields = fields.into_iter().flat_map(|field| &field.attrs);
    for attribute in input.attrs.iter().chain(of_fields) {
        if attribute.path().is_ident("convert") {
            let message = "`#[convert(…)]` stands on the versions that are not the hub: `#[resource(hub = …)]`";
            errors.at(syn::spanned::Spanned::span(attribute.path()), message);
        }
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

/// Returns whether the input is a struct with named fields, and the struct's fields.
fn named_fields(input: &DeriveInput, rule: Rename, errors: &mut Errors) -> (bool, Vec<RootField>) {
    let shape = "a resource is a struct with named fields: \
                 `metadata: ObjectMeta, spec: …, status: Option<…>`";
    if !input.generics.params.is_empty() {
        let span = syn::spanned::Spanned::span(&input.generics);
        errors.at(span, "a resource has no type parameters: its schema must be one schema");
        return (false, Vec::new());
    }
    match &input.data {
        Data::Struct(data) => match &data.fields {
            Fields::Named(named) => {
                let fields = named.named.iter();
                (true, fields.filter_map(|field| RootField::new(field, rule, errors)).collect())
            }
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

impl RootField {
    /// Reads a field: name in JSON, documentation, and whether the field is optional.
    fn new(field: &syn::Field, rule: Rename, errors: &mut Errors) -> Option<Self> {
        let ident = field.ident.clone()?;
        markers(&field.attrs, OF_FIELD, errors);
        let instead = "a rule about a field is written `#[resource(rule(\"…\", path = spec))]`";
        attrs::no_schema(&field.attrs, instead, errors);
        let keys = "the keys stand on the struct, and name fields by their paths, as in `column(spec.host)`";
        misplaced(&field.attrs, "resource", keys, errors);
        let index = "an index stands on the struct, as in `#[index(by_host = spec.host)]`";
        misplaced(&field.attrs, "index", index, errors);
        let own = WithSpan { value: serde::json_name(&plain(&ident), rule), span: ident.span() };
        let mut serde = serde::OfField::read(&field.attrs, errors);
        let json = serde.rename.take().unwrap_or(own);
        let optional = is_option(&field.ty);
        serde.settle(&json.value, optional, errors);
        Some(Self {
            json,
            ident,
            ty: field.ty.clone(),
            optional: optional && serde.default.is_none(),
            default: serde.default.map(|(default, _)| default),
            skip_if: serde.skip_if.map(|(function, _)| function),
            doc: docs(&field.attrs),
        })
    }
}

impl RootField {
    /// Returns the function that makes the value of an absent field, at the position of the type.
    pub(super) fn default_path(&self) -> Option<TokenStream> {
        let (ty, place) = (&self.ty, located(self.ty.span()));
        Some(match self.default.as_ref()? {
            FieldDefault::Trait => {
                quote_spanned!(place=> ::windlass::__private::default_of::<#ty>)
            }
            FieldDefault::Function(function) => quote!(#function),
        })
    }

    /// Returns the type of an optional status.
    pub(super) fn status(&self) -> Option<&Type> {
        let Type::Path(path) = &self.ty else { return None };
        let last =
            path.path.segments.last().filter(|_| self.optional && self.json.value == "status")?;
        match &last.arguments {
            PathArguments::AngleBracketed(arguments) => match arguments.args.first()? {
                GenericArgument::Type(inner) => Some(inner),
                _ => None,
            },
            _ => None,
        }
    }
}

/// Whether the type is written as an `Option`. A macro sees names only: an alias is not recognized
/// here.
pub(super) fn is_option(ty: &Type) -> bool {
    match ty {
        Type::Path(path) => path.path.segments.last().is_some_and(|last| last.ident == "Option"),
        _ => false,
    }
}
