//! The keys of `#[controller(…)]`, as written.

use proc_macro2::{Span, TokenStream};
use quote::ToTokens;
use syn::ext::IdentExt;
use syn::parse::ParseStream;
use syn::{Attribute, Expr, Ident, Token, Type};

use crate::errors::Errors;
use crate::keys::{self, Key, WithSpan, left_over, set, unknown};

pub(crate) const KEYS: &[&str] =
    &["for", "when", "owns", "watches", "finalizer", "can", "name", "workers"];
/// Keys that name the objects which a change of a watched object concerns.
pub(crate) const MAPPER_KEYS: &[&str] = &["by", "index"];
/// Keys behind the mapper of a watch.
pub(crate) const WATCH_KEYS: &[&str] = &["when"];
pub(crate) const VERBS: &[&str] = &["get", "list", "watch", "create", "update", "patch", "delete"];

/// Keys of the struct's attribute.
#[derive(Debug, Default)]
pub(super) struct Attrs {
    pub(super) object: Option<Type>,
    /// Whether `for` was written, even if it could not be read.
    pub(super) has_for: bool,
    /// Predicate on changes of the object.
    ///
    /// Predicate of events; `None` for all of them.
    pub(super) when: Option<Expr>,
    pub(super) owns: Vec<Type>,
    pub(super) watches: Vec<WatchAttr>,
    pub(super) finalizer: Option<WithSpan<String>>,
    pub(super) grants: Vec<Grant>,
    pub(super) name: Option<WithSpan<String>>,
    pub(super) workers: Option<WithSpan<usize>>,
}

/// `watches(Secret, by = path::to::mapper)` or `watches(Secret, index = Website::BY_SECRET)`, and
/// maybe `when = labels_changed()` behind it.
#[derive(Debug)]
pub(super) struct WatchAttr {
    pub(super) kind: Type,
    /// Mapper or index, as it is written.
    pub(super) by: Expr,
    /// Whether [`by`](Self::by) is an index.
    pub(super) is_index: bool,
    pub(super) when: Option<Expr>,
}

/// One verb on one kind.
#[derive(Clone, Debug)]
pub(super) struct Grant {
    /// The verb, as RBAC prints it.
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

    /// Reads the value of one key; a second value of the same key is a fault, unless the key lists
    /// several.
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

/// Reads the arguments of `watches(…)`.
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
    if !MAPPER_KEYS.iter().any(|known| key == known) {
        let message = unknown("key", &key.to_string(), MAPPER_KEYS);
        return Err(syn::Error::new(key.span(), message));
    }
    input.parse::<Token![=]>()?;
    let by = input.parse()?;
    if input.parse::<Option<Token![,]>>()?.is_none() && !input.is_empty() {
        return Err(input.error("expected `,`"));
    }
    let when = if input.is_empty() { None } else { Some(predicate(input)?) };
    if !input.is_empty() {
        return Err(input.error(format_args!("`watches` is written `{WATCH}`")));
    }
    Ok(WatchAttr { kind, by, is_index: key == "index", when })
}

/// Reads `when = labels_changed()`.
fn predicate(input: ParseStream<'_>) -> syn::Result<Expr> {
    let key = input.call(Ident::parse_any)?;
    if !WATCH_KEYS.iter().any(|known| key == known) {
        return Err(syn::Error::new(key.span(), unknown("key", &key.to_string(), WATCH_KEYS)));
    }
    input.parse::<Token![=]>()?;
    let when = input.parse()?;
    input.parse::<Option<Token![,]>>()?;
    Ok(when)
}

/// Reads `get list Pod, create Event`: verbs, then the kind that they are granted on.
fn grants(input: ParseStream<'_>, errors: &mut Errors, into: &mut Vec<Grant>) {
    while !input.is_empty() {
        let found = errors.keep(grant(input));
        let rest = left_over(input);
        let _ = input.parse::<Option<Token![,]>>();
        let Some(found) = found else { continue };
        // Without the rest, the grant would differ from the one that was written.
        if !rest.is_empty() {
            errors.add(syn::Error::new_spanned(&rest, rest_fault(&found, &rest)));
        }
        for (verb, span, kind) in found {
            match verb_fault(&verb) {
                Some(message) => errors.at(span, message),
                None => into.push(Grant { verb, span, kind }),
            }
        }
    }
}

/// Reads one grant: verbs, then a kind.
fn grant(input: ParseStream<'_>) -> syn::Result<Vec<(String, Span, Type)>> {
    let mut verbs = Vec::new();
    while input.peek(Ident) && input.peek2(Ident) {
        let verb: Ident = input.parse()?;
        verbs.push((verb.to_string(), verb.span()));
    }
    let kind = Type::without_plus(input)?;
    if verbs.is_empty() {
        let span = syn::spanned::Spanned::span(&kind);
        return Err(syn::Error::new(
            span,
            "a grant is verbs and a kind: `get Pod`, `get list Pod`",
        ));
    }
    Ok(verbs.into_iter().map(|(verb, span)| (verb, span, kind.clone())).collect())
}

/// Returns the text against `rest`, the tokens between a grant and the next comma.
fn rest_fault(grant: &[(String, Span, Type)], rest: &TokenStream) -> String {
    let text = |tokens: TokenStream| tokens.to_string().replace(' ', "");
    let verbs: Vec<&str> = grant.iter().map(|(verb, ..)| verb.as_str()).collect();
    let kind = grant.first().map(|(.., kind)| text(kind.to_token_stream())).unwrap_or_default();
    let verbs = verbs.join(" ");
    if rest.to_string().starts_with('/') {
        let rest = text(rest.clone());
        format!(
            "subresources cannot be granted here yet, and `{verbs} {kind}` grants nothing on `{kind}{rest}`: remove it \
             from `can(…)`, grant `{verbs}` on the subresource in a Role of your own beside the operator's manifests, and \
             use it through `cx.client()`"
        )
    } else {
        format!(
            "`{rest}` stands behind the grant `{verbs} {kind}`: a grant is verbs and one kind, and a comma separates it \
             from the next: `get list Pod, create Event`"
        )
    }
}

/// Returns the text against an unknown verb; `None` for a known one.
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
