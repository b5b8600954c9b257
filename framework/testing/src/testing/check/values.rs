//! Values for a structural schema: some fit, others almost fit.

use std::collections::BTreeMap;
use std::sync::Arc;

use parking_lot::Mutex;
use regex_syntax::hir::Hir;
use serde_json::{Map, Value, json};
use windlass_core::crd::misfit;
use windlass_core::rng::Rng;

use super::texts;

/// Deepest value that is generated.
const DEPTH: usize = 12;
/// Attempts to find a value that fits all conditions at once.
const ATTEMPTS: usize = 12;
/// Texts of many forms, of which the first that fits a pattern or a format is taken.
const TEXTS: &[&str] = &[
    "a",
    "abc",
    "x-1",
    "Ready",
    "",
    "1",
    "10.0.0.1",
    "::1",
    "10.0.0.0/8",
    "2026-01-01",
    "2026-01-01T00:00:00Z",
    "100m",
    "1h",
    "00:00:5e:00:53:01",
    "a.example.org",
    "a@example.org",
    "https://example.org/",
    "/a/b",
    "aGVsbG8=",
    "00000000-0000-4000-8000-000000000000",
    "sha256:0000000000000000000000000000000000000000000000000000000000000000",
];

/// A schema, or conditions beside a schema.
type SchemaObject = Map<String, Value>;

/// A position in a value: names of fields, `[]` for items, `*` for the values of a map.
pub(in crate::testing) type Path = Vec<String>;

/// The part of the optional fields that a generated value has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum OptionalShare {
    None,
    Half,
    All,
}

/// A position that a generated value must have, and its other fields.
#[derive(Clone, Copy, Debug)]
struct ForcedPosition<'a> {
    place: &'a [String],
    share: OptionalShare,
}

/// No position.
const ANYWHERE: ForcedPosition<'static> = ForcedPosition { place: &[], share: OptionalShare::Half };

impl ForcedPosition<'_> {
    /// Whether the position is below a step.
    fn is_below(&self, step: &str) -> bool {
        self.place.first().is_some_and(|first| first == step)
    }

    /// The rest of the position below a step.
    fn below(&self, step: &str) -> Self {
        let place = if self.is_below(step) { &self.place[1..] } else { &[] };
        Self { place, ..*self }
    }
}

/// A generator of values.
#[derive(Debug)]
pub(in crate::testing) struct Values<'a> {
    /// The numbers from which everything follows.
    rng: Rng,
    /// Values that the schema is known to allow; changes start from them.
    examples: &'a [Value],
    /// Patterns that were parsed: each value of a schema looks at the same few.
    expressions: Mutex<BTreeMap<String, Option<Arc<Hir>>>>,
}

impl<'e> Values<'e> {
    /// Returns a generator whose values follow from `rng`, half of them from `examples` if there
    /// are any.
    pub(in crate::testing) fn new(rng: Rng, examples: &'e [Value]) -> Self {
        Self { rng, examples, expressions: Mutex::default() }
    }

    /// Returns the expression of a pattern; `None` for a pattern that cannot be read.
    fn expression(&self, pattern: &str) -> Option<Arc<Hir>> {
        let mut known = self.expressions.lock();
        if let Some(expression) = known.get(pattern) {
            return expression.clone();
        }
        let expression = texts::parsed(pattern).map(Arc::new);
        known.insert(pattern.to_owned(), expression.clone());
        expression
    }

    /// A value that fits the schema, as far as such a value is found.
    pub(in crate::testing) fn fitting(&self, schema: &Value) -> Value {
        if let Some(example) = self.pick(self.examples)
            && self.one_in(2)
        {
            return example.clone();
        }
        self.generated(schema)
    }

    /// A generated value that fits the schema, as far as such a value is found.
    fn generated(&self, schema: &Value) -> Value {
        let mut found = Value::Null;
        for _ in 0..ATTEMPTS {
            found = self.value(&[schema], 0, ANYWHERE);
            if misfit(&found, schema).is_none() {
                break;
            }
        }
        found
    }

