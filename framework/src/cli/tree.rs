//! Trees of objects with their children and conditions, as text for people.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

use serde_json::Value;

use super::escape::escaped;
use windlass_core::error::{Error, ErrorKind};
use windlass_core::resource::{DynamicObject, ResourceExt, ResourceInfo};
use windlass_runtime::manager::Running;

/// Most objects of a kind that are read, and most lines that are printed.
const MOST_OBJECTS: u32 = 500;
/// Most lines of an output; the number of the others is printed.
const MOST_LINES: usize = 40;
/// Escape sequences that begin a colour.
const GREEN: &str = "\x1b[32m";
const RED: &str = "\x1b[31m";
const YELLOW: &str = "\x1b[33m";

/// An object with its kind.
type KindObject = (ResourceInfo, DynamicObject);

/// The objects of some kinds with all owned objects, at the same moment.
#[derive(Debug, Default, PartialEq)]
pub(super) struct ObjectTrees {
    /// A tree for each object without a shown owner.
    trees: Vec<Tree>,
}

/// An object and the children of the object.
#[derive(Debug, PartialEq)]
struct Tree {
    /// Kind and name, with the namespace unless it is `default`.
    label: String,
    /// Identity: an object that was created again is a new object.
    uid: String,
    /// The parts of the object whose change is shown.
    state: State,
    /// The owned objects.
    children: Vec<Tree>,
}

/// The part of an object whose change is shown.
#[derive(Clone, Debug, PartialEq)]
struct State {
    /// Generation, or the resourceVersion of a kind without generations. With generations, other
    /// changes of the version are bookkeeping.
    version: String,
    /// Whether the object has a deletion timestamp.
    is_being_deleted: bool,
    /// In the order of the object.
    conditions: Vec<ShownCondition>,
}

/// The part of a condition that is shown.
#[derive(Clone, Debug, PartialEq)]
struct ShownCondition {
    /// `type` of the condition.
    kind: String,
    /// `True`, `False` or `Unknown`.
    status: String,
    /// Empty if there is none.
    reason: String,
}

impl ObjectTrees {
    /// Reads the objects of the kinds `roots` and everything that they own, among the kinds that
    /// the operator watches.
    ///
    /// # Errors
    /// Those of lists. A kind that is not served has no objects.
    pub(super) async fn read(running: &Running, roots: &[ResourceInfo]) -> Result<Self, Error> {
        let watched = running.informers().status().into_iter().map(|informer| informer.info);
        // A set: a root may be watched, too.
        let kinds: BTreeSet<ResourceInfo> = watched.chain(roots.iter().cloned()).collect();
        let mut found = Vec::new();
        for kind in kinds {
            let api = running.client().dynamic(kind.clone(), None);
            match api.list().limit(MOST_OBJECTS).await {
                Ok(list) => found.extend(list.items.into_iter().map(|one| (kind.clone(), one))),
                // The kind's definition may not be installed yet, or was removed meanwhile.
                Err(error) if error.kind() == ErrorKind::NotFound => {}
                Err(error) => return Err(error),
            }
        }
        Ok(Self::of(found, roots))
    }

    /// Builds the trees; an object with several owners stands in the tree of each.
    fn of(found: Vec<KindObject>, roots: &[ResourceInfo]) -> Self {
        let uids: BTreeSet<String> = found.iter().map(|(_, one)| one.uid().to_owned()).collect();
        let mut by_owner: BTreeMap<String, Vec<KindObject>> = BTreeMap::new();
        let mut tops = Vec::new();
        for (kind, object) in found {
            let owners = object.metadata.owner_references.iter().flatten();
            let owners: Vec<_> = owners.filter(|one| uids.contains(&one.uid)).collect();
            // An object whose owner is not shown is a root.
            if owners.is_empty() && roots.contains(&kind) {
                tops.push((kind, object));
                continue;
            }
            for owner in owners {
                let children = by_owner.entry(owner.uid.clone()).or_default();
                children.push((kind.clone(), object.clone()));
            }
        }
        let build = |(kind, object): &KindObject| Tree::build(kind, object, &mut by_owner);
        Self { trees: tops.iter().map(build).collect() }
    }

