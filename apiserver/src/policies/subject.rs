//! A request in the form that policies and bindings match.

use std::cell::OnceCell;
use std::sync::Arc;

use serde_json::{Value, json};

use crate::kinds::Kind;
use crate::kinds::registry::KindTable;
use crate::selectors;

/// A request on a resource.
#[derive(Debug)]
pub(crate) struct PolicyRequest<'a> {
    /// The kind in the version of the request.
    pub(crate) kind: &'a Arc<Kind>,
    /// Subresource; may be empty.
    pub(crate) subresource: &'a str,
    /// `CREATE`, `UPDATE`, `DELETE` or `CONNECT`.
    pub(crate) operation: &'static str,
    /// Name of the object; empty for the deletion of a collection.
    pub(crate) name: &'a str,
    /// Namespace; for a Namespace object, its name.
    pub(crate) namespace: &'a str,
    /// The new object; none for a deletion.
    pub(crate) object: Option<&'a Value>,
    /// The object before the request; none for a creation.
    pub(crate) old: Option<&'a Value>,
    /// The namespace of the object as stored.
    pub(crate) home: Option<&'a Value>,
    /// The kinds that are served now.
    pub(crate) table: &'a KindTable,
    /// Other versions of the same resource, found when a rule first needs them.
    pub(crate) others: OnceCell<Vec<Arc<Kind>>>,
}

impl PolicyRequest<'_> {
    /// Returns the version of the kind in which `matchConstraints` or `matchResources` want the
    /// object; `None` if they are not about the request.
    pub(crate) fn matched(&self, criteria: &Value) -> Option<Arc<Kind>> {
        if !self.selected(criteria) {
            return None;
        }
        let exact = criteria["matchPolicy"] == "Exact";
        if self.ruled(&criteria["excludeResourceRules"], exact).is_some() {
            return None;
        }
        let rules = &criteria["resourceRules"];
        if rules.as_array().is_none_or(Vec::is_empty) {
            return Some(self.kind.clone());
        }
        self.ruled(rules, exact)
    }

    /// Whether both selectors select the request.
    fn selected(&self, criteria: &Value) -> bool {
        let chosen = &criteria["namespaceSelector"];
        // Cluster-wide objects have no namespace that could exempt them.
        let placed = !self.namespace.is_empty();
        if placed && !is_empty(chosen) && !selectors::selects(chosen, &self.labelled()) {
            return false;
        }
        let chosen = &criteria["objectSelector"];
        let selects = |object: Option<&Value>| {
            object.is_some_and(|object| selectors::selects(chosen, object))
        };
        is_empty(chosen) || selects(self.object) || selects(self.old)
    }

    /// Returns an object with the labels of the namespace.
    fn labelled(&self) -> Value {
        // A new Namespace is not stored yet, and a change of a Namespace counts at once.
        let own = self.kind.is("", "namespaces")
            && self.subresource.is_empty()
            && matches!(self.operation, "CREATE" | "UPDATE");
        let namespace = if own { self.object } else { self.home };
        let labels = namespace.map(|namespace| &namespace["metadata"]["labels"]);
        json!({"metadata": {"labels": labels}})
    }

    /// Returns the kind that a rule names: the request's kind, or another version of that kind.
    fn ruled(&self, rules: &Value, exact: bool) -> Option<Arc<Kind>> {
        let rules = rules.as_array().map_or(&[][..], Vec::as_slice);
        if rules.iter().any(|rule| self.names(rule, self.kind)) {
            return Some(self.kind.clone());
        }
        if exact || rules.is_empty() {
            return None;
        }
        let others = self.others.get_or_init(|| self.table.versions(self.kind));
        let fits = |rule: &Value| others.iter().find(|other| self.names(rule, other)).cloned();
        rules.iter().find_map(fits)
    }

    /// Whether a rule names the request, seen in a version of its kind.
    fn names(&self, rule: &Value, kind: &Kind) -> bool {
        let served = &kind.served;
        let known = self.subresource.is_empty() || kind.subresource(self.subresource).is_some();
        let names = rule["resourceNames"].as_array().map_or(&[][..], Vec::as_slice);
        known
            && self.in_scope(&rule["scope"], kind)
            && has(&rule["operations"], self.operation)
            && has(&rule["apiGroups"], &served.group)
            && has(&rule["apiVersions"], &served.version)
            && self.is_resource(&rule["resources"], &served.plural)
            && (names.is_empty() || names.iter().any(|name| name == self.name))
    }

    /// Whether the request is in the scope of a rule.
    fn in_scope(&self, scope: &Value, kind: &Kind) -> bool {
        let namespaced = !kind.is("", "namespaces") && !self.namespace.is_empty();
        match scope.as_str() {
            Some("Namespaced") => namespaced,
            Some("Cluster") => !namespaced,
            _ => true,
        }
    }

    /// Whether `resources` of a rule, such as `pods`, `*/scale` or `*/*`, name the resource.
    fn is_resource(&self, resources: &Value, plural: &str) -> bool {
        let named = resources.as_array().into_iter().flatten().filter_map(Value::as_str);
        named.map(|text| text.split_once('/').unwrap_or((text, ""))).any(|(resource, sub)| {
            (resource == "*" || resource == plural) && (sub == "*" || sub == self.subresource)
        })
    }
}

/// Whether a list of a rule holds a text or the wildcard.
fn has(list: &Value, wanted: &str) -> bool {
    list.as_array().into_iter().flatten().any(|item| item == "*" || item == wanted)
}

/// Whether a label selector selects everything.
fn is_empty(selector: &Value) -> bool {
    selector.as_object().into_iter().flatten().all(|(_, part)| match part {
        Value::Object(labels) => labels.is_empty(),
        Value::Array(terms) => terms.is_empty(),
        _ => true,
    })
}
