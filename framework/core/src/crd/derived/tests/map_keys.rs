//! Keys of maps that serde reads as another type than a text.

use std::collections::{BTreeMap, HashMap};

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use windlass_apiserver::crd_schema::{Schema as Compiled, check_crd};
use windlass_macros::Schema;

use super::definition;
use crate::crd::structural_schema;

type Keyed<K> = BTreeMap<K, String>;

#[derive(Clone, Serialize, Deserialize, Schema, PartialEq, Eq, PartialOrd, Ord)]
enum Zone {
    /// Near the sea.
    Coast,
    Inland,
}

#[derive(Clone, Serialize, Deserialize, Schema, PartialEq, Eq, PartialOrd, Ord)]
enum Only {
    One,
}

#[derive(Clone, Serialize, Deserialize, Schema, PartialEq, Eq, PartialOrd, Ord)]
struct Short(#[schema(length(max = 3))] String);

#[derive(Clone, Serialize, Deserialize, Schema, PartialEq, Eq, PartialOrd, Ord)]
struct Level(#[schema(max = 9)] u8);

#[derive(Clone, Serialize, Deserialize, Schema, PartialEq, Eq, PartialOrd, Ord)]
#[serde(try_from = "String", into = "String")]
struct Even(String);

impl TryFrom<String> for Even {
    type Error = &'static str;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        if text.len().is_multiple_of(2) { Ok(Self(text)) } else { Err("an odd number of bytes") }
    }
}

impl From<Even> for String {
    fn from(text: Even) -> Self {
        text.0
    }
}

#[derive(Serialize, Deserialize, Schema)]
struct Unbounded {
    alias: Option<Keyed<Zone>>,
    even: Keyed<Even>,
    level: Keyed<Level>,
    lists: Vec<BTreeMap<Zone, bool>>,
    maybe: Option<HashMap<u16, String>>,
    nested: BTreeMap<String, Option<BTreeMap<i8, String>>>,
    only: Keyed<Only>,
    plain: Keyed<String>,
    short: Keyed<Short>,
    zone: Keyed<Zone>,
}

#[test]
fn keys_that_no_rule_checks_are_named_in_a_warning_with_their_place() {
    let found = structural_schema::<Unbounded>().unwrap();
    let unchecked = "an API server does not check that the keys of a map are";
    let bound = "a rule checks the keys of a map with a bound: `#[schema(properties(max = 100))]`";
    assert_eq!(
        found.warnings,
        [
            format!(".alias: {unchecked} values of `Zone`"),
            format!(".even: {unchecked} values of `Even`"),
            format!(".level: {unchecked} whole numbers from 0 to 9; {bound}"),
            format!(".lists.[]: {unchecked} Inland, Coast"),
            format!(".maybe: {unchecked} whole numbers from 0 to 65535; {bound}"),
            format!(".nested.*: {unchecked} whole numbers from -128 to 127"),
            ".only: an API server drops keys other than One from the map, where serde refuses them"
                .to_owned(),
            format!(".short: {unchecked} texts of at most 3 characters; {bound}"),
            format!(".zone: {unchecked} Inland, Coast; {bound}"),
        ]
    );
    assert!(!found.schema.to_string().contains("x-windlass"), "{:#}", found.schema);
}

#[derive(Clone, Serialize, Deserialize, Schema, PartialEq, Eq, PartialOrd, Ord)]
enum Side {
    #[serde(alias = "port")]
    Left,
    /// Starboard.
    Right,
}

#[derive(Clone, Serialize, Deserialize, Schema, PartialEq, Eq, PartialOrd, Ord)]
enum Open {
    /// A name that is known.
    Known,
    #[serde(other)]
    Unknown,
}

#[derive(Serialize, Deserialize, Schema)]
struct Bounded {
    #[schema(properties(max = 100))]
    open: Option<BTreeMap<Open, String>>,
    #[schema(properties(max = 100))]
    sides: Option<BTreeMap<Side, String>>,
    #[schema(properties(max = 100))]
    flags: Option<BTreeMap<bool, String>>,
    #[schema(properties(max = 100))]
    large: Option<BTreeMap<u64, String>>,
    #[schema(properties(max = 100))]
    letters: Option<Keyed<char>>,
    #[schema(properties(max = 100))]
    ports: Option<HashMap<u16, String>>,
    #[schema(properties(max = 100))]
    signed: Option<BTreeMap<i64, String>>,
    #[schema(properties(max = 100))]
    small: Option<BTreeMap<i8, String>>,
    #[schema(properties(max = 100))]
    zones: Option<BTreeMap<Zone, String>>,
}

#[test]
fn keys_of_a_map_with_a_bound_are_checked_by_a_rule_as_serde_checks_them() {
    let found = structural_schema::<Bounded>().unwrap();
    assert_eq!(found.warnings, [] as [&str; 0]);
    let definition = definition(&found.schema);
    let faults = check_crd(&definition, None);
    assert!(faults.is_empty(), "{faults:#?}");
    let root = &definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"];
    let compiled = Compiled::compile(root);
    let keys = [
        "true",
        "false",
        "True",
        "0",
        "-0",
        "00",
        "1",
        "-1",
        "9",
        "10",
        "127",
        "128",
        "-128",
        "-129",
        "65535",
        "65536",
        "9223372036854775807",
        "9223372036854775808",
        "-9223372036854775808",
        "-9223372036854775809",
        "18446744073709551615",
        "18446744073709551616",
        "1.0",
        "1e1",
        "+1",
        " 1",
        "1 ",
        "",
        "a",
        "ab",
        "é",
        "Coast",
        "coast",
        "Inland",
        "Left",
        "port",
        "Right",
        "Known",
    ];
    for field in found.schema["properties"].as_object().unwrap().keys() {
        let mut kept = 0;
        for key in keys {
            let spec = json!({ field: { key: "x" } });
            let read = serde_json::from_value::<Bounded>(spec.clone()).is_ok();
            let causes = compiled.validate(&json!({ "spec": spec }), None).causes;
            assert_eq!(read, causes.is_empty(), "{field}: {key:?}: {causes:?}");
            kept += usize::from(read);
        }
        assert!(kept > 0, "{field}");
    }
}

#[test]
fn the_rule_of_keys_says_which_keys_fit() {
    let rules = |field: &str| -> Value {
        structural_schema::<Bounded>().unwrap().schema["properties"][field]["x-kubernetes-validations"]
            .clone()
    };
    assert_eq!(
        rules("ports"),
        json!([{
            "rule": "self.all(key, key.matches('^(0|[1-9][0-9]*)$') && int(key) <= 65535)",
            "message": "the keys of the map must be whole numbers from 0 to 65535"
        }])
    );
    assert_eq!(rules("zones")[0]["rule"], "self.all(key, key in ['Inland', 'Coast'])");
}

#[derive(Serialize, Deserialize, Schema)]
struct RoadMap<A, B> {
    first: A,
    second: B,
}

#[derive(Serialize, Deserialize, Schema)]
struct Generic {
    maps: RoadMap<BTreeMap<String, String>, i32>,
    none: RoadMap<String, i32>,
}

#[test]
fn a_generic_type_with_maps_among_its_arguments_is_no_map() {
    assert_eq!(structural_schema::<Generic>().unwrap().warnings, [""; 0]);
}
