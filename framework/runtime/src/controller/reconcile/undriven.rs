//! External resources of fields that a graph of this controller had in an earlier version.
//!
//! Only the driver of a field can delete its resource. Without the driver the object stays under
//! the finalizer, and says why, until the field is back or a person decides.

// DESIGN.md, 210: The resource of an external field that left its graph holds its object, with a
// reason
// DESIGN.md, 246: A record that was copied holds nothing

use self::records::{
    CREATE_FAILED, CREATE_PENDING, CREATE_SUCCEEDED, EXTERNAL_DRIVER, EXTERNAL_NAME,
    EXTERNAL_POLICY, IMPORT_ACCEPTED, imported, is_of,
};
use super::step::ObjectStep;
use crate::controller::{Context, Failure, Reconciler};
use crate::events::{Normal, Warning};
use windlass_core::resource::{Resource, ResourceExt};

/// Keys of the annotations that record an external resource; `external::record` describes and
/// writes them.
pub(crate) mod records {
    pub(crate) const EXTERNAL_NAME: &str = "windlass.dev/external-name";
    pub(crate) const CREATE_PENDING: &str = "windlass.dev/external-create-pending";
    pub(crate) const CREATE_SUCCEEDED: &str = "windlass.dev/external-create-succeeded";
    pub(crate) const CREATE_FAILED: &str = "windlass.dev/external-create-failed";
    pub(crate) const EXTERNAL_POLICY: &str = "windlass.dev/external-policy";
    pub(crate) const EXTERNAL_DRIVER: &str = "windlass.dev/external-driver";

    pub(crate) const IMPORT_ACCEPTED: &str = "windlass.dev/external-import-accepted";

    /// Returns the id in the record of an import, if it is that of the object of that uid.
    pub(crate) fn imported<'a>(uid: &str, text: &'a str) -> Option<&'a str> {
        text.split_once(' ').filter(|(importer, _)| *importer == uid).map(|(_, id)| id)
    }

    /// Whether the token of a creation was made for the object of that uid.
    pub(crate) fn is_of(uid: &str, token: &str) -> bool {
        token.strip_prefix(uid).is_some_and(|rest| rest.starts_with('-'))
    }
}

/// Restrictions with which a resource outlives the object.
const KEEPING: [&str; 2] = ["no-delete", "observe-only"];

/// An external resource that no field drives any more.
#[derive(Debug, PartialEq, Eq)]
struct UndrivenResource<'a> {
    /// Id of the resource, or the token of a creation of unknown outcome.
    id: &'a str,
    finalizer: &'a str,
    outcome: DeletionOutcome,
}

/// Outcome for a left resource when its object is deleted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum DeletionOutcome {
    /// It holds the object.
    Holds,
    /// The policy lets it outlive the object.
    Kept,
    /// It is another object's, whose annotations were copied. Its own object decides about it.
    OwnedByOther,
    /// It was imported, and the object does not name it any more.
    Unnamed,
}

impl DeletionOutcome {
    /// Returns reason and text of the Event when the finalizer is removed.
    fn event(self, id: &str) -> Option<(&'static str, String)> {
        let text = match self {
            Self::Holds => return None,
            Self::Kept => ("ExternalKept", " is kept, as the policy says"),
            Self::OwnedByOther => (
                "ExternalCopied",
                " is left alone: the record of it was copied from another object",
            ),
            Self::Unnamed => ("ExternalKept", ", which was imported before, is kept"),
        };
        Some((text.0, format!("external resource \"{id}\"{}", text.1)))
    }
}

/// Returns the resources that fields of `controller` have made and none drives, by the suffixes of
/// their records.
fn undriven<'a, K: Resource>(
    object: &'a K,
    controller: &str,
    is_driven: impl Fn(&str) -> bool,
) -> Vec<UndrivenResource<'a>> {
    let annotations = object.metadata().annotations.iter().flatten();
    let fields = annotations.filter_map(|(key, driver)| {
        let suffix = key.strip_prefix(EXTERNAL_DRIVER)?;
        let (name, finalizer) = driver.split_once(' ')?;
        (name == controller && !is_driven(suffix)).then_some((suffix, finalizer))
    });
    let resources = fields.flat_map(|(suffix, finalizer)| {
        let id = recorded(object, suffix);
        let main = id.map(|id| (id, outcome(object, suffix)));
        let ended = ended_import(object, suffix, id).map(|id| (id, DeletionOutcome::Unnamed));
        let both = main.into_iter().chain(ended);
        both.map(move |(id, outcome)| UndrivenResource { id, finalizer, outcome })
    });
    resources.collect()
}

/// Returns the outcome for the recorded resource.
fn outcome<K: Resource>(object: &K, suffix: &str) -> DeletionOutcome {
    let states =
        ["", suffix].map(|suffix| object.annotation(&format!("{EXTERNAL_POLICY}{suffix}")));
    let mut words = states.into_iter().flatten().flat_map(|text| text.split(',')).map(str::trim);
    if is_foreign(object, suffix) {
        DeletionOutcome::OwnedByOther
    } else if words.any(|word| KEEPING.contains(&word)) {
        DeletionOutcome::Kept
    } else {
        DeletionOutcome::Holds
    }
}

