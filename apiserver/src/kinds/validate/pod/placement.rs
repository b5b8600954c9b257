//! Checks of tolerations, which say on which nodes a Pod may run.

use serde_json::Value;

use super::{items, named, text};
use crate::names;
use crate::served::Cause;
use crate::status::{invalid_value, unsupported};

/// Effects of taints, in the order in which the server names them.
const EFFECTS: [&str; 3] = ["NoSchedule", "PreferNoSchedule", "NoExecute"];

/// Appends the faults of a list of tolerations.
pub(super) fn tolerations(list: &Value, at: &str, causes: &mut Vec<Cause>) {
    for (index, toleration) in items(list) {
        one(toleration, &format!("{at}[{index}]"), causes);
    }
}

/// Appends the faults of a toleration.
fn one(toleration: &Value, at: &str, causes: &mut Vec<Cause>) {
    let [key, operator, value, effect] =
        ["key", "operator", "value", "effect"].map(|field| text(toleration, field));
    let at_operator = format!("{at}.operator");
    if !key.is_empty() {
        named(names::qualified(key), key, &format!("{at}.key"), causes);
    } else if operator != "Exists" {
        let why = "operator must be Exists when `key` is empty, which means \"match all values and \
                   all keys\"";
        causes.push(invalid_value(&at_operator, &operator.into(), why));
    }
    if toleration["tolerationSeconds"].is_number() && effect != "NoExecute" {
        let why = "effect must be 'NoExecute' when `tolerationSeconds` is set";
        causes.push(invalid_value(&format!("{at}.effect"), &effect.into(), why));
    }
    match operator {
        "" | "Equal" => {
            let faults = names::label_value(value);
            if !faults.is_empty() {
                causes.push(invalid_value(&at_operator, &value.into(), &faults.join(";")));
            }
        }
        "Exists" if !value.is_empty() => {
            let why = "value must be empty when `operator` is 'Exists'";
            causes.push(invalid_value(&at_operator, &value.into(), why));
        }
        "Exists" => {}
        // Known to the server, and behind a feature that is off.
        "Lt" | "Gt" => {
            let known = ["Equal", "Exists", "Lt", "Gt"];
            causes.push(unsupported(&at_operator, operator, &known));
        }
        other => causes.push(unsupported(&at_operator, other, &["Equal", "Exists"])),
    }
    if !effect.is_empty() && !EFFECTS.contains(&effect) {
        causes.push(unsupported(&format!("{at}.effect"), effect, &EFFECTS));
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn fields(toleration: Value) -> Vec<String> {
        let mut causes = Vec::new();
        tolerations(&json!([toleration]), "t", &mut causes);
        causes.into_iter().map(|cause| cause.field).collect()
    }

    #[test]
    fn a_toleration_of_all_taints_says_so() {
        assert_eq!(fields(json!({"operator": "Exists"})), [""; 0]);
        assert_eq!(fields(json!({})), ["t[0].operator"]);
        assert_eq!(fields(json!({"operator": "Exists", "value": "v"})), ["t[0].operator"]);
    }

    #[test]
    fn only_evictions_have_a_delay() {
        let with = |effect: &str| json!({"key": "k", "effect": effect, "tolerationSeconds": 5});
        assert_eq!(fields(with("NoExecute")), [""; 0]);
        assert_eq!(fields(with("NoSchedule")), ["t[0].effect"]);
        assert_eq!(fields(with("X")), ["t[0].effect", "t[0].effect"]);
    }
}
