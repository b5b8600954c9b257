//! Definitions that others manage too, and the losses if this program's own replaced them.
//!
//! A definition that a chart, `kubectl apply` or Argo CD keeps may serve versions and have fields
//! that this program's definition does not have. A replacement would remove the versions, and the
//! API server would prune the fields from each object at the next write, without a message; the
//! values could not be restored. So the stored definition is compared with the definition that
//! would be written (`crd/compat` of `windlass-core`), by the rules of the API server's own
//! pruning. A constraint that becomes stricter or looser (`required`, patterns, bounds, rules)
//! loses nothing that is stored; the log names dropped rules and defaults.

// DESIGN.md, 84: A foreign definition is replaced only if nothing is lost

use std::fmt::Write;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ManagedFieldsEntry;

use windlass_core::crd::compat::losses::{self as compared, MissingPart};

/// Largest number of losses that a text names.
const MOST_NAMED: usize = 20;

/// Whether a field manager other than `manager` owns a part of the `spec`. True without managed
/// fields: then the managers are not known.
pub(super) fn is_managed_by_others(stored: &CustomResourceDefinition, manager: &str) -> bool {
    let owns_spec = |entry: &ManagedFieldsEntry| {
        entry.fields_v1.as_ref().is_some_and(|fields| fields.0.get("f:spec").is_some())
    };
    let entries = stored.metadata.managed_fields.as_deref().unwrap_or_default();
    let mut managers = entries.iter().filter(|entry| owns_spec(entry)).peekable();
    managers.peek().is_none() || managers.any(|entry| entry.manager.as_deref() != Some(manager))
}

/// Returns each loss if `own` replaced `stored`, in words: versions, names, and properties by their
/// paths.
pub(super) fn losses(
    own: &CustomResourceDefinition,
    stored: &CustomResourceDefinition,
) -> Vec<String> {
    let words = |loss| match loss {
        MissingPart::Pruned(text) | MissingPart::Part { text, .. } => text,
        MissingPart::Retyped { path, from, to, version } => {
            format!("{path} as {from} (here it is {to}) of {version}")
        }
    };
    compared::losses(stored, own).into_iter().map(words).collect()
}

/// Returns the rules of CEL and the defaults that `stored` has and `own` has not, by their paths.
/// No object loses data without them, but objects that a rule refused are accepted.
pub(super) fn removed_rules(
    own: &CustomResourceDefinition,
    stored: &CustomResourceDefinition,
) -> Vec<String> {
    compared::removed_rules(stored, own)
}

/// Parts of this program's versions that the stored definition does not have.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct MissingParts {
    /// Properties that the API server prunes from every object that is written.
    pruned: Vec<String>,
    /// Subresources, selectable fields and types. Nothing is pruned for want of them: the API
    /// server refuses the requests that need them.
    absent: Vec<String>,
}

impl MissingParts {
    /// Describes the parts, each class with the consequence; empty when no part is missing.
    pub(super) fn describe(&self) -> String {
        let mut text = String::new();
        if !self.pruned.is_empty() {
            let pruned = join(&self.pruned);
            let _ = write!(
                text,
                "; it has not, so the API server drops from all that is written: {pruned}"
            );
        }
        if !self.absent.is_empty() {
            let _ = write!(text, "; it does not have: {}", join(&self.absent));
        }
        text
    }
}

/// Returns the parts of `own`'s versions that `stored` does not have.
pub(super) fn missing(
    own: &CustomResourceDefinition,
    stored: &CustomResourceDefinition,
) -> MissingParts {
    let mut missing = MissingParts::default();
    for loss in compared::losses(own, stored) {
        match loss {
            MissingPart::Pruned(text) => missing.pruned.push(text),
            MissingPart::Part { text, is_feature: true } => missing.absent.push(text),
            // Names and versions are compared before, because this program cannot work with others.
            MissingPart::Part { .. } => {}
            MissingPart::Retyped { path, from, to, version } => {
                missing.absent.push(format!("{path} as {from} (there it is {to}) of {version}"));
            }
        }
    }
    missing
}

/// Joins the first of `losses` into a text, and counts the others.
pub(super) fn join(losses: &[String]) -> String {
    let mut text = losses[..losses.len().min(MOST_NAMED)].join(", ");
    if losses.len() > MOST_NAMED {
        let _ = write!(text, " and {} more", losses.len() - MOST_NAMED);
    }
    text
}

#[cfg(test)]
mod tests;
