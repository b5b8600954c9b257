//! Alternatives: enums, untagged and tagged, and options.
//!
//! A structural schema declares the type of every field once, outside of `oneOf` and `anyOf`, which
//! contain only checks of values. So the union of all branches is described first, as wide as
//! needed, and the requirements of each branch are added as a check.

// DESIGN.md, 87: A CEL rule on a single alternative produces a warning

use serde_json::{Value, json};

use super::lower::{Lower, Node, any};
use super::merge::is_any;

/// Keywords that only check a value: the only ones allowed inside of alternatives.
///
/// `required` and `properties` are added for each branch on their own.
const CHECKS: &[&str] = &[
    "allOf",
    "anyOf",
    "enum",
    "exclusiveMaximum",
    "exclusiveMinimum",
    "format",
    "maxItems",
    "maxLength",
    "maxProperties",
    "maximum",
    "minItems",
    "minLength",
    "minProperties",
    "minimum",
    "multipleOf",
    "not",
    "oneOf",
    "pattern",
];

/// CEL rules.
///
/// They hold for a whole field: a structural schema allows none inside of alternatives.
pub(super) const RULES: &str = "x-kubernetes-validations";

impl Lower<'_> {
    /// The structural form of `branches`, of which one (or any) holds, beside `node`.
    ///
    /// `key` is `oneOf` or `anyOf`. A branch of null becomes `nullable`; a branch that allows any
    /// value removes the checks of the others.
    pub(super) fn union(&mut self, key: &str, branches: &[Value], node: &Node) -> Node {
        let is_object = node.get("type").and_then(Value::as_str) == Some("object");
        let is_free = |branch: &&Value| **branch == Value::Bool(true) || **branch == json!({});
        let free = branches.iter().filter(is_free).count();
        // One branch allows any value, and so does the whole.
        if free > 0 && !is_object {
            self.note_unchecked();
            return any();
        }
        let is_null = |branch: &Value| branch.get("type").and_then(Value::as_str) == Some("null");
        let nullable = branches.iter().any(is_null);
        let nodes: Vec<Node> = branches
            .iter()
            .filter(|branch| !is_null(branch) && !is_free(branch))
            .map(|branch| self.schema(branch))
            .collect();
        let mut union = match nodes.len() {
            0 => Node::new(),
            1 => nodes.into_iter().next().unwrap_or_default(),
            _ => self.several(key, &nodes),
        };
        if free > 0 {
            // An optional flattened enum: all of its fields may be absent together.
            union.retain(|key, _| !CHECKS.contains(&key.as_str()) && key != "required");
        }
        if nullable && !union.is_empty() {
            union.insert("nullable".to_owned(), true.into());
        } else if nullable && !node.contains_key("type") {
            union.insert("type".to_owned(), "object".into());
            union.insert("nullable".to_owned(), true.into());
        }
        union
    }

    /// The union of several branches, as narrow as a structural schema allows.
    ///
    /// `nodes` has two branches at least. `nullable` is set if any branch allows null, since it is
    /// a property of the whole field.
    fn several(&mut self, key: &str, nodes: &[Node]) -> Node {
        let kinds: Vec<Kind> = nodes.iter().map(Kind::of).collect();
        let all = |kind: Kind| kinds.iter().all(|found| *found == kind);
        let texts = || nodes.iter().filter(|node| Kind::of(node) == Kind::Scalar("string"));
        let has_choices = texts().all(|node| node.contains_key("enum"));
        let is_text_or_object = |kind: &Kind| matches!(kind, Kind::Object | Kind::Scalar("string"));
        let mut union = if all(Kind::Object) {
            self.objects(key, nodes)
        } else if has_choices && kinds.iter().all(is_text_or_object) && !all(Kind::Scalar("string"))
        {
            self.texts_and_objects(nodes)
        } else {
            self.widen(nodes)
        };
        self.carry_rules(nodes, &mut union);
        if nodes.iter().any(|node| node.get("nullable") == Some(&Value::Bool(true))) {
            union.insert("nullable".to_owned(), true.into());
        }
        union
    }

    /// The narrowest schema that allows every value that one of `nodes` allows.
    ///
    /// Equal branches stay as they are. Integer and number become number, integer and text become
    /// int-or-string; other mixtures keep everything, with a warning.
    pub(super) fn widen(&mut self, nodes: &[Node]) -> Node {
        let Some(first) = nodes.first() else { return any() };
        if nodes.iter().all(|node| node == first) {
            return first.clone();
        }
        let mut kinds: Vec<Kind> = Vec::new();
        for kind in nodes.iter().map(Kind::of) {
            if !kinds.contains(&kind) {
                kinds.push(kind);
            }
        }
        // Sorted, so that each combination has one order below.
        kinds.sort_unstable();
        let mut wide = match kinds.as_slice() {
            [Kind::Object] => self.fields(nodes),
            [Kind::Array] => self.arrays(nodes),
            [Kind::Scalar(name)] => scalars(name, nodes),
            [Kind::Scalar("integer"), Kind::Scalar("number")] => scalars("number", nodes),
            [Kind::Scalar("integer"), Kind::Scalar("string")]
            | [Kind::IntOrString]
            | [Kind::IntOrString, Kind::Scalar("integer" | "string")]
            | [Kind::IntOrString, Kind::Scalar("integer"), Kind::Scalar("string")] => {
                let mut node = Node::new();
                node.insert("x-kubernetes-int-or-string".to_owned(), true.into());
                node
            }
            _ => {
                self.note_unchecked();
                // For the warning only: a value without a type keeps no rules.
                self.carry_rules(nodes, &mut Node::new());
                return any();
            }
        };
        self.carry_rules(nodes, &mut wide);
        if nodes.iter().any(|node| node.get("nullable") == Some(&Value::Bool(true))) {
            wide.insert("nullable".to_owned(), true.into());
        }
        wide
    }

    /// Copies rules that all of `nodes` have to the union; others are lost, with a warning.
    ///
    /// One warning stands for all lost rules of `nodes`.
    fn carry_rules(&mut self, nodes: &[Node], union: &mut Node) {
        let rules = |node: &Node| node.get(RULES).cloned();
        match nodes.first().and_then(rules) {
            Some(same) if nodes.iter().all(|node| node.get(RULES) == Some(&same)) => {
                union.insert(RULES.to_owned(), same);
            }
            _ if nodes.iter().any(|node| node.contains_key(RULES)) => self.warn(
                "a rule (`x-kubernetes-validations`) of one of its alternatives is lost, since an API server has \
                 rules for the whole field only: write it on the enum, with a condition that says for which \
                 variant it holds",
            ),
            _ => {}
        }
    }

    /// Warns of alternatives of different types.
    fn note_unchecked(&mut self) {
        self.warn(
            "its alternatives have different types, which an API server cannot describe: it keeps \
             everything and checks nothing here",
        );
    }

    /// The union of objects: every field described once, and the requirements of each branch.
    ///
    /// `key` receives one check per branch, but none when all are alike or one checks nothing.
    fn objects(&mut self, key: &str, nodes: &[Node]) -> Node {
        let mut union = self.fields(nodes);
        let outer = union.get("properties").cloned().unwrap_or_default();
        // From the union as it was described: a check that it makes already is no check of a
        // branch.
        let checks: Vec<Value> = nodes.iter().map(|node| branch(node, &outer)).collect();
        let empty = json!({});
        let differ = checks.iter().any(|check| *check != checks[0]);
        // A branch without checks allows everything: the alternatives then restrict nothing.
        if differ && !checks.contains(&empty) {
            union.insert(key.to_owned(), Value::Array(checks));
        }
        union
    }

    /// The fields of several objects in one.
    ///
    /// A field is required when each branch requires it, and has the union of its schemas.
    fn fields(&mut self, nodes: &[Node]) -> Node {
        let mut union = Node::new();
        union.insert("type".to_owned(), "object".into());
        let mut found: Vec<(String, Vec<Node>)> = Vec::new();
        for node in nodes {
            let Some(Value::Object(properties)) = node.get("properties") else { continue };
            for (name, schema) in properties {
                let schema = schema.as_object().cloned().unwrap_or_default();
                match found.iter_mut().find(|(known, _)| known == name) {
                    Some((_, schemas)) => schemas.push(schema),
                    None => found.push((name.clone(), vec![schema])),
                }
            }
        }
        let mut properties = Node::new();
        for (name, schemas) in found {
            self.enter(&name);
            properties.insert(name, Value::Object(self.widen(&schemas)));
            self.leave();
        }
        self.rest(nodes, !properties.is_empty(), &mut union);
        if !properties.is_empty() {
            union.insert("properties".to_owned(), Value::Object(properties));
        }
        let required = required_by_all(nodes);
        if !required.is_empty() {
            union.insert("required".to_owned(), required.into());
        }
        union
    }

    /// Adds names that no branch lists, if any branch allows them.
    ///
    /// `named` says that the union lists names of its own. Structural schemas forbid `properties`
    /// beside `additionalProperties`, so such a union keeps other names unchecked.
    fn rest(&mut self, nodes: &[Node], named: bool, union: &mut Node) {
        let values: Vec<Node> = nodes
            .iter()
            .filter_map(|node| node.get("additionalProperties")?.as_object().cloned())
            .collect();
        let kept =
            nodes.iter().any(|node| node.contains_key("x-kubernetes-preserve-unknown-fields"));
        // Beside listed names, others can be kept but not described.
        if kept || (named && !values.is_empty()) {
            union.insert("x-kubernetes-preserve-unknown-fields".to_owned(), true.into());
        } else if !values.is_empty() {
            self.enter("*");
            let value = self.widen(&values);
            self.leave();
            let (key, value) = if is_any(&value) {
                ("x-kubernetes-preserve-unknown-fields", true.into())
            } else {
                ("additionalProperties", Value::Object(value))
            };
            union.insert(key.to_owned(), value);
        }
    }

    /// The union of lists: one schema for the items of all.
    ///
    /// A branch without `items` makes items of any value.
    fn arrays(&mut self, nodes: &[Node]) -> Node {
        let items: Vec<Node> = nodes
            .iter()
            .map(|node| node.get("items").and_then(Value::as_object).cloned().unwrap_or_else(any))
            .collect();
        self.enter("[]");
        // The step `[]` is on the path meanwhile, so that a warning names the items.
        let item = self.widen(&items);
        self.leave();
        let mut union = Node::new();
        union.insert("type".to_owned(), "array".into());
        union.insert("items".to_owned(), Value::Object(item));
        union
    }

    /// The union of unit variants and variants with data: texts or objects, which no structural
    /// schema can describe. A value without a type can still be checked: a text must be one of the
    /// unit variants (`maxLength` applies to texts only), an object must name a variant with data.
    fn texts_and_objects(&mut self, nodes: &[Node]) -> Node {
        self.warn(
            "it is a text for some variants and an object for others, which an API server cannot \
             describe: it checks the variant's name, and keeps its fields unchecked",
        );
        let mut texts = Vec::new();
        let mut checks = Vec::new();
        for node in nodes {
            match (node.get("enum"), node.get("required")) {
                (Some(Value::Array(values)), _) => texts.extend(values.iter().cloned()),
                // `maxLength` keeps texts out of the branches of objects.
                (_, Some(required)) => checks.push(json!({ "required": required, "maxLength": 0 })),
                _ => checks.push(json!({ "maxLength": 0 })),
            }
        }
        checks.insert(0, json!({ "enum": texts }));
        let mut union = any();
        // Null is no variant: the caller adds `nullable` if a branch allows it.
        union.remove("nullable");
        union.insert("anyOf".to_owned(), Value::Array(checks));
        union
    }
}

