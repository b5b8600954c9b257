//! Restrictions of the calls that may be made for an object.

// DESIGN.md, 164: Restrictions of external calls add up, and errors in them stop the object

use std::str::FromStr;

use windlass_core::error::{Error, ErrorKind};

/// The calls that a controller may make for a resource. The default permits all.
///
/// A controller has one ([`Externals::policy`](super::Externals::policy)), and an object may have
/// one in its annotation [`EXTERNAL_POLICY`](super::EXTERNAL_POLICY): `no-create`, `no-update`,
/// `no-delete`, `no-import` or `observe-only`, several separated by commas. A call is made if both
/// permit it, so that an annotation can only restrict.
///
/// | text | effect |
/// |---|---|
/// | `no-create` | only imported resources are managed; without one the object waits |
/// | `no-update` | differences are reported and not repaired; the spec is not filled from the resource |
/// | `no-delete` | the resource outlives the object |
/// | `no-import` | a resource whose id was set by hand is neither managed nor deleted: the reconcile fails for good until the id is removed; a deleted object leaves the resource alone |
/// | `observe-only` | `no-create`, `no-update` and `no-delete` |
///
/// Anyone who may write an object's annotations chooses the resource that the operator changes and
/// deletes with its own rights (a confused deputy). [`NO_IMPORT`](Self::NO_IMPORT) refuses ids that
/// are merely set by hand. It does not stop a wholly forged record. A provider can detect one: it
/// tags each resource with the [token](super::External::create) of its creation, which begins with
/// the uid of the object, and compares.
///
/// ```
/// # extern crate windlass_runtime as windlass;
/// use windlass::external::ExternalPolicy;
///
/// let kept: ExternalPolicy = "no-create, no-delete".parse()?;
/// assert!(!kept.deletes() && kept.updates());
/// assert_eq!(kept.and(ExternalPolicy::OBSERVE_ONLY), ExternalPolicy::OBSERVE_ONLY);
/// # Ok::<(), windlass::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExternalPolicy {
    creates: bool,
    updates: bool,
    deletes: bool,
    imports: bool,
}

impl ExternalPolicy {
    /// All calls: resources are created, updated, deleted and imported. The default.
    pub const FULL: Self = Self { creates: true, updates: true, deletes: true, imports: true };
    /// No creations: only resources that people import.
    pub const NO_CREATE: Self = Self { creates: false, ..Self::FULL };
    /// No updates: differences are reported only.
    pub const NO_UPDATE: Self = Self { updates: false, ..Self::FULL };
    /// No deletions: a resource outlives its object.
    pub const NO_DELETE: Self = Self { deletes: false, ..Self::FULL };
    /// No imports: only resources that the controller has created.
    pub const NO_IMPORT: Self = Self { imports: false, ..Self::FULL };
    /// Observations only: resources are imported by their ids and never changed.
    pub const OBSERVE_ONLY: Self =
        Self { creates: false, updates: false, deletes: false, ..Self::FULL };

    /// Returns the calls that both policies permit: `NO_CREATE.and(NO_DELETE)` permits updates and
    /// imports.
    #[must_use]
    pub const fn and(self, other: Self) -> Self {
        Self {
            creates: self.creates && other.creates,
            updates: self.updates && other.updates,
            deletes: self.deletes && other.deletes,
            imports: self.imports && other.imports,
        }
    }

    /// Whether resources may be created.
    pub const fn creates(self) -> bool {
        self.creates
    }

    /// Whether differences may be repaired.
    pub const fn updates(self) -> bool {
        self.updates
    }

    /// Whether resources are deleted with their objects.
    pub const fn deletes(self) -> bool {
        self.deletes
    }

    /// Whether resources may be imported by their ids.
    pub const fn imports(self) -> bool {
        self.imports
    }
}

impl Default for ExternalPolicy {
    fn default() -> Self {
        Self::FULL
    }
}

impl FromStr for ExternalPolicy {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        text.split(',').try_fold(Self::FULL, |policy, word| {
            let restriction = match word.trim() {
                "no-create" => Self::NO_CREATE,
                "no-update" => Self::NO_UPDATE,
                "no-delete" => Self::NO_DELETE,
                "no-import" => Self::NO_IMPORT,
                "observe-only" => Self::OBSERVE_ONLY,
                other => {
                    // If a misspelt restriction were ignored, a resource could be deleted.
                    let text = format!(
                        "unknown policy {other:?}: write no-create, no-update, no-delete, no-import or \
                         observe-only"
                    );
                    return Err(Error::new(ErrorKind::Invalid, text));
                }
            };
            Ok(policy.and(restriction))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_misspelt_restriction_is_an_error_and_not_a_permission() {
        for text in ["observeOnly", "", "no-delete,", "full"] {
            assert!(text.parse::<ExternalPolicy>().is_err(), "{text:?}");
        }
        let two: ExternalPolicy = "no-delete ,no-update".parse().unwrap();
        assert_eq!((two.creates(), two.updates(), two.deletes()), (true, false, false));
    }
}