    /// A generated value that fits the schema and has a part at `place`, if such a value is found.
    pub(super) fn with_place(
        &self,
        schema: &Value,
        place: &[String],
        share: OptionalShare,
    ) -> Option<Value> {
        let mut values =
            (0..ATTEMPTS).map(|_| self.value(&[schema], 0, ForcedPosition { place, share }));
        values.find(|value| misfit(value, schema).is_none())
    }

    /// A value with a single change that the schema may forbid, and the changed position; without a
    /// position if no value was found that is readable before the change.
    pub(super) fn near_miss(
        &self,
        schema: &Value,
        is_readable: impl Fn(&Value) -> bool,
    ) -> (Value, Path) {
        let mut values = (0..ATTEMPTS).map(|_| self.fitting(schema));
        let Some(mut value) = values.find(is_readable) else {
            return (self.fitting(schema), Path::new());
        };
        let mut places = Vec::new();
        positions(&value, &mut Vec::new(), &mut places);
        let place = self.pick(&places).cloned().unwrap_or_default();
        let other = self.generated(schema);
        let mut path = Vec::new();
        if let Some(target) = at(&mut value, &place, &mut path) {
            let name = self.change(target, at_same(&other, &place));
            path.extend(name);
        }
        (value, path)
    }

    /// Draws an element of several.
    fn pick<'a, T>(&self, all: &'a [T]) -> Option<&'a T> {
        let count = u64::try_from(all.len()).ok().filter(|count| *count > 0)?;
        all.get(usize::try_from(self.rng.below(count)).ok()?)
    }

    /// Whether an optional field is generated.
    fn is_taken(&self, share: OptionalShare) -> bool {
        match share {
            OptionalShare::None => false,
            OptionalShare::Half => self.one_in(2),
            OptionalShare::All => true,
        }
    }

    /// True for one in `n` draws.
    fn one_in(&self, n: u64) -> bool {
        self.rng.below(n) == 0
    }

    /// A value for a schema with conditions beside the schema.
    fn value(&self, nodes: &[&Value], depth: usize, aim: ForcedPosition<'_>) -> Value {
        let nodes = self.chosen(nodes);
        let any = |key: &str| nodes.iter().any(|node| node.get(key) == Some(&Value::Bool(true)));
        if any("nullable") && aim.place.is_empty() && self.one_in(6) {
            return Value::Null;
        }
        let choices: Vec<&Value> = nodes.iter().filter_map(|node| node.get("enum")).collect();
        if let Some(Value::Array(values)) = choices.last() {
            return self.pick(values).cloned().unwrap_or_default();
        }
        match self.kind(&nodes) {
            "object" if depth < DEPTH => self.object(&nodes, depth, aim),
            "array" if depth < DEPTH => self.array(&nodes, depth, aim),
            "object" => json!({}),
            "array" => json!([]),
            "string" => self.text(&nodes),
            "boolean" => self.one_in(2).into(),
            "integer" => self.number(&nodes, true),
            "number" => self.number(&nodes, false),
            _ => self.anything(),
        }
    }

    /// The conditions of a schema with a branch of each alternative.
    fn chosen<'a>(&self, nodes: &[&'a Value]) -> Vec<&'a SchemaObject> {
        let mut chosen = Vec::new();
        let mut open: Vec<&Value> = nodes.to_vec();
        while let Some(node) = open.pop() {
            let Value::Object(node) = node else { continue };
            chosen.push(node);
            let branches = |key: &str| node.get(key).and_then(Value::as_array);
            open.extend(branches("allOf").into_iter().flatten());
            for key in ["oneOf", "anyOf"] {
                open.extend(branches(key).and_then(|all| self.pick(all)));
            }
        }
        chosen
    }

    /// The type of values that the conditions allow; empty for any.
    fn kind(&self, nodes: &[&SchemaObject]) -> &'static str {
        const TYPES: [&str; 6] = ["object", "array", "string", "boolean", "integer", "number"];
        for node in nodes {
            let kind = node.get("type").and_then(Value::as_str);
            if let Some(kind) = TYPES.into_iter().find(|name| Some(*name) == kind) {
                return kind;
            }
        }
        let refuses = |key: &str| {
            let refused =
                |node: &&&SchemaObject| node.get("not").is_some_and(|it| it.get(key).is_some());
            nodes.iter().any(|node| refused(&node))
        };
        let kinds = [
            ("pattern", "string"),
            ("minItems", "array"),
            ("minProperties", "object"),
            ("minimum", "integer"),
        ];
        if let Some((_, kind)) = kinds.into_iter().find(|(key, _)| refuses(key)) {
            return kind;
        }
        let has = |key: &str| nodes.iter().any(|node| node.contains_key(key));
        if has("x-kubernetes-int-or-string") {
            return if self.one_in(2) { "integer" } else { "string" };
        }
        if has("properties") { "object" } else { "" }
    }

    /// A value of any type.
    fn anything(&self) -> Value {
        let values =
            [json!(1), json!("x"), json!(true), json!({ "x": 1 }), json!(["x"]), json!(1.5)];
        self.pick(&values).cloned().unwrap_or_default()
    }

    /// A text that fits the conditions, if one is known.
    fn text(&self, nodes: &[&SchemaObject]) -> Value {
        let start = usize::try_from(self.rng.below(3)).unwrap_or_default();
        let texts = TEXTS.iter().cycle().skip(start).take(TEXTS.len());
        let long = "a".repeat(usize::try_from(bound(nodes, "minLength")).unwrap_or_default());
        let patterns = nodes.iter().filter_map(|node| node.get("pattern")?.as_str());
        let expressions = patterns.filter_map(|pattern| self.expression(pattern));
        let matching = expressions.flat_map(|expression| {
            (0..ATTEMPTS).filter_map(move |_| texts::matching(&expression, &self.rng))
        });
        let texts = texts.map(|text| (*text).to_owned());
        // First those of the pattern: each look at a text compiles the pattern.
        let mut texts = matching.chain(texts).chain([long]).map(Value::from);
        let fits = |text: &Value| {
            nodes.iter().all(|node| misfit(text, &Value::Object((*node).clone())).is_none())
        };
        texts.find(fits).unwrap_or_else(|| "a".into())
    }

    /// A number within the bounds.
    fn number(&self, nodes: &[&SchemaObject], is_integer: bool) -> Value {
        let limits = |key: &str| nodes.iter().filter_map(|node| node.get(key)?.as_f64()).collect();
        let (least, most): (Vec<f64>, Vec<f64>) = (limits("minimum"), limits("maximum"));
        let least = least.into_iter().fold(-10.0, f64::max);
        let most = most.into_iter().fold(least.max(10.0) + 10.0, f64::min);
        let step = limits_step(nodes);
        let candidates = [least, most, ((least + most) / 2.0).floor(), 1.0, 0.0, least + 1.0];
        let within = candidates.into_iter().filter(|n| (least..=most).contains(n));
        let numbers: Vec<f64> = within.map(|n| (n / step).ceil() * step).collect();
        let number = self.pick(&numbers).copied().unwrap_or(least);
        if !is_integer && self.one_in(2) {
            return json!((number + most) / 2.0);
        }
        if is_integer || number.fract() == 0.0 { json!(number as i64) } else { json!(number) }
    }

    /// A list.
    fn array(&self, nodes: &[&SchemaObject], depth: usize, aim: ForcedPosition<'_>) -> Value {
        let items: Vec<&Value> = nodes.iter().filter_map(|node| node.get("items")).collect();
        let least = bound(nodes, "minItems");
        let most = nodes.iter().filter_map(|node| node.get("maxItems")?.as_u64()).min();
        let least = least.max(u64::from(aim.is_below("[]")));
        let count = (least + self.rng.below(3)).min(most.unwrap_or(u64::MAX));
        let mut list = Vec::new();
        for _ in 0..count {
            let item = self.value(&items, depth + 1, aim.below("[]"));
            let is_set = nodes.iter().any(|it| it.contains_key("x-kubernetes-list-type"));
            if !is_set || !list.contains(&item) {
                list.push(item);
            }
        }
        let keys = nodes.iter().find_map(|it| it.get("x-kubernetes-list-map-keys")?.as_array());
        if keys.is_some() {
            // Different keys need more than different items: an item has a single key.
            list.truncate(1);
        }
        Value::Array(list)
    }

    /// An object.
    fn object(&self, nodes: &[&SchemaObject], depth: usize, aim: ForcedPosition<'_>) -> Value {
        let mut names: Vec<&String> = Vec::new();
        for properties in nodes.iter().filter_map(|node| node.get("properties")?.as_object()) {
            names
                .extend(properties.keys().filter(|name| !names.contains(name)).collect::<Vec<_>>());
        }
        let lists = |key: &str| {
            nodes.iter().filter_map(|node| node.get(key)?.as_array()).flatten().collect()
        };
        let required: Vec<&Value> = lists("required");
        let mut object = Map::new();
        for name in required.iter().filter_map(|name| name.as_str()) {
            object.insert(name.to_owned(), self.field(nodes, name, depth, aim));
        }
        for name in names {
            if !object.contains_key(name)
                && !is_forbidden(nodes, name)
                && (aim.is_below(name) || self.is_taken(aim.share))
            {
                object.insert(name.clone(), self.field(nodes, name, depth, aim));
            }
        }
        if nodes.iter().any(|node| node.contains_key("x-kubernetes-embedded-resource")) {
            let head = [
                ("apiVersion", json!("v1")),
                ("kind", json!("ConfigMap")),
                ("metadata", json!({ "name": "a" })),
            ];
            for (name, value) in head {
                // Fields that the schema describes were already generated.
                object.entry(name).or_insert(value);
            }
        }
        let free: Vec<&Value> =
            nodes.iter().filter_map(|node| node.get("additionalProperties")).collect();
        if !free.is_empty() {
            let least = bound(nodes, "minProperties").max(u64::from(aim.is_below("*")));
            let most = nodes.iter().filter_map(|node| node.get("maxProperties")?.as_u64()).min();
            let names = texts::key_names(nodes);
            for i in 0..self.rng.below(3).max(least).min(most.unwrap_or(u64::MAX)) {
                // Keys of many maps are numbers.
                let name = names.get(i as usize).cloned().unwrap_or_else(|| i.to_string());
                object.insert(name, self.value(&free, depth + 1, aim.below("*")));
            }
        }
        Value::Object(object)
    }

    /// The value of a field.
    fn field(
        &self,
        nodes: &[&SchemaObject],
        name: &str,
        depth: usize,
        aim: ForcedPosition<'_>,
    ) -> Value {
        let schemas: Vec<&Value> =
            nodes.iter().filter_map(|node| node.get("properties")?.get(name)).collect();
        if schemas.is_empty() {
            return self.anything();
        }
        self.value(&schemas, depth + 1, aim.below(name))
    }

    /// Changes a value a little; returns the name of a field that was changed inside the value.
    fn change(&self, target: &mut Value, other: Option<&Value>) -> Option<String> {
        if let Value::Object(fields) = target
            && !self.one_in(3)
        {
            return self.change_fields(fields, other);
        }
        if let Value::Array(list) = target
            && self.one_in(2)
        {
            let more = self.pick(list).cloned().unwrap_or_else(|| self.anything());
            list.push(more);
            return Some("[]".to_owned());
        }
        *target = match (&*target, self.rng.below(4)) {
            (_, 0) => Value::Null,
            (Value::Number(number), 1) => json!(number.as_f64().unwrap_or_default() + 0.5),
            (Value::Number(_), 2) => json!(-70_000),
            (Value::String(_), 1) => json!(""),
            (Value::String(text), 2) => json!(format!("{text}!")),
            (_, 3) => other.cloned().unwrap_or(Value::Null),
            _ => self.anything(),
        };
        None
    }

    /// Removes, adds or takes over a field.
    fn change_fields(&self, fields: &mut SchemaObject, other: Option<&Value>) -> Option<String> {
        let names: Vec<String> = fields.keys().cloned().collect();
        match (self.rng.below(3), self.pick(&names)) {
            (0, Some(name)) => {
                fields.remove(name);
                Some(name.clone())
            }
            // A field of another variant.
            (1, _) => {
                let missing: Vec<(&String, &Value)> = other?
                    .as_object()?
                    .iter()
                    .filter(|(name, _)| !fields.contains_key(*name))
                    .collect();
                let (name, value) = self.pick(&missing)?;
                fields.insert((*name).clone(), (*value).clone());
                Some((*name).clone())
            }
            _ => {
                fields.insert("unknown".to_owned(), self.anything());
                Some("unknown".to_owned())
            }
        }
    }
}

