//! A writer: the owner of some objects, which writes them with a single write at a time, and
//! records the results.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use k8s_openapi::api::core::v1::ConfigMap;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde_json::json;
use windlass::api::{Api, Patch};
use windlass::resource::ResourceExt;
use windlass::rng::Rng;
use windlass::{Error, ErrorKind};

/// Label: the write that made the object.
pub(super) const MADE_BY: &str = "made-by";
/// Annotation: the write that led to this state.
pub(super) const OP: &str = "op";
/// Number of objects that a worker keeps.
const KEPT: usize = 8;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Kind {
    Create,
    CreateGenerated,
    Replace,
    PatchWithVersion,
    Patch,
    PatchOnce,
    Apply,
    ApplyNew,
    Delete,
    DeleteWithUid,
}

/// An object as last known to the worker.
#[derive(Clone, Debug)]
pub(super) struct Known {
    pub(super) name: String,
    pub(super) uid: String,
    version: String,
    pub(super) op: String,
    made_by: String,
}

impl Known {
    fn of(object: &ConfigMap) -> Self {
        let text = |text: Option<&str>| text.unwrap_or_default().to_owned();
        Self {
            name: object.name().to_owned(),
            uid: object.uid().to_owned(),
            version: object.resource_version().to_owned(),
            op: text(object.annotation(OP)),
            made_by: text(object.label(MADE_BY)),
        }
    }
}

/// Result of a write, as returned to the caller.
#[derive(Clone, Debug)]
pub(super) enum Answer {
    Done,
    /// Certainly not executed.
    Refused(ErrorKind),
    /// The fate was unknown; a read from the server showed the write done, or not done (yet).
    Doubtful {
        done: bool,
        kind: ErrorKind,
    },
}

/// A write.
#[derive(Clone, Debug)]
pub(super) struct Entry {
    pub(super) op: String,
    pub(super) kind: Kind,
    /// The object before, if an object existed.
    pub(super) before: Option<Known>,
    pub(super) answer: Answer,
}

/// A worker's records.
#[derive(Default)]
pub(super) struct Book {
    pub(super) entries: Vec<Entry>,
    /// Objects that must be on the server at the end.
    pub(super) kept: Vec<Known>,
    /// Writes that were not seen done when they were in doubt; their objects are not touched again.
    pub(super) open: Vec<Entry>,
    pub(super) faults: Vec<String>,
}

pub(super) struct Worker {
    id: usize,
    api: Api<ConfigMap>,
    /// Connection past the network that cuts.
    direct: Api<ConfigMap>,
    dice: Rng,
    tickets: Arc<AtomicUsize>,
    book: Book,
    names: usize,
    /// Names whose objects were deleted for sure.
    free: Vec<String>,
}

impl Worker {
    pub(super) fn new(
        id: usize,
        api: Api<ConfigMap>,
        direct: Api<ConfigMap>,
        dice: Rng,
        tickets: Arc<AtomicUsize>,
    ) -> Self {
        let book = Book::default();
        Self { id, api, direct, dice, tickets, book, names: 0, free: Vec::new() }
    }

    /// Writes until all workers together have made `count` writes.
    pub(super) async fn work(mut self, count: usize) -> Book {
        loop {
            let ticket = self.tickets.fetch_add(1, Ordering::Relaxed);
            if ticket >= count {
                return self.book;
            }
            self.write(format!("op-{ticket}")).await;
        }
    }

    fn choose(&self) -> Kind {
        let creations = [Kind::Create, Kind::CreateGenerated, Kind::ApplyNew];
        let deletions = [Kind::Delete, Kind::DeleteWithUid];
        let changes =
            [Kind::Replace, Kind::PatchWithVersion, Kind::Patch, Kind::PatchOnce, Kind::Apply];
        let of = |kinds: &[Kind]| kinds[self.dice.below(kinds.len() as u64) as usize];
        match (self.book.kept.len(), self.dice.below(10)) {
            (0, _) => of(&creations),
            (kept, 0..=2) if kept < KEPT => of(&creations),
            (kept, 0..=1) if kept > 2 => of(&deletions),
            _ => of(&changes),
        }
    }

    fn name(&mut self) -> String {
        self.free.pop().unwrap_or_else(|| {
            self.names += 1;
            format!("w{}-{}", self.id, self.names)
        })
    }

    async fn write(&mut self, op: String) {
        let kind = self.choose();
        let creates = matches!(kind, Kind::Create | Kind::CreateGenerated | Kind::ApplyNew);
        let before = if creates {
            None
        } else {
            let index = self.dice.below(self.book.kept.len() as u64) as usize;
            Some(self.book.kept.swap_remove(index))
        };
        let name = match &before {
            Some(before) => before.name.clone(),
            None if kind == Kind::CreateGenerated => String::new(),
            None => self.name(),
        };
        let result = send(&self.api, kind, &op, &name, before.as_ref()).await;
        self.take(Entry { op, kind, before, answer: Answer::Done }, &name, result).await;
    }

