//! The keys of `#[projection(…)]`, as written on the struct and on the fields.

use proc_macro2::Ident;
use syn::ext::IdentExt;
use syn::parse::ParseStream;
use syn::spanned::Spanned;
use syn::{Attribute, LitStr, Token, Type};

use crate::crate_path;
use crate::errors::Errors;
use crate::keys::{self, SpannedKey, WithSpan, set, unknown};
use crate::path::PathStep;

pub(crate) const KEYS: &[&str] = &["of", "skip", "crate"];
pub(crate) const FIELD_KEYS: &[&str] = &["path", "label", "annotation", "default"];
/// Parts of the metadata that the framework never needs to find in a decoded object.
pub(crate) const SKIPPABLE: &[&str] = &["labels", "annotations"];

/// Keys of the struct's attribute.
#[derive(Debug, Default)]
pub(super) struct ProjectionAttrs {
    pub(super) of: Option<Type>,
    /// Whether `of` was written, even if unreadable.
    pub(super) has_of: bool,
    pub(super) skip: Vec<String>,
    pub(super) krate: Option<syn::Path>,
}

/// Refuses serde's attributes: they would have no effect here, and the attributes of a `Serialize`
/// beside this derive would conflict with it.
fn no_serde(attributes: &[Attribute], errors: &mut Errors) {
    for attribute in attributes.iter().filter(|attribute| attribute.path().is_ident("serde")) {
        let message = "a projection is read and written by this derive alone: say where a field lies by \
                       `#[projection(path = spec.node_name)]`, and derive neither `Serialize` nor \
                       `Deserialize` beside it";
        errors.at(attribute.path().span(), message);
    }
}

impl ProjectionAttrs {
    pub(super) fn read(attributes: &[Attribute], errors: &mut Errors) -> Self {
        let mut attrs = Self::default();
        no_serde(attributes, errors);
        let have_content = keys::attributes(attributes, "projection", errors, |input, errors| {
            let tried = keys::each_key(input, KEYS, errors, |key, input, errors| {
                attrs.key(key, input, errors)
            });
            attrs.has_of |= tried.iter().any(|tried| tried == "of");
        });
        // This fault stands for the key that is missing.
        attrs.has_of |= !have_content;
        attrs
    }

    fn key(
        &mut self,
        key: &SpannedKey,
        input: ParseStream<'_>,
        errors: &mut Errors,
    ) -> syn::Result<()> {
        if key.name == "of" {
            if input.peek(Token![=]) && input.peek2(LitStr) {
                let name = keys::text(key, input)?;
                let message =
                    format!("a kind is a type, without quotation marks: `{}`", name.value);
                return Err(syn::Error::new(name.span, message));
            }
            set(&mut self.of, key, keys::value(key, input, "Pod")?, errors);
            return Ok(());
        }
        if key.name == "crate" {
            set(&mut self.krate, key, crate_path::crate_path(key, input)?, errors);
            return Ok(());
        }
        keys::group(key, input, "skip(labels, annotations)", |input| {
            for part in input.parse_terminated(Ident::parse_any, Token![,])? {
                let name = part.to_string();
                if SKIPPABLE.contains(&name.as_str()) {
                    self.skip.push(name);
                } else {
                    let message = unknown("part of the metadata", &name, SKIPPABLE);
                    errors.at(part.span(), message);
                }
            }
            Ok(())
        })
    }
}

/// Keys of a field's attribute.
#[derive(Debug, Default)]
pub(super) struct ProjectionFieldAttrs {
    pub(super) path: Option<PathStep>,
    pub(super) label: Option<WithSpan<String>>,
    pub(super) annotation: Option<WithSpan<String>>,
    pub(super) default: Option<SpannedKey>,
}

impl ProjectionFieldAttrs {
    pub(super) fn read(attributes: &[Attribute], errors: &mut Errors) -> Self {
        let mut attrs = Self::default();
        no_serde(attributes, errors);
        keys::attributes(attributes, "projection", errors, |input, errors| {
            keys::each_key(input, FIELD_KEYS, errors, |key, input, errors| {
                match key.name.as_str() {
                    "path" => set(&mut attrs.path, key, PathStep::value(key, input)?, errors),
                    "label" => set(&mut attrs.label, key, keys::text(key, input)?, errors),
                    "annotation" => {
                        set(&mut attrs.annotation, key, keys::text(key, input)?, errors);
                    }
                    _ => set(&mut attrs.default, key, key.clone(), errors),
                }
                Ok(())
            });
        });
        attrs
    }
}
