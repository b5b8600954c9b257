//! Shapes for which a definition once said something else than serde, without a warning.

use k8s_openapi::api::core::v1::PodTemplateSpec;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use windlass_apiserver::crd_schema::{Schema, check_crd};

use super::super::structural_schema;

fn schema<T: JsonSchema>() -> Value {
    structural_schema::<T>().unwrap().schema
}

fn warnings<T: JsonSchema>() -> Vec<String> {
    structural_schema::<T>().unwrap().warnings
}

fn fault<T: JsonSchema>() -> String {
    structural_schema::<T>().unwrap_err().to_string()
}

/// The value as the server stores it, or the server's refusal.
fn stored<T: JsonSchema>(value: &Value) -> Result<Value, String> {
    let schema = schema::<T>();
    let faults = check_crd(&super::crd(&schema), None);
    assert!(faults.is_empty(), "{faults:#?}\n{schema:#}");
    let compiled = Schema::compile(&super::root(&schema));
    let mut object = json!({ "spec": { "field": value } });
    compiled.prune(&mut object);
    compiled.default(&mut object);
    let faults = compiled.validate(&object, None).causes;
    match faults.as_slice() {
        [] => Ok(object["spec"]["field"].take()),
        faults => Err(format!("{faults:?}")),
    }
}

/// Asserts that the server refuses each value, as serde does.
fn refused<T: JsonSchema + for<'de> Deserialize<'de>>(values: &[Value]) {
    for value in values {
        assert!(serde_json::from_value::<T>(value.clone()).is_err(), "serde takes {value}");
        assert!(stored::<T>(value).is_err(), "the server takes {value}: {:#}", schema::<T>());
    }
}

/// Asserts that the server keeps each value unchanged, and that serde reads the value.
fn kept<T: JsonSchema + for<'de> Deserialize<'de>>(values: &[Value]) {
    for value in values {
        assert!(serde_json::from_value::<T>(value.clone()).is_ok(), "serde refuses {value}");
        assert_eq!(stored::<T>(value).as_ref(), Ok(value), "{:#}", schema::<T>());
    }
}

macro_rules! types {
    ($($item:item)*) => {$(
        #[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
        #[allow(dead_code)]
        $item
    )*};
}

fn main_branch() -> String {
    "main".to_owned()
}

