//! An entry of `x-kubernetes-validations`, and its allowed contents.

use serde_json::Value;

use super::field_path::{self, FieldPath};
use super::violation::{Reason, Violation};

/// The reasons that a rule may name, in the order in which messages list them.
const REASONS: [&str; 4] =
    ["FieldValueDuplicate", "FieldValueForbidden", "FieldValueInvalid", "FieldValueRequired"];

/// A rule as written.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Rule {
    /// The expression; true for a valid value.
    pub rule: String,
    /// The message for a value that breaks the rule; `failed rule: …` if the message is empty.
    pub message: String,
    /// An expression that gives the message; empty for none.
    pub message_expression: String,
    /// The reason of the cause; [`Reason::Invalid`] if no reason is set.
    pub reason: Option<String>,
    /// Path of the field that is reported, below the field that has the rule; empty for that field.
    pub field_path: String,
    /// Whether the rule runs without an old value, too, with `oldSelf` as an optional.
    pub optional_old_self: Option<bool>,
}

impl Rule {
    /// Reads an entry; members of other types count as missing.
    pub fn from_json(json: &Value) -> Rule {
        let text =
            |name: &str| json.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
        Rule {
            rule: text("rule"),
            message: text("message"),
            message_expression: text("messageExpression"),
            reason: json.get("reason").and_then(Value::as_str).map(str::to_owned),
            field_path: text("fieldPath"),
            optional_old_self: json.get("optionalOldSelf").and_then(Value::as_bool),
        }
    }

    /// The rules of a schema node, in order.
    pub fn of_schema(schema: &Value) -> Vec<Rule> {
        let rules = schema.get("x-kubernetes-validations").and_then(Value::as_array);
        rules.into_iter().flatten().map(Rule::from_json).collect()
    }

    /// The text by which errors name the rule: its message, or the expression.
    pub(super) fn text(&self) -> &str {
        if self.message.is_empty() { self.rule.trim() } else { self.message.trim() }
    }

    /// The message for a value that breaks the rule.
    pub(super) fn message_or_default(&self) -> String {
        if self.message.is_empty() {
            format!("failed rule: {}", self.rule.trim())
        } else {
            self.message.trim().to_owned()
        }
    }

    /// Appends the errors about texts and path of the rule; `at` is its place in the definition.
    pub(super) fn check_texts(&self, at: &FieldPath, schema: &Value, found: &mut Vec<Violation>) {
        let has_newlines = |text: &str| text.contains(['\n', '\r']);
        let invalid = |member: &str, value: &str, detail: &str| {
            Violation::invalid(at.child(member), Value::from(value), detail)
        };
        let required = |member: &str, detail: &str| {
            Violation::without_value(at.child(member), Reason::Required, detail)
        };
        let (rule, message) = (self.rule.trim(), self.message.trim());
        if rule.is_empty() {
            found.push(required("rule", "rule is not specified"));
        } else if !self.message.is_empty() && message.is_empty() {
            found.push(invalid("message", &self.message, "must be non-empty if specified"));
        } else if has_newlines(message) {
            found.push(invalid("message", &self.message, "must not contain line breaks"));
        } else if has_newlines(rule) && message.is_empty() {
            found.push(required(
                "message",
                "message must be specified if rule contains line breaks",
            ));
        }
        if !self.message_expression.is_empty() && self.message_expression.trim().is_empty() {
            let detail = "messageExpression must be non-empty if specified";
            found.push(required("messageExpression", detail));
        }
        if let Some(reason) = self.reason.as_deref().filter(|reason| !REASONS.contains(reason)) {
            found.push(Violation::not_supported(at.child("reason"), reason, &REASONS));
        }
        if self.field_path.is_empty() {
            return;
        }
        if self.field_path.trim().is_empty() {
            found.push(invalid("fieldPath", &self.field_path, "must be non-empty if specified"));
        }
        if has_newlines(&self.field_path) {
            found.push(invalid("fieldPath", &self.field_path, "must not contain line breaks"));
        }
        if field_path::parse(&self.field_path, schema).is_err() {
            found.push(invalid("fieldPath", &self.field_path, "must be a valid path"));
        }
    }

    /// The rule as messages about definitions show it: Go's names, JSON with HTML escapes.
    pub(super) fn shown(&self) -> String {
        let text = |text: &String| go_json(&Value::from(text.as_str()));
        format!(
            "{{\"Rule\":{},\"Message\":{},\"MessageExpression\":{},\"Reason\":{},\"FieldPath\":{},\
             \"OptionalOldSelf\":{}}}",
            text(&self.rule),
            text(&self.message),
            text(&self.message_expression),
            self.reason.as_ref().map_or("null".to_owned(), text),
            text(&self.field_path),
            self.optional_old_self.map_or("null".to_owned(), |value| value.to_string()),
        )
    }
}

/// JSON as Go's encoder writes it, with escapes for HTML.
pub(crate) fn go_json(value: &Value) -> String {
    let text = value.to_string();
    let text = text.replace('<', "\\u003c").replace('>', "\\u003e").replace('&', "\\u0026");
    text.replace('\u{2028}', "\\u2028").replace('\u{2029}', "\\u2029")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn errors(rule: Value) -> Vec<String> {
        let mut found = Vec::new();
        let schema = json!({"properties": {"a": {"type": "string"}}});
        Rule::from_json(&rule).check_texts(&FieldPath::root().child("r"), &schema, &mut found);
        found.iter().map(Violation::to_string).collect()
    }

    #[test]
    fn texts_of_a_rule_are_checked() {
        for (rule, expected) in [
            (json!({"rule": "self.a == ''", "message": "m", "fieldPath": ".a"}), &[][..]),
            (json!({}), &["r.rule: Required value: rule is not specified"]),
            (
                json!({"rule": "a", "message": " "}),
                &["r.message: Invalid value: \" \": must be non-empty if specified"],
            ),
            (
                json!({"rule": "a", "message": "b\nc"}),
                &["r.message: Invalid value: \"b\\nc\": must not contain line breaks"],
            ),
            (
                json!({"rule": "a\n&& b"}),
                &[
                    "r.message: Required value: message must be specified if rule contains line breaks",
                ],
            ),
            (
                json!({"rule": "a", "messageExpression": " "}),
                &[
                    "r.messageExpression: Required value: messageExpression must be non-empty if specified",
                ],
            ),
            (
                json!({"rule": "a", "reason": "Bad"}),
                &[
                    "r.reason: Unsupported value: \"Bad\": supported values: \"FieldValueDuplicate\", \
                 \"FieldValueForbidden\", \"FieldValueInvalid\", \"FieldValueRequired\"",
                ],
            ),
            (
                json!({"rule": "a", "fieldPath": "b"}),
                &["r.fieldPath: Invalid value: \"b\": must be a valid path"],
            ),
        ] {
            assert_eq!(errors(rule.clone()), expected, "{rule}");
        }
    }

    #[test]
    fn a_rule_is_shown_with_the_names_of_go_and_escapes_for_html() {
        let rule = Rule::from_json(&json!({"rule": "1 < 2", "optionalOldSelf": true}));
        assert_eq!(
            rule.shown(),
            "{\"Rule\":\"1 \\u003c 2\",\"Message\":\"\",\"MessageExpression\":\"\",\"Reason\":null,\
             \"FieldPath\":\"\",\"OptionalOldSelf\":true}"
        );
    }
}
