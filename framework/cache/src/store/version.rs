//! Comparison of resourceVersions.

use std::cmp::Ordering;

/// Returns the order of two versions of the same kind. Decimal integers compare by value,
/// regardless of length; other texts can only be equal, or unordered (`None`).
pub(crate) fn order(a: &str, b: &str) -> Option<Ordering> {
    if is_number(a) && is_number(b) {
        return Some(a.len().cmp(&b.len()).then_with(|| a.cmp(b)));
    }
    (a == b).then_some(Ordering::Equal)
}

fn is_number(text: &str) -> bool {
    !text.is_empty()
        && text.bytes().all(|byte| byte.is_ascii_digit())
        && (text == "0" || !text.starts_with('0'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_compare_as_integers_of_any_length() {
        assert_eq!(order("9", "10"), Some(Ordering::Less));
        assert_eq!(order("99999999999999999999999", "100"), Some(Ordering::Greater));
        assert_eq!(order("7", "7"), Some(Ordering::Equal));
    }

    #[test]
    fn what_is_no_integer_is_equal_or_unknown() {
        assert_eq!(order("a1", "a1"), Some(Ordering::Equal));
        assert_eq!(order("a1", "a2"), None);
        assert_eq!(order("", "1"), None);
        assert_eq!(order("010", "9"), None);
    }
}
