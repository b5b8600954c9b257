//! Checks of the flow of requests: schemas and priority levels.

use serde_json::{Value, json};

use super::{items, text};
use crate::kinds::validate::fields::{is_empty, named};
use crate::names;
use crate::served::Cause;
use crate::status::{cause, forbidden_field, invalid_value, required, unsupported};

/// Largest precedence of a schema.
const MOST_PRECEDENCE: i64 = 10_000;
/// Most queues of a level.
const MOST_QUEUES: i64 = 10_000_000;
/// Most bits that the choice of a hand of queues may need.
const MOST_BITS: i64 = 60;

/// Verbs that rules name, in the order in which the server names them.
const VERBS: [&str; 9] =
    ["create", "delete", "deletecollection", "get", "list", "patch", "proxy", "update", "watch"];

/// Appends the faults of a schema.
pub(super) fn schema(object: &Value, causes: &mut Vec<Cause>) {
    let spec = &object["spec"];
    let (at, held) = ("spec.matchingPrecedence", &spec["matchingPrecedence"]);
    let number = held.as_i64().unwrap_or_default();
    if number <= 0 {
        causes.push(invalid_value(at, held, "must be a positive value"));
    }
    if number > MOST_PRECEDENCE {
        let why = format!("must not be greater than {MOST_PRECEDENCE}");
        causes.push(invalid_value(at, held, &why));
    }
    if number == 1 && object["metadata"]["name"] != "exempt" {
        let why = "only the schema named 'exempt' may have matchingPrecedence 1";
        causes.push(invalid_value(at, held, why));
    }
    let method = &spec["distinguisherMethod"];
    if method.is_object() && !["ByNamespace", "ByUser"].contains(&text(method, "type")) {
        // The value is the structure, with the names of Go's fields.
        let shown = json!({ "Type": text(method, "type") });
        let message =
            format!("Unsupported value: {shown}: supported values: \"ByNamespace\", \"ByUser\"");
        causes.push(cause("FieldValueNotSupported", "spec.distinguisherMethod.type", message));
    }
    let level = text(&spec["priorityLevelConfiguration"], "name");
    let at = "spec.priorityLevelConfiguration.name";
    if level.is_empty() {
        causes.push(required(at, "must reference a priority level"));
    } else {
        named(names::subdomain(level), &level.into(), at, causes);
    }
    for (index, rule) in items(&spec["rules"]) {
        self::rule(rule, &format!("spec.rules[{index}]"), causes);
    }
}

/// Appends the faults of a rule.
fn rule(rule: &Value, at: &str, causes: &mut Vec<Cause>) {
    if is_empty(&rule["subjects"]) {
        let why = "subjects must contain at least one value";
        causes.push(required(&format!("{at}.subjects"), why));
    }
    for (index, one) in items(&rule["subjects"]) {
        subject(one, &format!("{at}.subjects[{index}]"), causes);
    }
    if is_empty(&rule["resourceRules"]) && is_empty(&rule["nonResourceRules"]) {
        let why = "at least one of resourceRules and nonResourceRules has to be non-empty";
        causes.push(required(at, why));
    }
    for (index, one) in items(&rule["resourceRules"]) {
        resources(one, &format!("{at}.resourceRules[{index}]"), causes);
    }
    for (index, one) in items(&rule["nonResourceRules"]) {
        let at = format!("{at}.nonResourceRules[{index}]");
        verbs(&one["verbs"], &format!("{at}.verbs"), causes);
        paths(&one["nonResourceURLs"], &format!("{at}.nonResourceURLs"), causes);
    }
}

