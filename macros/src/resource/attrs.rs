//! The keys of `#[resource(…)]` and `#[index(…)]`, as written.

use proc_macro2::Span;
use quote::ToTokens;
use syn::parse::ParseStream;
use syn::{Attribute, Expr, LitStr, Token};

use super::index::IndexAttr;
use super::place::{ColumnAttr, RuleAttr, ScaleAttr};
use super::serde;
use crate::crate_path;
use crate::errors::Errors;
use crate::keys::{self, KeyNames, SpannedKey, WithSpan, set};
use crate::path::PathStep;
use crate::schema::Rename;

/// Keys of `#[resource(…)]`; the documentation must have each of them.
pub(crate) const KEYS: &[&str] = &[
    "group",
    "version",
    "versions",
    "hub",
    "storage",
    "served",
    "kind",
    "plural",
    "singular",
    "namespaced",
    "cluster",
    "short",
    "category",
    "column",
    "scale",
    "selectable",
    "rule",
    "deprecated",
    "label",
    "annotation",
    "crate",
];

/// Words of kube-rs and kubebuilder for the same or for other things.
pub(super) const HINTS: &[(&str, &str)] = &[
    ("shortname", "write `short = \"ws\"`"),
    ("shortnames", "write `short = [\"ws\", \"w\"]`"),
    ("shortName", "write `short = \"ws\"`"),
    ("shortNames", "write `short = [\"ws\", \"w\"]`"),
    ("short_name", "write `short = \"ws\"`"),
    ("short_names", "write `short = [\"ws\", \"w\"]`"),
    ("names", "write `kind = \"…\"`, `plural = \"…\"`, `singular = \"…\"` and `short = \"…\"`"),
    ("listKind", "it is the kind with `List` behind it"),
    ("list_kind", "it is the kind with `List` behind it"),
    ("printcolumn", "write `column(\"Host\", spec.host)`"),
    ("printercolumn", "write `column(\"Host\", spec.host)`"),
    ("printer_column", "write `column(\"Host\", spec.host)`"),
    ("print_column", "write `column(\"Host\", spec.host)`"),
    ("additionalPrinterColumns", "write `column(\"Host\", spec.host)`"),
    ("columns", "write `column(spec.host)`, once for each"),
    ("priority", "it is a part of a column: `column(\"Host\", spec.host, priority = 1)`"),
    ("status", "a field `status: Option<…>` gives the kind its status subresource"),
    (
        "subresource",
        "a field `status: Option<…>` gives the kind its status subresource; `scale(…)` the other",
    ),
    ("storageversion", "write `storage`"),
    ("storage_version", "write `storage`"),
    ("stored", "write `storage`"),
    ("unserved", "write `served = false`"),
    ("unservedversion", "write `served = false`"),
    ("deprecation_warning", "write `deprecated = \"warning\"`"),
    ("deprecationWarning", "write `deprecated = \"warning\"`"),
    (
        "spoke",
        "a version names its hub: `hub = v1::Website`; the hub lists the others: `versions(v1beta1::Website)`",
    ),
    ("spokes", "write `versions(v1beta1::Website)` on the hub"),
    ("conversion", "it follows from `versions(…)` on the hub and `hub = …` on the other versions"),
    ("scope", "write `namespaced` or `cluster`"),
    ("cluster_scoped", "write `cluster`"),
    ("clusterScoped", "write `cluster`"),
    ("cluster_wide", "write `cluster`"),
    ("nonNamespaced", "write `cluster`"),
    ("non_namespaced", "write `cluster`"),
    ("jsonPath", "a column has a field: `column(\"Host\", spec.host)`"),
    ("path", "the name in URLs is `plural = \"websites\"`"),
    ("derive", "derive on the struct itself: `#[derive(CustomResource, Clone, Debug)]`"),
    ("schema", "the schema follows from the types of the fields"),
    ("rename_all", "write `#[serde(rename_all = \"…\")]`"),
    ("categories", "write `category = \"all\"`"),
    ("root", "the struct with the derive is the root: `metadata`, `spec`, `status`"),
    ("struct", "the struct with the derive is the root: `metadata`, `spec`, `status`"),
    ("crates", "write `crate = my_facade::windlass`"),
    ("validation", "write `rule(\"self.spec.min <= self.spec.max\", message = \"…\")`"),
    ("doc", "doc comments of the struct are its description"),
    ("description", "doc comments of the struct are its description"),
    ("labels", "write `label(\"key\" = \"value\")`"),
    ("annotations", "write `annotation(\"key\" = \"value\")`"),
    ("metadata", "write `label(\"key\" = \"value\")` or `annotation(\"key\" = \"value\")`"),
    ("selectablefield", "write `selectable(spec.host)`"),
    ("selectableFields", "write `selectable(spec.host)`"),
    ("deprecatedversion", "write `deprecated` or `deprecated = \"warning\"`"),
    ("finalizer", "it is a key of `#[controller(…)]`"),
    ("default", "derive `Default` on the struct itself"),
    ("index", "write it as an attribute of its own: `#[index(by_host = spec.host)]`"),
];