types! {
    struct ByHand {
        #[serde(default)]
        #[schemars(schema_with = "crate::crd::object")]
        by_default: Option<PodTemplateSpec>,
        #[serde(skip_serializing_if = "Option::is_none")]
        #[schemars(schema_with = "crate::crd::object")]
        by_skipping: Option<PodTemplateSpec>,
        #[schemars(schema_with = "crate::crd::optional::object")]
        by_function: Option<PodTemplateSpec>,
        #[schemars(schema_with = "crate::crd::object")]
        needed: PodTemplateSpec,
    }

    struct Unreadable { #[serde(skip_serializing_if = "Vec::is_empty")] names: Vec<String> }
    struct Renamed { #[serde(rename(serialize = "out", deserialize = "in"))] name: String }
}

#[test]
fn an_optional_field_with_a_schema_by_hand_may_be_absent_and_null() {
    let found = schema::<ByHand>();
    assert_eq!(found["required"], json!(["needed"]), "{found:#}");
    for name in ["by_default", "by_skipping", "by_function"] {
        assert_eq!(found["properties"][name]["nullable"], true, "{name}");
    }
    kept::<ByHand>(&[json!({ "needed": {} })]);
    let null =
        json!({ "needed": {}, "by_default": null, "by_skipping": null, "by_function": null });
    kept::<ByHand>(&[null]);
    let others: Vec<_> = warnings::<ByHand>();
    assert!(others.iter().all(|it| it.contains("stores any object here")), "{others:?}");
}

#[test]
fn a_field_that_serde_cannot_read_again_is_named_in_a_warning() {
    assert!(warnings::<Unreadable>()[0].contains("\"names\" out at times"));
    assert!(
        warnings::<Renamed>()[0].contains("serde writes \"out\""),
        "{:?}",
        warnings::<Renamed>()
    );
}

types! {
    #[serde(tag = "t", deny_unknown_fields)]
    enum Strict { Git { #[serde(default = "main_branch")] branch: String }, Image { tag: String } }

    #[serde(tag = "t")]
    enum Loose { Git { #[serde(default = "main_branch")] branch: String }, Image { tag: String } }

    #[serde(untagged)]
    enum Untagged { Named { name: String }, Counted { #[serde(default)] n: i32, on: bool } }
    struct MaybeLoose { a: String, #[serde(flatten)] rest: Option<Loose> }
}

#[test]
fn a_default_of_one_variant_stays_out_of_the_others() {
    kept::<Strict>(&[json!({ "t": "Image", "tag": "x" }), json!({ "t": "Git" })]);
    kept::<Loose>(&[json!({ "t": "Image", "tag": "x" })]);
    kept::<Untagged>(&[json!({ "name": "x" })]);
    kept::<MaybeLoose>(&[json!({ "a": "x" })]);
}

#[test]
fn a_field_of_another_variant_is_refused_where_serde_refuses_it() {
    refused::<Strict>(&[json!({ "t": "Image", "tag": "x", "branch": "y" })]);
}

macro_rules! ruled {
    ($(#[$meta:meta])* $name:ident { $($body:tt)* } $rule:literal) => {
        #[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
        #[schemars(extend("x-kubernetes-validations" = [{ "rule": $rule }]))]
        $(#[$meta])*
        #[allow(dead_code)]
        struct $name { $($body)* }
    };
}

ruled!(Size { min: i32, max: i32 } "self.min <= self.max");

types! {
    struct FieldAndType {
        #[schemars(extend("x-kubernetes-validations" = [{ "rule": "self.min > 0" }]))]
        size: Size,
        #[schemars(extend("x-kubernetes-validations" = [{ "rule": "self.min > 1" }]))]
        maybe: Option<Size>,
    }

    #[serde(tag = "kind")]
    enum InVariant { Sized(Size), Fixed { size: i32 } }

    #[serde(tag = "kind")]
    enum SameName {
        Small {
            #[schemars(extend("x-kubernetes-validations" = [{ "rule": "self < 10", "message": "too large" }]))]
            size: i32,
        },
        Large { size: i32 },
        Deep { inner: Size },
        Deeper { inner: Plain },
    }

    struct Plain { min: i32, max: i32 }
    struct Flat { name: String, #[serde(flatten)] size: Size }

    #[serde(untagged)]
    enum Sets {
        Set { #[schemars(extend("x-kubernetes-list-type" = "set"))] list: Vec<String> },
        Other { #[schemars(extend("x-kubernetes-list-type" = "set"))] list: Vec<String>, more: bool },
    }

    #[serde(untagged)]
    enum Lists {
        Set { #[schemars(extend("x-kubernetes-list-type" = "set"))] list: Vec<String> },
        Other { list: Vec<String>, more: bool },
    }
}

/// The rules of a schema, as texts.
fn rules(schema: &Value) -> Vec<&str> {
    let rules = schema["x-kubernetes-validations"].as_array();
    rules.into_iter().flatten().filter_map(|rule| rule["rule"].as_str()).collect()
}

#[test]
fn rules_of_a_field_and_of_its_type_both_hold() {
    let found = schema::<FieldAndType>();
    assert_eq!(rules(&found["properties"]["size"]), ["self.min > 0", "self.min <= self.max"]);
    assert_eq!(rules(&found["properties"]["maybe"]), ["self.min > 1", "self.min <= self.max"]);
}

#[test]
fn a_rule_of_one_variant_becomes_a_rule_of_the_enum_with_a_condition() {
    let found = schema::<InVariant>();
    assert_eq!(rules(&found), ["self.kind != \"Sized\" || (self.min <= self.max)"]);
    assert_eq!(
        found["x-kubernetes-validations"][0]["message"],
        "failed rule: self.min <= self.max"
    );
    assert!(warnings::<InVariant>().is_empty(), "{:?}", warnings::<InVariant>());
}

#[test]
fn a_rule_of_a_field_that_two_variants_have_becomes_a_rule_of_the_enum() {
    let found = schema::<SameName>();
    let expected = [
        "self.kind != \"Small\" || (!has(self.size) || (self.size < 10))",
        "self.kind != \"Deep\" || (!has(self.inner) || (self.inner.min <= self.inner.max))",
    ];
    assert_eq!(rules(&found), expected, "{found:#}");
    assert_eq!(found["x-kubernetes-validations"][0]["message"], "too large");
    assert_eq!(found["x-kubernetes-validations"][0]["fieldPath"], ".size");
    assert!(warnings::<SameName>().is_empty(), "{:?}", warnings::<SameName>());
}

#[test]
fn a_rule_of_a_flattened_struct_is_kept() {
    assert_eq!(rules(&schema::<Flat>()), ["self.min <= self.max"]);
}

#[test]
fn the_list_type_of_all_variants_is_kept_and_another_is_warned_of() {
    assert_eq!(schema::<Sets>()["properties"]["list"]["x-kubernetes-list-type"], "set");
    assert!(warnings::<Sets>().is_empty(), "{:?}", warnings::<Sets>());
    let lost = ".list: `x-kubernetes-list-type` of one of its alternatives is lost";
    assert!(warnings::<Lists>().iter().any(|it| it.starts_with(lost)), "{:?}", warnings::<Lists>());
}

types! {
    struct ListType { #[schemars(extend("x-kubernetes-listtype" = "set"))] list: Vec<String> }
    struct Mesage {
        #[schemars(extend("x-kubernetes-validations" = [{ "rule": "self > 0", "mesage": "no" }]))]
        size: i32,
    }
    struct MaxLenght { #[schemars(extend("maxLenght" = 3))] name: String }
    struct RuleAsText { #[schemars(extend("x-kubernetes-validations" = "self > 0"))] size: i32 }
    struct NewKeyword { #[schemars(extend("x-kubernetes-colour" = "red"))] name: String }
    struct Vendor { #[schemars(extend("x-ui-hint" = "colour"))] name: String }
}

#[test]
fn a_misspelt_keyword_is_an_error_with_its_path_and_the_right_word() {
    let text = fault::<ListType>();
    assert!(text.contains(".list: there is no keyword `x-kubernetes-listtype`"), "{text}");
    assert!(text.contains("did you mean `x-kubernetes-list-type`?"), "{text}");
    let text = fault::<Mesage>();
    assert!(
        text.contains(".size: there is no key of a rule `mesage`; did you mean `message`?"),
        "{text}"
    );
    assert!(fault::<MaxLenght>().contains("did you mean `maxLength`?"));
    assert!(fault::<RuleAsText>().contains("it must be a list"));
    assert!(fault::<NewKeyword>().contains("there are x-kubernetes-embedded-resource, "));
    assert!(warnings::<Vendor>().is_empty());
}

types! {
    enum Expr {
        Number(i64),
        Text(String),
        Add(Box<Expr>, Box<Expr>),
        Not(Box<Expr>),
        Call(Call),
        Block(Vec<Stmt>),
        If { condition: Box<Expr>, then: Vec<Stmt>, otherwise: Option<Box<Expr>> },
    }
    enum Stmt {
        Let { name: String, value: Expr },
        Return(Option<Expr>),
        Call(Call),
        While { condition: Expr, body: Vec<Stmt> },
    }
    struct Call { name: String, arguments: Vec<Expr>, before: Vec<Stmt> }

    struct A { a: Vec<A>, b: Vec<B>, c: Vec<C>, d: Vec<D>, e: Vec<E> }
    struct B { a: Vec<A>, b: Vec<B>, c: Vec<C>, d: Vec<D>, e: Vec<E> }
    struct C { a: Vec<A>, b: Vec<B>, c: Vec<C>, d: Vec<D>, e: Vec<E> }
    struct D { a: Vec<A>, b: Vec<B>, c: Vec<C>, d: Vec<D>, e: Vec<E> }
    struct E { a: Vec<A>, b: Vec<B>, c: Vec<C>, d: Vec<D>, e: Vec<E> }

    struct Pipeline { stages: Vec<Stage>, more: Vec<Stage> }
    struct Stage { steps: Vec<Step> }
    struct Step { name: String, inner: Option<Box<Pipeline>> }
}

#[test]
#[allow(clippy::disallowed_methods, reason = "the time of the machine is the claim")]
fn types_that_contain_one_another_are_cut_where_they_repeat_with_a_warning_for_each_place() {
    let started = std::time::Instant::now();
    let found = structural_schema::<Expr>().unwrap();
    let size = found.schema.to_string().len();
    assert!(size < 16 << 10, "{size}");
    // At most eight places of each type, and a single line for the others.
    let cuts = |all: &[String], name: &str| {
        let text = format!(": the type `{name}` contains itself, which");
        all.iter().filter(|it| it.contains(&text)).count()
    };
    for name in ["Expr", "Stmt"] {
        assert!((1..=8).contains(&cuts(&found.warnings, name)), "{:#?}", found.warnings);
    }
    assert!(found.warnings.iter().any(|it| it.starts_with(".Not: ")), "{:#?}", found.warnings);
    let further = ": the type `Expr` contains itself, and is cut at 3 further places";
    assert!(found.warnings.iter().any(|it| it.contains(further)), "{:#?}", found.warnings);
    let five = structural_schema::<A>().unwrap();
    assert!(five.schema.to_string().len() < 16 << 10);
    for name in ["A", "B", "C", "D", "E"] {
        assert!((1..=8).contains(&cuts(&five.warnings, name)), "{:#?}", five.warnings);
    }
    assert!(started.elapsed() < std::time::Duration::from_secs(1), "{:?}", started.elapsed());
    assert!(stored::<A>(&json!({ "a": [], "b": [], "c": [], "d": [], "e": [] })).is_ok());
}

#[test]
fn a_cycle_of_types_is_described_once_and_alike_in_siblings() {
    let found = schema::<Pipeline>();
    let step = |name: &str| &found["properties"][name]["items"]["properties"]["steps"]["items"];
    assert_eq!(step("stages")["properties"]["name"]["type"], "string");
    assert_eq!(step("stages"), step("more"));
    let inner = &step("more")["properties"]["inner"];
    assert_eq!(inner["x-kubernetes-preserve-unknown-fields"], true);
    assert_eq!((&inner["type"], &inner["nullable"]), (&json!("object"), &json!(true)));
}

macro_rules! doubling {
    ($($name:ident $inner:ident;)*) => { types! {
        $(struct $name { a: $inner, b: $inner, c: $inner, d: $inner })*
    } };
}
types! { struct L0 { x: i32 } }
doubling! { L1 L0; L2 L1; L3 L2; L4 L3; L5 L4; L6 L5; L7 L6; L8 L7; L9 L8; L10 L9; L11 L10; }

#[test]
#[allow(clippy::disallowed_methods, reason = "the time of the machine is the claim")]
fn a_type_that_no_definition_has_room_for_is_refused_in_time() {
    let started = std::time::Instant::now();
    let text = fault::<L11>();
    assert!(text.contains("has more than 50000 fields"), "{text}");
    assert!(started.elapsed() < std::time::Duration::from_secs(5));
}

types! {
    #[serde(tag = "kind")]
    enum Values { Num { value: i64 }, Text { value: String }, Flag { value: bool } }

    #[serde(tag = "kind")]
    enum Nested { One { at: Plain }, Two { at: Other } }
    struct Other { name: String }

    #[serde(untagged)]
    enum Port { Number(u16), Name(String) }

    #[serde(untagged)]
    enum OneOrMany { One(String), Many(Vec<Other>), Pair(Plain), Flag(bool) }

    #[serde(tag = "kind")]
    enum Meeting { Mixed { at: OneOrMany }, Number { at: i32 }, Any { at: Option<Value> } }

    #[serde(untagged)]
    enum Inner { Number(i32), Fixed(Adjacent) }
    #[serde(tag = "t", content = "c", deny_unknown_fields)]
    enum Adjacent { One(i32), Two(String), Nothing }
    struct Mixtures { map: std::collections::BTreeMap<String, Port>, unit: () }

    enum Mode { Off, Quiet, Timed { hours: u8 } }
    struct Addressed { ip: std::net::IpAddr, v4: std::net::Ipv4Addr }
}

#[test]
fn a_field_of_several_types_is_checked_for_each_variant() {
    kept::<Values>(&[
        json!({ "kind": "Num", "value": 1 }),
        json!({ "kind": "Text", "value": "x" }),
        json!({ "kind": "Flag", "value": true }),
    ]);
    refused::<Values>(&[
        json!({ "kind": "Num", "value": "x" }),
        json!({ "kind": "Num", "value": 1.5 }),
        json!({ "kind": "Text", "value": 1 }),
        json!({ "kind": "Text", "value": [] }),
        json!({ "kind": "Flag", "value": {} }),
        json!({ "kind": "Flag", "value": "true" }),
    ]);
    assert!(warnings::<Values>().is_empty(), "{:?}", warnings::<Values>());
}

#[test]
fn the_fields_of_an_object_are_required_for_their_variant_only() {
    kept::<Nested>(&[
        json!({ "kind": "One", "at": { "min": 1, "max": 2 } }),
        json!({ "kind": "Two", "at": { "name": "x" } }),
    ]);
    refused::<Nested>(&[
        json!({ "kind": "One", "at": { "name": "x" } }),
        json!({ "kind": "Two", "at": { "min": 1, "max": 2 } }),
    ]);
    assert!(warnings::<Nested>().is_empty(), "{:?}", warnings::<Nested>());
}

#[test]
fn alternatives_of_different_types_are_checked_by_kind() {
    kept::<Port>(&[json!(80), json!("http")]);
    refused::<Port>(&[json!(70_000), json!(-1)]);
    kept::<OneOrMany>(&[
        json!("x"),
        json!([{ "name": "x" }]),
        json!({ "min": 1, "max": 2 }),
        json!(true),
    ]);
    refused::<OneOrMany>(&[json!(1), json!([1]), json!([{}]), json!({ "min": 1 })]);
    assert!(warnings::<OneOrMany>().is_empty(), "{:?}", warnings::<OneOrMany>());
}

#[test]
fn variants_with_data_are_checked_beside_variants_without() {
    kept::<Mode>(&[json!("Off"), json!({ "Timed": { "hours": 3 } })]);
    refused::<Mode>(&[
        json!("Loud"),
        json!({ "Loud": {} }),
        json!({ "Timed": {} }),
        json!({ "Timed": { "hours": "3" } }),
        json!({ "Timed": { "hours": 3 }, "More": 1 }),
        json!(1),
        json!([]),
    ]);
    assert!(warnings::<Mode>().is_empty(), "{:?}", warnings::<Mode>());
}

#[test]
fn mixtures_within_mixtures_stay_structural() {
    kept::<Meeting>(&[json!({ "kind": "Mixed", "at": [{ "name": "x" }] })]);
    kept::<Inner>(&[json!({ "t": "One", "c": 1 }), json!({ "t": "Nothing" }), json!(1)]);
    refused::<Inner>(&[
        json!({ "t": "Nothing", "c": 1 }),
        json!({ "t": "One", "c": "x" }),
        json!({ "t": "One", "c": 1, "more": 1 }),
        json!("x"),
    ]);
    kept::<Mixtures>(&[json!({ "map": { "a": 1, "b": "x" }, "unit": null })]);
    refused::<Mixtures>(&[
        json!({ "map": { "a": true }, "unit": null }),
        json!({ "map": {}, "unit": {} }),
    ]);
}

#[test]
fn addresses_are_checked() {
    kept::<Addressed>(&[json!({ "ip": "::1", "v4": "10.0.0.1" })]);
    refused::<Addressed>(&[
        json!({ "ip": "localhost", "v4": "10.0.0.1" }),
        json!({ "ip": "10.0.0.1", "v4": "::1" }),
    ]);
}

types! {
    enum Colour { Red, Green }
    struct Maybe { colour: Option<Colour> }
    struct Not { #[schemars(extend("not" = { "enum": ["root", "admin"] }))] user: String }
    struct NonZero { n: std::num::NonZeroI32 }
    struct Large { n: u64 }
    struct FlatMap { a: String, #[serde(flatten)] rest: std::collections::BTreeMap<String, i32> }
    struct ByNumber { map: std::collections::BTreeMap<i32, String> }
}

#[test]
fn the_values_of_an_optional_enum_stand_where_kubectl_explain_finds_them() {
    let found = &schema::<Maybe>()["properties"]["colour"];
    assert_eq!(found["anyOf"], json!([{ "enum": ["Red", "Green"] }]));
    kept::<Maybe>(&[json!({ "colour": null }), json!({ "colour": "Red" }), json!({})]);
    refused::<Maybe>(&[json!({ "colour": "Blue" })]);
}

#[test]
fn a_negation_is_a_part_of_the_schema() {
    assert_eq!(schema::<Not>()["properties"]["user"]["not"], json!({ "enum": ["root", "admin"] }));
    assert!(stored::<Not>(&json!({ "user": "root" })).is_err());
    refused::<NonZero>(&[json!({ "n": 0 })]);
    assert!(warnings::<NonZero>().is_empty(), "{:?}", warnings::<NonZero>());
}

struct Foreign;

impl JsonSchema for Foreign {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "io.k8s.api.example.v1.Foreign".into()
    }

    fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({ "type": "object", "properties": {
            "names": { "type": "array", "items": { "type": "string" } },
            "raw": generator.subschema_for::<RawExtension>()
        }})
    }
}

struct RawExtension;

impl JsonSchema for RawExtension {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "io.k8s.apimachinery.pkg.runtime.RawExtension".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({ "type": "object" })
    }
}

#[test]
fn a_raw_extension_is_kept_and_lists_of_kubernetes_types_are_atomic() {
    let value = json!({ "names": ["x"], "raw": { "any": { "x": 1 } } });
    assert_eq!(stored::<Foreign>(&value).as_ref(), Ok(&value));
    assert_eq!(schema::<Foreign>()["properties"]["names"]["x-kubernetes-list-type"], "atomic");
}

#[test]
fn an_unsigned_number_ends_where_the_server_ends() {
    assert_eq!(
        schema::<Large>()["properties"]["n"]["maximum"],
        json!(9_223_372_036_854_774_784_i64)
    );
}

#[test]
fn a_value_that_only_serde_checks_is_named_in_a_warning() {
    assert!(warnings::<FlatMap>()[0].contains("beside listed ones"), "{:?}", warnings::<FlatMap>());
    assert!(warnings::<ByNumber>()[0].starts_with(".map: "), "{:?}", warnings::<ByNumber>());
}

#[derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
#[serde(untagged)]
enum Pauses {
    Many(Vec<std::time::Duration>),
    One(i32),
}

#[derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
struct Paused {
    pauses: Pauses,
}

#[test]
fn unknown_fields_of_items_are_refused_where_a_server_would_keep_them() {
    let found = structural_schema::<Paused>().unwrap().schema;
    let item = &found["properties"]["pauses"]["anyOf"][0]["items"];
    assert_eq!(item["maxProperties"], 2, "{found:#}");
}

#[test]
fn a_list_with_keys_and_without_items_is_judged_without_a_panic() {
    let schema = json!({
        "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"],
    });
    let twice = json!([{ "name": "a" }, { "name": "a" }]);
    let text = crate::crd::misfit(&twice, &schema).unwrap();
    assert!(text.contains("has the key of an item before it"), "{text}");
    assert_eq!(crate::crd::misfit(&json!([{ "name": "a" }, { "name": "b" }]), &schema), None);
}
