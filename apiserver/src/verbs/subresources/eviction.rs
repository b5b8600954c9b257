//! Eviction: deletes a Pod, if the disruption budget allows it.

use std::sync::Arc;

use serde_json::{Value, json};

use crate::core::ServerCore;
use crate::kinds::defaults::child;
use crate::kinds::meta;
use crate::selectors;
use crate::status::{self, ApiError, FailureSubject, cause};
use crate::storage::{self, StoredObject};
use crate::verbs::delete::{self, DeletionRequest};
use crate::verbs::options::{self, DeleteOptions};
use crate::verbs::{ObjectResponse, VerbCall, fields};

/// Name of the disruption budgets in the store.
const BUDGETS: &str = "poddisruptionbudgets.policy";
/// Most evicted Pods that a budget may list without the controller's confirmation.
const MOST_DISRUPTED: usize = 2000;
/// Attempts under concurrent writes before an eviction gives up; upstream's number.
const ATTEMPTS: usize = 20;
/// Text of a refusal by a budget.
const REFUSED: &str = "Cannot evict pod as it would violate the pod's disruption budget.";

/// Permission for a Pod to go.
enum Permission {
    /// No budget counts the Pod, and readiness does not matter.
    Free,
    /// The Pod may go while in the judged state.
    InThisState,
    /// A disruption has to be taken from the budget with this key.
    FromBudget(String),
}

/// Evicts a Pod.
pub(crate) fn evict(
    core: &ServerCore,
    call: &VerbCall,
    eviction: &Value,
) -> Result<ObjectResponse, ApiError> {
    let main = VerbCall { subresource: String::new(), ..call.clone() };
    let mut options = options::delete(&options::Query::default(), &lenient(eviction))?;
    // A dry run in the URL's parameter counts for the deletion, too.
    options.dry_run |= call.options.dry_run;
    for _ in 0..ATTEMPTS {
        let held = call.find(core)?;
        let mut options = options.clone();
        let wanted = options.clone();
        match permission(core, call, &held.value)? {
            Permission::Free => {}
            Permission::InThisState => {
                options.version = Some(meta::text(&held.value, "resourceVersion").to_owned());
            }
            Permission::FromBudget(key) => spend(core, call, &key, options.dry_run)?,
        }
        // After the budget, as upstream does: a deletion that fails has cost a disruption.
        delete::preconditions(&main, &wanted, &held.value)?;
        if let Some(answer) = remove(core, &main, &held, options)? {
            return Ok(answer);
        }
    }
    Err(ApiError::modified(call.about()))
}

/// Marks and deletes a Pod; `None` if no longer in the judged state.
fn remove(
    core: &ServerCore,
    main: &VerbCall,
    judged: &Arc<StoredObject>,
    mut options: DeleteOptions,
) -> Result<Option<ObjectResponse>, ApiError> {
    if !options.dry_run {
        let Some(marked) = mark(core, main, judged, options.version.is_some())? else {
            return Ok(None);
        };
        // The mark has made another version of the Pod.
        options.version = options.version.and(marked);
    }
    match delete::delete_as(core, main, &options, DeletionRequest::Other, &mut Vec::new()) {
        Err(error) if error.code() == 409 && options.version.is_some() => Ok(None),
        other => other.map(|_| Some(ObjectResponse::created(status::accepted()))),
    }
}

/// Sets the condition of a Pod that is being evicted, and returns the Pod's version; `None` if the
/// Pod has changed and had to be in the judged state.
fn mark(
    core: &ServerCore,
    main: &VerbCall,
    judged: &Arc<StoredObject>,
    same: bool,
) -> Result<Option<Option<String>>, ApiError> {
    let now = core.clock.rfc3339();
    for _ in 0..ATTEMPTS {
        let held = main.find(core)?;
        if same && held.revision != judged.revision {
            return Ok(None);
        }
        let mut pod = held.value.clone();
        set_condition(
            &mut pod,
            json!({
                "type": "DisruptionTarget", "status": "True", "reason": "EvictionByEvictionAPI",
                "message": "Eviction API: evicting", "lastProbeTime": null, "lastTransitionTime": now,
            }),
        );
        if let Ok(stored) = core.store.put(&main.kind.storage, &main.key(), Some(&held), pod) {
            return Ok(Some(Some(meta::text(&stored.value, "resourceVersion").to_owned())));
        }
    }
    Ok(None)
}

