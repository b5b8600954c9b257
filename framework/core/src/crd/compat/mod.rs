//! Comparison of two definitions of the same kind: the changes, and the stored objects and clients
//! that they break.
//!
//! The rules are those of crdify, of pruning, and of the ratcheting by which an API server
//! tolerates invalid values that an update leaves unchanged (Kubernetes 1.33 and newer). Every
//! change has a [`ChangeKind`]; tests compare the verdicts with the behaviour of API servers.
//! Absent: the containment of patterns, CEL rules and alternatives (`oneOf`). A change of these
//! counts as stricter.
//!
//! `names` compares the definitions, `versions` pairs their versions, `schema` walks the schemas of
//! a pair, `values` compares constraints of a value, `rules` the CEL rules; `walk` receives the
//! changes that these three find; `losses` selects the changes by which stored data is lost.

// DESIGN.md, 142: A change of a definition breaks if a stored object or an accepted request does

mod change;
#[doc(hidden)]
pub mod losses;
mod names;
mod node;
mod rule;
mod rules;
mod schema;
mod values;
mod versions;
mod walk;

#[doc(hidden)]
pub use node::plain_numbers;

pub use change::{DefinitionChange, DefinitionChanges};
pub use rule::ChangeKind;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;

use super::CustomResource;
use super::files::definitions_from_yaml;
use crate::error::{Error, ErrorKind};
use crate::resource::ResourceExt;

/// Returns the changes from `old` to `new`, two definitions of the same kind.
///
/// `old` may come from a cluster: the versions of `status.storedVersions` in `old` count as stored.
/// Fields that an API server fills in are no change.
///
/// ```
/// # extern crate windlass_core as windlass;
/// use windlass::crd::{changes, definitions_from_yaml};
///
/// # let text = r#"{"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
/// # "metadata": {"name": "sites.example.dev"}, "spec": {"group": "example.dev", "scope": "Namespaced",
/// # "names": {"kind": "Site", "plural": "sites"}, "versions": [{"name": "v1", "served": true,
/// # "storage": true, "schema": {"openAPIV3Schema": {"type": "object", "properties":
/// # {"host": {"type": "string"}}}}}]}}"#;
/// let old = definitions_from_yaml(text)?.remove(0);
/// let mut new = old.clone();
/// new.spec.versions[0].name = "v2".to_owned();
/// let changes = changes(&old, &new);
/// assert!(!changes.is_compatible());
/// assert_eq!(changes.breaking().next().unwrap().rule(), "version-removed");
/// # Ok::<(), windlass::Error>(())
/// ```
#[must_use]
pub fn changes(
    old: &CustomResourceDefinition,
    new: &CustomResourceDefinition,
) -> DefinitionChanges {
    let mut found = Vec::new();
    let spec = |definition: &CustomResourceDefinition| {
        let mut spec = serde_json::to_value(&definition.spec).unwrap_or_default();
        node::plain_numbers(&mut spec);
        spec
    };
    let (old_spec, new_spec) = (spec(old), spec(new));
    names::compare(&old_spec, &new_spec, &mut found);
    let status = old.status.as_ref().and_then(|status| status.stored_versions.clone());
    versions::compare(&old_spec, &new_spec, &status.unwrap_or_default(), &mut found);
    DefinitionChanges::new(old.name(), found)
}

/// Returns the changes from the definition in `old`, a YAML text, to that of `K`.
///
/// The text may have other documents; the definition is found by name.
///
/// # Errors
/// Those of [`definitions_from_yaml`] and of [`CustomResource::crd`]; [`ErrorKind::NotFound`]
/// without a definition of that name.
pub fn changes_since<K: CustomResource>(old: &str) -> Result<DefinitionChanges, Error> {
    let new = K::crd()?;
    let all = definitions_from_yaml(old)?;
    let Some(old) = all.iter().find(|definition| definition.name() == new.name()) else {
        let names: Vec<&str> = all.iter().map(ResourceExt::name).collect();
        let text = format!(
            "cannot compare the definition {:?} with its old text: that has the definitions {names:?}; \
             a kind whose plural or group changes is another kind",
            new.name()
        );
        return Err(Error::new(ErrorKind::NotFound, text));
    };
    Ok(changes(old, &new))
}

/// Checks in a test that the definition of `K` breaks no object and no client of the definition in
/// `old`, a YAML text.
///
/// ```no_run
/// # extern crate windlass_core as windlass;
/// # fn test<Website: windlass::crd::CustomResource>() {
/// # let crd = "";
/// # macro_rules! include_str { ($path:literal) => { crd }; }
/// // The file is the output of `manifests` of the last release.
/// windlass::crd::assert_compatible::<Website>(include_str!("crd.yaml"));
/// # }
/// ```
///
/// [`changes_since`] returns the changes for a verdict of your own, such as one that allows
/// [`ChangeKind::Ratcheted`].
///
/// # Panics
/// With each change that breaks, the path, the reason and the remedy; with the error of
/// [`changes_since`].
#[track_caller]
pub fn assert_compatible<K: CustomResource>(old: &str) {
    match changes_since::<K>(old) {
        Ok(changes) if changes.is_compatible() => {}
        Ok(changes) => panic!(
            "the definition breaks objects or clients of the old one:\n{changes}\nchange the types, or \
             replace the old text if the break is meant"
        ),
        Err(error) => panic!("{error}"),
    }
}

#[cfg(test)]
mod tests;
