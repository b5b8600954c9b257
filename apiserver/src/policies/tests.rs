use std::cell::OnceCell;
use std::sync::Arc;

use serde_json::{Value, json};

use super::PolicyRequest;
use crate::kinds::Kind;
use crate::kinds::registry::{KindTable, Registry};

fn rule(group: &str, resource: &str, operation: &str) -> Value {
    json!({"apiGroups": [group], "apiVersions": ["v1"], "resources": [resource],
        "operations": [operation], "scope": "*"})
}

fn subject<'a>(table: &'a KindTable, kind: &'a Arc<Kind>, object: &'a Value) -> PolicyRequest<'a> {
    PolicyRequest {
        kind,
        subresource: "",
        operation: "CREATE",
        name: "a",
        namespace: "default",
        object: Some(object),
        old: None,
        home: None,
        table,
        others: OnceCell::new(),
    }
}

/// Whether criteria match the creation of a ConfigMap in a namespace with the label `env: test`.
fn matches(criteria: &Value) -> bool {
    let table = Registry::new().table();
    let kind = table.find("", "v1", "configmaps").unwrap();
    let object = json!({"metadata": {"name": "a", "labels": {"app": "x"}}});
    let home = json!({"metadata": {"labels": {"env": "test"}}});
    let subject = PolicyRequest { home: Some(&home), ..subject(&table, &kind, &object) };
    subject.matched(criteria).is_some()
}

#[test]
fn a_rule_names_group_version_resource_and_operation() {
    let of = |rule: Value| matches(&json!({"resourceRules": [rule]}));
    assert!(of(rule("", "configmaps", "CREATE")));
    assert!(of(rule("*", "*", "*")) && of(rule("", "*/*", "*")));
    assert!(!of(rule("apps", "configmaps", "CREATE")) && !of(rule("", "secrets", "CREATE")));
    assert!(!of(rule("", "configmaps", "UPDATE")) && !of(rule("", "configmaps/status", "*")));
    for (scope, expected) in [("Namespaced", true), ("Cluster", false)] {
        let mut scoped = rule("", "configmaps", "*");
        scoped["scope"] = json!(scope);
        assert_eq!(of(scoped), expected);
    }
    for (name, expected) in [("a", true), ("b", false)] {
        let mut named = rule("", "configmaps", "*");
        named["resourceNames"] = json!([name]);
        assert_eq!(of(named), expected);
    }
}

#[test]
fn excluded_rules_win_and_no_rules_match_everything() {
    let rules = json!([rule("", "*", "*")]);
    let excluded = json!([rule("", "configmaps", "*")]);
    assert!(!matches(&json!({"resourceRules": rules, "excludeResourceRules": excluded})));
    assert!(matches(&json!({})));
}

#[test]
fn selectors_choose_labels_of_the_object_and_of_its_namespace() {
    let of = |field: &str, key: &str, value: &str| {
        matches(&json!({field: {"matchLabels": {key: value}}}))
    };
    assert!(of("objectSelector", "app", "x") && !of("objectSelector", "app", "y"));
    assert!(of("namespaceSelector", "env", "test") && !of("namespaceSelector", "env", "prod"));
}

#[test]
fn equivalent_rules_name_other_versions_and_exact_ones_do_not() {
    let table = Registry::new().table();
    let kind = table.find("events.k8s.io", "v1", "events").unwrap();
    let object = json!({"metadata": {"name": "a"}});
    let subject = subject(&table, &kind, &object);
    let of = |policy: &str| {
        subject.matched(&json!({"resourceRules": [rule("", "events", "*")], "matchPolicy": policy}))
    };
    assert_eq!(of("Equivalent").unwrap().served.group, "");
    assert!(of("Exact").is_none());
}