/// Sets a condition of an object; the previous condition of the same type is replaced.
pub(crate) fn set_condition(object: &mut Value, condition: Value) {
    let conditions = &mut child(object, "status")["conditions"];
    let mut held = conditions.as_array().cloned().unwrap_or_default();
    held.retain(|one| one["type"] != condition["type"]);
    held.push(condition);
    *conditions = Value::Array(held);
}

/// Returns the permission for a Pod, from phase, readiness and budget.
fn permission(core: &ServerCore, call: &VerbCall, pod: &Value) -> Result<Permission, ApiError> {
    match pod["status"]["phase"].as_str() {
        // They have ended, or are about to: no budget counts them.
        Some("Succeeded" | "Failed") => return Ok(Permission::Free),
        _ if meta::terminating(pod) => return Ok(Permission::Free),
        // The Pod may begin to run meanwhile.
        Some("Pending") => return Ok(Permission::InThisState),
        _ => {}
    }
    let (budgets, _) = core.store.snapshot(BUDGETS);
    let mut own = storage::in_namespace(&budgets, &call.namespace).filter(|(_, budget)| {
        let selector = &budget.value["spec"]["selector"];
        selector.is_object() && selectors::selects(selector, pod)
    });
    let Some((key, budget)) = own.next() else { return Ok(Permission::Free) };
    if own.next().is_some() {
        let text = "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support.";
        return Err(ApiError::unclassified(text));
    }
    if !is_ready(pod) {
        let spec = &budget.value["spec"];
        let count = |field: &str| budget.value["status"][field].as_i64().unwrap_or(0);
        let (healthy, desired) = (count("currentHealthy"), count("desiredHealthy"));
        let always = spec["unhealthyPodEvictionPolicy"] == "AlwaysAllow";
        // The Pod is not healthy: its end disrupts nothing.
        if always || healthy >= desired && desired > 0 {
            return Ok(Permission::InThisState);
        }
    }
    Ok(Permission::FromBudget(key.to_string()))
}

/// Returns the options of the deletion. Upstream does not check them: an unknown policy is none,
/// and any dry run is one.
fn lenient(eviction: &Value) -> Value {
    let mut options = eviction["deleteOptions"].clone();
    let Value::Object(fields) = &mut options else { return options };
    if fields.get("dryRun").and_then(Value::as_array).is_some_and(|list| !list.is_empty()) {
        fields.insert("dryRun".to_owned(), json!(["All"]));
    }
    let policy = fields.get("propagationPolicy").and_then(Value::as_str).unwrap_or_default();
    if !["Background", "Foreground", "Orphan"].contains(&policy) {
        fields.remove("propagationPolicy");
    }
    options
}

/// Whether a Pod has the condition `Ready`.
fn is_ready(pod: &Value) -> bool {
    let mut conditions = pod["status"]["conditions"].as_array().into_iter().flatten();
    conditions.find(|one| one["type"] == "Ready").is_some_and(|one| one["status"] == "True")
}

/// Takes a disruption from a budget. A concurrent write makes `put` fail: the take is then
/// repeated.
fn spend(core: &ServerCore, call: &VerbCall, key: &str, dry_run: bool) -> Result<(), ApiError> {
    for _ in 0..ATTEMPTS {
        // The budget is gone, and forbids nothing.
        let Some(held) = core.store.get(BUDGETS, key) else { return Ok(()) };
        check(&held.value)?;
        if dry_run {
            return Ok(());
        }
        let mut budget = held.value.clone();
        let now = core.clock.rfc3339();
        let status = child(&mut budget, "status");
        let left = status["disruptionsAllowed"].as_i64().unwrap_or(0).saturating_sub(1);
        status["disruptionsAllowed"] = json!(left);
        child(status, "disruptedPods")[call.name.as_str()] = json!(now);
        if left == 0 {
            exhaust(&mut budget, &now);
        }
        let name = meta::text(&held.value, "name");
        let own =
            VerbCall::by_server(core, "policy", "poddisruptionbudgets", &call.namespace, name)?;
        let own = VerbCall { subresource: "status".to_owned(), ..own };
        fields::track(core, &own, Some(&held.value), &mut budget);
        if core.store.put(BUDGETS, key, Some(&held), budget).is_ok() {
            return Ok(());
        }
    }
    let name = key.rsplit('/').next().unwrap_or(key);
    Err(ApiError::too_many(REFUSED, 10).because(processing(name)))
}

