//! Record of a resource on its object: annotations, and the patches that change them.

use std::fmt;

use jiff::Timestamp;
use serde_json::{Value, json};

use super::ExternalPolicy;
use crate::controller::records::is_of;
use crate::controller::{Failure, ResultExt, part_of, records};
use windlass_core::error::{Error, ErrorKind};
use windlass_core::resource::{Resource, ResourceExt};

/// Annotation with the id of the resource. Set by hand, it imports an existing resource.
pub const EXTERNAL_NAME: &str = records::EXTERNAL_NAME;
/// Annotation with time and token of the last creation, written before the call.
///
/// Removing it from an object that has no [`EXTERNAL_NAME`] settles an unknown outcome: nothing was
/// created.
pub const CREATE_PENDING: &str = records::CREATE_PENDING;
/// Annotation with time, token and id of a creation that succeeded.
pub const CREATE_SUCCEEDED: &str = records::CREATE_SUCCEEDED;
/// Annotation with time and token of a creation that the provider refused.
pub const CREATE_FAILED: &str = records::CREATE_FAILED;
/// Annotation with the restrictions of one object: see [`ExternalPolicy`].
///
/// Without a suffix it applies to all resources of the object.
pub const EXTERNAL_POLICY: &str = records::EXTERNAL_POLICY;
/// Annotation with the controller whose graph drives the resource, and the finalizer:
/// `sites example.dev/bucket`. Parts of a field's driver have it, too.
///
/// A version of the controller whose graph has no such field leaves the resource alone. It holds
/// the object when that is deleted, until the policy of the object lets the resource outlive it,
/// and then removes the finalizer.
pub const EXTERNAL_DRIVER: &str = records::EXTERNAL_DRIVER;

/// Annotation with the token of a created resource that the provider is deleting: once missing, the
/// resource is gone. Written only when the deletion takes time.
const DELETE_ACCEPTED: &str = "windlass.dev/external-delete-accepted";

/// Annotation with the uid of the object and the id that was set by hand, once no other record
/// names that resource. One with another uid, as on a copy of the object, counts as none.
const IMPORT_ACCEPTED: &str = records::IMPORT_ACCEPTED;

/// Longest suffix: the longest key, that of [`CREATE_SUCCEEDED`], has at most 63 characters behind
/// the slash.
const LONGEST_SUFFIX: usize = 38;
/// Longest id of a resource.
const LONGEST_ID: usize = 1024;

/// Time and token of a creation.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Stamp {
    pub(super) time: Timestamp,
    pub(super) token: String,
}

impl fmt::Display for Stamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.time, self.token)
    }
}

impl Stamp {
    /// Returns the stamp at the beginning of a text, and the rest of the text.
    fn parse(text: &str) -> Option<(Self, &str)> {
        let (time, rest) = text.split_once(' ')?;
        let (token, rest) = rest.split_once(' ').unwrap_or((rest, ""));
        let stamp = Self { time: time.parse().ok()?, token: token.to_owned() };
        (!token.is_empty()).then_some((stamp, rest))
    }
}

/// The annotations of one resource.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Record {
    /// Id of the resource.
    pub(super) id: Option<String>,
    /// Time and token of the creation of that resource; `None` for an imported one.
    pub(super) created: Option<Stamp>,
    /// The last creation, if its outcome is not recorded.
    pub(super) unsettled: Option<Stamp>,
    /// Whether the id was set by hand, and not to settle a creation of unknown outcome.
    pub(super) is_import: bool,
    /// Whether the id was set by hand, and the resource is recorded as the one of this object.
    pub(super) is_accepted: bool,
    /// Whether the object names its own creation again, while an import is still recorded as its
    /// own.
    pub(super) is_return: bool,
    /// Id of a resource that was created for the object, while the object names another one that is
    /// not accepted.
    pub(super) former: Option<String>,
    /// Id of a resource that was created for the object, while an accepted import has taken the
    /// place of that resource.
    pub(super) replaced: Option<String>,
    /// Id of an accepted import that the object does not name any more.
    pub(super) ended_import: Option<String>,
    /// Whether the provider has taken the deletion of the created resource.
    pub(super) is_deleted: bool,
}

/// Returns the key of an annotation for a resource.
fn key(base: &str, suffix: &str) -> String {
    format!("{base}{suffix}")
}

