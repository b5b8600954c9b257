//! Scripts and recorded answers, as lines of JSON in files.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Area of the scripts that run first, in sequence: the definitions that others use.
pub const FIXTURES: &str = "fixtures";

/// A list of requests that only meet objects of their own.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Script {
    /// Unique name.
    pub id: String,
    /// Tier of the behaviour: 1 is needed by every controller, 3 is completeness.
    pub tier: u8,
    /// Description in a few words.
    pub title: String,
    /// Requests in order.
    pub steps: Vec<Step>,
    /// Stem of the file.
    #[serde(skip)]
    pub area: String,
}

/// A request, repeated if the step waits for a condition.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct Step {
    /// Method and path, such as `GET /api/v1/namespaces`.
    #[serde(rename = "do")]
    pub request: String,
    /// Body as JSON.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub body: Option<Value>,
    /// Body as text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub raw: Option<String>,
    /// Content-Type; the default is JSON if there is a body.
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    pub content_type: Option<String>,
    /// More headers.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub headers: BTreeMap<String, String>,
    /// User to impersonate.
    #[serde(rename = "as", skip_serializing_if = "Option::is_none")]
    pub user: Option<String>,
    /// Groups to impersonate.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub groups: Vec<String>,
    /// Bearer token instead of the administrator's; an empty token sends no credentials.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub token: Option<String>,
    /// Variables with the pointers to their values in the answer.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub set: BTreeMap<String, String>,
    /// Condition of the last answer of a repeated request.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub until: Option<Until>,
    /// Number of watch events after which the watch is cut.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub events: Option<usize>,
    /// Text of the event after which the watch is cut.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub last: String,
    /// Whether the body is sent, and the answer read, as protobuf.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub protobuf: bool,
    /// Pointers to the compared parts of a long body; empty for the whole body.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub pick: Vec<String>,
}

/// Condition of an answer.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct Until {
    /// Status code.
    pub code: Option<u16>,
    /// Pointer to a value.
    pub at: String,
    /// The value there; null if the value is to be absent.
    pub is: Value,
}

/// An answer in normal form.
#[derive(Clone, Debug, Default, Deserialize, Serialize, PartialEq)]
#[serde(deny_unknown_fields, default)]
pub struct Answer {
    /// Status code; 0 if the connection was closed without an answer.
    pub code: u16,
    /// Headers that count.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub headers: BTreeMap<String, String>,
    /// Body: JSON, a text, or the events of a watch.
    pub body: Value,
    /// Parts that differ between recordings: the code alone is compared.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub unstable: bool,
}

/// The recorded answers to a script.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct Recording {
    /// Id of the script.
    pub id: String,
    /// Answers in the order of the steps.
    pub answers: Vec<Answer>,
}

/// Returns the folder of this package.
pub fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

/// Returns the files of a folder and of its folders that end with `.jsonl`, sorted.
fn files(folder: &Path) -> std::io::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            found.extend(files(&path)?);
        } else if path.extension().is_some_and(|end| end == "jsonl") {
            found.push(path);
        }
    }
    found.sort();
    Ok(found)
}

/// Returns the name of a file without the ending.
fn stem(path: &Path) -> String {
    path.file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default()
}

/// Returns the values of a file of lines.
fn lines<T: for<'de> Deserialize<'de>>(path: &Path) -> Result<Vec<T>, String> {
    let text = std::fs::read_to_string(path).map_err(|e| format!("{}: {e}", path.display()))?;
    let parse = |(number, line): (usize, &str)| {
        serde_json::from_str(line).map_err(|e| format!("{}:{}: {e}", path.display(), number + 1))
    };
    text.lines().enumerate().filter(|(_, line)| !line.is_empty()).map(parse).collect()
}

/// Returns every script, the fixtures first.
///
/// # Errors
/// A file cannot be read, or two scripts share an id.
pub fn scripts() -> Result<Vec<Script>, String> {
    let mut all = Vec::new();
    let mut ids = std::collections::BTreeSet::new();
    for path in files(&folder().join("corpus")).map_err(|e| format!("corpus: {e}"))? {
        for mut script in lines::<Script>(&path)? {
            script.area = stem(&path);
            if !ids.insert(script.id.clone()) {
                return Err(format!("two scripts have the id {}", script.id));
            }
            all.push(script);
        }
    }
    all.sort_by_key(|script| script.area != FIXTURES);
    Ok(all)
}

/// Returns the recorded answers by the ids of scripts.
///
/// # Errors
/// A file cannot be read.
pub fn recordings() -> Result<BTreeMap<String, Vec<Answer>>, String> {
    let mut all = BTreeMap::new();
    for path in files(&folder().join("recorded")).map_err(|e| format!("recorded: {e}"))? {
        let read = lines::<Recording>(&path)?;
        all.extend(read.into_iter().map(|recording| (recording.id, recording.answers)));
    }
    Ok(all)
}

/// Writes the recorded answers of an area.
///
/// # Errors
/// The file cannot be written.
pub fn write(area: &str, recordings: &[Recording]) -> Result<(), String> {
    let path = folder().join("recorded").join(format!("{area}.jsonl"));
    let mut text = String::new();
    for recording in recordings {
        let line = serde_json::to_string(recording).map_err(|error| error.to_string())?;
        text.push_str(&line);
        text.push('\n');
    }
    std::fs::write(&path, text).map_err(|error| format!("{}: {error}", path.display()))
}
