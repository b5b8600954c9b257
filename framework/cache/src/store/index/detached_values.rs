//! Index values that are kept beside an object, for fields that the kept form lacks.
//!
//! A projection keeps some fields of an object, and an index may be on another field, which is
//! evaluated while the whole object is there. The values stay beside the kept object. A snapshot
//! finds a changed object by these values, and so does an own write that replaces the object before
//! the watch does. Beside a decoded value the values of all path indexes are kept, because a value
//! may be encoded differently from the input (a default, a number that lost digits, a time in
//! another form).
//!
//! An index that is added after the first objects would miss the fields that were not kept, so such
//! an index is refused. Not included: the kept value (`encoding`).

use std::borrow::Cow;
use std::collections::BTreeMap;

use super::index::Evaluator;
use super::values::IndexPlan;
use crate::store::encoding::StoreSettings;
use crate::store::object::{Object, ObjectContent, Path};
use windlass_core::error::{Error, ErrorKind};
use windlass_core::resource::ResourceInfo;
use windlass_core::wire::value_at_path;

/// Encodes the values of path indexes for which the kept form may differ from the object; `object`
/// is the received object.
pub(in crate::store) fn of_path_indexes(
    object: &Object,
    plan: &IndexPlan,
    settings: &StoreSettings,
) -> Vec<u8> {
    if plan.declared().iter().all(|(_, path)| settings.is_exact_at(path)) {
        return Vec::new();
    }
    let values = visited(object, plan);
    let declared = plan.declared().iter().filter(|(_, path)| !settings.is_exact_at(path));
    let entries = declared.map(|(index, path)| (*path, values.get(index).cloned()));
    // A part keeps the original bytes, so a value that is absent from the object is absent from the
    // part too.
    let entries = entries.filter(|(_, values)| !settings.is_part() || values.is_some());
    written(entries.map(|(path, values)| (path, values.unwrap_or_default())).collect())
}

/// Encodes the values for `own`, which replaces `object` and was written through a type. Values in
/// `own` win; a value that `own` lacks is that of `object`, unless the write cleared the field.
pub(in crate::store) fn known(
    object: &Object,
    own: &Object,
    plan: &IndexPlan,
    settings: &StoreSettings,
) -> Vec<u8> {
    if plan.declared().iter().all(|(_, path)| settings.has(path)) {
        return Vec::new();
    }
    let body = own.body();
    let is_cleared = |path: &[&str]| {
        let field = settings.fields().and_then(|fields| fields.above(path));
        field.is_some_and(|field| is_empty(value_at_path(&body, field)))
    };
    let (own, mut before) = (visited(own, plan), visited(object, plan));
    let is_decoded = matches!(object.content(), ObjectContent::DecodedObject(_));
    for (index, values) in object.detached().by_index(plan.declared()) {
        // The decoded value shows the field, so the type has it: a write without the field cleared
        // it.
        if is_decoded && before.remove(&index).is_some() {
            continue;
        }
        before.insert(index, values.into_iter().map(Cow::into_owned).collect());
    }
    let declared = plan.declared().iter().filter(|(_, path)| !settings.has(path));
    let kept = declared.filter(|(index, path)| !own.contains_key(index) && !is_cleared(path));
    let entries = kept.filter_map(|(index, path)| Some((*path, before.remove(index)?)));
    written(entries.collect())
}

/// Returns the values at the plan's paths, by the number of the index.
fn visited(object: &Object, plan: &IndexPlan) -> BTreeMap<usize, Vec<String>> {
    let mut values: BTreeMap<usize, Vec<String>> = BTreeMap::new();
    object.visit(plan.paths(), &mut |index, scalar| {
        values.entry(index).or_default().push(scalar.to_string());
    });
    values
}

/// Whether the value is absent or empty.
fn is_empty(value: Option<&[u8]>) -> bool {
    value.is_none_or(|value| matches!(value.trim_ascii(), b"null" | b"[]" | b"{}"))
}

/// Encodes the values of some paths; no bytes for no values.
fn written(entries: Vec<(Path, Vec<String>)>) -> Vec<u8> {
    if entries.is_empty() {
        return Vec::new();
    }
    serde_json::to_vec(&entries).unwrap_or_default()
}

/// Returns the reason for which an index cannot be built; `is_late` is true if there are objects
/// already.
pub(in crate::store) fn refusal(
    info: &ResourceInfo,
    settings: &StoreSettings,
    index: &Evaluator,
    is_late: bool,
) -> Option<Error> {
    let Evaluator::Path(path) = *index else { return None };
    let why = if path.is_empty() {
        "its path is empty; name the field, such as `&[\"spec\", \"nodeName\"]`"
    } else if settings.never_has(path) {
        "only the metadata of its objects are read; choose another representation for the kind, or index a field of the metadata"
    } else if is_object(path) {
        "the path ends at an object, which cannot be indexed; name a field below it, or use a function (Index::new)"
    } else if is_late && !settings.may_have(path) {
        "objects are cached already, and this field was not kept of them, or nothing shows that it was; add it to the projection, declare the index before the cache starts (ControllerBuilder::index, Store::ensure_index), or use a function of the decoded object (Index::new)"
    } else {
        return None;
    };
    let path = path.join(".");
    let text = format!("cannot build an index of {info} on `{path}`: {why}");
    Some(Error::new(ErrorKind::Usage, text))
}

/// Whether an object, or a list of objects, lies at the path in every kind.
fn is_object(path: &[&str]) -> bool {
    let members = ["annotations", "labels", "managedFields", "ownerReferences"];
    matches!(path, ["metadata"]) || matches!(path, ["metadata", part] if members.contains(part))
}
