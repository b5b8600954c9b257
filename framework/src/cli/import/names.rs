//! Identifiers of Rust for names of JSON.

use std::collections::BTreeSet;

/// Keywords of Rust 2024, reserved words included.
const KEYWORDS: [&str; 52] = [
    "abstract", "as", "async", "await", "become", "box", "break", "const", "continue", "crate",
    "do", "dyn", "else", "enum", "extern", "false", "final", "fn", "for", "gen", "if", "impl",
    "in", "let", "loop", "macro", "match", "mod", "move", "mut", "override", "priv", "pub", "ref",
    "return", "self", "static", "struct", "super", "trait", "true", "try", "type", "typeof",
    "unsafe", "unsized", "use", "virtual", "where", "while", "yield", "Self",
];
/// Keywords that cannot be written as raw identifiers.
const NEVER_RAW: [&str; 4] = ["crate", "self", "super", "Self"];
/// Names of types that generated code uses.
const USED: [&str; 28] = [
    "ApiTime",
    "BTreeMap",
    "Box",
    "Clone",
    "Copy",
    "CustomResource",
    "Debug",
    "Default",
    "Deserialize",
    "Eq",
    "Err",
    "From",
    "IntOrString",
    "Into",
    "Map",
    "None",
    "ObjectMeta",
    "Ok",
    "Option",
    "PartialEq",
    "Result",
    "Schema",
    "Self",
    "Serialize",
    "Some",
    "String",
    "Value",
    "Vec",
];

/// A field of a printed type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct FieldName {
    /// Name in JSON.
    pub(super) json: String,
    /// Name in Rust, with `r#` if it is a keyword.
    pub(super) identifier: String,
    /// Type in Rust.
    pub(super) rust: String,
}

/// The identifiers of a scope, each once.
#[derive(Clone, Debug, Default)]
pub(super) struct UniqueIdentifiers(BTreeSet<String>);

impl UniqueIdentifiers {
    /// Returns a field's identifier, such as `host_name` for `hostName`; possibly a raw identifier.
    pub(super) fn field(&mut self, json: &str) -> String {
        let plain = match snake(json) {
            name if name.is_empty() => "field".to_owned(),
            name if name.starts_with(|c: char| c.is_ascii_digit()) => format!("_{name}"),
            name if NEVER_RAW.contains(&name.as_str()) => format!("{name}_"),
            name => name,
        };
        let name = self.unique(&plain, "_");
        if KEYWORDS.contains(&name.as_str()) { format!("r#{name}") } else { name }
    }

    /// Returns the name of a type, such as `WebsiteSpec`.
    pub(super) fn kind(&mut self, wanted: &str) -> String {
        let wanted = match wanted {
            "" => "Type".to_owned(),
            name if USED.contains(&name) => format!("{name}Object"),
            name => name.to_owned(),
        };
        self.unique(&wanted, "")
    }

    /// Returns the name of an enum's variant for a text.
    pub(super) fn variant(&mut self, text: &str) -> String {
        let plain = match pascal(text) {
            name if text.is_empty() || name.is_empty() => {
                if text.is_empty() { "Empty" } else { "Other" }.to_owned()
            }
            name if name.starts_with(|c: char| c.is_ascii_digit()) => format!("V{name}"),
            name if name == "Self" => "SelfValue".to_owned(),
            name => name,
        };
        self.unique(&plain, "")
    }

    /// Adds a name, with a number appended if it is taken.
    fn unique(&mut self, wanted: &str, separator: &str) -> String {
        let mut name = wanted.to_owned();
        let mut number = 2_usize;
        while !self.0.insert(name.clone()) {
            name = format!("{}{separator}{number}", wanted.trim_end_matches('_'));
            number += 1;
        }
        name
    }
}

/// Returns a name in `snake_case`: `hostName` and `host-name` are `host_name`, `clusterIP` is
/// `cluster_ip`, `podIPs` is `pod_ips`.
pub(super) fn snake(name: &str) -> String {
    let letters: Vec<char> = name.chars().collect();
    let mut snake = String::new();
    for (at, letter) in letters.iter().enumerate() {
        if !letter.is_ascii_alphanumeric() {
            if !snake.ends_with('_') && !snake.is_empty() {
                snake.push('_');
            }
            continue;
        }
        let before = at.checked_sub(1).map(|before| letters[before]);
        let is_lower = |at: usize| letters.get(at).is_some_and(char::is_ascii_lowercase);
        // The plural of an abbreviation is a single word, as in `podIPs` and `dnsIPsByZone`.
        let is_plural = letters.get(at + 1) == Some(&'s') && !is_lower(at + 2);
        let begins_word = letter.is_ascii_uppercase()
            && before.is_some_and(|before| {
                let next_is_lower = is_lower(at + 1) && !is_plural;
                before.is_ascii_lowercase()
                    || before.is_ascii_digit()
                    || (before.is_ascii_uppercase() && next_is_lower)
            });
        if begins_word && !snake.ends_with('_') {
            snake.push('_');
        }
        snake.push(letter.to_ascii_lowercase());
    }
    snake.trim_end_matches('_').to_owned()
}

/// Returns a name in `PascalCase`.
pub(super) fn pascal(name: &str) -> String {
    let snake = snake(name);
    let words = snake.split('_').map(|word| {
        let mut letters = word.chars();
        let first = letters.next().map(|first| first.to_ascii_uppercase());
        first.into_iter().chain(letters).collect::<String>()
    });
    words.collect()
}

/// Returns the JSON name that serde's `rename_all = "camelCase"` gives an identifier.
pub(super) fn camel(identifier: &str) -> String {
    let identifier = identifier.strip_prefix("r#").unwrap_or(identifier);
    let mut camel = String::new();
    let mut is_upper = false;
    for letter in identifier.chars() {
        if letter == '_' {
            is_upper = true;
        } else if is_upper && !camel.is_empty() {
            camel.push(letter.to_ascii_uppercase());
            is_upper = false;
        } else {
            camel.push(letter.to_ascii_lowercase());
            is_upper = false;
        }
    }
    camel
}

/// Returns the singular of an English noun at the end of a type's name: elements of a list have
/// that name.
pub(super) fn singular(name: &str) -> String {
    let lower = name.to_ascii_lowercase();
    let ends = |ends: &[&str]| ends.iter().any(|end| lower.ends_with(end));
    if !ends(&["s"]) || ends(&["ss", "us", "is"]) || name.len() < 4 {
        return name.to_owned();
    }
    if lower.ends_with("ies") {
        return format!("{}y", &name[..name.len() - 3]);
    }
    let letters = if ends(&["sses", "xes", "ches", "shes", "zes"]) { 2 } else { 1 };
    name[..name.len() - letters].to_owned()
}
