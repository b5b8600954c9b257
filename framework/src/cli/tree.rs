//! An object and its children with their conditions, as a person would like to see them.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

use serde_json::Value;

use crate::error::Error;
use crate::manager::Running;
use crate::resource::{DynamicObject, ResourceExt, ResourceInfo};

#[derive(Debug, PartialEq)]
pub(super) struct Tree {
    label: String,
    conditions: Vec<Condition>,
    children: Vec<Tree>,
}

#[derive(Debug, PartialEq)]
struct Condition {
    kind: String,
    status: String,
    reason: String,
}

impl Tree {
    /// `root` and everything that it owns, among the kinds that the operator watches.
    pub(super) async fn gather(
        running: &Running,
        root: &DynamicObject,
        info: &ResourceInfo,
    ) -> Result<Self, Error> {
        let kinds: BTreeSet<ResourceInfo> =
            running.informers().status().into_iter().map(|informer| informer.info).collect();
        let mut by_owner: BTreeMap<String, Vec<(ResourceInfo, DynamicObject)>> = BTreeMap::new();
        for kind in kinds {
            let list = running.client().dynamic(kind.clone(), root.namespace()).list().await?;
            for object in list.items {
                for owner in object.metadata.owner_references.iter().flatten() {
                    let children = by_owner.entry(owner.uid.clone()).or_default();
                    children.push((kind.clone(), object.clone()));
                }
            }
        }
        Ok(Self::grow(root, info, &mut by_owner))
    }

    fn grow(
        object: &DynamicObject,
        info: &ResourceInfo,
        by_owner: &mut BTreeMap<String, Vec<(ResourceInfo, DynamicObject)>>,
    ) -> Self {
        // Taking the children out ends every cycle.
        let children = by_owner.remove(object.uid()).unwrap_or_default();
        Self {
            label: format!("{}/{}", info.kind, object.name()),
            conditions: conditions(object),
            children: children
                .iter()
                .map(|(kind, child)| Self::grow(child, kind, by_owner))
                .collect(),
        }
    }

    /// The tree as text, with colours for a terminal.
    pub(super) fn print(&self, colours: bool) -> String {
        let mut text = String::new();
        self.print_at(&mut text, "", "", colours);
        text
    }

    fn print_at(&self, text: &mut String, lead: &str, below: &str, colours: bool) {
        let mut conditions = String::new();
        for condition in &self.conditions {
            let (on, off) = match (colours, condition.status.as_str()) {
                (false, _) => ("", ""),
                (true, "True") => ("\x1b[32m", "\x1b[0m"),
                (true, "False") => ("\x1b[31m", "\x1b[0m"),
                (true, _) => ("\x1b[33m", "\x1b[0m"),
            };
            let _ = write!(conditions, "  {}={on}{}{off}", condition.kind, condition.status);
            if !condition.reason.is_empty() {
                let _ = write!(conditions, " ({})", condition.reason);
            }
        }
        let _ = writeln!(text, "{lead}{}{conditions}", self.label);
        for (index, child) in self.children.iter().enumerate() {
            let last = index + 1 == self.children.len();
            let (branch, under) = if last { ("└─ ", "   ") } else { ("├─ ", "│  ") };
            child.print_at(text, &format!("{below}{branch}"), &format!("{below}{under}"), colours);
        }
    }
}

fn conditions(object: &DynamicObject) -> Vec<Condition> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let conditions = object.rest.get("status").and_then(|status| status["conditions"].as_array());
    conditions
        .into_iter()
        .flatten()
        .map(|condition| Condition {
            kind: text(&condition["type"]),
            status: text(&condition["status"]),
            reason: text(&condition["reason"]),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn object(uid: &str, owner: Option<&str>, status: Value) -> DynamicObject {
        let owners =
            owner.map(|uid| json!([{ "apiVersion": "v1", "kind": "X", "name": "x", "uid": uid }]));
        serde_json::from_value(json!({
            "metadata": { "name": uid, "uid": uid, "ownerReferences": owners },
            "status": status,
        }))
        .unwrap()
    }

    #[test]
    fn a_tree_shows_children_under_their_owner_with_their_conditions() {
        let info = |kind: &'static str| ResourceInfo {
            group: "".into(),
            version: "v1".into(),
            kind: kind.into(),
            plural: "xs".into(),
            scope: crate::resource::Scope::Namespaced,
        };
        let ready =
            json!({ "conditions": [{ "type": "Ready", "status": "True", "reason": "Up" }] });
        let root = object("a", None, ready);
        let mut by_owner = BTreeMap::from([
            (
                "a".to_owned(),
                vec![
                    (info("Deployment"), object("b", Some("a"), json!({}))),
                    (info("Service"), object("c", Some("a"), json!({}))),
                ],
            ),
            ("b".to_owned(), vec![(info("Pod"), object("d", Some("b"), json!({})))]),
        ]);
        let tree = Tree::grow(&root, &info("Website"), &mut by_owner);
        let expected = "Website/a  Ready=True (Up)\n├─ Deployment/b\n│  └─ Pod/d\n└─ Service/c\n";
        assert_eq!(tree.print(false), expected);
        assert!(tree.print(true).contains("Ready=\x1b[32mTrue\x1b[0m"));
    }
}
