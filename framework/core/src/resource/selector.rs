//! Label selectors: built, printed, matched. Parsing belongs to the API server.

use std::collections::BTreeMap;
use std::fmt;

/// One condition on a label.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Requirement {
    /// `key=value`.
    Equals(String, String),
    /// `key!=value`; objects without the key match too.
    NotEquals(String, String),
    /// `key in (a,b)`.
    In(String, Vec<String>),
    /// `key notin (a,b)`; objects without the key match too.
    NotIn(String, Vec<String>),
    /// `key`: the label exists.
    Exists(String),
    /// `!key`: the label does not exist.
    Absent(String),
}

/// A conjunction of requirements on labels; the empty one matches everything.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Selector {
    requirements: Vec<Requirement>,
}

impl Selector {
    /// The selector that matches everything.
    pub fn everything() -> Self {
        Self::default()
    }

    /// Adds a requirement.
    #[must_use]
    pub fn and(mut self, requirement: Requirement) -> Self {
        self.requirements.push(requirement);
        self
    }

    /// Adds `key=value`.
    #[must_use]
    pub fn equals(self, key: impl Into<String>, value: impl Into<String>) -> Self {
        self.and(Requirement::Equals(key.into(), value.into()))
    }

    /// Whether the selector has no requirement, and so matches everything.
    pub fn is_empty(&self) -> bool {
        self.requirements.is_empty()
    }

    /// Whether `labels` satisfy every requirement.
    pub fn matches(&self, labels: &BTreeMap<String, String>) -> bool {
        self.matches_with(&|key| labels.get(key).map(String::as_str))
    }

    /// Whether the labels that `get` returns satisfy every requirement.
    #[doc(hidden)]
    pub fn matches_with<'a>(&self, get: &dyn Fn(&str) -> Option<&'a str>) -> bool {
        self.requirements.iter().all(|requirement| requirement.matches(get))
    }
}

impl Requirement {
    fn matches<'a>(&self, get: &dyn Fn(&str) -> Option<&'a str>) -> bool {
        match self {
            Self::Equals(key, value) => get(key) == Some(value),
            Self::NotEquals(key, value) => get(key) != Some(value),
            Self::In(key, values) => get(key).is_some_and(|value| contains(values, value)),
            Self::NotIn(key, values) => !get(key).is_some_and(|value| contains(values, value)),
            Self::Exists(key) => get(key).is_some(),
            Self::Absent(key) => get(key).is_none(),
        }
    }
}

fn contains(values: &[String], value: &str) -> bool {
    values.iter().any(|known| known == value)
}

impl fmt::Display for Requirement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Equals(key, value) => write!(f, "{key}={value}"),
            Self::NotEquals(key, value) => write!(f, "{key}!={value}"),
            Self::In(key, values) => write!(f, "{key} in ({})", values.join(",")),
            Self::NotIn(key, values) => write!(f, "{key} notin ({})", values.join(",")),
            Self::Exists(key) => f.write_str(key),
            Self::Absent(key) => write!(f, "!{key}"),
        }
    }
}

impl fmt::Display for Selector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, requirement) in self.requirements.iter().enumerate() {
            if i > 0 {
                f.write_str(",")?;
            }
            write!(f, "{requirement}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_object_without_the_label_matches_not_equals_and_not_in() {
        let labels = BTreeMap::new();
        let selector = Selector::default()
            .and(Requirement::NotEquals("a".into(), "1".into()))
            .and(Requirement::NotIn("b".into(), vec!["1".into()]));
        assert!(selector.matches(&labels));
    }

    #[test]
    fn a_selector_prints_as_kubectl_takes_it() {
        let selector = Selector::default()
            .equals("app", "web")
            .and(Requirement::In("tier".into(), vec!["a".into(), "b".into()]));
        assert_eq!(selector.to_string(), "app=web,tier in (a,b)");
    }
}
