//! Checks of the numbers in a status.

use serde_json::Value;

use crate::names;
use crate::served::Cause;
use crate::status::invalid_value;

/// Numbers that are not negative, by kind.
const NUMBERS: [(&str, &[&str]); 7] = [
    (
        "Deployment",
        &[
            "observedGeneration",
            "replicas",
            "updatedReplicas",
            "readyReplicas",
            "availableReplicas",
            "unavailableReplicas",
            "collisionCount",
        ],
    ),
    (
        "ReplicaSet",
        &[
            "replicas",
            "fullyLabeledReplicas",
            "readyReplicas",
            "availableReplicas",
            "observedGeneration",
        ],
    ),
    (
        "ReplicationController",
        &[
            "replicas",
            "fullyLabeledReplicas",
            "readyReplicas",
            "availableReplicas",
            "observedGeneration",
        ],
    ),
    (
        "StatefulSet",
        &[
            "replicas",
            "readyReplicas",
            "currentReplicas",
            "updatedReplicas",
            "availableReplicas",
            "observedGeneration",
            "collisionCount",
        ],
    ),
    (
        "DaemonSet",
        &[
            "currentNumberScheduled",
            "numberMisscheduled",
            "desiredNumberScheduled",
            "numberReady",
            "observedGeneration",
            "updatedNumberScheduled",
            "numberAvailable",
            "numberUnavailable",
            "collisionCount",
        ],
    ),
    (
        "PodDisruptionBudget",
        &["disruptionsAllowed", "currentHealthy", "desiredHealthy", "expectedPods"],
    ),
    ("HorizontalPodAutoscaler", &["currentReplicas", "desiredReplicas"]),
];

/// Numbers of replicas that are no more than all of them, by kind.
const PARTS: [(&str, &[&str]); 4] = [
    ("Deployment", &["updatedReplicas", "readyReplicas", "availableReplicas"]),
    ("ReplicaSet", &["fullyLabeledReplicas", "readyReplicas", "availableReplicas"]),
    ("ReplicationController", &["fullyLabeledReplicas", "readyReplicas", "availableReplicas"]),
    ("StatefulSet", &["readyReplicas", "currentReplicas", "updatedReplicas", "availableReplicas"]),
];

/// Appends the faults of a kind's status.
pub(super) fn check(kind: &str, status: &Value, causes: &mut Vec<Cause>) {
    let number = |field: &str| status[field].as_i64().unwrap_or(0);
    let fields = |table: &[(&str, &'static [&'static str])]| {
        let found = table.iter().find(|(name, _)| *name == kind);
        found.map_or(&[][..], |(_, fields)| *fields)
    };
    if kind == "Pod" {
        conditions(&status["conditions"], causes);
    }
    for field in fields(&NUMBERS) {
        if number(field) < 0 {
            let why = "must be greater than or equal to 0";
            causes.push(invalid_value(&format!("status.{field}"), &number(field).into(), why));
        }
    }
    for field in fields(&PARTS) {
        if number(field) > number("replicas") {
            let why = "cannot be greater than status.replicas";
            causes.push(invalid_value(&format!("status.{field}"), &number(field).into(), why));
        }
    }
    if fields(&PARTS).contains(&"availableReplicas")
        && number("availableReplicas") > number("readyReplicas")
    {
        let why = match kind {
            "StatefulSet" => "cannot be greater than status.readyReplicas",
            _ => "cannot be greater than readyReplicas",
        };
        let available = number("availableReplicas").into();
        causes.push(invalid_value("status.availableReplicas", &available, why));
    }
}

/// Appends the faults of the types of a Pod's conditions: those of others have qualified names.
fn conditions(conditions: &Value, causes: &mut Vec<Cause>) {
    for (index, condition) in conditions.as_array().into_iter().flatten().enumerate() {
        let kind = condition["type"].as_str().unwrap_or_default();
        if !["PodScheduled", "Ready", "Initialized"].contains(&kind) {
            let at = format!("status.conditions[{index}].Type");
            let faults = names::qualified(kind);
            causes.extend(faults.iter().map(|why| invalid_value(&at, &kind.into(), why)));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn parts_are_no_more_than_the_whole() {
        let mut causes = Vec::new();
        check("ReplicaSet", &json!({"replicas": 1, "readyReplicas": 2}), &mut causes);
        assert_eq!(causes[0].field, "status.readyReplicas");
        causes.clear();
        check("ReplicaSet", &json!({"replicas": 2, "readyReplicas": 2}), &mut causes);
        assert_eq!(causes, []);
    }

    #[test]
    fn conditions_of_others_have_qualified_types() {
        let mut causes = Vec::new();
        let good = json!([{"type": "Ready"}, {"type": "my.example/c"}]);
        check("Pod", &json!({"conditions": good}), &mut causes);
        assert_eq!(causes, []);
        check("Pod", &json!({"conditions": [{}]}), &mut causes);
        assert_eq!(causes[0].field, "status.conditions[0].Type");
    }
}
