//! Which requests are struck, and how.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use serde_json::Value;

/// What happens to a struck request.
#[derive(Clone, Debug)]
pub enum Action {
    /// A Status with this code instead of doing what was asked.
    Answer(u16),
    /// Does what was asked, then answers a Status with this code.
    ExecuteThenAnswer(u16),
    /// Does what was asked, then cuts the connection without an answer.
    ExecuteThenDrop,
    /// Cuts the connection without doing anything.
    Drop,
    /// Never answers and does nothing.
    Hang,
    /// Does what was asked and never answers.
    ExecuteThenHang,
    /// Waits before doing what was asked.
    Delay(Duration),
    /// Value of the `Retry-After` header, together with an answer.
    RetryAfter(String),
    /// The watch ends as soon as it is open.
    CloseWatch,
    /// The watch starts with an ERROR event of this code and ends.
    FailWatch(u16),
    /// The watch starts with these bytes as a frame.
    RawFrame(Bytes),
    /// The watch starts so many revisions before the one asked for.
    RepeatWatch(u64),
    /// Replaces the `spec` of the named object, wherever it is shown, by a text no client can
    /// decode.
    Garble(String),
    /// Answers these bytes as the whole body, with this code and as JSON.
    RawBody(u16, Bytes),
}

/// Which requests to strike and what to do to them.
#[derive(Clone, Debug)]
pub struct Fault {
    verb: Option<String>,
    resource: Option<String>,
    subresource: Option<String>,
    namespace: Option<String>,
    name: Option<String>,
    agent: Option<String>,
    user: Option<String>,
    skip: usize,
    times: usize,
    actions: Vec<Action>,
}

impl Fault {
    /// Strikes every request, once; narrow it down.
    #[must_use]
    pub fn new(action: Action) -> Self {
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

    /// Only this verb: `get`, `list`, `watch`, `create`, `update`, `patch`, `delete`,
    /// `deletecollection`; several separated by `|`.
    #[must_use]
    pub fn on(mut self, verb: &str) -> Self {
        self.verb = Some(verb.to_owned());
        self
    }

    /// Only this resource by its plural; for requests without one a prefix of the path, such as
    /// `/version`. Default: everything.
    #[must_use]
    pub fn resource(mut self, resource: &str) -> Self {
        self.resource = Some(resource.to_owned());
        self
    }

    /// Only this subresource; empty means only the object itself.
    #[must_use]
    pub fn subresource(mut self, subresource: &str) -> Self {
        self.subresource = Some(subresource.to_owned());
        self
    }

    /// Only this namespace.
    #[must_use]
    pub fn namespace(mut self, namespace: &str) -> Self {
        self.namespace = Some(namespace.to_owned());
        self
    }

    /// Only this name.
    #[must_use]
    pub fn name(mut self, name: &str) -> Self {
        self.name = Some(name.to_owned());
        self
    }

    /// Only clients whose `User-Agent` contains this.
    #[must_use]
    pub fn agent(mut self, part: &str) -> Self {
        self.agent = Some(part.to_owned());
        self
    }

    /// Only this user.
    #[must_use]
    pub fn user(mut self, user: &str) -> Self {
        self.user = Some(user.to_owned());
        self
    }

    /// Spares the first `n` requests that match.
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

    /// Strikes until it is removed.
    #[must_use]
    pub fn always(self) -> Self {
        self.times(usize::MAX)
    }

    /// Does this too, after the earlier actions (a delay and then an answer, say).
    #[must_use]
    pub fn then(mut self, action: Action) -> Self {
        self.actions.push(action);
        self
    }

    fn matches(&self, subject: &Subject<'_>) -> bool {
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

/// A request, as faults see it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Subject<'a> {
    pub(crate) verb: &'a str,
    pub(crate) resource: &'a str,
    pub(crate) subresource: &'a str,
    pub(crate) namespace: &'a str,
    pub(crate) name: &'a str,
    pub(crate) path: &'a str,
    pub(crate) agent: &'a str,
    pub(crate) user: &'a str,
}

impl Subject<'_> {
    fn is(&self, resource: &str) -> bool {
        if resource.starts_with('/') {
            self.path.starts_with(resource)
        } else {
            self.resource == resource
        }
    }
}

/// A fault that was added.
#[derive(Clone, Debug)]
pub struct FaultHandle {
    inner: Arc<Handle>,
}

#[derive(Debug, Default)]
struct Handle {
    hits: AtomicUsize,
    removed: AtomicBool,
}

impl FaultHandle {
    pub(super) fn new() -> Self {
        Self { inner: Arc::default() }
    }

    /// How often it struck.
    pub fn hits(&self) -> usize {
        self.inner.hits.load(Ordering::SeqCst)
    }

    /// Strikes no more.
    pub fn remove(&self) {
        self.inner.removed.store(true, Ordering::SeqCst);
    }
}

/// The faults in force.
#[derive(Debug, Default)]
pub(super) struct Rules {
    active: Vec<(Fault, FaultHandle)>,
}

impl Rules {
    pub(super) fn add(&mut self, fault: Fault, handle: FaultHandle) {
        self.active.push((fault, handle));
    }

    pub(super) fn clear(&mut self) {
        self.active.clear();
    }

    pub(super) fn strike(&mut self, subject: &Subject<'_>) -> Vec<Action> {
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
            handle.inner.hits.fetch_add(1, Ordering::SeqCst);
            actions.extend(fault.actions.iter().cloned());
            fault.times = fault.times.saturating_sub(usize::from(fault.times != usize::MAX));
            fault.times > 0
        });
        actions
    }
}

/// Garbles an object, or the items of a list or table of it.
pub(crate) fn garble(value: &mut Value, name: &str) {
    if value["metadata"]["name"] == name {
        value["spec"] = Value::from("garbled");
    }
    if let Some(items) = value.get_mut("items").and_then(Value::as_array_mut) {
        for item in items {
            garble(item, name);
        }
    }
}
