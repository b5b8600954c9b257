//! Selection of definitions and versions, and schemas that no type can describe.
//!
//! The printed types of public definitions, and the comparison of their schemas with the imported
//! schemas, are tests of `windlass-tests` (`tests/import.rs`), where the types are compiled.

use serde_json::{Map, Value, json};

use super::names::{UniqueIdentifiers, camel, singular, snake};
use super::*;

/// A definition whose versions have these schemas; the last version is stored.
fn definition(plural: &str, versions: &[(&str, Value)]) -> String {
    let last = versions.len() - 1;
    let versions: Vec<Value> = versions
        .iter()
        .enumerate()
        .map(|(at, (name, spec))| {
            let schema = json!({ "type": "object", "properties": { "spec": spec } });
            json!({ "name": name, "served": true, "storage": at == last,
                    "schema": { "openAPIV3Schema": schema } })
        })
        .collect();
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": { "name": format!("{plural}.example.dev") },
        "spec": {
            "group": "example.dev", "scope": "Namespaced",
            "names": { "kind": "Site", "plural": plural }, "versions": versions,
        },
    })
    .to_string()
}

fn field(name: &str) -> Value {
    json!({ "type": "object", "properties": { name: { "type": "string" } } })
}

fn import(text: &str, options: &ImportOptions) -> Result<ImportOutput, Error> {
    import_definitions(text, options)
}

