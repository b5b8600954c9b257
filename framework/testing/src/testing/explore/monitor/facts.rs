//! Facts about a run that values which follow from times are judged by.

use std::time::Duration;

use serde_json::Value;
use windlass_apiserver::ApiServer;

use super::State;
use super::recording::{Change, Request};
use crate::testing::explore::varying::facts::{Attempt, Facts};

impl State {
    /// Returns the facts until now.
    pub(super) fn facts(&self, server: Option<&ApiServer>) -> Facts {
        let mut facts = Facts {
            at: self.began.elapsed(),
            history: self.recording.history.clone(),
            caused: self.recording.caused.len(),
            ..Facts::default()
        };
        let writes = self.recording.requests.iter().filter(|it| it.is_write() && it.is_disturbed());
        writes.for_each(|request| *facts.attempts.entry(attempt(request)).or_default() += 1);
        for id in self.recording.objects.keys() {
            let (resource, (namespace, name)) = (&id.0, id.1.split_once('/').unwrap_or_default());
            let (plural, group) = resource.split_once('.').unwrap_or((resource, ""));
            let object =
                server.and_then(|server| server.get_object(group, plural, namespace, name));
            if let Some(object) = object {
                facts.add(id, &object, self.epoch);
            }
        }
        facts
    }

    /// Notes the writes of an object's values; one that shows the passing of time alone is not
    /// judged.
    pub(super) fn note(&mut self, seen: &mut Change) {
        let id = seen.id();
        let before = self.recording.objects.get(&id).unwrap_or(&Value::Null);
        if *before == seen.after {
            return;
        }
        let sent = (self.sent(seen).as_secs_f64(), seen.at.as_secs_f64());
        let is_time = self.recording.history.changed(&id, before, &seen.after, sent);
        seen.is_relevant &= !(is_time && seen.by_operator);
    }

    /// Returns the virtual time of the first request that may have carried a change: those before
    /// the one that was executed may have been refused, and sent again as they were.
    fn sent(&self, seen: &Change) -> Duration {
        let is_carrier = |request: &&Request| {
            request.is_write()
                && request.resource == seen.plural()
                && (&request.namespace, &request.name) == (&seen.name.0, &seen.name.1)
        };
        let carriers = self.recording.requests.iter().rev().filter(is_carrier);
        let mut sent = seen.at;
        for request in carriers.take_while(|request| request.changes.is_empty()) {
            sent = request.at;
        }
        sent
    }
}

/// Returns the attempt that a request is.
fn attempt(request: &Request) -> Attempt {
    let Request { verb, resource, subresource, namespace, name, .. } = request.clone();
    [verb, resource, subresource, namespace, name]
}
