//! CEL rules (`x-kubernetes-validations`) of a value.

use serde_json::Value;

use super::node::{SchemaAtPath, list, text};
use super::rule::CompatRule;
use super::walk::Walk;

/// Compares the rules of the value at `path`, by their expressions.
pub(super) fn compare(
    walk: &mut Walk<'_>,
    old: SchemaAtPath<'_>,
    new: SchemaAtPath<'_>,
    path: &str,
) {
    let rules = |node: SchemaAtPath<'_>| {
        list(node.schema.get("x-kubernetes-validations").unwrap_or(&Value::Null)).to_vec()
    };
    let (before, after) = (rules(old), rules(new));
    // An optional `oldSelf` makes another rule of the same expression.
    let is_same = |a: &Value, b: &Value| {
        text(&a["rule"]).trim() == text(&b["rule"]).trim()
            && (a["optionalOldSelf"] == true) == (b["optionalOldSelf"] == true)
    };
    // A rule may have several lines; a change is printed on a single line.
    let line = |rule: &Value| {
        let words: Vec<&str> = text(&rule["rule"]).split_whitespace().collect();
        words.join(" ")
    };
    for rule in &after {
        let expression = line(rule);
        match before.iter().find(|old| is_same(old, rule)) {
            Some(old) if old != rule => {
                walk.add(
                    CompatRule::CelReworded,
                    path,
                    format!("the message of the rule `{expression}` changes"),
                );
            }
            Some(_) => {}
            None if reads_old_self(text(&rule["rule"])) => {
                walk.add(
                    CompatRule::TransitionRuleAdded,
                    path,
                    format!("the rule `{expression}` is new"),
                );
            }
            None => walk.add(CompatRule::CelAdded, path, format!("the rule `{expression}` is new")),
        }
    }
    for rule in before.iter().filter(|rule| !after.iter().any(|new| is_same(rule, new))) {
        let expression = line(rule);
        let text = format!("the rule `{expression}` is removed");
        walk.add_part(CompatRule::CelRemoved, path, format!("the rule {expression:?}"), text);
    }
}

/// Whether an expression reads `oldSelf`, outside of texts in quotes.
fn reads_old_self(expression: &str) -> bool {
    let mut letters = expression.chars().peekable();
    let mut word = String::new();
    while let Some(letter) = letters.next() {
        if letter.is_alphanumeric() || letter == '_' {
            word.push(letter);
            continue;
        }
        if word == "oldSelf" {
            return true;
        }
        let is_raw = word.eq_ignore_ascii_case("r");
        word.clear();
        if letter == '"' || letter == '\'' {
            // A text in three quotes reads as an empty text, a text and an empty text.
            while let Some(inner) = letters.next() {
                if inner == letter {
                    break;
                }
                if inner == '\\' && !is_raw {
                    letters.next();
                }
            }
        }
    }
    word == "oldSelf"
}

#[cfg(test)]
mod tests {
    use super::reads_old_self;

    #[test]
    fn the_old_value_is_read_by_its_name_outside_of_texts() {
        for rule in ["self == oldSelf", "oldSelf.a == 1", "self.x != 'oldSelf' && oldSelf == 2"] {
            assert!(reads_old_self(rule), "{rule}");
        }
        for rule in ["self.oldSelfish", "self == 'oldSelf'", r#"self == "a\"oldSelf""#, "myoldSelf"]
        {
            assert!(!reads_old_self(rule), "{rule}");
        }
    }
}
