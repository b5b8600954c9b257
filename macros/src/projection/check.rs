//! The rules of a projection, with a function per rule, and the consequence of a missing rule.

use syn::spanned::Spanned;

use super::model::{Absent, ProjectionField, ProjectionModel};
use crate::errors::Errors;

/// Checks every rule.
pub(super) fn check(model: &ProjectionModel, errors: &mut Errors) {
    if !model.has_of {
        let message = "say which kind this is a part of: `#[projection(of = Pod)]`";
        errors.at(model.ident.span(), message);
    }
    if !model.is_struct {
        return;
    }
    metadata(model, errors);
    for field in &model.fields {
        match field.pick {
            Some(part) => pick(model, field, part, errors),
            None => path(field, errors),
        }
    }
    unique(model, errors);
}

/// Metadata is needed: without metadata an object would have no name.
fn metadata(model: &ProjectionModel, errors: &mut Errors) {
    if !model.fields.iter().any(|field| field.path == ["metadata"] && field.ident == "metadata") {
        errors.at(model.ident.span(), "a projection has a field `metadata: ObjectMeta`");
    }
}

/// A single label is read instead of all of them, and any may be absent.
fn pick(model: &ProjectionModel, field: &ProjectionField, part: &str, errors: &mut Errors) {
    if !model.skip.iter().any(|skipped| skipped == part) {
        let message =
            format!("all {part} are read already: add `skip({part})` to the struct, or look there");
        errors.at(field.span, message);
    }
    if field.absent != Absent::None {
        let message = format!("an object may have no such {part}: make it `Option<String>`");
        errors.at(
            field.ty.span(),
            message.replace("labels", "label").replace("annotations", "annotation"),
        );
    }
}

/// A path must exist in some object: any other would read as absent for ever.
fn path(field: &ProjectionField, errors: &mut Errors) {
    let text = field.path.join(".");
    if text.contains(['[', ']', '*']) {
        let message = "a path goes through objects only: take the list as a `Vec` of a struct that \
                       derives `Serialize` and `Deserialize`";
        errors.at(field.span, message);
    } else if field.path.iter().any(|name| name.trim() != name || name.is_empty()) {
        let message = format!("`{text}` is not a path: write it like `spec.nodeName`");
        errors.at(field.span, message);
    } else if ["apiVersion", "kind"].contains(&text.as_str()) {
        let message = format!("`{text}` is that of the projected type: remove this field");
        errors.at(field.span, message);
    }
}

/// A value is read once: by the field that names the value or a part around it.
fn unique(model: &ProjectionModel, errors: &mut Errors) {
    for (at, field) in model.fields.iter().enumerate() {
        // Reported already.
        if field.fields.as_ref().is_some_and(|path| path.no_field().is_some()) {
            continue;
        }
        for (before_at, before) in model.fields.iter().enumerate() {
            let text = field.path.join(".");
            let around = before.path.join(".");
            if field.path == before.path {
                if before_at < at {
                    let message = format!("`{text}` is read by the field `{}`", before.ident);
                    errors.at(field.span, message);
                }
            } else if field.pick.is_none() && field.path.starts_with(&before.path) {
                let message = format!(
                    "`{text}` lies in `{around}`, which the field `{}` reads",
                    before.ident
                );
                errors.at(field.span, message);
            }
        }
    }
}
