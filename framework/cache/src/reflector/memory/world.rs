//! State of an in-memory source: objects, history, open watches.

use std::collections::{BTreeMap, VecDeque};
use std::fmt;

use bytes::Bytes;
use serde_json::{Map, Value, json};
use tokio::sync::mpsc;
use tokio::time::Instant;

use super::{MemoryResponse, Read, Script, failure};
use windlass_core::error::{Error, ErrorKind};
use windlass_core::resource::ResourceInfo;

/// Most events that are kept for watches from an earlier version.
///
/// A watch from an earlier version is answered by 410.
const MOST_HISTORY: usize = 10_000;
/// Most requests that are recorded.
///
/// Tests of this crate fail at that number: a reflector that works sends far fewer.
const MOST_REQUESTS: usize = 20_000;
/// Most undelivered pieces of a watch, which is cut beyond that.
///
/// A real server closes the watch of a slow client as well.
const MOST_BEHIND: usize = 4096;
/// Default size of a piece of a list in bytes.
const PIECE: usize = 64 * 1024;
/// Distance of a bookmark from the version before.
///
/// On a real server the versions of other kinds lie between.
const BOOKMARK_STEP: u64 = 40;

/// Namespace and name.
type Key = (Option<String>, String);
/// Pieces of an answer; an error ends it like a broken connection.
type Body = mpsc::Receiver<Result<Bytes, Error>>;

/// An event of the history.
struct PastEvent {
    /// Version at which the event occurred.
    version: u64,
    /// Namespace of the object; `None` of a cluster-scoped object.
    namespace: Option<String>,
    /// The event as received by watches.
    frame: Bytes,
}

/// An open watch.
pub(super) struct Watcher {
    /// Namespace that the watch follows; `None` follows all.
    namespace: Option<String>,
    /// The watch receives events after this version.
    after: u64,
    /// Closed when the reader has dropped the answer.
    sender: mpsc::Sender<Result<Bytes, Error>>,
}

/// The server's state.
pub(super) struct World {
    /// Kind of the objects, written into each of them.
    kind: String,
    /// Group and version, written into each object.
    api_version: String,
    /// Version of the last write; begins at 10, so that a test can restore an earlier version.
    pub(super) version: u64,
    /// Objects in the order of a list: by namespace, then name.
    objects: BTreeMap<Key, Value>,
    /// The last events, oldest first.
    history: VecDeque<PastEvent>,
    /// Watches from before this version are too old.
    oldest: u64,
    /// Bytes of a piece of a list.
    pub(super) piece: usize,
    /// Open answers; closed answers are removed at the next write or count.
    pub(super) watchers: Vec<Watcher>,
    /// The last requests, oldest first, with the time of each.
    pub(super) requests: VecDeque<(Instant, Read)>,
    /// Number of all requests, those included that `requests` no longer has.
    asked: usize,
    /// Function that replaces answers, if a script is set.
    pub(super) script: Option<Script>,
}

impl fmt::Debug for World {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("World")
            .field("version", &self.version)
            .field("objects", &self.objects.len())
            .field("watchers", &self.watchers.len())
            .field("requests", &self.asked)
            .finish_non_exhaustive()
    }
}

/// Returns the key of an object; an empty namespace is none.
fn key_of(object: &Value) -> Key {
    let text = |name: &str| object["metadata"][name].as_str().map(str::to_owned);
    (text("namespace").filter(|namespace| !namespace.is_empty()), text("name").unwrap_or_default())
}

/// Returns the resourceVersion of an object; empty if there is none.
fn version_of(object: &Value) -> &str {
    object["metadata"]["resourceVersion"].as_str().unwrap_or_default()
}

/// Returns a frame of a watch.
///
/// The frame ends with a line feed, as those of API servers do.
pub(in crate::reflector) fn frame(event: &str, object: &str) -> Bytes {
    Bytes::from(format!("{{\"type\":\"{event}\",\"object\":{object}}}\n"))
}

impl World {
    /// Creates a server without objects.
    pub(super) fn new(info: &ResourceInfo) -> Self {
        Self {
            kind: info.kind.to_string(),
            api_version: info.api_version(),
            version: 10,
            objects: BTreeMap::new(),
            history: VecDeque::new(),
            oldest: 0,
            piece: PIECE,
            watchers: Vec::new(),
            requests: VecDeque::new(),
            asked: 0,
            script: None,
        }
    }

    /// Returns the object's text, in the form of API servers: kind and metadata before the content.
    fn text(&self, object: &Value) -> String {
        let mut text = format!(
            r#"{{"kind":{},"apiVersion":{},"metadata":{}"#,
            json!(self.kind),
            json!(self.api_version),
            object["metadata"]
        );
        let rest = object.as_object().into_iter().flatten();
        let rest = rest.filter(|(name, _)| !["kind", "apiVersion", "metadata"].contains(&&***name));
        for (name, value) in rest {
            text.push_str(&format!(",{}:{value}", json!(name)));
        }
        text.push('}');
        text
    }