impl Record {
    /// Reads the record of a resource, whose keys have that suffix.
    ///
    /// # Errors
    /// Terminal, when the pending creation cannot be read: it would be repeated. Terminal, when a
    /// creation is recorded that another object has made: its annotations were copied, and two
    /// objects would own one resource.
    pub(super) fn of<K: Resource>(object: &K, suffix: &str) -> Result<Self, Failure> {
        let value = |base| object.annotation(&key(base, suffix)).filter(|value| !value.is_empty());
        let pending = value(CREATE_PENDING).map(|text| {
            Stamp::parse(text).map(|(stamp, _)| stamp).ok_or_else(|| {
                let key = key(CREATE_PENDING, suffix);
                let text = format!(
                    "the annotation {key} of \"{}\" is not a time and token: {text:?}; restore it, or settle the \
                     creation by hand: remove it if nothing was created, otherwise set {} to the id",
                    object.key(),
                    self::key(EXTERNAL_NAME, suffix)
                );
                Failure::terminal(Error::new(ErrorKind::Invalid, text))
            })
        });
        let pending = pending.transpose()?;
        let succeeded = value(CREATE_SUCCEEDED).and_then(Stamp::parse);
        let mut stamps = pending.iter().chain(succeeded.iter().map(|(stamp, _)| stamp));
        if let Some(foreign) = stamps.find(|stamp| !is_of(object.uid(), &stamp.token)) {
            return Err(copied(object, suffix, &foreign.token));
        }
        let failed = value(CREATE_FAILED).and_then(Stamp::parse).map(|(stamp, _)| stamp.token);
        // The id stands in two annotations, so that the loss of one of them loses no resource.
        let id = value(EXTERNAL_NAME).or(succeeded.as_ref().map(|(_, id)| *id));
        let created = succeeded.as_ref().filter(|(_, made)| id == Some(made));
        let created = created.map(|(stamp, _)| stamp.clone());
        let is_refused = |pending: &Stamp| failed.as_ref() == Some(&pending.token);
        let is_made = |pending: &Stamp| {
            succeeded.as_ref().is_some_and(|(stamp, _)| stamp.token == pending.token)
        };
        let is_open = pending.as_ref().is_some_and(|it| !is_refused(it) && !is_made(it));
        let is_import = id.is_some() && created.is_none() && !is_open;
        let unsettled = pending.filter(|pending| id.is_none() && !is_refused(pending));
        let deleted = value(DELETE_ACCEPTED);
        let is_deleted = deleted.is_some() && deleted == created.as_ref().map(|it| &*it.token);
        let own = value(IMPORT_ACCEPTED).and_then(|text| records::imported(object.uid(), text));
        let is_accepted = created.is_none() && own.is_some() && id == own;
        let is_return = created.is_some() && own.is_some();
        let ended_import = own.filter(|named| id != Some(named));
        let other = succeeded.map(|(_, made)| made).filter(|_| created.is_none());
        let (former, replaced) = if is_accepted { (None, other) } else { (other, None) };
        let [id, former, replaced, ended_import] =
            [id, former, replaced, ended_import].map(|id| id.map(str::to_owned));
        Ok(Self {
            id,
            created,
            unsettled,
            is_import,
            is_accepted,
            is_return,
            former,
            replaced,
            ended_import,
            is_deleted,
        })
    }
}

/// The parts of a record that say whose it is.
#[derive(Debug)]
pub(super) struct RecordStamps {
    /// Tokens of the creations; at least one.
    pub(super) tokens: Vec<String>,
    /// Id of the resource, or the token of a creation without one.
    pub(super) id: String,
    /// Whether the object itself has imported a resource.
    pub(super) is_accepted: bool,
}

/// Returns the parts of a record that say whose it is; `None` without a creation, or with one that
/// cannot be read.
pub(super) fn stamps_of<K: Resource>(object: &K, suffix: &str) -> Option<RecordStamps> {
    let value = |base| object.annotation(&key(base, suffix)).filter(|value| !value.is_empty());
    let (mut tokens, mut made) = (Vec::new(), None);
    for text in [CREATE_PENDING, CREATE_SUCCEEDED].into_iter().filter_map(value) {
        let (stamp, id) = Stamp::parse(text)?;
        tokens.push(stamp.token);
        made = Some(id).filter(|id| !id.is_empty());
    }
    let id = value(EXTERNAL_NAME).or(made).or(tokens.first().map(String::as_str))?.to_owned();
    let is_accepted =
        value(IMPORT_ACCEPTED).is_some_and(|text| records::imported(object.uid(), text).is_some());
    (!tokens.is_empty()).then_some(RecordStamps { tokens, id, is_accepted })
}

/// Returns a new token of a creation for the object of that uid.
pub(super) fn token(uid: &str, random: u64) -> String {
    format!("{uid}-{random:016x}")
}

