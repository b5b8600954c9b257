//! Rights: the smallest parts of RBAC's rules, for the comparison of granted with held rights.

use std::fmt;

use serde_json::Value;

/// A right to a resource or path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Right {
    /// API group; unused for paths.
    group: String,
    /// Resource with subresource, or a path.
    resource: String,
    /// Name of the only object, if any.
    name: Option<String>,
    /// Whether this is about a path.
    is_path: bool,
    /// Verbs; several only in texts.
    pub(crate) verbs: Vec<String>,
}

/// Iterates over the texts of a list.
fn texts<'a>(rule: &'a Value, key: &str) -> impl Iterator<Item = &'a str> + Clone + use<'a> {
    rule[key].as_array().map_or(&[][..], Vec::as_slice).iter().filter_map(Value::as_str)
}

/// Returns the number of rights that a rule grants: the product of its lists.
pub(crate) fn count(rule: &Value) -> usize {
    let number = |key: &str| texts(rule, key).count();
    let of_resources = [number("apiGroups"), number("resources"), number("resourceNames").max(1)];
    let resources = of_resources.into_iter().fold(1, usize::saturating_mul);
    resources.saturating_add(number("nonResourceURLs")).saturating_mul(number("verbs"))
}

/// Returns the rights that a rule grants.
pub(crate) fn rights(rule: &Value) -> Vec<Right> {
    let names: Vec<Option<&str>> = texts(rule, "resourceNames").map(Some).collect();
    let names = if names.is_empty() { vec![None] } else { names };
    let mut out = Vec::new();
    for group in texts(rule, "apiGroups") {
        for resource in texts(rule, "resources") {
            for verb in texts(rule, "verbs") {
                out.extend(names.iter().map(|name| Right {
                    group: group.to_owned(),
                    resource: resource.to_owned(),
                    name: name.map(str::to_owned),
                    is_path: false,
                    verbs: vec![verb.to_owned()],
                }));
            }
        }
    }
    for path in texts(rule, "nonResourceURLs") {
        out.extend(texts(rule, "verbs").map(|verb| Right {
            group: String::new(),
            resource: path.to_owned(),
            name: None,
            is_path: true,
            verbs: vec![verb.to_owned()],
        }));
    }
    out
}

/// Returns whether a rule grants all of a right.
pub(crate) fn covers(rule: &Value, right: &Right) -> bool {
    let has_verb = |verb: &String| texts(rule, "verbs").any(|own| own == "*" || own == verb);
    if !right.verbs.iter().all(has_verb) {
        return false;
    }
    if right.is_path {
        return texts(rule, "nonResourceURLs").any(|own| {
            let prefix = own.strip_suffix('*').map(|prefix| prefix.trim_end_matches('*'));
            own == right.resource || prefix.is_some_and(|own| right.resource.starts_with(own))
        });
    }
    let mut names = texts(rule, "resourceNames").peekable();
    let has_name = names.peek().is_none() || names.any(|own| right.name.as_deref() == Some(own));
    has_name
        && texts(rule, "apiGroups").any(|own| own == "*" || own == right.group)
        && texts(rule, "resources").any(|own| has_resource(own, &right.resource))
}

/// Returns whether a resource of a rule is or includes another resource.
fn has_resource(own: &str, wanted: &str) -> bool {
    if own == "*" || own == wanted {
        return true;
    }
    let subresource = wanted.split_once('/').map(|(_, subresource)| subresource);
    subresource.is_some() && own.strip_prefix("*/") == subresource
}

impl Right {
    /// Returns whether another right is to the same resource and name.
    pub(crate) fn joins(&self, other: &Self) -> bool {
        !self.is_path
            && !other.is_path
            && self.group == other.group
            && self.resource == other.resource
            && self.name == other.name
    }
}

impl fmt::Display for Right {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_path {
            write!(f, "{{NonResourceURLs:[{:?}]", self.resource)?;
        } else {
            write!(f, "{{APIGroups:[{:?}], Resources:[{:?}]", self.group, self.resource)?;
        }
        if let Some(name) = &self.name {
            write!(f, ", ResourceNames:[{name:?}]")?;
        }
        let verbs: Vec<String> = self.verbs.iter().map(|verb| format!("{verb:?}")).collect();
        write!(f, ", Verbs:[{}]}}", verbs.join(" "))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// Returns whether a rule covers every right of another rule.
    fn all(own: Value, granted: Value) -> bool {
        rights(&granted).iter().all(|right| covers(&own, right))
    }

    #[test]
    fn a_rule_covers_rights_to_some_names_but_names_do_not_cover_all() {
        let some = json!({"apiGroups": [""], "resources": ["pods"], "verbs": ["get"], "resourceNames": ["a"]});
        let every = json!({"apiGroups": [""], "resources": ["pods"], "verbs": ["get", "list"]});
        assert!(all(every.clone(), some.clone()));
        assert!(!all(some, every));
    }

    #[test]
    fn a_star_covers_subresources_and_a_resource_does_not() {
        let scale =
            json!({"apiGroups": ["apps"], "resources": ["deployments/scale"], "verbs": ["get"]});
        let rule =
            |resource: &str| json!({"apiGroups": ["*"], "resources": [resource], "verbs": ["*"]});
        assert!(all(rule("*"), scale.clone()));
        assert!(all(rule("*/scale"), scale.clone()));
        assert!(!all(rule("deployments"), scale.clone()));
        // A rule about a single resource never covers all of them.
        assert!(!all(scale, rule("*")));
    }

    #[test]
    fn paths_are_covered_by_their_prefix_only() {
        let path = |path: &str| json!({"nonResourceURLs": [path], "verbs": ["get"]});
        assert!(all(path("/logs/*"), path("/logs/a")));
        assert!(!all(path("/logs/*"), path("/metrics")));
        let resources = json!({"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]});
        assert!(!all(resources, path("/logs/a")));
    }
}
