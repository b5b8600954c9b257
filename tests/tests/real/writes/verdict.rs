//! Comparison of the results that callers got with the history.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use k8s_openapi::api::core::v1::ConfigMap;
use windlass::ErrorKind;
use windlass::resource::ResourceExt;

use super::END;
use super::history::History;
use super::worker::{Answer, Book, Entry, Kind, OP};

/// Counts of the writes' results.
#[derive(Debug, Default)]
pub(super) struct Counts {
    pub(super) done: usize,
    pub(super) refused: BTreeMap<String, usize>,
    pub(super) doubtful_done: usize,
    pub(super) doubtful_undone: usize,
    /// Writes in doubt, by the error that their callers got.
    doubts: BTreeMap<String, usize>,
    kinds: BTreeMap<Kind, usize>,
}

impl Counts {
    pub(super) fn writes(&self) -> usize {
        self.kinds.values().sum()
    }
}

impl fmt::Display for Counts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "done {}, refused {:?}, in doubt {:?} (done {}, not done {}); {:?}",
            self.done,
            self.refused,
            self.doubts,
            self.doubtful_done,
            self.doubtful_undone,
            self.kinds
        )
    }
}

/// Counts the results, and collects violations.
pub(super) fn verdict(
    books: &[Book],
    history: &History,
    stored: &[ConfigMap],
) -> (Counts, Vec<String>) {
    let mut counts = Counts::default();
    let mut faults: Vec<String> = books.iter().flat_map(|book| book.faults.clone()).collect();
    for (op, uids) in &history.made {
        if uids.len() > 1 {
            faults.push(format!("{op} made {} objects", uids.len()));
        }
    }
    let deleted: BTreeSet<&str> = history.deleted.iter().map(String::as_str).collect();
    for entry in books.iter().flat_map(|book| &book.entries) {
        *counts.kinds.entry(entry.kind).or_default() += 1;
        let happened = happened(entry, history, &deleted);
        if let Answer::Doubtful { kind, .. } = &entry.answer {
            *counts.doubts.entry(name(*kind)).or_default() += 1;
        }
        match &entry.answer {
            Answer::Done => counts.done += 1,
            Answer::Refused(kind) => *counts.refused.entry(name(*kind)).or_default() += 1,
            Answer::Doubtful { .. } if happened > 0 => counts.doubtful_done += 1,
            Answer::Doubtful { .. } => counts.doubtful_undone += 1,
        }
        let right = match &entry.answer {
            Answer::Done => happened == 1,
            Answer::Refused(_) => happened == 0,
            Answer::Doubtful { done: true, .. } => happened == 1,
            Answer::Doubtful { done: false, .. } => happened <= 1,
        };
        if !right {
            faults.push(format!("it happened {happened} times: {entry:?}"));
        }
    }
    faults.extend(compare(books, stored, &deleted));
    (counts, faults)
}

/// Returns the number of times that a write was executed.
fn happened(entry: &Entry, history: &History, deleted: &BTreeSet<&str>) -> usize {
    match (&entry.kind, &entry.before) {
        (Kind::Delete | Kind::DeleteWithUid, Some(before)) => {
            usize::from(deleted.contains(before.uid.as_str()))
        }
        _ => history.states.get(&entry.op).copied().unwrap_or_default(),
    }
}

/// Compares the stored objects at the end with those that the workers know, and those still in
/// doubt.
fn compare(books: &[Book], stored: &[ConfigMap], deleted: &BTreeSet<&str>) -> Vec<String> {
    let mut faults = Vec::new();
    let mut left: BTreeMap<&str, &ConfigMap> =
        stored.iter().map(|object| (object.uid(), object)).collect();
    left.retain(|_, object| object.name() != END);
    for known in books.iter().flat_map(|book| &book.kept) {
        match left.remove(known.uid.as_str()) {
            None => faults.push(format!("lost: {known:?}")),
            Some(object) if object.annotation(OP) != Some(&known.op) => {
                let op = object.annotation(OP);
                faults.push(format!("{known:?} is in the state of {op:?}"));
            }
            Some(_) => {}
        }
    }
    for entry in books.iter().flat_map(|book| &book.open) {
        let object = match &entry.before {
            Some(before) => left.remove(before.uid.as_str()),
            None => {
                let made = left.iter().find(|(_, object)| object.annotation(OP) == Some(&entry.op));
                let uid = made.map(|(uid, _)| *uid);
                uid.and_then(|uid| left.remove(uid))
            }
        };
        let deletes = matches!(entry.kind, Kind::Delete | Kind::DeleteWithUid);
        match (&entry.before, object) {
            (Some(before), Some(object)) => {
                let op = object.annotation(OP);
                if op != Some(&before.op) && op != Some(&entry.op) {
                    faults.push(format!("{entry:?} is in the state of {op:?}"));
                }
            }
            (Some(before), None) if !deletes || !deleted.contains(before.uid.as_str()) => {
                faults.push(format!("lost: the object of {entry:?}"));
            }
            _ => {}
        }
    }
    faults.extend(left.values().map(|object| format!("no write made {object:?}")));
    faults
}

fn name(kind: ErrorKind) -> String {
    format!("{kind:?}")
}