    /// Creates or changes an object; returns the object's version.
    ///
    /// A changed object keeps the uid, unless the caller gives another: that is an object that was
    /// deleted and created again without a deletion event.
    pub(super) fn put(&mut self, mut object: Value) -> u64 {
        self.version += 1;
        let key = key_of(&object);
        let before = self.objects.get(&key);
        let uid = before.map_or_else(
            || json!(format!("uid{}", self.version)),
            |before| before["metadata"]["uid"].clone(),
        );
        if object["metadata"]["uid"].is_null() {
            object["metadata"]["uid"] = uid;
        }
        object["metadata"]["resourceVersion"] = json!(self.version.to_string());
        let event = if before.is_some() { "MODIFIED" } else { "ADDED" };
        self.record(event, &object, key.0.clone());
        self.objects.insert(key, object);
        self.version
    }

    /// Deletes an object and sends the event, whose object has the version of the deletion.
    pub(super) fn delete(&mut self, namespace: Option<&str>, name: &str) -> Option<Value> {
        let mut object = self.lose(namespace, name)?;
        object["metadata"]["resourceVersion"] = json!(self.version.to_string());
        self.record("DELETED", &object, namespace.map(str::to_owned));
        Some(object)
    }

    /// Deletes an object without an event; the version advances all the same.
    pub(super) fn lose(&mut self, namespace: Option<&str>, name: &str) -> Option<Value> {
        let object = self.objects.remove(&(namespace.map(str::to_owned), name.to_owned()))?;
        self.version += 1;
        Some(object)
    }

    /// Sends an event to the open watches and adds the event to the history.
    fn record(&mut self, event: &str, object: &Value, namespace: Option<String>) {
        let frame = frame(event, &self.text(object));
        // Watches first, then the history: both happen under the source's lock, so that a watch
        // that opens later finds the event in the history, and none receives the event twice.
        self.send(&frame, namespace.as_deref(), Some(self.version));
        self.history.push_back(PastEvent { version: self.version, namespace, frame });
        if self.history.len() > MOST_HISTORY
            && let Some(past) = self.history.pop_front()
        {
            self.oldest = self.oldest.max(past.version);
        }
    }

    /// Sends bytes to the watches of a namespace, or to all; bytes with a version are not sent to
    /// watches that begin later.
    pub(super) fn send(&mut self, bytes: &Bytes, namespace: Option<&str>, version: Option<u64>) {
        self.watchers.retain(|watcher| {
            // After `restore` a watch may be ahead of the server: the watch stays silent until the
            // versions catch up.
            if version.is_some_and(|version| version <= watcher.after) {
                return true;
            }
            let is_theirs = namespace.is_none()
                || watcher.namespace.is_none()
                || watcher.namespace.as_deref() == namespace;
            // A full channel drops the watch: the watch is `MOST_BEHIND` pieces behind.
            !is_theirs || watcher.sender.try_send(Ok(bytes.clone())).is_ok()
        });
    }

    /// Returns a bookmark, which may end a streaming list.
    fn mark(&self, ends_list: bool) -> Bytes {
        let mut metadata = Map::new();
        metadata.insert("resourceVersion".to_owned(), json!(self.version.to_string()));
        if ends_list {
            let end = json!({"k8s.io/initial-events-end": "true"});
            metadata.insert("annotations".to_owned(), end);
        }
        frame("BOOKMARK", &self.text(&json!({"metadata": metadata})))
    }

    /// Advances the version and sends a bookmark; the history has no event for a bookmark.
    pub(super) fn bookmark(&mut self) {
        self.version += BOOKMARK_STEP;
        let mark = self.mark(false);
        self.send(&mark, None, Some(self.version));
    }

    /// Ends every watch with an error of the transport.
    pub(super) fn break_watches(&mut self) {
        for watcher in self.watchers.drain(..) {
            let error = Error::new(ErrorKind::Transport, "the connection was reset");
            // The receiver may be gone already.
            let _ = watcher.sender.try_send(Err(error));
        }
    }

    /// Removes the watches whose readers are gone, and returns the number of the others.
    pub(super) fn open_watches(&mut self) -> usize {
        self.watchers.retain(|watcher| !watcher.sender.is_closed());
        self.watchers.len()
    }

    /// Forgets the history.
    ///
    /// The version advances, so that even a watch from the newest version known to clients is too
    /// old.
    pub(super) fn expire(&mut self) {
        self.version += 1;
        self.oldest = self.version;
        self.history.clear();
    }

    /// Continues at another version, without a history.
    ///
    /// Objects stay as they are; callers change them as the backup had them.
    pub(super) fn restore(&mut self, version: u64) {
        self.version = version;
        // No version is too old: the watch of a client that is ahead is opened and stays silent.
        self.oldest = 0;
        self.history.clear();
        self.break_watches();
    }

