//! Statuses of all shapes, stored in part.

use std::collections::BTreeMap;

use serde_json::json;

use super::*;
use crate::conditions::Conditions;

/// Reads as the derive macro does.
macro_rules! read {
    ($type:ty, $json:expr) => {{
        static FILLING: Filling = Filling::new();
        let missing = FILLING.get(|| (&Of::<$type>::new()).missing());
        let text = $json.to_string();
        let mut deserializer = serde_json::Deserializer::from_str(&text);
        let seed = Optional::<$type> { missing, status: PhantomData };
        seed.deserialize(&mut deserializer).map_err(|error| error.to_string())
    }};
}

macro_rules! missing {
    ($type:ty) => {
        (&Of::<$type>::new()).missing().iter().map(|one| one.name.clone()).collect::<Vec<_>>()
    };
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Status {
    conditions: Conditions,
    #[serde(alias = "link")]
    public_url: String,
    phase: Phase,
    replicas: i32,
    #[serde(default)]
    seen: i64,
    note: Option<String>,
    parts: BTreeMap<String, Part>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
enum Phase {
    Running,
    #[default]
    Pending,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
struct Part {
    ready: bool,
}

impl Default for Status {
    fn default() -> Self {
        Self {
            conditions: Conditions::new(),
            public_url: "unknown".to_owned(),
            phase: Phase::default(),
            replicas: -1,
            seen: 7,
            note: None,
            parts: BTreeMap::new(),
        }
    }
}

#[test]
fn fields_that_serde_misses_are_those_of_the_default_and_others_are_not() {
    assert_eq!(missing!(Status), ["parts", "phase", "publicUrl", "replicas"]);
    let condition = json!({
        "type": "Ready", "status": "True", "reason": "Serving", "message": "",
        "lastTransitionTime": "2026-01-01T00:00:00Z",
    });
    let read = read!(Status, json!({ "conditions": [condition], "replicas": 3 })).unwrap().unwrap();
    assert!(read.conditions.is_met("Ready"));
    let expected =
        Status { conditions: read.conditions.clone(), replicas: 3, seen: 0, ..Status::default() };
    assert_eq!(read, expected, "`seen` has a default of its own");
    for name in ["publicUrl", "link"] {
        let read = read!(Status, json!({ name: "https://a" })).unwrap().unwrap();
        assert_eq!(read.public_url, "https://a", "{name}");
    }
}

#[test]
fn a_whole_status_an_empty_one_and_none_are_read_as_ever() {
    let whole = Status { replicas: 4, note: Some("x".to_owned()), ..Status::default() };
    assert_eq!(read!(Status, serde_json::to_value(&whole).unwrap()).unwrap(), Some(whole));
    assert_eq!(read!(Status, Value::Null).unwrap(), None);
    let empty = read!(Status, json!({})).unwrap().unwrap();
    assert_eq!(empty, Status { seen: 0, ..Status::default() });
}

#[test]
fn what_is_there_and_wrong_is_still_refused() {
    let fault = read!(Status, json!({ "replicas": "three" })).unwrap_err();
    assert!(fault.contains("invalid type") && fault.contains("i32"), "{fault}");
    let fault = read!(Status, json!({ "parts": { "a": {} } })).unwrap_err();
    assert!(fault.contains("missing field `ready`"), "only the status itself is in part: {fault}");
    assert!(read!(Status, json!([1])).is_err() && read!(Status, json!("text")).is_err());
}

#[derive(Debug, Serialize, Deserialize)]
struct NoDefault {
    conditions: Conditions,
    url: String,
}

#[derive(Debug, Default, Serialize, Deserialize)]
struct OnlyConditions {
    conditions: Conditions,
}

#[derive(Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
struct AllByDefault {
    url: String,
}

#[derive(Debug, Default, Serialize, Deserialize)]
struct NeverReads {
    #[serde(skip_serializing_if = "String::is_empty")]
    url: String,
}

#[test]
fn conditions_and_types_whose_fields_have_defaults_need_nothing() {
    assert_eq!(missing!(OnlyConditions), [""; 0]);
    assert_eq!(missing!(AllByDefault), [""; 0]);
    assert!(read!(OnlyConditions, json!({})).unwrap().unwrap().conditions.is_empty());
    assert!(read!(OnlyConditions, json!({ "conditions": null })).unwrap().is_some());
    assert_eq!(read!(AllByDefault, json!({})).unwrap(), Some(AllByDefault::default()));
}

#[test]
fn a_type_that_cannot_be_read_in_part_says_which_field_it_misses() {
    assert_eq!(missing!(NoDefault), [""; 0]);
    assert_eq!(reads_in_part::<NoDefault>(&[]), Err("missing field `url`".to_owned()));
    assert_eq!(missing!(NeverReads), [""; 0], "its own default cannot be read");
    assert!(reads_in_part::<NeverReads>(&[]).is_err());
    assert_eq!(reads_in_part::<OnlyConditions>(&[]), Ok(()));
}

#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct Flat {
    url: String,
    #[serde(flatten)]
    state: State,
}

#[derive(Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "state")]
enum State {
    Waiting,
    Serving { port: u16 },
}

impl Default for Flat {
    fn default() -> Self {
        Self { url: String::new(), state: State::Waiting }
    }
}

#[derive(Debug, Default, PartialEq, Serialize, Deserialize)]
struct Wrapped(Inner);

#[derive(Debug, Default, PartialEq, Serialize, Deserialize)]
struct Inner {
    url: String,
}

#[test]
fn flattened_tagged_and_wrapped_types_are_filled_too() {
    assert_eq!(read!(Flat, json!({})).unwrap(), Some(Flat::default()));
    let serving = Flat { url: String::new(), state: State::Serving { port: 8 } };
    assert_eq!(read!(Flat, json!({ "state": "Serving", "port": 8 })).unwrap(), Some(serving));
    assert_eq!(read!(Wrapped, json!({})).unwrap(), Some(Wrapped::default()));
    #[derive(Debug, Default, PartialEq, Serialize, Deserialize)]
    #[serde(tag = "state")]
    enum Tagged {
        #[default]
        Waiting,
        Serving {
            port: u16,
        },
    }
    assert_eq!(read!(Tagged, json!({})).unwrap(), Some(Tagged::Waiting));
    let serving = Some(Tagged::Serving { port: 1 });
    assert_eq!(read!(Tagged, json!({ "state": "Serving", "port": 1 })).unwrap(), serving);
}
