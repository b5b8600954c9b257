//! Types in each of serde's forms, described as schemars' own derive describes them.

#![allow(dead_code)]

use std::collections::{BTreeMap, BTreeSet};
use std::marker::PhantomData;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use windlass_macros::Schema;

use super::{schema, without_marks, written};

fn two() -> i32 {
    2
}

fn is_two(value: &i32) -> bool {
    *value == 2
}

#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
struct Inner {
    /// An inner field.
    inner: String,
    more: Option<i32>,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
enum Mode {
    #[default]
    Fast,
    Slow,
}

/// Declares a type twice, with this derive and with that of schemars, and compares the schemas.
macro_rules! alike {
    ($test:ident: $name:ident; $($item:tt)*) => {
        #[test]
        fn $test() {
            mod ours {
                #[allow(unused_imports)]
                use super::*;
                #[derive(Serialize, Deserialize, Schema)]
                $($item)*
            }
            mod theirs {
                #[allow(unused_imports)]
                use super::*;
                #[derive(Serialize, Deserialize, JsonSchema)]
                $($item)*
            }
            let (mut ours, theirs) = (schema::<ours::$name>(), schema::<theirs::$name>());
            without_marks(&mut ours);
            assert_eq!(ours, theirs, "\n{ours:#}\n{theirs:#}");
            let (ours, theirs) = (written::<ours::$name>(), written::<theirs::$name>());
            assert_eq!(ours, theirs, "written:\n{ours:#}\n{theirs:#}");
        }
    };
}

alike! { a_struct_with_docs_and_options: S;
    /// A type.
    ///
    /// With two paragraphs.
    #[serde(rename_all = "camelCase", deny_unknown_fields)]
    pub(super) struct S {
        /// A host.
        host_name: String,
        optional_count: Option<i32>,
        #[deprecated]
        #[serde(rename = "else")]
        r#type: bool,
        set: BTreeSet<String>,
        map: BTreeMap<String, Option<Inner>>,
        inner: Inner,
        mode: Option<Mode>,
        tuple: (i32, String),
        any: serde_json::Value,
        boxed: Option<Box<Inner>>,
    }
}

alike! { a_heading_that_becomes_the_title: S;
    /// # The title
    ///
    /// The description.
    pub(super) struct S {
        #[doc = concat!("a", "b")]
        field: i32,
    }
}

alike! { defaults_of_fields: S;
    pub(super) struct S {
        #[serde(default)]
        count: i32,
        #[serde(default = "two")]
        two: i32,
        #[serde(default = "two", skip_serializing_if = "is_two")]
        hidden: i32,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        optional: Option<Mode>,
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        list: Vec<String>,
        #[serde(default)]
        inner: Inner,
        #[serde(skip)]
        skipped: i32,
        #[serde(skip_serializing)]
        read_only: i32,
        #[serde(skip_deserializing)]
        written_only: i32,
    }
}

alike! { a_default_of_the_type: S;
    #[serde(default)]
    pub(super) struct S {
        host: String,
        #[serde(skip_serializing_if = "is_two")]
        count: i32,
        mode: Mode,
        #[serde(default = "two")]
        two: i32,
    }
    impl Default for S {
        fn default() -> Self {
            Self { host: "a".to_owned(), count: 2, mode: Mode::Slow, two: 3 }
        }
    }
}

alike! { flattened_fields: S;
    pub(super) struct S {
        a: i32,
        #[serde(flatten)]
        inner: Inner,
        #[serde(flatten)]
        rest: BTreeMap<String, i32>,
    }
}

alike! { flattened_enums_and_options: S;
    pub(super) struct S {
        a: i32,
        #[serde(flatten)]
        mode: Choice,
        #[serde(flatten)]
        optional: Option<Inner>,
    }
    #[derive(Serialize, Deserialize, JsonSchema)]
    pub(super) enum Choice {
        A { x: i32 },
        B,
    }
}

alike! { a_newtype: S;
    /// A name.
    pub(super) struct S(String);
}

alike! { a_tuple: S;
    pub(super) struct S(String, #[serde(skip)] i32, Option<Inner>);
}

alike! { a_unit_struct: S;
    pub(super) struct S;
}

alike! { a_transparent_struct: S;
    #[serde(transparent)]
    pub(super) struct S {
        #[serde(skip)]
        nothing: PhantomData<i32>,
        inner: Inner,
    }
}

alike! { a_type_read_as_another: S;
    #[serde(from = "String", into = "String")]
    #[derive(Clone)]
    pub(super) struct S {
        host: String,
    }
    impl From<String> for S {
        fn from(host: String) -> Self {
            Self { host }
        }
    }
    impl From<S> for String {
        fn from(value: S) -> Self {
            value.host
        }
    }
}

alike! { an_enum_of_names: E;
    /// A phase.
    #[serde(rename_all = "kebab-case")]
    pub(super) enum E {
        NotReady,
        #[serde(rename = "up")]
        Ready,
        #[serde(skip)]
        Hidden,
    }
}

alike! { an_enum_of_names_with_docs: E;
    pub(super) enum E {
        /// The first.
        A,
        B,
        #[deprecated]
        C,
    }
}

alike! { an_externally_tagged_enum: E;
    #[serde(rename_all = "lowercase", rename_all_fields = "camelCase", deny_unknown_fields)]
    pub(super) enum E {
        None,
        /// A number.
        One(i32),
        Two(i32, String),
        /// Fields.
        Fields {
            /// The first.
            first_field: i32,
            optional: Option<Inner>,
            #[serde(default = "two")]
            two: i32,
        },
        Inner(Inner),
        Empty {},
    }
}

alike! { an_internally_tagged_enum: E;
    #[serde(tag = "kind", rename_all = "camelCase")]
    pub(super) enum E {
        /// Nothing.
        NoneAtAll,
        #[serde(rename_all = "UPPERCASE")]
        Fields { first: i32 },
        Inner(Inner),
    }
}

alike! { an_internally_tagged_enum_that_denies_other_fields: E;
    #[serde(tag = "kind", deny_unknown_fields)]
    pub(super) enum E {
        None,
        Fields { first: i32 },
    }
}

alike! { an_adjacently_tagged_enum: E;
    #[serde(tag = "kind", content = "value", deny_unknown_fields)]
    pub(super) enum E {
        None,
        One(i32),
        /// Two.
        Two(i32, String),
        Fields { first: i32 },
        Option(Option<Inner>),
    }
}

alike! { an_untagged_enum: E;
    #[serde(untagged)]
    pub(super) enum E {
        /// A number.
        Number(i32),
        Text(String),
        Fields { first: i32 },
        None,
    }
}

alike! { an_enum_with_an_untagged_variant: E;
    pub(super) enum E {
        A,
        B { first: i32 },
        #[serde(untagged)]
        Other(String),
    }
}

alike! { an_enum_without_variants: E;
    pub(super) enum E {}
}

alike! { a_type_that_contains_itself: S;
    pub(super) struct S {
        children: Vec<S>,
        next: Option<Box<S>>,
    }
}

#[test]
fn a_schema_has_the_name_of_its_type_in_json() {
    #[derive(Serialize, Deserialize, Schema)]
    #[serde(rename = "SiteSpec")]
    struct S {
        field: i32,
    }
    assert_eq!(S::schema_name(), "SiteSpec");
    let id = S::schema_id();
    assert!(id.contains("::tests::forms@") && id.ends_with("::SiteSpec"), "{id}");
}

#[test]
fn a_generic_type_has_the_schema_of_its_arguments() {
    #[derive(Serialize, Deserialize, Schema)]
    struct Ours<T, const N: usize = 1> {
        value: T,
        optional: Option<T>,
        list: Vec<T>,
        #[serde(skip)]
        nothing: PhantomData<T>,
    }
    #[derive(Serialize, Deserialize, JsonSchema)]
    struct Theirs<T, const N: usize = 1> {
        value: T,
        optional: Option<T>,
        list: Vec<T>,
        #[serde(skip)]
        nothing: PhantomData<T>,
    }
    assert_eq!(schema::<Ours<Inner>>(), schema::<Theirs<Inner>>());
    assert_ne!(Ours::<Inner>::schema_id(), Ours::<i32>::schema_id());
    assert_ne!(Ours::<i32>::schema_id(), Ours::<i32, 2>::schema_id());
}

#[test]
fn a_lifetime_is_no_obstacle() {
    #[derive(Serialize, Deserialize, Schema)]
    struct Ours<'a> {
        text: std::borrow::Cow<'a, str>,
    }
    assert_eq!(schema::<Ours<'_>>()["required"], serde_json::json!(["text"]));
}

#[test]
fn documentation_may_come_from_a_file() {
    #[derive(Serialize, Deserialize, Schema)]
    #[doc = include_str!("../../../../README.md")]
    struct S {
        field: i32,
    }
    let readme = include_str!("../../../../README.md");
    let title = schema::<S>()["title"].as_str().map(ToOwned::to_owned);
    assert!(readme.starts_with(&format!("# {}", title.unwrap_or_default())), "{:#}", schema::<S>());
}

#[test]
fn names_of_fields_are_known_without_a_value() {
    use crate::__private::{FieldName, FieldNames};
    #[derive(Serialize, Deserialize, Schema)]
    #[serde(rename_all = "camelCase")]
    struct S {
        host_name: String,
        r#type: i32,
        #[serde(skip)]
        skipped: i32,
        #[serde(flatten)]
        inner: Inner,
    }
    let name = |rust, json, flattened| FieldName { rust, json, flattened };
    assert_eq!(
        S::FIELDS,
        [
            name("host_name", "hostName", false),
            name("type", "type", false),
            name("inner", "inner", true)
        ]
    );
}

#[derive(Serialize, Deserialize, Schema)]
enum Level {
    #[serde(alias = "Minor")]
    Low,
    #[serde(other)]
    Unknown,
}

#[derive(Serialize, Deserialize, Schema)]
struct Renamed {
    #[serde(alias = "hostname", alias = "fqdn")]
    host: String,
    level: Option<Level>,
}

#[test]
fn names_that_only_serde_reads_are_warned_of() {
    let found = crate::crd::structural_schema::<Renamed>().unwrap();
    assert_eq!(
        found.warnings,
        [
            r#".host: serde also reads the names ["hostname","fqdn"], which no schema can say: an API server drops or refuses them"#,
            r#".level: serde also reads the names ["Minor"], which no schema can say: an API server drops or refuses them"#,
            r#".level: serde reads every other name as "Unknown", and an API server refuses it"#,
        ]
    );
    assert_eq!(
        found.schema["properties"]["level"]["anyOf"],
        serde_json::json!([{ "enum": ["Low", "Unknown"] }])
    );
    assert!(!found.schema.to_string().contains("x-windlass"), "{}", found.schema);
}

#[derive(Serialize, Deserialize, Schema)]
struct Held<X> {
    #[serde(default)]
    all: Vec<X>,
}

#[test]
fn a_generic_field_may_have_a_default() {
    let found = crate::crd::structural_schema::<Held<i32>>().unwrap().schema;
    assert_eq!(found["properties"]["all"]["default"], serde_json::json!([]));
}

mod seconds {
    use std::time::Duration;

    use serde::{Deserialize, Deserializer, Serializer};

    pub(super) fn serialize<S: Serializer>(time: &Duration, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_u64(time.as_secs())
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Duration, D::Error> {
        u64::deserialize(from).map(Duration::from_secs)
    }
}

#[derive(Serialize, Deserialize, Schema)]
#[serde(rename_all = "camelCase")]
enum Stop {
    #[serde(with = "seconds")]
    #[schema(with = u64)]
    After(#[schema(max = 9)] std::time::Duration),
    #[serde(with = "seconds")]
    Within(#[schema(with = u64)] std::time::Duration),
    Never,
}

#[test]
fn a_variant_that_a_function_reads_has_the_form_that_is_said() {
    let found = schema::<Stop>();
    let content = |name: &str| {
        let branches = found["oneOf"].as_array().into_iter().flatten();
        branches.filter_map(|branch| branch["properties"].get(name)).next().cloned()
    };
    let after = content("after").unwrap();
    assert_eq!((&after["type"], &after["maximum"]), (&"integer".into(), &9.into()), "{found:#}");
    assert_eq!(content("within").unwrap()["type"], "integer", "{found:#}");
    let stop: Stop = serde_json::from_value(serde_json::json!({ "after": 5 })).unwrap();
    assert_eq!(serde_json::to_value(&stop).unwrap(), serde_json::json!({ "after": 5 }));
}

#[derive(Debug, PartialEq, Serialize, Deserialize, Schema)]
struct Range(i32, #[serde(default)] i32, #[serde(default = "two")] i32);

#[derive(Debug, Default, PartialEq, Serialize, Deserialize, Schema)]
#[serde(default)]
struct Any(i32, #[serde(skip_serializing_if = "Option::is_none")] Option<i32>);

#[derive(Debug, PartialEq, Serialize, Deserialize, Schema)]
enum Ranges {
    One(i32, #[serde(default, skip_serializing_if = "Option::is_none")] Option<i32>),
}

#[test]
fn a_tuple_may_end_where_serde_has_defaults() {
    let least = |schema: &serde_json::Value| schema["minItems"].clone();
    let found = schema::<Range>();
    assert_eq!((least(&found), &found["maxItems"]), (1.into(), &3.into()));
    assert_eq!(least(&schema::<Any>()), 0);
    assert_eq!(least(&schema::<Ranges>()["oneOf"][0]["properties"]["One"]), 1);
    assert_eq!(least(&written::<Range>()), 3);
    assert_eq!(serde_json::from_str::<Range>("[1]").unwrap(), Range(1, 0, 2));
    assert_eq!(serde_json::from_str::<Any>("[]").unwrap(), Any(0, None));
    assert_eq!(serde_json::to_string(&Any(1, None)).unwrap(), "[1]");
    assert_eq!(serde_json::from_str::<Any>("[1]").unwrap(), Any(1, None));
    let one: Ranges = serde_json::from_str("{\"One\":[1]}").unwrap();
    assert_eq!(serde_json::to_string(&one).unwrap(), "{\"One\":[1]}");
}
