//! Facts about a run until a moment, by which values that follow from times are judged.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::Value;

use super::history::History;
use crate::testing::explore::state;

/// Verb, resource, subresource, namespace and name of a write or call.
pub(in crate::testing::explore) type Attempt = [String; 5];

/// Facts about a run until a moment.
#[derive(Clone, Debug, Default)]
pub(in crate::testing::explore) struct Facts {
    /// Virtual time of the moment.
    pub(in crate::testing::explore) at: Duration,
    pub(in crate::testing::explore) history: History,
    /// Times in objects, by resource and key, with paths: seconds since the start of the run.
    pub(in crate::testing::explore) instants: BTreeMap<(String, String), Vec<(String, f64)>>,
    /// Numbers of the operator's writes and calls.
    pub(in crate::testing::explore) attempts: BTreeMap<Attempt, usize>,
    /// Number of disturbances that were caused.
    pub(in crate::testing::explore) caused: usize,
}

impl Facts {
    /// Adds the times in an object, which is not comparable yet. Those of managed fields are times
    /// of writes. The recursion is as deep as the object.
    pub(in crate::testing::explore) fn add(
        &mut self,
        id: &(String, String),
        object: &Value,
        epoch: i64,
    ) {
        let mut found = Vec::new();
        collect(object, "", epoch, &mut found);
        self.instants.insert(id.clone(), found);
    }
}

fn collect(value: &Value, path: &str, epoch: i64, found: &mut Vec<(String, f64)>) {
    match value {
        Value::Object(fields) => fields
            .iter()
            .filter(|(name, _)| *name != "managedFields")
            .for_each(|(name, field)| collect(field, &format!("{path}.{name}"), epoch, found)),
        Value::Array(items) => items
            .iter()
            .enumerate()
            .for_each(|(at, item)| collect(item, &format!("{path}[{at}]"), epoch, found)),
        leaf => {
            let time =
                state::time_of(leaf).map(|seconds| (path.to_owned(), seconds - epoch as f64));
            found.extend(time);
        }
    }
}
