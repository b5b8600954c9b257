//! Rules and list types of alternatives.
//!
//! A structural schema has rules for a whole field, and none inside of alternatives. A rule of a
//! single variant becomes a rule of the enum with a condition on its tag, and so does the rule of a
//! field that several variants have; a rule that cannot be written so is lost, with a warning.

// DESIGN.md, 128: A rule of one variant becomes a rule of the enum

use serde_json::{Value, json};
use windlass_cel::rules::{Reason, check_definition};
use windlass_cel::syntax::identifiers::escape;

use super::super::lower::Lower;
use super::super::node::{CLOSED, RULES, SchemaObject, append, property};

/// Keywords beside rules that hold for a whole field.
const EXTENSIONS: &[&str] =
    &["x-kubernetes-list-type", "x-kubernetes-list-map-keys", "x-kubernetes-map-type"];

/// The field that names the variant: each alternative requires it with a different value.
#[derive(Debug)]
pub(super) struct Tag {
    /// Name of the field.
    name: String,
    /// The value of each alternative.
    values: Vec<String>,
}

impl Tag {
    /// Finds the tag of several objects.
    pub(super) fn of(nodes: &[SchemaObject]) -> Option<Self> {
        let names = nodes.first()?.get("properties")?.as_object()?.keys();
        names.into_iter().find_map(|name| {
            let values: Option<Vec<String>> =
                nodes.iter().map(|node| tag_value(node, name)).collect();
            let values = values?;
            let differ = (1..values.len()).all(|i| !values[..i].contains(&values[i]));
            differ.then(|| Self { name: name.clone(), values })
        })
    }

    /// Closes variants without data where all others have their data in the same field.
    ///
    /// That is the form of `#[serde(tag = "t", content = "c")]`, whose variants without data refuse
    /// the field. With `tag` alone serde would ignore the field there. The two forms have the same
    /// schema, and refusing a field that no client writes is the safer reading.
    pub(super) fn close(&self, nodes: &mut [SchemaObject]) {
        let others = |node: &SchemaObject| -> Vec<String> {
            let fields = node.get("properties").and_then(Value::as_object);
            fields
                .into_iter()
                .flatten()
                .map(|(name, _)| name.clone())
                .filter(|it| *it != self.name)
                .collect()
        };
        let mut data: Vec<Vec<String>> =
            nodes.iter().map(others).filter(|names| !names.is_empty()).collect();
        data.dedup();
        if data.len() == 1 && data[0].len() == 1 {
            for node in nodes.iter_mut().filter(|node| others(node).is_empty()) {
                node.insert(CLOSED.to_owned(), true.into());
            }
        }
    }

    /// The expression that is true for an object of another variant.
    fn is_other(&self, variant: usize, object: &str) -> Option<String> {
        let name = escape(&self.name)?;
        Some(format!("{object}.{name} != {}", Value::from(self.values.get(variant)?.as_str())))
    }
}

/// The only value that a required field of texts may have.
fn tag_value(node: &SchemaObject, name: &str) -> Option<String> {
    let required = node.get("required")?.as_array()?;
    match property(node, name)?.get("enum")?.as_array()?.as_slice() {
        [Value::String(value)] if required.iter().any(|found| found == name) => Some(value.clone()),
        _ => None,
    }
}

