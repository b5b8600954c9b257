//! Evaluation of a rule, subject or selector.

use serde_json::Value;

use crate::auth::{Attributes, User};

/// Iterates over the texts of a list.
fn texts<'a>(value: &'a Value, key: &str) -> impl Iterator<Item = &'a str> + use<'a> {
    value[key].as_array().into_iter().flatten().filter_map(Value::as_str)
}

/// Whether the rule allows a request.
pub(super) fn allows(rule: &Value, wanted: &Attributes) -> bool {
    if !texts(rule, "verbs").any(|verb| verb == "*" || verb == wanted.verb) {
        return false;
    }
    // A request for a path: rules about resources do not apply.
    if wanted.resource.is_empty() {
        return texts(rule, "nonResourceURLs").any(|url| covers(url, &wanted.path));
    }
    texts(rule, "apiGroups").any(|group| group == "*" || group == wanted.group)
        && texts(rule, "resources").any(|resource| names(resource, wanted))
        && allows_name(rule, &wanted.name)
}

/// Whether a URL of a rule, which may end with `*`, covers a path.
fn covers(url: &str, path: &str) -> bool {
    match url.strip_suffix('*') {
        Some(prefix) => path.starts_with(prefix),
        None => url == path,
    }
}

/// Whether a resource of a rule, such as `pods/log` or `*/scale`, is the requested resource.
fn names(resource: &str, wanted: &Attributes) -> bool {
    if resource == "*" {
        return true;
    }
    // `pods/log` covers the subresource and not the object.
    if wanted.subresource.is_empty() {
        return resource == wanted.resource;
    }
    match resource.split_once('/') {
        Some(("*", subresource)) => subresource == wanted.subresource,
        Some((name, subresource)) => name == wanted.resource && subresource == wanted.subresource,
        None => false,
    }
}

/// Whether a rule allows a name; a rule without names allows all.
fn allows_name(rule: &Value, name: &str) -> bool {
    let mut names = texts(rule, "resourceNames").peekable();
    // A rule with names does not cover requests without a name, such as lists.
    names.peek().is_none() || names.any(|allowed| allowed == name)
}

/// Whether the subject of a binding is this user or one of its groups.
pub(super) fn is_about(subject: &Value, user: &User, namespace: &str) -> bool {
    let name = subject["name"].as_str().unwrap_or_default();
    match subject["kind"].as_str() {
        Some("User") => user.name == name,
        Some("Group") => user.groups.iter().any(|group| group == name),
        Some("ServiceAccount") => {
            // A service account without a namespace is in the binding's namespace.
            let own = subject["namespace"].as_str().filter(|own| !own.is_empty());
            let namespace = own.unwrap_or(namespace);
            let account = user.name.strip_prefix("system:serviceaccount:");
            !namespace.is_empty()
                && account.and_then(|a| a.split_once(':')) == Some((namespace, name))
        }
        _ => false,
    }
}

/// Whether a label selector selects an object with this metadata.
pub(super) fn selects(selector: &Value, metadata: &Value) -> bool {
    let labels = &metadata["labels"];
    let mut plain = selector["matchLabels"].as_object().into_iter().flatten();
    let mut others = selector["matchExpressions"].as_array().into_iter().flatten();
    plain.all(|(key, value)| labels.get(key) == Some(value))
        && others.all(|expression| {
            let held = expression["key"].as_str().and_then(|key| labels.get(key));
            let listed = held
                .and_then(Value::as_str)
                .is_some_and(|held| texts(expression, "values").any(|value| value == held));
            match expression["operator"].as_str() {
                Some("In") => listed,
                Some("NotIn") => !listed,
                Some("Exists") => held.is_some(),
                Some("DoesNotExist") => held.is_none(),
                _ => false,
            }
        })
}
