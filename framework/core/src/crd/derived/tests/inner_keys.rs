//! Keys of maps in maps, of generic types, and of enums without remarks.

use std::collections::BTreeMap;
use std::num::NonZeroU16;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use windlass_apiserver::crd_schema::{Schema as Compiled, check_crd};
use windlass_macros::{CustomResource, Schema};

use super::definition;
use crate::crd::{CustomResource as _, structural_schema, warnings};

const UNCHECKED: &str = "an API server does not check that the keys of a map are";
const BOUND: &str =
    "; a rule checks the keys of a map with a bound: `#[schema(properties(max = 100))]`";

type Keyed<K> = BTreeMap<K, String>;

#[derive(Clone, Serialize, Deserialize, Schema, PartialEq, Eq, PartialOrd, Ord)]
enum Zone {
    /// Near the sea.
    Coast,
    Inland,
}

#[derive(Clone, Serialize, Deserialize, Schema, PartialEq, Eq, PartialOrd, Ord)]
enum Side {
    East,
    West,
}

#[derive(Clone, Serialize, Deserialize, Schema, PartialEq, Eq, PartialOrd, Ord)]
struct Key<T>(T);

#[derive(Clone, Serialize, Deserialize, Schema, PartialEq, Eq, PartialOrd, Ord)]
struct Pair<A, B>(A, Option<B>);

type Nested<K> = BTreeMap<K, BTreeMap<Zone, u32>>;

#[derive(Serialize, Deserialize, Schema)]
struct InMaps {
    by_name: Option<Nested<Zone>>,
    by_number: Option<Nested<u16>>,
    by_side: Option<Nested<Side>>,
    by_text: Option<Nested<String>>,
    deep: Vec<BTreeMap<Key<u8>, Vec<Nested<Side>>>>,
    plain: BTreeMap<Side, BTreeMap<Zone, u32>>,
    tuple: Option<(Keyed<Zone>, Keyed<Zone>)>,
}

#[test]
fn keys_of_a_map_in_a_map_are_named_whatever_the_keys_of_the_outer_one_are() {
    let found = structural_schema::<InMaps>().unwrap();
    let names = |place: &str| {
        let expected = format!("{place}: {UNCHECKED} Inland, Coast");
        assert!(found.warnings.contains(&expected), "{expected}: {:#?}", found.warnings);
    };
    for place in [".by_name.*", ".by_number.*", ".by_text.*"] {
        names(place);
    }
    names(".deep.[].*.[].East");
    names(".tuple.[]");
    let outer = |place: &str, words: &str| {
        let expected = format!("{place}: {UNCHECKED} {words}");
        assert!(
            found.warnings.iter().any(|warning| warning.starts_with(&expected)),
            "{expected}: {:#?}",
            found.warnings
        );
    };
    for place in [".by_side.East", ".by_side.West", ".plain.East", ".plain.West"] {
        outer(
            place,
            "Inland, Coast; a rule checks the keys of a map with a bound: give it a type of its own, `struct",
        );
    }
    outer(".by_name", "Inland, Coast");
    outer(".by_number", "whole numbers from 0 to 65535");
    outer(".deep.[]", "whole numbers from 0 to 255");
}

#[derive(Serialize, Deserialize, Schema)]
struct Generic {
    alias: Option<Keyed<Key<NonZeroU16>>>,
    direct: BTreeMap<Key<NonZeroU16>, String>,
    named: Option<Keyed<Key<Side>>>,
    number: Option<Keyed<NonZeroU16>>,
    pair: Option<Keyed<Pair<u8, (Zone, Side)>>>,
    text: Option<Keyed<Key<String>>>,
}

#[test]
fn keys_of_a_generic_new_type_are_those_of_the_type_inside() {
    let found = structural_schema::<Generic>().unwrap();
    let from_one = format!("{UNCHECKED} whole numbers from 1 to 65535{BOUND}");
    assert_eq!(
        found.warnings,
        [
            format!(".alias: {from_one}"),
            format!(".direct: {from_one}"),
            ".named: an API server drops keys other than East, West from the map, where serde refuses them; a rule \
             refuses them in a map with a bound: `#[schema(properties(max = 100))]`"
                .to_owned(),
            format!(".number: {from_one}"),
            format!(".pair: {UNCHECKED} values of `Pair`"),
        ]
    );
}

#[derive(Clone, Serialize, Deserialize, Schema, PartialEq, Eq, PartialOrd, Ord)]
enum Open {
    Known,
    #[serde(untagged)]
    Other(String),
}

#[derive(Clone, Serialize, Deserialize, Schema, PartialEq, Eq, PartialOrd, Ord)]
enum Noted {
    /// A name that is known.
    Known,
    #[serde(untagged)]
    Other(String),
}

