//! The keys of `#[convert(…)]`, as written on a type, on fields and on variants.

use proc_macro2::Ident;
use syn::ext::IdentExt;
use syn::parse::{Parse, ParseStream};
use syn::spanned::Spanned;
use syn::{Attribute, Expr, LitStr, Token};

use crate::crate_path;
use crate::errors::Errors;
use crate::keys::{self, KeyNames, SpannedKey, set};

pub(crate) const TYPE_KEYS: &[&str] = &["hub", "hub_only", "to_hub", "from_hub", "crate"];
pub(crate) const FIELD_KEYS: &[&str] = &["rename", "to_hub", "from_hub", "version_only"];
pub(crate) const VARIANT_KEYS: &[&str] = &["rename", "hub_only", "version_only"];

const HINTS: &[(&str, &str)] = &[
    (
        "skip",
        "a field of this version alone is `version_only`, with a value if its type has no `Default`",
    ),
    ("with", "name a function for each direction: `to_hub = …, from_hub = …`"),
    ("into", "name a function for each direction: `to_hub = …, from_hub = …`"),
    ("from", "name a function for each direction: `to_hub = …, from_hub = …`"),
    (
        "default",
        "a field of one side alone is `version_only`, or listed in `hub_only(…)` of the type",
    ),
    ("spoke", "the type of the older version names that of the hub: `hub = v1::CronJobSpec`"),
];

/// A field or variant of the hub alone.
#[derive(Clone, Debug)]
pub(super) struct HubOnly {
    pub(super) ident: Ident,
    /// The value of the field; of a variant, the value of this version.
    pub(super) value: Option<Expr>,
}

impl Parse for HubOnly {
    fn parse(input: ParseStream<'_>) -> syn::Result<Self> {
        let ident = input.call(Ident::parse_any)?;
        let value = match input.parse::<Option<Token![=]>>()? {
            Some(_) => Some(input.parse()?),
            None => None,
        };
        Ok(Self { ident, value })
    }
}

fn hub_only(key: &SpannedKey, input: ParseStream<'_>) -> syn::Result<Vec<HubOnly>> {
    let example = "hub_only(time_zone, suspend = false)";
    let all = keys::group(key, input, example, |input| {
        input.parse_terminated(HubOnly::parse, Token![,])
    })?;
    Ok(all.into_iter().collect())
}

/// Reads `= name`.
fn name(key: &SpannedKey, input: ParseStream<'_>) -> syn::Result<Ident> {
    if input.peek(Token![=]) && input.peek2(LitStr) {
        return keys::value::<LitStr>(key, input, "name")?.parse();
    }
    let expr: Expr = keys::value(key, input, "name")?;
    match &expr {
        Expr::Path(path) if path.path.get_ident().is_some() => path.path.require_ident().cloned(),
        other => {
            let message = format!("`{}` takes the name on the hub's side: `{0} = name`", key.name);
            Err(syn::Error::new(other.span(), message))
        }
    }
}

/// Keys on a type.
#[derive(Debug, Default)]
pub(super) struct TypeAttrs {
    pub(super) hub: Option<syn::Path>,
    /// Whether `hub` was written, even if unreadable.
    pub(super) tried_hub: bool,
    pub(super) hub_only: Vec<HubOnly>,
    /// Functions that complete a converted struct.
    pub(super) to_hub: Option<syn::Path>,
    pub(super) from_hub: Option<syn::Path>,
    pub(super) krate: Option<syn::Path>,
}

impl TypeAttrs {
    pub(super) fn read(attributes: &[Attribute], errors: &mut Errors) -> Self {
        let mut attrs = Self::default();
        let have_content = keys::attributes(attributes, "convert", errors, |input, errors| {
            let known = KeyNames::new(TYPE_KEYS, HINTS);
            let tried = keys::each_item(
                input,
                known,
                errors,
                |_, _| None,
                |key, input, errors| {
                    match key.name.as_str() {
                        "hub" => {
                            set(&mut attrs.hub, key, path(key, input, "v1::CronJobSpec")?, errors)
                        }
                        "hub_only" => attrs.hub_only.extend(hub_only(key, input)?),
                        "to_hub" => {
                            set(&mut attrs.to_hub, key, path(key, input, "function")?, errors)
                        }
                        "from_hub" => {
                            set(&mut attrs.from_hub, key, path(key, input, "function")?, errors);
                        }
                        _ => {
                            set(&mut attrs.krate, key, crate_path::crate_path(key, input)?, errors)
                        }
                    }
                    Ok(())
                },
            );
            attrs.tried_hub |= tried.iter().any(|tried| tried == "hub");
        });
        attrs.tried_hub |= !have_content;
        attrs
    }
}

