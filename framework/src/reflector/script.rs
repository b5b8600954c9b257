//! An API server for one kind, in memory and scripted: what tests of the cache read from.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio::time::Instant;

use super::source::Opening;
use super::{Chunks, ListWatch, Read};
use crate::error::{ApiStatus, Error, ErrorKind};

type Sender = mpsc::Sender<Result<Bytes, Error>>;
type Script = Arc<dyn Fn(usize, &Read) -> Option<Answer> + Send + Sync>;

/// What the server does instead of answering well.
#[derive(Clone, Debug)]
pub(crate) enum Answer {
    /// An error answer.
    Status(u16, &'static str),
    /// 429 with `Retry-After`.
    SlowDown(Duration),
    /// A body in pieces, then its end.
    Body(Vec<String>),
    /// A body in pieces, then silence.
    Hang(Vec<String>),
    /// No answer.
    Never,
}

#[derive(Default)]
struct World {
    version: u64,
    /// JSON text by namespace and name.
    objects: BTreeMap<(String, String), String>,
    log: Vec<(u64, String)>,
    compacted: u64,
    watchers: Vec<Sender>,
    requests: Vec<(Instant, Read)>,
    script: Option<Script>,
}

/// The server; its watches follow its writes.
#[derive(Default)]
pub(crate) struct Server {
    world: Mutex<World>,
}

impl fmt::Debug for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Server")
    }
}

impl Server {
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Self { world: Mutex::new(World { version: 10, ..World::default() }) })
    }

    /// Answers by `script` from now on, where it gives one; it is told the number of the request.
    pub(crate) fn script(
        &self,
        script: impl Fn(usize, &Read) -> Option<Answer> + Send + Sync + 'static,
    ) {
        self.world.lock().script = Some(Arc::new(script));
    }

    /// Answers well again.
    pub(crate) fn heal(&self) {
        self.world.lock().script = None;
    }

    /// Creates or changes `n/name`; returns the version.
    pub(crate) fn put(&self, name: &str, data: Value) -> u64 {
        self.put_in("n", name, data)
    }

    pub(crate) fn put_in(&self, namespace: &str, name: &str, data: Value) -> u64 {
        let mut world = self.world.lock();
        world.version += 1;
        let version = world.version;
        let key = (namespace.to_owned(), name.to_owned());
        let uid = world
            .objects
            .get(&key)
            .and_then(|object| serde_json::from_str::<Value>(object).ok())
            .map_or_else(|| format!("uid{version}"), |object| uid_of(&object));
        let object = json!({"apiVersion": "v1", "kind": "ConfigMap", "data": data, "metadata": {
            "namespace": namespace, "name": name, "uid": uid,
            "resourceVersion": version.to_string(), "managedFields": [{"manager": "m"}]}});
        let event = if world.objects.contains_key(&key) { "MODIFIED" } else { "ADDED" };
        world.objects.insert(key, text_of(&object));
        world.tell(event, &text_of(&object));
        version
    }

    pub(crate) fn delete(&self, name: &str) {
        self.delete_in("n", name);
    }

    pub(crate) fn delete_in(&self, namespace: &str, name: &str) {
        let mut world = self.world.lock();
        world.version += 1;
        let key = (namespace.to_owned(), name.to_owned());
        let text = world.objects.remove(&key).expect("the object exists");
        let mut object: Value = serde_json::from_str(&text).expect("the object is JSON");
        object["metadata"]["resourceVersion"] = json!(world.version.to_string());
        world.tell("DELETED", &text_of(&object));
    }

    /// Deletes without a word on any watch, as a gap does.
    pub(crate) fn lose(&self, name: &str) {
        let mut world = self.world.lock();
        world.version += 1;
        world.objects.remove(&("n".to_owned(), name.to_owned())).expect("the object exists");
    }

    /// Sends bytes on every watch.
    pub(crate) fn send(&self, bytes: &str) {
        self.world.lock().send(bytes);
    }

    /// Ends every watch in order.
    pub(crate) fn close_watches(&self) {
        self.world.lock().watchers.clear();
    }

    /// Breaks every watch.
    pub(crate) fn break_watches(&self) {
        let mut world = self.world.lock();
        for watcher in world.watchers.drain(..) {
            let error = Error::new(ErrorKind::Transport, "the connection was reset");
            // The other end may have gone already.
            let _ = watcher.try_send(Err(error));
        }
    }

    /// Forgets the history: watches from before are answered by 410.
    pub(crate) fn compact(&self) {
        let mut world = self.world.lock();
        world.version += 1;
        world.compacted = world.version;
    }

    /// Goes on at another version, as a restored server does.
    pub(crate) fn restore(&self, version: u64) {
        let mut world = self.world.lock();
        world.version = version;
        world.log.clear();
    }

    pub(crate) fn version(&self) -> u64 {
        self.world.lock().version
    }

    /// A bookmark on every watch.
    pub(crate) fn bookmark(&self) {
        let mut world = self.world.lock();
        world.version += 40;
        let line = bookmark(world.version, false);
        world.send(&line);
    }

    pub(crate) fn requests(&self) -> Vec<(Instant, Read)> {
        self.world.lock().requests.clone()
    }

    pub(crate) fn lists(&self) -> usize {
        let is_list = |(_, read): &&(Instant, Read)| !matches!(read, Read::Watch { .. });
        self.world.lock().requests.iter().filter(is_list).count()
    }
}

