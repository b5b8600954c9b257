//! The monitor of one run: it records requests and changes inside the server, and causes the
//! disturbances of the plan at the moment they are due.

mod chaos;
mod lease;
mod outside;
mod recording;
mod recreation;
mod refusals;
pub(super) mod words;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::sync::Notify;
use windlass_apiserver::ApiServer;
use windlass_apiserver::faults::{FaultAction, ObservedChange, ObservedRequest, Observer};
use windlass_runtime::controller::ReconcileObserver;

use self::chaos::Chaos;
use self::lease::LeaseMonitor;
use self::recreation::Recreation;
use self::refusals::Refusals;
use super::line::{self, Trace};
use super::schedule::{Disturbance, PlannedDisturbance};
use super::setting::Setting;
use super::state::{self, Masks};
use super::varying::names::Snapshot;
use crate::testing::activity::OngoingReconciles;

pub(super) use self::lease::LEASE;
pub(super) use self::recording::{Observed, OperatorRequest, RecordedChange, Recording};

/// Most requests and changes of a run; a run with more is not recorded further.
const MOST: usize = 20_000;
/// Most violations that are kept.
const MOST_VIOLATIONS: usize = 8;

/// The observer of one run.
#[derive(Debug)]
pub(super) struct Monitor {
    /// The server; removed at the end of the run, which would otherwise keep itself alive.
    server: Mutex<Option<ApiServer>>,
    /// Locked by requests, changes and the test in turn, and never across an await.
    state: Mutex<State>,
    /// Reconciles under way; a lock of its own, since reconciles begin and end while the state is
    /// locked.
    work: OngoingReconciles,
    /// Notified when the operator has crashed.
    pub(super) crashed: Notify,
    /// Notified of each change that oracles judge.
    pub(super) changed: Notify,
    /// The hash of all bytes, where they are hashed.
    pub(super) trace: Option<Arc<Trace>>,
}

#[derive(Debug)]
struct State {
    began: tokio::time::Instant,
    recording: Recording,
    /// Places that are renewed all the time, and count in no comparison.
    renewed: Arc<Masks>,
    /// Disturbances that are still to come.
    steps: Vec<PlannedDisturbance>,
    /// Source of further ones.
    chaos: Option<Chaos>,
    /// Refusals that are no findings of their own.
    refusals: Refusals,
    /// Held kinds, each with the key whose next change releases it.
    held: Vec<(String, String)>,
    /// Cut the connections of the running processes.
    cuts: Vec<Arc<AtomicBool>>,
    /// Number of the request whose execution ends in a crash.
    doomed: Option<usize>,
    /// Number of the request before which another client has edited the object.
    edited: Option<usize>,
    /// Revision that first views show, and the virtual time until which they do.
    stale: Option<(u64, Duration)>,
    lease: LeaseMonitor,
    recreation: Recreation,
}

impl Monitor {
    /// Installs a monitor on a server.
    pub(super) fn install(server: &ApiServer, setting: &Setting, renewed: Arc<Masks>) -> Arc<Self> {
        let chaos = setting.chaos.map(|faults| Chaos::new(setting.seed, faults));
        let lag = chaos.as_ref().map_or(setting.lag, Chaos::lateness);
        if !lag.is_zero() {
            server.faults().lag_watches("*", lag);
        }
        let trace = chaos.is_some().then(Trace::default).map(Arc::new);
        let state = State {
            began: tokio::time::Instant::now(),
            recording: Recording::default(),
            renewed,
            steps: setting.plan.steps.clone(),
            chaos,
            refusals: Refusals::new(setting.refusals),
            held: Vec::new(),
            cuts: Vec::new(),
            doomed: None,
            edited: None,
            stale: None,
            lease: LeaseMonitor::default(),
            recreation: Recreation::default(),
        };
        let monitor = Arc::new(Self {
            server: Mutex::new(Some(server.clone())),
            state: Mutex::new(state),
            work: OngoingReconciles::default(),
            crashed: Notify::new(),
            changed: Notify::new(),
            trace,
        });
        server.observe(Arc::clone(&monitor) as Arc<dyn Observer>);
        monitor
    }

    /// Returns the listener for the operator's reconciles.
    pub(super) fn observer(&self) -> Arc<dyn ReconcileObserver> {
        Arc::new(self.work.clone())
    }

    /// Sets the switches that cut off the running processes.
    pub(super) fn follow(&self, cuts: Vec<Arc<AtomicBool>>) {
        self.state.lock().cuts = cuts;
    }