/// Reads `= path`.
fn path(key: &SpannedKey, input: ParseStream<'_>, example: &str) -> syn::Result<syn::Path> {
    let expr: Expr = keys::value(key, input, example)?;
    match expr {
        Expr::Path(path) if path.qself.is_none() => Ok(path.path),
        other => {
            let message = format!("`{}` takes a path: `{0} = {example}`", key.name);
            Err(syn::Error::new(other.span(), message))
        }
    }
}

/// Keys on a field.
#[derive(Debug, Default)]
pub(super) struct ConvertFieldAttrs {
    pub(super) rename: Option<Ident>,
    pub(super) to_hub: Option<syn::Path>,
    pub(super) from_hub: Option<syn::Path>,
    /// The value of the field after a conversion from the hub.
    pub(super) version_only: Option<Option<Expr>>,
}

impl ConvertFieldAttrs {
    pub(super) fn read(attributes: &[Attribute], errors: &mut Errors) -> Self {
        let mut attrs = Self::default();
        let mut last = None;
        keys::attributes(attributes, "convert", errors, |input, errors| {
            let known = KeyNames::new(FIELD_KEYS, HINTS);
            keys::each_item(
                input,
                known,
                errors,
                |_, _| None,
                |key, input, errors| {
                    last = Some(key.span);
                    match key.name.as_str() {
                        "rename" => set(&mut attrs.rename, key, name(key, input)?, errors),
                        "to_hub" => {
                            set(&mut attrs.to_hub, key, path(key, input, "function")?, errors)
                        }
                        "from_hub" => {
                            set(&mut attrs.from_hub, key, path(key, input, "function")?, errors);
                        }
                        _ => set(&mut attrs.version_only, key, optional(input)?, errors),
                    }
                    Ok(())
                },
            );
        });
        let Some(span) = last else { return attrs };
        let others = attrs.rename.is_some() || attrs.to_hub.is_some() || attrs.from_hub.is_some();
        if attrs.version_only.is_some() && others {
            errors.at(span, "a field of this version alone has no counterpart in the hub");
        } else if attrs.to_hub.is_some() != attrs.from_hub.is_some() {
            errors
                .at(span, "a field has a function for each direction: `to_hub = …, from_hub = …`");
        }
        attrs
    }
}

/// Reads `= value`, if present.
fn optional(input: ParseStream<'_>) -> syn::Result<Option<Expr>> {
    match input.parse::<Option<Token![=]>>()? {
        Some(_) => Ok(Some(input.parse()?)),
        None => Ok(None),
    }
}

/// Keys on a variant.
#[derive(Debug, Default)]
pub(super) struct VariantAttrs {
    pub(super) rename: Option<Ident>,
    pub(super) hub_only: Vec<HubOnly>,
    /// The value of the hub for this variant.
    pub(super) version_only: Option<Expr>,
}

impl VariantAttrs {
    pub(super) fn read(attributes: &[Attribute], errors: &mut Errors) -> Self {
        let mut attrs = Self::default();
        keys::attributes(attributes, "convert", errors, |input, errors| {
            let known = KeyNames::new(VARIANT_KEYS, HINTS);
            keys::each_item(
                input,
                known,
                errors,
                |_, _| None,
                |key, input, errors| {
                    match key.name.as_str() {
                        "rename" => set(&mut attrs.rename, key, name(key, input)?, errors),
                        "hub_only" => attrs.hub_only.extend(hub_only(key, input)?),
                        _ => {
                            let value = keys::value(key, input, "v1::Policy::Allow")?;
                            set(&mut attrs.version_only, key, value, errors);
                        }
                    }
                    Ok(())
                },
            );
        });
        attrs
    }
}
