//! Texts with definitions, and descriptions that were cut.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use serde_json::{Value, json};

use super::*;
use crate::error::ErrorKind;
use crate::resource::ResourceExt;

fn definition(name: &str) -> Value {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": { "name": name },
        "spec": {
            "group": "example.dev", "scope": "Namespaced",
            "names": { "kind": "Site", "plural": "sites" },
            "versions": [{ "name": "v1", "served": true, "storage": true }],
        },
    })
}

/// Returns the names of the definitions in a text.
fn names(text: &str) -> Vec<String> {
    let found = definitions_from_yaml(text).unwrap();
    found.iter().map(|definition| definition.name().to_owned()).collect()
}

#[test]
fn definitions_are_found_among_other_documents_and_in_lists() {
    let other = json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": "x" } });
    let list = json!({ "apiVersion": "v1", "kind": "List", "items": [definition("b"), other] });
    let mut untyped = definition("c");
    untyped.as_object_mut().unwrap().remove("kind");
    let typed = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinitionList", "items": [untyped],
    });
    let text =
        format!("# Comment\n---\n{}\n---\n{list}\n---\n{typed}\n---\n{other}\n", definition("a"));
    assert_eq!(names(&text), ["a", "b", "c"]);
    assert_eq!(names(""), [""; 0]);
    assert_eq!(names("---\n---\n"), [""; 0]);
}

#[test]
fn a_definition_of_the_version_that_ended_is_refused_with_the_way_to_rewrite_it() {
    let mut old = definition("sites.example.dev");
    old["apiVersion"] = json!("apiextensions.k8s.io/v1beta1");
    let error = definitions_from_yaml(&old.to_string()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Decode);
    let text = error.to_string();
    assert!(text.contains("\"sites.example.dev\"") && text.contains("openAPIV3Schema"), "{text}");
}

#[test]
fn a_text_that_is_no_definition_is_refused_with_its_place() {
    let text = format!("{:#}", Printed(definitions_from_yaml("a: [1\nb: 2").unwrap_err()));
    assert!(text.contains("not YAML") && text.contains("line"), "{text}");
    let mut wrong = definition("sites.example.dev");
    wrong["spec"]["versions"] = json!("v1");
    let text = Printed(definitions_from_yaml(&wrong.to_string()).unwrap_err()).to_string();
    assert!(text.contains("\"sites.example.dev\"") && text.contains("invalid type"), "{text}");
}

#[test]
fn a_document_that_is_nested_too_deep_is_refused() {
    let mut text = "{\"a\":".repeat(200);
    text.push('1');
    text.push_str(&"}".repeat(200));
    assert_eq!(definitions_from_yaml(&text).unwrap_err().kind(), ErrorKind::Decode);
    // Deeper than any parser goes.
    let text = format!("{}1{}", "[".repeat(100_000), "]".repeat(100_000));
    assert_eq!(definitions_from_yaml(&text).unwrap_err().kind(), ErrorKind::Decode);
}

/// An error with the causes.
struct Printed(crate::error::Error);

impl std::fmt::Display for Printed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}", self.0)?;
        let mut cause = std::error::Error::source(&self.0);
        while let Some(error) = cause {
            write!(f, ": {error}")?;
            cause = error.source();
        }
        Ok(())
    }
}

/// A definition with this schema.
fn with_schema(schema: Value) -> CustomResourceDefinition {
    let mut definition = definition("sites.example.dev");
    definition["spec"]["versions"][0]["schema"] = json!({ "openAPIV3Schema": schema });
    serde_json::from_value(definition).unwrap()
}

/// Returns the description of the root after a cut.
fn cut(text: &str, max: usize) -> Option<String> {
    let mut definition = with_schema(json!({ "type": "object", "description": text }));
    cut_descriptions(&mut definition, max);
    let schema = definition.spec.versions.remove(0).schema.unwrap().open_api_v3_schema.unwrap();
    schema.description
}

#[test]
fn a_description_is_cut_behind_a_sentence_or_a_word() {
    let text = "Host of the site. It answers to this name only.";
    assert_eq!(cut(text, 100).as_deref(), Some(text));
    assert_eq!(cut(text, 30).as_deref(), Some("Host of the site."));
    assert_eq!(cut(text, 17).as_deref(), Some("Host of the site."));
    assert_eq!(cut(text, 12).as_deref(), Some("Host of the…"));
    assert_eq!(cut(text, 11).as_deref(), Some("Host of…"));
    assert_eq!(cut("ä".repeat(9).as_str(), 4).as_deref(), Some("äää…"));
    assert_eq!(cut(text, 0), None);
    for max in 0..60 {
        let length = cut(text, max).map_or(0, |text| text.chars().count());
        assert!(length <= max, "{max}");
    }
}

#[test]
fn descriptions_are_cut_everywhere_and_properties_of_that_name_stay() {
    let note = |kind: &str| json!({ "type": kind, "description": "A note of some length." });
    let mut definition = with_schema(json!({
        "type": "object",
        "properties": {
            "description": note("string"),
            "list": { "type": "array", "items": note("string") },
            "map": { "type": "object", "additionalProperties": note("string") },
        },
        "anyOf": [{ "description": "Either." }],
    }));
    let before = json_size(&definition);
    cut_descriptions(&mut definition, 0);
    let text = serde_json::to_string(&definition).unwrap();
    assert!(!text.contains("A note") && !text.contains("Either"), "{text}");
    assert!(text.contains("\"description\":{\"type\":\"string\"}"), "{text}");
    assert!(json_size(&definition) < before);
}
