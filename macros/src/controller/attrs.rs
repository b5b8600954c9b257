//! The keys of `#[controller(…)]`, as written.

use proc_macro2::{Span, TokenStream};
use quote::{ToTokens, quote};
use syn::ext::IdentExt;
use syn::parse::{Parse, ParseStream};
use syn::{Attribute, Expr, Ident, LitStr, Path, Token, Type};

use super::grants::{self, Grant};
use super::hints;
use super::settings::{self, Setting};
use crate::errors::Errors;
use crate::keys::{self, KeyNames, SpannedKey, WithSpan, set, unknown};
use crate::path::{ParsedPath, Segment};

pub(crate) const KEYS: &[&str] = &[
    "for",
    "when",
    "owns",
    "dependents",
    "watches",
    "index",
    "finalizer",
    "can",
    "name",
    "workers",
    "conditions",
    "on_change",
    "with",
    "crate",
    // Settings: `settings::SINGLE` and `settings::GROUPS`.
    "resync",
    "reconcile_timeout",
    "outcome_condition",
    "report_failures",
    "report_every_failure",
    "cancel_superseded",
    "track_changes",
    "track_changes_within",
    "change_log",
    "former_finalizer",
    "task_per_object",
    "retry",
    "debounce",
    "rate_limit",
    "loop_guard",
    "timer",
];
/// Keys that name the objects which a change of a watched object concerns.
pub(crate) const MAPPER_KEYS: &[&str] = &["by", "index"];
/// Keys behind the mapper of a watch.
pub(crate) const WATCH_KEYS: &[&str] = &["when"];
/// Keys behind the handler of a field.
pub(crate) const HANDLER_KEYS: &[&str] = &["condition"];
/// Keys of the struct's attribute.
#[derive(Debug, Default)]
pub(super) struct ControllerAttrs {
    pub(super) object: Option<Type>,
    /// Whether `for` was written, even if unreadable.
    pub(super) has_for: bool,
    /// Predicate on changes of the object.
    ///
    /// Predicate of events; `None` for all of them.
    pub(super) when: Option<Expr>,
    pub(super) owns: Vec<OwnsAttr>,
    /// Graphs of children.
    pub(super) dependents: Vec<Type>,
    pub(super) watches: Vec<WatchAttr>,
    pub(super) finalizer: Option<WithSpan<String>>,
    pub(super) grants: Vec<Grant>,
    pub(super) name: Option<WithSpan<String>>,
    pub(super) workers: Option<WithSpan<usize>>,
    /// Indexes that are built before the first reconcile.
    pub(super) indexes: Vec<Expr>,
    /// Settings with a literal, in the order in which they are written.
    pub(super) settings: Vec<Setting>,
    /// The conditions that are kept in the status.
    pub(super) conditions: Option<ConditionsAttr>,
    /// Handlers of changed fields.
    pub(super) on_change: Vec<ChangeAttr>,
    /// Function of the builder, for everything else.
    pub(super) with: Option<Expr>,
    /// Path of the framework; `None` for `::windlass`.
    pub(super) krate: Option<Path>,
}

/// `conditions(WebsiteCondition)`, or `conditions` alone.
#[derive(Debug)]
pub(super) struct ConditionsAttr {
    /// The enum; `None` without declared conditions.
    pub(super) set: Option<Type>,
    /// Position of the key.
    pub(super) span: Span,
}

/// `spec.host = rehost` in `on_change(…)`.
#[derive(Debug)]
pub(super) struct ChangeAttr {
    /// Path from the object to the field.
    pub(super) field: ParsedPath,
    /// Method of the controller, or path of a function.
    pub(super) handler: Path,
    /// Variant of the declared conditions that shows the outcome.
    pub(super) condition: Option<Ident>,
}

/// `Deployment` in `owns(…)`, and maybe `when = generation_changed()` behind the kind.
#[derive(Debug)]
pub(super) struct OwnsAttr {
    pub(super) kind: Type,
    pub(super) when: Option<Expr>,
}

/// `watches(Secret, by = path::to::mapper)` or `watches(Secret, index = Website::BY_SECRET)`, and
/// maybe `when = labels_changed()` behind that.
#[derive(Debug)]
pub(super) struct WatchAttr {
    pub(super) kind: Type,
    /// Mapper or index, as written.
    pub(super) by: Expr,
    /// Whether [`by`](Self::by) is an index.
    pub(super) is_index: bool,
    pub(super) when: Option<Expr>,
}

impl ControllerAttrs {
    /// Reads all attributes of the struct.
    pub(super) fn read(attributes: &[Attribute], errors: &mut Errors) -> Self {
        let mut attrs = Self::default();
        keys::attributes(attributes, "controller", errors, |input, errors| {
            // Words of other frameworks are read as keys, and answered by a text of their own.
            let known: Vec<&str> = KEYS.iter().copied().chain(hints::words()).collect();
            let known = KeyNames { suggested: KEYS, ..KeyNames::new(&known, &[]) };
            let tried = keys::each_item(
                input,
                known,
                errors,
                |_, _| None,
                |key, input, errors| attrs.key(key, input, errors),
            );
            let is_for =
                |tried: &String| matches!(tried.as_str(), "for" | "kind" | "object" | "of");
            attrs.has_for |= tried.iter().any(is_for);
        });
        attrs
    }

