//! Label selectors: built, printed, matched. Parsing belongs to the API server.

use std::collections::BTreeMap;
use std::fmt;

/// A condition on a label.
///
/// Keys and values are not checked here: the API server refuses a selector that cannot be parsed.
///
/// ```
/// # extern crate windlass_core as windlass;
/// use windlass::resource::Requirement;
///
/// let either = Requirement::In("tier".into(), vec!["web".into(), "api".into()]);
/// assert_eq!(either.to_string(), "tier in (web,api)");
/// ```
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
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

/// A conjunction of requirements on labels; the empty conjunction matches everything.
///
/// `Display` gives the text for `List::labels` and `Watch::labels`.
///
/// ```
/// # extern crate windlass_core as windlass;
/// use std::collections::BTreeMap;
/// use windlass::resource::{Requirement, Selector};
///
/// let selector =
///     Selector::everything().equals("app", "shop").and(Requirement::Absent("canary".into()));
/// assert_eq!(selector.to_string(), "app=shop,!canary");
///
/// let mut labels = BTreeMap::from([("app".to_owned(), "shop".to_owned())]);
/// assert!(selector.matches(&labels));
/// labels.insert("canary".into(), "yes".into());
/// assert!(!selector.matches(&labels));
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Selector {
    /// All of them must hold; none matches everything.
    requirements: Vec<Requirement>,
}

impl Selector {
    /// The selector that matches everything.
    ///
    /// The text is empty, which means no selector as a parameter of a request.
    pub fn everything() -> Self {
        Self::default()
    }

    /// Adds a requirement.
    ///
    /// Requirements are joined by "and"; there is no "or" but [`Requirement::In`].
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
    ///
    /// The result is that of the API server, also for objects without the label.
    pub fn matches(&self, labels: &BTreeMap<String, String>) -> bool {
        self.matches_with(&|key| labels.get(key).map(String::as_str))
    }

    /// Returns a label, key and value, that every matching object has, if a requirement says so.
    #[doc(hidden)]
    pub fn required_label(&self) -> Option<(&str, &str)> {
        self.requirements.iter().find_map(|requirement| match requirement {
            Requirement::Equals(key, value) => Some((key.as_str(), value.as_str())),
            _ => None,
        })
    }

    /// Whether the labels that `get` returns satisfy every requirement.
    #[doc(hidden)]
    pub fn matches_with<'a>(&self, get: &dyn Fn(&str) -> Option<&'a str>) -> bool {
        self.requirements.iter().all(|requirement| requirement.matches(get))
    }
}

impl Requirement {
    /// Whether the labels that `get` returns satisfy this requirement.
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

/// Whether a list of values has `value`.
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