impl Lower<'_> {
    /// Gives the union of `nodes` their rules and list types.
    ///
    /// Those of all alternatives hold for the union; a rule of some becomes conditional, if there
    /// is a tag. A single warning stands for all lost rules.
    pub(super) fn carry(
        &mut self,
        nodes: &[SchemaObject],
        tag: Option<&Tag>,
        union: &mut SchemaObject,
    ) {
        for key in EXTENSIONS {
            let first = nodes.first().and_then(|node| node.get(*key));
            if let Some(same) =
                first.filter(|same| nodes.iter().all(|it| it.get(*key) == Some(*same)))
            {
                union.insert((*key).to_owned(), same.clone());
            } else if nodes.iter().any(|node| node.contains_key(*key)) {
                self.losses += 1;
                self.warn(&format!(
                    "`{key}` of one of its alternatives is lost, since an API server has one for the whole field; \
                     give all alternatives the same"
                ));
            }
        }
        let lists: Vec<&[Value]> = nodes.iter().map(rules).collect();
        let (mut kept, mut is_lost) = (Vec::new(), false);
        for (i, rule) in
            lists.iter().enumerate().flat_map(|(i, list)| list.iter().map(move |it| (i, it)))
        {
            let rule = if lists.iter().all(|list| list.contains(rule)) {
                Some(rule.clone())
            } else {
                tag.and_then(|tag| conditional(rule, tag, i))
            };
            match rule.filter(|rule| compiles(union, rule)) {
                Some(rule) if !kept.contains(&rule) => kept.push(rule),
                Some(_) => {}
                None => is_lost = true,
            }
        }
        if is_lost {
            self.losses += 1;
            self.warn(
                "a rule (`x-kubernetes-validations`) of one of its alternatives is lost, since an API server has \
                 rules for the whole field only: write it on the enum, with a condition that says for which \
                 variant it holds",
            );
        }
        if kept.is_empty() {
            union.remove(RULES);
        } else {
            union.insert(RULES.to_owned(), Value::Array(kept));
        }
    }
}

/// Moves rules of fields that several variants have to the variants.
pub(super) fn hoist(nodes: &mut [SchemaObject]) {
    let before = nodes.to_vec();
    for (i, node) in nodes.iter_mut().enumerate() {
        let peers: Vec<&SchemaObject> =
            before.iter().enumerate().filter(|(j, _)| *j != i).map(|(_, node)| node).collect();
        let mut moved = Vec::new();
        take_rules(node, &peers, &mut vec![], &mut moved);
        if !moved.is_empty() {
            let rules = node.entry(RULES).or_insert_with(|| json!([]));
            append(rules, Value::Array(moved));
        }
    }
}

