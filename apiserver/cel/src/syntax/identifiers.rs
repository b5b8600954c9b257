//! Reserved words, and Kubernetes' escapes for names of properties that are no CEL identifiers.

/// Words that CEL reserves.
const RESERVED: [&str; 21] = [
    "as",
    "break",
    "const",
    "continue",
    "else",
    "false",
    "for",
    "function",
    "if",
    "import",
    "in",
    "let",
    "loop",
    "package",
    "namespace",
    "null",
    "return",
    "true",
    "var",
    "void",
    "while",
];

/// Escapes of character sequences.
const ESCAPES: [(&str, &str); 4] =
    [("__", "underscores"), (".", "dot"), ("-", "dash"), ("/", "slash")];

/// Whether CEL reserves the word, so that it names no variable or function.
pub fn is_reserved(name: &str) -> bool {
    RESERVED.contains(&name)
}

/// The CEL identifier of a property: `a.b` is `a__dot__b`. `None` if the name has no such form.
pub fn escape(name: &str) -> Option<String> {
    if name.is_empty() || name.starts_with(|c: char| c.is_ascii_digit()) {
        return None;
    }
    if is_reserved(name) {
        return Some(format!("__{name}__"));
    }
    let mut escaped = String::with_capacity(name.len());
    let mut rest = name;
    while let Some(c) = rest.chars().next() {
        let found = ESCAPES.iter().find_map(|(text, word)| Some((rest.strip_prefix(text)?, word)));
        if let Some((after, word)) = found {
            escaped.push_str(&format!("__{word}__"));
            rest = after;
        } else if c.is_ascii_alphanumeric() || c == '_' {
            escaped.push(c);
            rest = rest.get(1..).unwrap_or_default();
        } else {
            return None;
        }
    }
    Some(escaped)
}

/// The property of a CEL identifier: the reverse of [`escape`]. `None` if the identifier holds an
/// escape that does not exist.
pub fn unescape(identifier: &str) -> Option<String> {
    let mut name = String::with_capacity(identifier.len());
    let mut rest = identifier;
    while let Some(c) = rest.chars().next() {
        let Some((word, after)) = leading_escape(rest) else {
            name.push(c);
            rest = rest.get(c.len_utf8()..).unwrap_or_default();
            continue;
        };
        match ESCAPES.iter().find(|(_, w)| *w == word) {
            Some((text, _)) => name.push_str(text),
            // A keyword is escaped only as the whole name.
            None if is_reserved(word) && word.len() + 4 == identifier.len() => name.push_str(word),
            None => return None,
        }
        rest = after;
    }
    Some(name)
}

/// The word of an escape `__word__` at the start, and the text behind it.
fn leading_escape(text: &str) -> Option<(&str, &str)> {
    let (word, _) = text.strip_prefix("__")?.split_once('_')?;
    let after = text.get(2 + word.len()..)?.strip_prefix("__")?;
    (!word.is_empty()).then_some((word, after))
}

#[cfg(test)]
mod tests {
    use super::{escape, unescape};

    #[test]
    fn escapes_are_those_of_kubernetes() {
        for (name, identifier) in [
            ("a.b-c/d", "a__dot__b__dash__c__slash__d"),
            ("a__b", "a__underscores__b"),
            ("namespace", "__namespace__"),
            ("_.", "___dot__"),
            ("plain_1", "plain_1"),
        ] {
            assert_eq!(escape(name).as_deref(), Some(identifier));
            assert_eq!(unescape(identifier).as_deref(), Some(name));
        }
        for name in ["", "1a", "a b", "\u{e9}"] {
            assert_eq!(escape(name), None, "{name}");
        }
        assert_eq!(unescape("a__b").as_deref(), Some("a__b"));
        assert_eq!(unescape("a__nope__b"), None);
        assert_eq!(unescape("a__in__"), None);
    }
}
