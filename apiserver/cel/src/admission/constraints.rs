//! The checks of `paramKind` and `matchConstraints` of a policy, with the texts and the order of
//! kube-apiserver.

use std::collections::HashSet;

use serde_json::Value;

use super::check::{list, member, text};
use crate::library::named_format::NamedFormat;
use crate::rules::{FieldPath, Reason, Violation, go_json};

/// The values of `matchPolicy`, in the order in which messages list them.
const MATCH_POLICIES: [&str; 2] = ["Equivalent", "Exact"];

/// The operations that a rule may name, in the order in which messages list them.
const OPERATIONS: [&str; 5] = ["*", "CONNECT", "CREATE", "DELETE", "UPDATE"];

/// The values of `scope`, in the order in which messages list them.
const SCOPES: [&str; 3] = ["*", "Cluster", "Namespaced"];

fn required(path: FieldPath, detail: &str) -> Violation {
    Violation::without_value(path, Reason::Required, detail)
}

fn invalid(path: FieldPath, value: &str, detail: impl Into<String>) -> Violation {
    Violation::invalid(path, Value::from(value), detail)
}

fn duplicate(path: FieldPath, value: &str) -> Violation {
    Violation { reason: Reason::Duplicate, ..invalid(path, value, "") }
}

/// An invalid list, which the message shows as JSON.
fn invalid_list(path: FieldPath, values: &[Value], detail: &str) -> Violation {
    let shown = Some(go_json(&Value::from(values)));
    Violation { path, reason: Reason::Invalid, shown, detail: detail.to_owned() }
}

/// Whether the wildcard stands beside other elements.
fn has_redundant(values: &[Value], wildcard: &str) -> bool {
    values.len() > 1 && values.iter().any(|value| value == wildcard)
}

/// Checks `paramKind`: the type of the objects that bindings name.
pub(super) fn param_kind(kind: &Value, at: &FieldPath) -> Vec<Violation> {
    let mut found = Vec::new();
    let (version, path) = (text(kind, "apiVersion"), at.child("apiVersion"));
    let parts: Vec<&str> = version.split('/').collect();
    match parts.as_slice() {
        _ if version.is_empty() => found.push(required(path, "")),
        ["", ""] => found.push(invalid(path, version, "version must be specified")),
        [one] => group_version(&mut found, &path, version, "", one),
        [group, one] => group_version(&mut found, &path, version, group, one),
        _ => {
            let detail = format!("unexpected GroupVersion string: {version}");
            found.push(invalid(path, version, detail));
        }
    }
    let (name, path) = (text(kind, "kind"), at.child("kind"));
    let errors = NamedFormat::Dns1035Label.validate(&name.to_lowercase());
    if name.is_empty() {
        found.push(required(path, ""));
    } else if !errors.is_empty() {
        let detail = "may have mixed case, but should otherwise match: ".to_owned();
        found.push(invalid(path, name, detail + &errors.join(",")));
    }
    found
}

fn group_version(
    found: &mut Vec<Violation>,
    path: &FieldPath,
    whole: &str,
    group: &str,
    version: &str,
) {
    let errors = NamedFormat::Dns1123Subdomain.validate(group);
    if !group.is_empty() && !errors.is_empty() {
        found.push(invalid(path.clone(), group, errors.join(",")));
    }
    let errors = NamedFormat::Dns1035Label.validate(version);
    if version.is_empty() {
        found.push(invalid(path.clone(), whole, "version must be specified"));
    } else if !errors.is_empty() {
        found.push(invalid(path.clone(), version, errors.join(",")));
    }
}

/// Checks `matchConstraints`: the requests that a policy judges. Parts that are left out have
/// defaults, except for the rules.
pub(super) fn match_constraints(spec: &Value, at: &FieldPath) -> Vec<Violation> {
    let Some(constraints) = spec.get("matchConstraints").filter(|value| !value.is_null()) else {
        return vec![required(at.clone(), "")];
    };
    let mut found = Vec::new();
    if let Some(policy) = member(constraints, "matchPolicy")
        && !MATCH_POLICIES.contains(&policy)
    {
        found.push(Violation::not_supported(at.child("matchPolicy"), policy, &MATCH_POLICIES));
    }
    for name in ["namespaceSelector", "objectSelector"] {
        if let Some(selector) = constraints.get(name) {
            label_selector(&mut found, selector, &at.child(name));
        }
    }
    for name in ["resourceRules", "excludeResourceRules"] {
        for (index, rule) in list(constraints, name).iter().enumerate() {
            resource_rule(&mut found, rule, &at.child(name).index(index));
        }
    }
    if list(constraints, "resourceRules").is_empty() {
        found.push(required(at.child("resourceRules"), ""));
    }
    found
}