    /// Returns the number of changes that oracles judge.
    pub(super) fn judged(&self) -> usize {
        self.state.lock().recording.changes.iter().filter(|change| change.is_relevant).count()
    }

    /// Returns the number of all changes.
    pub(super) fn changes(&self) -> usize {
        self.state.lock().recording.changes.len()
    }

    /// Passes the changes so far to `read`, and returns the result.
    pub(super) fn with_changes<T>(&self, read: impl FnOnce(&[RecordedChange]) -> T) -> T {
        read(&self.state.lock().recording.changes)
    }

    /// Returns the objects as they are now.
    pub(super) fn snapshot(&self) -> Snapshot {
        let Recording { objects, uids, .. } = &self.state.lock().recording;
        Snapshot { objects: objects.clone(), uids: uids.clone() }
    }

    /// Returns the generations that the statuses of the objects name.
    pub(super) fn observed(&self) -> Observed {
        self.state.lock().recording.observed.clone()
    }

    /// Takes no further disturbances.
    pub(super) fn calm(&self) {
        let mut state = self.state.lock();
        state.steps.clear();
        state.chaos = None;
    }

    /// Ends the recording and returns it.
    pub(super) fn end(&self) -> Recording {
        self.server.lock().take();
        let mut recording = std::mem::take(&mut self.state.lock().recording);
        recording.trace = self.trace.as_ref().map(|trace| trace.hash()).unwrap_or_default();
        recording
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
            Disturbance::Hold | Disturbance::Lag => {
                faults.pause_watches(plural);
                Self::release_after(server, plural, kind.lasts());
            }
            Disturbance::Relist => faults.fail_watches(plural, 410),
            _ => {}
        }
        kind == Disturbance::Hold
    }

    /// Cuts off the operator, and has it started again.
    fn crash(&self, state: &State) {
        // Relaxed: a run has one thread, and the flag guards no other data.
        state.cuts.iter().for_each(|cut| cut.store(true, Ordering::Relaxed));
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

    /// Deletes an object and creates it again, as its user would who gives its manifest once more.
    fn replace(&self, server: &ApiServer, request: &ObservedRequest<'_>, number: usize) {
        let ObservedRequest { group, resource, namespace, name, .. } = *request;
        let Some(mut object) = server.get_object(group, resource, namespace, name) else { return };
        let metadata = &mut object["metadata"];
        let is_held = !metadata["finalizers"].as_array().is_none_or(Vec::is_empty);
        if is_held || !metadata["deletionTimestamp"].is_null() {
            return;
        }
        metadata["generation"] = json!(1);
        if let Some(fields) = metadata.as_object_mut() {
            fields.retain(|field, _| field != "managedFields" && field != "resourceVersion");
        }
        let made = self.state.lock().recording.made(resource, namespace, name);
        recording::begin_anew(&mut object, &made, &format!("00000000-0000-4000-8000-{number:012}"));
        server.commit(group, resource, namespace, name, None);
        server.commit(group, resource, namespace, name, Some(object));
    }

    /// Returns the record of a request, and the actions on it that no plan numbers.
    fn seen(&self, request: &ObservedRequest<'_>) -> (OperatorRequest, Vec<FaultAction>) {
        let state = self.state.lock();
        let now = state.began.elapsed();
        let mut actions: Vec<FaultAction> = state.lease.request(request, now).into_iter().collect();
        let stale = state.stale.filter(|(_, until)| request.verb == "watch" && now < *until);
        actions.extend(stale.map(|(revision, until)| FaultAction::Behind(revision, until - now)));
        (OperatorRequest::of(request, now), actions)
    }

    /// Takes what is due at a request; returns it with its number, and all other actions.
    fn met(
        &self,
        seen: OperatorRequest,
        mut actions: Vec<FaultAction>,
    ) -> Option<(Vec<Disturbance>, usize, Vec<FaultAction>)> {
        let mut state = self.state.lock();
        let number = state.recording.requests.len();
        if number == MOST {
            return None;
        }
        let now = seen.at;
        // DESIGN.md, 284: A disturbance that meets bookkeeping is dropped
        // After an earlier disturbance the number may be that of another request: of bookkeeping,
        // which no plan disturbs. The replacement of a definition would delete all objects of its
        // kind.
        let mut due = if seen.is_disturbed() { state.due(number, false) } else { Vec::new() };
        if state.refusals.is_due(&seen) {
            due.push(state.causes(Disturbance::Refuse(500), number));
        }
        let drawn = state.chaos.as_mut().map(|chaos| chaos.request(&seen));
        if let Some((fault, latency)) = drawn {
            if !latency.is_zero() {
                actions.push(FaultAction::Delay(latency));
            }
            due.extend(fault.map(|kind| state.causes(kind, number)));
        }
        state.recording.requests.push(seen);
        for step in &due {
            match step.kind {
                Disturbance::CrashBefore => self.crash(&state),
                Disturbance::CrashAfter => state.doomed = Some(number),
                Disturbance::Edit => state.edited = Some(number),
                Disturbance::HandOver => {
                    let until = now + step.kind.lasts();
                    state.lease.strike(until);
                }
                _ => {}
            }
        }
        Some((due.into_iter().map(|step| step.kind).collect(), number, actions))
    }
}