/// Kind of a schema, for its union with others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Kind<'a> {
    /// An object with fields or with values under free names.
    Object,
    /// A list.
    Array,
    /// An integer or a text: the only mixture that has a form of its own.
    IntOrString,
    /// A text, a number, an integer or a boolean, by the name of its type.
    Scalar(&'a str),
    /// Any value: the schema has no type.
    Any,
}

impl<'a> Kind<'a> {
    /// Reads the kind of values that a lowered schema allows.
    fn of(node: &'a Node) -> Self {
        match node.get("type").and_then(Value::as_str) {
            Some("object") => Self::Object,
            Some("array") => Self::Array,
            Some(name) => Self::Scalar(name),
            None if node.contains_key("x-kubernetes-int-or-string") => Self::IntOrString,
            None => Self::Any,
        }
    }
}

/// The union of scalars of one type: all their values if each lists its own, and their
/// descriptions.
///
/// Other checks are dropped here: a bound of one branch does not hold for the values of another.
/// `format` and `description` stay if they are the same everywhere.
fn scalars(name: &str, nodes: &[Node]) -> Node {
    let mut union = Node::new();
    union.insert("type".to_owned(), name.into());
    let lists: Option<Vec<&Vec<Value>>> =
        nodes.iter().map(|node| node.get("enum").and_then(Value::as_array)).collect();
    if let Some(lists) = lists {
        let mut values: Vec<Value> = Vec::new();
        for value in lists.into_iter().flatten() {
            if !values.contains(value) {
                values.push(value.clone());
            }
        }
        union.insert("enum".to_owned(), Value::Array(values));
    }
    for key in ["format", "description"] {
        let first = nodes.first().and_then(|node| node.get(key));
        if let Some(same) = first.filter(|first| nodes.iter().all(|n| n.get(key) == Some(*first))) {
            union.insert(key.to_owned(), same.clone());
        }
    }
    // The doc comments of variants would be lost with their branches.
    let notes: Vec<String> = nodes.iter().filter_map(variant_note).collect();
    if !notes.is_empty() && !union.contains_key("description") {
        union.insert("description".to_owned(), notes.join("\n").into());
    }
    union
}