/// A text that is a literal or a constant expression.
#[derive(Clone, Debug)]
pub(super) enum TextExpr {
    Literal(WithSpan<String>),
    /// `GROUP`, `concat!(…)`: known to the compiler, but not to a macro.
    Expr(Box<Expr>),
}

impl TextExpr {
    /// Returns the literal.
    pub(super) fn literal(&self) -> Option<&WithSpan<String>> {
        match self {
            Self::Literal(text) => Some(text),
            Self::Expr(_) => None,
        }
    }
}

impl ToTokens for TextExpr {
    fn to_tokens(&self, tokens: &mut proc_macro2::TokenStream) {
        match self {
            Self::Literal(text) => text.value.to_tokens(tokens),
            Self::Expr(expr) => expr.to_tokens(tokens),
        }
    }
}

/// A key with a value, as in `label("key" = "value")`.
pub(super) type KeyValue = (WithSpan<String>, WithSpan<String>);

/// Keys of the struct's attributes.
#[derive(Debug, Default)]
pub(super) struct ResourceAttrs {
    /// Whether there is a `#[resource]` at all.
    pub(super) present: bool,
    /// Keys that were written, also those with a fault.
    pub(super) tried: Vec<String>,
    pub(super) group: Option<TextExpr>,
    pub(super) version: Option<TextExpr>,
    /// The other versions, of the hub.
    pub(super) versions: Vec<syn::Path>,
    /// The hub, of another version.
    pub(super) hub: Option<syn::Path>,
    pub(super) storage: Option<Span>,
    pub(super) served: Option<WithSpan<bool>>,
    pub(super) kind: Option<WithSpan<String>>,
    pub(super) plural: Option<WithSpan<String>>,
    pub(super) singular: Option<WithSpan<String>>,
    pub(super) namespaced: Option<Span>,
    pub(super) cluster: Option<Span>,
    pub(super) short: Vec<WithSpan<String>>,
    pub(super) category: Vec<WithSpan<String>>,
    pub(super) columns: Vec<ColumnAttr>,
    pub(super) scale: Option<ScaleAttr>,
    pub(super) selectable: Vec<PathStep>,
    pub(super) rules: Vec<RuleAttr>,
    /// The warning, if given.
    pub(super) deprecated: Option<Option<WithSpan<String>>>,
    pub(super) labels: Vec<KeyValue>,
    pub(super) annotations: Vec<KeyValue>,
    pub(super) krate: Option<syn::Path>,
    pub(super) indexes: Vec<IndexAttr>,
    /// Rule for the names of fields in JSON.
    pub(super) rename_all: Rename,
}

/// The answer to an attribute of kube-rs on a type.
pub(crate) const KUBE_ON_A_TYPE: &str = "`#[kube(…)]` belongs to kube-rs: write `#[resource(group = \
    \"example.dev\", version = \"v1\", namespaced)]` on the struct with `metadata`, `spec` and `status`";

