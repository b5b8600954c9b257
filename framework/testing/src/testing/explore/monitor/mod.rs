//! The monitor of one run: it records requests and changes inside the server, and causes the
//! disturbances of the plan at the moment they are due.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::sync::Notify;
use windlass_apiserver::ApiServer;
use windlass_apiserver::faults::{Action, ObservedChange, ObservedRequest, Observer};

use super::line::OPERATOR;
use super::plan::{Disturbance, Plan, Step};
use super::state;

/// Longest time that an event is held: longer ones find faults in operators that have none.
const LONGEST_HOLD: Duration = Duration::from_secs(45);
/// Time that a kind's watches lag behind.
const LAG: Duration = Duration::from_secs(10);
/// Time that a late request needs to the server.
const LATE: Duration = Duration::from_secs(10);
/// Most requests and changes of a run; a run with more is not recorded further.
const MOST: usize = 20_000;
/// Resources whose writes no oracle judges: bookkeeping of the framework.
const BOOKKEEPING: [&str; 3] = ["leases", "events", "customresourcedefinitions"];

/// A request of the operator.
#[derive(Clone, Debug)]
pub(super) struct Request {
    pub(super) verb: String,
    pub(super) resource: String,
    pub(super) subresource: String,
    pub(super) namespace: String,
    pub(super) name: String,
    /// Numbers of the changes that it made.
    pub(super) changes: Vec<usize>,
    /// Key of the first of them: the name of a creation is known by it alone.
    pub(super) key: Option<String>,
}

impl Request {
    /// Returns the record of a request that has made no change yet.
    fn of(request: &ObservedRequest<'_>) -> Self {
        Self {
            verb: request.verb.to_owned(),
            resource: request.resource.to_owned(),
            subresource: request.subresource.to_owned(),
            namespace: request.namespace.to_owned(),
            name: request.name.to_owned(),
            changes: Vec::new(),
            key: None,
        }
    }

    /// Whether the request may write.
    pub(super) fn is_write(&self) -> bool {
        !matches!(self.verb.as_str(), "get" | "list" | "watch")
    }

    /// Whether plans may disturb the request: one for an object that oracles judge.
    pub(super) fn is_disturbed(&self) -> bool {
        !self.resource.is_empty()
            && !BOOKKEEPING.contains(&self.resource.as_str())
            && self.verb != "watch"
            && self.verb != "list"
    }
}

/// A change of an object.
#[derive(Clone, Debug)]
pub(super) struct Change {
    /// Resource, namespace and name, with the generated part of the name left out.
    pub(super) key: String,
    resource: String,
    /// `creates`, `updates` or `deletes`.
    pub(super) verb: &'static str,
    pub(super) by_operator: bool,
    /// Whether oracles judge it: not bookkeeping, and more than versions differs.
    pub(super) is_relevant: bool,
    /// State after the change, without what differs from run to run.
    pub(super) after: Value,
    /// Virtual time.
    pub(super) at: Duration,
}

impl Change {
    /// Returns the plural of the kind.
    pub(super) fn plural(&self) -> &str {
        plural(&self.resource)
    }
}

/// Returns the plural within the name under which a resource is stored.
fn plural(resource: &str) -> &str {
    resource.split('.').next().unwrap_or_default()
}

/// The record of a run.
#[derive(Clone, Debug, Default)]
pub(super) struct Recording {
    pub(super) requests: Vec<Request>,
    pub(super) changes: Vec<Change>,
    /// Last state of each object, by resource and key.
    pub(super) objects: BTreeMap<(String, String), Value>,
    /// The disturbances that were caused.
    pub(super) caused: Vec<Step>,
}

/// The observer of one run.
#[derive(Debug)]
pub(super) struct Monitor {
    /// The server; removed at the end of the run, which would otherwise keep itself alive.
    server: Mutex<Option<ApiServer>>,
    state: Mutex<State>,
    /// Notified when the operator has crashed.
    pub(super) crashed: Notify,
    /// Notified of each change that oracles judge.
    pub(super) changed: Notify,
}

