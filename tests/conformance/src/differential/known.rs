//! Parts of answers that the embedded server is known to write otherwise.

use std::sync::LazyLock;

use regex::Regex;
use serde_json::Value;

use crate::normal::pattern;
use crate::script::Answer;

/// Patterns of texts, and the texts instead of them.
static KNOWN: LazyLock<[(Regex, &str); 1]> = LazyLock::new(|| {
    [
        // A patched object that does not decode: the fields have the order of Go's types.
        (pattern(r#"(?s)Invalid value: "\{.*\}": "#), "Invalid value: OBJECT: "),
    ]
});

/// Returns answers without these parts.
pub(super) fn masked(mut answers: Vec<Answer>) -> Vec<Answer> {
    answers.iter_mut().for_each(|answer| mask(&mut answer.body));
    answers
}

/// Masks the texts in a value.
fn mask(value: &mut Value) {
    match value {
        Value::String(text) => {
            for (pattern, instead) in &*KNOWN {
                if pattern.is_match(text) {
                    *text = pattern.replace(text, *instead).into_owned();
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(mask),
        Value::Object(fields) => fields.values_mut().for_each(mask),
        _ => {}
    }
}