/// Appends the faults of a subject.
fn subject(subject: &Value, at: &str, causes: &mut Vec<Cause>) {
    let kinds = [("ServiceAccount", "serviceAccount"), ("User", "user"), ("Group", "group")];
    let kind = text(subject, "kind");
    let Some((_, field)) = kinds.iter().find(|(name, _)| *name == kind) else {
        let known = ["Group", "ServiceAccount", "User"];
        causes.push(unsupported(&format!("{at}.kind"), kind, &known));
        return;
    };
    let (held, at_held) = (&subject[*field], format!("{at}.{field}"));
    if !held.is_object() {
        let why = format!("{field} is required when subject kind is '{kind}'");
        causes.push(required(&at_held, &why));
    } else {
        let (at_name, name) = (format!("{at_held}.name"), text(held, "name"));
        if name.is_empty() {
            causes.push(required(&at_name, ""));
        } else if kind == "ServiceAccount" && name != "*" {
            named(names::subdomain(name), &name.into(), &at_name, causes);
        }
        let (at_namespace, namespace) = (format!("{at_held}.namespace"), text(held, "namespace"));
        if kind == "ServiceAccount" && namespace.is_empty() {
            let why = "must specify namespace for service account";
            causes.push(required(&at_namespace, why));
        } else if kind == "ServiceAccount" {
            named(names::label(namespace), &namespace.into(), &at_namespace, causes);
        }
    }
    for (other, field) in kinds.iter().filter(|(other, _)| *other != kind) {
        if !subject[*field].is_null() {
            let why = format!("{field} is forbidden when subject kind is not '{other}'");
            causes.push(forbidden_field(&format!("{at}.{field}"), &why));
        }
    }
}

/// Whether a list has the item that stands for all.
fn has_all(list: &Value) -> bool {
    items(list).any(|(_, item)| item == "*")
}

/// Appends the fault of a list with the item that stands for all beside others.
fn alone(list: &Value, at: &str, what: &str, causes: &mut Vec<Cause>) {
    if has_all(list) && list.as_array().is_some_and(|list| list.len() > 1) {
        let why = format!("if '*' is present, must not specify other {what}");
        causes.push(invalid_value(at, list, &why));
    }
}

/// Appends the faults of the verbs of a rule.
fn verbs(list: &Value, at: &str, causes: &mut Vec<Cause>) {
    if is_empty(list) {
        causes.push(required(at, "verbs must contain at least one value"));
    } else if has_all(list) {
        alone(list, at, "verbs", causes);
    } else if !items(list).all(|(_, verb)| VERBS.contains(&verb.as_str().unwrap_or_default())) {
        let known = VERBS.map(|verb| format!("{verb:?}")).join(", ");
        let message = format!("Unsupported value: {list}: supported values: {known}");
        causes.push(cause("FieldValueNotSupported", at, message));
    }
}

/// Appends the faults of paths that name no resource.
fn paths(list: &Value, at: &str, causes: &mut Vec<Cause>) {
    if is_empty(list) {
        causes.push(required(at, "nonResourceURLs must contain at least one value"));
        return;
    }
    if has_all(list) {
        return alone(list, at, "non-resource URLs", causes);
    }
    for (index, path) in items(list) {
        let held = path.as_str().unwrap_or_default();
        let stars = held.matches('*').count();
        let why = if held.is_empty() {
            "must not be empty"
        } else if held == "/" {
            continue;
        } else if !held.starts_with('/') {
            "must start with slash"
        } else if held.contains(' ') {
            "must not contain white-space"
        } else if held.contains("//") {
            "must not contain double slash"
        } else if stars > 1 || stars == 1 && !held.ends_with("/*") {
            "wildcard can only do suffix matching"
        } else {
            continue;
        };
        causes.push(invalid_value(&format!("{at}[{index}]"), path, why));
    }
}

