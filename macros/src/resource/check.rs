//! The rules of a resource: one function per rule, with the consequence of a missing rule.

use std::collections::BTreeMap;

use syn::spanned::Spanned;

use super::attrs::TextExpr;
use super::check_places;
use super::model::{ResourceModel, is_option};
use crate::errors::Errors;
use crate::keys::WithSpan;
use crate::names;
use crate::path::plain;

/// Longest name of a kind: `List` is added to the name, and the API server accepts at most 63
/// characters.
const MOST_LETTERS: usize = 59;
/// Annotation with which API servers accept a definition in a group of the Kubernetes project.
const APPROVED: &str = "api-approved.kubernetes.io";

/// Checks every rule.
pub(super) fn check(model: &ResourceModel, errors: &mut Errors) {
    group(model, errors);
    kind(model, errors);
    labels(model, errors);
    fields(model, errors);
    unique_fields(model, errors);
    unique_labels(model, errors);
    deprecated(model, errors);
    versions(model, errors);
    definition_metadata(model, errors);
    check_places::check(model, errors);
}

/// The API server refuses a CRD whose group is not a domain, and a CRD in a group of the Kubernetes
/// project that was not approved by the project.
fn group(model: &ResourceModel, errors: &mut Errors) {
    // A constant is checked by the compiler, with the same rule in `windlass::__private`.
    let Some(group) = model.group.literal() else { return };
    let approved = model.annotations.iter().any(|(key, _)| key.value == APPROVED);
    if !names::is_subdomain(&group.value) || !group.value.contains('.') {
        let message = format!(
            "`{}` is not an API group: use a domain that you own, in lower case, with at least one \
             dot, such as `example.dev`",
            group.value
        );
        errors.at(group.span, message);
    } else if names::is_protected_group(&group.value) && !approved {
        let message = format!(
            "the group `{}` belongs to the Kubernetes project and API servers refuse it: use a \
             domain that you own",
            group.value
        );
        errors.at(group.span, message);
    }
}

/// The API server refuses other names, and makes the kind of lists from the name.
fn kind(model: &ResourceModel, errors: &mut Errors) {
    let kind = &model.kind;
    let upper = kind.value.starts_with(|c: char| c.is_ascii_uppercase());
    if kind.value.len() > MOST_LETTERS {
        let message = format!(
            "`{}` is too long for a kind: its lists are of the kind `{0}List`, and the API server \
             accepts at most 63 characters; shorten it to {MOST_LETTERS}",
            kind.value
        );
        errors.at(kind.span, message);
    } else if !upper || !names::is_label(&kind.value.to_lowercase()) || kind.value.contains('-') {
        let message =
            format!("`{}` is not a kind: write it in CamelCase, such as `Website`", kind.value);
        errors.at(kind.span, message);
    }
}

/// Names that stand in URLs and on kubectl's command line are DNS labels.
fn labels(model: &ResourceModel, errors: &mut Errors) {
    let mut label = |what: &str, name: &WithSpan<String>| {
        if !names::is_label(&name.value) {
            let message = format!(
                "`{}` is not a {what}: use lower-case letters, digits and `-`, beginning with a letter",
                name.value
            );
            errors.at(name.span, message);
        }
    };
    if let TextExpr::Literal(version) = &model.version {
        label("version", version);
    }
    // Defaults follow from the kind, which has a separate rule, or from the singular.
    for (what, name) in [("plural name", &model.plural), ("singular name", &model.singular)] {
        let given = name.value != model.kind.value.to_lowercase()
            && name.value != names::plural(&model.kind.value.to_lowercase())
            && (what == "singular name" || name.value != names::plural(&model.singular.value));
        if given {
            label(what, name);
        }
    }
    model.short.iter().for_each(|name| label("short name", name));
    model.categories.iter().for_each(|name| label("category", name));
}

