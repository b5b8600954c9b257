//! The other side of an operator's caches: lists and watches with the recorded objects and events.

use std::collections::BTreeMap;

use hyper::body::Bytes;
use serde_json::{Value, json};
use tokio::sync::mpsc;

use super::format::{ListState, RecordedCache};

/// Pieces that wait for the reader of a watch.
pub(super) const WAITING: usize = 1024;

/// Namespace and name.
type ObjectId = (String, String);

/// The objects of a cache at a moment of the replay, and the events up to it.
#[derive(Debug)]
pub(super) struct ReplayedCache {
    pub(super) path: String,
    pub(super) selectors: String,
    pub(super) is_metadata: bool,
    state: State,
    /// Events so far, each with the version that it leads to.
    events: Vec<(String, Bytes)>,
    watches: Vec<mpsc::Sender<Bytes>>,
}

#[derive(Debug)]
enum State {
    Unknown,
    Refused { code: u16, body: Value },
    Listed { version: String, objects: BTreeMap<ObjectId, Value> },
}

impl State {
    fn of(state: &ListState) -> Self {
        match state {
            ListState::Unknown => Self::Unknown,
            ListState::Refused { code, body } => Self::Refused { code: *code, body: body.clone() },
            ListState::Listed { version, objects } => Self::Listed {
                version: version.clone(),
                objects: objects.iter().map(|it| (id(it), it.clone())).collect(),
            },
        }
    }
}

impl ReplayedCache {
    pub(super) fn new(cache: &RecordedCache) -> Self {
        Self {
            path: cache.path.clone(),
            selectors: cache.selectors.clone(),
            is_metadata: cache.is_metadata,
            state: State::of(&cache.state),
            events: Vec::new(),
            watches: Vec::new(),
        }
    }

    /// Returns the objects.
    pub(super) fn objects(&self) -> impl Iterator<Item = &Value> {
        let objects = match &self.state {
            State::Listed { objects, .. } => Some(objects),
            _ => None,
        };
        objects.into_iter().flat_map(BTreeMap::values)
    }

    /// Returns the answer to a list: code and body; `None` before the first recorded one.
    pub(super) fn list(&self) -> Option<(u16, Value)> {
        match &self.state {
            State::Unknown => None,
            State::Refused { code, body } => Some((*code, body.clone())),
            State::Listed { version, objects } => {
                let items: Vec<&Value> = objects.values().collect();
                let first = |name: &str| items.first().and_then(|item| item[name].as_str());
                let kind = format!("{}List", first("kind").unwrap_or_default());
                let body = json!({ "kind": kind, "apiVersion": first("apiVersion").unwrap_or("v1"),
                    "metadata": { "resourceVersion": version }, "items": items });
                Some((200, body))
            }
        }
    }

    /// Opens a watch from a version, or with all objects at its beginning.
    pub(super) fn watch(&mut self, from: &str, is_initial: bool) -> mpsc::Receiver<Bytes> {
        let (sender, receiver) = mpsc::channel(WAITING);
        // A channel that has just been made has room.
        if let State::Listed { version, objects } = &self.state
            && is_initial
        {
            let added = objects.values().map(|object| line("ADDED", object));
            let end = json!({ "metadata": { "resourceVersion": version,
                "annotations": { "k8s.io/initial-events-end": "true" } } });
            let all: Vec<Bytes> = added.chain([line("BOOKMARK", &end)]).collect();
            let _ = sender.try_send(all.concat().into());
        } else {
            let known = self.events.iter().rposition(|(version, _)| version == from);
            // A version before all events is that of the first list.
            let missed = self.events.get(known.map_or(0, |at| at + 1)..).unwrap_or_default();
            let missed: Vec<&[u8]> = missed.iter().map(|(_, event)| &event[..]).collect();
            if !missed.is_empty() {
                let _ = sender.try_send(missed.concat().into());
            }
        }
        self.watches.retain(|watch| !watch.is_closed());
        self.watches.push(sender);
        receiver
    }

    /// Applies a recorded event, and passes it to the watches.
    pub(super) fn event(&mut self, event: &str, object: &Value) {
        let State::Listed { version, objects } = &mut self.state else { return };
        match event {
            "ADDED" | "MODIFIED" => drop(objects.insert(id(object), object.clone())),
            "DELETED" => drop(objects.remove(&id(object))),
            "BOOKMARK" => {}
            // A list follows, and has the difference.
            _ => return,
        }
        version_of(object).clone_into(version);
        self.send(version_of(object), line(event, object));
    }

    /// Applies a recorded list. The difference from the objects before becomes events: the replayed
    /// caches need not list again.
    pub(super) fn relist(&mut self, state: &ListState) {
        let after = State::of(state);
        if let (State::Listed { objects: before, .. }, State::Listed { version, objects }) =
            (&self.state, &after)
        {
            let mut events = Vec::new();
            let gone = before.iter().filter(|(id, _)| !objects.contains_key(*id));
            for (_, object) in gone {
                let mut last = object.clone();
                last["metadata"]["resourceVersion"] = version.as_str().into();
                events.push(line("DELETED", &last));
            }
            for (id, object) in objects {
                match before.get(id) {
                    Some(same) if version_of(same) == version_of(object) => {}
                    Some(_) => events.push(line("MODIFIED", object)),
                    None => events.push(line("ADDED", object)),
                }
            }
            let mark = json!({ "metadata": { "resourceVersion": version } });
            events.push(line("BOOKMARK", &mark));
            let version = version.clone();
            self.send(&version, events.concat().into());
        }
        self.state = after;
    }

    /// Passes events to the watches.
    fn send(&mut self, version: &str, event: Bytes) {
        self.events.push((version.to_owned(), event.clone()));
        // A watch that does not read ends, and its cache goes on by another one.
        self.watches.retain(|watch| watch.try_send(event.clone()).is_ok());
    }
}

fn id(object: &Value) -> ObjectId {
    let text = |field: &str| object["metadata"][field].as_str().unwrap_or_default().to_owned();
    (text("namespace"), text("name"))
}

fn version_of(object: &Value) -> &str {
    object["metadata"]["resourceVersion"].as_str().unwrap_or_default()
}

/// Returns a line of a watch.
fn line(event: &str, object: &Value) -> Bytes {
    format!("{}\n", json!({ "type": event, "object": object })).into()
}
