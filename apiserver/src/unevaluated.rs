//! Warnings about validation rules that this server stores and does not evaluate.
//!
//! An object that breaks such a rule is accepted here and refused by a real API server, which
//! nothing else would show. The client that writes the definition gets a `Warning` header, as real
//! API servers use it for definitions that are not fully enforced. The log gets each text once per
//! process.

// DESIGN.md, 86: The embedded API server stores CEL rules, evaluates none, and warns

use std::collections::BTreeSet;

use parking_lot::Mutex;
use serde_json::Value;

use crate::crd_schema::{Rule, Schema};

/// Most rules that one warning names; a header must stay short.
const MOST_NAMED: usize = 8;
/// Most characters of an expression that are shown.
const MOST_SHOWN: usize = 60;
/// Most texts that are remembered as logged. Beyond that all are forgotten, and logged again.
const REMEMBERED: usize = 1024;

/// Texts that this process has logged.
static LOGGED: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());

/// Returns a warning for each version of the definition that has rules.
pub(crate) fn warnings(definition: &Value) -> Vec<String> {
    let versions = definition["spec"]["versions"].as_array();
    versions.into_iter().flatten().filter_map(|version| warning(definition, version)).collect()
}

/// Returns the warning for one version; `None` without rules.
fn warning(definition: &Value, version: &Value) -> Option<String> {
    let schema = Schema::compile(version.pointer("/schema/openAPIV3Schema")?);
    let rules = schema.rules();
    if rules.is_empty() {
        return None;
    }
    let mut named: Vec<String> = rules.iter().take(MOST_NAMED).map(name).collect();
    if rules.len() > MOST_NAMED {
        named.push(format!("and {} more", rules.len() - MOST_NAMED));
    }
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    Some(format!(
        "{kind} ({definition}, {version}): this server does not evaluate CEL, so objects that break these \
         x-kubernetes-validations are accepted, which a kube-apiserver refuses: {named}",
        kind = text(&definition["spec"]["names"]["kind"]),
        definition = text(&definition["metadata"]["name"]),
        version = text(&version["name"]),
        named = named.join("; "),
    ))
}

/// Returns a rule as the warning names it: `spec.hosts[*]: self.size() < 9`.
fn name(rule: &Rule) -> String {
    let path = if rule.path.is_empty() { "the object" } else { &rule.path };
    let expression = rule.rule["rule"].as_str().unwrap_or_default();
    // A header is one line.
    let plain = expression.chars().map(|c| if c.is_control() { ' ' } else { c });
    let mut shown: String = plain.take(MOST_SHOWN).collect();
    if expression.chars().count() > MOST_SHOWN {
        shown.push('…');
    }
    format!("{path}: {shown}")
}

/// Logs the definition's warnings, each text once per process.
pub(crate) fn log(definition: &Value) {
    for text in warnings(definition) {
        // The lock is released before the text is logged: a subscriber may take any time.
        let is_new = {
            let mut logged = LOGGED.lock();
            if logged.len() >= REMEMBERED {
                logged.clear();
            }
            logged.insert(text.clone())
        };
        if is_new {
            tracing::warn!("{text}");
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use serde_json::json;
    use tracing::field::{Field, Visit};
    use tracing::span::{Attributes, Id, Record};
    use tracing::{Event, Level, Metadata, Subscriber};

    use super::*;

    /// Subscriber that keeps the texts of warnings.
    #[derive(Clone, Default)]
    struct Kept(Arc<Mutex<Vec<String>>>);

    struct Text<'a>(&'a mut Vec<String>);

    impl Visit for Text<'_> {
        fn record_debug(&mut self, field: &Field, value: &dyn std::fmt::Debug) {
            if field.name() == "message" {
                self.0.push(format!("{value:?}"));
            }
        }
    }

    impl Subscriber for Kept {
        fn enabled(&self, metadata: &Metadata<'_>) -> bool {
            *metadata.level() == Level::WARN
        }

        fn new_span(&self, _: &Attributes<'_>) -> Id {
            Id::from_u64(1)
        }

        fn record(&self, _: &Id, _: &Record<'_>) {}

        fn record_follows_from(&self, _: &Id, _: &Id) {}

        fn event(&self, event: &Event<'_>) {
            event.record(&mut Text(&mut self.0.lock()));
        }

        fn enter(&self, _: &Id) {}

        fn exit(&self, _: &Id) {}
    }

    fn definition(name: &str, spec: &Value) -> Value {
        let version = |name: &str, schema: Value| json!({"name": name, "schema": {"openAPIV3Schema": schema}});
        let ruled = json!({
            "type": "object",
            "x-kubernetes-validations": [{"rule": "self.metadata.name != 'x'"}],
            "properties": {"spec": spec},
        });
        json!({
            "metadata": {"name": name},
            "spec": {
                "names": {"kind": "Site"},
                "versions": [version("v1", ruled), version("v2", json!({"type": "object"}))],
            },
        })
    }

    fn spec() -> Value {
        json!({
            "type": "object",
            "properties": {"hosts": {
                "type": "array",
                "items": {"type": "string", "x-kubernetes-validations": [{"rule": "self != ''"}]},
            }},
        })
    }

    #[test]
    fn each_rule_is_named_with_its_kind_and_its_path() {
        let found = warnings(&definition("sites.g.io", &spec()));
        let [text] = found.as_slice() else { panic!("one of the versions has rules: {found:?}") };
        for part in [
            "Site (sites.g.io, v1)",
            "the object: self.metadata.name != 'x'",
            "spec.hosts[*]: self != ''",
        ] {
            assert!(text.contains(part), "{part}: {text}");
        }
    }

    #[test]
    fn a_warning_stays_short_however_many_and_long_the_rules_are() {
        let rules: Vec<Value> =
            (0..50).map(|n| json!({"rule": format!("{n}\n{}", "x".repeat(9000))})).collect();
        let found = warnings(&definition(
            "s",
            &json!({"type": "object", "x-kubernetes-validations": rules}),
        ));
        assert!(found[0].ends_with("; and 43 more"), "{}", found[0]);
        assert!(found[0].len() < 2000 && !found[0].contains('\n'), "{}", found[0]);
    }

    #[test]
    fn a_definition_is_logged_once_in_a_process_and_another_one_too() {
        let kept = Kept::default();
        tracing::subscriber::with_default(kept.clone(), || {
            for name in ["once.g.io", "once.g.io", "other.g.io", "once.g.io"] {
                log(&definition(name, &spec()));
            }
            log(
                &json!({"spec": {"versions": [{"schema": {"openAPIV3Schema": {"type": "object"}}}]}}),
            );
        });
        let told = kept.0.lock();
        assert_eq!(told.len(), 2, "{told:?}");
        assert!(told[0].contains("once.g.io") && told[1].contains("other.g.io"), "{told:?}");
    }
}
