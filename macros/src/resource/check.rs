//! The rules of a resource: one function per rule, with the consequence of its absence.

use super::attrs::{ColumnAttr, ScaleAttr};
use super::index::IndexSource;
use super::model::ResourceModel;
use crate::errors::Errors;
use crate::keys::{WithSpan, unknown};
use crate::names;

/// Types of columns that API servers accept (`additionalPrinterColumns`).
const COLUMN_TYPES: &[&str] = &["integer", "number", "string", "boolean", "date"];
/// Formats of columns that API servers accept.
const COLUMN_FORMATS: &[&str] =
    &["int32", "int64", "float", "double", "byte", "date", "date-time", "password"];

/// Checks every rule.
pub(super) fn check(model: &ResourceModel, errors: &mut Errors) {
    identity(model, errors);
    labels(model, errors);
    fields(model, errors);
    unique_labels(model, errors);
    for column in &model.columns {
        check_column(column, errors);
    }
    if let Some(scale) = &model.scale {
        check_scale(scale, errors);
    }
    indexes(model, errors);
}

/// The API server refuses a CRD whose group is no domain, and one in a group of the Kubernetes
/// project that was not approved by it.
fn identity(model: &ResourceModel, errors: &mut Errors) {
    let group = &model.group;
    if !names::is_subdomain(&group.value) || !group.value.contains('.') {
        let message = format!(
            "`{}` is no API group: use a domain that you own, in lower case, with at least one \
             dot, such as `example.dev`",
            group.value
        );
        errors.at(group.span, message);
    } else if names::is_protected_group(&group.value) {
        let message = format!(
            "the group `{}` belongs to the Kubernetes project and API servers refuse it: use a \
             domain that you own",
            group.value
        );
        errors.at(group.span, message);
    }
    let kind = &model.kind;
    let upper = kind.value.starts_with(|c: char| c.is_ascii_uppercase());
    if !upper || !names::is_label(&kind.value.to_lowercase()) || kind.value.contains('-') {
        let message =
            format!("`{}` is no kind: write it in CamelCase, such as `Website`", kind.value);
        errors.at(kind.span, message);
    }
}

/// Names that stand in URLs and on kubectl's command line are DNS labels.
fn labels(model: &ResourceModel, errors: &mut Errors) {
    let mut label = |what: &str, name: &WithSpan<String>| {
        if !names::is_label(&name.value) {
            let message = format!(
                "`{}` is no {what}: use lower-case letters, digits and `-`, beginning with a letter",
                name.value
            );
            errors.at(name.span, message);
        }
    };
    label("version", &model.version);
    // The defaults of these two follow from the kind, which has its own rule.
    for (what, name) in [("plural name", &model.plural), ("singular name", &model.singular)] {
        let given = name.value != model.kind.value.to_lowercase()
            && name.value != names::plural(&model.kind.value.to_lowercase());
        if given {
            label(what, name);
        }
    }
    model.short.iter().for_each(|name| label("short name", name));
    model.categories.iter().for_each(|name| label("category", name));
}