#[derive(Debug)]
struct State {
    began: tokio::time::Instant,
    recording: Recording,
    /// Disturbances that are still to come.
    steps: Vec<Step>,
    /// Held kinds, each with the key whose next change releases it.
    held: Vec<(String, String)>,
    /// Cuts the connections of the running operator.
    cut: Arc<AtomicBool>,
    /// Number of the request whose execution ends in a crash.
    doomed: Option<usize>,
}

impl Monitor {
    /// Installs a monitor on a server.
    pub(super) fn install(server: &ApiServer, plan: &Plan) -> Arc<Self> {
        let state = State {
            began: tokio::time::Instant::now(),
            recording: Recording::default(),
            steps: plan.steps.clone(),
            held: Vec::new(),
            cut: Arc::default(),
            doomed: None,
        };
        let monitor = Arc::new(Self {
            server: Mutex::new(Some(server.clone())),
            state: Mutex::new(state),
            crashed: Notify::new(),
            changed: Notify::new(),
        });
        server.observe(Arc::clone(&monitor) as Arc<dyn Observer>);
        monitor
    }

    /// Sets the switch that cuts off the running operator.
    pub(super) fn follow(&self, cut: Arc<AtomicBool>) {
        self.state.lock().cut = cut;
    }

    /// Returns the number of changes that oracles judge.
    pub(super) fn judged(&self) -> usize {
        self.state.lock().recording.changes.iter().filter(|change| change.is_relevant).count()
    }

    /// Returns the number of all changes.
    pub(super) fn changes(&self) -> usize {
        self.state.lock().recording.changes.len()
    }

    /// Returns the objects as they are now.
    pub(super) fn objects(&self) -> BTreeMap<(String, String), Value> {
        self.state.lock().recording.objects.clone()
    }

    /// Takes no further disturbances.
    pub(super) fn calm(&self) {
        self.state.lock().steps.clear();
    }

    /// Ends the recording and returns it.
    pub(super) fn end(&self) -> Recording {
        self.server.lock().take();
        std::mem::take(&mut self.state.lock().recording)
    }

    /// Lets the watches of a kind go on after a time.
    fn release_after(server: &ApiServer, resource: &str, time: Duration) {
        let (faults, resource) = (server.faults().clone(), resource.to_owned());
        tokio::spawn(async move {
            tokio::time::sleep(time).await;
            faults.resume_watches(&resource);
        });
    }

    /// Disturbs the watches of a kind; returns whether the object's next change releases them.
    fn disturb(server: &ApiServer, kind: Disturbance, plural: &str) -> bool {
        let faults = server.faults();
        match kind {
            Disturbance::Hold => {
                faults.pause_watches(plural);
                Self::release_after(server, plural, LONGEST_HOLD);
            }
            Disturbance::Lag => {
                faults.pause_watches(plural);
                Self::release_after(server, plural, LAG);
            }
            _ => faults.fail_watches(plural, 410),
        }
        kind == Disturbance::Hold
    }

    /// Cuts off the operator, and has it started again.
    fn crash(&self, state: &State) {
        state.cut.store(true, Ordering::Relaxed);
        self.crashed.notify_one();
    }

    /// Edits an object as another client would.
    fn edit(server: &ApiServer, request: &ObservedRequest<'_>) {
        let ObservedRequest { group, resource, namespace, name, .. } = *request;
        if let Some(mut object) = server.get_object(group, resource, namespace, name) {
            object["metadata"]["annotations"][state::EDIT] = json!("edited");
            server.commit(group, resource, namespace, name, Some(object));
        }
    }
}

impl Observer for Monitor {
    fn request(&self, request: &ObservedRequest<'_>) -> Vec<Action> {
        let Some(server) = self.server.lock().clone().filter(|_| request.user == OPERATOR) else {
            return Vec::new();
        };
        let kinds: Vec<Disturbance> = {
            let mut state = self.state.lock();
            let number = state.recording.requests.len();
            if number == MOST {
                return Vec::new();
            }
            let now = state.due(number, false);
            for step in &now {
                match step.kind {
                    Disturbance::CrashBefore => self.crash(&state),
                    Disturbance::CrashAfter => state.doomed = Some(number),
                    _ => {}
                }
            }
            state.recording.requests.push(Request::of(request));
            now.into_iter().map(|step| step.kind).collect()
        };
        let action = |kind: Disturbance| match kind {
            Disturbance::CrashBefore => Some(Action::Hang),
            Disturbance::CrashAfter => Some(Action::ExecuteThenHang),
            Disturbance::LoseAnswer => Some(Action::ExecuteThenDrop),
            Disturbance::Refuse(code) => Some(Action::Answer(code)),
            Disturbance::Fail(code) => Some(Action::ExecuteThenAnswer(code)),
            Disturbance::Late => Some(Action::Delay(LATE)),
            Disturbance::Edit => {
                Self::edit(&server, request);
                None
            }
            Disturbance::Hold | Disturbance::Lag | Disturbance::Relist => None,
        };
        kinds.into_iter().filter_map(action).collect()
    }

