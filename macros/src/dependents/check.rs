//! The rules of a graph, with a function per rule.

use syn::spanned::Spanned;
use syn::{Data, Fields};

use super::expand::PRECONDITION;
use super::model::GraphModel;
use crate::errors::Errors;
use crate::keys::{same_tokens, unknown};

/// Checks every rule.
pub(super) fn check(model: &GraphModel<'_>, errors: &mut Errors) {
    shape(model, errors);
    names(model, errors);
    precondition(model, errors);
    cycles(model, errors);
    retired(model, errors);
    externals(model, errors);
    rollouts(model, errors);
}

/// A rollout has several children, which are in the namespace of the object.
fn rollouts(model: &GraphModel<'_>, errors: &mut Errors) {
    for node in model.nodes.iter().filter(|node| node.is_rollout()) {
        let attrs = &node.attrs;
        if !node.is_bulk && !node.is_external() {
            let message = "a rollout changes several children one after the other: `shards: Vec<StatefulSet>`";
            errors.at(node.kind.span(), message);
        }
        for key in [&attrs.optional, &attrs.scope, &attrs.external].into_iter().flatten() {
            errors.at(key.span, format_args!("a rollout has no `{}`", key.name));
        }
        if let Some(adopt) = &attrs.adopt_if {
            errors.at(adopt.span(), "a rollout has no `adopt_if`");
        }
    }
}

/// An external resource is no object, and has neither a kind that may be missing nor an owner.
fn externals(model: &GraphModel<'_>, errors: &mut Errors) {
    for node in model.nodes.iter().filter(|node| node.is_external()) {
        if node.is_bulk {
            let message = "an external resource is one field: its type is the provider, `database: Databases`";
            errors.at(node.kind.span(), message);
        }
        let attrs = &node.attrs;
        for key in [&attrs.optional, &attrs.scope].into_iter().flatten() {
            let name = &key.name;
            let message =
                format!("an external resource has no `{name}`: it is not an object of the cluster");
            errors.at(key.span, message);
        }
        if let Some(adopt) = &attrs.adopt_if {
            let message = "an external resource has no `adopt_if`: an existing one is imported by the annotation \
                           `windlass.dev/external-name`";
            errors.at(adopt.span(), message);
        }
    }
}

/// A graph is a struct of children, for a single controller.
fn shape(model: &GraphModel<'_>, errors: &mut Errors) {
    let span = model.ident.span();
    if !model.has_by {
        errors.at(span, "say which controller makes the children: `#[dependents(by = Sites)]`");
    }
    if !model.input.generics.params.is_empty() {
        errors.at(model.input.generics.span(), "a graph has no parameters: its children are kinds");
    }
    match &model.input.data {
        Data::Struct(data) if matches!(data.fields, Fields::Named(_)) => {
            if model.nodes.is_empty() {
                errors.at(span, "the graph has no children: each field is one, `app: Deployment`");
            }
        }
        _ => errors.at(span, "a graph is a struct with named fields, each of which is a child"),
    }
}

/// `after` names other fields, each once.
fn names(model: &GraphModel<'_>, errors: &mut Errors) {
    for node in &model.nodes {
        let others = model.nodes.iter().map(|other| other.ident.to_string());
        let others: Vec<String> = others.filter(|other| node.ident != other).collect();
        let known: Vec<&str> = others.iter().map(String::as_str).collect();
        for (at, after) in node.attrs.after.iter().enumerate() {
            if *after == node.ident {
                errors.at(after.span(), format_args!("`{after}` comes after itself"));
            } else if !known.contains(&after.to_string().as_str()) {
                errors.at(after.span(), unknown("field", &after.to_string(), &known));
            } else if node.attrs.after[..at].contains(after) {
                errors.at(after.span(), format_args!("`{after}` stands twice"));
            }
        }
    }
}

/// With `for` the trait has a function of that name, beside those of the fields.
fn precondition(model: &GraphModel<'_>, errors: &mut Errors) {
    let taken = model.nodes.iter().find(|node| node.ident == PRECONDITION);
    if let (Some(_), Some(node)) = (&model.object, taken) {
        let message = "with `for` this is the name of the function that decides whether children \
                       are applied: give the child another one";
        errors.at(node.ident.span(), message);
    }
}

/// No way along `after` leads back to the beginning. A cycle is reported once, at its last edge.
fn cycles(model: &GraphModel<'_>, errors: &mut Errors) {
    let mut is_done = vec![false; model.nodes.len()];
    for at in 0..model.nodes.len() {
        search(model, at, &mut Vec::new(), &mut is_done, errors);
    }
}

/// Follows `after` from a field; `way` leads there.
fn search(
    model: &GraphModel<'_>,
    at: usize,
    way: &mut Vec<usize>,
    is_done: &mut [bool],
    errors: &mut Errors,
) {
    if is_done[at] {
        return;
    }
    way.push(at);
    for (next, name) in edges(model, at) {
        // That a field comes after itself is reported by the rule for names.
        if next == at {
            continue;
        }
        match way.iter().position(|before| *before == next) {
            Some(start) => {
                let cycle = way[start..].iter().chain([&next]);
                let texts: Vec<String> =
                    cycle.map(|at| model.nodes[*at].ident.to_string()).collect();
                let message = format!(
                    "`after` makes a cycle, in which nothing is first: {}",
                    texts.join(" → ")
                );
                errors.at(name.span(), message);
            }
            None => search(model, next, way, is_done, errors),
        }
    }
    way.pop();
    is_done[at] = true;
}

/// Returns the fields before a field, with their names as written there.
fn edges<'a>(model: &'a GraphModel<'_>, at: usize) -> Vec<(usize, &'a proc_macro2::Ident)> {
    let names = model.nodes[at].attrs.after.iter();
    let found = names.filter_map(|name| {
        let next = model.nodes.iter().position(|node| node.ident == *name)?;
        Some((next, name))
    });
    found.collect()
}

/// A kind is retired when no field has it.
fn retired(model: &GraphModel<'_>, errors: &mut Errors) {
    for (at, kind) in model.retired.iter().enumerate() {
        if model.nodes.iter().any(|node| same_tokens(&node.kind, kind)) {
            let message = "a field has this kind: its children are removed without `retired`";
            errors.at(kind.span(), message);
        } else if model.retired[..at].iter().any(|before| same_tokens(before, kind)) {
            errors.at(kind.span(), "this kind is retired twice");
        }
    }
}