fn label_selector(found: &mut Vec<Violation>, selector: &Value, at: &FieldPath) {
    let labels = selector.get("matchLabels").and_then(Value::as_object);
    let path = at.child("matchLabels");
    for (key, value) in labels.into_iter().flatten() {
        formatted(found, NamedFormat::QualifiedName, &path, key);
        formatted(found, NamedFormat::LabelValue, &path, value.as_str().unwrap_or_default());
    }
    for (index, requirement) in list(selector, "matchExpressions").iter().enumerate() {
        label_requirement(found, requirement, &at.child("matchExpressions").index(index));
    }
}

fn label_requirement(found: &mut Vec<Violation>, requirement: &Value, at: &FieldPath) {
    let (values, path) = (list(requirement, "values"), at.child("values"));
    match text(requirement, "operator") {
        "In" | "NotIn" if values.is_empty() => {
            let detail = "must be specified when `operator` is 'In' or 'NotIn'";
            found.push(required(path.clone(), detail));
        }
        "Exists" | "DoesNotExist" if !values.is_empty() => {
            let detail = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'";
            found.push(Violation::without_value(path.clone(), Reason::Forbidden, detail));
        }
        "In" | "NotIn" | "Exists" | "DoesNotExist" => {}
        other => {
            found.push(invalid(at.child("operator"), other, "not a valid selector operator"));
        }
    }
    formatted(found, NamedFormat::QualifiedName, &at.child("key"), text(requirement, "key"));
    for (index, value) in values.iter().enumerate() {
        let value = value.as_str().unwrap_or_default();
        formatted(found, NamedFormat::LabelValue, &path.index(index), value);
    }
}

fn formatted(found: &mut Vec<Violation>, format: NamedFormat, path: &FieldPath, value: &str) {
    found.extend(
        format.validate(value).into_iter().map(|error| invalid(path.clone(), value, error)),
    );
}

/// Checks a rule of resources: names of objects, operations, groups, versions, resources, scope.
fn resource_rule(found: &mut Vec<Violation>, rule: &Value, at: &FieldPath) {
    let mut names = HashSet::new();
    for (index, name) in list(rule, "resourceNames").iter().enumerate() {
        let (name, path) =
            (name.as_str().unwrap_or_default(), at.child("resourceNames").index(index));
        found
            .extend(path_segment(name).into_iter().map(|error| invalid(path.clone(), name, error)));
        if !names.insert(name) {
            found.push(duplicate(path, name));
        }
    }
    let (operations, path) = (list(rule, "operations"), at.child("operations"));
    needed(found, operations, &path, "operations");
    for (index, operation) in operations.iter().enumerate() {
        let operation = operation.as_str().unwrap_or_default();
        if !OPERATIONS.contains(&operation) {
            found.push(Violation::not_supported(path.index(index), operation, &OPERATIONS));
        }
    }
    needed(found, list(rule, "apiGroups"), &at.child("apiGroups"), "API groups");
    let (versions, path) = (list(rule, "apiVersions"), at.child("apiVersions"));
    needed(found, versions, &path, "API versions");
    let empty = versions.iter().enumerate().filter(|(_, version)| *version == "");
    found.extend(empty.map(|(index, _)| required(path.index(index), "")));
    resources(found, list(rule, "resources"), &at.child("resources"));
    if let Some(scope) = member(rule, "scope")
        && !SCOPES.contains(&scope)
    {
        found.push(Violation::not_supported(at.child("scope"), scope, &SCOPES));
    }
}

/// A list that must have elements; the wildcard must be the only one.
fn needed(found: &mut Vec<Violation>, values: &[Value], path: &FieldPath, noun: &str) {
    if values.is_empty() {
        found.push(required(path.clone(), ""));
    } else if has_redundant(values, "*") {
        let detail = format!("if '*' is present, must not specify other {noun}");
        found.push(invalid_list(path.clone(), values, &detail));
    }
}

