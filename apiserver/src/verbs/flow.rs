//! Flow control: the priority levels that exist from the start, and the condition that tells
//! whether the level of a `FlowSchema` exists.
//!
//! Requests are not queued by these objects. On a real cluster a controller writes the condition a
//! little later; here this happens within the write, so that clients see it in the same order each
//! time.

use serde_json::{Value, json};

use super::{VerbCall, bootstrap, fields};
use crate::apply::{self, ApplyRequest};
use crate::core::ServerCore;
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

/// Creates the levels and schemas that every cluster has.
pub(crate) fn seed(core: &ServerCore) {
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
    for (name, level, precedence, method, subjects, paths) in PLAIN {
        let rule = all(subjects.split(' '), paths);
        schema(core, name, level, precedence, method, rule);
    }
    let leases = json!({"apiGroups": ["coordination.k8s.io"], "resources": ["leases"],
        "namespaces": ["*"], "verbs": ["*"]});
    let nodes = json!({"apiGroups": [""], "resources": ["nodes", "nodes/status"],
        "namespaces": ["*"], "verbs": ["*"], "clusterScope": true});
    let rule = json!({"subjects": [subject("system:nodes")], "resourceRules": [nodes, leases]});
    schema(core, "system-node-high", "node-high", 400, "ByUser", rule);
    let mut leases = leases;
    leases["verbs"] = json!(["get", "create", "update"]);
    let candidates = ["user=system:kube-controller-manager", "user=system:kube-scheduler", SYSTEM];
    let rule = json!({"subjects": candidates.map(subject), "resourceRules": [leases]});
    schema(core, "system-leader-election", "leader-election", 100, "ByUser", rule);
}

/// A schema of all requests of some subjects.
type FlowSchemaRow =
    (&'static str, &'static str, u32, &'static str, &'static str, &'static [&'static str]);

/// All service accounts of the namespace of the cluster's own programs.
const SYSTEM: &str = "account=kube-system/*";
/// Everybody.
const EVERYBODY: &str = "system:unauthenticated system:authenticated";
/// Schemas of all requests of some subjects: name, level, precedence, method, subjects, and the
/// only paths, if not all requests are meant.
const PLAIN: [FlowSchemaRow; 9] = [
    ("exempt", "exempt", 1, "", "system:masters", &[]),
    ("probes", "exempt", 2, "", EVERYBODY, &["/healthz", "/readyz", "/livez"]),
    ("system-nodes", "system", 500, "ByUser", "system:nodes", &[]),
    (
        "kube-controller-manager",
        "workload-high",
        800,
        "ByNamespace",
        "user=system:kube-controller-manager",
        &[],
    ),
    ("kube-scheduler", "workload-high", 800, "ByNamespace", "user=system:kube-scheduler", &[]),
    ("kube-system-service-accounts", "workload-high", 900, "ByNamespace", SYSTEM, &[]),
    ("service-accounts", "workload-low", 9000, "ByUser", "system:serviceaccounts", &[]),
    ("global-default", "global-default", 9900, "ByUser", EVERYBODY, &[]),
    ("catch-all", "catch-all", 10_000, "ByUser", EVERYBODY, &[]),
];

/// Returns the subject that a word names: a group, `user=NAME` or `account=NAMESPACE/NAME`.
fn subject(word: &str) -> Value {
    match word.split_once('=') {
        Some(("user", name)) => json!({"kind": "User", "user": {"name": name}}),
        Some((_, account)) => {
            let (namespace, name) = account.split_once('/').unwrap_or(("", account));
            let account = json!({"namespace": namespace, "name": name});
            json!({"kind": "ServiceAccount", "serviceAccount": account})
        }
        None => json!({"kind": "Group", "group": {"name": word}}),
    }
}

/// Returns a rule for all requests of some subjects, or for reads of some paths.
fn all<'a>(subjects: impl Iterator<Item = &'a str>, paths: &[&str]) -> Value {
    let subjects: Vec<Value> = subjects.map(subject).collect();
    if !paths.is_empty() {
        let rules = json!([{"verbs": ["get"], "nonResourceURLs": paths}]);
        return json!({"subjects": subjects, "nonResourceRules": rules});
    }
    json!({
        "subjects": subjects,
        "resourceRules": [{"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"],
            "clusterScope": true, "namespaces": ["*"]}],
        "nonResourceRules": [{"verbs": ["*"], "nonResourceURLs": ["*"]}],
    })
}

/// Creates a schema.
fn schema(core: &ServerCore, name: &str, level: &str, precedence: u32, method: &str, rule: Value) {
    let mut spec = json!({"priorityLevelConfiguration": {"name": level},
        "matchingPrecedence": precedence, "rules": [rule]});
    if !method.is_empty() {
        spec["distinguisherMethod"] = json!({"type": method});
    }
    let annotations = json!({"apf.kubernetes.io/autoupdate-spec": "true"});
    let object = json!({"metadata": {"name": name, "annotations": annotations}, "spec": spec});
    bootstrap::seed(core, GROUP, SCHEMAS, "", object);
}

/// Creates a level.
fn level(core: &ServerCore, name: &str, spec: Value) {
    let annotations = json!({"apf.kubernetes.io/autoupdate-spec": "true"});
    let object = json!({"metadata": {"name": name, "annotations": annotations}, "spec": spec});
    bootstrap::seed(core, GROUP, LEVELS, "", object);
}

/// Writes the condition of schemas after a write or a removal of a schema or a level.
pub(crate) fn observe(core: &ServerCore, kind: &Kind, object: &Value) {
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
fn settle(core: &ServerCore, name: &str) {
    let Ok(mut call) = VerbCall::by_server(core, GROUP, SCHEMAS, "", name) else { return };
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
fn condition(core: &ServerCore, schema: &Value) -> Value {
    let level = level_of(schema);
    let exists = VerbCall::by_server(core, GROUP, LEVELS, "", level)
        .is_ok_and(|call| call.find(core).is_ok());
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
