//! Keys that contradict a type which a macro does not see, and addresses behind such types.

#![allow(dead_code)]

use std::collections::{BTreeSet, HashSet};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use windlass_apiserver::crd_schema::Schema as Compiled;
use windlass_macros::Schema;

use super::definition;
use crate::crd::structural_schema;

type Number = i32;

/// A count of seconds.
#[derive(Serialize, Deserialize, Schema)]
struct Seconds(u32);

#[derive(Serialize, Deserialize, Schema)]
struct Contradicting {
    #[schema(extend("type" = "string"))]
    alias: Number,
    #[schema(extend("type" = "string"))]
    newtype: Seconds,
    #[schema(extend("type" = "object"))]
    option: Option<Number>,
    #[schema(format = "date-time")]
    time: Seconds,
    #[schema(format = "int32")]
    flag: Flag,
    list: Vec<Inner>,
}

type Flag = bool;

#[derive(Serialize, Deserialize, Schema)]
struct Inner {
    #[schema(extend("format" = "uuid"))]
    id: Number,
}

#[test]
fn keys_that_contradict_a_type_behind_a_name_are_faults_with_their_paths() {
    let fault = structural_schema::<Contradicting>().unwrap_err().to_string();
    for expected in [
        ".alias: it must be of type \"integer\" and of type \"string\" at once",
        ".newtype: it must be of type",
        ".option: it must be of type",
        ".time: the format `date-time` is for texts, and the type is integer",
        ".flag: the format `int32` is for numbers, and the type is boolean",
        ".list.[].id: the format `uuid` is for texts, and the type is integer",
    ] {
        assert!(fault.contains(expected), "{expected} in {fault}");
    }
}

#[derive(Serialize, Deserialize, Schema)]
struct Repeating {
    #[schema(extend("type" = "integer"))]
    number: Number,
    #[schema(extend("type" = "string"))]
    text: Option<String>,
    #[schema(extend("type" = "object"))]
    any: Value,
}

#[test]
fn a_type_that_is_said_again_changes_nothing() {
    let found = structural_schema::<Repeating>().unwrap().schema;
    let field = |name: &str| found["properties"][name].clone();
    assert_eq!(field("number"), json!({ "type": "integer", "format": "int32" }));
    assert_eq!(field("text"), json!({ "type": "string", "nullable": true }));
    assert_eq!(field("any")["type"], "object");
}

/// A type of another crate: it has schemars' derive alone.
#[derive(Serialize, Deserialize, schemars::JsonSchema)]
struct Foreign {
    v4: Ipv4Addr,
    v6: Option<Ipv6Addr>,
    any: Vec<IpAddr>,
}

#[derive(Serialize, Deserialize, Schema)]
struct Peers {
    foreign: Foreign,
    set: BTreeSet<IpAddr>,
    hashed: Option<HashSet<Ipv4Addr>>,
    pair: (Ipv6Addr, Ipv6Addr),
    #[schema(format = "ipv4")]
    text: String,
    #[schema(pattern = "^10[.]")]
    local: Ipv4Addr,
    #[schema(pattern = "^(10|fd)")]
    near: Option<IpAddr>,
    #[schema(each(pattern = "^10[.]"))]
    all: Vec<Ipv4Addr>,
}

#[test]
fn addresses_are_checked_in_sets_and_in_types_of_other_crates() {
    let found = structural_schema::<Peers>().unwrap();
    assert_eq!(found.warnings, [] as [&str; 0]);
    let root = definition(&found.schema)["spec"]["versions"][0]["schema"]["openAPIV3Schema"].take();
    let compiled = Compiled::compile(&root);
    let good = json!({
        "foreign": { "v4": "1.2.3.4", "v6": "::1", "any": ["10.0.0.1", "fe80::1"] },
        "set": ["::", "1.1.1.1"],
        "hashed": ["1.1.1.1"],
        "pair": ["::1", "::2"],
        "text": "01.2.3.4",
        "local": "10.1.2.3",
        "near": "fd::1",
        "all": ["10.1.2.3"]
    });
    for (path, bad) in [
        ("", "1.2.3.4"),
        ("/foreign/v4", "01.2.3.4"),
        ("/foreign/v6", "::ffff:01.2.3.4"),
        ("/foreign/any/0", "10.0.0.01"),
        ("/set/1", "1.1.1.01"),
        ("/hashed/0", "01.1.1.1"),
        ("/pair/0", "1.2.3.4"),
        // Beside a pattern of the field.
        ("/local", "10.01.2.3"),
        ("/near", "10.01.2.3"),
        ("/all/0", "10.01.2.3"),
    ] {
        let mut value = good.clone();
        if !path.is_empty() {
            *value.pointer_mut(path).unwrap() = bad.into();
        }
        let is_read = serde_json::from_value::<Peers>(value.clone()).is_ok();
        let is_stored = compiled.validate(&json!({ "spec": value }), None).causes.is_empty();
        assert_eq!((is_read, is_stored), (path.is_empty(), path.is_empty()), "{path}: {bad}");
    }
    for path in ["/local", "/near", "/all/0"] {
        let mut value = good.clone();
        *value.pointer_mut(path).unwrap() = "11.1.2.3".into();
        let causes = compiled.validate(&json!({ "spec": value }), None).causes;
        assert!(!causes.is_empty(), "{path}: its pattern holds");
    }
}

#[derive(Serialize, Deserialize, Schema)]
struct Mixed {
    #[schema(preserve, extend("enum" = [1, "a"]))]
    kept: Option<Value>,
    #[schema(extend("enum" = [1, "a"]))]
    checked: Option<Value>,
}

#[test]
fn a_value_of_any_type_with_numbers_and_texts_is_taken_by_an_api_server() {
    let schema = structural_schema::<Mixed>().unwrap().schema;
    let faults = windlass_apiserver::crd_schema::check_crd(&definition(&schema), None);
    assert!(faults.is_empty(), "{faults:#?}");
    assert_eq!(schema["properties"]["kept"]["x-kubernetes-int-or-string"], Value::Null);
    assert_eq!(schema["properties"]["checked"]["x-kubernetes-int-or-string"], true);
}

#[derive(Serialize, Deserialize, Schema)]
struct Kept {
    #[schema(extend("x-kubernetes-int-or-string" = true), preserve)]
    both: Value,
}

#[test]
fn a_number_or_text_that_is_kept_as_any_value_is_a_fault() {
    let fault = structural_schema::<Kept>().unwrap_err().to_string();
    assert!(fault.contains(".both: ") && fault.contains("x-kubernetes-int-or-string"), "{fault}");
}

#[derive(Serialize, Deserialize, Schema)]
struct Fractions {
    #[schema(min = 0.5)]
    least: f64,
    #[schema(multiple_of = 0.5)]
    steps: f64,
    #[schema(min = 1.0, max = 2)]
    whole: f64,
    #[schema(min = -0.5, max = 99.9)]
    percent: f64,
    #[schema(max = 1e19)]
    wide: f64,
}

#[test]
fn bounds_with_a_fraction_are_a_warning() {
    let warnings = structural_schema::<Fractions>().unwrap().warnings;
    let text = warnings.join("\n");
    assert_eq!(warnings.len(), 3, "{text}");
    assert!(text.contains(".wide: API servers compare whole numbers with -9223"), "{text}");
    assert!(
        text.contains(".least: API servers cut the bound 0.5 to an integer for whole numbers"),
        "{text}"
    );
    assert!(
        text.contains(".steps: API servers refuse every whole number as a multiple of 0.5"),
        "{text}"
    );
}
