//! Order of API versions.

use std::cmp::Ordering;

/// Compares by Kubernetes' version priority: `v10` before `v2` before `v1beta1` before `v1alpha2`,
/// and other names alphabetically after them.
pub(super) fn by_priority(a: &str, b: &str) -> Ordering {
    rank(b).cmp(&rank(a)).then_with(|| a.cmp(b))
}

/// Stability, major and minor number; `None`, the lowest, for other names.
fn rank(version: &str) -> Option<(u8, u64, u64)> {
    let rest = version.strip_prefix('v')?;
    for (stability, word) in [(1, "beta"), (0, "alpha")] {
        if let Some((major, minor)) = rest.split_once(word) {
            return Some((stability, number(major)?, number(minor)?));
        }
    }
    Some((2, number(rest)?, 0))
}

/// Parses digits only: `parse` alone would accept a sign.
fn number(text: &str) -> Option<u64> {
    text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok())?
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_sort_as_kubernetes_ranks_them() {
        let mut versions = [
            "foo10",
            "v1",
            "v11alpha2",
            "foo1",
            "v3beta1",
            "v12alpha1",
            "v10",
            "v2",
            "v10beta3",
            "v11beta2",
            "v+5",
            "v1beta",
        ];
        versions.sort_by(|a, b| by_priority(a, b));
        let order = [
            "v10",
            "v2",
            "v1",
            "v11beta2",
            "v10beta3",
            "v3beta1",
            "v12alpha1",
            "v11alpha2",
            "foo1",
            "foo10",
            "v+5",
            "v1beta",
        ];
        assert_eq!(versions, order);
    }
}