    /// Takes the answer to a write of the object `name` (empty when the server was to choose).
    async fn take(&mut self, mut entry: Entry, name: &str, result: Result<Option<Known>, Error>) {
        match result {
            Ok(Some(after)) => {
                if after.op != entry.op {
                    self.fault(&entry, "the answer shows another write's state");
                }
                self.book.kept.push(after);
            }
            Ok(None) => self.free.push(name.to_owned()),
            Err(error) => {
                let (done, now) = self.look(&entry, name).await;
                let doubtful = is_doubtful(&error);
                entry.answer = if doubtful {
                    Answer::Doubtful { done, kind: error.kind() }
                } else {
                    Answer::Refused(error.kind())
                };
                if !doubtful && (done || is_of_the_server(&error)) {
                    self.fault(&entry, &format!("done: {done}, but refused by {error:?}"));
                }
                match (done, now) {
                    (true, Some(now)) => self.book.kept.push(now),
                    (true, None) => self.free.push(name.to_owned()),
                    // The write may still be under way through the server.
                    (false, _) => self.book.open.push(entry.clone()),
                }
            }
        }
        self.book.entries.push(entry);
    }

    fn fault(&mut self, entry: &Entry, text: &str) {
        self.book.faults.push(format!("{entry:?}: {text}"));
    }

    /// Reads whether a write is done, and the object's present state.
    async fn look(&self, entry: &Entry, name: &str) -> (bool, Option<Known>) {
        if entry.kind == Kind::CreateGenerated {
            let made = self.direct.list().labels(&format!("{MADE_BY}={}", entry.op));
            let now = made.await.unwrap().items.first().map(Known::of);
            return (now.is_some(), now);
        }
        let now = self.direct.get_opt(name).await.unwrap().as_ref().map(Known::of);
        let done = match (&entry.kind, &now, &entry.before) {
            (Kind::Delete | Kind::DeleteWithUid, Some(now), Some(before)) => now.uid != before.uid,
            (Kind::Delete | Kind::DeleteWithUid, None, _) => true,
            (_, Some(now), _) => now.op == entry.op,
            _ => false,
        };
        (done, now)
    }
}

/// Whether an error leaves the fate of a write unknown.
fn is_doubtful(error: &Error) -> bool {
    // The error of a second attempt may be caused by the first attempt: the error's text says so.
    error.kind() == ErrorKind::Ambiguous
        || error.to_string().contains("an earlier attempt may have worked")
}

/// Whether the server refused a write that no other client can have made impossible.
fn is_of_the_server(error: &Error) -> bool {
    error.status().is_some_and(|status| status.code != 429)
}

async fn send(
    api: &Api<ConfigMap>,
    kind: Kind,
    op: &str,
    name: &str,
    before: Option<&Known>,
) -> Result<Option<Known>, Error> {
    let (version, uid) = match before {
        Some(before) => (before.version.as_str(), before.uid.as_str()),
        None => ("", ""),
    };
    let made_by = before.map_or(op, |before| before.made_by.as_str());
    let annotation = json!({ "annotations": { OP: op } });
    let sent = match kind {
        Kind::Create | Kind::CreateGenerated => api.create(&object(name, op, op)),
        Kind::Replace => {
            let mut changed = object(name, made_by, op);
            changed.metadata.resource_version = Some(version.to_owned());
            api.replace(&changed)
        }
        Kind::Patch => api.patch(name, Patch::Merge(json!({ "metadata": annotation }))),
        Kind::PatchWithVersion => {
            let mut metadata = annotation;
            metadata["resourceVersion"] = json!(version);
            api.patch(name, Patch::Merge(json!({ "metadata": metadata })))
        }
        Kind::PatchOnce => {
            let path = format!("/metadata/annotations/{OP}");
            let old = before.map(|before| &before.op);
            api.patch(
                name,
                Patch::Json(json!([
                    { "op": "test", "path": path, "value": old },
                    { "op": "replace", "path": path, "value": op },
                ])),
            )
        }
        Kind::Apply | Kind::ApplyNew => {
            let mut metadata = annotation;
            metadata["labels"] = json!({ MADE_BY: made_by });
            api.apply(name, &json!({ "metadata": metadata, "data": padding() })).force()
        }
        Kind::Delete => return api.delete(name).await.map(|_| None),
        Kind::DeleteWithUid => return api.delete(name).uid(uid).await.map(|_| None),
    };
    Ok(Some(Known::of(&sent.await?)))
}

fn object(name: &str, made_by: &str, op: &str) -> ConfigMap {
    let map = |key: &str, value: &str| Some(BTreeMap::from([(key.to_owned(), value.to_owned())]));
    let generated = name.is_empty();
    let metadata = ObjectMeta {
        name: (!generated).then(|| name.to_owned()),
        generate_name: generated.then(|| "generated-".to_owned()),
        labels: map(MADE_BY, made_by),
        annotations: map(OP, op),
        ..ObjectMeta::default()
    };
    ConfigMap { metadata, data: Some(padding()), ..ConfigMap::default() }
}

fn padding() -> BTreeMap<String, String> {
    BTreeMap::from([("padding".to_owned(), "x".repeat(200))])
}
