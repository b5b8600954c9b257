//! Input of the code generator of `#[derive(CustomResource)]`.

use proc_macro2::{Ident, Span};
use syn::{Attribute, Data, DeriveInput, Fields, GenericArgument, PathArguments, Type, Visibility};

use super::attrs::{Attrs, Pair, Text};
use super::index::IndexAttr;
use super::place::{ColumnAttr, RuleAttr, ScaleAttr};
use crate::convert::RootConversion;
use crate::errors::Errors;
use crate::keys::{self, Doc, WithSpan, docs, set};
use crate::names;
use crate::path::{Place, plain};

/// The kind, with every default filled in.
#[derive(Debug)]
pub(super) struct ResourceModel {
    pub(super) ident: Ident,
    pub(super) vis: Visibility,
    /// Text of the doc comment, which becomes the description.
    pub(super) doc: Doc,
    pub(super) group: Text,
    pub(super) version: Text,
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
    pub(super) selectable: Vec<Place>,
    pub(super) rules: Vec<RuleAttr>,
    /// Whether the kind is deprecated, and the warning if given.
    pub(super) deprecated: Option<Option<WithSpan<String>>>,
    pub(super) labels: Vec<Pair>,
    pub(super) annotations: Vec<Pair>,
    /// Path of windlass in generated code; `None`: `::windlass`.
    pub(super) krate: Option<syn::Path>,
    pub(super) indexes: Vec<IndexAttr>,
    /// The field `metadata`; `None` is a fault that is reported.
    pub(super) metadata: Option<Field>,
    /// Every other field, in order.
    pub(super) fields: Vec<Field>,
    /// Whether the struct can be built and read field by field; `false` is a fault that is
    /// reported.
    pub(super) is_struct: bool,
    /// Whether the struct has an attribute of kube-rs; a fault that is reported.
    pub(super) is_of_kube: bool,
}

