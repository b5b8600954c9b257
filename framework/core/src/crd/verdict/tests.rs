//! Definitions that an API server refuses, and the texts that report the fault before the server
//! does.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use schemars::JsonSchema;
use serde_json::{Value, json};

use super::super::definition::{Column, Definition, DefinitionField, Field, crd};
use super::super::structural_schema;
use super::validate;
use crate::crd::faults::collect_warnings;

macro_rules! types {
    ($($item:item)*) => {$(
        #[derive(Clone, Debug, serde::Serialize, serde::Deserialize, JsonSchema)]
        #[allow(dead_code)]
        $item
    )*};
}

/// The definition of a kind whose spec is `T`.
fn define<T: JsonSchema>(change: fn(&mut Definition)) -> Result<CustomResourceDefinition, String> {
    let field = Field {
        name: "spec",
        optional: || false,
        doc: "",
        schema: |generator| generator.subschema_for::<T>(),
        in_part: None,
    };
    let mut definition = Definition {
        group: "example.dev",
        version: "v1",
        kind: "Shape",
        plural: "shapes",
        singular: "shape",
        namespaced: true,
        fields: Box::leak(Box::new([field])),
        ..Definition::NONE
    };
    change(&mut definition);
    crd(&definition).map_err(|error| error.to_string())
}

/// Asserts that the definition is refused with all of these texts.
fn refused<T: JsonSchema>(texts: &[&str]) {
    let error = define::<T>(|_| {}).unwrap_err();
    for text in texts {
        assert!(error.contains(text), "{text:?} is not in: {error}");
    }
}