/// Returns the fault that a disturbance makes of a request.
fn action(kind: Disturbance) -> Option<FaultAction> {
    match kind {
        Disturbance::CrashBefore => Some(FaultAction::Hang),
        Disturbance::CrashAfter => Some(FaultAction::ExecuteThenHang),
        Disturbance::LoseAnswer => Some(FaultAction::ExecuteThenDrop),
        Disturbance::Refuse(code) => Some(FaultAction::Answer(code)),
        Disturbance::Fail(code) => Some(FaultAction::ExecuteThenAnswer(code)),
        Disturbance::Late => Some(FaultAction::Delay(kind.lasts())),
        Disturbance::Pause => Some(FaultAction::ExecuteThenDelay(kind.lasts())),
        _ => None,
    }
}

impl Observer for Monitor {
    fn request(&self, request: &ObservedRequest<'_>) -> Vec<FaultAction> {
        if !line::is_operator(request.user) {
            self.state.lock().recreation.asked_by_user(request);
            return Vec::new();
        }
        let Some(server) = self.server.lock().clone() else { return Vec::new() };
        let (seen, actions) = self.seen(request);
        let Some((kinds, number, mut actions)) = self.met(seen, actions) else {
            return Vec::new();
        };
        for kind in kinds {
            match kind {
                Disturbance::Edit => Self::edit(&server, request),
                Disturbance::Replace => self.replace(&server, request, number),
                _ => actions.extend(action(kind)),
            }
        }
        actions
    }

