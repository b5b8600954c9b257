//! Fields that may be absent or null: serde decides.

#![allow(dead_code)]

use serde::{Deserialize, Serialize};
use serde_json::json;
use windlass_macros::Schema;

use super::{field, schema};
use crate::crd::structural_schema;

type Maybe<T> = Option<T>;
/// A type whose values the derive does not know.
type Alias = String;

#[derive(Serialize, Deserialize, Schema)]
struct S {
    alias: Maybe<String>,
    boxed: Box<Option<String>>,
    transparent: Transparent,
    plain: String,
    #[serde(deserialize_with = "read")]
    #[schema(with = Option<String>)]
    by_function: Option<String>,
    #[serde(default, deserialize_with = "read")]
    #[schema(with = Option<String>)]
    by_function_or_default: Option<String>,
    #[schema(schema_with = text)]
    function: Option<String>,
    #[schema(with = String)]
    other: Option<std::net::IpAddr>,
    #[schema(with = "String")]
    required: std::net::IpAddr,
    #[schema(opaque)]
    opaque: Option<Foreign>,
    #[schema(opaque)]
    opaque_list: Vec<Foreign>,
    #[schema(optional)]
    said: Alias,
    #[schema(required)]
    needed: Option<String>,
}

#[derive(Serialize, Deserialize, Schema)]
#[serde(transparent)]
struct Transparent(Option<String>);

/// A type without a schema.
#[derive(Serialize, Deserialize)]
struct Foreign {
    field: i32,
}

fn read<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Option<String>, D::Error> {
    Option::deserialize(deserializer)
}

fn text(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
    schemars::json_schema!({ "type": "string" })
}

#[test]
fn a_field_is_required_exactly_if_serde_demands_it() {
    let required = ["plain", "by_function", "required", "opaque_list", "needed"];
    assert_eq!(schema::<S>()["required"], json!(required));
}

#[test]
fn a_field_may_be_null_exactly_if_serde_accepts_null() {
    let schema = structural_schema::<S>().unwrap().schema;
    let nullable = |name: &str| schema["properties"][name]["nullable"] == json!(true);
    for name in
        ["alias", "boxed", "transparent", "by_function", "function", "other", "opaque", "needed"]
    {
        assert!(nullable(name), "{name}: {schema:#}");
    }
    for name in ["plain", "required", "opaque_list", "said"] {
        assert!(!nullable(name), "{name}: {schema:#}");
    }
}

#[test]
fn a_replaced_schema_needs_none_of_the_type() {
    let kept = json!({ "type": "object", "x-kubernetes-preserve-unknown-fields": true });
    let schema = crate::crd::structural_schema::<S>().unwrap().schema;
    assert_eq!(schema["properties"]["opaque_list"]["items"], kept);
    assert_eq!(field::<S>("required"), json!({ "type": "string" }));
}
