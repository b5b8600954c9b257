//! Faults of requests: the requests that match, and the action taken on them.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use serde_json::{Value, json};

/// The action taken on a matching request.
#[derive(Clone, Debug)]
pub enum FaultAction {
    /// Answers a Status with this code instead of executing the request.
    Answer(u16),
    /// Executes the request, then answers a Status with this code.
    ExecuteThenAnswer(u16),
    /// Executes the request, then cuts the connection without an answer.
    ExecuteThenDrop,
    /// Cuts the connection without executing the request.
    Drop,
    /// Never answers and does not execute the request.
    Hang,
    /// Executes the request and never answers.
    ExecuteThenHang,
    /// Waits before executing the request.
    Delay(Duration),
    /// Executes the request, then waits before the answer.
    ExecuteThenDelay(Duration),
    /// Sets the `Retry-After` header of the answer to this value.
    RetryAfter(String),
    /// Ends the watch as soon as it is open.
    CloseWatch,
    /// Starts the watch with an ERROR event of this code and ends the watch.
    FailWatch(u16),
    /// Starts the watch with these bytes as a frame.
    RawFrame(Bytes),
    /// Starts the watch this many revisions before the requested revision.
    RepeatWatch(u64),
    /// Lets the watch see a server that lags behind: the initial state is that of a revision, and
    /// later changes follow when the time has passed. A revision that is compacted changes nothing.
    Behind(u64, Duration),
    /// Replaces the `spec` of the named object by a text that no client can decode, in every answer
    /// that shows the object.
    Garble(String),
    /// Answers these bytes as the whole body, with this code and as JSON.
    RawBody(u16, Bytes),
}

/// A fault: the affected requests and the actions.
#[derive(Clone, Debug)]
pub struct Fault {
    verb: Option<String>,
    resource: Option<String>,
    subresource: Option<String>,
    namespace: Option<String>,
    name: Option<String>,
    agent: Option<String>,
    user: Option<String>,
    /// Matching requests that are still spared.
    skip: usize,
    /// Matching requests that are still struck; `usize::MAX` is without end.
    times: usize,
    actions: Vec<FaultAction>,
}

impl Fault {
    /// Returns a fault that strikes every request, once; the other methods restrict the fault.
    #[must_use]
    pub fn new(action: FaultAction) -> Self {
        Self {
            verb: None,
            resource: None,
            subresource: None,
            namespace: None,
            name: None,
            agent: None,
            user: None,
            skip: 0,
            times: 1,
            actions: vec![action],
        }
    }

    /// Restricts the fault to a verb: `get`, `list`, `watch`, `create`, `update`, `patch`,
    /// `delete`, `deletecollection`; several separated by `|`.
    #[must_use]
    pub fn on(mut self, verb: &str) -> Self {
        self.verb = Some(verb.to_owned());
        self
    }

    /// Restricts the fault to a resource by plural; for requests without a resource to a prefix of
    /// the path, such as `/version`. Default: everything.
    #[must_use]
    pub fn resource(mut self, resource: &str) -> Self {
        self.resource = Some(resource.to_owned());
        self
    }

    /// Restricts the fault to a subresource; the empty text means the object alone.
    #[must_use]
    pub fn subresource(mut self, subresource: &str) -> Self {
        self.subresource = Some(subresource.to_owned());
        self
    }

    /// Restricts the fault to a namespace.
    #[must_use]
    pub fn namespace(mut self, namespace: &str) -> Self {
        self.namespace = Some(namespace.to_owned());
        self
    }

    /// Restricts the fault to a name.
    #[must_use]
    pub fn name(mut self, name: &str) -> Self {
        self.name = Some(name.to_owned());
        self
    }

    /// Restricts the fault to clients whose `User-Agent` contains this text.
    #[must_use]
    pub fn agent(mut self, part: &str) -> Self {
        self.agent = Some(part.to_owned());
        self
    }

    /// Restricts the fault to a user.
    #[must_use]
    pub fn user(mut self, user: &str) -> Self {
        self.user = Some(user.to_owned());
        self
    }

    /// Spares the first `n` matching requests.
    #[must_use]
    pub fn after(mut self, n: usize) -> Self {
        self.skip = n;
        self
    }

    /// Strikes `n` times instead of once.
    #[must_use]
    pub fn times(mut self, n: usize) -> Self {
        self.times = n;
        self
    }

    /// Strikes until the fault is removed.
    #[must_use]
    pub fn always(self) -> Self {
        self.times(usize::MAX)
    }

    /// Adds an action that follows earlier actions (a delay and then an answer, for example).
    #[must_use]
    pub fn then(mut self, action: FaultAction) -> Self {
        self.actions.push(action);
        self
    }

    /// Returns the fault as JSON; restrictions that are not set are left out.
    fn describe(&self, handle: &FaultHandle) -> Value {
        let times = Some(self.times).filter(|times| *times != usize::MAX);
        let actions: Vec<String> =
            self.actions.iter().map(|action| format!("{action:?}")).collect();
        let mut described = json!({
            "id": handle.id(), "hits": handle.hits(), "after": self.skip, "times": times,
            "actions": actions,
        });
        for (key, value) in [
            ("verb", &self.verb),
            ("resource", &self.resource),
            ("subresource", &self.subresource),
            ("namespace", &self.namespace),
            ("name", &self.name),
            ("agent", &self.agent),
            ("user", &self.user),
        ] {
            if let Some(value) = value {
                described[key] = json!(value);
            }
        }
        described
    }

