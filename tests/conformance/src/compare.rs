//! Comparison of answers at four levels, and the table of a run.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::script::{Answer, Script};

/// The strictest level at which two answers are equal.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum Level {
    /// Not even the code is equal.
    Nothing,
    /// The code.
    Code,
    /// The code, the reason, and the reasons and fields of causes.
    Reason,
    /// The keys and types of the body as well.
    Structure,
    /// Everything: body and headers.
    Exact,
}

/// Returns the level at which an answer equals the recorded answer.
pub fn level(recorded: &Answer, played: &Answer) -> Level {
    if recorded.unstable && recorded.code == 0 {
        return Level::Exact;
    }
    if recorded.code != played.code {
        return Level::Nothing;
    }
    if recorded.unstable || recorded.body == played.body && recorded.headers == played.headers {
        return Level::Exact;
    }
    if reason(&recorded.body) != reason(&played.body) {
        return Level::Code;
    }
    if shape(&recorded.body) == shape(&played.body) { Level::Structure } else { Level::Reason }
}

/// Returns the reason of a failure with the reasons and fields of the causes.
fn reason(body: &Value) -> Value {
    if let Some(events) = body["events"].as_array() {
        let kind = |event: &Value| json!([event["type"], event["object"]["metadata"]["name"]]);
        return events.iter().map(kind).collect();
    }
    let causes = body["details"]["causes"].as_array().cloned().unwrap_or_default();
    let causes: Vec<Value> =
        causes.iter().map(|cause| json!([cause["reason"], cause["field"]])).collect();
    json!([body["reason"], causes])
}

/// Returns a value with all scalars replaced by the names of their types.
fn shape(value: &Value) -> Value {
    match value {
        Value::Array(items) => items.iter().map(shape).collect(),
        Value::Object(fields) => {
            fields.iter().map(|(name, field)| (name.clone(), shape(field))).collect()
        }
        Value::String(_) => json!("string"),
        Value::Number(_) => json!("number"),
        Value::Bool(_) => json!("boolean"),
        Value::Null => Value::Null,
    }
}

/// Returns a sentence about the first place where two answers differ.
pub fn describe(recorded: &Answer, played: &Answer) -> String {
    if recorded.code != played.code {
        let message = played.body["message"].as_str().unwrap_or_default();
        return cut(&format!("code {} for {}: {message}", played.code, recorded.code));
    }
    let place = place("", &recorded.body, &played.body);
    place.map_or_else(
        || cut(&format!("headers {:?} for {:?}", played.headers, recorded.headers)),
        |(path, is, should)| cut(&format!("{path} is {is}, recorded {should}")),
    )
}

/// Returns the kind of a difference: both codes and the refusal, or the place without the numbers
/// of items.
pub fn signature(recorded: &Answer, played: &Answer) -> String {
    if recorded.code != played.code {
        let (real, ours) = (refusal(&recorded.body), refusal(&played.body));
        return format!("code {} {ours} for {} {real}", played.code, recorded.code);
    }
    let place = place("", &recorded.body, &played.body).map(|(place, ..)| place);
    let place = place.unwrap_or_else(|| "headers".to_owned());
    let parts = place.split('/').filter(|part| part.parse::<usize>().is_err());
    let refused = [refusal(&recorded.body), refusal(&played.body)];
    format!("{} {}", parts.collect::<Vec<_>>().join("/"), refused.join(" for "))
}

/// Returns the reason of a refusal with the fields and texts of the causes.
fn refusal(body: &Value) -> String {
    let causes = body["details"]["causes"].as_array().cloned().unwrap_or_default();
    let text = |cause: &Value| format!("{} {}", cause["field"], cause["message"]);
    let causes: Vec<String> = causes.iter().map(text).collect();
    format!("{} {}", body["reason"], causes.join(", "))
}

/// Returns a sentence of a length that fits into a line of a list.
fn cut(text: &str) -> String {
    let text = text.replace('\n', " ");
    let mut cut: String = text.chars().take(200).collect();
    if cut.len() < text.len() {
        cut.push('…');
    }
    cut.trim_end().to_owned()
}

/// Returns the first differing place: the pointer, the played and the recorded value.
fn place(at: &str, recorded: &Value, played: &Value) -> Option<(String, String, String)> {
    if recorded == played {
        return None;
    }
    match (recorded, played) {
        (Value::Object(one), Value::Object(other)) => {
            let keys: std::collections::BTreeSet<&String> =
                one.keys().chain(other.keys()).collect();
            keys.into_iter().find_map(|key| match (one.get(key), other.get(key)) {
                (Some(one), Some(other)) => place(&format!("{at}/{key}"), one, other),
                (one, other) => Some((format!("{at}/{key}"), word(other), word(one))),
            })
        }
        (Value::Array(one), Value::Array(other)) if one.len() == other.len() => {
            let mut pairs = one.iter().zip(other).enumerate();
            pairs.find_map(|(index, (one, other))| place(&format!("{at}/{index}"), one, other))
        }
        _ => Some((at.to_owned(), played.to_string(), recorded.to_string())),
    }
}

/// Returns a value, or the word for an absent value.
fn word(value: Option<&Value>) -> String {
    value.map_or_else(|| "absent".to_owned(), Value::to_string)
}

/// The number of steps at each level.
#[derive(Clone, Copy, Debug, Default)]
pub struct Count {
    scripts: usize,
    steps: usize,
    code: usize,
    reason: usize,
    structure: usize,
    exact: usize,
}

impl Count {
    /// Counts a step.
    fn add(&mut self, level: Level) {
        self.steps += 1;
        self.code += usize::from(level >= Level::Code);
        self.reason += usize::from(level >= Level::Reason);
        self.structure += usize::from(level >= Level::Structure);
        self.exact += usize::from(level == Level::Exact);
    }
}

/// Returns the table by tier and by area.
pub fn table(scripts: &[Script], levels: &[Vec<Level>]) -> String {
    let mut rows: BTreeMap<(u8, String), Count> = BTreeMap::new();
    for (script, levels) in scripts.iter().zip(levels) {
        let names =
            [(0, format!("tier {}", script.tier)), (1, script.area.clone()), (2, "all".to_owned())];
        for name in names {
            let count = rows.entry(name).or_default();
            count.scripts += 1;
            levels.iter().for_each(|level| count.add(*level));
        }
    }
    let mut text = String::from(
        "| | scripts | steps | code | reason | structure | exact |\n|---|--:|--:|--:|--:|--:|--:|\n",
    );
    for ((_, name), count) in rows {
        let share =
            |part: usize| format!("{:.1} %", part as f64 * 100.0 / count.steps.max(1) as f64);
        let (code, reason) = (share(count.code), share(count.reason));
        let (structure, exact) = (share(count.structure), share(count.exact));
        let line = [
            name,
            count.scripts.to_string(),
            count.steps.to_string(),
            code,
            reason,
            structure,
            exact,
        ];
        text.push_str(&format!("| {} |\n", line.join(" | ")));
    }
    text
}
