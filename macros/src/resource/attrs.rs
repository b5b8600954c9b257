//! The keys of `#[resource(…)]` and `#[index(…)]`, as written.

use proc_macro2::Span;
use syn::Attribute;
use syn::parse::ParseStream;

use super::index::IndexAttr;
use crate::errors::Errors;
use crate::keys::{self, Key, WithSpan, set};

/// Keys of `#[resource(…)]`; the documentation must have each of them.
pub(crate) const KEYS: &[&str] = &[
    "group",
    "version",
    "kind",
    "plural",
    "singular",
    "namespaced",
    "cluster",
    "short",
    "category",
    "column",
    "scale",
];
/// Keys of `column(…)`.
pub(crate) const COLUMN_KEYS: &[&str] =
    &["name", "path", "type", "format", "priority", "description"];
/// Keys of `scale(…)`.
pub(crate) const SCALE_KEYS: &[&str] = &["spec", "status", "selector"];

/// Keys of the struct's attributes.
#[derive(Debug, Default)]
pub(super) struct Attrs {
    /// Whether there is a `#[resource]` at all.
    pub(super) present: bool,
    /// Keys that were written, also those with a fault.
    pub(super) tried: Vec<String>,
    pub(super) group: Option<WithSpan<String>>,
    pub(super) version: Option<WithSpan<String>>,
    pub(super) kind: Option<WithSpan<String>>,
    pub(super) plural: Option<WithSpan<String>>,
    pub(super) singular: Option<WithSpan<String>>,
    pub(super) namespaced: Option<Span>,
    pub(super) cluster: Option<Span>,
    pub(super) short: Vec<WithSpan<String>>,
    pub(super) category: Vec<WithSpan<String>>,
    pub(super) columns: Vec<ColumnAttr>,
    pub(super) scale: Option<ScaleAttr>,
    pub(super) indexes: Vec<IndexAttr>,
}

/// `column(name = "Host", path = ".spec.host")`
#[derive(Debug)]
pub(super) struct ColumnAttr {
    pub(super) key: Key,
    /// Keys that were written, also those with a fault.
    pub(super) tried: Vec<String>,
    pub(super) name: Option<WithSpan<String>>,
    pub(super) path: Option<WithSpan<String>>,
    pub(super) kind: Option<WithSpan<String>>,
    pub(super) format: Option<WithSpan<String>>,
    pub(super) priority: Option<WithSpan<i32>>,
    pub(super) description: Option<WithSpan<String>>,
}

/// `scale(spec = ".spec.replicas", status = ".status.replicas")`
#[derive(Debug)]
pub(super) struct ScaleAttr {
    pub(super) key: Key,
    /// Keys that were written, also those with a fault.
    pub(super) tried: Vec<String>,
    pub(super) spec: Option<WithSpan<String>>,
    pub(super) status: Option<WithSpan<String>>,
    pub(super) selector: Option<WithSpan<String>>,
}

impl Attrs {
    /// Reads all attributes of the struct.
    pub(super) fn read(attributes: &[Attribute], errors: &mut Errors) -> Self {
        let mut attrs = Self {
            present: attributes.iter().any(|attribute| attribute.path().is_ident("resource")),
            ..Self::default()
        };
        keys::attributes(attributes, "resource", errors, |input, errors| {
            let tried = keys::each_key(input, KEYS, errors, |key, input, errors| {
                attrs.key(key, input, errors)
            });
            attrs.tried.extend(tried);
        });
        keys::attributes(attributes, "index", errors, |input, errors| {
            IndexAttr::read_all(input, errors, &mut attrs.indexes);
        });
        attrs
    }

    /// Reads the value of one key; a second value of the same key is a fault, unless the key lists
    /// several.
    fn key(&mut self, key: &Key, input: ParseStream<'_>, errors: &mut Errors) -> syn::Result<()> {
        match key.name.as_str() {
            "group" => set(&mut self.group, key, keys::text(key, input)?, errors),
            "version" => set(&mut self.version, key, keys::text(key, input)?, errors),
            "kind" => set(&mut self.kind, key, keys::text(key, input)?, errors),
            "plural" => set(&mut self.plural, key, keys::text(key, input)?, errors),
            "singular" => set(&mut self.singular, key, keys::text(key, input)?, errors),
            "namespaced" => set(&mut self.namespaced, key, key.span, errors),
            "cluster" => set(&mut self.cluster, key, key.span, errors),
            "short" => self.short.extend(keys::texts(key, input)?),
            "category" => self.category.extend(keys::texts(key, input)?),
            "column" => {
                let example = "column(name = \"Host\", path = \".spec.host\")";
                let column =
                    keys::group(key, input, example, |input| Ok(column(key, input, errors)))?;
                self.columns.push(column);
            }
            _ => {
                let example = "scale(spec = \".spec.replicas\", status = \".status.replicas\")";
                let scale =
                    keys::group(key, input, example, |input| Ok(scale(key, input, errors)))?;
                set(&mut self.scale, key, scale, errors);
            }
        }
        Ok(())
    }
}

/// Reads the keys of a `column(…)`.
fn column(key: &Key, input: ParseStream<'_>, errors: &mut Errors) -> ColumnAttr {
    let mut column = ColumnAttr {
        key: key.clone(),
        tried: Vec::new(),
        name: None,
        path: None,
        kind: None,
        format: None,
        priority: None,
        description: None,
    };
    let tried = keys::each_key(input, COLUMN_KEYS, errors, |key, input, errors| {
        match key.name.as_str() {
            "name" => set(&mut column.name, key, keys::text(key, input)?, errors),
            "path" => set(&mut column.path, key, keys::text(key, input)?, errors),
            "type" => set(&mut column.kind, key, keys::text(key, input)?, errors),
            "format" => set(&mut column.format, key, keys::text(key, input)?, errors),
            "priority" => set(&mut column.priority, key, keys::number(key, input)?, errors),
            _ => set(&mut column.description, key, keys::text(key, input)?, errors),
        }
        Ok(())
    });
    column.tried = tried;
    column
}

/// Reads the keys of a `scale(…)`.
fn scale(key: &Key, input: ParseStream<'_>, errors: &mut Errors) -> ScaleAttr {
    let mut scale =
        ScaleAttr { key: key.clone(), tried: Vec::new(), spec: None, status: None, selector: None };
    let tried = keys::each_key(input, SCALE_KEYS, errors, |key, input, errors| {
        let value = keys::text(key, input)?;
        let slot = match key.name.as_str() {
            "spec" => &mut scale.spec,
            "status" => &mut scale.status,
            _ => &mut scale.selector,
        };
        set(slot, key, value, errors);
        Ok(())
    });
    scale.tried = tried;
    scale
}
