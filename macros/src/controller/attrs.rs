//! The keys of `#[controller(…)]`, as written.

use proc_macro2::Span;
use syn::ext::IdentExt;
use syn::parse::ParseStream;
use syn::{Attribute, Expr, Ident, Token, Type};

use crate::errors::Errors;
use crate::keys::{self, At, Key, set, skip_to_comma, unknown};

const KEYS: &[&str] = &["for", "when", "owns", "watches", "finalizer", "can", "name", "workers"];
const VERBS: &[&str] = &["get", "list", "watch", "create", "update", "patch", "delete"];

/// What the user wrote.
#[derive(Debug, Default)]
pub(super) struct Attrs {
    pub(super) object: Option<Type>,
    /// Was `for` written, even if it could not be read?
    pub(super) has_for: bool,
    /// Which changes of the object count.
    pub(super) when: Option<Expr>,
    pub(super) owns: Vec<Type>,
    pub(super) watches: Vec<WatchAttr>,
    pub(super) finalizer: Option<At<String>>,
    pub(super) grants: Vec<Grant>,
    pub(super) name: Option<At<String>>,
    pub(super) workers: Option<At<usize>>,
}

/// `watches(Secret, by = path::to::mapper)` or `watches(Secret, index = Website::BY_SECRET)`, and
/// maybe `when = labels_changed()` behind it.
#[derive(Debug)]
pub(super) struct WatchAttr {
    pub(super) kind: Type,
    pub(super) by: Expr,
    pub(super) is_index: bool,
    pub(super) when: Option<Expr>,
}

/// One verb on one kind.
#[derive(Clone, Debug)]
pub(super) struct Grant {
    /// As RBAC prints it.
    pub(super) verb: String,
    pub(super) span: Span,
    pub(super) kind: Type,
}

impl Attrs {
    /// Reads all attributes of the struct.
    pub(super) fn read(attributes: &[Attribute], errors: &mut Errors) -> Self {
        let mut attrs = Self::default();
        keys::attributes(attributes, "controller", errors, |input, errors| {
            let tried = keys::each_key(input, KEYS, errors, |key, input, errors| {
                attrs.key(key, input, errors)
            });
            attrs.has_for |= tried.iter().any(|tried| tried == "for");
        });
        attrs
    }

    fn key(&mut self, key: &Key, input: ParseStream<'_>, errors: &mut Errors) -> syn::Result<()> {
        match key.name.as_str() {
            "for" => {
                set(&mut self.object, key, keys::value(key, input, "Website")?, errors);
            }
            "when" => {
                let when = keys::value(key, input, "generation_changed()")?;
                set(&mut self.when, key, when, errors);
            }
            "owns" => keys::group(key, input, "owns(Deployment, Service)", |input| {
                let kinds =
                    input.parse_terminated(<Type as syn::parse::Parse>::parse, Token![,])?;
                self.owns.extend(kinds);
                Ok(())
            })?,
            "watches" => self.watches.push(keys::group(key, input, WATCH, watch)?),
            "finalizer" => set(&mut self.finalizer, key, keys::text(key, input)?, errors),
            "can" => {
                let read = |input: ParseStream<'_>| {
                    grants(input, errors, &mut self.grants);
                    Ok(())
                };
                keys::group(key, input, "can(get Pod, list Pod)", read)?;
            }
            "name" => set(&mut self.name, key, keys::text(key, input)?, errors),
            _ => set(&mut self.workers, key, keys::number(key, input)?, errors),
        }
        Ok(())
    }
}

const WATCH: &str = "watches(Secret, by = sites_of_secret)";

fn watch(input: ParseStream<'_>) -> syn::Result<WatchAttr> {
    let kind: Type = input.parse()?;
    let missing = |span| {
        let message =
            format!("say which objects a change concerns, by a function of it: `{WATCH}`");
        syn::Error::new(span, message)
    };
    if input.parse::<Option<Token![,]>>()?.is_none() || input.is_empty() {
        return Err(missing(syn::spanned::Spanned::span(&kind)));
    }
    let key = input.call(Ident::parse_any)?;
    if key != "by" && key != "index" {
        let message = unknown("key", &key.to_string(), &["by", "index"]);
        return Err(syn::Error::new(key.span(), message));
    }
    input.parse::<Token![=]>()?;
    let by = input.parse()?;
    input.parse::<Option<Token![,]>>()?;
    let when = if input.is_empty() { None } else { Some(predicate(input)?) };
    if !input.is_empty() {
        return Err(input.error(format_args!("`watches` is written `{WATCH}`")));
    }
    Ok(WatchAttr { kind, by, is_index: key == "index", when })
}

/// `when = labels_changed()`
fn predicate(input: ParseStream<'_>) -> syn::Result<Expr> {
    let key = input.call(Ident::parse_any)?;
    if key != "when" {
        return Err(syn::Error::new(key.span(), unknown("key", &key.to_string(), &["when"])));
    }
    input.parse::<Token![=]>()?;
    let when = input.parse()?;
    input.parse::<Option<Token![,]>>()?;
    Ok(when)
}

/// `get list Pod, create Event`: verbs, then the kind they are granted on.
fn grants(input: ParseStream<'_>, errors: &mut Errors, into: &mut Vec<Grant>) {
    while !input.is_empty() {
        if let Some(found) = errors.keep(grant(input)) {
            for (verb, span, kind) in found {
                match verb_fault(&verb) {
                    Some(message) => errors.at(span, message),
                    None => into.push(Grant { verb, span, kind }),
                }
            }
        }
        skip_to_comma(input);
        let _ = input.parse::<Option<Token![,]>>();
    }
}

fn grant(input: ParseStream<'_>) -> syn::Result<Vec<(String, Span, Type)>> {
    let mut verbs = Vec::new();
    while input.peek(Ident) && input.peek2(Ident) {
        let verb: Ident = input.parse()?;
        verbs.push((verb.to_string(), verb.span()));
    }
    let kind: Type = input.parse()?;
    if verbs.is_empty() {
        let span = syn::spanned::Spanned::span(&kind);
        return Err(syn::Error::new(
            span,
            "a grant is verbs and a kind: `get Pod`, `get list Pod`",
        ));
    }
    Ok(verbs.into_iter().map(|(verb, span)| (verb, span, kind.clone())).collect())
}

fn verb_fault(verb: &str) -> Option<String> {
    match verb {
        known if VERBS.contains(&known) => None,
        "apply" => {
            Some("server-side apply is the verb `patch`, and `create` for new objects".into())
        }
        "replace" => Some("replacing an object is the verb `update`".into()),
        other => Some(unknown("verb", other, VERBS)),
    }
}