/// The rules of a schema.
fn rules(node: &SchemaObject) -> &[Value] {
    node.get(RULES).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

/// Takes rules out of the fields of `node` that other alternatives have with other rules, and
/// writes them for `node`.
fn take_rules(
    node: &mut SchemaObject,
    peers: &[&SchemaObject],
    path: &mut Vec<String>,
    moved: &mut Vec<Value>,
) {
    let Some(Value::Object(fields)) = node.get_mut("properties") else { return };
    for (name, field) in fields {
        let Value::Object(field) = field else { continue };
        let peers: Vec<&SchemaObject> =
            peers.iter().filter_map(|peer| property(peer, name)).collect();
        if peers.is_empty() {
            continue;
        }
        path.push(name.clone());
        if peers.iter().any(|peer| peer.get(RULES) != field.get(RULES)) {
            let written: Option<Vec<Value>> =
                rules(field).iter().map(|rule| at_path(rule, path)).collect();
            if let Some(written) = written {
                moved.extend(written);
                field.remove(RULES);
            }
        }
        take_rules(field, &peers, path, moved);
        path.pop();
    }
}

/// The rule of a field, written for an object around it.
fn at_path(rule: &Value, path: &[String]) -> Option<Value> {
    let names: Vec<String> = path.iter().map(|name| escape(name)).collect::<Option<_>>()?;
    let absent = |object: &str| -> Vec<String> {
        let parts = (1..=names.len()).map(|n| format!("!has({object}.{})", names[..n].join(".")));
        parts.collect()
    };
    let source = rule.get("rule")?.as_str()?;
    let mut conditions = absent("self");
    if uses(source, "oldSelf") {
        conditions.extend(absent("oldSelf"));
    }
    let mut rule = guarded(rule, &conditions, &names.join("."))?;
    let field: String = path.iter().map(|name| field_step(name)).collect();
    let inner = rule.get("fieldPath").and_then(Value::as_str).unwrap_or_default();
    rule["fieldPath"] = format!("{field}{inner}").into();
    Some(rule)
}

/// A step of a `fieldPath`.
fn field_step(name: &str) -> String {
    let is_plain = name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    if is_plain { format!(".{name}") } else { format!("['{}']", name.replace('\'', "\\'")) }
}

/// The rule of a single variant, written for all of them.
fn conditional(rule: &Value, tag: &Tag, variant: usize) -> Option<Value> {
    let source = rule.get("rule")?.as_str()?;
    let mut conditions = vec![tag.is_other(variant, "self")?];
    if uses(source, "oldSelf") {
        conditions.push(tag.is_other(variant, "oldSelf")?);
    }
    guarded(rule, &conditions, "")
}

/// A rule that holds where at least one of `conditions` holds, with `self` replaced by a field of
/// `self`.
///
/// `None` for a rule with `optionalOldSelf`, whose old value is no object.
fn guarded(rule: &Value, conditions: &[String], field: &str) -> Option<Value> {
    let source = rule.get("rule")?.as_str()?;
    if rule.get("optionalOldSelf") == Some(&Value::Bool(true)) {
        return None;
    }
    let mut guarded = rule.clone();
    let has = |key: &str| rule.get(key).is_some();
    if !has("message") && !has("messageExpression") {
        guarded["message"] = format!("failed rule: {}", source.replace(['\n', '\r'], " ")).into();
    }
    if let Some(message) = rule.get("messageExpression").and_then(Value::as_str) {
        guarded["messageExpression"] = below(message, field).into();
    }
    guarded["rule"] = format!("{} || ({})", conditions.join(" || "), below(source, field)).into();
    Some(guarded)
}

/// Whether an expression names a variable.
fn uses(source: &str, variable: &str) -> bool {
    identifiers(source).any(|(_, name)| name == variable)
}

/// An expression with `self` and `oldSelf` replaced by a field of them.
fn below(source: &str, field: &str) -> String {
    if field.is_empty() {
        return source.to_owned();
    }
    let mut out = String::new();
    let mut end = 0;
    for (at, name) in identifiers(source).filter(|(_, name)| matches!(*name, "self" | "oldSelf")) {
        end = copy_to(source, end, at + name.len(), &mut out);
        out.push('.');
        out.push_str(field);
    }
    copy_to(source, end, source.len(), &mut out);
    out
}

/// Copies a part of the source.
fn copy_to(source: &str, from: usize, to: usize, out: &mut String) -> usize {
    out.push_str(source.get(from..to).unwrap_or_default());
    to
}

/// The variables and functions of an expression with their positions: names that are neither in a
/// text or a comment, nor members of something.
fn identifiers(source: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut at = 0;
    let mut last = ' ';
    std::iter::from_fn(move || {
        loop {
            let rest = source.get(at..)?;
            let next = rest.chars().next()?;
            if next.is_alphabetic() || next == '_' {
                let length =
                    rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len());
                let (start, is_member) = (at, last == '.');
                at += length;
                last = 'a';
                // `r'…'` and `b'…'` are texts.
                let is_prefix = length <= 2 && source.get(at..)?.starts_with(['\'', '"']);
                if !is_member && !is_prefix {
                    return Some((start, &rest[..length]));
                }
                continue;
            }
            at += skipped(rest, next);
            if !next.is_whitespace() {
                last = next;
            }
        }
    })
}

/// Length of the text, the comment or the single character at the beginning of `rest`.
fn skipped(rest: &str, next: char) -> usize {
    if rest.starts_with("//") {
        return rest.find('\n').unwrap_or(rest.len());
    }
    if !matches!(next, '\'' | '"' | '`') {
        return next.len_utf8();
    }
    let triple = next.to_string().repeat(3);
    let quote = if rest.starts_with(&triple) { triple } else { next.to_string() };
    let mut at = quote.len();
    while let Some(inner) = rest.get(at..).filter(|inner| !inner.is_empty()) {
        if inner.starts_with(&quote) {
            return at + quote.len();
        }
        let escaped = usize::from(inner.starts_with('\\'));
        at += inner.chars().take(1 + escaped).map(char::len_utf8).sum::<usize>();
    }
    rest.len()
}

/// Whether a rule has a meaning for values of `union`. The cost of the rule is judged with the
/// whole definition.
fn compiles(union: &SchemaObject, rule: &Value) -> bool {
    let mut schema = union.clone();
    schema.insert(RULES.to_owned(), json!([rule]));
    // Below the root, as any field is.
    let schema = json!({ "type": "object", "properties": { "field": schema } });
    let at = format!("properties[field].{RULES}");
    let found = check_definition(&schema);
    !found.iter().any(|it| it.reason != Reason::Forbidden && it.path.as_str().starts_with(&at))
}
