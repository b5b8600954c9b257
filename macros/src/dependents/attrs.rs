//! The keys of `#[dependents(…)]` on the struct and of `#[dependent(…)]` on the fields, as written.

use proc_macro2::Ident;
use syn::parse::{Parse, ParseStream};
use syn::{Attribute, Expr, Token, Type};

use crate::crate_path;
use crate::errors::Errors;
use crate::keys::{self, KeyNames, SpannedKey, set};

pub(crate) const KEYS: &[&str] = &["by", "for", "retired", "crate"];
pub(crate) const FIELD_KEYS: &[&str] =
    &["after", "when", "ready", "optional", "adopt_if", "scope", "external", "rollout"];

/// Words that the struct's attribute does not have.
const HINTS: &[(&str, &str)] = &[
    ("owner", "the owner is the object of the controller: `by = Sites`"),
    ("controller", "write `by = Sites`"),
];
/// Words of other frameworks, and those that a field's attribute does not have.
const FIELD_HINTS: &[(&str, &str)] = &[
    ("depends_on", "the order is written `after(config)`"),
    ("before", "the order is written at the child that comes later: `after(config)`"),
    ("condition", "a child that is not always there has `when = Website::is_exposed`"),
    (
        "namespace",
        "the description sets `metadata.namespace`; in another one than the object's with `scope = cluster`",
    ),
    ("cluster", "a child that is cluster-scoped, or in another namespace, has `scope = cluster`"),
    ("adopt", "say which objects may be taken over: `adopt_if = may_adopt`"),
];

/// Keys of the struct's attribute.
#[derive(Debug, Default)]
pub(super) struct GraphAttrs {
    pub(super) by: Option<Type>,
    /// Whether `by` was written, even if unreadable.
    pub(super) has_by: bool,
    /// Kind of the objects, if the reconcile is generated.
    pub(super) object: Option<Type>,
    pub(super) retired: Vec<Type>,
    pub(super) krate: Option<syn::Path>,
}

impl GraphAttrs {
    pub(super) fn read(attributes: &[Attribute], errors: &mut Errors) -> Self {
        let mut attrs = Self::default();
        let have_content = keys::attributes(attributes, "dependents", errors, |input, errors| {
            let known = KeyNames::new(KEYS, HINTS);
            let tried = keys::each_item(
                input,
                known,
                errors,
                |_, _| None,
                |key, input, errors| attrs.key(key, input, errors),
            );
            attrs.has_by |= tried.iter().any(|tried| tried == "by");
        });
        // This fault stands for the key that is missing.
        attrs.has_by |= !have_content;
        attrs
    }

    fn key(
        &mut self,
        key: &SpannedKey,
        input: ParseStream<'_>,
        errors: &mut Errors,
    ) -> syn::Result<()> {
        match key.name.as_str() {
            "by" => set(&mut self.by, key, keys::value(key, input, "Sites")?, errors),
            "for" => set(&mut self.object, key, keys::value(key, input, "Website")?, errors),
            "crate" => set(&mut self.krate, key, crate_path::crate_path(key, input)?, errors),
            _ => {
                let read = |input: ParseStream<'_>| {
                    Ok(input.parse_terminated(Type::parse, Token![,])?.into_iter().collect())
                };
                let retired: Vec<Type> = keys::group(key, input, "retired(Ingress)", read)?;
                self.retired.extend(retired);
            }
        }
        Ok(())
    }
}

/// Keys of a field's attribute.
#[derive(Debug, Default)]
pub(super) struct DependentAttrs {
    pub(super) after: Vec<Ident>,
    pub(super) when: Option<Expr>,
    pub(super) ready: Option<Expr>,
    pub(super) adopt_if: Option<Expr>,
    pub(super) optional: Option<SpannedKey>,
    /// `scope = cluster`.
    pub(super) scope: Option<SpannedKey>,
    pub(super) external: Option<SpannedKey>,
    pub(super) rollout: Option<SpannedKey>,
}

impl DependentAttrs {
    pub(super) fn read(attributes: &[Attribute], errors: &mut Errors) -> Self {
        let mut attrs = Self::default();
        keys::attributes(attributes, "dependent", errors, |input, errors| {
            let known = KeyNames::new(FIELD_KEYS, FIELD_HINTS);
            keys::each_item(
                input,
                known,
                errors,
                |_, _| None,
                |key, input, errors| attrs.key(key, input, errors),
            );
        });
        attrs
    }

    fn key(
        &mut self,
        key: &SpannedKey,
        input: ParseStream<'_>,
        errors: &mut Errors,
    ) -> syn::Result<()> {
        match key.name.as_str() {
            "after" => {
                let read = |input: ParseStream<'_>| {
                    Ok(input.parse_terminated(Ident::parse, Token![,])?.into_iter().collect())
                };
                let after: Vec<Ident> = keys::group(key, input, "after(config)", read)?;
                self.after.extend(after);
            }
            "when" => {
                let when = keys::value(key, input, "Website::is_exposed")?;
                set(&mut self.when, key, when, errors);
            }
            "ready" => set(&mut self.ready, key, keys::value(key, input, "is_ready")?, errors),
            "scope" => {
                scope(key, input)?;
                set(&mut self.scope, key, key.clone(), errors);
            }
            "adopt_if" => {
                set(&mut self.adopt_if, key, keys::value(key, input, "may_adopt")?, errors);
            }
            name => {
                if input.peek(Token![=]) {
                    let message = format!("`{name}` has no value: its presence is the setting");
                    return Err(syn::Error::new(key.span, message));
                }
                let slot = match name {
                    "external" => &mut self.external,
                    "rollout" => &mut self.rollout,
                    _ => &mut self.optional,
                };
                set(slot, key, key.clone(), errors);
            }
        }
        Ok(())
    }
}

/// Reads the value of `scope`, which needs one.
fn scope(key: &SpannedKey, input: ParseStream<'_>) -> syn::Result<()> {
    let scope: Ident = keys::value(key, input, "cluster")?;
    if scope == "cluster" {
        return Ok(());
    }
    let message = "`scope` is `cluster`, for children that are cluster-scoped or in other namespaces; a child in the \
                   namespace of the object has none";
    Err(syn::Error::new(scope.span(), message))
}
