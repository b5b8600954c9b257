//! A fence in the API server that refuses writes of a process that does not hold the lease.
//!
//! The gate is asked before a write is sent. The gate cannot notice that a process is suspended
//! between the gate's answer and the socket for longer than the margin allows, nor a program that
//! does not use the gate. A `ValidatingAdmissionPolicy` can: the policy compares the Pod that a
//! request's token is bound to with the holder that the Lease names. Tokens name the Pod to which
//! they belong, so no object needs an annotation, and updates of a status, deletions and patches
//! are fenced like all others: admission sees neither annotations of a status update nor any of a
//! deletion. Dry runs are not fenced: they store nothing, and plans and shadows run beside a
//! leader.
//!
//! Not included: distinguishing two processes of one Pod, or two Pods of one name; users that are
//! not the service account of a Pod; a server whose own copy of the Lease is behind, for as long as
//! that lasts.

// DESIGN.md, 44: The API server's fence compares Pods, not terms

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::settings::LeaderElection;

/// The service account whose writes are fenced.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Fenced<'a> {
    /// The service account, which names the policy.
    pub(crate) account: &'a str,
    /// Namespace of the account and of the Lease.
    pub(crate) namespace: &'a str,
}

/// Returns the policy and the binding, for writes of `resources` (group and plural); `None` when
/// there are none. Leases and Events are left out: candidates write them, too.
pub(crate) fn policy<'a>(
    election: &LeaderElection,
    fenced: Fenced<'_>,
    resources: impl Iterator<Item = (&'a str, &'a str)>,
) -> Option<[Value; 2]> {
    let mut by_group: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for (group, resource) in resources {
        let is_free = matches!(
            (group, resource),
            ("coordination.k8s.io", "leases") | ("" | "events.k8s.io", "events")
        );
        if !is_free {
            by_group.entry(group).or_default().push(resource);
        }
    }
    if by_group.is_empty() {
        return None;
    }
    let rules: Vec<Value> = by_group
        .into_iter()
        .map(|(group, resources)| {
            json!({
                "apiGroups": [group], "apiVersions": ["*"], "resources": resources,
                "operations": ["*"],
            })
        })
        .collect();
    let name = format!("{}-{}-leader", fenced.namespace, fenced.account);
    let lease = election.namespace.as_deref().unwrap_or(fenced.namespace);
    let policy = json!({
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingAdmissionPolicy",
        "metadata": { "name": name, "labels": { "app.kubernetes.io/name": fenced.account } },
        "spec": spec(&election.name, fenced, &rules),
    });
    let binding = json!({
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingAdmissionPolicyBinding",
        "metadata": { "name": name, "labels": { "app.kubernetes.io/name": fenced.account } },
        "spec": {
            "policyName": name,
            "paramRef": {
                // Without a Lease no process leads.
                "name": election.name, "namespace": lease, "parameterNotFoundAction": "Deny",
            },
            "validationActions": ["Deny"],
        },
    });
    Some([policy, binding])
}

/// Returns the specification of the policy: the matched writes, and the comparison of Pod and
/// holder.
fn spec(lease: &str, fenced: Fenced<'_>, rules: &[Value]) -> Value {
    let user = format!("system:serviceaccount:{}:{}", fenced.namespace, fenced.account);
    let refusal = format!(
        "'the Pod \"' + variables.pod + '\" does not hold the lease {lease}; another replica may lead'"
    );
    json!({
        "failurePolicy": "Fail",
        "paramKind": { "apiVersion": "coordination.k8s.io/v1", "kind": "Lease" },
        "matchConstraints": { "resourceRules": rules },
        "matchConditions": [
            {
                "name": "writes-of-the-operator",
                "expression": format!("request.userInfo.username == '{user}'"),
            },
            // Plans and shadows never lead, and store nothing.
            { "name": "no-dry-runs", "expression": NO_DRY_RUN },
        ],
        "variables": [
            { "name": "pod", "expression": POD },
            { "name": "holder", "expression": "has(params.spec) && has(params.spec.holderIdentity) ? params.spec.holderIdentity : ''" },
        ],
        "validations": [{
            // Identities are the Pod's name, or begin with that name and an underscore, which no
            // name has.
            "expression": "variables.pod != '' && (variables.holder == variables.pod || variables.holder.startsWith(variables.pod + '_'))",
            "messageExpression": refusal,
            "reason": "Forbidden",
        }],
    })
}

/// The Pod that the request's token is bound to; empty for a token without a Pod.
const POD: &str = "has(request.userInfo.extra) && \
    'authentication.kubernetes.io/pod-name' in request.userInfo.extra ? \
    request.userInfo.extra['authentication.kubernetes.io/pod-name'][0] : ''";

/// Whether the request is no dry run.
const NO_DRY_RUN: &str = "!(has(request.dryRun) && request.dryRun)";

#[cfg(test)]
mod tests {
    use super::*;

    const OPS: Fenced<'static> = Fenced { account: "web", namespace: "ops" };

    #[test]
    fn what_candidates_write_is_not_fenced() {
        let election = LeaderElection::new("web");
        let resources = [("events.k8s.io", "events"), ("coordination.k8s.io", "leases")];
        assert_eq!(policy(&election, OPS, resources.into_iter()), None);
        let resources = [("", "events"), ("apps", "deployments"), ("apps", "deployments/scale")];
        let [policy, _] = policy(&election, OPS, resources.into_iter()).unwrap();
        let rules = &policy["spec"]["matchConstraints"]["resourceRules"];
        assert_eq!(rules.as_array().unwrap().len(), 1);
        assert_eq!(rules[0]["resources"], json!(["deployments", "deployments/scale"]));
    }

    #[test]
    fn dry_runs_are_not_fenced_because_plans_and_shadows_never_lead() {
        let election = LeaderElection::new("web");
        let [policy, _] = policy(&election, OPS, [("", "pods")].into_iter()).unwrap();
        let conditions = policy["spec"]["matchConditions"].as_array().unwrap();
        let expressions: Vec<_> = conditions.iter().map(|one| &one["expression"]).collect();
        let account = "request.userInfo.username == 'system:serviceaccount:ops:web'";
        // All must be true for a request to be checked.
        assert_eq!(expressions, [account, "!(has(request.dryRun) && request.dryRun)"]);
    }

    #[test]
    fn the_binding_reads_the_lease_of_the_election_and_denies_without_one() {
        let election = LeaderElection::new("web").namespace("locks");
        let [policy, binding] = policy(&election, OPS, [("", "pods")].into_iter()).unwrap();
        assert_eq!(binding["spec"]["policyName"], policy["metadata"]["name"]);
        let lease = json!({
            "name": "web", "namespace": "locks", "parameterNotFoundAction": "Deny",
        });
        assert_eq!(binding["spec"]["paramRef"], lease);
    }
}
