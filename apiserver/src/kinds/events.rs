//! The two views of events: core/v1 and events.k8s.io/v1, which name some fields differently.

use serde_json::{Map, Value};

/// Group of the newer view.
pub(crate) const GROUP: &str = "events.k8s.io";

/// Renamed fields: the newer name and the core name.
const RENAMED: &[(&str, &str)] = &[
    ("regarding", "involvedObject"),
    ("note", "message"),
    ("reportingController", "reportingComponent"),
    ("deprecatedSource", "source"),
    ("deprecatedFirstTimestamp", "firstTimestamp"),
    ("deprecatedLastTimestamp", "lastTimestamp"),
    ("deprecatedCount", "count"),
];

/// Converts an event from events.k8s.io/v1 to core/v1.
pub(crate) fn to_core(event: Value) -> Value {
    renamed(event, |name| RENAMED.iter().find(|(new, _)| *new == name).map(|(_, core)| *core))
}

/// Converts an event from core/v1 to events.k8s.io/v1, where `eventTime` is always printed.
pub(crate) fn from_core(event: Value) -> Value {
    let mut event =
        renamed(event, |name| RENAMED.iter().find(|(_, core)| *core == name).map(|(new, _)| *new));
    if let Value::Object(fields) = &mut event {
        // The newer API writes the field even when unset.
        fields.entry("eventTime").or_insert(Value::Null);
        // The core view writes these even when they are empty, the newer view does not.
        for field in ["reportingController", "reportingInstance"] {
            if fields.get(field).is_some_and(|value| value == "") {
                fields.remove(field);
            }
        }
    }
    event
}

/// Renames top-level fields.
fn renamed(event: Value, name: impl Fn(&str) -> Option<&'static str>) -> Value {
    let Value::Object(fields) = event else { return event };
    let rename = |(key, value): (String, Value)| match name(&key) {
        Some(other) => (other.to_owned(), value),
        None => (key, value),
    };
    Value::Object(fields.into_iter().map(rename).collect::<Map<_, _>>())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn an_event_survives_the_way_through_the_store() {
        let event = json!({
            "regarding": {"name": "a"}, "note": "hi", "reason": "Made", "type": "Normal",
            "reportingController": "c", "eventTime": "2026-01-01T00:00:00.000000Z",
        });
        let core = to_core(event.clone());
        assert_eq!(core["involvedObject"]["name"], "a");
        assert_eq!(core["message"], "hi");
        assert_eq!(from_core(core), event);
    }
}
