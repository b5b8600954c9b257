//! The rules of a controller, with a function per rule, and the consequence of a missing rule.

// DESIGN.md, 182: A grant that another key implies is an error

use proc_macro2::Ident;
use quote::ToTokens;
use syn::Type;
use syn::spanned::Spanned;

use super::attrs::{ChangeAttr, ControllerAttrs};
use super::expand::READ;
use super::grants::{self, Grant, GrantTarget};
use super::settings;
use crate::errors::Errors;
use crate::keys::{WithSpan, same_tokens};
use crate::names;

/// Checks every rule.
pub(super) fn check(ident: &Ident, attrs: &ControllerAttrs, errors: &mut Errors) {
    object(ident, attrs, errors);
    owned_once(attrs, errors);
    granted_once(attrs, errors);
    read_once(attrs, errors);
    finalizer(attrs, errors);
    name(attrs, errors);
    handled_once(attrs, errors);
    handlers_declare(attrs, errors);
    settings::check_all(&attrs.settings, errors);
    former_finalizers(attrs, errors);
    outcome_once(attrs, errors);
}

/// The computed root shows the outcome; a second condition for it would be a second write.
fn outcome_once(attrs: &ControllerAttrs, errors: &mut Errors) {
    let outcome = attrs.settings.iter().find(|setting| setting.is("outcome_condition"));
    if let (Some(_), Some(outcome)) = (&attrs.conditions, outcome) {
        let message = "`conditions` shows the outcome of reconciles already: leave \
                       `outcome_condition` out";
        errors.at(outcome.span(), message);
    }
}

/// The kind is named in the attribute too, so that all watched kinds can be read in a single place.
fn object(ident: &Ident, attrs: &ControllerAttrs, errors: &mut Errors) {
    if !attrs.has_for {
        errors.at(ident.span(), "say which kind it reconciles: `#[controller(for = Website, …)]`");
    }
    let Some(object) = &attrs.object else { return };
    if let Some(owned) = attrs.owns.iter().find(|owned| same_tokens(&owned.kind, object)) {
        let message =
            "a controller is notified of changes of its own kind anyway: it cannot own it";
        errors.at(owned.kind.span(), message);
    }
}

/// A kind is owned once: a second informer and a second permission for the kind would add nothing.
fn owned_once(attrs: &ControllerAttrs, errors: &mut Errors) {
    for (i, owned) in attrs.owns.iter().enumerate() {
        let kind = &owned.kind;
        if attrs.owns[..i].iter().any(|before| same_tokens(&before.kind, kind)) {
            errors.at(kind.span(), format_args!("`{}` is owned twice", kind.to_token_stream()));
        }
    }
}

/// A handler is called once for a change of a field.
fn handled_once(attrs: &ControllerAttrs, errors: &mut Errors) {
    for (i, one) in attrs.on_change.iter().enumerate() {
        let is_same = |before: &ChangeAttr| {
            before.field.text() == one.field.text() && same_tokens(&before.handler, &one.handler)
        };
        if attrs.on_change[..i].iter().any(is_same) {
            let handler = one.handler.to_token_stream().to_string().replace(' ', "");
            let message = format!(
                "`{handler}` is named twice for changes of `{}`, and would run twice",
                one.field.text()
            );
            errors.at(one.handler.span(), message);
        }
    }
}

/// The condition of a handler is a variant of the enum that the controller declares.
fn handlers_declare(attrs: &ControllerAttrs, errors: &mut Errors) {
    if attrs.conditions.as_ref().is_some_and(|conditions| conditions.set.is_some()) {
        return;
    }
    for condition in attrs.on_change.iter().filter_map(|one| one.condition.as_ref()) {
        let message = format!(
            "declare the enum of `{condition}`: `conditions(WebsiteCondition)`, which derives `Conditions`"
        );
        errors.at(condition.span(), message);
    }
}

/// A verb is granted once: a grant becomes an impl, of which there can be only one.
fn granted_once(attrs: &ControllerAttrs, errors: &mut Errors) {
    let mut before: Vec<(&str, &Grant)> = Vec::new();
    for grant in &attrs.grants {
        for verb in &grant.verbs {
            let same = before.iter().find(|(name, other)| {
                *name == verb.value && other.target.text() == grant.target.text()
            });
            if let Some((_, other)) = same {
                errors.at(verb.span, twice(&verb.value, other, grant));
            }
            before.push((&verb.value, grant));
        }
    }
}