    /// Whether a request meets all restrictions.
    fn matches(&self, subject: &MatchedRequest<'_>) -> bool {
        let same = |wanted: &Option<String>, held: &str| {
            wanted.as_deref().is_none_or(|wanted| wanted == held)
        };
        let verb = self.verb.as_deref();
        let resource = self.resource.as_deref();
        verb.is_none_or(|verbs| verbs.split('|').any(|verb| verb == subject.verb))
            && resource.is_none_or(|resource| subject.is(resource))
            && same(&self.subresource, subject.subresource)
            && same(&self.namespace, subject.namespace)
            && same(&self.name, subject.name)
            && same(&self.user, subject.user)
            && self.agent.as_deref().is_none_or(|part| subject.agent.contains(part))
    }
}

/// A request in the view of faults.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MatchedRequest<'a> {
    /// Verb, or the lower-case method for paths without a resource.
    pub(crate) verb: &'a str,
    /// API group; empty for the core group.
    pub(crate) group: &'a str,
    /// Plural of the resource; empty for paths without one.
    pub(crate) resource: &'a str,
    pub(crate) subresource: &'a str,
    pub(crate) namespace: &'a str,
    /// Name of the object, also if a field selector names the object.
    pub(crate) name: &'a str,
    /// Path of the URL.
    pub(crate) path: &'a str,
    /// `User-Agent` header.
    pub(crate) agent: &'a str,
    /// Name of the user.
    pub(crate) user: &'a str,
}

impl MatchedRequest<'_> {
    /// Whether the request is for a resource, or for a path with this prefix if the text begins
    /// with `/`.
    fn is(&self, resource: &str) -> bool {
        if resource.starts_with('/') {
            self.path.starts_with(resource)
        } else {
            self.resource == resource
        }
    }
}

/// Handle of an added fault: counts strikes and removes it.
#[derive(Clone, Debug)]
pub struct FaultHandle {
    inner: Arc<Handle>,
}

/// State that a fault shares with handles.
#[derive(Debug, Default)]
struct Handle {
    /// Number of the fault.
    id: u64,
    /// Requests struck.
    hits: AtomicUsize,
    /// Whether the fault was removed through a handle.
    removed: AtomicBool,
}

impl FaultHandle {
    pub(super) fn new(id: u64) -> Self {
        Self { inner: Arc::new(Handle { id, ..Handle::default() }) }
    }

    /// Returns the number of the fault.
    pub(crate) fn id(&self) -> u64 {
        self.inner.id
    }

    /// Returns the number of requests struck.
    pub fn hits(&self) -> usize {
        // `SeqCst` in this file is stronger than needed: a test reads the count after a response,
        // which orders the two.
        self.inner.hits.load(Ordering::SeqCst)
    }

    /// Removes the fault.
    pub fn remove(&self) {
        // Only marked: the next request drops the fault from the list.
        self.inner.removed.store(true, Ordering::SeqCst);
    }
}

/// The active faults, in the order in which they were added.
#[derive(Debug, Default)]
pub(super) struct Rules {
    active: Vec<(Fault, FaultHandle)>,
}

impl Rules {
    /// Adds a fault.
    pub(super) fn add(&mut self, fault: Fault, handle: FaultHandle) {
        self.active.push((fault, handle));
    }

    /// Returns the active faults as JSON.
    pub(super) fn describe(&self) -> Value {
        let active = self.active.iter();
        let active = active.filter(|(_, handle)| !handle.inner.removed.load(Ordering::SeqCst));
        active.map(|(fault, handle)| fault.describe(handle)).collect()
    }

    /// Removes a fault by number; false if there is none.
    pub(super) fn remove(&mut self, id: u64) -> bool {
        let before = self.active.len();
        self.active.retain(|(_, handle)| handle.id() != id);
        self.active.len() < before
    }

    /// Removes all faults.
    pub(super) fn clear(&mut self) {
        self.active.clear();
    }

    /// Returns the actions for a request, and drops faults that are used up or removed.
    pub(super) fn strike(&mut self, subject: &MatchedRequest<'_>) -> Vec<FaultAction> {
        // Several faults may strike a request: all actions are taken, in order.
        let mut actions = Vec::new();
        self.active.retain_mut(|(fault, handle)| {
            if handle.inner.removed.load(Ordering::SeqCst) {
                return false;
            }
            if !fault.matches(subject) {
                return true;
            }
            if fault.skip > 0 {
                fault.skip -= 1;
                return true;
            }
            // Counted before the request is answered: a test that has the answer sees the count.
            handle.inner.hits.fetch_add(1, Ordering::SeqCst);
            actions.extend(fault.actions.iter().cloned());
            // `usize::MAX` is not counted down: `always` means without end.
            fault.times = fault.times.saturating_sub(usize::from(fault.times != usize::MAX));
            fault.times > 0
        });
        actions
    }
}

/// Garbles an object with this name, or the items of a list with this name.
pub(crate) fn garble(value: &mut Value, name: &str) {
    if value["metadata"]["name"] == name {
        // A text where a structure belongs: valid JSON that fails in typed decoding.
        value["spec"] = Value::from("garbled");
    }
    if let Some(items) = value.get_mut("items").and_then(Value::as_array_mut) {
        for item in items {
            garble(item, name);
        }
    }
}