    /// Records a request; returns the number of earlier requests.
    pub(super) fn note(&mut self, now: Instant, read: Read) -> usize {
        let number = self.asked;
        self.asked += 1;
        self.requests.push_back((now, read));
        if self.requests.len() > MOST_REQUESTS {
            self.requests.pop_front();
        }
        #[cfg(test)]
        assert!(number < MOST_REQUESTS, "a hot loop of requests");
        number
    }

    /// Returns the body; `None` when no answer comes.
    pub(super) fn answer(
        &mut self,
        read: &Read,
        scripted: Option<MemoryResponse>,
        namespace: Option<&str>,
    ) -> Result<Option<Body>, Error> {
        let (pieces, stays_open) = match scripted {
            Some(MemoryResponse::Never) => return Ok(None),
            Some(MemoryResponse::Error(error)) => return Err(error),
            Some(MemoryResponse::Body(pieces)) => (pieces, false),
            Some(MemoryResponse::Hang(pieces)) => (pieces, true),
            None => self.well(read, namespace)?,
        };
        let (sender, receiver) = mpsc::channel(pieces.len() + MOST_BEHIND);
        for piece in pieces {
            // The channel has space for all of them.
            let _ = sender.try_send(Ok(piece));
        }
        if stays_open {
            self.open_watches();
            // A streaming list begins with all objects, and has no version before which the stream
            // would be silent.
            let after = match read {
                Read::Watch { resource_version, .. } => resource_version.parse().unwrap_or(0),
                _ => 0,
            };
            self.watchers.push(Watcher { namespace: namespace.map(str::to_owned), after, sender });
        }
        Ok(Some(receiver))
    }

    /// Returns the pieces of an unscripted answer, and whether the answer stays open.
    ///
    /// Errors become frames or answers in the way of an API server: an expired watch is opened, and
    /// the first frame is the error.
    fn well(&self, read: &Read, namespace: Option<&str>) -> Result<(Vec<Bytes>, bool), Error> {
        match read {
            Read::Page { limit, continue_token, .. } => {
                Ok((self.list(*limit, continue_token.as_deref(), namespace)?, false))
            }
            Read::StreamingList { .. } => {
                let objects = self.scope(namespace);
                let mut pieces: Vec<Bytes> =
                    objects.map(|object| frame("ADDED", &self.text(object))).collect();
                pieces.push(self.mark(true));
                Ok((pieces, true))
            }
            Read::Watch { resource_version, .. } => {
                let from: u64 = resource_version.parse().unwrap_or(0);
                if from < self.oldest {
                    let gone = serde_json::to_string(&failure(410, "Expired")).unwrap_or_default();
                    return Ok((vec![frame("ERROR", &gone)], false));
                }
                let later = self.history.iter().filter(|past| past.version > from);
                let later = later
                    .filter(|past| namespace.is_none() || past.namespace.as_deref() == namespace);
                Ok((later.map(|past| past.frame.clone()).collect(), true))
            }
        }
    }

    /// Returns the objects of a namespace, or all.
    fn scope(&self, namespace: Option<&str>) -> impl Iterator<Item = &Value> {
        let within = move |key: &Key| namespace.is_none() || key.0.as_deref() == namespace;
        self.objects.iter().filter(move |(key, _)| within(key)).map(|(_, object)| object)
    }

    /// Returns a page. A continue token holds the version of the first page and the index of the
    /// next item.
    fn list(
        &self,
        limit: Option<u32>,
        token: Option<&str>,
        namespace: Option<&str>,
    ) -> Result<Vec<Bytes>, Error> {
        let place = token.map(|token| {
            let (version, start) = token.split_once(':').unwrap_or_default();
            (version.parse::<u64>().unwrap_or_default(), start.parse().unwrap_or(0))
        });
        // The index counts items of the present objects: a write between two pages may move items,
        // as no page has a snapshot here.
        let (version, start) = place.unwrap_or((self.version, 0_usize));
        if version < self.oldest {
            return Err(Error::from_status("list", failure(410, "Expired")));
        }
        let end = limit.map_or(usize::MAX, |limit| start.saturating_add(limit as usize));
        let objects: Vec<_> = self.scope(namespace).collect();
        let next = if end < objects.len() { format!("{version}:{end}") } else { String::new() };
        let page = &objects[start.min(objects.len())..end.min(objects.len())];
        // Changes since the first page are sent by the watch that follows.
        let items: Vec<_> = page.iter().map(|object| self.text(object)).collect();
        let newest = page.iter().filter_map(|object| version_of(object).parse().ok()).max();
        let version = version.max(newest.filter(|_| token.is_none()).unwrap_or(0));
        let metadata = json!({"resourceVersion": version.to_string(), "continue": next});
        let body = format!(
            r#"{{"items":[{}],"kind":"{}List","metadata":{metadata}}}"#,
            items.join(","),
            self.kind
        );
        let body = Bytes::from(body);
        let starts = (0..body.len()).step_by(self.piece);
        Ok(starts.map(|start| body.slice(start..body.len().min(start + self.piece))).collect())
    }
}
