//! CEL rules as keys of `#[schema(…)]` and `#[resource(…)]`.

use serde_json::{Map, Value};

use super::keys::AttributeKey;
use super::literals::string;
use super::names::FieldName;

/// Keyword of the rules of a schema.
const RULES: &str = "x-kubernetes-validations";
/// Parts of a rule, and their keys.
const PARTS: [(&str, &str); 3] =
    [("message", "message"), ("messageExpression", "message_expression"), ("reason", "reason")];

/// Site of a rule in the printed types.
#[derive(Clone, Copy, Debug)]
pub(super) struct RuleSite<'a> {
    /// Fields that the rule may name.
    pub(super) names: &'a [FieldName],
    /// Whether the rule stands on a type, whose fields have names.
    pub(super) is_type: bool,
}

impl RuleSite<'_> {
    /// The value of the key `path`.
    fn path(&self, path: &str) -> String {
        let name = path.strip_prefix('.').filter(|_| self.is_type);
        let field = name.and_then(|name| self.names.iter().find(|field| field.json == name));
        field.map_or_else(|| string(path), |field| field.identifier.clone())
    }
}

/// Takes the rules of a schema if all parts of the rules have keys, and returns a key for each
/// rule.
pub(super) fn take_rules(rest: &mut Map<String, Value>, site: &RuleSite<'_>) -> Vec<AttributeKey> {
    let key = |rule: &Value| {
        let named = if site.is_type { one_of(rule, site.names) } else { immutable(rule) };
        named.or_else(|| key(rule, |path| site.path(path)))
    };
    let rules = rest.get(RULES).and_then(Value::as_array);
    let keys: Option<Vec<AttributeKey>> = rules.and_then(|rules| rules.iter().map(key).collect());
    if keys.is_some() {
        rest.remove(RULES);
    }
    keys.unwrap_or_default()
}

/// Returns `rule("…", …)`; `None` if a part has no key.
pub(super) fn key(rule: &Value, path: impl Fn(&str) -> String) -> Option<AttributeKey> {
    let rule = rule.as_object()?;
    let mut parts = vec![AttributeKey::Plain(string(rule.get("rule")?.as_str()?))];
    for (part, key) in PARTS {
        if let Some(text) = rule.get(part) {
            parts.push(AttributeKey::value(key, string(text.as_str()?)));
        }
    }
    // An empty path is that of the value that has the rule.
    if let Some(field) = rule.get("fieldPath").filter(|field| *field != "") {
        parts.push(AttributeKey::value("path", path(field.as_str()?)));
    }
    if rule.get("optionalOldSelf") == Some(&Value::Bool(true)) {
        parts.push(AttributeKey::word("optional_old_self"));
    }
    let is_known = |key: &str| {
        matches!(key, "rule" | "fieldPath" | "optionalOldSelf")
            || PARTS.iter().any(|(part, _)| *part == key)
    };
    rule.keys().all(|key| is_known(key)).then(|| AttributeKey::call("rule", parts))
}

/// Returns `immutable` for the rule that the key stands for.
fn immutable(rule: &Value) -> Option<AttributeKey> {
    let rule = rule.as_object()?;
    let is = |key: &str, text: &str| rule.get(key).is_some_and(|value| value == text);
    let is_same = rule.len() == 2 && is("rule", "self == oldSelf");
    (is_same && is("message", "field is immutable")).then(|| AttributeKey::word("immutable"))
}

/// Returns `one_of(a, b)` and similar keys for the rule that kubebuilder writes for such a key.
fn one_of(rule: &Value, names: &[FieldName]) -> Option<AttributeKey> {
    let rule = rule.as_object().filter(|rule| rule.len() == 2)?;
    let message = rule.get("message")?.as_str()?;
    for (key, condition, before, after) in [
        ("one_of", "== 1", "exactly one of the fields in [", "] must be set"),
        ("at_most_one_of", "<= 1", "at most one of the fields in [", "] may be set"),
        ("at_least_one_of", ">= 1", "at least one of the fields in [", "] must be set"),
    ] {
        let Some(list) = message.strip_prefix(before).and_then(|rest| rest.strip_suffix(after))
        else {
            continue;
        };
        let field = |json: &str| {
            let field = names.iter().find(|field| field.json == json)?;
            field.rust.starts_with("Option<").then_some(field.identifier.as_str())
        };
        let fields: Vec<&str> = list.split(' ').map(field).collect::<Option<_>>()?;
        let set: Vec<String> = list.split(' ').map(|json| format!("has(self.{json})")).collect();
        let wanted = format!("[{}].filter(x,x==true).size() {condition}", set.join(","));
        let is_same = fields.len() > 1 && rule.get("rule")? == wanted.as_str();
        return is_same.then(|| {
            AttributeKey::call(key, fields.into_iter().map(AttributeKey::word).collect())
        });
    }
    None
}