/// Appends the faults of a rule about resources.
fn resources(rule: &Value, at: &str, causes: &mut Vec<Cause>) {
    verbs(&rule["verbs"], &format!("{at}.verbs"), causes);
    for (field, missing, what) in [
        ("apiGroups", "resource rules must supply at least one api group", "api groups"),
        ("resources", "resource rules must supply at least one resource", "resources"),
    ] {
        let (at, list) = (format!("{at}.{field}"), &rule[field]);
        if is_empty(list) {
            causes.push(required(&at, missing));
        }
        alone(list, &at, what, causes);
    }
    let (at, list) = (format!("{at}.namespaces"), &rule["namespaces"]);
    if is_empty(list) && rule["clusterScope"] != true {
        let why = "resource rules that are not cluster scoped must supply at least one namespace";
        causes.push(required(&at, why));
    } else if has_all(list) {
        alone(list, &at, "namespaces", causes);
    } else {
        for (index, name) in items(list) {
            for why in names::label(name.as_str().unwrap_or_default()) {
                let why =
                    format!("each member of this list must be '*' or a DNS-1123 label; {why}");
                causes.push(invalid_value(&format!("{at}[{index}]"), name, &why));
            }
        }
    }
}

/// Appends the faults of a priority level.
pub(super) fn level(object: &Value, causes: &mut Vec<Cause>) {
    let (spec, name) = (&object["spec"], &object["metadata"]["name"]);
    let kind = text(spec, "type");
    if (name == "exempt") != (kind == "Exempt") {
        let why = "must be 'Exempt' if and only if `name` is 'exempt'";
        causes.push(invalid_value("spec.type", &kind.into(), why));
    }
    match kind {
        "Exempt" => {
            if !spec["limited"].is_null() {
                let why = "must be nil if the type is not Limited";
                causes.push(forbidden_field("spec.limited", why));
            }
            shares(&spec["exempt"], "spec.exempt", causes);
        }
        "Limited" => {
            if !spec["exempt"].is_null() {
                let why = "must be nil if the type is Limited";
                causes.push(forbidden_field("spec.exempt", why));
            }
            if spec["limited"].is_null() {
                let why = "must not be empty when type is Limited";
                causes.push(required("spec.limited", why));
            } else {
                limited(&spec["limited"], causes);
            }
        }
        "" => causes.push(required("spec.type", "")),
        other => causes.push(unsupported("spec.type", other, &["Exempt", "Limited"])),
    }
}

/// Appends the faults of the shares of a level.
fn shares(held: &Value, at: &str, causes: &mut Vec<Cause>) {
    let share = &held["nominalConcurrencyShares"];
    if share.as_i64().is_some_and(|share| share < 0) {
        let at = format!("{at}.nominalConcurrencyShares");
        causes.push(invalid_value(&at, share, "must be a non-negative integer"));
    }
    let lent = &held["lendablePercent"];
    if lent.as_i64().is_some_and(|lent| !(0..=100).contains(&lent)) {
        let at = format!("{at}.lendablePercent");
        causes.push(invalid_value(&at, lent, "must be between 0 and 100, inclusive"));
    }
}

/// Appends the faults of a level with limits.
fn limited(limited: &Value, causes: &mut Vec<Cause>) {
    let at = "spec.limited";
    shares(limited, at, causes);
    let borrowed = &limited["borrowingLimitPercent"];
    if borrowed.as_i64().is_some_and(|share| share < 0) {
        let why = "if specified, must be a non-negative integer";
        causes.push(invalid_value(&format!("{at}.borrowingLimitPercent"), borrowed, why));
    }
    let (response, at) = (&limited["limitResponse"], format!("{at}.limitResponse"));
    let (queuing, at_queuing) = (&response["queuing"], format!("{at}.queuing"));
    match text(response, "type") {
        "Reject" if !queuing.is_null() => {
            let why = "must be nil if limited.limitResponse.type is not Limited";
            causes.push(forbidden_field(&at_queuing, why));
        }
        "Reject" => {}
        "Queue" if queuing.is_null() => {
            let why = "must not be empty if limited.limitResponse.type is Limited";
            causes.push(required(&at_queuing, why));
        }
        "Queue" => queues(queuing, &at_queuing, causes),
        "" => causes.push(required(&format!("{at}.type"), "")),
        other => causes.push(unsupported(&format!("{at}.type"), other, &["Queue", "Reject"])),
    }
}

