//! Normal form of answers: values that servers choose freely become symbols.
//!
//! Uids, versions and generated names are numbered within a script, versions in their order, so
//! that equality and order still count. Times, addresses, tokens and positions of lists become
//! fixed words.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

use http::HeaderMap;
use regex::{Captures, Regex};
use serde_json::{Map, Value, json};

use crate::script::{Answer, Step};

/// Headers that count.
const HEADERS: [&str; 8] = [
    "content-type",
    "warning",
    "retry-after",
    "location",
    "vary",
    "allow",
    "etag",
    "content-encoding",
];

/// Returns the pattern of a constant.
#[expect(clippy::expect_used, reason = "the patterns are constants of this file")]
pub(crate) fn pattern(text: &str) -> Regex {
    Regex::new(text).expect("a valid pattern")
}

static UID: LazyLock<Regex> = LazyLock::new(|| {
    pattern("[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}")
});
static TIME: LazyLock<Regex> =
    LazyLock::new(|| pattern(r"20[2-9]\d-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)"));
static JWT: LazyLock<Regex> = LazyLock::new(|| pattern(r"eyJ[\w-]+\.[\w-]+\.[\w-]+"));
static ADDRESS: LazyLock<Regex> = LazyLock::new(|| pattern(r"\b10\.(0|9|96)\.\d+\.\d+\b"));
static CURRENT: LazyLock<Regex> = LazyLock::new(|| pattern(r"current: \d+"));
static OLD: LazyLock<Regex> = LazyLock::new(|| pattern(r"(too old resource version: )\d+ \(\d+\)"));
static KEY: LazyLock<Regex> = LazyLock::new(|| pattern(r"Key: [^,]+,"));
static NUMBER: LazyLock<Regex> = LazyLock::new(|| pattern(r"\b\d{2,}\b"));
static AGE: LazyLock<Regex> =
    LazyLock::new(|| pattern(r"^(\d+(s|ms|m\d*s?|y\d+d)|<unknown>|<invalid>)$"));
/// The age in a cell of restarts, which grows by the day.
static LAST_RESTART: LazyLock<Regex> = LazyLock::new(|| pattern(r" \(\d+y\d+d ago\)$"));

/// An answer before the symbols of the script are known.
#[derive(Clone, Debug)]
pub struct Raw {
    code: u16,
    headers: BTreeMap<String, String>,
    body: Value,
}

impl Raw {
    /// Keeps the parts of an answer that count.
    pub fn new(step: &Step, code: u16, headers: &HeaderMap, body: &[u8]) -> Self {
        let mut kept = BTreeMap::new();
        for name in HEADERS {
            let values = headers.get_all(name).iter().filter_map(|value| value.to_str().ok());
            let mut values: Vec<&str> = values.collect();
            values.sort_unstable();
            let text = values.join("\n");
            let is_usual = name == "content-type" && text == "application/json";
            if !text.is_empty() && !is_usual {
                kept.insert(name.to_owned(), if name == "etag" { "set".into() } else { text });
            }
        }
        Self { code, headers: kept, body: picked(step, without_root(document(step, code, body))) }
    }
}

/// Returns a body as a value: JSON, the events of a watch, text, or the length of bytes.
fn document(step: &Step, code: u16, body: &[u8]) -> Value {
    let Ok(text) = std::str::from_utf8(body) else {
        return json!(format!(
            "{} bytes of binary data",
            if body.is_empty() { "no" } else { "some" }
        ));
    };
    if let Some(wanted) = step.events.filter(|_| code == 200) {
        // A cut watch may end within a line.
        let lines = text.split_inclusive('\n').filter(|line| line.ends_with('\n')).take(wanted);
        let events: Result<Vec<Value>, _> = lines.map(serde_json::from_str).collect();
        return events.map_or_else(|_| json!(text), |events| json!({"events": events}));
    }
    serde_json::from_str(text).unwrap_or_else(|_| json!(text))
}

/// Name of the ConfigMap that a controller writes to every namespace, if that controller runs.
const ROOT: &str = "kube-root-ca.crt";

/// Leaves the root certificate's ConfigMap out of lists, tables and events.
fn without_root(mut body: Value) -> Value {
    for (list, name) in [
        ("items", "/metadata/name"),
        ("rows", "/object/metadata/name"),
        ("events", "/object/metadata/name"),
    ] {
        if let Some(items) = body.get_mut(list).and_then(Value::as_array_mut) {
            items.retain(|item| {
                // Rows may have no object.
                let name = item.pointer(name).or_else(|| item.pointer("/cells/0"));
                name.is_none_or(|name| name != ROOT)
            });
        }
    }
    body
}

/// Returns the parts of a body that a step names.
fn picked(step: &Step, body: Value) -> Value {
    if step.pick.is_empty() || body["kind"] == "Status" {
        return body;
    }
    let part =
        |pointer: &String| (pointer.clone(), body.pointer(pointer).cloned().unwrap_or_default());
    Value::Object(step.pick.iter().map(part).collect())
}

