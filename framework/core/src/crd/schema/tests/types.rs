//! Shapes: every way in which serde and schemars describe a type.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::net::{IpAddr, Ipv4Addr};
use std::time::Duration;

use k8s_openapi::api::core::v1::PodTemplateSpec;
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::{Shape, shape};

macro_rules! types {
    ($($item:item)*) => {$(
        #[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
        #[allow(dead_code)]
        $item
    )*};
}

types! {
    #[serde(tag = "type")]
    enum Internal {
        Git { url: String, depth: Option<u32> },
        Image { image: String },
        Nothing,
    }

    #[serde(tag = "type")]
    enum InternalClash { Number { value: i64 }, Text { value: String } }

    #[serde(tag = "type")]
    enum InternalWide { Flag { value: bool }, List { value: Vec<String> } }

    #[serde(tag = "type")]
    enum InternalBounds {
        Small { #[schemars(range(min = 1, max = 5))] size: i32 },
        Large { #[schemars(range(min = 6, max = 50))] size: i32 },
    }

    #[serde(tag = "type")]
    enum InternalOption { One { colour: Option<Unit> }, Two { colour: Option<MapKey> } }

    #[serde(tag = "type")]
    enum InternalNewtype { Plain(Plain), Other(OtherPlain) }

    #[serde(tag = "type", content = "value")]
    enum Adjacent { Number(i64), Object(Plain), Empty }

    enum External { Git { url: String }, Image(String), Pair(i32, i32) }

    #[serde(rename_all = "camelCase")]
    enum Mixed { Always, OnlyAt { hour: u8 }, Named(String) }

    enum Unit { Red, Green }

    /// A colour.
    enum Documented {
        /// Stop.
        Red,
        /// Go.
        Green,
    }

    #[serde(untagged)]
    enum Scalars { Number(i64), Text(String) }

    #[serde(untagged)]
    enum ScalarOrObject { Text(String), Object(Plain) }

    #[serde(untagged)]
    enum Objects { One(Plain), Two(OtherPlain) }

    #[serde(untagged)]
    enum OneOrMany { One(String), Many(Vec<String>) }

    #[serde(untagged)]
    enum NullOrText { Nothing, Text(String) }

    #[serde(untagged)]
    enum Lists { Numbers(Vec<i64>), Texts(Vec<String>) }

    #[serde(untagged)]
    enum Numbers { Whole(i64), Broken(f64) }

    #[serde(untagged)]
    enum AnyText { Text(String), Anything(Value) }

    /// Two fields.
    #[serde(rename_all = "camelCase")]
    struct Plain {
        /// Name.
        first_name: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        age: Option<i32>,
    }

    struct OtherPlain { colour: Unit }

    struct Newtype (String);
    struct TupleStruct (i32, String);
    struct SameTuple (i32, i32);

    struct Recursive { name: String, children: Vec<Recursive> }

    enum Expression { Literal(i64), Not(Box<Expression>), All(Vec<Expression>) }

    struct FlattenStruct { a: String, #[serde(flatten)] rest: Plain }
    struct FlattenMap { a: String, #[serde(flatten)] rest: BTreeMap<String, String> }
    struct FlattenValue { a: String, #[serde(flatten)] rest: Map<String, Value> }
    struct FlattenInternal { a: String, #[serde(flatten)] source: Internal }
    struct FlattenExternal { a: String, #[serde(flatten)] source: External }
    struct FlattenOption { a: String, #[serde(flatten)] source: Option<External> }
    struct FlattenUntagged { a: String, #[serde(flatten)] source: Objects }
    struct FlattenTwo {
        #[serde(flatten)] source: External,
        #[serde(flatten)] more: Objects,
    }
    struct FlattenMapAndEnum {
        #[serde(flatten)] source: External,
        #[serde(flatten)] rest: BTreeMap<String, Value>,
    }

    #[serde(deny_unknown_fields)]
    struct Strict { a: String }

    #[serde(rename_all = "camelCase")]
    struct Defaults {
        #[serde(default)] enabled: bool,
        #[serde(default = "three")] #[schemars(range(min = 1, max = 5))] replicas: i32,
        #[serde(default)] names: Vec<String>,
        #[serde(default)] plain: InnerDefaults,
        #[serde(default)] maybe: Option<String>,
    }

    struct Validated {
        #[schemars(length(min = 1, max = 10))] name: String,
        #[schemars(regex(pattern = "^[a-z]+$"))] label: String,
        #[schemars(extend("exclusiveMinimum" = 0.0, "exclusiveMaximum" = 1.0))] share: f64,
        #[schemars(inner(length(min = 1)))] list: Vec<String>,
        #[schemars(email)] mail: String,
        #[schemars(extend("x-kubernetes-validations" = [{ "rule": "self != 'no'" }]))] ruled: String,
    }

    struct Embedded {
        #[schemars(schema_with = "crate::crd::object")] template: PodTemplateSpec,
        #[schemars(schema_with = "crate::crd::int_or_string")] port: IntOrString,
        #[schemars(schema_with = "crate::crd::shapes::quantity")] memory: Quantity,
        #[schemars(schema_with = "crate::crd::objects")] items: Vec<Value>,
        #[schemars(schema_with = "crate::crd::any")] anything: Value,
        #[schemars(schema_with = "crate::crd::conditions")] conditions: Vec<Value>,
        #[schemars(schema_with = "crate::crd::embedded_object")] object: Value,
        #[schemars(schema_with = "crate::crd::shapes::time")] at: String,
    }

    #[serde(transparent)]
    struct Transparent { inner: Plain }
}

#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
struct InnerDefaults {
    a: String,
    b: Option<i32>,
}

#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
struct UnitStruct;

#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema, PartialEq, Eq, PartialOrd, Ord)]
enum MapKey {
    Left,
    Right,
}

fn three() -> i32 {
    3
}

fn plain() -> Plain {
    Plain { first_name: "x".into(), age: Some(3) }
}

fn other() -> OtherPlain {
    OtherPlain { colour: Unit::Red }
}

/// Every shape with values that the schema must leave unchanged.
pub(super) fn shapes() -> Vec<Shape> {
    let mut shapes = scalars();
    shapes.extend(collections());
    shapes.extend(enums());
    shapes.extend(structs());
    shapes
}

fn scalars() -> Vec<Shape> {
    vec![
        shape("bool", &[true, false]),
        shape("i8", &[i8::MIN, i8::MAX]),
        shape("i16", &[i16::MIN]),
        shape("i32", &[i32::MIN, i32::MAX]),
        shape("i64", &[i64::MIN]),
        shape("i128", &[1_i128]),
        shape("isize", &[-1_isize]),
        shape("u8", &[u8::MAX]),
        shape("u16", &[u16::MAX]),
        shape("u32", &[u32::MAX]),
        shape("u64", &[0_u64, 1 << 40]),
        shape("u128", &[1_u128]),
        shape("usize", &[7_usize]),
        shape("nonzero", &[std::num::NonZeroU32::MIN]),
        shape("f32", &[0.5_f32]),
        shape("f64", &[-0.5_f64]),
        shape("char", &['x']),
        shape("String", &["x".to_owned(), String::new()]),
        shape("Cow", &[std::borrow::Cow::Borrowed("x")]),
        shape("IpAddr", &[IpAddr::V4(Ipv4Addr::LOCALHOST)]),
        shape("Ipv4Addr", &[Ipv4Addr::LOCALHOST]),
        shape("PathBuf", &[std::path::PathBuf::from("/a")]),
        shape("Duration", &[Duration::from_millis(1500)]),
        shape("unit", &[()]),
        shape("UnitStruct", &[UnitStruct]),
        shape("Option<String>", &[Some("x".to_owned()), None]),
        shape("Option<i32>", &[Some(1), None]),
        shape("Option<Option<i32>>", &[Some(Some(1)), None]),
        shape("Box<String>", &[Box::new("x".to_owned())]),
    ]
}

fn collections() -> Vec<Shape> {
    let text = || "x".to_owned();
    vec![
        shape("Vec<String>", &[vec![text(), text()], vec![]]),
        shape("Vec<Option<String>>", &[vec![Some(text()), None]]),
        shape("Vec<Vec<i32>>", &[vec![vec![1], vec![]]]),
        shape("Vec<Plain>", &[vec![plain()]]),
        shape("Option<Vec<Plain>>", &[Some(vec![plain()]), None]),
        shape("[i32; 3]", &[[1, 2, 3]]),
        shape("tuple", &[(1_i32, "x".to_owned())]),
        shape("tuple of one type", &[(1_i32, 2_i32)]),
        shape("tuple of anything", &[(1_i32, true, plain())]),
        shape("TupleStruct", &[TupleStruct(1, text())]),
        shape("SameTuple", &[SameTuple(1, 2)]),
        shape("BTreeSet<String>", &[BTreeSet::from([text()])]),
        shape("HashSet<i32>", &[HashSet::from([1])]),
        shape("BTreeSet<MapKey>", &[BTreeSet::from([MapKey::Left])]),
        shape("BTreeMap<String, String>", &[BTreeMap::from([(text(), text())])]),
        shape("HashMap<String, Plain>", &[HashMap::from([(text(), plain())])]),
        shape("BTreeMap<i32, String>", &[BTreeMap::from([(-1, text())])]),
        shape("BTreeMap<u16, Plain>", &[BTreeMap::from([(1_u16, plain())])]),
        shape("BTreeMap<MapKey, i32>", &[BTreeMap::from([(MapKey::Left, 1)])]),
        shape("BTreeMap<String, Value>", &[BTreeMap::from([(text(), json!([1, "x"]))])]),
        shape("Map<String, Value>", &[json!({ "a": { "b": 1 } }).as_object().cloned().unwrap()]),
        shape("Option<BTreeMap<String, i32>>", &[Some(BTreeMap::from([(text(), 1)])), None]),
        shape("Value", &[json!({ "a": [1] }), json!("x"), json!(1), json!(null)]),
        shape("Vec<Value>", &[vec![json!(1), json!({ "a": 1 })]]),
        shape("Option<Value>", &[Some(json!({ "a": 1 }))]),
    ]
}

fn enums() -> Vec<Shape> {
    let url = || "u".to_owned();
    let external =
        || vec![External::Git { url: url() }, External::Image(url()), External::Pair(1, 2)];
    vec![
        shape(
            "Internal",
            &[
                Internal::Git { url: url(), depth: None },
                Internal::Image { image: url() },
                Internal::Nothing,
            ],
        ),
        shape(
            "InternalClash",
            &[InternalClash::Number { value: 1 }, InternalClash::Text { value: url() }],
        ),
        shape(
            "InternalWide",
            &[InternalWide::Flag { value: true }, InternalWide::List { value: vec![url()] }],
        ),
        shape(
            "InternalBounds",
            &[InternalBounds::Small { size: 5 }, InternalBounds::Large { size: 6 }],
        ),
        shape(
            "InternalOption",
            &[
                InternalOption::One { colour: Some(Unit::Red) },
                InternalOption::One { colour: None },
                InternalOption::Two { colour: Some(MapKey::Left) },
            ],
        ),
        shape(
            "InternalNewtype",
            &[InternalNewtype::Plain(plain()), InternalNewtype::Other(other())],
        ),
        shape("Adjacent", &[Adjacent::Number(1), Adjacent::Object(plain()), Adjacent::Empty]),
        shape("External", &external()),
        shape("Option<External>", &[external().pop(), None]),
        shape("Mixed", &[Mixed::Always, Mixed::OnlyAt { hour: 3 }, Mixed::Named(url())]),
        shape("Option<Mixed>", &[Some(Mixed::Always), None]),
        shape("Unit", &[Unit::Red, Unit::Green]),
        shape("Option<Unit>", &[Some(Unit::Red), None]),
        shape("Documented", &[Documented::Red, Documented::Green]),
        shape("Option<Documented>", &[Some(Documented::Red), None]),
        shape("Scalars", &[Scalars::Number(1), Scalars::Text(url())]),
        shape("ScalarOrObject", &[ScalarOrObject::Text(url()), ScalarOrObject::Object(plain())]),
        shape("Objects", &[Objects::One(plain()), Objects::Two(other())]),
        shape("OneOrMany", &[OneOrMany::One(url()), OneOrMany::Many(vec![url()])]),
        shape("NullOrText", &[NullOrText::Nothing, NullOrText::Text(url())]),
        shape("Lists", &[Lists::Numbers(vec![1]), Lists::Texts(vec![url()])]),
        shape("Numbers", &[Numbers::Whole(1), Numbers::Broken(0.5)]),
        shape("AnyText", &[AnyText::Text(url()), AnyText::Anything(json!({ "a": 1 }))]),
        shape("Result<i32, String>", &[Ok::<i32, String>(1), Err(url())]),
        shape(
            "Expression",
            &[Expression::Not(Box::new(Expression::All(vec![Expression::Literal(1)])))],
        ),
    ]
}

fn structs() -> Vec<Shape> {
    let a = || "x".to_owned();
    let image = || External::Image("i".to_owned());
    let recursive = Recursive {
        name: a(),
        children: vec![Recursive {
            name: a(),
            children: vec![Recursive { name: a(), children: vec![] }],
        }],
    };
    vec![
        shape("Plain", &[plain(), Plain { age: None, ..plain() }]),
        shape("Option<Plain>", &[Some(plain()), None]),
        shape("Newtype", &[Newtype(a())]),
        shape("Transparent", &[Transparent { inner: plain() }]),
        shape("Recursive", &[recursive]),
        shape("FlattenStruct", &[FlattenStruct { a: a(), rest: plain() }]),
        shape("FlattenMap", &[FlattenMap { a: a(), rest: BTreeMap::from([("b".into(), a())]) }]),
        shape(
            "FlattenValue",
            &[FlattenValue { a: a(), rest: Map::from_iter([("b".into(), json!(1))]) }],
        ),
        shape(
            "FlattenInternal",
            &[FlattenInternal { a: a(), source: Internal::Image { image: a() } }],
        ),
        shape("FlattenExternal", &[FlattenExternal { a: a(), source: image() }]),
        shape(
            "FlattenOption",
            &[
                FlattenOption { a: a(), source: Some(image()) },
                FlattenOption { a: a(), source: None },
            ],
        ),
        shape("FlattenUntagged", &[FlattenUntagged { a: a(), source: Objects::One(plain()) }]),
        shape("FlattenTwo", &[FlattenTwo { source: image(), more: Objects::Two(other()) }]),
        shape(
            "FlattenMapAndEnum",
            &[FlattenMapAndEnum {
                source: image(),
                rest: BTreeMap::from([("b".to_owned(), json!({ "c": 1 }))]),
            }],
        ),
        shape("Strict", &[Strict { a: a() }]),
        shape("Defaults", &[serde_json::from_value::<Defaults>(json!({})).unwrap()]),
        shape(
            "Validated",
            &[Validated {
                name: a(),
                label: a(),
                share: 0.5,
                list: vec![a()],
                mail: "a@b.example".into(),
                ruled: a(),
            }],
        ),
        shape("Embedded", &[embedded()]),
    ]
}

fn embedded() -> Embedded {
    serde_json::from_value(json!({
        "template": { "spec": { "containers": [{ "name": "a" }] } },
        "port": "http",
        "memory": "2Gi",
        "items": [{ "a": 1 }],
        "anything": [1],
        "conditions": [{
            "type": "Ready",
            "status": "True",
            "lastTransitionTime": "2026-01-01T00:00:00Z",
            "reason": "Up",
            "message": ""
        }],
        "object": { "apiVersion": "v1", "kind": "Pod", "metadata": { "name": "a" } },
        "at": "2026-01-01T00:00:00Z"
    }))
    .unwrap()
}