/// A field of the root struct.
#[derive(Debug)]
pub(super) struct Field {
    pub(super) ident: Ident,
    /// Name in JSON, as written, or as it follows from the field.
    pub(super) json: WithSpan<String>,
    pub(super) ty: Type,
    /// Whether the field is written as an `Option`; an alias of `Option` is found by the compiler.
    pub(super) optional: bool,
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
    pub(super) fn new(input: &DeriveInput, attrs: Attrs, errors: &mut Errors) -> Self {
        let here = input.ident.span();
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
            Some(hub) => Some(Text::Expr(Box::new(syn::parse_quote!(
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
        let mut needed = |key: &str, example: &str, value: Option<Text>| {
            if value.is_none() && attrs.present && !tried(key) && (key != "group" || !tried("hub"))
            {
                let message = format!("missing `{key}`: `#[resource({key} = \"{example}\", …)]`");
                errors.at(here, message);
            }
            value.unwrap_or_else(|| {
                Text::Literal(WithSpan { value: example.to_owned(), span: here })
            })
        };
        let group = needed("group", "example.dev", group);
        let version = needed("version", "v1", attrs.version);
        let (is_struct, mut fields) = named_fields(input, errors);
        let metadata = fields
            .iter()
            .position(|field| field.ident == "metadata")
            .map(|position| fields.remove(position));
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
            columns: attrs.columns,
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
        places.any(|place| matches!(place, Place::Fields(_)))
    }

    /// Returns the field of that name.
    pub(super) fn field(&self, name: &str) -> Option<&Field> {
        self.fields.iter().find(|field| plain(&field.ident) == name)
    }
}

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
    let mut told = Vec::new();
    for key in OF_THE_HUB.iter().filter(|key| tried.iter().any(|tried| tried == *key)) {
        told.push(format!("`{key}`"));
    }
    // A fault of the parser counts as all keys.
    if !told.is_empty() && told.len() < OF_THE_HUB.len() {
        let message =
            format!("a version takes {} from its hub: write it there", told.join(" and "));
        errors.at(syn::spanned::Spanned::span(hub), message);
    }
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
            Fields::Named(named) => {
                (true, named.named.iter().filter_map(|field| Field::new(field, errors)).collect())
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

impl Field {
    /// Reads a field: name in JSON, documentation, and whether the field is optional.
    fn new(field: &syn::Field, errors: &mut Errors) -> Option<Self> {
        let ident = field.ident.clone()?;
        let own = WithSpan { value: names::camel(&plain(&ident)), span: ident.span() };
        Some(Self {
            json: renamed(&field.attrs, errors).unwrap_or(own),
            ident,
            ty: field.ty.clone(),
            optional: is_option(&field.ty),
            doc: docs(&field.attrs),
        })
    }
}

/// Reads `#[serde(rename = "…")]`, the only attribute of serde that a field of the root can have.
fn renamed(attributes: &[Attribute], errors: &mut Errors) -> Option<WithSpan<String>> {
    let mut name = None;
    for attribute in attributes.iter().filter(|attribute| attribute.path().is_ident("serde")) {
        let Ok(list) = attribute.meta.require_list() else { continue };
        let parsed = list.parse_args_with(|input: syn::parse::ParseStream<'_>| {
            keys::each_item(
                input,
                keys::Known { keys: &["rename"], hints: SERDE_HINTS },
                errors,
                |_, _| None,
                |key, input, errors| {
                    set(&mut name, key, keys::text(key, input)?, errors);
                    Ok(())
                },
            );
            Ok(())
        });
        errors.keep(parsed);
    }
    name
}

/// Serde's keys that have no effect on a field of the root, and the reasons.
const SERDE_HINTS: &[(&str, &str)] = &[
    ("default", "on the object itself an absent field is `None`: make it an `Option`"),
    ("skip_serializing_if", "an absent field of the object itself is left out anyway"),
    ("skip", "every field of the object itself is part of the kind: move it to another struct"),
    ("skip_serializing", "every field of the object itself is part of the kind"),
    ("skip_deserializing", "every field of the object itself is part of the kind"),
    (
        "flatten",
        "the fields of a kind stand below `spec` and `status`: flatten inside of those types",
    ),
    (
        "rename_all",
        "fields of the object itself are in camelCase; rename one by `#[serde(rename = \"…\")]`",
    ),
    ("alias", "API servers know one name for a field: write `rename`"),
    ("with", "give the field a type of your own that implements `Serialize` and `Deserialize`"),
    ("serialize_with", "give the field a type of your own that implements `Serialize`"),
    ("deserialize_with", "give the field a type of your own that implements `Deserialize`"),
    ("borrow", "an object owns its fields"),
    ("bound", "an object has no type parameters"),
];

impl Field {
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
        assert_eq!(model.api_version().as_deref(), Some("example.dev/v1"));
        assert!(matches!(&model.doc, Doc::Text(text) if text == "A policy."), "{:?}", model.doc);
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
        assert_eq!(
            model.field("last_words").map(|field| field.json.value.as_str()),
            Some("lastWords")
        );
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
    fn a_column_has_a_heading_and_a_field_in_any_form() {
        let (model, faults) = model(&parse_quote! {
            #[resource(group = "example.dev", version = "v1", namespaced)]
            #[resource(column(spec.host_name), column("Phase", status.phase, priority = 1))]
            #[resource(column("Ready", ".status.conditions[?(@.type==\"Ready\")].status"))]
            #[resource(column(spec.a, name = "B"), column(path = spec.x, name = "X"))]
            #[resource(column(metadata.labels["app"], name = "App"), column(spec.ports[0].number))]
            struct A { metadata: ObjectMeta, spec: Spec, status: Option<Status> }
        });
        assert!(faults.is_empty(), "{faults:?}");
        let texts: Vec<_> = model
            .columns
            .iter()
            .map(|column| {
                let name = column.name.as_ref().map(|name| name.value.clone()).unwrap_or_default();
                (name, column.place.as_ref().map(Place::text).unwrap_or_default())
            })
            .collect();
        let expected = [
            ("Host Name", "spec.host_name"),
            ("Phase", "status.phase"),
            ("Ready", ".status.conditions[?(@.type==\"Ready\")].status"),
            ("B", "spec.a"),
            ("X", "spec.x"),
            ("App", "metadata.labels[\"app\"]"),
            ("Number", "spec.ports[0].number"),
        ];
        let expected = expected.map(|(name, path)| (name.to_owned(), path.to_owned()));
        assert_eq!(texts, expected);
    }

    #[test]
    fn a_field_of_the_root_takes_rename_of_serde_and_no_other_key() {
        let (model, faults) = model(&parse_quote! {
            #[resource(group = "example.dev", version = "v1", namespaced)]
            struct A {
                metadata: ObjectMeta,
                #[serde(rename = "data")]
                content: Content,
                #[serde(default)]
                extra: Extra,
            }
        });
        let name = model.field("content").map(|field| field.json.value.as_str());
        assert_eq!(name, Some("data"));
        assert_eq!(faults.len(), 1, "{faults:?}");
        assert!(faults[0].contains("make it an `Option`"), "{faults:?}");
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
        assert_eq!(texts, ["spec.host", "spec.ports[].number", "status.phase", ".spec.host"]);
    }
}
