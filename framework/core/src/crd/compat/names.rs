//! Scope, names and conversion of a definition.

use serde_json::Value;

use super::change::DefinitionChange;
use super::node::{list, text};
use super::rule::CompatRule;

/// Compares scope, names and conversion.
pub(super) fn compare(old: &Value, new: &Value, found: &mut Vec<DefinitionChange>) {
    let mut add = |rule, subject: String, text: String| {
        found.push(DefinitionChange::of_part(rule, subject, text));
    };
    if old["scope"] != new["scope"] {
        let (old, new) = (text(&old["scope"]), text(&new["scope"]));
        add(CompatRule::ScopeChanged, format!("the scope {old}"), changed("the scope", old, new));
    }
    let named = |spec: &Value, field: &str| match field {
        "group" => text(&spec["group"]).to_owned(),
        // The API server fills in names that are empty.
        _ => text(&spec["names"][field]).to_owned(),
    };
    for field in ["group", "kind", "plural", "singular", "listKind"] {
        let (old, new) = (named(old, field), named(new, field));
        if !old.is_empty() && !new.is_empty() && old != new {
            let text = changed(&format!("the {field}"), &old, &new);
            add(CompatRule::NameChanged, format!("the {field} {old:?}"), text);
        }
    }
    for (field, label) in [("shortNames", "short name"), ("categories", "category")] {
        let (old, new) = (list(&old["names"][field]), list(&new["names"][field]));
        for name in old.iter().filter(|name| !new.contains(name)).map(text) {
            let subject = format!("the {label} {name:?}");
            add(CompatRule::AliasRemoved, subject.clone(), format!("{subject} is removed"));
        }
        for name in new.iter().filter(|name| !old.contains(name)).map(text) {
            add(CompatRule::AliasAdded, String::new(), format!("the {label} {name:?} is new"));
        }
    }
    let is_webhook = |spec: &Value| spec["conversion"]["strategy"] == "Webhook";
    match (is_webhook(old), is_webhook(new)) {
        (true, false) => {
            let subject = "the conversion by a webhook".to_owned();
            add(CompatRule::ConversionRemoved, subject.clone(), format!("{subject} is removed"));
        }
        (false, true) => {
            let text = "versions are converted by a webhook".to_owned();
            add(CompatRule::ConversionChanged, String::new(), text);
        }
        (true, true) if old["conversion"] != new["conversion"] => {
            let text = "the webhook of the conversion changes".to_owned();
            add(CompatRule::ConversionChanged, String::new(), text);
        }
        _ => {}
    }
    if old["preserveUnknownFields"] == true && new["preserveUnknownFields"] != true {
        let subject = "every field that is in no schema (`preserveUnknownFields`)".to_owned();
        let text = "`preserveUnknownFields` is no longer true".to_owned();
        add(CompatRule::PruningStarted, subject, text);
    }
}

/// Describes a part with another value.
fn changed(part: &str, old: &str, new: &str) -> String {
    format!("{part} changes from {old:?} to {new:?}")
}