/// The object's text, metadata before the content, as API servers write it.
fn text_of(object: &Value) -> String {
    format!(
        r#"{{"kind":"ConfigMap","apiVersion":"v1","metadata":{},"data":{}}}"#,
        object["metadata"], object["data"]
    )
}

fn uid_of(object: &Value) -> String {
    object["metadata"]["uid"].as_str().unwrap_or_default().to_owned()
}

pub(crate) fn frame(event: &str, object: &str) -> String {
    format!("{{\"type\":\"{event}\",\"object\":{object}}}\n")
}

pub(crate) fn bookmark(version: u64, ends_initial_events: bool) -> String {
    let mut object = json!({"kind": "ConfigMap", "apiVersion": "v1",
        "metadata": {"resourceVersion": version.to_string()}});
    if ends_initial_events {
        object["metadata"]["annotations"] = json!({"k8s.io/initial-events-end": "true"});
    }
    frame("BOOKMARK", &object.to_string())
}

pub(crate) fn status(code: u16, reason: &str) -> ApiStatus {
    ApiStatus {
        status: "Failure".to_owned(),
        message: format!("scripted {code}"),
        reason: reason.to_owned(),
        code,
        ..ApiStatus::default()
    }
}

impl World {
    fn tell(&mut self, event: &str, object: &str) {
        let line = frame(event, object);
        self.log.push((self.version, line.clone()));
        self.send(&line);
    }

    fn send(&mut self, bytes: &str) {
        let bytes = Bytes::copy_from_slice(bytes.as_bytes());
        self.watchers.retain(|watcher| watcher.try_send(Ok(bytes.clone())).is_ok());
    }

    fn list(&self, limit: Option<u32>, token: Option<&str>) -> Vec<String> {
        let start: usize = token.and_then(|token| token.parse().ok()).unwrap_or(0);
        let end = limit.map_or(usize::MAX, |limit| start + limit as usize);
        let items: Vec<_> = self.objects.values().map(String::as_str).collect();
        let next = if end < items.len() { end.to_string() } else { String::new() };
        let page = &items[start.min(items.len())..end.min(items.len())];
        let meta = format!(
            "\"metadata\":{{\"resourceVersion\":\"{}\",\"continue\":\"{next}\"}}",
            self.version
        );
        let body = format!("{{\"items\":[{}],\"kind\":\"ConfigMapList\",{meta}}}", page.join(","));
        // Cut where it hurts.
        body.as_bytes()
            .chunks(61)
            .map(|piece| String::from_utf8_lossy(piece).into_owned())
            .collect()
    }

    /// Pieces of a watch's body, and whether it goes on.
    fn watch(&self, read: &Read) -> (Vec<String>, bool) {
        match read {
            Read::StreamingList { .. } => {
                let mut lines: Vec<_> =
                    self.objects.values().map(|object| frame("ADDED", object)).collect();
                lines.push(bookmark(self.version, true));
                (lines, true)
            }
            Read::Watch { resource_version, .. } => {
                let from: u64 = resource_version.parse().unwrap_or(0);
                if from < self.compacted {
                    let gone = serde_json::to_string(&status(410, "Expired")).unwrap_or_default();
                    return (vec![frame("ERROR", &gone)], false);
                }
                let later = self.log.iter().filter(|(version, _)| *version > from);
                (later.map(|(_, line)| line.clone()).collect(), true)
            }
            Read::Page { .. } => (Vec::new(), false),
        }
    }

    fn answer(&mut self, read: &Read) -> Result<Option<Chunks>, Error> {
        let number = self.requests.len();
        assert!(number < 20_000, "a hot loop of requests");
        self.requests.push((Instant::now(), read.clone()));
        let script = self.script.clone();
        let (pieces, stays_open) = match script.and_then(|script| script(number, read)) {
            Some(Answer::Never) => return Ok(None),
            Some(Answer::Status(code, reason)) => {
                return Err(Error::from_status("read", status(code, reason)));
            }
            Some(Answer::SlowDown(after)) => {
                return Err(Error::from_status("read", status(429, "TooManyRequests"))
                    .with_retry_after(Some(after)));
            }
            Some(Answer::Body(pieces)) => (pieces, false),
            Some(Answer::Hang(pieces)) => (pieces, true),
            None => match read {
                Read::Page { limit, continue_token } => {
                    (self.list(*limit, continue_token.as_deref()), false)
                }
                _ => self.watch(read),
            },
        };
        let (sender, receiver) = mpsc::channel(pieces.len() + 4096);
        for piece in pieces {
            sender.try_send(Ok(Bytes::from(piece))).expect("there is room");
        }
        if stays_open {
            self.watchers.push(sender);
        }
        Ok(Some(Chunks::Channel(receiver)))
    }
}

impl ListWatch for Server {
    fn open(&self, read: Read) -> Opening<'_> {
        let answer = self.world.lock().answer(&read);
        Box::pin(async move {
            match answer {
                Ok(Some(chunks)) => Ok(chunks),
                Ok(None) => std::future::pending().await,
                Err(error) => Err(error),
            }
        })
    }
}
