//! Order of resource versions.

use std::cmp::Ordering;

/// The order of two versions; `None` if either is no number.
pub(in crate::api) fn compare(version: &str, other: &str) -> Option<Ordering> {
    let are_numbers = is_number(version) && is_number(other);
    // Without leading zeros the longer number is the greater: no conversion can overflow.
    are_numbers.then(|| (version.len(), version).cmp(&(other.len(), other)))
}

/// Whether the version has digits only.
fn is_number(version: &str) -> bool {
    !version.is_empty() && version.bytes().all(|byte| byte.is_ascii_digit())
}
