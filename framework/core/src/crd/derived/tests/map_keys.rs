//! Keys of maps that serde reads as another type than a text.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};
use std::num::{NonZeroI8, NonZeroU16};

use schemars::{JsonSchema, Schema as JsonSchemaOf, SchemaGenerator};
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
            format!(".alias: {unchecked} Inland, Coast; {bound}"),
            format!(".even: {unchecked} values of `Even`"),
            format!(".level: {unchecked} whole numbers from 0 to 9; {bound}"),
            format!(".lists.[]: {unchecked} Inland, Coast"),
            format!(".maybe: {unchecked} whole numbers from 0 to 65535; {bound}"),
            format!(".nested.*: {unchecked} whole numbers from -128 to 127"),
            ".only: an API server drops keys other than One from the map, where serde refuses them; a rule refuses them in a \
             map with a bound: `#[schema(properties(max = 100))]`"
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

#[derive(Clone, Serialize, Deserialize, Schema, PartialEq, Eq, PartialOrd, Ord)]
enum Door {
    #[serde(alias = "port")]
    Left,
    Right,
}

#[derive(Clone, Serialize, Deserialize, Schema, PartialEq, Eq, PartialOrd, Ord)]
enum Loose {
    Known,
    #[serde(other)]
    Unknown,
}

#[derive(Serialize, Deserialize, Schema)]
struct Bounded {
    #[schema(properties(max = 100))]
    doors: Option<BTreeMap<Door, String>>,
    #[schema(properties(max = 100))]
    loose: Option<BTreeMap<Loose, String>>,
    #[schema(properties(max = 100))]
    not_zero: Option<BTreeMap<NonZeroI8, String>>,
    #[schema(properties(max = 100))]
    positive: Option<BTreeMap<NonZeroU16, String>>,
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

/// A container of another crate, whose schema is that of a map, as that of `IndexMap` is.
#[derive(Serialize, Deserialize)]
#[serde(transparent)]
struct Ordered<K: Ord, V>(BTreeMap<K, V>);

impl<K: JsonSchema + Ord, V: JsonSchema> JsonSchema for Ordered<K, V> {
    fn inline_schema() -> bool {
        BTreeMap::<K, V>::inline_schema()
    }

    fn schema_name() -> Cow<'static, str> {
        BTreeMap::<K, V>::schema_name()
    }

    fn schema_id() -> Cow<'static, str> {
        BTreeMap::<K, V>::schema_id()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> JsonSchemaOf {
        BTreeMap::<K, V>::json_schema(generator)
    }
}

#[derive(Clone, Serialize, Deserialize, Schema, PartialEq, Eq, PartialOrd, Ord)]
struct Name(String);

#[derive(Clone, Serialize, Deserialize, Schema, PartialEq, Eq, PartialOrd, Ord)]
#[serde(transparent)]
struct Host {
    name: Name,
}

#[derive(Clone, Serialize, Deserialize, Schema, PartialEq, Eq, PartialOrd, Ord)]
#[serde(from = "String", into = "String")]
struct Folded(String);

impl From<String> for Folded {
    fn from(text: String) -> Self {
        Self(text.to_lowercase())
    }
}

impl From<Folded> for String {
    fn from(text: Folded) -> Self {
        text.0
    }
}

#[derive(Serialize, Deserialize, Schema)]
struct OfEveryText {
    alias: Option<Keyed<Name>>,
    aliases: Vec<Keyed<Host>>,
    folded: Option<Keyed<Folded>>,
    ordered: Ordered<Name, String>,
    ordered_lists: Vec<Ordered<Host, String>>,
}

#[test]
fn keys_of_a_new_type_around_a_text_need_no_check_behind_an_alias_or_in_other_containers() {
    assert_eq!(structural_schema::<OfEveryText>().unwrap().warnings, [""; 0]);
}

#[derive(Serialize, Deserialize, Schema)]
struct OtherContainers {
    even: Option<Keyed<Even>>,
    level: Ordered<Level, String>,
    #[schema(properties(max = 100))]
    zones: Ordered<Zone, String>,
}

