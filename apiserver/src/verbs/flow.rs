//! Flow control: the priority levels that exist from the start, and the condition that tells
//! whether the level of a `FlowSchema` exists.
//!
//! Requests are not queued by these objects. On a real cluster a controller writes the condition a
//! little later; here this happens within the write, so that clients see it in the same order each
//! time.

use serde_json::{Value, json};

use super::{Call, bootstrap, fields};
use crate::apply::{self, ApplyRequest};
use crate::core::Core;
use crate::kinds::{Kind, meta};

const GROUP: &str = "flowcontrol.apiserver.k8s.io";
const VERSION: &str = "flowcontrol.apiserver.k8s.io/v1";
const SCHEMAS: &str = "flowschemas";
const LEVELS: &str = "prioritylevelconfigurations";
/// Name under which upstream's controller writes the condition.
const MANAGER: &str = "api-priority-and-fairness-config-consumer-v1";
/// Attempts to write the condition while others write the schema.
const ATTEMPTS: usize = 8;

/// Levels with queues: name, shares, percentage that others may borrow, queues, queues of a flow.
const QUEUED: [(&str, u32, u32, u32, u32); 6] = [
    ("system", 30, 33, 64, 6),
    ("node-high", 40, 25, 64, 6),
    ("leader-election", 10, 0, 16, 4),
    ("workload-high", 40, 50, 128, 6),
    ("workload-low", 100, 90, 128, 6),
    ("global-default", 20, 50, 128, 6),
];

/// Creates the levels that every cluster has.
pub(crate) fn seed(core: &Core) {
    let exempt = json!({"nominalConcurrencyShares": 0, "lendablePercent": 0});
    level(core, "exempt", json!({"type": "Exempt", "exempt": exempt}));
    let rest = json!({"nominalConcurrencyShares": 5, "lendablePercent": 0,
        "limitResponse": {"type": "Reject"}});
    level(core, "catch-all", json!({"type": "Limited", "limited": rest}));
    for (name, shares, lendable, queues, hand) in QUEUED {
        let queuing = json!({"queues": queues, "handSize": hand, "queueLengthLimit": 50});
        let limited = json!({"nominalConcurrencyShares": shares, "lendablePercent": lendable,
            "limitResponse": {"type": "Queue", "queuing": queuing}});
        level(core, name, json!({"type": "Limited", "limited": limited}));
    }
}

/// Creates a level.
fn level(core: &Core, name: &str, spec: Value) {
    let annotations = json!({"apf.kubernetes.io/autoupdate-spec": "true"});
    let object = json!({"metadata": {"name": name, "annotations": annotations}, "spec": spec});
    bootstrap::seed(core, GROUP, LEVELS, "", object);
}

/// Writes the condition of schemas after a write or a removal of a schema or a level.
pub(crate) fn observe(core: &Core, kind: &Kind, object: &Value) {
    let name = meta::text(object, "name");
    if kind.is(GROUP, SCHEMAS) {
        settle(core, name);
    } else if kind.is(GROUP, LEVELS) {
        let Some(kind) = core.kind(GROUP, SCHEMAS) else { return };
        let (schemas, _) = core.store.snapshot(&kind.storage);
        let concerned = |schema: &Value| level_of(schema) == name;
        for (key, _) in schemas.iter().filter(|(_, held)| concerned(&held.value)) {
            settle(core, key);
        }
    }
}

/// Returns the name of the level of a schema.
fn level_of(schema: &Value) -> &str {
    schema["spec"]["priorityLevelConfiguration"]["name"].as_str().unwrap_or_default()
}

/// Writes the condition of a schema, unless already correct.
fn settle(core: &Core, name: &str) {
    let Ok(mut call) = Call::by_server(core, GROUP, SCHEMAS, "", name) else { return };
    "status".clone_into(&mut call.subresource);
    for _ in 0..ATTEMPTS {
        let Ok(held) = call.find(core) else { return };
        let condition = condition(core, &held.value);
        let conditions = held.value["status"]["conditions"].as_array().into_iter().flatten();
        let same = |one: &Value| {
            ["type", "status", "reason", "message"].iter().all(|f| one[*f] == condition[*f])
        };
        if conditions.into_iter().any(same) {
            return;
        }
        let intent = json!({"apiVersion": VERSION, "kind": "FlowSchema", "metadata": {"name": name},
            "status": {"conditions": [condition]}});
        let request = ApplyRequest {
            schema: fields::types(&call),
            live: Some(&held.value),
            intent: &intent,
            manager: MANAGER,
            force: true,
            api_version: VERSION,
            subresource: Some("status"),
            now: &core.clock.rfc3339(),
        };
        match apply::apply(&request) {
            Ok(next) => {
                if core.store.put(&call.kind.storage, &call.key(), Some(&held), next).is_ok() {
                    return;
                }
            }
            Err(error) => {
                tracing::debug!(name, %error, "could not write the condition of a FlowSchema");
                return;
            }
        }
    }
}

/// Returns the condition of a schema.
fn condition(core: &Core, schema: &Value) -> Value {
    let level = level_of(schema);
    let exists =
        Call::by_server(core, GROUP, LEVELS, "", level).is_ok_and(|call| call.find(core).is_ok());
    let (status, reason, rest) = match exists {
        true => ("False", "Found", "and it exists"),
        false => ("True", "NotFound", "but there is no such object"),
    };
    let about = "This FlowSchema references the PriorityLevelConfiguration object named";
    json!({
        "type": "Dangling", "status": status, "reason": reason,
        "message": format!("{about} {level:?} {rest}"), "lastTransitionTime": core.clock.rfc3339(),
    })
}
