//! Fields that may be absent or null: serde decides.

#![allow(dead_code)]

use serde::{Deserialize, Serialize};
use serde_json::json;
use windlass_apiserver::crd_schema::Schema as Compiled;
use windlass_macros::Schema;

use super::{definition, field, schema};
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

#[derive(Clone, Serialize, Deserialize, Schema)]
#[serde(rename_all = "lowercase")]
enum Level {
    Low,
    High,
}

/// As `Level`, of another crate and without a schema.
#[derive(Clone, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum ForeignLevel {
    Low,
    High,
}

macro_rules! shapes {
    ($($name:ident: $shape:tt)*) => { $(
        fn $name(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
            schemars::json_schema!($shape)
        }
    )* };
}
shapes! {
    by_enum: { "enum": ["low", "high"] }
    by_any: { "anyOf": [{ "type": "string", "const": "low" }, { "type": "string", "const": "high" }] }
    by_one: { "oneOf": [{ "const": "low" }, { "const": "high" }] }
    with_null: { "enum": ["low", "high", null] }
}

fn by_reference(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
    generator.subschema_for::<Level>()
}

#[derive(Serialize, Deserialize, Schema)]
struct Replaced {
    #[schema(with = Level)]
    with: Option<ForeignLevel>,
    #[schema(schema_with = by_reference)]
    reference: Option<ForeignLevel>,
    #[schema(schema_with = by_enum)]
    values: Option<ForeignLevel>,
    #[schema(schema_with = by_any)]
    any: Option<ForeignLevel>,
    #[schema(schema_with = by_one)]
    one: Option<ForeignLevel>,
    #[schema(schema_with = with_null)]
    null: Option<ForeignLevel>,
    #[schema(with = Level)]
    needed: ForeignLevel,
}

#[test]
fn null_is_stored_where_the_schema_of_another_type_stands_for_an_option() {
    let found = structural_schema::<Replaced>().unwrap();
    assert_eq!(found.warnings, [] as [&str; 0]);
    assert_eq!(found.schema["required"], json!(["needed"]));
    let root = definition(&found.schema)["spec"]["versions"][0]["schema"]["openAPIV3Schema"].take();
    let compiled = Compiled::compile(&root);
    for name in ["with", "reference", "values", "any", "one", "null", "needed"] {
        for (value, is_read) in
            [(json!("low"), true), (json!("mid"), false), (json!(null), name != "needed")]
        {
            let mut spec = json!({ "needed": "low" });
            spec[name] = value;
            assert_eq!(serde_json::from_value::<Replaced>(spec.clone()).is_ok(), is_read);
            let causes = compiled.validate(&json!({ "spec": spec }), None).causes;
            assert_eq!(causes.is_empty(), is_read, "{spec}: {causes:?}");
        }
    }
}

#[test]
fn a_replaced_schema_needs_none_of_the_type() {
    let kept = json!({ "type": "object", "x-kubernetes-preserve-unknown-fields": true });
    let schema = crate::crd::structural_schema::<S>().unwrap().schema;
    assert_eq!(schema["properties"]["opaque_list"]["items"], kept);
    assert_eq!(field::<S>("required"), json!({ "type": "string" }));
}

#[derive(Serialize, Deserialize, Schema)]
struct Generic<T> {
    value: T,
}

#[derive(Serialize, Deserialize, Schema)]
struct OfGeneric {
    boxed: Generic<Box<Option<bool>>>,
    needed: Generic<bool>,
    option: Generic<Option<bool>>,
}

#[test]
fn a_field_whose_type_parameter_is_an_option_may_be_absent() {
    let found = structural_schema::<OfGeneric>().unwrap().schema;
    let required = |field: &str| !found["properties"][field]["required"].is_null();
    assert!(required("needed"), "{found:#}");
    assert!(!required("option") && !required("boxed"), "{found:#}");
    assert_eq!(found["properties"]["option"]["properties"]["value"]["nullable"], true, "{found:#}");
}