/// Reading a kind that has a cache is granted by the key that asks for the cache. Names would not
/// limit the read.
fn read_once(attrs: &ControllerAttrs, errors: &mut Errors) {
    for grant in &attrs.grants {
        let kind = match &grant.target {
            GrantTarget::Kind(kind, None) => kind,
            GrantTarget::Kind(kind, Some(sub)) => {
                without_a_call(kind, &sub.value, &grant.verbs, attrs, errors);
                continue;
            }
            _ => continue,
        };
        let Some(key) = cache_of(kind, attrs) else { continue };
        let verbs = grant.verbs.iter().filter(|verb| READ.contains(&verb.value.as_str()));
        let verbs: Vec<&WithSpan<String>> = verbs.collect();
        let Some(first) = verbs.first() else { continue };
        let names: Vec<&str> = verbs.iter().map(|verb| verb.value.as_str()).collect();
        let them = if verbs.len() == 1 { "the verb" } else { "these verbs" };
        let message = format!(
            "`{key}` grants {} already, on all objects of the kind: leave {them} out",
            grants::verbs_text(&names)
        );
        errors.at(first.span, message);
    }
}

/// Rights on subresources of the reconciled kind that the Role has and no typed call asks for.
const OF_THE_OBJECT: &[(&str, &str)] = &[("status", "get"), ("finalizers", "update")];

/// A grant that neither adds to the Role nor permits a call has no effect.
fn without_a_call(
    kind: &Type,
    sub: &str,
    verbs: &[WithSpan<String>],
    attrs: &ControllerAttrs,
    errors: &mut Errors,
) {
    let is_object = attrs.object.as_ref().is_some_and(|object| same_tokens(object, kind));
    for verb in verbs.iter().filter(|_| is_object) {
        if OF_THE_OBJECT.contains(&(sub, verb.value.as_str())) {
            let (verb, kind, span) = (&verb.value, grants::text(kind), verb.span);
            let message =
                format!("`for = {kind}` grants `{verb} {kind}/{sub}` already: leave the verb out");
            errors.at(span, message);
        }
    }
}

/// Returns the key that gives the kind a cache.
fn cache_of(kind: &Type, attrs: &ControllerAttrs) -> Option<String> {
    let name = grants::text(kind);
    let is = |other: &Type| same_tokens(other, kind);
    if attrs.object.as_ref().is_some_and(is) {
        Some(format!("for = {name}"))
    } else if attrs.owns.iter().any(|owned| is(&owned.kind)) {
        Some(format!("owns({name})"))
    } else if attrs.watches.iter().any(|watch| is(&watch.kind)) {
        Some(format!("watches({name}, …)"))
    } else {
        None
    }
}

/// Returns the text against a verb that is granted on the same target before.
fn twice(verb: &str, before: &Grant, grant: &Grant) -> String {
    let target = grant.target.text();
    match (before.names.is_empty(), grant.names.is_empty()) {
        (true, true) => format!("`{verb} {target}` is granted twice"),
        (false, false) => {
            format!("`{verb} {target}` is granted by name above: write all names there")
        }
        (true, false) => {
            format!("`{verb} {target}` is granted for all objects already: names add nothing")
        }
        (false, true) => format!(
            "`{verb} {target}` is granted for all objects here, and by name above: leave one of them out"
        ),
    }
}

/// The API server refuses finalizers of custom resources that are not qualified.
fn finalizer(attrs: &ControllerAttrs, errors: &mut Errors) {
    if let Some(Err(fault)) = attrs.finalizer.as_ref().map(finalizer_name) {
        errors.add(fault);
    }
}

/// Checks the name of a finalizer.
pub(super) fn finalizer_name(name: &WithSpan<String>) -> syn::Result<()> {
    if names::is_qualified(&name.value) {
        return Ok(());
    }
    let message = format!(
        "`{}` is not a finalizer: use a domain that you own and a name, such as `example.dev/dns`",
        name.value
    );
    Err(syn::Error::new(name.span, message))
}

/// A finalizer that is still used is removed by its own clean-up.
fn former_finalizers(attrs: &ControllerAttrs, errors: &mut Errors) {
    let mut taken: Vec<&str> = Vec::new();
    for (name, span) in attrs.settings.iter().filter_map(|it| it.text_of("former_finalizer")) {
        if attrs.finalizer.as_ref().is_some_and(|used| used.value == name) {
            let message =
                format!("`{name}` is the present finalizer: a former one has another name");
            errors.at(span, message);
        } else if taken.contains(&name) {
            errors.at(span, format_args!("`{name}` is listed already"));
        }
        taken.push(name);
    }
}

/// The name labels metrics, logs and events.
fn name(attrs: &ControllerAttrs, errors: &mut Errors) {
    if let Some(name) = attrs.name.as_ref().filter(|name| !names::is_label(&name.value)) {
        let message = format!(
            "`{}` is not a controller name: use lower-case letters, digits and `-`, beginning with a \
             letter",
            name.value
        );
        errors.at(name.span, message);
    }
}
