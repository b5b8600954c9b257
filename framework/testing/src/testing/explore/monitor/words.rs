//! Words for the requests and changes of a recording.

use super::recording::{OperatorRequest, RecordedChange, Recording};
use crate::testing::explore::schedule::PlannedDisturbance;

/// Returns the words for a request; `key` names the object where the path does not.
pub(in crate::testing::explore) fn request_text(
    request: &OperatorRequest,
    key: Option<&str>,
) -> String {
    let OperatorRequest { verb, resource, subresource, namespace, name, .. } = request;
    if let Some(key) = key.filter(|_| name.is_empty()) {
        return format!("the {verb} of {key}");
    }
    let part = |text: &str, before: &str| {
        if text.is_empty() { String::new() } else { format!("{before}{text}") }
    };
    let (subresource, name) = (part(subresource, "/"), part(name, "/"));
    format!("the {verb} of {resource}{subresource} {namespace}{name}").trim_end().to_owned()
}

/// Returns the sentences for what was caused in a run. Up to the first of them the run equals the
/// reference, whose request of the same number names an object that was not created.
pub(in crate::testing::explore) fn caused(
    recording: &Recording,
    reference: &[OperatorRequest],
) -> Vec<String> {
    let described = |(index, step): (usize, &PlannedDisturbance)| {
        if step.kind.is_of_change() {
            return recording
                .changes
                .get(step.at)
                .map(|change| step.kind.described(&change_text(change)));
        }
        let request = recording.requests.get(step.at)?;
        let other = reference.get(step.at).filter(|_| index == 0);
        let key = request.key.as_deref().or_else(|| other?.key.as_deref());
        Some(step.kind.described(&request_text(request, key)))
    };
    recording.caused.iter().enumerate().filter_map(described).collect()
}

/// Returns the words for a change.
pub(in crate::testing::explore) fn change_text(change: &RecordedChange) -> String {
    let noun = match change.verb {
        "creates" => "creation",
        "deletes" => "deletion",
        _ => "update",
    };
    format!("the {noun} of {}", change.key)
}