#[test]
fn the_stored_version_is_printed_unless_another_is_selected() {
    let text = definition("sites", &[("v1", field("old")), ("v2", field("new"))]);
    let stored = import(&text, &ImportOptions::default()).unwrap();
    assert!(stored.source.contains("pub new: Option<String>"), "{}", stored.source);
    assert_eq!(stored.warnings, ["sites.example.dev: the version v1 is left out"]);
    let old = import(&text, &ImportOptions::default().version("v1")).unwrap();
    assert!(old.source.contains("pub old: Option<String>"), "{}", old.source);
    let error = import(&text, &ImportOptions::default().version("v3")).unwrap_err();
    assert!(error.to_string().contains(r#"no version "v3", but ["v1", "v2"]"#), "{error}");
}

#[test]
fn several_definitions_are_modules_and_one_can_be_selected() {
    let one = |plural: &str| definition(plural, &[("v1", field("a"))]);
    let text = format!("{}\n---\n{}\n", one("sites"), one("types"));
    let all = import(&text, &ImportOptions::default()).unwrap().source;
    assert!(all.contains("pub mod sites {\n    // Rust types of sites.example.dev"), "{all}");
    assert!(all.contains("pub mod types {") && all.ends_with("}\n"), "{all}");
    let selected = ImportOptions::default().name("types.example.dev");
    let one = import(&text, &selected).unwrap().source;
    assert!(one.starts_with("// Rust types of types.example.dev, version v1"), "{one}");
    let error = import(&text, &ImportOptions::default().name("pages.example.dev")).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound);
    assert!(error.to_string().contains("\"sites.example.dev\""), "{error}");
    let error = import("kind: Namespace\n", &ImportOptions::default()).unwrap_err();
    assert!(error.to_string().contains("no custom resource definition"), "{error}");
}

#[test]
fn deep_schemas_end_in_values_with_their_whole_schema() {
    let mut spec = json!({ "type": "string" });
    for _ in 0..27 {
        spec = json!({ "type": "object", "properties": { "a": spec } });
    }
    let output = import(&definition("sites", &[("v1", spec)]), &ImportOptions::default()).unwrap();
    assert_eq!(output.source.matches("pub struct").count(), 24);
    assert!(output.source.contains("pub a: Option<Value>"), "{}", output.source);
    assert_eq!(output.warnings, [""; 0]);
}

#[test]
fn many_types_end_in_values() {
    let fields: Map<String, Value> =
        (0..4_100).map(|at| (format!("f{at}"), field(&format!("g{at}")))).collect();
    let spec = json!({ "type": "object", "properties": fields });
    let output = import(&definition("sites", &[("v1", spec)]), &ImportOptions::default()).unwrap();
    assert!(output.source.matches("pub struct").count() <= 4_001);
}

#[test]
fn names_become_identifiers_that_serde_reads_back() {
    for (json, identifier) in [
        ("hostName", "host_name"),
        ("clusterIP", "cluster_ip"),
        ("podIPs", "pod_ips"),
        ("podIPsSeen", "pod_ips_seen"),
        ("isSet", "is_set"),
        ("HTTPRoute", "http_route"),
        ("x-y", "x_y"),
        ("$ref", "ref"),
        ("a1B2", "a1_b2"),
        ("ä", ""),
    ] {
        assert_eq!(snake(json), identifier);
    }
    assert_eq!(camel("host_name"), "hostName");
    assert_eq!(camel("r#type"), "type");
    let mut names = UniqueIdentifiers::default();
    let fields: Vec<String> = ["type", "self", "crate", "3d", "ä", "a-b", "a_b", "gen"]
        .iter()
        .map(|name| names.field(name))
        .collect();
    assert_eq!(fields, ["r#type", "self_", "crate_", "_3d", "field", "a_b", "a_b_2", "r#gen"]);
    let mut names = UniqueIdentifiers::default();
    let variants: Vec<String> =
        ["", "*", "a", "A", "1", "Self", "=="].iter().map(|text| names.variant(text)).collect();
    assert_eq!(variants, ["Empty", "Other", "A", "A2", "V1", "SelfValue", "Other2"]);
    let mut names = UniqueIdentifiers::default();
    assert_eq!(
        [names.kind("Option"), names.kind("Site"), names.kind("Site")],
        ["OptionObject", "Site", "Site2"]
    );
}

#[test]
fn a_list_without_values_is_left_out_as_an_api_server_does() {
    let text = json!({ "type": "string", "enum": [] });
    let only_null = json!({ "type": "string", "nullable": true, "enum": [null] });
    let spec = json!({ "type": "object", "properties": { "a": text, "b": only_null } });
    let output = import(&definition("sites", &[("v1", spec)]), &ImportOptions::default()).unwrap();
    for field in ["pub a: Option<String>", "pub b: Option<String>"] {
        assert!(output.source.contains(field), "{}", output.source);
    }
    assert!(!output.source.contains("extend"), "{}", output.source);
    let warning = "sites.example.dev: .spec.b: `enum` of null alone is left out";
    assert_eq!(output.warnings, [warning]);
}

#[test]
fn elements_of_a_list_are_named_in_the_singular() {
    for (plural, one) in [
        ("SiteRules", "SiteRule"),
        ("SitePolicies", "SitePolicy"),
        ("SiteBoxes", "SiteBox"),
        ("SiteAddress", "SiteAddress"),
        ("SiteStatus", "SiteStatus"),
        ("SiteData", "SiteData"),
    ] {
        assert_eq!(singular(plural), one);
    }
}

#[test]
fn literals_of_large_values_need_no_recursion_of_the_compiler() {
    use super::literals::{json as literal, string};
    assert_eq!(
        literal(&json!({ "a": [1, "b\"", null, 5_000_000_000_i64, -1.5] })),
        r##"{ "a": [1, r#"b""#, null, 5_000_000_000_i64, -1.5] }"##
    );
    let large = literal(&json!((0..20).collect::<Vec<_>>()));
    assert!(large.starts_with("serde_json::from_str::<serde_json::Value>(\"[0,1,"), "{large}");
    assert_eq!(string("a\u{1b}\n"), r#""a\u{1b}\n""#);
    assert_eq!(string(r##"\d"#"##), r###"r##"\d"#"##"###);
}

#[test]
fn a_bound_that_no_value_of_the_type_has_is_left_out_with_a_warning() {
    let spec = json!({
        "type": "object",
        "properties": {
            "short": { "type": "integer", "format": "int32", "minimum": 0, "maximum": 4_294_967_295_u32 },
            "long": { "type": "integer", "format": "int64", "minimum": i64::MIN, "maximum": u64::MAX },
            "half": { "type": "integer", "minimum": 0.5, "exclusiveMinimum": true },
            "last": { "type": "integer", "format": "int32", "maximum": i64::from(i32::MAX) + 1, "exclusiveMaximum": true },
        },
    });
    let text = definition("sites", &[("v1", spec)]);
    let ImportOutput { source, warnings, .. } = import(&text, &ImportOptions::default()).unwrap();
    let all = warnings.join("\n");
    // The warnings stand in the source as comments.
    let is_code = |line: &&str| !line.trim_start().starts_with("//");
    let source: String = source.lines().filter(is_code).collect();
    assert!(!source.contains("4294967295") && source.contains("min = 0"), "{source}");
    assert!(!source.contains("18446744073709551615") && !source.contains("0.5"), "{source}");
    assert!(!source.contains("2147483648"), "{source}");
    assert!(all.contains(".spec.short: the maximum 4294967295 is left out"), "{all}");
    assert_eq!(warnings.len(), 5, "{all}");
}

#[test]
fn a_field_that_may_be_null_and_has_a_default_is_written_as_null() {
    let text = json!({ "type": "string", "nullable": true, "default": "x" });
    let spec = json!({ "type": "object", "properties": { "a": text, "b": { "type": "string" } } });
    let output = import(&definition("sites", &[("v1", spec)]), &ImportOptions::default()).unwrap();
    let (before, _) = output.source.split_once("pub a: Option<String>").unwrap();
    let attributes = before.rsplit("pub struct").next().unwrap();
    assert!(!attributes.contains("skip_serializing_if"), "{}", output.source);
    assert_eq!(output.source.matches("skip_serializing_if").count(), 1, "{}", output.source);
}
