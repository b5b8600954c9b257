//! Records of resources that their object never had.

// DESIGN.md, 314: A deleted object lets a resource go that it never had

use super::ExternalPolicy;
use super::record::{Record, stamps_of};
use crate::controller::records::is_of;
use windlass_core::resource::{Resource, ResourceExt};

/// A recorded resource that the object never had.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Unowned {
    /// Another object has made it: the annotations were copied. The id, or the token of a creation
    /// without one.
    Copied(String),
    /// Its id was set by hand, and imports are forbidden.
    NoImport {
        id: String,
        /// An import of before, which the object does not name any more.
        ended: Option<String>,
    },
}

impl Unowned {
    /// Returns the resource that a record names and the object never had; `None` if the object has,
    /// or may have, a resource by that record.
    pub(super) fn of<K: Resource>(
        object: &K,
        suffix: &str,
        policy: ExternalPolicy,
    ) -> Option<Self> {
        let Ok(record) = Record::of(object, suffix) else {
            let stamps = stamps_of(object, suffix)?;
            let are_foreign = stamps.tokens.iter().all(|token| !is_of(object.uid(), token));
            // An own creation or import beside a copied one: only a person can tell.
            let is_copied = are_foreign && !stamps.is_accepted;
            return is_copied.then_some(Self::Copied(stamps.id));
        };
        let is_refused = record.is_import && !policy.imports() && record.former.is_none();
        let ended = record.ended_import;
        record.id.filter(|_| is_refused).map(|id| Self::NoImport { id, ended })
    }

    /// Returns reason and text of the Event.
    pub(super) fn event(&self, part: &str) -> (&'static str, String) {
        let part = if part.is_empty() { String::new() } else { format!(" ({part})") };
        let (reason, id, why) = match self {
            Self::Copied(id) => {
                ("ExternalCopied", id, "the record of it was copied from another object")
            }
            Self::NoImport { id, .. } => {
                ("ExternalKept", id, "its id was set by hand, and the policy permits no import")
            }
        };
        let mut text = format!("external resource \"{id}\"{part} is left alone: {why}");
        if let Self::NoImport { ended: Some(id), .. } = self {
            let left =
                format!("external resource \"{id}\"{part}, which was imported before, is kept");
            text += &format!("; {left}");
        }
        (reason, text)
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::ConfigMap;

    use super::super::{CREATE_PENDING, CREATE_SUCCEEDED, EXTERNAL_NAME};
    use super::*;

    const ACCEPTED: &str = "windlass.dev/external-import-accepted";

    fn unowned(annotations: &[(&str, &str)], policy: ExternalPolicy) -> Option<Unowned> {
        let pairs = annotations.iter().map(|(key, value)| (format!("{key}.db"), (*value).into()));
        let mut object = ConfigMap::default();
        object.metadata.uid = Some("u".to_owned());
        object.metadata.annotations = Some(pairs.collect());
        Unowned::of(&object, ".db", policy)
    }

    #[test]
    fn a_record_is_copied_when_all_of_its_creations_are_of_another_object() {
        let name = (EXTERNAL_NAME, "db 7");
        let pending = |token| (CREATE_PENDING, token);
        let (own, other) = ("2026-01-01T00:00:00Z u-1", "2026-01-01T00:00:00Z w-1");
        let made = (CREATE_SUCCEEDED, "2026-01-01T00:00:00Z w-1 db 7");
        let copied = |id: &str| Some(Unowned::Copied(id.to_owned()));
        for (annotations, expected) in [
            (vec![pending(other), made, name], copied("db 7")),
            (vec![made], copied("db 7")),
            (vec![pending(other)], copied("w-1")),
            (vec![pending(own), made, name], None),
            (vec![pending("yesterday"), made], None),
            (vec![made, name, (ACCEPTED, "u db 7")], None),
            (vec![made, name, (ACCEPTED, "w db 7")], copied("db 7")),
            (vec![pending(own)], None),
            (vec![], None),
        ] {
            assert_eq!(unowned(&annotations, ExternalPolicy::FULL), expected, "{annotations:?}");
        }
    }

    #[test]
    fn a_forbidden_import_is_no_resource_of_its_object_unless_the_object_had_made_another_one() {
        let name = (EXTERNAL_NAME, "theirs");
        let policy = ExternalPolicy::NO_IMPORT;
        let refused = Some(Unowned::NoImport { id: "theirs".to_owned(), ended: None });
        assert_eq!(unowned(&[name], policy), refused);
        assert_eq!(unowned(&[name, (ACCEPTED, "u theirs")], policy), refused);
        assert_eq!(unowned(&[name], ExternalPolicy::FULL), None);
        let made = (CREATE_SUCCEEDED, "2026-01-01T00:00:00Z u-1 db 7");
        assert_eq!(unowned(&[made, name], policy), None, "its own one would leak");
        let pending = (CREATE_PENDING, "2026-01-01T00:00:00Z u-1");
        assert_eq!(unowned(&[pending, name], policy), None, "it settles the creation");
    }
}