    fn changed(&self, change: &ObservedChange<'_>) {
        let Some(server) = self.server.lock().clone() else { return };
        let mut state = self.state.lock();
        let number = state.recording.changes.len();
        if number == MOST {
            return;
        }
        let seen = state.seen(change);
        let by_request = state.attribute(&seen, change, number);
        if by_request.is_some() && state.doomed == by_request {
            state.doomed = None;
            self.crash(&state);
        }
        let (released, held): (Vec<_>, Vec<_>) =
            std::mem::take(&mut state.held).into_iter().partition(|(_, key)| *key == seen.key);
        state.held = held;
        released.iter().for_each(|(resource, _)| server.faults().resume_watches(resource));
        for step in state.due(number, true) {
            if Self::disturb(&server, step.kind, seen.plural()) {
                state.held.push((seen.plural().to_owned(), seen.key.clone()));
            }
        }
        if seen.is_relevant {
            self.changed.notify_one();
        }
        state.recording.changes.push(seen);
    }
}

impl State {
    /// Takes the steps that the request or change of a number meets, and records them as caused.
    fn due(&mut self, number: usize, of_change: bool) -> Vec<Step> {
        let is_due = |step: &Step| step.at == number && step.kind.is_of_change() == of_change;
        let (now, later) = self.steps.iter().copied().partition::<Vec<Step>, _>(is_due);
        self.steps = later;
        self.recording.caused.extend(&now);
        now
    }

    /// Records the state after a change, and returns the change as it is recorded.
    fn seen(&mut self, change: &ObservedChange<'_>) -> Change {
        let object = change.after.or(change.before).unwrap_or(&Value::Null);
        let text = |field: &str| object["metadata"][field].as_str().unwrap_or_default();
        let id = (change.resource.to_owned(), format!("{}/{}", text("namespace"), text("name")));
        let is_kept = !BOOKKEEPING.contains(&plural(change.resource));
        let comparable = |side: Option<&Value>| {
            side.filter(|_| is_kept).map(state::comparable).unwrap_or_default()
        };
        let (before, after) = (comparable(change.before), comparable(change.after));
        match change.after {
            Some(_) if is_kept => drop(self.recording.objects.insert(id, after.clone())),
            _ => drop(self.recording.objects.remove(&id)),
        }
        let verb = match (change.before, change.after) {
            (None, _) => "creates",
            (_, None) => "deletes",
            _ => "updates",
        };
        Change {
            key: state::key(change.resource, object),
            resource: change.resource.to_owned(),
            verb,
            by_operator: change.user == Some(OPERATOR),
            is_relevant: is_kept && before != after,
            after,
            at: self.began.elapsed(),
        }
    }

    /// Adds a change to the operator's request that made it; returns the number of the request.
    fn attribute(
        &mut self,
        seen: &Change,
        change: &ObservedChange<'_>,
        number: usize,
    ) -> Option<usize> {
        if !seen.by_operator {
            return None;
        }
        let object = change.after.or(change.before)?;
        let name = object["metadata"]["name"].as_str().unwrap_or_default();
        let namespace = object["metadata"]["namespace"].as_str().unwrap_or_default();
        let made = |request: &&mut Request| {
            request.is_write()
                && request.resource == seen.plural()
                && request.namespace == namespace
                && (request.name.is_empty() || request.name == name)
        };
        let (at, request) = self
            .recording
            .requests
            .iter_mut()
            .enumerate()
            .rev()
            .find(|(_, request)| made(request))?;
        request.changes.push(number);
        request.key.get_or_insert_with(|| seen.key.clone());
        Some(at)
    }
}
