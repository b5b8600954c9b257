//! Flattened fields whose names are those of other fields: serde takes each name once.

#![allow(dead_code)]

use serde::{Deserialize, Serialize};
use windlass_macros::Schema;

use crate::crd::structural_schema;

#[derive(Serialize, Deserialize, Schema)]
struct Part {
    name: String,
}

#[derive(Serialize, Deserialize, Schema)]
struct Other {
    name: String,
    size: i32,
}

#[derive(Serialize, Deserialize, Schema)]
#[serde(tag = "kind")]
enum Tagged {
    A { a: i32 },
    B { name: String },
}

#[derive(Serialize, Deserialize, Schema)]
struct BesideField {
    #[serde(flatten)]
    part: Part,
    name: i32,
}

#[derive(Serialize, Deserialize, Schema)]
struct BesideFlattened {
    #[serde(flatten)]
    part: Part,
    #[serde(flatten)]
    other: Option<Other>,
}

#[derive(Serialize, Deserialize, Schema)]
struct BesideTag {
    kind: String,
    #[serde(flatten)]
    tagged: Tagged,
}

#[derive(Serialize, Deserialize, Schema)]
struct BeforeVariant {
    #[serde(flatten)]
    part: Part,
    #[serde(flatten)]
    tagged: Tagged,
}

#[derive(Serialize, Deserialize, Schema)]
struct Outer {
    inner: Vec<BesideField>,
}

#[test]
fn two_fields_of_one_name_in_one_object_are_a_fault() {
    let faults = [
        structural_schema::<BesideField>(),
        structural_schema::<BesideFlattened>(),
        structural_schema::<Outer>(),
    ]
    .map(|schema| schema.map(|schema| schema.schema).unwrap_err().to_string());
    for fault in &faults {
        let expected =
            "two fields have the name `name` in this object, one of them flattened into it";
        assert!(fault.contains(expected), "{fault}");
    }
    assert!(faults[2].contains(".inner.[]: "), "{}", faults[2]);
}

#[test]
fn a_field_and_a_field_of_a_flattened_enum_of_one_name_are_a_fault() {
    let faults = [structural_schema::<BesideTag>(), structural_schema::<BeforeVariant>()];
    for (schema, name) in faults.into_iter().zip(["kind", "name"]) {
        let fault = schema.unwrap_err().to_string();
        assert!(
            fault.contains(&format!(".{name}: the name stands in the struct and in the enum")),
            "{fault}"
        );
    }
}

#[derive(Serialize, Deserialize, schemars::JsonSchema)]
struct PartOfSchemars {
    name: String,
}

#[derive(Serialize, Deserialize, schemars::JsonSchema)]
struct OfSchemars {
    #[serde(flatten)]
    part: PartOfSchemars,
    name: i32,
}

#[test]
fn a_name_that_schemars_requires_twice_is_a_fault() {
    let fault = structural_schema::<OfSchemars>().unwrap_err().to_string();
    assert!(fault.contains("two fields have the name `name`"), "{fault}");
}

#[derive(Serialize, Deserialize, Schema)]
struct Different {
    kind_of: String,
    #[serde(flatten)]
    tagged: Tagged,
    #[serde(flatten)]
    rest: std::collections::BTreeMap<String, String>,
}

#[test]
fn flattened_fields_of_other_names_are_no_fault() {
    structural_schema::<Different>().unwrap();
}