#[test]
fn keys_behind_an_alias_or_in_other_containers_are_checked_as_those_of_a_map() {
    let found = structural_schema::<OtherContainers>().unwrap();
    let unchecked = "an API server does not check that the keys of a map are";
    let bound = "a rule checks the keys of a map with a bound: `#[schema(properties(max = 100))]`";
    assert_eq!(
        found.warnings,
        [
            format!(".even: {unchecked} values of `Even`"),
            format!(".level: {unchecked} whole numbers from 0 to 9; {bound}"),
        ]
    );
    let rules = &found.schema["properties"]["zones"]["x-kubernetes-validations"];
    assert_eq!(rules[0]["rule"], "self.all(key, key in ['Inland', 'Coast'])");
}

#[derive(Clone, Serialize, Deserialize, Schema, PartialEq, Eq, PartialOrd, Ord)]
#[serde(try_from = "u8", into = "u8")]
struct Odd(u8);

impl TryFrom<u8> for Odd {
    type Error = &'static str;

    fn try_from(number: u8) -> Result<Self, Self::Error> {
        if number % 2 == 1 { Ok(Self(number)) } else { Err("an even number") }
    }
}

impl From<Odd> for u8 {
    fn from(number: Odd) -> Self {
        number.0
    }
}

#[derive(Serialize, Deserialize, Schema)]
struct Converted {
    #[schema(properties(max = 100))]
    odd: BTreeMap<Odd, String>,
}

#[test]
fn numbers_that_a_conversion_refuses_as_keys_are_a_warning() {
    let found = structural_schema::<Converted>().unwrap();
    let expected = ".odd: an API server does not check that the keys of a map are values of `Odd`";
    assert_eq!(found.warnings, [expected]);
}

#[derive(Serialize, Deserialize, Schema)]
struct Doors {
    doors: BTreeMap<Door, String>,
    loose: Vec<BTreeMap<Loose, String>>,
}

#[test]
fn keys_under_a_further_name_of_a_variant_are_kept() {
    let found = structural_schema::<Doors>().unwrap();
    assert_eq!(
        found.warnings,
        [
            ".doors: an API server does not check that the keys of a map are Left, Right, port; a rule checks the keys of a \
             map with a bound: `#[schema(properties(max = 100))]`"
        ]
    );
    let compiled = Compiled::compile(&found.schema);
    let written = json!({ "doors": { "Left": "a", "port": "b" }, "loose": [{ "new": "c" }] });
    let mut stored = written.clone();
    assert_eq!(compiled.prune(&mut stored), [""; 0]);
    assert_eq!(stored, written);
}

type ByHour = BTreeMap<u16, BTreeMap<Zone, u32>>;

#[derive(Serialize, Deserialize, Schema)]
struct Nested {
    #[schema(properties(max = 5))]
    hours: Option<ByHour>,
}

#[test]
fn the_keys_of_an_inner_map_are_no_rule_of_the_outer_one() {
    let found = structural_schema::<Nested>().unwrap();
    let hours = &found.schema["properties"]["hours"];
    let compiled = Compiled::compile(&found.schema);
    let rules = hours["x-kubernetes-validations"].to_string();
    assert!(!rules.contains("Coast"), "{rules}");
    let mut value = json!({ "hours": { "7": { "Coast": 1 } } });
    assert_eq!(compiled.prune(&mut value), [""; 0]);
    let inner = ".hours.*: an API server does not check that the keys of a map are Inland, Coast";
    assert_eq!(found.warnings, [inner]);
    assert!(rules.contains("int(key) <= 65535"), "{rules}");
}

/// Two types of one name and one module.
mod twins {
    use super::*;

    pub(super) fn first() -> Vec<String> {
        #[derive(Clone, Serialize, Deserialize, Schema, PartialEq, Eq, PartialOrd, Ord)]
        enum Side {
            /// Towards the sea.
            East,
        }
        #[derive(Serialize, Deserialize, Schema)]
        struct Spec {
            sides: Option<Keyed<Side>>,
        }
        structural_schema::<Spec>().unwrap().warnings
    }

    pub(super) fn second() -> Vec<String> {
        #[derive(Clone, Serialize, Deserialize, Schema, PartialEq, Eq, PartialOrd, Ord)]
        enum Side {
            /// Towards the hills.
            West,
        }
        #[derive(Serialize, Deserialize, Schema)]
        struct Spec {
            sides: Option<Keyed<Side>>,
        }
        structural_schema::<Spec>().unwrap().warnings
    }
}

#[test]
fn two_types_of_one_name_have_their_own_keys() {
    let (first, second) = (twins::first(), twins::second());
    assert!(first[0].contains("keys of a map are East"), "{first:?}");
    assert!(second[0].contains("keys of a map are West"), "{second:?}");
}