    /// Prints the trees, with colours for a terminal; objects that are new or changed since
    /// `before` are marked.
    pub(super) fn print(&self, before: Option<&Self>, colours: bool) -> String {
        let mut known = BTreeMap::new();
        before
            .iter()
            .flat_map(|before| &before.trees)
            .for_each(|tree| tree.collect_states(&mut known));
        let mut printer =
            TreePrinter { lines: Vec::new(), known, marks: before.is_some(), colours };
        for tree in &self.trees {
            tree.print_at(&mut printer, "", "");
        }
        // Roots only: a child that is gone has no separate line.
        for gone in before.iter().flat_map(|before| &before.trees) {
            if self.trees.iter().all(|tree| tree.uid != gone.uid) {
                printer.lines.push(format!("{} is gone", gone.label));
            }
        }
        // Trees of many objects are cut, so that the log lines around them stay on the screen.
        let more = printer.lines.len().saturating_sub(MOST_LINES);
        printer.lines.truncate(MOST_LINES);
        let mut text = printer.lines.join("\n");
        if more > 0 {
            let _ = write!(text, "\n… and {more} lines more");
        }
        text.push('\n');
        text
    }
}

/// Output of the trees.
struct TreePrinter<'a> {
    /// Lines so far.
    lines: Vec<String>,
    /// States that were shown before, by uid.
    known: BTreeMap<&'a str, &'a State>,
    /// Whether changes are marked: not in the first output.
    marks: bool,
    /// Whether the output is for a terminal with colours.
    colours: bool,
}

/// Returns the colour of a condition: green for what is good, none where only the author of the
/// condition knows.
fn style(kind: &str, status: &str) -> &'static str {
    let is_true = match status {
        "True" => true,
        "False" => false,
        _ => return YELLOW,
    };
    match kind {
        "Ready" | "Available" | "Complete" | "Established" if is_true => GREEN,
        "Ready" | "Available" | "Established" => RED,
        "Stalled" | "Failed" if is_true => RED,
        "Reconciling" if is_true => YELLOW,
        _ => "",
    }
}

impl TreePrinter<'_> {
    /// Puts a colour around a text, if colours are allowed.
    fn paint(&self, style: &'static str, text: &str) -> String {
        if self.colours && !style.is_empty() {
            format!("{style}{text}\x1b[0m")
        } else {
            text.to_owned()
        }
    }

    /// The mark of a line: the change since the last output.
    fn mark(&self, tree: &Tree) -> String {
        let text = match self.known.get(tree.uid.as_str()) {
            _ if !self.marks => return String::new(),
            None => "new",
            Some(before) if **before != tree.state => "changed",
            Some(_) => return String::new(),
        };
        format!("  {}", self.paint("\x1b[36m", &format!("<- {text}")))
    }
}

impl Tree {
    /// Builds a tree from an object and its children in `by_owner`.
    fn build(
        info: &ResourceInfo,
        object: &DynamicObject,
        by_owner: &mut BTreeMap<String, Vec<KindObject>>,
    ) -> Self {
        // The children are removed from the map: a cycle of owners ends.
        let children = by_owner.remove(object.uid()).unwrap_or_default();
        let place = match object.namespace() {
            // Most trials run in this namespace: the name would stand in every line.
            None | Some("default") => String::new(),
            Some(namespace) => format!(" in {namespace}"),
        };
        Self {
            label: format!("{}/{}{place}", info.kind, object.name()),
            uid: object.uid().to_owned(),
            state: State::of(object),
            children: children
                .iter()
                .map(|(kind, child)| Self::build(kind, child, by_owner))
                .collect(),
        }
    }

    /// Collects the states of a tree by uid.
    fn collect_states<'a>(&'a self, known: &mut BTreeMap<&'a str, &'a State>) {
        known.insert(&self.uid, &self.state);
        self.children.iter().for_each(|child| child.collect_states(known));
    }

    /// Prints a tree; `lead` and `below` draw the branches.
    fn print_at(&self, printer: &mut TreePrinter<'_>, lead: &str, below: &str) {
        let mut line = format!("{lead}{}", self.label);
        if self.state.is_being_deleted {
            line.push_str("  (being deleted)");
        }
        for condition in &self.state.conditions {
            let style = style(&condition.kind, &condition.status);
            let _ =
                write!(line, "  {}={}", condition.kind, printer.paint(style, &condition.status));
            if !condition.reason.is_empty() {
                let _ = write!(line, " ({})", condition.reason);
            }
        }
        line.push_str(&printer.mark(self));
        printer.lines.push(line);
        for (index, child) in self.children.iter().enumerate() {
            let last = index + 1 == self.children.len();
            let (branch, under) = if last { ("└─ ", "   ") } else { ("├─ ", "│  ") };
            child.print_at(printer, &format!("{below}{branch}"), &format!("{below}{under}"));
        }
    }
}