impl ResourceAttrs {
    /// Reads all attributes of the struct.
    pub(super) fn read(attributes: &[Attribute], errors: &mut Errors) -> Self {
        let mut attrs = Self {
            present: attributes.iter().any(|attribute| attribute.path().is_ident("resource")),
            ..Self::default()
        };
        let known = KeyNames::new(KEYS, HINTS);
        let have_content = keys::attributes(attributes, "resource", errors, |input, errors| {
            let tried = keys::each_item(
                input,
                known,
                errors,
                |_, _| None,
                |key, input, errors| attrs.key(key, input, errors),
            );
            attrs.tried.extend(tried);
        });
        if !have_content {
            // This fault stands for all keys that are missing.
            attrs.tried.extend(KEYS.iter().map(ToString::to_string));
        }
        keys::attributes(attributes, "index", errors, |input, errors| {
            IndexAttr::read_all(input, errors, &mut attrs.indexes);
        });
        attrs.rename_all = serde::rename_all(attributes, errors);
        attrs.foreign(attributes, errors);
        no_schema(attributes, "a rule of a kind is written `#[resource(rule(\"…\"))]`", errors);
        attrs
    }

    /// Refuses attributes of kube-rs.
    fn foreign(&mut self, attributes: &[Attribute], errors: &mut Errors) {
        for attribute in attributes {
            let span = attribute.path().segments.first().map(|first| first.ident.span());
            let span = span.unwrap_or_else(Span::call_site);
            if attribute.path().is_ident("kube") {
                self.present = true;
                self.tried.extend(KEYS.iter().map(ToString::to_string));
                errors.at(span, KUBE_ON_A_TYPE);
            }
        }
    }

    /// Reads the value of a key; a second value of the same key is a fault, unless the key lists
    /// several.
    fn key(
        &mut self,
        key: &SpannedKey,
        input: ParseStream<'_>,
        errors: &mut Errors,
    ) -> syn::Result<()> {
        match key.name.as_str() {
            "group" => set(&mut self.group, key, constant(key, input)?, errors),
            "version" => set(&mut self.version, key, constant(key, input)?, errors),
            "hub" => set(&mut self.hub, key, type_path(key, input)?, errors),
            "served" => set(&mut self.served, key, truth(key, input)?, errors),
            "kind" => set(&mut self.kind, key, keys::text(key, input)?, errors),
            "plural" => set(&mut self.plural, key, keys::text(key, input)?, errors),
            "singular" => set(&mut self.singular, key, keys::text(key, input)?, errors),
            "storage" | "namespaced" | "cluster" if !is_set(key, input, errors)? => {}
            "storage" => set(&mut self.storage, key, key.span, errors),
            "namespaced" => set(&mut self.namespaced, key, key.span, errors),
            "cluster" => set(&mut self.cluster, key, key.span, errors),
            "short" => self.short.extend(keys::texts(key, input)?),
            "category" => self.category.extend(keys::texts(key, input)?),
            "crate" => set(&mut self.krate, key, crate_path::crate_path(key, input)?, errors),
            "deprecated" => {
                let warning = match input.peek(Token![=]) {
                    true => Some(keys::text(key, input)?),
                    false => None,
                };
                set(&mut self.deprecated, key, warning, errors);
            }
            "label" => self.labels.extend(pairs(key, input)?),
            "annotation" => self.annotations.extend(pairs(key, input)?),
            _ => self.list(key, input, errors)?,
        }
        Ok(())
    }

    /// Reads the value of a key with parentheses.
    fn list(
        &mut self,
        key: &SpannedKey,
        input: ParseStream<'_>,
        errors: &mut Errors,
    ) -> syn::Result<()> {
        match key.name.as_str() {
            "versions" => {
                let read = |input: ParseStream<'_>| {
                    input.parse_terminated(syn::Path::parse_mod_style, Token![,])
                };
                self.versions.extend(keys::group(key, input, "versions(v1beta1::Website)", read)?);
            }
            "column" => {
                let example = "column(\"Host\", spec.host)";
                let read = |input: ParseStream<'_>| Ok(ColumnAttr::read(key, input, errors));
                self.columns.push(keys::group(key, input, example, read)?);
            }
            "selectable" => {
                let read =
                    |input: ParseStream<'_>| input.parse_terminated(PathStep::parse, Token![,]);
                self.selectable.extend(keys::group(key, input, "selectable(spec.host)", read)?);
            }
            "rule" => {
                let example = "rule(\"self.spec.min <= self.spec.max\", message = \"…\")";
                let read = |input: ParseStream<'_>| Ok(RuleAttr::read(key, input, errors));
                self.rules.extend(keys::group(key, input, example, read)?);
            }
            _ => {
                let example = "scale(spec.replicas, status.replicas)";
                let read = |input: ParseStream<'_>| Ok(ScaleAttr::read(key, input, errors));
                let scale = keys::group(key, input, example, read)?;
                set(&mut self.scale, key, scale, errors);
            }
        }
        Ok(())
    }
}