    /// Reads the value of a key; a second value of the same key is a fault, unless the key lists
    /// several.
    fn key(
        &mut self,
        key: &SpannedKey,
        input: ParseStream<'_>,
        errors: &mut Errors,
    ) -> syn::Result<()> {
        if let Some(hint) = hints::of(&key.name) {
            let message = format!("`{}` is not a key of a controller: {hint}", key.name);
            return Err(syn::Error::new(key.span, message));
        }
        match key.name.as_str() {
            "for" => {
                no_text(key, input)?;
                set(&mut self.object, key, keys::value(key, input, "Website")?, errors);
            }
            "when" => {
                let when = keys::value(key, input, "generation_changed()")?;
                set(&mut self.when, key, when, errors);
            }
            "owns" => self.owns.extend(keys::group(key, input, OWNS, owns)?),
            "dependents" => {
                let read = |input: ParseStream<'_>| {
                    Ok(input.parse_terminated(Type::parse, Token![,])?.into_iter().collect())
                };
                let graphs: Vec<Type> = keys::group(key, input, "dependents(Children)", read)?;
                self.dependents.extend(graphs);
            }
            "watches" => self.watches.push(keys::group(key, input, WATCH, watch)?),
            "index" => {
                let read = |input: ParseStream<'_>| {
                    Ok(input.parse_terminated(Expr::parse, Token![,])?.into_iter().collect())
                };
                let indexes: Vec<Expr> = keys::group(key, input, "index(Website::BY_HOST)", read)?;
                self.indexes.extend(indexes);
            }
            "conditions" => {
                let found = conditions(key, input)?;
                set(&mut self.conditions, key, found, errors);
            }
            "on_change" => self.on_change.extend(keys::group(key, input, CHANGE, changes)?),
            "finalizer" => set(&mut self.finalizer, key, keys::text(key, input)?, errors),
            "can" => {
                let read = |input: ParseStream<'_>| {
                    grants::read(input, errors, &mut self.grants);
                    Ok(())
                };
                keys::group(key, input, "can(get Pod, list Pod)", read)?;
            }
            "name" => set(&mut self.name, key, keys::text(key, input)?, errors),
            "workers" => {
                set(&mut self.workers, key, settings::workers(key, input)?, errors);
            }
            "with" => {
                let with = keys::value(key, input, "Self::settings")?;
                set(&mut self.with, key, with, errors);
            }
            "crate" => set(&mut self.krate, key, path(key, input)?, errors),
            _ => self.settings.push(settings::read(key, input)?),
        }
        Ok(())
    }

    /// Returns the path of the framework.
    pub(super) fn krate(&self) -> TokenStream {
        self.krate.as_ref().map_or_else(|| quote!(::windlass), ToTokens::to_token_stream)
    }
}

/// Reads `= path`, or `= "path"` in serde's form.
fn path(key: &SpannedKey, input: ParseStream<'_>) -> syn::Result<Path> {
    let example = "my_facade::windlass";
    if input.peek(Token![=]) && input.peek2(LitStr) {
        return keys::value::<LitStr>(key, input, example)?.parse_with(Path::parse_mod_style);
    }
    let found: ModPath = keys::value(key, input, example)?;
    Ok(found.0)
}

/// A path without arguments, which may begin with `crate`.
struct ModPath(Path);

impl Parse for ModPath {
    fn parse(input: ParseStream<'_>) -> syn::Result<Self> {
        Path::parse_mod_style(input).map(Self)
    }
}

/// Returns the fault of a text where a type is expected.
fn type_in_quotes(text: &LitStr) -> syn::Error {
    let name = text.value();
    syn::Error::new(text.span(), format!("a kind is a type, without quotation marks: `{name}`"))
}

/// Checks that no text stands behind `=`.
fn no_text(key: &SpannedKey, input: ParseStream<'_>) -> syn::Result<()> {
    if input.peek(Token![=]) && input.peek2(LitStr) {
        let text: LitStr = keys::value(key, input, "Website")?;
        return Err(type_in_quotes(&text));
    }
    Ok(())
}

const CONDITIONS: &str = "conditions(WebsiteCondition)";

/// Reads `(WebsiteCondition)` behind `conditions`, or nothing.
fn conditions(key: &SpannedKey, input: ParseStream<'_>) -> syn::Result<ConditionsAttr> {
    let span = key.span;
    if input.is_empty() || input.peek(Token![,]) {
        return Ok(ConditionsAttr { set: None, span });
    }
    let set = keys::group(key, input, CONDITIONS, |input| {
        if input.peek(LitStr) {
            let text: LitStr = input.parse()?;
            let message = format!(
                "the conditions are an enum that derives `Conditions`, without quotation marks: \
                 `{}`",
                text.value()
            );
            return Err(syn::Error::new(text.span(), message));
        }
        let set: Type = input.parse()?;
        if input.is_empty() {
            return Ok(set);
        }
        Err(input.error("the conditions of a controller are one enum"))
    })?;
    Ok(ConditionsAttr { set: Some(set), span })
}