/// Returns the id of a recorded import that the object does not name any more; `named` is the id
/// that the object names.
fn ended_import<'a, K: Resource>(
    object: &'a K,
    suffix: &str,
    named: Option<&str>,
) -> Option<&'a str> {
    let record = object.annotation(&format!("{IMPORT_ACCEPTED}{suffix}"))?;
    imported(object.uid(), record).filter(|id| named != Some(*id))
}

/// Returns the id of a recorded resource, or the token of a creation that may have made a resource.
fn recorded<'a, K: Resource>(object: &'a K, suffix: &str) -> Option<&'a str> {
    let value =
        |base: &str| object.annotation(&format!("{base}{suffix}")).filter(|it| !it.is_empty());
    let word = |base: &str, at: usize| value(base)?.splitn(3, ' ').nth(at);
    let failed = word(CREATE_FAILED, 1);
    let pending = || word(CREATE_PENDING, 1).filter(|token| failed != Some(token));
    value(EXTERNAL_NAME).or_else(|| word(CREATE_SUCCEEDED, 2)).or_else(pending)
}

/// Whether a record names a creation that was made for another object: its annotations were copied.
fn is_foreign<K: Resource>(object: &K, suffix: &str) -> bool {
    let token = |base: &str| object.annotation(&format!("{base}{suffix}"))?.split(' ').nth(1);
    let mut tokens = [CREATE_PENDING, CREATE_SUCCEEDED].into_iter().filter_map(token);
    tokens.any(|token| !is_of(object.uid(), token))
}