/// Refuses attributes for the schema of nested types on the root and its fields.
pub(super) fn no_schema(attributes: &[Attribute], instead: &str, errors: &mut Errors) {
    for path in attributes.iter().map(Attribute::path) {
        let name = path.get_ident().map(ToString::to_string).unwrap_or_default();
        if matches!(name.as_str(), "schema" | "schemars" | "validate" | "garde") {
            let message = format!(
                "`#[{name}(…)]` has no effect on the object itself: write `#[schema(…)]` in the types of its fields; {instead}"
            );
            errors.at(syn::spanned::Spanned::span(path), message);
        }
    }
}

/// Whether a key without a value counts: with a value it is a fault, and does not for `false`.
fn is_set(key: &SpannedKey, input: ParseStream<'_>, errors: &mut Errors) -> syn::Result<bool> {
    if input.parse::<Option<Token![=]>>()?.is_none() {
        return Ok(true);
    }
    let value: Expr = input.parse()?;
    let is_set = value.to_token_stream().to_string() != "false";
    let message = match key.name.as_str() {
        "namespaced" if !is_set => {
            "the objects of a kind that is not `namespaced` belong to the cluster: write `cluster`"
                .to_owned()
        }
        name => format!("`{name}` has no value: its presence is the setting"),
    };
    errors.add(syn::Error::new_spanned(&value, message));
    Ok(is_set)
}

/// Reads `= "text"`, or `= CONSTANT`.
fn constant(key: &SpannedKey, input: ParseStream<'_>) -> syn::Result<TextExpr> {
    if input.peek(Token![=]) && (input.peek2(LitStr) || input.peek2(syn::Lit)) {
        return keys::text(key, input).map(TextExpr::Literal);
    }
    let message = format!("`{}` takes a text or a constant: `{0} = \"…\"`", key.name);
    let expr: Expr = keys::value(key, input, "\"…\"")?;
    match expr {
        Expr::Path(_) | Expr::Macro(_) => Ok(TextExpr::Expr(Box::new(expr))),
        other => Err(syn::Error::new(syn::spanned::Spanned::span(&other), message)),
    }
}

/// Reads `= v1::Website`.
fn type_path(key: &SpannedKey, input: ParseStream<'_>) -> syn::Result<syn::Path> {
    let expr: Expr = keys::value(key, input, "v1::Website")?;
    match expr {
        Expr::Path(path) if path.qself.is_none() => Ok(path.path),
        other => {
            let message = format!("`{}` takes a type: `{0} = v1::Website`", key.name);
            Err(syn::Error::new(syn::spanned::Spanned::span(&other), message))
        }
    }
}

/// Reads `= true` or `= false`.
fn truth(key: &SpannedKey, input: ParseStream<'_>) -> syn::Result<WithSpan<bool>> {
    let literal: syn::Lit = keys::value(key, input, "false")?;
    match literal {
        syn::Lit::Bool(literal) => Ok(WithSpan { value: literal.value, span: literal.span }),
        other => {
            let message = format!("`{}` takes `true` or `false`", key.name);
            Err(syn::Error::new(other.span(), message))
        }
    }
}

/// Reads `("key" = "value", …)`.
fn pairs(key: &SpannedKey, input: ParseStream<'_>) -> syn::Result<Vec<KeyValue>> {
    let example = format!("{}(\"key\" = \"value\")", key.name);
    let wrong = |fault: syn::Error| {
        syn::Error::new(fault.span(), format_args!("write `{example}`, both as texts"))
    };
    keys::group(key, input, &example, |input| {
        let mut all = Vec::new();
        loop {
            let name: LitStr = input.parse().map_err(wrong)?;
            input.parse::<Token![=]>().map_err(wrong)?;
            let value: LitStr = input.parse().map_err(wrong)?;
            all.push((WithSpan::text(&name), WithSpan::text(&value)));
            if input.parse::<Option<Token![,]>>()?.is_none() || input.is_empty() {
                return Ok(all);
            }
        }
    })
}
