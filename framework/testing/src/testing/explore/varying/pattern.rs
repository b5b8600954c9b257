//! Patterns of names: the parts that two runs agree on, and the kinds of those that differ.

use std::fmt;

/// Shortest part of a name that may vary.
const SHORTEST: usize = 4;
/// Longest part of a name that may vary, where its length varies.
const LONGEST: usize = 64;

/// A pattern of names.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct NamePattern {
    parts: Vec<NamePart>,
}

/// A part of a name: letters and digits, or what is between them.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum NamePart {
    Fixed(String),
    /// Characters of this kind, in these lengths.
    Varying(Letters, usize, usize),
}

/// Letters of a part, fewer first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Letters {
    Digits,
    Hexadecimal,
    Any,
}

impl Letters {
    fn of(part: &str) -> Self {
        let is_hexadecimal = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
        if part.bytes().all(|byte| byte.is_ascii_digit()) {
            Self::Digits
        } else if part.bytes().all(is_hexadecimal) {
            Self::Hexadecimal
        } else {
            Self::Any
        }
    }
}

impl NamePattern {
    /// Returns the pattern of two names; `None` when they have too little in common.
    pub(super) fn of(one: &str, other: &str) -> Option<Self> {
        let (left, right) = (split(one), split(other));
        if left.len() != right.len() {
            return None;
        }
        let parts: Option<Vec<NamePart>> =
            left.iter().zip(&right).map(|(one, other)| NamePart::of(one, other)).collect();
        let mut parts = parts?;
        // The time of a day varies as well where the date does.
        if parts.iter().any(|part| matches!(part, NamePart::Varying(Letters::Digits, ..))) {
            parts.iter_mut().for_each(NamePart::vary_number);
        }
        Some(Self { parts })
    }

    /// Returns the number of parts that do not vary.
    pub(super) fn fixed(&self) -> usize {
        self.parts.iter().filter(|part| matches!(part, NamePart::Fixed(_))).count()
    }

    /// Whether a name is of this pattern.
    pub(super) fn matches(&self, name: &str) -> bool {
        let parts = split(name);
        parts.len() == self.parts.len()
            && self.parts.iter().zip(parts).all(|(part, text)| part.matches(text))
    }
}

impl NamePart {
    fn of(one: &str, other: &str) -> Option<Self> {
        if one == other {
            return Some(Self::Fixed(one.to_owned()));
        }
        let is_word = |text: &str| text.bytes().all(|byte| byte.is_ascii_alphanumeric());
        let shortest = one.len().min(other.len());
        if shortest < SHORTEST || !is_word(one) || !is_word(other) {
            return None;
        }
        let letters = Letters::of(one).max(Letters::of(other));
        Some(match one.len() == other.len() {
            true => Self::Varying(letters, shortest, shortest),
            false => Self::Varying(letters, SHORTEST, LONGEST),
        })
    }

    /// Makes a long number one that varies.
    fn vary_number(&mut self) {
        if let Self::Fixed(text) = self
            && text.len() >= SHORTEST
            && Letters::of(text) == Letters::Digits
        {
            *self = Self::Varying(Letters::Digits, text.len(), text.len());
        }
    }

    fn matches(&self, text: &str) -> bool {
        match self {
            Self::Fixed(fixed) => fixed == text,
            Self::Varying(letters, shortest, longest) => {
                (*shortest..=*longest).contains(&text.len())
                    && text.bytes().all(|byte| byte.is_ascii_alphanumeric())
                    && Letters::of(text) <= *letters
            }
        }
    }
}

impl fmt::Display for NamePattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.parts.iter().try_for_each(|part| match part {
            NamePart::Fixed(text) => f.write_str(text),
            NamePart::Varying(..) => f.write_str("*"),
        })
    }
}

/// Returns the parts of a name: words, and single signs between them.
fn split(name: &str) -> Vec<&str> {
    let mut parts = Vec::new();
    let mut rest = name;
    while let Some(first) = rest.chars().next() {
        let word = rest.find(|next: char| !next.is_ascii_alphanumeric()).unwrap_or(rest.len());
        let (part, after) = rest.split_at(word.max(if word == 0 { first.len_utf8() } else { 0 }));
        parts.push(part);
        rest = after;
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_two_names_have_in_common_is_their_pattern() {
        let pattern = NamePattern::of("a-3fc2b1-tls", "a-90ab12-tls").expect("they are alike");
        assert_eq!(pattern.to_string(), "a-*-tls");
        assert!(pattern.matches("a-00ff00-tls"));
        for name in ["a-00ff00", "b-00ff00-tls", "a-00ff0-tls", "a-00zz00-tls"] {
            assert!(!pattern.matches(name), "{name}");
        }
    }

    #[test]
    fn a_time_beside_a_date_varies_as_well() {
        let pattern = NamePattern::of("b-20260101-000010", "b-20320101-000010").expect("a pattern");
        assert!(pattern.matches("b-20260101-000021") && !pattern.matches("c-20260101-000021"));
    }

    #[test]
    fn short_names_have_no_pattern() {
        for (one, other) in [("a", "b"), ("web-1", "web-2"), ("a-1", "a-1-2")] {
            assert_eq!(NamePattern::of(one, other), None, "{one} {other}");
        }
    }
}
