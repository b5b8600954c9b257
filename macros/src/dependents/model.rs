//! A graph in the form that the code generator needs.

use proc_macro2::Ident;
use syn::spanned::Spanned;
use syn::{Data, DeriveInput, Field, Fields, GenericArgument, PathArguments, Type, Visibility};

use super::attrs::{DependentAttrs, GraphAttrs};
use crate::errors::Errors;
use crate::keys::same_tokens;

/// A graph: struct, controller and fields.
#[derive(Debug)]
pub(super) struct GraphModel<'a> {
    pub(super) input: &'a DeriveInput,
    pub(super) vis: &'a Visibility,
    pub(super) ident: &'a Ident,
    pub(super) by: Option<syn::Type>,
    pub(super) has_by: bool,
    /// Kind of the objects, if the reconcile is generated.
    pub(super) object: Option<Type>,
    pub(super) retired: Vec<Type>,
    pub(super) krate: Option<syn::Path>,
    pub(super) nodes: Vec<GraphField>,
}

/// A field of a graph.
#[derive(Debug)]
pub(super) struct GraphField {
    pub(super) ident: Ident,
    pub(super) kind: Type,
    /// Whether the field has any number of children: `Vec<Pod>`.
    pub(super) is_bulk: bool,
    pub(super) attrs: DependentAttrs,
    /// Positions of the fields before this field, without unknown names.
    pub(super) after: Vec<usize>,
}

impl<'a> GraphModel<'a> {
    pub(super) fn new(input: &'a DeriveInput, errors: &mut Errors) -> Self {
        let attrs = GraphAttrs::read(&input.attrs, errors);
        let fields: Vec<&Field> = match &input.data {
            Data::Struct(data) => match &data.fields {
                Fields::Named(fields) => fields.named.iter().collect(),
                _ => Vec::new(),
            },
            _ => Vec::new(),
        };
        let mut nodes: Vec<GraphField> =
            fields.into_iter().filter_map(|field| GraphField::new(field, errors)).collect();
        let names: Vec<String> = nodes.iter().map(|node| node.ident.to_string()).collect();
        for node in &mut nodes {
            let positions = node.attrs.after.iter();
            node.after =
                positions.filter_map(|after| names.iter().position(|name| after == name)).collect();
        }
        let GraphAttrs { by, has_by, object, retired, krate } = attrs;
        let (vis, ident) = (&input.vis, &input.ident);
        Self { input, vis, ident, by, has_by, object, retired, krate, nodes }
    }

    /// Whether the graph is a struct with named fields; another one is a fault that is reported.
    pub(super) fn has_fields(&self) -> bool {
        matches!(&self.input.data, Data::Struct(data) if matches!(data.fields, Fields::Named(_)))
    }

    /// Whether a field is a rollout, for which the controller owns revisions.
    pub(super) fn has_rollout(&self) -> bool {
        self.nodes.iter().any(GraphField::is_rollout)
    }

    /// Returns every kind of the fields once.
    pub(super) fn kinds(&self) -> Vec<&Type> {
        let mut kinds: Vec<&Type> = Vec::new();
        for node in self.nodes.iter().filter(|node| !node.is_external()) {
            if !kinds.iter().any(|before| same_tokens(*before, &node.kind)) {
                kinds.push(&node.kind);
            }
        }
        kinds
    }
}

impl GraphField {
    /// Whether the field is an external resource: the type is a provider, and no kind.
    pub(super) fn is_external(&self) -> bool {
        self.attrs.external.is_some()
    }

    /// Whether the children of the field change in sequence.
    pub(super) fn is_rollout(&self) -> bool {
        self.attrs.rollout.is_some()
    }

    fn new(field: &Field, errors: &mut Errors) -> Option<Self> {
        let attrs = DependentAttrs::read(&field.attrs, errors);
        let ident = field.ident.clone()?;
        let (kind, is_bulk) = match inner(&field.ty, "Vec") {
            Some(kind) => (kind.clone(), true),
            None => (field.ty.clone(), false),
        };
        if inner(&kind, "Option").is_some() {
            let message = "a child that is not always there has `when`: `#[dependent(when = Website::is_exposed)]`";
            errors.at(kind.span(), message);
        }
        Some(Self { ident, kind, is_bulk, attrs, after: Vec::new() })
    }
}

/// Returns the argument of a generic type of that name.
fn inner<'a>(ty: &'a Type, name: &str) -> Option<&'a Type> {
    let Type::Path(path) = ty else { return None };
    let last = path.path.segments.last().filter(|segment| segment.ident == name)?;
    let PathArguments::AngleBracketed(arguments) = &last.arguments else { return None };
    match arguments.args.first() {
        Some(GenericArgument::Type(ty)) if arguments.args.len() == 1 => Some(ty),
        _ => None,
    }
}
