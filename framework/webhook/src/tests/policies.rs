//! Admission policies that are made from rules in CEL.

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use windlass_client::client::Client;
use windlass_core::resource::DynamicObject;
use windlass_runtime::manager::{Manager, ManifestOptions};

use super::*;
use crate::ValidationAction::{Audit, Deny, Warn};
use crate::{
    AdmissionPolicies, AdmissionPolicy, CelExpression, ConfigurationOptions, DenialReason,
    FailurePolicy, Operation, PolicyRule, cel,
};

fn few() -> AdmissionPolicy<Deployment> {
    AdmissionPolicy::new("few")
        .rule(cel!(Deployment: "object.spec.replicas <= 5"), "at most five replicas")
}

/// Returns policy and binding.
fn made<K: windlass_core::resource::Resource>(policy: AdmissionPolicy<K>) -> (Value, Value) {
    let options = ConfigurationOptions::new("shop", "shop-system");
    let mut all = AdmissionPolicies::new().policy(policy).objects(&options).unwrap();
    let (policy, binding) = all.remove(0);
    (serde_json::to_value(policy).unwrap(), serde_json::to_value(binding).unwrap())
}

fn error(policies: AdmissionPolicies) -> String {
    let options = ConfigurationOptions::new("shop", "shop-system");
    policies.objects(&options).unwrap_err().to_string()
}

#[test]
fn the_defaults_refuse_and_fail_closed_outside_of_the_namespaces_that_the_operator_needs() {
    let (policy, binding) = made(few());
    let metadata = json!({ "name": "shop-few", "labels": { "app.kubernetes.io/name": "shop" } });
    let wanted = json!({
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingAdmissionPolicy",
        "metadata": metadata,
        "spec": {
            "failurePolicy": "Fail",
            "matchConstraints": {
                "matchPolicy": "Equivalent",
                "namespaceSelector": { "matchExpressions": [{
                    "key": "kubernetes.io/metadata.name", "operator": "NotIn",
                    "values": ["kube-system", "shop-system"],
                }] },
                "objectSelector": {},
                "resourceRules": [{
                    "apiGroups": ["apps"], "apiVersions": ["v1"], "resources": ["deployments"],
                    "scope": "Namespaced", "operations": ["CREATE", "UPDATE"],
                }],
            },
            "validations": [{
                "expression": "object.spec.replicas <= 5", "message": "at most five replicas",
                "reason": "Invalid",
            }],
        },
    });
    assert_eq!(policy, wanted);
    let wanted = json!({
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingAdmissionPolicyBinding",
        "metadata": metadata,
        "spec": { "policyName": "shop-few", "validationActions": ["Deny"] },
    });
    assert_eq!(binding, wanted);
}

#[test]
fn every_key_reaches_its_field() {
    let labels = |key: &str| LabelSelector {
        match_labels: Some([(key.to_owned(), "yes".to_owned())].into()),
        ..LabelSelector::default()
    };
    let policy = AdmissionPolicy::<Pod>::new("all")
        .operations([Operation::Delete])
        .sub_resource("status")
        .resource("apps", "*", "deployments")
        .failure_policy(FailurePolicy::Ignore)
        .actions([Warn, Audit])
        .every_namespace()
        .namespaces(labels("namespace"))
        .objects(labels("object"))
        .match_condition("not-by-nodes", cel!("!('system:nodes' in request.userInfo.groups)"))
        .variable("old", cel!(Pod: "oldObject.spec.nodeName"))
        .rule_with(
            PolicyRule::new(cel!("variables.old == ''"), "it has a node")
                .message_expression(cel!("'the node is ' + variables.old"))
                .reason(DenialReason::Forbidden),
        );
    let (policy, binding) = made(policy);
    let rule = |group: &str, version: &str, plural: &str, scope: &str| {
        json!({
            "apiGroups": [group], "apiVersions": [version], "resources": [plural],
            "scope": scope, "operations": ["DELETE"],
        })
    };
    let wanted = json!({
        "failurePolicy": "Ignore",
        "matchConditions": [{
            "name": "not-by-nodes",
            "expression": "!('system:nodes' in request.userInfo.groups)",
        }],
        "matchConstraints": {
            "matchPolicy": "Equivalent",
            "namespaceSelector": { "matchLabels": { "namespace": "yes" } },
            "objectSelector": { "matchLabels": { "object": "yes" } },
            "resourceRules": [
                rule("", "v1", "pods/status", "Namespaced"),
                rule("apps", "*", "deployments/status", "*"),
            ],
        },
        "variables": [{ "name": "old", "expression": "oldObject.spec.nodeName" }],
        "validations": [{
            "expression": "variables.old == ''", "message": "it has a node",
            "messageExpression": "'the node is ' + variables.old", "reason": "Forbidden",
        }],
    });
    assert_eq!(policy["spec"], wanted);
    assert_eq!(binding["spec"]["validationActions"], json!(["Warn", "Audit"]));
}

#[test]
fn policies_that_an_api_server_refuses_are_errors() {
    let of = |policy: AdmissionPolicy<Deployment>| error(AdmissionPolicies::new().policy(policy));
    let ruled =
        |text: &str| of(AdmissionPolicy::new("a").rule(CelExpression::from_text(text), "no"));
    for (text, why) in [
        ("object.spec.replicas", "must evaluate to bool"),
        ("object.spec.replicas <=", "Syntax error"),
        ("variables.most > 1", "undeclared reference to 'variables'"),
    ] {
        assert!(ruled(text).contains(why), "{}", ruled(text));
        assert!(ruled(text).contains("spec.validations[0].expression"), "{}", ruled(text));
    }
    assert!(of(AdmissionPolicy::new("a")).contains("must contain at least one item"));
    let lines = few().rule(cel!("true"), "one\ntwo");
    assert!(of(lines).contains("must not contain line breaks"));
    for name in ["", "Few", "a.b", "-a"] {
        let text = of(AdmissionPolicy::new(name).rule(cel!("true"), "no"));
        assert!(text.contains("a name has letters in lower case"), "{text}");
    }
    let twice = AdmissionPolicies::new().policy(few()).policy(few());
    assert!(error(twice).contains("another one has this name"));
    let any = AdmissionPolicy::<DynamicObject>::new("any").rule(cel!("true"), "no");
    assert!(error(AdmissionPolicies::new().policy(any)).contains("it is of any kind"));
    for (actions, why) in [
        (vec![], "has no action"),
        (vec![Deny, Audit, Warn], "leave `Warn` out"),
        (vec![Audit, Audit], "twice"),
    ] {
        let text = of(few().actions(actions));
        assert!(text.contains(why), "{text}");
    }
}

#[test]
fn the_manifests_have_policies_and_bindings_and_no_right_for_them() {
    let policies = AdmissionPolicies::new().policy(few());
    let manager = Manager::new(Client::offline()).name("shop").runnable(policies);
    let text = manager.manifests(&ManifestOptions::default().namespace("shop-system")).unwrap();
    let documents: Vec<Value> = serde_saphyr::from_multiple(&text).unwrap();
    let (policy, binding) = made(few());
    assert!(documents.contains(&policy) && documents.contains(&binding), "{text}");
    let rights = documents.iter().filter(|one| !one["rules"].is_null());
    for role in rights {
        assert!(!role.to_string().contains("admissionregistration"), "{role}");
    }
    assert!(documents.iter().all(|one| one["kind"] != "Service"), "nothing is served");
}
