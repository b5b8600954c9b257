//! Names in policies: qualified names and identifiers.

use crate::syntax::identifiers::is_reserved;

/// Longest name behind the prefix of a qualified name, in bytes.
const MAX_NAME: usize = 63;

/// Longest prefix of a qualified name, in bytes.
const MAX_PREFIX: usize = 253;

const NAME: &str = "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an \
    alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is \
    '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')";

const PREFIX: &str = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', \
    and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is \
    '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";

/// The errors of a qualified name: a name with an optional prefix, as keys of labels have.
pub(super) fn qualified_name_errors(value: &str) -> Vec<String> {
    let parts: Vec<&str> = value.split('/').collect();
    let mut errors = Vec::new();
    let name = match parts.as_slice() {
        [name] => *name,
        [prefix, name] => {
            prefix_errors(prefix, &mut errors);
            *name
        }
        _ => {
            let example =
                "with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')";
            return vec![format!("a valid label key {NAME} {example}")];
        }
    };
    if name.is_empty() {
        errors.push("name part must be non-empty".to_owned());
    } else if name.len() > MAX_NAME {
        errors.push(format!("name part must be no more than {MAX_NAME} bytes"));
    }
    let is_part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    if !(name.chars().all(is_part) && has_ends(name, |c| c.is_ascii_alphanumeric())) {
        errors.push(format!("name part {NAME}"));
    }
    errors
}

fn prefix_errors(prefix: &str, errors: &mut Vec<String>) {
    if prefix.is_empty() {
        errors.push("prefix part must be non-empty".to_owned());
        return;
    }
    if prefix.len() > MAX_PREFIX {
        errors.push(format!("prefix part must be no more than {MAX_PREFIX} bytes"));
    }
    let is_end = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    let is_label =
        |label: &str| label.chars().all(|c| is_end(c) || c == '-') && has_ends(label, is_end);
    if !prefix.split('.').all(is_label) {
        errors.push(format!("prefix part {PREFIX}"));
    }
}

/// Whether a text has a first and a last character of this kind.
fn has_ends(text: &str, is_end: impl Fn(char) -> bool) -> bool {
    text.starts_with(&is_end) && text.ends_with(&is_end)
}

/// Whether a name can be a variable of a policy.
pub(super) fn is_identifier(name: &str) -> bool {
    let is_first = |c: char| c.is_ascii_alphabetic() || c == '_';
    name.starts_with(is_first)
        && name.chars().all(|c| is_first(c) || c.is_ascii_digit())
        && !is_reserved(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_qualified_name_has_a_name_and_at_most_one_prefix() {
        let long = "k".repeat(64);
        for (value, expected) in [
            ("a", &[][..]),
            ("example.com/A.b_c-9", &[]),
            ("", &["name part must be non-empty", "name part must consist"]),
            ("/a", &["prefix part must be non-empty"]),
            ("Example/a", &["prefix part a lowercase RFC 1123 subdomain"]),
            ("a..b/c", &["prefix part a lowercase RFC 1123 subdomain"]),
            ("-a", &["name part must consist"]),
            ("a.", &["name part must consist"]),
            ("a/b/c", &["a valid label key must consist"]),
            (long.as_str(), &["name part must be no more than 63 bytes"]),
        ] {
            let errors = qualified_name_errors(value);
            assert_eq!(errors.len(), expected.len(), "{value}: {errors:?}");
            for (error, expected) in errors.iter().zip(expected) {
                assert!(error.starts_with(expected), "{value}: {error}");
            }
        }
    }

    #[test]
    fn an_identifier_is_no_reserved_word_and_begins_with_a_letter() {
        for (name, expected) in
            [("a", true), ("_a9", true), ("", false), ("1a", false), ("a-b", false), ("in", false)]
        {
            assert_eq!(is_identifier(name), expected, "{name}");
        }
    }
}