macro_rules! pattern {
    ($($name:ident $pattern:literal)*) => { types! {
        $(struct $name { #[schemars(regex(pattern = $pattern))] name: String })*
    } };
}
pattern! { Bracket "^[a-z" BackReference r"(a)\1" Verbose "(?x)a" Large "a{1,2000}" }

#[test]
fn a_pattern_is_judged_by_the_rules_of_re2() {
    refused::<Bracket>(&[
        ".spec.name: its pattern",
        "must be a valid regular expression, but isn't: error parsing regexp: missing closing ]: `[a-z`",
    ]);
    refused::<BackReference>(&["invalid escape sequence: `\\1`"]);
    refused::<Verbose>(&["invalid or unsupported Perl syntax: `(?x`"]);
    refused::<Large>(&["invalid repeat count: `{1,2000}`"]);
}

fn odd() -> i32 {
    3
}

fn most() -> u64 {
    u64::MAX
}

fn no() -> String {
    "no".to_owned()
}

types! {
    struct ByPattern { #[serde(default)] #[schemars(regex(pattern = "^[a-z]+$"))] name: String }
    struct ByFormat { #[serde(default)] #[schemars(email)] mail: String }
    struct ByUnit { #[serde(default = "odd")] #[schemars(extend("multipleOf" = 2))] n: i32 }
    struct ByRule {
        #[serde(default = "no")]
        #[schemars(extend("x-kubernetes-validations" = [{ "rule": "self != 'no'", "message": "say yes" }]))]
        answer: String,
    }
    struct ByRange { #[serde(default = "most")] n: u64 }
    struct ByQuantity {
        #[serde(default)]
        #[schemars(schema_with = "crate::crd::shapes::quantity")]
        memory: String,
    }
}

#[test]
fn a_default_is_judged_by_its_whole_schema() {
    refused::<ByPattern>(&[".spec.name: its default \"\" should match '^[a-z]+$'"]);
    refused::<ByFormat>(&[".spec.mail: its default \"\" must be of type email"]);
    refused::<ByUnit>(&[".spec.n: its default 3 should be a multiple of 2"]);
    refused::<ByRule>(&[".spec.answer: its default \"no\" breaks a rule of its own: say yes"]);
    refused::<ByRange>(&[".spec.n: its default 18446744073709551615 is not of type integer"]);
    refused::<ByQuantity>(&[".spec.memory: its default \"\" should match"]);
}

macro_rules! keyed {
    ($($name:ident $keys:tt)*) => { types! {
        $(struct $name {
            #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = $keys))]
            list: Vec<Item>,
        })*
    } };
}
keyed! { Missing ["id"] Optional ["alias"] Defaulted ["zone"] Nothing [] Deep ["tags"] Fine ["name"] }

types! {
    struct Item {
        name: String,
        alias: Option<String>,
        #[serde(default)] zone: String,
        #[serde(default)] #[schemars(extend("default" = null))] other: String,
        tags: Vec<String>,
    }
    struct SetOfObjects { #[schemars(extend("x-kubernetes-list-type" = "set"))] list: Vec<Item> }
    struct NoList { #[schemars(extend("x-kubernetes-list-type" = "set"))] text: String }
    struct OddType { #[schemars(extend("x-kubernetes-list-type" = "bag"))] list: Vec<String> }
    struct KeysOnly { #[schemars(extend("x-kubernetes-list-map-keys" = ["name"]))] list: Vec<Item> }
}

#[test]
fn the_keys_of_a_list_exist_and_are_always_present() {
    refused::<Missing>(&[
        ".spec.list: x-kubernetes-list-map-keys: \"id\": entries must all be names of item properties",
        "the items have",
    ]);
    refused::<Optional>(&["the key \"alias\": this property is in x-kubernetes-list-map-keys"]);
    refused::<Nothing>(&["must not be empty if x-kubernetes-list-type is map"]);
    refused::<Deep>(&["the key \"tags\" must be a scalar type"]);
    define::<Defaulted>(|_| {}).unwrap();
    define::<Fine>(|_| {}).unwrap();
}

#[test]
fn a_list_type_fits_its_list() {
    refused::<SetOfObjects>(&["must be atomic as item of a list with x-kubernetes-list-type=set"]);
    refused::<NoList>(&["must be array if x-kubernetes-list-type is specified"]);
    refused::<OddType>(&[
        "Unsupported value: \"bag\": supported values: \"atomic\", \"set\", \"map\"",
    ]);
    refused::<KeysOnly>(&["must be map if x-kubernetes-list-map-keys is non-empty"]);
}

macro_rules! ruled {
    ($($name:ident $rule:tt)*) => { types! {
        $(
            #[serde(rename_all = "camelCase")]
            #[schemars(extend("x-kubernetes-validations" = [$rule]))]
            struct $name { min_size: i32, names: Vec<String> }
        )*
    } };
}
ruled! {
    Syntax { "rule": "self.minSize >" }
    RustName { "rule": "self.min_size > 0" }
    Cost { "rule": "self.names.all(a, self.names.all(b, self.names.all(c, a + b != c)))" }
    BadReason { "rule": "self.minSize > 0", "reason": "Bad" }
    BadPath { "rule": "self.minSize > 0", "fieldPath": ".size" }
}

types! {
    struct OldInList { list: Vec<OldItem> }
    #[schemars(extend("x-kubernetes-validations" = [{ "rule": "self.n >= oldSelf.n" }]))]
    struct OldItem { n: i32 }

    #[schemars(extend("x-kubernetes-validations" = [{ "rule": "self.m > 0" }]))]
    enum Mixed { Off, On { m: i32 } }
    struct WithMixed { mode: Mixed }
}

#[test]
fn a_rule_is_judged_with_its_cost() {
    refused::<Syntax>(&[
        "x-kubernetes-validations[0].rule: Invalid value",
        "Syntax error",
        "at .spec)",
    ]);
    refused::<RustName>(&["undefined field 'min_size'", "expressions use JSON names"]);
    refused::<Cost>(&[
        "estimated rule cost exceeds budget by factor of more than 100x",
        "bound each",
    ]);
    refused::<BadReason>(&["Unsupported value: \"Bad\""]);
    refused::<BadPath>(&["fieldPath: Invalid value: \".size\": must be a valid path"]);
    refused::<OldInList>(&[
        "oldSelf cannot be used on the uncorrelatable portion",
        "at .spec.list[])",
    ]);
    refused::<WithMixed>(&["at .spec.mode)"]);
}

types! { struct Plain { host: String } }

#[test]
fn the_kind_of_lists_has_room_for_its_ending() {
    let kind = "Kindkindkindkindkindkindkindkindkindkindkindkindkindkindkind";
    assert_eq!(kind.len(), 60);
    let error = define::<Plain>(|it| {
        it.kind = "Kindkindkindkindkindkindkindkindkindkindkindkindkindkindkind";
    });
    let error = error.unwrap_err();
    assert!(error.contains("spec.names.listKind: Invalid value"), "{error}");
    assert!(error.contains("a kind has at most 59 letters"), "{error}");
}

const fn column(path: &'static str) -> Column {
    Column {
        name: "Column",
        path: DefinitionField::Text(path),
        kind: None,
        format: None,
        priority: 0,
        description: None,
    }
}

#[test]
fn columns_may_show_the_kind_and_filters_are_read() {
    const GOOD: &[Column] = &[
        column(".kind"),
        column(".apiVersion"),
        column(".metadata.managedFields[?(@.type==\"a\")]"),
    ];
    const OPERATOR: &[Column] = &[column(".metadata.x[?(@.type=\"Ready\")].status")];
    const TEXT: &[Column] = &[column(".metadata.x[?(@.type==Ready)].status")];
    define::<Plain>(|it| it.columns = GOOD).unwrap();
    let error = define::<Plain>(|it| it.columns = OPERATOR).unwrap_err();
    assert!(error.contains("a filter compares by `==`"), "{error}");
    let error = define::<Plain>(|it| it.columns = TEXT).unwrap_err();
    assert!(error.contains("`Ready` in the filter `?(@.type==Ready)` is not a value"), "{error}");
}

types! {
    struct Selected {
        host: String,
        labels: std::collections::BTreeMap<String, String>,
        #[schemars(schema_with = "crate::crd::shapes::object")] open: Value,
        #[schemars(schema_with = "crate::crd::shapes::int_or_string")] port: Value,
        #[schemars(schema_with = "crate::crd::shapes::quantity")] memory: String,
        either: Either,
    }
    #[serde(untagged)]
    enum Either { Flag(bool), Name(String) }
}

macro_rules! selectable {
    ($($path:literal)*) => { [$((
        $path,
        |it: &mut Definition| it.selectable = const { &[DefinitionField::Text($path)] },
    )),*] };
}

#[test]
fn a_selectable_field_is_listed_in_the_schema_and_has_a_type() {
    define::<Selected>(|it| it.selectable = &[DefinitionField::Text(".spec.host")]).unwrap();
    // A key of a map is a field to an API server.
    define::<Selected>(|it| it.selectable = &[DefinitionField::Text(".spec.labels.app")]).unwrap();
    let open: [(_, fn(&mut Definition)); 2] = selectable! { ".spec.open.host" ".metadata.name" };
    for (path, select) in open {
        let error = define::<Selected>(select).unwrap_err();
        let expected = format!("selectable: `{path}` does not refer to a valid field");
        assert!(error.contains(&expected), "{error}");
    }
    let untyped: [(_, fn(&mut Definition)); 3] =
        selectable! { ".spec.port" ".spec.memory" ".spec.either" };
    for (path, select) in untyped {
        let error = define::<Selected>(select).unwrap_err();
        assert!(error.contains(&format!("selectable: `{path}` has no single type")), "{error}");
    }
    const TWICE: &[DefinitionField] =
        &[DefinitionField::Text(".spec.host"), DefinitionField::Text(".spec.host")];
    let error = define::<Selected>(|it| it.selectable = TWICE).unwrap_err();
    assert!(error.contains("`.spec.host` is there twice"), "{error}");
}

#[test]
fn the_warning_of_a_deprecated_version_fits_into_a_header() {
    let error = define::<Plain>(|it| it.deprecated = Some(Some(&*"é".repeat(200).leak())));
    let error = error.unwrap_err();
    assert!(error.contains("version v1: the warning has 400 bytes"), "{error}");
    let error = define::<Plain>(|it| it.deprecated = Some(Some("use\u{a0}v2"))).unwrap_err();
    assert!(
        error.contains("printable UTF-8 characters, and there is another at byte 3"),
        "{error}"
    );
    define::<Plain>(|it| it.deprecated = Some(Some("use v2: \u{e9}"))).unwrap();
}

/// A definition with a description of `length` bytes.
fn described(length: usize) -> CustomResourceDefinition {
    let mut definition = serde_json::to_value(define::<Plain>(|_| {}).unwrap()).unwrap();
    let schema = &mut definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"];
    schema["description"] = "x".repeat(length).into();
    serde_json::from_value(definition).unwrap()
}

#[test]
fn a_definition_that_is_too_large_is_refused_and_a_large_one_warned_of() {
    assert!(collect_warnings(|| validate(&described(1000))).1.is_empty());
    let (result, warnings) = collect_warnings(|| validate(&described(300 << 10)));
    result.unwrap();
    assert!(warnings[0].contains("`kubectl apply` fails above 262144"), "{warnings:?}");
    let error = validate(&described(2 << 20)).unwrap_err().to_string();
    assert!(error.contains("at most 1048576 are accepted here"), "{error}");
}

#[test]
fn the_server_refuses_each_version_that_is_refused_here() {
    let definition = serde_json::to_value(define::<Selected>(|_| {}).unwrap()).unwrap();
    let fields = |paths: &[&str]| -> Value {
        paths.iter().map(|path| json!({ "jsonPath": path })).collect::<Vec<_>>().into()
    };
    let column = |key: &str, value: &str| {
        let mut column = json!({ "name": "X", "type": "string", "jsonPath": ".spec.host" });
        column[key] = value.into();
        json!([column])
    };
    let many: Vec<String> = (0..9).map(|n| format!(".spec.n{n}")).collect();
    let many: Vec<&str> = many.iter().map(String::as_str).collect();
    for (key, value, is_good) in [
        ("selectableFields", fields(&[".spec.host"]), true),
        ("selectableFields", fields(&[".spec.labels.app"]), true),
        ("selectableFields", fields(&[".spec.port"]), false),
        ("selectableFields", fields(&[".spec.host", ".spec.host"]), false),
        ("selectableFields", fields(&many[1..]), true),
        ("selectableFields", fields(&many), false),
        ("additionalPrinterColumns", column("name", "Host"), true),
        ("additionalPrinterColumns", column("name", ""), false),
        ("additionalPrinterColumns", column("type", "text"), false),
        ("additionalPrinterColumns", column("format", "uuid"), false),
        ("additionalPrinterColumns", column("jsonPath", "spec.host"), false),
        ("deprecationWarning", json!("use v2"), true),
        ("deprecationWarning", json!(""), false),
        ("deprecationWarning", json!("use\u{a0}v2"), false),
        ("deprecationWarning", json!("use\u{200b}v2"), false),
        ("deprecationWarning", json!("use\u{ad}v2"), false),
        ("deprecationWarning", json!("\u{1f469}\u{200d}\u{1f4bb}"), false),
        ("deprecationWarning", json!("\u{e000}"), false),
        ("deprecationWarning", json!("\u{378}"), false),
        ("deprecationWarning", json!("\u{301}e\u{301} \u{1f469} \\ \"v2\" 'v3'"), true),
        ("deprecationWarning", json!("é".repeat(200)), false),
    ] {
        let mut changed = definition.clone();
        let version = &mut changed["spec"]["versions"][0];
        for path in &many {
            let name = path.trim_start_matches(".spec.");
            version["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"][name] =
                json!({ "type": "integer" });
        }
        version["deprecated"] = true.into();
        version[key] = value.clone();
        let faults = windlass_apiserver::crd_schema::check_crd(&changed, None);
        assert_eq!(faults.is_empty(), is_good, "{key} {value}: {faults:?}");
        let found = validate(&serde_json::from_value(changed).unwrap());
        assert_eq!(found.is_ok(), is_good, "{key} {value}: {found:?}");
    }
}

#[test]
fn the_server_says_the_same_about_each_definition_that_passes() {
    let schemas: [Value; 3] = [
        structural_schema::<Fine>().unwrap().schema,
        structural_schema::<Defaulted>().unwrap().schema,
        structural_schema::<Plain>().unwrap().schema,
    ];
    for schema in schemas {
        let mut definition = serde_json::to_value(described(1)).unwrap();
        let root = &mut definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"];
        root["properties"] = json!({ "spec": schema });
        let faults = windlass_apiserver::crd_schema::check_crd(&definition, None);
        assert!(faults.is_empty(), "{faults:?}");
    }
}