#[derive(Clone, Serialize, Deserialize, Schema, PartialEq, Eq, PartialOrd, Ord)]
enum Short {
    Known,
    Usual,
    #[serde(untagged)]
    Other(#[schema(length(max = 3))] String),
}

#[derive(Serialize, Deserialize, Schema)]
struct Bounded {
    #[schema(properties(max = 100))]
    generic: Option<Keyed<Key<NonZeroU16>>>,
    #[schema(properties(max = 100))]
    noted: BTreeMap<Noted, String>,
    #[schema(properties(max = 100))]
    number: Option<Keyed<NonZeroU16>>,
    #[schema(properties(max = 100))]
    open: BTreeMap<Open, String>,
    #[schema(properties(max = 100))]
    opens: Option<Keyed<Open>>,
    #[schema(properties(max = 100))]
    side: Keyed<Side>,
    #[schema(properties(max = 100))]
    sides: Option<Keyed<Key<Side>>>,
    unbounded: BTreeMap<Open, String>,
    unbounded_noted: Option<Keyed<Noted>>,
}

#[test]
fn keys_by_enums_without_remarks_or_with_further_names_are_checked_as_serde_checks_them() {
    let found = structural_schema::<Bounded>().unwrap();
    assert_eq!(found.warnings, [""; 0]);
    let definition = definition(&found.schema);
    let faults = check_crd(&definition, None);
    assert!(faults.is_empty(), "{faults:#?}");
    let compiled =
        Compiled::compile(&definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]);
    let whole = json!({
        "noted": {}, "open": {}, "side": {}, "unbounded": {},
    });
    for field in found.schema["properties"].as_object().unwrap().keys() {
        for key in ["East", "West", "Known", "", "x", "0", "1", "65535", "65536"] {
            let mut spec = whole.clone();
            spec[field] = json!({ key: "x" });
            let read = serde_json::from_value::<Bounded>(spec.clone()).is_ok();
            let object = json!({ "spec": spec });
            let causes = compiled.validate(&object, None).causes;
            assert_eq!(read, causes.is_empty(), "{field}: {key:?}: {causes:?}");
            let mut stored = object.clone();
            assert_eq!(compiled.prune(&mut stored), [""; 0], "{field}");
        }
        let mut spec = whole.clone();
        spec[field] = json!({ "1": 1 });
        let causes = compiled.validate(&json!({ "spec": spec }), None).causes;
        assert!(!causes.is_empty(), "{field}: values are checked");
    }
}

#[derive(Serialize, Deserialize, Schema)]
struct OfShort {
    #[schema(properties(max = 100))]
    keyed: BTreeMap<Short, String>,
}

#[test]
fn a_condition_of_the_further_names_is_joined_with_the_names() {
    let found = structural_schema::<OfShort>().unwrap();
    assert_eq!(found.warnings, [""; 0]);
    let compiled = Compiled::compile(&found.schema);
    for (key, fits) in [("Known", true), ("Usual", true), ("abc", true), ("abcd", false)] {
        let value = json!({ "keyed": { key: "x" } });
        assert_eq!(compiled.validate(&value, None).causes.is_empty(), fits, "{key}");
    }
}

#[derive(Clone, Debug, Serialize, Deserialize, Schema)]
struct ByZone(#[schema(properties(max = 100))] BTreeMap<Lane, String>);

#[derive(Clone, Debug, Serialize, Deserialize, Schema, PartialEq, Eq, PartialOrd, Ord)]
enum Lane {
    /// For lorries.
    Right,
    Left,
}

#[derive(CustomResource, Clone, Debug)]
#[resource(group = "example.dev", version = "v1", namespaced)]
struct Rooted {
    metadata: ObjectMeta,
    spec: BTreeMap<Lane, String>,
}

#[derive(CustomResource, Clone, Debug)]
#[resource(group = "example.dev", version = "v1", namespaced, plural = "remedieds")]
struct Remedied {
    metadata: ObjectMeta,
    spec: ByZone,
}

#[test]
fn the_remedy_for_a_map_at_the_root_is_a_type_that_has_the_rule() {
    let remedy =
        "give it a type of its own, `struct Name(#[schema(properties(max = 100))] BTreeMap<…>);`";
    let found = warnings::<Rooted>().unwrap();
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(found[0].starts_with(&format!(".spec: {UNCHECKED} Left, Right; ")), "{found:?}");
    assert!(found[0].ends_with(remedy), "{found:?}");
    assert_eq!(warnings::<Remedied>().unwrap(), [""; 0]);
    let definition: Value = serde_json::to_value(Remedied::crd().unwrap()).unwrap();
    let spec = "/spec/versions/0/schema/openAPIV3Schema/properties/spec/x-kubernetes-validations";
    let rules = definition.pointer(spec).cloned().unwrap_or_default();
    assert_eq!(rules[0]["rule"], "self.all(key, key in ['Left', 'Right'])");
}

#[derive(Clone, Serialize, Deserialize, Schema, PartialEq, Eq, PartialOrd, Ord)]
struct Hex(#[schema(pattern = "^[a-f0-9]*$")] String);

#[derive(Serialize, Deserialize, Schema)]
struct Fields {
    first: u8,
    second: Option<u8>,
}

#[derive(Serialize, Deserialize, Schema)]
#[serde(untagged)]
enum Either {
    Struct { value: Fields, name: String },
    Numbers { value: BTreeMap<u16, String> },
    Texts { value: BTreeMap<Hex, char> },
}

#[test]
fn a_map_by_numbers_or_by_texts_of_a_pattern_is_kept_beside_fields_of_another_variant() {
    let found = structural_schema::<Either>().unwrap();
    let compiled = Compiled::compile(&found.schema);
    for value in [json!({ "1": "x", "2": "y" }), json!({ "a": "x" }), json!({})] {
        let value = json!({ "value": value });
        assert!(serde_json::from_value::<Either>(value.clone()).is_ok(), "{value}");
        let causes = compiled.validate(&value, None).causes;
        assert!(causes.is_empty(), "{value}: {causes:?}: {:#}", found.schema);
    }
}