/// Types of one name in one module: of two calls of a macro, and of one call.
trait OfPort {
    type Port;
}

macro_rules! ports {
    ($($owner:ident: $field:ident $ty:ty),*) => { $(
        struct $owner;
        const _: () = {
            #[derive(Serialize, Deserialize, Schema)]
            pub(super) struct Port {
                $field: $ty,
            }
            impl OfPort for $owner {
                type Port = Port;
            }
        };
    )* };
}

ports!(First: aaa i32, Second: bbb String);
ports!(Third: ccc bool);

#[derive(Serialize, Deserialize, Schema)]
struct OfPorts {
    first: <First as OfPort>::Port,
    second: <Second as OfPort>::Port,
    third: <Third as OfPort>::Port,
}

#[test]
fn types_of_one_name_in_blocks_of_a_module_have_their_own_schemas() {
    let found = structural_schema::<OfPorts>().unwrap().schema;
    for (field, name) in [("first", "aaa"), ("second", "bbb"), ("third", "ccc")] {
        assert_eq!(found["properties"][field]["required"], json!([name]), "{found:#}");
    }
}

#[derive(Serialize, Deserialize, Schema)]
struct OnlyRead {
    #[serde(skip_serializing)]
    secret: i32,
}

#[test]
fn the_only_field_of_a_type_that_serde_never_writes_is_warned_of() {
    let found = structural_schema::<OnlyRead>().unwrap().warnings;
    let text = "serde never writes \"secret\" (`skip_serializing`)";
    assert!(found.iter().any(|warning| warning.contains(text)), "{found:?}");
}

#[derive(Serialize, Deserialize, Schema)]
struct ReadAndKept {
    kept: bool,
    #[serde(skip_serializing, default)]
    number: i32,
    #[serde(skip_serializing)]
    option: Option<i32>,
}

#[test]
fn a_stored_field_that_serde_never_writes_is_warned_of() {
    let found = structural_schema::<ReadAndKept>().unwrap().warnings;
    for name in ["number", "option"] {
        let text = format!("serde never writes \"{name}\" (`skip_serializing`), so an object");
        assert!(found.iter().any(|warning| warning.contains(&text)), "{found:?}");
    }
    assert_eq!(found.len(), 2, "{found:?}");
}

mod as_text {
    use serde::{Deserialize, Deserializer, Serializer, de::Error};

    pub(super) fn serialize<S: Serializer>(value: &u16, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(value)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<u16, D::Error> {
        String::deserialize(from)?.parse().map_err(D::Error::custom)
    }
}

#[derive(Serialize, Deserialize, Schema)]
struct ByFunctions {
    #[serde(with = "as_text")]
    #[schema(with = String)]
    any: u16,
    #[serde(with = "as_text")]
    #[schema(with = String, pattern = "^[0-9]{1,4}$")]
    described: u16,
}

#[test]
fn a_text_that_a_function_reads_is_warned_of_unless_it_is_described() {
    let found = structural_schema::<ByFunctions>().unwrap().warnings;
    assert!(
        found[0].contains(".any") && found[0].contains("a function of serde makes `u16`"),
        "{found:?}"
    );
    assert_eq!(found.len(), 1, "{found:?}");
}

#[derive(Clone, Serialize, Deserialize, Schema)]
#[serde(from = "i32", into = "String")]
struct TwoForms(i32);

impl From<i32> for TwoForms {
    fn from(value: i32) -> Self {
        Self(value)
    }
}

impl From<TwoForms> for String {
    fn from(value: TwoForms) -> Self {
        value.0.to_string()
    }
}

#[derive(Serialize, Deserialize, Schema)]
struct OfTwoForms {
    forms: TwoForms,
}

#[test]
fn a_value_that_serde_writes_as_another_type_is_warned_of() {
    let found = structural_schema::<OfTwoForms>().unwrap().warnings;
    let text = "serde reads values of type integer and writes values of type string";
    assert!(found.iter().any(|it| it.contains(".forms") && it.contains(text)), "{found:?}");
}