/// The symbols of a script.
#[derive(Debug, Default)]
struct Symbols {
    versions: BTreeSet<u64>,
    /// Uids that several answers have.
    repeated: BTreeSet<String>,
    /// Their numbers.
    uids: BTreeMap<String, usize>,
    names: BTreeMap<String, String>,
}

/// Appends the uids in a value, in the order of sorted keys.
fn collect(value: &Value, uids: &mut Vec<String>) {
    match value {
        Value::String(text) => {
            uids.extend(UID.find_iter(text).map(|found| found.as_str().to_owned()));
        }
        Value::Array(items) => items.iter().for_each(|item| collect(item, uids)),
        Value::Object(fields) => {
            let sorted: BTreeMap<&String, &Value> = fields.iter().collect();
            sorted.values().for_each(|field| collect(field, uids));
        }
        _ => {}
    }
}

/// Returns the answers of a script in normal form; `unique` is the script's part of names.
pub fn script(unique: &str, answers: Vec<Raw>) -> Vec<Answer> {
    let mut symbols = Symbols::default();
    let mut seen = BTreeSet::new();
    for answer in &answers {
        symbols.learn(&answer.body);
        let mut uids = Vec::new();
        collect(&answer.body, &mut uids);
        for uid in uids.iter().collect::<BTreeSet<_>>() {
            // Once for each answer.
            if seen.contains(uid) {
                symbols.repeated.insert(uid.clone());
            }
        }
        for uid in uids {
            if symbols.repeated.contains(&uid) {
                let next = symbols.uids.len() + 1;
                symbols.uids.entry(uid.clone()).or_insert(next);
            }
            seen.insert(uid);
        }
    }
    let change = |answer: Raw| Answer {
        code: answer.code,
        headers: answer
            .headers
            .into_iter()
            .map(|(name, value)| (name, symbols.text(unique, &value)))
            .collect(),
        body: ordered(symbols.value(unique, "", answer.body)),
        unstable: false,
    };
    answers.into_iter().map(change).collect()
}

/// Returns whether an object stands for a list or a place in a watch, not for a stored object.
fn is_position(object: &Map<String, Value>) -> bool {
    object.contains_key("items")
        || object.contains_key("columnDefinitions")
        || object.get("metadata").is_some_and(|metadata| {
            metadata.as_object().is_some_and(|metadata| !metadata.contains_key("name"))
        })
}

impl Symbols {
    /// Collects versions and generated names.
    fn learn(&mut self, value: &Value) {
        match value {
            Value::Array(items) => items.iter().for_each(|item| self.learn(item)),
            Value::Object(fields) => {
                fields.values().for_each(|field| self.learn(field));
                let Some(metadata) = fields.get("metadata") else { return };
                let version = metadata["resourceVersion"].as_str().unwrap_or_default();
                if !is_position(fields) {
                    self.versions.extend(version.parse::<u64>());
                }
                let (base, name) = (metadata["generateName"].as_str(), metadata["name"].as_str());
                if let (Some(base), Some(name)) = (base, name)
                    && let Some(suffix) = name.strip_prefix(base.get(..58).unwrap_or(base))
                    && suffix.len() == 5
                {
                    let symbol = format!("{base}<{}>", self.names.len() + 1);
                    self.names.entry(name.to_owned()).or_insert(symbol);
                }
            }
            _ => {}
        }
    }

    /// Returns the symbol of a version.
    fn version(&self, number: u64) -> Option<String> {
        let rank = self.versions.iter().position(|known| *known == number)?;
        Some(format!("R{}", rank + 1))
    }

    /// Returns a value with symbols; `key` is the value's name in the enclosing object.
    fn value(&self, unique: &str, key: &str, value: Value) -> Value {
        match value {
            Value::String(text) => json!(self.string(unique, key, &text)),
            Value::Array(items) => {
                items.into_iter().map(|item| self.value(unique, key, item)).collect()
            }
            Value::Object(fields) => {
                let is_position = is_position(&fields);
                let mut out = Map::new();
                // Sorted: uids are numbered in the order of their keys.
                let sorted: BTreeMap<String, Value> = fields.into_iter().collect();
                for (name, field) in sorted {
                    let mut field = self.value(unique, &name, field);
                    if name == "managedFields"
                        && let Some(entries) = field.as_array_mut()
                    {
                        // Servers sort entries of the same second by chance.
                        entries.sort_by_key(owner);
                    }
                    if name == "metadata" && is_position {
                        mask_position(&mut field);
                    }
                    out.insert(self.text(unique, &name), field);
                }
                Value::Object(out)
            }
            Value::Number(_) if key == "nodePort" || key == "healthCheckNodePort" => json!("PORT"),
            other => other,
        }
    }