impl State {
    /// Reads generation, deletion mark and conditions; an object without generation shows the
    /// version.
    fn of(object: &DynamicObject) -> Self {
        let version = match object.generation() {
            0 => object.metadata.resource_version.clone().unwrap_or_default(),
            generation => generation.to_string(),
        };
        let is_being_deleted = object.metadata.deletion_timestamp.is_some();
        Self { version, is_being_deleted, conditions: conditions(object) }
    }
}

/// The conditions of an object, with escaped texts.
fn conditions(object: &DynamicObject) -> Vec<ShownCondition> {
    let text = |value: &Value| escaped(value.as_str().unwrap_or_default());
    let conditions = object.rest.get("status").and_then(|status| status["conditions"].as_array());
    conditions
        .into_iter()
        .flatten()
        .map(|condition| ShownCondition {
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
    use windlass_core::resource::Scope;

    fn info(kind: &'static str) -> ResourceInfo {
        ResourceInfo {
            group: "".into(),
            version: "v1".into(),
            kind: kind.into(),
            plural: "xs".into(),
            scope: Scope::Namespaced,
        }
    }

    fn object(kind: &'static str, uid: &str, owner: Option<&str>, more: Value) -> KindObject {
        let owners =
            owner.map(|uid| json!([{ "apiVersion": "v1", "kind": "X", "name": "x", "uid": uid }]));
        let mut metadata = json!({ "name": uid, "uid": uid, "ownerReferences": owners });
        let version = more["version"].as_str().unwrap_or("1");
        metadata["resourceVersion"] = version.into();
        let status = json!({ "conditions": more["conditions"] });
        let object = json!({ "metadata": metadata, "status": status });
        (info(kind), serde_json::from_value(object).unwrap())
    }

    fn site(status: &str) -> Value {
        json!({ "conditions": [{ "type": "Ready", "status": status, "reason": "Up" }] })
    }

    fn object_trees(found: Vec<KindObject>) -> ObjectTrees {
        ObjectTrees::of(found, &[info("Website")])
    }

    #[test]
    fn only_conditions_whose_good_state_is_known_are_coloured() {
        assert_eq!((style("Ready", "True"), style("Ready", "False")), (GREEN, RED));
        assert_eq!((style("Stalled", "True"), style("Stalled", "False")), (RED, ""));
        assert_eq!((style("HostTaken", "True"), style("HostTaken", "Unknown")), ("", YELLOW));
    }

    #[test]
    fn a_tree_shows_children_under_their_owner_with_their_conditions() {
        let object_trees = object_trees(vec![
            object("Website", "a", None, site("True")),
            object("Deployment", "b", Some("a"), json!({})),
            object("Pod", "d", Some("b"), json!({})),
            object("Service", "c", Some("a"), json!({})),
            object("Service", "stranger", None, json!({})),
        ]);
        let expected = "Website/a  Ready=True (Up)\n├─ Deployment/b\n│  └─ Pod/d\n└─ Service/c\n";
        assert_eq!(object_trees.print(None, false), expected);
        assert!(object_trees.print(None, true).contains("Ready=\x1b[32mTrue\x1b[0m"));
    }

    #[test]
    fn what_is_new_or_has_changed_since_the_last_reading_is_marked_and_what_is_gone_is_named() {
        let child = |version| object("Service", "c", Some("a"), json!({ "version": version }));
        let before = object_trees(vec![
            object("Website", "a", None, site("False")),
            child("1"),
            object("Website", "z", None, json!({})),
        ]);
        let same = object_trees(vec![
            object("Website", "a", None, site("False")),
            child("1"),
            object("Website", "z", None, json!({})),
        ]);
        assert_eq!(before, same);
        let after = object_trees(vec![
            object("Website", "a", None, site("True")),
            child("2"),
            object("Service", "n", Some("a"), json!({})),
        ]);
        let expected = "Website/a  Ready=True (Up)  <- changed\n├─ Service/c  <- changed\n└─ Service/n  <- new\nWebsite/z is gone\n";
        assert_eq!(after.print(Some(&before), false), expected);
    }

    #[test]
    fn a_forest_of_many_trees_does_not_fill_the_screen() {
        let names: Vec<String> = (0..100).map(|number| format!("site-{number}")).collect();
        let many = names.iter().map(|name| object("Website", name, None, json!({}))).collect();
        let text = object_trees(many).print(None, false);
        assert_eq!(text.lines().count(), MOST_LINES + 1);
        assert!(text.ends_with("… and 60 lines more\n"), "{text}");
    }

    #[test]
    fn objects_that_own_each_other_in_a_circle_end_no_program() {
        let circle = vec![
            object("Website", "a", Some("b"), json!({})),
            object("Website", "b", Some("a"), json!({})),
        ];
        assert_eq!(object_trees(circle).print(None, false), "\n");
    }
}