/// The failure of an object with the record of another one.
fn copied<K: Resource>(object: &K, suffix: &str, token: &str) -> Failure {
    let [pending, succeeded, name] =
        [CREATE_PENDING, CREATE_SUCCEEDED, EXTERNAL_NAME].map(|base| key(base, suffix));
    let text = format!(
        "\"{}\" has the record of an external resource that another object has made (token {token}): its annotations \
         were copied, or restored. If this object is to have a resource of its own, remove the annotations {name}, \
         {pending} and {succeeded}; if it is to take the resource over, set {name} to its id, remove the other two, \
         and make sure that no other object names it",
        object.key()
    );
    Failure::terminal(Error::new(ErrorKind::Invalid, text))
}

/// Returns the restrictions that an object states for a resource.
///
/// # Errors
/// Terminal, for an unknown restriction.
pub(super) fn policy_of<K: Resource>(object: &K, suffix: &str) -> Result<ExternalPolicy, Failure> {
    let mut policy = ExternalPolicy::FULL;
    for key in [EXTERNAL_POLICY.to_owned(), key(EXTERNAL_POLICY, suffix)] {
        if let Some(text) = object.annotation(&key) {
            let stated = text.parse::<ExternalPolicy>().map_err(Failure::terminal);
            policy = policy.and(stated.tried(format!("reading the annotation {key}"))?);
        }
    }
    Ok(policy)
}

/// Returns the suffix of the keys of a resource: `.NAME` of a driver with a name, `_PART` of a
/// part.
///
/// # Errors
/// Terminal, for a name that cannot be a part of a key.
pub(super) fn suffix_of(name: &str, part: &str) -> Result<String, Failure> {
    let fits = |word: &str| {
        word.bytes().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == b'-')
            && !word.starts_with('-')
            && !word.ends_with('-')
    };
    let piece = |separator: &str, word: &str| {
        if word.is_empty() { String::new() } else { format!("{separator}{word}") }
    };
    let suffix = piece(".", name) + &piece("_", part);
    if suffix.len() <= LONGEST_SUFFIX && fits(name) && fits(part) {
        return Ok(suffix);
    }
    let text = format!(
        "{name:?} and {part:?} are no names of a driver and a part: use lower-case letters, digits and inner `-`, at \
         most {} together",
        LONGEST_SUFFIX - 2
    );
    Err(Failure::terminal(Error::new(ErrorKind::Usage, text)))
}

/// Returns the parts that are recorded on an object for a driver, its main resource as the empty
/// name.
///
/// The record of an own import alone is one: the annotation with the id was removed, and no
/// Event has reported it yet.
pub(super) fn parts_of<K: Resource>(object: &K, name: &str) -> Vec<String> {
    let annotations = object.metadata().annotations.iter().flatten();
    let part = |key: &str, value: &str| {
        let suffix = [EXTERNAL_NAME, CREATE_PENDING, CREATE_SUCCEEDED]
            .iter()
            .find_map(|base| key.strip_prefix(base))
            .or_else(|| {
                key.strip_prefix(IMPORT_ACCEPTED)
                    .filter(|_| records::imported(object.uid(), value).is_some())
            })?;
        part_of(name, suffix).map(str::to_owned)
    };
    let mut parts: Vec<String> = annotations.filter_map(|(key, it)| part(key, it)).collect();
    parts.sort();
    parts.dedup();
    parts
}

/// Refuses an id that cannot be recorded.
pub(super) fn check_id(id: &str) -> Result<(), Failure> {
    if (1..=LONGEST_ID).contains(&id.len()) {
        return Ok(());
    }
    let text = format!(
        "the provider returned an id of {} bytes; `create` must return 1 to {LONGEST_ID} bytes",
        id.len()
    );
    Err(Failure::terminal(Error::new(ErrorKind::Usage, text)))
}

/// Returns the patch that records a creation before its call, and the graph that drives it.
pub(super) fn pending(suffix: &str, stamp: &Stamp, driver: Option<&str>) -> Value {
    let stamp = Some(stamp.to_string());
    annotations(
        suffix,
        &[
            (CREATE_PENDING, stamp),
            (EXTERNAL_DRIVER, driver.map(str::to_owned)),
            (EXTERNAL_NAME, None),
            (CREATE_SUCCEEDED, None),
            (CREATE_FAILED, None),
            (DELETE_ACCEPTED, None),
            (IMPORT_ACCEPTED, None),
        ],
    )
}

/// Returns the patch that records the id of a created resource.
pub(super) fn succeeded(suffix: &str, stamp: &Stamp, id: &str) -> Value {
    let succeeded = Some(format!("{stamp} {id}"));
    annotations(
        suffix,
        &[
            (EXTERNAL_NAME, Some(id.to_owned())),
            (CREATE_SUCCEEDED, succeeded),
            (CREATE_FAILED, None),
        ],
    )
}