/// Metadata makes the struct a Kubernetes object; a status is absent until a controller wrote it.
fn fields(model: &ResourceModel, errors: &mut Errors) {
    if !model.is_struct {
        return;
    }
    if model.metadata.is_none() {
        let message = "a resource has a field `metadata: ObjectMeta`";
        errors.at(model.ident.span(), message);
    }
    if let Some(status) = model.field("status").filter(|status| !status.optional) {
        let ty = &status.ty;
        let message =
            format!("`status` is absent in new objects: make it `Option<{}>`", quote::quote!(#ty));
        errors.at(syn::spanned::Spanned::span(ty), message);
    }
    for name in ["apiVersion", "kind"] {
        if let Some(field) = model.fields.iter().find(|field| field.json == name) {
            let message = format!("`{name}` is written for you: remove this field");
            errors.at(field.ident.span(), message);
        }
    }
}

/// kubectl takes plural, singular and short names for one another.
fn unique_labels(model: &ResourceModel, errors: &mut Errors) {
    let mut taken = vec![model.plural.value.as_str(), model.singular.value.as_str()];
    for short in &model.short {
        if taken.contains(&short.value.as_str()) {
            errors.at(short.span, format_args!("`{}` is already a name of this kind", short.value));
        }
        taken.push(&short.value);
    }
    let mut columns: Vec<&str> = Vec::new();
    for name in model.columns.iter().filter_map(|column| column.name.as_ref()) {
        if columns.contains(&name.value.as_str()) {
            errors.at(name.span, format_args!("there is already a column `{}`", name.value));
        }
        columns.push(&name.value);
    }
}

/// The API server refuses columns without a name or with another type or format.
fn check_column(column: &ColumnAttr, errors: &mut Errors) {
    let tried = |key: &str| column.tried.iter().any(|tried| tried == key);
    match &column.name {
        None if tried("name") => {}
        None => errors.at(column.key.span, "a column needs a heading: `name = \"Host\"`"),
        Some(name) if name.value.trim().is_empty() => {
            errors.at(name.span, "a column needs a heading, such as `Host`");
        }
        Some(_) => {}
    }
    match &column.path {
        None if tried("path") => {}
        None => errors.at(column.key.span, "a column needs a field: `path = \".spec.host\"`"),
        Some(path) => json_path(path, ".spec.host", errors),
    }
    if let Some(kind) = column.kind.as_ref().filter(|kind| !COLUMN_TYPES.contains(&&*kind.value)) {
        errors.at(kind.span, unknown("column type", &kind.value, COLUMN_TYPES));
    }
    let format = column.format.as_ref();
    if let Some(format) = format.filter(|format| !COLUMN_FORMATS.contains(&&*format.value)) {
        errors.at(format.span, unknown("column format", &format.value, COLUMN_FORMATS));
    }
    if let Some(priority) = column.priority.as_ref().filter(|priority| priority.value < 0) {
        errors.at(priority.span, "a priority is 0 (always shown) or more (shown with `-o wide`)");
    }
}

/// The API server reads the scale through plain paths below `.spec` and `.status` only.
fn check_scale(scale: &ScaleAttr, errors: &mut Errors) {
    let required = [
        ("spec", ".spec.replicas", scale.spec.as_ref(), ".spec."),
        ("status", ".status.replicas", scale.status.as_ref(), ".status."),
    ];
    for (key, example, value, root) in required {
        match value {
            None if scale.tried.iter().any(|tried| tried == key) => {}
            None => {
                errors.at(scale.key.span, format_args!("`scale` needs `{key} = \"{example}\"`"))
            }
            Some(path) => below(path, &[root], example, errors),
        }
    }
    if let Some(path) = &scale.selector {
        below(path, &[".spec.", ".status."], ".status.selector", errors);
    }
}

/// Checks that a path lies below one of `roots`.
fn below(path: &WithSpan<String>, roots: &[&str], example: &str, errors: &mut Errors) {
    let plain = path.value.split('.').skip(1).all(|part| {
        !part.is_empty()
            && part.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_'))
    });
    if !plain || !roots.iter().any(|root| path.value.starts_with(root)) {
        let message = format!("`{}` is no path below {}, such as `{example}`", path.value, {
            let roots: Vec<_> =
                roots.iter().map(|root| format!("`{}`", &root[..root.len() - 1])).collect();
            roots.join(" or ")
        });
        errors.at(path.span, message);
    }
}

/// A JSON path begins with a dot; without one kubectl prints empty columns.
fn json_path(path: &WithSpan<String>, example: &str, errors: &mut Errors) {
    let text = &path.value;
    let balanced = text.matches('[').count() == text.matches(']').count();
    if !text.starts_with('.') || text.len() < 2 || text.contains("..") || !balanced {
        errors.at(path.span, format_args!("`{text}` is no JSON path: write it like `{example}`"));
    }
}

/// Each index becomes a constant, so names are unique.
fn indexes(model: &ResourceModel, errors: &mut Errors) {
    let mut taken: Vec<String> = Vec::new();
    for index in &model.indexes {
        let name = index.name.to_string().to_uppercase();
        if taken.contains(&name) {
            errors
                .at(index.name.span(), format_args!("there is already an index `{}`", index.name));
        }
        taken.push(name);
        match &index.source {
            IndexSource::Path(path) => {
                json_path(path, ".spec.host", errors);
                if path.value.contains(['[', '\'', '"']) {
                    errors
                        .at(path.span, "name fields only: lists along the path are looked through");
                }
            }
            IndexSource::Fields(steps) => {
                let first = &steps[0].field;
                let known = first == "metadata" || model.field(&first.to_string()).is_some();
                if model.is_struct && !known {
                    let mut fields: Vec<_> =
                        model.fields.iter().map(|field| field.ident.to_string()).collect();
                    fields.insert(0, "metadata".to_owned());
                    let fields: Vec<_> = fields.iter().map(String::as_str).collect();
                    errors.at(first.span(), unknown("field", &first.to_string(), &fields));
                }
            }
        }
    }
}