const CHANGE: &str = "on_change(spec.host = rehost)";

/// Reads the arguments of `on_change(…)`.
fn changes(input: ParseStream<'_>) -> syn::Result<Vec<ChangeAttr>> {
    let mut found = Vec::new();
    while !input.is_empty() {
        if input.peek(LitStr) {
            let message = format!("a field is a path without quotation marks: `{CHANGE}`");
            return Err(syn::Error::new(input.span(), message));
        }
        let field = ParsedPath::parse(input)?;
        if !input.peek(Token![=]) || input.peek(Token![=>]) {
            let message = format!("name the handler of the field: `{CHANGE}`");
            return Err(syn::Error::new(input.span(), message));
        }
        input.parse::<Token![=]>()?;
        if let [Segment::Field(key)] = field.segments.as_slice()
            && HANDLER_KEYS.iter().any(|known| key == known)
        {
            condition_of(key, input, found.last_mut())?;
        } else {
            let handler = Path::parse_mod_style(input)?;
            found.push(ChangeAttr { field, handler, condition: None });
        }
        if !input.is_empty() {
            input.parse::<Token![,]>()?;
        }
    }
    Ok(found)
}

/// Reads the condition that shows the outcome of the handler before the condition.
fn condition_of(
    key: &Ident,
    input: ParseStream<'_>,
    handler: Option<&mut ChangeAttr>,
) -> syn::Result<()> {
    if input.peek(LitStr) {
        let text: LitStr = input.parse()?;
        let message =
            format!("name the variant, without quotation marks: `condition = {}`", text.value());
        return Err(syn::Error::new(text.span(), message));
    }
    let variant = input.call(Ident::parse_any)?;
    let Some(handler) = handler else {
        let message = format!(
            "a condition stands behind its handler: `on_change(spec.host = rehost, condition = {variant})`"
        );
        return Err(syn::Error::new(key.span(), message));
    };
    if handler.condition.is_some() {
        return Err(syn::Error::new(key.span(), "a handler has one condition"));
    }
    handler.condition = Some(variant);
    Ok(())
}

const OWNS: &str = "owns(Deployment, Service)";

/// Reads the arguments of `owns(…)`: kinds, and a predicate behind a single kind.
fn owns(input: ParseStream<'_>) -> syn::Result<Vec<OwnsAttr>> {
    let mut owned: Vec<OwnsAttr> = Vec::new();
    while !input.is_empty() {
        if input.peek(LitStr) {
            return Err(type_in_quotes(&input.parse()?));
        }
        if input.peek(Ident::peek_any) && input.peek2(Token![=]) {
            let span = input.span();
            let when = predicate(input)?;
            let [only] = owned.as_mut_slice() else {
                let message = "a predicate is of one kind: give each kind an `owns(Pod, when = …)` of its own";
                return Err(syn::Error::new(span, message));
            };
            only.when = Some(when);
            return if input.is_empty() {
                Ok(owned)
            } else {
                Err(input.error("`when` stands last: give further kinds an `owns(…)` of their own"))
            };
        }
        owned.push(OwnsAttr { kind: kind(input, OWNS)?, when: None });
        if !input.is_empty() {
            input.parse::<Token![,]>()?;
        }
    }
    Ok(owned)
}

/// Reads the type of a kind. A list in brackets would be the type of a slice.
fn kind(input: ParseStream<'_>, example: &str) -> syn::Result<Type> {
    let kind: Type = input.parse()?;
    match kind {
        Type::Slice(slice) => {
            let message = format!("a kind stands without brackets: `{example}`");
            Err(syn::Error::new(slice.bracket_token.span.join(), message))
        }
        kind => Ok(kind),
    }
}

const WATCH: &str = "watches(Secret, by = sites_of_secret)";

/// Reads the arguments of `watches(…)`.
fn watch(input: ParseStream<'_>) -> syn::Result<WatchAttr> {
    if input.peek(LitStr) {
        return Err(type_in_quotes(&input.parse()?));
    }
    let kind = kind(input, WATCH)?;
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
    if MAPPER_KEYS.iter().any(|known| key == known) {
        let message = "a function (`by`) or an index says which objects a change concerns: write one of them, and \
                       another `watches(…)` for the other";
        return Err(syn::Error::new(key.span(), message));
    }
    if !WATCH_KEYS.iter().any(|known| key == known) {
        return Err(syn::Error::new(key.span(), unknown("key", &key.to_string(), WATCH_KEYS)));
    }
    input.parse::<Token![=]>()?;
    let when = input.parse()?;
    input.parse::<Option<Token![,]>>()?;
    Ok(when)
}