/// The errors of a name that cannot be a part of a path of the API.
fn path_segment(name: &str) -> Vec<String> {
    if matches!(name, "." | "..") {
        return vec![format!("may not be '{name}'")];
    }
    let contained = ["/", "%"].into_iter().filter(|part| name.contains(part));
    contained.map(|part| format!("may not contain '{part}'")).collect()
}

/// Checks resources, each with or without a subresource behind a slash.
fn resources(found: &mut Vec<Violation>, values: &[Value], path: &FieldPath) {
    if values.is_empty() {
        found.push(required(path.clone(), ""));
    }
    let (mut all_subresources, mut all_resources) = (HashSet::new(), HashSet::new());
    // As in the server, the last resource without a subresource decides.
    let mut is_beside_all = false;
    for (index, value) in values.iter().enumerate() {
        let whole = value.as_str().unwrap_or_default();
        let Some((resource, sub)) = whole.split_once('/') else {
            if whole.is_empty() {
                found.push(required(path.index(index), ""));
            } else {
                is_beside_all = whole != "*";
            }
            continue;
        };
        if all_subresources.contains(resource) {
            let detail = format!("if '{resource}/*' is present, must not specify {whole}");
            found.push(invalid(path.index(index), whole, detail));
        }
        if all_resources.contains(sub) {
            let detail = format!("if '*/{sub}' is present, must not specify {whole}");
            found.push(invalid(path.index(index), whole, detail));
        }
        if sub == "*" {
            all_subresources.insert(resource);
        }
        if resource == "*" {
            all_resources.insert(sub);
        }
    }
    if has_redundant(values, "*/*") {
        let detail = "if '*/*' is present, must not specify other resources";
        found.push(invalid_list(path.clone(), values, detail));
    }
    if is_beside_all && values.iter().any(|value| value == "*") {
        let detail = "if '*' is present, must not specify other resources without subresources";
        found.push(invalid_list(path.clone(), values, detail));
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn texts(found: &[Violation]) -> Vec<String> {
        found.iter().map(ToString::to_string).collect()
    }

    fn of_kind(kind: &Value) -> Vec<String> {
        texts(&param_kind(kind, &FieldPath::root().child("k")))
    }

    fn of_constraints(constraints: &Value) -> Vec<String> {
        let spec = json!({"matchConstraints": constraints});
        texts(&match_constraints(&spec, &FieldPath::root().child("c")))
    }

    fn sound() -> Value {
        json!({"apiGroups": ["*"], "apiVersions": ["*"], "resources": ["*"], "operations": ["*"]})
    }

    /// The errors of a sound rule with another member.
    fn of_rule(name: &str, value: Value) -> Vec<String> {
        let mut rule = sound();
        rule[name] = value;
        let rules = json!({"resourceRules": [sound()], "excludeResourceRules": [rule]});
        let found = of_constraints(&rules);
        let at = "c.excludeResourceRules[0].";
        found.iter().map(|text| text.strip_prefix(at).unwrap_or(text).to_owned()).collect()
    }

    #[test]
    fn the_kind_of_params_has_a_version_and_a_name() {
        let sound = json!({"apiVersion": "rules.example.com/v1", "kind": "ReplicaLimit"});
        assert_eq!(of_kind(&sound), [] as [&str; 0]);
        let required = ["k.apiVersion: Required value", "k.kind: Required value"];
        assert_eq!(of_kind(&json!({})), required);
        for (version, expected) in [
            ("/", "\"/\": version must be specified"),
            ("a.b/", "\"a.b/\": version must be specified"),
            ("a/b/c", "\"a/b/c\": unexpected GroupVersion string: a/b/c"),
            ("a/1", "\"1\": a DNS-1035 label must consist"),
            ("A/v1", "\"A\": a lowercase RFC 1123 subdomain must consist"),
        ] {
            let found = of_kind(&json!({"apiVersion": version, "kind": "K"}));
            let start = format!("k.apiVersion: Invalid value: {expected}");
            assert!(found.len() == 1 && found[0].starts_with(&start), "{found:?}");
        }
        let found = of_kind(&json!({"apiVersion": "v1", "kind": "A_b"}));
        let start = "k.kind: Invalid value: \"A_b\": may have mixed case, but should otherwise match: a DNS-1035";
        assert!(found.len() == 1 && found[0].starts_with(start), "{found:?}");
    }

    #[test]
    fn constraints_need_a_rule_and_a_known_policy() {
        assert_eq!(of_constraints(&Value::Null), ["c: Required value"]);
        assert_eq!(of_constraints(&json!({"resourceRules": [sound()]})), [] as [&str; 0]);
        let policies = "Unsupported value: \"exact\": supported values: \"Equivalent\", \"Exact\"";
        let expected =
            [format!("c.matchPolicy: {policies}"), "c.resourceRules: Required value".into()];
        assert_eq!(of_constraints(&json!({"matchPolicy": "exact"})), expected);
    }

    #[test]
    fn a_rule_names_operations_groups_and_versions() {
        assert_eq!(of_rule("operations", json!([])), ["operations: Required value"]);
        let supported = "\"*\", \"CONNECT\", \"CREATE\", \"DELETE\", \"UPDATE\"";
        let expected = [
            "operations: Invalid value: [\"*\",\"GET\"]: if '*' is present, must not specify other operations".to_owned(),
            format!("operations[1]: Unsupported value: \"GET\": supported values: {supported}"),
        ];
        assert_eq!(of_rule("operations", json!(["*", "GET"])), expected);
        let expected = "apiGroups: Invalid value: [\"*\",\"\"]: if '*' is present, must not specify other API groups";
        assert_eq!(of_rule("apiGroups", json!(["*", ""])), [expected]);
        assert_eq!(of_rule("apiVersions", json!([""])), ["apiVersions[0]: Required value"]);
        let expected = "scope: Unsupported value: \"All\": supported values: \"*\", \"Cluster\", \"Namespaced\"";
        assert_eq!(of_rule("scope", json!("All")), [expected]);
    }

    #[test]
    fn a_rule_names_resources_and_objects() {
        let of = |value: Value| of_rule("resources", value);
        let expected = [
            "resources[1]: Invalid value: \"a/b\": if 'a/*' is present, must not specify a/b",
            "resources[3]: Invalid value: \"d/c\": if '*/c' is present, must not specify d/c",
        ];
        assert_eq!(of(json!(["a/*", "a/b", "*/c", "d/c"])), expected);
        let expected = "resources: Invalid value: [\"*\",\"a\"]: if '*' is present, must not specify other resources \
                        without subresources";
        assert_eq!(of(json!(["*", "a"])), [expected]);
        let expected = "resources: Invalid value: [\"*/*\",\"a\"]: if '*/*' is present, must not specify other resources";
        assert_eq!(of(json!(["*/*", "a"])), [expected]);
        let expected = [
            "resourceNames[0]: Invalid value: \"a/%\": may not contain '/'",
            "resourceNames[0]: Invalid value: \"a/%\": may not contain '%'",
            "resourceNames[2]: Duplicate value: \"b\"",
        ];
        assert_eq!(of_rule("resourceNames", json!(["a/%", "b", "b"])), expected);
    }

    #[test]
    fn a_selector_has_labels_and_known_operators() {
        let selector = json!({"matchLabels": {"a b": "c d"}, "matchExpressions": [
            {"key": "k", "operator": "In"}, {"key": "k", "operator": "Exists", "values": ["v"]},
            {"key": "k", "operator": "is"}]});
        let found =
            of_constraints(&json!({"resourceRules": [sound()], "objectSelector": selector}));
        let at = "c.objectSelector.matchLabels: Invalid value: ";
        assert!(found[0].starts_with(&format!("{at}\"a b\": name part must")), "{found:?}");
        assert!(found[1].starts_with(&format!("{at}\"c d\": a valid label must")), "{found:?}");
        let at = "c.objectSelector.matchExpressions";
        let expected = [
            format!(
                "{at}[0].values: Required value: must be specified when `operator` is 'In' or 'NotIn'"
            ),
            format!(
                "{at}[1].values: Forbidden: may not be specified when `operator` is 'Exists' or 'DoesNotExist'"
            ),
            format!("{at}[2].operator: Invalid value: \"is\": not a valid selector operator"),
        ];
        assert_eq!(found[2..], expected);
    }
}