/// Appends the faults of queues.
fn queues(held: &Value, at: &str, causes: &mut Vec<Cause>) {
    let number = |field: &str| held[field].as_i64().unwrap_or_default();
    let mut refuse = |field: &str, why: &str| {
        causes.push(invalid_value(&format!("{at}.{field}"), &number(field).into(), why));
    };
    if number("queueLengthLimit") <= 0 {
        refuse("queueLengthLimit", "must be positive");
    }
    let (queues, hand) = (number("queues"), number("handSize"));
    if queues <= 0 {
        refuse("queues", "must be positive");
    } else if queues > MOST_QUEUES {
        refuse("queues", &format!("must not be greater than {MOST_QUEUES}"));
    }
    if hand <= 0 {
        refuse("handSize", "must be positive");
    } else if hand > queues {
        refuse("handSize", &format!("should not be greater than queues ({queues})"));
    } else if bits(queues, hand) > MOST_BITS {
        let why = format!(
            "required entropy bits of deckSize {queues} and handSize {hand} should not be greater \
             than {MOST_BITS}"
        );
        refuse("handSize", &why);
    }
}

/// Returns the bits that the choice of a hand out of a deck needs.
#[expect(clippy::cast_precision_loss, clippy::cast_possible_truncation)]
fn bits(deck: i64, hand: i64) -> i64 {
    ((deck as f64).log2() * hand as f64).ceil() as i64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn faults(check: fn(&Value, &mut Vec<Cause>), object: Value) -> Vec<String> {
        let mut causes = Vec::new();
        check(&object, &mut causes);
        causes.into_iter().map(|cause| cause.field).collect()
    }

    #[test]
    fn a_rule_names_subjects_and_requests() {
        let with = |rule: Value| {
            let spec = json!({"matchingPrecedence": 5, "rules": [rule],
                "priorityLevelConfiguration": {"name": "a"}});
            faults(schema, json!({ "spec": spec }))
        };
        let user = json!([{"kind": "User", "user": {"name": "*"}}]);
        let all = json!([{"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"],
            "namespaces": ["*"]}]);
        assert_eq!(with(json!({"subjects": user, "resourceRules": all})), [""; 0]);
        assert_eq!(with(json!({"subjects": user})), ["spec.rules[0]"]);
        let paths = json!([{"verbs": ["get"], "nonResourceURLs": ["/a", "/*", "b", "/*/c"]}]);
        let at = "spec.rules[0].nonResourceRules[0].nonResourceURLs";
        assert_eq!(
            with(json!({"subjects": user, "nonResourceRules": paths})),
            [format!("{at}[2]"), format!("{at}[3]")]
        );
    }

    #[test]
    fn a_level_has_the_settings_of_its_type() {
        let with = |spec: Value| faults(level, json!({"metadata": {"name": "x"}, "spec": spec}));
        let reject = json!({"limitResponse": {"type": "Reject"}});
        assert_eq!(with(json!({"type": "Limited", "limited": reject})), [""; 0]);
        assert_eq!(with(json!({"type": "Limited"})), ["spec.limited"]);
        assert_eq!(with(json!({"type": "Exempt"})), ["spec.type"]);
        let queue = |queues: i64, hand: i64| {
            let queuing = json!({"queues": queues, "handSize": hand, "queueLengthLimit": 1});
            with(json!({"type": "Limited", "limited": {
                "limitResponse": {"type": "Queue", "queuing": queuing}}}))
        };
        assert_eq!(queue(64, 8), [""; 0]);
        let at = ["spec.limited.limitResponse.queuing.handSize"];
        assert_eq!(queue(4, 8), at);
        assert_eq!(queue(1024, 7), at, "70 bits");
    }
}