/// Returns the patch that records that nothing was created.
pub(super) fn failed(suffix: &str, stamp: &Stamp) -> Value {
    annotations(suffix, &[(CREATE_FAILED, Some(stamp.to_string()))])
}

/// Returns the patch that records the token of a created resource whose deletion takes time.
pub(super) fn deleted(suffix: &str, token: &str) -> Value {
    annotations(suffix, &[(DELETE_ACCEPTED, Some(token.to_owned()))])
}

/// Returns the patch that records the resource of that id, which was set by hand, as the one of the
/// object with that uid; `None` removes the record.
pub(super) fn accepted(suffix: &str, import: Option<(&str, &str)>) -> Value {
    annotations(suffix, &[(IMPORT_ACCEPTED, import.map(|(uid, id)| format!("{uid} {id}")))])
}

/// Returns the patch that removes the record of a resource that is gone.
pub(super) fn cleared(suffix: &str) -> Value {
    let outcomes = [CREATE_SUCCEEDED, CREATE_FAILED, DELETE_ACCEPTED, IMPORT_ACCEPTED];
    let all = [EXTERNAL_NAME, CREATE_PENDING, EXTERNAL_DRIVER].into_iter().chain(outcomes);
    annotations(suffix, &all.map(|base| (base, None)).collect::<Vec<_>>())
}

/// Returns the patch that records the graph that drives a resource; `None` for a driver of no
/// graph.
pub(super) fn driven(suffix: &str, driver: Option<&str>) -> Value {
    annotations(suffix, &[(EXTERNAL_DRIVER, driver.map(str::to_owned))])
}