/// The largest lower bound of a size.
fn bound(nodes: &[&SchemaObject], key: &str) -> u64 {
    nodes.iter().filter_map(|node| node.get(key)?.as_u64()).max().unwrap_or_default()
}

/// The unit of which numbers must be multiples.
fn limits_step(nodes: &[&SchemaObject]) -> f64 {
    let units = nodes.iter().filter_map(|node| node.get("multipleOf")?.as_f64());
    units.fold(1.0, f64::max)
}

/// Whether a condition forbids a field.
fn is_forbidden(nodes: &[&SchemaObject], name: &str) -> bool {
    let requires = |schema: &Value| {
        let required = schema.get("required").and_then(Value::as_array);
        required.is_some_and(|names| names.iter().any(|found| found == name))
    };
    let refused = nodes.iter().filter_map(|node| node.get("not"));
    refused.into_iter().any(|not| {
        requires(not)
            || not
                .get("anyOf")
                .and_then(Value::as_array)
                .is_some_and(|all| all.iter().any(requires))
    })
}

/// Collects the positions in a value: names, and indexes as numbers.
fn positions(value: &Value, here: &mut Path, found: &mut Vec<Path>) {
    found.push(here.clone());
    let mut below = |step: String, value: &Value| {
        here.push(step);
        positions(value, here, found);
        here.pop();
    };
    match value {
        Value::Object(fields) => fields.iter().for_each(|(name, value)| below(name.clone(), value)),
        Value::Array(list) => {
            list.iter().enumerate().for_each(|(i, value)| below(i.to_string(), value));
        }
        _ => {}
    }
}

/// The value at a position; `path` receives the steps with `[]` for items.
fn at<'a>(value: &'a mut Value, place: &[String], path: &mut Path) -> Option<&'a mut Value> {
    let Some((step, rest)) = place.split_first() else { return Some(value) };
    let below = match value {
        Value::Array(list) => {
            path.push("[]".to_owned());
            list.get_mut(step.parse::<usize>().ok()?)?
        }
        Value::Object(fields) => {
            path.push(step.clone());
            fields.get_mut(step)?
        }
        _ => return None,
    };
    at(below, rest, path)
}

/// The value at the same position of another value.
fn at_same<'a>(value: &'a Value, place: &[String]) -> Option<&'a Value> {
    place.iter().try_fold(value, |value, step| match value {
        Value::Array(list) => list.first(),
        Value::Object(fields) => fields.get(step),
        _ => None,
    })
}