/// The note of a documented variant: "- `Value`: its doc comment".
///
/// `None` for a branch without a description or without listed values.
fn variant_note(node: &Node) -> Option<String> {
    let description = node.get("description")?.as_str()?;
    let values = node.get("enum")?.as_array()?;
    let names: Vec<String> =
        values.iter().map(|value| format!("`{}`", value.as_str().unwrap_or_default())).collect();
    Some(format!("- {}: {description}", names.join(", ")))
}

/// The fields that every branch requires.
///
/// In the order of the first branch.
fn required_by_all(nodes: &[Node]) -> Vec<Value> {
    let list = |node: &Node| match node.get("required") {
        Some(Value::Array(names)) => names.clone(),
        _ => Vec::new(),
    };
    let first = nodes.first().map(list).unwrap_or_default();
    first.into_iter().filter(|name| nodes.iter().all(|node| list(node).contains(name))).collect()
}

/// Requirements of one branch beyond the fields as described outside.
///
/// `outer` has the fields of the union. Checks that a field has there already are not repeated,
/// which keeps the definition small.
fn branch(node: &Node, outer: &Value) -> Value {
    let mut checks = checks(node);
    if let Some(required) = node.get("required") {
        checks.insert("required".to_owned(), required.clone());
    }
    let mut properties = Node::new();
    for (name, schema) in node.get("properties").and_then(Value::as_object).into_iter().flatten() {
        let Some(schema) = schema.as_object() else { continue };
        let outside = &outer[name];
        let inside: Node = checks_of(schema, outside);
        if !inside.is_empty() {
            properties.insert(name.clone(), Value::Object(inside));
        }
    }
    if !properties.is_empty() {
        checks.insert("properties".to_owned(), Value::Object(properties));
    }
    Value::Object(checks)
}

/// The checks of `schema` that the wider schema `outside` does not make.
///
/// Compared by keyword and value: a bound that differs from the outer one stays.
fn checks_of(schema: &Node, outside: &Value) -> Node {
    let same = |key: &str, value: &Value| outside.get(key) == Some(value);
    let mut inside: Node =
        checks(schema).into_iter().filter(|(key, value)| !same(key, value)).collect();
    // As in `nullable_choices`: null would fail the `enum` itself.
    if schema.get("nullable") == Some(&Value::Bool(true))
        && let Some(values) = inside.remove("enum")
    {
        inside.insert("allOf".to_owned(), json!([{ "enum": values }]));
    }
    inside
}

/// The checks of a schema. Without a type beside them, the server knows formats of texts only.
fn checks(node: &Node) -> Node {
    let is_text = Kind::of(node) == Kind::Scalar("string");
    node.iter()
        .filter(|(key, _)| CHECKS.contains(&key.as_str()) && (is_text || *key != "format"))
        .map(|(key, value)| (key.clone(), value.clone()))
        .collect()
}
