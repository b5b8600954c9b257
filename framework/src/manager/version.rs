//! Order of two versions of a program, by the rules of `SemVer`.

use std::cmp::Ordering;

/// Compares `a` with `b`; `None` when one of them is no version.
pub(super) fn compare(a: &str, b: &str) -> Option<Ordering> {
    let (a, b) = (Version::parse(a)?, Version::parse(b)?);
    let pre = match (a.pre.is_empty(), b.pre.is_empty()) {
        (true, true) => Ordering::Equal,
        // A version comes after its own pre-releases.
        (true, false) => Ordering::Greater,
        (false, true) => Ordering::Less,
        (false, false) => a.pre.cmp(&b.pre),
    };
    Some(a.numbers.cmp(&b.numbers).then(pre))
}

/// A parsed version.
struct Version<'a> {
    numbers: [u64; 3],
    /// The parts after the hyphen; numbers come before texts.
    pre: Vec<Part<'a>>,
}

/// An identifier of a pre-release.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
enum Part<'a> {
    Number(u64),
    Text(&'a str),
}

impl<'a> Version<'a> {
    fn parse(text: &'a str) -> Option<Self> {
        // Build metadata does not count in the order.
        let text = text.split('+').next().unwrap_or_default();
        let (core, pre) = text.split_once('-').unwrap_or((text, ""));
        let mut parts = core.split('.');
        let mut numbers = [0; 3];
        for number in &mut numbers {
            *number = parts.next()?.parse().ok()?;
        }
        let part = |part: &'a str| part.parse().map_or(Part::Text(part), Part::Number);
        let pre = pre.split('.').filter(|part| !part.is_empty()).map(part).collect();
        parts.next().is_none().then_some(Self { numbers, pre })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_compare_by_number_and_a_release_comes_after_its_candidates() {
        let ordered = ["0.9.9", "1.0.0-alpha", "1.0.0-rc.2", "1.0.0-rc.10", "1.0.0", "1.10.0"];
        for pair in ordered.windows(2) {
            assert_eq!(compare(pair[0], pair[1]), Some(Ordering::Less), "{pair:?}");
        }
        assert_eq!(compare("1.2.3+linux", "1.2.3"), Some(Ordering::Equal));
        assert_eq!(compare("newest", "1.2.3"), None);
        assert_eq!(compare("1.2.3.4", "1.2.3"), None);
    }
}
