//! Index values of what a kept value does not have.
//!
//! A projection keeps some fields of an object, and an index may be on another: it is evaluated while
//! the whole object is there. Its values stay beside the kept value, so that a snapshot finds the
//! object by them after it has changed, and an own write that takes its place before the watch does.
//!
//! An index that comes when objects are there already would find nothing of what was not kept: it is
//! refused. Not here: the kept value itself (`keep`).

use super::index::Evaluator;
use super::keep::Mode;
use super::object::{Home, Object};
use super::values::{Path, Plan};
use crate::error::{Error, ErrorKind};
use crate::resource::Reads;
use crate::wire::object_at_path;

/// The paths of a type's fields; the empty path is everything.
#[derive(Clone, Copy, Debug)]
pub(super) struct Fields(pub(super) &'static [Path]);

impl Fields {
    /// Does a field lie there or above? Then its type decides what it keeps.
    pub(super) fn may_have(self, path: &[&str]) -> bool {
        self.0.iter().any(|field| path.starts_with(field))
    }

    /// The field that lies there or above.
    fn above(self, path: &[&str]) -> Option<Path> {
        self.0.iter().copied().find(|field| path.starts_with(field))
    }

    /// The labels that have a field each; `None` when all are read.
    pub(super) fn picked_labels(self) -> Option<Vec<String>> {
        if self.may_have(&["metadata", "labels"]) {
            return None;
        }
        let picked = self.0.iter().filter_map(|field| match **field {
            ["metadata", "labels", key] => Some(key.to_owned()),
            _ => None,
        });
        Some(picked.collect())
    }

    /// Is a field, or a part of the metadata, just there?
    pub(super) fn has(self, path: &[&str]) -> bool {
        let is_whole = |field: &&Path| match **field {
            [] | ["metadata", ..] => path.starts_with(field),
            field => *field == *path,
        };
        self.0.iter().any(|field| is_whole(&field))
    }
}

/// Values by path, as they stand beside a kept value: empty, or JSON of this store's own.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Outside<'a>(&'a [u8]);

/// A path and a value at it.
type Entry<'a> = (Vec<std::borrow::Cow<'a, str>>, String);

impl<'a> Outside<'a> {
    pub(super) fn of(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    fn is_empty(self) -> bool {
        self.0.is_empty()
    }

    /// Calls `each` for every value of a declared path, with the number of its index.
    pub(super) fn each(self, declared: &[(usize, Path)], each: &mut dyn FnMut(usize, &str)) {
        if self.0.is_empty() {
            return;
        }
        let entries: Vec<Entry<'_>> = serde_json::from_slice(self.0).unwrap_or_default();
        for (path, text) in &entries {
            for (index, _) in declared.iter().filter(|(_, declared)| path == declared) {
                each(*index, text);
            }
        }
    }
}

/// The values of indexes on paths of which the kept form may not have everything; `object` is as it
/// came.
pub(super) fn of_path_indexes(object: &Object, plan: &Plan, mode: &Mode) -> Vec<u8> {
    let mut entries: Vec<(Path, String)> = Vec::new();
    let outside = |index: usize| {
        let declared = plan.declared().iter().find(|(known, _)| *known == index);
        declared.map(|(_, path)| *path).filter(|path| !mode.has(path))
    };
    if plan.declared().iter().all(|(_, path)| mode.has(path)) {
        return Vec::new();
    }
    object.visit(plan.paths(), &mut |index, scalar| {
        if let Some(path) = outside(index) {
            entries.push((path, scalar.to_string()));
        }
    });
    written(&entries)
}

/// The same of an object in whatever form, for `own`, which takes its place: without the values below
/// a field that `own` has empty.
pub(super) fn known(object: &Object, own: &Object, plan: &Plan, mode: &Mode) -> Vec<u8> {
    let body = own.body();
    let is_cleared = |path: &[&str]| {
        let field = mode.fields().and_then(|fields| fields.above(path));
        field.is_some_and(|field| is_empty(object_at_path(&body, field)))
    };
    let mut entries: Vec<(Path, String)> = Vec::new();
    let mut add = |index: usize, text: &str| {
        let declared = plan.declared().iter().find(|(known, _)| *known == index);
        if let Some((_, path)) = declared.filter(|(_, path)| !mode.has(path) && !is_cleared(path)) {
            entries.push((path, text.to_owned()));
        }
    };
    let outside = object.outside();
    if outside.is_empty() {
        object.visit(plan.paths(), &mut |index, scalar| add(index, &scalar.to_string()));
    } else {
        outside.each(plan.declared(), &mut add);
    }
    written(&entries)
}

/// Is nothing said there?
fn is_empty(value: Option<&[u8]>) -> bool {
    value.is_none_or(|value| matches!(value.trim_ascii(), b"null" | b"[]" | b"{}"))
}

fn written(entries: &[(Path, String)]) -> Vec<u8> {
    if entries.is_empty() {
        return Vec::new();
    }
    serde_json::to_vec(entries).unwrap_or_default()
}

/// Why an index cannot be built; `is_late` says whether there are objects already. It asks the kind's
/// type, which may be a user's code: never call it under a lock.
pub(super) fn refusal(home: &Home, index: &Evaluator, is_late: bool) -> Option<Error> {
    let Evaluator::Path(path, reads) = *index else { return None };
    let why = if path.is_empty() {
        "its path is empty; name the field, such as `&[\"spec\", \"nodeName\"]`"
    } else if home.mode.never_has(path) {
        "only the metadata of its objects are read; choose another representation for the kind, or index a field of the metadata"
    } else if reads(path) == Reads::Object {
        "an object stands there, which has no value to be found by; name a field below it, or use a function (Index::new)"
    } else if is_late && !home.mode.may_have(path) {
        "objects are cached already, and this field was not kept of them, or their type cannot tell; add it to the type that the kind is read as, or declare the index before the cache starts (Wiring::index, Store::ensure_index)"
    } else {
        return None;
    };
    let (info, path) = (&home.info, path.join("."));
    let text = format!("cannot build an index of {info} on `{path}`: {why}");
    Some(Error::new(ErrorKind::Usage, text))
}
