//! Names of variables in policies.

use crate::syntax::identifiers::is_reserved;

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
    fn an_identifier_is_no_reserved_word_and_begins_with_a_letter() {
        for (name, expected) in
            [("a", true), ("_a9", true), ("", false), ("1a", false), ("a-b", false), ("in", false)]
        {
            assert_eq!(is_identifier(name), expected, "{name}");
        }
    }
}