/// Returns a merge patch of annotations; `None` removes one.
fn annotations(suffix: &str, values: &[(&str, Option<String>)]) -> Value {
    let mut patch = json!({ "metadata": { "annotations": {} } });
    for (base, value) in values {
        patch["metadata"]["annotations"][key(base, suffix)] = json!(value);
    }
    patch
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::ConfigMap;

    use super::*;

    fn stamp(seconds: i64, token: &str) -> Stamp {
        Stamp { time: Timestamp::from_second(seconds).unwrap(), token: format!("uid-{token}") }
    }

    /// Applies the patches, in this order, to an object without annotations.
    fn object(patches: &[Value]) -> ConfigMap {
        let mut value = json!({ "metadata": { "uid": "uid" } });
        patches.iter().for_each(|patch| json_patch::merge(&mut value, patch));
        serde_json::from_value(value).unwrap()
    }

    fn record(patches: &[Value]) -> Record {
        Record::of(&object(patches), "").unwrap()
    }

    fn name(id: &str) -> Value {
        json!({ "metadata": { "annotations": { EXTERNAL_NAME: id } } })
    }

    #[test]
    fn a_creation_is_unsettled_until_its_own_outcome_is_recorded() {
        let (first, second) = (stamp(5, "one"), stamp(5, "two"));
        assert_eq!(record(&[]), Record::default());
        assert_eq!(record(&[pending("", &first, None)]).unsettled, Some(first.clone()));
        let settled = [pending("", &first, None), failed("", &first)];
        assert_eq!(record(&settled), Record::default());
        // The same second: an order of times alone could not tell them apart.
        let again = [pending("", &first, None), failed("", &first), pending("", &second, None)];
        assert_eq!(record(&again).unsettled, Some(second.clone()));
        let late = [pending("", &second, None), failed("", &first)];
        assert_eq!(record(&late).unsettled, Some(second.clone()));
        let created = record(&[pending("", &second, None), succeeded("", &second, "db 7")]);
        assert_eq!((created.id.as_deref(), created.unsettled), (Some("db 7"), None));
        assert_eq!(created.created, Some(second));
    }

    #[test]
    fn an_id_that_was_set_by_hand_is_imported_and_settles() {
        let settled = record(&[pending("", &stamp(5, "one"), None), name("theirs")]);
        assert_eq!((settled.id.as_deref(), settled.created), (Some("theirs"), None));
        assert_eq!(settled.unsettled, None);
        let moved = record(&[
            pending("", &stamp(5, "a"), None),
            succeeded("", &stamp(5, "a"), "x"),
            name("y"),
        ]);
        assert_eq!((moved.id.as_deref(), moved.is_import), (Some("y"), true));
        assert_eq!((moved.created, moved.former.as_deref()), (None, Some("x")));
        let replaced = record(&[
            pending("", &stamp(5, "a"), None),
            succeeded("", &stamp(5, "a"), "x"),
            name("y"),
            accepted("", Some(("uid", "y"))),
        ]);
        assert_eq!((replaced.former, replaced.replaced.as_deref()), (None, Some("x")));
        assert!(record(&[name("theirs")]).is_import && !settled.is_import);
    }

    #[test]
    fn the_record_of_another_object_is_an_error() {
        let stamp = stamp(5, "one");
        for copied in [vec![pending("", &stamp, None)], vec![succeeded("", &stamp, "db-7")]] {
            let mut copy = object(&copied);
            copy.metadata.uid = Some("ui".to_owned());
            let failure = Record::of(&copy, "").unwrap_err();
            assert!(failure.is_terminal() && failure.to_string().contains("copied"), "{failure}");
        }
    }

    #[test]
    fn an_import_is_accepted_for_its_own_object_and_its_own_id() {
        let import = accepted("", Some(("uid", "db 7")));
        assert!(record(&[name("db 7"), import.clone()]).is_accepted);
        assert!(!record(&[name("db"), import.clone()]).is_accepted, "another id was set since");
        assert!(!record(std::slice::from_ref(&import)).is_accepted, "no id is left");
        assert!(!record(&[name("db 7"), import.clone(), accepted("", None)]).is_accepted);
        let ended = |patches: &[Value]| record(patches).ended_import;
        assert_eq!(ended(&[name("db"), import.clone()]).as_deref(), Some("db 7"));
        assert_eq!(ended(&[name("db 7"), import.clone()]), None);
        let mut copy = object(&[name("db 7"), import]);
        copy.metadata.uid = Some("ui".to_owned());
        assert!(!Record::of(&copy, "").unwrap().is_accepted, "a copy is another object");
    }

    #[test]
    fn a_removed_name_loses_no_resource() {
        let made = [pending("", &stamp(5, "one"), None), succeeded("", &stamp(5, "one"), "db-7")];
        let mut object = object(&made);
        object.metadata.annotations.as_mut().unwrap().remove(EXTERNAL_NAME);
        assert_eq!(Record::of(&object, "").unwrap().id.as_deref(), Some("db-7"));
    }

    #[test]
    fn an_unreadable_creation_is_an_error_that_says_how_to_settle_it() {
        let patch = json!({ "metadata": { "annotations": { CREATE_PENDING: "yesterday" } } });
        let failure = Record::of(&object(&[patch]), "").unwrap_err();
        assert!(failure.is_terminal());
        assert!(failure.to_string().contains(EXTERNAL_NAME), "{failure}");
    }

    #[test]
    fn parts_and_drivers_have_records_and_policies_of_their_own() {
        let copy = suffix_of("", "copy").unwrap();
        let bucket = suffix_of("bucket", "").unwrap();
        let key = format!("{EXTERNAL_POLICY}{copy}");
        let policy = json!({ "metadata": { "annotations": { key: "no-delete" } } });
        let other = pending(&suffix_of("bucket", "copy").unwrap(), &stamp(6, "three"), None);
        let made =
            [pending(&copy, &stamp(5, "one"), None), pending(&bucket, &stamp(5, "two"), None)];
        let object = object(&[made.as_slice(), &[name("main"), policy, other]].concat());
        assert_eq!(Record::of(&object, "").unwrap().id.as_deref(), Some("main"));
        assert_eq!(Record::of(&object, &copy).unwrap().unsettled.unwrap().token, "uid-one");
        assert_eq!(Record::of(&object, &bucket).unwrap().unsettled.unwrap().token, "uid-two");
        assert_eq!(parts_of(&object, ""), ["", "copy"]);
        assert_eq!(parts_of(&object, "bucket"), ["", "copy"]);
        assert_eq!(parts_of(&object, "buck"), [""; 0]);
        assert_eq!(policy_of(&object, "").unwrap(), ExternalPolicy::FULL);
        assert_eq!(policy_of(&object, &copy).unwrap(), ExternalPolicy::NO_DELETE);
    }

    #[test]
    fn names_that_are_no_part_of_a_key_are_refused() {
        for bad in ["Copy", "-a", "a-", "a.b", "a_b", &"a".repeat(38)] {
            assert!(suffix_of("", bad).is_err(), "{bad:?}");
            assert!(suffix_of(bad, "").is_err(), "{bad:?}");
        }
        let longest = suffix_of(&"a".repeat(18), &"b".repeat(18)).unwrap();
        let name = CREATE_SUCCEEDED.split_once('/').unwrap().1;
        assert_eq!(name.len() + longest.len(), 63);
    }
}