/// Sets a budget's condition `DisruptionAllowed` to false: no disruption is left.
fn exhaust(budget: &mut Value, now: &str) {
    let observed = budget["status"]["observedGeneration"].clone();
    let conditions = budget["status"]["conditions"].as_array().cloned().unwrap_or_default();
    let before = conditions.iter().find(|one| one["type"] == "DisruptionAllowed");
    // The time of a change of the status: without one it stays.
    let since = before.filter(|one| one["status"] == "False");
    let since = since.map_or(json!(now), |one| one["lastTransitionTime"].clone());
    let mut condition = json!({
        "type": "DisruptionAllowed", "status": "False", "lastTransitionTime": since,
        "reason": "InsufficientPods", "message": "",
    });
    if observed.as_i64().unwrap_or(0) > 0 {
        condition["observedGeneration"] = observed;
    }
    set_condition(budget, condition);
}

/// Returns the cause of a refusal by a budget whose state is not known.
fn processing(name: &str) -> crate::served::Cause {
    let text = format!("The disruption budget {name} is still being processed by the server.");
    cause("DisruptionBudget", "", text)
}

/// Fails if a budget allows no disruption.
fn check(budget: &Value) -> Result<(), ApiError> {
    let name = meta::text(budget, "name");
    let status = &budget["status"];
    let count = |field: &str| status[field].as_i64().unwrap_or(0);
    let forbidden = |why: &str| {
        let about = FailureSubject { group: "policy", kind: "poddisruptionbudget", name };
        Err(ApiError::forbidden(about, why))
    };
    // The budget's status describes an earlier spec: the status's numbers cannot be trusted yet.
    if count("observedGeneration") < meta::generation(budget) {
        return Err(ApiError::too_many(REFUSED, 10).because(processing(name)));
    }
    if count("disruptionsAllowed") < 0 {
        return forbidden("pdb disruptions allowed is negative");
    }
    if status["disruptedPods"].as_object().is_some_and(|pods| pods.len() > MOST_DISRUPTED) {
        return forbidden(
            "DisruptedPods map too big - too many evictions not confirmed by PDB controller",
        );
    }
    if count("disruptionsAllowed") > 0 {
        return Ok(());
    }
    let detail = cause("DisruptionBudget", "", refusal(name, status));
    Err(ApiError::custom(429, "TooManyRequests", REFUSED).because(detail))
}

/// Returns the text of a budget that allows no disruption.
fn refusal(name: &str, status: &Value) -> String {
    let count = |field: &str| status[field].as_i64().unwrap_or(0);
    let mut conditions = status["conditions"].as_array().into_iter().flatten();
    let text = |one: &Value, field: &str| one[field].as_str().unwrap_or_default().to_owned();
    let why = conditions
        .find(|one| one["type"] == "DisruptionAllowed" && one["status"] == "False")
        .map(|one| (text(one, "reason"), text(one, "message")))
        .filter(|(_, message)| !message.is_empty());
    let (healthy, desired) = (count("currentHealthy"), count("desiredHealthy"));
    match why {
        Some((reason, message)) if reason == "SyncFailed" => format!(
            "The disruption budget {name} does not allow evicting pods currently because it failed sync: {message}"
        ),
        _ if healthy <= desired => format!(
            "The disruption budget {name} needs {desired} healthy pods and has {healthy} currently"
        ),
        Some((reason, message)) => format!(
            "The disruption budget {name} does not allow evicting pods currently ({reason}): {message}"
        ),
        None => format!("The disruption budget {name} does not allow evicting pods currently"),
    }
}
