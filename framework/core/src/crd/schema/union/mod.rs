//! Alternatives: enums, untagged and tagged, and options.
//!
//! A structural schema declares the type of every field once, outside of `oneOf` and `anyOf`, which
//! contain only checks of values. So the union of all branches is described first, as wide as
//! needed, and the requirements of each branch are added as a check.

mod lift;
mod narrow;
mod widest;

use serde_json::{Value, json};

use self::lift::{Tag, hoist};
use self::narrow::is_int_or_string;
use super::lower::Lower;
use super::node::{
    CHECKS, CLOSED, PARTLY_CLOSED, SchemaKind, SchemaObject, any, append, is_nullable,
    without_defaults,
};

impl Lower<'_> {
    /// The structural form of `branches`, exactly one (or any) of which holds, beside `node`.
    ///
    /// `key` is `oneOf` or `anyOf`. A branch of null becomes `nullable`; a branch that allows any
    /// value removes the checks of the others.
    pub(super) fn union(
        &mut self,
        key: &str,
        branches: &[Value],
        node: &SchemaObject,
    ) -> SchemaObject {
        let branches = &self.spliced(key, branches);
        let is_object = node.get("type").and_then(Value::as_str) == Some("object");
        let is_free = |branch: &&Value| **branch == Value::Bool(true) || **branch == json!({});
        let free = branches.iter().filter(is_free).count();
        // A branch allows any value, and so does the union.
        if free > 0 && !is_object {
            return any();
        }
        let is_null = |branch: &Value| branch.get("type").and_then(Value::as_str) == Some("null");
        let nullable = branches.iter().any(is_null);
        let nodes: Vec<SchemaObject> = branches
            .iter()
            .filter(|branch| !is_null(branch) && !is_free(branch))
            .map(|branch| self.schema(branch))
            .collect();
        let mut union = match nodes.len() {
            0 => SchemaObject::new(),
            1 => nodes.into_iter().next().unwrap_or_default(),
            _ => self.several(key, &nodes),
        };
        if free > 0 {
            // An optional flattened enum: all its fields may be absent together.
            union.retain(|key, _| !CHECKS.contains(&key.as_str()) && key != "required");
            // A default would make an absent value present.
            without_defaults(&mut union);
        }
        if nullable && !union.is_empty() {
            union.insert("nullable".to_owned(), true.into());
        } else if nullable && !node.contains_key("type") {
            union.insert("type".to_owned(), "object".into());
            union.insert("nullable".to_owned(), true.into());
        }
        union
    }

    /// Branches, where a branch that only lists alternatives is replaced by these alternatives: a
    /// branch that refuses unknown fields has to know the fields of all the others.
    fn spliced(&self, key: &str, branches: &[Value]) -> Vec<Value> {
        let each = branches.iter().map(|branch| {
            match alternatives(self.without_reference(branch).unwrap_or(branch)) {
                Some(inner) if key == "anyOf" => self.spliced(key, inner),
                _ => vec![branch.clone()],
            }
        });
        each.collect::<Vec<_>>().concat()
    }

    /// The union of several branches, as narrow as a structural schema allows.
    ///
    /// `nodes` has two branches at least. `nullable` is set if any branch allows null, since
    /// `nullable` is a property of the whole field.
    pub(super) fn several(&mut self, key: &str, nodes: &[SchemaObject]) -> SchemaObject {
        let mut nodes = nodes.to_vec();
        let tag = Tag::of(&nodes);
        if let Some(tag) = &tag {
            hoist(&mut nodes);
            tag.close(&mut nodes);
        }
        let mut union = self.widest(&nodes);
        let checks: Vec<SchemaObject> =
            nodes.iter().map(|node| self.narrow(node, &union)).collect();
        self.restrict(key, &checks, &mut union);
        self.carry(&nodes, tag.as_ref(), &mut union);
        let is_closed =
            |node: &SchemaObject| node.contains_key(CLOSED) || node.contains_key(PARTLY_CLOSED);
        if nodes.iter().any(is_closed) && !union.contains_key(CLOSED) {
            union.insert(PARTLY_CLOSED.to_owned(), true.into());
        }
        if nodes.iter().any(is_nullable) {
            union.insert("nullable".to_owned(), true.into());
        }
        union
    }

    /// Adds the checks of the branches to their union.
    ///
    /// A branch without checks allows everything: the alternatives then restrict nothing.
    fn restrict(&mut self, key: &str, checks: &[SchemaObject], union: &mut SchemaObject) {
        let are_choices = checks.iter().all(|it| it.len() == 1 && it.contains_key("enum"));
        let is_said = match SchemaKind::of(union) {
            SchemaKind::Scalar(_) => are_choices && union.contains_key("enum"),
            SchemaKind::IntOrString => is_int_or_string(checks),
            _ => false,
        };
        if is_said || checks.iter().any(SchemaObject::is_empty) {
            return;
        }
        let mut different: Vec<Value> = Vec::new();
        for check in checks {
            let check = Value::Object(check.clone());
            if !different.contains(&check) {
                different.push(check);
            }
        }
        // Equal branches would exclude each other.
        let key = if different.len() == checks.len() { key } else { "anyOf" };
        if different.len() == 1 {
            append(union.entry("allOf").or_insert_with(|| json!([])), Value::Array(different));
        } else {
            union.insert(key.to_owned(), Value::Array(different));
        }
    }

    /// The schema of all positions of a tuple.
    pub(super) fn places(&mut self, places: &[SchemaObject]) -> SchemaObject {
        self.enter("[]");
        let differ = places.iter().any(|place| Some(place) != places.first());
        if differ {
            self.warn(
                "an API server checks all positions of a tuple alike: each takes what any of them takes",
            );
        }
        let item = match places {
            [] => any(),
            [place] => place.clone(),
            places => self.several("anyOf", places),
        };
        self.leave();
        item
    }
}

/// The alternatives of a schema that says nothing else.
fn alternatives(branch: &Value) -> Option<&Vec<Value>> {
    let node = branch.as_object()?;
    let is_text = |key: &String| matches!(key.as_str(), "anyOf" | "title" | "description");
    if node.keys().all(is_text) { node.get("anyOf")?.as_array() } else { None }
}
