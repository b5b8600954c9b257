//! Texts that a regular expression matches, or that a rule lists.

use regex_syntax::hir::{Class, Hir, HirKind};
use serde_json::{Map, Value};
use windlass_core::rng::Rng;

/// Longest text that is generated.
const LONGEST: usize = 4096;
/// Most repetitions beyond those that the pattern demands.
const MORE: u64 = 3;

/// Returns the expression of a pattern; `None` for a pattern that cannot be read.
pub(super) fn parsed(pattern: &str) -> Option<Hir> {
    regex_syntax::parse(pattern).ok()
}

/// Returns a text that the expression matches; assertions about neighbours (anchors, word borders)
/// are ignored. `None` for an expression that demands a text of more than 4,096 bytes.
pub(super) fn matching(expression: &Hir, rng: &Rng) -> Option<String> {
    let mut text = String::new();
    write(expression, rng, &mut text).then_some(text)
}

/// Appends a text for an expression; returns whether a text was found.
///
/// The recursion is as deep as the expression, whose depth the parser bounds.
fn write(hir: &Hir, rng: &Rng, text: &mut String) -> bool {
    if text.len() > LONGEST {
        return false;
    }
    match hir.kind() {
        HirKind::Empty | HirKind::Look(_) => true,
        HirKind::Literal(literal) => {
            text.push_str(&String::from_utf8_lossy(&literal.0));
            true
        }
        HirKind::Class(class) => match character(class, rng) {
            Some(character) => {
                text.push(character);
                true
            }
            None => false,
        },
        HirKind::Repetition(repetition) => {
            let least = u64::from(repetition.min);
            let most = repetition.max.map_or(least + MORE, u64::from).min(least + MORE);
            let count = least + rng.below(most - least + 1);
            (0..count).all(|_| write(&repetition.sub, rng, text))
        }
        HirKind::Capture(capture) => write(&capture.sub, rng, text),
        HirKind::Concat(parts) => parts.iter().all(|part| write(part, rng, text)),
        HirKind::Alternation(branches) => {
            one(branches, rng).is_some_and(|branch| write(branch, rng, text))
        }
    }
}

/// Draws a character of a class, preferably a printable character of ASCII.
fn character(class: &Class, rng: &Rng) -> Option<char> {
    let ranges: Vec<(char, char)> = match class {
        Class::Unicode(class) => class.iter().map(|it| (it.start(), it.end())).collect(),
        Class::Bytes(class) => {
            class.iter().map(|it| (it.start().into(), it.end().into())).collect()
        }
    };
    let printable: Vec<(char, char)> = ranges
        .iter()
        .map(|(start, end)| ((*start).max('!'), (*end).min('~')))
        .filter(|(start, end)| start <= end)
        .collect();
    let (start, end) = *one(if printable.is_empty() { &ranges } else { &printable }, rng)?;
    // A range that spans the surrogates has fewer characters than numbers.
    let code =
        u64::from(u32::from(start)) + rng.below(u64::from(u32::from(end) - u32::from(start)) + 1);
    Some(u32::try_from(code).ok().and_then(char::from_u32).unwrap_or(start))
}

/// Draws an element of a slice; `None` of an empty slice.
fn one<'a, T>(all: &'a [T], rng: &Rng) -> Option<&'a T> {
    let count = u64::try_from(all.len()).ok().filter(|count| *count > 0)?;
    all.get(usize::try_from(rng.below(count)).ok()?)
}

/// Returns the keys that rules of a derived type allow in a map: `self.all(key, key in ['a'])`.
pub(super) fn key_names(nodes: &[&Map<String, Value>]) -> Vec<String> {
    let rules = nodes.iter().filter_map(|node| node.get("x-kubernetes-validations")?.as_array());
    let texts = rules.flatten().filter_map(|rule| rule["rule"].as_str());
    let lists = texts.filter_map(|rule| rule.strip_prefix("self.all(key, key in ["));
    lists.flat_map(quoted).collect()
}

/// Returns the texts of a list in CEL up to its end.
fn quoted(list: &str) -> Vec<String> {
    let mut texts = Vec::new();
    let mut text: Option<String> = None;
    let mut letters = list.chars();
    while let Some(letter) = letters.next() {
        match (letter, &mut text) {
            ('\'', Some(_)) => texts.extend(text.take()),
            ('\'', None) => text = Some(String::new()),
            (']', None) => break,
            ('\\', Some(text)) => match letters.next() {
                Some('n') => text.push('\n'),
                other => text.extend(other),
            },
            (letter, Some(text)) => text.push(letter),
            (_, None) => {}
        }
    }
    texts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_keys_are_read_from_the_rule_that_checks_them() {
        let rule = r"self.all(key, key in ['East', 'it\'s [a]', 'a\\b\nc'])";
        let node = serde_json::json!({ "x-kubernetes-validations": [{ "rule": rule }] });
        let names = key_names(&[node.as_object().unwrap()]);
        assert_eq!(names, ["East", "it's [a]", "a\\b\nc"]);
        assert!(quoted("key > 1").is_empty() && quoted("'a").is_empty());
    }

    #[test]
    fn texts_match_their_pattern() {
        let patterns = [
            "^[A-Z]{3}-[0-9]{4}$",
            "^(a|b+)c?$",
            r"^\d+(\.\d+)*$",
            "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$",
            "^é{2}[α-ω]$",
            "^$",
        ];
        let rng = Rng::seeded(1);
        for pattern in patterns {
            let regex = windlass_cel::library::regex::Regex::compile(pattern).expect("a pattern");
            let expression = parsed(pattern).expect("a pattern");
            for _ in 0..50 {
                let text = matching(&expression, &rng).expect("a text");
                assert!(regex.is_match(&text), "{pattern}: {text:?}");
            }
        }
    }

    #[test]
    fn a_pattern_of_endless_texts_gives_none() {
        let rng = Rng::seeded(1);
        let endless = parsed("^((a{50}){50}){50}$").expect("a pattern");
        assert_eq!(matching(&endless, &rng), None);
        assert_eq!(parsed("["), None);
    }
}