    /// Returns a string with symbols.
    fn string(&self, unique: &str, key: &str, text: &str) -> String {
        if key == "resourceVersion" {
            let known = text.parse().ok().and_then(|number| self.version(number));
            return known.unwrap_or_else(|| text.to_owned());
        }
        if key.ends_with("continue") && !text.is_empty() {
            return "CONTINUE".to_owned();
        }
        // Sentences about fields and columns are the server's own.
        if key == "description" {
            return "TEXT".to_owned();
        }
        if key == "serverAddress" {
            return "HOST".to_owned();
        }
        if key.ends_with("cells") && AGE.is_match(text) {
            return "AGE".to_owned();
        }
        if key.ends_with("cells") && LAST_RESTART.is_match(text) {
            return LAST_RESTART.replace(text, " (AGE ago)").into_owned();
        }
        self.text(unique, text)
    }

    /// Returns a text with symbols.
    fn text(&self, unique: &str, text: &str) -> String {
        let mut text = shortened(text).replace(unique, "${u}");
        for (name, symbol) in &self.names {
            text = text.replace(&name.replace(unique, "${u}"), &symbol.replace(unique, "${u}"));
        }
        let text = UID.replace_all(&text, |found: &Captures<'_>| {
            self.uids.get(&found[0]).map_or_else(|| "UID".to_owned(), |number| format!("U{number}"))
        });
        let text =
            TIME.replace_all(
                &text,
                |found: &Captures<'_>| {
                    if found.get(1).is_some() { "TIME.MICRO" } else { "TIME" }
                },
            );
        let text = JWT.replace_all(&text, "JWT");
        let text = ADDRESS.replace_all(&text, "ADDRESS");
        let text = CURRENT.replace_all(&text, "current: N");
        let text = OLD.replace_all(&text, "${1}N (N)");
        let text = KEY.replace_all(&text, "Key: K,").into_owned();
        if !text.to_lowercase().contains("resourceversion") && !text.contains("resource version") {
            return text;
        }
        let symbol = |found: &Captures<'_>| {
            let known = found[0].parse().ok().and_then(|number| self.version(number));
            known.unwrap_or_else(|| found[0].to_owned())
        };
        NUMBER.replace_all(&text, symbol).into_owned()
    }
}

/// Returns the parts of a managed fields' entry that distinguish the entry from others.
fn owner(entry: &Value) -> String {
    ["manager", "operation", "subresource", "apiVersion"]
        .map(|part| entry[part].to_string())
        .join(" ")
}

/// Writes runs of the same character as `<<N*c>>`.
fn shortened(text: &str) -> String {
    /// Shortest run that is rewritten.
    const RUN: usize = 300;
    if text.len() < RUN {
        return text.to_owned();
    }
    let mut out = String::new();
    let mut letters = text.chars().peekable();
    while let Some(letter) = letters.next() {
        let mut count = 1;
        while letters.next_if_eq(&letter).is_some() {
            count += 1;
        }
        if count < RUN {
            out.extend(std::iter::repeat_n(letter, count));
        } else {
            out.push_str(&format!("<<{count}*{letter}>>"));
        }
    }
    out
}

/// Masks the version of a list's or bookmark's metadata.
fn mask_position(metadata: &mut Value) {
    if let Some(version) = metadata.get_mut("resourceVersion")
        && version.as_str().is_some_and(|text| text != "0" && !text.is_empty())
    {
        *version = json!("NOW");
    }
}

/// Returns a Status with the causes in order; a message that repeats them is cut.
fn ordered(mut body: Value) -> Value {
    if body["kind"] != "Status" {
        return body;
    }
    let is_custom = body["details"]["group"].as_str().is_some_and(is_custom);
    let Some(causes) = body.pointer_mut("/details/causes").and_then(Value::as_array_mut) else {
        return body;
    };
    // kube-apiserver walks through the managers and through the properties of a schema without an
    // order, and so through labels and annotations.
    let is_conflict = |cause: &Value| cause["reason"] == "FieldManagerConflict";
    if is_custom || causes.iter().any(is_conflict) {
        causes.sort_by_key(Value::to_string);
    } else {
        let is_map = |cause: &Value| {
            let field = cause["field"].as_str().unwrap_or_default();
            field.ends_with("labels") || field.ends_with("annotations")
        };
        let runs = causes.chunk_by_mut(|a, b| a["field"] == b["field"]);
        runs.filter(|run| is_map(&run[0])).for_each(|run| run.sort_by_key(Value::to_string));
    }
    if causes.len() > 1
        && let Some(message) = body["message"].as_str()
        && let Some((head, _)) = message.split_once(": [")
    {
        body["message"] = json!(format!("{head}: [...]"));
    }
    body
}

/// Whether a group is that of a definition: those of kube-apiserver have no dot or a common end.
fn is_custom(group: &str) -> bool {
    group.contains('.') && !group.ends_with(".k8s.io")
}
