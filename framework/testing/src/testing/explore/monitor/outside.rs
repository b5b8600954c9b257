//! Calls and changes of systems outside of Kubernetes.

use std::sync::atomic::Ordering;

use serde_json::Value;
use windlass_apiserver::faults::FaultAction;

use super::recording::{OperatorRequest, RecordedChange};
use super::{Monitor, State, action};

impl Monitor {
    /// Records a call of the operator; returns its number and what happens to it. `None` when the
    /// process has crashed, or too much is recorded.
    pub(in crate::testing::explore) fn called(
        &self,
        system: &str,
        text: &str,
    ) -> Option<(usize, Vec<FaultAction>)> {
        if self.is_cut() {
            return None;
        }
        let at = self.state.lock().began.elapsed();
        let (kinds, number, mut actions) =
            self.met(OperatorRequest::of_call(system, text, at), Vec::new())?;
        actions.extend(kinds.into_iter().filter_map(action));
        Some((number, actions))
    }

    /// Records the effect of a call that was executed.
    pub(in crate::testing::explore) fn answered(
        &self,
        system: &str,
        number: usize,
        before: Value,
        after: Value,
    ) {
        let mut state = self.state.lock();
        let is_changed = before != after;
        if is_changed {
            let place = state.outside(system, after, true);
            let because = self.work.behind("", "", &Value::Null);
            if let Some(change) = state.recording.changes.get_mut(place) {
                change.because = because;
            }
            if let Some(request) = state.recording.requests.get_mut(number) {
                request.changes.push(place);
            }
        }
        if state.doomed == Some(number) {
            state.doomed = None;
            self.crash(&state);
        }
        drop(state);
        if is_changed {
            self.changed.notify_one();
        }
    }

    /// Records a change by others than the operator.
    pub(in crate::testing::explore) fn changed_outside(
        &self,
        system: &str,
        before: Value,
        after: Value,
    ) {
        if before != after {
            self.state.lock().outside(system, after, false);
            self.changed.notify_one();
        }
    }

    /// Whether the running process has crashed.
    pub(in crate::testing::explore) fn is_cut(&self) -> bool {
        let state = self.state.lock();
        // Relaxed, as at the store: a run has one thread.
        !state.cuts.is_empty() && state.cuts.iter().all(|cut| cut.load(Ordering::Relaxed))
    }
}

impl State {
    /// Records the state of a system; returns the number of the change.
    fn outside(&mut self, system: &str, after: Value, by_operator: bool) -> usize {
        let number = self.recording.changes.len();
        let requests = self.recording.requests.len();
        let change =
            RecordedChange::outside(system, after, (by_operator, self.began.elapsed(), requests));
        self.recording.objects.insert(change.id(), change.after.clone());
        self.recording.changes.push(change);
        // A step of a plan that names this change disturbs events, of which this one has none.
        self.steps.retain(|step| step.at != number || !step.kind.is_of_change());
        number
    }
}
