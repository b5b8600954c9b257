//! References to types by name, and the cut of types that contain themselves.
//!
//! A definition has no references, so each reference is replaced by the type's schema. Types that
//! contain each other form a cycle, which is cut: from the type by which a field enters the cycle,
//! each type of the cycle is described at the least distance, and kept without checks farther
//! below. So the fields of a cycle of `n` types cost at most `n` times the types' size where every
//! type names every other, and siblings of the same type are described alike.

// DESIGN.md, 129: Types are read by reference, and cycles are cut at the least distance

use serde_json::{Value, json};

use super::super::kubernetes::foreign;
use super::graph::name_of;
use super::keywords::copy;
use super::lower::Lower;
use super::node::{RULES, SchemaObject, any, append, second_type, tighten};

/// Most places with a warning for a single type that contains itself; with more types the places
/// multiply.
const MOST_PLACES: usize = 8;

impl Lower<'_> {
    /// The schema behind a reference to a type that does not contain itself.
    pub(super) fn without_reference(&self, branch: &Value) -> Option<&Value> {
        let name = name_of(branch.get("$ref")?.as_str()?);
        let target = self.definitions.get(&name)?;
        (!self.graph.is_cycle(&name, &name)).then_some(target)
    }

    /// Replaces a reference by the type's schema, or cuts it.
    pub(super) fn reference(&mut self, raw: &SchemaObject, reference: &str) -> SchemaObject {
        let name = name_of(reference);
        let target = match self.definitions.get(&name) {
            Some(Value::Object(target)) => target,
            Some(target) => return self.schema(target),
            None => {
                self.fault("its schema refers to a definition that does not exist");
                return any();
            }
        };
        let mut over = raw.clone();
        over.remove("$ref");
        let described = over.contains_key("description");
        let mut target = overlay(target.clone(), over);
        foreign::complete(&name, described, &mut target);
        if !self.graph.is_cycle(&name, &name) {
            return self.object(&target);
        }
        match self.cycles.last_mut() {
            Some(cycle) if self.graph.is_cycle(&cycle.entry, &name) => {
                if cycle.distances.get(&name).is_none_or(|least| cycle.depth >= *least) {
                    return self.cut(&name, &target);
                }
                cycle.depth += 1;
                let node = self.object(&target);
                if let Some(cycle) = self.cycles.last_mut() {
                    cycle.depth -= 1;
                }
                node
            }
            _ => {
                self.cycles.push(self.graph.cycle(&name));
                let node = self.object(&target);
                self.cycles.pop();
                node
            }
        }
    }

    /// Warns of the places of types that contain themselves beyond the first ones, once for each
    /// type, at the place that is above all places of the type.
    pub(super) fn further_cuts(&mut self) {
        for (name, places) in std::mem::take(&mut self.cut_types) {
            let more = places.len().saturating_sub(MOST_PLACES);
            let mut paths = places.iter();
            let Some(first) = paths.next().filter(|_| more > 0) else { continue };
            let above = paths.fold(first.as_slice(), |above, path| {
                let same = above.iter().zip(path).take_while(|(one, other)| one == other);
                &above[..same.count()]
            });
            let text = format!(
                "the type `{name}` contains itself, and is cut at {more} further places below: there an API server \
                 keeps everything and checks nothing"
            );
            let before = std::mem::replace(&mut self.path, above.to_vec());
            self.warn(&text);
            self.path = before;
        }
    }

    /// Replaces a type that contains itself by a schema without checks, with a warning for each of
    /// the first places.
    fn cut(&mut self, name: &str, target: &SchemaObject) -> SchemaObject {
        let path = self.path().to_vec();
        let places = self.cut_types.entry(name.to_owned()).or_default();
        // A position may be translated more than once.
        let is_new = places.insert(path);
        if is_new && places.len() <= MOST_PLACES {
            self.warn(&format!(
                "the type `{name}` contains itself, which an API server cannot describe: from here on it \
                 keeps everything and checks nothing"
            ));
        }
        let mut node = any();
        copy(target, &mut node);
        node.retain(|key, _| {
            matches!(key.as_str(), "description" | "nullable")
                || key == "x-kubernetes-preserve-unknown-fields"
        });
        if target.get("type").and_then(Value::as_str) == Some("object") {
            node.insert("type".to_owned(), "object".into());
            node.remove("nullable");
        }
        // Without its default the field would be neither required nor filled in.
        if let Some(default) = target.get("default").filter(|default| !default.is_null()) {
            node.insert("default".to_owned(), default.clone());
        }
        node
    }
}

/// Adds the keywords of a field to the schema of its type; where both have a keyword, the field's
/// wins, and lists of conditions have the elements of both.
pub(super) fn overlay(mut node: SchemaObject, over: SchemaObject) -> SchemaObject {
    for (key, value) in over {
        if tighten(&mut node, &key, &value) || key == "type" && second_type(&mut node, &value) {
            continue;
        }
        match (key.as_str(), node.get_mut(&key)) {
            ("properties", Some(Value::Object(mine))) => {
                // The tag of a variant comes before the fields of its type.
                if let Value::Object(mut fields) = value {
                    for (name, schema) in std::mem::take(mine) {
                        fields.entry(name).or_insert(schema);
                    }
                    *mine = fields;
                }
            }
            ("required" | "allOf" | RULES, Some(mine)) => {
                let theirs = std::mem::replace(mine, value);
                append(mine, theirs);
            }
            ("oneOf" | "anyOf", Some(mine)) => {
                let mine = std::mem::take(mine);
                node.remove(&key);
                let all = node.entry("allOf").or_insert_with(|| json!([]));
                append(all, json!([{ &key: mine }, { &key: value }]));
            }
            _ => drop(node.insert(key, value)),
        }
    }
    node
}

/// The schema of an option's type with the keywords beside it; `None` for anything but an option.
pub(super) fn option_of(raw: &SchemaObject) -> Option<SchemaObject> {
    let Some([first, second]) = raw.get("anyOf").and_then(Value::as_array).map(Vec::as_slice)
    else {
        return None;
    };
    let is_null = |branch: &Value| *branch == json!({ "type": "null" });
    let inner = match (is_null(first), is_null(second)) {
        (false, true) => first,
        (true, false) => second,
        _ => return None,
    };
    let mut beside = raw.clone();
    beside.remove("anyOf");
    Some(overlay(inner.as_object()?.clone(), beside))
}