impl<C: Reconciler> ObjectStep<C> {
    /// Returns the resources of the object that no field drives any more.
    fn undriven<'a>(&self, object: &'a C::Object) -> Vec<UndrivenResource<'a>> {
        let is_driven = |suffix: &str| self.shared.drivers.have_field(suffix);
        undriven(object, &self.shared.controller, is_driven)
    }

    /// Names the resources that no field drives any more in the message of a success.
    pub(super) fn remark_left(&self, cx: &Context<C>) {
        for UndrivenResource { id, outcome, .. } in self.undriven(cx.object()) {
            let why = match outcome {
                DeletionOutcome::OwnedByOther => {
                    "another object has made it, from which the annotations were copied"
                }
                DeletionOutcome::Holds | DeletionOutcome::Kept => "its field left the graph",
                DeletionOutcome::Unnamed => "it was imported before, and no annotation names it",
            };
            cx.remark(format!("external resource \"{id}\" is left alone: {why}"));
        }
    }

    /// Returns the finalizers of fields that left the graph.
    pub(super) fn finalizers_left(&self, object: &C::Object) -> Vec<String> {
        let left = self.undriven(object);
        let mut names: Vec<_> = left.iter().map(|left| left.finalizer.to_owned()).collect();
        names.sort();
        names.dedup();
        names.retain(|name| object.has_finalizer(name));
        names
    }

    /// Holds an object that is being deleted while resources are left that only fields of an
    /// earlier version could delete.
    ///
    /// # Errors
    /// A wait that names the resources and the remedy.
    pub(super) fn hold_left(&self, cx: &Context<C>) -> Result<(), Failure> {
        let object = cx.newest_own();
        let left = self.undriven(&object);
        let held: Vec<_> =
            left.iter().filter(|left| left.outcome == DeletionOutcome::Holds).collect();
        if held.is_empty() {
            return Ok(());
        }
        let ids: Vec<_> = held.iter().map(|left| format!("\"{}\"", left.id)).collect();
        let text = format!(
            "external resource {}: no field of this version drives it, so it is not deleted. Run a version with the field, \
             whose `when` may return false; or delete the resource by hand, or keep it, and annotate the object with \
             {EXTERNAL_POLICY}=no-delete",
            ids.join(", ")
        );
        // A wait is checked again and again.
        if self.shared.memory.first_report(cx.cached_at_start().key(), object.resource_version()) {
            tracing::warn!(object = %cx.cached_at_start().key(), "{text}");
            cx.event(Warning, "ExternalLeft", &text);
        }
        Err(Failure::wait_for("ExternalLeft", text))
    }

    /// Reports the resources that outlive the object, before that finalizer is removed: after a
    /// crash in between no record of them would be left.
    pub(super) fn report_left(&self, cx: &Context<C>, finalizer: &str) {
        let object = cx.newest_own();
        for left in self.undriven(&object).iter().filter(|left| left.finalizer == finalizer) {
            if let Some((reason, text)) = left.outcome.event(left.id) {
                tracing::info!(object = %cx.cached_at_start().key(), "{text}");
                cx.event(Normal, reason, text);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::slice::from_ref;

    use k8s_openapi::api::core::v1::ConfigMap;

    use super::*;

    /// Returns an object with annotations, whose keys are bases and suffixes.
    fn object(annotations: &[(&str, &str, &str)]) -> ConfigMap {
        let pairs = annotations.iter();
        let pairs =
            pairs.map(|(base, suffix, value)| (format!("{base}{suffix}"), (*value).to_owned()));
        let mut object = ConfigMap::default();
        object.metadata.uid = Some("u".to_owned());
        object.metadata.annotations = Some(pairs.collect());
        object
    }

    const DRIVER: (&str, &str, &str) = (EXTERNAL_DRIVER, ".db", "sites example.dev/db");

    fn ids(annotations: &[(&str, &str, &str)]) -> Vec<String> {
        let object = object(annotations);
        undriven(&object, "sites", |_| false).iter().map(|left| left.id.to_owned()).collect()
    }

    #[test]
    fn a_record_is_left_when_a_field_of_the_controller_made_it_and_none_drives_it() {
        let name = (EXTERNAL_NAME, ".db", "db-7");
        let object = object(&[DRIVER, name]);
        let expected = UndrivenResource {
            id: "db-7",
            finalizer: "example.dev/db",
            outcome: DeletionOutcome::Holds,
        };
        assert_eq!(undriven(&object, "sites", |suffix| suffix != ".db"), [expected]);
        assert_eq!(undriven(&object, "sites", |suffix| suffix == ".db"), []);
        assert_eq!(undriven(&object, "site", |_| false), [], "of another controller");
        assert_eq!(ids(&[DRIVER]), [""; 0], "a person has removed the record");
        assert_eq!(ids(&[name]), [""; 0], "no field has made it");
    }

    #[test]
    fn a_creation_that_may_have_happened_is_left_and_one_that_was_refused_is_not() {
        let pending = (CREATE_PENDING, ".db", "2026-01-01T00:00:00Z u-1");
        let failed = |token| (CREATE_FAILED, ".db", token);
        assert_eq!(ids(&[DRIVER, pending]), ["u-1"]);
        assert_eq!(ids(&[DRIVER, pending, failed("2026-01-01T00:00:00Z u-0")]), ["u-1"]);
        assert_eq!(ids(&[DRIVER, pending, failed("2026-01-01T00:00:00Z u-1")]), [""; 0]);
        let succeeded = (CREATE_SUCCEEDED, ".db", "2026-01-01T00:00:00Z u-1 db 7");
        assert_eq!(ids(&[DRIVER, pending, succeeded]), ["db 7"]);
    }

    #[test]
    fn an_import_that_the_object_does_not_name_any_more_is_told_and_holds_nothing() {
        let import = |text| (IMPORT_ACCEPTED, ".db", text);
        let left = |annotations: &[_]| {
            let object = object(annotations);
            let left = undriven(&object, "sites", |_| false);
            left.iter().map(|left| (left.id.to_owned(), left.outcome)).collect::<Vec<_>>()
        };
        let unnamed = ("x".to_owned(), DeletionOutcome::Unnamed);
        let held = ("y".to_owned(), DeletionOutcome::Holds);
        let name = (EXTERNAL_NAME, ".db", "y");
        assert_eq!(left(&[DRIVER, import("u x")]), from_ref(&unnamed), "the annotation is gone");
        assert_eq!(left(&[DRIVER, import("u x"), name]), [held.clone(), unnamed.clone()]);
        assert_eq!(left(&[DRIVER, import("u y"), name]), from_ref(&held), "it is named");
        assert_eq!(
            left(&[DRIVER, import("w x"), name]),
            [held],
            "of the object it was copied from"
        );
        let (reason, text) = unnamed.1.event("x").expect("it is told");
        let said = "external resource \"x\", which was imported before, is kept";
        assert_eq!((reason, &*text), ("ExternalKept", said));
    }

    #[test]
    fn a_policy_of_the_object_or_of_the_resource_lets_it_outlive_the_object() {
        let name = (EXTERNAL_NAME, ".db", "db-7");
        for (suffix, text, outcome) in [
            ("", "no-create, no-delete", DeletionOutcome::Kept),
            (".db", "observe-only", DeletionOutcome::Kept),
            (".other", "no-delete", DeletionOutcome::Holds),
            ("", "no-update", DeletionOutcome::Holds),
        ] {
            let object = object(&[DRIVER, name, (EXTERNAL_POLICY, suffix, text)]);
            assert_eq!(undriven(&object, "sites", |_| false)[0].outcome, outcome, "{text}");
        }
    }

    #[test]
    fn the_record_of_another_object_is_foreign_whatever_the_policy() {
        let pending = (CREATE_PENDING, ".db", "2026-01-01T00:00:00Z u-1");
        let succeeded = (CREATE_SUCCEEDED, ".db", "2026-01-01T00:00:00Z u-1 db 7");
        let name = (EXTERNAL_NAME, ".db", "db 7");
        for copied in [vec![pending], vec![pending, succeeded, name], vec![succeeded]] {
            let policy = (EXTERNAL_POLICY, "", "no-delete");
            let object = object(&[&[DRIVER, policy], copied.as_slice()].concat());
            let outcome = |uid: &str| {
                let mut object = object.clone();
                object.metadata.uid = Some(uid.to_owned());
                undriven(&object, "sites", |_| false)[0].outcome
            };
            assert_eq!(
                (outcome("u"), outcome("w")),
                (DeletionOutcome::Kept, DeletionOutcome::OwnedByOther)
            );
        }
    }
}
