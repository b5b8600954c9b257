//! Rules for names, label keys and label values, with the texts of their violations.

/// Rule for names of objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NameRule {
    /// RFC 1123 subdomain.
    Subdomain,
    /// RFC 1123 subdomain by a rule that is declared beside the field: it judges names alone, and
    /// counts bytes.
    Declared,
    /// RFC 1123 label.
    Label,
    /// Any text that fits into a path.
    Path,
    /// An IP address in the usual spelling; judged by the kind.
    Address,
    /// Any text but an empty text.
    Any,
    /// Any text.
    Unchecked,
}

/// Returns the faults of an object's name; empty if valid.
pub(crate) fn check(rule: NameRule, name: &str) -> Vec<String> {
    match rule {
        NameRule::Subdomain => subdomain(name),
        NameRule::Declared => {
            let faults = subdomain(name).into_iter();
            faults.map(|why| why.replace("253 characters", "253 bytes")).collect()
        }
        NameRule::Label => label(name),
        NameRule::Path => path(name),
        NameRule::Any | NameRule::Unchecked | NameRule::Address => Vec::new(),
    }
}

/// Returns the faults of an RFC 1123 subdomain.
pub(crate) fn subdomain(name: &str) -> Vec<String> {
    let mut faults = too_many(name, 253);
    if name.is_empty() || !name.split('.').all(|part| is_label(part, lower)) {
        faults.push("a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')".to_owned());
    }
    faults
}

/// Returns the faults of an RFC 1123 label.
pub(crate) fn label(name: &str) -> Vec<String> {
    let mut faults = too_many(name, 63);
    let is_subdomain = || name.split('.').all(|part| is_label(part, lower));
    if is_label(name, lower) {
        return faults;
    }
    if is_subdomain() {
        faults.push("must not contain dots".to_owned());
    } else {
        faults.push("a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')".to_owned());
    }
    faults
}

/// Returns the faults of a segment of a URL path.
pub(crate) fn path(name: &str) -> Vec<String> {
    if name == "." || name == ".." {
        return vec![format!("may not be '{name}'")];
    }
    let mut faults = Vec::new();
    for bad in ["/", "%"] {
        if name.contains(bad) {
            faults.push(format!("may not contain '{bad}'"));
        }
    }
    faults
}

/// Returns the faults of a label key or annotation key: optional prefix, slash, name.
pub(crate) fn qualified(key: &str) -> Vec<String> {
    let shape = "a valid label key must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]') with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')";
    let mut faults = Vec::new();
    let parts: Vec<&str> = key.split('/').collect();
    let name = match parts.as_slice() {
        [name] => name,
        [prefix, name] => {
            if prefix.is_empty() {
                faults.push("prefix part must be non-empty".to_owned());
            } else {
                faults
                    .extend(subdomain(prefix).into_iter().map(|why| format!("prefix part {why}")));
            }
            name
        }
        _ => return vec![shape.to_owned()],
    };
    if name.is_empty() {
        faults.push("name part must be non-empty".to_owned());
    } else {
        faults.extend(too_long(name, 63).into_iter().map(|why| format!("name part {why}")));
    }
    if !is_label(name, wide) {
        faults.push("name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')".to_owned());
    }
    faults
}

/// Returns the faults of a label's value.
pub(crate) fn label_value(value: &str) -> Vec<String> {
    let mut faults = too_long(value, 63);
    if !value.is_empty() && !is_label(value, wide) {
        faults.push("a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')".to_owned());
    }
    faults
}

/// Returns a fault if the text is too long, counted in bytes.
fn too_long(text: &str, limit: usize) -> Vec<String> {
    if text.len() > limit {
        vec![format!("must be no more than {limit} bytes")]
    } else {
        Vec::new()
    }
}

/// Returns the same fault in the words used for names, which count characters.
fn too_many(text: &str, limit: usize) -> Vec<String> {
    let faults = too_long(text, limit).into_iter();
    faults.map(|why| why.replace("bytes", "characters")).collect()
}

/// Whether a character may begin a lower-case label.
fn lower(c: char) -> bool {
    c.is_ascii_lowercase() || c.is_ascii_digit()
}

/// Whether a character may begin a label key or value.
fn wide(c: char) -> bool {
    c.is_ascii_alphanumeric()
}

/// Whether the text is alphanumeric at both ends, with separators allowed between.
fn is_label(text: &str, alphanumeric: fn(char) -> bool) -> bool {
    // The rule that admits upper case also admits underscores and dots inside.
    let wide_inside = alphanumeric('A');
    let inside = |c: char| alphanumeric(c) || c == '-' || (wide_inside && (c == '_' || c == '.'));
    !text.is_empty()
        && text.starts_with(alphanumeric)
        && text.ends_with(alphanumeric)
        && text.chars().all(inside)
}

/// Returns the rank of a version: stable before beta before alpha, then the higher number; other
/// names come last.
pub(crate) fn version_rank(version: &str) -> (u8, u64, u64) {
    let parse = || -> Option<(u8, u64, u64)> {
        let rest = version.strip_prefix('v')?;
        for (kind, word) in [(2, "beta"), (1, "alpha")] {
            if let Some((major, minor)) = rest.split_once(word) {
                return Some((kind, major.parse().ok()?, minor.parse().ok()?));
            }
        }
        Some((3, rest.parse().ok()?, 0))
    };
    parse().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_follow_their_rule() {
        for (rule, good, bad) in [
            (NameRule::Subdomain, "a.b-c.9", "a..b"),
            (NameRule::Label, "0-a", "a.b"),
            (NameRule::Path, "system:node:a", "a/b"),
        ] {
            assert_eq!(check(rule, good), Vec::<String>::new(), "{good}");
            assert_eq!(check(rule, bad).len(), 1, "{bad}");
        }
        assert_eq!(check(NameRule::Label, &"a".repeat(64)), ["must be no more than 63 characters"]);
        let long = "a".repeat(254);
        assert_eq!(check(NameRule::Declared, &long), ["must be no more than 253 bytes"]);
        assert_eq!(check(NameRule::Path, ".."), ["may not be '..'"]);
    }

    #[test]
    fn label_keys_may_have_a_prefix_and_values_may_be_empty() {
        assert!(qualified("example.com/My_key").is_empty());
        assert_eq!(qualified("/a"), ["prefix part must be non-empty"]);
        assert!(!qualified("a b").is_empty());
        assert!(label_value("").is_empty());
        assert!(!label_value("-a").is_empty());
    }
}
