//! Descriptions of the columns of built-in kinds.

use std::collections::BTreeMap;
use std::sync::LazyLock;

/// The texts, by kind and column.
static TEXTS: LazyLock<BTreeMap<&'static str, String>> = LazyLock::new(|| {
    let text = include_str!("descriptions.txt");
    let mut lines = text.lines().filter(|line| !line.starts_with('#')).skip_while(|l| l.is_empty());
    let mut found = BTreeMap::new();
    while let (Some(names), Some(text)) = (lines.next(), lines.next()) {
        let text = text.replace("\\n", "\n");
        found.extend(names.split('\t').map(|name| (name, text.clone())));
    }
    found
});

/// Returns the description of a column of a kind; empty if there is none.
pub(super) fn describe(kind: &str, column: &str) -> &'static str {
    let found = TEXTS.get(format!("{kind}/{column}").as_str());
    let found = found.or_else(|| TEXTS.get(format!("*/{column}").as_str()));
    found.map_or("", String::as_str)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_have_descriptions_of_their_own_or_those_of_all_kinds() {
        assert!(describe("Pod", "Name").starts_with("Name must be unique"));
        assert!(describe("ConfigMap", "Data").starts_with("Data contains"));
        assert!(describe("ConfigMap", "Age").contains("UTC.\n\nPopulated"));
        assert_eq!(describe("ConfigMap", "Nope"), "");
    }
}