    fn changed(&self, change: &ObservedChange<'_>) {
        let Some(server) = self.server.lock().clone() else { return };
        let mut state = self.state.lock();
        let number = state.recording.changes.len();
        if number == MOST {
            return;
        }
        let mut seen = state.seen(change);
        if seen.by_operator && seen.is_relevant {
            let object = change.after.or(change.before).unwrap_or(&Value::Null);
            seen.because = self.work.behind(seen.plural(), &seen.name.1, object);
        }
        let made = state.recording.made(seen.plural(), &seen.name.0, &seen.name.1);
        if state.recreation.changed(&server, change, &seen, (number, made)) {
            state.recording.calm_at = seen.at;
        }
        let by_request = state.attribute(&seen, number);
        if by_request.is_some() && state.edited == by_request {
            let undone = state.undone(change, &seen);
            state.recording.undone.extend(undone);
        }
        if by_request.is_some() && state.doomed == by_request {
            state.doomed = None;
            self.crash(&state);
        }
        let (released, held): (Vec<_>, Vec<_>) =
            std::mem::take(&mut state.held).into_iter().partition(|(_, key)| *key == seen.key);
        state.held = held;
        released.iter().for_each(|(resource, _)| server.faults().resume_watches(resource));
        let mut due = state.due(number, true);
        let drawn = state.chaos.as_mut().filter(|_| seen.is_relevant).and_then(Chaos::change);
        due.extend(drawn.map(|kind| state.causes(kind, number)));
        for step in due {
            if let Disturbance::StaleStart(back) = step.kind {
                state.stale = Some((state.before(&seen, back), seen.at + step.kind.lasts()));
                self.crash(&state);
            } else if step.kind == Disturbance::Recreate {
                // Earlier disturbances move the numbers to other objects. One without finalizers is
                // not replaced in this way, and a later deletion of it is the operator's own.
                let is_judged = recording::is_judged(seen.plural());
                if is_judged && seen.has_finalizers && !seen.is_terminating {
                    state.recreation.begin(&server, change, &seen);
                }
            } else if Self::disturb(&server, step.kind, seen.plural()) {
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
    fn due(&mut self, number: usize, of_change: bool) -> Vec<PlannedDisturbance> {
        let is_due =
            |step: &PlannedDisturbance| step.at == number && step.kind.is_of_change() == of_change;
        let (now, later) =
            self.steps.iter().copied().partition::<Vec<PlannedDisturbance>, _>(is_due);
        self.steps = later;
        now.into_iter().map(|step| self.causes(step.kind, step.at)).collect()
    }

    /// Records a disturbance as caused.
    fn causes(&mut self, kind: Disturbance, at: usize) -> PlannedDisturbance {
        let step = PlannedDisturbance { kind, at };
        self.recording.caused.push(step);
        let over = self.began.elapsed() + kind.lasts();
        self.recording.calm_at = self.recording.calm_at.max(over);
        step
    }

    /// Records the state after a change, and returns the change as it is recorded.
    fn seen(&mut self, change: &ObservedChange<'_>) -> RecordedChange {
        let (now, requests) = (self.began.elapsed(), self.recording.requests.len());
        let object = change.after.or(change.before).unwrap_or(&Value::Null);
        let text = |field: &str| object["metadata"][field].as_str().unwrap_or_default();
        let id = recording::id(change.resource, text("namespace"), text("name"));
        let before = self.recording.objects.get(&id);
        let mut seen = RecordedChange::of(change, (now, requests), before, &self.renewed);
        if let Some(object) = change.after.or(change.before) {
            self.recording.uids.note(object, &seen.key, change.after.is_some());
        }
        if let Some(key) = self.recording.uids.masked(&seen.key) {
            seen.key = key;
        }
        match change.after {
            Some(after) if recording::is_judged(change.resource) => {
                self.recording.observed.insert(seen.id(), recording::observed(after));
                self.recording.objects.insert(seen.id(), seen.after.clone());
            }
            _ => {
                self.recording.observed.remove(&seen.id());
                self.recording.objects.remove(&seen.id());
            }
        }
        let violations = &mut self.recording.violations;
        if let Some(violation) = self.lease.changed(change, &seen)
            && violations.len() < MOST_VIOLATIONS
        {
            violations.push(violation);
        }
        seen
    }

    /// Returns the revision of the `back`-th change of the same object before one, or the one just
    /// before it.
    fn before(&self, seen: &RecordedChange, back: u8) -> u64 {
        let nth = usize::from(back).saturating_sub(1);
        let same = |change: &&RecordedChange| change.key == seen.key && change.is_relevant;
        let earlier = self.recording.changes.iter().rev().filter(same).nth(nth);
        earlier.map_or(seen.revision.saturating_sub(1), |change| change.revision)
    }

    /// Returns the sentence about a change of the operator that removes the edit of another client,
    /// though users write the object, too.
    fn undone(&self, change: &ObservedChange<'_>, seen: &RecordedChange) -> Option<String> {
        let is_edited = |side: Option<&Value>| {
            side.is_some_and(|object| !object["metadata"]["annotations"][state::EDIT].is_null())
        };
        let is_undone =
            is_edited(change.before) && change.after.is_some() && !is_edited(change.after);
        let mut by_users = self.recording.changes.iter().filter(|earlier| earlier.by_user);
        let is_shared = by_users.any(|earlier| earlier.id() == seen.id());
        (is_undone && is_shared).then(|| {
            format!("its update of {} was made from an earlier state, and was executed", seen.key)
        })
    }

    /// Adds a change to the operator's request that made it; returns the number of the request.
    fn attribute(&mut self, seen: &RecordedChange, number: usize) -> Option<usize> {
        if !seen.by_operator {
            return None;
        }
        let (namespace, name) = &seen.name;
        let made = |request: &&mut OperatorRequest| {
            request.is_write()
                && request.resource == seen.plural()
                && request.namespace == *namespace
                && (request.name.is_empty() || request.name == *name)
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::paused::paused_runtime;

    #[test]
    fn a_disturbance_that_meets_a_definition_after_another_one_is_dropped() {
        let runtime = paused_runtime().expect("a runtime");
        let _inside = runtime.enter();
        let server = ApiServer::builder().seed(1).start();
        let plan = "replace@0,replace@1".parse().expect("a plan");
        let monitor = Monitor::install(&server, &Setting::of(1, &plan), Arc::default());
        let met = |resource: &str| {
            let request = OperatorRequest::of_call(resource, "a", Duration::ZERO);
            monitor.met(request, Vec::new()).expect("it is recorded").0
        };
        assert_eq!(met("customresourcedefinitions"), []);
        assert_eq!(met("deployments"), [Disturbance::Replace]);
    }
}
