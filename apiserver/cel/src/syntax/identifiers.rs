//! Names of properties as identifiers: Kubernetes' escapes, such as `min__dash__size` for `min-size`.

/// Reserved words of the language that no identifier may be; a property of such a name is written `__name__`.
const RESERVED: [&str; 21] = [
    "true",
    "false",
    "null",
    "in",
    "as",
    "break",
    "const",
    "continue",
    "else",
    "for",
    "function",
    "if",
    "import",
    "let",
    "loop",
    "package",
    "namespace",
    "return",
    "var",
    "void",
    "while",
];

/// Whether a word is reserved, so that no variable can have its name.
pub fn is_reserved(word: &str) -> bool {
    RESERVED.contains(&word)
}

/// The identifier by which expressions select a property; `None` for a name that has none, such as `a b`.
pub fn escape(name: &str) -> Option<String> {
    if is_reserved(name) {
        return Some(format!("__{name}__"));
    }
    let mut chars = name.chars().peekable();
    if chars.peek().is_none_or(char::is_ascii_digit) {
        return None;
    }
    let mut escaped = String::with_capacity(name.len());
    while let Some(c) = chars.next() {
        match c {
            '_' if chars.next_if_eq(&'_').is_some() => escaped.push_str("__underscores__"),
            '.' => escaped.push_str("__dot__"),
            '-' => escaped.push_str("__dash__"),
            '/' => escaped.push_str("__slash__"),
            c if c.is_ascii_alphanumeric() || c == '_' => escaped.push(c),
            _ => return None,
        }
    }
    Some(escaped)
}

/// The property that an identifier of [`escape`] stands for; `None` if it holds an escape that is none.
pub fn unescape(identifier: &str) -> Option<String> {
    let mut name = String::with_capacity(identifier.len());
    let mut rest = identifier;
    while let Some(at) = rest.find("__") {
        let (before, behind) = (rest.get(..at)?, rest.get(at + 2..)?);
        // Two underscores begin an escape if text without underscores and two more follow.
        let Some((word, after)) = behind.split_once('_').filter(|(word, _)| !word.is_empty())
        else {
            name.push_str(rest.get(..=at)?);
            rest = rest.get(at + 1..)?;
            continue;
        };
        let Some(after) = after.strip_prefix('_') else {
            name.push_str(rest.get(..=at)?);
            rest = rest.get(at + 1..)?;
            continue;
        };
        name.push_str(before);
        name.push_str(match word {
            "underscores" => "__",
            "dot" => ".",
            "dash" => "-",
            "slash" => "/",
            word if is_reserved(word) && word.len() + 4 == identifier.len() => word,
            _ => return None,
        });
        rest = after;
    }
    name.push_str(rest);
    Some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_properties_are_escaped_as_kubernetes_escapes_them() {
        for (name, identifier) in [
            ("minSize", Some("minSize")),
            ("min-size", Some("min__dash__size")),
            ("a.b/c", Some("a__dot__b__slash__c")),
            ("a__b", Some("a__underscores__b")),
            ("a___b", Some("a__underscores___b")),
            ("namespace", Some("__namespace__")),
            ("_x", Some("_x")),
            ("-x", Some("__dash__x")),
            ("", None),
            ("1a", None),
            ("a b", None),
            ("é", None),
            ("$ref", None),
        ] {
            assert_eq!(escape(name).as_deref(), identifier, "{name}");
            if let Some(identifier) = identifier {
                assert_eq!(unescape(identifier).as_deref(), Some(name), "{identifier}");
            }
        }
    }

    #[test]
    fn an_escape_that_is_none_is_refused() {
        for identifier in ["a__x__b", "__int__", "a__if__"] {
            assert_eq!(unescape(identifier), None, "{identifier}");
        }
    }
}