/// Metadata makes the struct a Kubernetes object; a status is absent until a controller's first
/// write.
fn fields(model: &ResourceModel, errors: &mut Errors) {
    if !model.is_struct {
        return;
    }
    match &model.metadata {
        // The error about `#[kube]` already says this.
        None if model.is_spec() && model.is_of_kube => {}
        None if model.fields.iter().any(|field| plain(&field.ident) == "spec") => {
            let message = "a resource has a field `metadata: ObjectMeta`";
            errors.at(model.ident.span(), message);
        }
        None => {
            let message = "a resource has a field `metadata: ObjectMeta`: put the derive on the \
                           struct of the whole object, `struct Website { metadata: ObjectMeta, spec: \
                           WebsiteSpec, status: Option<WebsiteStatus> }`, not on the spec";
            errors.at(model.ident.span(), message);
        }
        Some(metadata) => {
            if is_option(&metadata.ty) {
                let message = "every object has metadata: make it `ObjectMeta`";
                errors.at(metadata.ty.span(), message);
            }
            if metadata.json.value != "metadata" {
                errors
                    .at(metadata.json.span, "API servers find the metadata under `metadata` only");
            }
        }
    }
    if let Some(status) = model.fields.iter().find(|field| field.json.value == "status")
        && !status.optional
    {
        // For an alias of `Option` the error names the type argument.
        let mut meant = names::only_argument(&status.ty).unwrap_or(&status.ty);
        // `Box<Option<…>>`
        if is_option(meant) {
            meant = names::only_argument(meant).unwrap_or(meant);
        }
        let message = format!(
            "`status` is absent in new objects: make it `Option<{}>`, without an alias",
            names::type_text(meant)
        );
        errors.at(status.ty.span(), message);
    }
    for name in ["apiVersion", "kind"] {
        if let Some(field) = model.fields.iter().find(|field| field.json.value == name) {
            let message = format!("`{name}` is written for you: remove this field");
            errors.at(field.ident.span(), message);
        }
    }
}

/// Two fields of one name cannot be read: serde finds the second field a duplicate.
fn unique_fields(model: &ResourceModel, errors: &mut Errors) {
    let mut taken: BTreeMap<&str, String> = BTreeMap::new();
    for field in model.metadata.iter().chain(&model.fields) {
        let ident = plain(&field.ident);
        if let Some(before) = taken.get(field.json.value.as_str()) {
            let message = format!(
                "`{}` is the name of the field `{before}` in JSON, too: rename one of them, or give \
                 it `#[serde(rename = \"…\")]`",
                field.json.value
            );
            errors.at(field.json.span, message);
        } else {
            taken.insert(&field.json.value, ident);
        }
    }
}

/// kubectl treats plural, singular and short names alike.
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

/// A kind with a single version serves and stores it.
fn versions(model: &ResourceModel, errors: &mut Errors) {
    let is_alone = model.hub.is_none() && model.versions.is_empty();
    if let Some(served) = model.served.as_ref().filter(|served| is_alone && !served.value) {
        let message = "a kind with a single version must serve it: list others by `versions(v1beta1::Website)`, \
                       or name the hub by `hub = v1::Website`";
        errors.at(served.span, message);
    }
    for (place, version) in model.versions.iter().enumerate() {
        let is_same = |other: &syn::Path| names::type_text(other) == names::type_text(version);
        if model.versions[..place].iter().any(is_same) {
            errors.at(version.span(), "this version is listed already");
        }
    }
}

/// Whether Go prints a character (`unicode.IsPrint`): the space, and all but controls, formats,
/// other blanks, private and unassigned characters.
///
/// std escapes the same characters, except those that its Unicode tables assign and the older ones
/// of a server do not: these pass.
fn is_printable(c: char) -> bool {
    // At the beginning of a text std also escapes the marks that extend a letter.
    let text = String::from_iter(['a', c]);
    matches!(c, '\'' | '"' | '\\') || text.escape_debug().nth(1) != Some('\\')
}

/// The API server sends the warning in a header.
fn deprecated(model: &ResourceModel, errors: &mut Errors) {
    let Some(Some(warning)) = &model.deprecated else { return };
    // The limit counts bytes.
    if !(1..=256).contains(&warning.value.len()) || !warning.value.chars().all(is_printable) {
        let message = "a warning is one line of at most 256 bytes, of visible characters and ASCII spaces only, such as \
                       `\"example.dev/v1alpha1 Website is deprecated; use v1\"`";
        errors.at(warning.span, message);
    }
}

/// The API server refuses other keys and values of labels, and other keys of annotations.
fn definition_metadata(model: &ResourceModel, errors: &mut Errors) {
    for (what, pairs) in [("a label", &model.labels), ("an annotation", &model.annotations)] {
        let mut taken: Vec<&str> = Vec::new();
        for (key, value) in pairs {
            if !names::is_label_key(&key.value) {
                let message = format!(
                    "`{}` is not a key of {what}: write `name` or `domain/name`, such as \
                     `example.dev/team`",
                    key.value
                );
                errors.at(key.span, message);
            } else if taken.contains(&key.value.as_str()) {
                errors.at(key.span, format_args!("there is already {what} `{}`", key.value));
            }
            taken.push(&key.value);
            if what == "a label" && !names::is_label_value(&value.value) {
                let message = format!(
                    "`{}` is not a value of a label: letters, digits, `-`, `_` and `.`, at most 63; an \
                     `annotation(…)` may have any text",
                    value.value
                );
                errors.at(value.span, message);
            }
        }
    }
}
