//! The changes by which stored data is lost, in the words of an operator that would replace the
//! definition of another manager (`windlass-runtime`, `manager/foreign.rs`).

// DESIGN.md, 84: A foreign definition is replaced only if nothing is lost

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;

use super::change::DefinitionChange;
use super::changes;
use super::rule::CompatRule;

/// A part that only one of two definitions has.
#[derive(Clone, Debug, PartialEq, Eq)]
#[doc(hidden)]
pub enum MissingPart {
    /// The API server prunes the field at this path, with the version.
    Pruned(String),
    /// Values are of another type: they are refused, and not pruned.
    Retyped {
        /// Path of the field.
        path: String,
        /// Type in the old definition.
        from: String,
        /// Type in the new definition.
        to: String,
        /// Version.
        version: String,
    },
    /// A name, a version, a subresource or a selectable field, as a noun.
    Part {
        /// The part, with its version if it belongs to one.
        text: String,
        /// Whether the part is a feature of a version that stays.
        is_feature: bool,
    },
}

/// Returns each loss if `new` replaced `old`, in the order of the definition.
#[doc(hidden)]
#[must_use]
pub fn losses(old: &CustomResourceDefinition, new: &CustomResourceDefinition) -> Vec<MissingPart> {
    changes(old, new).all().iter().filter_map(loss).collect()
}

/// Returns the loss by a change; `None` if nothing is lost.
fn loss(change: &DefinitionChange) -> Option<MissingPart> {
    let version = change.version.clone().unwrap_or_default();
    let part = |text, is_feature| Some(MissingPart::Part { text, is_feature });
    match change.rule {
        CompatRule::NameChanged
        | CompatRule::ScopeChanged
        | CompatRule::AliasRemoved
        | CompatRule::ConversionRemoved
        | CompatRule::PruningStarted
        | CompatRule::VersionRemoved
        | CompatRule::VersionUnserved => part(change.subject.clone(), false),
        CompatRule::SubresourceRemoved | CompatRule::SelectableFieldRemoved => {
            part(format!("{} of {version}", change.subject), true)
        }
        CompatRule::FieldRemoved => {
            Some(MissingPart::Pruned(format!("{} of {version}", change.path)))
        }
        CompatRule::OpenFieldsRemoved => {
            Some(MissingPart::Pruned(format!("{} (fields of any name) of {version}", change.path)))
        }
        CompatRule::StorageVersionLossy => Some(MissingPart::Pruned(change.subject.clone())),
        CompatRule::TypeChanged => {
            let (from, to) = change.types.clone()?;
            Some(MissingPart::Retyped { path: place(change).to_owned(), from, to, version })
        }
        _ => None,
    }
}

/// Returns the CEL rules and defaults that `new` does not have, in words. No object loses data
/// without them, but objects that a rule refused are accepted.
#[doc(hidden)]
#[must_use]
pub fn removed_rules(
    old: &CustomResourceDefinition,
    new: &CustomResourceDefinition,
) -> Vec<String> {
    let changes = changes(old, new);
    let words = |change: &DefinitionChange| {
        let version = change.version.as_deref().unwrap_or_default();
        let preposition = match change.rule {
            CompatRule::CelRemoved => "on",
            CompatRule::DefaultRemoved => "of",
            _ => return None,
        };
        Some(format!("{} {preposition} {} of {version}", change.subject, place(change)))
    };
    changes.all().iter().filter_map(words).collect()
}

/// Returns the path of a change, in words for the whole object.
fn place(change: &DefinitionChange) -> &str {
    if change.path == "." { "the object" } else { &change.path }
}
